"""Two sources and a label: the stated truths by plain integration, then the library against them."""

from __future__ import annotations

import numpy as np
import pytest

from featgeo.paper import multimodal, two_sources
from featgeo.paper.record import root_mean_square

LAWS = list(multimodal.LAWS)


def fine_grid(cells=1000):
    """The sources at the midpoints of fine cells, as a column and a row, and the conditional weights of x2 given x1."""
    x = (np.arange(cells) + 0.5) * 2 / cells - 1
    x1, x2 = x[:, None], x[None, :]
    return x1, x2, 2 * multimodal.density(x1, x2) * 2 / cells


def test_the_density_has_mass_one_and_uniform_marginals():
    _, _, conditional = fine_grid()
    np.testing.assert_allclose(conditional.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(conditional.sum(axis=1), 1, atol=1e-12)
    assert multimodal.WEIGHTS.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_posteriors_are_probabilities_and_average_to_those_of_one_source(law):
    truth = multimodal.truth(law)
    x1, x2, conditional = fine_grid()
    posterior = truth.posterior(x1, x2)
    assert posterior.min() >= 0
    assert posterior.max() <= 1
    np.testing.assert_allclose((posterior * conditional).sum(axis=1), truth.single(x1[:, 0]), atol=1e-6)
    np.testing.assert_allclose((posterior * conditional).sum(axis=0), truth.single(x2[0]), atol=1e-6)
    assert truth.single(x1).mean() == pytest.approx(truth.prior, abs=1e-6)


@pytest.mark.parametrize("law", LAWS)
def test_features_are_orthonormal_and_rebuild_the_posterior(law):
    truth = multimodal.truth(law)
    x1, x2, conditional = fine_grid()
    weights = conditional / len(conditional)
    features = [np.ones_like(weights), *truth.features(x1, x2)]
    assert len(features) == 2 + truth.interacting
    gram = [[(weights * a * b).sum() for a in features] for b in features]
    np.testing.assert_allclose(gram, np.eye(len(features)), atol=1e-6)
    rebuilt = sum(sigma * feature for sigma, feature in zip(truth.sigma, features[1:], strict=True))
    deviation = np.sqrt(truth.prior * (1 - truth.prior))
    np.testing.assert_allclose(truth.prior + deviation * rebuilt, truth.posterior(x1, x2), atol=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_the_bivariate_feature_is_a_sum_of_functions_of_one_source(law):
    f_bar = multimodal.truth(law).features(*fine_grid(100)[:2])[0]
    assert np.abs(f_bar - f_bar.mean(axis=0) - f_bar.mean(axis=1, keepdims=True) + f_bar.mean()).max() < 1e-12


@pytest.mark.parametrize("law", ["clipped", "valid"])
def test_the_interaction_has_mean_zero_given_either_source(law):
    x1, x2, conditional = fine_grid()
    f = multimodal.truth(law).features(x1, x2)[1]
    for axis in (0, 1):
        given_one = (f * conditional).sum(axis=axis)
        # Plain sums are this far off where they meet the kink of the clipped law; see the last test of the truths.
        assert np.abs(given_one).max() < (3e-6 if law == "clipped" else 1e-12)
        assert np.sqrt(np.mean(given_one**2)) < 1e-6


@pytest.mark.parametrize(("law", "weight", "interacting"), [("valid", 1 / 6, 1), ("pairwise", 1 / 4, 0)])
def test_laws_without_a_cut_have_their_closed_forms(law, weight, interacting):
    truth = multimodal.truth(law)
    x1, x2, _ = fine_grid(50)
    assert truth.prior == 0.5
    np.testing.assert_allclose(truth.sigma, [2 * weight, np.sqrt(2) * weight][: 1 + interacting], atol=1e-12)
    f_bar, *f = truth.features(x1, x2)
    np.testing.assert_allclose(f_bar, np.cos(np.pi * x1) + np.cos(np.pi * x2), atol=1e-12)
    assert len(f) == interacting
    if interacting:
        np.testing.assert_allclose(f[0], np.sqrt(2) * np.cos(np.pi * (x1 + x2)), atol=1e-12)


def test_the_clipped_truth_does_not_depend_on_the_number_of_nodes():
    coarse, fine = multimodal.truth("clipped", 50), multimodal.truth("clipped", 400)
    pairs = [truth.features(multimodal.GRID_1, multimodal.GRID_2) for truth in (coarse, fine)]
    assert max(root_mean_square(np.subtract(*pairs).T, multimodal.WEIGHTS)) < 1e-9
    for name in ("prior", "sigma"):
        np.testing.assert_allclose(getattr(coarse, name), getattr(fine, name), atol=1e-10)


def test_what_is_cut_off_is_the_limit_of_plain_sums():
    errors = []
    for cells in (500, 1000):
        x1, x2, conditional = fine_grid(cells)
        uncut = 1 / 2 + (np.cos(np.pi * x1) + np.cos(np.pi * x2) + np.cos(np.pi * (x1 + x2))) / 4
        cut = np.maximum(uncut - 1, 0)
        differences = [(conditional * cut**power).sum(axis=1) - multimodal.excess(x1[:, 0], power) for power in (1, 2)]
        errors.append([np.sqrt(np.mean(difference**2)) for difference in differences])
    assert np.max(errors[1]) < 1e-6
    assert np.max(np.divide(errors[1], errors[0])) < 0.3  # a kink costs the square of the cell's width


@pytest.mark.parametrize("law", LAWS)
def test_samples_have_the_frequencies_of_the_law(law):
    n, cells = 200_000, 8
    data = multimodal.draw(law, 200, n)
    x1, x2, y = data.x1, data.x2, data.y
    assert min(x1.min(), x2.min()) >= -1
    assert max(x1.max(), x2.max()) <= 1
    assert set(np.unique(y)) == {-1, 1}
    seen = np.stack([np.histogram2d(x1[y == label], x2[y == label], cells, [[-1, 1]] * 2)[0] for label in (-1, 1)])
    at_1, at_2, conditional = fine_grid(80 * cells)
    positive = multimodal.truth(law).posterior(at_1, at_2)
    masses = np.stack([1 - positive, positive]) * conditional / len(conditional)
    expected = n * masses.reshape(2, cells, 80, cells, 80).sum(axis=(2, 4))
    assert not seen[expected == 0].any()  # the clipped law has cells where y is 1 for certain
    seen, expected = seen[expected > 0], expected[expected > 0]
    squares = (seen - expected) ** 2 / expected
    assert squares.max() < 4.5**2
    assert squares.sum() < squares.size + 4 * np.sqrt(2 * squares.size)


@pytest.mark.parametrize("law", LAWS)
def test_what_one_source_expects_of_the_other_completes_what_it_says(law):
    truth = multimodal.truth(law)
    x1, x2, conditional = fine_grid()
    np.testing.assert_allclose((truth.half(x2) * conditional).sum(axis=1), truth.expected_half(x1[:, 0]), atol=1e-6)
    said = truth.half(x1[:, 0]) + truth.expected_half(x1[:, 0])
    np.testing.assert_allclose(truth.prior + said, truth.single(x1[:, 0]), atol=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_the_exact_optimum_of_a_sample_approaches_the_law(law):
    def errors(n, seed):
        data = multimodal.draw(law, seed, n)
        return [number.error for number in two_sources.judged(law, two_sources.optimum({law: data})[law])]

    means = [np.mean([errors(n, seed) for seed in range(200, 215)], axis=0) for n in (1_000, 16_000)]
    assert means[1].max() < 0.05
    np.testing.assert_allclose(means[0] / means[1], 4, rtol=0.5)  # the root of 16
