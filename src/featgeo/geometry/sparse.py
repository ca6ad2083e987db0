"""Joint distributions of large alphabets, on the combinations of symbols that occur, and their top modes.

The canonical dependence matrix is the sparse matrix B = P / sqrt(p_x p_y) less what some functions of y explain: with M
an orthonormal basis of those functions, B - (B M) M^T. For plain modes M is the constant; for the conditional component
M holds the functions of the side information. Both products stay sparse (or of rank one), and an iterative solver needs
nothing but them.

A Krylov solver sees only one direction of a repeated singular value, and tables that fall into unconnected parts repeat
sigma = 1. So what was found is taken out and the search starts again, until nothing stronger is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from featgeo.geometry.spans import COLLINEAR, Modes, sign_of_columns
from featgeo.geometry.validation import Array, check_mode_count

Triplets = tuple[Array, Array, Array]  # left vectors (m, k), singular values (k,), right vectors (n, k)

_LARGEST_RESULT = 2**31  # numbers in one table of function values: 16 GiB


@dataclass(frozen=True, eq=False)
class SeenJoint:
    """A joint distribution on the combinations of symbols that occur, the variables of either side merged into one.

    Attributes:
        matrix: Probabilities, (m, n), no row or column empty.
        x_symbols: For each variable of x its symbol in every combination, (m,).
        y_symbols: For each variable of y its symbol in every combination, (n,).
    """

    matrix: sparse.csr_array
    x_symbols: tuple[np.ndarray, ...]
    y_symbols: tuple[np.ndarray, ...]

    @classmethod
    def from_cells(cls, cells: sparse.coo_array, n_x: int) -> SeenJoint:
        """From a table without explicit zeros whose first n_x axes are the variables of x."""
        x_code, x_symbols = _merged(cells.coords[:n_x])
        y_code, y_symbols = _merged(cells.coords[n_x:])
        size = (len(x_symbols[0]), len(y_symbols[0]))
        return cls(sparse.csr_array((cells.data, (x_code, y_code)), shape=size), x_symbols, y_symbols)

    @cached_property
    def x_roots(self) -> Array:
        """Roots of the probabilities of x, (m,)."""
        return np.sqrt(self.matrix.sum(axis=1))

    @cached_property
    def y_roots(self) -> Array:
        """Roots of the probabilities of y, (n,)."""
        return np.sqrt(self.matrix.sum(axis=0))

    @cached_property
    def scaled(self) -> sparse.csr_array:
        """B = P / sqrt(p_x p_y), without products of probabilities that could underflow."""
        return (sparse.diags_array(1 / self.x_roots) @ self.matrix @ sparse.diags_array(1 / self.y_roots)).tocsr()

    def energy(self) -> float:
        """||i||^2, the squared norm of the canonical dependence matrix."""
        cells = self.scaled.tocoo()
        rows, columns = cells.coords
        independent = self.x_roots[rows] * self.y_roots[columns]
        unseen = max(0.0, 1.0 - float(np.sum(independent**2)))  # the mass of the cells of count 0, where i = -1
        return float(np.sum((cells.data - independent) ** 2)) + unseen

    def information(self) -> float:
        """Mutual information in nats."""
        cells = self.matrix.tocoo()
        rows, columns = cells.coords
        return float(np.sum(cells.data * np.log(cells.data / self.x_roots[rows] ** 2 / self.y_roots[columns] ** 2)))

    def top_modes(self, k: int | None, n_given: int, x_shape: Sequence[int], y_shape: Sequence[int]) -> Modes:
        """Up to k modes of the dependence that functions of the first n_given variables of y do not explain.

        Args:
            k: Number of modes; fewer are returned where the rank is lower.
            n_given: How many variables of y are given; 0 leaves out the constant only.
            x_shape: Sizes of the whole alphabets of x.
            y_shape: Sizes of the whole alphabets of y.
        """
        if k is None:
            raise ValueError("A sparse table needs the number of modes to find. Pass k, or a dense table for all.")
        k = check_mode_count(k, k)
        explained = coarsening(self.y_roots, self.y_symbols[:n_given])
        left, sigma, right = top_singular(self.scaled, ((self.scaled @ explained).tocsr(), explained), k)
        sign = sign_of_columns(left)
        f = on_alphabet(left * sign / self.x_roots[:, None], self.x_symbols, x_shape)
        g = on_alphabet(right * sign / self.y_roots[:, None], self.y_symbols, y_shape)
        return Modes(sigma, f, g)


def _merged(coordinates: Sequence[np.ndarray]) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Number the combinations of symbols that occur: the number in every cell, and the symbols of each number."""
    code = np.zeros(len(coordinates[0]), dtype=np.int64)
    for symbol in coordinates:
        # Renumbering at each step keeps the codes small, whatever the sizes of the alphabets.
        code = np.unique(code * (int(symbol.max()) + 1) + symbol, return_inverse=True)[1]
    example = np.unique(code, return_index=True)[1]
    return code, tuple(symbol[example] for symbol in coordinates)


