"""Vectors by their columns: what is left of joint distributions, and columns that are known better."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from support import support_of_numbers

import featgeo as fg
from featgeo.assembly.links import Support

rng = np.random.default_rng(0)
FEW = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]])
MASS = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])


def _few(values: np.ndarray = FEW) -> fg.Conditional:
    """Two distributions over three vectors."""
    prior = np.full(3, 1 / 3)
    return fg.Conditional(Support("rows", values, prior, np.eye(3) - prior, names=("a", "b")), MASS / prior - 1)


def _many(n: int = 400) -> tuple[np.ndarray, fg.Conditional]:
    """Rows of two numbers that depend on each other, the second of which x tells something of."""
    first = rng.standard_normal(n)
    values = np.column_stack([first, first + 0.1 * rng.standard_normal(n)])
    g = np.tanh(values[:, 1:])
    support = Support("rows", values, np.full(n, 1 / n), g - g.mean(axis=0), names=("a", "b"))
    return values, fg.Conditional(support, np.array([[0.0], [0.5], [-0.8]]))


def test_a_column_of_few_values_has_the_sums_of_the_joint_probabilities():
    first, second = (_few().column(i) for i in range(2))
    np.testing.assert_allclose(first.proba(), MASS)
    assert second.classes.tolist() == [1.0, 4.0]
    np.testing.assert_allclose(second.proba(), [[0.8, 0.2], [0.2, 0.8]])
    np.testing.assert_allclose(_few().mean(), np.column_stack([first.mean(), second.mean()]))
    np.testing.assert_allclose(_few().std(), np.column_stack([first.std(), second.std()]))


def test_a_column_of_many_numbers_has_the_distribution_function_of_the_rows():
    values, given = _many()
    mass = given.proba()
    for name, column in zip(("a", "b"), values.T, strict=True):
        at = np.quantile(column, [0.1, 0.5, 0.8])
        expected = np.stack([mass[:, column <= y].sum(axis=1) for y in at], axis=1)
        np.testing.assert_allclose(given.column(name).cdf(at), expected, atol=0.01)  # rows lie about 0.003 apart
        np.testing.assert_allclose(given.column(name).mean(), mass @ column, atol=0.01)


def test_quantiles_and_intervals_are_those_of_the_columns():
    _, given = _many()
    assert given.quantile(0.5).shape == (3, 2)
    np.testing.assert_array_equal(given.quantile([0.1, 0.5])[:, 1], given.column(1).quantile([0.1, 0.5]))
    np.testing.assert_array_equal(given.interval(0.8)[:, 0], given.column("a").interval(0.8))


def test_labels_may_be_among_the_columns():
    given = _few(np.array([["x", 1], ["y", 1], ["x", 2.5]], dtype=object))
    np.testing.assert_allclose(given.column("a").proba(), [[0.7, 0.3], [0.9, 0.1]])
    np.testing.assert_allclose(given.column("b").mean(), MASS @ [1, 1, 2.5])
    assert "x" in repr(given)


def test_another_prior_holds_for_the_columns():
    moved = fg.Conditional(_few()._support, _few()._f, prior=[0.5, 0.5, 0.0])
    np.testing.assert_allclose(moved.column(0).proba(), moved.proba())
    np.testing.assert_allclose(moved.column(1).proba(), [[1, 0]] * 2)


def test_columns_that_are_known_better_are_drawn_as_they_come_together():
    values, given = _many()
    own = [support_of_numbers(np.exp(column), lambda some: np.zeros((len(some), 1))) for column in values.T]
    levels = (rng.permutation(400) + 0.5) / 400
    columns = [fg.Conditional(support, np.zeros((3, 1))) for support in own]
    better = given.with_columns(columns, np.column_stack([levels, 1 - levels]))  # one is large where the other is small
    np.testing.assert_array_equal(better.mean()[:, 1], columns[1].mean())
    np.testing.assert_array_equal(better.std()[:, 1], columns[1].std())
    drawn = better.sample(4000, random_state=0)
    assert drawn.shape == (3, 4000, 2)
    for i, x in np.ndindex(2, 3):
        pit = np.sort(fg.Conditional(own[i], np.zeros((4000, 1))).pit(drawn[x, :, i]))
        np.testing.assert_allclose(pit, np.linspace(0, 1, 4000), atol=0.04)
        assert spearmanr(*drawn[x].T).statistic < -0.999


def test_single_values_have_no_columns():
    with pytest.raises(ValueError, match="single column"):
        _few().column(0).column(0)
