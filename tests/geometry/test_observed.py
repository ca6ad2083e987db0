"""Rows that carry only some blocks: what they see of the others, and what they say together."""

import numpy as np
import pytest
from support import best_modes

from featgeo.geometry import FiniteJoint, Moments
from featgeo.geometry.incomplete import span_problem
from featgeo.geometry.spans import Confirmed, LevelChoice, Metric, Patterns
from featgeo.tuning import options

SHAPE = (3, 4, 2)


def rows(n, seed):
    mass = np.random.default_rng(0).dirichlet(np.full(np.prod(SHAPE), 2.0))
    cells = np.random.default_rng(seed).choice(mass.size, size=n, p=mass)
    return dict(zip("aby", np.unravel_index(cells, SHAPE), strict=True))


def moments(values, *names):
    sizes = dict(zip("aby", SHAPE, strict=True))
    blocks = {name: np.eye(sizes[name])[values[name]] for name in names if name in sizes}
    if "ab" in names:
        blocks["ab"] = np.eye(12)[values["a"] * 4 + values["b"]]
    return Moments.from_features(blocks)


def test_tau_is_the_conditional_expectation():
    values = rows(2000, 1)
    metric = Metric.of(moments(values, "a", "b", "ab"), (("a", "b", "ab"),))
    weight = np.random.default_rng(2).normal(size=(3 + 4 + 12, 2))
    features = np.hstack([np.eye(3)[values["a"]], np.eye(4)[values["b"]], np.eye(12)[values["a"] * 4 + values["b"]]])
    f = (features - metric.mean) @ weight
    tau = metric.onto(["a"], weight)(np.eye(3))
    for symbol in range(3):
        np.testing.assert_allclose(tau[symbol], f[values["a"] == symbol].mean(axis=0), atol=1e-10)
    both = metric.onto(["b", "a"], weight)  # the order of the metric counts, not that of the names
    np.testing.assert_allclose(both.centre, metric.mean[:7], atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 0.1, 10.0])
def test_an_interaction_has_mean_0_given_either_source_whatever_the_ridge(ridge):
    metric = Metric.of(moments(rows(2000, 1), "a", "b", "ab"), (("a", "b"), ("ab",)))
    interaction = metric.flag.basis[:, metric.flag.ends[0] :]
    for names in (["a"], ["b"], ["a", "b"]):
        np.testing.assert_allclose(metric.onto(names, interaction, ridge, level=1).weight, 0, atol=1e-12)
    whole = metric.onto(["a", "b", "ab"], interaction, ridge, level=1)
    np.testing.assert_allclose(whole.weight, interaction, atol=1e-12)  # where nothing misses, the same functions


@pytest.mark.parametrize("ridge", [0.0, 0.1, 10.0])
def test_what_is_seen_of_a_level_is_orthogonal_to_the_levels_before_it(ridge):
    rng = np.random.default_rng(3)
    a, b, c = (z[:, None] for z in rng.multivariate_normal(np.zeros(3), np.eye(3) + 0.5, size=400).T ** 3)
    metric = Metric.of(
        Moments.from_features({"a": a, "b": b, "c": c, "ab": a * b, "bc": b * c}), (tuple("abc"), ("ab", "bc"))
    )
    interactions = metric.flag.basis[:, metric.flag.ends[0] :]
    there = ["a", "b", "ab"]
    seen = metric.onto(there, interactions, ridge, level=1)  # of b x c only what a, b and a x b tell
    columns = metric.columns(there)
    with_before = metric.gram[np.ix_(metric.columns(["a", "b"]), columns)] @ seen.weight
    np.testing.assert_allclose(with_before, 0, atol=1e-10)
    assert np.abs(seen.weight).max() > 0.01


