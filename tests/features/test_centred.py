"""Functions of mean 0 given a variable: exact for a finite one, close to the truth for numbers."""

from __future__ import annotations

import numpy as np
import pytest
from support import Computed

from featgeo.features import regression
from featgeo.features.regression import CentredSpace, mean_given
from featgeo.features.variables import Parts, Variable


def _side(**variables: np.ndarray) -> Parts:
    return Parts({name: Variable.seen(values, name).rows(values) for name, values in variables.items()})


def _of_s_and_y(side: Parts) -> np.ndarray:
    """Three functions of (s, y), in very different units, the last the sum of the others."""
    s, y = (side.of(name).table for name in ("s", "y"))
    s, y = (np.hstack([table.numbers, table.codes])[:, 0].astype(float) for table in (s, y))
    first, second = np.sin(s) + s * y, 1e3 * (y**2 + 3 * s)
    return np.column_stack([first, second, first + second])


@pytest.fixture
def finite():
    rng = np.random.default_rng(0)
    return _side(s=rng.choice(list("abcd"), 300), y=rng.standard_normal(300))


def test_means_given_a_finite_variable_are_the_means_of_its_groups(finite):
    values = _of_s_and_y(finite)
    found = mean_given("s", finite, values, seed=0)(finite)
    groups = finite.of("s").table.codes[:, 0]
    for group in np.unique(groups):
        rows = groups == group
        np.testing.assert_allclose(found[rows], np.tile(values[rows].mean(axis=0), (rows.sum(), 1)), atol=1e-9)


def test_centred_functions_are_orthogonal_to_every_function_of_the_variable(finite):
    space = CentredSpace.fit(Computed(_of_s_and_y), "s", finite, seed=0)
    values = space(finite)
    indicators = np.eye(4)[finite.of("s").table.codes[:, 0]]
    np.testing.assert_allclose(indicators.T @ values / 300, 0, atol=1e-9)
    np.testing.assert_allclose(values + space.mean(finite), _of_s_and_y(finite), atol=1e-9)
    fresh = Parts({name: rows.take(slice(0, 5)) for name, rows in finite.rows.items()})
    np.testing.assert_allclose(space(fresh), values[:5], atol=1e-9)


def test_targets_that_do_not_vary_keep_their_mean(finite):
    values = np.column_stack([np.full(300, 7.0), finite.of("y").table.numbers[:, 0]])
    found = mean_given("s", finite, values, seed=0)(finite)
    np.testing.assert_allclose(found[:, 0], 7.0, rtol=1e-12)


@pytest.mark.parametrize(("n", "used"), [(400, 400), (3000, 1000)])
def test_means_given_a_number_follow_the_regression_function(n, used, monkeypatch):
    monkeypatch.setattr(regression, "MOST_ROWS", used)
    rng = np.random.default_rng(1)
    s = rng.standard_normal(n)
    y = np.sin(2 * s) + 0.3 * rng.standard_normal(n)
    side = _side(s=s, y=y)
    found = mean_given("s", side, np.column_stack([y, 100 * y + 5]), seed=0)(side)
    inside = np.abs(s) < 2
    error = np.sqrt(np.mean((found[inside, 0] - np.sin(2 * s[inside])) ** 2))
    assert error < 2 / np.sqrt(used)  # noise of 0.3 and some ten functions: 0.95 over the root of the rows
    np.testing.assert_allclose(found[:, 1], 100 * found[:, 0] + 5, rtol=1e-6)


def test_errors_are_small_beside_every_sum_of_the_targets():
    """Two targets that nearly cancel: what is left of them is regressed as well as if it stood alone."""
    rng = np.random.default_rng(2)
    s = rng.standard_normal(1000)
    small = 1e-3 * (np.cos(2 * s) + 0.2 * rng.standard_normal(1000))
    large = rng.standard_normal(1000)
    side = _side(s=s)
    both = mean_given("s", side, np.column_stack([large, large + small]), seed=0)(side)
    alone = mean_given("s", side, small[:, None], seed=0)(side)[:, 0]
    difference = both[:, 1] - both[:, 0]
    assert np.sqrt(np.mean((difference - alone) ** 2)) < 0.15 * alone.std()


def test_images_are_no_variables_to_regress_on():
    images = np.zeros((10, 4, 4, 3), dtype=np.float32) + np.arange(10)[:, None, None, None]
    side = _side(s=images, y=np.arange(10.0))
    space = Computed(lambda parts: parts.of("y").table.numbers)
    assert CentredSpace.fit(space, "s", side, seed=0) is space
