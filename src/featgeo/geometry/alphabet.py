"""The functions on a finite alphabet, in the canonical basis (appendix A.2 of the paper).

A function f on an alphabet with metric distribution p is the information vector xi(z) = sqrt(p(z)) f(z): inner products
of functions are dot products of vectors. Symbols of probability zero carry no function and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from featgeo.geometry.modes import Modes, level_modes, sign_of_columns
from featgeo.geometry.spans import Flag, flag_from_vectors
from featgeo.geometry.validation import Array, as_names, as_real

# A space of functions on an alphabet: all of them (None); sums of functions of some of the variables, F_{X_1} + F_{X_2}
# being ["x1", "x2"] and F_{X_1 x X_2} being [("x1", "x2")]; or the span of given functions, an array (*shape, m).
Space: TypeAlias = Sequence[str | Sequence[str]] | Array | None

# A minute of one core, about: numpy does some 10^9 operations of the factorisations here a second.
MOST_WORK, MOST_MEMORY = 1e11, 2e9
MOST_SUBSETS = 2**20


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The joint alphabet of one or several named variables, with its metric distribution.

    Attributes:
        names: The variables, one for each axis of `mass`.
        mass: Probability of each symbol.
    """

    names: tuple[str, ...]
    mass: Array

    @cached_property
    def support(self) -> tuple[np.ndarray, ...]:
        """Coordinates of the symbols of positive probability."""
        return np.nonzero(self.mass)

    @cached_property
    def root_mass(self) -> Array:
        """Square roots of the positive probabilities: the information vector of the constant function 1."""
        return np.sqrt(self.mass[self.support])

    def vectors(self, functions: Array) -> Array:
        """Information vectors, (n, m), of functions given by their values, (*shape, m)."""
        if functions.shape[: self.mass.ndim] != self.mass.shape or functions.ndim != self.mass.ndim + 1:
            raise ValueError(
                f"Functions of {self.names} must have shape {(*self.mass.shape, 'm')}, got {functions.shape}. "
                "Give one value a symbol and put different functions along the last axis."
            )
        if not np.isfinite(functions).all():
            raise ValueError(f"Functions of {self.names} hold NaN or infinite values. Give every symbol a number.")
        return functions[self.support] * self.root_mass[:, None]

    def values(self, vectors: Array) -> Array:
        """Functions by their values, (*shape, m), from information vectors, (n, m)."""
        functions = np.zeros((*self.mass.shape, vectors.shape[1]))
        functions[self.support] = vectors / self.root_mass[:, None]
        return functions

    def coarsening(self, names: str | Sequence[str]) -> Array:
        """Orthonormal information vectors, (n, m), of the functions that depend on some of the variables only."""
        axes = [self._axis(name) for name in as_names(names)]
        shape = [self.mass.shape[axis] for axis in axes]
        symbol = np.ravel_multi_index([self.support[axis] for axis in axes], shape)
        indicator = (symbol[:, None] == np.unique(symbol)) * self.root_mass[:, None]
        return indicator / np.linalg.norm(indicator, axis=0)

    def space(self, space: Space) -> Array:
        """Information vectors, (n, m), that span a space of functions."""
        if space is None:
            return np.eye(len(self.root_mass))
        if isinstance(space, str):
            space = [space]
        if _names_variables(space):
            return np.hstack([np.empty((len(self.root_mass), 0)), *(self.coarsening(names) for names in space)])
        return self.vectors(as_real(space, "space"))

    def flag(self, spaces: Sequence[Space]) -> Flag:
        """Orthonormal coordinates of spaces of functions, each joined to those before it."""
        n = len(self.root_mass)
        if spaces[0] is None:  # all functions: the canonical basis is orthonormal already, and costs nothing to apply
            return Flag(sparse.eye_array(n, format="csr"), (n,) * len(spaces))
        fresh = self._fresh_subsets(spaces)
        check_work(n, [self._n_functions(space, new) for space, new in zip(spaces, fresh, strict=True)], self.names)
        return flag_from_vectors([self._vectors(space, new) for space, new in zip(spaces, fresh, strict=True)])

    def _fresh_subsets(self, spaces: Sequence[Space]) -> list[list[tuple[str, ...]] | None]:
        """For each space that lists variables, all subsets of those that come together, but for subsets of before."""
        seen: set[tuple[str, ...]] = set()
        result: list[list[tuple[str, ...]] | None] = []
        for space in spaces:
            if space is None or not _names_variables(space):
                result.append(None)
                continue
            listed = [as_names(entry) for entry in ([space] if isinstance(space, str) else space)]
            size = sum(2 ** len(names) for names in listed)
            if size > MOST_SUBSETS:
                raise ValueError(
                    f"Functions of {len(listed)} groups of variables are sums over {size} subsets of them, and "
                    f"{MOST_SUBSETS} are too many. Name smaller groups, or fewer of them."
                )
            ordered = [tuple(sorted(names, key=self._axis)) for names in listed]
            closure = {part for names in ordered for k in range(len(names) + 1) for part in combinations(names, k)}
            result.append(sorted(closure - seen, key=lambda part: (len(part), [self._axis(name) for name in part])))
            seen |= closure
        return result

    def _n_functions(self, space: Space, fresh: list[tuple[str, ...]] | None) -> int:
        if fresh is None:
            return len(self.root_mass) if space is None else np.shape(space)[-1]
        return sum(math.prod(self.mass.shape[self._axis(name)] - 1 for name in names) for names in fresh)

    def _vectors(self, space: Space, fresh: list[tuple[str, ...]] | None) -> Array:
        if fresh is None:
            return self.space(space)
        return np.hstack([np.empty((len(self.root_mass), 0)), *map(self._contrasts, fresh)])

    def _contrasts(self, names: tuple[str, ...]) -> Array:
        """Information vectors that, with those of all subsets of the variables, span the functions of them.

        These are indicators of symbols, without those of the likeliest symbol of any of the variables: so there are as
        many as the functions have dimensions, where the indicators of all symbols of all subsets are far more.
        """
        if not names:
            return self.root_mass[:, None]
        columns = self.coarsening(names)
        likeliest = [self._likeliest[self._axis(name)] for name in names]
        ordinary = np.all(
            [self.support[self._axis(name)] != top for name, top in zip(names, likeliest, strict=True)], axis=0
        )
        return columns[:, (columns[ordinary] != 0).any(axis=0)]

    @cached_property
    def _likeliest(self) -> list[int]:
        axes = range(self.mass.ndim)
        return [int(self.mass.sum(axis=tuple(other for other in axes if other != axis)).argmax()) for axis in axes]

    def _axis(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"There is no variable {name!r} here. The variables are {self.names}.")
        return self.names.index(name)


