"""Two columns in full: exact for finite columns, honest about chance, the same from merged halves."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from featgeo import FiniteJoint
from featgeo.explore import explore
from featgeo.explore.given_cells import quantiles
from featgeo.explore.regions import adjusted_pvalues


@pytest.fixture(scope="module")
def finite():
    """Labels and few numbers whose joint law is far from a product."""
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(20)).reshape(4, 5)
    drawn = rng.choice(20, size=3000, p=joint.ravel())
    return pd.DataFrame({"letter": np.array(list("abcd"))[drawn // 5], "number": drawn % 5})


@pytest.fixture(scope="module")
def curve():
    """y has its valley at x = 0; z is noise."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=4000)
    return pd.DataFrame(
        {"x": x, "y": x**2 + 0.3 * rng.normal(size=4000), "z": np.random.default_rng(5).normal(size=4000)}
    )


def test_finite_columns_are_exact(finite):
    detail = explore(finite).pair("letter", "number")
    counts = pd.crosstab(finite.letter, finite.number)
    truth = FiniteJoint(counts.to_numpy()).modes()
    np.testing.assert_allclose(detail.sigma, truth.sigma, atol=1e-8)
    table = detail.functions(len(detail.sigma)).to_frame()
    for name, symbols, functions in (("letter", counts.index, truth.f), ("number", counts.columns, truth.g)):
        own = table[table.column == name].set_index("cell").loc[[str(symbol) for symbol in symbols]]
        np.testing.assert_allclose(own.filter(like="mode_"), functions, atol=1e-8)
        np.testing.assert_array_equal(own.rows, counts.sum(axis=1 if name == "letter" else 0))


def test_all_modes_together_are_the_observed_shares(finite):
    detail = explore(finite).pair("letter", "number")
    assert detail.n_modes == 3  # all there are
    for name in ("letter", "number"):
        shares = detail.shares(name).to_frame()
        np.testing.assert_allclose(shares.share, shares.observed, atol=1e-10)
    given = detail.given("letter").to_frame().set_index("cell")
    np.testing.assert_allclose(given["mean"], finite.groupby("letter").number.mean()[given.index], atol=1e-10)
    median = finite.groupby("letter").number.quantile(0.5, interpolation="lower")
    np.testing.assert_allclose(given["q50"], median[given.index])


def test_regions_of_whole_numbers_are_called_by_their_values():
    rng = np.random.default_rng(2)
    nights = rng.geometric(0.3, 3000) ** 2  # the rare ones share cells
    detail = explore(pd.DataFrame({"nights": nights, "price": nights + rng.normal(size=3000)}), verbose=0).pair(
        "nights", "price"
    )
    regions = detail.regions.to_frame().groupby("a")["observed"].sum()
    for name, rows in regions.items():
        first, _, last = name.partition(" to ")
        assert rows == ((nights >= int(first)) & (nights <= int(last or first))).sum()
    assert regions.sum() == 3000


def test_intervals_of_modes_hold_their_strengths(finite):
    detail = explore(finite, verbose=0).pair("letter", "number")
    for held_out in (detail.held_out, detail.sigma[::-1]):  # folds may order modes otherwise
        modes = replace(detail, held_out=held_out.clip(0, 1)).modes.to_frame()
        assert ((modes.low <= modes.held_out) & (modes.held_out <= modes.high)).all()


def test_the_course_is_told_along_the_column_that_tells_more(curve):
    detail = explore(curve, verbose=0).pair("y", "x")
    assert detail.summary["a_from_b"] > 0.5 > detail.summary["b_from_a"]
    assert "As 'x' rises, 'y' first falls and then rises" in detail.sentence


def test_the_other_order_is_the_same_turned(finite):
    explored = explore(finite)
    one, other = explored.pair("letter", "number"), explored.pair("number", "letter")
    np.testing.assert_array_equal(one.table, other.table.T)
    assert one.summary["b_from_a"] == other.summary["a_from_b"]
    np.testing.assert_allclose(*(pair.given("letter").columns["mean"] for pair in (one, other)), rtol=1e-12)
    assert [row["a"] for row in one.regions] == [row["b"] for row in other.regions]


def test_what_is_said_of_a_curve(curve):
    detail = explore(curve).pair("x", "y")
    assert "first falls and then rises" in detail.sentence
    assert detail.summary["b_from_a"] > 0.7 > 0.1 > detail.summary["a_from_b"]
    given = detail.given("x").to_frame()
    inner = given.place.abs() < 1.7
    np.testing.assert_allclose(given["mean"][inner], given.place[inner] ** 2, atol=0.35)
    assert (np.diff(given[["q05", "q25", "q50", "q75", "q95"]], axis=1) >= 0).all()
    # Normal noise of 0.3: nine in ten rows are within 0.49 of the middle; cells and modes blur it a little.
    width = (given.q95 - given.q05)[given.place.abs() < 1]
    assert 0.8 < width.mean() < 1.6
    top = next(iter(detail.regions))
    assert top["observed"] > 3 * top["expected"]
    assert top["pvalue"] < 1e-10
    assert top["residual"] > detail.residual_bound


