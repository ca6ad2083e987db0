"""How panels stand together: places and sizes, scales and names that neighbours share, bars of colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from featgeo.report.figures import LINE, new_figure
from featgeo.report.panels import Bars, Cells, Curves, Map, Panel, Plot, Points

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
