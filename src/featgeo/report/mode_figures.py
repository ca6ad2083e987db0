"""Figures of a fitted decomposition: its spectrum and its modes, as matplotlib figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from featgeo.report.figures import BLUE, INK, LINE, ORANGE, STYLE, THEORY, new_figure

MOST_MODES = 6
MOST_BARS = 30


def spectrum(sigma: NDArray[Any], held_out: NDArray[Any], error: NDArray[Any]) -> Figure:
    """Singular values on the rows of the fit, and on held-out rows with two standard errors."""
    with mpl.rc_context(STYLE):
        figure = new_figure(max(4.8, 1.6 + 0.5 * len(sigma)), 3.4)
        axes = figure.add_subplot()
        at = np.arange(1, len(sigma) + 1)
        axes.bar(at, sigma, color=THEORY, label="rows of the fit")
        spread = np.nan_to_num(2 * error)
        axes.errorbar(at, held_out, yerr=spread, fmt="o", color=ORANGE, capsize=3, label="held-out rows (2 s.e.)")
        axes.axhline(0, color=INK, linewidth=0.8)
        axes.set_xticks(at)
        axes.set_ylim(top=1.02)
        axes.set_xlabel("mode")
        axes.set_ylabel(r"$\sigma_i$")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure


def energies(names: Sequence[str], fitted: NDArray[Any], held_out: NDArray[Any], interval: NDArray[Any]) -> Figure:
    """Energies of parts of a dependence on the rows of the fit, and on held-out rows with their intervals.

    Args:
        names: One a part.
        fitted: Energies on the rows of the fit, (m,).
        held_out: On held-out rows, (m,).
        interval: Lower and upper ends, (m, 2).
    """
    with mpl.rc_context(STYLE):
        figure = new_figure(6.4, 1.3 + 0.34 * len(names))
        axes = figure.add_subplot()
        at = np.arange(len(names))[::-1]
        axes.barh(at, fitted, color=THEORY, label="rows of the fit")
        spread = np.nan_to_num(np.abs(interval - held_out[:, None])).T
        axes.errorbar(held_out, at, xerr=spread, fmt="o", color=ORANGE, capsize=3, label="held-out rows (95 %)")
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yticks(at, names)
        axes.set_xlabel(r"energy, $\sum_i \sigma_i^2$")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return figure


def modes(sides: Sequence[tuple[str, str, str, NDArray[Any], NDArray[Any]]], sigma: NDArray[Any]) -> Figure:
    """A row of panels for f and one for g, a column for each of the strongest modes.

    Args:
        sides: For X and for Y: the letter, the variable's name, the kind ("curve", "bars" or "rows"), where (m,), and
            the values (m, k).
        sigma: Singular values.
    """
    with mpl.rc_context(STYLE):
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
