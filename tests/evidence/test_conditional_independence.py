"""Level, power, exactness and invariance of the tests of conditional independence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, kstest

from featgeo import options
from featgeo.evidence.conditional import conditional_independence_test, contrasts, variance_ratio
from featgeo.features.regression import Residuals
from featgeo.features.scored import Symbols

Draw = Callable[[np.random.Generator, int], tuple]


def pvalues(draw: Draw, n: int, repetitions: int, **options: object) -> np.ndarray:
    samples = (draw(np.random.default_rng([7, seed]), n) for seed in range(repetitions))
    return np.array([conditional_independence_test(*sample, **options).pvalue for sample in samples])


def assert_level(p: np.ndarray, alpha: float = 0.1) -> None:
    """The number of rejections is one that a test of this level has in 999 of 1000 cases."""
    rejections = int((p <= alpha).sum())
    low, high = binom.ppf([0.0005, 0.9995], len(p), alpha)
    assert low <= rejections <= high, f"{rejections} of {len(p)} rejected, due between {low} and {high}"


# Null hypotheses: X and Y depend on S, and on nothing else that they share.


def continuous(rng: np.random.Generator, n: int) -> tuple:
    s = rng.standard_normal((n, 2))
    x = np.tanh(s[:, 0] + s[:, 1]) + 0.5 * rng.standard_normal(n)
    y = np.exp(np.cos(2 * s[:, 0]) + 0.5 * rng.standard_t(5, n))
    return x, y, s


def unequal_variances(rng: np.random.Generator, n: int) -> tuple:
    s = rng.standard_normal(n)
    x, y = (np.abs(s) * rng.standard_normal(n) for _ in range(2))
    return x, y, s


def strongly_confounded(rng: np.random.Generator, n: int) -> tuple:
    s = rng.standard_normal(n)
    x, y = (np.sin(3 * s) + 0.2 * rng.standard_normal(n) for _ in range(2))
    return x, y, s


def mixed(rng: np.random.Generator, n: int) -> tuple:
    s = np.column_stack([rng.standard_normal(n), rng.integers(0, 3, n)])
    x = np.array(["low", "middle", "high"])[np.digitize(s[:, 0] + rng.standard_normal(n), [-0.5, 0.5])]
    y = s[:, 0] * (s[:, 1] == 1) + s[:, 1] + rng.uniform(-1, 1, n)
    return x, y, s


def vectors(rng: np.random.Generator, n: int) -> tuple:
    s = rng.standard_normal((n, 2))
    return s + rng.standard_normal((n, 2)), s[:, ::-1] ** 2 + rng.standard_normal((n, 2)), s


def with_missing(rng: np.random.Generator, n: int) -> tuple:
    x, y, s = continuous(rng, n)
    x[rng.random(n) < 0.2], s[rng.random(n) < 0.1, 0] = np.nan, np.nan
    return x, y[rng.permutation(n)], s


def finite(rng: np.random.Generator, n: int) -> tuple:
    s = rng.integers(0, 3, n)
    return (rng.integers(0, 3, n) + s) % 4, rng.random(n) < 0.2 + 0.2 * s, s


def finite_condition(rng: np.random.Generator, n: int) -> tuple:
    s = rng.integers(0, 4, n)
    return s + rng.standard_normal(n), np.exp(s * rng.standard_normal(n)), s


def no_condition(rng: np.random.Generator, n: int) -> tuple:
    return rng.standard_normal(n), rng.exponential(size=n), None


@pytest.mark.parametrize(
    ("draw", "n"),
    [
        (continuous, 200),
        (unequal_variances, 200),
        (strongly_confounded, 500),
        (mixed, 200),
        (vectors, 200),
        (with_missing, 200),
        (finite, 200),
        (finite, 30),
        (finite_condition, 100),
        (no_condition, 100),
    ],
)
def test_level_holds(draw: Draw, n: int) -> None:
    assert_level(pvalues(draw, n, 60))


def test_level_holds_with_few_rows() -> None:
    assert_level(pvalues(unequal_variances, 30, 200))


def test_pvalues_are_uniform() -> None:
    assert kstest(pvalues(continuous, 150, 120), "uniform").pvalue > 1e-3


def test_chain_is_separated_by_its_middle_and_collider_is_not() -> None:
    def chain(rng: np.random.Generator, n: int) -> tuple:
        x = rng.standard_normal(n)
        s = x**3 + rng.standard_normal(n)
        return x, np.cos(s) + 0.5 * rng.standard_normal(n), s

    def collider(rng: np.random.Generator, n: int) -> tuple:
        x, y = rng.standard_normal((2, n))
        return x, y, np.abs(x + y) + 0.3 * rng.standard_normal(n)

    assert_level(pvalues(chain, 300, 40))
    assert np.mean(pvalues(collider, 300, 30) <= 0.01) > 0.95
    without = lambda rng, n: (*collider(rng, n)[:2], None)  # noqa: E731
    assert_level(pvalues(without, 300, 40))


@pytest.mark.parametrize("finite_s", [False, True])
def test_dependence_whose_sign_changes_with_the_condition_is_found(finite_s: bool) -> None:
    def draw(rng: np.random.Generator, n: int) -> tuple:
        s = rng.integers(0, 2, n) * 2 - 1 if finite_s else rng.standard_normal(n)
        x = rng.standard_normal(n)
        return x, np.sign(s) * x + rng.standard_normal(n), s

    assert np.mean(pvalues(draw, 200, 30) <= 0.01) > 0.9


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_dependence_of_vectors_that_no_pair_of_columns_shows_is_found(kind: str) -> None:
    def draw(rng: np.random.Generator, n: int) -> tuple:
        s = rng.standard_normal(n)
        signs = rng.integers(0, 2, (n, 2)) * 2 - 1
        x = signs if kind == "labels" else signs * rng.uniform(0.5, 1.5, (n, 2))
        return x, signs.prod(axis=1) * 1.0 + rng.standard_normal(n) + s, s

    assert np.mean(pvalues(draw, 300, 20) <= 0.01) > 0.9


# Exactness.


def enumerated_pvalue(x: np.ndarray, y: np.ndarray, s: np.ndarray) -> float:
    """The chi-square statistic summed over strata, over all arrangements of y within the strata, the slow way."""

    def statistic(arranged: np.ndarray) -> float:
        total = 0.0
        for value in np.unique(s):
            inside = s == value
            for a, b in product(np.unique(x[inside]), np.unique(arranged[inside])):
                observed = np.sum(inside & (x == a) & (arranged == b))
                due = np.sum(inside & (x == a)) * np.sum(inside & (arranged == b)) / inside.sum()
                total += (observed - due) ** 2 / due
        return total

    values = []
    for arranged in product(*(permutations(y[s == value]) for value in np.unique(s))):
        whole = np.empty_like(y)
        for value, part in zip(np.unique(s), arranged, strict=True):
            whole[s == value] = part
        values.append(statistic(whole))
    return float(np.mean(np.array(values) >= statistic(y) - 1e-9))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tiny_tables_are_enumerated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    s = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    x, y = rng.integers(0, 2, 9), rng.integers(0, 2, 9)
    evidence = conditional_independence_test(x, y, s, method="strata")
    assert evidence.method == "all permutations within strata"
    assert evidence.pvalue == pytest.approx(enumerated_pvalue(x, y, s))


def test_random_permutations_agree_with_the_limit_where_counts_are_ample() -> None:
    x, y, s = finite(np.random.default_rng(3), 400)
    limit = conditional_independence_test(x, y, s)
    with options(ample_count=10**6):
        permuted = conditional_independence_test(x, y, s)
    assert (limit.method, permuted.method) == ("chi-square within strata", "permutations within strata")
    assert permuted.statistic == pytest.approx(limit.statistic)
    assert permuted.pvalue == pytest.approx(limit.pvalue, abs=0.06)


def test_contrasts_are_an_orthonormal_basis() -> None:
    codes = np.repeat([0, 1, 2, 3], [5, 1, 9, 3])
    values = contrasts(Symbols(codes, 4))
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(values.T @ values / len(codes), np.eye(3), atol=1e-12)


def test_variance_of_sums_of_products_of_residuals() -> None:
    """Against the matrices themselves: sum_ij m_i m_j A_ij B_ij over sum_i m_i^2 A_ii B_ii."""
    rng, n = np.random.default_rng(0), 60

    def left_by_a_regression(r: int, k: int) -> tuple[Residuals, list[np.ndarray]]:
        vectors = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, r))]))[0]
        left = np.vstack([np.zeros(k), rng.uniform(0, 0.9, (r, k))])
        matrices = [np.linalg.matrix_power(np.eye(n) - vectors * (1 - share) @ vectors.T, 2) for share in left.T]
        of_rows = np.column_stack([1 - np.diag(matrix) for matrix in matrices])
        return Residuals(np.empty((n, k)), vectors * np.sqrt(n), 1 - left**2, of_rows), matrices

    (x, a), (y, b) = left_by_a_regression(8, 2), left_by_a_regression(5, 3)
    m = np.column_stack([np.ones(n), rng.standard_normal((n, 2))])
    ratios = variance_ratio(x, y, m)
    for (i, one), (j, other) in product(enumerate(a), enumerate(b)):
        diagonal = np.diag(one) * np.diag(other)
        for q, weight in enumerate(m.T):
            assert ratios[i, j, q] == pytest.approx(weight @ (one * other) @ weight / (weight**2 @ diagonal))


# Invariance.


@pytest.mark.parametrize("draw", [continuous, finite_condition])
def test_monotone_maps_change_nothing(draw: Draw) -> None:
    x, y, s = draw(np.random.default_rng(0), 150)
    plain = conditional_independence_test(x, y, s)
    mapped = conditional_independence_test(np.exp(x), -(y**3), 5 * s + 2)
    assert mapped.statistic == pytest.approx(plain.statistic, rel=1e-6)
    assert mapped.pvalue == pytest.approx(plain.pvalue, rel=1e-6)


def test_names_of_symbols_and_constant_columns_change_nothing() -> None:
    x, y, s = mixed(np.random.default_rng(0), 150)
    plain = conditional_independence_test(x, y, s)
    renamed = np.array([{"low": 7, "middle": 1, "high": 3}[label] for label in x])
    wider = np.column_stack([s, np.ones(150)])
    assert conditional_independence_test(renamed, y, wider).pvalue == pytest.approx(plain.pvalue, abs=0.02)
    assert conditional_independence_test(x, y, np.ones(150)) == conditional_independence_test(x, y, None)


def test_the_seed_decides() -> None:
    x, y, s = finite_condition(np.random.default_rng(0), 100)
    first = conditional_independence_test(x, y, s)
    assert first == conditional_independence_test(x, y, s, random_state=0)
    assert first.pvalue != conditional_independence_test(x, y, s, random_state=1).pvalue


# What the condition determines, and what cannot be tested.


def determined(rng: np.random.Generator, n: int) -> tuple:
    s = rng.standard_normal(n)
    return s**3, s + rng.standard_normal(n), s


def both_determined(rng: np.random.Generator, n: int) -> tuple:
    s = rng.standard_normal(n)
    return s**3, np.sin(2 * s), s


def label_determined(rng: np.random.Generator, n: int) -> tuple:
    s = rng.integers(0, 4, n)
    return s % 2, s + rng.standard_normal(n), s


def jump_determined(rng: np.random.Generator, n: int) -> tuple:
    s = rng.standard_normal(n)
    return s > 0, s + rng.standard_normal(n), s


@pytest.mark.parametrize("draw", [determined, both_determined, label_determined, jump_determined])
def test_what_the_condition_determines_is_independent(draw: Draw) -> None:
    p = pvalues(draw, 200, 40)
    assert np.isfinite(p).all()
    assert (p <= 0.05).sum() <= binom.ppf(0.9995, 40, 0.05)


def test_every_row_a_stratum_of_its_own_is_no_evidence() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 50))
    assert conditional_independence_test(x, y, [f"row {i}" for i in range(50)]).pvalue == 1.0


def test_level_holds_where_rows_are_too_many_to_permute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("featgeo.evidence.conditional.MOST_PERMUTED", 50)
    assert conditional_independence_test(*finite_condition(np.random.default_rng(0), 200)).method.startswith("products")
    assert_level(pvalues(finite_condition, 300, 80))
    assert (pvalues(label_determined, 200, 10) == 1).all()


def many_labels(rng: np.random.Generator, n: int) -> tuple:
    label, effect = rng.integers(0, 60, n), rng.standard_normal(60)
    s = pd.DataFrame({"city": label.astype(str), "u": rng.standard_normal(n)})
    return effect[label] + rng.standard_normal(n), effect[label] + rng.standard_normal(n), s


def one_combination_for_both(rng: np.random.Generator, n: int) -> tuple:
    s = rng.standard_normal((n, 10))
    cause = s.sum(axis=1) / np.sqrt(10)
    return cause + 0.5 * rng.standard_normal(n), np.exp(cause + 0.5 * rng.standard_normal(n)), s


def alike(mean: Callable[[np.ndarray], np.ndarray], columns: Callable[[np.random.Generator, int], np.ndarray]) -> Draw:
    """X and Y that are the same function of S, each with noise of its own."""

    def draw(rng: np.random.Generator, n: int) -> tuple:
        s = columns(rng, n)
        return mean(s) + rng.standard_normal(n), mean(s) + rng.standard_normal(n), s

    return draw


def normal_columns(count: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: rng.standard_normal((n, count))


def nearly_the_same_columns(rng: np.random.Generator, n: int) -> np.ndarray:
    s, apart = rng.standard_normal((2, n))
    return np.column_stack([s, s + 0.05 * apart])


def counts(rng: np.random.Generator, n: int) -> tuple:
    s = rng.standard_normal(n)
    return rng.poisson(np.exp(s)), rng.poisson(np.exp(s)), s


FOLLOWING_S = {
    "labels": (many_labels, 600),
    "a combination": (one_combination_for_both, 500),
    "counts": (counts, 500),
    "a line in skewed columns": (alike(lambda s: s.sum(axis=1), lambda rng, n: rng.lognormal(size=(n, 5))), 300),
    "a line in even columns": (alike(lambda s: s.sum(axis=1), lambda rng, n: rng.uniform(-3, 3, (n, 5))), 500),
    "what differs in columns": (alike(lambda s: 20 * (s[:, 1] - s[:, 0]), nearly_the_same_columns), 300),
    "an even function": (alike(lambda s: 1.4 * np.cos(2 * s.sum(axis=1) / np.sqrt(5)), normal_columns(5)), 500),
    "squares": (alike(lambda s: np.square(s).sum(axis=1) / 2, normal_columns(4)), 600),
    "a jump": (alike(lambda s: 2.0 * (s[:, 0] > 0.3), normal_columns(3)), 600),
    "a fast wave": (alike(lambda s: 1.4 * np.sin(3 * s.sum(axis=1) / np.sqrt(5)), normal_columns(5)), 400),
    "quadrants": (alike(lambda s: 2.5 * np.sign(s[:, 0] * s[:, 1]), normal_columns(4)), 500),
    "boxes": (
        alike(lambda s: 3.0 * ((s[:, 0] > 0) & (s[:, 1] > -0.3)) - 3.0 * (s[:, 2] > 0.5), normal_columns(4)),
        500,
    ),
}


@pytest.mark.parametrize("function", FOLLOWING_S)
def test_level_holds_where_x_and_y_follow_s_alike(function: str) -> None:
    draw, n = FOLLOWING_S[function]
    assert (pvalues(draw, n, 30) <= 0.1).sum() <= binom.ppf(0.9995, 30, 0.1)


def quadrants(share: float) -> Draw:
    """X and Y follow the quadrants of S, and Y a share of what X has beyond them."""

    def draw(rng: np.random.Generator, n: int) -> tuple:
        s, noise = rng.standard_normal((n, 4)), 0.6 * rng.standard_normal((2, n))
        mean = 1.5 * np.sign(s[:, 0] * s[:, 1])
        return mean + noise[0], mean + noise[1] + share * noise[0], s

    return draw


def outcomes(draw: Draw, n: int, repetitions: int, **settings: object) -> tuple[np.ndarray, np.ndarray]:
    """P-values, and which results are doubtful."""
    with options(**settings):
        samples = (draw(np.random.default_rng([7, seed]), n) for seed in range(repetitions))
        found = [conditional_independence_test(*sample) for sample in samples]
    return np.array([one.pvalue for one in found]), np.array([one.doubtful for one in found])


def test_what_regressions_miss_of_x_and_y_alike_is_doubted_and_not_taken_for_dependence() -> None:
    trusting, _ = outcomes(quadrants(0.0), 500, 8, doubted=0.0)
    assert (trusting < 0.05).all()  # what these regressions miss looks like dependence
    pvalues, doubtful = outcomes(quadrants(0.0), 500, 8)
    assert (pvalues > 0.05).sum() >= 7
    assert doubtful.all()
    dependent, _ = outcomes(quadrants(0.8), 500, 8)
    assert (dependent < 0.05).all()


def test_dependence_is_no_reason_for_doubt() -> None:
    def draw(rng: np.random.Generator, n: int) -> tuple:
        x, y, s = continuous(rng, n)
        return x, np.log(y) + x, s

    pvalues, doubtful = outcomes(draw, 300, 10)
    assert (pvalues < 1e-3).all()
    assert doubtful.sum() <= 2


def test_large_pvalues_are_not_doubted() -> None:
    for seed in range(10):
        sample = continuous(np.random.default_rng([7, seed]), 200)
        with options(doubted=0.0):
            trusting = conditional_independence_test(*sample)
        if trusting.pvalue > 0.2:
            assert conditional_independence_test(*sample) == trusting


def test_waves_of_x_are_seen_beside_a_condition_that_does_not_matter() -> None:
    def draw(rng: np.random.Generator, n: int) -> tuple:
        x = rng.standard_normal(n)
        return x, np.sin(6 * x) + 0.5 * rng.standard_normal(n), rng.standard_normal((n, 2))

    assert np.mean(pvalues(draw, 250, 30) <= 0.05) > 0.8


def test_rare_labels_that_never_meet_are_no_evidence() -> None:
    def rare(rng: np.random.Generator, n: int) -> tuple:
        return (rng.random(n) < 0.03) * 1, (rng.random(n) < 0.03) * 1, rng.standard_normal(n)

    assert (pvalues(rare, 1000, 60) <= 0.05).mean() <= 0.1
    x, _, s = rare(np.random.default_rng(0), 1000)
    assert conditional_independence_test(x, x * (np.random.default_rng(1).random(1000) < 0.9), s).pvalue < 1e-3


@pytest.mark.parametrize("columns", [3, 7])
def test_what_is_a_column_of_s_is_independent_of_all_else(columns: int) -> None:
    rng = np.random.default_rng(0)
    s = rng.standard_normal((300, columns))
    y = np.sin(2 * s[:, 0]) + s[:, -1] + 0.5 * rng.standard_normal(300)
    assert conditional_independence_test(np.exp(-s[:, 0]), y, s).pvalue == 1
    assert conditional_independence_test(y, s[:, 0], s).pvalue == 1


def test_errors_say_the_way_out() -> None:
    x, y, s = continuous(np.random.default_rng(0), 50)
    with pytest.raises(ValueError, match="never varies"):
        conditional_independence_test(np.ones(50), y, s)
    with pytest.raises(ValueError, match="same rows"):
        conditional_independence_test(x[:-1], y, s)
    with pytest.raises(ValueError, match="Flatten"):
        conditional_independence_test(np.zeros((50, 3, 3)), y, s)
    with pytest.raises(ValueError, match="group the values of S"):
        conditional_independence_test(x, y, s, method="strata")
    with pytest.raises(ValueError, match="`method` must be 'auto'"):
        conditional_independence_test(x, y, s, method="kernel")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"at least 5 rows for each column.*got 50 rows and 11 columns.*fewer columns"):
        conditional_independence_test(x, y, np.random.default_rng(0).random((50, 11)))
    with pytest.raises(ValueError, match=r"n_permutations.*0.*999"):
        conditional_independence_test(x, y, s, n_permutations=0)
    with pytest.raises(ValueError, match="at least 4 rows"):
        conditional_independence_test([1, 2, 3], [1, 2, 3], [1, 2, 3])


def test_causal_learn_orients_a_collider() -> None:
    from causallearn.search.ConstraintBased.PC import pc

    from featgeo.evidence.causal_learn import register

    a, b, noise, last = np.random.default_rng(0).standard_normal((4, 400))
    c = a**2 + b + 0.5 * noise
    d = np.tanh(c) + 0.3 * last
    graph = pc(np.column_stack([a, b, c, d]), 0.05, indep_test=register(), show_progress=False).G.graph
    arrows = {(i, j) for i, j in product(range(4), repeat=2) if graph[i, j] == -1 and graph[j, i] == 1}
    assert arrows == {(0, 2), (1, 2), (2, 3)}


def test_causal_learn_is_asked_for_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from featgeo.evidence.causal_learn import register

    monkeypatch.setitem(sys.modules, "causallearn.utils.cit", None)
    with pytest.raises(ImportError, match=r"featgeo\[causal\]"):
        register()


@pytest.mark.parametrize("n", range(1, 10))
@pytest.mark.parametrize("kind", ["numbers", "labels", "finite S"])
def test_a_handful_of_rows_gives_a_result_or_the_number_that_is_needed(n: int, kind: str) -> None:
    x, y, s = np.random.default_rng(n).standard_normal((3, n))
    if kind == "labels":
        x = np.array(["a", "b", "c"])[np.arange(n) % 3]
    if kind == "finite S":
        s = np.arange(n) % 2
    least = 2 if n == 1 else 4 if kind == "finite S" or n < 4 else 5
    if n < least:
        with pytest.raises(ValueError, match="never varies" if n == 1 else f"at least {least} rows"):
            conditional_independence_test(x, y, s)
    else:
        assert 0 < conditional_independence_test(x, y, s).pvalue <= 1


def test_y_that_is_x_depends_on_it_unless_s_knows_it() -> None:
    x, s = np.random.default_rng(0).standard_normal((2, 200))
    assert conditional_independence_test(x, x, s).pvalue < 1e-6
    assert conditional_independence_test(x, x, x).pvalue == 1
    assert conditional_independence_test(x, s, np.column_stack([x, x])).pvalue == 1
