"""Projections inside spans: the orthogonality principle, for features of any rank."""

import numpy as np
import pytest
import torch

from featgeo import Moments, complement, project
from featgeo.geometry.spans import consistent_covariance, flag_from_gram, flag_from_vectors


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    s = rng.standard_normal((200, 3))
    x = s @ rng.standard_normal((3, 2)) + 0.5 * rng.standard_normal((200, 2))
    return {"x": x + 5, "s": s - 2}


def test_projection_is_the_least_squares_fit(data):
    fitted = project(Moments.from_features(data), "x", onto=["s"])(data["s"])
    design = np.column_stack([np.ones(200), data["s"]])
    np.testing.assert_allclose(fitted, design @ np.linalg.lstsq(design, data["x"], rcond=None)[0], atol=1e-12)


def test_remainder_is_orthogonal_to_the_span_and_projecting_twice_changes_nothing(data):
    fitted = project(Moments.from_features(data), "x", onto=["s"])(data["s"])
    remainder = data["x"] - fitted
    np.testing.assert_allclose(remainder.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(remainder.T @ data["s"] / 200, 0, atol=1e-12)
    again = project(Moments.from_features({"x": fitted, "s": data["s"]}), "x", onto=["s"])(data["s"])
    np.testing.assert_allclose(again, fitted, atol=1e-12)


def test_complement_is_an_orthonormal_basis_of_what_is_new(data):
    rng = np.random.default_rng(5)
    x = np.column_stack([data["x"], data["s"] @ [1.0, 2.0, 3.0], rng.standard_normal(200)])  # the third adds nothing
    new = complement(Moments.from_features({"x": x, "s": data["s"]}), "x", onto=["s"])(np.hstack([data["s"], x]))
    assert new.shape == (200, 3)
    np.testing.assert_allclose(new.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(new.T @ new / 200, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(new.T @ data["s"] / 200, 0, atol=1e-12)
    design = np.column_stack([np.ones(200), data["s"], new])
    np.testing.assert_allclose(design @ np.linalg.lstsq(design, x, rcond=None)[0], x, atol=1e-11)


def test_constant_repeated_and_collinear_features_change_nothing(data):
    s = data["s"]
    clumsy = np.column_stack([s, s[:, :1], 1e6 * s @ [1, 2, 3], np.full(200, 0.1), np.full(200, 1e8 / 3)])
    plain = project(Moments.from_features(data), "x", onto=["s"])(s)
    other = project(Moments.from_features({"x": data["x"], "s": clumsy}), "x", onto=["s"])(clumsy)
    np.testing.assert_allclose(other, plain, atol=1e-8)


def test_ridge_shrinks_towards_the_mean(data):
    moments = Moments.from_features(data)
    spread = [np.var(project(moments, "x", ["s"], ridge=r)(data["s"]), axis=0).sum() for r in (0, 0.1, 1, 1e9)]
    assert spread[0] > spread[1] > spread[2] > spread[3]
    assert spread[3] < 1e-12


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf])
def test_bad_ridge_is_refused(data, ridge):
    with pytest.raises(ValueError, match="ridge"):
        project(Moments.from_features(data), "x", ["s"], ridge=ridge)


def test_flag_is_orthonormal_and_adapted_whether_from_vectors_or_from_their_gram_matrix():
    rng = np.random.default_rng(1)
    first, second = rng.standard_normal((30, 3)), rng.standard_normal((30, 4))
    second[:, 0] = first @ [1, -1, 2]  # adds nothing
    vectors = np.hstack([first, second])
    from_vectors = flag_from_vectors([first, second])
    from_gram = flag_from_gram(vectors.T @ vectors, [3, 4])
    assert from_vectors.ends == from_gram.ends == (3, 6)
    for basis in (from_vectors.basis, vectors @ from_gram.basis):
        np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-12)
        outside = first - basis[:, :3] @ (basis[:, :3].T @ first)
        np.testing.assert_allclose(outside, 0, atol=1e-12)


