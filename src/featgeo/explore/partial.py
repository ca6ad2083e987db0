"""The dependence of two columns given others, for many pairs at once: the modes of what a sweep leaves of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from featgeo.explore.counting import Counts
from featgeo.explore.gram import Moments, bases_of
from featgeo.explore.modes import judged, leading
from featgeo.explore.tails import Null, block_tail, leading_energies, rung_weights, rungs
from featgeo.features.variables import preferred_places
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force


@dataclass(frozen=True, eq=False)
class Partial:
    """What is told of pairs of columns given others; arrays with an entry for each pair, (P,).

    Attributes:
        strength: Correlation of the first pair of functions on rows that have not chosen them.
        sigma1: The same on the rows that have.
        energy: Sum of squared strengths of the modes that held-out rows support; of the first where they support none.
        held_out_energy: The same on held-out rows.
        n_modes: How many modes held-out rows support.
        pvalue: That the two are independent given the others.
    """

    strength: Array
    sigma1: Array
    energy: Array
    held_out_energy: Array
    n_modes: np.ndarray
    pvalue: Array


_NONE = np.empty(0)
NO_PAIRS = Partial(_NONE, _NONE, _NONE, _NONE, np.empty(0, dtype=np.int64), _NONE)


@dataclass(frozen=True, eq=False)
class _Side:
    """Covariances of what is left of the functions of one column of each pair, padded to one number of them.

    Attributes:
        seen: On all rows and on all but those of each fold, (P, 1 + F, m, m).
        held: On the rows of each fold, (P, F, m, m).
        alive: Which functions still vary, (P, m), those first.
    """

    seen: Array
    held: Array
    alive: np.ndarray

    @cached_property
    def root(self) -> Array:
        """Coefficients of orthonormal functions in their order, (P, 1 + F, m, m); none of those that are not alive."""
        there = self.alive[:, None, :, None] & self.alive[:, None, None, :]
        # What is left after a regression has the rounding of its inverse, which a ridge bounds.
        rounding = self.alive.shape[1] * np.finfo(np.float64).eps / min(in_force.get().ridges)
        idle = np.eye(self.alive.shape[1]) * np.where(self.alive, max(COLLINEAR, rounding), 1.0)[:, None, None, :]
        return np.linalg.inv(np.linalg.cholesky(np.where(there, self.seen, 0.0) + idle)).swapaxes(2, 3) * there

    @property
    def n_functions(self) -> np.ndarray:
        """How many functions are alive, (P,)."""
        return self.alive.sum(axis=1)


def _ladders(x: _Side, y: _Side) -> list[np.ndarray]:
    """How many functions of either side each block holds, (P, rungs) each, as many rungs on both."""
    return np.split(rungs(np.concatenate([x.n_functions, y.n_functions])), 2)


def _partial(x: _Side, y: _Side, seen: Array, held: Array, shares: Array) -> tuple[Partial, Array]:
    """All but the p-values, and the core of all rows, (P, m, l).

    Args:
        x: The first columns.
        y: The second.
        seen: Covariances of the functions of both, (P, 1 + F, m, l).
        held: The same on the rows of each fold.
        shares: Of all rows that are in each fold, (F,).
    """
    core = x.root.swapaxes(2, 3) @ seen @ y.root
    u, sigma, v = leading(core)
    f, g = x.root[:, 1:] @ u[:, 1:], y.root[:, 1:] @ v[:, 1:]
    both, of_f, of_g = (
        one.swapaxes(2, 3) @ moments @ other for one, moments, other in ((f, held, g), (f, x.held, f), (g, y.held, g))
    )
    scores, correlation = judged(sigma[:, 1:], both, of_f, of_g)
    costs = np.multiply.outer(x.n_functions + y.n_functions, np.arange(scores.shape[2])).astype(np.float64)
    n_modes = preferred_places(scores.swapaxes(1, 2), costs)
    at_least_one = np.maximum(n_modes, 1)
    kept = np.arange(sigma.shape[2]) < at_least_one[:, None]
    held_out = np.take_along_axis(scores, at_least_one[:, None, None], axis=2)[..., 0]
    energy = np.sum(np.square(sigma[:, 0]) * kept, axis=1)
    unknown = np.full(len(energy), np.nan)
    told = correlation[..., 0] @ shares, sigma[:, 0, 0], energy, 2 * held_out @ shares
    return Partial(*told, n_modes, unknown), core[:, 0]


def _tails(core: Array, rows: float, sizes: Sequence[np.ndarray], null: Null) -> Array:
    """P-values from cores, (P,)."""
    energy = leading_energies(core, *sizes)
    return block_tail(energy * max(rows, 1.0), null, (rung_weights(sizes[0]), rung_weights(sizes[1])))


def given_dependence(
    counts: Counts, pairs: Sequence[tuple[int, int]], given: Sequence[int], strata: int
) -> tuple[Partial, Moments]:
    """The dependence of pairs given columns, and the moments of what these leave.

    Args:
        counts: Tables of all pairs.
        pairs: Columns, by place.
        given: Those to be given, by place.
        strata: A column of cells of all of them together.
    """
    before = Moments.of(counts, strata)
    swept = tuple(dict.fromkeys([*given, strata]))
    left = before.swept(swept, min(in_force.get().ridges))
    if not pairs:
        return NO_PAIRS, left
    # What the others determine has no dependence of its own left, only the rounding of a regression.
    varies = np.diagonal(left.seen[0]) > in_force.get().determined * np.diagonal(before.seen[0])
    orders = [_order([left.values[pair[side]] for pair in pairs], varies) for side in (0, 1)]
    alive = [np.append(varies, False)[order] for order in orders]
    seen, held = (np.pad(covariance, ((0, 0), (0, 1), (0, 1))) for covariance in (left.seen, left.held))
    x, y = (_Side(_block(seen, o, o), _block(held, o, o), own) for o, own in zip(orders, alive, strict=True))
    found, core = _partial(x, y, _block(seen, *orders), _block(held, *orders), left.shares)
    sizes = _ladders(x, y)
    null = Strata.of(counts, bases_of(counts, strata), strata).null(left, pairs, orders, (x, y))
    rows = left.n[0] - len(left.functions(swept)) - 1
    return replace(found, pvalue=_tails(core, rows, sizes, null)), left


def direct_dependence(counts: Counts, pairs: Sequence[tuple[int, int]]) -> Partial:
    """The dependence of each pair given all other columns, in functions that are sums of functions of one column."""
    if not pairs:
        return NO_PAIRS
    moments = Moments.of(counts)
    ridge = np.diag(min(in_force.get().ridges) * moments.roughness)
    precision = np.linalg.inv(moments.seen + ridge)
    # What all functions but those of a pair, S, leave of these is P_SS^-1 P_S x, with P the precision of all of them:
    # so its covariance is P_SS^-1 (P A P)_SS P_SS^-1, for the covariance A of any rows.
    inside = [precision @ moments.seen @ precision, precision[1:] @ moments.held @ precision[1:]]
    few = [own[: column.resolutions[0]] for own, column in zip(moments.values, counts.columns, strict=True)]
    sizes = [max(1, *(len(few[pair[side]]) for pair in pairs)) for side in (0, 1)]  # 1: a function that is 0
    n_folds = len(moments.shares)
    seen = np.zeros((len(pairs), n_folds + 1, sum(sizes), sum(sizes)))
    held = np.zeros((len(pairs), n_folds, sum(sizes), sum(sizes)))
    there = np.zeros((len(pairs), sum(sizes)), dtype=bool)
    for place, (i, j) in enumerate(pairs):
        both = np.concatenate([moments.places[i], moments.places[j]])
        block = both[:, None], both
        at = np.concatenate([np.arange(len(few[i])), sizes[0] + np.arange(len(few[j]))])
        own = np.isin(both, np.concatenate([few[i], few[j]]))
        back = np.linalg.inv(precision[:, *block])[:, own]
        seen[place, :, at[:, None], at] = (back @ inside[0][:, *block] @ back.swapaxes(1, 2)).transpose(1, 2, 0)
        back = back[1:]
        held[place, :, at[:, None], at] = (back @ inside[1][:, *block] @ back.swapaxes(1, 2)).transpose(1, 2, 0)
        there[place, at] = np.diagonal(seen[place, 0])[at] > in_force.get().determined
    first = slice(None, sizes[0]), slice(sizes[0], None)
    x, y = (_Side(seen[:, :, part, part], held[:, :, part, part], there[:, part]) for part in first)
    found, core = _partial(x, y, seen[:, :, first[0], first[1]], held[:, :, first[0], first[1]], moments.shares)
    ladders = _ladders(x, y)
    rows = moments.n[0] - moments.seen.shape[1] - 1
    return replace(found, pvalue=_tails(core, rows, ladders, _same_everywhere(*ladders)))


def _same_everywhere(a: np.ndarray, b: np.ndarray) -> Null:
    """The energies of blocks where all moments are independent normals."""
    size = (a[:, :, None] * b[:, None, :]).astype(np.float64)
    return Null.scaled(size, 2 * size)


@dataclass(frozen=True, eq=False)
class Strata:
    """How much of the functions of each column varies within each cell of the given one.

    Where X and Y are independent given S, the moments of what is left of their functions have the covariance
    sum_s p(s) Cov(f | s) (x) Cov(g | s), not the product of both: a common scale is no dependence.

    Attributes:
        shares: Of the rows in each cell, (s,).
        within: Covariances of the functions of each column within each cell, (s, d, d), by place.
    """

    shares: Array
    within: tuple[Array, ...]

    @classmethod
    def of(cls, counts: Counts, bases: Sequence[Array], strata: int) -> Strata:
        """Within the cells of a column."""
        rows = counts.single(strata).sum(axis=0).astype(np.float64)
        within = []
        for i, basis in enumerate(bases):
            table = counts.table(strata, i).sum(axis=0) / np.maximum(rows, 1.0)[:, None]  # (s, size)
            means = table @ basis
            products = np.einsum("sc,ck,cl->skl", table, basis, basis, optimize=True)
            within.append(products - means[:, :, None] * means[:, None, :])
        return cls(rows / rows.sum(), tuple(within))

    def null(
        self,
        moments: Moments,
        pairs: Sequence[tuple[int, int]],
        orders: Sequence[np.ndarray],
        sides: tuple[_Side, _Side],
    ) -> Null:
        """The energies of blocks under independence given the strata.

        Args:
            moments: Where the functions of each column are.
            pairs: Columns, by place.
            orders: The functions of either side, in the order of `sides`, (P, m).
            sides: Their orthonormal combinations.
        """
        known: dict[int, tuple[Array, Array]] = {}
        for side, (every, ladders) in enumerate(zip(sides, _ladders(*sides), strict=True)):
            for place, i in enumerate(pair[side] for pair in pairs):
                if i not in known:
                    there = every.n_functions[place]
                    own = orders[side][place][:there] - moments.places[i][:1]  # none of a column without functions
                    root = every.root[place, 0, :there, :there]
                    inside = root.T @ self.within[i][:, own[:, None], own] @ root
                    known[i] = _traces(inside, ladders[place])
        weights = np.multiply.outer(self.shares, self.shares).ravel()[:, None]
        means = [(known[i][0] * self.shares[:, None]).T @ known[j][0] for i, j in pairs]
        spreads = [2 * (known[i][1] * weights).T @ known[j][1] for i, j in pairs]
        return Null.scaled(np.array(means), np.array(spreads))


def _traces(inside: Array, sizes: np.ndarray) -> tuple[Array, Array]:
    """Of the leading blocks of covariances, (s, m, m): traces, (s, rungs), and those of products, (s * s, rungs)."""
    every = [inside[:, :size, :size].reshape(len(inside), -1) for size in sizes]
    traces = [np.trace(inside[:, :size, :size], axis1=1, axis2=2) for size in sizes]
    return np.stack(traces, axis=1), np.stack([(flat @ flat.T).ravel() for flat in every], axis=1)


def _order(places: Sequence[np.ndarray], varies: np.ndarray) -> np.ndarray:
    """Places of functions, (P, m), those that vary first, and a function that is 0 where there are no more."""
    result = np.full((len(places), max(1, *map(len, places))), len(varies))
    for row, own in zip(result, places, strict=True):
        row[: len(own)] = np.concatenate([own[varies[own]], own[~varies[own]]])
    return result


def _block(covariance: Array, left: np.ndarray, right: np.ndarray) -> Array:
    """Covariances of some functions with others, (P, 1 + F, m, l)."""
    return covariance[:, left[:, :, None], right[:, None, :]].swapaxes(0, 1)
