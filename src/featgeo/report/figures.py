"""Figures as SVG text, drawn from plain numbers."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

# Okabe and Ito's colours: told apart by every kind of colour vision.
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#6e6e6e"

STYLE: Any = {
    "axes.edgecolor": "#444444",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 10,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "featgeo",  # the same figure gives the same file
}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; inches."""
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def svg(figure: Figure) -> str:
    """The figure as text, the same for the same figure."""
    text = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "featgeo"})
    return text.getvalue()


def mode_map(
    x: Mapping[str, NDArray[Any]], y: Mapping[str, NDArray[Any]], shares: Sequence[float], names: tuple[str, str]
) -> str:
    """Symbols of two variables on one map: each at (sigma_1 f_1, sigma_2 f_2), or (sigma_1 g_1, sigma_2 g_2).

    Args:
        x: The position of each symbol of x, (2,).
        y: The position of each symbol of y.
        shares: Share of the energy in either direction.
        names: What x and y are.
    """
    with mpl.rc_context(STYLE):
        figure = new_figure(6.4, 4.2)
        axes = figure.add_subplot()
        axes.axhline(0, color="#cccccc", linewidth=0.8, zorder=0)
        axes.axvline(0, color="#cccccc", linewidth=0.8, zorder=0)
        for points, colour, marker, name in ((x, BLUE, "o", names[0]), (y, ORANGE, "s", names[1])):
            position = np.stack(list(points.values()))
            axes.scatter(position[:, 0], position[:, 1], color=colour, marker=marker, label=name)
            for label, at in points.items():
                axes.annotate(label, (at[0], at[1]), xytext=(6, 4), textcoords="offset points", color=colour)
        axes.margins(0.15)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_xlabel(f"first mode ({shares[0]:.0%} of the dependence)")
        axes.set_ylabel(f"second mode ({shares[1]:.0%})")
        axes.legend(loc="best")
        return svg(figure)


def energy_bars(groups: Sequence[Mapping[str, float]], total: float, unit: str) -> str:
    """Labelled energies as horizontal bars, a colour for each group, with their shares of the total."""
    with mpl.rc_context(STYLE):
        rows = [(label, value, i) for i, group in enumerate(groups) for label, value in group.items()]
        figure = new_figure(6.4, 0.8 + 0.36 * (len(rows) + len(groups)))
        axes = figure.add_subplot()
        colours = (GREY, BLUE, ORANGE, GREEN)
        position, ticks = 0.0, []
        for index, (label, value, group) in enumerate(rows):
            if index and group != rows[index - 1][2]:
                position += 0.6
            axes.barh(position, value, color=colours[group % len(colours)], height=0.7)
            axes.annotate(f"{value:.3f}  ({value / total:.0%})", (value, position), xytext=(5, 0),
                          textcoords="offset points", va="center")  # fmt: skip
            ticks.append((position, label))
            position += 1
        axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks])
        axes.invert_yaxis()
        axes.set_xlim(0, 1.25 * max(value for _, value, _ in rows))
        axes.set_xlabel(unit)
        axes.tick_params(axis="y", length=0)
        return svg(figure)


def modes_over_theory(
    theory: Mapping[str, NDArray[Any]], learned: Mapping[str, NDArray[Any]], symbols: tuple[str, str]
) -> str:
    """Learned modes over true ones, in the paper's layout: a row of f, a row of g, and the singular values.

    Args:
        theory: "sigma" (k,), "f" (|X|, k), "g" (|Y|, k) of the truth.
        learned: The same of the sample.
        symbols: What x and y are called.
    """
    with mpl.rc_context(STYLE):
        k = len(theory["sigma"])
        figure = new_figure(8.4, 4.6)
        grid = figure.add_gridspec(2, k + 1, width_ratios=[1.3] * k + [1])
        for row, (letter, symbol) in enumerate(zip("fg", symbols, strict=True)):
            first = None
            for i in range(k):
                axes = figure.add_subplot(grid[row, i], sharey=first)
                first = first or axes
                at = np.arange(1, len(theory[letter]) + 1)
                axes.bar(at, theory[letter][:, i], color="#bcd7ea", label="theory")
                axes.plot(at, learned[letter][:, i], "o", color=ORANGE, markersize=4.5, label="from samples")
                axes.axhline(0, color="#444444", linewidth=0.8)
                axes.set_title(f"${letter}_{i + 1}^*({symbol})$")
                axes.set_xticks(at)
                axes.tick_params(labelleft=i == 0)
        axes = figure.add_subplot(grid[:, k])
        at = np.arange(1, k + 1)
        axes.bar(at, theory["sigma"], color="#bcd7ea", label="theory")
        axes.plot(at, learned["sigma"], "o", color=ORANGE, label="from samples")
        axes.set_xticks(at)
        axes.set_title(r"$\sigma_i$")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return svg(figure)
