"""Figures of a fitted model and of the demo look as those that were kept.

Where one is meant to change, run this file as a script, look at the new ones, and keep them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pictures import assert_same_picture, needs_the_version_of_the_kept

from featgeo import demo
from featgeo.report import figures
from featgeo.report.drawing import draw
from featgeo.report.figures import svg
from featgeo.report.panels import Cells, Map, Plot, Points

KEPT = Path(__file__).parent / "kept_figures"
LABELS = np.array(["a", "b", "c"])


def _modes() -> str:
    at = np.linspace(-1, 1, 9)
    curves, bars = np.column_stack([at, at**2]), np.array([[1.0, -0.5], [-2.0, 0.5], [0.3, 1.5]])
    rows = np.column_stack([np.arange(40.0) % 7, np.arange(40.0) % 3])
    sides = [("f", "X", "curve", at, curves), ("g", "Y", "bars", LABELS, bars), ("h", "Z", "rows", at, rows)]
    return svg(figures.modes(sides, np.array([0.9, 0.4])))


def _panels() -> str:
    plane = np.outer([0, 1, 2], [1, 2, 3]) / 6
    maps = [Map(str(i), plane.tolist(), (-1, 1), (0, 1), i < 2, ("$u$", "$v$")) for i in range(3)]
    return draw(Plot("maps", "", "", maps, 3))


def _points() -> str:
    groups = {"one": [[0.0, 1.0], [1.0, 2.0]], "two": [[2.0, 0.5]], "a long name of a group of points": [[1.0, 1.0]]}
    points = Points("points", groups, ("$f$", "$g$"))
    return draw(Plot("points", "", "", [points, Cells("cells", {"x": [0, 1, 1], "y": [1, 0, 1]})], 2, widths=[2, 1]))


FIGURES = {
    "spectrum": lambda: svg(
        figures.spectrum(np.array([0.9, 0.5, 0.1]), np.array([0.8, 0.4, -0.1]), np.array([0.02, 0.05, np.nan]))
    ),
    "energies": lambda: svg(
        figures.energies(
            LABELS, np.array([0.5, 0.2, 0.1]), np.array([0.4, 0.1, 0.0]), np.array([[0.3, 0.6], [0, 0.2], [-0.1, 0.1]])
        )
    ),
    "modes": _modes,
    "maps": _panels,
    "points": _points,
    "titanic": lambda: demo.titanic().figure,
}


@needs_the_version_of_the_kept
@pytest.mark.parametrize("name", FIGURES)
def test_figures_look_as_kept(name):
    assert_same_picture(FIGURES[name](), KEPT / f"{name}.svg")


if __name__ == "__main__":
    KEPT.mkdir(exist_ok=True)
    for name, figure in FIGURES.items():
        (KEPT / f"{name}.svg").write_text(figure())
