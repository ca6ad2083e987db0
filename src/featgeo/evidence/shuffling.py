"""Random orders of the rows of one variable, of all rows or within strata: exact null distributions, for any rows.

Orders are drawn until `REACHED` of them reach the statistic: with h of the first l, h / l is an exact p-value too
(J. Besag and P. Clifford (1991), Biometrika 78:301), so that orders are spent where the evidence is strong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np

from featgeo.evidence.result import Evidence
from featgeo.geometry.validation import Array, check_whole

REACHED = 50  # orders that reach the statistic, and no more are needed: p-values above 0.05 to a seventh of them
MOST_PERMUTATIONS = 10**7  # of a thousand rows, more take longer than anyone waits
_BATCH_ENTRIES = 2**17  # rows of all orders of a batch; a small batch stays in the cache
_TIE = 1e-9  # statistics that differ by less, relatively, are equal: sums in another order

OfOrders = Callable[[np.ndarray], Array]


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

    def is_complete(self, groups: list[np.ndarray]) -> bool:
        """Whether rows that stay within these groups have so few orders that all are tried."""
        orders = 1
        for group in groups:
            orders *= math.factorial(min(len(group), 20)) if orders <= self.n_permutations + 1 else 1
        return orders <= self.n_permutations + 1

    def orders(self, groups: list[np.ndarray]) -> Iterator[np.ndarray]:
        """Orders of the rows that keep them within their groups, (b, n) at a time."""
        place = np.argsort(np.concatenate(groups))
        if self.is_complete(groups):
            every = product(*(permutations(group) for group in groups))
            yield np.array([np.concatenate(parts) for parts in every])[:, place]
            return
        batch = max(1, min(2 * REACHED, _BATCH_ENTRIES // len(place)))
        for start in range(0, self.n_permutations, batch):
            size = min(batch, self.n_permutations - start)
            parts = [self.rng.permuted(np.tile(group, (size, 1)), axis=1) for group in groups]
            yield np.hstack(parts)[:, place]

    def evidence(self, of_orders: OfOrders, groups: list[np.ndarray], name: str) -> Evidence:
        """Compare a statistic with itself over orders of the rows of one variable.

        Args:
            of_orders: The statistic for each order of the rows, (b, n) to (b,).
            groups: The rows that may change places with each other.
            name: What the method is called, with a place for the word "all".
        """
        statistic, complete = as_they_are(of_orders, sum(map(len, groups))), self.is_complete(groups)
        pvalue = permutation_pvalue(statistic, map(of_orders, self.orders(groups)), complete)
        return Evidence(statistic, pvalue, name.format("all " * complete))


def as_they_are(of_orders: OfOrders, n_rows: int) -> float:
    """The statistic of the rows in their own order."""
    return float(of_orders(np.arange(n_rows)[None])[0])


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
