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

import numpy as np
from scipy.special import ndtri

from featgeo.evidence.scored import Ranks, Scored, ranks
from featgeo.geometry.validation import Array

MOST_FREE = 0.25  # terms, over n; beyond it the rarest labels of a column count as one
SAME = 0.97  # squared correlation of a number and its normal score from which one of them does
INDEX_WAVES = 5  # half-waves
COLUMN_WAVES = 8
ROWS_PER_WAVE = 80  # along a column
CURVE_WAVES = 4  # of the columns whose sum is an index
ROWS_PER_CURVE = 50
STEPS = 5  # of Gauss and Newton
DAMPING = 1e-3
MOST_JUMPS = 4  # of each target
FEWEST_BESIDE = 5  # rows on either side of a jump
COLLINEAR = 1e-8
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class FreeTerms:
    """Terms without penalty.

    Attributes:
        values: Orthonormal and orthogonal to constants, (n, r).
        indices: Ranks along each index, (n,) each.
    """

    values: Array
    indices: tuple[Array, ...]


def free_terms(columns: Sequence[Scored], targets: Array) -> FreeTerms:
    """The terms for the sake of a few targets.

    Args:
        columns: Of S.
        targets: Leading functions of X and of Y, (n, k).
    """
    n, width = len(targets), len(columns)
    most = int(MOST_FREE * n)
    lines = orthonormal(np.hstack([_lines(column, max(1, most // width)) for column in columns]))
    numbers = [column.values for column in columns if isinstance(column, Ranks)]
    indices = tuple(numbers) if width == 1 and numbers else _indices(lines, numbers, n // width, targets)
    waves = max(0, min(INDEX_WAVES, (most - lines.shape[1]) // len(indices)))
    terms = orthonormal(np.hstack([lines, *(cosines_of(index, waves) for index in indices)]))
    waves = max(0, min(COLUMN_WAVES, n // (ROWS_PER_WAVE * width), (most - terms.shape[1]) // width))
    terms = orthonormal(np.hstack([terms, *(cosines_of(number, waves) for number in numbers)]))
    if most - terms.shape[1] >= MOST_JUMPS * targets.shape[1]:
        along = numbers if width == 1 else [*numbers, *indices]
        terms = orthonormal(np.column_stack([terms, *_jumps(along, lines, terms, targets)]))
    return FreeTerms(terms, indices)


def cosines_of(ranks: Array, count: int) -> Array:
    """sqrt(2) cos(pi k r) for k = 1, ..., count, (n, count): orthonormal functions of a rank r; 0 where missing."""
    return np.nan_to_num(np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(1, count + 1))))


def orthonormal(terms: Array) -> Array:
    """A basis of the span of centred terms, (n, r)."""
    n = len(terms)
    terms = (terms - terms.mean(axis=0)) / terms.std(axis=0).clip(min=_TINY)
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


def _indices(lines: Array, numbers: Sequence[Array], rows_per_column: int, targets: Array) -> tuple[Array, ...]:
    """An index of lines for each target, and one of sums of curves where there are rows enough."""
    indices = tuple(_index(lines, target) for target in targets.T)
    waves = min(CURVE_WAVES, rows_per_column // ROWS_PER_CURVE)
    if waves < 2 or not numbers:
        return indices
    scores = [np.nan_to_num(ndtri(number))[:, None] for number in numbers]
    curves = [np.hstack([z**2, z**3, cosines_of(u, waves)]) for z, u in zip(scores, numbers, strict=True)]
    sums = orthonormal(np.hstack([lines, *curves]))
    return indices + tuple(_index(sums, target) for target in targets.T)


def _index(terms: Array, target: Array) -> Array:
    """Ranks along the combination of orthonormal terms, (n, d), that waves along it explain best, (n,).

    Gauss-Newton steps from the best straight fit, and, where rows suffice, from the direction of the strongest
    curvature, which finds what is even along it.
    """
    n, d = terms.shape
    z, target = terms * np.sqrt(n), target - target.mean()
    starts = [z.T @ target]
    if n > 2 * d * d:
        energies, axes = np.linalg.eigh((z * target[:, None]).T @ z)
        starts.append(axes[:, np.argmax(np.abs(energies))])
    orders = np.arange(1, INDEX_WAVES + 1)
    best, least = np.full(n, 0.5), np.inf
    for direction in starts:
        before = np.inf
        for _ in range(STEPS + 1):
            direction = direction / max(np.linalg.norm(direction), _TINY)
            along = z @ direction
            index = ranks(along)
            waves = cosines_of(index, INDEX_WAVES)
            curve = np.linalg.lstsq(waves, target, rcond=None)[0]
            rest = target - waves @ curve
            error = float(rest @ rest)
            if error < least:
                best, least = index, error
            if error >= before:
                break
            before = error
            slope = -np.sqrt(2) * np.pi * np.sin(np.pi * np.outer(index, orders)) @ (orders * curve)
            moves = (slope * _density(along))[:, None] * z
            gram = moves.T @ moves
            gram[np.diag_indices(d)] += DAMPING * np.trace(gram) / d + _TINY
            direction = direction + np.linalg.solve(gram, moves.T @ rest)
    return best


def _density(values: Array) -> Array:
    """How fast ranks rise along the values, (n,): neighbours on either side over the distance between them."""
    n, reach = len(values), int(np.sqrt(len(values)))
    order = np.argsort(values)
    low, high = (np.arange(n) - reach).clip(min=0), (np.arange(n) + reach).clip(max=n - 1)
    density = np.empty(n)
    density[order] = (high - low) / n / np.maximum(values[order[high]] - values[order[low]], _TINY)
    return density


def _jumps(along: Sequence[Array], lines: Array, terms: Array, targets: Array) -> list[Array]:
    """Indicators of the rows beyond the clearest jumps of the targets, (n,) each.

    Jumps are sought in what lines leave of a target, where they are sharp, and taken where they explain what all terms
    so far do not, more than the largest of as many chance jumps would.
    """
    n = len(targets)
    orders = [np.argsort(values) for values in along]
    before = np.arange(1, n)
    weight = n / (before * (n - before))
    weight[: FEWEST_BESIDE - 1] = weight[n - FEWEST_BESIDE :] = 0
    jumps: list[Array] = []
    for target in targets.T:
        straight, smooth = lines, terms
        noise = np.square(_left(smooth, target)).mean()
        for _ in range(MOST_JUMPS if orders else 0):
            rest = _left(straight, target)
            gains = np.array([np.square(np.cumsum(rest[order])[:-1]) * weight for order in orders])
            which, where = np.unravel_index(np.argmax(gains), gains.shape)
            beyond = np.ones(n)
            beyond[orders[which][: where + 1]] = 0
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
