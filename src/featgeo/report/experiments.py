"""The report on experiments: what each one verifies, its figures, and every number beside its theory, as one page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from featgeo.files import make_folder, write_whole
from featgeo.report.html import render


@dataclass(frozen=True)
class Row:
    """One number of an experiment, judged.

    Attributes:
        name: What it is.
        error: Distance of what was learned from the theory.
        allowed: The largest error that counts as agreement.
        passed: Whether it agrees.
        theory: The true value; None where the error is a distance of functions.
        learned: What was learned; None likewise.
        floor: The error of the exact optimum of the same sample, where it is known.
    """

    name: str
    error: float
    allowed: float
    passed: bool
    theory: float | None = None
    learned: float | None = None
    floor: float | None = None


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes:
        svg: SVG text.
        caption: One sentence below it.
        alt: What it shows, for those who cannot see it.
    """

    svg: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Chapter:
    """One experiment.

    Attributes:
        slug: Its anchor.
        title: Heading.
        source: Where in the paper it stands.
        law: The distribution and the number of samples.
        statement: What it verifies, in one sentence.
        formula: The same in LaTeX.
        code: The lines of Python that make it.
        erratum: What to know about the paper's text; empty where there is nothing.
        pictures: Its figures.
        rows: Its numbers.
    """

    slug: str
    title: str
    source: str
    law: str
    statement: str
    formula: str
    code: str
    erratum: str
    pictures: Sequence[Picture]
    rows: Sequence[Row]

    @property
    def agreeing(self) -> int:
        """How many of its numbers agree with the theory."""
        return sum(row.passed for row in self.rows)

    @property
    def passed(self) -> bool:
        """Whether there are numbers and all of them agree."""
        return bool(self.rows) and self.agreeing == len(self.rows)


def write_report(
    path: Path, title: str, introduction: str, facts: Mapping[str, str], chapters: Sequence[Chapter]
) -> None:
    """Write the report as one file that needs no other; it appears whole or not at all.

    Args:
        path: The file; its folder is made where it is missing.
        title: Heading of the page.
        introduction: One paragraph.
        facts: How the run was made: a name and a short value each.
        chapters: The experiments in their order.
    """
    html = render("report.html.j2", title=title, introduction=introduction, facts=facts, chapters=chapters)
    make_folder(path.parent)
    write_whole(path, html)
