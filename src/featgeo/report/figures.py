"""Figures drawn from plain numbers, and their SVG text: what matplotlib writes, without what cannot be seen.

Maps and bars of exact tables come as text; the spectrum, the energies and the modes of a fit as matplotlib figures.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

# Okabe and Ito's colours: told apart by every kind of colour vision.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#d55e00", "#009e73", "#b0568f", "#6e6e6e"
INK, LINE, PAPER = "#1d2329", "#aab3bb", "#ffffff"

SERIES = (ORANGE, BLUE, GREEN, PURPLE, GREY)  # what was learned
THEORY = "#a6d0ec"

# The same colours on dark paper. Attributes hold the light ones, so that programs without style sheets draw those.
DARK = {
    INK: "#e6e9ec", LINE: "#5a6570", PAPER: "#14181c",
    ORANGE: "#ff9147", BLUE: "#5cb8f0", GREEN: "#3fd0a5", PURPLE: "#e79cc9", GREY: "#b5b9bd",
    THEORY: "#3a7399",
}  # fmt: skip

STYLE: Any = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 10,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "featgeo",  # the same figure gives the same file
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


MOST_MODES = 6  # of a figure: more cannot be read
MOST_BARS = 30  # of a panel, likewise
FITTED: Any = {"color": THEORY, "label": "rows of the fit"}
HELD_OUT: Any = {"fmt": "o", "color": ORANGE, "capsize": 3}
PALETTE = 256  # colours of a small image
PIXELS_AN_INCH = 110  # of pictures in notebooks
MOST_TICKS = 30  # of labels along an axis
styled = mpl.rc_context(STYLE)  # decorates what draws


class NotebookFigure(Figure):
    """A figure that notebooks show as it is, with no backend chosen."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        with mpl.rc_context(STYLE):
            self.savefig(picture, format="png", dpi=PIXELS_AN_INCH)
        return picture.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """An empty figure; inches."""
    return NotebookFigure(figsize=(width, height), layout="constrained", facecolor=PAPER)


@styled
def svg(figure: Figure) -> str:
    """The figure as text, the same for the same figure; it turns dark where readers prefer dark pages."""
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", pad_inches=0.08,
                   metadata={"Date": None, "Creator": "featgeo"})  # fmt: skip
    return _lighter(_themed(text.getvalue()))


def _themed(text: str) -> str:
    rules = "".join(
        f'[style*="{role}: {light}"]{{{role}:{dark}!important}}'
        for light, dark in DARK.items()
        for role in ("fill", "stroke")
        if f"{role}: {light}" in text
    )
    return text.replace("</style>", f"@media (prefers-color-scheme:dark){{{rules}}}</style>", 1)


def _lighter(text: str) -> str:
    """The same figure in fewer bytes: rounded coordinates, no turns by nothing, images of few colours by palette."""
    text = re.sub(r'\n(?= *(?:L|M|C|Q|z)\b|")', "", text)  # paths on one line
    text = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", text)
    text = re.sub(r"(<g[^>]*)>\s*((?:<use [^>]*/>\s*)+)</g>", _styled_once, text)
    text = re.sub(r' (?:d|x|y|width|height)="[^"]*"', lambda found: _rounded(found[0], 2), text)
    text = re.sub(
        r' d="[ML\d. z-]*"', lambda found: found[0].replace(" L ", " "), text
    )  # after M, lines are understood
    text = re.sub(r' transform="[^"]*"', lambda found: _rounded(found[0], 4), text)
    return re.sub(r"(?<=data:image/png;base64,)[^\"]*", lambda found: _smaller(found[0]), text)


def _styled_once(group: re.Match[str]) -> str:
    """Marks that look the same say so once, for their group."""
    opening, marks = group[1], group[2]
    styles = set(re.findall(r' style="[^"]*"', marks))
    if len(styles) != 1 or " style=" in opening or marks.count(" style=") != marks.count("<use "):
        return group[0]
    (style,) = styles
    return f"{opening}{style}>{''.join(line.strip() for line in marks.replace(style, '').splitlines())}</g>"


def _rounded(attribute: str, digits: int) -> str:
    return re.sub(rf"\d+\.\d{{{digits + 1},}}", lambda number: f"{float(number[0]):.{digits}f}", attribute)


