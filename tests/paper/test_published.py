"""The authors' recipe: which steps it takes, and how networks become modes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from featgeo.paper import published


class Scalar(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.zeros(()))


def test_every_row_of_every_data_set_comes_once_an_epoch():
    seen = []
    network = Scalar()

    def objective(*indices):
        seen.append([index.tolist() for index in indices])
        return network.value * 1.0

    published.maximise([network], objective, 10, seed=0, minibatch=4, epochs=2, datasets=2)
    assert [[len(part) for part in step] for step in seen] == [[4, 4], [4, 4], [2, 2]] * 2
    for start in (0, 3):
        for dataset in range(2):
            assert sorted(i for step in seen[start : start + 3] for i in step[dataset]) == list(range(10))
    assert seen[0][0] != seen[0][1]  # shuffled apart
    assert seen[0] != seen[3]
    assert network.value.item() == pytest.approx(6 * 1e-3, rel=1e-3)  # upwards, by Adam's rate at each step


def test_training_finds_a_maximum():
    network = Scalar()
    published.maximise([network], lambda rows: -((network.value - 0.1) ** 2), 8, seed=0, minibatch=2, epochs=100)
    assert network.value.item() == pytest.approx(0.1, abs=1e-3)


def test_networks_become_modes_of_unit_variance_on_the_sample():
    torch.manual_seed(0)
    f, g = nn.Linear(2, 3), nn.Linear(1, 3)
    x, y = torch.randn(50, 2), torch.randn(50, 1)
    at = torch.randn(7, 2), torch.randn(5, 1)
    modes = published.modes(f, g, (x, y), at)
    sides = []
    for network, sample, wanted in ((f, x, at[0]), (g, y, at[1])):
        own, values = (network(z).detach().double().numpy() for z in (sample, wanted))
        sides.append((own.std(axis=0), (values - own.mean(axis=0)) / own.std(axis=0)))
    np.testing.assert_allclose(modes.sigma, sides[0][0] * sides[1][0], rtol=1e-6)
    np.testing.assert_allclose(modes.f, sides[0][1], atol=1e-6)
    np.testing.assert_allclose(modes.g, sides[1][1], atol=1e-6)


def test_networks_are_made_from_their_seed_and_leave_torch_alone():
    before = torch.random.get_rng_state()
    with published.seeded(3):
        first = published.mlp(2, 5, 1)
    with published.seeded(3):
        second = published.mlp(2, 5, 1)
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(first[0].weight, second[0].weight)
    assert [type(layer) for layer in first] == [nn.Linear, nn.Softplus, nn.Linear]


def test_inputs_of_networks():
    assert published.column(np.arange(3)).tolist() == [[0], [1], [2]]
    assert published.one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert published.rows(np.eye(2)).dtype == torch.float32
