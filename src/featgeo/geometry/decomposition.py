"""The one closed form: the dependence inside growing spans, decomposed level by level.

With A and B the Gram matrices of the features of x and of y and C their covariance, take bases T_x, T_y that are
orthonormal (T_x^T A T_x = I, T_y^T B T_y = I) and adapted to the levels, and decompose the blocks of T_x^T C T_y: it is
the maximiser of the nested H-score inside the spans wherever spans grow on one side (Theorems sspc:opt, sspc:opt:n).

Where both sides grow, the levels compete for the joint objective and no common maximiser need exist. Then each level is
the best addition to the levels before it, which is what the sequential objective maximises.

`featgeo.geometry.problem` does the work.
"""

from __future__ import annotations

from collections.abc import Sequence

from featgeo.geometry.incomplete import span_problem
from featgeo.geometry.moments import Moments
from featgeo.geometry.problem import SpanModes
from featgeo.geometry.validation import check_ridge, shown


def decompose(
    moments: Moments,
    levels: Sequence[tuple[str | Sequence[str], str | Sequence[str]]],
    ridge: float = 0.0,
) -> tuple[SpanModes, ...]:
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
