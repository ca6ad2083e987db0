"""Tests of independence: they hold their level, see what there is to see, and say what they cannot do."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import chi2_contingency, fisher_exact
from support import rows

from featgeo.evidence import Evidence, independence_test
from featgeo.evidence.blocks import (
    LIMIT_ROWS,
    Ladder,
    added_variance,
    limit_pvalue,
    lone_draws,
    smooth_ladders,
    table_evidence,
)
from featgeo.evidence.shuffling import Shuffling
from featgeo.features.scored import Symbols, orthonormal
from featgeo.features.variables import Variable

REPETITIONS = 300


def mixed(rng, n):
    some = np.where(rng.random(n) < 0.2, np.nan, rng.exponential(size=n))
    return pd.DataFrame({"number": rng.standard_normal(n), "label": rng.choice(list("uvw"), n), "some": some})


INDEPENDENT = {
    "normal": lambda rng, n: rng.standard_normal((2, n)),
    "heavy tails": lambda rng, n: rng.standard_cauchy((2, n)),
    "ties": lambda rng, n: (rng.poisson(2, n), np.round(rng.exponential(size=n), 1)),
    "binary": lambda rng, n: (rng.permutation(n) < n // 5, rng.standard_normal(n)),
    "labels": lambda rng, n: (rng.choice(list("abcde"), n), rng.standard_normal(n)),
    "table": lambda rng, n: (rng.choice(list("abcd"), n, p=[0.5, 0.3, 0.15, 0.05]), rng.choice(list("xyz"), n)),
    "missing": lambda rng, n: (np.where(rng.random(n) < 0.3, np.nan, rng.random(n)), rng.standard_normal(n)),
    "vectors": lambda rng, n: (rng.standard_normal((n, 3)), rng.standard_t(1, (n, 2))),
    "mixed": lambda rng, n: (mixed(rng, n), rng.standard_normal(n)),
}


def assert_uniform(pvalues, at=(0.05, 0.2, 0.5)):
    """No more p-values below each level than a fair test gives, but for one time in ten thousand."""
    for level in at:
        spread = np.sqrt(level * (1 - level) / len(pvalues))
        assert np.mean(np.array(pvalues) <= level) < level + 3.7 * spread


@pytest.mark.parametrize("kind", INDEPENDENT)
def test_level_holds_with_few_rows(kind):
    pvalues = []
    for seed in range(REPETITIONS // (6 if kind in ("vectors", "mixed") else 1)):
        X, Y = INDEPENDENT[kind](np.random.default_rng(seed), 30)
        pvalues.append(independence_test(X, Y, n_permutations=59, random_state=seed).pvalue)
    assert_uniform(pvalues)
    assert np.mean(pvalues) < 0.6  # not so careful that it is of no use


@pytest.mark.parametrize("kind", ["heavy tails", "binary", "labels", "missing"])
def test_level_holds_in_the_limit(kind):
    n, pvalues = LIMIT_ROWS + 500, []
    for seed in range(40):
        evidence = independence_test(*INDEPENDENT[kind](np.random.default_rng(seed), n), random_state=seed)
        pvalues.append(evidence.pvalue)
    assert "limit" in evidence.method
    assert_uniform(pvalues)
    assert abs(np.mean(pvalues) - 0.5) < 0.15


def test_blocks_that_rest_on_few_rows_are_compared_with_arrangements():
    """All features of numbers that are mostly zero rest on the same rows: 50 of 5,000 are zero on neither side."""
    rng = np.random.default_rng(0)

    def mostly(zeros, n):
        return [np.where(rng.random(n) < zeros, 0.0, rng.random(n)) for _ in range(2)]

    assert "arrangements" in independence_test(*mostly(0.9, 5000), n_permutations=9).method
    assert "limit" in independence_test(*mostly(0.5, 5000)).method
    assert "limit" in independence_test(*rng.standard_normal((2, LIMIT_ROWS + 1))).method


def test_added_variance_is_that_of_the_energy_of_blocks():
    n, energies, expected = 400, [], []
    for seed in range(3000):
        rng = np.random.default_rng(seed)
        x, y = (np.where(rng.random((n, 1)) < 0.8, 0.0, rng.standard_normal((n, 3))) / np.sqrt(0.2) for _ in "xy")
        energies.append(np.square(x.T @ y).sum() / n)
        expected.append(added_variance(*(Ladder(features, (3,)) for features in (x, y))).item())
    assert np.mean(expected) == pytest.approx((75**2 - 9**2 - 18) / (18 * n), rel=0.03)  # E|f|^4 = 75 on either side
    assert np.var(energies) / 18 - 1 == pytest.approx(np.mean(expected), abs=0.2)


def test_level_of_the_linear_test_holds():
    few, many = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        few.append(independence_test(rng.standard_t(2, (25, 3)), rng.exponential(size=(25, 2)), method="linear",
                                     n_permutations=79).pvalue)  # fmt: skip
        many.append(independence_test(rng.random((1500, 3)), rng.exponential(size=(1500, 2)), method="linear").pvalue)
    assert_uniform(few)
    assert_uniform(many)


@pytest.mark.parametrize("n", [60, 1500])
def test_monotone_maps_change_nothing(n):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, n))
    evidence = independence_test(x, y + 0.1 * x)
    assert independence_test(np.exp(x), np.arctan(y + 0.1 * x)) == evidence
    assert independence_test(-x, y + 0.1 * x).statistic == pytest.approx(evidence.statistic)


def test_smooth_test_is_symmetric():
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 80))
    assert independence_test(x, y**2 + x).statistic == pytest.approx(independence_test(y**2 + x, x).statistic)


def test_cosines_of_ranks_are_orthonormal_and_the_same_for_any_number():
    values = np.random.default_rng(0).standard_cauchy(100)
    (ladder,) = smooth_ladders(Variable.seen(values, "X").rows(values), 0)
    assert ladder.rungs == (1, 2, 4, 8, 12)
    np.testing.assert_allclose(ladder.features.T @ ladder.features / 100, np.eye(12), atol=1e-12)
    np.testing.assert_allclose(ladder.features.mean(axis=0), 0, atol=1e-12)
    # Cosines of half-waves at the middles of equal steps are orthogonal already.
    level = (np.argsort(np.argsort(values)) + 0.5) / 100
    np.testing.assert_allclose(ladder.features[:, 2], np.sqrt(2) * np.cos(3 * np.pi * level), atol=1e-12)


def test_features_that_add_nothing_are_dropped():
    x = np.random.default_rng(0).standard_normal((50, 2))
    features, ends = orthonormal(np.column_stack([x[:, 0], np.full(50, 7.1), 2 * x[:, 0] - 3, x[:, 1]]), [3, 1])
    assert features.shape == (50, 2)
    assert ends == (1, 2)


@pytest.mark.parametrize("values", [[0, 1], [0, 1, 2]])
def test_numbers_of_few_values_have_as_many_features_as_a_table(values):
    x = np.resize(values, 90)
    (ladder,) = smooth_ladders(Variable.seen(x, "X").rows(x), 0)
    assert ladder.features.shape[1] == len(values) - 1


def exact_pvalue(x, y):
    """Pearson's test by every arrangement of the rows."""

    def statistic(order):
        return chi2_contingency(np.histogram2d(x, y[list(order)], bins=(x.max() + 1, y.max() + 1))[0], False).statistic

    observed = statistic(range(len(x)))
    return np.mean([statistic(order) >= observed - 1e-9 for order in permutations(range(len(x)))])


