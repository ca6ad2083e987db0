"""The features that span each space, by their definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.interpolate import BSpline
from scipy.stats import norm
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

from featgeo.features import combined, spaces
from featgeo.features import space as space_module
from featgeo.features.combined import NetworkSpace, TransformerSpace
from featgeo.features.spaces import Encoding, KernelSpace, SpanFunction, SplineSpace, TableSpace
from featgeo.features.variables import Parts, Variable
from featgeo.geometry.spans import AffineFeatures
from featgeo.tuning import Options

RNG = np.random.default_rng(0)
N = 400
FRAME = pd.DataFrame({
    "u": RNG.standard_normal(N), "v": RNG.exponential(size=N), "c": RNG.choice(list("abc"), N)
})  # fmt: skip
NUMBER = FRAME["u"].to_numpy()


def read(values, *others):
    variable = Variable.seen(values, "X")
    return [variable.rows(part) for part in (values, *others)]


def uniform_scores(values):
    """Ranks from 0 to 1 over the rows, which stay half a row away from both ends, with variance 1."""
    n = len(values)
    ranks = np.argsort(np.argsort(values, axis=0), axis=0) / (n - 1)
    return np.sqrt(12) * (ranks.clip(0.5 / n, 1 - 0.5 / n) - 0.5)


def indicators(labels, symbols="abc"):
    return np.column_stack([labels == symbol for symbol in symbols]).astype(float)


@pytest.mark.parametrize("columns", [["c"], ["c", "d"]])
def test_tables_have_an_indicator_of_each_value_and_shares_of_those_never_seen(columns):
    frame = FRAME.assign(d=FRAME["u"] > 0)[columns]
    rows, new = read(frame, frame[:3].assign(c=["a", "zzz", "b"]))
    space = TableSpace.fit(rows)
    keys = frame[columns[::-1]].astype(str).agg("|".join, axis=1)  # truth values count as numbers, which come first
    symbols = sorted(keys.unique())
    np.testing.assert_array_equal(space(rows), np.column_stack([keys == symbol for symbol in symbols]))
    shares = [np.mean(keys == symbol) for symbol in symbols]
    np.testing.assert_allclose(space.shares, shares)
    assert space.index(new)[1] == -1
    np.testing.assert_allclose(space(new)[1], shares)
    assert (space(new)[[0, 2]].max(axis=1) == 1).all()


def test_tables_of_more_values_than_there_are_indicators_are_refused():
    (rows,) = read(NUMBER)
    assert TableSpace(np.arange(2000.0)[:, None], np.full(2000, 1 / 2000))(rows).shape == (N, 2000)
    with pytest.raises(ValueError, match="has 2001 values, indicators are made for 2000"):
        TableSpace(np.arange(2001.0)[:, None], np.full(2001, 1 / 2001))(rows)


def test_the_kernel_of_a_number_is_gaussian_in_its_uniform_scores():
    (rows,) = read(NUMBER)
    space = KernelSpace.fit(rows, gamma=0.3, features=N)  # a centre for each row: nothing is left out
    features, scores = space(rows), uniform_scores(NUMBER)
    kernel = np.exp(-0.3 / scores.var() * np.subtract.outer(scores, scores) ** 2)
    np.testing.assert_allclose(features @ features.T, kernel, atol=1e-3)
    assert KernelSpace.fit(rows)(rows).shape == (N, Options().kernel_features)
    few = read(NUMBER[:20])[0]
    assert KernelSpace.fit(few)(few).shape == (20, 20)
    np.testing.assert_array_equal(KernelSpace.fit(rows, seed=3)(rows), KernelSpace.fit(rows, seed=3)(rows))
    assert not np.allclose(KernelSpace.fit(rows, seed=3)(rows), KernelSpace.fit(rows, seed=4)(rows))


def test_the_kernel_of_several_columns_is_as_wide_as_they_vary_together_beside_sums_of_splines():
    (rows,) = read(FRAME)
    space = KernelSpace.fit(rows, gamma=0.5, features=N)
    scores = np.column_stack([uniform_scores(FRAME[["u", "v"]].to_numpy()), indicators(FRAME["c"]) / np.sqrt(2)])
    distances = np.square(scores[:, None] - scores).sum(axis=2)
    kernel = np.exp(-0.5 / scores.var(axis=0).sum() * distances)
    values = space(rows)
    np.testing.assert_allclose(values[:, -N:] @ values[:, -N:].T, kernel, atol=1e-3)
    np.testing.assert_allclose(values[:, :-N], SplineSpace.fit(rows, "uniform")(rows))
    weight = RNG.standard_normal((values.shape[1], 2))
    function = SpanFunction(space, AffineFeatures(values[0], weight, np.ones(2)))
    np.testing.assert_allclose(function(rows), (values - values[0]) @ weight + 1, atol=1e-6)
    assert KernelSpace.fit(rows)(rows).shape[1] == values.shape[1] - N + Options().joint_kernel_features


def test_sums_over_very_many_columns_are_linear(monkeypatch):
    (rows,) = read(FRAME)
    n_splines = SplineSpace.fit(rows, "uniform")(rows).shape[1]
    for most, kind in ((n_splines, SplineSpace), (n_splines - 1, Encoding)):
        monkeypatch.setattr(spaces, "MOST_SPLINES", most)
        assert type(KernelSpace.fit(rows).additive) is kind


@pytest.mark.parametrize("scores", ["normal", "uniform"])
def test_splines_are_cubic_over_knots_well_inside(scores):
    (rows,) = read(FRAME)
    space = SplineSpace.fit(rows, scores)
    # 300 rows beyond the outermost knots, or a tenth; uniform scores end at the root of 3.
    knots = np.linspace(-1, 1, 5) * norm.isf(0.1) if scores == "normal" else np.linspace(-1, 1, 8) * np.sqrt(3)
    step = knots[1] - knots[0]
    padded = np.r_[knots[0] - step * np.arange(3, 0, -1), knots, knots[-1] + step * np.arange(1, 4)]
    values = Encoding.fit(rows, scores).numbers(rows)
    expected = [BSpline.design_matrix(z, padded, 3, extrapolate=True).toarray() for z in values.T]
    np.testing.assert_allclose(space(rows), np.hstack([*expected, indicators(FRAME["c"])]), atol=1e-9)
    (many,) = read(RNG.standard_normal(6000))
    assert SplineSpace.fit(many).knots[0] == pytest.approx(norm.ppf(0.05))
    (labels,) = read(FRAME[["c"]])
    np.testing.assert_array_equal(SplineSpace.fit(labels)(labels), indicators(FRAME["c"]))


def test_linear_features_are_standard_scores_and_indicators():
    (rows,) = read(FRAME)
    numbers = FRAME[["u", "v"]].to_numpy()
    standard = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    expected = np.column_stack([standard, indicators(FRAME["c"]) / np.sqrt(2)])
    np.testing.assert_allclose(Encoding.fit(rows)(rows), expected, atol=1e-12)


class Texts(TransformerMixin, BaseEstimator):
    """It gives no numbers."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.full((len(X), 1), "text")


