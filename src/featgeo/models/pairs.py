"""Functions of (s, y) at every pair of some rows of s and some values of y."""

from __future__ import annotations

import numpy as np

from featgeo.features.blocks import ProductSpace, SideBySide
from featgeo.features.functions import FeatureFunction, SpanFunction
from featgeo.features.parts import Parts
from featgeo.features.spaces import Space
from featgeo.features.variables import Rows, symbol_keys
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
    s_features, y_features = space.first(s_rows), space.second(y_rows)
    alone = np.hstack([np.empty((len(s), 0)), *(other(s_rows) for other in others)])
    affine = function.affine
    n_alone, k = alone.shape[1], affine.weight.shape[1]
    # The products come without that of the two constants: its weight is 0.
    weight = np.vstack([np.zeros(k), affine.weight[n_alone:]])
    weight = weight.reshape(s_features.shape[1] + 1, y_features.shape[1] + 1, k)
    with_one = [np.hstack([np.ones((len(z), 1)), z]) for z in (s_features, y_features)]
    mixed = np.einsum("nbk,mb->nmk", np.einsum("na,abk->nbk", with_one[0], weight), with_one[1], optimize=True)
    constant = affine.offset - affine.centre @ affine.weight
    return mixed + (constant + alone @ affine.weight[:n_alone])[:, None]
