"""Independence: power on drawn alternatives beside Dcorr, HSIC and MGC, and the level on drawn columns.

    OMP_NUM_THREADS=1 python benchmarks/lottery/pairs.py --first 10000 --laws 100 --results power.jsonl
    OMP_NUM_THREADS=1 python benchmarks/lottery/pairs.py --null --first 20000 --laws 5000 --draws 1 --results null.jsonl

X has 1 to 10 columns, and so has Y, of which some follow functions of X, of the families of `laws.py`, and the others
nothing; n is 50 to 1,000. In most rows Y follows the X of another row: else all tests see nearly all of these laws.
Under the null hypothesis it does so in all of them.

The peers read normal scores of numbers and indicators of labels; they reject beyond the quantile of their statistic on
shuffled rows of the same draws. MGC is hyppo's (pip install hyppo); without it the column is missing. Results are
appended to a file, a line a law, and those that it holds are not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy comes

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from given_rivals import numbers_of  # noqa: E402
from laws import (  # noqa: E402
    FAMILIES,
    Array,
    Column,
    Function,
    Response,
    Rng,
    draw_columns,
    draw_response,
    normal,
    read_columns,
    standardised,
)
from scipy.spatial.distance import pdist, squareform  # noqa: E402

from featgeo import independence_test  # noqa: E402

ALPHA = 0.05
SHUFFLES = 5  # of each draw, for the critical values of the peers


@dataclass(frozen=True)
class Pair:
    """X, and Y of which some columns follow it in a share of the rows."""

    columns: tuple[Column, ...]
    shared: float
    told: tuple[tuple[Response, tuple[Function, ...]], ...]
    other: tuple[Column, ...]
    n: int
    share: float

    def sample(self, rng: Rng, null: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Rows of X and of Y."""
        x, read = read_columns(self.columns, normal(rng, self.n, len(self.columns), self.shared))
        y = {}
        for j, (response, functions) in enumerate(self.told):
            y[f"y{j}"] = response.frame(response.draw(np.stack([function(read) for function in functions], 1), rng))
        if self.other:
            rest = read_columns(self.other, normal(rng, self.n, len(self.other), 0.0))[0]
            y |= {f"z{j}": column.to_numpy() for j, (_, column) in enumerate(rest.items())}
        apart = read_columns(self.columns, normal(rng, self.n, len(self.columns), self.shared))[0]
        return apart if null else x.where(pd.Series(rng.random(self.n) < self.share), apart), pd.DataFrame(y)


def draw_pair(seed: int) -> Pair:
    """The law of a seed."""
    rng = np.random.default_rng([seed, 20])
    p, q = (int(np.exp(rng.uniform(0, np.log(10.99)))) for _ in "xy")
    columns, shared = draw_columns(rng, p), float(rng.choice([0.0, 0.3, 0.7]))
    reference = read_columns(columns, normal(rng, 5000, p, shared))[1]
    told = []
    for _ in range(int(rng.integers(1, q + 1))):
        response, family = draw_response(rng)[1], FAMILIES[rng.integers(len(FAMILIES))]
        active = rng.choice(p, min(p, int(rng.choice([1, 2, 3, 5]))), replace=False)
        functions = (standardised(family(rng, len(active)), active, reference) for _ in range(response.n_functions))
        told.append((response, tuple(functions)))
    other = draw_columns(rng, q - len(told)) if q > len(told) else ()
    n = round(50 * 20 ** rng.random())
    return Pair(columns, shared, tuple(told), other, n, min(1.0, float(rng.uniform(1, 8) / np.sqrt(n))))


def dcorr(x: Array, y: Array) -> Callable[[Array], float]:
    return _products(*(squareform(pdist(z)) for z in (x, y)))


def hsic(x: Array, y: Array) -> Callable[[Array], float]:
    kernels = []
    for z in (x, y):
        squares = squareform(pdist(z, "sqeuclidean"))
        kernels.append(np.exp(-squares / (2 * max(np.median(squares[squares > 0]), 1e-12))))
    return _products(*kernels)


def _products(a: Array, b: Array) -> Callable[[Array], float]:
    """The correlation of two matrices, centred, for an order of the rows of the second one."""
    a, b = (one - one.mean(axis=0) - one.mean(axis=1)[:, None] + one.mean() for one in (a, b))
    size = np.sqrt(np.square(a).sum() * np.square(b).sum())
    return lambda order: float(np.vdot(a, b[np.ix_(order, order)]) / size)


def mgc(x: Array, y: Array) -> Callable[[Array], float]:
    from hyppo.independence import MGC

    return lambda order: float(MGC().statistic(x, y[order]))


PEERS = {"Dcorr": dcorr, "HSIC": hsic, "MGC": mgc}


def measured(law: Pair, seed: int, draws: int, null: bool, peers: list[str]) -> dict:
    """Shares of rejections, ours with its p-values."""
    ours, observed, chance = [], {name: [] for name in peers}, {name: [] for name in peers}
    for r in range(draws):
        rng = np.random.default_rng([seed, 21, r])
        x, y = law.sample(rng, null)
        if x.nunique().max() < 2 or y.nunique().max() < 2:
            continue
        ours.append(round(independence_test(x, y, random_state=r).pvalue, 6))
        for name in peers:
            statistic = PEERS[name](numbers_of(x), numbers_of(y))
            observed[name].append(statistic(np.arange(law.n)))
            chance[name] += [statistic(rng.permutation(law.n)) for _ in range(2 if name == "MGC" else SHUFFLES)]
    found = {"ours": float(np.mean(np.array(ours) <= ALPHA))}
    found |= {name: float(np.mean(observed[name] > np.quantile(chance[name], 1 - ALPHA))) for name in peers}
    return {"seed": seed, "n": law.n, "x": len(law.columns), "y": len(law.told) + len(law.other), **found, "p": ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="seed of the first law; from 10,000 on for reporting")
    parser.add_argument("--laws", type=int, default=100)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--null", action="store_true")
    parser.add_argument("--peers", nargs="*", default=["Dcorr", "HSIC", "MGC"])
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(options.first, options.first + options.laws)
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    known = {record["seed"]: record for record in map(json.loads, lines)}
    for seed in seeds:
        if seed not in known:
            peers = [] if options.null else options.peers
            known[seed] = measured(draw_pair(seed), seed, options.draws, options.null, peers)
            with options.results.open("a") as file:
                file.write(json.dumps(known[seed]) + "\n")
    for name in ("ours", *(() if options.null else options.peers)):
        print(f"{name}: mean share of rejections {np.mean([known[seed][name] for seed in seeds]):.3f}")


if __name__ == "__main__":
    main()
