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

from featgeo.evidence.scored import Ranks, Scored, cosines_of, indicators, orthonormal
from featgeo.geometry.spans import COLLINEAR
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
MOST_JUMPS = 4
FEWEST_BESIDE = 5  # rows on either side of a jump
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class SimpleFunctions:
    """What is simple in S, whatever is regressed on it.

    Attributes:
        lines: An orthonormal basis of lines and of indicators of labels, (n, r), the strongest first.
        curves: One of lines and curves of single columns, (n, c); None where rows are too few for it.
        numbers: Ranks along each column that is a number, (n,).
        width: The number of columns.
    """

    lines: Array
    curves: Array | None
    numbers: tuple[Array, ...]
    width: int

    @classmethod
    def of(cls, columns: Sequence[Scored], n: int) -> SimpleFunctions:
        """Those of the columns of S, of which there is at least one."""
        width = len(columns)
        lines, _ = orthonormal(np.hstack([_lines(column, max(1, int(MOST_FREE * n) // width)) for column in columns]))
        numbers = tuple(column.values for column in columns if isinstance(column, Ranks))
        return cls(lines, _curves(lines, numbers, n // width), numbers, width)

    def indices(self, target: Array) -> tuple[Array, ...]:
        """Ranks along the combinations of columns that a target, (n,), follows: of lines, and of sums of curves."""
        if self.width == 1 and self.numbers:
            return self.numbers
        straight = _index(self.lines, target, even=True)
        return (straight,) if self.curves is None else (straight, _index(self.curves, target, even=False))

    def terms(self, target: Array, indices: Sequence[Array]) -> Array:
        """All that goes without penalty for the sake of a target, (n,), that follows these indices: orthonormal."""
        n, lines, width = len(target), self.lines, self.width
        most = int(MOST_FREE * n)
        waves = max(0, min(INDEX_WAVES, (most - lines.shape[1]) // len(indices)))
        parts = [lines, *(cosines_of(index, waves) for index in indices)]
        left = most - lines.shape[1] - waves * len(indices)
        waves = max(0, min(COLUMN_WAVES, n // (ROWS_PER_WAVE * width), left // width))
        terms, _ = orthonormal(np.hstack([*parts, *(cosines_of(number, waves) for number in self.numbers)]))
        if most - terms.shape[1] < MOST_JUMPS:
            return terms
        return with_jumps(terms, lines, self.numbers if width == 1 else (*self.numbers, *indices), target)


def _lines(column: Scored, most: int) -> Array:
    """A number, its normal score where that is another line, or indicators of the most frequent symbols."""
    if not isinstance(column, Ranks):
        return indicators(column, min(column.size - 1, most))
    same = np.corrcoef(column.numbers, column.scores)[0, 1] ** 2 > SAME
    return np.column_stack([column.numbers] if same else [column.numbers, column.scores])


def _curves(lines: Array, numbers: Sequence[Array], rows_per_column: int) -> Array | None:
    """A basis of lines and of curves of single columns; None where rows are too few, or no column is a number."""
    waves = min(CURVE_WAVES, rows_per_column // ROWS_PER_CURVE)
    if waves < 2 or not numbers:
        return None
    scores = np.nan_to_num(ndtri(np.column_stack(numbers)))
    return orthonormal(np.hstack([lines, scores**2, scores**3, *(cosines_of(ranks, waves) for ranks in numbers)]))[0]


def _index(z: Array, target: Array, even: bool) -> Array:
    """Ranks along the combination of orthonormal terms z, (n, d), that waves along it explain best, (n,).

    Gauss-Newton steps from the best straight fit, and, where rows suffice, from the direction of the strongest
    curvature, which finds what is `even` along a line. (Curves are even themselves.)
    """
    n, d = z.shape
    target = target - target.mean()
    starts = [z.T @ target]
    if even and n > 2 * d * d:
        energies, axes = np.linalg.eigh((z * target[:, None]).T @ z)
        starts.append(axes[:, np.argmax(np.abs(energies))])
    best, least = np.full(n, 0.5), np.inf
    for direction in starts:
        before = np.inf
        for _ in range(STEPS + 1):
            direction = direction / max(float(np.linalg.norm(direction)), _TINY)
            along = z @ direction
            order = np.argsort(along)
            position = sorted_positions(along[order])
            waves, slopes = (values[position] for values in wave_table(n))
            # Ties may make waves collinear.
            gram = waves.T @ waves + COLLINEAR * n * np.eye(INDEX_WAVES)
            curve = np.linalg.solve(gram, waves.T @ target[order])
            rest, slope = np.empty((2, n))  # what the curve leaves, and how steep the curve is, row by row
            rest[order] = target[order] - waves @ curve
            error = float(rest @ rest)
            if error < least:
                best, least = np.empty(n), error
                best[order] = (position + 1) / (2 * n)
            if error >= (1 - GAIN) * before:
                break
            before = error
            slope[order] = slopes @ curve * density(along[order])
            moves = slope[:, None] * z
            gram = moves.T @ moves
            gram[np.diag_indices(d)] += DAMPING * np.trace(gram) / d + _TINY
            direction = direction + np.linalg.solve(gram, moves.T @ rest)
    return best


def sorted_positions(rising: Array) -> np.ndarray:
    """Where the mid-ranks over n of values in order lie among 1 / 2n, 2 / 2n, 3 / 2n, ..., (n,)."""
    return np.searchsorted(rising, rising) + np.searchsorted(rising, rising, side="right") - 1


@lru_cache(maxsize=4)
def wave_table(n: int) -> tuple[Array, Array]:
    """Waves and their derivatives where mid-ranks of n rows may lie, (2 n - 1, INDEX_WAVES) each."""
    index, orders = np.arange(1, 2 * n) / (2 * n), np.arange(1, INDEX_WAVES + 1)
    slopes: Array = -np.sqrt(2) * np.pi * np.sin(np.pi * np.outer(index, orders)) * orders
    return cosines_of(index, INDEX_WAVES), slopes


def density(rising: Array) -> Array:
    """How fast ranks rise along values in order, (n,): neighbours on either side over the distance between them."""
    n, reach = len(rising), int(np.sqrt(len(rising)))
    low, high = (np.arange(n) - reach).clip(min=0), (np.arange(n) + reach).clip(max=n - 1)
    rise: Array = (high - low) / n / np.maximum(rising[high] - rising[low], _TINY)
    return rise


def with_jumps(terms: Array, lines: Array, along: Sequence[Array], target: Array) -> Array:
    """Orthonormal terms, (n, r), and indicators of the rows beyond the clearest jumps of a target along some ranks.

    Jumps are sought in what lines leave of the target, where they are sharp, and taken where they explain what all
    terms so far do not, more than the largest of as many chance jumps would.
    """
    n = len(target)
    before = np.arange(1, n)
    weight = n / (before * (n - before))
    weight[: FEWEST_BESIDE - 1] = weight[n - FEWEST_BESIDE :] = 0
    orders = np.array([np.argsort(ranks) for ranks in along])
    noise = np.square(_left(terms, target)).mean()
    for _ in range(MOST_JUMPS if len(orders) else 0):
        rest = _left(lines, target)
        gains = np.square(np.cumsum(rest[orders], axis=1)[:, :-1]) * weight
        which, where = np.unravel_index(np.argmax(gains), gains.shape)
        beyond = np.ones(n)
        beyond[orders[which, : where + 1]] = 0
        new = _left(terms, beyond)
        if (new @ target) ** 2 / max(float(new @ new), _TINY) < 2 * np.log(n * len(orders)) * noise:
            break
        terms, lines = (orthonormal(np.column_stack([basis, beyond]))[0] for basis in (terms, lines))
    return terms


def _left(basis: Array, target: Array) -> Array:
    """What an orthonormal basis leaves of a target, centred, (n,)."""
    centred = target - target.mean()
    rest: Array = centred - basis @ (basis.T @ centred) / len(basis)
    return rest
