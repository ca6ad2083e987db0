"""What is learned of two sources and a label, beside the truth of its law: numbers, maps and curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featgeo.geometry import Moments, decompose
from featgeo.geometry.validation import Array
from featgeo.models import MultimodalDecomposition
from featgeo.paper.compare import aligned
from featgeo.paper.multimodal import CELLS, GRID, GRID_1, GRID_2, WEIGHTS, Sample, truth
from featgeo.paper.record import Number, subscript
from featgeo.report.panels import Curves, Map, Plot


@dataclass(frozen=True, eq=False)
class Learned:
    """Features and posteriors.

    Attributes:
        f_bar: Feature of the bivariate component at (`GRID_1`, `GRID_2`).
        f: Feature of the interaction there; None where it cannot be learned, or is not in the law.
        posterior: P(Y=1|x1, x2) there.
        singles: P(Y=1|x1) and P(Y=1|x2) on `GRID`.
        sigma_bar: Singular value of the bivariate component.
        sigma: Singular value of the interaction, None like f.
    """

    f_bar: Array
    f: Array | None
    posterior: Array
    singles: tuple[Array, Array]
    sigma_bar: float
    sigma: float | None


@dataclass(frozen=True)
class Bounds:
    """The largest errors that pass: relative ones of features, root mean squares of posteriors."""

    f_bar: float
    f: float
    posterior: float
    single: float = 0.01
    sigma: float = 0.02


def answers(model: MultimodalDecomposition, interaction: bool) -> Learned:
    """What a fitted model says on the grids."""
    features = model.transform({"x1": GRID_1, "x2": GRID_2})
    return Learned(
        features[:, 0],
        features[:, 1] if interaction else None,
        model.given(x1=GRID_1, x2=GRID_2).proba()[:, 1],
        (model.given(x1=GRID).proba()[:, 1], model.given(x2=GRID).proba()[:, 1]),
        float(model.bivariate_.singular_values_[0]),
        float(model.interaction_.singular_values_[0]) if interaction else None,
    )


def exact_optimum(law: str, data: Sample) -> Learned:
    """The best features of the sample in the span of the true ones, and what is assembled from them.

    What one source says of the other's part is known here too: tau halves cos(2 pi x), and sends the rest to 0.
    """
    exact = truth(law)

    def halves(x1: Array, x2: Array) -> Array:
        return np.stack([exact.half(x1), exact.half(x2)], axis=1)

    blocks = {"alone": halves(data.x1, data.x2), "y": data.y[:, None].astype(float)}
    grid = {"alone": halves(GRID_1, GRID_2)}
    levels: list[tuple[tuple[str, ...], str]] = [(("alone",), "y")]
    if exact.f is not None:
        blocks["both"] = exact.f(data.x1, data.x2)[:, None]
        grid["both"] = exact.f(GRID_1, GRID_2)[:, None]
        levels.append((("alone", "both"), "y"))
    found = decompose(Moments.from_features(blocks), levels)
    features = [level.f(np.hstack([grid[name] for name in level.x]))[:, 0] for level in found]
    prior, deviation = float(np.mean(data.y == 1)), float(np.std(data.y == 1))
    signs = [np.sign(float(level.g(np.ones((1, 1)))[0, 0])) for level in found]
    known = sum(sign * level.sigma[0] * f for sign, level, f in zip(signs, found, features, strict=True))
    share = signs[0] * found[0].sigma[0] * deviation  # of the weights of the two halves in f_bar
    n_columns = sum(grid[name].shape[1] for name in found[0].x)
    weights = found[0].f(np.eye(n_columns)) - found[0].f(np.zeros((1, n_columns)))
    singles = []
    for own, other in ((0, 1), (1, 0)):
        seen = weights[own, 0] * exact.half(GRID) + weights[other, 0] * exact.expected_half(GRID)
        singles.append(prior + share * seen)
    return Learned(
        features[0],
        features[1] if exact.f is not None else None,
        prior + deviation * known,
        (singles[0], singles[1]),
        float(found[0].sigma[0]),
        float(found[1].sigma[0]) if exact.f is not None else None,
    )


def numbers(law: str, data: Sample, learned: Learned, bounds: Bounds) -> list[Number]:
    """Learned features and posteriors of a law beside the true ones."""
    exact, best = truth(law), exact_optimum(law, data)
    rows = []
    pairs = [("f̄", learned.f_bar, best.f_bar, exact.f_bar, bounds.f_bar)]
    if learned.f is not None and best.f is not None and exact.f is not None:
        pairs.append(("f", learned.f, best.f, exact.f, bounds.f))
    for name, values, floor, function, bound in pairs:
        true = function(GRID_1, GRID_2)
        error, least = (root_mean_square(aligned(found, true, WEIGHTS) - true) for found in (values, floor))
        rows.append(Number(f"{law}: {name}, relative error", error, bound=bound, floor=least))
    error, least = (root_mean_square(found.posterior - exact.posterior(GRID_1, GRID_2)) for found in (learned, best))
    rows.append(Number(f"{law}: P(Y=1|x₁, x₂), RMSE", error, bound=bounds.posterior, floor=least))
    for i in range(2):
        error, least = (
            float(np.sqrt(np.mean((found.singles[i] - exact.single(GRID)) ** 2))) for found in (learned, best)
        )
        rows.append(Number(f"{law}: P(Y=1|x{subscript(i + 1)}), RMSE", error, bound=bounds.single, floor=least))
    rows.append(
        Number.value(f"{law}: σ̄", exact.sigma_bar, learned.sigma_bar, bound=bounds.sigma, optimum=best.sigma_bar)
    )
    if learned.sigma is not None and best.sigma is not None:
        rows.append(Number.value(f"{law}: σ", exact.sigma, learned.sigma, bound=bounds.sigma, optimum=best.sigma))
    return rows


def maps(law: str, learned: Learned) -> tuple[list[Map], list[Map]]:
    """Learned features and posterior, and the true ones to stand below them."""
    exact = truth(law)
    functions = {"\\bar{f}(x_1, x_2)": (learned.f_bar, exact.f_bar)}
    if learned.f is not None and exact.f is not None:
        functions["f(x_1, x_2)"] = (learned.f, exact.f)
    above, below = [], []
    for name, (values, function) in functions.items():
        true = function(GRID_1, GRID_2)
        above.append(_map(f"${name}$, learned", aligned(values, true, WEIGHTS), (-2, 2)))
        below.append(_map(f"${name}$, theory", true, (-2, 2)))
    name = "P(Y{=}1\\,|\\,x_1, x_2)"
    above.append(_map(f"${name}$, learned", learned.posterior, (0, 1)))
    below.append(_map(f"${name}$, theory", exact.posterior(GRID_1, GRID_2), (0, 1)))
    return above, below


def singles_plot(slug: str, law: str, learned: Learned) -> Plot:
    """What one source alone says about the label."""
    exact = truth(law).single(GRID)
    panels = [
        Curves(
            f"$P_{{Y|X_{i + 1}}}(1|x_{i + 1})$",
            GRID.tolist(),
            exact.tolist(),
            {"learned": learned.singles[i].tolist()},
            f"$x_{i + 1}$",
            level=0.5,
        )
        for i in range(2)
    ]
    return Plot(
        slug,
        "Prediction of the label from one source alone; above 1/2 the label 1 is predicted.",
        "Two charts of the posterior given one source: learned curves over the true ones, with a line at 1/2.",
        panels,
        columns=2,
    )


def root_mean_square(values: Array) -> float:
    """Of a function at (`GRID_1`, `GRID_2`), under the law of (X1, X2)."""
    return float(np.sqrt(WEIGHTS @ values**2))


def _map(title: str, values: Array, ends: tuple[float, float], cells: int = 32) -> Map:
    """Means over coarser cells: enough to look at."""
    size = CELLS // cells
    coarse = values.reshape(cells, size, cells, size).mean(axis=(1, 3)).round(3)
    return Map(title, coarse.tolist(), (-1, 1), ends)
