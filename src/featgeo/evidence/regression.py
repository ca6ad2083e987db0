"""Regression on the condition S: kernel ridge regression, beside terms that go without a penalty.

With K = U diag(lambda) U^T the centred kernel matrix of S, a target t is predicted by U diag(lambda / (lambda + ridge))
U^T t: one decomposition serves every target and every ridge. The ridge of each target is a tenth of the one that
minimises its generalised cross-validation: that one balances the error's variance, which products of residuals forgive,
with its bias, which X and Y may have in common.

A penalty leaves a share of the same function of S in X and in Y, which then look dependent, and a kernel on a few
hundred rows would miss most of many labels. So what is simple and often there goes without one, as eigenvectors of
infinite eigenvalue:

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
from featgeo.evidence.shuffling import AMPLE_COUNT
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array

RIDGES = np.geomspace(1e-7, 1.0, 15)  # over the largest eigenvalue
UNDERSMOOTHING = 2  # steps of the ridge, each a factor of about 3
HARDLY = 0.05  # share of an eigenvector that a regression takes out
MOST_DEGREES = 0.5  # of freedom, over n: beyond it cross-validation mistakes interpolation for a good fit
MOST_FREE = 0.25  # terms, over n; beyond it the rarest labels of a column count as one
SAME = 0.97  # squared correlation of a number and its normal score from which one of them does
INDEX_WAVES = 5  # half-waves: a curve that turns up to four times
COLUMN_WAVES = 8  # at most: what is rougher is left to the kernel
ROWS_PER_WAVE = 80  # along a column
CURVE_WAVES = 4  # of the columns whose sum is an index
ROWS_PER_CURVE = 50  # of each: with fewer a combination of them follows the noise
STEPS = 5  # of Gauss and Newton, at most; it bounds the time
NEGLIGIBLE = 1e-3  # share of an error, or of the energy of a step, that products of residuals forgive
MOST_JUMPS = 4  # of a target: more are no longer simple
_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a regression leaves of its targets.

    Attributes:
        values: Shape (n, k).
        vectors: The constant and the eigenvectors of which it takes out more than hardly any, orthonormal, (n, r).
        taken: The share that it takes out of the variance of each of them in each target, (r, k).
        of_rows: The share that it takes out of the variance of each row in each target, (n, k).
    """

    values: Array
    vectors: Array
    taken: Array
    of_rows: Array


def residuals(features: Array, free: Array, targets: Array) -> Residuals:
    """Targets, centred, less what a regression predicts of them.

    Args:
        features: Those of the kernel, centred, (n, m).
        free: Terms without penalty, orthonormal, (n, q).
        targets: Shape (n, k).
    """
    n, q, targets = len(free), free.shape[1], targets - targets.mean(axis=0)
    rest = features - free @ (free.T @ features / n)
    energies, rotation = np.linalg.eigh(rest.T @ rest)
    # Of the others no ridge takes out more than hardly any; and what is close to rounding is nothing.
    rounding = np.finfo(float).eps * np.square(features).sum()
    kept = energies > max(HARDLY * RIDGES[0] * energies[-1], 1e3 * rounding)
    rotation = rotation[:, kept] * np.sqrt(n / energies[kept])
    eigenvalues = np.concatenate([np.full(q, np.inf), energies[kept]])
    coefficients = np.vstack([free.T @ targets, rotation.T @ (rest.T @ targets)]) / n
    left = _shares_left(eigenvalues, coefficients, np.square(targets).mean(axis=0), n)
    predicted = (1 - left) * coefficients
    values = targets - free @ predicted[:q] - rest @ (rotation @ predicted[q:])
    taken = 1 - left**2
    seen = taken.max(axis=1) > HARDLY
    # Single precision takes half the time, and six digits are enough for variances.
    smooth = rest.astype(np.float32) @ rotation[:, seen[q:]].astype(np.float32)
    vectors = np.hstack([np.ones((n, 1), np.float32), free.astype(np.float32), smooth])
    taken = np.vstack([np.ones((1, taken.shape[1])), taken[seen]])
    of_rows = (np.square(vectors) @ taken.astype(np.float32)).astype(np.float64) / n
    return Residuals(values, vectors, taken, of_rows)


def _shares_left(eigenvalues: Array, coefficients: Array, variances: Array, n: int) -> Array:
    """The share that the ridge of each target leaves of each eigenvector, (r, k)."""
    ridges = RIDGES * np.max(eigenvalues, where=np.isfinite(eigenvalues), initial=1e-300)
    left = ridges / (eigenvalues[:, None] + ridges)  # (r, ridges)
    degrees = 1 + (1 - left).sum(axis=0)
    unexplained = variances - (1 - left**2).T @ coefficients**2
    allowed = (degrees <= MOST_DEGREES * n) | (ridges == ridges[-1])
    criterion = unexplained / (1 - np.minimum(degrees / n, MOST_DEGREES))[:, None] ** 2
    best = np.argmin(np.where(allowed[:, None], criterion, np.inf), axis=0)
    chosen: Array = left[:, np.maximum(best - UNDERSMOOTHING, np.argmax(allowed))]
    return chosen


def variance_ratio(x: Residuals, y: Residuals, modulating: Array) -> Array:
    """Variance of the sum of products of residuals over what the sum of their squared products says, (k, l, q).

    Residuals of one regression are correlated over the rows, so their products are not quite independent. With A and B
    the squares of the matrices that take targets to residuals, m a function of S that multiplies the products, and
    targets of constant variance given S, the ratio is sum_ij m_i m_j A_ij B_ij over sum_i m_i^2 A_ii B_ii.

    Args:
        x: Residuals of k functions of X.
        y: Residuals of l functions of Y.
        modulating: Functions m, (n, q).
    """
    n, squares = len(modulating), np.square(modulating)
    # A is the identity less the vectors, each by the share of it that is taken.
    once = squares.sum(axis=0) - (x.of_rows.T @ squares)[:, None] - y.of_rows.T @ squares
    both = ((x.of_rows[:, :, None] * y.of_rows[:, None, :]).reshape(n, -1).T @ squares).reshape(once.shape)
    off = np.empty_like(both)
    for q, m in enumerate(modulating.T.astype(x.vectors.dtype)):
        products = (x.vectors * m[:, None]).T @ y.vectors / n
        off[:, :, q] = x.taken.T @ np.square(products) @ y.taken  # sum_ij m_i m_j (1 - A)_ij (1 - B)_ij
    shares: Array = (once + off) / (once + both)
    return shares


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
            gram = waves.T @ waves + COLLINEAR * n * np.eye(INDEX_WAVES)
            curve = np.linalg.solve(gram, waves.T @ sought)
            rest = sought - waves @ curve
            error = float(rest @ rest)
            if error < least:
                best, least = np.empty(n), error
                best[order] = twice / (2 * n)
            if error >= (1 - NEGLIGIBLE) * before:
                break
            before = error
            moves = (slopes @ curve * density(rising))[:, None] * z[order]
            gram = moves.T @ moves
            gram[np.diag_indices(d)] += NEGLIGIBLE * np.trace(gram) / d + _TINY
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
    weight[: AMPLE_COUNT - 1] = weight[n - AMPLE_COUNT :] = 0  # so many rows on either side of a jump
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
