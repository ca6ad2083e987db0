"""The published recipe for two sources and a label: softplus networks with two layers of 32, tables of the label.

f_bar is a network of x1 plus one of x2, f a network of both. What one source says of the other's part is learned by two
more networks, trained by squared error (appendix D). The error of f does not fall steadily: it may double between two
looks 20 epochs apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from featgeo.geometry.validation import Array
from featgeo.nesting import Nesting, h_score
from featgeo.paper import published as recipe
from featgeo.paper.multimodal import GRID, GRID_1, GRID_2, Learned, Sample


class Networks:
    """The networks of a sample, untrained."""

    def __init__(self, data: Sample, seed: int) -> None:
        self.seed = seed
        self.x1, self.x2 = recipe.column(data.x1), recipe.column(data.x2)
        self.both, self.label = torch.cat([self.x1, self.x2], dim=1), recipe.one_hot(data.y == 1, 2)
        with recipe.seeded(seed):
            self.f_bar_1, self.f_bar_2, self.f = (recipe.mlp(inputs, 32, 32, 1) for inputs in (1, 1, 2))
            self.g_bar, self.g = nn.Linear(2, 1), nn.Linear(2, 1)
            self.from_1, self.from_2 = recipe.mlp(1, 32, 32, 1), recipe.mlp(1, 32, 32, 1)

    def from_complete_rows(self) -> Learned:
        """Maximise the nested H-score of both components."""
        components = ((_Sum(self.f_bar_1, self.f_bar_2), self.g_bar), (self.f, self.g))
        x_parts, y_parts = [(f, self.both) for f, _ in components], [(g, self.label) for _, g in components]
        recipe.maximise_nested(x_parts, y_parts, Nesting([1, 1]), self.seed)
        return self._assembled(components)

    def from_pairs(self) -> Learned:
        """Maximise the H-score of f_bar and g_bar, each covariance from a minibatch of the pairs that show it."""

        def objective(sources: Tensor, first: Tensor, second: Tensor) -> Tensor:
            g_1, g_2 = self.g_bar(self.label[first]), self.g_bar(self.label[second])
            alone = h_score(self.f_bar_1(self.x1[first]), g_1) + h_score(self.f_bar_2(self.x2[second]), g_2)
            between = _covariance(self.f_bar_1(self.x1[sources]), self.f_bar_2(self.x2[sources]))
            g = torch.cat([g_1, g_2])
            return alone - between * _covariance(g, g)

        recipe.maximise((self.f_bar_1, self.f_bar_2, self.g_bar), objective, [len(self.x1)] * 3, self.seed)
        return self._assembled([(_Sum(self.f_bar_1, self.f_bar_2), self.g_bar)])

    def _expected(self, network: nn.Module, x: Tensor, values: Array) -> Array:
        """The conditional expectation of values given x, on `GRID`, by squared error."""
        target = torch.from_numpy(values).float()
        recipe.maximise((network,), lambda rows: -((network(x[rows]) - target[rows]) ** 2).mean(), [len(x)], self.seed)
        return recipe.values(network, recipe.column(GRID))

    def _assembled(self, components: Sequence[tuple[nn.Module, nn.Module]]) -> Learned:
        """Posteriors by the paper's formulas (Prop. pred:est:mm), cut to [0, 1]."""
        at = recipe.rows(np.stack([GRID_1, GRID_2], axis=1)), torch.eye(2)[1:]  # the label 1
        modes = [recipe.modes((f, self.both), (g, self.label), at) for f, g in components]
        own_1, own_2 = recipe.values(self.f_bar_1, self.x1), recipe.values(self.f_bar_2, self.x2)
        grid, mean = recipe.column(GRID), (own_1 + own_2).mean()
        alone = [
            recipe.values(self.f_bar_1, grid) + self._expected(self.from_1, self.x1, own_2) - mean,
            recipe.values(self.f_bar_2, grid) + self._expected(self.from_2, self.x2, own_1) - mean,
        ]
        share = recipe.values(self.g_bar, at[1]) - recipe.values(self.g_bar, self.label).mean()
        said = (sum(each.kernel() for each in modes), *(part * share for part in alone))
        posterior, *singles = (np.clip(float(self.label[:, 1].mean()) * (1 + part), 0, 1)[:, 0] for part in said)
        return Learned([each.f[:, 0] for each in modes], posterior, singles, [float(each.sigma[0]) for each in modes])


class _Sum(nn.Module):
    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList([first, second])

    def forward(self, both: Tensor) -> Tensor:
        return self.parts[0](both[:, :1]) + self.parts[1](both[:, 1:])


def _covariance(a: Tensor, b: Tensor) -> Tensor:
    return ((a - a.mean()) * (b - b.mean())).mean()
