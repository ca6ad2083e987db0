"""Reading what users hand in: every kind of column, and what happens to values that the fit never saw."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.polynomial.hermite_e import hermeval
from scipy import sparse

from featgeo.features.spaces import Encoding, KernelSpace, SplineSpace, TableSpace
from featgeo.features.variables import Rows, Variable


def _frame() -> pd.DataFrame:
    return pd.DataFrame({
        "number": [1.5, np.nan, 3.0, 4.0],
        "whole": pd.array([1, 2, None, 4], dtype="Int64"),
        "text": ["b", "a", None, "b"],
        "grade": pd.Categorical(["low", "high", "low", "mid"], categories=["low", "mid", "high"], ordered=True),
        "code": pd.Categorical([3, 1, 2, 1]),
        "flag": [True, False, True, True],
        "day": pd.to_datetime(["2024-01-01", "2024-02-05", None, "2024-03-03"]),
        "wait": pd.to_timedelta([1, 2, None, 3], unit="h"),
    })  # fmt: skip


def test_every_kind_of_column_of_a_frame():
    variable = Variable.seen(_frame(), "X")
    kinds = {column.name: column.kind for column in variable.columns}
    labels = {"text", "grade", "code"}
    assert {name for name, kind in kinds.items() if kind == "label"} == labels
    assert kinds["day"] == "date"
    assert {name for name, kind in kinds.items() if kind == "number"} == {"number", "whole", "flag", "wait"}
    by_name = {column.name: column for column in variable.columns}
    assert by_name["grade"].categories == ("low", "mid", "high")  # in the declared order
    assert by_name["code"].categories == (1, 2, 3)
    assert by_name["day"].parts == ("month", "weekday")
    table = variable.rows(_frame()).table
    np.testing.assert_array_equal(table.codes, [[1, 0, 2], [0, 2, 0], [2, 0, 1], [1, 1, 0]])
    np.testing.assert_allclose(table.numbers[0], [1.5, 1, 1, 19723, 1, 0, 3600])
    assert np.isnan(table.numbers[2, [1, 3, 4, 5, 6]]).all()


def test_polars_and_pandas_are_read_alike():
    frame = _frame().drop(columns=["code", "grade"])
    first, second = Variable.seen(frame, "X"), Variable.seen(pl.from_pandas(frame), "X")
    assert first == second
    np.testing.assert_array_equal(second.rows(pl.from_pandas(frame)).table.numbers, first.rows(frame).table.numbers)


def test_columns_may_come_in_another_order():
    variable = Variable.seen(_frame(), "X")
    shuffled = _frame()[_frame().columns[::-1]]
    np.testing.assert_array_equal(variable.rows(shuffled).table.codes, variable.rows(_frame()).table.codes)


def test_unknown_and_missing_labels():
    variable = Variable.seen(np.array(["a", "b", "a"]), "X")
    np.testing.assert_array_equal(variable.rows(["b", "zebra", None]).table.codes[:, 0], [1, -1, -1])
    with_missing = Variable.seen(np.array(["a", None, "a"], dtype=object), "X")
    np.testing.assert_array_equal(with_missing.rows(["a", "zebra", None]).table.codes[:, 0], [0, -1, 1])


def test_dates_of_python_and_numpy():
    days = [dt.datetime(2024, 1, day) for day in (1, 2, 3)]
    for given in (days, np.array(days, dtype="datetime64[s]"), pd.Series(days)):
        variable = Variable.seen(given, "X")
        assert variable.columns[0].kind == "date"
        np.testing.assert_allclose(variable.rows(given).table.numbers[:, 0], [19723, 19724, 19725])


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (np.array([1.0, np.inf]), ValueError, "infinite"),
        (np.array([1 + 1j, 2]), ValueError, "Complex"),
        (sparse.eye(3).tocsr() * np.inf, ValueError, "infinite"),
        (np.ma.masked_array([1.0, 2.0], mask=[True, False]), ValueError, "masked"),
        (3.0, ValueError, "one row a sample"),
        (np.empty((0, 2)), ValueError, "0 sample"),
        (np.empty((3, 0)), ValueError, "0 feature"),
        (np.array([{"a": 1}, {"b": 2}], dtype=object), TypeError, "string or a number"),
        (torch.full((2, 3, 3), float("nan")), ValueError, "NaN"),
    ],
)
def test_what_cannot_be_read_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        Variable.seen(values, "X")


def test_later_rows_must_be_like_those_of_the_fit():
    variable = Variable.seen(_frame(), "X")
    with pytest.raises(ValueError, match="columns of the fit"):
        variable.rows(_frame().drop(columns="flag")).table  # noqa: B018
    with pytest.raises(ValueError, match="held labels"):
        variable.rows(_frame().assign(text=1.0)).table  # noqa: B018
    with pytest.raises(ValueError, match="held dates"):
        variable.rows(_frame().assign(day=1.0)).table  # noqa: B018
    with pytest.raises(ValueError, match="held numbers"):
        variable.rows(_frame().assign(number="x")).table  # noqa: B018
    image = Variable.seen(np.zeros((2, 3, 3)), "X")
    with pytest.raises(ValueError, match="shape"):
        image.rows(np.zeros((2, 4, 4))).tensor  # noqa: B018


def test_scores_are_invariant_to_monotone_maps_and_bounded():
    x = np.random.default_rng(0).standard_normal(2000)
    x[0] = 1e6
    for scores in ("uniform", "normal"):
        values = []
        for z in (x, np.arctan(x)):
            rows = Variable.seen(z, "X").rows(z)
            values.append(Encoding.fit(rows, scores)(rows))
        np.testing.assert_allclose(values[0], values[1], atol=1e-6)
        assert np.abs(values[0]).max() < 4
        assert values[0].var() == pytest.approx(1, abs=0.02)


def test_a_missing_number_and_an_unknown_label_count_as_average():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan], "c": ["a", "b", "a", "a"]})
    variable = Variable.seen(frame, "X")
    encoding = Encoding.fit(variable.rows(frame), "standard")
    strange = pd.DataFrame({"x": [np.nan], "c": ["zebra"]})
    np.testing.assert_allclose(encoding.numbers(variable.rows(strange)), [[0, 1]])  # average, and marked as missing
    np.testing.assert_allclose(encoding.labels(variable.rows(strange)), [[0.75, 0.25]])


def test_a_table_space_knows_its_symbols():
    frame = pd.DataFrame({"a": [0, 1, 0, 1], "b": ["u", "u", "v", "u"]})
    variable = Variable.seen(frame, "X")
    space = TableSpace.fit(variable.rows(frame))
    np.testing.assert_allclose(space.shares.sum(), 1)
    features = space(variable.rows(frame))
    assert features.shape == (4, 3)
    np.testing.assert_array_equal(features.sum(axis=1), 1)
    np.testing.assert_array_equal(features[1], features[3])
    unseen = variable.rows(pd.DataFrame({"a": [1], "b": ["v"]}))
    assert space.index(unseen)[0] == -1
    np.testing.assert_allclose(space(unseen)[0], space.shares)


@pytest.mark.parametrize("fit", [KernelSpace.fit, SplineSpace.fit])
def test_spaces_of_mixed_columns_are_finite_everywhere(fit):
    frame = pd.concat([_frame()] * 20, ignore_index=True)
    variable = Variable.seen(frame, "X")
    space = fit(variable.rows(frame))
    far = frame.assign(number=1e12, text="zebra")
    assert np.isfinite(space(variable.rows(far))).all()


def test_smooth_splines_span_the_same_and_vary_most_along_hermite_polynomials():
    z = np.random.default_rng(0).standard_normal(20_000)
    rows = Variable.seen(z, "X").rows(z)
    plain, smooth = (SplineSpace.fit(rows, smooth=smooth)(rows) for smooth in (False, True))
    combination = np.linalg.lstsq(plain, smooth, rcond=None)[0]
    np.testing.assert_allclose(plain @ combination, smooth, atol=1e-8)
    assert np.linalg.matrix_rank(smooth - smooth.mean(axis=0)) == plain.shape[1] - 1  # all but the constant
    scaled = (smooth - smooth.mean(axis=0)) / smooth.std(axis=0)
    energies, directions = np.linalg.eigh(np.corrcoef(smooth.T))
    assert energies[-1] / energies[-2] == pytest.approx(4, rel=0.1)  # r_i^-2 with r_i = i
    for degree, least in ((1, 0.999), (2, 0.99), (3, 0.97)):
        function = scaled @ directions[:, -degree]
        assert abs(np.corrcoef(function, hermeval(z, np.eye(4)[degree]))[0, 1]) > least


@pytest.mark.parametrize("columns", [1, 3])
def test_what_was_read_stays_as_it_was_when_the_array_changes(columns):
    values = np.arange(12.0).reshape(-1, columns)
    before, rows = values.copy(), Rows.seen(values, "X")
    values[:] = -1
    np.testing.assert_array_equal(rows.table.numbers, before)
    assert rows.table.numbers.T.flags.c_contiguous  # most is done by columns
