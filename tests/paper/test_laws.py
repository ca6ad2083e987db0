"""The laws of the experiments and their exact truths, by plain integration, sums and counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

from featgeo import FiniteJoint
from featgeo.paper import cosine, discrete, gaussian, mixture, orthogonality, sequences, sequential, side_information
from featgeo.paper.published import MultiheadNetwork

FINE = (np.arange(4000) + 0.5) / 2000 - 1


@pytest.mark.parametrize("experiment", [discrete, side_information])
def test_random_distributions_are_those_the_paper_describes(experiment):
    numbers = np.random.RandomState(20230606).rand(*experiment.SHAPE)
    np.testing.assert_allclose(experiment.LAW.probability(), numbers / numbers.sum(), atol=1e-16)


@pytest.mark.parametrize("name", cosine.EXPECTATIONS)
def test_conditional_expectations_of_the_cosine_density_are_its_integrals(name):
    for x in (-0.9, -0.2, 0.0, 0.65):
        integral, _ = quad(lambda y: cosine.ESTIMATED[name](y) * (1 + np.cos(np.pi * (x - y))) / 2, -1, 1, epsabs=1e-12)
        assert cosine.EXPECTATIONS[name](x) == pytest.approx(integral, abs=1e-10)


def test_the_kernel_of_the_cosine_density_is_its_two_modes():
    kernel = cosine.SIGMA * cosine.sinusoids(cosine.GRID) @ cosine.sinusoids(cosine.GRID).T
    np.testing.assert_allclose(kernel, cosine.KERNEL, atol=1e-12)


def test_samples_of_the_cosine_density_have_its_moments():
    data = cosine.draw(200, 400_000)
    assert np.mean(np.cos(np.pi * (data.x - data.y))) == pytest.approx(1 / 2, abs=0.005)
    for side in (data.x, data.y):
        assert np.abs(side).max() <= 1
        np.testing.assert_allclose([side.mean(), side.var()], [0, 1 / 3], atol=0.005)


@pytest.mark.parametrize("given", orthogonality.GIVEN)
def test_the_stated_feature_is_orthogonal_and_its_aligned_energy_exact(given):
    phi, truth = orthogonality.GIVEN[given](FINE), orthogonality.TRUTH[given](FINE)
    assert abs(np.mean((phi - phi.mean()) * truth)) < 1e-12
    shares = np.mean((phi - phi.mean())[:, None] * cosine.sinusoids(FINE), axis=0)
    assert (shares @ shares) / phi.var() * cosine.SIGMA**2 == pytest.approx(
        orthogonality.ALIGNED_ENERGY[given], abs=1e-6
    )


def test_hermite_polynomials_are_orthonormal_modes():
    x, weights = np.polynomial.hermite_e.hermegauss(40)
    mass = weights / weights.sum()
    f = gaussian.hermite(x)
    np.testing.assert_allclose(f.T @ (mass[:, None] * f), np.eye(gaussian.MODES), atol=1e-10)
    # E[f_i(Y)|x] = rho^i f_i(x), by the same rule for the normal noise
    y = gaussian.RHO * 0.7 + np.sqrt(1 - gaussian.RHO**2) * x
    np.testing.assert_allclose(
        mass @ gaussian.hermite(y), gaussian.SIGMA * gaussian.hermite(np.array([0.7]))[0], atol=1e-10
    )


def test_the_grid_of_the_gaussian_is_the_normal_law_where_samples_reach():
    assert 2 * norm.cdf(gaussian.GRID[0]) * gaussian.SAMPLES < 0.5  # rows of a sample beyond it
    moments = [gaussian.MASS @ gaussian.GRID**power for power in range(5)]
    np.testing.assert_allclose(moments, [1, 0, 1, 0, 3], atol=0.01)


def test_the_posterior_of_the_mixture_is_bayes_rule_and_its_strength_the_integral():
    mu, root, direction = mixture.law()
    covariance = root @ root.T
    assert mu @ np.linalg.solve(covariance, mu) == pytest.approx(1, abs=1e-12)
    x = np.random.default_rng(0).standard_normal((5, mixture.DIMENSIONS))
    log = [[-(row - y * mu) @ np.linalg.solve(covariance, row - y * mu) / 2 for y in (1, -1)] for row in x]
    odds = np.exp(np.subtract(*np.transpose(log)))
    np.testing.assert_allclose((odds - 1) / (odds + 1), mixture.truth(x), atol=1e-12)
    np.testing.assert_allclose(direction, np.linalg.solve(covariance, mu), atol=1e-12)
    integral, _ = quad(lambda z: np.tanh(z) ** 2 * np.exp(-((z - 1) ** 2) / 2) / np.sqrt(2 * np.pi), -12, 14)
    assert mixture.sigma() ** 2 == pytest.approx(integral, abs=1e-6)


def test_the_mode_of_flips_is_the_papers_hyperbolic_tangent():
    modes = sequences.LAW.modes()
    assert modes.sigma[1:].max(initial=0) < 1e-12
    factors = sequences.FACTORS
    for values, length, share in ((modes.f[:, 0], 40, factors[1].sum()), (modes.g[:, 0], 30, factors[:, 1].sum())):
        phi = np.arange(length) - (length - 1) / 2  # flips less half of their largest number
        stated = np.tanh(np.log(9) * phi + np.log(share / (1 - share)) / 2)
        # standardised under another mass, so equal up to an affine map
        line = np.polynomial.Polynomial.fit(stated, values, 1)
        np.testing.assert_allclose(line(stated), values, atol=1e-9)


def test_all_dependence_of_short_sequences_is_in_their_flips():
    def chains(length, q):
        words = np.indices((2,) * length).reshape(length, -1)
        flips = (words[1:] != words[:-1]).sum(axis=0)
        return q**flips * (1 - q) ** (length - 1 - flips) / 2, flips

    of_x = np.stack([chains(4, q)[0] for q in sequences.FLIP])
    of_y = np.stack([chains(3, q)[0] for q in sequences.FLIP])
    full = FiniteJoint(np.einsum("uv,ua,vb->ab", sequences.FACTORS, of_x, of_y))
    merged = np.zeros((4, 3))
    np.add.at(merged, np.ix_(chains(4, 0.1)[1], chains(3, 0.1)[1]), full.probability())
    np.testing.assert_allclose(full.modes(1).sigma, FiniteJoint(merged).modes(1).sigma, atol=1e-12)


def test_sequences_flip_as_their_factors_say():
    data = sequences.draw(200, 0)
    for column, rows, length in ((0, data.fresh_x, 40), (1, data.fresh_y, 30)):
        assert set(np.unique(rows)) == {0.0, 1.0}
        for factor in (0, 1):
            rate = sequences.flips(rows[data.factors[:, column] == factor]).mean() / (length - 1)
            assert rate == pytest.approx(sequences.FLIP[factor], abs=0.005)


@pytest.mark.parametrize("order", sequential.CHAINS)
def test_energies_of_a_chain_are_those_of_its_stationary_law(order):
    words = np.indices((2,) * 4).reshape(4, -1)
    same = words[order:] == words[:-order]
    law = (0.5**order * np.where(same, sequential.SAME, 1 - sequential.SAME).prod(axis=0)).reshape((2,) * 4)
    assert law.sum() == pytest.approx(1)
    joint = FiniteJoint(law, names=["3", "2", "1", "next"])
    captured = [joint.mean_square_contingency(["3", "2", "1"][-back:], "next") for back in (1, 2, 3)]
    np.testing.assert_allclose(np.diff(captured, prepend=0), sequential.theory(order), atol=1e-12)


def test_the_multihead_network_reaches_the_maximum_likelihood_of_a_saturated_model():
    counts = np.random.default_rng(0).integers(5, 50, (2, 2, 3)).astype(float)
    network = MultiheadNetwork((2, 2, 3), k=2)
    reached = network.fit(counts)
    conditional = counts / counts.sum(axis=2, keepdims=True)
    assert reached == pytest.approx(float((counts * np.log(conditional)).sum() / counts.sum()), abs=1e-8)
    assert torch.allclose(network().exp().sum(dim=2), torch.ones(2, 2, dtype=torch.float64))
