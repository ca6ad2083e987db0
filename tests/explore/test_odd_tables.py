"""Tables that nobody should hand in: everything that can be asked of them has an answer."""

import json

import numpy as np
import pandas as pd
import pytest

from featgeo.explore import explore

N = 120
ROW = np.arange(N)
RNG = np.random.default_rng(0)
TABLES = {
    "never together": {"a": np.where(ROW % 2, np.nan, ROW % 9), "b": np.where(ROW % 2, ROW % 7, np.nan)},
    "constant where both are": {"a": np.where(ROW < 60, np.nan, ROW % 7), "b": np.where(ROW < 60, ROW % 5, 3.0)},
    "infinite": {"a": np.where(ROW < 5, np.inf, np.where(ROW > 110, -np.inf, ROW * 0.5)), "b": RNG.normal(size=N)},
    "of any size": {"a": RNG.normal(size=N) * 1e300, "b": RNG.normal(size=N) * 1e-300, "c": 10**15 + ROW % 50},
    "far dates": {"a": pd.to_datetime(RNG.integers(-(10**16), 10**16, N), unit="us"), "b": RNG.normal(size=N)},
    "names of cells as labels": {
        "a": np.where(ROW % 2, "(others)", "(missing)"),
        "b": np.where(ROW % 3, " ", "(others)"),
    },
    "mostly missing": {
        "a": np.where(ROW < 3, ROW, np.nan),
        "b": RNG.normal(size=N),
        "c": np.where(ROW > 100, "x", None),
    },
    "one label, or none": {
        "a": np.where(ROW % 3, "x", None),
        "b": RNG.normal(size=N),
        "c": np.where(ROW % 2, "y", "z"),
    },
    "forty rows": {"a": RNG.normal(size=40), "b": RNG.random(40) < 0.5, "c": RNG.integers(0, 3, 40)},
}


@pytest.mark.parametrize("name", TABLES)
def test_everything_has_an_answer(name):
    explored = explore(pd.DataFrame(TABLES[name]))
    json.dumps(explored.to_dict(), allow_nan=False)
    assert repr(explored)
    assert explored._repr_html_()
    for pair in explored.pairs:
        detail = explored.pair(pair["b"], pair["a"])
        json.dumps(detail.to_dict(), allow_nan=False)
        assert detail.sentence.endswith(".")
        assert detail.negative_mass >= 0


@pytest.mark.parametrize("name", TABLES)
def test_every_pair_has_an_answer_given_a_column_and_given_all_others(name):
    frame = pd.DataFrame(TABLES[name])
    explored = explore(frame.assign(s=RNG.integers(0, 2, len(frame))), given=["s"])
    assert len(explored.direct) == len(explored.pairs)
    assert explored.to_html()


def test_a_label_that_is_the_same_everywhere_is_set_aside():
    explored = explore(pd.DataFrame({"a": ["live birth"] * N, "b": RNG.normal(size=N), "c": RNG.normal(size=N)}))
    assert [column.name for column in explored.compared] == ["b", "c"]
    assert [column.aside for column in explored.about] == ["constant", "", ""]


def test_numbers_near_the_largest_correlate():
    x = RNG.normal(size=N)
    explored = explore(pd.DataFrame({"x": x, "huge": x * 1e300}))
    assert next(iter(explored.pairs))["classic"] == pytest.approx(1)


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_follow_from_each_other_leave_nothing_direct(seed):
    rng = np.random.default_rng(seed)
    kind = rng.choice(30, 2000, p=rng.dirichlet(np.full(30, 0.5)))
    names = {
        f"{word}s": [f"{word} {one // size}" for one in kind] for word, size in (("id", 1), ("name", 1), ("genus", 2))
    }
    explored = explore(pd.DataFrame({**names, "weight": kind + rng.normal(size=2000)}))
    direct = explored.direct.to_frame().set_index(["a", "b"])
    assert np.all(np.isfinite(direct.strength))
    assert direct.loc[("ids", "weight"), "strength"] < 0.2
