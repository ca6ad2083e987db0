"""Two columns of many labels with few rows each: modes that held-out rows bear out.

A table of counts with hardly more rows than labels falls into parts that touch nowhere, and each of them is a mode of
strength 1 on the rows of the fit, and of none on others. So labels are shrunk towards no dependence, as if each had
some more rows with the labels of all: with counts C, row sums a, column sums b, n rows in all and kappa further ones
for each label,

    (C - a b^T / n) / sqrt((a + kappa) (b + kappa)^T)

is decomposed: a ridge on the indicators. Held-out rows choose kappa, and the strength of a mode is the correlation that
they show.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from featgeo.geometry.modes import Modes, correlations, sign_of_columns
from featgeo.geometry.validation import Array

KAPPAS = (1.0, 4.0, 16.0, 64.0)  # few: held-out correlations are flat around their maximum
SMALLEST = 1e-9  # relative to the largest: smaller directions are rounding


def thin_modes(
    x: np.ndarray, y: np.ndarray, sizes: tuple[int, int], k: int, fold_of_row: np.ndarray
) -> tuple[Modes, list[Modes]]:
    """Modes of all rows, and of all rows but each fold; all with the strengths that held-out rows show.

    Args:
        x: Label of each row, (n,).
        y: The other label.
        sizes: How many labels there are of either.
        k: How many modes at most.
        fold_of_row: Shape (n,).
    """
    folds = np.unique(fold_of_row)
    found: list[tuple[Array, float, list[Modes]]] = []
    for kappa in KAPPAS:
        parts = [_shrunken(x[fold_of_row != fold], y[fold_of_row != fold], sizes, k, kappa) for fold in folds]
        held_out = [(fold_of_row == fold, part) for fold, part in zip(folds, parts, strict=True)]
        strength = np.mean([correlations(part.f[x[rows]], part.g[y[rows]]) for rows, part in held_out], axis=0).clip(
            min=0
        )
        found.append((strength, kappa, parts))
    strength, kappa, parts = max(found, key=lambda tried: float(np.square(tried[0]).sum()))
    order = [i for i in np.argsort(-strength, kind="stable") if strength[i] > 0]
    whole = _shrunken(x, y, sizes, k, kappa)

    def in_order(modes: Modes) -> Modes:
        return Modes(strength[order], modes.f[:, order], modes.g[:, order])

    return in_order(whole), [in_order(part) for part in parts]


def _shrunken(x: np.ndarray, y: np.ndarray, sizes: tuple[int, int], k: int, kappa: float) -> Modes:
    """Modes inside the best k functions of either label, normalised on the rows."""
    counts = sparse.csr_array((np.ones(len(x)), (x, y)), shape=sizes)
    a, b, n = np.bincount(x, minlength=sizes[0]), np.bincount(y, minlength=sizes[1]), len(x)
    a_root, b_root = np.sqrt(a + kappa), np.sqrt(b + kappa)
    scaled = (sparse.diags_array(1 / a_root) @ counts @ sparse.diags_array(1 / b_root)).tocsr()
    transposed, left, right = scaled.T.tocsr(), a / a_root / n, b / b_root
    operator = LinearOperator(
        sizes,
        matvec=lambda v: scaled @ v.ravel() - left * (right @ v.ravel()),
        rmatvec=lambda u: transposed @ u.ravel() - right * (left @ u.ravel()),
        dtype=np.float64,
    )
    k = min(k, min(sizes) - 1)
    u, _, vt = svds(operator, k=k, v0=np.random.default_rng(0).standard_normal(min(sizes)))  # a fixed start: repeatable
    f, g = _normalised(u[:, ::-1] / a_root[:, None], a / n), _normalised(vt[::-1].T / b_root[:, None], b / n)
    inside, sigma, outside = np.linalg.svd(f.T @ (counts @ g) / n)
    f, g = f @ inside[:, : len(sigma)], g @ outside.T[:, : len(sigma)]
    sign = sign_of_columns(f)
    return _padded(Modes(sigma, f * sign, g * sign), k)


def _normalised(values: Array, shares: Array) -> Array:
    """Functions of mean 0, uncorrelated and of unit variance with the same span, (labels, r)."""
    centred = values - shares @ values
    variances, axes = np.linalg.eigh((centred * shares[:, None]).T @ centred)
    kept = variances > SMALLEST * variances.max(initial=0)
    unit: Array = centred @ (axes[:, kept] / np.sqrt(variances[kept]))
    return unit


def _padded(modes: Modes, k: int) -> Modes:
    """Exactly k modes: those that are not there have strength 0 and are 0 everywhere."""
    lacking = ((0, 0), (0, k - len(modes.sigma)))
    return replace(modes, sigma=np.pad(modes.sigma, lacking[1]), f=np.pad(modes.f, lacking), g=np.pad(modes.g, lacking))
