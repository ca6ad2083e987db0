"""Orthonormal coordinates of growing spans, and projections, in the inner product of the metric distribution.

A *flag* is a sequence of spans each inside the next. Its basis is orthonormal and adapted to it: the first `ends[i]`
columns span the i-th span, so the columns from `ends[i-1]` to `ends[i]` span its orthogonal complement in it,
F_i [-] F_{i-1}. Every decomposition of the paper is a singular value decomposition in such coordinates.

Ranks are revealed, not assumed: directions that are collinear with others up to rounding are left out, so constant,
repeated or collinear features do no harm. Features known through moments are centred; the constant function belongs to
every span of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from featgeo.geometry.moments import Moments
from featgeo.geometry.validation import Array, as_features, as_names, check_ridge
from featgeo.schema import saved

# The one tolerance for collinearity. What is left of a unit vector once it was made orthogonal to others is called
# collinear with them below this; so is its energy, its squared length, where only a Gram matrix is known: rounding is
# larger there, and a direction weaker than 1e-5 of its features cannot be told from noise.
COLLINEAR = 1e-10
# A mean of m features is known to a few units in the last place; a spread below that is a constant's rounding.
CONSTANT_SPREAD = 64 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Flag:
    """An orthonormal basis adapted to a growing sequence of spans.

    Attributes:
        basis: Shape (d, r): each column is one function, as coefficients of the d features (or as a vector).
        ends: The dimension of each span; `ends[-1]` is r.
        energies: What the features themselves hold of each column, (r,): its squared length before it was made a unit
            vector, for features of unit norm. A ridge shrinks weak columns the most.
    """

    basis: Array | sparse.csr_array
    ends: tuple[int, ...]
    energies: Array

    def shrinkage(self, ridge: float) -> Array:
        """The length, (r,), that a ridge leaves of each column: sqrt(energy / (energy + ridge))."""
        ridge = check_ridge(ridge)
        return np.sqrt(self.energies / (self.energies + ridge))

    def shrunk(self, ridge: float) -> Array:
        """The basis with each column as long as a ridge leaves it."""
        return self.basis * self.shrinkage(ridge)


def flag_from_vectors(groups: Sequence[Array]) -> Flag:
    """The flag of spans that grow by groups of vectors, under the Euclidean inner product.

    Args:
        groups: One array (d, m_i) for each step; a step may bring no column.
    """
    basis, energies = np.empty((groups[0].shape[0], 0)), np.empty(0)
    ends = []
    for group in groups:
        size = np.abs(group).max(axis=0, initial=0)
        unit = group[:, size > 0] / size[size > 0]  # first by size: squares of huge or tiny numbers are not numbers
        unit = unit / np.linalg.norm(unit, axis=0)
        for _ in range(2):  # twice is enough: the second pass removes what rounding left of the first
            unit = unit - basis @ (basis.T @ unit)
        left, length, _ = np.linalg.svd(unit, full_matrices=False)
        kept = length > COLLINEAR
        basis, energies = np.hstack([basis, left[:, kept]]), np.concatenate([energies, length[kept] ** 2])
        ends.append(basis.shape[1])
    return Flag(basis, tuple(ends), energies)


def flag_from_gram(gram: Array, sizes: Sequence[int]) -> Flag:
    """The flag of spans of features that are known only through their Gram matrix.

    Args:
        gram: Positive semidefinite Gram matrix of all features, (d, d).
        sizes: How many features each step brings, in order; they add up to d.
    """
    unit_gram, scale = _scaled(gram)
    basis = np.empty((len(scale), 0))
    all_energies = np.empty(0)
    ends, start = [], 0
    for size in sizes:
        step = np.zeros((len(scale), size))
        step[start : start + size] = np.eye(size)
        step = step - basis @ (basis.T @ unit_gram[:, start : start + size])
        energies, directions = np.linalg.eigh(step.T @ unit_gram @ step)
        kept = energies > COLLINEAR
        energies, directions = energies[kept][::-1], step @ directions[:, kept][:, ::-1]
        basis = np.hstack([basis, directions / np.sqrt(energies)])
        all_energies = np.concatenate([all_energies, energies])
        ends.append(basis.shape[1])
        start += size
    return Flag(basis / scale[:, None], tuple(ends), all_energies)


def consistent_covariance(moments: Moments, names: Sequence[str]) -> tuple[Array, float]:
    """The covariance of several blocks as a positive semidefinite matrix, and the share of energy that had to go.

    Moments of the same rows fit together. Where blocks miss in some rows, they come from different rows and need not:
    then this is the nearest matrix that does, for features scaled to unit variance. Constant features get exact zeros.
    """
    covariance = moments.joint_covariance(names, names)
    constant = np.sqrt(np.diag(covariance)) <= CONSTANT_SPREAD * np.abs(moments.joint_mean(names))
    covariance[constant] = covariance[:, constant] = 0
    unit, scale = _scaled(covariance)
    try:
        np.linalg.cholesky(unit + COLLINEAR * np.eye(len(unit)))
    except np.linalg.LinAlgError:
        energies, directions = np.linalg.eigh(unit)
        kept = energies.clip(min=0)
        mended = (directions * kept) @ directions.T
        back = np.where(np.isfinite(scale), scale, 0)
        return mended * np.outer(back, back), float((kept - energies).sum() / kept.sum())
    return covariance, 0.0


def _scaled(gram: Array) -> tuple[Array, Array]:
    """The Gram matrix of features scaled to unit norm, and their norms; infinite for zero features, which drop out."""
    norms = np.sqrt(np.diag(gram).clip(min=0))
    scale = np.where(norms > 0, norms, np.inf)
    return gram / scale / scale[:, None], scale


@saved
@dataclass(frozen=True, eq=False)
class AffineFeatures:
    """Features inside a span: z -> offset + (z - centre) @ weight, for rows z of the span's features.

    Attributes:
        centre: Means of the span's features, (d,).
        weight: One column a feature, (d, k).
        offset: Means of the resulting features, (k,).
        removed: Share of energy by which the moments behind it did not fit together and were mended; 0 for complete
            rows. Values well above 0 mean that too few rows carry the blocks together.
    """

    centre: Array
    weight: Array
    offset: Array
    removed: float = 0.0

    def __call__(self, features: Any) -> Array:
        """Evaluate at rows of the span's features, an array or tensor (n, d) -> (n, k)."""
        rows = as_features(features, "features").cpu().numpy()
        if rows.shape[1] != len(self.centre):
            raise ValueError(
                f"These features are functions of {len(self.centre)} columns, got shape {rows.shape}. "
                "Pass the same blocks, side by side, in the order of the fit."
            )
        return self.offset + (rows - self.centre) @ self.weight

    def first(self, k: int) -> AffineFeatures:
        """The first k of the features."""
        return AffineFeatures(self.centre, self.weight[:, :k], self.offset[:k], self.removed)


