"""With ridge=0 the closed form *is* the classical method, to rounding."""

import numpy as np
import pytest

import featgeo as fg


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two badly scaled tables of numbers that depend on each other, n = 200 to 5,000, 5 to 50 columns."""
    rng = np.random.default_rng(seed)
    n, p, q = int(rng.integers(200, 5001)), int(rng.integers(5, 51)), int(rng.integers(5, 51))
    n = max(n, 6 * (p + q))
    common = rng.standard_normal((n, 3)) * [2, 1, 0.5]
    x = common @ rng.standard_normal((3, p)) + rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    y = common @ rng.standard_normal((3, q)) + rng.standard_normal((n, q)) @ rng.standard_normal((q, q))
    scales = (10.0 ** rng.uniform(-6, 6, size) for size in (p, q))
    shifts = (rng.standard_normal(size) for size in (p, q))
    return tuple((z + shift) * scale for z, scale, shift in zip((x, y), scales, shifts, strict=True))


def canonical(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Canonical correlations and variates of unit variance, by QR and SVD."""
    (q_x, _), (q_y, _) = (np.linalg.qr((z - z.mean(axis=0)) / z.std(axis=0)) for z in (x, y))
    u, sigma, vt = np.linalg.svd(q_x.T @ q_y, full_matrices=False)
    return sigma, q_x @ u * np.sqrt(len(x)), q_y @ vt.T * np.sqrt(len(x))


@pytest.mark.parametrize("seed", range(10))
def test_linear_spaces_without_ridge_are_canonical_correlation_analysis(seed):
    x, y = drawn(seed)
    sigma, variates, of_y = canonical(x, y)
    for k in (1, 2, min(x.shape[1], y.shape[1])):
        model = fg.ModalDecomposition(k, "closed", "linear", "linear", ridge=0, random_state=0, verbose=0).fit(x, y)
        np.testing.assert_allclose(model.singular_values_, sigma[:k], atol=1e-10)
        f, g = model.transform(x, y)
        sign = np.sign(np.sum(f * variates[:, :k], axis=0))
        gap = np.abs(np.subtract.outer(sigma[:k], sigma))
        apart = np.where(gap == 0, np.inf, gap).min(axis=1)  # variates are as exact as their correlations are apart
        assert (np.abs(f * sign - variates[:, :k]).max(axis=0) < 1e-10 / apart.clip(max=1)).all()
        assert (np.abs(g * sign - of_y[:, :k]).max(axis=0) < 1e-10 / apart.clip(max=1)).all()


def test_tables_without_ridge_are_correspondence_analysis():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, 900), rng.integers(0, 5, 900)
    y = np.where(rng.random(900) < 0.4, x % 5, y)
    table = np.zeros((6, 5))
    np.add.at(table, (x, y), 1 / 900)
    p, q = table.sum(axis=1), table.sum(axis=0)
    inertia = np.linalg.svd((table - np.outer(p, q)) / np.sqrt(np.outer(p, q)), compute_uv=False)[:4]
    for solver in ("exact", "closed"):
        model = fg.ModalDecomposition(4, solver, "table", "table", ridge=0, random_state=0, verbose=0)
        model.fit(x.astype(str), y.astype(str))
        np.testing.assert_allclose(model.singular_values_, inertia, atol=1e-10)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_linear_predictions_without_ridge_are_reduced_rank_regression(k):
    """In the metric of Cov(Y)^-1, the one in which rank k loses least of the likelihood."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 6))
    y = x[:, :4] @ rng.standard_normal((4, 4)) + 2 * rng.standard_normal((600, 4))
    model = fg.ModalDecomposition(k, "closed", "linear", "linear", ridge=0, random_state=0, verbose=0).fit(x, y)
    f, g = model.transform(x, y)
    loadings = g.T @ (y - y.mean(axis=0)) / len(y)  # E[g_i Y]
    predicted = y.mean(axis=0) + f * model.singular_values_ @ loadings
    centred, target = x - x.mean(axis=0), y - y.mean(axis=0)
    ordinary = centred @ np.linalg.lstsq(centred, target, rcond=None)[0]
    root = np.linalg.cholesky(target.T @ target / len(y))
    whitened = ordinary @ np.linalg.inv(root).T
    _, _, vt = np.linalg.svd(whitened, full_matrices=False)
    best = whitened @ vt[:k].T @ vt[:k] @ root.T
    np.testing.assert_allclose(predicted - y.mean(axis=0), best, atol=1e-9)


@pytest.mark.parametrize("ridge", [-1, np.nan, np.inf, "none", True, None])
def test_a_ridge_that_is_none_is_refused(ridge):
    x = np.random.default_rng(0).standard_normal((30, 2))
    with pytest.raises(ValueError, match="`ridge` must be 'auto' or"):
        fg.ModalDecomposition(1, ridge=ridge).fit(x[:, :1], x[:, 1])


def test_a_larger_ridge_prefers_what_varies_most():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 30))
    y = x[:, 0] + rng.standard_normal(40)
    strengths = [
        fg.ModalDecomposition(1, "closed", "linear", "linear", ridge=ridge, random_state=0, verbose=0).fit(x, y)
        for ridge in (0, 0.1, 10.0)
    ]
    sigma = [model.singular_values_[0] for model in strengths]
    assert sigma[0] > sigma[1] > sigma[2]
    assert [model.report().ridge for model in strengths] == [0, 0.1, 10.0]