def check_work(n: int, sizes: Sequence[int], names: Sequence[str]) -> None:
    """Refuse spaces of functions that would take hours or more memory than there is, before any of it is done.

    Args:
        n: Number of symbols.
        sizes: How many functions each space brings.
        names: The variables.
    """
    total = sum(sizes)
    work, memory = 4.0 * n * total * min(n, total), 8.0 * n * (total + max(sizes))
    if work > MOST_WORK or memory > MOST_MEMORY:
        raise ValueError(
            f"{total} functions on the {n} joint symbols of {len(names)} variables take about {work:.1g} operations "
            f"and {memory / 1e9:.1g} GB; at most {MOST_WORK:.0g} and {MOST_MEMORY / 1e9:.0g} GB are done at once. Name "
            "fewer variables, merge symbols, or take marginals first."
        )


def _names_variables(space: Any) -> bool:
    """Whether a space lists variables, not numbers."""
    return isinstance(space, Sequence) and all(
        isinstance(entry, str) or (isinstance(entry, Sequence) and all(isinstance(name, str) for name in entry))
        for entry in space
    )


def seen_cells(x: Alphabet, y: Alphabet) -> tuple[np.ndarray, ...]:
    """Index of the symbols of positive probability on both sides, into a matrix (|X|, |Y|)."""
    return np.ix_(np.flatnonzero(x.mass), np.flatnonzero(y.mass))


def canonical_ratio(joint: Array, x: Alphabet, y: Alphabet) -> Array:
    """The density ratio of a joint distribution against p_x p_y in the canonical basis, on the supports, (n_x, n_y).

    No product of two probabilities is formed, which could underflow.
    """
    seen = joint.reshape(x.mass.size, y.mass.size)[seen_cells(x, y)]
    return seen / x.root_mass[:, None] / y.root_mass - np.outer(x.root_mass, y.root_mass)


def from_canonical(kernel: Array, x: Alphabet, y: Alphabet) -> Array:
    """A function on X x Y, (*shape of x, *shape of y), from its coefficients in the canonical basis, on the supports.

    It is set to 0 where a symbol has probability zero.
    """
    gamma = np.zeros((x.mass.size, y.mass.size))
    gamma[seen_cells(x, y)] = kernel / x.root_mass[:, None] / y.root_mass
    return gamma.reshape(*x.mass.shape, *y.mass.shape)


def kernel_components(
    kernel: Array, x: Alphabet, y: Alphabet, x_spaces: Sequence[Space], y_spaces: Sequence[Space]
) -> tuple[Modes, ...]:
    """Decompose a function on X x Y level by level, each level adding a space on either side.

    Args:
        kernel: Coefficients of the function in the canonical basis, sqrt(p(x) p(y)) gamma(x, y), on the supports.
        x: Alphabet of x.
        y: Alphabet of y.
        x_spaces: For each level the functions of x it adds to the levels before.
        y_spaces: For each level the functions of y it adds.
    """
    x_flag, y_flag = x.flag(x_spaces), y.flag(y_spaces)
    core = x_flag.basis.T @ kernel @ y_flag.basis
    result = []
    for left, sigma, right in level_modes(core, x_flag.ends, y_flag.ends):
        f, g = x_flag.basis @ left, y_flag.basis @ right
        sign = sign_of_columns(f)
        result.append(Modes(sigma, x.values(f * sign), y.values(g * sign)))
    return tuple(result)