def test_a_dependence_of_few_rows_is_told_by_these_rows():
    rng = np.random.default_rng(3)
    minutes, calls = rng.uniform(1, 20, 4000).round(1), rng.poisson(4, 4000) + 1
    minutes[:20] = calls[:20] = 0
    day, place = rng.integers(0, 4000, 4000), rng.standard_normal(4000)
    there = (day > 3000) & (day <= 3030)
    place[there] = rng.uniform(3.5, 3.6, there.sum())
    explored = explore(pd.DataFrame({"minutes": minutes, "calls": calls, "day": day, "place": place}), verbose=0)
    few = "It is strongest in few rows: 'minutes' = 0 with 'calls' = 0, 20 rows where 0.1 were expected."
    assert few in explored.pair("minutes", "calls").sentence
    burst = re.search(
        r"few rows: 'day' from (\d+) to (\d+) with 'place' from ([\d.]+) to", explored.pair("day", "place").sentence
    )
    assert 2970 <= int(burst[1]) <= 3001
    assert 3029 <= int(burst[2]) <= 3060
    assert float(burst[3]) > 2.5


def test_what_is_told_of_a_column_that_is_next_to_a_function_of_another():
    """More modes of strength 1 than are looked at: none may be lost."""
    x = np.random.default_rng(6).normal(size=3000)
    detail = explore(pd.DataFrame({"x": x, "y": -x + 0.01 * np.random.default_rng(7).normal(size=3000)})).pair("x", "y")
    assert "many ways at once" in detail.sentence
    assert "'y' falls as 'x' rises." in detail.sentence
    assert min(detail.summary["b_from_a"], detail.summary["a_from_b"]) > 0.98
    given = detail.given("x").to_frame()
    inner = given.place.abs() < 2
    np.testing.assert_allclose(given["mean"][inner], -given.place[inner], atol=0.12)
    assert (given.q95 - given.q05)[inner].mean() < 0.5


def test_chance_is_called_chance(curve):
    detail = explore(curve).pair("x", "z")
    assert not detail.depends
    assert "may well be independent" in detail.sentence
    assert "may be chance" in repr(detail)
    assert min(row["pvalue"] for row in detail.regions) > 0.05
    assert detail.residual_bound == pytest.approx(3.36, abs=0.05)  # 64 regions together, at 95 %


def test_dates_are_told_as_dates():
    rng = np.random.default_rng(2)
    when = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 300, 2000), unit="D")
    frame = pd.DataFrame({"when": when, "level": (when - when.min()).days + rng.normal(size=2000)})
    detail = explore(frame).pair("level", "when")
    assert "'when' rises with 'level'" in detail.sentence
    middle = [row["q50"] for row in detail.given("level")]
    assert middle[0] < "2021-04" < "2021-12-01" < middle[-1]
    assert detail.given("when").to_frame().place.iloc[0].startswith("2021-03-0")
    json.dumps(detail.to_dict(), allow_nan=False)


def test_names_that_are_no_columns(curve):
    explored = explore(curve.assign(Income=curve.x, one=1))
    with pytest.raises(ValueError, match=r"no column 'income'. Did you mean 'Income'"):
        explored.pair("income", "x")
    with pytest.raises(ValueError, match=r"no column 'qqq'. The table has 'x', 'y'"):
        explored.pair("x", "qqq")
    with pytest.raises(ValueError, match="'one' is not compared with others: constant"):
        explored.pair("one", "x")
    with pytest.raises(ValueError, match="two columns"):
        explored.pair("x", "x")
    with pytest.raises(ValueError, match="Name one of the two"):
        explored.pair("x", "y").given("z")
    with pytest.raises(ValueError, match="Use given"):
        explored.pair("x", "y").shares("x")


def test_odd_names_stay_what_they_are():
    rng = np.random.default_rng(3)
    x = rng.normal(size=500)
    names = ["a\nb", "$x$ {0} %s", "", "日本 <b>", "'quoted'"]
    frame = pd.DataFrame({name: x + rng.normal(size=500) for name in names if name})
    explored = explore(frame)
    detail = explored.pair("a\nb", "$x$ {0} %s")
    assert detail.depends
    assert "\n" not in detail.sentence
    assert "a\\nb" in repr(detail)
    assert {row["column"] for row in detail.functions()} == {"a\nb", "$x$ {0} %s"}
    assert "<b>" not in explored.pair("日本 <b>", "'quoted'")._repr_html_().replace("<b>&#x27;", "")
    json.dumps(explored.to_dict(), allow_nan=False)


@pytest.mark.parametrize("n", [12, 60, 500])
def test_tails_of_regions_are_exact(n):
    """Of a table of two by two they are Fisher's."""
    from scipy.stats import hypergeom

    rng = np.random.default_rng(n)
    table = rng.multinomial(n, [0.5, 0.2, 0.2, 0.1]).reshape(2, 2).astype(float)
    count, of_a, of_b = table[0, 0], table[0].sum(), table[:, 0].sum()
    law = hypergeom(n, of_a, of_b)
    tail = law.sf(count - 1) if count * n >= of_a * of_b else law.cdf(count)
    assert adjusted_pvalues(table)[0, 0] == pytest.approx(min(8 * tail, 1), rel=1e-9)


def test_regions_of_independent_columns_stay_within_their_bound():
    rng = np.random.default_rng(4)
    beyond = 0
    for _ in range(400):
        rows = rng.choice(6, 200, p=[0.4, 0.3, 0.2, 0.05, 0.03, 0.02])
        columns = rng.choice(5, 200, p=[0.6, 0.2, 0.1, 0.07, 0.03])
        table = np.zeros((6, 5))
        np.add.at(table, (rows, columns), 1)
        beyond += adjusted_pvalues(table).min() <= 0.05
    assert beyond <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05 * 0.95)


def test_quantiles_of_cells():
    spans = np.array([[0.0, 0.0], [1.0, 3.0]])  # an atom, and a stretch
    found = quantiles(np.array([[0.5, 0.5], [np.nan, np.nan]]), spans, (0.25, 0.5, 0.75, 1.0))
    np.testing.assert_allclose(found[0], [0, 0, 2, 3])
    assert np.isnan(found[1]).all()
