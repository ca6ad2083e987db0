"""What users hand in comes as record batches, as often as wanted; what cannot be read is refused in one sentence."""

import csv
import gzip
import io
import os
import threading
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from featgeo.reading import delimited, tables
from featgeo.reading.source import open_source

CSV = b"a,b,c\n1,x,2.5\n2,y,\n3,x,7\n"
ROWS = {"a": ["1", "2", "3"], "b": ["x", "y", "x"], "c": ["2.5", None, "7"]}


def rows_of(source, columns=None):
    return pa.Table.from_batches([plain(batch) for batch in source.batches(columns)]).to_pydict()


def plain(batch):
    arrays = [a.dictionary_decode() if pa.types.is_dictionary(a.type) else a for a in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def file_with(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(content)
    return str(path)


SHAPES = {
    "plain": ("t.csv", CSV),
    "no last line end": ("t.csv", CSV.rstrip(b"\n")),
    "windows": ("t.csv", CSV.replace(b"\n", b"\r\n")),
    "mixed line ends": ("t.csv", b"a,b,c\r\n1,x,2.5\n2,y,\r3,x,7\r\n"),
    "blank lines": ("t.csv", b"\n\n" + CSV.replace(b"2,y,", b"\n2,y,")),
    "tabs": ("t.tsv", CSV.replace(b",", b"\t")),
    "tabs in a csv": ("t.csv", CSV.replace(b",", b"\t")),
    "semicolons": ("t.csv", CSV.replace(b",", b";")),
    "bars in a file of no known ending": ("t.dat", CSV.replace(b",", b"|")),
    "utf-8 mark": ("t.csv", b"\xef\xbb\xbf" + CSV),
    "utf-16": ("t.csv", CSV.decode().encode("utf-16")),
    "utf-16 big": ("t.csv", b"\xfe\xff" + CSV.decode().encode("utf-16-be")),
    "gzip": ("t.csv.gz", gzip.compress(CSV)),
    "gzip without a name for it": ("t.csv", gzip.compress(CSV)),
    "gzip of two members": ("t.csv.gz", gzip.compress(CSV[:10]) + gzip.compress(CSV[10:])),
    "quoted": ("t.csv", b'"a","b","c"\n"1","x","2.5"\n"2","y",""\n"3","x","7"\n'),
    "markers": ("t.csv", CSV.replace(b"2,y,\n", b"2,y,N/A\n")),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_text_table_is_the_same_however_it_is_laid_out(shape, tmp_path):
    name, content = SHAPES[shape]
    source = open_source(file_with(tmp_path, content, name))
    assert source.names == ("a", "b", "c")
    assert rows_of(source) == ROWS
    assert rows_of(source) == ROWS, "a second pass gives the same"
    assert rows_of(source, ["c", "a"]) == {"a": ROWS["a"], "c": ROWS["c"]}


FRAMES = {
    "pandas": lambda t: t.to_pandas(),
    "polars": lambda t: pl.from_arrow(t),
    "arrow": lambda t: t,
    "batch": lambda t: t.combine_chunks().to_batches()[0],
    "reader": lambda t: t.to_reader(),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_and_streams_are_read_again_and_again(kind):
    table = pa.table({"n": [1.5, None, 3.0], "t": ["x", None, "z"], "b": [True, False, True]})
    with open_source(FRAMES[kind](table), columns=["b", "n"]) as source:
        assert source.names == ("n", "b"), "columns stay in the order of the table"
        for _ in range(2):
            assert rows_of(source) == {"n": [1.5, None, 3.0], "b": [True, False, True]}


def test_objects_of_pandas_have_one_type_in_all_batches(monkeypatch):
    monkeypatch.setattr(tables, "BATCH_ROWS", 2)
    frame = pd.DataFrame({"mixed": [1, 2, "x", None], "whole": pd.Series([1, 2, None, 2**60], dtype=object)})
    source = open_source(frame)
    assert rows_of(source) == {"mixed": ["1", "2", "x", None], "whole": [1, 2, None, 2.0**60]}
    assert [batch.schema.types for batch in source.batches()] == [[pa.string(), pa.float64()]] * 2


def test_bytes_that_come_once_leave_no_file_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    source = open_source(io.BytesIO(CSV))
    assert rows_of(source) == rows_of(source) == ROWS
    assert len(os.listdir(tmp_path)) == 1
    source.close()
    assert os.listdir(tmp_path) == []


def test_bytes_that_are_no_table_leave_no_file_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ValueError, match="empty"):
        open_source(io.BytesIO(b""))
    assert os.listdir(tmp_path) == []


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CSV)))
    assert rows_of(open_source("-")) == ROWS


