"""Finite alphabets: all functions are allowed, and the modes of the table of counts are the answer."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from featgeo.features.dealing import deal
from featgeo.features.functions import TableFunction
from featgeo.features.spaces import TableSpace
from featgeo.geometry.finite import FiniteJoint
from featgeo.geometry.modes import Modes
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.learned import N_FOLDS, Learned, Unseen, some_rows
from featgeo.learning.plan import ModeCount
from featgeo.learning.solve import MODE_COUNTS
from featgeo.learning.tables import TableRows, residual
from featgeo.learning.thin import thin_modes


def learn_exact(data: Pairs | Stream, n_modes: ModeCount, seed: int, thin: bool = False) -> Learned:
    """The modes of the empirical distribution of two finite variables.

    Args:
        data: The rows.
        n_modes: How many modes at most.
        seed: Of the folds.
        thin: Whether rows are so few beside labels that modes are to be shrunk (`featgeo.learning.thin`).
    """
    if isinstance(data, Stream):
        raise ValueError("The exact solver needs all rows in memory. Pass arrays, or use solver='closed'.")
    x_rows, y_rows = data.x.of("x"), data.y.of("y")
    x_space, y_space = TableSpace.fit(x_rows), TableSpace.fit(y_rows)
    for name, space in (("X", x_space), ("Y", y_space)):
        if len(space.shares) == len(data) > 2:
            raise ValueError(
                f"Every row of {name} has a value of its own, so a table of counts says nothing. Use solver='closed'."
            )
    x, y = x_space.index(x_rows), y_space.index(y_rows)
    sizes = len(x_space.shares), len(y_space.shares)
    rows = TableRows(x, y, deal(len(data), N_FOLDS, seed), x_space.shares, y_space.shares)
    k = n_modes if isinstance(n_modes, int) else max(MODE_COUNTS) if n_modes == "auto" else min(sizes)
    if thin:
        modes, parts = thin_modes(x, y, sizes, k, rows.fold_of_row)
    else:
        modes = _modes(x, y, sizes, k)
        left_in = [rows.fold_of_row != fold for fold in np.unique(rows.fold_of_row)]
        parts = [_modes(x[kept], y[kept], sizes, k) for kept in left_in]
    judged = rows.judged(modes, parts, n_modes)
    kept, whole = some_rows(len(x), seed), judged.modes
    return Learned(
        (judged.component(TableFunction(x_space, whole.f), TableFunction(y_space, whole.g)),),
        held_out_score=float(judged.energies.mean() / 2),
        solver="closed" if thin else "exact",
        spaces=("labels", "labels") if thin else ("table", "table"),
        ridge=0.0,
        residual=max(residual(whole.f, rows.x_shares), residual(whole.g, rows.y_shares)),
        unseen=Unseen(kept, judged.unseen[kept]),
    )


def _modes(x: np.ndarray, y: np.ndarray, sizes: tuple[int, int], k: int) -> Modes:
    counts = sparse.coo_array((np.ones(len(x)), (x, y)), shape=sizes)
    return FiniteJoint(counts).strongest(k)
