"""Orthonormal coordinates of growing spans, and projections, in the inner product of the metric distribution.

A *flag* is a sequence of spans each inside the next. Its basis is orthonormal and adapted to it: the first `ends[i]`
columns span the i-th span, so the columns from `ends[i-1]` to `ends[i]` span its orthogonal complement in it,
F_i [-] F_{i-1}. Every decomposition of the paper is a singular value decomposition in such coordinates.

Ranks are revealed, not assumed: directions that are collinear with others up to rounding are left out, so constant,
repeated or collinear features do no harm. Features known through moments are centred; the constant function belongs to
every span of them.

Modes: a function of two variables as a sum of products, gamma = sum_i sigma_i f_i (x) g_i, strongest first.

Conventions, fixed for the whole library:

- sigma_1 >= sigma_2 >= ... > 0, and f_i, g_i are orthonormal under the metric distributions of x and y.
- A product does not change when f_i and g_i both change sign. We take the sign that makes the largest entry of the
  information vector sqrt(p(x)) f_i(x) positive; among entries that tie to six digits, the first decides.
- Functions are defined up to sets of probability zero; at symbols that never occur they are set to 0, so that
  1 + sum_i sigma_i f_i(x) g_i(y) answers "no change from the prior" there.
- Where singular values coincide, single modes are arbitrary rotations of each other: `Modes.blocks` groups them, and
  only sums over a block mean anything.

What rows that carry only some blocks see of the functions of all of them.

Such a row sees a function f through tau(f), its conditional expectation given what is there: the projection onto the
span of the blocks that the row carries, in the metric R of all sources together (eq. tau:i:def). For rows of several
kinds D with shares eta_D, the density ratio that fits all of them best (eq. L:bi, eq. hsm:def) solves

    (sum_D eta_D tau_D) l = sum_D eta_D l_D,

one linear system on the x side. Complete rows give tau = 1; pairs of single sources with y give the bivariate component
and nothing else (eq. Hs:fb:gb); everything in between is the heterogeneous objective.

The one closed form: the dependence inside growing spans, decomposed level by level.

With A and B the Gram matrices of the features of x and of y and C their covariance, take bases T_x, T_y that are
orthonormal (T_x^T A T_x = I, T_y^T B T_y = I) and adapted to the levels, and decompose the blocks of T_x^T C T_y: it is
the maximiser of the nested H-score inside the spans wherever spans grow on one side (Theorems sspc:opt, sspc:opt:n).

Where both sides grow, the levels compete for the joint objective and no common maximiser need exist. Then each level is
the best addition to the levels before it, which is what the sequential objective maximises.

A ridge shrinks sigma and leaves f and g shorter than 1. `SpanProblem.best_directions` uses it only to choose, and then
decomposes the dependence inside the few directions chosen without any (Rayleigh and Ritz): features of unit variance,
singular values that are correlations, f_i and g_j uncorrelated for i != j. The last has a price: modes of similar
strength turn towards each other until not even noise correlates f_i with g_j on the rows at hand. "Steady" modes do not
turn: they stay those under the ridge, only made orthonormal, from the strongest on. Then f_i and g_j may correlate a
little.

Both sides come whitened (below). Rows that miss blocks of x have problems of their own
(`featgeo.geometry.incomplete`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import block_diag

from featgeo.card import Card, Shown
from featgeo.geometry.moments import Moments
from featgeo.geometry.validation import Array, as_features, as_names, check_growth, check_mode_count, check_ridge
from featgeo.schema import NOT_SAVED, saved
from featgeo.tuning import in_force

SHOWN_MODES = 20  # of a long table


@dataclass(frozen=True, eq=False, repr=False)
class Spectrum(Shown):
    """Singular values, strongest first; print it for a table.

    Attributes:
        sigma: Shape (k,).
    """

    sigma: Array

    def __len__(self) -> int:
        return len(self.sigma)

    @property
    def energy(self) -> float:
        """Squared norm of what was decomposed, sum_i sigma_i^2."""
        return float(np.sum(self.sigma**2))

    def card(self) -> Card:
        """Strengths of the modes and their shares of the energy."""
        total = max(self.energy, np.finfo(float).tiny)
        strongest = enumerate(self.sigma[:SHOWN_MODES].tolist(), start=1)
        rows = [(str(i), f"{sigma:.4f}", f"{sigma**2 / total:.1%}") for i, sigma in strongest]
        title = f"{len(self)} mode{'s' * (len(self) != 1)}, energy {self.energy:.4f}"
        more = f", the first {SHOWN_MODES} of them" if len(self) > SHOWN_MODES else ""
        return Card([title + more], ("mode", "sigma", "share"), rows)

    def blocks(self, tolerance: float = 1e-8) -> tuple[range, ...]:
        """Groups of modes whose singular values are equal up to `tolerance`, relative to the largest."""
        breaks = np.flatnonzero(-np.diff(self.sigma) > tolerance * self.sigma.max(initial=0)) + 1
        edges = [0, *breaks.tolist(), len(self.sigma)]
        return tuple(range(start, stop) for start, stop in pairwise(edges) if stop > start)


@dataclass(frozen=True, eq=False, repr=False)
class Modes(Spectrum):
    """The modal decomposition of a function on X x Y, by its values.

    Attributes:
        sigma: Singular values, (k,), strongest first.
        f: Values of f_1, ..., f_k at each symbol of x, (*shape of x, k).
        g: Values of g_1, ..., g_k at each symbol of y, (*shape of y, k).
    """

    f: Array
    g: Array

    def kernel(self) -> Array:
        """The function itself, sum_i sigma_i f_i(x) g_i(y), shape (*shape of x, *shape of y)."""
        return np.tensordot(self.f * self.sigma, self.g, axes=(-1, -1))

    def top(self, k: int | None) -> Modes:
        """The k strongest modes, the best approximation of rank k; all of them when None."""
        return self.first(check_mode_count(k, len(self)))

    def first(self, k: int) -> Modes:
        """The first k modes, or fewer where there are fewer."""
        return Modes(self.sigma[:k], self.f[..., :k], self.g[..., :k])


def sign_of_columns(vectors: Array) -> Array:
    """The signs, (k,), that make the largest entry of each column positive."""
    if vectors.size == 0:
        return np.ones(vectors.shape[1])
    size = np.abs(vectors)
    decisive = np.argmax(size >= (1 - 1e-6) * size.max(axis=0), axis=0)
    return np.where(np.take_along_axis(vectors, decisive[None], axis=0)[0] < 0, -1.0, 1.0)


def level_modes(core: Array, x_ends: Sequence[int], y_ends: Sequence[int]) -> list[tuple[Array, Array, Array]]:
    """Split a matrix in flag coordinates into the components of its levels and decompose each.

    Level i may use the first `x_ends[i]` rows and `y_ends[i]` columns. Its component is what it adds to the level
    before, the border of a growing rectangle: where only the rows grow, the new rows (Theorem sspc:opt); where only
    the columns grow, the new columns. The components are orthogonal and add up to the whole.

    Returns:
        For each level its left vectors (r_x, k), non-zero singular values (k,), and right vectors (r_y, k), in
        coordinates of the whole flags.
    """
    components = []
    last_x = last_y = 0
    for end_x, end_y in zip(x_ends, y_ends, strict=True):
        border = core[:end_x, :end_y].copy()
        border[:last_x, :last_y] = 0
        # Rows (or columns) that only repeat the level before hold zeros: leave them out, so orthogonality is exact.
        first_row = last_x if end_y == last_y else 0
        first_column = last_y if end_x == last_x else 0
        u, sigma, vt = np.linalg.svd(border[first_row:, first_column:], full_matrices=False)
        k = int(np.sum(sigma > COLLINEAR))
        left, right = np.zeros((core.shape[0], k)), np.zeros((core.shape[1], k))
        left[first_row:end_x], right[first_column:end_y] = u[:, :k], vt[:k].T
        components.append((left, sigma[:k], right))
        last_x, last_y = end_x, end_y
    return components


def correlations(f: Array, g: Array) -> Array:
    """Of f_i and g_i, (k,); 0 where one of them is constant."""
    f, g = f - f.mean(axis=0), g - g.mean(axis=0)
    spread = np.sqrt((f * f).sum(axis=0) * (g * g).sum(axis=0))
    return np.divide((f * g).sum(axis=0), spread, out=np.zeros(f.shape[1]), where=spread > 0)


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
        return np.sqrt(self.energies / (self.energies + check_ridge(ridge)))

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
        energies, directions = np.linalg.eigh(step.T @ unit_gram @ step if start else unit_gram[:size, :size])
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


class LevelChoice(NamedTuple):
    """What is settled about a level.

    Attributes:
        n_modes: How many modes it keeps at most; None for all, and then there is nothing for a ridge to choose.
        ridge: By which directions are chosen, relative to features of unit variance.
        steady: Whether each mode stays what it is under the ridge, and is not turned inside the directions chosen.
            Rows that miss blocks are fitted anew in any case.
    """

    n_modes: int | None
    ridge: float = 0.0
    steady: bool = False


class Confirmed(NamedTuple):
    """What held-out rows confirm of the dependence between some blocks and others.

    Attributes:
        blocks: Names of these, and of the others.
        choice: How many of its modes, and the ridge that chooses them.
        strength: Of each mode, as a share of what it seems to be, (k,).
    """

    blocks: tuple[tuple[str, ...], tuple[str, ...]]
    choice: LevelChoice
    strength: Array


@dataclass(frozen=True, eq=False)
class Patterns:
    """Moments of rows that do not all carry the same blocks, kept apart by what they carry; merged by addition.

    Attributes:
        parts: For each set of blocks the moments of the rows that carry exactly these.
        confirmed: Dependences between blocks of which only a part counts.
        memo: Blocks that were whitened.
    """

    parts: Mapping[frozenset[str], Moments]
    confirmed: tuple[Confirmed, ...] = ()
    memo: dict[tuple[tuple[str, ...], ...], Metric] = field(default_factory=dict, repr=False)

    @classmethod
    def merged(cls, several: Iterable[Patterns | Moments]) -> Patterns:
        """The moments of all these rows."""
        collected: dict[frozenset[str], list[Moments]] = {}
        confirmed: tuple[Confirmed, ...] = ()
        for one in several:
            confirmed = one.confirmed if isinstance(one, Patterns) else confirmed
            parts = {frozenset(one.dims): one} if isinstance(one, Moments) else one.parts
            for names, moments in parts.items():
                collected.setdefault(names, []).append(moments)
        return cls({names: Moments.merged(moments) for names, moments in collected.items()}, confirmed)

    @cached_property
    def all(self) -> Moments:
        """Moments of all rows, each pair of blocks over the rows that carry both."""
        return Moments.merged(self.parts.values())

    @property
    def is_complete(self) -> bool:
        """Whether all rows carry all blocks."""
        return len(self.parts) == 1 and self.all.is_complete

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
        return self.all if fewest > in_force.get().more_pairs * whole.weight(names[0]) else whole

    def whitened(self, levels: tuple[tuple[str, ...], ...]) -> Metric:
        """Blocks with an orthonormal basis of their functions, adapted to levels that add them; made once, and kept."""
        if levels not in self.memo:
            names = sum(levels, ())
            metric = Metric.of(self.metric(names, levels[0]), levels)
            there = [one for one in self.confirmed if set(sum(one.blocks, ())) <= set(levels[0])]
            self.memo[levels] = metric.reduced(there) if there else metric
        return self.memo[levels]

    def joined(self, others: Patterns) -> Patterns:
        """The same rows, all complete, with more blocks; what was whitened stays."""
        (own,), (more,) = self.parts.values(), others.parts.values()
        both = own.joined(more)
        return Patterns({frozenset(both.dims): both}, self.confirmed, self.memo)

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
        tau_gram: The Gram matrix with only what is confirmed of the dependence between blocks; None for all of it.
        memo: Bases of spans that were asked for.
    """

    levels: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...]
    mean: Array
    gram: Array
    removed: float = 0.0
    tau_gram: Array | None = None
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

    def reduced(self, confirmed: Sequence[Confirmed]) -> Metric:
        """The same, with blocks that fill in for others as far as their dependence is confirmed.

        Where few rows carry both, most of what these show of their dependence is noise.
        """
        gram = self.gram.copy()
        for blocks, choice, strength in confirmed:
            (rows, x), (columns, y) = ((self.columns(names), self._only(names)) for names in blocks)
            core = x.flag.basis.T @ self.gram[np.ix_(rows, columns)] @ y.flag.basis
            ((left, sigma, right),) = SpanProblem(x, y, core, 0.0).best_directions([choice])
            k = min(len(sigma), len(strength))  # fewer rows may have fewer modes
            f, g = x.gram @ x.flag.basis @ left[:, :k], y.gram @ y.flag.basis @ right[:, :k]
            gram[np.ix_(rows, columns)] = (f * strength[:k] * sigma[:k]) @ g.T
            gram[np.ix_(columns, rows)] = gram[np.ix_(rows, columns)].T
        return replace(self, tau_gram=gram)

    def _only(self, names: Sequence[str]) -> Metric:
        """The inner product of functions of some blocks, as a level of their own."""
        columns = self.columns(names)
        sizes = tuple(size for name, size in zip(self.names, self.sizes, strict=True) if name in names)
        return Metric((tuple(names),), sizes, self.mean[columns], self.gram[np.ix_(columns, columns)])

    @property
    def between(self) -> Array:
        """Inner products of features that fill in for others with these."""
        return self.gram if self.tau_gram is None else self.tau_gram

    @property
    def names(self) -> tuple[str, ...]:
        """All blocks, in order."""
        return sum(self.levels, ())

    @cached_property
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

    def onto(self, names: Sequence[str], weight: Array, ridge: float = 0.0, level: int = 0) -> AffineFeatures:
        """The projection tau of functions onto the span of some blocks, as functions of these.

        Args:
            names: The blocks that are there.
            weight: The functions, of mean 0, as coefficients of all features, (d, k).
            ridge: Shrinkage of what is there about what is not, relative to features of unit variance.
            level: Of the functions. They are orthogonal to those of all levels before it, and so is what is seen of
                them, whatever the ridge.
        """
        columns, flag = self.seen(names)
        own, others = weight[columns], weight.copy()
        others[columns] = 0
        basis = flag.shrunk(ridge)
        projected = own + basis @ (basis.T @ (self.between[columns] @ others))
        before = flag.basis[:, : (0, *flag.ends)[level]]
        projected = projected - before @ (before.T @ self.gram[np.ix_(columns, columns)] @ projected)
        return AffineFeatures(self.mean[columns], projected, np.zeros(weight.shape[1]), self.removed)

    def through(self, names: tuple[str, ...], tau_ridge: float | None) -> Array:
        """What rows that carry only some blocks see of each direction, (r, r_seen): tau, in orthonormal coordinates.

        Functions of what is there are seen as they are, of others conditional expectations.

        Args:
            names: The blocks that are there.
            tau_ridge: Of what fills in for the others; None where the metric is taken for known.
        """
        columns, flag = self.seen(names)
        basis = self.flag.basis
        if tau_ridge is None:
            return np.asarray(basis.T @ self.gram[:, columns] @ flag.basis)
        own = basis[columns].T @ self.gram[np.ix_(columns, columns)] @ flag.basis
        missing = basis.copy()
        missing[columns] = 0
        inside = own + missing.T @ self.between[:, columns] @ flag.basis * flag.shrinkage(tau_ridge) ** 2
        # Of a level, only what is of that level: it is orthogonal to those before, and not filled in from those after.
        sizes = zip(np.diff(self.flag.ends, prepend=0), np.diff(flag.ends, prepend=0), strict=True)
        return np.asarray(inside * block_diag(*map(np.ones, sizes)))


