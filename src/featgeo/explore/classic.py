"""What people know of two columns: Cramér's V of labels, the correlation ratio of a label and a number."""

from __future__ import annotations

import numpy as np

from featgeo.explore.batches import margins_of
from featgeo.geometry.validation import Array


def classic_of(tables: Array, are_labels: np.ndarray) -> Array:
    """Cramér's V of two labels, the correlation ratio of a label and a number, (P,); NaN where one does not vary.

    Args:
        tables: Rows in each pair of cells, (P, a, b); cells that no row is in do not count.
        are_labels: Which of the two columns count as labels, one of them at least, (P, 2).
    """
    result = np.empty(len(tables))
    first, second = are_labels.T
    result[first & second] = _cramers_v(tables[first & second])
    result[~second] = _correlation_ratio(tables[~second])
    result[~first] = _correlation_ratio(tables[~first].swapaxes(1, 2))
    return result


def _cramers_v(tables: Array) -> Array:
    """The root of chi-square over its largest value, (P,)."""
    rows, columns = margins_of(tables)
    n = rows.sum(axis=1)
    expected = rows[:, :, None] * columns[:, None, :] / np.maximum(n, 1.0)[:, None, None]
    apart = np.divide(np.square(tables - expected), expected, out=np.zeros_like(expected), where=expected > 0)
    most = n * (np.minimum(np.count_nonzero(rows, axis=1), np.count_nonzero(columns, axis=1)) - 1)
    return np.sqrt(np.divide(apart.sum(axis=(1, 2)), most, out=np.full_like(n, np.nan), where=most > 0))


def _correlation_ratio(tables: Array) -> Array:
    """The share of the variance of ranks between labels, under a root, (P,); labels are the rows of the tables."""
    of_label, of_rank = margins_of(tables)
    n = np.maximum(of_rank.sum(axis=1), 1.0)[:, None]
    ranks = (np.cumsum(of_rank, axis=1) - of_rank / 2) / n
    total = np.sum(of_rank * (ranks - 0.5) ** 2, axis=1)
    means = (tables @ ranks[..., None])[..., 0] / np.maximum(of_label, 1.0)
    between = np.sum(of_label * (means - 0.5) ** 2, axis=1)
    return np.sqrt(np.divide(between, total, out=np.full_like(total, np.nan), where=total > 0))