@pytest.mark.parametrize(
    ("x", "y"), [([0, 0, 1, 1, 2, 2], [0, 0, 0, 1, 1, 2]), ([0, 1, 1, 2, 2, 2], [0, 1, 1, 1, 2, 0])]
)
def test_tiny_tables_are_exact(x, y):
    x, y = np.array(x), np.array(y)
    exact = exact_pvalue(x, y)
    labels = np.array(list("abc"))
    evidence = independence_test(labels[x], labels[y])
    assert "all arrangements" in evidence.method
    assert evidence.pvalue == pytest.approx(exact)
    by_chance = independence_test(labels[x], labels[y], n_permutations=600).pvalue
    assert abs(by_chance - exact) < 4 * np.sqrt(exact * (1 - exact) / 600)


def test_small_two_by_two_tables_are_fishers():
    x, y = rows(np.array([[8, 2], [1, 5]]))
    assert independence_test(x, y).pvalue == pytest.approx(fisher_exact([[8, 2], [1, 5]]).pvalue)


def test_ample_tables_are_pearsons():
    counts = np.array([[30, 20, 25], [15, 40, 22]])
    x, y = rows(counts)
    evidence, classical = independence_test(x, y), chi2_contingency(counts, correction=False)
    assert evidence.statistic == pytest.approx(classical.statistic)
    assert evidence.pvalue == pytest.approx(classical.pvalue)


