"""The authors' recipe: which steps it takes, and how networks become modes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from featgeo import h_score, nested_h_score
from featgeo.nesting import Nesting
from featgeo.paper import multimodal, published
from featgeo.paper.two_sources import Networks


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

    published.maximise([network], objective, [10, 10], seed=0, minibatch=4, epochs=2)
    assert [[len(part) for part in step] for step in seen] == [[4, 4], [4, 4], [2, 2]] * 2
    for start in (0, 3):
        for dataset in range(2):
            assert sorted(i for step in seen[start : start + 3] for i in step[dataset]) == list(range(10))
    assert seen[0][0] != seen[0][1]  # shuffled apart
    assert seen[0] != seen[3]
    assert network.value.item() == pytest.approx(6 * 1e-3, rel=1e-3)  # upwards, by Adam's rate at each step


def test_training_finds_a_maximum():
    network = Scalar()
    published.maximise([network], lambda rows: -((network.value - 0.1) ** 2), [8], seed=0, minibatch=2, epochs=100)
    assert network.value.item() == pytest.approx(0.1, abs=1e-3)


def test_networks_become_modes_of_unit_variance_on_the_sample():
    torch.manual_seed(0)
    f, g = nn.Linear(2, 3), nn.Linear(1, 3)
    x, y = torch.randn(50, 2), torch.randn(50, 1)
    at = torch.randn(7, 2), torch.randn(5, 1)
    modes = published.modes((f, x), (g, y), at)
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


class Given(nn.Module):
    """A function that needs no training."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.function(inputs)


@pytest.fixture
def two_sources(monkeypatch):
    """Networks that are the truth of a law already, on a sample without sampling error in its means."""
    data = multimodal.draw("pairwise", 200, 3000)
    networks = Networks(data, seed=0)
    for name, x in (("f_bar_1", networks.x1), ("f_bar_2", networks.x2)):
        mean = torch.cos(torch.pi * x).mean()
        setattr(networks, name, Given(lambda x, mean=mean: torch.cos(torch.pi * x) - mean))
    share = networks.label[:, 1:].mean()
    networks.g_bar = Given(lambda label: label[:, 1:] - share)
    networks.g = Given(lambda label: 0.2 * (label[:, 1:] - share))
    networks.f = Given(lambda x: torch.sin(torch.pi * x[:, :1]))
    networks.from_1 = networks.from_2 = Given(torch.zeros_like)  # one source says nothing of the other's half here
    objectives = []
    monkeypatch.setattr(published, "maximise", lambda nets, objective, *_, **__: objectives.append(objective))
    return data, networks, objectives


def test_pairs_are_scored_as_complete_rows_would_be(two_sources):
    """H(f1 + f2, g) = H(f1, g) + H(f2, g) - cov(f1, f2) var(g), where all pairs show the same rows."""
    data, networks, objectives = two_sources
    learned = networks.from_pairs()
    rows = torch.arange(len(data.y))
    f = networks.f_bar_1(networks.x1) + networks.f_bar_2(networks.x2)
    expected = h_score(f, networks.g_bar(networks.label))
    torch.testing.assert_close(objectives[0](rows, rows, rows), expected, rtol=1e-5, atol=1e-6)
    assert len(learned.features) == len(learned.sigma) == 1  # no interaction


def test_complete_rows_are_scored_by_the_nested_h_score_of_both_components(two_sources):
    data, networks, objectives = two_sources
    learned = networks.from_complete_rows()
    f_bar = networks.f_bar_1(networks.x1) + networks.f_bar_2(networks.x2)
    f = networks.f(torch.cat([networks.x1, networks.x2], dim=1))
    g_bar, g = networks.g_bar(networks.label), networks.g(networks.label)
    expected = nested_h_score(torch.hstack([f_bar, f]), torch.hstack([g_bar, g]), Nesting([1, 1]))
    torch.testing.assert_close(objectives[0](torch.arange(len(data.y))), expected)
    strengths = [float(a.std(correction=0) * b.std(correction=0)) for a, b in ((f_bar, g_bar), (f, g))]
    assert learned.sigma == pytest.approx(strengths, rel=1e-5)


def test_true_features_assemble_to_the_true_posteriors(two_sources):
    """P(1|x1, x2) = P(1) (1 + f_bar g_bar(1)), with one source by what it expects of the other."""
    _, networks, _ = two_sources
    learned, truth = networks.from_pairs(), multimodal.truth("pairwise")
    posterior = truth.posterior(multimodal.GRID_1, multimodal.GRID_2)
    np.testing.assert_allclose(learned.posterior, posterior, atol=0.05)  # the shares of labels, and means of cosines
    for single in learned.singles:
        np.testing.assert_allclose(single, truth.single(multimodal.GRID), atol=0.05)
    (found,), (true,) = learned.features, truth.features(multimodal.GRID_1, multimodal.GRID_2)
    assert np.corrcoef(found, true)[0, 1] == pytest.approx(1)
