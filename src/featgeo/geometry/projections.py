"""What users ask of moments: dependences inside spans of features, projections onto them, and what they leave over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from featgeo.geometry.incomplete import span_problem
from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import AffineFeatures, Metric, Spaces, SpanModes, consistent_covariance, flag_from_gram
from featgeo.geometry.validation import as_names, check_ridge, shown


def decompose(moments: Moments, levels: Sequence[Spaces], ridge: float = 0.0) -> tuple[SpanModes, ...]:
    """The dependence inside growing spans, level by level, in closed form.

    Level i may use functions in the span of its blocks of x and of its blocks of y (and constants, which belong to
    every span). The component of a level is the dependence that its spans capture and the spans before it do not; each
    is returned as its modal decomposition (Prop. md:constraint, Theorem sspc:opt:n). One level with one block a side is
    the plain modal decomposition inside spans; over features linear in the data it is canonical correlation analysis.

    With a ridge the features have unit norm under the Gram matrix plus ridge, and sigma is shrunk accordingly. Blocks
    that miss in some rows may not fit together; their moments are mended, and `SpanModes.removed` says by how much.

    Args:
        moments: Moments of all blocks named in the levels.
        levels: (names of x blocks, names of y blocks) for each level, each containing the names of the level before.
        ridge: Shrinkage, relative to features of unit variance.

    Returns:
        One `SpanModes` a level, with all modes of non-zero singular value.
    """
    if not isinstance(moments, Moments):
        raise ValueError(f"`moments` must be Moments, got {type(moments).__name__}. Use Moments.from_features.")
    pairs = isinstance(levels, Sequence) and all(
        isinstance(level, tuple | list) and len(level) == 2 for level in levels
    )
    if not pairs or not levels:
        raise ValueError(
            "`levels` must list pairs (names of blocks of x, names of blocks of y), such as [('x', 'y')], got "
            f"{shown(levels)}."
        )
    check_ridge(ridge)
    return span_problem(moments, levels).modes(ridge)


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
    metric = Metric.of(moments, ((*as_names(onto), target),))
    own = np.eye(len(metric.mean))[:, metric.columns([target])]
    return replace(metric.onto(as_names(onto), own, ridge), offset=moments.mean(target))


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
