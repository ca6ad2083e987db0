"""Which of many hypotheses to reject, at a rate of false discoveries."""

from __future__ import annotations

import numpy as np

from featgeo.geometry.validation import Array


def benjamini_hochberg(pvalues: Array, any_dependence: bool = False) -> Array:
    """The smallest false-discovery rate at which each hypothesis is rejected, (m,).

    Args:
        pvalues: One for each hypothesis.
        any_dependence: Whether the rate is to hold however the tests depend on each other, which costs a factor of
            1 + 1/2 + ... + 1/m (Y. Benjamini and D. Yekutieli (2001), Annals of Statistics 29:1165).
    """
    m = len(pvalues)
    order = np.argsort(pvalues)
    rates = pvalues[order] * m / np.arange(1, m + 1) * (np.sum(1 / np.arange(1, m + 1)) if any_dependence else 1.0)
    result = np.empty(m)
    result[order] = np.minimum.accumulate(rates[::-1])[::-1].clip(max=1)
    return result
