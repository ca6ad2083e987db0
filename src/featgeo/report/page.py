"""The page of the demo: sections with a figure, numbers and code, as one self-contained file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from featgeo.files import make_folder, write_whole
from featgeo.report.html import render


@dataclass(frozen=True)
class Section:
    """One part of a page.

    Attributes:
        slug: Name of its figure file and anchor.
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


def write_page(folder: Path, title: str, introduction: str, sections: Sequence[Section]) -> Path:
    """Write `index.html`, and each figure beside it, into a folder; return the path of the page.

    The page needs no other file. Every file appears whole or not at all.
    """
    make_folder(folder)
    html = render("page.html.j2", title=title, introduction=introduction, sections=sections)
    for section in sections:
        write_whole(folder / f"{section.slug}.svg", section.figure)
    page = folder / "index.html"
    write_whole(page, html)
    return page
