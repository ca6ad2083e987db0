"""P-values of no dependence from the energies of leading blocks of functions, from smooth to rough.

Under independence the entries of a core, times the root of n, are about standard normal; so the energy of a block is
compared with chi-square. Where functions rest on few rows, its variance exceeds that of chi-square by what fourth
moments tell, and a scaled chi-square of that variance takes its place. The tails of all blocks are joined by the mean
of their Cauchy scores, which is a Cauchy score again, however they depend (Y. Liu and J. Xie (2020), JASA 115:393).
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

RUNGS = np.array([1, 2, 4, 8, 16, 32])  # of functions whose blocks are tested: doubling, as evidence does


def rungs(sizes: np.ndarray) -> np.ndarray:
    """How many functions each block of a ladder holds, (P, rungs), where there are so many, (P,)."""
    return np.minimum.outer(sizes, RUNGS)


def block_tail(energy: Array, means: Array, spreads: Array, new: tuple[np.ndarray, np.ndarray]) -> Array:
    """The joint tail probability of the energies of blocks, (P,).

    Args:
        energy: Of each block, (P, rungs, rungs).
        means: Of that where there is no dependence.
        spreads: Its variance there.
        new: Which rungs of either side bring functions, (P, rungs) each; others repeat the one before.
    """
    counts = new[0][:, :, None] & new[1][:, None, :] & (means > 0) & (spreads > 0)
    means, spreads = (np.where(counts, values, 1.0) for values in (means, spreads))
    scale = spreads / (2 * means)  # of a chi-square with the same mean and variance
    tails = np.where(counts, chdtrc(means / scale, energy / scale), 0.5)
    scores = np.where(counts, cauchy_score(tails), 0.0).sum(axis=(1, 2))
    weight = counts.sum(axis=(1, 2))
    return np.where(weight > 0, cauchy_tail(scores / np.maximum(weight, 1)), 1.0)


def at_rungs(energy: Array, a: np.ndarray, b: np.ndarray) -> Array:
    """Of leading blocks, (P, k, l), those of rungs that hold so many functions, (P, rungs) each."""
    place = np.arange(len(energy))[:, None, None]
    return energy[place, np.maximum(a - 1, 0)[:, :, None], np.maximum(b - 1, 0)[:, None, :]]


def are_new(sizes: np.ndarray) -> np.ndarray:
    """Which rungs bring functions, (P, rungs)."""
    return np.diff(sizes, axis=1, prepend=0) > 0


def kurtosis_so_far(functions: Array, margin: Array) -> Array:
    """Fourth moments of functions of unit variance, the largest so far, (P, k); infinite beyond the last."""
    fourth = np.einsum("pa,pak->pk", margin, np.square(np.square(functions)))
    return np.where(fourth > 0, np.maximum.accumulate(fourth, axis=1), np.inf)


def ample_sizes(of_f: Array, of_g: Array, n: Array) -> tuple[np.ndarray, np.ndarray]:
    """How many functions of either side rest on enough rows for their products to be normal, (P,) each."""
    n_f, n_g = ((np.isfinite(fourth)).sum(axis=1) for fourth in (of_f, of_g))
    place = np.arange(len(n))
    for _ in range(of_f.shape[1] + of_g.shape[1]):
        last_f, last_g = of_f[place, np.maximum(n_f - 1, 0)], of_g[place, np.maximum(n_g - 1, 0)]
        few = (n_f > 0) & (n_g > 0) & (in_force.get().ample_count * last_f * last_g > n) & (n_f * n_g > 1)
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