def on_alphabet(values: Array, symbols: tuple[np.ndarray, ...], shape: Sequence[int]) -> Array:
    """Spread values at the combinations that occur, (m, k), over the whole alphabet, (*shape, k); 0 elsewhere."""
    full_shape = (*shape, values.shape[1])
    if math.prod(full_shape) > _LARGEST_RESULT:
        raise ValueError(
            f"Functions on an alphabet of {tuple(shape)} symbols need too much memory. Merge rare symbols."
        )
    functions = np.zeros(full_shape)
    functions[symbols] = values
    return functions


def coarsening(roots: Array, symbols: Sequence[np.ndarray]) -> sparse.csr_array:
    """Orthonormal information vectors, (n, p), of functions of some variables; of the constant where there are none."""
    group = _merged(symbols)[0] if symbols else np.zeros(len(roots), dtype=np.int64)
    norms = np.sqrt(np.bincount(group, roots**2))
    return sparse.csr_array((roots / norms[group], (np.arange(len(roots)), group)))


def top_singular(matrix: sparse.csr_array, explained: tuple[Any, Any], k: int, once: bool = False) -> Triplets:
    """The k largest singular triplets of what is left of a sparse matrix, fewer where the rank is lower.

    Args:
        matrix: Shape (m, n).
        explained: Two factors, (m, p) and (n, p), whose product is taken off.
        k: How many.
        once: Whether one search will do, which may find a value that is repeated only once, in half of the time.
    """
    image, basis = explained
    kept = 2 * k + 40  # Krylov vectors; more than the usual 2k + 1 pay where the spectrum has no gap
    if min(matrix.shape) <= kept:  # a narrow matrix: a dense decomposition is quicker and misses nothing
        residual = matrix.toarray() - sparse.csr_array(image @ basis.T).toarray()
        u, sigma, vt = np.linalg.svd(residual, full_matrices=False)
        return _strongest(u, sigma, vt.T, k)
    transposed = matrix.T.tocsr()
    left, strength, right = np.empty((matrix.shape[0], 0)), np.empty(0), np.empty((matrix.shape[1], 0))

    def apply(v: Array) -> Array:
        return matrix @ v.ravel() - image @ (basis.T @ v.ravel()) - left @ (strength * (right.T @ v.ravel()))

    def apply_transposed(u: Array) -> Array:
        return transposed @ u.ravel() - basis @ (image.T @ u.ravel()) - right @ (strength * (left.T @ u.ravel()))

    operator = LinearOperator(matrix.shape, matvec=apply, rmatvec=apply_transposed, dtype=np.float64)
    rng = np.random.default_rng(0)  # fixed starts make the answer repeatable
    wanted = k
    while np.linalg.norm(apply(rng.standard_normal(matrix.shape[1]))) > COLLINEAR:  # ARPACK refuses zero
        u, sigma, vt = svds(operator, k=wanted, ncv=2 * wanted + 40, v0=rng.standard_normal(min(matrix.shape)))
        weakest = strength[-1] if len(strength) == k else COLLINEAR
        if sigma.max() <= weakest * (1 + 1e-12):
            break
        merged = np.hstack([left, u]), np.concatenate([strength, sigma]), np.hstack([right, vt.T])
        left, strength, right = _strongest(*merged, k)
        if once:
            break
        wanted = 1  # from now on: is there one that was missed?
    return left, strength, right


def _strongest(left: Array, sigma: Array, right: Array, k: int) -> Triplets:
    order = [i for i in np.argsort(-sigma, kind="stable")[:k] if sigma[i] > COLLINEAR]
    return left[:, order], sigma[order], right[:, order]
