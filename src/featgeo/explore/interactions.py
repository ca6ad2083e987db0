"""What two columns tell of a target together, beyond what they and all others tell beside each other.

Products of functions of the two columns, less their projection h' onto functions of either column by itself (on its
finer cells, exactly), span the interactions. Where there is none, the means of (h - h') r are 0, with r the residual
of the target: an error in what was subtracted from the target is orthogonal to h - h', so that it is no interaction.
The sum of their squares is compared with a weighted sum of chi-squares whose weights are the eigenvalues of the
covariance of the products, with the squares of r as they are in each cell. From smooth to rough there are several
blocks of products, whose tails are joined as those of pairs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from featgeo.evidence.shuffling import less_spread, weighted_chi_square_tail
from featgeo.explore.cells import OTHERS, Cells, places_in
from featgeo.explore.counting import Counts
from featgeo.explore.discoveries import benjamini_hochberg
from featgeo.explore.tails import joined_pvalues
from featgeo.explore.three_way import Interactions
from featgeo.features.variables import preferred_places
from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.records import Records
from featgeo.tuning import in_force


@dataclass(frozen=True, eq=False)
class Products:
    """Products of functions of two columns, less functions of either, on the pairs of their own cells.

    Attributes:
        table: Rows in each pair of own cells, by fold, (F, a, b).
        values: Products less functions of either column, (a, b, K).
        coarse: The products, on pairs of coarse cells, (c, K).
        first: What of them is a function of the first column, on its own cells, (a, K).
        second: Of the second, (b, K).
        inside: The pair of coarse cells that each pair of own cells is in, (a, b).
        level: The higher place of the two functions that each is a product of, (K,).
    """

    table: Array
    values: Array
    coarse: Array
    first: Array
    second: Array
    inside: np.ndarray
    level: np.ndarray

    @classmethod
    def of(cls, sums: Interactions, counts: Counts, i: int, j: int) -> Products:
        """Of two columns, over the rows that have both."""
        own, coarse = ([getattr(sums, name)[k] for k in (i, j)] for name in ("own", "coarse"))
        into = [places_in(sums.columns[k], merged) for k, merged in zip((i, j), own, strict=True)]
        table = _merged(counts.table(i, j), into, own)
        inside = [places_in(fine, merged)[:-1] for fine, merged in zip(own, coarse, strict=True)]
        functions = []
        for side in (0, 1):
            rows = np.bincount(inside[side], table.sum(axis=(0, 2 - side)), minlength=coarse[side].n_values)
            functions.append(coarse[side].functions(rows)[:-1])
        width = sums.width
        f, g = (np.vstack([h, np.zeros((width - len(h), h.shape[1]))]) for h in functions)
        level = np.maximum.outer(np.arange(f.shape[1]), np.arange(g.shape[1])).ravel()
        products = (f[:, None, :, None] * g[None, :, None, :]).reshape(width * width, -1)
        places = inside[0][:, None] * width + inside[1]
        values = products[places]
        first, second = _additive_part(table.sum(axis=0), values)
        return cls(table, values - first[:, None] - second, products, first, second, places, level)

    @cached_property
    def n_rows(self) -> Array:
        """Rows of each fold, (F,)."""
        return self.table.sum(axis=(1, 2))

    @cached_property
    def grams(self) -> Array:
        """Means of products of these functions with each other, over the rows of each fold, (F, K, K)."""
        flat = self.values.reshape(-1, self.values.shape[2])
        return np.stack([(flat * n.reshape(-1, 1)).T @ flat / max(n.sum(), 1.0) for n in self.table])

    @cached_property
    def by_cell(self) -> Array:
        """Sums of products of these functions with each other over the rows in each pair of coarse cells, (c, K, K)."""
        n = self.total.ravel()
        there = np.flatnonzero(n)
        order = there[np.argsort(self.inside.ravel()[there], kind="stable")]
        cells, starts = np.unique(self.inside.ravel()[order], return_index=True)
        flat = self.values.reshape(len(n), -1)[order] * np.sqrt(n[order])[:, None]
        result = np.zeros((len(self.coarse), flat.shape[1], flat.shape[1]))
        for cell, part in zip(cells, np.split(flat, starts[1:]), strict=True):
            result[cell] = part.T @ part
        return result

    @cached_property
    def total(self) -> Array:
        """Rows in each pair of own cells, (a, b)."""
        return self.table.sum(axis=0)

    @cached_property
    def gram(self) -> Array:
        """Means of products of these functions with each other, (K, K)."""
        return np.tensordot(self.n_rows, self.grams, axes=1) / max(self.n_rows.sum(), 1.0)

    @cached_property
    def kurtosis(self) -> Array:
        """Fourth moments over squared second ones, (K,); infinite where next to nothing is left of a function."""
        fourth = np.square(np.square(self.values)).reshape(self.total.size, -1).T @ self.total.ravel()
        variance = np.diag(self.gram)
        there = variance > in_force.get().determined
        return np.divide(
            fourth / max(self.total.sum(), 1.0), variance**2, out=np.full(len(variance), np.inf), where=there
        )

    def by_coarse(self, values: Array) -> Array:
        """Sums over the rows in each pair of coarse cells, of what pairs of own cells have, (a, b) to (c,)."""
        sums = np.bincount(self.inside.ravel(), (values * self.total).ravel(), minlength=len(self.coarse))
        return sums.astype(np.float64)

    def moments(self, sums: Interactions, place: int, scale: int) -> Array:
        """Sums over the rows of each fold of products with the residuals of the target, (F, K, m)."""
        m = sums.additive.n_functions
        total = self.coarse.T @ sums.together[place, :, :, scale, :m]
        for side, part in enumerate((self.first, self.second)):
            total -= part.T @ sums.apart[side, place, :, : len(part), scale]
        return total


def _merged(table: np.ndarray, into: Sequence[np.ndarray], cells: Sequence[Cells]) -> Array:
    """A table of counts, (F, a, b), in merged cells, those of missing values left out."""
    left, right = (np.eye(one.size)[places][:-1, :-1] for places, one in zip(into, cells, strict=True))
    return np.asarray(left.T @ table[:, :-1, :-1] @ right)


def _additive_part(table: Array, values: Array) -> tuple[Array, Array]:
    """The sum of a function of the rows and one of the columns that is nearest, for each of K tables (a, b, K).

    Returns:
        Shapes (a, K) and (b, K).
    """
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    a, b = (np.sqrt(np.maximum(margin, 0.0)) for margin in (rows, columns))
    inverse_a, inverse_b = (np.divide(1, root, out=np.zeros_like(root), where=root > 0) for root in (a, b))
    core = inverse_a[:, None] * table * inverse_b
    left, sigma, right = np.linalg.svd(core, full_matrices=False)
    of_rows = inverse_a[:, None] * np.einsum("ab,abk->ak", table, values)
    of_columns = inverse_b[:, None] * np.einsum("ab,abk->bk", table, values)
    # Columns beyond those of rows, in the coordinates of the core; what is a function of either is left to the rows.
    beyond = right @ of_columns - sigma[:, None] * (left.T @ of_rows)
    weight = 1 - sigma**2
    along = np.divide(beyond, weight[:, None], out=np.zeros_like(beyond), where=weight[:, None] > 1e-9)
    second = of_columns - right.T @ (right @ of_columns) + right.T @ along
    first = of_rows - core @ second
    return inverse_a[:, None] * first, inverse_b[:, None] * second


@dataclass(frozen=True, eq=False)
class Finding:
    """What a pair tells together.

    Attributes:
        rows: Rows that have both.
        energy: Sum of squared correlations of interactions with functions of the target, on held-out rows.
        fitted: The same on the rows that have chosen them.
        pvalue: That there is none.
        effects: What both together add to the target's functions in each pair of coarse cells, (c, c, m).
        cell_rows: Rows in each pair of coarse cells, (c, c).
    """

    rows: int
    energy: float
    fitted: float
    pvalue: float
    effects: Array
    cell_rows: Array


def finding_of(sums: Interactions, counts: Counts, place: int) -> Finding:
    """What the pair at a place of the short list tells together."""
    products = Products.of(sums, counts, *map(int, sums.pairs[place]))
    units = [unit_of(sums, counts, scale) for scale in range(sums.additive.n_scales)]
    square, n = (sums.width, sums.width), int(products.n_rows.sum())
    rows = products.by_coarse(np.ones_like(products.total))
    if not n or not len(products.level):
        return Finding(n, 0.0, 0.0, 1.0, np.zeros((*square, len(units[0]))), rows.reshape(square))
    noises = [_Noise.of(sums, rows, place, scale, unit) for scale, unit in enumerate(units)]
    blocks = _blocks(products, max(noise.kurtosis for noise in noises))
    # What is left of the target has the error of sums that were learned from some rows, and products of functions that
    # sums tell of have it too; learned from all rows, both errors cancel.
    spread = 1 + float(sums.shared[place]) * max(n / sums.additive.n_rows - 1, 0.0)
    tails = []
    for scale, (unit, noise) in enumerate(zip(units, noises, strict=True)):
        total = products.moments(sums, place, scale).sum(axis=0) @ unit
        tails.append([block.tail(total, noise, spread) for block in blocks])
    pvalue = max(float(joined_pvalues(*own)) for own in tails) if blocks else 1.0
    energy, fitted, coefficients = _strength(sums, products, place, units[0])
    added = np.moveaxis(products.values @ coefficients, 2, 0)
    effects = np.column_stack([products.by_coarse(one) for one in added]) / np.maximum(rows, 1.0)[:, None]
    return Finding(n, energy, fitted, pvalue, effects.reshape(*square, -1), rows.reshape(square))


def unit_of(sums: Interactions, counts: Counts, scale: int) -> Array:
    """What makes the target's functions orthonormal under all rows, (m, m)."""
    functions = sums.additive.functions[scale, :-1]
    rows = counts.single(sums.additive.target).sum(axis=0)[:-1]
    share = rows / max(rows.sum(), 1)
    centred = functions - share @ functions
    energies, vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)
    kept = energies > COLLINEAR
    return np.asarray(vectors / np.sqrt(np.where(kept, energies, np.inf)) @ vectors.T)