Spaces = tuple[str | Sequence[str], str | Sequence[str]]  # names of blocks of x and of y
Factors = tuple[Array, Array]  # of a dependence f g^T, in coordinates of the flags: (r_x, k) and (r_y, k)
Directions = tuple[Array, Array, Array]  # of a level, in coordinates of the flags: (r_x, k), sigma (k,), (r_y, k)


@dataclass(frozen=True, eq=False, repr=False)
class SpanModes(Spectrum):
    """The modal decomposition inside spans of features.

    Attributes:
        sigma: Singular values, (k,), strongest first.
        f: The functions of x, as maps from the features of the blocks `x`, side by side.
        g: The functions of y, as maps from the features of the blocks `y`.
        x: Names of the blocks that f reads, in order.
        y: Names of the blocks that g reads, in order.

    The sign of a mode makes the largest coefficient of f, for features scaled to unit variance, positive.
    """

    f: AffineFeatures
    g: AffineFeatures
    x: tuple[str, ...]
    y: tuple[str, ...]

    def first(self, k: int) -> SpanModes:
        """The first k modes."""
        return replace(self, sigma=self.sigma[:k], f=self.f.first(k), g=self.g.first(k))

    @property
    def removed(self) -> float:
        """Share of energy by which moments of different rows did not fit together; 0 for complete rows."""
        return self.f.removed

    def at(self, x_features: Any, y_features: Any) -> Modes:
        """The same modes by their values at the given rows of features."""
        return Modes(self.sigma, self.f(x_features), self.g(y_features))


