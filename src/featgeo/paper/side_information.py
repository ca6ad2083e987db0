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

from featgeo.geometry import FiniteJoint, Modes
from featgeo.geometry.validation import Array
from featgeo.models import ConditionalDecomposition
from featgeo.nesting import Nesting, nested_h_score
from featgeo.paper import published as recipe
from featgeo.paper.compare import decorrelation, kernel_error, relative_error, signs, standardised, uniform
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
        modes: One mode of x, (|X|, 1), and of (s, y), (|S|, |Y|, 1).
        posterior: P(y|x, s) with this mode alone, (|X|, |S|, |Y|).
        multihead_f: The network's feature of x, (|X|,).
        multihead_g: Its weights for each s and y, (|S|, |Y|).
    """

    modes: Modes
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
    """Symbols are solved exactly, and the network sees all samples at each step."""
    model = ConditionalDecomposition(MODES, MARKOV_MODES, random_state=seed).fit(data.x, data.y, data.s)
    every_x, every_s = (grid.ravel() for grid in np.indices(SHAPE[:2]))
    network = MultiheadNetwork(SHAPE, MODES, seed)
    network.fit(data.counts())
    modes = Modes(
        model.conditional_.singular_values_,
        model.transform(np.arange(SHAPE[0]))[:, -MODES:],
        model.conditional_values(EVERY_S, EVERY_Y).reshape(*SHAPE[1:], MODES),
    )
    return Learned(modes, model.given(every_x, every_s).proba().reshape(SHAPE), *network.features())


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
    found = recipe.modes(f, g, (x, both), symbols)
    modes = Modes(found.sigma, found.f, found.g.reshape(*SHAPE[1:], MODES))
    markov = recipe.modes(f_bar, g_bar, (x, s), (symbols[0], torch.eye(SHAPE[1])))
    network = MultiheadNetwork(SHAPE, MODES, seed)
    index = tuple(torch.from_numpy(part) for part in (data.x, data.s, data.y))
    recipe.maximise((network,), lambda rows: network()[tuple(part[rows] for part in index)].mean(), len(x), seed)
    return Learned(modes, _posterior(data.counts(), markov, modes), *network.features())


def exact_optimum(data: Sample) -> Learned:
    """The sample's own conditional mode, and the network of the greatest likelihood."""
    counts = data.counts()
    parts = FiniteJoint(counts, names=("x", "s", "y")).conditional("x", "y", "s")
    modes = parts.conditional.top(MODES)
    network = MultiheadNetwork(SHAPE, MODES, seed=0)
    network.fit(counts)
    return Learned(modes, _posterior(counts, parts.markov.top(MARKOV_MODES), modes), *network.features())


def _posterior(counts: Array, markov: Modes, modes: Modes) -> Array:
    """P(y|x, s) = P(y|s) (1 + conditional component / (1 + Markov component)), Prop. pred:est:side."""
    of_s = counts.sum(axis=0)
    return of_s / of_s.sum(axis=1, keepdims=True) * (1 + modes.kernel() / (1 + markov.kernel()[..., None]))


def measure(data: Sample, learned: Learned) -> Outcome:
    """The mode beside those of the sample and of the distribution, and beside the network."""
    law, best = distribution(), exact_optimum(data)
    truth = law.conditional("x", "y", "s").conditional.top(MODES)
    return Outcome(
        [*_against_the_sample(data, learned, best), *_against_the_law(law, truth, learned, best)],
        [_plot(learned, truth)],
    )


def _against_the_sample(data: Sample, learned: Learned, best: Learned) -> list[Number]:
    """What learning leaves of what the sample knows, and how far the network agrees: no further than the best one."""
    sample = FiniteJoint(data.counts(), names=("x", "s", "y"))
    of_x, of_sy = sample.probability("x"), sample.probability("s", "y").ravel()
    f, g = (decorrelation(_column(learned.modes, side), _column(best.modes, side), mass)
            for side, mass in (("f", of_x), ("g", of_sy)))  # fmt: skip
    numbers = [
        Number("1 − corr(f, the sample's own)", float(f), bound=1e-4),
        Number("1 − corr(g, the sample's own)", float(g), bound=1e-4),
        Number("σ, from the sample's own", float(np.abs(learned.modes.sigma - best.modes.sigma).max()), bound=1e-3),
    ]
    for name in ("f", "g"):
        error, floor = (_disagreement(part, name) for part in (learned, best))
        numbers.append(Number(f"1 − corr({name}, multihead {name})", error, floor=floor))
    return numbers


