"""What an experiment of the paper is, and what it reports: plain numbers beside their theory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from featgeo.report.panels import Plot

Recipe = Literal["fast", "published"]
SEED = 20_230_606  # the paper's; draws count on from here
DRAWS = 5
NEAR_FLOOR = 1.1  # where no bound is set, an error may be this multiple of what the sample itself leaves
ROUNDING = 1e-9

Data = TypeVar("Data")
Learned = TypeVar("Learned")


@dataclass(frozen=True)
class Number:
    """One figure of an experiment.

    Attributes:
        name: What it is.
        error: Its distance from the theory.
        theory: The true value; None where the error is a distance of functions.
        learned: What was learned; None likewise.
        bound: The largest error that passes; None where the floor decides.
        floor: The error of the exact optimum of the same sample, where it can be computed.
        optimum: The value of that optimum, where the number is a value.
    """

    name: str
    error: float
    theory: float | None = None
    learned: float | None = None
    bound: float | None = None
    floor: float | None = None
    optimum: float | None = None

    @property
    def allowed(self) -> float:
        """The largest error that passes: the bound, or what is near the floor."""
        if self.bound is not None:
            return self.bound
        if self.floor is None:
            raise ValueError(f"{self.name} has neither a bound nor a floor: it cannot be judged. Give it one.")
        return NEAR_FLOOR * self.floor + ROUNDING

    @property
    def passed(self) -> bool:
        """Whether the error is within what is allowed; never for an error that is not a number."""
        return self.error <= self.allowed

    @classmethod
    def value(
        cls, name: str, theory: float, learned: float, *, bound: float | None = None, optimum: float | None = None
    ) -> Number:
        """A value with its theory, and with what the exact optimum of the sample says."""
        theory, learned = float(theory), float(learned)
        floor = None if optimum is None else abs(float(optimum) - theory)
        return cls(
            name, abs(learned - theory), theory, learned, bound, floor, None if optimum is None else float(optimum)
        )


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
        name: For the command line.
        title: Heading.
        source: Where in the paper it stands.
        law: The distribution and the number of samples.
        statement: The theorem that it verifies, in one sentence.
        formula: The same in LaTeX.
        code: The lines that make it, for readers to run.
        draw: From a seed to a sample.
        fast: From a sample and a seed to what the library learns with its defaults.
        published: The same by the architecture, minibatches, epochs and optimiser of the authors.
        measure: From a sample and what was learned to the outcome.
        erratum: What to know about the paper's text.
    """

    name: str
    title: str
    source: str
    law: str
    statement: str
    formula: str
    code: str
    draw: Callable[[int], Data]
    fast: Callable[[Data, int], Learned]
    published: Callable[[Data, int], Learned]
    measure: Callable[[Data, Learned], Outcome]
    erratum: str = ""

    def learn(self, recipe: Recipe, data: Data, seed: int) -> Learned:
        """Learn from a sample by one of the recipes."""
        return {"fast": self.fast, "published": self.published}[recipe](data, seed)

    def run(self, recipe: Recipe = "fast", seed: int = 0) -> Outcome:
        """Draw a sample, learn from it and compare with the truth."""
        data = self.draw(seed)
        return self.measure(data, self.learn(recipe, data, seed))


AnyExperiment = Experiment[Any, Any]


def subscript(index: int) -> str:
    """A number as small digits below the line, for the name of a figure."""
    return str(index).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
