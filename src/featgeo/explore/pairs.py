"""The dependence of two columns, for many pairs at once, from their tables of counts.

With orthonormal functions on the cells of either column, the table of a pair is a small matrix, its core, and the
singular vectors of the core are the modes. Numbers have three resolutions: a few waves, more of them, and all functions
on their cells. Rows that were held out choose among them, and how many modes there are. Columns of few values have all
functions: then the modes are those of the table, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from featgeo.explore.cells import Cells
from featgeo.explore.counting import Counts
from featgeo.explore.tails import (
    RUNGS,
    ample_sizes,
    are_new,
    at_rungs,
    block_tail,
    cauchy_score,
    cauchy_tail,
    kurtosis_so_far,
    rungs,
)
from featgeo.features.variables import preferred_places
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

MOST_ENTRIES = 2**21  # of the tables of a batch: memory
MOST_MODES = 8  # of a pair that are looked at: two columns never have more that a page can show
RESOLUTIONS = ("few waves", "more waves", "many waves", "steps", "steps of the first", "steps of the second")
STEP_DIRECTIONS = 4  # of functions of the other column that steps are cut by: time
NOT_TRIED = -1e9  # a score that is never the best


@dataclass(frozen=True, eq=False)
class Batch:
    """Tables of some pairs, padded to one shape, and functions on their cells.

    Attributes:
        tables: Rows in each pair of cells that hold values, by fold, (P, F, a, b).
        f: Orthonormal functions on the cells of the first columns, from smooth to rough, (P, a, k); 0 beyond theirs.
        g: On those of the second, (P, b, l).
    """

    tables: Array
    f: Array
    g: Array

    @classmethod
    def of(cls, counts: Counts, pairs: Sequence[tuple[int, int]]) -> Batch:
        """The tables of some pairs of columns, whatever misses either left out."""
        several = [[counts.columns[pair[side]] for pair in pairs] for side in (0, 1)]
        sizes = [max(column.n_values for column in columns) for columns in several]
        widths = [max(column.resolutions[-1] for column in columns) for columns in several]
        tables = np.zeros((len(pairs), counts.folds, *sizes))
        f, g = (np.zeros((len(pairs), size, width)) for size, width in zip(sizes, widths, strict=True))
        for place, (i, j) in enumerate(pairs):
            table = counts.table(i, j)[:, :-1, :-1]
            tables[place, :, : table.shape[1], : table.shape[2]] = table
            for functions, column, own in ((f, i, table.sum(axis=(0, 2))), (g, j, table.sum(axis=(0, 1)))):
                basis = counts.functions(column, own)
                functions[place, : len(basis), : basis.shape[1]] = basis
        return cls(tables, f, g)

    @classmethod
    def of_missing(cls, counts: Counts, pairs: Sequence[tuple[int, int]]) -> Batch:
        """The same with one function of the first columns: whether they are missing; of the second also whether."""
        several = [[counts.columns[pair[side]] for pair in pairs] for side in (0, 1)]
        sizes = [max(column.size for column in columns) for columns in several]
        tables = np.zeros((len(pairs), 1, *sizes))
        f = np.zeros((len(pairs), sizes[0], 1))
        g = np.zeros((len(pairs), sizes[1], 1 + max(column.resolutions[-1] for column in several[1])))
        for place, (i, j) in enumerate(pairs):
            table = counts.table(i, j).sum(axis=0)
            tables[place, 0, : table.shape[0], : table.shape[1]] = table
            f[place, : table.shape[0], 0] = missing_function(table.sum(axis=1))
            both = np.column_stack(
                [missing_function(table.sum(axis=0)), counts.columns[j].functions(table.sum(axis=0))]
            )
            varies = np.square(both).T @ table.sum(axis=0) / table.sum()
            both = both[:, varies > 0] / np.sqrt(varies[varies > 0])
            g[place, : table.shape[1], : both.shape[1]] = both
        return cls(tables, f, g)

    def taken(self, index: np.ndarray) -> Batch:
        """Some of the pairs."""
        return self if len(index) == len(self.tables) else Batch(self.tables[index], self.f[index], self.g[index])

    @cached_property
    def n_rows(self) -> Array:
        """Rows of each pair, by fold, (P, F)."""
        return self.tables.sum(axis=(2, 3))

    @cached_property
    def margins(self) -> tuple[Array, Array]:
        """Rows in each cell of either column, by fold, (P, F, a) and (P, F, b)."""
        return self.tables.sum(axis=3), self.tables.sum(axis=2)

    @cached_property
    def sums(self) -> tuple[Array, Array, Array]:
        """Over the rows of each fold, of f g^T, (P, F, n_f, n_g), f, (P, F, k), and g, (P, F, l)."""
        left = self.f.transpose(0, 2, 1)[:, None]
        of_f, of_g = self.margins
        return left @ self.tables @ self.g[:, None], of_f @ self.f, of_g @ self.g

    @cached_property
    def core(self) -> Array:
        """The dependence in orthonormal coordinates, (P, n_f, n_g)."""
        return self.sums[0].sum(axis=1) / self._total[:, None, None]

    @cached_property
    def _total(self) -> Array:
        return np.maximum(self.n_rows.sum(axis=1), 1.0)

    def left_out(self, n_f: int, n_g: int) -> Array:
        """The core of all rows but those of each fold, for the first functions, (P, F, n_f, n_g)."""
        products, of_f, of_g = (total.sum(axis=1, keepdims=True) - total for total in self.sums)
        n = np.maximum(self._total[:, None] - self.n_rows, 1.0)
        means = of_f[..., :n_f, None] * of_g[..., None, :n_g] / n[..., None, None]
        return (products[..., :n_f, :n_g] - means) / n[..., None, None]

    def moments_of(self, f: Array, g: Array) -> tuple[Array, Array, Array]:
        """Covariances of functions on the rows of each fold: of f and g, of f, of g, each (P, F, m, m).

        Args:
            f: Values of m functions on the cells of the first columns, by fold, (P, F, a, m).
            g: On those of the second, (P, F, b, m).
        """
        n = np.maximum(self.n_rows, 1.0)[..., None, None]
        rows, columns = self.margins
        mean_f, mean_g = (np.einsum("pfa,pfam->pfm", margin, h) / n[..., 0] for margin, h in ((rows, f), (columns, g)))
        result = [f.swapaxes(2, 3) @ self.tables @ g / n - mean_f[..., :, None] * mean_g[..., None, :]]
        for margin, h, mean in ((rows, f, mean_f), (columns, g, mean_g)):
            result.append((h * margin[..., None]).swapaxes(2, 3) @ h / n - mean[..., :, None] * mean[..., None, :])
        return result[0], result[1], result[2]

    def pvalues(self) -> Array:
        """That the two columns are independent, (P,)."""
        n = self._total
        rows, columns = (margin.sum(axis=1) / n[:, None] for margin in self.margins)
        most = int(RUNGS[-1])
        f, g = self.f[..., :most], self.g[..., :most]
        n_f, n_g = ample_sizes(kurtosis_so_far(f, rows), kurtosis_so_far(g, columns), n)
        energy = (n - 1)[:, None, None] * np.square(self.core[:, :most, :most])
        energy = energy.cumsum(axis=1).cumsum(axis=2)
        fourth = [
            np.einsum("pa,pak->pk", margin, np.square(np.square(h).cumsum(axis=2)))
            for margin, h in ((rows, f), (columns, g))
        ]
        a, b = rungs(n_f), rungs(n_g)
        place = np.arange(len(n))[:, None]
        of_f, of_g = (each[place, np.maximum(sizes - 1, 0)] for each, sizes in zip(fourth, (a, b), strict=True))
        size = (a[:, :, None] * b[:, None, :]).astype(np.float64)
        added = (of_f[:, :, None] * of_g[:, None, :] - size**2 - 2 * size) / n[:, None, None]
        spreads = 2 * size + np.maximum(added, -size)  # no less than half of what chi-square has
        return block_tail(at_rungs(energy, a, b), size, spreads, (are_new(a), are_new(b)))


def missing_function(rows: np.ndarray) -> Array:
    """Whether a row is missing, of mean 0 and variance 1 under the rows of all cells, (size,); 0 where all agree."""
    share = rows[-1] / max(rows.sum(), 1)
    result = np.zeros(len(rows))
    if 0 < share < 1:
        result[:] = -np.sqrt(share / (1 - share))
        result[-1] = np.sqrt((1 - share) / share)
    return result


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
    def stepped(cls, batch: Batch, in_steps: np.ndarray) -> Modes:
        """Of functions that are constant on a few intervals of a number.

        Args:
            batch: The pairs.
            in_steps: Which sides are in steps, (P, 2); the others have all their functions.
        """
        total = batch.tables.sum(axis=1, keepdims=True)
        tables = np.concatenate([total, total - batch.tables], axis=1)  # of all rows, and of all but a fold
        f, g = batch.f[:, None], batch.g[:, None]
        rows, columns = tables.sum(axis=3), tables.sum(axis=2)
        few = in_force.get().explore_waves[1]
        f_sums = _leading_sums(tables @ g[..., :few], rows)
        g_sums = _leading_sums(tables.swapaxes(2, 3) @ f[..., :few], columns)
        f, g = _stepped(f, f_sums, rows, in_steps[:, 0]), _stepped(g, g_sums, columns, in_steps[:, 1])
        n = np.maximum(rows.sum(axis=2), 1.0)[..., None, None]
        mean_f, mean_g = (np.einsum("pfa,pfak->pfk", m, h) / n[..., 0] for m, h in ((rows, f), (columns, g)))
        cores = f.swapaxes(2, 3) @ tables @ g / n - mean_f[..., :, None] * mean_g[..., None, :]
        left, sigma, right = leading(cores)
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


def _stepped(smooth: Array, sums: Array, rows: Array, in_steps: np.ndarray) -> Array:
    """Functions in steps for some pairs, and all functions, (P, 1, a, k), for the others: (P, F, a, k)."""
    n_steps = min(in_force.get().explore_steps, rows.shape[-1]) - 1
    result = np.zeros((*rows.shape, max(n_steps, smooth.shape[3])))
    result[~in_steps, :, :, : smooth.shape[3]] = smooth[~in_steps]
    if in_steps.any():
        result[in_steps, :, :, :n_steps] = _steps(sums[in_steps], rows[in_steps])
    return result


def _leading_sums(sums: Array, rows: Array) -> Array:
    """Sums over the rows of each cell, (..., a, k), in the few directions in which cells differ most."""
    scaled = sums / np.sqrt(np.maximum(rows, 1.0))[..., None]
    directions = np.linalg.eigh(scaled.swapaxes(-1, -2) @ scaled)[1]
    return sums @ directions[..., -STEP_DIRECTIONS:]


def _steps(sums: Array, rows: Array) -> Array:
    """Orthonormal functions that are constant on intervals of cells, on which the other column differs most.

    Intervals are split one after the other, each time the one, and where, that tells most.

    Args:
        sums: Over the rows of each cell, of functions of the other column, (..., a, k).
        rows: Of each cell, (..., a).

    Returns:
        Shape (..., a, intervals - 1).
    """
    n_steps = min(in_force.get().explore_steps, rows.shape[-1])
    before = np.concatenate([np.zeros_like(sums[..., :1, :]), sums.cumsum(axis=-2)], axis=-2)
    held = np.concatenate([np.zeros_like(rows[..., :1]), rows.cumsum(axis=-1)], axis=-1)
    cuts = np.zeros((*rows.shape[:-1], n_steps + 1), dtype=np.int64)  # in order; those not made yet are at the end
    cuts[..., 1:] = rows.shape[-1]
    place = np.arange(1, rows.shape[-1])
    for _ in range(n_steps - 1):
        inside = (place[:, None] > cuts[..., None, :]).sum(axis=-1) - 1  # the interval that each place is in
        ends = [np.take_along_axis(cuts, inside + side, axis=-1) for side in (0, 1)]
        start, stop = (
            (np.take_along_axis(before, end[..., None], axis=-2), np.take_along_axis(held, end, axis=-1))
            for end in ends
        )
        left, right = before[..., 1:-1, :] - start[0], stop[0] - before[..., 1:-1, :]
        n_left, n_right = held[..., 1:-1] - start[1], stop[1] - held[..., 1:-1]
        gain = _energy(left, n_left) + _energy(right, n_right) - _energy(stop[0] - start[0], stop[1] - start[1])
        gain = np.where((n_left > 0) & (n_right > 0), gain, 0.0)
        best = gain.argmax(axis=-1)
        cuts = np.sort(np.concatenate([cuts[..., :-1], place[best][..., None]], axis=-1), axis=-1)
    leaf = (np.arange(rows.shape[-1])[:, None] >= cuts[..., None, 1:-1]).sum(axis=-1)
    own = (leaf[..., None] == np.arange(n_steps)).astype(np.float64)
    shares = np.einsum("...a,...as->...s", rows, own) / np.maximum(rows.sum(axis=-1), 1.0)[..., None]
    return own @ contrasts(shares)


def _energy(sums: Array, rows: Array) -> Array:
    return np.square(sums).sum(axis=-1) / np.maximum(rows, 1.0)


def contrasts(shares: Array) -> Array:
    """Orthonormal functions of parts that hold these shares, less their means, (..., s) to (..., s, s - 1)."""
    root = np.sqrt(shares)
    unit = np.broadcast_to(np.eye(shares.shape[-1])[:, 1:], (*shares.shape, shares.shape[-1] - 1))
    vectors = np.concatenate([root[..., None], unit], axis=-1)
    basis = np.linalg.qr(vectors)[0][..., 1:]
    there = shares > COLLINEAR
    return np.where(there[..., None], basis / np.where(there, root, 1.0)[..., None], 0.0)


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
    yield np.arange(len(columns)), Modes.smooth(batch, sizes[..., 0]), functions[:, 0]
    finer = np.flatnonzero((sizes[..., 1] > sizes[..., 0]).any(axis=1))
    if len(finer):
        yield finer, Modes.smooth(batch.taken(finer), sizes[finer, :, 1]), functions[finer, 1]
    rough = finer[_is_rough(batch.taken(finer), sizes[finer])]
    if len(rough):
        yield rough, Modes.smooth(batch.taken(rough), sizes[rough, :, 2]), functions[rough, 2]
    can = np.array([[column.kind != "label" and not column.is_finite for column in pair] for pair in columns])
    for sides in ((True, True), (True, False), (False, True)):
        in_steps = can & sides
        # One side alone where both could be; both, or the only one that can, in the first round.
        new = np.asarray(in_steps.any(axis=1) if all(sides) else can.all(axis=1))
        index = rough[np.take(new, rough)]
        if len(index):
            cost = np.where(in_steps[index], sizes[index, :, 0], sizes[index, :, 1]).sum(axis=1)
            yield index, Modes.stepped(batch.taken(index), in_steps[index]), cost


def _is_rough(batch: Batch, sizes: np.ndarray) -> np.ndarray:
    """Whether functions beyond those of the second resolution hold more than chance, (P,).

    Those of one column or of both are looked at, beside the few, more or all functions of the other.
    """
    energy = np.square(batch.core).cumsum(axis=1).cumsum(axis=2)
    place, rows = np.arange(len(sizes)), batch.n_rows.sum(axis=1)
    result = np.zeros(len(sizes), dtype=bool)
    for i, j in ((2, 2), (2, 1), (1, 2), (2, 0), (0, 2)):
        outer, inner = ((sizes[:, 0, a], sizes[:, 1, b]) for a, b in ((i, j), (min(i, 1), min(j, 1))))
        more = (energy[place, outer[0] - 1, outer[1] - 1] - energy[place, inner[0] - 1, inner[1] - 1]) * rows
        freedom = outer[0] * outer[1] - inner[0] * inner[1]
        result |= more > freedom + in_force.get().doubt_errors * np.sqrt(2 * freedom)
    return result


@dataclass(frozen=True, eq=False)
class Estimates:
    """What is told of some pairs; arrays with an entry for each, (P,).

    Attributes:
        rows: Rows that have both.
        strength: Correlation of the first pair of functions on rows that have not chosen them.
        sigma1: The same on the rows that have.
        error: Standard error of the first correlation.
        energy: Sum of the squared strengths of the modes that held-out rows support; of the first where they support
            none.
        held_out_energy: The same on held-out rows.
        n_modes: How many modes held-out rows support.
        information: Mutual information in nats: the mean of log p(a, b) / (p(a) p(b)) on held-out rows.
        forward: Share of the second column's variance that the first one tells on held-out rows.
        backward: Share of the first column's that the second one tells.
        pvalue: That the two are independent.
    """

    rows: Array
    strength: Array
    sigma1: Array
    error: Array
    energy: Array
    held_out_energy: Array
    n_modes: np.ndarray
    information: Array
    forward: Array
    backward: Array
    pvalue: Array

    @classmethod
    def of(cls, batch: Batch, columns: Sequence[tuple[Cells, Cells]]) -> Estimates:
        """Of the pairs of a batch, whose columns are these."""
        modes, n_modes, scores, correlation = chosen_modes(batch, columns)
        least_one = np.maximum(n_modes, 1)
        kept = np.arange(MOST_MODES) < least_one[:, None]
        rows = batch.n_rows.sum(axis=1)
        held_out = scores[np.arange(len(rows)), :, least_one]
        shares = batch.n_rows / np.maximum(rows, 1.0)[:, None]
        return cls(
            rows,
            np.sum(correlation[..., 0] * shares, axis=1),
            modes.sigma[:, 0],
            standard_error(batch, modes),
            np.sum(np.square(modes.sigma) * kept, axis=1),
            2 * np.sum(held_out * shares, axis=1),
            n_modes,
            _information(batch, modes, kept),
            _told(batch, modes, kept, [pair[1] for pair in columns], 1),
            _told(batch, modes, kept, [pair[0] for pair in columns], 0),
            batch.pvalues(),
        )

    @classmethod
    def joined(cls, parts: Sequence[Estimates]) -> Estimates:
        """Of the pairs of all of them."""
        if not parts:
            nothing: tuple[Any, ...] = tuple(
                np.empty(0, dtype=int if one.name == "n_modes" else float) for one in fields(cls)
            )
            return cls(*nothing)
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))


def standard_error(batch: Batch, modes: Modes, mode: int = 0) -> Array:
    """Of the correlation of a mode, (P,): its influence function is f g - sigma (f^2 + g^2) / 2."""
    table = batch.tables.sum(axis=1)
    n = np.maximum(table.sum(axis=(1, 2)), 1.0)
    f, g, half = modes.f[..., mode], modes.g[..., mode], modes.sigma[:, mode, None] / 2
    influence = f[:, :, None] * g[:, None, :] - (half * f**2)[:, :, None] - (half * g**2)[:, None, :]
    return np.sqrt(np.einsum("pab,pab->p", table, influence**2)) / n


def _information(batch: Batch, modes: Modes, kept: np.ndarray) -> Array:
    """Mean log density ratio of held-out rows under the modes of the others, (P,)."""
    sigma = modes.fold_sigma * kept[:, None]
    ratio = 1 + (modes.fold_f * sigma[:, :, None]) @ modes.fold_g.swapaxes(2, 3)
    ratio = np.maximum(ratio, in_force.get().least_ratio)
    n = np.maximum(batch.n_rows, 1.0)
    of_f, of_g = (margin.sum(axis=1) / np.maximum(batch.n_rows.sum(axis=1), 1.0)[:, None] for margin in batch.margins)
    norm = np.einsum("pa,pfab,pb->pf", of_f, ratio, of_g)
    means = np.einsum("pfab,pfab->pf", batch.tables, np.log(ratio)) / n - np.log(np.where(norm > 0, norm, 1.0))
    return np.sum(means * batch.n_rows, axis=1) / np.maximum(batch.n_rows.sum(axis=1), 1.0)


def _told(batch: Batch, modes: Modes, kept: np.ndarray, columns: Sequence[Cells], side: int) -> Array:
    """Share of the variance of one column, as ranks or as indicators of labels, that the other tells, (P,).

    The prediction is E[code | other] = E[code] + sum_i sigma_i f_i(other) E[g_i code], from all rows but a fold's.
    Where there may be more modes than are looked at, all functions of the other predict, too: equal strengths are in
    any order, and the first of them need not hold the ranks.
    """
    other, own = (modes.fold_f, modes.fold_g) if side else (modes.fold_g, modes.fold_f)
    centred, share = _centred(batch, columns, side)
    weights = (modes.fold_sigma * kept[:, None])[..., None] * (own.swapaxes(2, 3) * share @ centred)  # (P, F, m, e)
    result = _share_told(batch, side, other, weights, centred)
    many = np.flatnonzero(kept.all(axis=1))
    if len(many):
        result[many] = np.maximum(result[many], _told_by_all(batch.taken(many), [columns[int(i)] for i in many], side))
    return result


def _told_by_all(batch: Batch, columns: Sequence[Cells], side: int) -> Array:
    """The same by all functions of the other column."""
    tables = batch.tables if side else batch.tables.swapaxes(2, 3)
    other = (batch.f if side else batch.g)[:, None]
    centred, _ = _centred(batch, columns, side)
    rest = tables.sum(axis=1, keepdims=True) - tables
    n = np.maximum(rest.sum(axis=(2, 3)), 1.0)[..., None, None]
    return _share_told(batch, side, other, other.swapaxes(2, 3) @ rest @ centred / n, centred)


def _centred(batch: Batch, columns: Sequence[Cells], side: int) -> tuple[Array, Array]:
    """Codes less their means over all rows but a fold's, (P, F, own, e), and shares of cells there, (P, F, 1, own)."""
    of_own = batch.margins[side]
    coded = _coded(columns, of_own.sum(axis=1))[:, None]
    rest = of_own.sum(axis=1, keepdims=True) - of_own
    share = (rest / np.maximum(rest.sum(axis=2, keepdims=True), 1.0))[..., None, :]
    return coded - share @ coded, share


