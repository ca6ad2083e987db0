"""Multimodal learning from pairwise observations (section 7.4.2): a label from sources that never met it together.

The law has no interaction, so pairs of variables show all of it: one data set of (x1, x2), one of (x1, y), one of (x2,
y).
"""

from __future__ import annotations

from featgeo.models import MultimodalDecomposition
from featgeo.paper import multimodal
from featgeo.paper.multimodal import SAMPLES, Sample
from featgeo.paper.multimodal_published import Networks
from featgeo.paper.multimodal_results import Bounds, Learned, answers, maps, numbers, singles_plot
from featgeo.paper.record import Experiment, Outcome
from featgeo.report.panels import Plot

LAW = "pairwise"
BOUNDS = Bounds(f_bar=0.06, f=0.0, posterior=0.02)


def draw(seed: int, n: int = SAMPLES) -> Sample:
    """Draw n triples, of which only pairs are shown to those who learn."""
    return multimodal.draw(LAW, seed, n)


def fast(data: Sample, seed: int) -> Learned:
    """Each moment comes from the pairs that show it."""
    model = MultimodalDecomposition(n_modes=1, random_state=seed)
    pairs = [{"x1": data.x1, "x2": data.x2}, {"x1": data.x1, "y": data.y}, {"x2": data.x2, "y": data.y}]
    return answers(model.fit_datasets(pairs), interaction=False)


def published(data: Sample, seed: int) -> Learned:
    """Networks, each covariance from minibatches of the pairs that show it."""
    return Networks(data, seed).from_pairs()


def measure(data: Sample, learned: Learned) -> Outcome:
    """The feature and the posteriors beside the true ones."""
    above, below = maps(LAW, learned)
    features = Plot(
        "multimodal-pairwise",
        "From three data sets of pairs: the feature of the bivariate component and the posterior; learned above, "
        "theory below.",
        "Two rows of heat maps: the feature of the bivariate component and the posterior; learned ones above, true "
        "ones below.",
        [*above, *below],
        columns=2,
    )
    return Outcome(
        numbers(LAW, data, learned, BOUNDS), [features, singles_plot("multimodal-pairwise-single", LAW, learned)]
    )


EXPERIMENT = Experiment(
    name="multimodal-pairwise",
    title="Two sources, pairwise observations",
    source="Section 7.4.2",
    law=f"The same sources, and P(Y=1|x₁, x₂) = 1/2 + (cos πx₁ + cos πx₂)/4; {SAMPLES:,} triples, each shown only as "
    "three pairs in three separate data sets.",
    statement="The bivariate component depends on the joint distribution through its pairs alone, so pairs are "
    "enough to learn the joint posterior.",
    formula=r"\mathscr{H}(\bar f, \bar g) = \sum_{i} \mathscr{H}(\bar f^{(i)}, \bar g) - "
    r"\operatorname{tr}\left(\Lambda_{\bar f^{(1)}, \bar f^{(2)}} \Lambda_{\bar g}\right)",
    code="""\
import featgeo as fg
from featgeo.paper import multimodal

d = multimodal.draw("pairwise", seed=0)
pairs = [{"x1": d.x1, "x2": d.x2}, {"x1": d.x1, "y": d.y}, {"x2": d.x2, "y": d.y}]
fg.MultimodalDecomposition(1).fit_datasets(pairs).given(x1=[0.0], x2=[0.5]).proba()""",
    draw=draw,
    fast=fast,
    published=published,
    measure=measure,
)