@dataclass(frozen=True, eq=False)
class SpanProblem:
    """A dependence inside growing spans.

    Attributes:
        x: The features of x, whitened by levels.
        y: The same for y.
        core: The dependence in their orthonormal coordinates, (r_x, r_y).
        removed: Share of energy by which the moments did not fit together.
        memo: What several choices share.
    """

    x: Metric
    y: Metric
    core: Array
    removed: float
    memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, patterns: Patterns, levels: Sequence[Spaces]) -> SpanProblem:
        """The dependence of complete rows; of others only the spans, both sides whitened, and no dependence yet."""
        x, y = (patterns.whitened(_growth([as_names(level[side]) for level in levels], "xy"[side])) for side in (0, 1))
        removed = max(x.removed, y.removed)
        if not patterns.is_complete:
            return cls(x, y, np.zeros((x.flag.ends[-1], y.flag.ends[-1])), removed)
        covariance = patterns.all.joint_covariance(x.names, y.names)
        return cls(x, y, x.flag.basis.T @ covariance @ y.flag.basis, removed)

    def modes(self, ridge: float = 0.0) -> tuple[SpanModes, ...]:
        """All modes of each level, under the Gram matrices plus ridge."""
        return tuple(map(self.span_modes, self.under_ridge(ridge)))

    def best_directions(self, choices: Sequence[LevelChoice]) -> list[Directions]:
        """The modes of the first levels: directions chosen with a ridge, decomposed inside them without it."""
        result = []
        for i, choice in enumerate(choices):
            if choice.n_modes is None:
                result.append(self.under_ridge(0.0)[i])
                continue
            left, right = self.chosen(i, choice)
            # Of a diagonal matrix singular vectors only put pairs in order, and make their correlations positive.
            result.append(inside(left, self.inside(i, choice), right))
        return result

    def dependence(self, choices: Sequence[LevelChoice]) -> Factors:
        """What the best directions tell, all levels together: for that they need not be turned into modes."""
        factors = []
        for i, choice in enumerate(choices):
            if choice.n_modes is None:
                left, sigma, right = self.under_ridge(0.0)[i]
                factors.append((left * sigma, right))
                continue
            left, right = self.chosen(i, choice)
            factors.append((left @ self.inside(i, choice), right))
        return (
            factors[0]
            if len(factors) == 1
            else (np.hstack([f for f, _ in factors]), np.hstack([g for _, g in factors]))
        )

    def inside(self, level: int, choice: LevelChoice) -> Array:
        """The dependence inside the chosen directions, (k, k); that of steady modes is diagonal."""
        key = "core", level, choice.ridge
        if key not in self.memo:
            left, right = self.chosen(level, choice._replace(n_modes=min(self.core.shape)))
            self.memo[key] = left.T @ self.core @ right
        core = self.memo[key][: choice.n_modes, : choice.n_modes]
        return np.diag(np.diag(core)) if choice.steady else np.asarray(core)

    def chosen(self, level: int, choice: LevelChoice) -> tuple[Array, Array]:
        """Orthonormal directions of a level: those of all modes, or of the few that are strongest under the ridge."""
        key = "directions", level, 0.0 if choice.n_modes is None else choice.ridge
        if key not in self.memo:  # a basis of all modes begins with one of the first few
            left, _, right = self.under_ridge(key[2])[level]
            self.memo[key] = np.linalg.qr(left)[0], np.linalg.qr(right)[0]
        left, right = self.memo[key]
        return left[:, : choice.n_modes], right[:, : choice.n_modes]

    def under_ridge(self, ridge: float) -> list[Directions]:
        """All modes of each level under the Gram matrices plus ridge."""
        if ridge not in self.memo:
            x_length, y_length = self.x.flag.shrinkage(ridge), self.y.flag.shrinkage(ridge)
            levels = level_modes(x_length[:, None] * self.core * y_length, self.x.flag.ends, self.y.flag.ends)
            self.memo[ridge] = [
                (x_length[:, None] * left, sigma, y_length[:, None] * right) for left, sigma, right in levels
            ]
        return self.memo[ridge]

    def span_modes(self, directions: Directions) -> SpanModes:
        """Directions in the coordinates of the flags as functions of the features."""
        left, sigma, right = directions
        weights = self.x.flag.basis @ left, self.y.flag.basis @ right
        sign = sign_of_columns(weights[0] * np.sqrt(np.diag(self.x.gram).clip(min=0))[:, None])
        f, g = (
            AffineFeatures(side.mean, weight * sign, np.zeros(len(sigma)), self.removed)
            for side, weight in zip((self.x, self.y), weights, strict=True)
        )
        return SpanModes(sigma, f, g, self.x.names, self.y.names)


