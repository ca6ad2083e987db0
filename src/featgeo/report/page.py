"""The page: sections with a figure, numbers and code, as one self-contained file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined


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
    folder.mkdir(parents=True, exist_ok=True)
    environment = Environment(
        loader=PackageLoader("featgeo.report", "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["data_uri"] = _data_uri
    html = environment.get_template("page.html.j2").render(title=title, introduction=introduction, sections=sections)
    for section in sections:
        _write_whole(folder / f"{section.slug}.svg", section.figure)
    page = folder / "index.html"
    _write_whole(page, html)
    return page


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _write_whole(path: Path, text: str) -> None:
    """Write beside the target, then rename: a reader never meets half a file."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