def test_large_alphabets():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1500, 3000)
    names, others = (np.array([f"{letter}{i}" for i in range(1500)]) for letter in "ab")
    y = np.where(rng.random(3000) < 0.8, x, rng.integers(0, 1500, 3000))
    assert independence_test(names[x], others[y], n_permutations=19).pvalue == 1 / 20
    assert independence_test(names[x], rng.permutation(others[y]), n_permutations=19).pvalue > 1 / 20
    assert independence_test(names, others).pvalue == 1  # every label is new: nothing repeats, nothing can be learned


def test_power_on_a_circle():
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        angle = rng.uniform(0, 2 * np.pi, 100)
        x, y = np.cos(angle) + 0.4 * rng.standard_normal(100), np.sin(angle)
        found += independence_test(x, y, n_permutations=199).pvalue <= 0.05
    assert found >= 38


def test_power_on_waves_of_single_columns_and_on_what_columns_say_together():
    waves, together = 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, noise = rng.uniform(-1, 1, (100, 3)), rng.standard_normal((100, 3))
        waves += independence_test(x, np.sin(4 * np.pi * x) + 0.3 * noise, n_permutations=99).pvalue <= 0.05
        product = np.sign(x[:, 0] * x[:, 1]) + noise[:, 0]
        together += independence_test(x, product, n_permutations=99).pvalue <= 0.05
    assert waves >= 18
    assert together >= 15


DEPENDENT = {
    "label": lambda x, rng: np.where(np.abs(x) > 0.7, "far", "near"),
    "missing": lambda x, rng: np.where(np.abs(x) > 0.7, np.nan, rng.standard_normal(len(x))),
    "vector": lambda x, rng: np.column_stack([rng.standard_normal((len(x), 2)), x**2 + rng.standard_normal(len(x))]),
    "product": lambda x, rng: np.column_stack([(sign := rng.choice([-1, 1], len(x))), x * sign]),
    "mixed": lambda x, rng: mixed(rng, len(x)).assign(number=x + rng.standard_normal(len(x))),
    "tensor": lambda x, rng: torch.from_numpy(x) ** 2,
    "date": lambda x, rng: np.datetime64("2020-01-01") + (1000 * x).astype("timedelta64[D]"),
}


@pytest.mark.parametrize("kind", DEPENDENT)
def test_dependence_is_found_in_columns_of_any_kind(kind):
    rng = np.random.default_rng(3)
    x = rng.standard_normal(150)
    assert independence_test(DEPENDENT[kind](x, rng), x).pvalue <= 0.005


def test_strong_dependence_of_many_rows_gives_tiny_pvalues():
    x, noise = np.random.default_rng(0).standard_normal((2, 5000))
    assert independence_test(x, x**2 + noise).pvalue < 1e-50
    assert independence_test(x, x + noise, method="linear").pvalue < 1e-50


