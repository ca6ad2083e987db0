"""Dependence given columns, and what columns say of a target, against laws that are known."""

import numpy as np
import pandas as pd
import pytest

import featgeo as fg

NOTHING_ELSE = [("x", "y"), ("y", "z"), ("x", "label"), ("y", "label")]  # beside s


@pytest.fixture(scope="module")
def causes():
    return caused(0, 6000)


def caused(seed, n):
    """s causes x and y, which share nothing else; z follows x."""
    rng = np.random.default_rng(seed)
    s = rng.standard_normal(n)
    x, y = np.arctan(s) + 0.5 * rng.standard_normal(n), s**2 + 0.5 * rng.standard_normal(n) * (1 + abs(s))
    z = x + rng.standard_normal(n)
    label = np.where(s + rng.standard_normal(n) > 0, "up", "down")
    return pd.DataFrame({"s": s, "x": x, "y": y, "z": z, "label": label})


def test_what_a_common_cause_makes_vanishes_given_it(causes):
    pairs = fg.explore(causes, given="s").pairs.to_frame().set_index(["a", "b"])
    assert pairs.loc[("x", "y"), "strength"] > 0.25
    for pair in NOTHING_ELSE:
        assert abs(pairs.loc[pair, "strength_given"]) < 0.1
    assert pairs.loc[("x", "z"), "qvalue_given"] < 1e-6
    assert pairs.loc[[pair for pair in pairs.index if "s" in pair], "strength_given"].isna().all()


def test_what_vanishes_is_called_chance_as_often_as_it_says():
    draws = (fg.explore(caused(100 + i, 2000), given="s").pairs.to_frame().set_index(["a", "b"]) for i in range(8))
    small = sum(int(pairs.loc[pair, "pvalue_given"] <= 0.01) for pairs in draws for pair in NOTHING_ELSE)
    assert small <= 2  # of 32; more have a chance of 1 in 250


def test_direct_dependences_are_those_that_others_do_not_pass_on(causes):
    direct = fg.explore(causes).direct.to_frame().set_index(["a", "b"])
    reported = {pair for pair, row in direct.iterrows() if row.qvalue <= 0.05}
    assert {("s", "x"), ("s", "y"), ("s", "label"), ("x", "z")} <= reported
    assert direct.loc[("y", "z"), "strength"] < 0.1


def test_given_a_finite_column_it_is_correlation_within_it():
    rng = np.random.default_rng(1)
    s = rng.choice(3, 3000, p=[0.5, 0.3, 0.2])
    x = rng.random(3000) < 0.2 + 0.3 * s
    y = rng.random(3000) < np.where(x, 0.3, 0.6) - 0.1 * s
    frame = pd.DataFrame({"s": np.array(list("abc"))[s], "x": np.where(x, "t", "f"), "y": np.where(y, "t", "f")})
    found = fg.explore(frame, given="s").pairs.to_frame().set_index(["a", "b"])
    left = [values - pd.Series(values).groupby(s).transform("mean") for values in (x.astype(float), y.astype(float))]
    within = abs(np.corrcoef(*left)[0, 1])
    assert found.loc[("x", "y"), "energy_given"] == pytest.approx(within**2, abs=1e-5)


def test_several_given_columns_count_together():
    """x and y follow the exclusive or of two signs: neither alone tells of them, both together tell all."""
    rng = np.random.default_rng(2)
    a, b = rng.choice([-1.0, 1.0], (2, 6000))
    x, y = a * b + rng.standard_normal(6000), a * b + rng.standard_normal(6000)
    frame = pd.DataFrame({"a": np.where(a > 0, "p", "m"), "b": np.where(b > 0, "p", "m"), "x": x, "y": y})
    pairs = fg.explore(frame, given=["a", "b"]).pairs.to_frame().set_index(["a", "b"])
    assert pairs.loc[("x", "y"), "strength"] > 0.4
    assert pairs.loc[("x", "y"), "pvalue_given"] > 0.01


def every_row(rows=400):
    """All rows of a law: P(y = 1 | u, v) = 0.5 + 0.1 (u - 1) + 0.15 v, with u in 0, 1, 2 and v in -1, 1, uniform."""
    parts = []
    for u in range(3):
        for v in (-1, 1):
            ones = round(rows * (0.5 + 0.1 * (u - 1) + 0.15 * v))
            parts.append(pd.DataFrame({"u": f"u{u}", "v": f"v{v}", "y": ["1"] * ones + ["0"] * (rows - ones)}))
    return pd.concat(parts, ignore_index=True)


