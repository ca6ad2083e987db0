"""All pairs of a table: exact where columns are finite, near the truth where not, at their level where nothing is."""

from dataclasses import fields
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import featgeo as fg
from featgeo.explore.classic import classic_of
from featgeo.explore.discoveries import benjamini_hochberg
from featgeo.explore.modes import MOST_MODES, leading
from featgeo.explore.pairs import Estimates, estimates_of


def by_names(exploration):
    frame = exploration.pairs.to_frame()
    return {frozenset((row.a, row.b)): row for row in frame.itertuples()}


def test_finite_columns_have_the_modes_of_their_table():
    rng = np.random.default_rng(0)
    law = rng.dirichlet(np.ones(20)).reshape(4, 5)
    cells = rng.choice(20, 4000, p=law.ravel())
    frame = pd.DataFrame({"x": np.array(list("abcd"))[cells // 5], "y": (cells % 5).astype(float)})
    counts = pd.crosstab(frame.x, frame.y).to_numpy()
    assert counts.sum(axis=0).min() >= 10
    assert counts.sum(axis=1).min() >= 10
    (row,) = by_names(fg.explore(frame)).values()
    exact = fg.FiniteJoint(counts)
    assert row.sigma1 == pytest.approx(exact.maximal_correlation(), abs=1e-8)
    assert row.energy == pytest.approx(np.sum(exact.modes(row.n_modes).sigma ** 2), abs=1e-8)


def test_what_is_told_of_a_pair_is_its_own():
    """Pairs are decomposed many at once, in steps and in waves: none is told otherwise for those beside it."""
    rng = np.random.default_rng(14)
    x = rng.standard_normal((3, 3_000))
    frame = pd.DataFrame({"x": x[0], "tied": np.round(4 * (x[0] > 0.7) + 5 * x[1]), "other": x[1] + x[2]})
    frame["label"] = [f"label {place}" for place in np.clip(np.round(6 * x[1] + 4 * (x[0] > 0) + 20), 0, 39)]
    counts = fg.explore(frame).counts
    pairs = list(combinations(range(4), 2))
    together, alone = estimates_of(counts, pairs), Estimates.joined([estimates_of(counts, [pair]) for pair in pairs])
    for part in fields(Estimates):
        assert getattr(together, part.name) == pytest.approx(getattr(alone, part.name), abs=1e-9)


@pytest.mark.parametrize("rho", [0.3, 0.8])
def test_normal_columns_have_their_correlation(rho):
    rng = np.random.default_rng(1)
    x, noise = rng.standard_normal((2, 20_000))
    frame = pd.DataFrame({"x": x, "y": np.exp(rho * x + np.sqrt(1 - rho**2) * noise)})
    (row,) = by_names(fg.explore(frame)).values()
    assert row.strength == pytest.approx(rho, abs=0.02)
    assert row.low <= rho <= row.high
    assert row.mutual_information == pytest.approx(-0.5 * np.log(1 - rho**2), rel=0.06)


def maximal_correlation(function):
    """Of x, uniform, and y = function(x) + a standard normal, on a fine grid."""
    x, y = (np.arange(400) + 0.5) / 400, np.linspace(-6, 6, 300)
    return fg.FiniteJoint(stats.norm.pdf(y - function(x)[:, None])).maximal_correlation()


def test_steps_and_waves_are_seen_where_no_line_is():
    laws = {
        "step": lambda x: np.where((x < 0.23) | ((x > 0.41) & (x < 0.68)), 1.0, -1.0),
        "wave": lambda x: np.cos(9 * np.pi * x),
    }
    rng = np.random.default_rng(2)
    x = rng.uniform(size=20_000)
    frame = pd.DataFrame({"x": x, **{name: law(x) + rng.standard_normal(len(x)) for name, law in laws.items()}})
    found = by_names(fg.explore(frame))
    for name, law in laws.items():
        assert found[frozenset(("x", name))].strength == pytest.approx(maximal_correlation(law), abs=0.02)
    assert abs(found[frozenset(("x", "wave"))].classic) < 0.05
    assert found[frozenset(("step", "wave"))].strength < 0.1


def test_independent_columns_are_rarely_called_dependent():
    reported, pvalues = 0, []
    rare = [0.5, 0.2, 0.1, 0.08, 0.05, 0.04, 0.02, 0.01]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = 200
        frame = pd.DataFrame({
            **{f"n{i}": rng.standard_normal(n) for i in range(4)},
            **{f"t{i}": rng.poisson(1.0, n).astype(float) for i in range(3)},
            **{f"l{i}": rng.choice(list("abcdefgh"), n, p=rare) for i in range(3)},
        })  # fmt: skip
        frame.loc[rng.random(n) < 0.2, "n0"] = np.nan
        table = fg.explore(frame).pairs.to_frame()
        reported += (table.qvalue <= 0.05).any()
        pvalues += table.pvalue.tolist()
    assert reported <= 4
    assert np.mean(np.array(pvalues) < 0.05) == pytest.approx(0.05, abs=0.025)


def test_pearson_is_that_of_rows_that_have_both():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.standard_normal((500, 3)) @ rng.standard_normal((3, 3)) + 1e6, columns=list("abc"))
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    found = by_names(fg.explore(frame))
    for a, b in combinations("abc", 2):
        row = found[frozenset((a, b))]
        both = frame[[a, b]].dropna()
        assert row.rows == len(both)
        assert row.classic == pytest.approx(both.corr().iloc[0, 1], abs=1e-6)


def test_the_order_of_rows_changes_nothing():
    rng = np.random.default_rng(4)
    x = rng.standard_normal(3000)
    frame = pd.DataFrame({"x": x, "y": x**2 + rng.standard_normal(3000), "l": rng.choice(list("abc"), 3000)})
    one, other = (
        fg.explore(some).pairs.to_frame().set_index(["a", "b"])
        for some in (frame, frame.sample(frac=1, random_state=0))
    )
    for name in ("strength", "pvalue", "held_out_energy", "mutual_information"):
        assert np.allclose(one[name], other.loc[one.index, name], atol=1e-10)


def test_rows_that_mostly_agree_still_have_folds():
    """A label and a number that is 0 in a quarter of the rows: equal rows are many, and no fold holds all of a kind."""
    rng = np.random.default_rng(5)
    label = rng.choice(3, 6000)
    number = np.where(rng.random(6000) < 0.25, 0.0, rng.standard_normal(6000) + label)
    (row,) = by_names(fg.explore(pd.DataFrame({"label": np.array(list("abc"))[label], "number": number}))).values()
    assert row.strength == pytest.approx(row.sigma1, abs=0.02)
    assert row.strength > 0.5


def test_rates_are_those_of_scipy():
    pvalues = np.random.default_rng(6).uniform(size=50) ** 3
    assert np.allclose(benjamini_hochberg(pvalues), stats.false_discovery_control(pvalues))
    assert np.allclose(
        benjamini_hochberg(pvalues, any_dependence=True), stats.false_discovery_control(pvalues, method="by")
    )


@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (9, 9), (3, 20)])
def test_leading_modes_are_singular_vectors(shape):
    rng = np.random.default_rng(sum(shape))
    left, right = (np.linalg.qr(rng.standard_normal((4, n, 3)))[0] for n in shape)
    strengths = np.array([0.9, 1e-3, 1e-6])  # and no others: a square root of rounding would be 1e-8
    u, sigma, v = leading(left * strengths @ right.swapaxes(1, 2))
    assert sigma.shape == (4, min(MOST_MODES, *shape))
    assert sigma[:, :3] == pytest.approx(np.tile(strengths, (4, 1)), rel=1e-9)
    assert np.abs(sigma[:, 3:]).max(initial=0.0) < 1e-9
    for found, true in ((u, left), (v, right)):
        assert np.abs(np.einsum("pak,pak->pk", found[..., :3], true)) == pytest.approx(np.ones((4, 3)), abs=1e-8)


