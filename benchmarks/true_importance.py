"""Importance of columns beside the exact energies, on laws of the lottery with irrelevant and duplicated columns.

    OMP_NUM_THREADS=1 python benchmarks/true_importance.py [--seeds 10000:10200] [--laws 50] [--rows 3000] [--own]

Laws of these seeds (`lottery/laws.py`) with one column Y and 4 to 16 columns X that do not share a cause, two of which
are then duplicated: the one that holds most, and the first. The exact energy of a column alone is that of
p(y | column) / p(y) - 1: densities are averaged over cells of the column, of two independent samples whose product is
free of bias. Columns of less than `LEAST` hold nothing alone. To all others those add nothing that no function of the
law reads, even where they hold something alone as noisy copies of others, and those that are there twice.

Printed: Spearman's correlation of what columns hold alone with the exact energies, where what is within two standard
errors of 0 is called 0 on our side, and irrelevant on the other; how often columns that hold or add nothing are within
two standard errors of 0, and on which sides of it they are: as often on both where nothing is biased; the same of what
the columns add that hold nothing alone, some of which do add something. Seeds below 10,000 are for tuning.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from lottery.laws import Draw, Law, draw_law
from scipy.stats import spearmanr

from featgeo import ModalDecomposition

SAMPLE, CELLS, PLACES = 20_000, 40, 400  # rows of x of either sample, cells of a column, values of y
LEAST = 1e-3
Array = np.ndarray


def is_wanted(law: Law) -> bool:
    return len(law.responses) == 1 and 4 <= len(law.columns) <= 16 and law.shared == 0


def exact(law: Law) -> dict[str, float]:
    """The energy that each column holds alone."""
    rng = np.random.default_rng([law.seed, 9])
    one, other, places = (law.sample(n, rng) for n in (SAMPLE, SAMPLE, PLACES))
    ratios = [law.ratio(rows, places) - 1 for rows in (one, other)]
    energies = {}
    for name in one.x:
        cells = cells_of(one.x[name], other.x[name])
        means = [
            np.stack([ratio[cell == c].mean(axis=0) for c in range(cells[0].max() + 1)])
            for ratio, cell in zip(ratios, cells, strict=True)
        ]
        share = np.bincount(cells[0]) / SAMPLE
        energies[name] = float(share @ (means[0] * means[1]).mean(axis=1))
    return energies


def cells_of(one: pd.Series, other: pd.Series) -> list[Array]:
    """Cells of a column in two samples: its values where these are few, else steps of equal mass."""
    values, numbers = np.unique(np.concatenate([one, other])), one.dtype.kind in "fiu"
    if len(values) <= CELLS or not numbers:
        return [np.searchsorted(values, part.to_numpy()) for part in (one, other)]
    edges = np.quantile(one, np.linspace(0, 1, CELLS + 1))[1:-1]
    return [np.searchsorted(edges, part) for part in (one, other)]


def doubled(rows: Draw, names: list[str]) -> pd.DataFrame:
    """The columns, and copies of some of them."""
    return rows.x.assign(**{f"{name} again": rows.x[name] for name in names})


def judged(law: Law, n: int, own: bool) -> dict[str, Array]:
    """What importance says of one law, beside the truth."""
    truth = exact(law)
    twice = list(dict.fromkeys([max(truth, key=lambda name: truth[name]), next(iter(truth))]))
    rows, new = (law.sample(n, np.random.default_rng([law.seed, 2 + i])) for i in range(2))
    model = ModalDecomposition("auto", random_state=law.seed).fit(doubled(rows, twice), rows.y)
    told = model.importance() if own else model.importance(doubled(new, twice), new.y)
    alone, alone_error, added, added_error = told.totals.T
    wanted = np.array([truth[name.removesuffix(" again")] for name in told.columns])
    irrelevant = wanted < LEAST
    copies = np.array([name.removesuffix(" again") in twice for name in told.columns])
    active = {f"x{place}" for place in law.active}
    unread = np.array([name not in active for name in told.columns]) & ~copies
    held = np.where(alone > 2 * alone_error, alone, 0)
    with np.errstate(invalid="ignore"):
        alone, added = (np.nan_to_num(one / error) for one, error in ((alone, alone_error), (added, added_error)))
    return {
        "spearman": np.array([] if irrelevant.all() else [spearmanr(held, np.where(irrelevant, 0, wanted))[0]]),
        "alone": alone[irrelevant],
        "added": added[unread],
        "copies": added[copies],
        "added, held nothing": added[irrelevant],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="10000:10400", help="first:last, the last not among them")
    parser.add_argument("--laws", type=int, default=50, help="how many, at most")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--own", action="store_true", help="by rows of the fit, in place of as many new ones")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: list[dict[str, Array]] = []
    for seed in range(*map(int, options.seeds.split(":"))):
        law = draw_law(seed)
        if len(found) == options.laws or not is_wanted(law):
            continue
        found.append(judged(law, options.rows, options.own))
        shown = "  ".join(f"{name} {np.abs(z).max():.2f}" for name, z in found[-1].items() if len(z))
        print(seed, law.description, shown, flush=True)
    parts = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    correlations = parts.pop("spearman")
    print(f"{len(found)} laws: Spearman {np.nanmean(correlations):.3f}, on average over {len(correlations)}")
    for name, z in parts.items():
        print(
            f"{name}: {np.mean(np.abs(z) <= 2):.1%} of {len(z)} within two standard errors of 0, "
            f"{np.mean(z < -2):.1%} below, {np.mean(z > 2):.1%} above; on average {z.mean():+.2f} errors"
        )
