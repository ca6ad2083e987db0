"""Side information (section 7.3): the conditional mode of a random 8 x 3 x 3 distribution, and a multihead network.

What a sample can teach about finite alphabets is the exact decomposition of its counts: the learned mode is compared
with that, and with that of the distribution. The multihead network is trained on the same sample; both features are
shown as in the paper's figure: f has mean 0 and variance 1 under the uniform distribution of x, and each g(s, .) under
that of y.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from featgeo.geometry import FiniteJoint, Modes
from featgeo.geometry.validation import Array
from featgeo.models import ConditionalDecomposition
from featgeo.nesting import Nesting
from featgeo.paper import published as recipe
from featgeo.paper.discrete import counted, drawn, random_law
from featgeo.paper.published import MultiheadNetwork
from featgeo.paper.record import (
    Experiment,
    Number,
    Outcome,
    about,
    bars,
    decorrelation,
    figure,
    kernel_error,
    relative_error,
    root_mean_square,
    standardised,
    turned,
    uniform,
)

SAMPLES = 50_000
SHAPE, NAMES = (8, 3, 3), ("x", "s", "y")
LAW = random_law(SHAPE, NAMES)
MARKOV_MODES, MODES = 2, 1
EVERY_S, EVERY_Y = (grid.ravel() for grid in np.indices(SHAPE[1:]))


class Sample(NamedTuple):
    """Triples of symbols, (n,) each."""

    x: np.ndarray
    s: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class Learned:
    """The conditional mode, and the multihead network beside it.

    Attributes:
        modes: One mode of x, (|X|, 1), and of pairs of s and y, (|S| |Y|, 1).
        posterior: P(y|x, s) with this mode alone, (|X|, |S|, |Y|).
        network: The network's feature of x, (|X|,), and its weights for each s and y, (|S|, |Y|).
    """

    modes: Modes
    posterior: Array
    network: tuple[Array, Array]


def draw(seed: int, n: int = SAMPLES) -> Sample:
    """Draw n triples."""
    return Sample(*drawn(LAW, seed, n))


def fast(data: Sample, seed: int) -> Learned:
    """Symbols are solved exactly, and the network sees all samples at each step."""
    model = ConditionalDecomposition(MODES, MARKOV_MODES, random_state=seed).fit(data.x, data.y, data.s)
    every_x, every_s = (grid.ravel() for grid in np.indices(SHAPE[:2]))
    network = MultiheadNetwork(SHAPE, MODES, seed)
    network.fit(counted(data, SHAPE))
    modes = Modes(
        model.conditional_.singular_values_,
        model.transform(np.arange(SHAPE[0]))[:, -MODES:],
        model.conditional_values(EVERY_S, EVERY_Y),
    )
    return Learned(modes, model.given(every_x, every_s).proba().reshape(SHAPE), network.features())


def published(data: Sample, seed: int) -> Learned:
    """Linear layers of indicators for the nested H-score, and the multihead network by minibatches."""
    pairs = SHAPE[1] * SHAPE[2]
    x, s = recipe.one_hot(data.x, SHAPE[0]), recipe.one_hot(data.s, SHAPE[1])
    both = recipe.one_hot(data.s * SHAPE[2] + data.y, pairs)
    with recipe.seeded(seed):
        f_bar, g_bar = nn.Linear(SHAPE[0], MARKOV_MODES), nn.Linear(SHAPE[1], MARKOV_MODES)
        f, g = nn.Linear(SHAPE[0], MODES), nn.Linear(pairs, MODES)
    recipe.maximise_nested([(f_bar, x), (f, x)], [(g_bar, s), (g, both)], Nesting([MARKOV_MODES, MODES]), seed)
    symbols = torch.eye(SHAPE[0]), torch.eye(pairs)
    modes = recipe.modes((f, x), (g, both), symbols)
    markov = recipe.modes((f_bar, x), (g_bar, s), (symbols[0], torch.eye(SHAPE[1])))
    network = MultiheadNetwork(SHAPE, MODES, seed)
    index = torch.from_numpy(np.stack(data))
    recipe.maximise((network,), lambda rows: network()[tuple(index[:, rows])].mean(), [len(x)], seed)
    return Learned(modes, _posterior(counted(data, SHAPE), markov, modes), network.features())


def optimum(data: Sample) -> Learned:
    """The sample's own conditional mode, and the network of the greatest likelihood."""
    counts = counted(data, SHAPE)
    parts = FiniteJoint(counts, names=NAMES).conditional("x", "y", "s")
    modes = _flat(parts.conditional)
    network = MultiheadNetwork(SHAPE, MODES, seed=0)
    network.fit(counts)
    return Learned(modes, _posterior(counts, parts.markov.top(MARKOV_MODES), modes), network.features())


