"""The discrete experiment: modes of samples approach the truth at the rate of sampling error."""

import numpy as np
import pytest

from featgeo.paper import discrete


def test_distribution_is_the_one_the_paper_describes():
    numbers = np.random.RandomState(20230606).rand(8, 6)
    np.testing.assert_allclose(discrete.distribution().probability(), numbers / numbers.sum(), atol=1e-16)


@pytest.mark.parametrize("seed", range(5))
def test_samples_of_the_papers_size_find_the_modes(seed):
    result = discrete.run(seed=seed)
    assert result.sigma_error < 0.02
    assert min(result.f_correlation[0], result.g_correlation[0]) > 0.99


def test_error_falls_like_the_root_of_the_sample_size():
    errors = [np.mean([discrete.run(n=n, seed=seed).sigma_error for seed in range(20)]) for n in (10_000, 160_000)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.4)