def inside(left: Array, core: Array, right: Array) -> Directions:
    """The modes of a dependence inside some directions, where it is `core`, (k_x, k_y); no correlation exceeds 1."""
    u, sigma, vt = np.linalg.svd(core, full_matrices=False)
    return left @ u, sigma.clip(max=1), right @ vt.T


def factors_of(levels: Sequence[Directions]) -> Factors:
    """The dependence that modes of some levels hold together."""
    left, sigma, right = (np.concatenate(part, axis=-1) for part in zip(*levels, strict=True))
    return left * sigma, right


@dataclass(frozen=True, eq=False)
class Kind:
    """What the rows of one kind say, in the coordinates of the flags.

    Attributes:
        names: The blocks of x that they carry.
        share: Their share of all rows with y.
        inside: What they see of each direction of x, (r_x, r); None for all of it.
        covariance: Of these with the y side, (r, r_y).
        gram: Second moments of these on the rows, (r, r).
        step: Their means on the rows, (r,).
    """

    names: tuple[str, ...]
    share: float
    inside: Array | None
    covariance: Array
    gram: Array
    step: Array

    def seen(self, left: Array) -> Array:
        """Functions of x as these rows see them, (r, k)."""
        return left if self.inside is None else self.inside.T @ left

    def placed(self, seen: Array) -> Array:
        """The way back: what these rows see, among all of x, (r_x, k)."""
        return seen if self.inside is None else self.inside @ seen

    def under(self, problem: SpanProblem, tau_ridge: float | None) -> Kind:
        """The same rows, as they see functions of x under another tau ridge."""
        return self if self.inside is None else replace(self, inside=problem.x.through(self.names, tau_ridge))