def test_a_pipe(tmp_path):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    writer = threading.Thread(target=Path(path).write_bytes, args=[CSV])
    writer.start()
    assert rows_of(open_source(path)) == ROWS
    writer.join()


def test_files_of_a_folder_are_one_table(tmp_path):
    file_with(tmp_path, CSV, "2.csv")
    file_with(tmp_path, b"c,b,a\n9,z,0\n", "1.csv")
    file_with(tmp_path, b"notes", "README.md")
    file_with(tmp_path, b"half", ".hidden.csv")
    assert rows_of(open_source(tmp_path)) == {
        "c": ["9", "2.5", None, "7"], "b": ["z", "x", "y", "x"], "a": ["0", "1", "2", "3"]
    }  # fmt: skip


def test_parquet_files_of_a_folder_and_of_a_list(tmp_path):
    for part in (1, 2):
        pq.write_table(
            pa.table({"a": [part, 10 * part], "d": pa.array(["x", "y"]).dictionary_encode()}),
            tmp_path / f"{part}.parquet",
        )
    expected = {"a": [1, 10, 2, 20], "d": ["x", "y", "x", "y"]}
    assert rows_of(open_source(tmp_path)) == expected
    assert rows_of(open_source([tmp_path / "1.parquet", tmp_path / "2.parquet"])) == expected


def test_rows_that_no_block_holds_and_line_ends_in_fields(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_block_size", lambda row: 1 << 10)
    rows = [f'{i},"line {i}\nand more"' for i in range(500)]
    rows[300] = "300," + "x" * 1_000_000
    path = file_with(tmp_path, ("a,b\n" + "\n".join(rows) + "\n").encode())
    found = rows_of(open_source(path))
    assert found["a"] == [str(i) for i in range(500)]
    assert found["b"][299] == "line 299\nand more"
    assert len(found["b"][300]) == 1_000_000


@pytest.mark.parametrize("block", [1 << 9, 1 << 10, 1 << 11])
def test_rows_are_those_of_another_reader_wherever_blocks_end(block, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_block_size", lambda row: block)
    rng = np.random.default_rng(block)
    pieces = ["a", ",", '"', "\n", "\n1,2,3\n", "é", " "]
    rows = [["x" + "".join(rng.choice(pieces, rng.integers(1, 9))) for _ in range(3)] for _ in range(700)]
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["a", "b", "c"], *rows])
    found = rows_of(open_source(tmp_path / "t.csv"))
    assert [list(row) for row in zip(*found.values(), strict=True)] == rows


