"""Level of tests of conditional independence where X and Y follow the same function of S, beside causal-learn's.

    OMP_NUM_THREADS=1 python benchmarks/following_s.py --methods featgeo KCI RCIT Fisher-z

X = f(S) + E1 and Y = f(S) + E2, independent given S: what a test misses of f looks like dependence. The figures are
shares of repetitions with p <= 0.05. Repetition r draws with the seed [first-seed, r]; 3 served to tune the method, 20
to report it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from conditional_independence import Data, Test, tests

Law = Callable[[np.random.Generator, int], Data]


def alike(f: Callable[[np.ndarray], np.ndarray], draw: Callable[[np.random.Generator, int], np.ndarray]) -> Law:
    def law(rng: np.random.Generator, n: int) -> Data:
        s = draw(rng, n)
        return (f(s) + rng.standard_normal(n))[:, None], (f(s) + rng.standard_normal(n))[:, None], s

    return law


def normal(d: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: rng.standard_normal((n, d))


def close(rng: np.random.Generator, n: int) -> np.ndarray:
    s, apart = rng.standard_normal((2, n))
    return np.column_stack([s, s + 0.05 * apart])


def counts(rng: np.random.Generator, n: int) -> Data:
    s = rng.standard_normal((n, 1))
    return rng.poisson(np.exp(s)).astype(float), rng.poisson(np.exp(s)).astype(float), s


def scales(rng: np.random.Generator, n: int) -> Data:
    s = rng.standard_normal((n, 5))
    scale = np.exp(s.sum(axis=1, keepdims=True) / 2)
    return scale * rng.standard_normal((n, 1)), scale * rng.standard_normal((n, 1)), s


def along(h: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda s: h(s.sum(axis=1) / np.sqrt(s.shape[1]))


LAWS: dict[str, Law] = {
    "sum of 5 normal columns": alike(lambda s: s.sum(axis=1), normal(5)),
    "sum of 5 uniform columns": alike(lambda s: s.sum(axis=1), lambda rng, n: rng.uniform(-3, 3, (n, 5))),
    "sum of 5 lognormal columns": alike(lambda s: s.sum(axis=1), lambda rng, n: rng.lognormal(size=(n, 5))),
    "what two close columns differ in": alike(lambda s: 20 * (s[:, 1] - s[:, 0]), close),
    "counts of the same rate": counts,
    "the same scale, 5 columns": scales,
    "cosine along 5 columns": alike(along(lambda u: 1.4 * np.cos(2 * u)), normal(5)),
    "step along 5 columns": alike(along(np.sign), normal(5)),
    "step of one of 3 columns": alike(lambda s: 2.0 * (s[:, 0] > 0.3), normal(3)),
    "squares of 5 columns": alike(lambda s: np.square(s).sum(axis=1) / 2, normal(5)),
    "product of two of 5 columns": alike(lambda s: s[:, 0] * s[:, 1], normal(5)),
    "product of two of 10 columns": alike(lambda s: s[:, 0] * s[:, 1], normal(10)),
    "fast sine along 5 columns": alike(along(lambda u: 1.4 * np.sin(3 * u)), normal(5)),
}


def fisher_z(x: np.ndarray, y: np.ndarray, s: np.ndarray) -> float:
    from scipy.stats import norm

    design = np.column_stack([np.ones(len(s)), s])
    left, right = (z[:, 0] - design @ np.linalg.lstsq(design, z[:, 0], rcond=None)[0] for z in (x, y))
    z = np.arctanh(np.corrcoef(left, right)[0, 1]) * np.sqrt(len(s) - s.shape[1] - 3)
    return float(2 * norm.sf(abs(z)))


def rejections(test: Test, law: Law, n: int, seed: int, repetitions: int) -> float:
    draws = (law(np.random.default_rng([seed, r]), n) for r in range(repetitions))
    return float(np.mean([test(*draw) <= 0.05 for draw in draws]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["featgeo"], help="featgeo, KCI, FastKCI, RCIT, Fisher-z")
    parser.add_argument("--rows", nargs="+", type=int, default=[250, 1000])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=20)
    options = parser.parse_args()
    chosen = tests([name for name in options.methods if name != "Fisher-z"])
    if "Fisher-z" in options.methods:
        chosen["Fisher-z"] = fisher_z
    for n in options.rows:
        print(f"n = {n}, {options.repetitions} repetitions: " + ", ".join(chosen))
        for name, law in LAWS.items():
            shares = [rejections(test, law, n, options.first_seed, options.repetitions) for test in chosen.values()]
            print(f"| {name} | " + " | ".join(f"{share:.3f}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
