"""Side information (section 7.3): the conditional mode of a random 8 x 3 x 3 distribution, and a multihead network.

What a sample can teach about finite alphabets is the exact decomposition of its counts: the learned mode is compared
with that, and with that of the distribution. The multihead network is trained on the same sample; both features are
shown as in the paper's figure: f has mean 0 and variance 1 under the uniform distribution of x, and each g(s, .) under
that of y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from featgeo.geometry import FiniteJoint
from featgeo.geometry.validation import Array
from featgeo.models import ConditionalDecomposition
from featgeo.nesting import Nesting, nested_h_score
from featgeo.paper import published as recipe
from featgeo.paper.compare import correlation, decorrelation, relative_error, standardised, uniform
from featgeo.paper.multihead import MultiheadNetwork
from featgeo.paper.record import Experiment, Number, Outcome
from featgeo.report.panels import Bars, Plot

SEED = 20_230_606  # the paper's, for the distribution
SAMPLES = 50_000
SHAPE = (8, 3, 3)
MARKOV_MODES, MODES = 2, 1
EVERY_S, EVERY_Y = (grid.ravel() for grid in np.indices(SHAPE[1:]))


@dataclass(frozen=True, eq=False)
class Sample:
    """Triples of symbols, (n,) each."""

    x: np.ndarray
    s: np.ndarray
    y: np.ndarray

    def counts(self) -> Array:
        """Of each triple, (|X|, |S|, |Y|)."""
        counts = np.zeros(SHAPE)
        np.add.at(counts, (self.x, self.s, self.y), 1)
        return counts


@dataclass(frozen=True, eq=False)
class Learned:
    """The conditional mode, and the multihead network beside it.

    Attributes:
        f: Feature of x, (|X|,).
        g: Feature of (s, y), (|S|, |Y|).
        sigma: Strength.
        posterior: P(y|x, s), (|X|, |S|, |Y|).
        multihead_f: The network's feature of x, (|X|,).
        multihead_g: Its weights for each s and y, (|S|, |Y|).
    """

    f: Array
    g: Array
    sigma: float
    posterior: Array
    multihead_f: Array
    multihead_g: Array


def distribution() -> FiniteJoint:
    """The paper's random distribution: uniform numbers, normalised."""
    return FiniteJoint(np.random.RandomState(SEED).rand(*SHAPE), names=("x", "s", "y"))


def draw(seed: int, n: int = SAMPLES) -> Sample:
    """Draw n triples."""
    mass = distribution().probability()
    drawn = np.random.default_rng(seed).choice(mass.size, size=n, p=mass.ravel())
    return Sample(*np.unravel_index(drawn, SHAPE))


def fast(data: Sample, seed: int) -> Learned:
    """Symbols are solved exactly; the posterior takes all modes, the network all samples at each step."""
    model = ConditionalDecomposition(MODES, MARKOV_MODES, random_state=seed).fit(data.x, data.y, data.s)
    full = ConditionalDecomposition(SHAPE[0], SHAPE[1], random_state=seed).fit(data.x, data.y, data.s)
    every_x, every_s = (grid.ravel() for grid in np.indices(SHAPE[:2]))
    network = MultiheadNetwork(SHAPE, MODES, seed)
    network.fit(data.counts())
    return Learned(
        model.transform(np.arange(SHAPE[0]))[:, -1],
        model.conditional_values(EVERY_S, EVERY_Y)[:, 0].reshape(SHAPE[1:]),
        float(model.conditional_.singular_values_[0]),
        full.given(every_x, every_s).proba().reshape(SHAPE),
        *network.features(),
    )


def published(data: Sample, seed: int) -> Learned:
    """Linear layers of indicators for the nested H-score, and the multihead network by minibatches."""
    pairs = SHAPE[1] * SHAPE[2]
    x, s = recipe.one_hot(data.x, SHAPE[0]), recipe.one_hot(data.s, SHAPE[1])
    both = recipe.one_hot(data.s * SHAPE[2] + data.y, pairs)
    with recipe.seeded(seed):
        f_bar, g_bar = nn.Linear(SHAPE[0], MARKOV_MODES), nn.Linear(SHAPE[1], MARKOV_MODES)
        f, g = nn.Linear(SHAPE[0], MODES), nn.Linear(pairs, MODES)
    nesting = Nesting([MARKOV_MODES, MODES])

    def objective(rows: torch.Tensor) -> torch.Tensor:
        of_x = torch.cat([f_bar(x[rows]), f(x[rows])], dim=1)
        return nested_h_score(of_x, torch.cat([g_bar(s[rows]), g(both[rows])], dim=1), nesting)

    recipe.maximise((f_bar, g_bar, f, g), objective, len(x), seed)
    symbols = torch.eye(SHAPE[0]), torch.eye(pairs)
    modes = recipe.modes(f, g, (x, both), symbols)
    markov = recipe.modes(f_bar, g_bar, (x, s), (symbols[0], torch.eye(SHAPE[1])))
    network = MultiheadNetwork(SHAPE, MODES, seed)
    index = tuple(torch.from_numpy(part) for part in (data.x, data.s, data.y))
    recipe.maximise((network,), lambda rows: network()[tuple(part[rows] for part in index)].mean(), len(x), seed)
    of_s = data.counts().sum(axis=0)
    return Learned(
        modes.f[:, 0],
        modes.g[:, 0].reshape(SHAPE[1:]),
        float(modes.sigma[0]),
        # P(y|x, s) = P(y|s) (1 + sigma f g / (1 + the Markov component)), Prop. pred:est:side
        of_s / of_s.sum(axis=1, keepdims=True) * (1 + modes.kernel().reshape(SHAPE) / (1 + markov.kernel()[..., None])),
        *network.features(),
    )


