"""How good predictions are, summed up batch by batch: accuracy of labels, R^2 of means, and how quantiles cover."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from featgeo.geometry.validation import Array


@dataclass(eq=False)
class LabelScore:
    """The share of labels that were predicted.

    Attributes:
        rows: How many were judged.
        right: How many of them were predicted.
    """

    name = "accuracy"
    rows: int = 0
    right: int = 0

    def add(self, happened: np.ndarray, predicted: np.ndarray) -> None:
        """Judge rows whose label is known, (n,)."""
        self.rows += len(happened)
        self.right += sum(a == b for a, b in zip(happened.tolist(), predicted.tolist(), strict=True))

    @property
    def value(self) -> float | None:
        """The accuracy; None where there was nothing to judge."""
        return self.right / self.rows if self.rows else None

    def as_data(self) -> dict[str, Any]:
        """For a JSON document."""
        return {"name": self.name, "value": self.value, "rows": self.rows}


@dataclass(eq=False)
class NumberScore:
    """R^2 of means, and the share of numbers below each quantile.

    Sums of squares are merged about the mean so far (Chan, Golub and LeVeque), so that no digits are lost where
    numbers are large and vary little.

    Attributes:
        levels: Of the quantiles.
        rows: How many were judged.
        mean: Of the numbers.
        squares: Sum of their squared distances from it.
        lost: Sum of their squared distances from what was predicted.
        below: How many were at most each quantile.
    """

    name = "R2"
    levels: tuple[float, ...] = ()
    rows: int = 0
    mean: float = 0.0
    squares: float = 0.0
    lost: float = 0.0
    below: Array = field(init=False)

    def __post_init__(self) -> None:
        self.below = np.zeros(len(self.levels))

    def add(self, happened: Array, predicted: Array, quantiles: Array) -> None:
        """Judge rows whose number is known, (n,), by means, (n,), and quantiles, (n, levels)."""
        if not len(happened):
            return
        n, mean = len(happened), float(happened.mean())
        away, total = mean - self.mean, self.rows + n
        self.squares += float(np.sum((happened - mean) ** 2)) + away**2 * self.rows * n / total
        self.mean += away * n / total
        self.lost += float(np.sum((happened - predicted) ** 2))
        self.below += np.sum(happened[:, None] <= quantiles, axis=0)
        self.rows = total

    @property
    def value(self) -> float | None:
        """R^2; None where the numbers do not vary."""
        return 1 - self.lost / self.squares if self.squares > 0 else None

    def as_data(self) -> dict[str, Any]:
        """For a JSON document."""
        shares = self.below / self.rows if self.rows else np.full(len(self.levels), np.nan)
        covered = [{"level": q, "share_below": s} for q, s in zip(self.levels, shares.tolist(), strict=True)]
        return {"name": self.name, "value": self.value, "rows": self.rows, "quantiles": covered}
