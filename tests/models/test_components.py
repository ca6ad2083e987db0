"""What models show of components, of leaks, and of functions at pairs of s and y: by the formulas they state."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from featgeo import leakage
from featgeo.features.combined import PartSpace, ProductSpace
from featgeo.features.regression import CentredSpace
from featgeo.features.spaces import KernelSpace, SideBySide, SpanFunction, SplineSpace
from featgeo.features.variables import Parts, Variable
from featgeo.geometry.spans import AffineFeatures
from featgeo.learning.learned import Component
from featgeo.models import given_s
from featgeo.models.base import DependenceComponent, mean_and_error
from featgeo.models.leakage import Leakage, _linear


def test_means_over_folds_come_with_their_standard_errors():
    folds = np.array([[0.1, 1.0], [0.3, 2.0], [0.8, 6.0]])
    mean, error = mean_and_error(folds)
    np.testing.assert_allclose(mean, [0.4, 3.0])
    np.testing.assert_allclose(error, [np.sqrt(0.13 / 3), np.sqrt(7 / 3)])  # sample variances 0.13 and 7
    mean, error = mean_and_error(folds[:1])
    np.testing.assert_array_equal(mean, folds[0])
    assert np.isnan(error).all()
    assert all(np.isnan(part).all() for part in mean_and_error(folds[:0]))


def test_a_component_shows_its_energy_fitted_and_held_out():
    part = Component(np.array([0.6, 0.3]), None, None, np.array([[0.5, 0.2], [0.7, 0.0]]), np.array([0.3, 0.5]), None)
    shown = DependenceComponent.of("main", part)
    assert shown.energy_ == pytest.approx(0.45)
    assert shown.held_out_energy_ == pytest.approx(0.4)
    assert shown.held_out_energy_error_ == pytest.approx(0.1)
    np.testing.assert_allclose(shown.held_out_singular_values_, [0.6, 0.1])
    np.testing.assert_allclose(shown.held_out_errors_, [0.1, 0.1])
    expected = "main: energy 0.4500 (held-out 0.4000 +- 0.1000), singular values [0.6000, 0.3000]"
    assert str(shown) == expected


def test_the_linear_leak_is_the_explained_variance_of_rows_left_out():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((60, 2))
    z = features @ [1.0, -0.5] + rng.standard_normal(60)
    fold = rng.permutation(60) % 5
    found, error = _linear(features, z[:, None], fold)
    shares = []
    for train, test in ((fold != i, fold == i) for i in range(5)):
        predicted = LinearRegression().fit(features[train], z[train]).predict(features[test])
        shares.append(1 - np.sum((z[test] - predicted) ** 2) / np.sum((z[test] - z[train].mean()) ** 2))
    assert found == pytest.approx(np.mean(shares), abs=1e-4)
    assert error == pytest.approx(np.std(shares, ddof=1) / np.sqrt(5), abs=1e-4)


def test_upper_limits_are_those_of_students_t_and_a_correlation_is_at_most_1():
    quantile = 2.1318  # of 95 %, four degrees of freedom
    found = Leakage(0.2, 0.01, -0.1, 0.02, 0.99, 0.05)
    assert found.linear_upper == pytest.approx(0.2 + 0.01 * quantile, abs=1e-5)
    assert found.nonlinear_upper == pytest.approx(0.02 * quantile, abs=1e-5)  # nothing leaks less than nothing
    assert found.maximal_correlation_upper == 1
    assert "linear 0.2000 +- 0.0100 (at most 0.2213)" in str(found)
    assert leakage(np.empty((30, 0)), np.arange(30)) == Leakage(0, 0, 0, 0, 0)


def test_a_copy_of_z_leaks_all_of_it():
    z = np.random.default_rng(1).integers(0, 2, 400)
    copy = leakage(z[:, None].astype(float), z)
    assert copy.linear == pytest.approx(1, abs=1e-5)
    assert copy.nonlinear == pytest.approx(1, abs=0.05)
    assert copy.maximal_correlation == pytest.approx(1, abs=1e-9)
    assert copy.pvalue < 1e-100


@pytest.mark.parametrize("centred", [False, True])
def test_functions_of_products_at_all_pairs_are_those_at_each(centred, monkeypatch):
    """Products factor: what is computed for all pairs at once is what the function says at each pair."""
    rng = np.random.default_rng(2)
    s, y = rng.standard_normal(40), rng.standard_normal(40)
    side = Parts({name: Variable.seen(values, name).rows(values) for name, values in (("s", s), ("y", y))})
    of_s = PartSpace(("s",), SplineSpace.fit(side.of("s")))
    of_y = PartSpace(("y",), KernelSpace.fit(side.of("y"), features=4))
    second = CentredSpace.fit(of_y, "s", side, seed=0) if centred else of_y
    space = SideBySide((of_s, ProductSpace((of_s, second), (True, False))))
    d = space(side).shape[1]
    affine = AffineFeatures(rng.standard_normal(d), rng.standard_normal((d, 3)), rng.standard_normal(3))
    function = SpanFunction(space, affine)
    some_s, some_y = side.of("s").take(np.array([3, 5, 3, 9])), side.of("y").take(np.arange(6))
    found = given_s.over_pairs(function, some_s, some_y)
    assert found.shape == (4, 6, 3)
    for i, row in enumerate((3, 5, 3, 9)):
        both = Parts({"s": side.of("s").take(np.full(6, row)), "y": some_y})
        np.testing.assert_allclose(found[i], function(both), atol=1e-8)
    monkeypatch.setattr(given_s, "PAIRS_AT_ONCE", 12)  # two rows of s at a time
    own = of_s(side).shape[1]
    whole = SpanFunction(space.spaces[1], AffineFeatures(affine.centre[own:], affine.weight[own:], affine.offset))
    direct = given_s.over_pairs(whole, some_s, some_y)
    for i, row in enumerate((3, 5, 3, 9)):
        both = Parts({"s": side.of("s").take(np.full(6, row)), "y": some_y})
        np.testing.assert_allclose(direct[i], whole(both), atol=1e-8)


def test_factors_of_products_are_what_was_asked_for():
    numbers = np.random.default_rng(0).standard_normal((50, 1))
    rows = Variable.seen(numbers, "S").rows(numbers)
    labels = Variable.seen(numbers[:, 0] > 0, "Y").rows(numbers[:, 0] > 0)

    def names(space, variable):
        return [recipe.name for recipe in given_s._factors("s_space", space, variable, 5)]

    assert names("kernel", rows) == ["kernel"]
    assert names("spline", rows) == ["spline"]
    assert names("auto", rows) == ["spline", "kernel"]
    assert names("auto", labels) == names("table", labels) == ["table"]
    (kernel,) = given_s._factors("s_space", "kernel", rows, 5)
    assert kernel.fit(rows, 0)(rows).shape == (50, 5)  # no sums of functions of single columns beside them
    with pytest.raises(ValueError, match="`s_space` must be a space that is given"):
        given_s._factors("s_space", "network", rows, 5)
    assert given_s.products_block("auto", "auto", "auto", labels, labels).space == "table"
    assert given_s.products_block("network", "auto", "auto", rows, labels).centred_given == "s"
    mixed = given_s.products_block("kernel", "auto", "auto", rows, labels)
    assert [recipe.name for recipe in mixed.space] == ["table of y", "kernel x table"]