def kinds(problem: SpanProblem, patterns: Patterns, tau_ridge: float | None, own_means: bool = False) -> list[Kind]:
    """What rows say that may miss blocks of x, each kind apart; rows without y say nothing here.

    Args:
        problem: In whose coordinates.
        patterns: Moments of the rows.
        tau_ridge: Of what fills in for missing blocks; None where the metric is taken for known.
        own_means: Whether covariances are about the means of these very rows, and not about those of the metric.
    """
    x, y = problem.x, problem.y
    carrying = patterns.carrying(y.names, x.names)
    total = sum(moments.weight(y.names[0]) for _, moments in carrying)
    result = []
    for names, moments in carrying:
        columns, flag = x.seen(names)
        x_step, y_step = moments.joint_mean(names) - x.mean[columns], moments.joint_mean(y.names) - y.mean
        covariance = moments.joint_covariance(names, y.names)
        if not own_means:
            covariance = covariance + np.outer(x_step, y_step)
        gram = moments.joint_covariance(names, names) + np.outer(x_step, x_step)
        result.append(
            Kind(
                names,
                moments.weight(y.names[0]) / total,
                None if names == x.names else x.through(names, tau_ridge),
                flag.basis.T @ covariance @ y.flag.basis,
                flag.basis.T @ gram @ flag.basis,
                x_step @ flag.basis,
            )
        )
    return result


def said(rows: Sequence[Kind]) -> tuple[Array, Array]:
    """Of functions of x as each kind of row sees them: second moments, (r_x, r_x), covariance with y, (r_x, r_y)."""
    precision = np.sum([kind.share * kind.placed(kind.placed(kind.gram).T) for kind in rows], axis=0)
    return precision, np.sum([kind.share * kind.placed(kind.covariance) for kind in rows], axis=0)


def _growth(spaces: Sequence[tuple[str, ...]], side: str) -> tuple[tuple[str, ...], ...]:
    """What each level adds to the level before."""
    check_growth(spaces, side)
    return tuple(tuple(name for name in after if name not in before) for before, after in pairwise([(), *spaces]))
