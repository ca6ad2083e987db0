"""Modes of many pairs at once: the singular vectors of their cores, at the resolution that held-out rows prefer.

Numbers have three resolutions: a few waves, more of them, and all functions on their cells; and functions in steps.
Rows that were held out choose among them, and how many modes there are. Columns of few values have all functions: then
the modes are those of the table, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from featgeo.explore.batches import Batch
from featgeo.explore.cells import Cells
from featgeo.explore.steps import n_steps, steps
from featgeo.features.variables import preferred_places
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

MOST_MODES = 8  # of a pair that are looked at: two columns never have more that a page can show
RESOLUTIONS = ("few waves", "more waves", "many waves", "steps", "steps of the first", "steps of the second")
NOT_TRIED = -1e9  # a score that is never the best


@dataclass(frozen=True, eq=False)
class Modes:
    """Modes of many pairs, and the same from all rows but those of a fold.

    Attributes:
        sigma: Strengths over all rows, (P, m).
        f: Modes on the cells of the first columns, (P, a, m).
        g: On those of the second, (P, b, m).
        fold_sigma: Strengths over all rows but those of each fold, (P, F, m).
        fold_f: Their modes, (P, F, a, m).
        fold_g: The same, (P, F, b, m).
    """

    sigma: Array
    f: Array
    g: Array
    fold_sigma: Array
    fold_f: Array
    fold_g: Array

    @classmethod
    def smooth(cls, batch: Batch, sizes: np.ndarray) -> Modes:
        """Inside the first functions of either side, as many as `sizes`, (P, 2), says."""
        n_f, n_g = (max(int(size), 1) for size in sizes.max(axis=0))
        inside = (np.arange(n_f) < sizes[:, :1])[:, :, None] & (np.arange(n_g) < sizes[:, 1:])[:, None, :]
        left, sigma, right = leading(batch.core[:, :n_f, :n_g] * inside)
        fold_left, fold_sigma, fold_right = leading(batch.left_out(n_f, n_g) * inside[:, None])
        f, g = batch.f[..., :n_f], batch.g[..., :n_g]
        return cls(sigma, f @ left, g @ right, fold_sigma, f[:, None] @ fold_left, g[:, None] @ fold_right)

    @classmethod
    def between(cls, tables: Array, f: Array, g: Array) -> Modes:
        """Inside functions that differ from fold to fold.

        Args:
            tables: Rows in each pair of cells, all of them, then without those of each fold, (P, 1 + F, a, b).
            f: Functions on the cells of the first columns, orthonormal under these rows, (P, 1 + F or 1, a, k).
            g: On those of the second, (P, 1 + F or 1, b, l).
        """
        rows, columns = tables.sum(axis=3), tables.sum(axis=2)
        n = np.maximum(rows.sum(axis=2), 1.0)[..., None, None]
        mean_f, mean_g = ((margin[..., None, :] @ h) / n for margin, h in ((rows, f), (columns, g)))
        left, sigma, right = leading(f.swapaxes(2, 3) @ tables @ g / n - mean_f.swapaxes(2, 3) * mean_g)
        f, g = f @ left, g @ right
        return cls(sigma[:, 0], f[:, 0], g[:, 0], sigma[:, 1:], f[:, 1:], g[:, 1:])

    def judged(self, batch: Batch) -> tuple[Array, Array]:
        """What held-out rows say of the modes, as `judged`."""
        return judged(self.fold_sigma, *batch.moments_of(self.fold_f, self.fold_g))

    def taken(self, index: Any) -> Modes:
        """Of some of the pairs."""
        return Modes(*(getattr(self, part.name)[index] for part in fields(self)))

    def padded(self, m: int) -> Modes:
        """The same with m modes, those that are not there of strength 0."""
        have = self.sigma.shape[1]
        if have == m:
            return self
        parts = [getattr(self, part.name) for part in fields(self)]
        wider = [np.zeros((*values.shape[:-1], m)) for values in parts]
        for wide, values in zip(wider, parts, strict=True):
            wide[..., :have] = values
        return Modes(*wider)


def judged(sigma: Array, both: Array, of_f: Array, of_g: Array) -> tuple[Array, Array]:
    """On held-out rows, H-scores of the first 0, 1, ... modes, (P, F, m + 1), and each mode's correlation, (P, F, m).

    Args:
        sigma: Strengths of modes that these rows have not seen, (P, F, m).
        both: Their covariances there, of f with g, (P, F, m, m).
        of_f: Of f with f.
        of_g: Of g with g.
    """
    own = np.einsum("pfmm->pfm", both)
    # The energy of the first i modes is the sum over a leading square.
    square = np.einsum("pfi,pfj,pfij->pfij", sigma, sigma, of_f * of_g).cumsum(axis=2).cumsum(axis=3)
    scores = (sigma * own).cumsum(axis=2) - np.einsum("pfmm->pfm", square) / 2
    spread = np.sqrt(np.maximum(np.einsum("pfmm->pfm", of_f) * np.einsum("pfmm->pfm", of_g), 0))
    correlation = np.divide(own, spread, out=np.zeros_like(own), where=spread > COLLINEAR)
    return np.concatenate([np.zeros_like(scores[..., :1]), scores], axis=2), correlation


def leading(cores: Array) -> tuple[Array, Array, Array]:
    """The leading modes of each of many cores, (..., n_f, n_g): left, sigma (..., m) and right."""
    u, sigma, vt = np.linalg.svd(cores, full_matrices=False)
    m = min(MOST_MODES, sigma.shape[-1])
    return u[..., :m], sigma[..., :m].clip(max=1), vt[..., :m, :].swapaxes(-1, -2)


def chosen_modes(batch: Batch, columns: Sequence[tuple[Cells, Cells]]) -> tuple[Modes, np.ndarray, Array, Array]:
    """The modes at the resolution that held-out rows prefer for each pair.

    Returns:
        The modes; how many of them held-out rows support, (P,); the H-score of the first 0, 1, ... on held-out rows,
        (P, F, m + 1), and the correlation of each there, (P, F, m).
    """
    folds, n_pairs = batch.tables.shape[1], len(columns)
    scores = np.full((len(RESOLUTIONS), n_pairs, folds, MOST_MODES + 1), NOT_TRIED)
    costs = np.zeros((len(RESOLUTIONS), n_pairs, MOST_MODES + 1))
    found: list[tuple[np.ndarray, Modes, Array]] = []
    for place, (index, modes, functions) in enumerate(_resolutions(batch, columns)):
        modes = modes.padded(MOST_MODES)
        own_scores, correlation = modes.judged(batch.taken(index))
        scores[place, index], costs[place, index] = own_scores, np.multiply.outer(functions, np.arange(MOST_MODES + 1))
        found.append((index, modes, correlation))
    flat = scores.transpose(1, 0, 3, 2).reshape(n_pairs, -1, folds)
    which = preferred_places(flat, costs.transpose(1, 0, 2).reshape(n_pairs, -1))
    level, n_modes = np.divmod(which, MOST_MODES + 1)
    first = found[0]  # all pairs have the first
    for place, (index, modes, correlation) in enumerate(found[1:], start=1):
        here = np.flatnonzero(level[index] == place)
        for part in fields(Modes):
            getattr(first[1], part.name)[index[here]] = getattr(modes, part.name)[here]
        first[2][index[here]] = correlation[here]
    return first[1], n_modes, scores[level, np.arange(n_pairs)], first[2]


def _resolutions(
    batch: Batch, columns: Sequence[tuple[Cells, Cells]]
) -> Iterator[tuple[np.ndarray, Modes, np.ndarray]]:
    """Each resolution: the pairs that it is for, their modes, and how many functions these are made of."""
    sizes = np.array([[column.resolutions for column in pair] for pair in columns])  # (P, 2, 3)
    functions = sizes.sum(axis=1)
    index = np.arange(len(columns))
    yield index, Modes.smooth(batch, sizes[..., 0]), functions[:, 0]
    for level in (1, 2):
        index = np.flatnonzero(_is_rougher(batch, sizes, level))
        if len(index):
            yield index, Modes.smooth(batch.taken(index), sizes[index, :, level]), functions[index, level]
    can = np.array([[column.kind != "label" and not column.is_finite for column in pair] for pair in columns])
    index = index[can[index].any(axis=1)]
    if len(index):
        for some, modes, in_steps in _stepped(batch.taken(index), can[index]):
            cost = np.where(in_steps, sizes[index[some], :, 0], sizes[index[some], :, 1]).sum(axis=1)
            yield index[some], modes, cost


def _stepped(batch: Batch, can: np.ndarray) -> Iterator[tuple[np.ndarray, Modes, np.ndarray]]:
    """Modes with both sides in steps, or one of them beside all functions of the other, where they can be, (P, 2)."""
    total = batch.tables.sum(axis=1, keepdims=True)
    tables = np.concatenate([total, total - batch.tables], axis=1)  # of all rows, and of all but a fold
    every = batch.f[:, None], batch.g[:, None]
    in_steps = []
    for side, other in ((0, 1), (1, 0)):
        some = np.flatnonzero(can[:, side])
        own = tables[some] if side == 0 else tables[some].swapaxes(2, 3)
        in_steps.append(np.zeros((len(can), *own.shape[1:3], n_steps(own.shape[2]))))
        if len(some):
            in_steps[side][some] = steps(own, every[other][some])
    for sides in ((True, True), (True, False), (False, True)):
        some = np.flatnonzero((can | ~np.array(sides)).all(axis=1))
        if len(some):
            f, g = ((in_steps if sides[side] else every)[side][some] for side in (0, 1))
            yield some, Modes.between(tables[some], f, g), np.tile(sides, (len(some), 1))


def _is_rougher(batch: Batch, sizes: np.ndarray, level: int) -> np.ndarray:
    """Whether functions of a resolution hold more than chance beyond those of the one before, (P,).

    Those of one column or of both are looked at, beside the functions of the other at any resolution up to that one.
    """
    energy = batch.energy
    place, rows = np.arange(len(sizes)), batch.n_rows.sum(axis=1)
    result = np.zeros(len(sizes), dtype=bool)
    for i, j in ((level, level), *((level, k) for k in range(level)), *((k, level) for k in range(level))):
        outer, inner = ((sizes[:, 0, a], sizes[:, 1, b]) for a, b in ((i, j), (min(i, level - 1), min(j, level - 1))))
        more = (energy[place, outer[0] - 1, outer[1] - 1] - energy[place, inner[0] - 1, inner[1] - 1]) * rows
        freedom = outer[0] * outer[1] - inner[0] * inner[1]
        result |= more > freedom + in_force.get().doubt_errors * np.sqrt(2 * freedom)
    return result
