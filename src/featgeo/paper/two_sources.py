"""Two sources and a label (section 7.4): learned from complete rows (7.4.1), or from pairs of variables alone (7.4.2).

The paper's law of complete rows is no probability and is reproduced as its sampler cuts it, beside the valid variant:
see `multimodal`. The law "pairwise" has no interaction, so pairs of variables show all of it: one data set of (x1, x2),
one of (x1, y), one of (x2, y).
"""

from __future__ import annotations

import numpy as np

from featgeo.geometry import Moments, decompose
from featgeo.geometry.validation import Array
from featgeo.models import MultimodalDecomposition
from featgeo.paper import multimodal
from featgeo.paper.compare import aligned, root_mean_square, uniform
from featgeo.paper.multimodal import CELLS, GRID, GRID_1, GRID_2, SAMPLES, WEIGHTS, Learned, Sample, truth
from featgeo.paper.multimodal_published import Networks
from featgeo.paper.record import Experiment, Number, Outcome, about, curves, figure, subscript
from featgeo.report.panels import Map, Plot

# The largest errors that pass, of the features (relative) and of the posterior (root mean squares).
BOUNDS = {"clipped": ((0.08, 0.15), 0.025), "valid": ((0.05, 0.10), 0.015), "pairwise": ((0.06,), 0.02)}
MARKS = (("f̄", "σ̄", "\\bar{f}"), ("f", "σ", "f"))  # of each component: its feature, its strength, and in LaTeX

BINS = 32  # of the maps that are shown

# By the law: the experiment with complete rows has two.
Samples = dict[str, Sample]
AllLearned = dict[str, Learned]


def draw_complete(seed: int, n: int = SAMPLES) -> Samples:
    """Draw n triples of each law with an interaction."""
    return {law: multimodal.draw(law, seed, n) for law in ("clipped", "valid")}


def draw_pairwise(seed: int, n: int = SAMPLES) -> Samples:
    """Draw n triples, of which only pairs are shown to those who learn."""
    return {"pairwise": multimodal.draw("pairwise", seed, n)}


def fast(data: Samples, seed: int) -> AllLearned:
    """One feature of each component; without an interaction, each moment comes from the pairs that show it."""
    return {law: _fast(law, rows, seed) for law, rows in data.items()}


def _fast(law: str, data: Sample, seed: int) -> Learned:
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


def published(data: Samples, seed: int) -> AllLearned:
    """Networks, by the nested H-score; without an interaction, each covariance from the pairs that show it."""
    networks = {law: Networks(rows, seed) for law, rows in data.items()}
    return {law: own.from_pairs() if law == "pairwise" else own.from_complete_rows() for law, own in networks.items()}


def optimum(data: Samples) -> AllLearned:
    """The best features of each sample in the span of the true ones, and what is assembled from them."""
    return {law: _optimum(law, rows) for law, rows in data.items()}


def _optimum(law: str, data: Sample) -> Learned:
    """What one source says of the other's part is known here too: tau halves cos(2 pi x), and sends the rest to 0."""
    exact = truth(law)

    def spans(x1: Array, x2: Array) -> dict[str, Array]:
        alone = np.stack([exact.half(x1), exact.half(x2)], axis=1)
        interaction = [part[:, None] for part in exact.completed(x1, x2, alone.sum(axis=1))[1:]]
        return dict(zip(("alone", "both"), [alone, *interaction], strict=False))

    own, grid = spans(data.x1, data.x2), spans(GRID_1, GRID_2)
    names = tuple(own)
    levels = [(names[: i + 1], "y") for i in range(len(names))]
    found = decompose(Moments.from_features(own | {"y": data.y[:, None].astype(float)}), levels)
    on_grid = np.hstack(list(grid.values()))
    features = [level.f(on_grid)[:, 0] for level in found]
    prior, deviation = float(np.mean(data.y == 1)), float(np.std(data.y == 1))
    # Strengths in units of P(Y=1), with the sign that g gives to the label 1.
    shares = [deviation * np.sign(level.g(np.ones((1, 1))).item()) * level.sigma[0] for level in found]
    units = np.eye(on_grid.shape[1])
    weights = (found[0].f(units) - found[0].f(0 * units))[:2, 0]  # of the two halves in f_bar
    halves = exact.half(GRID), exact.expected_half(GRID)
    return Learned(
        features,
        prior + sum(share * f for share, f in zip(shares, features, strict=True)),
        [prior + shares[0] * (own * halves[0] + other * halves[1]) for own, other in (weights, weights[::-1])],
        [float(level.sigma[0]) for level in found],
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
    pairs = [
        _above_and_below(f"${name}(x_1, x_2)$", aligned(values, true, WEIGHTS), true, (-2, 2))
        for (*_, name), values, true in zip(MARKS, learned.features, exact.features(GRID_1, GRID_2), strict=False)
    ]
    posterior = exact.posterior(GRID_1, GRID_2)
    pairs.append(_above_and_below("$P(Y{=}1\\,|\\,x_1, x_2)$", learned.posterior, posterior, (0, 1)))
    name = "multimodal-pairwise"
    if exact.interacting:
        name = "multimodal-complete"
        pairs.insert(0, _densities(data))
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
    Experiment(about(f"multimodal-{rows}", samples=SAMPLES), draw, fast, published, optimum, compare)
    for rows, draw in (("complete", draw_complete), ("pairwise", draw_pairwise))
)
