"""Figures of a fitted decomposition: its spectrum and its modes, as matplotlib figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from featgeo.report.figures import BLUE, INK, LINE, ORANGE, THEORY, new_figure, styled

MOST_MODES = 6  # of a figure: more cannot be read
MOST_BARS = 30  # of a panel, likewise
FITTED: Any = {"color": THEORY, "label": "rows of the fit"}
HELD_OUT: Any = {"fmt": "o", "color": ORANGE, "capsize": 3}


@styled
def spectrum(sigma: NDArray[Any], held_out: NDArray[Any], error: NDArray[Any]) -> Figure:
    """Singular values on the rows of the fit, and on held-out rows with two standard errors."""
    figure = new_figure(max(4.8, 1.6 + 0.5 * len(sigma)), 3.4)
    axes, at = figure.add_subplot(), np.arange(1, len(sigma) + 1)
    axes.bar(at, sigma, **FITTED)
    axes.errorbar(at, held_out, yerr=np.nan_to_num(2 * error), label="held-out rows (2 s.e.)", **HELD_OUT)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set(xticks=at, xlabel="mode", ylabel=r"$\sigma_i$")
    axes.set_ylim(top=1.02)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


@styled
def energies(names: Sequence[str], fitted: NDArray[Any], held_out: NDArray[Any], interval: NDArray[Any]) -> Figure:
    """Energies of parts of a dependence on the rows of the fit, and on held-out rows with their intervals.

    Args:
        names: One a part.
        fitted: Energies on the rows of the fit, (m,).
        held_out: On held-out rows, (m,).
        interval: Lower and upper ends, (m, 2).
    """
    figure = new_figure(6.4, 1.3 + 0.34 * len(names))
    axes, at = figure.add_subplot(xlabel=r"energy, $\sum_i \sigma_i^2$"), np.arange(len(names))[::-1]
    axes.barh(at, fitted, **FITTED)
    spread = np.nan_to_num(np.abs(interval - held_out[:, None])).T
    axes.errorbar(held_out, at, xerr=spread, label="held-out rows (95 %)", **HELD_OUT)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(at, names)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


@styled
def modes(sides: Sequence[tuple[str, str, str, NDArray[Any], NDArray[Any]]], sigma: NDArray[Any]) -> Figure:
    """A row of panels for f and one for g, a column for each of the strongest modes.

    Args:
        sides: For X and for Y: the letter, the variable's name, the kind ("curve", "bars" or "rows"), where (m,), and
            the values (m, k).
        sigma: Singular values.
    """
    k = min(len(sigma), MOST_MODES)
    figure = new_figure(max(3.4, 2.4 * k), 4.6)
    for row, (letter, name, kind, at, values) in enumerate(sides):
        first = None
        for i in range(k):
            axes = figure.add_subplot(len(sides), k, row * k + i + 1, sharey=first if kind != "rows" else None)
            first = first or axes
            _panel(axes, kind, at, values[:, i])
            title = f"${letter}_{{{i + 1}}}$"
            axes.set_title(f"{title},  $\\sigma$ = {sigma[i]:.3f}" if row == 0 else title)
            axes.set_xlabel(name if kind != "rows" else f"${letter}_{{{i + 1}}}$({name})")
            axes.tick_params(labelleft=i == 0 or kind == "rows")
    return figure


def _panel(axes: Any, kind: str, at: NDArray[Any], values: NDArray[Any]) -> None:
    if kind == "curve":
        axes.plot(at, values, color=BLUE)
        axes.axhline(0, color=LINE, linewidth=0.8)
    elif kind == "bars":
        strongest = np.sort(np.argsort(-np.abs(values))[:MOST_BARS])
        place = np.arange(len(strongest))
        axes.bar(place, values[strongest], color=BLUE)
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_xticks(place, [str(label) for label in at[strongest]], rotation=60, ha="right", fontsize=8)
    else:
        axes.hist(values, bins=30, color=BLUE)
