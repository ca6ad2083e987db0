"""Regression on the condition S: kernel ridge regression in the eigenvectors of the kernel.

With K = U diag(lambda) U^T the centred kernel matrix of S, a target t is predicted by U diag(lambda / (lambda + ridge))
U^T t: one decomposition serves every target and every ridge. The ridge of each target is a tenth of the one that
minimises its generalised cross-validation: that one balances the error's variance, which products of residuals forgive,
with its bias, which X and Y may have in common. Many rows share the kernel's Nystroem approximation on a few hundred of
them.

What is simple and often there goes without any penalty (`featgeo.evidence.terms`), as eigenvectors of infinite
eigenvalue: a kernel on a few hundred rows would miss most of many labels, and a penalty would leave a share of the same
function in X and Y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featgeo.geometry.validation import Array

RIDGES = np.geomspace(1e-7, 1.0, 15)  # over the largest eigenvalue
UNDERSMOOTHING = 2  # steps of the ridge, each a factor of about 3
HARDLY = 0.05  # share of an eigenvector that a regression takes out
MOST_DEGREES = 0.5  # of freedom, over n: beyond it cross-validation mistakes interpolation for a good fit


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a regression leaves of its targets.

    Attributes:
        values: Shape (n, k).
        vectors: The constant and the eigenvectors of which it takes out more than hardly any, orthonormal, (n, r).
        taken: The share that it takes out of the variance of each of them in each target, (r, k).
        of_rows: The share that it takes out of the variance of each row in each target, (n, k).
    """

    values: Array
    vectors: Array
    taken: Array
    of_rows: Array


def residuals(features: Array, free: Array, targets: Array) -> Residuals:
    """Targets, centred, less what a regression predicts of them.

    Args:
        features: Those of the kernel, centred, (n, m).
        free: Terms without penalty, orthonormal, (n, q).
        targets: Shape (n, k).
    """
    n, q, targets = len(free), free.shape[1], targets - targets.mean(axis=0)
    rest = features - free @ (free.T @ features / n)
    energies, rotation = np.linalg.eigh(rest.T @ rest)
    # Of the others no ridge takes out more than hardly any; and what is close to rounding is nothing.
    rounding = np.finfo(float).eps * np.square(features).sum()
    kept = energies > max(HARDLY * RIDGES[0] * energies[-1], 1e3 * rounding)
    rotation = rotation[:, kept] * np.sqrt(n / energies[kept])
    eigenvalues = np.concatenate([np.full(q, np.inf), energies[kept]])
    coefficients = np.vstack([free.T @ targets, rotation.T @ (rest.T @ targets)]) / n
    left = _left(eigenvalues, coefficients, np.square(targets).mean(axis=0), n)
    predicted = (1 - left) * coefficients
    values = targets - free @ predicted[:q] - rest @ (rotation @ predicted[q:])
    taken = 1 - left**2
    seen = taken.max(axis=1) > HARDLY
    # Single precision takes half the time, and six digits are enough for variances.
    smooth = rest.astype(np.float32) @ rotation[:, seen[q:]].astype(np.float32)
    vectors = np.hstack([np.ones((n, 1), np.float32), free.astype(np.float32), smooth])
    taken = np.vstack([np.ones((1, taken.shape[1])), taken[seen]])
    of_rows = (np.square(vectors) @ taken.astype(np.float32)).astype(np.float64) / n
    return Residuals(values, vectors, taken, of_rows)


def _left(eigenvalues: Array, coefficients: Array, variances: Array, n: int) -> Array:
    """The share that the ridge of each target leaves of each eigenvector, (r, k)."""
    ridges = RIDGES * np.max(eigenvalues, where=np.isfinite(eigenvalues), initial=1e-300)
    left = ridges / (eigenvalues[:, None] + ridges)  # (r, ridges)
    degrees = 1 + (1 - left).sum(axis=0)
    unexplained = variances - (1 - left**2).T @ coefficients**2
    allowed = (degrees <= MOST_DEGREES * n) | (ridges == ridges[-1])
    criterion = unexplained / (1 - np.minimum(degrees / n, MOST_DEGREES))[:, None] ** 2
    best = np.argmin(np.where(allowed[:, None], criterion, np.inf), axis=0)
    chosen: Array = left[:, np.maximum(best - UNDERSMOOTHING, np.argmax(allowed))]
    return chosen


def variance_ratio(x: Residuals, y: Residuals, modulating: Array) -> Array:
    """Variance of the sum of products of residuals over what the sum of their squared products says, (k, l, q).

    Residuals of one regression are correlated over the rows, so their products are not quite independent. With A and B
    the squares of the matrices that take targets to residuals, m a function of S that multiplies the products, and
    targets of constant variance given S, the ratio is sum_ij m_i m_j A_ij B_ij over sum_i m_i^2 A_ii B_ii.

    Args:
        x: Residuals of k functions of X.
        y: Residuals of l functions of Y.
        modulating: Functions m, (n, q).
    """
    n, squares = len(modulating), np.square(modulating)
    # A is the identity less the vectors, each by the share of it that is taken.
    once = squares.sum(axis=0) - (x.of_rows.T @ squares)[:, None] - y.of_rows.T @ squares
    both = ((x.of_rows[:, :, None] * y.of_rows[:, None, :]).reshape(n, -1).T @ squares).reshape(once.shape)
    off = np.empty_like(both)
    for q, m in enumerate(modulating.T.astype(x.vectors.dtype)):
        products = (x.vectors * m[:, None]).T @ y.vectors / n
        off[:, :, q] = x.taken.T @ np.square(products) @ y.taken  # sum_ij m_i m_j (1 - A)_ij (1 - B)_ij
    shares: Array = (once + off) / (once + both)
    return shares