def _smaller(encoded: str) -> str:
    """An image written by palette: without any change where it has few colours, and close to it where it has more."""
    image = Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGBA")
    pixels = np.asarray(image)
    colours, index = np.unique(pixels.reshape(-1, 4), axis=0, return_inverse=True)
    if len(colours) > PALETTE or (colours[:, 3] < 255).any():
        image = image.quantize(PALETTE, Image.Quantize.FASTOCTREE)
    else:
        image = Image.fromarray(index.reshape(pixels.shape[:2]).astype(np.uint8), mode="P")
        image.putpalette(colours[:, :3].tobytes())
    data = io.BytesIO()
    image.save(data, "png", optimize=True)
    return base64.b64encode(data.getvalue()).decode()


@styled
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
    figure = new_figure(6.4, 4.2)
    axes = figure.add_subplot(xmargin=0.15, ymargin=0.15)
    axes.axhline(0, color=LINE, linewidth=0.8, zorder=0)
    axes.axvline(0, color=LINE, linewidth=0.8, zorder=0)
    for points, colour, marker, name in ((x, BLUE, "o", names[0]), (y, ORANGE, "s", names[1])):
        position = np.stack(list(points.values()))
        axes.scatter(position[:, 0], position[:, 1], color=colour, marker=marker, label=name)
        for label, at in points.items():
            axes.annotate(label, (at[0], at[1]), xytext=(6, 4), textcoords="offset points", color=colour)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xlabel=f"first mode ({shares[0]:.0%} of the dependence)", ylabel=f"second mode ({shares[1]:.0%})")
    axes.legend(loc="best")
    return svg(figure)


@styled
def energy_bars(groups: Sequence[Mapping[str, float]], total: float, unit: str) -> str:
    """Labelled energies as horizontal bars, a colour for each group, with their shares of the total."""
    rows = [(label, value, i) for i, group in enumerate(groups) for label, value in group.items()]
    labels, values, group = zip(*rows, strict=True)
    figure = new_figure(6.4, 0.8 + 0.36 * (len(rows) + len(groups)))
    axes = figure.add_subplot()
    at = np.arange(len(rows)) + 0.6 * np.array(group)  # a gap between groups
    colours = (GREY, BLUE, ORANGE, GREEN)
    bars = axes.barh(at, values, color=[colours[i % len(colours)] for i in group], height=0.7)
    axes.bar_label(bars, [f"{value:.3f}  ({value / total:.0%})" for value in values], padding=5)
    axes.set_yticks(at, labels)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.25 * max(values)), xlabel=unit)
    axes.tick_params(axis="y", length=0)
    return svg(figure)


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


@styled
def bands(at: NDArray[Any], names: tuple[str, str], quantiles: NDArray[Any], happened: NDArray[Any] | None) -> Figure:
    """Distributions of a number, row by row: a line for the middle, bands for what lies within 50 % and 90 %.

    Args:
        at: Where each row stands, (n,), in order: numbers or labels.
        names: What runs along the axes.
        quantiles: At 5, 25, 50, 75 and 95 %, (n, 5).
        happened: What the number was, (n,), as dots.
    """
    figure = new_figure(6.4, 3.6)
    axes, place = figure.add_subplot(xlabel=names[0], ylabel=names[1]), _along(at)
    step: Any = None if at.dtype.kind in "biuf" else "mid"
    for low, alpha, label in ((0, 0.2, "90 %"), (1, 0.35, "50 %")):
        ends = quantiles[:, low], quantiles[:, 4 - low]
        axes.fill_between(place, *ends, color=BLUE, alpha=alpha, linewidth=0, label=label, step=step)
    axes.plot(place, quantiles[:, 2], color=BLUE, label="median", drawstyle="steps-mid" if step else "default")
    if happened is not None:
        axes.plot(place, happened, ".", color=ORANGE, markersize=3, label="what happened")
    _ticks(axes, at)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


