"""Conditional independence: level, power and time of featgeo's test beside those of causal-learn.

    python benchmarks/conditional_independence.py --methods featgeo KCI FastKCI RCIT --results results.jsonl

Post-nonlinear models. With S of d columns, standard normal and independent, and for X and Y alike

    X = G1(F1(S) + E1),    Y = G2(F2(S) + E2)                          under the null hypothesis,

where, drawn anew for each repetition:

- F is, with probability 1/2 each, h(w . S) with w a random direction of unit length, or the sum over the columns of
  w_j h_j(S_j); every h is one of u, u^2, u^3, tanh(2 u), cos(2 u). F(S) is standardised over the rows.
- E is normal, uniform, or Student's t with 5 degrees of freedom, scaled to variance 1.
- G is one of u, u^2, u^3, tanh(u), cos(u), of its argument divided by its standard deviation.

Under the alternative, in repetitions 0, 1 of every four, both arguments of G1 and G2 contain the same noise 0.8 E_b,
E_b drawn like E; in repetitions 2, 3 the argument of G2 contains 0.8 tanh(X), X standardised, and tanh(X) standardised
again.

Mixed data: of the columns of S, half (rounded up and down in turns, every four repetitions) are cut into 2 to 5 levels
*before* they enter F, so that the given S separates X from Y under the null hypothesis; and X (in even repetitions) or
Y (in odd ones) is cut into 2 to 5 levels at the end. Cuts are, with probability 1/2 each, at equally spaced quantiles
or at equally spaced points between -1.5 and 1.5 standard deviations. Levels are numbers 0, 1, ..., given to every
method as such.

Each cell is one n, d, kind of data and hypothesis; the figures are shares of repetitions with p <= 0.05. Repetition r
has the seed first-seed + r: 0 to 9,999 served to tune the method, 10,000 on to report it. causal-learn's tests run with
their defaults and one worker. P-values are appended to the file of results, and those that it holds are not computed
again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

KINDS = ("continuous", "mixed")
HYPOTHESES = ("null", "alternative")
LEVEL, MOST_TYPE_ONE = 0.05, 0.08
INNER = (lambda u: u, np.square, lambda u: u**3, lambda u: np.tanh(2 * u), lambda u: np.cos(2 * u))
OUTER = (lambda u: u, np.square, lambda u: u**3, np.tanh, np.cos)

Data = tuple[np.ndarray, np.ndarray, np.ndarray]
Test = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def sample(n: int, d: int, kind: str, hypothesis: str, seed: int) -> Data:
    """X (n, 1), Y (n, 1) and S (n, d) of one repetition."""
    rng = np.random.default_rng([seed, n, d, KINDS.index(kind), HYPOTHESES.index(hypothesis)])
    s = rng.standard_normal((n, d))
    if kind == "mixed":
        for j in rng.permutation(d)[: (d + seed // 4 % 2) // 2]:
            s[:, j] = cut(s[:, j], rng)
    inner_x, inner_y = (standardised(regression(s, rng)) + noise(n, rng) for _ in range(2))
    dependent, direct = hypothesis == "alternative", seed % 4 >= 2
    if dependent and not direct:
        shared = 0.8 * noise(n, rng)
        inner_x, inner_y = inner_x + shared, inner_y + shared
    x = outer(inner_x, rng)
    if dependent and direct:
        inner_y = inner_y + 0.8 * standardised(np.tanh(standardised(x)))
    y = outer(inner_y, rng)
    if kind == "mixed":
        x, y = (cut(x, rng), y) if seed % 2 == 0 else (x, cut(y, rng))
    return x[:, None], y[:, None], s


def regression(s: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    weights = rng.standard_normal(s.shape[1])
    s = np.column_stack([standardised(column) for column in s.T])
    if rng.random() < 0.5:
        return INNER[rng.integers(5)](s @ weights / np.linalg.norm(weights))
    return sum(w * standardised(INNER[rng.integers(5)](column)) for w, column in zip(weights, s.T, strict=True))


def noise(n: int, rng: np.random.Generator) -> np.ndarray:
    draws = (
        lambda: rng.standard_normal(n),
        lambda: rng.uniform(-np.sqrt(3), np.sqrt(3), n),
        lambda: rng.standard_t(5, n) * np.sqrt(3 / 5),
    )
    return draws[rng.integers(3)]()


def outer(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return OUTER[rng.integers(5)](values / values.std())


def cut(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Levels 0, 1, ... of the values; the cuts that leave a single level give way to the median."""
    levels = rng.integers(2, 6)
    if rng.random() < 0.5:
        edges = np.quantile(values, np.arange(1, levels) / levels)
    else:
        edges = values.mean() + values.std() * np.linspace(-1.5, 1.5, levels + 1)[1:-1]
    codes = np.searchsorted(edges, values)
    return (codes if np.ptp(codes) else values > np.median(values)).astype(np.float64)