def test_blocks_fill_in_for_others_as_far_as_their_dependence_is_confirmed():
    metric = Metric.of(moments(rows(2000, 1), "a", "b", "ab"), (("a", "b"), ("ab",)))
    of_b = np.eye(3 + 4 + 12)[:, 3:7]

    def seen(n_modes, strength):
        choice = Confirmed((("a",), ("b",)), LevelChoice(n_modes), np.array(strength))
        reduced = metric.reduced([choice])
        np.testing.assert_array_equal(reduced.gram, metric.gram)  # what is orthogonal stays so
        return reduced.onto(["a"], of_b).weight

    whole = metric.onto(["a"], of_b).weight
    assert np.linalg.matrix_rank(whole, tol=1e-8) == 2
    np.testing.assert_allclose(seen(2, [1.0, 1.0]), whole, atol=1e-12)  # three symbols have two modes
    np.testing.assert_allclose(seen(2, [0.5, 0.5]), whole / 2, atol=1e-12)
    assert np.linalg.matrix_rank(seen(1, [1.0]), tol=1e-8) == 1
    np.testing.assert_array_equal(seen(0, []), 0)


def test_moments_of_kinds_add_up_kind_by_kind():
    first, second = rows(300, 3), rows(200, 4)
    merged = Patterns.merged([moments(first, "a", "y"), moments(second, "a", "y"), moments(first, "a", "b")])
    assert set(merged.parts) == {frozenset("ay"), frozenset("ab")}
    both = {name: np.concatenate([first[name], second[name]]) for name in "aby"}
    whole = merged.parts[frozenset("ay")]
    np.testing.assert_allclose(whole.covariance("a", "y"), moments(both, "a", "y").covariance("a", "y"), atol=1e-12)
    assert merged.all.weight("a") == 800


@pytest.mark.parametrize(("n_pairs", "pooled"), [(100, False), (5000, True)])
def test_the_metric_is_that_of_complete_rows_unless_pairs_are_much_more_often_seen(n_pairs, pooled):
    complete, pairs = rows(500, 5), rows(n_pairs, 6)
    kinds = [moments(complete, "a", "b", "y"), *(moments(pairs, *names) for names in ("ab", "ay", "by"))]
    patterns = Patterns.merged(kinds)
    weight = patterns.metric(["a", "b", "y"]).weight("a", "b")
    assert weight == (500 + n_pairs if pooled else 500)
    with options(more_pairs=20):
        assert patterns.metric(["a", "b", "y"]).weight("a", "b") == 500


def test_rows_without_one_side_change_the_metric_and_nothing_else():
    values, more = rows(1500, 7), rows(700, 8)
    patterns = Patterns.merged([moments(values, "a", "y"), moments(more, "y")])
    problem = span_problem(patterns, [("a", "y")])
    (modes,) = best_modes(problem, [LevelChoice(None)])
    joint = FiniteJoint.from_samples(a=values["a"], y=values["y"])
    mass = np.bincount(np.concatenate([values["y"], more["y"]]), minlength=2) / 2200
    # The centred density ratio of the rows with both, against P_a and the pooled P_y.
    table, p_a = joint.probability(), joint.probability("a")
    ratio = (table - np.outer(p_a, table.sum(axis=0))) / np.outer(p_a, mass)
    np.testing.assert_allclose((modes.f(np.eye(3)) * modes.sigma) @ modes.g(np.eye(2)).T, ratio, atol=1e-10)


def test_a_ridge_shrinks_the_same_whether_rows_miss_blocks_or_not():
    values = rows(1500, 9)
    complete = span_problem(moments(values, "a", "b", "y"), [(("a", "b"), "y")])
    # Rows that have nothing of x add nothing here but a second kind: the same equation is solved the other way.
    y_only = {"y": values["y"]}
    patterns = Patterns.merged([moments(values, "a", "b", "y"), moments(y_only, "y")])
    # The metric taken for known has no ridge; what fills in for missing blocks is another matter, and none misses here.
    known, filled = (span_problem(patterns, [(("a", "b"), "y")], tau) for tau in (None, 0.1))
    assert known.precision is not None
    for ridge, kinds in ((0.0, known), (0.0, filled), (1e-3, filled), (1.0, filled), (100.0, filled)):
        (one,), (other,) = best_modes(complete, [LevelChoice(1, ridge)]), best_modes(kinds, [LevelChoice(1, ridge)])
        np.testing.assert_allclose(one.sigma, other.sigma, atol=1e-10)
        np.testing.assert_allclose(one.f(np.eye(7)), other.f(np.eye(7)), atol=1e-8)
