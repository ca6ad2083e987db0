"""The published recipe (appendix D): networks trained by Adam at its defaults on minibatches, most for 100 epochs.

The objective is the library's nested H-score, in one pass for all levels, and minibatches are slices of a shuffled
tensor: both cost less than what the published notebooks do, so the time measured here flatters them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from featgeo.geometry import Modes
from featgeo.geometry.validation import Array
from featgeo.nesting import Nesting, nested_h_score

EPOCHS = 100
MINIBATCH = 256


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Networks made inside start from this seed; the global state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def mlp(*sizes: int) -> nn.Sequential:
    """Linear layers with softplus between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.Softplus()]
    return nn.Sequential(*layers[:-1])


def rows(values: Array) -> Tensor:
    """Rows as the input of a network, (n, d)."""
    return torch.from_numpy(np.asarray(values)).float()


def column(values: Array) -> Tensor:
    """Numbers as the input of a network, (n,) -> (n, 1)."""
    return rows(values)[:, None]


def one_hot(index: np.ndarray, symbols: int) -> Tensor:
    """Symbols as the input of a linear layer, (n,) -> (n, symbols)."""
    return torch.eye(symbols)[torch.from_numpy(np.asarray(index)).long()]


def maximise(
    networks: Iterable[nn.Module],
    objective: Callable[..., Tensor],
    sizes: Sequence[int],
    seed: int,
    *,
    minibatch: int = MINIBATCH,
    epochs: int | None = None,
) -> None:
    """Train networks to maximise an objective of rows.

    Args:
        networks: Whose parameters are trained.
        objective: From the indices of a minibatch, one tensor for each data set, to a scalar.
        sizes: Rows in each data set; all have equally many minibatches, and are shuffled apart.
        seed: Of the shuffles.
        minibatch: Rows a step.
        epochs: Passes over the rows; `EPOCHS` when None.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam([weight for network in networks for weight in network.parameters()])
    for _ in range(EPOCHS if epochs is None else epochs):
        shuffles = [torch.split(torch.randperm(n, generator=generator), minibatch) for n in sizes]
        for indices in zip(*shuffles, strict=True):
            optimizer.zero_grad()
            torch.autograd.backward(-objective(*indices))
            optimizer.step()


def values(network: nn.Module, inputs: Tensor) -> Array:
    """What a trained network says, (n, k)."""
    network.eval()
    with torch.no_grad():
        return network(inputs).double().numpy()


def modes(f: nn.Module, g: nn.Module, sample: tuple[Tensor, Tensor], at: tuple[Tensor, Tensor]) -> Modes:
    """Trained networks as modes (eq. f:g:simga:i): centred, of unit variance on the sample, with sigma = |f| |g|.

    Args:
        f: Trained on inputs of x.
        g: Trained on inputs of y.
        sample: Inputs of x and of y in the sample.
        at: Inputs where the modes are wanted.
    """
    sides = []
    for network, own, wanted in zip((f, g), sample, at, strict=True):
        seen = values(network, own)
        sides.append(((values(network, wanted) - seen.mean(axis=0)) / seen.std(axis=0), seen.std(axis=0)))
    (f_at, f_norm), (g_at, g_norm) = sides
    return Modes(f_norm * g_norm, f_at, g_at)


def trained_modes(
    networks: tuple[nn.Module, nn.Module],
    sample: tuple[Tensor, Tensor],
    at: tuple[Tensor, Tensor],
    k: int,
    seed: int,
    **schedule: int,
) -> Modes:
    """Train a network of x and one of y to maximise the nested H-score of k modes.

    Args:
        networks: Of x and of y, (n, k) each.
        sample: Their inputs.
        at: Inputs where the modes are wanted.
        k: How many.
        seed: Of the shuffles.
        schedule: Minibatches and epochs as in `maximise`.
    """
    (f, g), (x, y), nesting = networks, sample, Nesting.modes(k)
    maximise(networks, lambda rows: nested_h_score(f(x[rows]), g(y[rows]), nesting), [len(x)], seed, **schedule)
    return modes(f, g, sample, at)