def test_numbers_may_come_as_numbers_until_a_word_comes(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_block_size", lambda row: 1 << 10)
    path = file_with(tmp_path, ("a,z\n" + "".join(f"{i},{i:05d}\n" for i in range(9000)) + "word,00000\n").encode())
    source = open_source(path)
    batches = list(source.batches(None, ["a", "z"]))
    assert batches[0].schema.types == [pa.float64(), pa.string()], "digits of one length may be names"
    assert sum(batch.num_rows for batch in batches) == 9001
    assert batches[-1].column("a")[-1].as_py() == "word"
    assert rows_of(source)["a"] == [*map(str, range(9000)), "word"]


def test_no_header_and_other_names(tmp_path):
    path = file_with(tmp_path, CSV)
    assert open_source(path, header=False).names == ("column_1", "column_2", "column_3")
    assert len(rows_of(open_source(path, header=False))["column_1"]) == 4
    assert rows_of(open_source(path, names=["p", "q", "r"]))["q"] == ROWS["b"]
    with pytest.raises(ValueError, match=r"3 by its first row .* got 2 names"):
        open_source(path, names=["p", "q"])


def test_columns_without_a_name_are_called_after_their_position(tmp_path):
    assert open_source(file_with(tmp_path, b",a, \n0,1,2\n")).names == ("column_1", "a", "column_3")


def test_an_empty_line_of_one_column_is_a_missing_value(tmp_path):
    assert rows_of(open_source(file_with(tmp_path, b"a\n1\n\n3\n"))) == {"a": ["1", None, "3"]}


def test_encodings(tmp_path):
    path = file_with(tmp_path, "a,b\nä,1\n".encode("latin-1"))
    assert rows_of(open_source(path, encoding="latin-1"))["a"] == ["ä"]
    with pytest.raises(ValueError, match=r"byte 4 .*\(line 2\) is not: b'\\xe4'.*`encoding`"):
        rows_of(open_source(path))


TEXT = {
    "empty": (b"", "is empty"),
    "blank": (b"\n \n", "is empty"),
    "header only": (b"a,b\n", "needs rows"),
    "header without a line end": (b"a,b", "needs rows"),
    "ragged": (b"a,b\n1,2\n3\n", "row 3 .*Expected 2 columns, got 1"),
    "ragged the other way": (b"a,b\n1,2\n3,4,5\n", "row 3 .*Expected 2 columns, got 3"),
    "duplicate names": (b"a,b,a\n1,2,3\n", "columns 1 and 3 .* 'a'.*`names`"),
    "100,000 columns": (b",".join(b"%d" % i for i in range(100_000)) + b"\n", "At most 5,000.*100,000.*`columns`"),
    "quote never closed": (b'a,b\n1,"2\n3,4\n5,6\n', "quote must be closed"),
    "utf-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), "encoding='utf-16-le'"),
    "no text late": (b"a,b\n" + b"1,2\n" * 2000 + b"\xff,2\n", r"byte 8,004 .*\(line 2,002\)"),
    "a spreadsheet": (b"PK\x03\x04....", "export it as CSV"),
    "damaged gzip": (gzip.compress(CSV * 1000)[:-100], "gzip and damaged or cut short"),
    "no gzip behind its first bytes": (b"\x1f\x8b" + b"x" * 100, "gzip and damaged or cut short"),
}


@pytest.mark.parametrize("case", TEXT)
def test_hostile_text_is_refused_in_one_sentence(case, tmp_path):
    content, message = TEXT[case]
    with pytest.raises((ValueError, OSError), match=message):
        rows_of(open_source(file_with(tmp_path, content)))


def test_some_of_100_000_columns_can_be_read(tmp_path):
    header = b",".join(b"c%d" % i for i in range(100_000))
    path = file_with(tmp_path, header + b"\n" + b",".join([b"1"] * 100_000) + b"\n")
    assert rows_of(open_source(path, columns=["c5", "c99999"])) == {"c5": ["1"], "c99999": ["1"]}


def test_bytes_that_are_zero_are_bytes(tmp_path):
    assert rows_of(open_source(file_with(tmp_path, b"name,b\nx\x00y,2\n"))) == {"name": ["x\x00y"], "b": ["2"]}


def test_an_endless_row_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "LONGEST_ROW", 1 << 16)
    monkeypatch.setattr(delimited, "_block_size", lambda row: 1 << 12)
    path = file_with(tmp_path, b'a,b\n1,"' + b"x\n" * (1 << 18) + b'"\n')
    with pytest.raises(ValueError, match=r"must end within .* quote may never be closed"):
        rows_of(open_source(path))


def test_types_of_parquet(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"d": [Decimal("1.25"), None], "l": [[1], [2]], "s": [{"q": 1}, None]}), path)
    assert rows_of(open_source(path, columns=["d"])) == {"d": [Decimal("1.25"), None]}
    with pytest.raises(ValueError, match=r"'l' .* holds list.*`columns`"):
        open_source(path)
    with pytest.raises(ValueError, match=r"'s' .* holds struct"):
        open_source(path, columns=["d", "s"])


