"""Top modes of a large sparse table: time, memory, and agreement with a dense decomposition.

    python benchmarks/sparse_modes.py --symbols 100000 --nonzero 5000000 --modes 10

`--clusters 0` draws counts without structure, the slowest case for any iterative solver: the spectrum has no gap.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np
from scipy import sparse

from featgeo import FiniteJoint


def random_counts(symbols: int, nonzero: int, clusters: int, rng: np.random.Generator) -> sparse.coo_array:
    """A table with exactly `nonzero` cells; with clusters, a third of them pair symbols of the same cluster."""
    cells = np.empty(0, dtype=np.int64)
    while cells.size < nonzero:
        x, y = rng.integers(0, symbols, (2, nonzero))
        if clusters:
            same = rng.random(nonzero) < 1 / 3
            y = np.where(same, (y // clusters) * clusters + x % clusters, y).clip(max=symbols - 1)
        cells = np.unique(np.concatenate([cells, x * symbols + y]))
    cells = rng.permutation(cells)[:nonzero]
    counts = 1.0 + rng.poisson(1.0, nonzero)
    return sparse.coo_array((counts, np.divmod(cells, symbols)), shape=(symbols, symbols))


def timed_modes(table: sparse.coo_array | np.ndarray, k: int) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    sigma = FiniteJoint(table).modes(k).sigma
    return time.perf_counter() - start, sigma


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--symbols", type=int, default=100_000)
    parser.add_argument("--nonzero", type=int, default=5_000_000)
    parser.add_argument("--modes", type=int, default=10)
    parser.add_argument("--clusters", type=int, default=20)
    parser.add_argument("--dense-symbols", type=int, default=2_000, help="size at which both ways run")
    options = parser.parse_args()
    rng = np.random.default_rng(0)

    table = random_counts(options.symbols, options.nonzero, options.clusters, rng)
    seconds, sigma = timed_modes(table, options.modes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    del table

    density = options.nonzero / options.symbols**2
    small_nonzero = max(int(options.dense_symbols**2 * density * 20), 20 * options.dense_symbols)
    small = random_counts(options.dense_symbols, small_nonzero, options.clusters, rng)
    sparse_seconds, sparse_sigma = timed_modes(small, options.modes)
    dense_seconds, dense_sigma = timed_modes(small.toarray(), options.modes)
    result = {
        "symbols": options.symbols,
        "nonzero": options.nonzero,
        "seconds": round(seconds, 1),
        "peak_memory_GiB": round(peak, 2),
        "sigma": np.round(sigma, 6).tolist(),
        "at_dense_symbols": options.dense_symbols,
        "largest_difference_of_sigma": float(np.abs(sparse_sigma - dense_sigma).max()),
        "dense_seconds_over_sparse": round(dense_seconds / sparse_seconds, 1),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
