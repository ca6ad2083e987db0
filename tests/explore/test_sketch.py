"""Kinds of columns come from all rows; samples are uniform and joint; counts of labels are exact, or bounded."""

import datetime as dt
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from featgeo.explore import sketch as sketches
from featgeo.explore import tallies, values
from featgeo.explore.cells import Cells
from featgeo.explore.sketch import sketch, typed
from featgeo.explore.values import Repeated
from featgeo.reading import delimited, tables
from featgeo.reading.source import open_source


def column_of(values, **options):
    """The sketch of one column of texts."""
    table = pa.table({"c": pa.array(values, pa.string()), "other": pa.array(range(len(values)))})
    return sketch(open_source(table), **options).columns["c"]


@pytest.fixture
def _small_batches(monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 7)


KINDS = {
    "whole": (["1", " 3 ", "+7", None, "-2"], "number"),
    "floats": (["1e5", "2.5", ".5", "-3.", "1E-3"], "number"),
    "infinite": (["1", "inf", "-Infinity"], "number"),
    "markers": (["1", "NA", "", "NaN", "null", " n/a "], "number"),
    "zip codes": (["00501", "10001", "94016"], "label"),
    "fractions of one length": (["0.50", "0.25", "1.75"], "number"),
    "numbers of several lengths": (["007", "12"], "number"),
    "words": (["a", "b"], "label"),
    "a word among numbers": (["1", "2", "x"], "label"),
    "question marks": (["1", "2", "?"], "label"),
    "dates": (["2020-01-31", "1999-12-01", None], "date"),
    "timestamps": (["2020-01-31 10:00", "1999-12-01T10:00:01.5"], "date"),
    "zones": (["2020-01-31T10:00:00Z", "1999-12-01T10:00:00+02:00"], "date"),
    "dots": (["31.01.2020", "01.12.1999"], "date"),
    "month first": (["01/31/2020", "12/01/1999"], "date"),
    "day first": (["01/12/1999", "31/01/2020"], "date"),
    "month or day first": (["01/12/1999", "02/01/2020"], "label"),
    "no such date": (["2020-01-31", "2020-02-30"], "label"),
    "numbers and dates": (["1", "2020-01-31"], "label"),
    "nothing": ([None, ""], "number"),
}


@pytest.mark.parametrize("case", KINDS)
@pytest.mark.parametrize("rows", [1, 20], ids=["a batch", "several batches"])
@pytest.mark.usefixtures("_small_batches")
def test_the_kind_of_a_text_column(case, rows):
    values, kind = KINDS[case]
    assert column_of(values * rows).kind == kind
    assert column_of([None] * 10 + values * rows).kind == kind, "rows without a value say nothing"


@pytest.mark.usefixtures("_small_batches")
@pytest.mark.parametrize("late", ["x", "2020-01-01", "00x"])
def test_a_word_in_the_last_row_counts_as_much_as_one_in_the_first(late):
    values = [str(i % 5) for i in range(100)]
    first, last = column_of([late, *values]), column_of([*values, late])
    assert first.kind == last.kind == "label"
    assert dict(first.labels) == dict(last.labels) == {late: 1} | dict.fromkeys("01234", 20)
    assert (last.n_words, last.examples) == (1, ((100, late),))
    assert (first.n_words, first.examples) == (1, ((0, late),))


@pytest.mark.usefixtures("_small_batches")
def test_words_are_missing_where_numbers_are_asked_for():
    column = column_of([*"123456789", "x", "y", "2", "z", "w"], types={"c": "number"})
    assert (column.kind, column.n_missing, column.n_words, column.n_distinct) == ("number", 4, 4, 9)
    assert column.examples == ((9, "x"), (10, "y"), (12, "z"))
    assert_array_equal(np.isnan(column.sample), [False] * 9 + [True, True, False, True, True])


def test_a_kind_that_nothing_is_of_is_an_error():
    with pytest.raises(
        ValueError, match="'c' was said to hold numbers, and none of its 2 values is one: row 0 holds 'a'"
    ):
        column_of(["a", "b"], types={"c": "number"})
    with pytest.raises(ValueError, match="said to hold dates"):
        column_of(["1", "2"], types={"c": "date"})
    with pytest.raises(ValueError, match="'d' is none"):
        column_of(["1"], types={"d": "date"})
    with pytest.raises(ValueError, match="got 'text' for 'c'"):
        column_of(["1"], types={"c": "text"})
    with pytest.raises(ValueError, match="skips all"):
        column_of(["1"], types={"c": "skip", "other": "skip"})


