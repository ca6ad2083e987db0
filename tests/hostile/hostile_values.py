"""Values of X, Y and S as they come in the wild: each is read right, or refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch
from hostile_case import Case
from hostile_data import (
    FLAGS,
    FRAME,
    HOLES,
    LABELS,
    LINEAR,
    WHOLE,
    X,
    Y,
    classifier,
    conditional,
    fitted,
    fitted_frame,
    fitted_labels,
    modal,
    multimodal,
    numbers,
    regressor,
    sequential,
    sigma,
)
from scipy import sparse

import featgeo as fg
from featgeo.models.export import as_module, encode_inputs

COLUMN = X[:, 0]
DAYS = np.datetime64("2024-01-01") + WHOLE
PYTHON_DAYS = [dt.datetime(2024, 1, 1) + dt.timedelta(days=int(day)) for day in WHOLE]
ZONED = [day.replace(tzinfo=dt.UTC) for day in PYTHON_DAYS]
HOURS = [dt.timedelta(hours=int(hour)) for hour in WHOLE]
CODES = (WHOLE % 4).astype(int)
OBJECTS = np.array(LABELS, dtype=object)
NONE_LABELS = np.where(np.arange(len(X)) % 7 == 0, None, OBJECTS)
BATCHES = [(X[:40], Y[:40]), (X[40:], Y[40:])]


def whole(values):
    return sigma(values, Y)


def labelled(values):
    return sigma(values, Y, y_space="linear", x_space="linear")


def frame(**columns):
    return pd.DataFrame({"a": COLUMN, **columns})


def later(values):
    """The features of one column that was fitted to numbers."""
    return fitted_frame().transform(pd.DataFrame({"a": values, "b": X[:2, 1], "c": ["a", "b"]}))


# fmt: off
# --- the same numbers in other clothes
SAME = [
    Case("X list of lists", lambda: sigma(X.tolist()), gives=lambda: sigma(X)),
    Case("X tuple of tuples", lambda: sigma(tuple(map(tuple, X.tolist()))), gives=lambda: sigma(X)),
    Case("X Fortran order", lambda: sigma(np.asfortranarray(X)), gives=lambda: sigma(X)),
    Case("X negative strides", lambda: sigma(X[::-1].copy()[::-1]), gives=lambda: sigma(X)),
    Case("X big-endian", lambda: sigma(X.astype(">f8")), gives=lambda: sigma(X)),
    Case("X float32", lambda: sigma(X.astype(np.float32)), gives=lambda: sigma(X), rtol=1e-5),
    Case("X longdouble", lambda: sigma(X.astype(np.longdouble)), gives=lambda: sigma(X)),
    Case("X np.matrix", lambda: sigma(np.asmatrix(X)), gives=lambda: sigma(X)),
    Case("X object array of floats", lambda: sigma(X.astype(object)), gives=lambda: sigma(X)),
    Case("X torch tensor", lambda: sigma(torch.tensor(X)), gives=lambda: sigma(X)),
    Case("X torch tensor with gradient", lambda: sigma(torch.tensor(X, requires_grad=True)), gives=lambda: sigma(X)),
    Case("X torch bfloat16", lambda: sigma(torch.tensor(X).bfloat16()), gives=lambda: sigma(X), rtol=1e-2),
    Case("X pandas frame", lambda: sigma(pd.DataFrame(X)), gives=lambda: sigma(X)),
    Case("X pandas frame, index upside down", lambda: sigma(pd.DataFrame(X, index=range(79, -1, -1))), gives=lambda: sigma(X)),
    Case("X pandas frame, two header rows", lambda: sigma(pd.DataFrame(X, columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]))), gives=lambda: sigma(X)),
    Case("X pandas Float64", lambda: sigma(pd.DataFrame(X).astype("Float64")), gives=lambda: sigma(X)),
    Case("X pandas double[pyarrow]", lambda: sigma(pd.DataFrame(X).astype("double[pyarrow]")), gives=lambda: sigma(X)),
    Case("X polars frame", lambda: sigma(pl.DataFrame(X)), gives=lambda: sigma(X)),
    Case("X pyarrow table", lambda: sigma(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})), gives=lambda: sigma(X)),
    Case("X range", lambda: whole(range(80)), gives=lambda: whole(np.arange(80))),
    Case("X one column of shape (n, 1)", lambda: sigma(COLUMN[:, None]), gives=lambda: sigma(COLUMN)),
    Case("X Series without a name", lambda: sigma(pd.Series(COLUMN)), gives=lambda: sigma(COLUMN)),
    Case("X polars Series", lambda: sigma(pl.Series(COLUMN)), gives=lambda: sigma(COLUMN)),
    Case("X Decimal", lambda: sigma([Decimal(repr(v)) for v in COLUMN.tolist()]), gives=lambda: sigma(COLUMN)),
    Case("X Fraction", lambda: sigma([Fraction(v) for v in COLUMN.tolist()]), gives=lambda: sigma(COLUMN)),
    Case("X polars Decimal", lambda: sigma(pl.Series([Decimal(int(v)) for v in WHOLE])), gives=lambda: sigma(WHOLE)),
    Case("X int8", lambda: whole(WHOLE.astype(np.int8)), gives=lambda: whole(WHOLE)),
    Case("X uint64", lambda: whole(WHOLE.astype(np.uint64)), gives=lambda: whole(WHOLE)),
    Case("X truth values", lambda: whole(FLAGS), gives=lambda: whole(FLAGS.astype(int))),
    Case("X pandas boolean", lambda: whole(pd.Series(FLAGS, dtype="boolean")), gives=lambda: whole(FLAGS.astype(int))),
    Case("X polars Boolean", lambda: whole(pl.Series(FLAGS)), gives=lambda: whole(FLAGS.astype(int))),
    Case("X time spans of numpy", lambda: whole(WHOLE.astype("m8[h]")), gives=lambda: whole(WHOLE)),
    Case("X time spans of Python", lambda: whole(HOURS), gives=lambda: whole(WHOLE)),
    Case("X time spans of pandas", lambda: whole(pd.Series(HOURS)), gives=lambda: whole(WHOLE)),
    Case("X time spans of polars", lambda: whole(pl.Series(HOURS)), gives=lambda: whole(WHOLE)),
    Case("X dates of Python", lambda: whole(PYTHON_DAYS), gives=lambda: whole(DAYS)),
    Case("X dates of pandas", lambda: whole(pd.Series(DAYS)), gives=lambda: whole(DAYS)),
    Case("X dates of polars", lambda: whole(pl.Series(DAYS)), gives=lambda: whole(DAYS)),
    Case("X dates in universal time", lambda: whole(ZONED), gives=lambda: whole(DAYS)),
    Case("X dates with a zone of pandas", lambda: whole(pd.Series(pd.to_datetime(ZONED))), gives=lambda: whole(DAYS)),
    Case("X a column more that never varies", lambda: sigma(np.c_[X, np.ones(80)]), gives=lambda: sigma(X)),
    Case("X a column more that always misses", lambda: sigma(np.c_[X, np.full(80, np.nan)]), gives=lambda: sigma(X)),
    Case("X a column twice", lambda: sigma(np.c_[X, X[:, 0]]), gives=lambda: sigma(X), rtol=1e-6),
    Case("Y as a column", lambda: sigma(X, Y[:, None]), gives=lambda: sigma(X)),
    Case("Y float16", lambda: sigma(X, Y.astype(np.float16)), gives=lambda: sigma(X), rtol=1e-2),
    Case("Y object array of floats", lambda: sigma(X, Y.astype(object)), gives=lambda: sigma(X)),
    Case("Y polars Series", lambda: sigma(X, pl.Series(Y)), gives=lambda: sigma(X)),
    Case("Y torch tensor", lambda: sigma(X, torch.tensor(Y)), gives=lambda: sigma(X)),
    Case("Y Decimal", lambda: sigma(X, [Decimal(repr(v)) for v in Y.tolist()]), gives=lambda: sigma(X)),
    Case("batches of arrays", lambda: modal().fit(BATCHES).singular_values_, gives=lambda: sigma(X), rtol=0.05),
    Case("batches with columns in another order", lambda: modal().fit([(FRAME[:40], Y[:40]), (FRAME[40:][["c", "b", "a"]], Y[40:])]).n_modes_, gives=1),
]

# --- large, tiny and strange numbers
SIZES = [
    Case("X int64 above 2**53", lambda: whole(2**60 + WHOLE), gives=lambda: whole(WHOLE)),
    Case("X uint64 above 2**63", lambda: whole(2**63 + WHOLE.astype(np.uint64)), gives=lambda: whole(WHOLE)),
    Case("X whole numbers beyond 64 bits", lambda: whole([10**30 + int(v) for v in WHOLE]), gives=lambda: whole(WHOLE)),
    Case("X whole numbers beyond 1e308", lambda: whole([10**400 + int(v) for v in WHOLE]), gives=lambda: whole(WHOLE)),
    Case("X whole numbers below -2**53 in a frame", lambda: sigma(pd.DataFrame({"a": -(2**61) + WHOLE})), gives=lambda: whole(WHOLE)),
    Case("X pandas Int64 above 2**53", lambda: whole(pd.Series(2**60 + WHOLE, dtype="Int64")), gives=lambda: whole(WHOLE)),
    Case("X polars Int64 above 2**53", lambda: whole(pl.Series(2**60 + WHOLE)), gives=lambda: whole(WHOLE)),
    Case("X nanoseconds since 1970", lambda: whole(WHOLE * 10**9 + 1_700_000_000 * 10**9), gives=lambda: whole(WHOLE)),
    Case("X whole numbers from 5 to 2**100 + 1", lambda: whole([5, 2**100, 2**100 + 1] * 20 + [7] * 20), raises="one and the same as floats"),
    Case("X 10**400 beside 1", lambda: whole([10**400, 1] * 40), raises="beyond 1e308"),
    Case("X 10**5000 beside 1", lambda: whole([10**5000, 1] * 40), raises="beyond 1e308"),
    Case("X fractions that floats merge", lambda: whole([Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**40)] * 40), raises="one and the same"),
    Case("Y of two large whole numbers", lambda: sigma(X, 2**60 + FLAGS), gives=lambda: sigma(X, FLAGS.astype(int))),
    Case("Y int64 above 2**53", lambda: sigma(X, 2**60 + WHOLE), raises=r"2\*\*53.*Subtract"),
    Case("FeatureRegressor: y above 2**53", lambda: fg.FeatureRegressor(1, **LINEAR).fit(X, 2**60 + WHOLE), raises=r"2\*\*53.*Subtract"),
    Case("FeatureClassifier: y of large whole numbers", lambda: fg.FeatureClassifier(x_space="linear").fit(X, 2**60 + FLAGS).classes_.tolist(), gives=lambda: [2**60, 2**60 + 1], rtol=0),
    *[Case(f"X * {s:g}", lambda s=s: sigma(X * s), gives=lambda: sigma(X), rtol=1e-3 if s < 1e-310 else 1e-9) for s in (1e-320, 1e-308, 1e-170, 1e-20, 1e20, 1e170, 1e307)],
    *[Case(f"Y * {s:g}", lambda s=s: sigma(X, Y * s), gives=lambda: sigma(X), rtol=1e-3 if s < 1e-310 else 1e-9) for s in (1e-320, 1e-308, 1e-170, 1e-20, 1e20, 1e170, 1e307)],
    *[Case(f"X * 1e-308, {space}", lambda space=space: sigma(COLUMN * 2.0**-1000, x_space=space), gives=lambda space=space: sigma(COLUMN, x_space=space)) for space in ("spline", "kernel", "auto")],
    *[Case(f"X * 1e300, {space}", lambda space=space: sigma(COLUMN * 2.0**1000, x_space=space), gives=lambda space=space: sigma(COLUMN, x_space=space)) for space in ("spline", "kernel", "auto")],
    Case("X + 1e12", lambda: sigma(X + 1e12), gives=lambda: sigma(X), rtol=1e-3),
    Case("mean of Y * 1e-308", lambda: modal().fit(X, Y * 2.0**-1000).given(X[:3]).mean() * 2.0**1000, gives=lambda: numbers().mean()),
    Case("interval of Y * 1e300", lambda: modal().fit(X, Y * 2.0**1000).given(X[:3]).interval(0.8) * 2.0**-1000, gives=lambda: numbers().interval(0.8)),
    Case("X of sizes too far apart", lambda: sigma(np.r_[1e308, 1e-300 * np.arange(1, 80)]), raises="too far apart"),
    Case("X holds inf", lambda: sigma(np.r_[np.inf, COLUMN[1:]]), raises="infinite"),
    Case("X holds -inf in a frame", lambda: sigma(frame(b=np.r_[-np.inf, Y[1:]])), raises="'b' of X holds infinite"),
    Case("X holds Decimal Infinity", lambda: sigma([Decimal("Infinity"), *map(Decimal, range(79))]), raises="infinite"),
    Case("Y holds inf", lambda: sigma(X, np.r_[np.inf, Y[1:]]), raises="Y holds infinite"),
    Case("Y holds NaN", lambda: sigma(X, np.r_[np.nan, Y[1:]]), raises="Y holds missing"),
    Case("Y holds None among numbers", lambda: sigma(X, [None, *Y[1:].tolist()]), raises="Y holds missing"),
    Case("X never varies", lambda: sigma(np.ones(80)), raises="X never varies"),
    Case("Y never varies", lambda: sigma(X, np.ones(80)), raises="Y never varies"),
    Case("X always misses", lambda: sigma(np.full(80, np.nan)), raises="X never varies"),
    Case("X complex", lambda: sigma(X + 1j), raises="Complex"),
    Case("Y complex", lambda: sigma(X, Y + 1j), raises="Complex"),
    Case("X complex in a list", lambda: sigma([1j, 2] * 40), raises="Complex"),
    Case("X complex tensor", lambda: sigma(torch.tensor(X + 1j)), raises="real numbers"),
    Case("X complex objects", lambda: sigma(np.array([1j, "a"] * 40, dtype=object)), raises="string or a number"),
]

# --- labels
LABELLED = [
    Case("X text", lambda: labelled(LABELS), gives=lambda: labelled(OBJECTS)),
    Case("X bytes", lambda: labelled(LABELS.astype("S1")), gives=lambda: labelled(LABELS)),
    Case("X numpy StringDType", lambda: labelled(LABELS.astype(np.dtypes.StringDType())), gives=lambda: labelled(LABELS)),
    Case("X list of texts", lambda: labelled(LABELS.tolist()), gives=lambda: labelled(LABELS)),
    Case("X pandas string", lambda: labelled(pd.Series(LABELS, dtype="string")), gives=lambda: labelled(LABELS)),
    Case("X pandas string[pyarrow]", lambda: labelled(pd.Series(LABELS, dtype="string[pyarrow]")), gives=lambda: labelled(LABELS)),
    Case("X pandas category", lambda: labelled(pd.Series(LABELS, dtype="category")), gives=lambda: labelled(LABELS)),
    Case("X pandas category that is never seen", lambda: labelled(pd.Series(pd.Categorical(LABELS, list("zcba")))), gives=lambda: labelled(LABELS)),
    Case("X polars Categorical", lambda: labelled(pl.Series(LABELS, dtype=pl.Categorical)), gives=lambda: labelled(LABELS)),
    Case("X polars Enum", lambda: labelled(pl.Series(LABELS, dtype=pl.Enum(list("cab")))), gives=lambda: labelled(LABELS)),
    Case("X category of numbers, Series", lambda: labelled(pd.Series(CODES, dtype="category")), gives=lambda: labelled(CODES.astype(str))),
    Case("X category of numbers, frame", lambda: labelled(pd.DataFrame({"a": pd.Categorical(CODES)})), gives=lambda: labelled(CODES.astype(str))),
    Case("X category of dates", lambda: labelled(pd.Series(pd.Categorical(DAYS))), raises="string or a number"),
    Case("X empty strings", lambda: labelled(np.where(LABELS == "a", "", LABELS)), gives=lambda: labelled(LABELS)),
    Case("X texts that look like numbers", lambda: labelled(np.array(["1_0", "10", "1e1"])[CODES % 3]), gives=lambda: labelled(np.array(["x", "y", "z"])[CODES % 3])),
    Case("X texts and numbers", lambda: labelled(np.array(["u", 1, 2.5], dtype=object)[CODES % 3]), gives=lambda: labelled(np.array(["x", "y", "z"])[CODES % 3])),
    Case("X texts of thousands of letters", lambda: labelled(np.array(["u" * 5000, "u" * 5001], dtype=object)[CODES % 2]), gives=lambda: labelled(np.array(["x", "y"])[CODES % 2])),
    Case("X texts with a null letter", lambda: labelled(np.array(["u\0", "u"], dtype=object)[CODES % 2]), gives=lambda: labelled(np.array(["x", "y"])[CODES % 2])),
    Case("X labels with None", lambda: labelled(NONE_LABELS), gives=lambda: labelled(np.where(pd.isna(NONE_LABELS), "z", OBJECTS))),
    Case("X labels with NaN", lambda: labelled(np.where(pd.isna(NONE_LABELS), np.nan, OBJECTS)), gives=lambda: labelled(NONE_LABELS)),
    Case("X labels with pandas NA", lambda: labelled(pd.Series(NONE_LABELS, dtype="string")), gives=lambda: labelled(NONE_LABELS)),
    Case("X category with missing", lambda: labelled(pd.Series(NONE_LABELS, dtype="category")), gives=lambda: labelled(NONE_LABELS)),
    Case("X True and 1", lambda: labelled(np.array([True, 1, 0], dtype=object)[CODES % 3]), raises="equal but of different types"),
    Case("X 1 and 1.0 among texts", lambda: labelled(np.array([1.0, 1, "a"], dtype=object)[CODES % 3]), raises="equal but of different types"),
    Case("X True and 1 in a list", lambda: labelled([True, 1, 0, False] * 20), raises="equal but of different types"),
    Case("FeatureClassifier: y True and 1", lambda: fg.FeatureClassifier(x_space="linear").fit(X, [True, 1, 0, False] * 20), raises="equal but of different types"),
    Case("FeatureClassifier: y text and numbers", lambda: fg.FeatureClassifier(x_space="linear").fit(X, np.array(["a", 1] * 40, dtype=object)), raises="labels of one kind"),
    Case("FeatureClassifier: y missing", lambda: fg.FeatureClassifier(x_space="linear").fit(X, NONE_LABELS), raises="missing labels"),
    Case("FeatureClassifier: y NaN", lambda: fg.FeatureClassifier(x_space="linear").fit(X, HOLES), raises="contains NaN"),
    Case("FeatureClassifier: y dates", lambda: fg.FeatureClassifier(x_space="linear").fit(X, DAYS), raises="labels as y"),
    Case("FeatureClassifier: y continuous", lambda: fg.FeatureClassifier(x_space="linear").fit(X, Y), raises="continuous"),
    Case("FeatureClassifier: y of two columns", lambda: fg.FeatureClassifier(x_space="linear").fit(X, np.c_[FLAGS, FLAGS]), raises="one value a row"),
    Case("FeatureClassifier: one class", lambda: fg.FeatureClassifier(x_space="linear").fit(X, ["a"] * 80), raises="at least two classes"),
    Case("FeatureClassifier: y None", lambda: fg.FeatureClassifier().fit(X), raises="requires y"),
    Case("FeatureClassifier: y as category of numbers", lambda: fg.FeatureClassifier(x_space="linear").fit(X, pd.Series(CODES, dtype="category")).classes_.tolist(), gives=[0, 1, 2, 3]),
    Case("FeatureRegressor: y of text", lambda: fg.FeatureRegressor(**LINEAR).fit(X, LABELS), raises="needs numbers"),
    Case("FeatureRegressor: y of texts that look like numbers", lambda: fg.FeatureRegressor(**LINEAR).fit(X, WHOLE.astype(str)), raises="needs numbers"),
    Case("FeatureRegressor: y of dates", lambda: fg.FeatureRegressor(**LINEAR).fit(X, DAYS), raises="needs numbers"),
    Case("FeatureRegressor: y of time spans", lambda: fg.FeatureRegressor(**LINEAR).fit(X, HOURS), raises="needs numbers"),
    Case("FeatureRegressor: y of two columns, one of text", lambda: fg.FeatureRegressor(**LINEAR).fit(X, FRAME[["a", "c"]]), raises="needs numbers"),
    Case("FeatureRegressor: y of two columns, one with holes", lambda: fg.FeatureRegressor(**LINEAR).fit(X, np.column_stack([Y, HOLES])), raises="Column '1' of y contains NaN"),
    Case("FeatureRegressor: y of two columns, one that never varies", lambda: fg.FeatureRegressor(**LINEAR).fit(X, np.column_stack([Y, 0 * Y])), raises="never varies"),
    Case("FeatureRegressor: y of three dimensions", lambda: fg.FeatureRegressor(**LINEAR).fit(X, Y[:, None, None]), raises="one value a row"),
    Case("FeatureRegressor: y NaN", lambda: fg.FeatureRegressor(**LINEAR).fit(X, HOLES), raises="contains NaN"),
    Case("FeatureRegressor: y inf", lambda: fg.FeatureRegressor(**LINEAR).fit(X, np.r_[np.inf, Y[1:]]), raises="infinite"),
]

HUGE = sparse.coo_array((X[:, 0], (np.arange(80), np.arange(80) * 10**5)), shape=(80, 10**7))

# --- what is no table
NO_TABLE = [
    Case("X ragged lists", lambda: sigma([[1, 2], [3]] * 40), raises="rows of the same length"),
    Case("Y ragged lists", lambda: sigma(X, [[1, 2], [3]] * 40), raises="Y must have rows of the same length"),
    *[Case(f"X sparse, {kind.__name__}", lambda kind=kind: sigma(kind(X)), gives=lambda: sigma(X)) for kind in (sparse.csr_matrix, sparse.coo_array, sparse.dok_array)],
    Case("Y sparse", lambda: sigma(X, sparse.csr_array(X)), gives=lambda: sigma(X, X)),
    Case("X sparse and huge", lambda: sigma(HUGE), raises="X is a sparse matrix of 80 x 10,000,000 cells"),
    Case("X sparse and huge, for a network", lambda: sigma(HUGE, x_space="network"), raises="too many to be dense"),
    Case("X sparse and huge, for a module", lambda: sigma(HUGE, x_space=torch.nn.Linear(3, 2)), raises="networks cannot read"),
    Case("X sparse, huge and infinite", lambda: sigma(HUGE * np.inf), raises="infinite"),
    Case("Y sparse and huge", lambda: sigma(X, HUGE), raises="Y is a sparse matrix"),
    Case("X sparse and huge after a dense fit", lambda: fitted().transform(HUGE), raises="10000000 features"),
    Case("test of independence of a huge sparse X", lambda: fg.mutual_information(HUGE, Y), raises="large sparse"),
    Case("X sparse tensor", lambda: sigma(torch.tensor(X).to_sparse()), raises="to_dense"),
    Case("X meta tensor", lambda: sigma(torch.empty(80, 3, device="meta")), raises="meta"),
    Case("X masked", lambda: sigma(np.ma.masked_array(X, X > 2)), raises="masked array"),
    Case("X masked in three dimensions", lambda: sigma(np.ma.masked_array(np.zeros((80, 2, 2)), True)), raises="masked array"),
    Case("Y masked", lambda: sigma(X, np.ma.masked_array(Y, Y > 2)), raises="Y is a masked array"),
    Case("X structured array", lambda: sigma(np.zeros(80, dtype=[("a", float)])), raises="structured"),
    Case("X void", lambda: sigma(np.zeros(80, dtype="V4")), raises="structured"),
    Case("X dicts", lambda: sigma([{"a": 1}] * 80), raises="string or a number"),
    Case("X sets", lambda: sigma([{1}] * 80), raises="string or a number"),
    Case("X a text", lambda: sigma("abc"), raises="one row a sample"),
    Case("X None", lambda: sigma(None), raises="one row a sample"),
    Case("X a number", lambda: sigma(3.0), raises="one row a sample"),
    Case("X a dict of columns", lambda: sigma({"a": COLUMN}), raises="one row a sample"),
    Case("X a generator", lambda: sigma(v for v in COLUMN), raises="one row a sample"),
    Case("X a class", lambda: sigma(np.ndarray), raises="one row a sample"),
    Case("X empty list", lambda: sigma([]), raises="0 sample"),
    Case("X no rows", lambda: sigma(np.empty((0, 3)), []), raises="0 sample"),
    Case("X no columns", lambda: sigma(np.empty((80, 0))), raises="0 feature"),
    Case("X frame without columns", lambda: sigma(pd.DataFrame(index=range(80))), raises="0 feature"),
    Case("X one row", lambda: sigma(X[:1], Y[:1]), raises="never varies"),
    Case("X and Y of different lengths", lambda: sigma(X, Y[:-1]), raises="same rows"),
    Case("X duplicate column names", lambda: sigma(pd.DataFrame(X, columns=["a", "a", "b"])), raises="more than one column named 'a'"),
    Case("X columns 1 and '1'", lambda: sigma(pd.DataFrame(X[:, :2], columns=[1, "1"])), raises="more than one column named '1'"),
    Case("X pyarrow duplicate names", lambda: sigma(pa.Table.from_arrays([pa.array(COLUMN)] * 2, names=["a", "a"])), raises="more than one column named 'a'"),
    Case("X lists in a frame", lambda: sigma(frame(b=[[1, 2]] * 80)), raises="'b' of X.*string or a number"),
    Case("X polars List", lambda: sigma(pl.DataFrame({"a": [[1, 2]] * 80})), raises="string or a number"),
    Case("X polars Struct", lambda: sigma(pl.DataFrame({"a": [{"u": 1}] * 80})), raises="string or a number"),
    Case("X times of the day", lambda: sigma([dt.time(3)] * 80), raises="string or a number"),
    Case("X dates and texts", lambda: sigma([dt.date(2024, 1, 1), "a"] * 40), raises="string or a number"),
    Case("X dates with and without a zone", lambda: sigma([PYTHON_DAYS[0], ZONED[1]] * 40), raises="with and without a time zone"),
    Case("X months as time spans", lambda: sigma(WHOLE.astype("m8[M]")), raises="no fixed length"),
    Case("X dates a nanosecond apart", lambda: sigma(np.datetime64("2024-01-01", "ns") + np.arange(80)), raises="microseconds"),
    Case("X dates of the year 300,000", lambda: sigma(np.array(["300000", "300001"] * 40, "M8[Y]")), raises="microseconds"),
    Case("X text in three dimensions", lambda: sigma(np.full((80, 2, 2), "a")), raises="must hold numbers"),
    Case("X NaN in three dimensions", lambda: sigma(np.full((80, 2, 2), np.nan)), raises="NaN or infinite"),
    Case("X images for a linear space", lambda: sigma(np.zeros((80, 2, 2))), raises="only networks read"),
    Case("batches: none", lambda: modal().fit([]), raises="empty"),
    Case("batches: of three", lambda: modal().fit([(X, Y, Y)]), raises="batches"),
    Case("batches: numbers", lambda: modal().fit([1, 2]), raises="batches"),
    Case("batches: other columns later", lambda: modal().fit([(FRAME[:40], Y[:40]), (FRAME[40:].rename(columns={"a": "z"}), Y[40:])]), raises="same columns"),
    Case("batches: text after numbers", lambda: modal().fit([(X[:40], Y[:40]), (np.full((40, 3), "a"), Y[40:])]), raises="one kind"),
    Case("batches: another number of columns", lambda: modal().fit([(X[:40], Y[:40]), (X[40:, :2], Y[40:])]), raises="one kind"),
    Case("batches: X and Y of different lengths", lambda: modal().fit([(X, Y[:-1])]), raises="same rows"),
    Case("batches: Z beside them", lambda: modal().fit(BATCHES, None, X), raises="all rows in memory, and so does Z"),
    Case("fit without Y", lambda: modal().fit(X), raises="y to be passed"),
]

# --- rows that come after the fit
LATER = [
    Case("later: text where numbers were", lambda: later(["1_0", "2"]), raises="'a' of X held numbers"),
    Case("later: text among objects", lambda: later(np.array(["10", 2.0], dtype=object)), raises="'a' of X held numbers"),
    Case("later: time spans where numbers were", lambda: later(pd.to_timedelta([1, 2], unit="h")), raises="got time spans"),
    Case("later: dates where numbers were", lambda: later(pd.to_datetime(["2024-01-01"] * 2)), raises="'a' of X held numbers"),
    Case("later: inf", lambda: later([np.inf, 1.0]), raises="'a' of X holds infinite"),
    Case("later: 10**400", lambda: later(np.array([10**400, 1], dtype=object)), raises="beyond 1e308"),
    Case("later: complex", lambda: fitted().transform(X + 1j), raises="Complex"),
    Case("later: None among numbers", lambda: np.isfinite(later(np.array([None, 1.0], dtype=object))).all().item(), gives=True),
    Case("later: a missing column", lambda: fitted_frame().transform(FRAME.drop(columns="a")), raises="a"),
    Case("later: a surplus column", lambda: fitted().transform(np.c_[X, Y]), raises="4 features"),
    Case("later: columns in another order", lambda: fitted_frame().transform(FRAME[["c", "b", "a"]].rename(columns={"b": "z"})), raises="feature names"),
    Case("later: numbers where labels were", lambda: fitted_frame().transform(FRAME.assign(c=1.0)), raises="'c' of X held labels"),
    Case("later: truth values where labels were", lambda: fitted_frame().transform(FRAME.assign(c=True)), raises="'c' of X held labels"),
    Case("later: dates where labels were", lambda: fitted_frame().transform(FRAME.assign(c=DAYS)), raises="'c' of X held labels"),
    Case("later: a label never seen", lambda: np.isfinite(fitted_frame().transform(FRAME.assign(c="new"))).all().item(), gives=True),
    Case("later: no rows", lambda: fitted().transform(np.empty((0, 3))), raises="0 sample"),
    Case("later: one row as a vector", lambda: fitted().transform(X[0]), raises="reshape"),
    Case("later: Z that the fit had not", lambda: fitted().transform(X, Z=Y), raises="Z was passed"),
    Case("score: NaN in Y", lambda: fitted().score(X, HOLES), raises="cannot be scored"),
    Case("score: other lengths", lambda: fitted().score(X, Y[:-1]), raises="same rows"),
    Case("score: another alphabet", lambda: fitted_labels().score(X, np.full(80, "z")), raises="none of the labels"),
    Case("score: numbers for labels", lambda: fitted_labels().score(X, Y), raises="held labels"),
    Case("FeatureRegressor: score of NaN", lambda: regressor().score(X, HOLES), raises="contains NaN"),
    Case("FeatureRegressor: score of text", lambda: regressor().score(X, LABELS), raises="needs numbers"),
    Case("FeatureRegressor: score of other lengths", lambda: regressor().score(X, Y[:5]), raises="same rows"),
    Case("FeatureRegressor: negative weights of a score", lambda: regressor().score(X, Y, sample_weight=-np.ones(80)), raises="weights"),
    Case("FeatureClassifier: score of NaN", lambda: classifier().score(X, HOLES), raises="contains NaN"),
    Case("FeatureClassifier: score of other lengths", lambda: classifier().score(X, LABELS[:5]), raises="same rows"),
    Case("FeatureClassifier: score of another alphabet", lambda: classifier().score(X, np.full(80, "z")), gives=0.0),
    Case("FeatureClassifier: g of an unknown label", lambda: classifier().transform(X[:1], ["z"]), raises="never saw the label"),
    Case("FeatureClassifier: g of numbers", lambda: classifier().transform(X[:1], [1.0]), raises="never saw the label"),
    Case("ConditionalDecomposition: later S of another length", lambda: conditional().given(LABELS[:3], CODES[:2]), raises="same rows"),
    Case("ConditionalDecomposition: S as text", lambda: conditional().given(LABELS[:3], LABELS[:3]), raises="S held numbers"),
    Case("ConditionalDecomposition: features of other width", lambda: conditional().given_features(np.zeros((2, 9)), CODES[:2]), raises="what `transform` gives"),
    Case("ConditionalDecomposition: score of NaN", lambda: conditional().score(LABELS, HOLES, CODES % 3), raises="cannot be scored"),
    Case("MultimodalDecomposition: unknown source", lambda: multimodal().given(three=CODES), raises="no source 'three'"),
    Case("MultimodalDecomposition: given no source", lambda: multimodal().given(), raises="at least one of"),
    Case("MultimodalDecomposition: given other lengths", lambda: multimodal().given(one=LABELS[:3], two=CODES[:2]), raises="same rows"),
    Case("MultimodalDecomposition: score of nothing", lambda: multimodal().score({"one": LABELS}, np.full(80, np.nan)), raises="missing in every row"),
    Case("SequentialDecomposition: short history", lambda: sequential().given([[]]), raises="at least 1 steps"),
    Case("SequentialDecomposition: a history as text", lambda: sequential().given(["b"]).proba().shape, gives=(1, 4)),
    Case("SequentialDecomposition: numbers for letters", lambda: sequential().given([[1]]), raises="held labels"),
    Case("as_module: a surplus column", lambda: as_module(fitted(), "f")(torch.zeros(2, 4)), raises="rows of shape"),
    Case("as_module: a column less", lambda: as_module(fitted(), "f")(torch.zeros(2, 2)), raises="rows of shape"),
    Case("as_module: an unknown part", lambda: as_module(fitted(), "h"), raises="`part`"),
    Case("as_module: a ConditionalDecomposition", lambda: as_module(conditional(), "f"), raises="ConditionalDecomposition"),
    Case("as_module: the right columns", lambda: as_module(fitted(), "f")(encode_inputs(fitted(), X)).numpy(), gives=lambda: fitted().transform(X)),
]

CASES = [*SAME, *SIZES, *LABELLED, *NO_TABLE, *LATER]
