"""Mutual information of the 40 tasks of benchmark-mi, whose truth is known: one line each, and a count.

    python benchmarks/information.py write FOLDER --seed 60001      # where benchmark-mi is installed
    OMP_NUM_THREADS=1 python benchmarks/information.py judge FOLDER

benchmark-mi needs an environment of its own: Python 3.11, `jax==0.4.30 jaxlib==0.4.30 "scipy<1.13" "ml_dtypes<0.5"
"jaxtyping<0.2.34"`, numpy < 2. An estimate counts where it is within 10 % or 0.05 nats of the truth. Seeds below 10,000
are for tuning.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

ROWS = 10_000


def write(folder: Path, seed: int) -> None:
    from bmi.benchmark import BENCHMARK_TASKS

    folder.mkdir(parents=True, exist_ok=True)
    for name, task in BENCHMARK_TASKS.items():
        x, y = (np.asarray(side, dtype=np.float64) for side in task.sample(ROWS, seed=seed))
        np.savez(folder / f"{name}.npz", x=x, y=y, truth=float(task.mutual_information))


def judge(folder: Path) -> None:
    from featgeo import mutual_information

    close = held = 0
    files = sorted(folder.glob("*.npz"))
    for file in files:
        with np.load(file) as task:
            x, y, truth = task["x"], task["y"], float(task["truth"])
        start = time.process_time()
        found = mutual_information(x, y, random_state=0)
        low, high = found.interval
        is_close, is_held = abs(found.estimate - truth) <= max(0.05, 0.1 * truth), low <= truth <= high
        close, held = close + is_close, held + is_held
        print(
            f"{file.stem:<50} truth {truth:.3f}  estimate {found.estimate:.3f}  {low:.3f} to {high:.3f}"
            f"{'' if is_close else '  far'}{'' if is_held else '  missed'}  {time.process_time() - start:.1f} CPU s",
            flush=True,
        )
    print(f"{close} of {len(files)} are close, {held} intervals hold the truth")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "judge"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=60_001)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    write(options.folder, options.seed) if options.what == "write" else judge(options.folder)
