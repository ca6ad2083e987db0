"""Explorations in files, and merged: asked again, they say the same."""

import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import featgeo as fg
from featgeo.explore import explore
from featgeo.models.persistence import LATER_ROOMS, save
from featgeo.schema import SAVED


def table(seed: int, n: int = 1500) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = np.where(rng.random(n) < 0.1, np.nan, x**2 + rng.normal(size=n))
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**7, n), unit="s")
    return pd.DataFrame({"x": x, "y": y, "sign $": np.where(x > 0, "+", "-"), "when": when, "one": 1})


@pytest.fixture(scope="module")
def halves():
    first = table(0)
    explored = explore(first)
    second = table(1)
    return explored.merge(explore(second, like=explored)), explore(pd.concat([first, second]), like=explored)


def assert_same(a, b):
    """Equal texts, and numbers to 1e-10."""
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            assert_same(a[name], b[name])
    elif isinstance(a, list):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=1e-10, abs=1e-10)
    else:
        assert a == b


def test_merged_halves_are_one_table(halves):
    merged, whole = halves
    assert merged.n_rows == whole.n_rows == 3000
    assert_same(merged.pairs.to_dict(), whole.pairs.to_dict())


def test_files_of_few_labels_merge_to_what_they_are_together(tmp_path):
    """Rows that mostly agree are dealt into folds by their numbers, in each file anew."""
    rng = np.random.default_rng(2)
    paths = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for path, n in zip(paths, (700, 1100), strict=True):
        a = rng.integers(3, size=n)
        b = np.where(rng.random(n) < 0.3, a, rng.integers(3, size=n))
        pd.DataFrame({"a": np.array(list("xyz"))[a], "b": np.array(list("uvw"))[b]}).to_csv(path, index=False)
    first = explore(paths[0])
    assert first.counts.by_number
    merged = first.merge(explore(paths[1], like=first))
    assert_same(merged.pairs.to_dict(), explore(paths, like=first).pairs.to_dict())
    assert_same(merged.pair("a", "b").to_dict(), explore(tmp_path, like=first).pair("a", "b").to_dict())


def test_details_of_merged_halves_are_those_of_one_table(halves):
    merged, whole = halves
    for pair in whole.pairs:
        assert_same(merged.pair(pair["a"], pair["b"]).to_dict(), whole.pair(pair["a"], pair["b"]).to_dict())


def test_what_columns_say_of_each_other_merges(halves):
    told = [
        [{name: value for name, value in row.items() if "distinct" not in name} for row in explored.columns]
        for explored in halves
    ]
    assert_same(*told)


def test_a_file_is_asked_again(tmp_path, halves):
    merged, _ = halves
    merged.save(tmp_path / "table.fg")
    again = fg.load(tmp_path / "table.fg")
    assert again.to_dict() == merged.to_dict()
    assert again.pair("x", "sign $").to_dict() == merged.pair("x", "sign $").to_dict()
    later = explore(table(2), like=again)
    assert_same(again.merge(later).pairs.to_dict(), merged.merge(later).pairs.to_dict())


def test_targets_and_given_columns_are_kept(tmp_path):
    frame = table(3).drop(columns="when").assign(z=np.random.default_rng(4).normal(size=1500))
    explored = explore(frame, target="y", given=["x", "sign $"])
    explored.save(tmp_path / "table.fg")
    again = fg.load(tmp_path / "table.fg")
    assert again.to_dict() == explored.to_dict()
    assert {column["name"] for column in again.columns} == {"x", "y", "z", "sign $", "one"}
    with pytest.raises(ValueError, match="no column"):
        again.pair("x", "(given, together)")
    assert len(again.heatmap().axes[0].get_xticks()) == 4


def test_load_knows_who_declares_what_stands_alone():
    """In a process that has explored nothing yet, `load` imports the room first."""
    for name, room in LATER_ROOMS.items():
        assert getattr(import_module(room), name).is_root
    assert SAVED.keys() >= LATER_ROOMS.keys()


def test_parts_of_results_are_no_files(tmp_path):
    save(explore(table(0, 200)).counts, tmp_path / "counts.fg")
    with pytest.raises(ValueError, match="holds a 'Counts', which is no whole result"):
        fg.load(tmp_path / "counts.fg")


def test_counts_that_do_not_fit_together_are_refused():
    counts = explore(table(0, 200)).counts
    for wrong in ({"tables": counts.tables[:-1]}, {"groups": counts.groups[1:]}, {"scale": counts.scale[1:]}):
        with pytest.raises(ValueError, match="do not fit together"):
            replace(counts, **wrong)


def test_later_files_keep_the_folds_of_the_first():
    first = explore(table(0))
    with fg.options(folds=3):
        later = explore(table(1), like=first)
    assert_same(first.merge(later).pairs.to_dict(), first.merge(explore(table(1), like=first)).pairs.to_dict())


def test_plain_values_are_json(halves):
    plain = halves[0].to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["rows"] == 3000
    assert {"alerts", "columns", "pairs", "rate", "target", "given"} <= plain.keys()


def test_other_cells_do_not_merge():
    with pytest.raises(ValueError, match="like=first"):
        explore(table(0)).merge(explore(table(1)))


def test_a_table_without_pairs():
    explored = explore(pd.DataFrame({"x": np.arange(40) % 5, "one": 1}))
    assert len(explored.pairs) == 0
    assert explored.n_rows == 40
    assert "0 pairs" in repr(explored)
