"""Orthonormal coordinates of growing spans, and projections, in the inner product of the metric distribution.

A *flag* is a sequence of spans each inside the next. Its basis is orthonormal and adapted to it: the first `ends[i]`
columns span the i-th span, so the columns from `ends[i-1]` to `ends[i]` span its orthogonal complement in it,
F_i [-] F_{i-1}. Every decomposition of the paper is a singular value decomposition in such coordinates.

Ranks are revealed, not assumed: directions whose energy is rounding noise are left out, so constant, repeated or
collinear features do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from featgeo.geometry.moments import Moments
from featgeo.geometry.validation import Array, check_ridge

# What is left of a unit vector, or of unit energy in a Gram matrix, once it was made orthogonal to others: below this
# it is called collinear with them.
COLLINEAR = 1e-10


@dataclass(frozen=True, eq=False)
class Flag:
    """An orthonormal basis adapted to a growing sequence of spans.

    Attributes:
        basis: Shape (d, r): each column is one function, as coefficients of the d features (or as a vector).
        ends: The dimension of each span; `ends[-1]` is r.
        removed: Share of negative energy that was cut out of an indefinite Gram matrix; 0 for complete data.
    """

    basis: Array | sparse.csr_array
    ends: tuple[int, ...]
    removed: float = 0.0


def flag_from_vectors(groups: Sequence[Array]) -> Flag:
    """The flag of spans that grow by groups of vectors, under the Euclidean inner product.

    Args:
        groups: One array (d, m_i) for each step; a step may bring no column.
    """
    basis = np.empty((groups[0].shape[0], 0))
    ends = []
    for group in groups:
        norms = np.linalg.norm(group, axis=0)
        unit = group[:, norms > 0] / norms[norms > 0]
        for _ in range(2):  # twice is enough: the second pass removes what rounding left of the first
            unit = unit - basis @ (basis.T @ unit)
        left, length, _ = np.linalg.svd(unit, full_matrices=False)
        basis = np.hstack([basis, left[:, length > COLLINEAR]])
        ends.append(basis.shape[1])
    return Flag(basis, tuple(ends))


def flag_from_gram(gram: Array, sizes: Sequence[int], ridge: float = 0.0, noise: Array | None = None) -> Flag:
    """The flag of spans of features that are known only through their Gram matrix.

    Each step is made orthogonal to the steps before it without any ridge, so the orthogonality of the components is
    exact; the ridge then shrinks the step's own directions, weak ones the most.

    Args:
        gram: Gram matrix of all features, (d, d).
        sizes: How many features each step brings, in order; they add up to d.
        ridge: Added to the Gram matrix of features scaled to unit norm.
        noise: Energy of each feature below which it counts as zero, (d,); rounding of a large mean, for example.
    """
    ridge = check_ridge(ridge)
    energy = np.diag(gram).clip(min=0)
    scale = np.where(energy > (0 if noise is None else noise), np.sqrt(energy), np.inf)  # inf: the feature drops out
    unit_gram, removed = _positive_semidefinite(gram / np.outer(scale, scale))
    exact = np.empty((len(scale), 0))  # orthonormal without the ridge: what later steps must be orthogonal to
    basis = np.empty((len(scale), 0))
    ends, start = [], 0
    for size in sizes:
        step = np.zeros((len(scale), size))
        step[start : start + size] = np.eye(size)
        for _ in range(2):
            step = step - exact @ (exact.T @ (unit_gram @ step))
        energies, directions = np.linalg.eigh(step.T @ unit_gram @ step)
        kept = energies > COLLINEAR
        energies, directions = energies[kept][::-1], step @ directions[:, kept][:, ::-1]
        exact = np.hstack([exact, directions / np.sqrt(energies)])
        basis = np.hstack([basis, directions / np.sqrt(energies + ridge)])
        ends.append(basis.shape[1])
        start += size
    return Flag(basis / scale[:, None], tuple(ends), removed)


def flag_of_blocks(moments: Moments, steps: Sequence[Sequence[str]], ridge: float = 0.0) -> Flag:
    """The flag of spans that grow by blocks of centred features: step i adds the blocks named in `steps[i]`."""
    names = [name for step in steps for name in step]
    mean = moments.joint_mean(names)
    rounding = (64 * np.finfo(np.float64).eps * mean) ** 2
    sizes = [sum(moments.dims[name] for name in step) for step in steps]
    return flag_from_gram(moments.joint_covariance(names, names), sizes, ridge, noise=rounding)


def _positive_semidefinite(gram: Array) -> tuple[Array, float]:
    """The nearest positive semidefinite matrix, and the share of energy that had to go.

    Blocks estimated from different rows need not fit together; blocks from the same rows always do.
    """
    energies, directions = np.linalg.eigh(gram)
    if energies.size == 0 or energies[0] >= -COLLINEAR:
        return gram, 0.0
    kept = energies.clip(min=0)
    return (directions * kept) @ directions.T, float(-energies[energies < 0].sum() / kept.sum())


@dataclass(frozen=True, eq=False)
class AffineFeatures:
    """Features inside a span: z -> offset + (z - centre) @ weight, for rows z of the span's features.

    Attributes:
        centre: Means of the span's features, (d,).
        weight: One column a feature, (d, k).
        offset: Means of the resulting features, (k,).
    """

    centre: Array
    weight: Array
    offset: Array

    def __call__(self, features: Array) -> Array:
        """Evaluate at rows of the span's features, (n, d) -> (n, k)."""
        if features.ndim != 2 or features.shape[1] != len(self.centre):
            raise ValueError(
                f"These features are functions of {len(self.centre)} columns, got shape {features.shape}. "
                "Pass the same blocks, side by side, in the order of the fit."
            )
        return self.offset + (features - self.centre) @ self.weight


def complement(moments: Moments, target: str, onto: Sequence[str], ridge: float = 0.0) -> AffineFeatures:
    """An orthonormal basis of what a block adds to the span of the constant and other blocks.

    Args:
        moments: Moments that hold the target with each block of `onto`.
        target: The block whose span is split.
        onto: The blocks to be orthogonal to; exactly so on the moments, whatever the ridge.
        ridge: Shrinkage of the basis, relative to features of unit variance.

    Returns:
        Features of the blocks `onto` and `target`, side by side; as many as there are new directions.
    """
    flag = flag_of_blocks(moments, [tuple(onto), (target,)], ridge)
    weight = flag.basis[:, flag.ends[0] :]
    return AffineFeatures(moments.joint_mean([*onto, target]), weight, np.zeros(weight.shape[1]))


def project(moments: Moments, target: str, onto: Sequence[str], ridge: float = 0.0) -> AffineFeatures:
    """The projection of each dimension of a block onto the span of the constant and other blocks.

    This is its best approximation there in mean square; what is left over, the target minus this, lies in the
    orthogonal complement.

    Args:
        moments: Moments that hold the target with each block of `onto`.
        target: The block to project, dimension k.
        onto: The blocks that span the subspace, dimensions adding up to d.
        ridge: Shrinkage, relative to features of unit variance.
    """
    flag = flag_of_blocks(moments, [tuple(onto)], ridge)
    weight = flag.basis @ (flag.basis.T @ moments.joint_covariance(onto, target))
    return AffineFeatures(moments.joint_mean(onto), weight, moments.mean(target))
