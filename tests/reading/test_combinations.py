"""Rows of tables of any size, counted: what samples in memory give."""

import datetime as dt

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_array_equal

import featgeo as fg
from featgeo.reading import source

N = 2_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    hair = rng.choice(["black", "brown", "red"], N, p=[0.5, 0.4, 0.1])
    return pd.DataFrame({
        "eye": pd.Categorical(rng.choice(["blue", "green"], N)),
        "age": rng.integers(3, 9, N),
        "hair": hair,
        "day": [dt.date(2020, 1, 1 + int(day)) for day in rng.integers(0, 3, N)],
        "not this": rng.standard_normal(N),
    })  # fmt: skip


def assert_same(found, expected):
    assert found.names == expected.names
    assert found.total == expected.total
    assert [[str(label) for label in own] for own in found.categories] == [
        [str(label) for label in own] for own in expected.categories
    ]
    assert_array_equal(found.table, expected.table)


@pytest.fixture
def folder(tmp_path, table, monkeypatch):
    monkeypatch.setattr(source, "PART_BYTES", 1)
    for i, end in enumerate([500, 500, 1700, N]):
        table.iloc[[0, 500, 500, 1700][i] : end].to_parquet(tmp_path / f"{i}.parquet")
    return tmp_path


FORMS = {"pandas": lambda table: table, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_frames_are_counted_as_samples_are(table, form):
    found = fg.FiniteJoint.from_rows(FORMS[form](table), ["eye", "age", "hair", "day"])
    assert_same(found, fg.FiniteJoint.from_samples(**{name: table[name] for name in ("eye", "age", "hair", "day")}))


def test_rows_of_a_folder_are_counted_here_and_by_workers(table, folder):
    expected = fg.FiniteJoint.from_samples(eye=table.eye, age=table.age, hair=table.hair)
    names = ["eye", "age", "hair"]
    assert_same(fg.FiniteJoint.from_rows(folder, names), expected)
    with LocalCluster(n_workers=2, processes=False, dashboard_address=":0") as cluster, Client(cluster):
        assert_same(fg.FiniteJoint.from_rows(folder, names), expected)
        assert_same(fg.FiniteJoint.from_rows(dd.from_pandas(table, npartitions=3)[names]), expected)


def test_what_cannot_be_counted_is_said(table, folder, tmp_path):
    with pytest.raises(ValueError, match="Column 'hair' has missing values"):
        fg.FiniteJoint.from_rows(table.assign(hair=table.hair.where(table.age > 3)), ["hair", "age"])
    with pytest.raises(ValueError, match=r"must be columns of .*, and \['nosuch'\] are not"):
        fg.FiniteJoint.from_rows(folder, ["hair", "nosuch"])
    table[["hair"]].to_csv(tmp_path / "hair.csv", index=False)
    with pytest.raises(ValueError, match=r"must say what they hold, and .*hair.csv' is a file of text"):
        fg.FiniteJoint.from_rows(tmp_path / "hair.csv")
    with pytest.raises(ValueError, match="A table needs rows"):
        fg.FiniteJoint.from_rows(table[:0], ["hair"])
