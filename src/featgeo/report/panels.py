"""What a figure shows, as plain numbers: panels of curves, bars, maps, points and cells, in rows and columns.

Experiments say what to show with these; `report.drawing` draws them. Nothing here needs a charting library, and all of
it survives a trip through JSON.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from featgeo.schema import made

Numbers = Sequence[float]


@dataclass(frozen=True)
class Curves:
    """Learned functions of a number over the true one.

    Attributes:
        title: Heading; mathematics between dollar signs.
        at: Where the functions are known, (m,).
        theory: The true function, (m,).
        learned: Learned ones by name, (m,) each.
        x_label: What runs along the axis.
        level: A height to mark, such as the 1/2 above which a label is predicted.
    """

    title: str
    at: Numbers
    theory: Numbers
    learned: Mapping[str, Numbers]
    x_label: str = "$x$"
    level: float | None = None


@dataclass(frozen=True)
class Bars:
    """Values at symbols: the true ones as bars, learned ones as marks.

    Attributes:
        title: Heading.
        symbols: Name of each symbol, (m,).
        theory: The true values, (m,).
        learned: Learned values by the name of who learned them, (m,) each.
        x_label: What the symbols are.
    """

    title: str
    symbols: Sequence[str]
    theory: Numbers
    learned: Mapping[str, Numbers]
    x_label: str = ""


@dataclass(frozen=True)
class Map:
    """A function on a square, as colours.

    Attributes:
        title: Heading.
        values: A row for each value of the horizontal variable, (m, m).
        extent: Ends of both variables.
        range: Values at the ends of the colours, the same in panels to be compared.
        diverging: Whether the middle of the range is a middle, with colours on either side.
        labels: The horizontal and the vertical variable.
    """

    title: str
    values: Sequence[Numbers]
    extent: tuple[float, float]
    range: tuple[float, float]
    diverging: bool = True
    labels: tuple[str, str] = ("$x_1$", "$x_2$")


@dataclass(frozen=True)
class Points:
    """Points on a plane, a mark for each group.

    Attributes:
        title: Heading.
        groups: Name of each group and its points, (m, 2).
        labels: The horizontal and the vertical coordinate.
    """

    title: str
    groups: Mapping[str, Sequence[Numbers]]
    labels: tuple[str, str]


@dataclass(frozen=True)
class Cells:
    """Rows of symbols 0 and 1.

    Attributes:
        title: Heading.
        rows: Name and symbols of each row.
    """

    title: str
    rows: Mapping[str, Sequence[int]]


Panel = Curves | Bars | Map | Points | Cells
_KINDS: dict[str, type[Panel]] = {kind.__name__: kind for kind in (Curves, Bars, Map, Points, Cells)}


@dataclass(frozen=True)
class Plot:
    """One figure.

    Attributes:
        slug: Name of its file.
        caption: One sentence below it.
        alt: What it shows, for those who cannot see it.
        panels: From left to right, then down.
        columns: How many panels stand side by side.
        widths: Relative widths of the columns; equal when empty.
    """

    slug: str
    caption: str
    alt: str
    panels: Sequence[Panel]
    columns: int
    widths: Numbers = field(default=())

    def __post_init__(self) -> None:
        if not isinstance(self.slug, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", self.slug):
            raise ValueError(
                f"The slug of a figure becomes a file name: letters, digits, '-' and '_' only, got {self.slug!r:.60}. "
                "Use such a name."
            )


def as_plain(plot: Plot) -> dict[str, Any]:
    """A plot as what JSON can hold."""
    panels = [{"kind": type(panel).__name__} | asdict(panel) for panel in plot.panels]
    return asdict(plot) | {"panels": panels}


def from_plain(plain: Mapping[str, Any]) -> Plot:
    """The plot that `as_plain` wrote; anything else is refused."""
    panels = [
        made(_KINDS[entry["kind"]], {name: value for name, value in entry.items() if name != "kind"})
        for entry in plain["panels"]
    ]
    for panel in panels:
        _check_sizes(panel)
    plot: Plot = made(Plot, {**plain, "panels": panels})
    if not panels or plot.columns < 1 or len(plot.widths) not in (0, plot.columns):
        raise ValueError(f"{len(panels)} panels in {plot.columns} columns of widths {plot.widths}")
    return plot


def _check_sizes(panel: Panel) -> None:
    """Lengths that belong together are the same."""
    match panel:
        case Curves(at=along) | Bars(symbols=along):
            sizes = [len(along), len(panel.theory), *map(len, panel.learned.values())]
        case Map(values=rows):
            sizes = [len(row) for row in rows]
        case Points(groups=groups):
            sizes = [2, *(len(point) for group in groups.values() for point in group)]
        case Cells(rows=named):  # of lengths of their own
            sizes = [min(1, len(row)) for row in named.values()]
    if not sizes or min(sizes) < 1 or len(set(sizes)) > 1:
        raise ValueError(f"a panel of kind {type(panel).__name__} with lengths {sorted(set(sizes))[:5]}")
