"""Held-out strengths beside the truth, on drawn laws.

    OMP_NUM_THREADS=1 python benchmarks/lottery/strengths.py --seeds 0:40 --most-rows 3000

Two statements. Where Y is put in another order, so that it depends on nothing: the energy that held-out rows report is
within two of its standard errors of 0. Elsewhere: the first held-out strength is the correlation that the fitted pair
f_1, g_1 has on `FRESH` new rows. Each with the number of modes that "auto" takes and with three modes, whatever
held-out rows say of them: "auto" mostly takes none where there is nothing, and 0 is then no feat.
Seeds below 10,000 are for tuning.
"""

from __future__ import annotations

import argparse
import os
import warnings

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy comes

import numpy as np
from laws import draw_law

from featgeo import ModalDecomposition

FRESH = 20_000
COUNTS = ("auto", 3)


def measured(seed: int, most_rows: int) -> tuple[list[float], ...]:
    """Of a law, by number of modes: whether no dependence is told to have no energy; the first sigma told, and true."""
    law = draw_law(seed)
    rows, fresh = (
        law.sample(n, np.random.default_rng([seed, 7 + i])) for i, n in enumerate((law.n_rows(most_rows), FRESH))
    )
    mixed = rows.y.sample(frac=1, random_state=seed).reset_index(drop=True)
    none, told, true = [], [], []
    for count in COUNTS:
        report = ModalDecomposition(count, random_state=seed).fit(rows.x, mixed).components_["modes"]
        none.append(float(abs(report.held_out_energy_) <= 2 * report.held_out_energy_error_))
        model = ModalDecomposition(count, random_state=seed).fit(rows.x, rows.y)
        if len(model.singular_values_):
            f, g = (features[:, 0] for features in model.transform(fresh.x, fresh.y))
            told.append(float(model.held_out_singular_values_[0]))
            true.append(float(np.corrcoef(f, g)[0, 1]) if f.std() and g.std() else 0.0)
        else:
            told.append(np.nan)
            true.append(np.nan)
    return none, told, true


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:40", help="first and last plus one; from 10,000 on for reporting")
    parser.add_argument("--most-rows", type=int, default=3000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for seed in range(*map(int, options.seeds.split(":"))):
        found.append(measured(seed, options.most_rows))
        print(seed, *(np.round(part, 3).tolist() for part in found[-1]), flush=True)
    none, told, true = (np.array(part, dtype=float) for part in zip(*found, strict=True))
    for i, count in enumerate(COUNTS):
        gap = (told - true)[:, i]
        gap = gap[np.isfinite(gap)]
        print(
            f"modes {count}: no dependence, energy within two errors of 0: {none[:, i].mean():.1%} of {len(none)}; "
            f"dependence, held-out sigma less the true correlation: {gap.mean():+.4f} +- "
            f"{gap.std() / max(len(gap), 1) ** 0.5:.4f} over {len(gap)} laws, largest {np.abs(gap).max():.3f}"
        )


if __name__ == "__main__":
    main()
