"""Fits of tables that are read in parts: what a fit of the same batches gives, and the same bits on any cluster."""

from itertools import pairwise

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import featgeo as fg
from featgeo.learning import data as streams
from featgeo.learning import tables as room
from featgeo.reading import cluster, source

HEAD = 1_000


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(source, "PART_BYTES", 1)
    monkeypatch.setattr(room.TableStream.__init__, "__defaults__", (HEAD,))


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    a, late = rng.standard_normal(n), np.arange(n) >= HEAD + 500
    label = np.where(late, rng.choice(["u", "v", "w"], n), rng.choice(["s", "t"], n))
    y = np.sin(a) + (label == "w") + 0.3 * rng.standard_normal(n)
    table = pd.DataFrame({"a": a, "count": rng.integers(0, 5, n), "label": label, "y": y})
    table.loc[rng.random(n) < 0.1, "a"] = np.nan
    return table


CUTS = [0, 700, 1_200, 1_203, 1_203, 3_000, 4_000]  # parts of a few rows, and of none


@pytest.fixture(scope="module")
def table():
    return table_of(CUTS[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("rows")
    for i, (start, end) in enumerate(pairwise(CUTS)):
        table.iloc[start:end].to_parquet(path / f"{i}.parquet")
    return path


def model():
    return fg.ModalDecomposition(2, solver="closed", x_space="spline", y_space="spline", ridge=1e-3, random_state=0)


def bits_of(fitted, rows):
    f, g = fitted.transform(rows[["a", "count", "label"]], rows.y)
    held_out = fitted.held_out_singular_values_, fitted.report_.held_out_score
    return [np.asarray(array).tobytes() for array in (fitted.singular_values_, f, g, *held_out)]


@pytest.fixture(scope="module")
def here(folder, table):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "PART_BYTES", 1)
        patch.setattr(room.TableStream.__init__, "__defaults__", (HEAD,))
        return bits_of(model().fit(folder, "y"), table)


def test_a_table_gives_what_its_batches_give(folder, table, monkeypatch):
    monkeypatch.setattr(streams.Stream.__init__, "__defaults__", (HEAD,))
    from_table = model().fit(folder, "y")
    x, y = table[["a", "count", "label"]], table.y
    batches = [(x[start:end], y[start:end]) for start, end in pairwise(CUTS) if end > start]
    from_batches = model().fit(batches)
    assert {name: column.categories for name, column in _columns(from_table)}["label"] == ("s", "t", "u", "v", "w")
    np.testing.assert_allclose(from_table.singular_values_, from_batches.singular_values_, rtol=1e-6)
    assert from_table.singular_values_[0] > 0.85


def _columns(fitted):
    return [(column.name, column) for column in fitted.x_variable_.columns]


@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_fits_are_the_same_bits_for_any_number_of_workers(folder, table, here, n_workers):
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=":0") as own,
        Client(own),
    ):
        assert bits_of(model().fit(folder, "y"), table) == here
        assert bits_of(model().fit(dd.read_parquet(folder), "y"), table) == here


def test_a_dask_frame_needs_no_cluster(folder, table, here):
    assert bits_of(model().fit(dd.read_parquet(folder), "y"), table) == here


def test_rows_of_the_head_fall_into_the_folds_they_were_dealt(folder, table):
    stream = room.TableStream(folder, "y", HEAD)
    folds = np.arange(len(stream.head))
    dealt = stream.dealt(folds)
    assert sorted(dealt) == [0, 1]
    assert [len(own) for own in dealt.values()] == [700, 500]
    read = stream.reduced(lambda place, chunks: {place: [pair.y.single_numbers for pair in chunks]}, lambda a, b: a | b)
    for place, own in dealt.items():
        np.testing.assert_array_equal(np.concatenate(read[place])[: len(own)], table.y.to_numpy()[own])


def test_what_cannot_be_fitted_is_said(folder, table, tmp_path, monkeypatch):
    frame = dd.from_pandas(table, npartitions=2)
    for y in (None, "nosuch", table.y, [], frame.y):
        with pytest.raises(ValueError, match="Y names columns of it, got"):
            model().fit(frame, y)
    with pytest.raises(ValueError, match="X is all columns but those of Y"):
        model().fit(frame, list(table.columns))
    with pytest.raises(ValueError, match="Weights need all rows in memory"):
        model().fit(frame, "y", sample_weight=np.ones(len(table)))
    with pytest.raises(ValueError, match="FeatureRegressor needs all rows in memory, and X is a table"):
        fg.FeatureRegressor().fit(frame, "y")
    with pytest.raises(ValueError, match="The exact solver needs all rows in memory"):
        fg.ModalDecomposition(solver="exact").fit(frame[["label", "count"]], "label")
    with pytest.raises(ValueError, match="A table needs rows"):
        model().fit(frame[frame.y > 99], "y")
    monkeypatch.setattr(streams, "MOST_LATE_LABELS", 2)
    with pytest.raises(ValueError, match="X brings more than 2 labels that its first"):
        model().fit(folder, "y")
    table.to_csv(tmp_path / "rows.csv")
    with pytest.raises(ValueError, match="must say what they hold"):
        model().fit(tmp_path / "rows.csv", "y")


@pytest.mark.filterwarnings("ignore:Column 'y' of Y has missing values")
def test_missing_numbers_of_y_are_refused_in_any_part(folder, table):
    holes = table.assign(y=table.y.where(np.arange(len(table)) != 3_500))
    with pytest.raises(ValueError, match="Y holds missing values"):
        model().fit(dd.from_pandas(holes, npartitions=3), "y")
    assert cluster.client() is None
