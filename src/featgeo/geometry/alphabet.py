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

from featgeo.geometry.spans import Flag, flag_from_vectors
from featgeo.geometry.validation import Array, as_names, as_real, position

# A space of functions on an alphabet: all of them (None); sums of functions of some of the variables, F_{X_1} + F_{X_2}
# being ["x1", "x2"] and F_{X_1 x X_2} being [("x1", "x2")]; or the span of given functions, an array (*shape, m).
Space: TypeAlias = Sequence[str | Sequence[str]] | Array | None
_Piece: TypeAlias = tuple[str, ...] | Array | None  # of a space: variables that act together, values, all functions

# Bounds of time and memory: a minute of one core, about, for numpy does some 10^9 operations of the factorisations here
# a second.
MOST_WORK, MOST_MEMORY = 1e11, 2e9
MOST_SUBSETS = 2**20
MOST_VALUES = 2**31  # numbers in one table of function values: 16 GiB


@dataclass(frozen=True, eq=False)
class Alphabet:
    """The joint alphabet of one or several named variables, with its metric distribution.

    Attributes:
        names: The variables, one for each axis of `mass`.
        mass: Probability of each symbol; of a large alphabet a sparse array of those that occur.
    """

    names: tuple[str, ...]
    mass: Array | sparse.coo_array

    @classmethod
    def of_cells(
        cls, names: tuple[str, ...], coordinates: Sequence[np.ndarray], mass: Array, shape: tuple[int, ...]
    ) -> tuple[np.ndarray, Alphabet]:
        """The combinations of symbols that occur in some cells: the number of that of every cell, and all of them."""
        number, symbols = _numbered(coordinates)
        return number, cls(names, sparse.coo_array((np.bincount(number, mass), symbols), shape=shape))

    @cached_property
    def support(self) -> tuple[np.ndarray, ...]:
        """Coordinates of the symbols of positive probability."""
        return np.nonzero(self.mass) if isinstance(self.mass, np.ndarray) else self.mass.coords

    @cached_property
    def root_mass(self) -> Array:
        """Square roots of the positive probabilities: the information vector of the constant function 1."""
        return np.sqrt(self.mass[self.support] if isinstance(self.mass, np.ndarray) else self.mass.data)

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
        shape = (*self.mass.shape, vectors.shape[1])
        if math.prod(shape) > MOST_VALUES:
            raise ValueError(
                f"Functions on an alphabet of {self.mass.shape} symbols need too much memory. Merge rare symbols."
            )
        functions = np.zeros(shape)
        functions[self.support] = vectors / self.root_mass[:, None]
        return functions

    def coarsening(self, names: str | Sequence[str]) -> sparse.csr_array:
        """Orthonormal information vectors, (n, m), of functions of some of the variables; of the constant for none."""
        n, symbols = len(self.root_mass), [self.support[self._axis(name)] for name in as_names(names)]
        group = _numbered(symbols)[0] if symbols else np.zeros(n, dtype=np.int64)
        norms = np.sqrt(np.bincount(group, self.root_mass**2))
        return sparse.csr_array((self.root_mass / norms[group], (np.arange(n), group)))

    def flag(self, spaces: Sequence[Space]) -> Flag:
        """Orthonormal coordinates of spaces of functions, each joined to those before it."""
        n = len(self.root_mass)
        if spaces[0] is None:  # all functions: the canonical basis is orthonormal already, and costs nothing to apply
            return Flag(sparse.eye_array(n, format="csr"), (n,) * len(spaces), np.ones(n))
        pieces = self._pieces(spaces)
        check_work(n, [sum(map(self._size, of_space)) for of_space in pieces], self.names)
        return flag_from_vectors(
            [np.hstack([np.empty((n, 0)), *map(self._piece_vectors, of_space)]) for of_space in pieces]
        )

    def _pieces(self, spaces: Sequence[Space]) -> list[list[_Piece]]:
        """What each space brings: where it lists variables, all subsets of those that come together, each once."""
        seen: set[tuple[str, ...]] = set()
        result: list[list[_Piece]] = []
        for space in spaces:
            if space is None or not _names_variables(space):
                result.append([None if space is None else as_real(space, "space")])
                continue
            listed = [
                sorted(as_names(entry), key=self._axis) for entry in ([space] if isinstance(space, str) else space)
            ]
            size = sum(2 ** len(names) for names in listed)
            if size > MOST_SUBSETS:
                raise ValueError(
                    f"Functions of {len(listed)} groups of variables are sums over {size} subsets of them, and "
                    f"{MOST_SUBSETS} are too many. Name smaller groups, or fewer of them."
                )
            closure = {part for names in listed for k in range(len(names) + 1) for part in combinations(names, k)}
            result.append([*sorted(closure - seen, key=lambda part: (len(part), *map(self._axis, part)))])
            seen |= closure
        return result

    def _size(self, piece: _Piece) -> int:
        if isinstance(piece, tuple):
            return math.prod(self.mass.shape[self._axis(name)] - 1 for name in piece)
        return len(self.root_mass) if piece is None else piece.shape[-1]

    def _piece_vectors(self, piece: _Piece) -> Array:
        """Information vectors that, with those of all subsets of the variables, span the functions of them.

        These are indicators of symbols, without those of the likeliest symbol of any of the variables: so there are as
        many as the functions have dimensions, where the indicators of all symbols of all subsets are far more.
        """
        if not isinstance(piece, tuple):
            return np.eye(len(self.root_mass)) if piece is None else self.vectors(piece)
        columns = self.coarsening(piece).toarray()
        ordinary = np.ones(len(columns), dtype=bool)
        for axis in map(self._axis, piece):
            likeliest = np.bincount(self.support[axis], self.root_mass**2).argmax()
            ordinary &= self.support[axis] != likeliest
        return columns[:, (columns[ordinary] != 0).any(axis=0)]

    def _axis(self, name: str) -> int:
        return position(name, self.names)


def _numbered(coordinates: Sequence[np.ndarray]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Number the combinations of symbols that occur: the number in every cell, and the symbols of each number."""
    code = np.zeros(len(coordinates[0]), dtype=np.int64)
    for symbol in coordinates:
        # Renumbering at each step keeps the codes small, whatever the sizes of the alphabets.
        code = np.unique(code * (int(symbol.max()) + 1) + symbol, return_inverse=True)[1]
    example = np.unique(code, return_index=True)[1]
    return code, tuple(symbol[example] for symbol in coordinates)


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
