"""What the tests share: random distributions with exact truths, and gradient ascent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize

from featgeo.assembly.links import Support
from featgeo.features.space import Wrapped
from featgeo.geometry.spans import LevelChoice, SpanModes, SpanProblem
from featgeo.paper import cosine

SEEDS = (0, 1, 2)


def support_of_numbers(values: np.ndarray, features: Callable[[np.ndarray], np.ndarray]) -> Support:
    """Neighbourhoods of numbers in any order, with features by positions among them."""
    order = np.argsort(values)
    return Support.of_numbers(values[order], lambda at: features(order[at]))


DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def random_counts(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """A table of positive counts: the empirical distribution of `rows`, exactly."""
    return np.random.default_rng(seed).integers(1, 12, shape)


def rows(counts: np.ndarray) -> tuple[torch.Tensor, ...]:
    """The samples behind a table of counts: for each axis the symbol of every row."""
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    return tuple(torch.from_numpy(axis) for axis in np.unravel_index(cells, counts.shape))


def random_functions(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1000 + seed).standard_normal(shape)


def weak_joint(seed: int, shape: tuple[int, ...], eps: float, n_x: int = 1) -> np.ndarray:
    """A distribution whose first n_x variables are eps-dependent on the others: P_X P_Y (1 + eps gamma)."""
    rng = np.random.default_rng(seed)
    p_x, p_y = (rng.uniform(0.5, 1.5, part) for part in (shape[:n_x], shape[n_x:]))
    p_x, p_y = p_x / p_x.sum(), p_y / p_y.sum()
    gamma = rng.uniform(-1, 1, (p_x.size, p_y.size))
    gamma = gamma - p_x.ravel() @ gamma
    gamma = gamma - (gamma @ p_y.ravel())[:, None]
    return np.multiply.outer(p_x, p_y) * (1 + eps * gamma.reshape(shape))


def random_starts(shapes: Sequence[tuple[int, ...]], starts: int, scale: float) -> Iterator[list[torch.Tensor]]:
    for start in range(starts):
        generator = torch.Generator().manual_seed(start)
        values = [scale * torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
        yield [value.requires_grad_() for value in values]


def ascend(
    objective: Callable[..., torch.Tensor], shapes: Sequence[tuple[int, ...]], starts: int = 4
) -> list[tuple[float, list[torch.Tensor]]]:
    """Gradient ascent with line search (L-BFGS, float64) from random starts: the value and parameters it ends at."""
    sizes = [math.prod(shape) for shape in shapes]

    def shaped(flat: np.ndarray) -> list[torch.Tensor]:
        parts = torch.from_numpy(flat.copy()).split(sizes)
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def negative(flat: np.ndarray) -> tuple[float, np.ndarray]:
        parameters = [part.requires_grad_() for part in shaped(flat)]
        value = objective(*parameters)
        gradients = torch.autograd.grad(value, parameters)
        return -value.item(), -torch.cat([gradient.ravel() for gradient in gradients]).numpy()

    results = []
    for parameters in random_starts(shapes, starts, scale=0.5):
        start = torch.cat([parameter.detach().ravel() for parameter in parameters]).numpy()
        limits = {"maxcor": 30, "maxiter": 1000, "maxfun": 2000, "gtol": 1e-9, "ftol": 1e-16}
        end = shaped(minimize(negative, start, jac=True, method="L-BFGS-B", options=limits).x)
        results.append((float(objective(*end)), end))
    return results


def plain_ascend(
    objective: Callable[..., torch.Tensor], shapes: Sequence[tuple[int, ...]], starts: int = 3, steps: int = 4000
) -> list[tuple[float, list[torch.Tensor]]]:
    """Gradient ascent with a fixed step and nothing else, for parameters that are information vectors.

    It ends after so many steps, or where it is at rest: no gradient is left.
    """
    results = []
    for parameters in random_starts(shapes, starts, scale=0.2):
        for _ in range(steps):
            gradients = torch.autograd.grad(objective(*parameters), parameters)
            if max(float(gradient.abs().max()) for gradient in gradients) < 1e-8:
                break
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter += 0.5 * gradient
        results.append((float(objective(*parameters).detach()), [p.detach() for p in parameters]))
    return results


def assert_reached_never_passed(
    results: list[tuple[float, list[torch.Tensor]]], maximum: float, tolerance: float = 1e-9
) -> list[torch.Tensor]:
    """No start passes the maximum and most reach it (one may rest at a saddle); return the parameters of the best."""
    values = np.array([value for value, _ in results])
    assert np.all(values <= maximum + 1e-12), values
    assert np.mean(values >= maximum - tolerance) > 0.7, values
    return max(results, key=lambda result: result[0])[1]


def assert_little_o(error_at: Callable[[float], float], order: int, eps: float = 0.08, halvings: int = 3) -> None:
    """error(eps) = o(eps^order): error / eps^order keeps falling, about in proportion to eps."""
    ratios = [error_at(eps / 2**i) / (eps / 2**i) ** order for i in range(halvings + 1)]
    assert ratios[0] > 0
    for before, after in pairwise(ratios):
        assert after <= 0.65 * before, ratios


def product(f: torch.Tensor, g: torch.Tensor) -> np.ndarray:
    """f (x) g as a table, from functions by their values (symbols, k)."""
    return (f @ g.T).numpy()


def norm(kernel: np.ndarray, p_x: np.ndarray, p_y: np.ndarray) -> float:
    """The norm of a function on X x Y under P_X P_Y."""
    return float(np.sqrt(np.sum(np.multiply.outer(p_x, p_y) * kernel**2)))


def best_modes(problem: SpanProblem, choices: Sequence[LevelChoice]) -> list[SpanModes]:
    """The modes of each level that choices settle, as functions of the features."""
    return [problem.span_modes(directions) for directions in problem.best_directions(choices)]


def cosine_samples(n, seed):
    """Pairs from the paper's cosine density."""
    data = cosine.draw(seed, n)
    return data.x, data.y


@dataclass(eq=False, repr=False)
class Computed(Wrapped):
    """A space of whatever a function makes of rows."""

    function: Callable[[Any], np.ndarray]

    def values(self, rows: Any) -> np.ndarray:
        return self.function(rows)
