"""The multihead softmax network (fig. dnn:mh), which the paper compares learning with side information to.

A feature f(x) is shared by all tasks s; task s has a softmax head of its own, with logits f(x).g(s, y) + b(s, y). Where
the dependence is weak, maximum likelihood finds the conditional component (Theorem dnn:multihead). It needs a head for
each s, and so a finite S.
"""

from __future__ import annotations

import torch
from torch import nn

from featgeo.geometry.validation import Array


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