def measure(data: Sample, learned: Learned) -> Outcome:
    """The mode beside those of the sample and of the distribution, and beside the network."""
    counts = data.counts()
    sample, law = FiniteJoint(counts, names=("x", "s", "y")), distribution()
    exact, truth = (joint.conditional("x", "y", "s").conditional.top(MODES) for joint in (sample, law))
    of_x, of_sy = sample.probability("x"), sample.probability("s", "y").ravel()
    own = counts / counts.sum(axis=2, keepdims=True)
    numbers = [
        Number(
            "1 − corr(f, the sample's own)",
            float(decorrelation(learned.f, exact.f[:, 0], of_x)),
            bound=1e-4,
        ),
        Number(
            "1 − corr(g, the sample's own)",
            float(decorrelation(learned.g.ravel(), exact.g[..., 0].ravel(), of_sy)),
            bound=1e-4,
        ),
        Number("σ, from the sample's own", abs(learned.sigma - float(exact.sigma[0])), bound=1e-3),
        Number.value("σ", float(truth.sigma[0]), learned.sigma, optimum=float(exact.sigma[0])),
    ]
    numbers += _against_the_law(law, learned, exact.f[:, 0], exact.g[..., 0], truth.f[:, 0], truth.g[..., 0])
    network = MultiheadNetwork(SHAPE, MODES, seed=0)
    network.fit(counts)
    best_f, best_g = network.features()
    for name, ours, theirs, best_ours, best_theirs in (
        ("f", learned.f, learned.multihead_f, exact.f[:, 0], best_f),
        ("g", learned.g, learned.multihead_g, exact.g[..., 0], best_g),
    ):
        agreement, best = (
            float(correlation(_shown(a).ravel(), _shown(b).ravel(), uniform(a.size)))
            for a, b in ((ours, theirs), (best_ours, best_theirs))
        )
        numbers.append(Number.value(f"corr({name}, multihead {name})", 1.0, agreement, optimum=best))
    difference = float(np.abs(learned.posterior - own).max())
    numbers.append(Number("P(y|x, s), from the sample's own", difference, bound=1e-8))
    return Outcome(numbers, [_plot(learned, truth.f[:, 0], truth.g[..., 0])])


def _against_the_law(
    law: FiniteJoint, learned: Learned, best_f: Array, best_g: Array, true_f: Array, true_g: Array
) -> list[Number]:
    """Relative errors of the functions under the distribution; the floor is that of the sample's own mode."""
    sides = {
        "f": (law.probability("x"), learned.f, best_f, true_f),
        "g": (law.probability("s", "y").ravel(), learned.g.ravel(), best_g.ravel(), true_g.ravel()),
    }
    numbers = []
    for name, (mass, values, best, true) in sides.items():
        error, floor = (
            min(float(relative_error(sign * standardised(found, mass), true, mass)) for sign in (1, -1))
            for found in (values, best)
        )
        numbers.append(Number(f"{name}, relative error", error, floor=floor))
    return numbers


def _shown(values: Array) -> Array:
    """Mean 0 and variance 1 along the last axis, as in the paper's figure."""
    return (values - values.mean(axis=-1, keepdims=True)) / values.std(axis=-1, keepdims=True)


def _plot(learned: Learned, true_f: Array, true_g: Array) -> Plot:
    f = _shown(true_f)

    def with_sign(of_x: Array, values: Array) -> list[float]:
        return (np.where(of_x @ true_f < 0, -1, 1) * _shown(values)).ravel().tolist()

    panels = [
        Bars(
            "$f(x)$",
            [str(symbol + 1) for symbol in range(SHAPE[0])],
            f.tolist(),
            {
                "side information": with_sign(learned.f, learned.f),
                "multihead network": with_sign(learned.multihead_f, learned.multihead_f),
            },
            "$x$",
        ),
        Bars(
            "$g(s, y)$",
            [f"{s + 1}, {y + 1}" for s, y in zip(EVERY_S, EVERY_Y, strict=True)],
            _shown(true_g).ravel().tolist(),
            {
                "side information": with_sign(learned.f, learned.g),
                "multihead network": with_sign(learned.multihead_f, learned.multihead_g),
            },
            "$s, y$",
        ),
    ]
    return Plot(
        "side-information",
        "The conditional mode by the nested H-score and by a network with a softmax head for each s.",
        "Two bar charts, f at eight symbols of x and g at nine pairs of s and y: both ways to learn lie near each "
        "other.",
        panels,
        columns=2,
    )


EXPERIMENT = Experiment(
    name="side-information",
    title="Side information",
    source="Section 7.3",
    law=f"X has 8 symbols, S and Y have 3 each, with a random joint distribution; {SAMPLES:,} samples, one "
    "conditional mode.",
    statement="A network with a softmax head for each s, trained by likelihood, learns the strongest mode of what X "
    "tells about Y beyond S, where that dependence is weak.",
    formula=r"\mathfrak{i}_{X;S,Y} = \mathfrak{i}_{X;S} + \mathfrak{i}_{X;Y|S}, \qquad "
    r"P_{Y|X,S} = P_{Y|S} \left(1 + \frac{f(x)\, g(s, y)}{1 + \bar{f}(x)^{\mathrm T} \bar{g}(s)}\right)",
    code="""\
import featgeo as fg
from featgeo.paper import side_information

data = side_information.draw(seed=0)
model = fg.ConditionalDecomposition(1, 2).fit(data.x, data.y, data.s)
model.conditional_.singular_values_, model.given([0, 1], [2, 2]).proba()""",
    draw=draw,
    fast=fast,
    published=published,
    measure=measure,
)