def test_what_people_know_is_that_of_scipy_whatever_cells_are_empty():
    rng = np.random.default_rng(5)
    tables = np.zeros((3, 6, 7))
    tables[:, :4, 1:6] = rng.integers(1, 30, (3, 4, 5))
    cramer, by_row, by_column = classic_of(tables, np.array([[True, True], [True, False], [False, True]]))
    assert cramer == pytest.approx(stats.contingency.association(tables[0, :4, 1:6].astype(int), "cramer"))
    for found, table in ((by_row, tables[1]), (by_column, tables[2].T)):
        labels, values = (np.repeat(at.ravel(), table.astype(int).ravel()) for at in np.indices(table.shape))
        ranks = pd.Series(stats.rankdata(values))
        means = ranks.groupby(labels).transform("mean")
        assert found**2 == pytest.approx(means.var() / ranks.var())


@pytest.mark.parametrize("seed", range(4))
def test_many_labels_are_found_to_tell_whether_a_number_is_zero(seed):
    """Of 85 labels and a number that is mostly zero, rough functions of which rest on few rows."""
    rng, n = np.random.default_rng(seed), 3000
    label = rng.choice(85, n, p=rng.dirichlet(np.full(85, 2.0)))
    level = 0.4 * rng.standard_normal(85)[label] + rng.standard_normal(n)
    number = np.where(level < np.quantile(level, 0.7), 0.0, np.exp(level))
    exact = stats.chi2_contingency(pd.crosstab(label, number > 0)).pvalue
    found = fg.explore(pd.DataFrame({"label": [f"label {i}" for i in label], "number": number}), verbose=0)
    assert exact < 1e-6
    assert found.pairs.to_frame()["pvalue"].item() < 1e-6
