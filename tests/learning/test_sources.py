"""Several sources, some missing: levels that do not depend on later ones, and rows that are fitted as they are."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from support import best_modes

import featgeo as fg
from featgeo.features.variables import Parts, Variable
from featgeo.geometry.incomplete import span_problem
from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import LevelChoice, Metric, Patterns
from featgeo.learning.data import Incomplete
from featgeo.learning.learned import Component
from featgeo.learning.setting import Plan
from featgeo.learning.source_blocks import SourceBlocks
from featgeo.learning.sources import learn_sources

SINGLES = (("a",), ("b",), ("c",))
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))


def incomplete(n, seed, holes):
    """Rows of three numbers and y, cells missing at random."""
    rng = np.random.default_rng(seed)
    a, c = rng.normal(size=(2, n))
    b = 0.6 * a + rng.normal(size=n)
    values = {"a": a, "b": b, "c": c, "y": a + a * b + 0.5 * c + 0.5 * rng.normal(size=n)}
    there = {name: (rng.random(n) >= holes) | (name == "y") for name in values}
    rows = {name: Variable.seen(z[there[name]], name).rows(z[there[name]]) for name, z in values.items()}
    where = {name: np.where(mask, np.cumsum(mask) - 1, -1) for name, mask in there.items()}
    return Incomplete(rows, where)


def learned(data, *orders):
    groups = [group for order in orders for group in order]
    blocks = SourceBlocks(data, dict.fromkeys("abc", "auto"), "auto", groups, Plan())
    return learn_sources(blocks, orders, [3] * len(orders))


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_the_first_level_is_the_same_whatever_comes_after_it(holes):
    data = incomplete(500, 0, holes)
    alone, with_pairs = learned(data, SINGLES), learned(data, SINGLES, PAIRS)
    first, same = alone.components[0], with_pairs.components[0]
    assert len(with_pairs.components[1])  # there is an interaction, and it changes nothing
    assert_allclose(same.sigma, first.sigma, rtol=1e-9)
    rows = data.take(data.having("a", "b", "c"), "a", "b", "c")
    assert_allclose(same.f(rows), first.f(rows), atol=1e-7)
    k = len(first)
    some = data.take(data.having("a", "b"), "a", "b")  # c filled in from functions of a and of b, not of both
    assert_allclose(with_pairs.features(some)[:, :k], alone.features(some), atol=1e-7)


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_interactions_say_nothing_to_rows_of_one_source(holes):
    data = incomplete(500, 0, holes)
    model = learned(data, SINGLES, PAIRS)
    first = len(model.components[0])
    assert model.features.ridge > 0
    assert len(model.components[1])
    for source in "abc":
        seen = model.features(data.take(data.having(source), source))
        assert np.all(seen[:, first:] == 0)  # E[f | one source] = 0, to the last digit
        assert np.std(seen[:, 0]) > 0.01


def blocks_of(n, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, 3))
    b = a @ rng.normal(size=(3, 2)) + rng.normal(size=(n, 2))
    return {"a": a, "b": b, "y": (a[:, 0] + b[:, 1] + 4 * rng.normal(size=n))[:, None]}


def some_of(blocks, *names):
    return {name: blocks[name] for name in names}


ROWS = [(300, 1), (200, 2), (150, 3)]  # of each kind, and their seeds
KINDS = [("a", "b", "y"), ("a", "y"), ("b", "y")]


@pytest.mark.parametrize("tau_ridge", [0.0, 1e-2, 1.0])
def test_rows_that_miss_blocks_are_fitted_by_least_squares_with_what_they_miss_filled_in(tau_ridge):
    parts = [some_of(blocks_of(n, seed), *names) for (n, seed), names in zip(ROWS, KINDS, strict=True)]
    patterns = Patterns.merged(Moments.from_features(part) for part in parts)
    (modes,) = best_modes(span_problem(patterns, [(("a", "b"), "y")], tau_ridge), [LevelChoice(1)])
    metric = Metric.of(patterns.metric(["a", "b"]), (("a", "b"),))
    filled = [metric.onto(names[:-1], np.eye(5), tau_ridge) for names in KINDS]
    z = np.vstack([map_(np.hstack([part[n] for n in names[:-1]]))
                   for map_, part, names in zip(filled, parts, KINDS, strict=True)])  # fmt: skip
    y = np.vstack([part["y"] for part in parts])
    expected = np.linalg.lstsq(z, y - y.mean(), rcond=None)[0]
    assert_allclose((modes.f.weight * modes.sigma) @ modes.g.weight.T * y.var(), expected, atol=1e-8)


def test_complete_rows_are_a_kind_like_any_other():
    blocks = blocks_of(300, 4)
    levels = [("a", "y"), (("a", "b"), "y")]
    complete = span_problem(Moments.from_features(blocks), levels)
    # Rows with y alone say nothing here, but make several kinds of one.
    kinds = Patterns.merged([Moments.from_features(blocks), Moments.from_features({"y": blocks["y"]})])
    for ridge in (1e-6, 1e-2, 1.0):
        others = best_modes(span_problem(kinds, levels, 0.1), [LevelChoice(1, ridge)] * 2)
        for one, other in zip(best_modes(complete, [LevelChoice(1, ridge)] * 2), others, strict=True):
            assert_allclose(other.sigma, one.sigma, atol=1e-9)
            assert_allclose(other.f.weight, one.f.weight, atol=1e-7)


def test_a_later_level_is_fitted_to_what_the_first_leaves_over():
    parts = [some_of(blocks_of(n, seed), *names) for (n, seed), names in zip(ROWS, KINDS, strict=True)]
    parts[0]["ab"] = parts[0]["a"][:, :2] * parts[0]["b"]
    patterns = Patterns.merged(Moments.from_features(part) for part in parts)
    (alone,) = best_modes(span_problem(patterns, [(("a", "b"), "y")], 0.1), [LevelChoice(1)])
    problem = span_problem(patterns, [(("a", "b"), "y"), (("a", "b", "ab"), "y")], 0.1)
    first, second = best_modes(problem, [LevelChoice(1)] * 2)
    assert_allclose(first.f.weight[:5] * first.sigma, alone.f.weight * alone.sigma, atol=1e-9)
    assert_allclose(first.f.weight.T @ problem.x.gram @ second.f.weight, 0, atol=1e-9)
    # In coordinates of the flag: what is left over is orthogonal to all that the second level could add.
    (left, sigma, right), (left_2, sigma_2, right_2) = problem.best_directions([LevelChoice(1)] * 2)
    explained = (left * sigma) @ right.T + (left_2 * sigma_2) @ right_2.T
    left_over = problem.right - problem.precision @ explained
    assert_allclose(left_over[problem.x.flag.ends[0] :], 0, atol=1e-9)


def test_rows_without_an_interaction_change_nothing_about_it():
    parts = [some_of(blocks_of(n, seed), *names) for (n, seed), names in zip(ROWS, KINDS, strict=True)]
    parts[0]["ab"] = parts[0]["a"][:, :2] * parts[0]["b"]
    patterns = Patterns.merged(Moments.from_features(part) for part in parts)
    problem = span_problem(patterns, [(("a", "b"), "y"), (("a", "b", "ab"), "y")], 0.1)
    singles = problem.x.flag.ends[0]
    for kind in problem.rows:
        if kind.inside is not None:
            assert np.all(kind.inside[singles:] == 0)
            assert np.abs(kind.inside[:singles]).max() > 0.1
    # Beside the first level, only complete rows say what the second is.
    complete = problem.rows[0]
    assert_allclose(problem.precision[singles:], complete.share * complete.gram[singles:], atol=1e-12)
    assert_allclose(problem.right[singles:], complete.share * complete.covariance[singles:], atol=1e-12)


@pytest.mark.parametrize("together", [False, True])
def test_a_source_speaks_for_another_only_where_held_out_rows_confirm_that_they_depend(together):
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(2, 2000))
    b = a + 0.3 * b if together else b
    y = a + b + rng.normal(size=2000)
    few, first, second = slice(0, 200), slice(200, 1100), slice(1100, 2000)
    parts = [{"a": a[few], "b": b[few]}, {"a": a[first]}, {"b": b[second]}]
    datasets = [{**part, "y": y[rows]} for part, rows in zip(parts, (few, first, second), strict=True)]
    model = fg.MultimodalDecomposition(1, max_order=1, random_state=0).fit_datasets(datasets)
    own = model.learned_[0].features.parts(
        Parts({name: model.variables_[name].rows({"a": a, "b": b}[name]) for name in "ab"})
    )
    filled_in = model.transform({"a": a}) - own["a"]
    if together:
        assert np.corrcoef(filled_in[:, 0], own["b"][:, 0])[0, 1] > 0.8
    else:
        assert_allclose(filled_in, 0, atol=1e-9)


def test_labels_of_which_some_are_rare_do_not_explode():
    rng = np.random.default_rng(8)
    n = 1500
    share = 1 / np.arange(1, 15) ** 2.2
    a, b, c = (rng.choice(14, size=n, p=share / share.sum()) for _ in range(3))
    b = np.where(rng.random(n) < 0.5, a, b)  # of rare pairs all that is known is one row
    y = rng.random(n) < 1 / (1 + np.exp(3 - 3 * (a % 3) - 2 * (b % 2) + 2 * (c % 2)))
    frame = pd.DataFrame({"a": a, "b": b, "c": c}).map(lambda label: f"label {label}")
    holes = frame.mask(rng.random(frame.shape) < 0.3)
    train, test = slice(0, 1000), slice(1000, n)
    models = [fg.MultimodalDecomposition(max_order=k, random_state=0).fit(dict(holes[train]), y[train]) for k in (1, 2)]
    for model in models:
        proba = model.given(**dict(holes[test])).proba()[:, 1]
        assert proba[y[test]].mean() > proba[~y[test]].mean() + 0.1
        assert all(row.held_out > -row.energy - 0.02 for row in model.energies())
        assert model.bivariate_.held_out_energy_ > 0.5 * model.bivariate_.energy_


def test_sources_that_know_nothing_give_the_prior_and_say_so():
    rng = np.random.default_rng(9)
    a, b = rng.normal(size=(2, 400))
    y = rng.integers(0, 2, 400)
    with pytest.warns(UserWarning, match="confirm no mode"):
        model = fg.MultimodalDecomposition(random_state=0).fit({"a": a, "b": b}, y)
    assert model.bivariate_.energy_ == 0
    assert_allclose(model.given(a=a[:5]).proba()[:, 1], y.mean(), atol=1e-12)
    assert "than in no dependence at all" in str(model.report())
    assert "none of them kept" in str(model.report())


@pytest.mark.parametrize(
    ("scores", "kept"),
    [([0.2, 0.1], 2), ([0.2, -0.1], 2), ([0.1, -0.3], 1), ([-0.3, 0.1], 0), ([-0.1, -0.1], 0), ([-0.2, 0.3], 2)],
)
def test_modes_stay_unless_nothing_would_be_better(scores, kept):
    by_fold = np.array([scores, scores])
    function = fg.MultimodalDecomposition  # never called
    component = Component(np.array([0.5, 0.4]), function, function, by_fold, 2 * by_fold.sum(axis=1), by_fold, by_fold)
    assert component.sound() == kept