def _share_told(batch: Batch, side: int, other: Array, weights: Array, centred: Array) -> Array:
    """By how much held-out squared errors of codes are less than their variance, as a share of it, (P,).

    Args:
        batch: The pairs.
        side: Which column is predicted.
        other: Functions of the other one, (P, F, other, m), or (P, 1, other, m).
        weights: The prediction is these functions times them, (P, F, m, e).
        centred: Codes less their means, (P, F, own, e).
    """
    tables = batch.tables if side else batch.tables.swapaxes(2, 3)  # (P, F, other, own)
    seen = other.swapaxes(2, 3) @ tables @ centred
    spread = other.swapaxes(2, 3) * batch.margins[1 - side][..., None, :] @ other
    gain = np.einsum("pfme,pfme->p", weights, 2 * seen - spread @ weights)
    total = np.einsum("pfb,pfbe->p", batch.margins[side], centred**2)
    return np.divide(gain, total, out=np.zeros(len(gain)), where=total > 0)


def _coded(columns: Sequence[Cells], margins: Array) -> Array:
    """Cells as people think of them, (P, cells, e): numbers by their ranks, labels by indicators."""
    ranks = (np.cumsum(margins, axis=1) - margins / 2) / np.maximum(margins.sum(axis=1, keepdims=True), 1.0)
    is_label = np.array([column.kind == "label" for column in columns])
    if not is_label.any():
        return ranks[..., None]
    return np.where(is_label[:, None, None], np.eye(margins.shape[1]), np.eye(1, margins.shape[1]) * ranks[..., None])