@styled
def shares(at: NDArray[Any], names: tuple[str, str], labels: Sequence[str], probability: NDArray[Any]) -> Figure:
    """Probabilities of labels, row by row, on top of each other.

    Args:
        at: Where each row stands, (n,), in order: numbers or labels.
        names: What runs along the axes.
        labels: What is probable, from the bottom up.
        probability: Of each, (n, m).
    """
    figure = new_figure(6.4, 3.6)
    axes, place = figure.add_subplot(xlabel=names[0], ylabel=names[1], ylim=(0, 1)), _along(at)
    step: Any = None if at.dtype.kind in "biuf" else "mid"
    tops = np.cumsum(np.insert(probability, 0, 0.0, axis=1), axis=1).T
    for i, label in enumerate(labels):
        colour, alpha = SERIES[i % len(SERIES)], 1 / (1 + i // len(SERIES))
        axes.fill_between(
            place, tops[i], tops[i + 1], color=colour, alpha=0.8 * alpha, linewidth=0, label=label, step=step
        )
    _ticks(axes, at)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
    return figure


@styled
def importance(names: Sequence[str], totals: NDArray[Any]) -> Figure:
    """Ranked bars of what columns hold alone, and marks for what they add to all others.

    Args:
        names: Of the columns, the strongest first.
        totals: Alone, its standard error, added, its standard error, (d, 4).
    """
    figure = new_figure(6.4, 1.3 + 0.34 * len(names))
    axes, at = figure.add_subplot(xlabel=r"energy, $\sum_i \sigma_i^2$"), np.arange(len(names))[::-1]
    axes.barh(at, totals[:, 0], xerr=2 * totals[:, 1], color=THEORY, ecolor=GREY, label="alone (2 s.e.)")
    axes.errorbar(totals[:, 2], at, xerr=2 * totals[:, 3], label="added to all others (2 s.e.)", **HELD_OUT)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(at, names)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


@styled
def effects(
    titles: Sequence[str],
    columns: Sequence[tuple[str, NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]],
) -> Figure:
    """Means of functions along columns, with two standard errors, over how many rows there are: a row for each column.

    Args:
        titles: What is averaged, (c,).
        columns: For each its name, places in order or labels (m,), their shares of the rows (m,), the means and their
            standard errors, (m, c) each.
    """
    figure = new_figure(2.4 * len(titles), 2.3 * len(columns))
    first: dict[int, Any] = {}  # all columns on one scale
    for row, (name, at, shares, means, errors) in enumerate(columns):
        numbers = at.dtype.kind in "biuf"
        place = _along(at)
        for i, title in enumerate(titles):
            cell = len(columns), len(titles), row * len(titles) + i + 1
            axes = figure.add_subplot(*cell, xlabel=name, sharey=first.get(i))
            first.setdefault(i, axes)
            _behind(axes, place, shares, numbers)
            axes.set(zorder=1, title=title if row == 0 else "")
            if numbers:
                near = means[:, i] - 2 * errors[:, i], means[:, i] + 2 * errors[:, i]
                axes.fill_between(place, *near, color=BLUE, alpha=0.2, linewidth=0)
                axes.plot(place, means[:, i], "-", color=BLUE)
            else:
                axes.errorbar(place, means[:, i], yerr=2 * errors[:, i], fmt="o", color=BLUE)
                _ticks(axes, at)
    return figure


def _behind(axes: Any, place: NDArray[Any], shares: NDArray[Any], numbers: bool) -> None:
    """How many rows there are at each place: bars that touch, by their areas, where places are numbers."""
    behind = axes.twinx()
    if numbers and len(place) > 1:
        between = (place[1:] + place[:-1]) / 2
        ends = np.concatenate([[2 * place[0] - between[0]], between, [2 * place[-1] - between[-1]]])
        behind.stairs(shares / np.diff(ends), ends, fill=True, color=LINE, alpha=0.4)
    else:
        behind.bar(place, shares, width=0.8, color=LINE, alpha=0.4)
    behind.set(yticks=[], zorder=0, ylim=(0, None))
    behind.spines["right"].set_visible(False)


def _along(at: NDArray[Any]) -> NDArray[Any]:
    """Places of rows along an axis: labels stand in a row, in the order of the rows."""
    return at if at.dtype.kind in "biuf" else np.arange(len(at))


def _ticks(axes: Any, at: NDArray[Any]) -> None:
    """Name labels once, in the middle of their rows."""
    if at.dtype.kind in "biuf":
        return
    names, first, counts = np.unique(at.astype(str), return_index=True, return_counts=True)
    kept = np.argsort(-counts, kind="stable")[:MOST_TICKS]
    axes.set_xticks((first + (counts - 1) / 2)[kept], names[kept], rotation=60, ha="right", fontsize=8)
