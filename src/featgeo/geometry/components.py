"""The named components into which the paper's settings split a dependence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from featgeo.geometry.modes import Modes


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