def standardised(values: np.ndarray) -> np.ndarray:
    """Mean 0 and variance 1; a constant becomes 0 (u^2 of a column with two equally likely levels)."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)


def tests(names: list[str]) -> dict[str, Test]:
    """The tests by name; causal-learn is imported only where it is asked for."""
    found: dict[str, Test] = {}
    for name in names:
        if name == "featgeo":
            from featgeo.evidence.conditional import conditional_independence_test

            found[name] = lambda x, y, s: conditional_independence_test(x, y, s).pvalue
        else:
            found[name] = _peer(name)
    return found


def _peer(name: str) -> Test:
    import joblib
    from causallearn.utils.FastKCI.FastKCI import FastKCI_CInd
    from causallearn.utils.KCI.KCI import KCI_CInd
    from causallearn.utils.RCIT.RCIT import RCIT

    make = {"KCI": KCI_CInd, "FastKCI": FastKCI_CInd, "RCIT": RCIT}[name]

    def pvalue(x: np.ndarray, y: np.ndarray, s: np.ndarray) -> float:
        with joblib.parallel_config(backend="sequential"):  # FastKCI asks for all cores otherwise
            return float(make().compute_pvalue(x, y, s)[0])

    return pvalue


def run(options: argparse.Namespace, chosen: dict[str, Test]) -> list[dict]:
    """All p-values; a test that fails has p-value 1 and says why."""
    known = [json.loads(line) for line in options.results.read_text().splitlines()] if options.results.exists() else []
    done = {_key(record) for record in known}
    cells = list(product(options.columns, KINDS, HYPOTHESES))
    with options.results.open("a") as file:
        for n, repetition, (d, kind, hypothesis) in product(options.rows, range(options.repetitions), cells):
            seed = options.first_seed + repetition
            for method, test in chosen.items():
                record = {"method": method, "n": n, "d": d, "kind": kind, "hypothesis": hypothesis, "seed": seed}
                if _key(record) in done:
                    continue
                record |= _timed(test, sample(n, d, kind, hypothesis, seed), seed)
                known.append(record)
                file.write(json.dumps(record) + "\n")
                file.flush()
    return known


def _timed(test: Test, data: Data, seed: int) -> dict:
    np.random.seed(seed)  # noqa: NPY002 (causal-learn draws from the global generator)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome: dict = {"pvalue": test(*data)}
    except Exception as error:
        outcome = {"pvalue": 1.0, "error": repr(error)}
    return outcome | {"seconds": round(time.perf_counter() - start, 4)}


def _key(record: dict) -> tuple:
    return tuple(record[name] for name in ("method", "n", "d", "kind", "hypothesis", "seed"))


def table(records: list[dict], options: argparse.Namespace) -> list[str]:
    """Type-I error and power of each method in each cell, and the repetitions behind them."""
    methods = [m for m in ("featgeo", "KCI", "FastKCI", "RCIT") if any(r["method"] == m for r in records)]
    lines = ["| n | d | kind | " + " | ".join(f"{m}: type I, power (reps)" for m in methods) + " |"]
    lines += ["|" + " --- |" * (3 + len(methods))]
    differences = []
    for n, d, kind in product(options.rows, options.columns, KINDS):
        level, power, cells = {}, {}, []
        for m in methods:
            by_hypothesis = [_pvalues(records, options, (m, n, d, kind, h)) for h in HYPOTHESES]
            if min(map(len, by_hypothesis)) == 0:
                cells.append("-")
                continue
            level[m], power[m] = (float(np.mean(p <= LEVEL)) for p in by_hypothesis)
            cells.append(f"{level[m]:.3f}, {power[m]:.3f} ({min(map(len, by_hypothesis))})")
        lines.append(f"| {n} | {d} | {kind} | " + " | ".join(cells) + " |")
        peers = [power[m] for m in power if m != "featgeo" and level[m] <= MOST_TYPE_ONE]
        if "featgeo" in power and peers:
            differences.append(power["featgeo"] - max(peers))
    if differences:
        lines += [
            "",
            f"Power of featgeo minus the best peer of type-I error <= {MOST_TYPE_ONE}: "
            f"smallest {min(differences):+.3f}, average {np.mean(differences):+.3f} over {len(differences)} cells.",
        ]
    return lines


def _pvalues(records: list[dict], options: argparse.Namespace, cell: tuple) -> np.ndarray:
    seeds = range(options.first_seed, options.first_seed + options.repetitions)
    return np.array([r["pvalue"] for r in records if _key(r)[:-1] == cell and r["seed"] in seeds])


def speed(chosen: dict[str, Test], n: int, columns: list[int]) -> list[str]:
    """Seconds of one test at n rows: the median over a few data sets, after a first one that is not counted."""
    lines = [f"Seconds at n = {n}: median over d in {columns}, both kinds"]
    for method, test in chosen.items():
        test(*sample(200, 1, "continuous", "null", 0))
        data = [sample(n, d, kind, "null", 0) for d, kind in product(columns, KINDS)]
        lines.append(f"  {method}: {np.median([_timed(test, each, 0)['seconds'] for each in data]):.3f}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=["featgeo"], choices=["featgeo", "KCI", "FastKCI", "RCIT"])
    parser.add_argument("--rows", nargs="+", type=int, default=[250, 1000])
    parser.add_argument("--columns", nargs="+", type=int, default=[1, 3, 5, 7], help="of S")
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--first-seed", type=int, default=10_000)
    parser.add_argument("--results", type=Path, default=Path("conditional_independence.jsonl"))
    parser.add_argument("--speed-rows", type=int, default=2000, help="0: do not measure the time")
    options = parser.parse_args()
    chosen = tests(options.methods)
    print("\n".join(table(run(options, chosen), options)))
    if options.speed_rows:
        print("\n".join(speed(chosen, options.speed_rows, options.columns)))


if __name__ == "__main__":
    main()
