"""Sources as columns of one table: the same model as from a mapping, and what scikit-learn's tools make of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import featgeo as fg

N = 400
_rng = np.random.default_rng(0)
NUMBERS = _rng.standard_normal((N, 3))
Y = NUMBERS[:, 0] + NUMBERS[:, 1] + 0.5 * _rng.standard_normal(N)
FRAME = pd.DataFrame(NUMBERS, columns=["p", "q", "r"]).assign(unread="same")
COLUMNS = {"a": ["p", "r"], "b": "q"}
PARTS = {"a": FRAME[["p", "r"]], "b": FRAME[["q"]]}


def model(**options):
    return fg.MultimodalDecomposition(max_order=1, spaces="linear", y_space="linear", random_state=0, **options)


@pytest.fixture(scope="module")
def of_frame():
    return model(sources=COLUMNS).fit(FRAME, Y)


def test_a_frame_is_the_mapping_of_its_columns(of_frame):
    mapped = model().fit(PARTS, Y)
    np.testing.assert_allclose(of_frame.transform(FRAME), mapped.transform(PARTS))
    np.testing.assert_allclose(of_frame.given(FRAME).mean(), mapped.given(**PARTS).mean())
    assert of_frame.score(FRAME, Y) == pytest.approx(mapped.score(PARTS, Y))
    np.testing.assert_allclose(
        of_frame.optimal_transformations(FRAME).phi["b"], mapped.optimal_transformations(PARTS).phi["b"]
    )


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_frames_of_any_library_are_cut(of_frame, kind):
    np.testing.assert_allclose(of_frame.transform(kind(FRAME)), of_frame.transform(FRAME))


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, np.ndarray.tolist])
def test_columns_of_arrays_go_by_position(of_frame, kind):
    by_position = model(sources={"a": [0, -1], "b": 1}).fit(kind(NUMBERS), Y)
    np.testing.assert_allclose(by_position.transform(kind(NUMBERS)), of_frame.transform(FRAME))


def test_a_frame_without_the_columns_of_a_source_is_answered_by_the_others(of_frame):
    np.testing.assert_allclose(of_frame.transform(FRAME[["q"]]), of_frame.transform({"b": FRAME[["q"]]}))
    holes = FRAME.assign(q=np.nan)
    np.testing.assert_allclose(of_frame.given(holes).mean(), of_frame.given(a=PARTS["a"]).mean())


def test_searches_and_cross_validation_work():
    search = GridSearchCV(model(sources=COLUMNS), {"sources": [COLUMNS, {"a": "r", "b": "q"}]}, cv=3).fit(FRAME, Y)
    assert search.best_params_ == {"sources": COLUMNS}
    scores = cross_val_score(clone(search.best_estimator_), FRAME, Y, cv=3)
    np.testing.assert_allclose(scores.mean(), search.best_score_)


def test_a_saved_model_reads_frames(of_frame, tmp_path):
    of_frame.save(tmp_path / "model")
    loaded = fg.load(tmp_path / "model")
    assert loaded.sources == COLUMNS
    np.testing.assert_allclose(loaded.given(FRAME).mean(), of_frame.given(FRAME).mean())
