"""Proposition pred:est: from f (x) g = i follow the energy, the posterior and every conditional expectation."""

import numpy as np
import pytest
from support import SEEDS, random_counts, random_functions

from featgeo import FiniteJoint


@pytest.mark.parametrize("seed", SEEDS)
def test_features_of_the_whole_dependence_give_posterior_and_expectations(seed):
    joint = FiniteJoint(random_counts(seed, (6, 4)))
    p_xy, p_x, p_y, modes = joint.probability(), joint.probability("x"), joint.probability("y"), joint.modes()
    # Any factorisation of the kernel will do, not only the normalised one.
    mix = random_functions(seed, len(modes), len(modes))
    f, g = modes.f @ np.diag(modes.sigma) @ mix, modes.g @ np.linalg.inv(mix).T

    gram_f, gram_g = f.T @ (p_x[:, None] * f), g.T @ (p_y[:, None] * g)
    assert np.trace(gram_f @ gram_g) == pytest.approx(joint.mean_square_contingency(), abs=1e-12)
    np.testing.assert_allclose(p_y * (1 + f @ g.T), p_xy / p_x[:, None], atol=1e-12)
    psi = random_functions(seed + 7, 4, 3)
    expected = p_y @ psi + f @ (psi.T @ (p_y[:, None] * g)).T
    np.testing.assert_allclose(expected, (p_xy / p_x[:, None]) @ psi, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_maximum_likelihood_ranks_labels_by_the_product_of_features(seed):
    joint = FiniteJoint(np.exp(random_functions(seed, 6, 4)))  # no ties
    modes, p_xy, p_y = joint.modes(), joint.probability(), joint.probability("y")
    np.testing.assert_array_equal(np.argmax(modes.kernel(), axis=1), np.argmax(p_xy / p_y, axis=1))
    np.testing.assert_array_equal(np.argmax(p_y * (1 + modes.kernel()), axis=1), np.argmax(p_xy, axis=1))
