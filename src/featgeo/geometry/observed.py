"""What rows that carry only some blocks see of the functions of all of them.

Such a row sees a function f through tau(f), its conditional expectation given what is there: the projection onto the
span of the blocks that the row carries, in the metric R of all sources together (eq. tau:i:def). For rows of several
kinds D with shares eta_D, the density ratio that fits all of them best (eq. L:bi, eq. hsm:def) solves

    (sum_D eta_D tau_D) l = sum_D eta_D l_D,

one linear system on the x side. Complete rows give tau = 1; pairs of single sources with y give the bivariate component
and nothing else (eq. Hs:fb:gb); everything in between is the heterogeneous objective.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import AffineFeatures, Flag, consistent_covariance, flag_from_gram
from featgeo.geometry.validation import Array
from featgeo.schema import NOT_SAVED, saved

# Blocks are taken from the rows that carry all of them, unless some pair is seen this many times more often.
MORE_PAIRS = 2.0


@dataclass(frozen=True, eq=False)
class Patterns:
    """Moments of rows that do not all carry the same blocks, kept apart by what they carry; merged by addition.

    Attributes:
        parts: For each set of blocks the moments of the rows that carry exactly these.
        memo: Blocks that were whitened.
    """

    parts: Mapping[frozenset[str], Moments]
    memo: dict[tuple[tuple[str, ...], ...], Metric] = field(default_factory=dict, repr=False)

    @classmethod
    def merged(cls, several: Iterable[Patterns | Moments]) -> Patterns:
        """The moments of all these rows."""
        collected: dict[frozenset[str], list[Moments]] = {}
        for one in several:
            parts = {frozenset(one.dims): one} if isinstance(one, Moments) else one.parts
            for names, moments in parts.items():
                collected.setdefault(names, []).append(moments)
        return cls({names: Moments.merged(moments) for names, moments in collected.items()})

    @cached_property
    def all(self) -> Moments:
        """Moments of all rows, each pair of blocks over the rows that carry both."""
        return Moments.merged(self.parts.values())

    @property
    def dims(self) -> Mapping[str, int]:
        """The dimension of each block, by name."""
        return self.all.dims

    def metric(self, names: Sequence[str], first: Sequence[str] = ()) -> Moments:
        """Moments that stand for the joint distribution of the blocks.

        Those of the rows that carry all of them; where some pair is seen together much more often than all are, each
        pair over the rows that carry both.

        Args:
            names: The blocks.
            first: Those whose pairs are counted, all when empty: what later levels add is not to change the metric of
                the first.
        """
        complete = [moments for carried, moments in self.parts.items() if carried.issuperset(names)]
        if not complete or not names:
            return self.all
        whole = Moments.merged(complete)
        fewest = min(self.all.weight(a, b) for a in first or names for b in first or names)
        return self.all if fewest > MORE_PAIRS * whole.weight(names[0]) else whole

    def whitened(self, levels: tuple[tuple[str, ...], ...]) -> Metric:
        """Blocks with an orthonormal basis of their functions, adapted to levels that add them; made once, and kept."""
        if levels not in self.memo:
            names = sum(levels, ())
            self.memo[levels] = Metric.of(self.metric(names, levels[0]), levels)
        return self.memo[levels]

    def joined(self, others: Patterns) -> Patterns:
        """The same rows, all complete, with more blocks; what was whitened stays."""
        (own,), (more,) = self.parts.values(), others.parts.values()
        both = own.joined(more)
        return Patterns({frozenset(both.dims): both}, self.memo)

    def carrying(self, y: Sequence[str], x: Sequence[str]) -> list[tuple[tuple[str, ...], Moments]]:
        """The kinds of rows that carry y and some blocks of x: which, in order, and their moments."""
        kinds = [(tuple(name for name in x if name in part), part) for part in self.parts if part.issuperset(y)]
        return [(seen, self.parts[part]) for seen, part in kinds if seen]


@saved
@dataclass(frozen=True, eq=False)
class Metric:
    """The inner product of functions of several blocks: means and the Gram matrix of their features.

    Attributes:
        levels: The blocks that each level adds, in order.
        sizes: How many features each block has.
        mean: Means of the features, side by side, (d,).
        gram: Their covariance, (d, d), positive semidefinite.
        removed: Share of energy by which moments of different rows did not fit together.
        memo: Bases of spans that were asked for.
    """

    levels: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...]
    mean: Array
    gram: Array
    removed: float = 0.0
    memo: dict[tuple[str, ...], tuple[np.ndarray, Flag]] = field(default_factory=dict, repr=False, metadata=NOT_SAVED)

    @classmethod
    def of(cls, moments: Moments, levels: tuple[tuple[str, ...], ...]) -> Metric:
        """From moments that know every pair of the blocks.

        Moments of different rows need not fit together. Then those of the first level are mended by themselves, as if
        there were no other; a flag leaves out what later levels would add of negative energy.

        Args:
            moments: Means and covariances.
            levels: The blocks that each level adds.
        """
        names = sum(levels, ())
        gram, removed = consistent_covariance(moments, names)
        if removed and len(levels[0]) < len(names):
            varies = np.diag(gram) > 0
            gram = moments.joint_covariance(names, names) * np.outer(varies, varies)
            own, _ = consistent_covariance(moments, levels[0])
            gram[: len(own), : len(own)] = own
        return cls(levels, tuple(moments.dims[name] for name in names), moments.joint_mean(names), gram, removed)

    @property
    def names(self) -> tuple[str, ...]:
        """All blocks, in order."""
        return sum(self.levels, ())

    @property
    def flag(self) -> Flag:
        """An orthonormal basis of all functions, adapted to the levels."""
        return self.seen(self.names)[1]

    def columns(self, names: Sequence[str]) -> np.ndarray:
        """Positions of the features of some blocks, in the order of the metric."""
        return np.flatnonzero(np.repeat([name in names for name in self.names], self.sizes))

    def seen(self, names: Sequence[str]) -> tuple[np.ndarray, Flag]:
        """The features of some blocks, by position, and an orthonormal basis of their span, adapted to the levels."""
        key = tuple(name for name in self.names if name in names)
        if key not in self.memo:
            columns, size = self.columns(key), dict(zip(self.names, self.sizes, strict=True))
            sizes = [sum(size[name] for name in level if name in key) for level in self.levels]
            self.memo[key] = columns, flag_from_gram(self.gram[np.ix_(columns, columns)], sizes)
        return self.memo[key]

    def onto(self, names: Sequence[str], weight: Array, ridge: float = 0.0) -> AffineFeatures:
        """The projection tau of functions onto the span of some blocks, as functions of these.

        Args:
            names: The blocks that are there.
            weight: The functions, of mean 0, as coefficients of all features, (d, k).
            ridge: Shrinkage of what is there about what is not, relative to features of unit variance.
        """
        columns, flag = self.seen(names)
        own, others = weight[columns], weight.copy()
        others[columns] = 0
        basis = flag.shrunk(ridge)
        projected = own + basis @ (basis.T @ (self.gram[columns] @ others))
        return AffineFeatures(self.mean[columns], projected, np.zeros(weight.shape[1]), self.removed)