@pytest.mark.parametrize("as_file", [True, False])
def test_few_names_made_of_many_digits_are_told_apart(tmp_path, as_file):
    """9007199254740993 and ...992 are one float."""
    names = [9007199254740992, 9007199254740993, 12]
    frame = pd.DataFrame({"name": np.repeat(names, 40), "time": 1_700_000_000_000_000_000 + 10**6 * np.arange(120)})
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    found = sketch(open_source(path if as_file else frame))
    assert found.columns["name"].kind == "label"
    assert found.columns["name"].labels == {str(name): 40 for name in names}
    assert found.columns["time"].kind == "number"
    assert sketch(open_source(frame), {"name": "number"}).columns["name"].n_distinct == 2
    assert sketch(open_source(frame.astype(float))).columns["name"].kind == "number"


def test_numbers_can_be_labels_and_columns_can_be_skipped(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1.0,x\n10,y\n1.0,x\n")
    found = sketch(open_source(path), types={"a": "label", "b": "skip"})
    assert list(found.columns) == ["a"]
    assert dict(found.columns["a"].labels) == {"1.0": 2, "10": 1}, "texts stay as they are written"


@pytest.mark.usefixtures("_small_batches")
def test_dates_that_cannot_be_read_are_missing_and_the_form_is_that_of_most():
    values = ["01/02/2020"] * 10 + ["25/02/2020"] * 10 + ["soon"]
    column = column_of(values, types={"c": "date"})
    assert (column.form, column.n_missing, column.n_words) == ("%d/%m/%Y", 1, 1)
    day = np.datetime64("2020-02-01", "us").astype(float)
    assert_array_equal(column.sample[:10], day)


@pytest.mark.usefixtures("_small_batches")
def test_values_that_stand_for_a_missing_one():
    column = column_of(["1", "?", " ? ", "-999", "5"] * 4, missing_values=("?", "-999"))
    assert (column.kind, column.n_missing, column.minimum) == ("number", 12, 1.0)
    column = column_of(["a", "?", " ? ", "-999", None], missing_values=("?", "-999"))
    assert (dict(column.labels), column.n_missing) == ({"a": 1}, 4)
    table = pa.table({"n": [1.0, -999.0, np.nan]})
    found = sketch(open_source(table), missing_values=("-999",))
    assert found.columns["n"].n_missing == 2
    assert_array_equal(typed(table.to_batches()[0], found)["n"], [1.0, np.nan, np.nan])


ARROW = {
    "int8": (pa.array([1, None, 3], pa.int8()), "number", [1, np.nan, 3]),
    "decimal": (pa.array([Decimal("1.25"), None, Decimal("-3.5")]), "number", [1.25, np.nan, -3.5]),
    "half": (pa.array(np.array([1, 2, 3], np.float16)), "number", [1, 2, 3]),
    "date32": (pa.array([dt.date(1970, 1, 2), None, dt.date(1969, 12, 31)]), "date", [86400e6, np.nan, -86400e6]),
    "date64": (pa.array([0, 86400000, None], pa.date64()), "date", [0, 86400e6, np.nan]),
    "nanoseconds": (pa.array([1000, 2500, None], pa.timestamp("ns")), "date", [1, 2, np.nan]),
    "zoned": (pa.array([0, 5, None], pa.timestamp("s", "Europe/Berlin")), "date", [0, 5e6, np.nan]),
    "time32": (pa.array([0, 1500, None], pa.time32("ms")), "number", [0, 1.5, np.nan]),
    "time64": (pa.array([0, 1500, None], pa.time64("us")), "number", [0, 0.0015, np.nan]),
    "duration": (pa.array([0, 90, None], pa.duration("s")), "number", [0, 90, np.nan]),
    "null": (pa.nulls(3), "number", [np.nan] * 3),
    "bool": (pa.array([True, None, False]), "label", ["true", None, "false"]),
    "dictionary": (pa.array(["x", None, "y"]).dictionary_encode(), "label", ["x", None, "y"]),
    "dictionary of numbers": (pa.array([5, None, 7]).dictionary_encode(), "label", ["5", None, "7"]),
    "large": (pa.array(["x", None, "y"], pa.large_string()), "label", ["x", None, "y"]),
    "view": (pa.array(["x", None, "y"], pa.string_view()), "label", ["x", None, "y"]),
    "text": (pa.array([" 1", "NA", "2"]), "number", [1, np.nan, 2]),
}


@pytest.mark.parametrize("case", ARROW)
@pytest.mark.parametrize("keep", [True, False], ids=["kept", "read again"])
def test_arrow_types_as_numbers_and_codes(case, keep):
    array, kind, expected = ARROW[case]
    source = open_source(pa.table({"c": array}))
    found = sketch(source, keep=keep)
    assert found.columns["c"].kind == kind
    (batch,) = found.typed_batches(source)
    if kind == "label":
        codes, texts = batch["c"]
        assert codes.dtype.kind == "i"
        assert [texts[code] if code >= 0 else None for code in codes] == expected
    else:
        assert_array_equal(batch["c"], expected)


def mixed_table(n, seed=0):
    rng = np.random.default_rng(seed)
    label = np.array(["red", "green", "blue"], object)[rng.choice(3, n, p=[0.7, 0.2, 0.1])]
    label[rng.random(n) < 0.1] = None
    number = rng.normal(1e9, 1.0, n)
    number[rng.random(n) < 0.2] = np.nan
    days = np.datetime64("2020-01-01", "us") + rng.integers(0, 10**12, n).astype("timedelta64[us]")
    return pd.DataFrame({"number": number, "label": label, "date": days, "row": np.arange(n)})


def test_moments_are_those_of_the_whole_column(monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 997)
    frame = mixed_table(10_000)
    found = sketch(open_source(frame)).columns
    assert_allclose([found["number"].mean, found["number"].std], [frame.number.mean(), frame.number.std()], rtol=1e-12)
    assert (found["number"].minimum, found["number"].maximum) == (frame.number.min(), frame.number.max())
    assert found["number"].n_distinct == frame.number.nunique()
    assert found["number"].n_missing == frame.number.isna().sum()
    assert (found["number"].whole, found["row"].whole) == (False, True)
    assert dict(found["label"].labels) == frame.label.value_counts().to_dict()
    assert list(found["label"].labels) == ["red", "green", "blue"], "the most frequent first"
    assert found["label"].n_missing == frame.label.isna().sum()


def test_infinite_numbers_are_kept_and_counted():
    column = sketch(open_source(pa.table({"c": [1.0, np.inf, 3.0, -np.inf, np.inf]}))).columns["c"]
    assert (column.n_infinite, column.n_missing, column.mean, column.std) == (3, 0, 2.0, np.sqrt(2))
    assert (column.minimum, column.maximum) == (-np.inf, np.inf)


@pytest.mark.parametrize("batch_rows", [1_000, 65_536])
def test_a_sample_is_of_the_same_rows_in_all_columns_however_they_are_batched(batch_rows, monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", batch_rows)
    monkeypatch.setattr(sketches, "SAMPLE_ROWS", 4_096)
    frame = mixed_table(30_000)
    found = sketch(open_source(frame), random_state=3)
    rows = found.sample_rows
    assert len(rows) == 4_096
    assert (np.diff(rows) > 0).all()
    assert_array_equal(found.columns["row"].sample, rows)
    assert_array_equal(found.columns["number"].sample, frame.number.to_numpy()[rows])
    label = found.columns["label"]
    texts = [list(label.labels)[int(place)] if place >= 0 else None for place in label.sample]
    assert texts == frame.label.astype(object).where(frame.label.notna(), None).iloc[rows].tolist()
    smallest = np.argsort(tallies._hashed(np.arange(30_000), np.uint64(3)))[:4_096]
    assert_array_equal(rows, np.sort(smallest))


def test_samples_are_uniform_and_depend_on_the_seed():
    drawn = []
    for seed in range(40):
        sampler = tallies.Sampler(500, seed)
        for _ in range(20):
            sampler.pick(500)
            sampler.thin()
        sampler.thin(end=True)
        drawn.append(sampler.rows)
    share = np.histogram(np.concatenate(drawn), bins=10, range=(0, 10_000))[0] / (40 * 500)
    assert_allclose(share, 0.1, atol=4 * np.sqrt(0.1 * 0.9 / 20_000))
    assert len(np.intersect1d(drawn[0], drawn[1])) < 60  # 25 are expected


def test_all_rows_are_the_sample_of_few():
    frame = mixed_table(100)
    assert_array_equal(sketch(open_source(frame)).sample_rows, np.arange(100))


def test_frequent_labels_are_never_lost_among_many(monkeypatch):
    monkeypatch.setattr(tallies, "MOST_VALUES", 50)
    monkeypatch.setattr(tables, "BATCH_ROWS", 100)
    rng = np.random.default_rng(0)
    values = np.array([f"id {i}" for i in range(5_000)], object)
    for label, share in (("often", 0.1), ("sometimes", 0.05)):
        values[rng.choice(5_000, int(share * 5_000), replace=False)] = label
    column = column_of(list(values))
    true = pd.Series(values).value_counts()
    assert not column.labels_exact
    assert not column.distinct_exact
    assert 100 < column.n_distinct <= true.size
    assert list(column.labels)[:2] == ["often", "sometimes"]
    assert column.labels_error <= 5_000 / 51
    for label, count in column.labels.items():
        assert true[label] - column.labels_error <= count <= true[label]
    heavy = list(column.labels)
    for place, value in zip(column.sample, values, strict=True):
        assert place == len(heavy) or heavy[int(place)] == value
    assert (column.sample[values == "often"] == 0).all()


def test_many_labels_are_read_again_in_the_second_pass(monkeypatch):
    monkeypatch.setattr(tallies, "MOST_VALUES", 10)
    source = open_source(pa.table({"c": [f"id {i}" for i in range(200)]}))
    (batch,) = sketch(source).typed_batches(source)
    codes, texts = batch["c"]
    assert [texts[code] for code in codes] == [f"id {i}" for i in range(200)]


def test_memory_that_runs_out_changes_no_value(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_block_size", lambda row: 1 << 12)
    monkeypatch.setattr(delimited, "GATHERED_ROWS", 1 << 7)
    frame = mixed_table(2_000)
    path = tmp_path / "t.csv"
    frame.assign(late=["", *["1"] * 1_998, "word"]).to_csv(path, index=False)
    source = open_source(path)
    kept, again = sketch(source), sketch(source, keep=False)
    assert kept._kept is not None
    pairs = list(zip(kept.typed_batches(source), again.typed_batches(source), strict=True))
    assert len(pairs) > 10
    for one, other in pairs:
        for name in ("number", "date", "row"):
            assert_array_equal(one[name], other[name])
        for name in ("label", "late"):
            (codes, texts), (codes_again, texts_again) = one[name], other[name]
            assert [texts[c] if c >= 0 else None for c in codes] == [
                texts_again[c] if c >= 0 else None for c in codes_again
            ]


def test_a_csv_says_the_same_as_the_frame_that_it_was_written_from(tmp_path):
    frame = mixed_table(3_000)
    frame.to_csv(tmp_path / "t.csv", index=False)
    there, back = sketch(open_source(frame)).columns, sketch(open_source(tmp_path / "t.csv")).columns
    for name, column in there.items():
        assert back[name].kind == column.kind
        assert back[name].labels == column.labels
        assert back[name].n_missing == column.n_missing
        assert_array_equal(back[name].sample, column.sample)
        assert (back[name].mean, back[name].std) == (column.mean, column.std) or column.kind == "label"


@pytest.mark.usefixtures("_small_batches")
def test_another_table_is_read_as_the_first_was_and_what_does_not_fit_is_counted():
    first = pa.table({"n": ["1", "2.5"] * 10, "d": ["2020-01-01", None] * 10, "l": ["x", "y"] * 10})
    other = pa.table({"l": ["z", "x", "1"], "d": ["soon", "2020-01-02", "never"], "n": ["word", "7", "NA"]})
    found = sketch(open_source(first))
    unread = Counter()
    (batch,) = found.typed_batches(open_source(other), unread)
    assert_array_equal(batch["n"], [np.nan, 7.0, np.nan])
    assert np.isnan(batch["d"]).tolist() == [True, False, True]
    assert [batch["l"][1][code] for code in batch["l"][0]] == ["z", "x", "1"]
    assert unread == {"n": 1, "d": 2}


@pytest.mark.parametrize("keep", [True, False])
def test_words_among_numbers_are_counted_again_in_the_second_pass(keep):
    source = open_source(pa.table({"n": ["1", "x", "2.5", "NAN"]}))
    unread = Counter()
    assert len(list(sketch(source, {"n": "number"}, keep=keep).typed_batches(source, unread))) == 1
    assert unread == {"n": 1}


def test_a_dictionary_of_a_whole_file_counts_what_is_there():
    whole = pa.DictionaryArray.from_arrays(
        pa.array([3, 3, None, 9], pa.int32()), pa.array([f"l{i}" for i in range(100)])
    )
    column = sketch(open_source(pa.table({"c": whole}))).columns["c"]
    assert (dict(column.labels), column.n_distinct, column.n_missing) == ({"l3": 2, "l9": 1}, 2, 1)


@pytest.mark.parametrize("values", [["2020-01-31", "2021-02-01", None], ["31/01/2020", "01/02/2021", ""]])
def test_dates_are_no_words_among_numbers(values):
    column = column_of(values * 10)
    assert (column.kind, column.n_words, column.examples, column.n_missing) == ("date", 0, (), 10)


def test_numbers_that_repeat_are_those_that_do_not():
    rng = np.random.default_rng(8)
    values = rng.choice([-np.inf, -2.5, -0.0, 0.0, 7.0, np.nan], 5_000, p=[0.01, 0.3, 0.1, 0.1, 0.29, 0.2])
    source = open_source(pd.DataFrame({"c": values}))
    found = sketch(source)
    (batch,) = found.typed_batches(source)
    assert isinstance(batch["c"], Repeated)
    assert_array_equal(batch["c"], values)
    column, finite = found.columns["c"], values[np.isfinite(values)]
    assert (column.n_missing, column.n_infinite) == (np.isnan(values).sum(), np.isinf(values).sum())
    assert (column.minimum, column.maximum, column.whole) == (-np.inf, 7.0, False)
    assert (column.mean, column.std) == pytest.approx((finite.mean(), finite.std(ddof=1)), rel=1e-12)


@pytest.mark.parametrize("n_edges", [0, 1, 6, 7, 8, 255])
def test_cells_of_numbers_are_found_as_by_searching(n_edges):
    rng = np.random.default_rng(n_edges)
    edges = np.sort(rng.standard_normal(n_edges))
    values = np.r_[rng.standard_normal(40_000), edges, np.inf, -np.inf]
    cells = Cells("c", "number", edges, np.zeros(n_edges + 1))
    assert_array_equal(cells.of_numbers(values), np.searchsorted(edges, values))
    assert_array_equal(cells.of_numbers(np.array([np.nan])), n_edges + 1)


def test_digits_that_repeat_are_names_though_some_are_missing(tmp_path):
    codes = np.array(["01234", "", "98765", "NA"])[np.random.default_rng(2).integers(0, 4, 3_000)]
    pd.DataFrame({"zip": codes, "row": range(3_000)}).to_csv(tmp_path / "t.csv", index=False)
    column = sketch(open_source(tmp_path / "t.csv")).columns["zip"]
    assert column.kind == "label"
    assert set(column.labels) == {"01234", "98765"}
    assert column.n_missing == np.isin(codes, ["", "NA"]).sum()


def test_labels_that_are_known_are_counted_alike_however_they_come():
    texts = pa.array(["b", None, "a", "NA", "b", " a"], pa.large_string())
    tally, other = (tallies.LabelTally(values.Missing()) for _ in range(2))
    assert tally.add_known(texts) is None  # nothing is known yet
    first = values.labels_of(texts.cast(pa.string()))
    ids = [each.add(values.codes_of(first), first.dictionary) for each in (tally, other)]
    assert_array_equal(tally.add_known(texts), other.add(values.codes_of(first), first.dictionary))
    assert_array_equal(*ids)
    assert_array_equal(tally.counts, other.counts)
    assert tally.count == other.count == 8  # missing ones are none
    assert tally.add_known(pa.array(["a", "new"])) is None
    assert tally.count == 8


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int64(), pa.uint64()])
def test_whole_numbers_of_any_width_are_their_own_codes(kind):
    lowest, highest = (-128, 127) if kind == pa.int8() else (0, 200)
    numbers = [lowest, highest, None, 3] * 300
    found = values.numbers_of(pa.array(numbers, kind), values.Missing()).values
    assert isinstance(found, Repeated)
    assert_array_equal(found, np.array(numbers, float))
    far = pa.array([2**62, 2**62 + 1] * 600)  # no floats: both are the same
    assert_array_equal(values.numbers_of(far, values.Missing()).values, far.to_numpy().astype(float))
