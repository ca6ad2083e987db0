"""What people know of two columns: Cramér's V of labels, the correlation ratio of a label and a number."""

from __future__ import annotations

import numpy as np

from featgeo.geometry.validation import Array


def cramers_v(table: Array) -> float:
    """Of a table of counts, (a, b)."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n, least = table.sum(), min(table.shape) - 1
    if not n or least < 1:
        return float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    return float(np.sqrt(np.sum((table - expected) ** 2 / expected) / n / least))


def correlation_ratio(table: Array) -> float:
    """The share of the variance of ranks between labels, under a root; labels are the rows of the table, (a, b)."""
    n, of_label = table.sum(), table.sum(axis=1)
    of_rank = table.sum(axis=0)
    if not n:
        return float("nan")
    ranks = (np.cumsum(of_rank) - of_rank / 2) / n
    total = np.sum(of_rank * (ranks - 0.5) ** 2)
    means = table @ ranks / np.maximum(of_label, 1)
    return float(np.sqrt(np.sum(of_label * (means - 0.5) ** 2) / total)) if total > 0 else float("nan")