def test_limit_pvalues_are_uniform_and_fall_on_beyond_the_draws():
    draws = lone_draws(((1, 2, 4),), ((1, 3),))
    assert limit_pvalue(draws[len(draws) // 2], draws) == pytest.approx(0.5, abs=1e-3)
    at = np.linspace(draws[-200], draws[-1] + 5, 50)
    pvalues = np.array([limit_pvalue(value, draws) for value in at])
    assert (np.diff(pvalues) <= 0).all()
    assert pvalues[-1] == pytest.approx(10 ** (draws[-100] - at[-1]) * 100 / len(draws))


def test_one_block_is_chi_square():
    """With one feature a side the harmonic mean is the tail of chi-square itself."""
    draws = lone_draws(((1,),), ((1,),))
    for pvalue in (0.5, 0.05, 1e-6):
        assert limit_pvalue(-np.log10(pvalue), draws) == pytest.approx(pvalue, rel=0.1)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_tiny_samples_cannot_convince(n):
    x = np.arange(n)
    assert independence_test(x, x.astype(float), method="smooth").pvalue >= 1 / np.prod(np.arange(1, n + 1))


def test_result():
    evidence = independence_test([0.1, 0.5, 0.2, 0.9], [1.0, 2.0, 4.0, 3.0])
    assert isinstance(evidence, Evidence)
    assert "p = " in str(evidence)
    assert len(str(evidence)) < 100


def test_seeds():
    x, y = np.random.default_rng(0).standard_normal((2, 40))
    assert independence_test(x, y) == independence_test(x, y)
    assert independence_test(x, y, random_state=1) != independence_test(x, y, random_state=2)


@pytest.mark.parametrize(
    ("X", "Y", "options", "message"),
    [
        (np.ones(10), np.arange(10), {}, "X never varies.*Pass rows"),
        (np.arange(10), np.arange(9), {}, r"'X': 10, 'Y': 9.*Align"),
        (np.zeros((10, 4, 4)), np.arange(10), {"method": "smooth"}, r"X must have shape.*\(4, 4\).*Flatten"),
        (np.arange(10), np.arange(10), {"method": "fast"}, "method.*'fast'.*'auto'"),
        (np.arange(10), np.arange(10), {"n_permutations": 0}, "n_permutations.*0.*999"),
        (np.arange(10.0), np.arange(10) % 2, {"method": "table"}, "value of its own.*smooth"),
        (np.random.default_rng(0).random((9, 5)), np.random.default_rng(1).random((9, 4)), {"method": "linear"},
         "5 and 4 features need at least 11 rows, got 9.*method='smooth'"),
    ],
)  # fmt: skip
def test_messages(X, Y, options, message):
    with pytest.raises(ValueError, match=message):
        independence_test(X, Y, **options)


def test_columns_that_are_never_known_or_huge_do_no_harm():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(200)
    y = x + rng.standard_normal(200)
    assert independence_test(np.stack([x, np.full(200, np.nan)], axis=1), y).pvalue < 0.01
    plain, huge = (independence_test(scale * x, y, method="linear") for scale in (1.0, 1e200))
    assert huge.pvalue == pytest.approx(plain.pvalue)


def test_large_tables_are_counted_by_sorting_as_small_ones_in_cells():
    rng = np.random.default_rng(0)
    x, y = (np.unique(rng.integers(0, 2000, 3000), return_inverse=True)[1] for _ in "xy")
    table = np.bincount(x * (y.max() + 1) + y, minlength=(x.max() + 1) * (y.max() + 1)).reshape(x.max() + 1, -1)
    assert table.size > 2**20
    expected = chi2_contingency(table, correction=False).statistic
    found = table_evidence(Symbols.of(x), Symbols.of(y), Shuffling(1, rng))
    assert found.statistic == pytest.approx(expected)
