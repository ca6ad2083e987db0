"""A dependence on finite alphabets, and the named components into which the paper's settings split it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from featgeo.geometry.alphabet import Alphabet, Space
from featgeo.geometry.spans import Modes, level_modes, sign_of_columns
from featgeo.geometry.validation import Array


class Projected(NamedTuple):
    """A dependence split by a subspace of functions of x (eq. sspc:dcmp)."""

    aligned: Modes
    orthogonal: Modes


class ConditionalComponents(NamedTuple):
    """The dependence of x on (s, y), split into what s explains and what y adds (eq. side:dcmp:i)."""

    markov: Modes
    conditional: Modes


@dataclass(frozen=True, eq=False)
class MultimodalComponents:
    """The dependence of several sources on y, split by how many sources act together.

    Attributes:
        bivariate: What sums of functions of single sources capture (eq. pib:pii).
        interaction: All that is left.
        orders: The component of each interaction order, from single sources to all of them together.
    """

    bivariate: Modes
    interaction: Modes
    orders: tuple[Modes, ...]


@dataclass(frozen=True, eq=False)
class Dependence:
    """A function on X x Y, by its coefficients in the canonical basis.

    Attributes:
        x: Alphabet of x, with its metric distribution.
        y: Alphabet of y.
        kernel: The coefficients sqrt(p(x) p(y)) gamma(x, y), on the supports, (n_x, n_y).
    """

    x: Alphabet
    y: Alphabet
    kernel: Array

    @classmethod
    def of_joint(cls, joint: Array, x: Alphabet, y: Alphabet) -> Dependence:
        """The centred density ratio of a joint distribution, (*shape of x, *shape of y), against p_x p_y.

        No product of two probabilities is formed, which could underflow.
        """
        seen = joint.reshape(x.mass.size, y.mass.size)[np.ix_(np.flatnonzero(x.mass), np.flatnonzero(y.mass))]
        return cls(x, y, seen / x.root_mass[:, None] / y.root_mass - np.outer(x.root_mass, y.root_mass))

    @property
    def matrix(self) -> Array:
        """The coefficients at all symbols, (|X|, |Y|); 0 where one has probability zero."""
        return self._at_all_symbols(self.kernel)

    @property
    def density(self) -> Array:
        """The function itself, (*shape of x, *shape of y); 0 where a symbol has probability zero."""
        values = self._at_all_symbols(self.kernel / self.x.root_mass[:, None] / self.y.root_mass)
        return values.reshape(*self.x.mass.shape, *self.y.mass.shape)

    def components(self, x_spaces: Sequence[Space], y_spaces: Sequence[Space] | None = None) -> tuple[Modes, ...]:
        """Decompose level by level, each level adding a space on either side.

        Args:
            x_spaces: For each level the functions of x that it adds to the levels before.
            y_spaces: For each level the functions of y that it adds; all functions at once when None.
        """
        y_spaces = [None] * len(x_spaces) if y_spaces is None else y_spaces
        if not (isinstance(x_spaces, list | tuple) and isinstance(y_spaces, list | tuple)):
            raise ValueError(
                f"Spaces must be lists, one space a level, got {type(x_spaces).__name__} and {type(y_spaces).__name__}."
            )
        if len(x_spaces) != len(y_spaces) or not x_spaces:
            raise ValueError(
                f"Each level needs a space on either side, got {len(x_spaces)} of x and {len(y_spaces)} of y. "
                "Give both lists the same length; repeat a space that does not grow."
            )
        x_flag, y_flag = self.x.flag(x_spaces), self.y.flag(y_spaces)
        core = x_flag.basis.T @ self.kernel @ y_flag.basis
        result = []
        for left, sigma, right in level_modes(core, x_flag.ends, y_flag.ends):
            f, g = x_flag.basis @ left, y_flag.basis @ right
            sign = sign_of_columns(f)
            result.append(Modes(sigma, self.x.values(f * sign), self.y.values(g * sign)))
        return tuple(result)

    def multimodal(self) -> MultimodalComponents:
        """Split by interaction order (eq. pib:pii, and beyond two sources).

        What is split is the part of mean 0 in x for each y, and in y for each x: all of a dependence, and of a density
        ratio against another reference what says nothing about the marginals.
        """
        x_root, y_root = self.x.root_mass, self.y.root_mass
        kernel = self.kernel - np.outer(x_root, x_root @ self.kernel)
        centred = Dependence(self.x, self.y, kernel - np.outer(kernel @ y_root, y_root))
        names = self.x.names
        spaces: list[Space] = [list(combinations(names, size)) for size in range(1, len(names))]
        orders = centred.components([*spaces, None])
        interaction = orders[1] if len(orders) == 2 else centred.components([spaces[0], None])[1]
        return MultimodalComponents(orders[0], interaction, orders)

    def _at_all_symbols(self, values: Array) -> Array:
        result = np.zeros((self.x.mass.size, self.y.mass.size))
        result[np.ix_(np.flatnonzero(self.x.mass), np.flatnonzero(self.y.mass))] = values
        return result
