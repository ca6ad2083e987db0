"""The tests given S against their definition, written down slowly in `given_s_by_definition`."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from given_s_by_definition import contrast, left_of, mid_ranks, moment_test, probes, products_test, waves
from scipy.special import ndtri
from scipy.stats import chi2, chi2_contingency
from sklearn.ensemble import RandomForestRegressor

from featgeo.evidence import conditional_independence_test
from featgeo.evidence.shuffling import checked, read_rows
from featgeo.features.regression import Condition
from featgeo.features.trees import out_of_bag
from featgeo.tuning import options


def frame(columns):
    """Symbols become labels."""
    return pd.DataFrame({
        str(i): column if column.dtype.kind == "f" else column.astype(str) for i, column in enumerate(columns)
    })  # fmt: skip


def indices_of(side, s):
    """Ranks along the combinations of S that are found; that they are the right ones is tested elsewhere."""
    if len(s) == 1:
        return [mid_ranks(s[0])]
    (rows,) = checked(*read_rows(S=frame(s)))
    return [index.values for index in Condition(rows, 0).indices(probes(side)[0][:, 0])]


def one_number(rng, n=150):
    s = rng.standard_normal(n) ** 3
    return [np.sin(2 * s) + rng.standard_normal(n)], [np.abs(s) + rng.exponential(size=n)], [s]


def one_even_number(rng, n=110):
    s = rng.uniform(-1, 1, n)
    return [(s + rng.standard_normal(n) > 0) * 1], [(s > 0.2) * 3.0 + (s < -0.5) + rng.standard_normal(n)], [s]


def several(rng, n=160):
    s = [rng.standard_normal(n), rng.integers(0, 2, n), rng.exponential(size=n)]
    s[2][::9] = np.nan
    x = [s[0] + rng.standard_normal(n), s[1] + rng.standard_normal(n)]
    return x, [s[0] * s[1] + rng.standard_normal(n)], s


def missing_in_s(columns):
    """A column of symbols beside a number says where it is missing."""
    expanded = []
    for column in columns:
        gone = np.isnan(column) if column.dtype.kind == "f" else np.zeros(1, bool)
        expanded += [column, gone.astype(np.int64)] if gone.any() else [column]
    return expanded


def many(rng, n=520):
    s = [rng.standard_normal(n) for _ in range(2)]
    return [np.cos(s[0] + s[1]) + rng.standard_normal(n)], [(s[0] > 0.5) * 2 + rng.standard_normal(n)], s


def rare(rng, n=140):
    s = rng.standard_normal(n)
    x, y = (rng.random((2, n)) < 0.04).astype(np.int64)
    x[:4], y[:5] = 1, 1
    return [x], [y], [s]


def several_labels(rng, n=140):
    s = [rng.standard_normal(n), rng.integers(0, 2, n), rng.integers(0, 2, n)]
    return [s[1] + s[2] + rng.standard_normal(n)], [s[2] * 2 + rng.standard_normal(n)], s


def too_few_for_jumps(rng, n=44):
    s = rng.uniform(-1, 1, n)
    return [(s > 0.1) * 3 + rng.standard_normal(n)], [(s > 0.1) * 4 + rng.standard_normal(n)], [s]


def two_jumps(rng, n=190):
    s = rng.standard_normal(n)
    mean = 3.0 * (s > 0.3) - 4.0 * (s > 1)
    return [mean + rng.standard_normal(n)], [(s < -0.4) * 3 + 0.4 * mean + rng.standard_normal(n)], [s]


def twins(rng, n=130):
    s = [rng.standard_normal(n), rng.integers(0, 2, n)]
    return [s[0] + rng.standard_normal(n)], [s[1] * 2 + rng.standard_normal(n), s[0] + rng.exponential(size=n)], s


@pytest.mark.parametrize(
    "draw", [one_number, one_even_number, several, many, rare, several_labels, too_few_for_jumps, two_jumps, twins]
)
def test_products_of_residuals(draw):
    x, y, s = draw(np.random.default_rng(5))
    n = len(y[0])
    with options(doubted=0.0):
        found = conditional_independence_test(frame(x), frame(y), frame(s), method="products")
    some = np.arange(n) if n <= 200 else np.random.default_rng(0).permutation(n)[:200]
    ordered = [*(c for c in s if c.dtype.kind == "f"), *(c for c in s if c.dtype.kind != "f")]
    every = missing_in_s(ordered)
    of_x, of_y = (left_of(side, every, indices_of(side, s), some) for side in (x, y))
    statistic, pvalue = products_test(of_x, of_y, every)
    assert found.statistic == pytest.approx(statistic, rel=1e-5)
    assert found.pvalue == pytest.approx(pvalue, rel=3e-3)  # eigenvectors of which hardly any is taken go unnoticed


def test_products_of_what_trees_leave():
    rng = np.random.default_rng(8)
    s = [rng.uniform(0, 1, 150)]
    x, y = 2 * np.sign(np.sin(30 * s[0])) + rng.standard_normal((2, 150))
    (rows,) = checked(*read_rows(S=s[0]))
    found = conditional_independence_test(x, y, s[0])
    assert found.method.endswith("trees")
    assert found.doubtful
    sides = []
    for side in ([x], [y]):
        targets = probes(side)[0]
        targets = targets - targets.mean(axis=0)
        said = out_of_bag(Condition(rows, 0).positions, targets)
        said = said - said.mean(axis=0)
        slopes = [np.clip(one @ target / (one @ one), 0, 1) for one, target in zip(said.T, targets.T, strict=True)]
        sides.append(left_of(side, s, indices_of(side, s), np.arange(len(x)), said * slopes))
    statistic, pvalue = products_test(*sides, s)
    assert found.statistic == pytest.approx(statistic, rel=2e-3)  # shares of which hardly any is taken go unnoticed
    assert found.pvalue > pvalue  # as much as trees mended may still be missed


def test_trees_say_nothing_of_rows_that_they_have_seen():
    rng = np.random.default_rng(0)
    values, targets = rng.standard_normal((60, 2)), rng.standard_normal((60, 3))
    said = out_of_bag(values, targets)
    model = RandomForestRegressor(25, min_samples_leaf=5, max_features=0.5, max_samples=60, random_state=0)
    seen = [set(rows) for rows in model.fit(values, targets).estimators_samples_]
    for row in range(60):
        trees = [tree for tree, rows in zip(model.estimators_, seen, strict=True) if row not in rows]
        np.testing.assert_allclose(said[row], np.mean([tree.predict(values[[row]])[0] for tree in trees], axis=0))


# Given a finite S.


def centred_within(values, s):
    means = np.vstack([values[s == stratum].mean(axis=0) for stratum in range(s.max() + 1)])
    return values - means[s]


def probes_within(column, s):
    """Probes by the ranks among the rows of the same stratum, times the roots of their weights, centred there."""
    ranks = np.empty(len(s))
    for stratum in np.unique(s):
        ranks[s == stratum] = mid_ranks(column[s == stratum])
    values = np.column_stack([ndtri(ranks), np.sqrt(2) * np.cos(np.pi * np.outer(ranks, np.arange(2, 7)))])
    return centred_within(values, s) * np.arange(1, 7) ** -0.75


def statistic_within(x, y, s):
    """Squared moments over all rows, and by stratum: of functions of S of mean 0, of weight 0.75 together."""
    n, strata = len(s), np.unique(s, return_counts=True)
    plain = np.sum((x.T @ y / n) ** 2)
    # The mean over an orthonormal basis of functions of S is a sum over strata, less what constants hold.
    sums = [x[s == value].T @ y[s == value] for value in strata[0]]
    every = sum(np.sum(one**2) / count for one, count in zip(sums, strata[1], strict=True)) / n
    return n * (plain + 0.75 / (len(strata[0]) - 1) * (every - plain))


def test_numbers_within_strata_are_compared_over_all_arrangements():
    rng = np.random.default_rng(2)
    s = np.array([0, 1, 0, 1, 2, 1, 0, 2, 0])
    x, y = rng.standard_normal((2, 9))
    x = x + y
    found = conditional_independence_test(x, y, s.astype(str), method="strata")
    values = []
    groups = [np.flatnonzero(s == value) for value in range(3)]
    for arranged in product(*(permutations(group) for group in groups)):
        order = np.empty(9, dtype=int)
        for group, rows in zip(groups, arranged, strict=True):
            order[group] = rows
        values.append(statistic_within(probes_within(x, s), probes_within(y[order], s), s))
    assert found.method == "all permutations within strata"
    assert found.statistic == pytest.approx(values[0])
    assert found.pvalue == pytest.approx(np.mean(np.array(values) >= values[0] * (1 - 1e-9)))


def test_many_rows_within_strata_are_compared_with_the_limit_of_products():
    rng = np.random.default_rng(3)
    n = 5100
    s = np.where(rng.random(n) < 0.002, 1, 0)
    s[:3] = 1
    x, y = rng.standard_normal((2, n)) + s
    found = conditional_independence_test(x, y, s.astype(str))
    size = np.bincount(s)[s]
    kept = 1 - 1 / size  # of the variance of a row, once its stratum is centred
    sides = [probes_within(column, s) for column in (x, y)]
    sides = [side / side.std(axis=0) * np.arange(1, 7) ** -0.75 for side in sides]
    ratio = lambda i, j, m: (kept @ m**2) / (kept**2 @ m**2)  # noqa: E731
    statistic, pvalue = moment_test(*sides, contrast(s) * np.sqrt(0.75), ratio)
    assert found.method == "products within strata"
    assert found.statistic == pytest.approx(statistic)
    assert found.pvalue == pytest.approx(pvalue, rel=1e-6)


def test_what_a_finite_s_determines_is_no_evidence_in_the_limit():
    s = np.random.default_rng(0).integers(0, 4, 5200)
    y = np.random.default_rng(1).standard_normal(5200)
    found = conditional_independence_test(s * 1.5, y, s.astype(str))
    assert (found.statistic, found.pvalue) == (0.0, 1.0)


def test_ample_tables_within_strata_add_up():
    """Pearson's statistics of the tables of all strata, and their degrees of freedom; a label may miss in some."""
    rng = np.random.default_rng(4)
    s = rng.integers(0, 3, 900)
    x, y = rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    x[s == 1] %= 2
    y = np.where(rng.random(900) < 0.1, x > 0, y)
    y[s == 2] = 1
    found = conditional_independence_test(x.astype(str), y.astype(str), s.astype(str))
    tables = [pd.crosstab(x[s == value], y[s == value]).to_numpy() for value in (0, 1)]  # of the third, y never varies
    each = [chi2_contingency(table, correction=False) for table in tables]
    assert found.statistic == pytest.approx(sum(one.statistic for one in each))
    assert found.pvalue == pytest.approx(chi2.sf(found.statistic, sum(one.dof for one in each)))
    assert found.method == "chi-square within strata"


