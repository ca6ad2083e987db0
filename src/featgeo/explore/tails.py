"""P-values of no dependence from the energies of leading blocks of functions, from smooth to rough.

Under independence the entries of a core, times the root of n, are about standard normal; so the energy of a block is
compared with chi-square. Where functions rest on few rows, its tail is longer; where rows are few for all of them, it
is shorter. So a chi-square is shifted and scaled to the first three cumulants under all orders of one column's rows.
Where there is one function of either side and it has two values, the tail is that of the table of two by two, exactly.
The tails of all blocks are joined by the mean of their Cauchy scores, which is a Cauchy score again far out, however
they depend (Y. Liu and J. Xie (2020), JASA 115:393). A block weighs the less the larger the chance part of its energy:
most dependences are smooth, and the many rough blocks would hide them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, gammaln, ndtr

from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

MOST_TERMS = 2**20  # of sums that are computed at once: memory
NORMAL_SPREAD = 1_000.0  # from this standard deviation on, the tail is that of a normal law to 2 % at five deviations
RUNGS = np.array([1, 2, 4, 8, 16, 32])  # of functions whose blocks are tested: doubling, as evidence does
NESTED = 1 / 12  # times the logarithm of how many blocks there are in effect, by how much longer than Cauchy's the tail
# of the mean of their scores is, at most (at 0.05; all ladders, simulated): blocks that hold each other are neither
# independent nor alike, in both of which it is no longer


def rungs(sizes: np.ndarray, unordered: np.ndarray | bool = False) -> np.ndarray:
    """How many functions each block of a ladder holds, (P, rungs), where there are so many, (P,).

    Where no functions are smoother than others, as of labels, (P,), the first few are in one block.
    """
    fewest = np.where(unordered, in_force.get().labels_at_once, 1)
    return np.minimum.outer(sizes, RUNGS).clip(min=np.minimum(fewest, sizes)[:, None])


@dataclass(frozen=True, eq=False)
class Null:
    """Cumulants of the energies of blocks where there is no dependence, (P, rungs, rungs) each."""

    mean: Array
    variance: Array
    third: Array

    @classmethod
    def scaled(cls, mean: Array, variance: Array) -> Null:
        """Of a chi-square that is scaled to have this mean and variance."""
        return cls(mean, variance, 2 * np.divide(variance**2, mean, out=np.zeros_like(mean), where=mean > 0))

    @classmethod
    def of(cls, first: Peaks, second: Peaks, n: Array) -> Null:
        """Of functions on two columns of n rows, (P,), that meet in any order, all of them equally likely.

        Where cumulants beyond the second vanish, the energy, over n - 1, is Pillai's trace under normality. Beyond, the
        sums of products of f and g have as cumulants the products of theirs, over powers of n, and the energy is a sum
        of squares of such sums: its cumulants are sums over the ways to connect two or three squares.
        """
        n = np.maximum(n, 5.0)[:, None, None]
        k, m = first.size[:, :, None], second.size[:, None, :]
        skew, triple, excess, sixth = (
            a[:, :, None] * b[:, None, :] for a, b in zip(first[1:], second[1:], strict=True)
        )
        normal = 2 * k * m * _left(n - 1, k) * _left(n - 1, m) / ((n - 2) * (n + 1))
        variance = normal + excess * (n - 2) * (n - 3) / (n * (n**2 - 1))
        third = 4 * normal * _left(n - 1, 2 * k) * _left(n - 1, 2 * m) / ((n - 3) * (n + 3))
        return cls(k * m, variance, third + (12 * excess + 6 * skew + 4 * triple) / n + sixth / n**2)


def _left(n: Array, k: Array) -> Array:
    """Of n dimensions, those beside k."""
    return np.maximum(n - k, 1.0)


class Peaks(NamedTuple):
    """How far the leading functions f of a column, as many as each rung holds, are from normal, (P, rungs) each.

    With the sum of their squares, q, of which the mean is their number: sums of their third cumulants squared, of their
    fourth and of their sixth cumulants with indices equal two by two, all large where functions rest on few rows.

    Attributes:
        size: How many functions these are.
        skew: The sum over i of E[f_i q]^2.
        triple: That over i, j, k of E[f_i f_j f_k]^2, from above. The mean of the cube of sum_i f_i(x) f_i(x') over
            independent x and x', for all functions on size + 1 cells, as of labels, it is skew + size (size - 1); for
            waves, which are fewer than their cells, it is less.
        excess: Of the fourth.
        sixth: Of the sixth.
    """

    size: Array
    skew: Array
    triple: Array
    excess: Array
    sixth: Array

    @classmethod
    def of(cls, functions: Array, margin: Array, sizes: np.ndarray, n: Array) -> Peaks:
        """Of so many, (P, rungs), of orthonormal functions, (P, a, k), under shares of cells, (P, a), of n rows."""
        squares = np.square(functions).cumsum(axis=2)
        squares = np.take_along_axis(squares, np.maximum(sizes - 1, 0)[:, None], axis=2)  # (P, a, rungs)
        weighted = margin[..., None] * squares
        inside = np.arange(functions.shape[2])[:, None] < sizes[:, None]  # (P, k, rungs)
        skew = np.square((functions.swapaxes(1, 2) @ weighted) * inside).sum(axis=1)
        fourth, sixth = ((weighted * power).sum(axis=1) for power in (squares, squares**2))
        k, n = sizes.astype(np.float64), np.maximum(n, 5.0)[:, None]
        triple = skew + k * (k - 1)
        excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * fourth - (n - 1) * k * (k + 2))  # unbiased (K. Mardia)
        sixth = sixth - (3 * k + 12) * excess - 6 * skew - 4 * triple - k * (k + 2) * (k + 4)
        return cls(k, skew, triple, excess, sixth)


def block_tail(energy: Array, null: Null, new: tuple[np.ndarray, np.ndarray]) -> Array:
    """The joint tail probability of the energies of blocks, (P,).

    Args:
        energy: Of each block, (P, rungs, rungs).
        null: Where there is no dependence.
        new: Which rungs of either side bring functions, (P, rungs) each; others repeat the one before.
    """
    counts = new[0][:, :, None] & new[1][:, None, :] & (null.mean > 0) & (null.variance > 0) & (null.third > 0)
    mean, variance, third = (np.where(counts, each, 1.0) for each in (null.mean, null.variance, null.third))
    above = energy > mean
    # Below the mean, where only the scale matters, a chi-square that is not shifted: no energy is impossibly small.
    freedom = np.where(above, 8 * variance**3 / third**2, 2 * mean**2 / variance)
    tails = chdtrc(freedom, freedom + (energy - mean) * np.sqrt(2 * freedom / variance))
    weights = np.where(counts, 1 / np.sqrt(mean), 0.0)  # chance spreads energies by the root of their mean
    total = weights.sum(axis=(1, 2))
    there = total > 0
    score = np.sum(weights * cauchy_score(np.where(counts, tails, 0.5)), axis=(1, 2)) / np.where(there, total, 1.0)
    effective = np.square(total) / np.where(there, np.square(weights).sum(axis=(1, 2)), 1.0)
    longer = 1 + NESTED * np.log(np.maximum(effective, 1.0))
    return np.where(there, cauchy_tail(score / longer), 1.0)


def at_rungs(energy: Array, a: np.ndarray, b: np.ndarray) -> Array:
    """Of leading blocks, (P, k, l), those of rungs that hold so many functions, (P, rungs) each."""
    place = np.arange(len(energy))[:, None, None]
    return energy[place, np.maximum(a - 1, 0)[:, :, None], np.maximum(b - 1, 0)[:, None, :]]


def are_new(sizes: np.ndarray) -> np.ndarray:
    """Which rungs bring functions, (P, rungs)."""
    return np.diff(sizes, axis=1, prepend=0) > 0


def excess_so_far(functions: Array, margin: Array) -> Array:
    """Excess kurtosis of functions of unit variance, the largest so far, (P, k); infinite beyond the last."""
    fourth = np.einsum("pa,pak->pk", margin, np.square(np.square(functions)))
    return np.where(fourth > 0, np.maximum.accumulate(np.abs(fourth - 3), axis=1), np.inf)


def ample_sizes(of_f: Array, of_g: Array, n: Array) -> tuple[np.ndarray, np.ndarray]:
    """How many functions of either side rest on enough rows for their products to be normal, (P,) each."""
    n_f, n_g = ((np.isfinite(fourth)).sum(axis=1) for fourth in (of_f, of_g))
    place = np.arange(len(n))
    for _ in range(of_f.shape[1] + of_g.shape[1]):
        last_f, last_g = of_f[place, np.maximum(n_f - 1, 0)], of_g[place, np.maximum(n_g - 1, 0)]
        few = (n_f > 0) & (n_g > 0) & (in_force.get().rows_a_peak * last_f * last_g > n) & (n_f * n_g > 1)
        if not few.any():
            break
        shorter_f = few & (n_f > 1) & ((last_f >= last_g) | (n_g == 1))
        n_f, n_g = n_f - shorter_f, n_g - (few & ~shorter_f)
    return n_f, n_g


def cauchy_score(tails: Array) -> Array:
    """tan(pi (1/2 - p)), with all digits where p is small."""
    small = tails < 1e-8
    return np.where(small, 1 / (np.pi * np.maximum(tails, 1e-300)), 1 / np.tan(np.pi * np.clip(tails, 1e-9, 1 - 1e-9)))


def cauchy_tail(scores: Array) -> Array:
    """The probability that a Cauchy variable exceeds each score."""
    return np.where(scores > 1, np.arctan(1 / np.where(scores > 1, scores, 1)) / np.pi, 0.5 - np.arctan(scores) / np.pi)


def joined_pvalues(*several: Array | float) -> Array:
    """One p-value from several, (P,) each, however they depend; those that are NaN do not count."""
    values = np.array(several)
    known = ~np.isnan(values)
    scores = np.where(known, cauchy_score(np.where(known, values, 0.5)), 0.0).sum(axis=0)
    return cauchy_tail(scores / np.maximum(known.sum(axis=0), 1))


def hypergeometric_tails(count: Array, of_a: Array, of_b: Array, n: Array) -> tuple[Array, Array]:
    """The probability of a count, or of one farther from its mean on the same side, and that of the count itself, (R,).

    Args:
        count: Rows that both labels have, (R,).
        of_a: Rows that the one has, (R,).
        of_b: Rows that the other has, (R,).
        n: All rows, (R,).
    """
    expected = of_a * of_b / n
    spread = np.sqrt(expected * (1 - of_a / n) * (1 - of_b / n) * n / np.maximum(n - 1, 1.0))
    tails = ndtr(-np.abs(count - expected) / np.maximum(spread, 1.0))
    at_count = np.zeros_like(tails)
    exact = np.flatnonzero(spread < NORMAL_SPREAD)
    exact = exact[np.argsort(spread[exact])]  # those of a length beside each other
    at_once = max(1, MOST_TERMS // _n_terms(spread[exact].max(initial=0.0)))
    for start in range(0, len(exact), at_once):
        some = exact[start : start + at_once]
        terms = _hypergeometric(count[some], of_a[some], of_b[some], n[some], _n_terms(spread[some].max()))
        tails[some], at_count[some] = terms.sum(axis=1), terms[:, 0]
    return tails, at_count


def _n_terms(spread: float) -> int:
    """Of the sum of a tail; those after them are less than rounding."""
    return int(9 * spread) + 64


def _hypergeometric(count: Array, of_a: Array, of_b: Array, n: Array, n_terms: int) -> Array:
    """The probabilities of a count and of those beyond it, away from the mean, (R, n_terms)."""
    many = count * n >= of_a * of_b
    # That few rows of a are in b means that many are not.
    count, of_b = np.where(many, count, of_a - count), np.where(many, of_b, n - of_b)
    k = count[:, None] + np.arange(n_terms)
    most = np.minimum(of_a, of_b)[:, None]
    inside = np.minimum(k, most)
    of_a, of_b, n = of_a[:, None], of_b[:, None], n[:, None]
    log = _log_choose(of_b, inside) + _log_choose(n - of_b, of_a - inside) - _log_choose(n, of_a)
    return np.where(k <= most, np.exp(log), 0.0)


def _log_choose(n: Array, k: Array) -> Array:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
