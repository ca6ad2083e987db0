"""Sequences of few symbols by their windows: how often which short pattern occurs, wherever it does.

With w symbols a window, there is one feature for each of the m^w patterns of an alphabet of m symbols: the share of the
positions at which it stands. Up to the ends of the sequence, shares of shorter patterns are sums of these. Flips of a
binary sequence, words of a genome and transitions of a Markov chain are linear in them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featgeo.features.space import Space, at_code
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force

MOST_WINDOWS = 256  # features: bounds memory
MOST_SYMBOLS = math.isqrt(MOST_WINDOWS)  # then a window still holds two


@saved
@dataclass(eq=False, repr=False)
class WindowSpace(Space):
    """Shares of the windows of a sequence with one symbol a column.

    Attributes:
        symbols: The alphabet: all symbols of the fit, in order.
        length: Symbols a window, w.
        shares: Average share of each window in the fit, (m^w,); it stands in where a row has no window that is known.
    """

    symbols: tuple[Any, ...]
    length: int
    shares: Array

    @classmethod
    def fit(cls, rows: Rows) -> WindowSpace:
        """Learn the alphabet, and how long windows can be without too many kinds of them."""
        symbols = _alphabet(rows)
        longest = min(in_force.get().longest_window, len(rows.variable.columns))
        length = max(w for w in range(1, longest + 1) if w == 1 or len(symbols) ** w <= MOST_WINDOWS)
        unset = np.full(len(symbols) ** length, np.nan)
        shares = cls(symbols, length, unset)(rows)
        return cls(symbols, length, shares[np.isfinite(shares).all(axis=1)].mean(axis=0))

    def forward(self, rows: Rows) -> Tensor:
        """The share of each window, (n, m^w); windows with a symbol that is missing or unknown do not count."""
        places, shares = self._places(rows), self.tensor("shares")
        n_windows, are_known = places.shape[1] - self.length + 1, places >= 0
        pattern = torch.zeros_like(places[:, :n_windows])
        known = torch.ones_like(are_known[:, :n_windows])
        for i in range(self.length):
            pattern = pattern * len(self.symbols) + places[:, i : i + n_windows]
            known = known & are_known[:, i : i + n_windows]
        pattern = torch.where(known, pattern, len(self.shares))  # those that do not count, beside the others
        counts = shares.new_zeros((places.shape[0], len(self.shares) + 1))
        counts = counts.scatter_add_(1, pattern.long(), shares.new_ones(()).expand(pattern.shape))[:, :-1]
        total = counts.sum(dim=1, keepdim=True)
        return torch.where(total > 0, counts / total.clamp(min=1), shares)

    def _places(self, rows: Rows) -> Tensor:
        """The position of each symbol in the alphabet, (n, columns); -1 where it is missing or unknown."""
        if not rows.variable.labels:
            found = torch.full_like(rows.numbers, -1, dtype=torch.int32)
            for i, symbol in enumerate(self.symbols):
                found += (rows.numbers == symbol).to(found.dtype) * (i + 1)
            return found
        place = {symbol: i for i, symbol in enumerate(self.symbols)}
        # A missing label has a code of its own, after the categories.
        places = [[*(place.get(label, -1) for label in column.categories), -1] for column in rows.variable.labels]
        tables = torch.tensor(places, dtype=torch.int32, device=rows.device)
        return torch.stack([at_code(table, codes) for table, codes in zip(tables, rows.codes.T, strict=True)], dim=1)


def _alphabet(rows: Rows) -> tuple[Any, ...]:
    """All symbols of all columns, in order."""
    variable = rows.variable
    if variable.labels and variable.numbers:
        raise ValueError(
            f"Windows read sequences of symbols of one kind, and {variable.name} has {len(variable.labels)} columns of "
            f"labels beside {len(variable.numbers)} of numbers. Convert all to text, or use another space."
        )
    if variable.labels:
        found = {label for column in variable.labels for label in column.categories}
    else:
        found = set(np.unique(rows.table.numbers[np.isfinite(rows.table.numbers)]).tolist())
    symbols = tuple(sorted(found, key=lambda label: (type(label).__name__, label)))
    if len(symbols) > MOST_SYMBOLS:
        raise ValueError(
            f"Windows are made for alphabets of at most {MOST_SYMBOLS} symbols, and {variable.name} holds "
            f"{len(symbols) if variable.labels else 'more'}. Group the symbols, or use the space 'sequence'."
        )
    return symbols