def _levels(products: Products) -> list[np.ndarray]:
    """Which products are in each block, from smooth to rough: twice as many functions of either column each time."""
    most = int(products.level.max()) + 1
    sizes = sorted({min(2**rung, most) for rung in range(most.bit_length() + 1)})
    return [np.flatnonzero(products.level < size) for size in sizes]


def _basis(gram: Array, some: np.ndarray, least: float) -> Array:
    """Combinations of some functions that are orthonormal, but for those that no more than that is left of, (K, k)."""
    energies, vectors = np.linalg.eigh(gram[np.ix_(some, some)])
    kept = energies > least
    result = np.zeros((len(gram), int(kept.sum())))
    result[some] = vectors[:, kept] / np.sqrt(energies[kept])
    return result


@dataclass(frozen=True, eq=False)
class _Noise:
    """What is left of the target, on one scale, in pairs of coarse cells.

    Attributes:
        second: Mean of r r^T in each, (c, m, m); 0 where there are no rows.
        fourth: Mean of |r|^4 in each, (c,).
        kurtosis: Mean of |r|^4 over the squared mean of |r|^2, of all rows.
    """

    second: Array
    fourth: Array
    kurtosis: float

    @classmethod
    def of(cls, sums: Interactions, rows: Array, place: int, scale: int, unit: Array) -> _Noise:
        """Of the pair at a place of the short list, with its rows in each pair of coarse cells, (c,)."""
        m = len(unit)
        own = sums.together[place, :, :, scale].sum(axis=0) / np.maximum(rows, 1.0)[:, None]
        second, upper = np.zeros((len(own), m, m)), np.triu_indices(m)
        second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = own[:, m:-1]
        second = unit @ second @ unit
        fourth = own[:, -1] * (np.square(unit).sum() / m) ** 2
        share = rows / max(rows.sum(), 1.0)
        variance = share @ np.trace(second, axis1=1, axis2=2)
        return cls(second, fourth, float(share @ fourth / max(variance**2, COLLINEAR)))


