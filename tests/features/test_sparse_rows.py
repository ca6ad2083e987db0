"""Sparse matrices: dense ones while that fits, and beyond rows that only transformers read."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import featgeo as fg
from featgeo.features import columns

N, WORDS, EACH = 600, 400, 12


def _texts() -> tuple[sparse.csr_array, np.ndarray]:
    """Counts of words in texts of three topics, each with words of its own."""
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 3, N)
    own = rng.random((N, EACH)) < 0.5
    words = np.where(own, 100 * (1 + topic[:, None]) + rng.integers(0, 30, (N, EACH)), rng.integers(0, 100, (N, EACH)))
    rows = np.repeat(np.arange(N), EACH)
    return sparse.csr_array((np.ones(N * EACH), (rows, words.ravel())), shape=(N, WORDS)), np.array(list("abc"))[topic]


X, Y = _texts()


@pytest.fixture
def too_large(monkeypatch):
    monkeypatch.setattr(columns, "DENSE_CELLS", 10_000)  # a hundred rows are read as dense ones, these are not


def _classifier() -> fg.FeatureClassifier:
    return fg.FeatureClassifier(x_space=TruncatedSVD(6, random_state=0), random_state=0)


def test_what_fits_is_read_as_a_dense_matrix():
    narrow = X[:, 100:110]
    model = fg.FeatureClassifier(x_space="linear", random_state=0)
    expected = model.fit(narrow.toarray(), Y).predict_proba(narrow.toarray())
    np.testing.assert_array_equal(model.fit(narrow, Y).predict_proba(narrow), expected)


@pytest.mark.usefixtures("too_large")
def test_what_does_not_is_read_by_transformers_as_it_is(monkeypatch, tmp_path):
    dense = _classifier().fit(X.toarray(), Y)
    expected = dense.predict_proba(X.toarray())
    monkeypatch.setattr(sparse.csr_array, "toarray", None)  # nobody makes it dense
    model = _classifier().fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X.tocsc()), expected, atol=1e-8)
    assert model.score(X, Y, sample_weight=np.ones(N)) > 0.9
    model.save(tmp_path / "model")
    loaded = fg.load(tmp_path / "model", trusted=[TruncatedSVD])
    np.testing.assert_allclose(loaded.predict_proba(X), expected, atol=1e-8)


@pytest.mark.usefixtures("too_large")
def test_some_rows_of_a_large_matrix_may_be_dense():
    model = _classifier().fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X[:3]), model.predict_proba(X[:3].toarray()))
    with pytest.raises(ValueError, match="5 features, but the fit had 400"):
        model.predict(X[:, :5])


@pytest.mark.usefixtures("too_large")
def test_searches_pipelines_weights_and_batches_take_it():
    assert cross_val_score(_classifier(), X, Y, cv=3).mean() > 0.9
    reduced = make_pipeline(TruncatedSVD(6, random_state=0), fg.FeatureClassifier(x_space="linear", random_state=0))
    assert reduced.fit(X, Y).score(X, Y) > 0.9
    twice = _classifier().fit(X, Y, sample_weight=np.full(N, 2))
    assert twice.score(X, Y) > 0.9
    space = TruncatedSVD(6, random_state=0)
    halves = [(X[: N // 2], Y[: N // 2]), (X[N // 2 :], Y[N // 2 :])]
    streamed, whole = (fg.ModalDecomposition(2, x_space=space, random_state=0) for _ in range(2))
    np.testing.assert_allclose(streamed.fit(halves).singular_values_, whole.fit(X, Y).singular_values_, atol=1e-8)


@pytest.mark.usefixtures("too_large")
def test_it_may_be_one_of_several_sources():
    model = fg.MultimodalDecomposition(max_order=1, spaces={"text": TruncatedSVD(6, random_state=0)}, random_state=0)
    coin = np.random.default_rng(1).random(N)
    model.fit({"text": X, "coin": coin}, Y)
    assert (model.predict(text=X) == Y).mean() > 0.9
