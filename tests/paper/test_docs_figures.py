"""The figures of the docs are those that the library draws today, up to what the eye sees; and what may be wrong."""

from __future__ import annotations

import pytest
from pictures import ROOT, assert_same_picture, needs_the_version_of_the_kept

from featgeo import demo
from featgeo.paper import runs
from featgeo.paper.experiments import EXPERIMENTS
from featgeo.report.drawing import draw
from featgeo.reproduce import SEED

FIGURES = ROOT / "docs" / "figures"

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


@needs_the_version_of_the_kept
@pytest.mark.parametrize("name", BOUNDS)
def test_the_first_draw_looks_as_in_the_docs_and_is_judged_by_the_same_bounds(name):
    outcome = runs.run(EXPERIMENTS[name], "fast", SEED, "")
    assert [number.bound for number in outcome.numbers] == BOUNDS[name]
    for plot in outcome.plots:
        assert_same_picture(draw(plot), FIGURES / f"{plot.slug}.svg")


@needs_the_version_of_the_kept
def test_the_map_of_hair_and_eyes_looks_as_in_the_docs():
    assert_same_picture(demo.hair_and_eyes().figure, FIGURES / "hair-eye.svg")
