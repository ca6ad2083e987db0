"""Random rearrangements of the rows of one variable: exact null distributions, however few the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, permutations

import numpy as np

from featgeo.evidence.result import Evidence
from featgeo.geometry.arguments import check_whole
from featgeo.geometry.validation import Array

_BATCH_ENTRIES = 2**17  # rows of all orders of a batch; a small batch stays in the cache
MOST_PERMUTATIONS = 10**7  # of a thousand rows, more take longer than anyone waits
_TIE = 1e-9  # statistics that differ by less, relatively, are equal: sums in another order


def check_permutations(n_permutations: int) -> None:
    """Refuse what is not a number of permutations."""
    check_whole(n_permutations, "n_permutations", 1, "999 is usual.", MOST_PERMUTATIONS)


def arrangements(n_rows: int, n_permutations: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Orders of the rows, in batches (b, n): every order there is where these are few, else random ones.

    Args:
        n_rows: n.
        n_permutations: How many random orders.
        rng: Source of randomness.
    """
    if every_order_is_tried(n_rows, n_permutations):
        yield np.array(list(permutations(range(n_rows))))
        return
    batch = max(1, min(n_permutations, _BATCH_ENTRIES // n_rows))
    for start in range(0, n_permutations, batch):
        rows = np.tile(np.arange(n_rows), (min(batch, n_permutations - start), 1))
        yield rng.permuted(rows, axis=1)


def every_order_is_tried(n_rows: int, n_permutations: int) -> bool:
    """Whether so few rows have no more orders than the random ones that were asked for."""
    return n_rows <= 12 and math.factorial(n_rows) <= n_permutations + 1


def permutation_pvalue(statistic: float, draws: Array, complete: bool) -> float:
    """The share of arrangements whose statistic is as large, which is exact at any number of rows.

    Args:
        statistic: Of the rows as they are.
        draws: Of the arrangements, (B,).
        complete: Whether the arrangements are all there are, the one observed included.
    """
    reached = int(np.sum(draws >= _just_below(statistic)))
    return reached / len(draws) if complete else (1 + reached) / (1 + len(draws))


def sequential_pvalue(statistic: float, draws: Iterable[float], at_most: int, enough: int) -> float:
    """The same from draws one after the other, as few as needed: exact as well.

    Args:
        statistic: Of the rows as they are.
        draws: Of random arrangements.
        at_most: How many of them to look at.
        enough: Stop where so many have reached the statistic; their share is the p-value then.
    """
    reached = 0
    for count, draw in enumerate(islice(draws, at_most), start=1):
        reached += draw >= _just_below(statistic)
        if reached == enough:
            return reached / count
    return (1 + reached) / (1 + at_most)


def _just_below(statistic: float) -> float:
    return statistic - _TIE * max(abs(statistic), 1.0)


def permutation_evidence(
    of_orders: Callable[[np.ndarray], Array], n_rows: int, n_permutations: int, rng: np.random.Generator, name: str
) -> Evidence:
    """Compare a statistic with itself over arrangements of the rows of one variable.

    Args:
        of_orders: The statistic for each order of the rows, (b, n) to (b,).
        n_rows: n.
        n_permutations: How many random orders; all are tried where there are no more than that.
        rng: Source of randomness.
        name: What the statistic is.
    """
    statistic = float(of_orders(np.arange(n_rows)[None])[0])
    draws = np.concatenate([of_orders(orders) for orders in arrangements(n_rows, n_permutations, rng)])
    complete = every_order_is_tried(n_rows, n_permutations)
    method = f"{name}, {'all' if complete else len(draws)} arrangements of the rows"
    return Evidence(statistic, permutation_pvalue(statistic, draws, complete), method)
