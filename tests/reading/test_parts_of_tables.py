"""What is told of a table does not depend on how many parts it comes in."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from featgeo.explore import tallies
from featgeo.explore.sketch import sketch
from featgeo.reading import source
from featgeo.reading.source import open_source
from featgeo.reading.tree import folded


@pytest.fixture(autouse=True)
def _every_file_is_a_part(monkeypatch):
    monkeypatch.setattr(source, "PART_BYTES", 1)


def table_of(n, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({
        "number": rng.normal(1e6, 1, n),
        "label": rng.choice(list("uvwxyz"), n),
        "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**7, n), unit="s"),
        "text": [str(i) for i in rng.integers(0, 10**6, n)],
    })  # fmt: skip
    table.loc[rng.random(n) < 0.1, ["number", "label"]] = None
    return table


def written(folder, table, cuts, suffix="parquet"):
    folder.mkdir(exist_ok=True)
    ends = [0, *cuts, len(table)]
    for i, (start, end) in enumerate(pairwise(ends)):
        part, path = table.iloc[start:end], folder / f"{i:02d}.{suffix}"
        part.to_parquet(path) if suffix == "parquet" else part.to_csv(path, index=False)
    return folder


@pytest.mark.parametrize(
    ("n", "shape"), [(1, "0"), (2, "(01)"), (3, "((01)2)"), (5, "(((01)(23))4)"), (6, "(((01)(23))(45))")]
)
def test_the_tree_is_fixed_by_the_number_of_parts(n, shape):
    assert folded(range(n), str, lambda a, b: f"({a}{b})") == shape


def test_a_sketch_is_that_of_all_rows_however_they_are_parted(tmp_path):
    table = table_of(5_000)
    whole = sketch(open_source(written(tmp_path / "one", table, [])))
    parted = sketch(open_source(written(tmp_path / "many", table, [0, 1, 700, 701, 4000])))
    assert_array_equal(parted.sample_rows, whole.sample_rows)
    assert {column.kind for column in parted.columns.values()} == {"number", "label", "date"}
    for name, one in whole.columns.items():
        other = parted.columns[name]
        for told in ("kind", "n_rows", "n_missing", "n_distinct", "distinct_exact", "whole", "minimum", "maximum"):
            assert getattr(one, told) == getattr(other, told) or one.kind == "label"
        assert_allclose([other.mean, other.std], [one.mean, one.std], rtol=1e-12)
        assert dict(one.labels) == dict(other.labels)
        texts = [np.array([*column.labels, None]) for column in (one, other)]
        values = [np.asarray(column.sample) for column in (one, other)]
        if one.kind == "label":  # of labels that are as frequent, the first that came is the first
            values = [own[codes] for own, codes in zip(texts, values, strict=True)]
        assert_array_equal(*values)


COLUMNS = {
    "numbers": (["1", None, "2.5"], "number"),
    "a word in the first part": (["x", "1", "2"], "label"),
    "a word in the last part": (["1", "2", "x"], "label"),
    "nothing in some": ([None, "a", None, "b"], "label"),
    "dates": (["2020-01-31", None, "1999-12-01"], "date"),
    "numbers and dates": (["5", "2020-01-31"], "label"),
    "the last part tells that days come first": (["03/04/2020", "05/06/2020", "25/12/2020"], "date"),
    "the first part tells that days come first": (["25/12/2020", "03/04/2020"], "date"),
    "no part tells whether days come first": (["03/04/2020", "05/06/2020"], "label"),
    "days come first in one, months in another": (["25/12/2020", "12/25/2020"], "label"),
    "zip codes": (["10001", "00501", "94016"], "label"),
    "digits of several lengths": (["007", "12"], "number"),
    "nothing": ([None, None], "number"),
}


@pytest.mark.parametrize(("values", "kind"), COLUMNS.values(), ids=COLUMNS.keys())
def test_the_kind_of_a_column_is_that_of_all_parts(tmp_path, values, kind):
    table = pd.DataFrame({"c": values, "other": range(len(values))})
    one = sketch(open_source(written(tmp_path / "one", table, [], "csv"))).columns["c"]
    many = sketch(open_source(written(tmp_path / "many", table, range(1, len(table)), "csv"))).columns["c"]
    assert one.kind == many.kind == kind
    assert (one.n_missing, one.n_words, one.examples) == (many.n_missing, many.n_words, many.examples)
    assert_array_equal(np.asarray(one.sample), np.asarray(many.sample))
    assert one.form == many.form


def test_words_among_numbers_are_shown_with_their_rows_in_the_whole_table(tmp_path):
    table = pd.DataFrame({"c": ["1", "2", "x", "3", "y"], "d": range(5)})
    found = sketch(open_source(written(tmp_path / "t", table, [2, 4], "csv")), {"c": "number"}).columns["c"]
    assert (found.n_words, found.examples) == (2, ((2, "x"), (4, "y")))


def test_frequent_labels_of_many_parts_are_never_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(tallies, "MOST_VALUES", 50)
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(4_000) < 0.5, rng.integers(0, 5, 4_000), rng.integers(100, 4_000, 4_000)).astype(str)
    table = pd.DataFrame({"c": np.char.add("l", labels)})
    found = sketch(open_source(written(tmp_path / "t", table, range(500, 4_000, 500)))).columns["c"]
    counts = table.c.value_counts()
    assert not found.labels_exact
    for label in counts.index[:5]:
        assert counts[label] - found.labels_error <= found.labels[label] <= counts[label]


def test_samples_of_parts_are_a_uniform_sample_of_all(tmp_path, monkeypatch):
    from featgeo.explore import sketch as room

    monkeypatch.setattr(room, "SAMPLE_ROWS", 4_096)
    table = pd.DataFrame({"c": np.arange(40_000.0)})
    found = sketch(open_source(written(tmp_path / "t", table, [5_000, 30_000])))
    assert len(found.sample_rows) == 4_096
    assert_array_equal(np.asarray(found.columns["c"].sample), found.sample_rows)
    assert (np.diff(found.sample_rows) > 0).all()
    shares = np.diff(np.searchsorted(found.sample_rows, [0, 5_000, 30_000, 40_000])) / 4_096
    assert_allclose(shares, [1 / 8, 5 / 8, 1 / 4], atol=4 / np.sqrt(4_096) / 2)  # four standard errors at most