def estimates_of(counts: Counts, pairs: Sequence[tuple[int, int]]) -> Estimates:
    """What the tables of some pairs of columns tell, in the order of the pairs."""
    order, parts = [], []
    for places in _alike(counts, pairs):
        few = [pairs[place] for place in places]
        parts.append(Estimates.of(Batch.of(counts, few), [(counts.columns[i], counts.columns[j]) for i, j in few]))
        order += places
    joined, back = Estimates.joined(parts), np.argsort(order)
    return Estimates(*(getattr(joined, one.name)[back] for one in fields(Estimates)))


def missing_pvalues(counts: Counts, pairs: Sequence[tuple[int, int]]) -> Array:
    """That being missing in either column does not depend on the other, (P,); NaN where too few rows are, or all."""
    fewest = in_force.get().rows_a_function
    rows = [counts.single(i).sum(axis=0) for i in range(len(counts.columns))]
    can = [  # a part of a date is missing where the date is, and would say the same again
        min(own[-1], own[:-1].sum()) >= fewest and not column.parent
        for own, column in zip(rows, counts.columns, strict=True)
    ]
    scores, count = np.zeros(len(pairs)), np.zeros(len(pairs))
    for every in (pairs, [(j, i) for i, j in pairs]):
        some = [place for place, (i, _) in enumerate(every) if can[i]]
        turned = [every[place] for place in some]
        for places in _alike(counts, turned):
            at = [some[place] for place in places]
            tails = Batch.of_missing(counts, [turned[place] for place in places]).pvalues()
            scores[at] += cauchy_score(tails)
            count[at] += 1
    return np.where(count > 0, cauchy_tail(scores / np.maximum(count, 1)), np.nan)


def _alike(counts: Counts, pairs: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Pairs, by place, whose tables are of about the same shape (the same powers of two), as many as go together."""
    alike: dict[tuple[int, int], list[int]] = {}
    for place, (i, j) in enumerate(pairs):
        a, b = (2 ** (column.n_values - 1).bit_length() for column in (counts.columns[i], counts.columns[j]))
        alike.setdefault((a, b), []).append(place)
    for (a, b), places in alike.items():
        at_once = max(1, MOST_ENTRIES // (a * b * counts.folds))
        for start in range(0, len(places), at_once):
            yield places[start : start + at_once]