def project(moments: Moments, target: str, onto: str | Sequence[str], ridge: float = 0.0) -> AffineFeatures:
    """The projection of each dimension of a block onto the span of the constant and other blocks.

    This is its best approximation there in mean square; what is left over, the target minus this, lies in the
    orthogonal complement.

    Args:
        moments: Moments that hold the target with each block of `onto`.
        target: The block to project, dimension k.
        onto: The blocks that span the subspace, dimensions adding up to d; none for the constant alone.
        ridge: Shrinkage, relative to features of unit variance.
    """
    names = as_names(onto)
    covariance, removed = consistent_covariance(moments, (*names, target))
    d = len(covariance) - moments.dims[target]
    basis = flag_from_gram(covariance[:d, :d], [d]).shrunk(ridge)
    weight = basis @ (basis.T @ covariance[:d, d:])
    return AffineFeatures(moments.joint_mean(names), weight, moments.mean(target), removed)


def complement(moments: Moments, target: str, onto: str | Sequence[str], ridge: float = 0.0) -> AffineFeatures:
    """An orthonormal basis of what a block adds to the span of the constant and other blocks.

    Args:
        moments: Moments that hold the target with each block of `onto`.
        target: The block whose span is split.
        onto: The blocks to be orthogonal to; exactly so on the moments, whatever the ridge.
        ridge: Shrinkage of the basis, relative to features of unit variance.

    Returns:
        Features of the blocks `onto` and `target`, side by side; as many as there are new directions.
    """
    names = (*as_names(onto), target)
    covariance, removed = consistent_covariance(moments, names)
    d = moments.dims[target]
    flag = flag_from_gram(covariance, [len(covariance) - d, d])
    weight = flag.shrunk(ridge)[:, flag.ends[0] :]
    return AffineFeatures(moments.joint_mean(names), weight, np.zeros(weight.shape[1]), removed)
