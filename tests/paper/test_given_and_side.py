"""Experiments with given features, side information and sequences, against their exact truth."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from featgeo.paper import orthogonality, sequential, side_information
from featgeo.paper.multihead import MultiheadNetwork


@pytest.mark.parametrize("given", ["x", "x^2"])
def test_orthogonality_on_the_papers_number_of_samples(given):
    result = orthogonality.run(given, seed=200)
    assert result.correlation > 0.999
    assert result.relative_error < 0.05
    assert abs(result.residual) < 1e-6
    assert result.sigma == pytest.approx(0.5, abs=0.015)
    assert result.aligned_energy == pytest.approx(orthogonality.ALIGNED_ENERGY[given], abs=0.015)


@pytest.mark.parametrize("given", ["x", "x^2"])
def test_the_stated_truth_is_orthogonal_and_its_aligned_energy_exact(given):
    x = orthogonality.GRID
    phi, truth = orthogonality.GIVEN[given](x), orthogonality.TRUTH[given](x)
    assert abs(np.trapezoid((phi - np.trapezoid(phi, x) / 2) * truth, x)) < 1e-5
    cosine, sine = (np.trapezoid(phi * np.sqrt(2) * part(np.pi * x), x) / 2 for part in (np.cos, np.sin))
    variance = np.trapezoid(phi**2, x) / 2 - (np.trapezoid(phi, x) / 2) ** 2
    assert (cosine**2 + sine**2) / variance / 4 == pytest.approx(orthogonality.ALIGNED_ENERGY[given], abs=1e-4)


def test_side_information_finds_the_exact_conditional_mode_of_the_sample():
    result = side_information.run(seed=200)
    assert min(result.f_correlation, result.g_correlation) > 0.9999
    assert result.sigma_error < 1e-3
    assert result.posterior_error < 1e-8
    # The network maximises another objective; both agree where the dependence is weak, and nearly so here.
    assert result.multihead_f_correlation > 0.97
    assert result.multihead_g_correlation > 0.9


def test_the_multihead_network_reaches_the_maximum_likelihood_of_a_saturated_model():
    counts = np.random.default_rng(0).integers(5, 50, (2, 2, 3)).astype(float)
    network = MultiheadNetwork((2, 2, 3), k=2)
    reached = network.fit(counts)
    conditional = counts / counts.sum(axis=2, keepdims=True)
    assert reached == pytest.approx(float((counts * np.log(conditional)).sum() / counts.sum()), abs=1e-8)
    assert torch.allclose(network().exp().sum(dim=2), torch.ones(2, 2, dtype=torch.float64))


@pytest.mark.parametrize("order", [1, 2])
def test_chains_have_the_plug_in_energies_and_approach_theory(order):
    result = sequential.run(order, seed=200)
    np.testing.assert_allclose(result.learned, result.exact, atol=1e-8)
    np.testing.assert_allclose(sequential.run(order, 300_000, seed=200).learned, result.theory, atol=0.005)
