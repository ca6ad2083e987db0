"""Plots of every kind, and a report, with numbers that a test knows."""

import numpy as np

from featgeo.report.contents import About, Chapter, Number
from featgeo.report.drawing import draw
from featgeo.report.html import write_page
from featgeo.report.panels import Bars, Cells, Curves, Map, Plot, Points

AT = np.linspace(-3, 3, 121)
GRID = np.linspace(-1, 1, 60)
NOISE = np.random.default_rng(0)


def near(values, spread=0.03):
    return (np.asarray(values) + spread * NOISE.normal(size=np.shape(values))).tolist()


def curves(title, *functions, level=None):
    learned = {f"learned {i}": near(function(AT)) for i, function in enumerate(functions)}
    return Curves(title, AT.tolist(), functions[0](AT).tolist(), learned, "$x$", level)


def maps():
    across, up = np.meshgrid(GRID, GRID, indexing="ij")
    functions = {
        "f_bar": np.sin(3 * across) + 0.3 * up,
        "f": np.sin(3 * across) * up,
        "posterior": (1 + across * up) / 2,
    }
    ranges = {"f_bar": (-1.5, 1.5), "f": (-1, 1), "posterior": (0, 1)}
    return [
        Map(f"{name} {way}", (near(values) if way == "learned" else values.tolist()), (-1, 1), ranges[name])
        for way in ("learned", "theory")
        for name, values in functions.items()
    ]


def plots():
    """One plot of each kind and size that experiments use, by slug."""
    symbols = [str(i + 1) for i in range(8)]
    heights = NOISE.normal(size=8)
    groups = {f"(U, V) = ({u}, {v})": near(np.tile([u, v], (150, 1)), 0.1) for u in (0, 1) for v in (0, 1)}
    strips = {
        f"{letter}{i}": NOISE.integers(0, 2, n).tolist() for i in (1, 2, 3) for letter, n in (("x", 40), ("y", 30))
    }
    panels = {
        "estimators": ([curves("means", np.tanh), curves("squares", np.square), curves("several", np.sin, np.sin)], 3),
        "levels": ([curves("first", np.tanh, level=0.5), curves("second", np.sin, level=0.5)], 2),
        "bars": (
            [Bars(f"bars {i}", symbols, heights.tolist(), {"learned": near(heights)}, "$x$") for i in range(8)],
            4,
        ),
        "learners": (
            [Bars("bars", symbols, heights.tolist(), {"SideInfo": near(heights), "multihead": near(heights)})],
            1,
        ),
        "maps": (maps(), 3),
        "histogram": ([Map("sample", NOISE.random((40, 40)).tolist(), (-1, 1), (0, 1), diverging=False)], 1),
        "points": ([Points("features", groups, ("$f_1$", "$f_2$"))], 1),
        "cells": ([Cells("sequences", strips)], 1),
    }
    return {
        slug: Plot(slug, f"Caption of {slug}.", f"What {slug} shows.", shown, columns)
        for slug, (shown, columns) in panels.items()
    }


FORMULA = r"\frac{P_{X,Y}(x,y)}{P_X(x)P_Y(y)} - 1 = \sum_{i} \sigma_i\, f_i^*(x)\, g_i^*(y)"


def chapter(name="discrete", *, numbers=(), plots=(), **changes):
    values = {
        "title": f"Title of {name}", "source": "Section 7.1", "law": "30,000 samples of a known law.",
        "statement": "The optimum is the strongest modes.", "formula": FORMULA, "code": "import featgeo as fg",
    }  # fmt: skip
    return Chapter(About(name, **values | changes), numbers, plots)


FIRST = (
    Number("σ₁", 1.5e-3, 0.4, 0.4015, 0.02, 1.4e-3),
    Number("σ₂", 2e-5, -0.3, -0.30002, 0.02),
    Number("f̄₁, relative error", 0.1, bound=0.11, floor=0.1),
)
SECOND = (
    Number("σ₁", 0.05, 9.5, 9.55, 0.02),
    Number("E[Y|x]", 3e-12, 10.25, 10.25, 1e-10),
    Number("posterior", 0.004, bound=0.005),
)


def write_report(path, *chapters, title="The paper, reproduced", introduction="i", facts=None):
    figures = {f"figures/{plot.slug}.svg": draw(plot) for one in chapters for plot in one.plots}
    values = {"title": title, "introduction": introduction, "facts": facts or {}, "chapters": chapters}
    write_page(path, "report.html.j2", figures, **values)


def sample_report(path):
    """Write a report of three experiments, one of which fails, and return its path."""
    shown = plots()
    chapters = [
        chapter("discrete", numbers=FIRST, plots=[shown["estimators"]]),
        chapter("side", numbers=SECOND, plots=[shown["histogram"]], erratum="Equation 7 has the wrong sign."),
        chapter("sequences", numbers=FIRST[:2], plots=[shown["cells"]]),
    ]
    write_report(path, *chapters, introduction="Each learns from a known law.", facts={"recipe": "fast"})
    return path
