"""How many modes given features have: the count is right, and its level holds whatever is left."""

import numpy as np
import pytest
from scipy.stats import chi2

from featgeo.evidence import mode_pvalues
from featgeo.evidence.blocks import MOST_PRODUCTS, bartlett_statistics, product_spectrum, rank_pvalues

REPETITIONS = 200


def gaussian(rng, n, *correlations, noise=2):
    X, Y = rng.standard_normal((2, n, len(correlations) + noise))
    for i, rho in enumerate(correlations):
        Y[:, i] = rho * X[:, i] + np.sqrt(1 - rho**2) * Y[:, i]
    return X, Y


def labels(rng, n):
    """Four labels a side, with one mode of strength 0.9: what is left is uncorrelated, not independent."""
    sign = np.array([1, 1, -1, -1])
    cells = rng.choice(16, n, p=((1 + 0.9 * np.outer(sign, sign)) / 16).ravel())
    return np.array(list("abcd"))[cells // 4], np.array(list("wxyz"))[cells % 4]


def common_scale(rng, n):
    """A Gaussian mode, and a pair that shares its scale only."""
    X, Y = gaussian(rng, n, 0.8, noise=1)
    scale = np.exp(rng.standard_normal(n))
    X[:, 1] *= scale
    Y[:, 1] *= scale
    return X, Y


def orthonormal_of(values):
    centred = values - values.mean(axis=0)
    return np.linalg.qr(centred)[0] * np.sqrt(len(values))


def test_modes_are_counted():
    pvalues = mode_pvalues(*gaussian(np.random.default_rng(0), 1500, 0.7, 0.4, noise=3))
    assert len(pvalues) == 5
    assert (pvalues[:2] < 1e-6).all()
    assert pvalues[2] > 0.05
    assert (np.diff(pvalues) >= 0).all()


@pytest.mark.parametrize(
    ("draw", "n"), [(lambda rng, n: gaussian(rng, n, 0.8), 60), (labels, 500), (common_scale, 500)]
)
def test_level_beyond_a_real_mode(draw, n):
    """Chi-square rejects 0.05, 0.09 and 0.6 of these draws at the level 0.05."""
    pvalues = np.array([
        mode_pvalues(*draw(np.random.default_rng(seed), n), n_permutations=19)[:2] for seed in range(REPETITIONS)
    ])  # fmt: skip
    assert (pvalues[:, 0] <= 0.05).all()
    rest = np.array([p for first, p in pvalues if p > first])  # where the floor of the first does not bind
    for level in (0.06, 0.2, 0.5):
        assert np.sum(rest <= level) / REPETITIONS < level + 3 * np.sqrt(level * (1 - level) / REPETITIONS)
    assert np.mean(pvalues[:, 1]) < 0.6


def test_level_of_no_modes_is_exact_with_few_rows_and_right_for_uncorrelated_ones():
    independent, uncorrelated = [], []
    for seed in range(REPETITIONS):
        rng = np.random.default_rng(seed)
        X, Y = rng.standard_t(2, (30, 2)), rng.exponential(size=(30, 2))
        independent.append(mode_pvalues(X, Y, n_permutations=39, random_state=seed)[0])
        X, Y = rng.standard_normal((2, 300, 2)) * np.exp(rng.standard_normal((300, 1)) / 2)
        uncorrelated.append(mode_pvalues(X, Y, n_permutations=39, random_state=seed)[0])
    assert np.mean(np.array(independent) <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPETITIONS)
    assert np.mean(np.array(uncorrelated) <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / REPETITIONS)


def test_many_gaussian_rows_give_bartletts_limit():
    X, Y = gaussian(np.random.default_rng(1), 20_000, 0.5, noise=1)
    x, y = orthonormal_of(X), orthonormal_of(Y)
    rho = np.linalg.svd(x.T @ y / len(x), compute_uv=False)
    limit = chi2.sf(bartlett_statistics(rho, len(x), 2, 2)[1], 1)
    assert rank_pvalues(x, y)[1] == pytest.approx(limit, rel=0.05)


def test_weights_of_independent_features_are_equal_and_sum_to_their_number():
    rng = np.random.default_rng(0)
    a, b = orthonormal_of(rng.standard_normal((400, 6))), orthonormal_of(rng.standard_normal((400, 5)))
    weights = product_spectrum(a, b)
    assert weights.sum() == pytest.approx(30, rel=0.03)
    assert np.square(weights).sum() == pytest.approx(30, rel=0.1)  # the plain covariance matrix gives 32
    side = 40
    assert side**2 > MOST_PRODUCTS
    a, b = orthonormal_of(rng.standard_normal((400, side))), orthonormal_of(rng.standard_normal((400, side)))
    many = product_spectrum(a, b)
    assert many.sum() == pytest.approx(side**2, rel=0.03)
    assert len(many) == pytest.approx(side**2, rel=0.1)


def test_rows_must_be_enough():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="6 and 5 features need at least 13 rows, got 12"):
        mode_pvalues(rng.random((12, 6)), rng.random((12, 5)))
