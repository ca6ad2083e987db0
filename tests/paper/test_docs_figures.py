"""The figures of the docs are those that the library draws today, up to what the eye sees; and what may be wrong."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from featgeo import demo
from featgeo.paper import EXPERIMENTS
from featgeo.report.drawing import draw
from featgeo.reproduce import SEED

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
EYE = 1.5  # units of the figures, of which 72 are an inch

BOUNDS = {
    "discrete": [None, *[0.02] * 3, *[None] * 6, 1e-10],
    "cosine": [0.04, 0.015, 0.015, 0.012, 0.006, 0.014],
    "orthogonality": [0.001, 0.05, 1e-6, 0.015, 0.015] * 2,
    "side-information": [1e-4, 1e-4, 1e-3, *[None] * 7],
    "multimodal-pairwise": [0.06, 0.02, 0.01, 0.01, 0.02],
    "gaussian": [*[0.001, 0.005, 0.02, 0.07] * 2, *[0.015] * 3, 0.03, 0.03],
    "mixture": [0.002, 0.02],
    "sequential": [None, None, None, 0.002] * 2,
}

needs_the_version_of_the_docs = pytest.mark.skipif(
    f"matplotlib=={mpl.__version__}\n" not in (ROOT / "constraints.txt").read_text(),
    reason="other versions of matplotlib draw other files",
)


def assert_same_picture(svg, slug):
    kept = (ROOT / "docs" / "figures" / f"{slug}.svg").read_text()
    assert NUMBER.sub("", svg) == NUMBER.sub("", kept), f"another {slug}.svg: see CONTRIBUTING how figures are made"
    ours, theirs = ([float(number) for number in NUMBER.findall(text)] for text in (svg, kept))
    np.testing.assert_allclose(ours, theirs, atol=EYE, err_msg=slug)


@needs_the_version_of_the_docs
@pytest.mark.parametrize("name", BOUNDS)
def test_the_first_draw_looks_as_in_the_docs_and_is_judged_by_the_same_bounds(name):
    outcome = EXPERIMENTS[name].run("fast", SEED)
    assert [number.bound for number in outcome.numbers] == BOUNDS[name]
    for plot in outcome.plots:
        assert_same_picture(draw(plot), plot.slug)


@needs_the_version_of_the_docs
def test_the_map_of_hair_and_eyes_looks_as_in_the_docs():
    assert_same_picture(demo.hair_and_eyes().figure, "hair-eye")