@pytest.mark.parametrize("left", [3, 60, -60, -4])
def test_a_parquet_file_cut_short(left, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": np.arange(1000)}), path)
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(ValueError, match="no complete Parquet file"):
        rows_of(open_source(path))


def test_a_file_must_not_change(tmp_path):
    path = file_with(tmp_path, b"a,b\n" + b"1,2\n" * 10)
    source = open_source(path)
    rows_of(source)
    with open(path, "ab") as file:
        file.write(b"3,4\n")
    with pytest.raises(OSError, match="44 bytes and has 48"):
        rows_of(source)


def test_a_file_must_not_change_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "_block_size", lambda row: 1 << 10)
    path = file_with(tmp_path, b"a,b\n" + b"1,2\n" * 10_000)
    batches = open_source(path).batches()
    next(batches)
    os.truncate(path, 5_001)
    with pytest.raises(OSError, match="changed"):
        list(batches)


def test_places_without_a_table(tmp_path):
    with pytest.raises(FileNotFoundError, match="must be there"):
        open_source(tmp_path / "none.csv")
    with pytest.raises(ValueError, match="holds none of them"):
        open_source(tmp_path)
    with pytest.raises(OSError, match="is a device"):
        open_source("/dev/zero")
    with pytest.raises(TypeError, match="got dict"):
        open_source({"a": 1})
    with pytest.raises(TypeError, match="collect"):
        open_source(pl.LazyFrame({"a": [1]}))


def test_folders_that_are_no_table(tmp_path):
    file_with(tmp_path, CSV, "1.csv")
    file_with(tmp_path, b"a,b\n1,2\n", "2.csv")
    with pytest.raises(ValueError, match=r"lacks \['c'\]"):
        open_source(tmp_path)
    assert rows_of(open_source(tmp_path, columns=["a"])) == {"a": ["1", "2", "3", "1"]}
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match="holds both"):
        open_source(tmp_path)


def test_files_of_other_types_are_no_part_of_a_table(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"'a' is int64 in .*1.parquet' and string in"):
        open_source(tmp_path)


def test_folders_that_hold_columns_in_their_names(tmp_path):
    (tmp_path / "year=2020").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "year=2020" / "1.parquet")
    with pytest.raises(ValueError, match="year=2020"):
        open_source(tmp_path)


def test_columns_that_are_not_there(tmp_path):
    path = file_with(tmp_path, CSV)
    with pytest.raises(ValueError, match=r"\['z'\] are not. It has 'a', 'b', 'c'"):
        open_source(path, columns=["z"])
    with pytest.raises(ValueError, match="list of names"):
        open_source(path, columns="a")
    with pytest.raises(ValueError, match="one ASCII character"):
        open_source(path, delimiter="::")
    with pytest.raises(ValueError, match="one that Python knows"):
        open_source(path, encoding="klingon")


def test_frames_without_rows_or_with_columns_of_lists():
    with pytest.raises(ValueError, match="needs rows"):
        rows_of(open_source(pd.DataFrame({"a": []})))
    with pytest.raises(ValueError, match="'a' of the frame holds list"):
        open_source(pd.DataFrame({"a": [[1], [2]]}))
    with pytest.raises(ValueError, match="both called 'a'"):
        open_source(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_windows_line_ends_in_quotes_are_kept_wherever_blocks_end(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_bytes(b"x,y\r\n" + b"".join(b'%d,"first\r\nsecond"\r\n' % i for i in range(3000)))
    for name, number in (("BLOCK", 1009), ("BLOCK_ROWS", 1), ("FEWEST_ROWS", 1)):
        monkeypatch.setattr(delimited, name, number)
    source = open_source(path)
    texts = [text for batch in source.batches(["y"]) for text in batch.column(0).to_pylist()]
    assert texts == ["first\r\nsecond"] * 3000
