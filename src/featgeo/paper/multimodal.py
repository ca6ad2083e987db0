"""Two sources and a label (section 7.4): what each source says alone, and what only both say together.

X1 and X2 on [-1, 1] have density (1 + cos(2 pi (x1 - x2))) / 4, so each is uniform, and Y is 1 or -1 with

    P(Y = 1 | x1, x2) = 1/2 + w (cos(pi x1) + cos(pi x2) + cos(pi (x1 + x2))).

The first two terms are the bivariate component, the third, whose mean given either source is 0, the interaction. The
paper's w = 1/4 is no probability: at 0 it gives 5/4. A sampler that compares it with a uniform number cuts it at 1:
that is the law "clipped". The law "valid" has w = 1/6, which stays within [1/4, 1]. The law "pairwise" has w = 1/4
without the third term, and can be learned from pairs of variables.

What is cut off, e(x1, x2), enters every truth of the clipped law. At a fixed x1, with a = pi x1 and t = pi x2 + a/2, it
is a quarter of 2 cos(a/2) cos(t) - (2 - cos(a)) where that is positive: smooth between two known ends, so that Gauss's
rule integrates it to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from featgeo.geometry.validation import Array
from featgeo.models import MultimodalDecomposition

SAMPLES = 50_000
LAWS = {"clipped": (1 / 4, 1), "valid": (1 / 6, 1), "pairwise": (1 / 4, 0)}  # w, and whether the third term is there

CELLS = 128
GRID = (np.arange(CELLS) + 0.5) * 2 / CELLS - 1
GRID_1, GRID_2 = (part.ravel() for part in np.meshgrid(GRID, GRID, indexing="ij"))

LAST_CUT = 2 * np.arccos((np.sqrt(7) - 1) / 2) / np.pi  # beyond this |x1| nothing is cut off, whatever x2


@dataclass(frozen=True, eq=False)
class Truth:
    """What a law says exactly.

    Attributes:
        posterior: P(Y=1|x1, x2).
        single: P(Y=1|x1) as a function of x1; by symmetry also P(Y=1|x2) of x2.
        prior: P(Y=1).
        f_bar: Feature of the bivariate component, a sum of a function of x1 and one of x2, mean 0 and variance 1.
        f: Feature of the interaction, mean 0 and variance 1; None for the law that has none.
        sigma_bar: Singular value of the bivariate component.
        sigma: Singular value of the interaction.
    """

    posterior: Callable[[Array, Array], Array]
    single: Callable[[Array], Array]
    prior: float
    f_bar: Callable[[Array, Array], Array]
    f: Callable[[Array, Array], Array] | None
    sigma_bar: float
    sigma: float


@dataclass(frozen=True, eq=False)
class MultimodalResult:
    """Learned features and posteriors beside the true ones.

    Errors are root mean squares of the difference, under the law for functions of both sources and for x uniform for
    functions of one. Features have mean 0, variance 1 and the sign of the truth.

    Attributes:
        law: Name of the law.
        f_bar: Learned feature of the bivariate component at (`GRID_1`, `GRID_2`).
        f: Learned feature of the interaction there; None where it cannot be learned, or is not in the law.
        posterior: P(Y=1|x1, x2) there.
        posterior_1: P(Y=1|x1) on `GRID`.
        posterior_2: P(Y=1|x2) on `GRID`.
        f_bar_error: Error of f_bar.
        f_error: Error of f.
        posterior_error: Error of P(Y=1|x1, x2).
        posterior_1_error: Error of P(Y=1|x1).
        posterior_2_error: Error of P(Y=1|x2).
        sigma_bar: Learned singular value of the bivariate component.
        sigma: Learned singular value of the interaction, None like f.
    """

    law: str
    f_bar: Array
    f: Array | None
    posterior: Array
    posterior_1: Array
    posterior_2: Array
    f_bar_error: float
    f_error: float | None
    posterior_error: float
    posterior_1_error: float
    posterior_2_error: float
    sigma_bar: float
    sigma: float | None


def density(x1: Array, x2: Array) -> Array:
    """Of (X1, X2)."""
    return (1 + np.cos(2 * np.pi * (x1 - x2))) / 4


WEIGHTS = density(GRID_1, GRID_2) * (2 / CELLS) ** 2  # of the points of the grid; they sum to 1


@lru_cache
def truth(law: str, nodes: int = 200) -> Truth:
    """The exact functions of a law; integrals over one source take `nodes` points on each side of the last cut.

    The feature of the bivariate component is the best sum h(x1) + h(x2) for P(Y=1|x1, x2), so h + tau h is what one
    source alone says, with tau the conditional expectation given the other one. For this density tau halves
    cos(2 pi x) and sends all else that is even with mean 0 to 0: only the coefficient of that cosine is corrected.
    """
    weight, interacting = LAWS[law]
    x, mass = _quadrature(nodes)
    cut, squared = (float(mass @ excess(x, power)) if law == "clipped" else 0.0 for power in (1, 2))
    prior = 1 / 2 - cut

    def posterior(x1: Array, x2: Array) -> Array:
        alone = np.cos(np.pi * x1) + np.cos(np.pi * x2)
        return np.minimum(1 / 2 + weight * (alone + interacting * np.cos(np.pi * (x1 + x2))), 1)

    def single(x: Array) -> Array:
        uncut = 1 / 2 + weight * np.cos(np.pi * x)
        return uncut - excess(x) if law == "clipped" else uncut

    said = single(x) - prior
    coefficient = 2 * float(mass @ (said * np.cos(2 * np.pi * x)))

    def half(x: Array) -> Array:
        return single(x) - prior - coefficient / 3 * np.cos(2 * np.pi * x)

    bivariate_variance = 2 * float(mass @ (half(x) * said))
    # (p - e - 1/2)^2 = (p - 1/2)^2 - e - e^2, for p = 1 + e wherever e is not 0.
    variance = weight**2 * (1 + interacting / 2) - cut - squared - cut**2
    scale_bar, scale = np.sqrt(bivariate_variance), np.sqrt(max(variance - bivariate_variance, 0))

    def f_bar(x1: Array, x2: Array) -> Array:
        return (half(x1) + half(x2)) / scale_bar

    def f(x1: Array, x2: Array) -> Array:
        return (posterior(x1, x2) - prior - half(x1) - half(x2)) / scale

    deviation = np.sqrt(prior * (1 - prior))
    return Truth(
        posterior,
        single,
        prior,
        f_bar,
        f if interacting else None,
        float(scale_bar / deviation),
        float(scale / deviation) if interacting else 0.0,
    )


def excess(x1: Array, power: int = 1) -> Array:
    """E[e(X1, X2)^power | x1], e being what the law "clipped" cuts off."""
    a = np.pi * np.asarray(x1, dtype=float)[..., None]
    height, level = 2 * np.cos(a / 2), 2 - np.cos(a)
    # Nothing is cut off where the height does not reach the level: both ends of the integral are then 0.
    end = np.arccos(np.divide(level, height, out=np.ones_like(a), where=height > level))
    nodes, weights = np.polynomial.legendre.leggauss(32)
    t = end * nodes
    cut = (height * np.cos(t) - level) / 4
    return (cut**power * (1 + np.cos(3 * a - 2 * t)) * weights * end).sum(axis=-1) / (2 * np.pi)


def _quadrature(nodes: int) -> tuple[Array, Array]:
    """Points and weights for the mean of an even function of one source, smooth on each side of the last cut."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    ends = ((0.0, LAST_CUT), (LAST_CUT, 1.0))
    x = np.concatenate([(low + high) / 2 + (high - low) / 2 * points for low, high in ends])
    return x, np.concatenate([(high - low) / 2 * weights for low, high in ends])


