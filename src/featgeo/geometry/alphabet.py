"""The functions on a finite alphabet, in the canonical basis (appendix A.2 of the paper).

A function f on an alphabet with metric distribution p is the information vector xi(z) = sqrt(p(z)) f(z): inner products
of functions are dot products of vectors. Symbols of probability zero carry no function and are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from featgeo.geometry.modes import Modes, level_modes, sign_of_columns
from featgeo.geometry.spans import Flag, flag_from_vectors
from featgeo.geometry.validation import Array, as_names, as_real

# A space of functions on an alphabet: all of them (None); sums of functions of some of the variables, F_{X_1} + F_{X_2}
# being ["x1", "x2"] and F_{X_1 x X_2} being [("x1", "x2")]; or the span of given functions, an array (*shape, m).
Space: TypeAlias = Sequence[str | Sequence[str]] | Array | None


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
        if spaces[0] is None:  # all functions: the canonical basis is orthonormal already, and costs nothing to apply
            n = len(self.root_mass)
            return Flag(sparse.eye_array(n, format="csr"), (n,) * len(spaces))
        return flag_from_vectors([self.space(space) for space in spaces])

    def _axis(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"There is no variable {name!r} here. The variables are {self.names}.")
        return self.names.index(name)


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
