"""Modes of many pairs at once: the singular vectors of their cores, at the resolution that held-out rows prefer.

Numbers have three resolutions: a few waves, more of them, and many, of either side or of both; and functions in steps,
few or more of them, beside steps or waves of the other side. Rows that were held out choose among them, and how many
modes there are. Columns of few values have all functions: then the modes are those of the table, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from featgeo.explore.batches import Batch
from featgeo.explore.cells import Cells
from featgeo.explore.steps import steps
from featgeo.explore.tails import leading_energies
from featgeo.features.variables import preferred_places
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

MOST_MODES = 8  # of a pair that are looked at: two columns never have more that a page can show
SMALL = 4  # functions of the shorter side of blocks, of which those up to here, and those beyond, go together: time
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
    def smooth(cls, batch: Batch, index: np.ndarray | slice, sizes: np.ndarray) -> tuple[Modes, Judged]:
        """Of some pairs, inside the first functions of either side, and what held-out rows say.

        Args:
            batch: The pairs.
            index: Some of them, (Q,).
            sizes: How many functions of either side, (Q, 2).
        """
        n_f, n_g = (max(int(size), 1) for size in sizes.max(axis=0))
        inside = _within(sizes, n_f, n_g)
        held, rest = batch.held_and_left_out(index, n_f, n_g)
        left, sigma, right = leading(batch.core[index, :n_f, :n_g] * inside)
        fold_left, fold_sigma, fold_right = leading(rest * inside[:, None])
        f, g = batch.f[index, :, :n_f], batch.g[index, :, :n_g]
        modes = cls(sigma, f @ left, g @ right, fold_sigma, f[:, None] @ fold_left, g[:, None] @ fold_right)
        both = fold_left.swapaxes(2, 3) @ held @ fold_right
        of_f, of_g = batch.variance_of(modes.fold_f, 0, index), batch.variance_of(modes.fold_g, 1, index)
        return modes, judged(fold_sigma, both, of_f, of_g)

    @property
    def turned(self) -> Modes:
        """The same of the columns in the other order."""
        return Modes(self.sigma, self.g, self.f, self.fold_sigma, self.fold_g, self.fold_f)

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

    def put(self, index: np.ndarray, other: Modes, here: np.ndarray) -> None:
        """Take some pairs from others, which have no more modes."""
        for part in fields(self):
            own, others = getattr(self, part.name), getattr(other, part.name)
            own[index, ..., : others.shape[-1]] = others[here]
            own[index, ..., others.shape[-1] :] = 0.0


Judged = tuple[Array, Array]


def judged(sigma: Array, both: Array, of_f: Array, of_g: Array) -> tuple[Array, Array]:
    """On held-out rows, H-scores of the first 0, 1, ... modes, (..., m + 1), and each mode's correlation, (..., m).

    Args:
        sigma: Strengths of modes that these rows have not seen, (..., m).
        both: Their covariances there, of f with g, (..., m, m).
        of_f: Of f with f.
        of_g: Of g with g.
    """
    own, own_f, own_g = (np.diagonal(each, axis1=-2, axis2=-1) for each in (both, of_f, of_g))
    # The energy of the first i modes is the sum over a leading square: of two triangles and the diagonal.
    m = sigma.shape[-1]
    with_those_before = (of_f * of_g * (2 * np.tri(m) - np.eye(m)) @ sigma[..., None])[..., 0]
    scores = (sigma * (own - with_those_before / 2)).cumsum(axis=-1)
    spread = np.sqrt(np.maximum(own_f * own_g, 0))
    correlation = np.divide(own, spread, out=np.zeros_like(own), where=spread > COLLINEAR)
    return np.concatenate([np.zeros_like(scores[..., :1]), scores], axis=-1), correlation


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
    tried = list(_resolutions(batch, columns))
    n_pairs, folds, most = len(columns), batch.tables.shape[1], max(modes.sigma.shape[1] for _, modes, _, _ in tried)
    scores = np.full((folds, n_pairs, len(tried), most + 1), NOT_TRIED)
    correlations = np.zeros((n_pairs, len(tried), folds, most))
    costs = np.zeros((n_pairs, len(tried), most + 1))
    for place, (index, modes, told, functions) in enumerate(tried):
        n_modes = modes.sigma.shape[1]
        scores[:, index, place, : n_modes + 1] = told[0].swapaxes(0, 1)
        correlations[index, place, :, :n_modes] = told[1]
        costs[index, place] = np.multiply.outer(functions, np.arange(most + 1))
    which = preferred_places(np.moveaxis(scores.reshape(folds, n_pairs, -1), 0, -1), costs.reshape(n_pairs, -1))
    level, n_modes = np.divmod(which, most + 1)
    chosen = tried[0][1].padded(most)  # all pairs have the first
    for place, (index, modes, _, _) in enumerate(tried[1:], start=1):
        here = np.flatnonzero(level[index] == place)
        chosen.put(index[here], modes, here)
    every = np.arange(n_pairs)
    return chosen, n_modes, scores[:, every, level].swapaxes(0, 1), correlations[every, level]


def _resolutions(
    batch: Batch, columns: Sequence[tuple[Cells, Cells]]
) -> Iterator[tuple[np.ndarray, Modes, Judged, np.ndarray]]:
    """Each resolution: the pairs that it is for, their modes, what held-out rows say, how many functions they have."""
    of_column = {column: column.resolutions for column in {column for pair in columns for column in pair}}
    sizes = np.array([[of_column[column] for column in pair] for pair in columns])  # (P, 2, 3)
    yield np.arange(len(columns)), *Modes.smooth(batch, slice(None), sizes[..., 0]), sizes[..., 0].sum(axis=1)
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
                yield index, *Modes.smooth(batch, index, own), own.sum(axis=1)
    can = np.array([[column.kind != "label" and not column.is_finite for column in pair] for pair in columns])
    yield from _stepped(batch, sizes[..., :2], can & rough[:, None])


def _stepped(
    batch: Batch, sizes: np.ndarray, can: np.ndarray
) -> Iterator[tuple[np.ndarray, Modes, Judged, np.ndarray]]:
    """The same of either side in steps beside waves of the other, and of both in steps.

    A step counts as two functions, since its place is learned, too. One or two go with few waves of the other side,
    more of them with more.

    Args:
        batch: The pairs.
        sizes: How many functions of either side are few and more, (P, 2, 2).
        can: Which sides are to be in steps, (P, 2).
    """
    found = []
    for side in np.flatnonzero(can.any(axis=0)).tolist():
        index = np.flatnonzero(can[:, side])
        waves = sizes[index, 1 - side]
        own = batch.taken(index)
        inside = _Inside.steps_and_waves(own.turned if side else own, int(waves.max()))
        blocks = np.array([[(n, beside) for beside in waves[:, int(n > 2)]] for n in _numbers(inside.f.shape[3])])
        modes, told, block = inside.preferred(blocks)
        yield index, modes.turned if side else modes, told, block @ (2, 1)
        found.append((index, inside.f))
    index = np.flatnonzero(can.all(axis=1))
    if len(index):
        f, g = (own[np.searchsorted(these, index)] for these, own in found)
        numbers = [_numbers(h.shape[3]) for h in (f, g)]
        # As many steps of either side, or half or twice as many.
        tried = [(n, m) for i, n in enumerate(numbers[0]) for m in numbers[1][max(i - 1, 0) : i + 2]]
        blocks = np.repeat(np.array(tried)[:, None], len(index), axis=1)
        modes, told, block = _Inside.steps(batch.taken(index), f, g).preferred(blocks)
        yield index, modes, told, block @ (2, 2)


def _numbers(most: int) -> list[int]:
    """How many steps are tried: one, twice as many, ..., all."""
    return [*(2**i for i in range(most.bit_length()) if 2**i < most), most]


@dataclass(frozen=True, eq=False)
class _Inside:
    """Functions of some pairs, over all rows and over all but those of a fold, and their moments.

    Attributes:
        f: On the cells of the first columns, (P, 1 + F, a, k).
        g: On those of the second, (P, 1 + F, b, l), or (P, 1, b, l) where they are the same for all.
        core: Their covariances on these rows, (P, 1 + F, k, l).
        held: The same on the rows of each fold, (P, F, k, l); then of f with f, and of g with g.
    """

    f: Array
    g: Array
    core: Array
    held: tuple[Array, Array, Array]

    @classmethod
    def steps_and_waves(cls, batch: Batch, n_waves: int) -> _Inside:
        """The first columns in steps, beside so many waves of the second."""
        g = batch.g[:, None, :, :n_waves]
        of_fold = batch.tables @ g
        of_all, rows = (own.sum(axis=1, keepdims=True) for own in (of_fold, batch.margins[0]))
        sums, rest = (np.concatenate([a, a - b], axis=1) for a, b in ((of_all, of_fold), (rows, batch.margins[0])))
        return cls._of(batch, steps(sums, rest), g, of_all, of_fold)

    @classmethod
    def steps(cls, batch: Batch, f: Array, g: Array) -> _Inside:
        """Both in steps."""
        return cls._of(batch, f, g, batch.tables.sum(axis=1, keepdims=True) @ g, batch.tables @ g[:, 1:])

    @classmethod
    def _of(cls, batch: Batch, f: Array, g: Array, of_all: Array, of_fold: Array) -> _Inside:
        """From sums of g over the rows of each cell of the first columns, of all rows and of each fold."""
        left, n = f.swapaxes(2, 3), batch.n_rows.sum(axis=1, keepdims=True)
        on_fold = left[:, 1:] @ of_fold
        core = left @ of_all  # no mean is to be taken off: that of steps is 0 on the rows that they are from
        core[:, 1:] -= on_fold
        core /= np.maximum(np.concatenate([n, n - batch.n_rows], axis=1), 1.0)[..., None, None]
        own_g = g[:, 1:] if g.shape[1] > 1 else g
        held = batch.covariance_of(f[:, 1:], own_g, on_fold)
        return cls(f, g, core, (held, batch.variance_of(f[:, 1:], 0), batch.variance_of(own_g, 1)))

    def preferred(self, blocks: np.ndarray) -> tuple[Modes, Judged, np.ndarray]:
        """The modes inside the block that held-out rows prefer for each pair.

        Args:
            blocks: How many of the first functions of either side each has, for each pair, (B, P, 2).

        Returns:
            The modes, what held-out rows say of them, and how many functions they are made of, (P, 2).
        """
        is_small = blocks.max(axis=1).min(axis=1) <= SMALL
        tried = [self._tried(blocks[some]) for some in (is_small, ~is_small) if some.any()]
        ordered = np.concatenate([blocks[is_small], blocks[~is_small]])
        best = np.concatenate([each.scores.mean(axis=2).max(axis=2) for each in tried], axis=1).argmax(axis=1)
        every, m = np.arange(len(best)), max(each.sigma.shape[-1] for each in tried)
        n_f, n_g = self.core.shape[2:]
        folds = tried[0].empty_like(n_f, n_g, m)
        start = 0
        for each in tried:
            here = np.flatnonzero((best >= start) & (best < start + each.sigma.shape[1]))
            folds.put(here, each, best[here] - start)
            start += each.sigma.shape[1]
        chosen = ordered[best, every]
        left, sigma, right = leading(self.core[:, 0] * _within(chosen, n_f, n_g))
        f, g = self.f[:, 0] @ left, self.g[:, 0] @ right
        own_g = self.g[:, 1:] if self.g.shape[1] > 1 else self.g
        modes = Modes(sigma, f, g, folds.sigma[:, 0], self.f[:, 1:] @ folds.left[:, 0], own_g @ folds.right[:, 0])
        return modes, (folds.scores[:, 0], folds.correlation[:, 0]), chosen

    def _tried(self, blocks: np.ndarray) -> _Tried:
        """The modes inside of some blocks."""
        n_f, n_g = blocks.max(axis=(0, 1)).tolist()
        inside = np.stack([_within(block, n_f, n_g) for block in blocks], axis=1)
        left, sigma, right = leading(self.core[:, None, 1:, :n_f, :n_g] * inside[:, :, None])
        both, of_f, of_g = (own[:, None] for own in self.held)
        f, g = left.swapaxes(-1, -2), right.swapaxes(-1, -2)
        held = f @ both[..., :n_f, :n_g] @ right, f @ of_f[..., :n_f, :n_f] @ left, g @ of_g[..., :n_g, :n_g] @ right
        return _Tried(left, sigma, right, *judged(sigma, *held))


@dataclass(frozen=True, eq=False)
class _Tried:
    """Modes inside of several blocks, from all rows but those of a fold, and what these say of them.

    Attributes:
        left: Combinations of functions of the first columns, (P, B, F, k, m).
        sigma: Strengths, (P, B, F, m).
        right: Combinations of those of the second, (P, B, F, l, m).
        scores: On the rows of the fold, (P, B, F, m + 1).
        correlation: The same, (P, B, F, m).
    """

    left: Array
    sigma: Array
    right: Array
    scores: Array
    correlation: Array

    def empty_like(self, n_f: int, n_g: int, m: int) -> _Tried:
        """One block with nothing in it."""
        shape = len(self.sigma), 1, self.sigma.shape[2]
        left, sigma, right, correlation = (np.zeros((*shape, *size)) for size in ((n_f, m), (m,), (n_g, m), (m,)))
        return _Tried(left, sigma, right, np.full((*shape, m + 1), NOT_TRIED), correlation)

    def put(self, index: np.ndarray, other: _Tried, blocks: np.ndarray) -> None:
        """Take of some pairs, (Q,), a block each from others."""
        for part in fields(self):
            own, others = getattr(self, part.name), getattr(other, part.name)
            own[(index, 0, *(slice(size) for size in others.shape[2:]))] = others[index, blocks]


def _within(sizes: np.ndarray, n_f: int, n_g: int) -> np.ndarray:
    """Which entries of cores are of the first functions of either side, as many as `sizes`, (P, 2), says: (P, k, l)."""
    return (np.arange(n_f) < sizes[:, :1])[:, :, None] & (np.arange(n_g) < sizes[:, 1:])[:, None, :]


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
