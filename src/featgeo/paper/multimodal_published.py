"""The published recipe for two sources and a label: softplus networks with two layers of 32, tables of the label.

f_bar is a network of x1 plus one of x2, f a network of both. What one source says of the other's part is learned by two
more networks, trained by squared error (appendix D). The error of f does not fall steadily: it may double between two
looks 20 epochs apart.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from featgeo.geometry.validation import Array
from featgeo.nesting import Nesting, h_score, nested_h_score
from featgeo.paper import published as recipe
from featgeo.paper.multimodal import GRID, GRID_1, GRID_2, Learned, Sample


class Networks:
    """The networks of a sample, untrained."""

    def __init__(self, data: Sample, seed: int) -> None:
        self.seed = seed
        self.x1, self.x2 = recipe.column(data.x1), recipe.column(data.x2)
        self.label = recipe.one_hot(data.y == 1, 2)
        with recipe.seeded(seed):
            self.f_bar_1, self.f_bar_2, self.f = (recipe.mlp(inputs, 32, 32, 1) for inputs in (1, 1, 2))
            self.g_bar, self.g = nn.Linear(2, 1), nn.Linear(2, 1)
            self.from_1, self.from_2 = recipe.mlp(1, 32, 32, 1), recipe.mlp(1, 32, 32, 1)

    def from_complete_rows(self) -> Learned:
        """Maximise the nested H-score of both components."""
        nesting = Nesting([1, 1])

        def objective(rows: Tensor) -> Tensor:
            x1, x2, label = self.x1[rows], self.x2[rows], self.label[rows]
            f_bar, f = self.f_bar_1(x1) + self.f_bar_2(x2), self.f(torch.cat([x1, x2], dim=1))
            of_y = torch.cat([self.g_bar(label), self.g(label)], dim=1)
            return nested_h_score(torch.cat([f_bar, f], dim=1), of_y, nesting)

        networks = (self.f_bar_1, self.f_bar_2, self.f, self.g_bar, self.g)
        recipe.maximise(networks, objective, [len(self.x1)], self.seed)
        return self._assembled(interaction=True)

    def from_pairs(self) -> Learned:
        """Maximise the H-score of f_bar and g_bar, each covariance from a minibatch of the pairs that show it."""

        def objective(sources: Tensor, first: Tensor, second: Tensor) -> Tensor:
            g_1, g_2 = self.g_bar(self.label[first]), self.g_bar(self.label[second])
            alone = h_score(self.f_bar_1(self.x1[first]), g_1) + h_score(self.f_bar_2(self.x2[second]), g_2)
            between = _covariance(self.f_bar_1(self.x1[sources]), self.f_bar_2(self.x2[sources]))
            g = torch.cat([g_1, g_2])
            return alone - between * _covariance(g, g)

        networks = (self.f_bar_1, self.f_bar_2, self.g_bar)
        recipe.maximise(networks, objective, [len(self.x1)] * 3, self.seed)
        return self._assembled(interaction=False)

    def _expected(self, network: nn.Module, x: Tensor, values: Array) -> Array:
        """The conditional expectation of values given x, on `GRID`, by squared error."""
        target = torch.from_numpy(values).float()
        recipe.maximise((network,), lambda rows: -((network(x[rows]) - target[rows]) ** 2).mean(), [len(x)], self.seed)
        return recipe.values(network, recipe.column(GRID))

    def _assembled(self, interaction: bool) -> Learned:
        """Posteriors by the paper's formulas (Prop. pred:est:mm), cut to [0, 1]."""
        own_1, own_2 = recipe.values(self.f_bar_1, self.x1), recipe.values(self.f_bar_2, self.x2)
        grid, grid_1, grid_2 = (recipe.column(x) for x in (GRID, GRID_1, GRID_2))
        f_bar = recipe.values(self.f_bar_1, grid_1) + recipe.values(self.f_bar_2, grid_2)
        components = [(f_bar, own_1 + own_2, self.g_bar)]  # the feature on the grids and on the rows, and g
        if interaction:
            f, own = (recipe.values(self.f, torch.cat(both, dim=1)) for both in ([grid_1, grid_2], [self.x1, self.x2]))
            components.append((f, own, self.g))
        features = [(values - own.mean())[:, 0] for values, own, _ in components]
        labels = [recipe.values(g, self.label) for *_, g in components]
        shares = [
            (recipe.values(g, torch.eye(2)[1:]) - seen.mean()).item()
            for (*_, g), seen in zip(components, labels, strict=True)
        ]
        alone = [
            recipe.values(self.f_bar_1, grid) + self._expected(self.from_1, self.x1, own_2),
            recipe.values(self.f_bar_2, grid) + self._expected(self.from_2, self.x2, own_1),
        ]
        said = [
            sum(share * f for share, f in zip(shares, features, strict=True)),
            *(shares[0] * (part - (own_1 + own_2).mean())[:, 0] for part in alone),
        ]
        posterior, *singles = (np.clip(float(self.label[:, 1].mean()) * (1 + part), 0, 1) for part in said)
        sigma = [float(own.std() * seen.std()) for (_, own, _), seen in zip(components, labels, strict=True)]
        return Learned(features, posterior, singles, sigma)


def _covariance(a: Tensor, b: Tensor) -> Tensor:
    return ((a - a.mean()) * (b - b.mean())).mean()
