"""Finite alphabets: all functions are allowed, and the modes of the table of counts are the answer."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from featgeo.features.dealing import deal
from featgeo.features.functions import TableFunction
from featgeo.features.spaces import TableSpace
from featgeo.geometry.finite import FiniteJoint
from featgeo.geometry.modes import Modes, correlations
from featgeo.geometry.validation import Array
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.learned import N_FOLDS, Component, Learned, Unseen, some_rows
from featgeo.learning.setting import ModeCount
from featgeo.learning.solve import MODE_COUNTS, simplest
from featgeo.learning.thin import thin_modes
from featgeo.nesting.scores import h_score_of_modes


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
    fold_of_row = deal(len(data), N_FOLDS, seed)
    k = n_modes if isinstance(n_modes, int) else max(MODE_COUNTS) if n_modes == "auto" else min(sizes)
    if thin:
        whole, parts = thin_modes(x, y, sizes, k, fold_of_row)
    else:
        whole = _modes(x, y, sizes, k)
        parts = [_modes(x[fold_of_row != fold], y[fold_of_row != fold], sizes, k) for fold in np.unique(fold_of_row)]
    if n_modes == "auto":
        whole, parts = as_many_as_help(whole, parts, x, y, fold_of_row)
    unseen = np.zeros((len(x), len(whole)))
    sigma = np.zeros((len(parts), len(whole)))
    rotations = np.zeros((len(parts), len(whole), len(whole)))
    scores = []
    for fold, part in enumerate(parts):
        rows = fold_of_row == fold
        f, g = part.f[x[rows]], part.g[y[rows]]
        scores.append(h_score_of_modes(f, g, part.sigma))
        sigma[fold, : len(part)] = correlations(f, g)[: len(whole)]
        unseen[rows] = (f * part.sigma) @ ((part.g * y_space.shares[:, None]).T @ whole.g)
        rotations[fold, : len(part)] = ((part.f * x_space.shares[:, None]).T @ whole.f)[: len(whole)]
    kept = some_rows(len(x), seed)
    component = Component(
        sigma=whole.sigma,
        f=TableFunction(x_space, whole.f),
        g=TableFunction(y_space, whole.g),
        held_out_sigma=sigma,
        held_out_energies=2 * np.array(scores),
        rotations=rotations,
    )
    return Learned(
        (component,),
        held_out_score=float(np.mean(scores)),
        solver="closed" if thin else "exact",
        spaces=("labels", "labels") if thin else ("table", "table"),
        ridge=0.0,
        residual=max(residual(whole.f, x_space.shares), residual(whole.g, y_space.shares)),
        unseen=Unseen(kept, unseen[kept]),
    )


def _modes(x: np.ndarray, y: np.ndarray, sizes: tuple[int, int], k: int) -> Modes:
    counts = sparse.coo_array((np.ones(len(x)), (x, y)), shape=sizes)
    return FiniteJoint(counts).strongest(k)


def as_many_as_help(
    whole: Modes, parts: list[Modes], x: np.ndarray, y: np.ndarray, fold_of_row: np.ndarray
) -> tuple[Modes, list[Modes]]:
    """Keep as many modes as raise the held-out H-score."""
    counts = sorted({*(k for k in MODE_COUNTS if k < len(whole)), len(whole)})
    scores = np.zeros((len(parts), 1, len(counts)))
    for fold, part in enumerate(parts):
        rows = fold_of_row == fold
        f, g = part.f[x[rows]], part.g[y[rows]]
        scores[fold, 0] = [h_score_of_modes(f[:, :k], g[:, :k], part.sigma[:k]) for k in counts]
    k = counts[simplest(scores)]
    return _first(whole, k), [_first(part, k) for part in parts]


def _first(modes: Modes, k: int) -> Modes:
    return Modes(modes.sigma[:k], modes.f[..., :k], modes.g[..., :k])


def residual(values: Array, shares: Array) -> float:
    """Largest deviation of E[f f^T] from the identity."""
    return float(np.abs((values * shares[:, None]).T @ values - np.eye(values.shape[1])).max(initial=0))