def test_transformers_read_rows_as_they_came():
    (column,) = read(NUMBER)
    np.testing.assert_array_equal(
        TransformerSpace.fit(column, PolynomialFeatures(2))(column), np.vander(NUMBER, 3, increasing=True)
    )
    given = OneHotEncoder()
    (labels,) = read(FRAME[["c"]])
    np.testing.assert_array_equal(TransformerSpace.fit(labels, given)(labels), indicators(FRAME["c"]))  # sparse, too
    assert not hasattr(given, "categories_")
    with pytest.raises(ValueError, match=r"one row of numbers a sample, got shape .* from Texts"):
        TransformerSpace.fit(column, Texts())(column)
    both = Parts({"a": column, "b": labels}).of("a", "b")
    with pytest.raises(ValueError, match="several variables side by side"):
        TransformerSpace.fit(both, PolynomialFeatures(2))


def test_networks_are_read_some_rows_at_a_time_in_single_precision(monkeypatch):
    (rows,) = read(FRAME[["u", "v"]])
    encoding, module = Encoding.fit(rows, "standard"), torch.nn.Linear(2, 3)
    space = NetworkSpace(module, encoding, "x")
    expected = module(torch.from_numpy(encoding(rows)).float()).detach().double().numpy()
    for size in (4096, 150):
        monkeypatch.setattr(space_module, "ROWS_AT_ONCE", size)
        np.testing.assert_allclose(space(rows), expected, rtol=1e-5)
    assert space(rows).dtype == np.float64
    for kind, due in ((torch.uint8, torch.uint8), (torch.float64, torch.float32), (torch.int64, torch.float32)):
        (images,) = read(torch.ones((5, 2, 2), dtype=kind))
        assert NetworkSpace(module, None, "x").inputs(images).dtype == due


def test_what_a_module_must_give():
    (images,) = read(torch.ones((5, 2, 2)))
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3), torch.nn.Dropout())
    combined.check_module(module, images)
    assert module.training
    combined.check_module(module.eval(), images)
    assert not module.training
    with pytest.raises(ValueError, match=r"must read the rows of X, of shape \(2, 2\) each, and cannot"):
        combined.check_module(torch.nn.Linear(7, 1), images)
    for wrong in (torch.nn.Identity(), torch.nn.Sequential(torch.nn.Flatten(0, 1))):
        with pytest.raises(ValueError, match=r"must give features \(n, d\) of X, got .* for 2 rows"):
            combined.check_module(wrong, images)


def test_what_never_varies_is_refused():
    (rows,) = read(np.full((4, 2), 3.0))
    with pytest.raises(ValueError, match="X never varies in these 4"):
        spaces.check_not_constant(rows, "X")
    (rows,) = read(np.array([[3.0, 1.0], [3.0, 2.0]]))
    spaces.check_not_constant(rows, "X")