@dataclass(frozen=True, eq=False)
class _Block:
    """Some products, made orthonormal.

    Attributes:
        basis: Coefficients of orthonormal functions, (K, k).
        squares: Means of products of these with each other, times the share of the rows, in each pair of coarse cells,
            (c, k, k).
        fourth: Sums of the fourth powers of their lengths over the rows there, (c,).
        n_rows: Rows.
    """

    basis: Array
    squares: Array
    fourth: Array
    n_rows: float

    def tail(self, total: Array, noise: _Noise, spread: float) -> float:
        """The tail probability of the energy of these functions.

        Args:
            total: Sums of products with residuals, (K, m).
            noise: Of the residuals.
            spread: By how much their variance is larger than it seems.
        """
        n, size = self.n_rows, self.basis.shape[1] * total.shape[1]
        energy = float(np.square(self.basis.T @ total).sum()) / n
        covariance = np.tensordot(self.squares, noise.second, axes=(0, 0)).transpose(0, 2, 1, 3).reshape(size, size)
        spectrum = np.linalg.eigvalsh(covariance).clip(min=0)
        same_row = float(self.fourth @ noise.fourth) / max(n * n * float(np.square(spectrum).sum()), 1e-300)
        return weighted_chi_square_tail(energy, spread * less_spread(spectrum, same_row, int(n)))