def _against_the_law(law: FiniteJoint, truth: Modes, learned: Learned, best: Learned) -> list[Number]:
    """The mode and the posterior under the distribution; floors are those of the sample's own."""
    of_x, of_sy = law.probability("x"), law.probability("s", "y").ravel()
    kernel = truth.kernel().reshape(SHAPE[0], -1)
    errors, floors = (
        (
            *(float(relative_error(_turned(part.modes, truth, side, of_x, mass), _column(truth, side), mass))
              for side, mass in (("f", of_x), ("g", of_sy))),
            kernel_error(part.modes, kernel, of_x, of_sy),
            _posterior_error(law, part.posterior),
        )
        for part in (learned, best)
    )  # fmt: skip
    names = (
        "f, relative error",
        "g, relative error",
        "kernel of one mode, relative error",
        "P(y|x, s) of one mode, RMSE",
    )
    return [
        Number.value("σ", float(truth.sigma[0]), float(learned.modes.sigma[0]), optimum=float(best.modes.sigma[0])),
        *(Number(name, error, floor=floor) for name, error, floor in zip(names, errors, floors, strict=True)),
    ]


def _posterior_error(law: FiniteJoint, posterior: Array) -> float:
    mass = law.probability()
    of_xs = mass.sum(axis=2)
    squares = np.square(posterior - mass / of_xs[..., None]).mean(axis=2)
    return float(np.sqrt((of_xs * squares).sum()))


def _column(modes: Modes, side: str) -> Array:
    return getattr(modes, side).reshape(-1)


def _turned(modes: Modes, truth: Modes, side: str, of_x: Array, mass: Array) -> Array:
    """A side of the mode, standardised; its sign is that of f, for f and g turn together."""
    return standardised(_column(modes, side), mass) * signs(_column(modes, "f"), _column(truth, "f"), of_x)


def _disagreement(learned: Learned, name: str) -> float:
    """Of a feature and the network's, as the paper's figure shows them."""
    ours, theirs = getattr(learned.modes, name)[..., 0], getattr(learned, f"multihead_{name}")
    return float(decorrelation(_shown(ours).ravel(), _shown(theirs).ravel(), uniform(ours.size)))


def _shown(values: Array) -> Array:
    """Mean 0 and variance 1 along the last axis, as in the paper's figure."""
    return (values - values.mean(axis=-1, keepdims=True)) / values.std(axis=-1, keepdims=True)


def _plot(learned: Learned, truth: Modes) -> Plot:
    learners = {
        "side information": (learned.modes.f[:, 0], learned.modes.g[..., 0]),
        "multihead network": (learned.multihead_f, learned.multihead_g),
    }
    turns = {who: np.sign(_shown(f) @ _shown(truth.f[:, 0])) for who, (f, _) in learners.items()}
    symbols = {
        "f(x)": [str(symbol + 1) for symbol in range(SHAPE[0])],
        "g(s, y)": [f"{s + 1}, {y + 1}" for s, y in zip(EVERY_S, EVERY_Y, strict=True)],
    }
    panels = [
        Bars(
            f"${name}$",
            marks,
            _shown((truth.f, truth.g)[i][..., 0]).ravel().tolist(),
            {who: (turns[who] * _shown(sides[i])).ravel().tolist() for who, sides in learners.items()},
            "$x$" if i == 0 else "$s, y$",
        )
        for i, (name, marks) in enumerate(symbols.items())
    ]
    return Plot(
        "side-information",
        "The conditional mode by the nested H-score and by a network with a softmax head for each s.",
        "Two bar charts, f at eight symbols of x and g at nine pairs of s and y, with marks for both ways to learn.",
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
