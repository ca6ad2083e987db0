"""Joint distributions of large alphabets, on the combinations of symbols that occur, and their top modes.

The canonical dependence matrix is the sparse matrix B = P / sqrt(p_x p_y) less what some functions of y explain: with M
an orthonormal basis of those functions, B - (B M) M^T. For plain modes M is the constant; for the conditional component
M holds the functions of the side information. Both products stay sparse (or of rank one), and an iterative solver needs
nothing but them.

A Krylov solver sees only one direction of a repeated singular value, and tables that fall into unconnected parts repeat
sigma = 1. So what was found is taken out and the search starts again, until nothing stronger is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from featgeo.geometry.alphabet import Alphabet
from featgeo.geometry.spans import COLLINEAR, Modes, sign_of_columns
from featgeo.geometry.validation import Array, check_mode_count

Triplets = tuple[Array, Array, Array]  # left vectors (m, k), singular values (k,), right vectors (n, k)


@dataclass(frozen=True, eq=False)
class SeenJoint:
    """A joint distribution on the combinations of symbols that occur, the variables of either side merged into one.

    Attributes:
        x: The alphabet of x, of m combinations.
        y: The alphabet of y, of n combinations.
        matrix: Probabilities, (m, n), no row or column empty.
    """

    x: Alphabet
    y: Alphabet
    matrix: sparse.csr_array

    @classmethod
    def from_cells(cls, cells: sparse.coo_array, x_names: tuple[str, ...], y_names: tuple[str, ...]) -> SeenJoint:
        """From a table without explicit zeros whose first axes are the variables of x, and the others those of y."""
        sides = ((x_names, slice(len(x_names))), (y_names, slice(len(x_names), None)))
        (x_number, x), (y_number, y) = (
            Alphabet.of_cells(names, cells.coords[axes], cells.data, cells.shape[axes]) for names, axes in sides
        )
        return cls(x, y, sparse.csr_array((cells.data, (x_number, y_number))))

    @cached_property
    def scaled(self) -> sparse.csr_array:
        """B = P / sqrt(p_x p_y), without products of probabilities that could underflow."""
        return (
            sparse.diags_array(1 / self.x.root_mass) @ self.matrix @ sparse.diags_array(1 / self.y.root_mass)
        ).tocsr()

    def measures(self) -> tuple[float, float]:
        """||i||^2, the squared norm of the canonical dependence matrix; and mutual information in nats."""
        cells = self.scaled.tocoo()
        rows, columns = cells.coords
        independent = self.x.root_mass[rows] * self.y.root_mass[columns]
        unseen = max(0.0, 1.0 - float(np.sum(independent**2)))  # the mass of the cells of count 0, where i = -1
        information = np.sum(cells.data * independent * np.log(cells.data / independent))
        return float(np.sum((cells.data - independent) ** 2)) + unseen, float(information)

    def top_modes(self, k: int | None, given: Sequence[str] = ()) -> Modes:
        """Up to k modes of the dependence that functions of some variables of y do not explain.

        Args:
            k: Number of modes; fewer are returned where the rank is lower.
            given: These variables of y; none leaves out the constant only.
        """
        if k is None:
            raise ValueError("A sparse table needs the number of modes to find. Pass k, or a dense table for all.")
        explained = self.y.coarsening(given)
        factors = (self.scaled @ explained).tocsr(), explained
        left, sigma, right = top_singular(self.scaled, factors, check_mode_count(k, k))
        sign = sign_of_columns(left)
        return Modes(sigma, self.x.values(left * sign), self.y.values(right * sign))


def is_search_cheaper(shape: tuple[int, int], nonzero: int, k: int) -> bool:
    """Whether k modes are found sooner by a search than among all modes of a dense matrix.

    With r the smaller side, all take about 20 m n r operations. Two searches take some 4 (2k + 40) steps of two
    products with 2 operations a non-zero cell, of which a core does a thirtieth as many a second, as they wait for
    memory; and to call one takes as long as 15,000 cells. It is time alone that this decides: both are equal to 1e-14.
    """
    return 24 * krylov_vectors(k) * (nonzero + 15_000) < shape[0] * shape[1] * min(shape)


def krylov_vectors(k: int) -> int:
    """How many a search for k values keeps; more than the usual 2k + 1 pay where the spectrum has no gap."""
    return 2 * k + 40


def top_singular(matrix: sparse.csr_array, explained: tuple[Any, Any], k: int, once: bool = False) -> Triplets:
    """The k largest singular triplets of what is left of a sparse matrix, fewer where the rank is lower.

    Args:
        matrix: Shape (m, n).
        explained: Two factors, (m, p) and (n, p), whose product is taken off.
        k: How many.
        once: Whether one search will do, which may find a value that is repeated only once, in half of the time.
    """
    image, basis = explained
    if min(matrix.shape) <= krylov_vectors(k):  # a narrow matrix: a dense decomposition is quicker and misses nothing
        residual = matrix.toarray() - sparse.csr_array(image @ basis.T).toarray()
        u, sigma, vt = np.linalg.svd(residual, full_matrices=False)
        return _strongest(u, sigma, vt.T, k)
    # Transposes are taken once: that of a small sparse matrix takes longer than a product.
    (_, transposed), (image, image_across), (basis, basis_across) = map(_both_ways, (matrix, image, basis))
    left, strength, right = np.empty((matrix.shape[0], 0)), np.empty(0), np.empty((matrix.shape[1], 0))

    def apply(v: Array) -> Array:
        return matrix @ v.ravel() - image @ (basis_across @ v.ravel()) - left @ (strength * (right.T @ v.ravel()))

    def apply_transposed(u: Array) -> Array:
        return transposed @ u.ravel() - basis @ (image_across @ u.ravel()) - right @ (strength * (left.T @ u.ravel()))

    operator = LinearOperator(matrix.shape, matvec=apply, rmatvec=apply_transposed, dtype=np.float64)
    rng = np.random.default_rng(0)  # fixed starts make the answer repeatable
    wanted = k
    while np.linalg.norm(apply(rng.standard_normal(matrix.shape[1]))) > COLLINEAR:  # ARPACK refuses zero
        u, sigma, vt = svds(operator, k=wanted, ncv=krylov_vectors(wanted), v0=rng.standard_normal(min(matrix.shape)))
        weakest = strength[-1] if len(strength) == k else COLLINEAR
        if sigma.max() <= weakest * (1 + 1e-12):
            break
        merged = np.hstack([left, u]), np.concatenate([strength, sigma]), np.hstack([right, vt.T])
        left, strength, right = _strongest(*merged, k)
        if once:
            break
        wanted = 1  # from now on: is there one that was missed?
    return left, strength, right


def _both_ways(factor: Any) -> tuple[Any, Any]:
    """A factor and its transpose; a single column has no zeros worth skipping."""
    if sparse.issparse(factor) and factor.shape[1] > 1:
        return factor, factor.T.tocsr()
    dense = factor.toarray() if sparse.issparse(factor) else factor
    return dense, dense.T


def _strongest(left: Array, sigma: Array, right: Array, k: int) -> Triplets:
    order = [i for i in np.argsort(-sigma, kind="stable")[:k] if sigma[i] > COLLINEAR]
    return left[:, order], sigma[order], right[:, order]
