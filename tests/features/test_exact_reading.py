"""Reading loses nothing without a word: large and tiny numbers, declared categories, labels that are equal, dates."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from featgeo import FeatureClassifier, FeatureRegressor, ModalDecomposition
from featgeo.features.columns import LARGEST, Column, in_units, units_of
from featgeo.features.variables import Variable
from featgeo.models.export import as_module, encode_inputs

rng = np.random.default_rng(0)
SMALL = rng.integers(0, 100, 200)
Y = SMALL + rng.integers(0, 60, 200)


def _sigma(X, y=Y, **options):
    return ModalDecomposition(1, x_space="linear", y_space="linear", **options).fit(X, y).singular_values_


def _read(values):
    return Variable.seen(values, "X").rows(values).table


PLAIN = _sigma(SMALL)


@pytest.mark.parametrize(
    "large",
    [
        2**60 + SMALL,
        -(2**62) - SMALL[::-1][::-1],
        (2**63 + SMALL.astype(np.uint64)).astype(np.uint64),
        [2**100 + int(value) for value in SMALL],
        pd.Series(2**60 + SMALL, dtype="Int64"),
        pl.Series(2**60 + SMALL),
        torch.from_numpy(2**60 + SMALL),
    ],
    ids=["int64", "negative", "uint64", "beyond 64 bits", "pandas Int64", "polars", "torch"],
)
def test_whole_numbers_beyond_2_to_the_53_stay_apart(large):
    np.testing.assert_allclose(_sigma(large), PLAIN, rtol=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_large_whole_numbers_beside_missing_ones(frame):
    values = frame({"a": [2**60, None, 2**60 + 1, 2**60 + 2]} if frame is pl.DataFrame else {
        "a": pd.array([2**60, None, 2**60 + 1, 2**60 + 2], dtype="Int64")
    })  # fmt: skip
    np.testing.assert_array_equal(_read(values).numbers[:, 0], [0, np.nan, 1, 2])


def test_a_finite_y_of_large_whole_numbers_is_exact_and_a_continuous_one_is_refused():
    two = 2**60 + (Y > 80)
    model = ModalDecomposition(1, x_space="linear").fit(SMALL, two)
    expected = ModalDecomposition(1, x_space="linear").fit(SMALL, (Y > 80).astype(int))
    np.testing.assert_allclose(model.singular_values_, expected.singular_values_)
    assert model.given(SMALL[:1]).classes.tolist() == [2**60, 2**60 + 1]
    for fit in (ModalDecomposition(1, x_space="linear").fit, FeatureRegressor(x_space="linear").fit):
        with pytest.raises(ValueError, match=r"2\*\*53"):
            fit(SMALL, 2**60 + Y)


def test_what_no_float_can_tell_apart_is_refused():
    for values in ([5, 2**100, 2**100 + 1], [Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)]):
        with pytest.raises(ValueError, match="one and the same as floats"):
            Variable.seen(values, "X")
    with pytest.raises(ValueError, match="beyond 1e308"):
        Variable.seen([10**400, 1], "X")
    with pytest.raises(ValueError, match="too far apart"):
        Variable.seen(np.array([1e308, 1e-300, 2e-300]), "X")
    assert units_of(np.array([10**400, 10**400 + 7], dtype=object), "X") == (10**400, 0)


@pytest.mark.parametrize("scale", [1e-320, 1e-308, 1e-170, 1e170, 1e306])
def test_numbers_of_any_size_have_the_same_dependence(scale):
    tolerance = 1e-3 if scale < 1e-310 else 1e-9  # below 1e-308 floats have few digits
    np.testing.assert_allclose(_sigma(SMALL * scale), PLAIN, rtol=tolerance)
    model = ModalDecomposition(1, x_space="linear", y_space="linear").fit(SMALL, Y * scale)
    np.testing.assert_allclose(model.singular_values_, PLAIN, rtol=tolerance)
    plain = ModalDecomposition(1, x_space="linear", y_space="linear").fit(SMALL, Y)
    ours, theirs = model.given(SMALL[:3]), plain.given(SMALL[:3])
    np.testing.assert_allclose(ours.mean() / scale, theirs.mean(), rtol=max(tolerance, 1e-6))
    np.testing.assert_allclose(ours.interval(0.8) / scale, theirs.interval(0.8), rtol=max(tolerance, 1e-6))


@pytest.mark.parametrize("values", [[1e300, -2e307], [3e-320, 0.0], [2**70, 2**70 + 1], [1.5, -2.0]])
def test_units_can_be_undone(values):
    array = np.array(values)
    origin, exponent = units_of(array, "X")
    numbers = in_units(array, origin, exponent)
    assert np.abs(numbers).max() <= LARGEST
    assert Column("x", "number", origin=origin, exponent=exponent).as_came(numbers).tolist() == values


def test_later_numbers_far_beyond_those_of_the_fit_stay_finite():
    variable = Variable.seen(np.array([1e-200, 2e-200]), "X")
    assert np.isfinite(variable.rows(np.array([1e300])).table.numbers).all()
    with pytest.raises(ValueError, match="infinite"):
        variable.rows(np.array([np.inf])).table  # noqa: B018


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([10, 20, 20], dtype="category"),
        pd.DataFrame({"a": pd.Categorical([10, 20, 20])}),
        pl.Series(["10", "20", "20"], dtype=pl.Categorical),
        pl.DataFrame({"a": pl.Series(["10", "20", "20"], dtype=pl.Enum(["10", "20"]))}),
    ],
    ids=["pandas series", "pandas frame", "polars series", "polars frame"],
)
def test_declared_categories_are_labels_wherever_they_come(values):
    np.testing.assert_array_equal(_read(values).codes[:, 0], [0, 1, 1])


def test_a_categorical_series_of_numbers_is_fitted_as_labels():
    codes = SMALL % 7
    shuffled = np.array([3, 0, 6, 1, 5, 2, 4])[codes]  # an order that says nothing
    y = codes + rng.random(200)
    series, frame = pd.Series(shuffled, dtype="category"), pd.DataFrame({"a": pd.Categorical(shuffled)})
    sigma = [ModalDecomposition(1, y_space="linear").fit(x, y).singular_values_ for x in (series, frame)]
    np.testing.assert_allclose(*sigma)
    assert sigma[0][0] > 0.98


@pytest.mark.parametrize("labels", [[True, 1, 0], ["a", 1, 1.0], [np.True_, 1.0, "b"]])
def test_equal_labels_of_different_types_are_refused(labels):
    with pytest.raises(ValueError, match="equal but of different types"):
        Variable.seen(labels, "X")


def test_a_truth_value_is_not_a_number_later():
    variable = Variable.seen(np.array(["a", 1, 2], dtype=object), "X")
    codes = variable.rows(np.array([True, 1, 2.0], dtype=object)).table.codes[:, 0]
    np.testing.assert_array_equal(codes, [-1, 0, 1])
    with pytest.raises(ValueError, match="got truth values"):
        variable.rows([True, False]).table  # noqa: B018
    with pytest.raises(ValueError, match="got texts"):
        Variable.seen(np.array([b"a", b"b"]), "X").rows(["a", "b"]).table  # noqa: B018


@pytest.mark.parametrize("text", ["1_0", "10", " 1", "inf", b"1"])
def test_text_is_never_parsed_as_a_number(text):
    variable = Variable.seen(pd.DataFrame({"a": [1.0, 2.0]}), "X")
    for values in ([text, 2.0], [text, text]):
        with pytest.raises(ValueError, match="held numbers"):
            variable.rows(pd.DataFrame({"a": np.array(values, dtype=object)})).table  # noqa: B018
    with pytest.raises(ValueError, match="needs numbers"):
        FeatureRegressor(x_space="linear").fit(SMALL, np.array([text] * 200, dtype=object))


def test_time_spans_and_numbers_do_not_mix():
    spans, numbers = pd.DataFrame({"a": pd.to_timedelta([1, 2], unit="h")}), pd.DataFrame({"a": [3600.0, 7200.0]})
    with pytest.raises(ValueError, match="held numbers in the fit, got time spans"):
        Variable.seen(numbers, "X").rows(spans).table  # noqa: B018
    with pytest.raises(ValueError, match="held time spans"):
        Variable.seen(spans, "X").rows(numbers).table  # noqa: B018
    np.testing.assert_array_equal(_read([dt.timedelta(hours=1), None]).numbers[:, 0], [3600, np.nan])


@pytest.mark.parametrize("library", [pd.Series, pl.Series])
def test_dates_with_and_without_a_time_zone_do_not_mix(library):
    naive = [dt.datetime(2024, 1, day) for day in (1, 2, 3)]
    zoned = [day.replace(tzinfo=dt.timezone(dt.timedelta(hours=2))) for day in naive]
    with pytest.raises(ValueError, match="without a time zone in the fit"):
        Variable.seen(library(naive), "X").rows(library(zoned)).table  # noqa: B018
    with pytest.raises(ValueError, match="with a time zone in the fit"):
        Variable.seen(zoned, "X").rows(naive).table  # noqa: B018
    with pytest.raises(ValueError, match="with and without"):
        Variable.seen([naive[0], zoned[1]], "X")
    expected = [19722 + 22 / 24, 19723 + 22 / 24, 19724 + 22 / 24]  # in universal time
    for values in (zoned, library(zoned)):
        np.testing.assert_allclose(_read(values).numbers[:, 0], expected)


def test_dates_that_microseconds_cannot_tell_apart_are_refused():
    with pytest.raises(ValueError, match="microseconds"):
        Variable.seen(np.datetime64("2024-01-01T00:00:00.000000001") + np.arange(3), "X")
    with pytest.raises(ValueError, match="microseconds"):
        Variable.seen(np.array(["300000", "300001"], dtype="datetime64[Y]"), "X")


def test_masks_of_arrays_of_three_dimensions_are_not_ignored():
    with pytest.raises(ValueError, match="masked"):
        Variable.seen(np.ma.masked_array(np.zeros((2, 3, 3)), mask=True), "X")


def test_numbers_of_other_types_are_numbers():
    for values in (
        [Decimal("0.5"), Decimal(2), None],
        [Fraction(1, 2), 2, None],
        pl.Series([Decimal("0.5"), Decimal(2), None]),
    ):
        np.testing.assert_array_equal(_read(values).numbers[:, 0], [0.5, 2, np.nan])
    arrow = pd.Series([1, 2, None], dtype="int64[pyarrow]")
    np.testing.assert_array_equal(_read(arrow).numbers[:, 0], [1, 2, np.nan])
    flags = pd.Series([True, None, False], dtype="boolean")
    np.testing.assert_array_equal(_read(flags).numbers[:, 0], [1, np.nan, 0])


def test_a_score_refuses_a_missing_or_foreign_y():
    model = ModalDecomposition(1, x_space="linear", y_space="linear").fit(SMALL, Y)
    with pytest.raises(ValueError, match="missing values"):
        model.score(SMALL, np.where(Y > 50, np.nan, Y))
    labels = np.where(Y > 80, "many", "few")
    model = ModalDecomposition(1, x_space="linear").fit(SMALL, labels)
    assert model.score(SMALL, labels) > 0
    with pytest.raises(ValueError, match="none of the labels"):
        model.score(SMALL, np.where(Y > 80, "viel", "wenig"))
    for predictor in (
        FeatureRegressor(x_space="linear").fit(SMALL, Y),
        FeatureClassifier(x_space="linear").fit(SMALL, Y > 80),
    ):
        with pytest.raises(ValueError, match="contains NaN"):
            predictor.score(SMALL, np.where(Y > 80, np.nan, 1.0))


def test_modules_refuse_surplus_columns():
    frame = pd.DataFrame({"a": SMALL, "b": np.where(SMALL > 50, "u", "v")})
    model = ModalDecomposition(1, x_space="linear", y_space="linear").fit(frame, Y)
    module, inputs = as_module(model, "f"), encode_inputs(model, frame)
    assert module(inputs).shape == (200, 1)
    for wrong in (inputs[:, [0, 1, 1]], inputs[:, :1], inputs[:, 0]):
        with pytest.raises(ValueError, match="rows of shape"):
            module(wrong)
    large = ModalDecomposition(1, x_space="linear", y_space="linear").fit(2**60 + SMALL, Y)
    with pytest.raises(NotImplementedError, match="too large"):
        as_module(large, "f")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([2**70, 2**70 + 1, 0], "from 0 to 1180591620717411303425"),
        ([-(2**1000), -(2**999), 1 - 2**999], r"from -2\*\*1001 to -2\*\*999, "),
    ],
)
def test_numbers_that_no_float_tells_apart_are_named_in_short(values, shown):
    with pytest.raises(ValueError, match=shown):
        Variable.seen(values * 5, "X").rows(values * 5)
