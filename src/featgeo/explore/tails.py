"""P-values of no dependence from the energies of leading blocks of functions, from smooth to rough.

Under independence the entries of a core, times the root of n, are about standard normal; so the energy of a block is
compared with chi-square. Where functions rest on few rows, its tail is longer; where rows are few for all of them, it
is shorter. So a chi-square is shifted and scaled to the first three cumulants under all orders of one column's rows;
where the fourth is larger than that law's, which it is where few rows meet few, an F law has all four (Pearson's type
VI). So no block has to be left out, however many labels there are and however rare.
Where there is one function of either side and it has two values, the tail is that of the table of two by two, exactly.
The tails of all blocks are joined by the mean of their Cauchy scores, which is a Cauchy score again far out, however
they depend (Y. Liu and J. Xie (2020), JASA 115:393). A block weighs the less the larger the chance part of its energy:
most dependences are smooth, and the many rough blocks would hide them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betainc, chdtrc, gammaln, ndtr

from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

MOST_TERMS = 2**20  # of sums that are computed at once: memory
NORMAL_SPREAD = 1_000.0  # from this standard deviation on, the tail is that of a normal law to 2 % at five deviations
LONGER = 1.001  # times a fourth cumulant at a limit between laws, to be past it: nearer, parameters have no bounds
NESTED = 1 / 8  # times the logarithm of how many blocks there are in effect, by how much longer than Cauchy's the tail
# of the mean of their scores is, at most (at 0.05; all ladders, simulated): blocks that hold each other are neither
# independent nor alike, in both of which it is no longer


def rungs(sizes: np.ndarray, unordered: np.ndarray | bool = False) -> np.ndarray:
    """How many functions each block of a ladder holds, (P, rungs), where there are so many, (P,): doubling up to all.

    Where no functions are smoother than others, as of labels, (P,), the first few are in one block.
    """
    fewest = np.where(unordered, in_force.get().labels_at_once, 1)
    n_rungs = 1 + (max(int(sizes.max(initial=1)), 1) - 1).bit_length()
    return np.minimum.outer(sizes, 2 ** np.arange(n_rungs)).clip(min=np.minimum(fewest, sizes)[:, None])


@dataclass(frozen=True, eq=False)
class Null:
    """Cumulants of the energies of blocks where there is no dependence, (P, rungs, rungs) each."""

    mean: Array
    variance: Array
    third: Array
    fourth: Array

    @classmethod
    def scaled(cls, mean: Array, variance: Array) -> Null:
        """Of a chi-square that is scaled to have this mean and variance."""
        third = 2 * np.divide(variance**2, mean, out=np.zeros_like(mean), where=mean > 0)
        return cls(mean, variance, third, _fourth(variance, third))

    @classmethod
    def of(cls, first: Peaks, second: Peaks, n: Array) -> Null:
        """Of functions on two columns of n rows, (P,), that meet in any order, all of them equally likely.

        Where cumulants beyond the second vanish, the energy, over n - 1, is Pillai's trace under normality. Beyond, the
        sums of products of f and g have as cumulants the products of theirs, over powers of n, and the energy is a sum
        of squares of such sums: its cumulants are sums over the ways to connect two, three or four squares.
        """
        n = np.maximum(n, 5.0)[:, None, None]
        k, m = first.size[:, :, None], second.size[:, None, :]
        skew, triple, excess, sixth, eighth = (
            a[:, :, None] * b[:, None, :] for a, b in zip(first[1:], second[1:], strict=True)
        )
        normal = 2 * k * m * _left(n - 1, k) * _left(n - 1, m) / ((n - 2) * (n + 1))
        variance = normal + excess * (n - 2) * (n - 3) / (n * (n**2 - 1))
        third = 4 * normal * _left(n - 1, 2 * k) * _left(n - 1, 2 * m) / ((n - 3) * (n + 3))
        fourth = _fourth(normal, third) + (144 * excess + 144 * skew + 96 * triple) / n
        fourth += 112 * sixth / n**2 + eighth / n**3
        return cls(k * m, variance, third + (12 * excess + 6 * skew + 4 * triple) / n + sixth / n**2, fourth)


def _fourth(variance: Array, third: Array) -> Array:
    """The fourth cumulant of a chi-square, shifted and scaled to have these two."""
    return 1.5 * np.divide(third**2, variance, out=np.zeros_like(third), where=variance > 0)


def _left(n: Array, k: Array) -> Array:
    """Of n dimensions, those beside k."""
    return np.maximum(n - k, 1.0)


class Peaks(NamedTuple):
    """How far the leading functions f of a column, as many as each rung holds, are from normal, (P, rungs) each.

    With the sum of their squares, q, of which the mean is their number: sums of their third cumulants squared, of their
    fourth, sixth and eighth cumulants with indices equal two by two, all large where functions rest on few rows.

    Attributes:
        size: How many functions these are.
        skew: The sum over i of E[f_i q]^2.
        triple: That over i, j, k of E[f_i f_j f_k]^2, from above. The mean of the cube of sum_i f_i(x) f_i(x') over
            independent x and x', for all functions on size + 1 cells, as of labels, it is skew + size (size - 1); for
            waves, which are fewer than their cells, it is less.
        excess: Of the fourth.
        sixth: Of the sixth.
        eighth: Of the eighth, with products of a third and a fifth or of two fourths taken to sum up to the sixth, as
            they do for functions on cells that few rows have.
    """

    size: Array
    skew: Array
    triple: Array
    excess: Array
    sixth: Array
    eighth: Array

    @classmethod
    def of(cls, functions: Array, margin: Array, sizes: np.ndarray, n: Array) -> Peaks:
        """Of so many, (P, rungs), of orthonormal functions, (P, a, k), under shares of cells, (P, a), of n rows."""
        inside = _are_inside(functions.shape[2], sizes)
        squares = np.square(functions) @ inside  # (P, a, rungs)
        weighted = margin[..., None] * squares
        skew = np.square((functions.swapaxes(1, 2) @ weighted) * inside).sum(axis=1)
        second, third, fourth = ((weighted * power).sum(axis=1) for power in (squares, squares**2, squares**3))  # of q
        k, n = sizes.astype(np.float64), np.maximum(n, 5.0)[:, None]
        triple = skew + k * (k - 1)
        excess = (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * second - (n - 1) * k * (k + 2))  # unbiased (K. Mardia)
        sixth = third - (3 * k + 12) * excess - 6 * skew - 4 * triple - k * (k + 2) * (k + 4)
        fourth = fourth - 4 * k * third - 3 * second**2 + 12 * k**2 * second - 6 * k**4  # cumulant of q
        eighth = fourth - 48 * k - 144 * excess - 144 * skew - 96 * triple - 112 * sixth
        return cls(k, skew, triple, excess, sixth, eighth)


def block_tail(energy: Array, null: Null, weights: tuple[Array, Array]) -> Array:
    """The joint tail probability of the energies of blocks, (P,).

    Args:
        energy: Of each block, (P, rungs, rungs).
        null: Where there is no dependence.
        weights: Of the rungs of either side, (P, rungs) each.
    """
    weight = weights[0][:, :, None] * weights[1][:, None, :]
    counts = (weight > 0) & (null.mean > 0) & (null.variance > 0) & (null.third > 0)
    null = Null(*(np.where(counts, each, 1.0) for each in (null.mean, null.variance, null.third, null.fourth)))
    tails = _tails(energy, null)
    weight = np.where(counts, weight, 0.0)
    total = weight.sum(axis=(1, 2))
    there = total > 0
    score = np.sum(weight * cauchy_score(np.where(counts, tails, 0.5)), axis=(1, 2)) / np.where(there, total, 1.0)
    effective = np.square(total) / np.where(there, np.square(weight).sum(axis=(1, 2)), 1.0)
    longer = 1 + NESTED * np.log(np.maximum(effective, 1.0))
    return np.where(there, cauchy_tail(score / longer), 1.0)


def _tails(energy: Array, null: Null) -> Array:
    """The tail probability of the energy of each block, (P, rungs, rungs)."""
    mean, variance, third = null.mean, null.variance, null.third
    above = energy > mean
    # Below the mean, where only the scale matters, a chi-square that is not shifted: no energy is impossibly small.
    freedom = np.where(above, 8 * variance**3 / third**2, 2 * mean**2 / variance)
    tails = np.asarray(chdtrc(freedom, freedom + (energy - mean) * np.sqrt(2 * freedom / variance)))
    longer = np.broadcast_to(above & (null.fourth > LONGER * _fourth(variance, third)), energy.shape)
    if longer.any():
        mean, variance, third, fourth = (
            np.broadcast_to(each, energy.shape)[longer] for each in (mean, variance, third, null.fourth)
        )
        tails[longer] = _beta_prime_tails(
            (energy[longer] - mean) / np.sqrt(variance), third**2 / variance**3, fourth / variance**2
        )
    return tails


def _beta_prime_tails(deviation: Array, skewness: Array, kurtosis: Array) -> Array:
    """The probability that a beta prime variable, which is one of F's law but for scale, is so far above its mean.

    Its parameters follow from the cumulants in closed form; where the fourth is larger than any such law's has, it is
    the nearest of them.

    Args:
        deviation: From the mean, in standard deviations, (m,).
        skewness: Its square.
        kurtosis: In excess, more than 3/2 of the squared skewness.
    """
    b = 4 + (6 + 1.5 * skewness) / (kurtosis - 1.5 * skewness)
    b = np.maximum(b, 3 + LONGER * (8 + np.sqrt(64 + 16 * skewness)) / skewness)
    both = (b - 1) ** 2 / (skewness * (b - 3) ** 2 / (4 * (b - 2)) - 4)  # a (a + b - 1)
    a = (np.sqrt((b - 1) ** 2 + 4 * both) - (b - 1)) / 2
    value = a / (b - 1) + deviation * np.sqrt(both / (b - 2)) / (b - 1)
    return np.asarray(betainc(b, a, 1 / (1 + value)))


def leading_energies(core: Array, a: np.ndarray, b: np.ndarray) -> Array:
    """The energies of leading blocks of cores, (P, k, l), of so many functions of either side, (P, r) and (P, s)."""
    f, g = (_are_inside(size, sizes) for size, sizes in zip(core.shape[1:], (a, b), strict=True))
    return f.swapaxes(1, 2) @ np.square(core) @ g


def _are_inside(most: int, sizes: np.ndarray) -> Array:
    """1 for functions that are among the first so many, (P, r), else 0, (P, most, r)."""
    return (np.arange(most)[:, None] < sizes[:, None]).astype(np.float64)


def rung_weights(sizes: np.ndarray, unordered: np.ndarray | bool = False) -> Array:
    """How much each rung weighs, (P, rungs); nothing where it repeats the one before.

    Chance spreads the energy of a block by the root of its size. But of labels, (P,), none are smoother than others:
    all of them, whose energy is the chi-square of a table, weigh as much as all smaller sets together.
    """
    is_new = np.diff(sizes, axis=1, prepend=0) > 0
    smaller = np.maximum(is_new.sum(axis=1) - 1, 1)[:, None]
    alike = np.where(sizes == sizes[:, -1:], smaller, 1.0)
    weights = np.where(np.reshape(unordered, (-1, 1)), alike, 1 / np.sqrt(np.maximum(sizes, 1)))
    return np.where(is_new, weights, 0.0)


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
