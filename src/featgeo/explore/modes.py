"""Modes of many pairs at once: the singular vectors of their cores, at the resolution that held-out rows prefer.

Numbers have three resolutions: a few waves, more of them, and many, of either side or of both; and functions in steps,
few or more of them, beside steps or waves of the other side. Rows that were held out choose among them, and how many
modes there are. Columns of few values have all functions: then the modes are those of the table, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from featgeo.explore.batches import Batch, margins_of
from featgeo.explore.cells import Cells
from featgeo.explore.steps import n_steps, steps
from featgeo.explore.tails import leading_energies
from featgeo.features.variables import preferred_places
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

MOST_MODES = 8  # of a pair that are looked at: two columns never have more that a page can show
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
    def smooth(cls, batch: Batch, sizes: np.ndarray) -> tuple[Modes, Judged]:
        """Inside the first functions of either side, as many as `sizes`, (P, 2), says; and what held-out rows say."""
        n_f, n_g = (max(int(size), 1) for size in sizes.max(axis=0))
        inside = (np.arange(n_f) < sizes[:, :1])[:, :, None] & (np.arange(n_g) < sizes[:, 1:])[:, None, :]
        left, sigma, right = leading(batch.core[:, :n_f, :n_g] * inside)
        fold_left, fold_sigma, fold_right = leading(batch.left_out(n_f, n_g) * inside[:, None])
        f, g = batch.f[..., :n_f], batch.g[..., :n_g]
        modes = cls(sigma, f @ left, g @ right, fold_sigma, f[:, None] @ fold_left, g[:, None] @ fold_right)
        both = fold_left.swapaxes(2, 3) @ batch.held_out(n_f, n_g) @ fold_right
        of_f, of_g = batch.variance_of(modes.fold_f, 0), batch.variance_of(modes.fold_g, 1)
        return modes, judged(fold_sigma, both, of_f, of_g)

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


Judged = tuple[Array, Array]


def judged(sigma: Array, both: Array, of_f: Array, of_g: Array) -> tuple[Array, Array]:
    """On held-out rows, H-scores of the first 0, 1, ... modes, (P, F, m + 1), and each mode's correlation, (P, F, m).

    Args:
        sigma: Strengths of modes that these rows have not seen, (P, F, m).
        both: Their covariances there, of f with g, (P, F, m, m).
        of_f: Of f with f.
        of_g: Of g with g.
    """
    own, own_f, own_g = (np.diagonal(each, axis1=2, axis2=3) for each in (both, of_f, of_g))
    # The energy of the first i modes is the sum over a leading square: of two triangles and the diagonal.
    m = sigma.shape[2]
    with_those_before = (of_f * of_g * (2 * np.tri(m) - np.eye(m)) @ sigma[..., None])[..., 0]
    scores = (sigma * (own - with_those_before / 2)).cumsum(axis=2)
    spread = np.sqrt(np.maximum(own_f * own_g, 0))
    correlation = np.divide(own, spread, out=np.zeros_like(own), where=spread > COLLINEAR)
    return np.concatenate([np.zeros_like(scores[..., :1]), scores], axis=2), correlation


def leading(cores: Array) -> tuple[Array, Array, Array]:
    """The leading modes of each of many cores, (..., n_f, n_g): left, sigma (..., m) and right.

    The shorter side comes from the eigenvectors of its Gram matrix, in half the time of a full decomposition, the
    longer one and sigma from the core itself: so no sigma is the root of what was rounded. A mode without one is 0.
    """
    is_wide = cores.shape[-1] > cores.shape[-2]
    core = cores.swapaxes(-1, -2) if is_wide else cores
    short = np.linalg.eigh(core.swapaxes(-1, -2) @ core)[1][..., : -MOST_MODES - 1 : -1]
    long = core @ short
    sigma = np.sqrt(np.einsum("...ij,...ij->...j", long, long))
    long /= np.where(sigma > COLLINEAR, sigma, np.inf)[..., None, :]
    return (short, sigma.clip(max=1), long) if is_wide else (long, sigma.clip(max=1), short)


def chosen_modes(batch: Batch, columns: Sequence[tuple[Cells, Cells]]) -> tuple[Modes, np.ndarray, Array, Array]:
    """The modes at the resolution that held-out rows prefer for each pair.

    Returns:
        The modes; how many of them held-out rows support, (P,); the H-score of the first 0, 1, ... on held-out rows,
        (P, F, m + 1), and the correlation of each there, (P, F, m).
    """
    folds, n_pairs = batch.tables.shape[1], len(columns)
    scores, costs, correlations, found = [], [], [], []
    for index, modes, told, functions in _resolutions(batch, columns):
        n_modes = modes.sigma.shape[1]
        scores.append(np.full((n_pairs, folds, MOST_MODES + 1), NOT_TRIED))
        correlations.append(np.zeros((n_pairs, folds, MOST_MODES)))
        costs.append(np.zeros((n_pairs, MOST_MODES + 1)))
        scores[-1][index, :, : n_modes + 1], correlations[-1][index, :, :n_modes] = told
        costs[-1][index] = np.multiply.outer(functions, np.arange(MOST_MODES + 1))
        found.append((index, modes))
    which = preferred_places(np.concatenate(scores, axis=2).swapaxes(1, 2), np.concatenate(costs, axis=1))
    level, n_modes = np.divmod(which, MOST_MODES + 1)
    first = found[0][1].padded(MOST_MODES)  # all pairs have the first
    for place, (index, modes) in enumerate(found[1:], start=1):
        here = np.flatnonzero(level[index] == place)
        chosen = modes.taken(here).padded(MOST_MODES)
        for part in fields(Modes):
            getattr(first, part.name)[index[here]] = getattr(chosen, part.name)
    every = np.arange(n_pairs)
    return first, n_modes, np.stack(scores)[level, every], np.stack(correlations)[level, every]


def _resolutions(
    batch: Batch, columns: Sequence[tuple[Cells, Cells]]
) -> Iterator[tuple[np.ndarray, Modes, Judged, np.ndarray]]:
    """Each resolution: the pairs that it is for, their modes, what held-out rows say, how many functions they have."""
    of_column = {column: column.resolutions for column in {column for pair in columns for column in pair}}
    sizes = np.array([[of_column[column] for column in pair] for pair in columns])  # (P, 2, 3)
    yield np.arange(len(columns)), *Modes.smooth(batch, sizes[..., 0]), sizes[..., 0].sum(axis=1)
    rough = np.zeros(len(columns), dtype=bool)
    energy = leading_energies(batch.core, sizes[:, 0], sizes[:, 1]) * batch.n_rows.sum(axis=1)[:, None, None]
    for level in (1, 2):
        first, second, both = (_hold_more(energy, sizes, level, sides) for sides in ((0,), (1,), (0, 1)))
        rough |= first | second | both
        together = (first == second) & (first | both)  # more waves of one side are told best beside fewer of the other
        for these, lower in ((together, (0, 0)), (first & ~second, (0, 1)), (second & ~first, (1, 0))):
            index = np.flatnonzero(these)
            own = np.stack([sizes[index, side, level - less] for side, less in enumerate(lower)], axis=1)
            if len(index):
                yield index, *Modes.smooth(batch.taken(index), own), own.sum(axis=1)
    can = np.array([[column.kind != "label" and not column.is_finite for column in pair] for pair in columns])
    index = np.flatnonzero(rough & can.any(axis=1))
    if len(index):
        yield index, *_stepped(batch.taken(index), can[index], sizes[index].max(axis=0))


def _stepped(batch: Batch, can: np.ndarray, waves: np.ndarray) -> tuple[Modes, Judged, np.ndarray]:
    """Modes with both sides in steps, or one of them in steps and the other in waves, as held-out rows prefer.

    Args:
        batch: The pairs.
        can: Which sides can be in steps, (P, 2).
        waves: How many functions of either side are few, more and many, (2, 3).

    Returns:
        The modes, what held-out rows say of them, and how many functions they are made of, (P,).
    """
    total = batch.tables.sum(axis=1, keepdims=True)
    tables = np.concatenate([total, total - batch.tables], axis=1)  # of all rows, and of all but a fold
    smooth = [h[:, None, :, :more] for h, more in zip((batch.f, batch.g), waves[:, 1].tolist(), strict=True)]
    f = _steps_and_waves(tables, can[:, 0], *smooth)
    g = _steps_and_waves(tables.swapaxes(2, 3), can[:, 1], *smooth[::-1])
    margins = margins_of(tables)
    n = np.maximum(margins[0].sum(axis=2), 1.0)[..., None, None]
    mean_f, mean_g = (margin[..., None, :] @ h / n for margin, h in zip(margins, (f, g), strict=True))
    cores = f.swapaxes(2, 3) @ tables @ g / n - mean_f.swapaxes(2, 3) * mean_g
    held = batch.covariance_of(f[:, 1:], g[:, 1:]), batch.variance_of(f[:, 1:], 0), batch.variance_of(g[:, 1:], 1)
    tried = []
    for parts, in_steps, cost in _parts_tried(batch, waves):
        index = np.flatnonzero((can | ~np.array(in_steps)).all(axis=1))
        if len(index):
            tried.append(_Inside.of(index, parts, cores, held, cost))
    (left, sigma, right), told, costs = _preferred(tried, cores)
    f, g = f @ left, g @ right
    return Modes(sigma[:, 0], f[:, 0], g[:, 0], sigma[:, 1:], f[:, 1:], g[:, 1:]), told, costs


def _steps_and_waves(tables: Array, can: np.ndarray, own: Array, other: Array) -> Array:
    """Functions in steps of the first columns of tables, 0 where they cannot be, then waves, (P, 1 + F, a, k)."""
    result = np.zeros((*tables.shape[:3], n_steps(tables.shape[2]) + own.shape[3]))
    result[..., n_steps(tables.shape[2]) :] = own
    if can.any():
        result[can, ..., : n_steps(tables.shape[2])] = steps(tables[can], other[can])
    return result


Parts = tuple[slice, slice]


def _parts_tried(batch: Batch, waves: np.ndarray) -> Iterator[tuple[Parts, tuple[bool, bool], int]]:
    """Which functions of either side are tried together, which of both are in steps, and how many they count as.

    A step counts as two, since its place is learned, too. One or two go with few waves of the other side, more of them
    with more.
    """
    every = [n_steps(size) for size in batch.tables.shape[2:]]
    numbers = [[*(2**i for i in range(most.bit_length()) if 2**i < most), most] for most in every]
    for i, first in enumerate(numbers[0]):
        for second in numbers[1][max(i - 1, 0) : i + 2]:
            yield (slice(first), slice(second)), (True, True), 2 * (first + second)
    for side, other in ((0, 1), (1, 0)):
        for own in numbers[side]:
            beside = int(waves[other, int(own > 2)])
            parts = slice(own), slice(every[other], every[other] + beside)
            yield (parts[side], parts[other]), (side == 0, side == 1), 2 * own + beside


@dataclass(frozen=True, eq=False)
class _Inside:
    """Modes inside parts of all functions, of some pairs, and what held-out rows say of them."""

    index: np.ndarray  # of the pairs, (Q,)
    parts: Parts
    modes: tuple[Array, Array, Array]  # left, sigma and right, (Q, 1 + F, ...)
    told: Judged
    cost: int

    @classmethod
    def of(cls, index: np.ndarray, parts: Parts, cores: Array, held: tuple[Array, ...], cost: int) -> _Inside:
        """From cores over all rows and all but those of a fold, and covariances over those of it."""
        f, g = parts
        left, sigma, right = leading(cores[index, :, f, g])
        moments = zip(held, ((f, g), (f, f), (g, g)), ((left, right), (left, left), (right, right)), strict=True)
        told = judged(
            sigma[:, 1:],
            *(a[:, 1:].swapaxes(2, 3) @ own[index, :, i, j] @ b[:, 1:] for own, (i, j), (a, b) in moments),
        )
        return cls(index, parts, (left, sigma, right), told, cost)

    def best_scores(self, n_pairs: int) -> Array:
        """The best mean score of any number of modes, (P,); of pairs that are not among these, none."""
        result = np.full(n_pairs, NOT_TRIED)
        result[self.index] = self.told[0].mean(axis=1).max(axis=1)
        return result


def _preferred(tried: Sequence[_Inside], cores: Array) -> tuple[tuple[Array, Array, Array], Judged, np.ndarray]:
    """Of what was tried, the modes that held-out rows prefer for each pair, as combinations of all functions.

    Returns:
        Left, (P, 1 + F, k, m), sigma and right; what held-out rows say of them; and what they cost, (P,).
    """
    n_pairs, folds, n_f, n_g = cores.shape
    left, sigma, right = (np.zeros((n_pairs, folds, *size, MOST_MODES)) for size in ((n_f,), (), (n_g,)))
    scores = np.full((n_pairs, folds - 1, MOST_MODES + 1), NOT_TRIED)
    correlation, cost = np.zeros((n_pairs, folds - 1, MOST_MODES)), np.zeros(n_pairs, dtype=np.int64)
    best = np.argmax([one.best_scores(n_pairs) for one in tried], axis=0)
    for place, one in enumerate(tried):
        here = np.flatnonzero(best[one.index] == place)
        index, (f, g), m = one.index[here], one.parts, one.modes[1].shape[2]
        left[index, :, f, :m], sigma[index, :, :m], right[index, :, g, :m] = (own[here] for own in one.modes)
        scores[index, :, : m + 1], correlation[index, :, :m] = (own[here] for own in one.told)
        cost[index] = one.cost
    return (left, sigma, right), (scores, correlation), cost


def _hold_more(energy: Array, sizes: np.ndarray, level: int, sides: Sequence[int] = (0, 1)) -> np.ndarray:
    """Whether functions of a resolution hold more than chance beyond those of the one before, (P,).

    Those of some sides are looked at, beside the functions of the others at any resolution up to the one before.

    Args:
        energy: Of the functions of each resolution of either side, times the rows, (P, 3, 3).
        sizes: How many functions these are, (P, 2, 3).
        level: The resolution.
        sides: Those whose functions are looked at.
    """
    numbers = sizes[:, 0, :, None] * sizes[:, 1, None, :]
    result = np.zeros(len(sizes), dtype=bool)
    for others in range(level):
        i, j = (level if side in sides else others for side in (0, 1))
        before = min(i, level - 1), min(j, level - 1)
        freedom, more = (own[:, i, j] - own[:, before[0], before[1]] for own in (numbers, energy))
        result |= (freedom > 0) & (more > freedom + in_force.get().doubt_errors * np.sqrt(2 * freedom))
    return result