@pytest.mark.parametrize("seed", [0, 1])
def test_scarce_tables_within_strata_are_compared_with_random_arrangements(seed):
    rng = np.random.default_rng(seed)
    s = np.repeat([0, 1, 2], [20, 12, 30])
    x, y = rng.integers(0, 3, (2, 62))
    found = conditional_independence_test(x.astype(str), y.astype(str), s.astype(str), n_permutations=60)
    total = 0.0
    for value in range(3):
        table = pd.crosstab(x[s == value], y[s == value]).to_numpy()
        total += chi2_contingency(table, correction=False).statistic
    assert found.statistic == pytest.approx(total)
    assert found.method == "permutations within strata"


# Combinations of the columns of S.


@pytest.mark.parametrize("law", ["even", "steep"])
def test_an_index_explains_as_much_as_the_best_of_all_angles(law):
    rng = np.random.default_rng(1)
    n = 300
    s = rng.exponential(size=(n, 2))
    along = s @ [0.6, -0.8] - 0.1
    target = np.abs(along) if law == "even" else np.tanh(4 * along)
    x = target + 0.3 * rng.standard_normal(n)

    def left(ranks):
        design = np.column_stack([np.ones(n), waves(ranks, 5)])
        first = waves(x, 1)[:, 0]  # what is followed is the leading function of X
        return np.linalg.lstsq(design, first, rcond=None)[1][0]

    scores = (s - s.mean(axis=0)) / s.std(axis=0)
    angles = [left(scores @ [np.cos(a), np.sin(a)]) for a in np.linspace(0, np.pi, 180, endpoint=False)]
    found = indices_of([x], [*s.T])
    assert min(left(index) for index in found) <= 1.02 * min(angles)
