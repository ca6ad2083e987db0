"""Two sources and a label (section 7.4): learned from complete rows (7.4.1), or from pairs of variables alone (7.4.2).

The paper's law of complete rows is no probability and is reproduced as its sampler cuts it, beside the valid variant:
see `multimodal`. The law "pairwise" has no interaction, so pairs of variables show all of it: one data set of (x1, x2),
one of (x1, y), one of (x2, y).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from sklearn.linear_model import LinearRegression
from torch import Tensor, nn

from featgeo.geometry.validation import Array
from featgeo.models import MultimodalDecomposition
from featgeo.nesting import Nesting, h_score
from featgeo.paper import multimodal
from featgeo.paper import published as recipe
from featgeo.paper.multimodal import CELLS, GRID, GRID_1, GRID_2, SAMPLES, WEIGHTS, Learned, Sample, truth
from featgeo.paper.record import (
    Experiment,
    Number,
    Outcome,
    about,
    aligned,
    curves,
    figure,
    of_each,
    root_mean_square,
    subscript,
    uniform,
)
from featgeo.report.panels import Map, Plot

# The largest errors that pass, of the features (relative) and of the posterior (root mean squares).
BOUNDS = {"clipped": ((0.08, 0.15), 0.025), "valid": ((0.05, 0.10), 0.015), "pairwise": ((0.06,), 0.02)}
MARKS = (("f̄", "σ̄", "\\bar{f}"), ("f", "σ", "f"))  # of each component: its feature, its strength, and in LaTeX

BINS = 32  # of the maps that are shown

# By the law: the experiment with complete rows has two.
Samples = dict[str, Sample]
AllLearned = dict[str, Learned]


def draw(laws: Sequence[str], seed: int, n: int = SAMPLES) -> Samples:
    """Draw n triples of each law; of the law "pairwise" only pairs are shown to those who learn."""
    return {law: multimodal.draw(law, seed, n) for law in laws}


@of_each
def fast(law: str, data: Sample, seed: int) -> Learned:
    """One feature of each component; without an interaction, each moment comes from the pairs that show it."""
    x1, x2, y = data
    model = MultimodalDecomposition(n_modes=1, n_interaction_modes=1, random_state=seed)
    if law == "pairwise":
        model.fit_datasets([{"x1": x1, "x2": x2}, {"x1": x1, "y": y}, {"x2": x2, "y": y}])
        components = [model.bivariate_]
    else:
        model.fit({"x1": x1, "x2": x2}, y)
        components = [model.bivariate_, model.interaction_]
    return Learned(
        list(model.transform({"x1": GRID_1, "x2": GRID_2}).T[: len(components)]),
        model.given(x1=GRID_1, x2=GRID_2).proba()[:, 1],
        [given.proba()[:, 1] for given in (model.given(x1=GRID), model.given(x2=GRID))],
        [float(component.singular_values_[0]) for component in components],
    )


@of_each
def published(law: str, data: Sample, seed: int) -> Learned:
    """Networks, by the nested H-score; without an interaction, each covariance from the pairs that show it."""
    networks = Networks(data, seed)
    return networks.from_pairs() if law == "pairwise" else networks.from_complete_rows()


class Networks:
    """The published recipe: softplus networks with two layers of 32 of the sources, tables of the label; untrained.

    f_bar is a network of x1 plus one of x2, f a network of both. What one source says of the other's part is learned by
    two more networks, trained by squared error (appendix D). The error of f does not fall steadily: it may double
    between two looks 20 epochs apart.
    """

    def __init__(self, data: Sample, seed: int) -> None:
        self.seed = seed
        self.x1, self.x2 = recipe.column(data.x1), recipe.column(data.x2)
        self.both, self.label = torch.cat([self.x1, self.x2], dim=1), recipe.one_hot(data.y == 1, 2)
        with recipe.seeded(seed):
            self.f_bar_1, self.f_bar_2, self.f = (recipe.mlp(inputs, 32, 32, 1) for inputs in (1, 1, 2))
            self.g_bar, self.g = nn.Linear(2, 1), nn.Linear(2, 1)
            self.from_1, self.from_2 = recipe.mlp(1, 32, 32, 1), recipe.mlp(1, 32, 32, 1)

    def from_complete_rows(self) -> Learned:
        """Maximise the nested H-score of both components."""
        components = ((_Sum(self.f_bar_1, self.f_bar_2), self.g_bar), (self.f, self.g))
        x_parts, y_parts = [(f, self.both) for f, _ in components], [(g, self.label) for _, g in components]
        recipe.maximise_nested(x_parts, y_parts, Nesting([1, 1]), self.seed)
        return self._assembled(components)

    def from_pairs(self) -> Learned:
        """Maximise the H-score of f_bar and g_bar, each covariance from a minibatch of the pairs that show it."""

        def objective(sources: Tensor, first: Tensor, second: Tensor) -> Tensor:
            g_1, g_2 = self.g_bar(self.label[first]), self.g_bar(self.label[second])
            alone = h_score(self.f_bar_1(self.x1[first]), g_1) + h_score(self.f_bar_2(self.x2[second]), g_2)
            between = _covariance(self.f_bar_1(self.x1[sources]), self.f_bar_2(self.x2[sources]))
            g = torch.cat([g_1, g_2])
            return alone - between * _covariance(g, g)

        recipe.maximise((self.f_bar_1, self.f_bar_2, self.g_bar), objective, [len(self.x1)] * 3, self.seed)
        return self._assembled([(_Sum(self.f_bar_1, self.f_bar_2), self.g_bar)])

    def _expected(self, network: nn.Module, x: Tensor, values: Array) -> Array:
        """The conditional expectation of values given x, on `GRID`, by squared error."""
        target = torch.from_numpy(values).float()
        recipe.maximise((network,), lambda rows: -((network(x[rows]) - target[rows]) ** 2).mean(), [len(x)], self.seed)
        return recipe.values(network, recipe.column(GRID))

    def _assembled(self, components: Sequence[tuple[nn.Module, nn.Module]]) -> Learned:
        """Posteriors by the paper's formulas (Prop. pred:est:mm), cut to [0, 1]."""
        at = recipe.rows(np.stack([GRID_1, GRID_2], axis=1)), torch.eye(2)[1:]  # the label 1
        modes = [recipe.modes((f, self.both), (g, self.label), at) for f, g in components]
        own_1, own_2 = recipe.values(self.f_bar_1, self.x1), recipe.values(self.f_bar_2, self.x2)
        grid, mean = recipe.column(GRID), (own_1 + own_2).mean()
        alone = [
            recipe.values(self.f_bar_1, grid) + self._expected(self.from_1, self.x1, own_2) - mean,
            recipe.values(self.f_bar_2, grid) + self._expected(self.from_2, self.x2, own_1) - mean,
        ]
        share = recipe.values(self.g_bar, at[1]) - recipe.values(self.g_bar, self.label).mean()
        said = (sum(each.kernel() for each in modes), *(part * share for part in alone))
        posterior, *singles = (np.clip(float(self.label[:, 1].mean()) * (1 + part), 0, 1)[:, 0] for part in said)
        return Learned([each.f[:, 0] for each in modes], posterior, singles, [float(each.sigma[0]) for each in modes])