def _blocks(products: Products, kurtosis: float) -> list[_Block]:
    """Blocks of products, from smooth to rough, that rest on enough rows for their means to be normal.

    Args:
        products: Of two columns.
        kurtosis: Of the residuals that they are multiplied with.
    """
    n = float(products.n_rows.sum())
    ample = in_force.get().ample_count * kurtosis * products.kurtosis <= n
    result = []
    for level in _levels(products):
        some = level[ample[level]]
        basis = _basis(products.gram, some, in_force.get().determined)
        if basis.shape[1]:
            lengths = np.square(products.values[..., some] @ basis[some]).sum(axis=2)
            squares = basis[some].T @ products.by_cell[:, some[:, None], some] @ basis[some] / n
            result.append(_Block(basis, squares, products.by_coarse(np.square(lengths)), n))
    return result


def _strength(sums: Interactions, products: Products, place: int, unit: Array) -> tuple[float, float, Array]:
    """The energy on held-out rows, that on all rows, and coefficients of the products, (K, m).

    Held-out rows choose how rough functions may be, where the columns are not finite anyway.
    """
    pair = [sums.columns[k] for k in sums.pairs[place]]
    kept = [sums.coarse[k] for k in sums.pairs[place]]
    finite = all(a.is_finite and a.n_values == b.n_values for a, b in zip(pair, kept, strict=True))
    by_fold, rows = products.moments(sums, place, 0) @ unit, products.n_rows
    total, n = by_fold.sum(axis=0), rows.sum()
    found, scores = [], []
    for level in _levels(products)[-1 if finite else 0 :]:
        basis = _basis(products.gram, level, COLLINEAR if finite else in_force.get().determined)
        learned = basis.T @ (total - by_fold) / np.maximum(n - rows, 1.0)[:, None, None]
        told = 2 * np.sum(learned * (basis.T @ by_fold), axis=(1, 2)) / np.maximum(rows, 1.0)
        scores.append(told - np.sum(learned * (basis.T @ products.grams @ basis @ learned), axis=(1, 2)))
        found.append(basis @ (basis.T @ total) / n)
    best = int(preferred_places(np.array(scores), np.array([np.count_nonzero(one) for one in found]) + 1.0))
    fitted = float(np.sum(found[best] * total) / n)
    return float(scores[best] @ rows / n), fitted, found[best]


def no_interactions(why: str) -> Records:
    """A table without rows that says why."""
    empty = {name: np.empty(0) for name in ("a", "b", "energy", "fitted_energy", "pvalue", "qvalue", "rows", "where")}
    return Records(f"interactions of two columns ({why})", empty)


