"""The dependence of two columns given others, for many pairs at once: the modes of what a sweep leaves of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from featgeo.explore.counting import Counts
from featgeo.explore.gram import Moments
from featgeo.explore.pairs import are_new, at_rungs, block_tail, judged, leading, rungs
from featgeo.features.variables import preferred_places
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


def partial_dependence(
    moments: Moments, whole: Moments, pairs: Sequence[tuple[int, int]], n_given: int, strata: Strata | None = None
) -> Partial:
    """The dependence of pairs in moments from which others were swept.

    Args:
        moments: What is left of all functions.
        whole: The moments before, which say how much functions vary.
        pairs: Columns, by place.
        n_given: Functions that were swept: correlations of what is left vary as if there were so many rows less.
        strata: How much of the functions varies within cells of what was swept; None where that is not known, and taken
            to be the same everywhere.
    """
    left, right = (_padded([moments.places[pair[side]] for pair in pairs], moments.seen.shape[1]) for side in (0, 1))
    before = np.append(np.diagonal(whole.seen[0]), 1.0)
    after = np.append(np.diagonal(moments.seen[0]), 0.0)
    # What the others determine has no dependence of its own left, only the rounding of a regression.
    alive = after > in_force.get().determined * before
    seen, held = (_with_nothing(covariance) for covariance in (moments.seen, moments.held))
    roots = [_root(seen, side, alive) for side in (left, right)]  # (P, 1 + F, m, m)
    core = roots[0].swapaxes(2, 3) @ _block(seen, left, right) @ roots[1]
    u, sigma, v = leading(core)
    f, g = roots[0][:, 1:] @ u[:, 1:], roots[1][:, 1:] @ v[:, 1:]
    both, of_f, of_g = (
        one.swapaxes(2, 3) @ _block(held, a, b) @ other
        for one, other, a, b in ((f, g, left, right), (f, f, left, left), (g, g, right, right))
    )
    scores, correlation = judged(sigma[:, 1:], both, of_f, of_g)
    n_functions = [alive[side].sum(axis=1) for side in (left, right)]
    costs = np.multiply.outer(sum(n_functions), np.arange(scores.shape[2]))
    n_modes = preferred_places(scores.swapaxes(1, 2), costs.astype(np.float64))
    at_least_one = np.maximum(n_modes, 1)
    kept = np.arange(sigma.shape[2]) < at_least_one[:, None]
    held_out = np.take_along_axis(scores, at_least_one[:, None, None], axis=2)[..., 0]
    sizes = [rungs(count) for count in n_functions]
    energy = at_rungs(np.square(core[:, 0]).cumsum(axis=1).cumsum(axis=2), *sizes)
    null = _same_everywhere(*sizes) if strata is None else strata.null([root[:, 0] for root in roots], pairs, sizes)
    tails = block_tail(energy * max(moments.n[0] - n_given - 1, 1.0), *null, (are_new(sizes[0]), are_new(sizes[1])))
    return Partial(
        correlation[..., 0] @ moments.shares,
        sigma[:, 0, 0],
        np.sum(np.square(sigma[:, 0]) * kept, axis=1),
        2 * held_out @ moments.shares,
        n_modes,
        tails,
    )


def _same_everywhere(a: np.ndarray, b: np.ndarray) -> tuple[Array, Array]:
    """Mean and variance of the energies of blocks where all moments are independent normals, (P, rungs, rungs)."""
    size = (a[:, :, None] * b[:, None, :]).astype(np.float64)
    return size, 2 * size


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
        self, roots: Sequence[Array], pairs: Sequence[tuple[int, int]], sizes: Sequence[np.ndarray]
    ) -> tuple[Array, Array]:
        """Mean and variance of the energies of blocks under independence given the strata, (P, rungs, rungs).

        Args:
            roots: Coefficients of orthonormal functions of either side, (P, m, m) each.
            pairs: Columns, by place.
            sizes: Functions in each rung, of either side, (P, rungs).
        """
        means, spreads = [], []
        for place, pair in enumerate(pairs):
            first, second = (self._traces(i, roots[side][place], sizes[side][place]) for side, i in enumerate(pair))
            means.append(np.einsum("s,sa,sb->ab", self.shares, first[0], second[0]))
            spreads.append(
                2 * np.einsum("s,t,sta,stb->ab", self.shares, self.shares, first[1], second[1], optimize=True)
            )
        return np.array(means), np.array(spreads)

    def _traces(self, i: int, root: Array, sizes: np.ndarray) -> tuple[Array, Array]:
        """Of the leading blocks of each Cov(f | s), (s, rungs), and of products of two of them, (s, s, rungs)."""
        d = self.within[i].shape[1]
        own = root[:d].T @ self.within[i] @ root[:d]
        every = [own[:, :size, :size].reshape(len(own), -1) for size in sizes]
        traces = [np.trace(own[:, :size, :size], axis1=1, axis2=2) for size in sizes]
        return np.stack(traces, axis=1), np.stack([flat @ flat.T for flat in every], axis=2)


def _padded(places: Sequence[np.ndarray], nothing: int) -> np.ndarray:
    """Places of functions, (P, m), those that are not there at a function that is 0."""
    result = np.full((len(places), max(map(len, places))), nothing)
    for row, own in zip(result, places, strict=True):
        row[: len(own)] = own
    return result


def _with_nothing(covariance: Array) -> Array:
    """With one more function, which is 0."""
    return np.pad(covariance, ((0, 0), (0, 1), (0, 1)))


def _block(covariance: Array, left: np.ndarray, right: np.ndarray) -> Array:
    """Covariances of some functions with others, (P, 1 + F, m, l)."""
    return covariance[:, left[:, :, None], right[:, None, :]].swapaxes(0, 1)


def _root(covariance: Array, side: np.ndarray, alive: np.ndarray) -> Array:
    """Coefficients of orthonormal functions in their order, (P, 1 + F, m, m); none of those that are not alive."""
    own = _block(covariance, side, side)
    there = alive[side]
    mask = there[:, None, :, None] & there[:, None, None, :]
    unit = np.eye(side.shape[1])
    triangle = np.linalg.cholesky(np.where(mask, own, 0.0) + unit * np.where(there, 1e-9, 1.0)[:, None, None, :])
    return np.linalg.inv(triangle).swapaxes(2, 3) * there[:, None, :, None] * there[:, None, None, :]
