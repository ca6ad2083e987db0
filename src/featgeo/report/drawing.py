"""Plots drawn: theory pale and broad below, what was learned thin and strong above, one legend for the figure.

Neighbours that belong together share their scale, their names and a bar of colours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import singledispatch
from itertools import groupby
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from featgeo.report.figures import INK, LINE, SERIES, STYLE, THEORY, new_figure, svg
from featgeo.report.panels import Bars, Cells, Curves, Map, Panel, Plot, Points

Handles = dict[str, Any]  # what the legend shows, by its label

LINES = ("-", (0, (4, 1.6)), (0, (1.2, 1.2)), "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
FEW = {"nbins": 6, "steps": [1, 2, 5, 10]}  # ticks
MARKS = ("o", "D", "^", "s", "v")
MOST_VECTOR_POINTS = 800  # more are drawn as an image: a mark of its own for each would make a heavy file
DENSE = {
    "font.size": 9.5,
    "axes.titlesize": 11,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 9.5,
    "path.simplify_threshold": 0.2,
}


@mpl.rc_context(STYLE | DENSE)
def draw(plot: Plot) -> str:
    """The plot as SVG text, the same for the same plot."""
    figure, places = laid_out(plot)
    handles: Handles = {}
    for place in places:
        handles |= draw_panel(place.panel, place.axes)
        place.axes.set_title(place.panel.title)
    share_heights(places)
    join_maps(places)
    add_colour_bars(figure, places)
    if handles:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center",
                      ncols=_legend_columns(list(handles), figure.get_figwidth()))  # fmt: skip
    return svg(figure)


def _legend_columns(labels: Sequence[str], width: float) -> int:
    """All beside each other where they fit, else in as many rows as it takes."""
    rows = math.ceil(sum(0.65 + 0.075 * len(label.strip("$")) for label in labels) / width)
    return math.ceil(len(labels) / rows)


@singledispatch
def draw_panel(panel: Any, axes: Any) -> Handles:
    """Draw a panel into axes, and return what the legend should say of it."""
    raise TypeError(f"A panel is one of Curves, Bars, Map, Points and Cells. Got {type(panel).__name__}.")


@draw_panel.register
def _curves(panel: Curves, axes: Any) -> Handles:
    if panel.level is not None:
        axes.axhline(panel.level, color=INK, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1)
        axes.annotate(f"{panel.level:g}", (1, panel.level), xycoords=("axes fraction", "data"), xytext=(3, 0),
                      textcoords="offset points", va="center", fontsize=8.5)  # fmt: skip
    (broad,) = axes.plot(panel.at, panel.theory, color=THEORY, linewidth=5, zorder=2, solid_capstyle="round")
    handles: Handles = {"theory": broad}
    for i, (name, values) in enumerate(panel.learned.items()):
        (handles[name],) = axes.plot(panel.at, values, color=SERIES[i % len(SERIES)], linewidth=1.6,
                                     linestyle=LINES[i % len(LINES)], zorder=3)  # fmt: skip
    axes.set(xlabel=panel.x_label, xmargin=0.02, ymargin=0.08)
    axes.locator_params(**FEW)
    return handles


@draw_panel.register
def _bars(panel: Bars, axes: Any) -> Handles:
    at = np.arange(len(panel.symbols))
    handles: Handles = {"theory": axes.bar(at, panel.theory, color=THEORY, width=0.78, zorder=2)}
    shift = 0.24 if len(panel.learned) > 1 else 0.0
    offsets = shift * (np.arange(len(panel.learned)) - (len(panel.learned) - 1) / 2)
    for i, (name, values) in enumerate(panel.learned.items()):
        (handles[name],) = axes.plot(at + offsets[i], values, MARKS[i % len(MARKS)], color=SERIES[i % len(SERIES)],
                                     markersize=5, markeredgewidth=0, zorder=4)  # fmt: skip
    axes.axhline(0, color=INK, linewidth=0.8, zorder=3)
    longest = max((len(symbol) for symbol in panel.symbols), default=0)
    crowded = longest * len(panel.symbols) > 30
    axes.set_xticks(at, panel.symbols, **({"rotation": 40, "ha": "right"} if crowded else {}))
    axes.tick_params(axis="x", length=0)
    axes.set(xlabel=panel.x_label, ymargin=0.08)
    axes.locator_params("y", **FEW)
    return handles


@draw_panel.register
def _map(panel: Map, axes: Any) -> Handles:
    low, high = panel.extent
    axes.imshow(
        np.asarray(panel.values, dtype=float).T,  # rows of the panel run to the right, those of an image upwards
        origin="lower", extent=(low, high, low, high), vmin=panel.range[0], vmax=panel.range[1],
        cmap="RdBu_r" if panel.diverging else "viridis", interpolation="none",
    )  # fmt: skip
    axes.set_xlabel(panel.labels[0], labelpad=1)
    axes.set_ylabel(panel.labels[1], labelpad=1, rotation=0, va="center", ha="right")
    axes.locator_params(**FEW | {"nbins": 3})
    axes.spines[:].set_visible(False)
    return {}


@draw_panel.register
def _points(panel: Points, axes: Any) -> Handles:
    handles: Handles = {}
    many = sum(len(points) for points in panel.groups.values()) > MOST_VECTOR_POINTS
    for i, (name, points) in enumerate(panel.groups.items()):
        position = np.asarray(points, dtype=float).reshape(-1, 2)
        look = {"marker": MARKS[i % len(MARKS)], "color": SERIES[i % len(SERIES)], "linewidths": 0}
        axes.scatter(position[:, 0], position[:, 1], s=14, alpha=0.75, rasterized=many, **look)
        handles[name] = axes.scatter([], [], s=30, **look)
    axes.set(xlabel=panel.labels[0], ylabel=panel.labels[1], xmargin=0.06, ymargin=0.06)
    axes.locator_params(**FEW)
    return handles


@draw_panel.register
def _cells(panel: Cells, axes: Any) -> Handles:
    handles: Handles = {}
    for symbol, colour in ((0, THEORY), (1, SERIES[1])):
        squares = [
            _square(at, row)
            for row, symbols in enumerate(panel.rows.values())
            for at, value in enumerate(symbols)
            if value == symbol
        ]
        if squares:
            patch = PathPatch(Path.make_compound_path(*squares), facecolor=colour, linewidth=0)
            axes.add_patch(patch)
            handles[str(symbol)] = patch
    longest = max((len(symbols) for symbols in panel.rows.values()), default=1)
    axes.set(xlim=(0.4, longest + 0.6), ylim=(len(panel.rows) - 0.4, -0.6), xticks=[1, *range(5, longest + 1, 5)])
    axes.set_yticks(range(len(panel.rows)), list(panel.rows))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return handles


def _square(at: int, row: int) -> Path:
    left, right, top, bottom = at + 0.56, at + 1.44, row - 0.38, row + 0.38
    return Path([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)], closed=True)


WIDEST = 8.6  # inches; the column of the page


class Place(NamedTuple):
    """A panel, where it stands, and its axes."""

    row: int
    column: int
    panel: Panel
    axes: Any


def laid_out(plot: Plot) -> tuple[Figure, list[Place]]:
    """An empty figure with axes for each panel."""
    columns = min(plot.columns, len(plot.panels))
    rows = [plot.panels[start : start + columns] for start in range(0, len(plot.panels), columns)]
    shares = np.asarray(plot.widths or [1.0] * columns, dtype=float)[:columns]
    width = max(_width(panel, columns) for panel in plot.panels)
    across = width * shares / shares.sum()
    heights = [max(_height(panel, across[i]) for i, panel in enumerate(row)) for row in rows]
    figure = new_figure(width, sum(heights) + 0.35)
    figure.set_layout_engine("compressed" if all(isinstance(panel, Map) for panel in plot.panels) else "constrained",
                             w_pad=0.08)  # fmt: skip
    grid = figure.add_gridspec(len(rows), columns, width_ratios=shares, height_ratios=heights)
    places = [
        Place(i, j, panel, figure.add_subplot(grid[i, j])) for i, row in enumerate(rows) for j, panel in enumerate(row)
    ]
    return figure, places


def _width(panel: Panel, columns: int) -> float:
    """Inches of a figure of such panels."""
    if isinstance(panel, Cells):
        return WIDEST
    alone, two = (4.2, 7.0) if isinstance(panel, Map | Points) else (5.4, 7.4)
    return {1: alone, 2: two}.get(columns, WIDEST)


def _height(panel: Panel, width: float) -> float:
    """Inches of a panel of this width."""
    match panel:
        case Cells(rows=rows):
            return 0.55 + 0.23 * len(rows)
        case Map():
            return width
        case Points():
            return 0.95 * width
    return float(np.clip(0.75 * width, 1.9, 2.8))


def _neighbours(places: Sequence[Place], key: Callable[[Panel], object], *, down: bool = False) -> list[list[Place]]:
    """Runs of panels of the same key that stand next to each other in a row, or in a column; None is no key."""
    order = sorted(places, key=lambda place: (place.column, place.row) if down else (place.row, place.column))
    runs = groupby(order, lambda place: (place.column if down else place.row, key(place.panel)))
    return [list(run) for (_, shared), run in runs if shared is not None]


def _axis(panel: Panel) -> object:
    """What a panel of heights stands on."""
    if isinstance(panel, Curves):
        return panel.x_label, tuple(panel.at)
    return tuple(panel.symbols) if isinstance(panel, Bars) else None


def _colours(panel: Panel) -> object:
    return (tuple(panel.range), panel.diverging) if isinstance(panel, Map) else None


def share_heights(places: Sequence[Place]) -> None:
    """One vertical scale for neighbours on the same axis, unless it would flatten one of them to less than half."""
    for run in _neighbours(places, _axis):
        limits = np.array([place.axes.get_ylim() for place in run])
        low, high = limits[:, 0].min(), limits[:, 1].max()
        if len(run) > 1 and np.ptp(limits, axis=1).min() >= 0.5 * (high - low):
            for i, place in enumerate(run):
                place.axes.set_ylim(low, high)
                place.axes.tick_params(labelleft=i == 0)


def join_maps(places: Sequence[Place]) -> None:
    """Maps that all show the same square name its sides once, at the left and below."""
    squares = [(panel.extent, panel.labels) for _, _, panel, _ in places if isinstance(panel, Map)]
    if len(squares) == len(places) and len(set(squares)) == 1:
        for place in places:
            place.axes.label_outer()


def add_colour_bars(figure: Figure, places: Sequence[Place]) -> None:
    """A bar of colours for each run of maps with the same colours: beside rows or below columns, as needs fewer."""
    across, along = _neighbours(places, _colours), _neighbours(places, _colours, down=True)
    down = len(along) < len(across)
    for run in along if down else across:
        image = run[0].axes.images[0]
        low, high = image.get_clim()
        diverging = isinstance(run[0].panel, Map) and run[0].panel.diverging
        ticks = [low, (low + high) / 2, high] if diverging else MaxNLocator(4)
        bar = figure.colorbar(
            image, ax=[place.axes for place in run], location="bottom" if down else "right",
            fraction=0.06, pad=0.03, aspect=24 if down else 18, shrink=0.85, ticks=ticks, format="{x:.3g}",
        )  # fmt: skip
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=2, color=LINE)
