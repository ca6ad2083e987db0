"""Damaged and crafted files of every kind of model, and processes killed while they save: what comes of each.

    python benchmarks/damaged_files.py [--mutations 1000] [--kills 100] [--seed 20000]

Mutations are accidents at random places (`crafted_files.mutated`), spread over the kinds of models; crafted files are
all of `tests/crafted_files.py`, of every kind; payloads would run a command. Each must end in a clear error or in the
identical model, with at most 200 MB beyond what the honest file takes. Kills end a process that saves over and over.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import crafted_files as files

from featgeo import load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20_000)
    options = parser.parse_args()
    start = time.process_time()
    print(f"{'kind':14}{'files':>7}{'refused':>9}{'identical':>11}{'other':>7}{'most MB':>9}")
    total: Counter[str] = Counter()
    for index, kind in enumerate(files.kinds()):
        n = options.mutations // len(files.kinds()) + (index < options.mutations % len(files.kinds()))
        found, memory = of_kind(kind, n, options.seed + index)
        total += found
        print(row(kind, found, memory), flush=True)
    print(row("all", total, 0))
    print(f"payloads: {payloads()} of {len(files.PAYLOADS)} refused, and nothing ran")
    print(f"kills during save: {kills(options.kills)}")
    print(f"{time.process_time() - start:.0f} CPU s")


def row(name: str, found: Counter[str], memory: float) -> str:
    other = found.total() - found["refused"] - found["identical"]
    return f"{name:14}{found.total():7}{found['refused']:9}{found['identical']:11}{other:7}{memory:9.0f}"


def of_kind(kind: str, n_mutations: int, seed: int) -> tuple[Counter[str], float]:
    """Outcomes of all files of a kind of model, and the most memory that one took beyond the honest file."""
    rng, content, found = np.random.default_rng(seed), files.honest(kind), Counter()
    named = [(f"mutation {i}", files.mutated(content, rng)) for i in range(n_mutations)]
    named += [(name, change(content)) for name, change in files.PACKED.items()]
    for name, change in files.CRAFTED.items():
        parts = files.Parts.of(content)
        change(parts)
        named.append((name, parts.packed()))
    honest = files.peak_memory(lambda: files.outcome(content, kind))
    most = 0.0
    for name, changed in named:
        outcomes: list[str] = []
        most = max(most, files.peak_memory(lambda: outcomes.append(files.outcome(changed, kind))) - honest)
        found[outcomes[0]] += 1
        if outcomes[0] not in ("refused", "identical"):
            print(f"  {kind}, {name}: {outcomes[0]}")
    return found, most


def payloads() -> int:
    """How many payloads were refused without effect."""
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        marker = Path(folder) / "marker"
        for make in files.PAYLOADS.values():
            try:
                load(io.BytesIO(files.with_payload(files.honest("linear"), make(str(marker)))))
            except ValueError:
                refused += not marker.exists()
    return refused


def kills(n: int) -> str:
    """Kill a process that saves, n times; the file must stay the model, and nothing else be there."""
    rng, lost, left = np.random.default_rng(0), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fg"
        path.write_bytes(files.honest("kernel"))
        for _ in range(n):
            child = os.fork()
            if child == 0:
                while True:
                    files.kinds()["kernel"].model.save(path)
            time.sleep(rng.uniform(0, 0.2))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lost += files.outcome(path.read_bytes(), "kernel") != "identical"
            left += len(list(Path(folder).iterdir())) - 1
        files.kinds()["kernel"].model.save(path)
        after = len(list(Path(folder).iterdir())) - 1
    return f"{n}, {lost} lost the model, {left} left something, {after} after the next save"


if __name__ == "__main__":
    main()
