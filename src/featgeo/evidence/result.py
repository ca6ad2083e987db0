"""What a test answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """The outcome of a test.

    Attributes:
        statistic: The larger, the further from the null hypothesis.
        pvalue: Probability under the null hypothesis of a statistic at least as large.
        method: How the null distribution was found.
    """

    statistic: float
    pvalue: float
    method: str
