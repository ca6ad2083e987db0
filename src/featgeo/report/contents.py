"""What pages show, as plain records: judged numbers, chapters of the report, sections of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from featgeo.report.panels import Plot

NEAR_FLOOR = 1.1  # where no bound is set, an error may be this multiple of what the sample itself leaves
ROUNDING = 1e-9


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
        floor = None if optimum is None else float(abs(optimum - theory))
        best = None if optimum is None else float(optimum)
        return cls(name, float(abs(learned - theory)), float(theory), float(learned), bound, floor, best)

    def beside(self, best: Number) -> Number:
        """The same number with that of the sample's exact optimum.

        An optimum without error is no floor: then the sample, or what it is drawn from, is itself the theory.
        """
        if self.theory is not None and self.learned is not None:
            return self.value(self.name, self.theory, self.learned, bound=self.bound, optimum=best.learned)
        return self if self.bound is not None and best.error <= ROUNDING else replace(self, floor=best.error)


@dataclass(frozen=True)
class About:
    """What an experiment is, in words.

    Attributes:
        name: For the command line, and its anchor in the report.
        title: Heading.
        source: Where in the paper it stands.
        law: The distribution and the number of samples.
        statement: The theorem that it verifies, in one sentence.
        formula: The same in LaTeX.
        code: The lines that make it, for readers to run.
        erratum: What to know about the paper's text; empty where there is nothing.
    """

    name: str
    title: str
    source: str
    law: str
    statement: str
    formula: str
    code: str
    erratum: str = ""


@dataclass(frozen=True)
class Chapter:
    """An experiment after all its draws: its numbers are medians, its plots those of the first draw."""

    about: About
    numbers: Sequence[Number]
    plots: Sequence[Plot]

    @property
    def agreeing(self) -> int:
        """How many of its numbers agree with the theory."""
        return sum(number.passed for number in self.numbers)

    @property
    def passed(self) -> bool:
        """Whether there are numbers and all of them agree."""
        return bool(self.numbers) and self.agreeing == len(self.numbers)


@dataclass(frozen=True)
class Section:
    """One part of the demo's page.

    Attributes:
        slug: Its anchor, and the name of its figure's file.
        title: Heading.
        lead: What it shows, one paragraph a string.
        figure: SVG text.
        alt: What the figure shows, for those who cannot see it.
        columns: Heading of each column of the table.
        rows: The table.
        code: The lines of Python that give these numbers.
    """

    slug: str
    title: str
    lead: Sequence[str]
    figure: str
    alt: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    code: str
