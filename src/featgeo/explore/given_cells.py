"""One column given the cells of another, from the modes of the pair.

    P(b | a) = p(b) max(1 + sum_i sigma_i f_i(a) g_i(b) - shift(a), 0)

A truncated sum of modes may fall below zero, which no probability does: the nearest one takes its place, as everywhere
in this library, and how much lay below is told.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from featgeo.assembly.links import nearest_density
from featgeo.geometry.validation import Array


def density_ratio(sigma: Array, f: Array, g: Array) -> Array:
    """1 + sum_i sigma_i f_i g_i on pairs of cells, (A, B); from (m,), (A, m) and (B, m)."""
    return 1 + (f * sigma) @ g.T


def conditional(ratio: Array, margin: Array) -> Array:
    """The distribution over the cells of the second column for each cell of the first, (A, B).

    Args:
        ratio: The density over the product of its margins, (A, B).
        margin: Shares of the rows in the cells of the second column, (B,).
    """
    return nearest_density(ratio, margin) * margin


def negative_mass(ratio: Array, of_a: Array, of_b: Array) -> float:
    """What lies below zero, as a share of all mass, from shares of the rows in the cells of either column."""
    return float(of_a @ np.maximum(-ratio, 0.0) @ of_b)


def observed(table: Array, fewest: float) -> Array:
    """Shares of the rows of each cell of the first column, (A, B); NaN for cells of fewer rows than that."""
    rows = table.sum(axis=1, keepdims=True)
    return np.where(rows >= max(fewest, 1), table / np.maximum(rows, 1), np.nan)


def quantiles(probability: Array, spans: Array, levels: Sequence[float]) -> Array:
    """Quantiles of distributions over cells, (A, levels); rows are spread evenly between the ends of their cell.

    Args:
        probability: Of each cell, (A, B); a row that begins with NaN has no quantiles.
        spans: The least and the greatest value of each cell, (B, 2).
        levels: Between 0 and 1.
    """
    ends = np.cumsum(probability, axis=1)
    result = np.full((len(probability), len(levels)), np.nan)
    known = np.flatnonzero(np.isfinite(ends[:, -1]))
    for place, level in enumerate(levels):
        wanted = level * ends[known, -1]  # the last is 1 up to rounding
        cell = (ends[known] < wanted[:, None]).sum(axis=1)
        own = probability[known, cell]
        inside = np.divide(wanted - (ends[known, cell] - own), own, out=np.zeros(len(known)), where=own > 0)
        low, high = spans[cell].T
        result[known, place] = low + inside.clip(0, 1) * (high - low)
    return result
