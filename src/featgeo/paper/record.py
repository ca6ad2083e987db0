"""What an experiment of the paper is: a law, two ways to learn from a sample of it, and what is said of the result.

How far a learned function is from the true one is measured under the distribution of its argument.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from featgeo.geometry import Modes
from featgeo.geometry.validation import Array
from featgeo.report.contents import About
from featgeo.report.contents import Number as Number  # experiments take it from here
from featgeo.report.panels import Bars, Curves, Panel, Plot

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


def of_each(learn: Callable[..., Learned]) -> Callable[..., dict[Any, Learned]]:
    """Of an experiment with several cases: from the name of a case, its sample and a seed, to the same of all cases."""

    def of_all(data: Mapping[Any, Any], *seed: int) -> dict[Any, Learned]:
        return {case: learn(case, own, *seed) for case, own in data.items()}

    return of_all


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


def standardised(values: Array, mass: Array) -> Array:
    """Mean 0 and variance 1 under a distribution, along the first axis."""
    values = values - mass @ values
    return values / np.sqrt(mass @ values**2)


def aligned(values: Array, like: Array, mass: Array) -> Array:
    """Each column standardised, with the sign of its counterpart."""
    values = standardised(values, mass)
    return values * signs(values, like, mass)


def signs(values: Array, like: Array, mass: Array) -> Array:
    """By which each column points the way of its counterpart; a mode has one sign for its f and its g."""
    return np.where(mass @ (standardised(values, mass) * like) < 0, -1.0, 1.0)


def turned(modes: Modes, truth: Modes, x_mass: Array, y_mass: Array) -> Modes:
    """Both sides standardised, with the sign by which f points the way of the true f."""
    turn = signs(modes.f, truth.f, x_mass)
    return Modes(modes.sigma, turn * standardised(modes.f, x_mass), turn * standardised(modes.g, y_mass))


def decorrelation(a: Array, b: Array, mass: Array, turn: Array | None = None) -> Array:
    """1 - correlation of matching columns, a being turned by signs; up to sign where none is given."""
    correlation = mass @ (standardised(a, mass) * standardised(b, mass))
    return np.maximum(1 - (np.abs(correlation) if turn is None else turn * correlation), 0)


def kernel_error(modes: Modes, truth: Array, x_mass: Array, y_mass: Array) -> float:
    """Relative error of sum_i sigma_i f_i(x) g_i(y) for independent x and y: strengths, functions and signs at once."""
    difference = modes.kernel().reshape(len(x_mass), -1) - truth
    return float(np.sqrt((x_mass @ difference**2 @ y_mass) / (x_mass @ truth**2 @ y_mass)))


def relative_error(values: Array, truth: Array, mass: Array) -> Array:
    """Root mean squared difference of matching columns over the root mean square of the truth."""
    return root_mean_square(values - truth, mass) / root_mean_square(truth, mass)


def root_mean_square(values: Array, mass: Array) -> Array:
    """Of each column, under a distribution."""
    return np.sqrt(mass @ values**2)


def uniform(points: int) -> Array:
    """Equal weights."""
    return np.full(points, 1 / points)


def strengths(theory: Array, learned: Array, bounds: Sequence[float]) -> list[Number]:
    """Singular values beside the true ones."""
    values = zip(theory, learned, bounds, strict=True)
    return [
        Number.value(f"σ{subscript(i + 1)}", true, found, bound=bound) for i, (true, found, bound) in enumerate(values)
    ]
