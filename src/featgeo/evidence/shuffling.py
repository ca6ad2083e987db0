"""What a test says: a statistic beside its null distribution, which is a limit or orders of the rows.

Where rows of one variable, all of them or those within a stratum, may change places, random orders of them give an
exact null distribution, for any number of rows. Orders are drawn until `REACHED` of them reach the statistic: with h of
the first l, h / l is an exact p-value too (J. Besag and P. Clifford (1991), Biometrika 78:301), so that orders are
spent where the evidence is strong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np

from featgeo.card import Card, Shown
from featgeo.geometry.validation import Array, check_whole

REACHED = 50  # orders that reach the statistic, and no more are needed: p-values above 0.05 to a seventh of them
MOST_PERMUTATIONS = 10**7  # of a thousand rows, more take longer than anyone waits
BATCH_ENTRIES = 2**17  # rows of all orders of a batch; a small batch stays in the cache
_TIE = 1e-9  # statistics that differ by less, relatively, are equal: sums in another order

OfOrders = Callable[[np.ndarray], Array]
Limit = tuple[Callable[[float], Any], str]
Groups = list[np.ndarray]


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


def check_permutations(n_permutations: int) -> None:
    """Refuse what is not a number of permutations."""
    check_whole(n_permutations, "n_permutations", 1, "999 is usual.", MOST_PERMUTATIONS)


@dataclass(frozen=True, eq=False)
class Shuffling:
    """How the rows of a variable change places.

    Attributes:
        n_permutations: How many random orders, at most; all orders, where there are no more than that.
        rng: Source of randomness.
    """

    n_permutations: int
    rng: np.random.Generator

    def is_complete(self, groups: Groups) -> bool:
        """Whether rows that stay within these groups have so few orders that all are tried."""
        orders = sum(math.lgamma(len(group) + 1) for group in groups)  # the logarithm of their number
        return orders < math.log(self.n_permutations + 1.5)

    def orders(self, groups: Groups) -> Iterator[np.ndarray]:
        """Orders of the rows that keep them within their groups, (b, n) at a time."""
        place = np.argsort(np.concatenate(groups))
        if self.is_complete(groups):
            every = product(*(permutations(group) for group in groups))
            yield np.array([np.concatenate(parts) for parts in every])[:, place]
            return
        batch = max(1, min(2 * REACHED, BATCH_ENTRIES // len(place)))
        for start in range(0, self.n_permutations, batch):
            size = min(batch, self.n_permutations - start)
            parts = [self.rng.permuted(np.tile(group, (size, 1)), axis=1) for group in groups]
            yield np.hstack(parts)[:, place]

    def evidence(self, of_orders: OfOrders, groups: Groups, name: str, limit: Limit | None = None) -> Evidence:
        """Compare a statistic with its limit, or with itself over orders of the rows of one variable.

        Args:
            of_orders: The statistic for each order of the rows, (b, n) to (b,).
            groups: The rows that may change places with each other.
            name: What the statistic is called.
            limit: The tail of its null distribution, and what that is called, where it is known.
        """
        statistic = float(of_orders(np.arange(sum(map(len, groups)))[None])[0])
        if limit is not None:
            return Evidence(statistic, float(limit[0](statistic)), f"{name}{limit[1]}")
        complete = self.is_complete(groups)
        pvalue = permutation_pvalue(statistic, map(of_orders, self.orders(groups)), complete)
        kind = "arrangements of the rows" if len(groups) == 1 else "permutations within strata"
        return Evidence(statistic, pvalue, f"{name}{'all ' * complete}{kind}")


def permutation_pvalue(statistic: float, draws: Iterable[Array], complete: bool) -> float:
    """The share of orders whose statistic is as large, which is exact at any number of rows.

    Args:
        statistic: Of the rows as they are.
        draws: Of orders, some at a time; no more are looked at where `REACHED` of them have reached the statistic.
        complete: Whether the orders are all there are, the one observed included.
    """
    reached = count = 0
    for some in draws:
        hits = reached + np.cumsum(some >= statistic - _TIE * max(abs(statistic), 1.0))
        if hits[-1] >= REACHED and not complete:
            return REACHED / (count + 1 + int(np.searchsorted(hits, REACHED)))
        reached, count = int(hits[-1]), count + len(some)
    return reached / count if complete else (1 + reached) / (1 + count)
