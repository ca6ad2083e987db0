"""Top modes of a large alphabet from sparse counts; the dependence matrix is never formed.

The canonical dependence matrix is the sparse matrix B = P / sqrt(p_x p_y) less what some functions of y explain: with M
an orthonormal basis of those functions, B - (B M) M^T. For plain modes M is the constant; for the conditional component
M holds the functions of the side information. Both products stay sparse (or of rank one), and an iterative solver needs
nothing but them.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from featgeo.geometry.modes import ZERO_CORRELATION, Modes, sign_of_columns
from featgeo.geometry.validation import Array


def top_modes(joint: sparse.csr_array, k: int | None, groups: int = 1) -> Modes:
    """The k strongest modes of a joint distribution, fewer where its rank is lower.

    Args:
        joint: Probabilities, (|X|, |Y|).
        k: Number of modes.
        groups: y is a pair (s, y') whose first part has this many symbols, and what functions of s explain is left
            out; 1 leaves out the constant only.
    """
    limit = min(joint.shape) - 1
    if k is None or not 1 <= k <= limit:
        raise ValueError(
            f"A sparse table of shape {joint.shape} gives between 1 and {limit} modes, got k={k}. "
            "Pass k in that range, or a dense table for all modes."
        )
    x_roots, y_roots = np.sqrt(joint.sum(axis=1)), np.sqrt(joint.sum(axis=0))
    inverse_x, inverse_y = _inverse(x_roots), _inverse(y_roots)
    matrix = (sparse.diags_array(inverse_x) @ joint @ sparse.diags_array(inverse_y)).tocsr()  # B
    left, sigma, right = _top_singular(matrix, _coarsening(y_roots, groups), k)
    sign = sign_of_columns(left)
    return Modes(sigma, left * sign * inverse_x[:, None], right * sign * inverse_y[:, None])


def _inverse(roots: Array) -> Array:
    """1 / roots, and 0 at symbols of probability zero."""
    return np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)


def _coarsening(roots: Array, groups: int) -> sparse.csc_array:
    """Orthonormal information vectors, (n, groups), of functions of the leading part of an alphabet."""
    size = len(roots) // groups
    norms = np.linalg.norm(roots.reshape(groups, size), axis=1)
    unit = roots * np.repeat(_inverse(norms), size)
    return sparse.csc_array((unit, np.arange(len(roots)), size * np.arange(groups + 1)), shape=(len(roots), groups))


def _top_singular(matrix: sparse.csr_array, explained: sparse.csc_array, k: int) -> tuple[Array, Array, Array]:
    """Left vectors (m, k), singular values (k,) and right vectors (n, k) of matrix (I - explained explained^T)."""
    transposed, image = matrix.T.tocsr(), matrix @ explained
    operator = LinearOperator(
        matrix.shape,
        matvec=lambda v: matrix @ v.ravel() - image @ (explained.T @ v.ravel()),
        rmatvec=lambda u: transposed @ u.ravel() - explained @ (image.T @ u.ravel()),
        dtype=np.float64,
    )
    rng = np.random.default_rng(0)  # a fixed start makes the answer repeatable
    if np.linalg.norm(operator.matvec(rng.standard_normal(matrix.shape[1]))) <= ZERO_CORRELATION:
        return (
            np.empty((matrix.shape[0], 0)),
            np.empty(0),
            np.empty((matrix.shape[1], 0)),
        )  # ARPACK refuses a zero matrix
    u, sigma, vt = svds(operator, k=k, v0=rng.standard_normal(min(matrix.shape)))
    order = [i for i in np.argsort(-sigma) if sigma[i] > ZERO_CORRELATION]
    return u[:, order], sigma[order], vt[order].T
