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
from featgeo.nesting.scores import Mode


class MultiheadNetwork(nn.Module):
    """A shared feature of a finite x and one softmax head for each s.

    Args:
        shape: Sizes of the alphabets of x, s and y.
        k: Dimension of the feature.
        seed: Of the parameters.
    """

    def __init__(self, shape: tuple[int, int, int], k: int = 1, seed: int = 0) -> None:
        super().__init__()
        n_x, n_s, n_y = shape
        generator = torch.Generator().manual_seed(seed)
        self.f = nn.Parameter(torch.randn(n_x, k, generator=generator, dtype=torch.float64))
        self.g = nn.Parameter(torch.randn(n_s, n_y, k, generator=generator, dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros(n_s, n_y, dtype=torch.float64))

    def forward(self) -> torch.Tensor:
        """Log-probabilities of y for each x and s, (|X|, |S|, |Y|)."""
        logits = torch.einsum("xk,syk->xsy", self.f, self.g) + self.bias
        return logits.log_softmax(dim=2)

    def fit(self, counts: Array, steps: int = 200) -> float:
        """Maximise the log-likelihood of counts of (x, s, y); returns its mean, in nats.

        All samples are in the counts, so each step sees all of them: this ends where minibatches would hover.
        """
        weights = torch.as_tensor(counts / counts.sum())
        optimizer = torch.optim.LBFGS(
            self.parameters(), max_iter=steps, tolerance_grad=1e-10, line_search_fn="strong_wolfe"
        )

        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            value = -(weights * self()).sum()
            value.backward()
            return value

        optimizer.step(loss)  # type: ignore[no-untyped-call]
        with torch.no_grad():
            return float((weights * self()).sum())

    def features(self) -> tuple[Array, Array]:
        """The first feature of x, (|X|,), and the weights that each head gives it, (|S|, |Y|)."""
        return self.f.detach().numpy()[:, 0], self.g.detach().numpy()[..., 0]


EPOCHS = 100
MINIBATCH = 256


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Networks made inside start from this seed; the global state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def mlp(*sizes: int, normalised: bool = False) -> nn.Sequential:
    """Linear layers with softplus between them; their inputs are normalised over the minibatch where so wanted."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [*[nn.BatchNorm1d(inputs)] * normalised, nn.Linear(inputs, outputs), nn.Softplus()]
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


Part = tuple[nn.Module, Tensor]  # a network and its inputs


def maximise_nested(
    x_parts: Sequence[Part], y_parts: Sequence[Part], nesting: Nesting, seed: int, mode: Mode = "joint", **schedule: int
) -> None:
    """Train networks to maximise the nested H-score of their features, those of each side beside each other.

    Args:
        x_parts: Networks of x with their inputs, in the order of the levels.
        y_parts: Networks of y.
        nesting: The levels.
        seed: Of the shuffles.
        mode: As in `nested_h_score`.
        schedule: Minibatches and epochs as in `maximise`.
    """

    def features(parts: Sequence[Part], rows: Tensor) -> Tensor:
        return torch.cat([network(inputs[rows]) for network, inputs in parts], dim=1)

    def objective(rows: Tensor) -> Tensor:
        return nested_h_score(features(x_parts, rows), features(y_parts, rows), nesting, mode=mode)

    networks = [network for network, _ in (*x_parts, *y_parts)]
    maximise(networks, objective, [len(x_parts[0][1])], seed, **schedule)


def values(network: nn.Module, inputs: Tensor) -> Array:
    """What a trained network says, (n, k)."""
    network.eval()
    with torch.no_grad():
        return network(inputs).double().numpy()


def modes(x: Part, y: Part, at: tuple[Tensor, Tensor]) -> Modes:
    """Trained networks as modes (eq. f:g:simga:i): centred, of unit variance on the sample, with sigma = |f| |g|.

    Args:
        x: A network of x, and its inputs in the sample.
        y: One of y.
        at: Inputs where the modes are wanted.
    """
    seen = [values(*part) for part in (x, y)]
    f, g = (
        (values(network, wanted) - own.mean(axis=0)) / own.std(axis=0)
        for (network, _), wanted, own in zip((x, y), at, seen, strict=True)
    )
    return Modes(seen[0].std(axis=0) * seen[1].std(axis=0), f, g)


def trained_modes(
    networks: Callable[[], Iterable[nn.Module]],
    sides: Iterable[tuple[Tensor, Tensor]],
    k: int,
    seed: int,
    mode: Mode = "joint",
    **schedule: int,
) -> Modes:
    """Modes of two networks that are trained to maximise the nested H-score of k modes.

    Args:
        networks: Makes the network of x and that of y, untrained.
        sides: For x and for y the inputs of the sample, and those where the modes are wanted.
        k: How many modes.
        seed: Of the networks and of the shuffles.
        mode: As in `nested_h_score`.
        schedule: Minibatches and epochs as in `maximise`.
    """
    (x, x_at), (y, y_at) = sides
    with seeded(seed):
        f, g = networks()
    maximise_nested([(f, x)], [(g, y)], Nesting.modes(k), seed, mode, **schedule)
    return modes((f, x), (g, y), (x_at, y_at))