def _posterior(counts: Array, markov: Modes, modes: Modes) -> Array:
    """P(y|x, s) = P(y|s) (1 + conditional component / (1 + Markov component)), Prop. pred:est:side."""
    of_s = counts.sum(axis=0)
    return (
        of_s / of_s.sum(axis=1, keepdims=True) * (1 + modes.kernel().reshape(SHAPE) / (1 + markov.kernel()[..., None]))
    )


def compare(data: Sample, learned: Learned, best: Learned) -> Outcome:
    """The mode beside those of the sample and of the distribution, and beside the network."""
    truth, modes = _flat(LAW.conditional("x", "y", "s").conditional), learned.modes
    ours, theirs, true = _shown(modes.f, modes.g), _shown(*learned.network), _shown(truth.f, truth.g)
    of_x, of_sy = _masses(FiniteJoint(counted(data, SHAPE), names=NAMES))
    numbers = [
        # What learning leaves of what the sample knows:
        Number("1 − corr(f, the sample's own)", decorrelation(modes.f, best.modes.f, of_x).item(), bound=1e-4),
        Number("1 − corr(g, the sample's own)", decorrelation(modes.g, best.modes.g, of_sy).item(), bound=1e-4),
        Number("σ, from the sample's own", float(np.abs(modes.sigma - best.modes.sigma).max()), bound=1e-3),
        Number("1 − corr(f, multihead f)", float(decorrelation(ours[0], theirs[0], uniform(len(ours[0]))))),
        Number("1 − corr(g, multihead g)", float(decorrelation(ours[1], theirs[1], uniform(len(ours[1]))))),
        *_against_the_law(truth, learned),
    ]
    learners = {
        who: [np.sign(sides[0] @ true[0]) * side for side in sides]
        for who, sides in (("side information", ours), ("multihead network", theirs))
    }
    f, g = ({who: sides[i] for who, sides in learners.items()} for i in range(2))
    pairs = [f"{s + 1}, {y + 1}" for s, y in zip(EVERY_S, EVERY_Y, strict=True)]
    panels = [bars("$f(x)$", true[0], f, "$x$"), bars("$g(s, y)$", true[1], g, "$s, y$", pairs)]
    return Outcome(numbers, [figure("side-information", panels)])


def _against_the_law(truth: Modes, learned: Learned) -> list[Number]:
    """The mode and the posterior under the distribution."""
    of_x, of_sy = _masses(LAW)
    found = turned(learned.modes, truth, of_x, of_sy)
    mass = LAW.probability()
    of_xs = mass.sum(axis=2, keepdims=True)
    off = np.sqrt(np.square(learned.posterior - mass / of_xs).mean(axis=2))
    return [
        Number.value("σ", truth.sigma[0], found.sigma[0]),
        Number("f, relative error", relative_error(found.f, truth.f, of_x).item()),
        Number("g, relative error", relative_error(found.g, truth.g, of_sy).item()),
        Number("kernel of one mode, relative error", kernel_error(learned.modes, truth.kernel(), of_x, of_sy)),
        Number("P(y|x, s) of one mode, RMSE", float(root_mean_square(off.ravel(), of_xs.ravel()))),
    ]


def _flat(modes: Modes) -> Modes:
    """The strongest, with pairs of s and y along one axis."""
    top = modes.top(MODES)
    return Modes(top.sigma, top.f, top.g.reshape(-1, MODES))


def _masses(joint: FiniteJoint) -> tuple[Array, Array]:
    """Of x, (|X|,), and of pairs of s and y, (|S| |Y|,)."""
    return joint.probability("x"), joint.probability("s", "y").ravel()


def _shown(f: Array, g: Array) -> tuple[Array, Array]:
    """As in the paper's figure: f with mean 0 and variance 1 over x, and g over y for each s."""
    by_s = g.reshape(SHAPE[1:]).T
    return standardised(f.ravel(), uniform(SHAPE[0])), standardised(by_s, uniform(SHAPE[2])).T.ravel()


EXPERIMENT = Experiment(about("side-information", samples=SAMPLES), draw, fast, published, optimum, compare)
