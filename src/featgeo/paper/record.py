"""What an experiment of the paper is: a law, two ways to learn from a sample of it, and what is said of the result."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar

from featgeo.report.contents import About, Number
from featgeo.report.panels import Bars, Curves, Panel, Plot

if TYPE_CHECKING:  # the command takes its defaults from here, and its help comes at once
    import numpy as np

    from featgeo.geometry.validation import Array

__all__ = ["Experiment", "Number", "Outcome", "Pairs", "Recipe", "about", "bars", "curves", "figure", "subscript"]

Recipe = Literal["fast", "published"]
SEED = 20_230_606  # the paper's, for its random laws; draws count on from here
DRAWS = 5

Data = TypeVar("Data")
Learned = TypeVar("Learned")


class Pairs(NamedTuple):
    """A sample of two variables, (n,) each."""

    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """What one run shows.

    Attributes:
        numbers: Figures beside their theory.
        plots: What was learned over the theory, in the layout of the paper.
    """

    numbers: Sequence[Number]
    plots: Sequence[Plot]


@dataclass(frozen=True, eq=False)
class Experiment(Generic[Data, Learned]):
    """An experiment: a law, two ways to learn it from a sample, and its exact truth to compare with.

    Attributes:
        about: What it is, in words.
        draw: From a seed to a sample.
        fast: From a sample and a seed to what the library learns with its defaults.
        published: The same by the architecture, minibatches, epochs and optimiser of the authors.
        optimum: What the sample itself says: exactly, or in the span of the true functions.
        compare: From a sample, what was learned and that optimum to numbers and figures beside the truth.
    """

    about: About
    draw: Callable[[int], Data]
    fast: Callable[[Data, int], Learned]
    published: Callable[[Data, int], Learned]
    optimum: Callable[[Data], Learned]
    compare: Callable[[Data, Learned, Learned], Outcome]

    @property
    def name(self) -> str:
        """For the command line."""
        return self.about.name

    def measure(self, data: Data, learned: Learned) -> Outcome:
        """What was learned beside the truth, and each number beside that of the sample's optimum."""
        best = self.optimum(data)
        found, floors = (self.compare(data, each, best) for each in (learned, best))
        numbers = [number.beside(floor) for number, floor in zip(found.numbers, floors.numbers, strict=True)]
        return Outcome(numbers, found.plots)


AnyExperiment = Experiment[Any, Any]


@cache
def _texts() -> dict[str, Any]:
    return tomllib.loads(files("featgeo.paper").joinpath("texts.toml").read_text(encoding="utf-8"))


def about(name: str, **numbers: int) -> About:
    """The texts of an experiment, with the numbers of its law."""
    texts = _texts()["experiments"][name]
    return About(name, **texts | {"law": texts["law"].format(**numbers)})


def figure(name: str, panels: Sequence[Panel], slug: str = "", **parts: object) -> Plot:
    """Panels with the texts and the layout of a figure, and the parts of its caption that change."""
    texts = _texts()["figures"][name]
    return Plot(slug or name, panels=panels, **texts | {"caption": texts["caption"].format(**parts)})


def curves(
    title: str, at: Array, theory: Array, learned: Mapping[str, Array], x_label: str = "$x$", level: float | None = None
) -> Curves:
    """Learned functions over the true one, from arrays (m,)."""
    return Curves(title, at.tolist(), theory.tolist(), {who: f.tolist() for who, f in learned.items()}, x_label, level)


def bars(title: str, theory: Array, learned: Mapping[str, Array], x_label: str, symbols: Sequence[str] = ()) -> Bars:
    """Learned values at symbols beside the true ones, from arrays (m,); symbols without names are numbered."""
    names = symbols or [str(i + 1) for i in range(len(theory))]
    return Bars(title, names, theory.tolist(), {who: f.tolist() for who, f in learned.items()}, x_label)


def subscript(index: int) -> str:
    """A number as small digits below the line, for the name of a figure."""
    return str(index).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
