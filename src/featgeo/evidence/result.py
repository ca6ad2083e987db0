"""What a test says."""

from __future__ import annotations

from dataclasses import dataclass

from featgeo.card import Card, Shown


@dataclass(frozen=True, repr=False)
class Evidence(Shown):
    """The outcome of a test.

    Attributes:
        statistic: What the test measured; larger speaks against the hypothesis.
        pvalue: How often chance alone gives a statistic as large where the hypothesis holds.
        method: How it was measured and what it was compared with.
    """

    statistic: float
    pvalue: float
    method: str

    def card(self) -> Card:
        """All in one line."""
        return Card([f"p = {self.pvalue:.3g} (statistic {self.statistic:.4g}; {self.method})"])
