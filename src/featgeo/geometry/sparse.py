"""Top modes of a large alphabet from sparse counts; the dependence matrix is never formed.

The canonical dependence matrix is the sparse matrix B = P / sqrt(p_x p_y) without what some functions of y explain: with
M an orthonormal basis of those functions, B - (B M) M^T. For plain modes M is the constant; for the conditional
component M holds the functions of the side information. Both products stay sparse (or of rank one), and an iterative
solver needs nothing but them.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from featgeo.geometry.modes import ZERO_CORRELATION
from featgeo.geometry.validation import Array


def scaled_by_roots(joint: sparse.csr_array, x_mass: Array, y_mass: Array) -> sparse.csr_array:
    """B = P(x, y) / sqrt(p(x) p(y)); rows and columns of mass zero stay zero."""
    inverse_roots = [np.divide(1, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0) for mass in (x_mass, y_mass)]
    left, right = (sparse.diags_array(roots) for roots in inverse_roots)
    return (left @ joint @ right).tocsr()


def coarsening(mass: Array, groups: int) -> sparse.csc_array:
    """Orthonormal information vectors, (n, groups), of functions of the leading part of an alphabet.

    The alphabet is a product whose first factor has `groups` symbols; one group gives the constant function.
    """
    roots = np.sqrt(mass)
    norms = np.linalg.norm(roots.reshape(groups, -1), axis=1)
    size = len(mass) // groups
    unit = np.divide(roots, np.repeat(norms, size), out=np.zeros_like(roots), where=roots > 0)
    return sparse.csc_array((unit, np.arange(len(mass)), size * np.arange(groups + 1)), shape=(len(mass), groups))


def top_singular(
    matrix: sparse.csr_array, explained: sparse.csc_array, k: int
) -> tuple[Array, Array, Array]:
    """The k largest singular triplets of matrix - (matrix @ explained) @ explained.T, fewer where the rank is lower.

    Returns:
        Left vectors (m, k), singular values (k,), right vectors (n, k), largest first.
    """
    limit = min(matrix.shape) - 1
    if not 1 <= k <= limit:
        raise ValueError(
            f"A sparse table of shape {matrix.shape} gives between 1 and {limit} modes, got k={k}. "
            "Choose k in that range, or pass a dense table for all modes."
        )
    transposed, image = matrix.T.tocsr(), matrix @ explained
    operator = LinearOperator(
        matrix.shape,
        matvec=lambda v: matrix @ v.ravel() - image @ (explained.T @ v.ravel()),
        rmatvec=lambda u: transposed @ u.ravel() - explained @ (image.T @ u.ravel()),
        dtype=np.float64,
    )
    # A fixed start makes the answer repeatable; an all-ones start could be orthogonal to every mode.
    start = np.random.default_rng(0).standard_normal(limit + 1)
    if np.linalg.norm(operator.matvec(np.resize(start, matrix.shape[1]))) <= ZERO_CORRELATION:
        return np.empty((matrix.shape[0], 0)), np.empty(0), np.empty((matrix.shape[1], 0))  # ARPACK cannot start from 0
    u, sigma, vt = svds(operator, k=k, v0=start)
    order = [i for i in np.argsort(-sigma) if sigma[i] > ZERO_CORRELATION]
    return u[:, order], sigma[order], vt[order].T