class _Sum(nn.Module):
    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList([first, second])

    def forward(self, both: Tensor) -> Tensor:
        return self.parts[0](both[:, :1]) + self.parts[1](both[:, 1:])


def _covariance(a: Tensor, b: Tensor) -> Tensor:
    return ((a - a.mean()) * (b - b.mean())).mean()


@of_each
def optimum(law: str, data: Sample) -> Learned:
    """The best features of a sample in the span of the true ones, and what is assembled from them.

    Of two labels, features are regressions of one: on functions of single sources, then on the interaction as well.

    What one source says of the other's part is known here too: tau halves cos(2 pi x), and sends the rest to 0.
    """
    exact, label = truth(law), data.y == 1
    own, grid = (
        np.stack([exact.half(x1), exact.half(x2), *exact.features(x1, x2)[1:]], axis=1)
        for x1, x2 in ((data.x1, data.x2), (GRID_1, GRID_2))
    )
    levels = [LinearRegression().fit(own[:, :k], label) for k in range(2, own.shape[1] + 1)]
    of_rows, of_grid = (
        np.diff([level.predict(part[:, : level.n_features_in_]) for level in levels], axis=0, prepend=label.mean())
        for part in (own, grid)
    )
    scales = of_rows.std(axis=1)
    half, expected = exact.half(GRID), exact.expected_half(GRID)
    return Learned(
        list(of_grid / scales[:, None]),
        label.mean() + of_grid.sum(axis=0),
        [label.mean() + own * half + other * expected for own, other in (levels[0].coef_, levels[0].coef_[::-1])],
        list(scales / label.std()),
    )


