"""Which pairs of columns may tell of a target together what they do not tell beside each other: all pairs, on a sample.

A few functions of each column are multiplied with those of each other, and with what sums of functions of all columns
leave of the target. A residual is orthogonal to functions of either column, so products need no centring; the means of
all products are two matrix products, one for the means and one for their variances, however these change with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from featgeo.explore.additive import Additive, Sums
from featgeo.explore.cells import GIVEN, Cells
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

AT_ONCE = 2**23  # entries of products in memory
MOST_PRODUCTS = 2**35  # of numbers that are multiplied, about: time. Wide tables have fewer functions and rows
SHARED_ROWS = 2**13  # from which shares of variance are told: they are off by about a hundredth
LEAST_ROWS = 4096  # that are looked at however many columns there are


@dataclass(frozen=True, eq=False)
class Screen:
    """The pairs that stand out.

    Attributes:
        pairs: Their places, the strongest first, (s, 2).
        shared: What sums of functions of all columns tell of products of functions of each pair, beyond those of the
            two themselves, as a share of the products' variance, (s,).
        n_pairs: How many pairs were looked at.
    """

    pairs: np.ndarray
    shared: Array
    n_pairs: int


def screened(columns: Sequence[Cells], cells: Sequence[np.ndarray], additive: Additive, sums: Sums) -> Screen:
    """Look at all pairs of columns.

    Args:
        columns: The cells of each column.
        cells: The cell of each row of the sample, of each column, (n,) each; all rows have the target.
        additive: What sums tell of the target.
        sums: The functions that were summed.
    """
    places = [k for k, basis in enumerate(sums.bases) if basis.shape[1] and columns[k].name != GIVEN]
    left = additive.residuals(cells)[:, -1]
    width, rows = _bounds(len(places), left)
    functions = [basis[:, :width] for basis in sums.bases]
    f = np.hstack([functions[k].astype(np.float32)[cells[k][rows]] for k in places])
    sizes = np.array([functions[k].shape[1] for k in places])
    scores = _scores(f, sizes, left[rows].astype(np.float32))
    _, date = np.unique([columns[k].parent or columns[k].name for k in places], return_inverse=True)
    pairs = np.argwhere(np.triu(date[:, None] != date))  # a date and its parts are one
    order = np.argsort(-scores[tuple(pairs.T)], kind="stable")[: in_force.get().interaction_pairs]
    chosen = np.array(places, dtype=np.int64)[pairs[order]]
    some = slice(None, None, -(-len(left) // SHARED_ROWS))
    shared = np.array([_shared(sums, pair, [functions[k][cells[k][some]] for k in pair], some) for pair in chosen])
    return Screen(chosen, shared, len(pairs))


def _bounds(n_columns: int, left: Array) -> tuple[int, slice]:
    """How many functions a column has, and which rows are looked at, so that the work ends."""
    for width in range(in_force.get().interaction_functions, 0, -1):
        a_row = (n_columns * width) ** 2 * left.shape[1]
        if a_row * len(left) <= MOST_PRODUCTS or width == 1:
            break
    most = max(LEAST_ROWS, MOST_PRODUCTS // max(a_row, 1))
    return width, slice(None, None, -(-len(left) // most))


def _scores(f: Array, sizes: np.ndarray, left: Array) -> Array:
    """How far each pair is beyond chance, (p, p): about standard normal where there is no interaction.

    Args:
        f: Functions of all columns side by side, (n, K).
        sizes: How many each column has, (p,).
        left: What is left of the target, (n, m).
    """
    ends = np.cumsum(sizes)
    first = ends - sizes
    squares = np.square(f)
    energy, freedom = np.zeros((len(sizes), len(sizes))), np.zeros((len(sizes), len(sizes)))
    at_once = max(1, AT_ONCE // (len(f) * int(sizes.max(initial=1))))
    for start in range(0, len(sizes), at_once):
        some = slice(start, start + at_once)
        own = slice(first[some][0], ends[some][-1])
        for residual in left.T:
            weighted = f[:, own] * residual[:, None]
            total, spread = (weighted.T @ f).astype(np.float64), (np.square(weighted).T @ squares).astype(np.float64)
            ratio = np.divide(np.square(total), spread, out=np.zeros_like(total), where=spread > 0)
            for result, values in ((energy, ratio), (freedom, (spread > 0).astype(np.float64))):
                by_row = np.add.reduceat(values, first[some] - first[start], axis=0)
                result[some] += np.add.reduceat(by_row, first, axis=1)
    freedom = np.maximum(freedom, 1.0)
    # The cube root of chi-square is nearly normal (E. Wilson and M. Hilferty (1931), PNAS 17:684).
    return (np.cbrt(energy / freedom) - (1 - 2 / (9 * freedom))) / np.sqrt(2 / (9 * freedom))


def _shared(sums: Sums, pair: np.ndarray, functions: Sequence[Array], rows: slice) -> float:
    """The largest share of a product's variance that sums tell, of what functions of its two columns do not tell.

    Args:
        sums: Functions of all columns.
        pair: Places of the two, (2,).
        functions: Of either, on some rows.
        rows: These rows.
    """
    products = (functions[0][:, :, None] * functions[1][:, None, :]).reshape(len(functions[0]), -1)
    products = products - products.mean(axis=0)
    moments = (sums.values[rows].T @ products.astype(np.float32)).astype(np.float64) / len(products)
    variance = np.square(products).mean(axis=0)
    own = np.isin(sums.column, pair)
    by_own = np.einsum("dk,dk->k", moments[own], np.linalg.solve(sums.gram[np.ix_(own, own)], moments[own]))
    by_all = np.einsum("dk,dk->k", moments, sums.solved(moments))
    chance = variance * (len(own) - own.sum()) / len(products)
    rest = variance - by_own
    share = np.divide(by_all - by_own - chance, rest, out=np.zeros(len(rest)), where=rest > 1e-3 * variance)
    return float(np.clip(share, 0, 1).max(initial=0.0))
