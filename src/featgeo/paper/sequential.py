"""Sequential dependence (it accompanies the paper): the dependence of a binary chain on its past, by Markov order.

Each symbol equals the one `order` steps back with probability p = 3/4. The dependence then lives at that order alone,
with one mode of strength 2p - 1 = 1/2 and energy 1/4; the components of all other orders are zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from featgeo.geometry import FiniteJoint
from featgeo.geometry.validation import Array
from featgeo.models import SequentialDecomposition

SAME = 0.75
LENGTH = 12_000
ORDERS = 3


@dataclass(frozen=True, eq=False)
class SequentialResult:
    """Energies by Markov order.

    Attributes:
        learned: Energy of each order, (3,).
        exact: The same from the counts of all windows of the sequence, by the exact decomposition.
        theory: 1/4 at the order of the chain, else 0.
    """

    learned: Array
    exact: Array
    theory: Array


def chain(order: int, length: int, seed: int) -> np.ndarray:
    """A binary sequence whose symbols repeat those `order` steps back with probability 3/4."""
    rng = np.random.default_rng(seed)
    changes = rng.random(length) >= SAME
    changes[:order] = rng.random(order) < 0.5
    # Every order-th symbol is a chain of its own: the parity of its changes so far.
    result = np.empty(length, dtype=np.int64)
    for start in range(order):
        result[start::order] = np.cumsum(changes[start::order]) % 2
    return result


def exact_energies(sequence: np.ndarray, orders: int = ORDERS) -> Array:
    """Energy of each order in the empirical distribution of windows."""
    windows = np.lib.stride_tricks.sliding_window_view(sequence, orders + 1)
    counts = np.zeros((2,) * (orders + 1))
    np.add.at(counts, tuple(windows.T), 1)
    names = [f"{back} back" for back in range(orders, 0, -1)]
    joint = FiniteJoint(counts, names=[*names, "next"])
    captured = [joint.mean_square_contingency(names[-order:], "next") for order in range(1, orders + 1)]
    return np.diff(captured, prepend=0.0)


def run(order: int, length: int = LENGTH, seed: int = 0) -> SequentialResult:
    """Decompose a chain of the given order by orders 1, 2 and 3."""
    sequence = chain(order, length, seed)
    model = SequentialDecomposition(ORDERS, random_state=seed).fit(sequence)
    theory = np.zeros(ORDERS)
    theory[order - 1] = (2 * SAME - 1) ** 2
    return SequentialResult(model.energies_, exact_energies(sequence), theory)