def compare(data: Samples, learned: AllLearned, best: AllLearned) -> Outcome:
    """Learned features and posteriors of each law beside the true ones."""
    numbers = [number for law, found in learned.items() for number in judged(law, found)]
    plots = [
        plot for law, rows in data.items() for plot in (_maps(law, rows, learned[law]), _singles(law, learned[law]))
    ]
    return Outcome(numbers, plots)


def judged(law: str, learned: Learned) -> list[Number]:
    """Learned features and posteriors of a law beside the true ones."""
    exact, (of_features, of_posterior) = truth(law), BOUNDS[law]
    true = exact.features(GRID_1, GRID_2)
    pairs = zip(learned.features, true, strict=True)
    errors = [root_mean_square(aligned(values, function, WEIGHTS) - function, WEIGHTS) for values, function in pairs]
    joint = root_mean_square(learned.posterior - exact.posterior(GRID_1, GRID_2), WEIGHTS)
    alone = [root_mean_square(single - exact.single(GRID), uniform(len(GRID))) for single in learned.singles]
    return [
        *(
            Number(f"{law}: {name}, relative error", float(error), bound=bound)
            for (name, *_), error, bound in zip(MARKS, errors, of_features, strict=False)
        ),
        Number(f"{law}: P(Y=1|x₁, x₂), RMSE", float(joint), bound=of_posterior),
        *(
            Number(f"{law}: P(Y=1|x{subscript(i + 1)}), RMSE", float(error), bound=0.01)
            for i, error in enumerate(alone)
        ),
        *(
            Number.value(f"{law}: {name}", theory, found, bound=0.02)
            for (_, name, _), theory, found in zip(MARKS, exact.sigma, learned.sigma, strict=False)
        ),
    ]


def _maps(law: str, data: Sample, learned: Learned) -> Plot:
    """Learned features and posterior, the true ones below; where there is an interaction, the density before them."""
    exact = truth(law)
    pairs = [_densities(data)] if exact.interacting else []
    pairs += [
        _above_and_below(f"${name}(x_1, x_2)$", aligned(values, true, WEIGHTS), true, (-2, 2))
        for (*_, name), values, true in zip(MARKS, learned.features, exact.features(GRID_1, GRID_2), strict=False)
    ]
    posterior = exact.posterior(GRID_1, GRID_2)
    pairs.append(_above_and_below("$P(Y{=}1\\,|\\,x_1, x_2)$", learned.posterior, posterior, (0, 1)))
    name = "multimodal-complete" if exact.interacting else "multimodal-pairwise"
    return figure(name, [panel for row in zip(*pairs, strict=True) for panel in row], f"multimodal-{law}", law=law)


def _above_and_below(title: str, learned: Array, theory: Array, ends: tuple[float, float]) -> tuple[Map, ...]:
    """Means over coarser cells: enough to look at."""
    coarse = {
        who: values.reshape(BINS, CELLS // BINS, BINS, -1).mean(axis=(1, 3)).round(3)
        for who, values in (("learned", learned), ("theory", theory))
    }
    return tuple(Map(f"{title}, {who}", values.tolist(), (-1, 1), ends) for who, values in coarse.items())


def _densities(data: Sample) -> tuple[Map, ...]:
    seen, _, _ = np.histogram2d(data.x1, data.x2, BINS, [[-1, 1], [-1, 1]], density=True)
    points = (np.arange(BINS) + 0.5) * 2 / BINS - 1
    return tuple(
        Map(f"Density of $(x_1, x_2)$, {who}", values.round(3).tolist(), (-1, 1), (0, 0.55), diverging=False)
        for who, values in (("samples", seen), ("theory", multimodal.density(points[:, None], points)))
    )


def _singles(law: str, learned: Learned) -> Plot:
    """What one source alone says about the label."""
    theory = truth(law).single(GRID)
    panels = [
        curves(f"$P_{{Y|X_{i}}}(1|x_{i})$", GRID, theory, {"learned": values}, f"$x_{i}$", level=0.5)
        for i, values in enumerate(learned.singles, start=1)
    ]
    return figure("multimodal-single", panels, f"multimodal-{law}-single")


COMPLETE, PAIRWISE = (
    Experiment(about(f"multimodal-{rows}", samples=SAMPLES), partial(draw, laws), fast, published, optimum, compare)
    for rows, laws in (("complete", ("clipped", "valid")), ("pairwise", ("pairwise",)))
)
