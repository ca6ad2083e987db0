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
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from featgeo.evidence.scored import Ranks, Scored, cosines_of, indicators, orthonormal
from featgeo.geometry.spans import COLLINEAR_ENERGY
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


def free_terms(lines: Array, numbers: Sequence[Array], indices: Sequence[Array], target: Array, width: int) -> Array:
    """All that goes without penalty for the sake of a target: an orthonormal basis, (n, r).

    Args:
        lines: An orthonormal basis of lines and of indicators of labels, (n, q).
        numbers: Ranks along each column that is a number, (n,).
        indices: Ranks along combinations of columns that the target follows; the number itself where S is one.
        target: The leading function of X or Y, (n,).
        width: The number of columns of S.
    """
    n = len(target)
    most = int(MOST_FREE * n) - lines.shape[1]
    waves = max(0, min(INDEX_WAVES, most // len(indices)))
    rest = most - waves * len(indices)
    single = max(0, min(COLUMN_WAVES, n // (ROWS_PER_WAVE * width), rest // width))
    along = [(index, waves) for index in indices] + [(number, single) for number in numbers]
    terms, _ = orthonormal(np.hstack([lines, *(cosines_of(one, count) for one, count in along)]))
    if int(MOST_FREE * n) - terms.shape[1] < MOST_JUMPS:
        return terms
    return with_jumps(terms, lines, numbers if width == 1 else [*numbers, *indices], target)


def lines_of(columns: Sequence[Scored], n: int) -> Array:
    """An orthonormal basis of the lines in numbers and of the indicators of labels, (n, r), the strongest first."""
    most = max(1, int(MOST_FREE * n) // len(columns))
    return orthonormal(np.hstack([_lines(column, most) for column in columns]))[0]


def _lines(column: Scored, most: int) -> Array:
    """A number, its normal score where that is another line, or indicators of the most frequent symbols."""
    if not isinstance(column, Ranks):
        return indicators(column, min(column.size - 1, most))
    same = np.corrcoef(column.numbers, column.scores)[0, 1] ** 2 > SAME
    return np.column_stack([column.numbers] if same else [column.numbers, column.scores])


def curves_of(lines: Array, numbers: Sequence[Array], rows_per_column: int) -> Array | None:
    """A basis of lines and of curves of single columns; None where rows are too few, or no column is a number."""
    waves = min(CURVE_WAVES, rows_per_column // ROWS_PER_CURVE)
    if waves < 2 or not numbers:
        return None
    scores = np.nan_to_num(ndtri(np.column_stack(numbers)))
    return orthonormal(np.hstack([lines, scores**2, scores**3, *(cosines_of(number, waves) for number in numbers)]))[0]


def index_of(z: Array, target: Array, even: bool) -> Array:
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
            rising, sought = along[order], target[order]
            twice = np.searchsorted(rising, rising) + np.searchsorted(rising, rising, side="right")  # the mid-ranks
            waves, slopes = (values[twice] for values in wave_table(n))
            # Ties may make waves collinear.
            gram = waves.T @ waves + COLLINEAR_ENERGY * n * np.eye(INDEX_WAVES)
            curve = np.linalg.solve(gram, waves.T @ sought)
            rest = sought - waves @ curve
            error = float(rest @ rest)
            if error < least:
                best, least = np.empty(n), error
                best[order] = twice / (2 * n)
            if error >= (1 - GAIN) * before:
                break
            before = error
            moves = (slopes @ curve * density(rising))[:, None] * z[order]
            gram = moves.T @ moves
            gram[np.diag_indices(d)] += DAMPING * np.trace(gram) / d + _TINY
            direction = direction + np.linalg.solve(gram, moves.T @ rest)
    return best


@lru_cache(maxsize=4)
def wave_table(n: int) -> tuple[Array, Array]:
    """Waves and their derivatives wherever mid-ranks of n rows may lie, (2 n, INDEX_WAVES) each."""
    at, orders = np.arange(2 * n) / (2 * n), np.arange(1, INDEX_WAVES + 1)
    return cosines_of(at, INDEX_WAVES), -np.sqrt(2) * np.pi * np.sin(np.pi * np.outer(at, orders)) * orders


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
    orders = np.array([np.argsort(one) for one in along])
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
