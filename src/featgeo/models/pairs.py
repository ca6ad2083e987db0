"""Functions of (s, y) at every pair of some rows of s and some values of y."""

from __future__ import annotations

import numpy as np

from featgeo.features.centred import CentredSpace
from featgeo.features.space import Space
from featgeo.features.spaces import FeatureFunction, ProductSpace, SideBySide, SpanFunction
from featgeo.features.variables import Parts, Rows, symbol_keys
from featgeo.geometry.validation import Array

PAIRS_AT_ONCE = 100_000


def over_pairs(function: FeatureFunction, s: Rows, y: Rows) -> Array:
    """Values at each pair, (rows of s, rows of y, k); rows of s that repeat are computed once."""
    if s.variable.is_tensor:
        return _at_pairs(function, s, y)
    _, first, where = np.unique(symbol_keys(s.table), axis=0, return_index=True, return_inverse=True)
    return _at_pairs(function, s.take(first), y)[where.reshape(-1)]


def _at_pairs(function: FeatureFunction, s: Rows, y: Rows) -> Array:
    if isinstance(function, SpanFunction) and isinstance(function.space, SideBySide):
        *others, last = function.space.spaces
        if isinstance(last, ProductSpace):
            return _of_products(function, others, last, s, y)
    step = max(1, PAIRS_AT_ONCE // len(y))
    parts = []
    for start in range(0, len(s), step):
        some = s.take(slice(start, start + step))
        rows = {
            "s": some.take(np.repeat(np.arange(len(some)), len(y))),
            "y": y.take(np.tile(np.arange(len(y)), len(some))),
        }
        parts.append(function(Parts(rows)).reshape(len(some), len(y), -1))
    return np.concatenate(parts)


def _of_products(function: SpanFunction, others: list[Space], space: ProductSpace, s: Rows, y: Rows) -> Array:
    """Products factor: no pair needs features of its own."""
    s_rows, y_rows = Parts({"s": s}), Parts({"y": y})
    first, centred = space.factors
    if isinstance(centred, CentredSpace):
        y_features, mean = centred.space(y_rows), centred.mean(s_rows)
    else:
        y_features, mean = centred(y_rows), np.zeros((len(s), 1))
    alone = np.hstack([np.empty((len(s), 0)), *(other(s_rows) for other in others)])
    affine = function.affine
    n_alone, k = alone.shape[1], affine.weight.shape[1]
    n_products = (len(affine.weight) - n_alone) // y_features.shape[1]  # said, as there may be no mode
    weight = affine.weight[n_alone:].reshape(n_products, y_features.shape[1], k)
    of_s = np.einsum("na,abk->nbk", np.insert(first(s_rows), 0, 1.0, axis=1), weight)
    constant = affine.offset - affine.centre @ affine.weight
    of_s_alone = constant + alone @ affine.weight[:n_alone] - (of_s * mean[:, :, None]).sum(axis=1)
    return np.einsum("nbk,mb->nmk", of_s, y_features, optimize=True) + of_s_alone[:, None]
