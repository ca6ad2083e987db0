"""What depends on what, drawn: a map of the strengths of all pairs, and a graph of those that are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke
from numpy.typing import NDArray

from featgeo.report.figures import BLUE, INK, LINE, ORANGE, PAPER, new_figure, styled

LONGEST_NAME = 28  # characters of a name in a figure
CELL = 0.26  # inches of a pair in the map
LEAST_WIDTH, MOST_WIDTH = 0.6, 7.0  # points of a line in the graph, at strengths 0 and 1
STRENGTHS = LinearSegmentedColormap.from_list("strengths", ["#eef5fa", "#7fb8dc", BLUE, "#00324f"])


@styled
def heatmap(names: Sequence[str], strength: NDArray[Any], chance: NDArray[np.bool_], title: str) -> Figure:
    """The strengths of pairs as colours; pairs that may be chance have a dot and no colour.

    Args:
        names: Of the columns, (p,).
        strength: Of each pair, symmetric, (p, p); NaN where it is not to be shown.
        chance: Which pairs may be chance, (p, p).
        title: Says what is shown.
    """
    side = 1.2 + CELL * len(names)
    figure = new_figure(max(side + 1.6, 4.6), max(side + 0.6, 3.6))
    axes = figure.add_subplot()
    image = axes.imshow(strength, vmin=0, vmax=1, cmap=STRENGTHS, interpolation="none")
    row, column = np.nonzero(chance)
    axes.scatter(column, row, s=2.5, color=LINE, linewidths=0)
    axes.set_xticks(range(len(names)), [short(name) for name in names], rotation=60, ha="right", fontsize=8)
    axes.set_yticks(range(len(names)), [short(name) for name in names], fontsize=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title, loc="left", fontsize=10)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=24, label="strength on held-out rows")
    bar.outline.set_visible(False)
    return figure


@styled
def graph(
    names: Sequence[str], at: NDArray[Any], lines: NDArray[np.int64], strength: NDArray[Any], title: str
) -> Figure:
    """Columns as points and pairs as lines between them, the broader and darker the stronger.

    Args:
        names: Of the columns, (p,).
        at: Where they stand, (p, 2).
        lines: The two columns of each pair, by place, (m, 2).
        strength: Of each pair, (m,).
        title: Says what is shown.
    """
    side = float(np.clip(2.5 + 0.9 * np.sqrt(len(names)), 4.0, 11.0))
    figure = new_figure(side * 1.25, side)
    axes = figure.add_subplot()
    weak_first = np.argsort(strength)
    widths = LEAST_WIDTH + (MOST_WIDTH - LEAST_WIDTH) * strength[weak_first].clip(0, 1)
    colours = STRENGTHS(0.2 + 0.7 * strength[weak_first].clip(0, 1))
    axes.add_collection(
        LineCollection(list(at[lines[weak_first]]), linewidths=widths, colors=colours, capstyle="round")
    )
    axes.scatter(at[:, 0], at[:, 1], s=34, color=ORANGE, edgecolors=PAPER, linewidths=1, zorder=3)
    for name, (x, y) in zip(names, at, strict=True):
        axes.annotate(
            short(name),
            (x, y),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=8.5,
            color=INK,
            zorder=4,
            path_effects=[Stroke(linewidth=2.5, foreground=PAPER), Normal()],
        )
    axes.set(xmargin=0.15, ymargin=0.12)
    axes.set_axis_off()
    axes.autoscale_view()
    axes.set_title(title, loc="left", fontsize=10)
    return figure


def short(name: str) -> str:
    """A name on one line, not too long, and without mathematics."""
    text = "".join(letter if letter.isprintable() else "?" for letter in name)
    text = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
    return text.replace("$", r"\$")
