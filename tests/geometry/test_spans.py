"""Projections inside spans: the orthogonality principle, for features of any rank."""

import numpy as np
import pytest

from featgeo import Moments, complement, project
from featgeo.geometry.spans import flag_from_gram, flag_from_vectors


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
    flag = flag_from_gram(vectors.T @ vectors, [2, 4], ridge=0.3)
    np.testing.assert_allclose(vectors[:, :2].T @ vectors @ flag.basis[:, 2:], 0, atol=1e-10)


def test_indefinite_gram_matrix_of_patchwork_data_is_mended_and_reported():
    gram = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    flag = flag_from_gram(gram, [3])
    assert flag.removed == pytest.approx(0.8 / 3.8, abs=1e-12)
    assert flag.ends == (2,)
    assert flag_from_gram(np.eye(3), [3]).removed == 0


def test_features_refuse_rows_of_another_span(data):
    projection = project(Moments.from_features(data), "x", onto=["s"])
    with pytest.raises(ValueError, match="functions of 3 columns"):
        projection(data["x"])
