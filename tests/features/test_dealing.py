"""Rows dealt into folds: copies together, rows that repeat by right apart."""

from __future__ import annotations

import numpy as np
import pytest

import featgeo as fg
from featgeo.features.variables import Variable, copies_of, cross_fitted, deal
from featgeo.learning.data import Pairs

rng = np.random.default_rng(0)


def pairs(x, y):
    return Pairs(Variable.seen(x, "X").rows(x), Variable.seen(y, "Y").rows(y))


def test_copies_of_a_row_fall_into_the_same_fold():
    x, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    folds = pairs(np.vstack([x, x[::-1], x]), np.concatenate([y, y[::-1], y])).folds(5, seed=1)
    np.testing.assert_array_equal(folds[:50], folds[50:100][::-1])
    np.testing.assert_array_equal(folds[:50], folds[100:])
    assert sorted(np.bincount(folds)) == [30] * 5


def test_rows_that_differ_are_dealt_evenly_and_at_random():
    folds = deal(1003, 5, seed=3)
    assert set(np.bincount(folds)) == {200, 201}
    assert abs(np.corrcoef(folds, np.arange(1003))[0, 1]) < 0.1
    np.testing.assert_array_equal(folds, pairs(rng.normal(size=(1003, 2)), rng.normal(size=1003)).folds(5, seed=3))


def test_equal_rows_stay_together_where_there_are_two_groups_a_fold():
    together = np.repeat(np.arange(10), 3)
    folds = deal(30, 5, 0, together)
    np.testing.assert_array_equal(folds, np.random.default_rng(0).permutation(10)[together] % 5)
    np.testing.assert_array_equal(deal(30, 5, 0, together.clip(max=8)), deal(30, 5, 0))  # nine: each row for itself
    np.testing.assert_array_equal(np.sort(deal(3, 5, 0)), np.arange(3))  # no more folds than rows


def test_favourite_values_of_a_column_are_no_copies():
    x = np.zeros((500, 2))
    x[:200, 0] = rng.exponential(size=200)
    x[:40, 0] = 15_024.0  # a limit that many rows reach, as amounts of money have
    y = (x[:, 0] > 1).astype(float)
    np.testing.assert_array_equal(copies_of(x, y[:, None])[:40], np.arange(40))
    three = rng.normal(size=(500, 3))
    three[1:4] = three[0]  # chance does not make these
    np.testing.assert_array_equal(copies_of(three, np.ones((500, 1)))[:6], [0, 0, 0, 0, 1, 2])


def test_an_x_that_comes_with_several_y_was_drawn_several_times():
    x = np.repeat(rng.normal(size=(40, 2)), 3, axis=0)
    y = np.arange(120.0)
    np.testing.assert_array_equal(copies_of(x, y[:, None]), np.arange(120))
    y[:3] = 7.0  # the first x only ever comes with 7: these rows are copies
    np.testing.assert_array_equal(copies_of(x, y[:, None]), [0, 0, 0, *range(1, 118)])


def test_a_number_that_labels_determine_repeats_with_them():
    """Inspections of 200 firms, each of a size of its own: most are alike, and none is a copy of another."""
    firm, own = rng.integers(200, size=2000), np.random.default_rng(2)
    size, year, y = own.normal(size=200)[firm], own.integers(9, size=2000), own.integers(3, size=2000)
    x = np.column_stack([size, year]).astype(float)
    np.testing.assert_array_equal(copies_of(x, y[:, None].astype(float), firm[:, None]), np.arange(2000))
    # Where each label has a row of its own, twice, that is no reason to think so.
    doubled = np.arange(400) % 200
    groups = copies_of(own.normal(size=(200, 2))[doubled], np.ones((400, 1)), doubled[:, None])
    np.testing.assert_array_equal(groups, doubled)


@pytest.mark.parametrize(
    "x",
    [rng.integers(4, size=400).astype(float), rng.choice(list("abcd"), size=400), rng.choice(list("ab"), (400, 3))],
    ids=["numbers of few values", "labels", "several labels"],
)
def test_variables_of_few_values_are_dealt_row_by_row(x):
    """All rows of a symbol in one fold would leave nothing to learn that symbol from."""
    y = x[:, 0] if x.ndim == 2 else x
    np.testing.assert_array_equal(pairs(x, y).folds(5, seed=0), deal(400, 5, seed=0))


def test_missing_values_and_signed_zeros_compare_equal():
    x = rng.normal(size=(80, 2))
    x[:2] = [[np.nan, 0.0], [np.nan, -0.0]]
    np.testing.assert_array_equal(copies_of(x, np.ones((80, 1))), [0, *range(79)])


def test_a_single_distinct_row_is_dealt_all_the_same():
    assert set(deal(10, 5, seed=0, copies=np.zeros(10, dtype=int))) == {0, 1, 2, 3, 4}


def test_each_row_is_told_by_the_model_that_has_not_seen_it():
    y, fold_of_row = rng.normal(size=(23, 2)), deal(23, 4, seed=2) + 3
    models, told = cross_fitted(
        fold_of_row, lambda out: np.delete(y, out, axis=0).mean(axis=0), lambda mean, out: np.tile(mean, (len(out), 1))
    )
    for fold in range(4):
        np.testing.assert_allclose(models[fold], y[fold_of_row != fold + 3].mean(axis=0))
    np.testing.assert_allclose(told, np.array(models)[fold_of_row - 3])


@pytest.mark.parametrize("space", ["trees", "kernel"])
def test_held_out_correlations_do_not_rise_when_rows_are_doubled(space):
    own = np.random.default_rng(1)
    x = own.normal(size=(900, 4))
    y = x[:, 0] * x[:, 1] + own.normal(size=900)
    once, twice = (
        fg.ModalDecomposition(1, x_space=space, random_state=0)
        .fit(np.vstack([x] * k), np.concatenate([y] * k))
        .held_out_singular_values_[0]
        for k in (1, 2)
    )
    assert twice < once + 0.05
