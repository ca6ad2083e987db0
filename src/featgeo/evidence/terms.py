"""What a regression on S takes out whole: lines, labels, curves along an index, curves of columns, and jumps.

A penalty leaves a share of the same function of S in X and in Y, which then look dependent. So what is simple and often
there goes without one:

- lines in the numbers as they are and, where these differ, in their normal scores; the mean of each label;
- waves along *indices* of X and of Y: combinations of lines, or of curves of single columns where rows allow, chosen so
  that waves along them explain most, since many variables follow one combination of others, in whatever way;
- waves along single columns, more of them as rows allow;
- jumps along columns and indices that are too clear for chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from featgeo.evidence.scored import Ranks, Scored
from featgeo.geometry.validation import Array

MOST_FREE = 0.25  # terms, over n; beyond it the rarest labels of a column count as one
SAME = 0.97  # squared correlation of a number and its normal score from which one of them does
INDEX_WAVES = 5  # half-waves
COLUMN_WAVES = 8
ROWS_PER_WAVE = 80  # along a column
CURVE_WAVES = 4  # of the columns whose sum is an index
ROWS_PER_CURVE = 50
STEPS = 5  # of Gauss and Newton, at most
GAIN = 1e-3  # share of the error; a step that gains less is the last: products of residuals forgive as much
DAMPING = 1e-3
MOST_JUMPS = 4  # of each target
FEWEST_BESIDE = 5  # rows on either side of a jump
COLLINEAR = 1e-8
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Direction:
    """What functions of S may run along: a column of numbers, or an index.

    Attributes:
        ranks: Along it, NaN where missing, (n,).
        waves: Cosines of the ranks, (n, w).
        order: The rows from the lowest rank to the highest, (n,).
    """

    ranks: Array
    waves: Array
    order: np.ndarray

    @classmethod
    def of(cls, ranks: Array, waves: int) -> Direction:
        """With so many waves."""
        return cls(ranks, cosines_of(ranks, waves), np.argsort(ranks))


@dataclass(frozen=True, eq=False)
class SimpleFunctions:
    """What is simple in S, whatever is regressed on it.

    Attributes:
        lines: An orthonormal basis of lines and of indicators of labels, (n, r).
        curves: One of lines and curves of single columns, (n, c); None where rows are too few for it.
        numbers: The columns that are numbers.
        width: The number of columns.
    """

    lines: Array
    curves: Array | None
    numbers: tuple[Direction, ...]
    width: int

    @classmethod
    def of(cls, columns: Sequence[Scored], n: int) -> SimpleFunctions:
        """Those of the columns of S, of which there is at least one."""
        width = len(columns)
        lines = orthonormal(np.hstack([_lines(column, max(1, int(MOST_FREE * n) // width)) for column in columns]))
        numbers = tuple(Direction.of(c.values, COLUMN_WAVES) for c in columns if isinstance(c, Ranks))
        return cls(lines, _curves(lines, numbers, n // width), numbers, width)

    def indices(self, target: Array) -> tuple[Direction, ...]:
        """The combinations of columns that a target, (n,), follows: of lines, and of sums of curves."""
        if self.width == 1 and self.numbers:
            return self.numbers
        found = [_index(self.lines, target, even=True)]
        if self.curves is not None:
            found.append(_index(self.curves, target, even=False))
        return tuple(Direction.of(ranks, INDEX_WAVES) for ranks in found)


def free_terms(simple: SimpleFunctions, targets: Array, indices: Sequence[Direction]) -> Array:
    """The terms for the sake of a few targets: orthonormal and orthogonal to constants, (n, r).

    Args:
        simple: What is simple in S.
        targets: Leading functions of X and of Y, (n, k).
        indices: That they follow.
    """
    n, lines, width = len(targets), simple.lines, simple.width
    most = int(MOST_FREE * n)
    waves = max(0, min(INDEX_WAVES, (most - lines.shape[1]) // len(indices)))
    parts = [lines, *(index.waves[:, :waves] for index in indices)]
    waves = max(0, min(n // (ROWS_PER_WAVE * width), (most - sum(part.shape[1] for part in parts)) // width))
    terms = orthonormal(np.hstack([*parts, *(number.waves[:, :waves] for number in simple.numbers)]))
    if most - terms.shape[1] >= MOST_JUMPS * targets.shape[1]:
        along = simple.numbers if width == 1 else [*simple.numbers, *indices]
        jumps = _jumps([direction.order for direction in along], lines, terms, targets)
        terms = orthonormal(np.column_stack([terms, *jumps])) if jumps else terms
    return terms


def cosines_of(ranks: Array, count: int) -> Array:
    """sqrt(2) cos(pi k r) for k = 1, ..., count, (n, count): orthonormal functions of a rank r; 0 where missing."""
    return np.nan_to_num(np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(1, count + 1))))


def orthonormal(terms: Array) -> Array:
    """A basis of the span of centred terms, (n, r)."""
    n = len(terms)
    terms = terms - terms.mean(axis=0)
    terms /= np.sqrt(np.square(terms).sum(axis=0) / n).clip(min=_TINY)
    energies, directions = np.linalg.eigh(terms.T @ terms / n)
    kept = energies > COLLINEAR
    basis: Array = terms @ (directions[:, kept] / np.sqrt(energies[kept] * n))
    return basis


def _lines(column: Scored, most: int) -> Array:
    """A number, its normal score where that is another line, or indicators of the most frequent symbols."""
    if isinstance(column, Ranks):
        scores = np.nan_to_num(ndtri(column.values))
        same = np.corrcoef(column.numbers, scores)[0, 1] ** 2 > SAME
        return np.column_stack([column.numbers] if same else [column.numbers, scores])
    frequent = np.argsort(-np.bincount(column.codes), kind="stable")[: min(column.size - 1, most)]
    return (column.codes[:, None] == frequent).astype(np.float64)


def _curves(lines: Array, numbers: Sequence[Direction], rows_per_column: int) -> Array | None:
    """A basis of lines and of curves of single columns; None where rows are too few, or no column is a number."""
    waves = min(CURVE_WAVES, rows_per_column // ROWS_PER_CURVE)
    if waves < 2 or not numbers:
        return None
    scores = [np.nan_to_num(ndtri(number.ranks))[:, None] for number in numbers]
    curves = [np.hstack([z**2, z**3, u.waves[:, :waves]]) for z, u in zip(scores, numbers, strict=True)]
    return orthonormal(np.hstack([lines, *curves]))


def _index(terms: Array, target: Array, even: bool) -> Array:
    """Ranks along the combination of orthonormal terms, (n, d), that waves along it explain best, (n,).

    Gauss-Newton steps from the best straight fit, and, where rows suffice, from the direction of the strongest
    curvature, which finds what is `even` along a line. (Curves are even themselves.)
    """
    n, d = terms.shape
    z, target = terms * np.sqrt(n), target - target.mean()
    starts = [z.T @ target]
    if even and n > 2 * d * d:
        energies, axes = np.linalg.eigh((z * target[:, None]).T @ z)
        starts.append(axes[:, np.argmax(np.abs(energies))])
    best, least = np.full(n, 0.5), np.inf
    for direction in starts:
        before = np.inf
        for _ in range(STEPS + 1):
            direction = direction / max(np.linalg.norm(direction), _TINY)
            along = z @ direction
            order = np.argsort(along)
            rising = along[order]
            position = _sorted_positions(rising)
            waves, slopes = (values[position] for values in _waves(n))
            sought = target[order]
            # Ties may make waves collinear.
            curve = np.linalg.solve(waves.T @ waves + COLLINEAR * n * np.eye(INDEX_WAVES), waves.T @ sought)
            rest, slope = np.empty((2, n))  # what the curve leaves, and how steep the curve is, row by row
            rest[order] = sought - waves @ curve
            error = float(rest @ rest)
            if error < least:
                best, least = np.empty(n), error
                best[order] = (position + 1) / (2 * n)
            if error >= (1 - GAIN) * before:
                break
            before = error
            slope[order] = slopes @ curve * _density(rising)
            moves = slope[:, None] * z
            gram = moves.T @ moves
            gram[np.diag_indices(d)] += DAMPING * np.trace(gram) / d + _TINY
            direction = direction + np.linalg.solve(gram, moves.T @ rest)
    return best


def _sorted_positions(rising: Array) -> np.ndarray:
    """Where the mid-ranks over n of values in order lie among 1 / 2n, 2 / 2n, 3 / 2n, ..., (n,)."""
    n = len(rising)
    apart = np.diff(rising) > 0
    if apart.all():
        return np.arange(0, 2 * n, 2)
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    ends = np.append(first[1:], n)
    return np.repeat(first + ends - 1, ends - first)


@lru_cache(maxsize=4)
def _waves(n: int) -> tuple[Array, Array]:
    """Waves and their derivatives where mid-ranks of n rows may lie, (2 n - 1, INDEX_WAVES) each."""
    index, orders = np.arange(1, 2 * n) / (2 * n), np.arange(1, INDEX_WAVES + 1)
    slopes: Array = -np.sqrt(2) * np.pi * np.sin(np.pi * np.outer(index, orders)) * orders
    return cosines_of(index, INDEX_WAVES), slopes


def _density(rising: Array) -> Array:
    """How fast ranks rise along values in order, (n,): neighbours on either side over the distance between them."""
    n, reach = len(rising), int(np.sqrt(len(rising)))
    low, high = (np.arange(n) - reach).clip(min=0), (np.arange(n) + reach).clip(max=n - 1)
    density: Array = (high - low) / n / np.maximum(rising[high] - rising[low], _TINY)
    return density


def _jumps(orders: Sequence[np.ndarray], lines: Array, terms: Array, targets: Array) -> list[Array]:
    """Indicators of the rows beyond the clearest jumps of the targets along rows in some orders, (n,) each.

    Jumps are sought in what lines leave of a target, where they are sharp, and taken where they explain what all terms
    so far do not, more than the largest of as many chance jumps would.
    """
    n = len(targets)
    before = np.arange(1, n)
    weight = n / (before * (n - before))
    weight[: FEWEST_BESIDE - 1] = weight[n - FEWEST_BESIDE :] = 0
    jumps: list[Array] = []
    sorted_rows = np.array(orders)
    for target in targets.T:
        straight, smooth = lines, terms
        noise = np.square(_left(smooth, target)).mean()
        for _ in range(MOST_JUMPS if len(orders) else 0):
            rest = _left(straight, target)
            gains = np.square(np.cumsum(rest[sorted_rows], axis=1)[:, :-1]) * weight
            which, where = np.unravel_index(np.argmax(gains), gains.shape)
            beyond = np.ones(n)
            beyond[sorted_rows[which, : where + 1]] = 0
            new = _left(smooth, beyond)
            explained = (new @ target) ** 2 / max(new @ new, _TINY)
            if explained < 2 * np.log(n * len(orders)) * noise:
                break
            jumps.append(beyond)
            straight, smooth = (orthonormal(np.column_stack([basis, beyond])) for basis in (straight, smooth))
    return jumps


def _left(basis: Array, target: Array) -> Array:
    """What an orthonormal basis leaves of a target, centred, (n,)."""
    centred = target - target.mean()
    rest: Array = centred - basis @ (basis.T @ centred)
    return rest
