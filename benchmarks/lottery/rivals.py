"""Plain estimators of the kernel i(x, y) = p(x, y) / (p(x) p(y)) - 1, tuned by cross-validation.

Each gives i(x, y) = a(x) . b(y) + constant. They are judged on rows left out by what they lose of the distance to the
truth: |i^ - i|^2 = E_xy[i^^2] - 2 (E_joint[i^] - E_xy[i^]) + |i|^2, where E_xy is the mean over independent pairs.
Numbers come to all of them as normal scores, labels as indicators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.special import ndtr
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, SplineTransformer

Array = np.ndarray
Sides = tuple[Callable[[Any], Array], Callable[[Any], Array], float]  # a, b, and the constant
FOLDS = 3


def encoder(frame: pd.DataFrame, splines: bool = False) -> Any:
    """From frames to numbers."""
    scores = QuantileTransformer(n_quantiles=min(1000, len(frame)), output_distribution="normal")
    numbers = make_pipeline(scores, SplineTransformer(8, knots="quantile", include_bias=False)) if splines else scores
    labels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    both = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")), (labels, make_column_selector(dtype_exclude="number"))
    )
    return both.fit(frame)


def gain(sides: Sides, x: Any, y: Any) -> float:
    """What held-out rows say for an estimate: |i|^2 - |i^ - i|^2."""
    a, b, constant = sides[0](x), sides[1](y), sides[2]
    together, apart = np.sum(a * b, axis=1).mean() + constant, a.mean(axis=0) @ b.mean(axis=0) + constant
    squares = np.vdot(a.T @ a, b.T @ b) / len(a) ** 2 + 2 * constant * apart - constant**2
    return 2 * (together - apart) - squares


def tuned(fits: Callable[[Any, Any], Iterable[tuple[Any, Sides]]], x: Any, y: Any, seed: int) -> Sides:
    """The estimate on all rows, with the options that do best on the rows left out."""
    fold = np.random.default_rng(seed).permutation(len(x)) % FOLDS
    gains: dict[Any, float] = {}
    for left_out in range(FOLDS):
        own, others = np.flatnonzero(fold == left_out), np.flatnonzero(fold != left_out)
        for options, sides in fits(taken(x, others), taken(y, others)):
            gains[options] = gains.get(options, 0.0) + gain(sides, taken(x, own), taken(y, own))
    best = max(gains, key=lambda options: gains[options])
    return next(sides for options, sides in fits(x, y) if options == best)


def taken(values: Any, index: Array) -> Any:
    return values.iloc[index] if isinstance(values, pd.DataFrame) else values[index]


# --- canonical correlations of random Fourier features


def fourier(x: pd.DataFrame, y: pd.DataFrame, seed: int) -> Sides:
    """Canonical correlations of 200 random Fourier features a side; width, ridge and rank by cross-validation."""
    rng = np.random.default_rng(seed)
    encoders = encoder(x), encoder(y)
    u, v = (one.transform(frame) for one, frame in zip(encoders, (x, y), strict=True))
    waves = [rng.standard_normal((z.shape[1], 100)) / median_distance(z, rng) for z in (u, v)]

    def features(z: Array, side: int, width: float) -> Array:
        phase = z @ waves[side] / width
        return np.hstack([np.cos(phase), np.sin(phase)])

    def fits(u: Array, v: Array) -> Iterable[tuple[Any, Sides]]:
        for width in (0.2, 0.5, 1.0):
            a, b = features(u, 0, width), features(v, 1, width)
            for (ridge, k), sides in canonical(a, b, (1e-4, 1e-3, 1e-2), (1, 2, 3, 5, 8, 12, 20)):
                f, g, zero = sides
                yield (
                    (width, ridge, k),
                    (
                        lambda z, f=f, w=width: f(features(z, 0, w)),
                        lambda z, g=g, w=width: g(features(z, 1, w)),
                        zero,
                    ),
                )

    return on_frames(tuned(fits, u, v, seed), encoders)


def canonical(a: Array, b: Array, ridges: Iterable[float], ranks: Iterable[int]) -> Iterable[tuple[Any, Sides]]:
    """Canonical correlations under a ridge, as estimates of i of several ranks."""
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    gram_a, gram_b, cross = np.cov(a.T, bias=True), np.cov(b.T, bias=True), (a - mean_a).T @ (b - mean_b) / len(a)
    roots = [eigh(np.atleast_2d(gram)) for gram in (gram_a, gram_b)]
    for ridge in ridges:
        whiten = [axes / np.sqrt(energies.clip(min=0) + ridge * energies.mean() * 10) for energies, axes in roots]
        left, sigma, right = np.linalg.svd(whiten[0].T @ cross @ whiten[1], full_matrices=False)
        for k in ranks:
            f, g = whiten[0] @ left[:, :k] * sigma[:k], whiten[1] @ right[:k].T
            yield (ridge, k), (lambda z, f=f: (z - mean_a) @ f, lambda z, g=g: (z - mean_b) @ g, 0.0)


def median_distance(z: Array, rng: Any) -> float:
    one, other = rng.integers(0, len(z), (2, 2000))
    return float(np.median(np.linalg.norm(z[one] - z[other], axis=1))) or 1.0


def on_frames(sides: Sides, encoders: tuple[Any, Any]) -> Sides:
    return lambda x: sides[0](encoders[0].transform(x)), lambda y: sides[1](encoders[1].transform(y)), sides[2]


# --- boosted trees


def boosting(x: pd.DataFrame, y: pd.DataFrame, seed: int) -> Sides:
    """Boosted trees of orthonormal functions of Y: half-waves of its ranks, or indicators; sizes are chosen."""
    encode, splines = encoder(y), encoder(x)
    values = waves_of(encode.transform(y), y)
    mean = values.mean(axis=0)
    energies, axes = eigh(np.atleast_2d(np.cov(values.T, bias=True)))
    kept = energies > 1e-6 * energies.max()
    whiten = axes[:, kept][:, ::-1] / np.sqrt(energies[kept][::-1])
    targets = (values - mean) @ whiten

    def fits(inputs: Array, targets: Array) -> Iterable[tuple[Any, Sides]]:
        for leaves in (4, 16):
            model = HistGradientBoostingRegressor(max_iter=80, max_leaf_nodes=leaves, early_stopping=False)
            grown = [model.__class__(**model.get_params()).fit(inputs, target) for target in targets.T]
            for n_trees in (5, 10, 20, 40, 80):
                yield (leaves, n_trees), (lambda z, g=grown, m=n_trees: staged(g, z, m), lambda t: t, 0.0)

    a, _, zero = tuned(fits, splines.transform(x), targets, seed)
    told = lambda frame: (waves_of(encode.transform(frame), frame) - mean) @ whiten  # noqa: E731
    return lambda frame: a(splines.transform(frame)), told, zero


def staged(grown: list[Any], inputs: Array, n_trees: int) -> Array:
    """Predictions of the first trees of each model, (n, models)."""
    result = []
    for model in grown:
        kept, model._predictors = model._predictors, model._predictors[:n_trees]
        result.append(model.predict(inputs))
        model._predictors = kept
    return np.stack(result, 1)


def waves_of(z: Array, frame: pd.DataFrame) -> Array:
    """Six half-waves of the rank of each number, and the indicators."""
    n_numbers = frame.select_dtypes("number").shape[1]
    angle = np.pi * ndtr(z[:, :n_numbers, None]) * np.arange(1, 7)
    return np.hstack([np.cos(angle).reshape(len(z), -1), z[:, n_numbers:]])


# --- unconstrained least-squares importance fitting


def ulsif(x: pd.DataFrame, y: pd.DataFrame, seed: int) -> Sides:
    """The ratio as a sum of products of Gaussian kernels at 200 pairs; widths and ridge by cross-validation."""
    rng = np.random.default_rng(seed)
    encoders = encoder(x), encoder(y)
    u, v = (one.transform(frame) for one, frame in zip(encoders, (x, y), strict=True))
    at = rng.choice(len(u), min(200, len(u)), replace=False)
    sizes = [median_distance(z, rng) for z in (u, v)]
    centres = u[at], v[at]

    def kernel(z: Array, side: int, width: float) -> Array:
        squares = np.square(z).sum(1)[:, None] + np.square(centres[side]).sum(1) - 2 * z @ centres[side].T
        return np.exp(-squares.clip(min=0) / (2 * (width * sizes[side]) ** 2))

    def fits(u: Array, v: Array) -> Iterable[tuple[Any, Sides]]:
        for x_width, y_width in product((0.2, 0.5, 1.0), (0.1, 0.3, 0.7)):
            a, b = kernel(u, 0, x_width), kernel(v, 1, y_width)
            gram, joint = (a.T @ a) * (b.T @ b) / len(a) ** 2, (a * b).mean(axis=0)
            for ridge in (1e-4, 1e-3, 1e-2, 1e-1):
                weight = cho_solve(cho_factor(gram + ridge * np.eye(len(gram))), joint).clip(min=0)
                yield (
                    (x_width, y_width, ridge),
                    (
                        lambda z, w=weight, s=x_width: kernel(z, 0, s) * w,
                        lambda z, s=y_width: kernel(z, 1, s),
                        -1.0,
                    ),
                )

    return on_frames(tuned(fits, u, v, seed), encoders)


# --- alternating conditional expectations


def ace(x: pd.DataFrame, y: pd.DataFrame, seed: int) -> Sides:
    """Sums of splines of single columns, by alternating regressions; penalty and number of modes are chosen."""
    encoders = encoder(x, splines=True), encoder(y, splines=True)
    u, v = (one.transform(frame) for one, frame in zip(encoders, (x, y), strict=True))

    def fits(u: Array, v: Array) -> Iterable[tuple[Any, Sides]]:
        centre = u.mean(axis=0), v.mean(axis=0)
        for ridge in (1e-4, 1e-2, 1e-1):
            f, g, sigma = alternated(u - centre[0], v - centre[1], ridge)
            for k in (1, 2, 3, 5, 8):
                yield (
                    (ridge, k),
                    (
                        lambda z, w=f[:, :k] * sigma[:k], c=centre: (z - c[0]) @ w,
                        lambda z, w=g[:, :k], c=centre: (z - c[1]) @ w,
                        0.0,
                    ),
                )

    return on_frames(tuned(fits, u, v, seed), encoders)


def alternated(a: Array, b: Array, ridge: float, k: int = 8) -> tuple[Array, Array, Array]:
    """Coefficients of f and g, (d, k), and their correlations: each side is regressed on the other in turn."""
    grams = [z.T @ z / len(z) for z in (a, b)]
    inverse = [np.linalg.inv(gram + ridge * np.trace(gram) / len(gram) * np.eye(len(gram))) for gram in grams]
    cross = a.T @ b / len(a)
    g = np.random.default_rng(0).standard_normal((b.shape[1], min(k, a.shape[1], b.shape[1])))
    for _ in range(50):
        f = normed(inverse[0] @ cross @ g, grams[0])
        g = normed(inverse[1] @ cross.T @ f, grams[1])
    left, sigma, right = np.linalg.svd(f.T @ cross @ g)
    return f @ left, g @ right.T, sigma


def normed(weight: Array, gram: Array) -> Array:
    """The same functions, orthonormal."""
    energies, axes = eigh(weight.T @ gram @ weight)
    return weight @ (axes / np.sqrt(energies.clip(min=1e-12 * max(energies.max(), 1e-300))))


RIVALS: dict[str, Callable[[pd.DataFrame, pd.DataFrame, int], Sides]] = {
    "fourier": fourier,
    "boosting": boosting,
    "ulsif": ulsif,
    "ace": ace,
}