def samples(law: str, n: int, seed: int) -> tuple[Array, Array, np.ndarray]:
    """Draw n triples (x1, x2, y)."""
    rng = np.random.default_rng(seed)
    x1, step = rng.uniform(-1, 1, n), np.empty(0)
    while len(step) < n:  # x2 - x1 has density (1 + cos(2 pi d)) / 2: accept uniform proposals by it
        proposal = rng.uniform(-1, 1, n)
        step = np.concatenate([step, proposal[rng.random(n) < (1 + np.cos(2 * np.pi * proposal)) / 2]])
    x2 = (x1 + step[:n] + 1) % 2 - 1
    return x1, x2, np.where(rng.random(n) < truth(law).posterior(x1, x2), 1, -1)


def run(law: str, data: str = "complete", n: int = SAMPLES, seed: int = 0) -> MultimodalResult:
    """Learn one feature of each component from n triples, or ("pairwise") from the three datasets of their pairs."""
    x1, x2, y = samples(law, n, seed)
    model = MultimodalDecomposition(n_modes=1, n_interaction_modes=1, random_state=seed)
    if data == "complete":
        model.fit({"x1": x1, "x2": x2}, y)
    elif data == "pairwise":
        model.fit_datasets([{"x1": x1, "x2": x2}, {"x1": x1, "y": y}, {"x2": x2, "y": y}])
    else:
        raise ValueError(f'The data are "complete" or "pairwise", got {data!r}.')
    features = model.transform({"x1": GRID_1, "x2": GRID_2})
    together = data == "complete"  # no pair of variables shows an interaction
    return measured(
        law,
        features[:, 0],
        features[:, 1] if together else None,
        model.given(x1=GRID_1, x2=GRID_2).proba()[:, 1],
        model.given(x1=GRID).proba()[:, 1],
        model.given(x2=GRID).proba()[:, 1],
        float(model.bivariate_.singular_values_[0]),
        float(model.interaction_.singular_values_[0]) if together else None,
    )


def measured(
    law: str,
    f_bar: Array,
    f: Array | None,
    posterior: Array,
    posterior_1: Array,
    posterior_2: Array,
    sigma_bar: float,
    sigma: float | None,
) -> MultimodalResult:
    """What was learned, on the grid, beside the truth."""
    exact = truth(law)
    true_f_bar = exact.f_bar(GRID_1, GRID_2)
    f_bar = _normalised(f_bar, true_f_bar)
    f_error = None
    if f is None or exact.f is None:
        f = sigma = None
    else:
        true_f = exact.f(GRID_1, GRID_2)
        f = _normalised(f, true_f)
        f_error = root_mean_square(f - true_f)
    return MultimodalResult(
        law,
        f_bar,
        f,
        posterior,
        posterior_1,
        posterior_2,
        root_mean_square(f_bar - true_f_bar),
        f_error,
        root_mean_square(posterior - exact.posterior(GRID_1, GRID_2)),
        float(np.sqrt(np.mean((posterior_1 - exact.single(GRID)) ** 2))),
        float(np.sqrt(np.mean((posterior_2 - exact.single(GRID)) ** 2))),
        sigma_bar,
        sigma,
    )


def root_mean_square(values: Array) -> float:
    """Of a function at (`GRID_1`, `GRID_2`), under the law of (X1, X2)."""
    return float(np.sqrt(WEIGHTS @ values**2))


def _normalised(values: Array, like: Array) -> Array:
    """Mean 0 and variance 1 on the grid, with the sign of the truth."""
    values = values - WEIGHTS @ values
    return values * np.sign(WEIGHTS @ (values * like)) / root_mean_square(values)