def test_ridge_leaves_later_steps_exactly_orthogonal_to_earlier_ones():
    rng = np.random.default_rng(2)
    vectors = rng.standard_normal((50, 6)) @ rng.standard_normal((6, 6))
    flag = flag_from_gram(vectors.T @ vectors, [2, 4])
    np.testing.assert_allclose(vectors[:, :2].T @ vectors @ flag.shrunk(0.3)[:, 2:], 0, atol=1e-10)


@pytest.mark.parametrize("amplitude", [1e-2, 1e-5, 1e-8])
def test_nearly_collinear_vectors_stay_orthogonal(amplitude):
    rng = np.random.default_rng(4)
    first = rng.standard_normal((40, 3))
    second = first @ rng.standard_normal((3, 3)) + amplitude * rng.standard_normal((40, 3))
    basis = flag_from_vectors([first, second]).basis
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-14)


def test_nearly_collinear_features_stay_orthogonal_as_far_as_a_gram_matrix_can_tell():
    rng = np.random.default_rng(4)
    first = rng.standard_normal((40, 3))
    vectors = np.hstack([first, first @ rng.standard_normal((3, 3)) + 1e-4 * rng.standard_normal((40, 3))])
    basis = vectors @ flag_from_gram(vectors.T @ vectors, [3, 3]).basis
    np.testing.assert_allclose(basis[:, :3].T @ basis[:, 3:], 0, atol=1e-10)


def test_huge_and_tiny_vectors_keep_their_directions():
    vectors = np.array([[1.0, 1.0], [1.0, -1.0], [0.0, 0.5]])
    assert flag_from_vectors([vectors * [1e200, 1e-200]]).ends == (2,)


def test_moments_that_do_not_fit_together_are_mended_and_the_share_is_reported():
    """Three pairs of blocks from different rows, whose correlations 0.9, 0.9, -0.9 no joint distribution has."""
    rng = np.random.default_rng(6)
    root = np.linalg.cholesky(np.array([[1, 0.9], [0.9, 1]]))
    z = rng.standard_normal((500, 2))
    z = (z - z.mean(0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(z.T, bias=True))).T @ root.T  # exactly correlated
    patchwork = Moments.from_chunks(
        [{"a": z[:, 0], "b": z[:, 1]}, {"b": z[:, 0], "c": z[:, 1]}, {"a": z[:, 0], "c": -z[:, 1]}]
    )
    mended, removed = consistent_covariance(patchwork, ["a", "b", "c"])
    assert removed == pytest.approx(0.8 / 3.8, abs=1e-9)  # eigenvalues 1.9, 1.9, -0.8
    assert np.linalg.eigvalsh(mended)[0] == pytest.approx(0, abs=1e-12)
    assert project(patchwork, "a", ["b", "c"]).removed == pytest.approx(removed)
    assert complement(patchwork, "a", ["b", "c"]).removed == pytest.approx(removed)


def test_complete_rows_need_no_mending(data):
    covariance, removed = consistent_covariance(Moments.from_features(data), ["x", "s"])
    assert removed == 0
    np.testing.assert_array_equal(covariance, Moments.from_features(data).joint_covariance(["x", "s"], ["x", "s"]))


def test_rounding_of_a_constant_is_not_a_feature():
    """A constant in chunks gets means that differ in the last place; scaled up, they would tell the chunks apart."""
    rng = np.random.default_rng(7)
    chunks = [
        {"constant": np.full(n, 0.1), "y": rng.standard_normal(n) + drift} for n, drift in ((3, 0), (7, 5), (11, -5))
    ]
    moments = Moments.from_chunks(chunks)
    assert np.all(project(moments, "y", "constant").weight == 0)


def test_projection_onto_nothing_is_the_mean(data):
    projection = project(Moments.from_features(data), "x", onto=[])
    np.testing.assert_allclose(projection(np.empty((4, 0))), np.tile(data["x"].mean(0), (4, 1)), atol=1e-12)


def test_features_refuse_rows_of_another_span(data):
    projection = project(Moments.from_features(data), "x", onto=["s"])
    with pytest.raises(ValueError, match="functions of 3 columns"):
        projection(data["x"])
    np.testing.assert_array_equal(projection(torch.from_numpy(data["s"])), projection(data["s"]))
    with pytest.raises(ValueError, match="There is no block 'q'"):
        project(Moments.from_features(data), "q", onto=[])