def interaction_records(sums: Interactions, counts: Counts, rate: float) -> Records:
    """Each pair of the short list: discoveries first, the strongest of them first."""
    target = sums.columns[sums.additive.target].name
    if not len(sums.pairs):
        return no_interactions(f"about {target!r}: there are no two other columns, or it hardly varies")
    found = [finding_of(sums, counts, place) for place in range(len(sums.pairs))]
    pvalue = np.array([one.pvalue for one in found])
    qvalue = benjamini_hochberg(np.r_[pvalue, np.ones(sums.n_screened - len(found))])[: len(found)]
    energy = np.array([one.energy for one in found])
    unit = unit_of(sums, counts, 0)
    values = {
        "a": np.array([sums.columns[i].name for i in sums.pairs[:, 0]], dtype=object),
        "b": np.array([sums.columns[j].name for j in sums.pairs[:, 1]], dtype=object),
        "energy": energy,
        "fitted_energy": np.array([one.fitted for one in found]),
        "pvalue": pvalue,
        "qvalue": qvalue,
        "rows": np.array([one.rows for one in found]),
        "where": np.array([_where(sums, place, one, unit) for place, one in enumerate(found)], dtype=object),
    }
    order = np.lexsort((pvalue, -energy, qvalue > rate))
    title = f"interactions of two columns about {target!r}, of {sums.n_screened:,} pairs"
    return Records(title, {name: column[order] for name, column in values.items()})


def interaction_cells(sums: Interactions, counts: Counts, place: int) -> Records:
    """Where a pair of the short list tells what: its pairs of cells, those that tell most first."""
    found, unit = finding_of(sums, counts, place), unit_of(sums, counts, 0)
    i, j = sums.pairs[place]
    first, second = (sums.coarse[k].names() for k in (i, j))
    rows, columns = (part.ravel() for part in np.indices(found.cell_rows.shape))
    weight = (np.square(found.effects).sum(axis=2) * found.cell_rows).ravel()
    order = np.argsort(-weight, kind="stable")
    order = order[found.cell_rows.ravel()[order] > 0]
    values = {
        sums.columns[i].name: np.array([first[place] for place in rows[order]], dtype=object),
        sums.columns[j].name: np.array([second[place] for place in columns[order]], dtype=object),
        "rows": found.cell_rows.ravel()[order].astype(np.int64),
        "share": weight[order] / max(weight.sum(), COLLINEAR),
    }
    effects = _effects(sums, found.effects.reshape(len(weight), -1)[order], unit)
    names = [sums.columns[k].name for k in (i, j, sums.additive.target)]
    return Records("cells of {!r} and {!r}, about {!r}".format(*names), values | effects)


def _effects(sums: Interactions, effects: Array, unit: Array) -> dict[str, Array]:
    """What is added in some cells, (n, m), by name: to the share of each class, or to a number in deviations."""
    additive = sums.additive
    column = sums.columns[additive.target]
    if not len(additive.classes):
        return {f"{column.name} (standard deviations)": effects[:, 0]}
    names = column.names()
    result = {}
    shares = additive.class_shares
    for c, functions in enumerate(additive.by_class):
        inside = np.flatnonzero(additive.classes == c)
        several = len(inside) > 1 and inside[1] < len(column.labels)
        result[f"{column.name} {OTHERS if several else names[inside[0]]} (share)"] = shares[c] * (
            effects @ (unit @ functions)
        )
    return result


def _where(sums: Interactions, place: int, found: Finding, unit: Array) -> str:
    """The pair of cells that tells most, and what."""
    weight = np.square(found.effects).sum(axis=2) * found.cell_rows
    if not weight.any():
        return ""
    at = np.unravel_index(int(weight.argmax()), weight.shape)
    (i, j), effects = sums.pairs[place], _effects(sums, found.effects[at][None], unit)
    told = [(name, float(values[0])) for name, values in reversed(effects.items())]  # of equal ones the last: "yes"
    name, value = max(told, key=lambda item: round(abs(item[1]), 9))
    first, second = (sums.columns[k].at(sums.coarse[k].names()[cell]) for k, cell in zip((i, j), at, strict=True))
    return f"{first} with {second}: {name} {'higher' if value > 0 else 'lower'} by {abs(value):.2g}"