def test_energies_of_a_target_are_those_of_the_law():
    rng = np.random.default_rng(3)
    frame = every_row()
    frame["copy"], frame["noise"] = frame.u.str.upper(), rng.standard_normal(len(frame))
    found = fg.explore(frame, target="y").target.to_frame().set_index("column")
    of_u, of_v = 0.01 * (2 / 3) / 0.25, 0.15**2 / 0.25
    assert found.loc["u", "alone"] == pytest.approx(of_u, abs=0.01)
    assert found.loc["v", "alone"] == pytest.approx(of_v, abs=0.01)
    assert found.loc["v", "added"] == pytest.approx(of_v, abs=0.01)
    assert found.loc[["u", "copy"], "added"].to_numpy() == pytest.approx(0, abs=1e-4)  # each has the other
    assert found.loc["noise", "added"] == pytest.approx(0, abs=0.005)
    assert found.loc["v", "pvalue"] < 1e-6
    assert found.loc["noise", "pvalue"] > 0.001


def test_energies_of_a_target_are_neither_too_large_nor_too_small_on_average():
    """Twelve labels that tell nothing would show 11 / 400 on rows they are learned from, and less than 0 on others."""
    rng = np.random.default_rng(7)
    told = []
    for _ in range(25):
        noise, v = rng.choice(list("abcdefghijkl"), 400), rng.choice([-1, 1], 400)
        y = rng.random(400) < 0.5 + 0.15 * v
        frame = pd.DataFrame({"noise": noise, "v": np.where(v > 0, "p", "m"), "y": np.where(y, "t", "f")})
        found = fg.explore(frame, target="y").target.to_frame().set_index("column")
        told.append(found.loc[["noise", "v"], ["alone", "added"]].to_numpy().ravel())
    error = np.std(told, axis=0, ddof=1) / 5
    assert (np.abs(np.mean(told, axis=0) - np.repeat([0, 0.15**2 / 0.25], 2)) < 3 * error).all()
    assert (error[:2] < 0.005).all()


def test_the_fewest_columns_are_found_in_order():
    frame = every_row()
    frame["noise"] = np.random.default_rng(4).standard_normal(len(frame))
    found = fg.explore(frame, target="y")
    assert found.least_set(0.5) == ["v"]
    assert found.least_set(0.95) == ["v", "u"]
    with pytest.raises(ValueError, match="share"):
        found.least_set(0)


def test_targets_that_are_not_there_are_named(causes):
    with pytest.raises(ValueError, match=r"'lable' is none\. Is it one of 'label'"):
        fg.explore(causes, target="lable")
    with pytest.raises(ValueError, match="must not be given"):
        fg.explore(causes, target="x", given=["x", "s"])
    with pytest.raises(TypeError, match="no argument 'seperator'"):
        fg.explore(causes, seperator=";")
    with pytest.raises(ValueError, match="between 0 and 1"):
        fg.explore(causes, rate=5)
    with pytest.raises(ValueError, match="constant or names rows"):
        fg.explore(causes.assign(one="1"), target="one")


def test_where_no_pair_is_left_there_is_nothing_to_say():
    frame = pd.DataFrame(np.random.default_rng(5).standard_normal((300, 2)), columns=["a", "b"])
    found = fg.explore(frame, target="b", given="a")
    assert np.isnan(found.pairs.columns["strength_given"]).all()
    assert len(found.target) == 0
    assert len(fg.explore(frame[["a"]]).direct) == 0


def test_parts_of_a_date_do_not_repeat_where_it_is_missing():
    rng = np.random.default_rng(6)
    x = rng.standard_normal(2000)
    when = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, 2000), "D"))
    frame = pd.DataFrame({"x": x, "when": when.mask(x + rng.standard_normal(2000) > 1)})
    found = fg.explore(frame).pairs.to_frame().set_index(["a", "b"])
    assert found.loc[("x", "when"), "qvalue"] < 1e-6
    assert found.drop(index=("x", "when")).pvalue_missing.isna().all()
    frame["x"] = frame.x.mask(frame.when.isna() & (rng.random(2000) < 0.5))
    found = fg.explore(frame).pairs.to_frame().set_index(["a", "b"])
    assert found.loc[("x", "when"), "pvalue_missing"] < 1e-6
    assert found.drop(index=("x", "when")).pvalue_missing.min() > 0.01
