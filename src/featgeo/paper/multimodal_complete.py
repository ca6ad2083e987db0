"""Multimodal learning from complete observations (section 7.4.1): both components of two sources and a label.

The paper's law is no probability and is reproduced as its sampler cuts it, beside the valid variant: see `multimodal`.
"""

from __future__ import annotations

import numpy as np

from featgeo.models import MultimodalDecomposition
from featgeo.paper import multimodal
from featgeo.paper.multimodal import SAMPLES, Sample
from featgeo.paper.multimodal_published import Networks
from featgeo.paper.multimodal_results import Bounds, Learned, answers, maps, numbers, singles_plot
from featgeo.paper.record import Experiment, Outcome
from featgeo.report.panels import Map, Plot

BOUNDS = {"clipped": Bounds(0.08, 0.15, 0.025), "valid": Bounds(0.05, 0.10, 0.015)}
BINS = 32

Samples = dict[str, Sample]  # by the law


def draw(seed: int, n: int = SAMPLES) -> Samples:
    """Draw n triples of each law."""
    return {law: multimodal.draw(law, seed, n) for law in BOUNDS}


def fast(data: Samples, seed: int) -> dict[str, Learned]:
    """One feature of each component."""
    learned = {}
    for law, rows in data.items():
        model = MultimodalDecomposition(n_modes=1, n_interaction_modes=1, random_state=seed)
        learned[law] = answers(model.fit({"x1": rows.x1, "x2": rows.x2}, rows.y), interaction=True)
    return learned


def published(data: Samples, seed: int) -> dict[str, Learned]:
    """Networks, by the nested H-score."""
    return {law: Networks(rows, seed).from_complete_rows() for law, rows in data.items()}


def measure(data: Samples, learned: dict[str, Learned]) -> Outcome:
    """Features and posteriors of both laws beside the true ones."""
    rows = [number for law in BOUNDS for number in numbers(law, data[law], learned[law], BOUNDS[law])]
    plots = []
    for law in BOUNDS:
        plots += [
            _features_plot(law, data[law], learned[law]),
            singles_plot(f"multimodal-{law}-single", law, learned[law]),
        ]
    return Outcome(rows, plots)


def _features_plot(law: str, data: Sample, learned: Learned) -> Plot:
    counts, _, _ = np.histogram2d(data.x1, data.x2, BINS, [[-1, 1], [-1, 1]])
    seen = (counts / len(data.x1) * (BINS / 2) ** 2).round(3)
    points = (np.arange(BINS) + 0.5) * 2 / BINS - 1
    density = multimodal.density(points[:, None], points)
    histograms = [
        Map(f"Density of $(x_1, x_2)$, {who}", values.tolist(), (-1, 1), (0, 0.55), diverging=False)
        for who, values in (("samples", seen), ("theory", density.round(3)))
    ]
    above, below = maps(law, learned)
    return Plot(
        f"multimodal-{law}",
        f"The {law} law: the density of the sources, the features of both components and the posterior; learned above, "
        "theory below.",
        "Two rows of heat maps: the density of the sources, the feature of the bivariate component, that of the "
        "interaction, and the posterior; learned ones above, true ones below.",
        [histograms[0], *above, histograms[1], *below],
        columns=4,
    )


EXPERIMENT = Experiment(
    name="multimodal-complete",
    title="Two sources, complete observations",
    source="Section 7.4.1",
    law=f"X₁ and X₂ on [−1, 1] with density (1 + cos(2π(x₁ − x₂)))/4, and a label Y = ±1 with P(Y=1|x₁, x₂) = 1/2 + "
    f"w (cos πx₁ + cos πx₂ + cos π(x₁ + x₂)); {SAMPLES:,} triples, once with the paper's w = 1/4, clipped at 1, and "
    "once with the valid w = 1/6.",
    statement="The dependence splits into what the sources say as a sum and what only both say together, and one "
    "training answers from both sources or from either.",
    formula=r"\mathfrak{i}_{X_1,X_2;Y} = \pi_{\mathrm B}(\mathfrak{i}) + \pi_{\mathrm I}(\mathfrak{i}), \qquad "
    r"P_{Y|X_1} = P_Y \left(1 + \left(\bar f^{(1)}(x_1) + E[\bar f^{(2)}(X_2) \mid X_1 = x_1]\right) \bar g(y)\right)",
    code="""\
import featgeo as fg
from featgeo.paper import multimodal

data = multimodal.draw("valid", seed=0)
model = fg.MultimodalDecomposition(1).fit({"x1": data.x1, "x2": data.x2}, data.y)
model.given(x1=[0.0], x2=[0.5]).proba(), model.given(x1=[0.0]).proba()""",
    draw=draw,
    fast=fast,
    published=published,
    measure=measure,
    erratum="The paper's P(Y=1|x₁, x₂) is no probability: at x₁ = x₂ = 0 it is 1/2 + 3/4 = 1.25, and it passes 1 in a "
    "whole region around. A program that compares it with a uniform number cuts it at 1 without a word, and then "
    "neither the features nor the posteriors are those that the paper states. Here the clipped law is compared with "
    "its own exact decomposition, and so is the law with 1/6 in place of 1/4, which is a probability everywhere and "
    "has the features that the paper states.",
)
