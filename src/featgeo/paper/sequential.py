"""Sequential dependence (it accompanies the paper): the dependence of a binary chain on its past, by Markov order.

Each symbol equals the one `order` steps back with probability p = 3/4. The dependence then lives at that order alone,
with one mode of strength 2p - 1 = 1/2 and energy 1/4; the components of all other orders are zero.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from featgeo.geometry import FiniteJoint
from featgeo.geometry.validation import Array
from featgeo.models import SequentialDecomposition
from featgeo.nesting import Nesting
from featgeo.paper import published as recipe
from featgeo.paper.discrete import counted
from featgeo.paper.record import Experiment, Number, Outcome, about, bars, figure, of_each
from featgeo.report.panels import Cells, Panel

SAME = 0.75
ENERGY = (2 * SAME - 1) ** 2
LENGTH = 12_000
ORDERS = 3
CHAINS = (1, 2)  # the orders of the two chains
WIDTH, LAYERS = 8, 3  # of the published transformer
MINIBATCH = 128
SHOWN = 30

Sample = dict[int, np.ndarray]  # a chain by its order
Learned = dict[int, Array]  # energies of a chain, (ORDERS,)


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


def draw(seed: int, n: int = LENGTH) -> Sample:
    """A chain of n symbols for each order."""
    return {order: chain(order, n, seed + 1_000 * order) for order in CHAINS}


def theory(order: int) -> Array:
    """Energies of a chain, (ORDERS,)."""
    return ENERGY * (np.arange(1, ORDERS + 1) == order)


def exact_energies(sequence: np.ndarray, orders: int = ORDERS) -> Array:
    """Energy of each order in the empirical distribution of windows."""
    windows = np.lib.stride_tricks.sliding_window_view(sequence, orders + 1)
    names = [f"{back} back" for back in range(orders, 0, -1)]
    joint = FiniteJoint(counted(tuple(windows.T), (2,) * (orders + 1)), names=[*names, "next"])
    captured = [joint.mean_square_contingency(names[-order:], "next") for order in range(1, orders + 1)]
    return np.diff(captured, prepend=0.0)


@of_each
def fast(order: int, sequence: np.ndarray, seed: int) -> Array:
    """Windows of few symbols are solved exactly."""
    return SequentialDecomposition(ORDERS, random_state=seed).fit(sequence).energies_


@of_each
def published(order: int, sequence: np.ndarray, seed: int) -> Array:
    """A causal transformer of the past and a table of the next symbol for each order, on windows that do not overlap.

    The published code keeps the embeddings of the past and the tables in plain lists, so the optimiser never sees them:
    they stay at their random start, here as there, and the transformer alone is trained.
    """
    windows = torch.from_numpy(sequence[: len(sequence) // (ORDERS + 1) * (ORDERS + 1)].reshape(-1, ORDERS + 1))
    past, following = windows[:, :-1].flip(1), windows[:, -1]
    with recipe.seeded(seed):
        network = _CausalTransformer()
        g = torch.cat([table[following] for table in _tables()], dim=1)
        # Inside, for the network drops some of its units at random while it learns.
        levels = Nesting([WIDTH] * ORDERS)
        recipe.maximise_nested([(network, past)], [(nn.Identity(), g)], levels, seed, minibatch=MINIBATCH)
    sides = (np.split(side, ORDERS, axis=1) for side in (recipe.values(network, past), g.numpy()))
    return np.array([np.sum(np.cov(f.T, bias=True) * np.cov(g.T, bias=True)) for f, g in zip(*sides, strict=True)])


def _tables() -> list[torch.Tensor]:
    """A table of symbols for each order, at its random start."""
    return [nn.Embedding(2, WIDTH).weight.detach() for _ in range(ORDERS)]


class _CausalTransformer(nn.Module):
    """Features of the last one, two and three symbols, (n, 3) -> (n, 3 WIDTH)."""

    def __init__(self) -> None:
        super().__init__()
        self.tables, self.mask = _tables(), nn.Transformer.generate_square_subsequent_mask(ORDERS)
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=1, dim_feedforward=WIDTH, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        """Position i reads the last i + 1 symbols only."""
        embedded = torch.stack([table[symbols] for table, symbols in zip(self.tables, past.T, strict=True)], dim=1)
        return self.encoder(embedded, mask=self.mask, is_causal=True).flatten(1)


@of_each
def optimum(order: int, sequence: np.ndarray) -> Array:
    """The energies of the windows themselves."""
    return exact_energies(sequence)


def compare(data: Sample, learned: Learned, best: Learned) -> Outcome:
    """Energies by order beside the theory, and beside those of the windows themselves."""
    numbers: list[Number] = []
    panels: list[Panel] = [Cells("Two chains", {f"order {order}": data[order][:SHOWN].tolist() for order in data})]
    for order, energies in learned.items():
        true = theory(order)
        numbers += [
            Number.value(f"chain {order}, energy of order {i + 1}", true[i], energies[i]) for i in range(ORDERS)
        ]
        difference = float(np.abs(energies - best[order]).max())
        numbers.append(Number(f"chain {order}, from the sample's own", difference, bound=0.002))
        panels.append(bars(f"Chain of order {order}", true, {"learned": energies}, "Markov order"))
    return Outcome(numbers, [figure("sequential", panels, shown=SHOWN)])


EXPERIMENT = Experiment(about("sequential", samples=LENGTH), draw, fast, published, optimum, compare)
