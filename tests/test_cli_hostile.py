"""Files that nobody should hand to a command: a clear message and an exit code, no traceback, and nothing written."""

from __future__ import annotations

import gzip
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from featgeo import cli

THREE = "".join(f"{i % 7},{i % 5},1\n" for i in range(60))
ROWS = "".join(f"{i % 7},{i % 5}\n" for i in range(60))


def _cut_short(path):
    pd.DataFrame({"a": np.arange(1000.0), "b": np.arange(1000.0)}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-200])


def _nested(path):
    pd.DataFrame({"a": [[1, 2]] * 60, "b": np.arange(60.0)}).to_parquet(path)


REFUSED = {
    "empty": ("x.csv", b"", "is empty"),
    "header only": ("x.csv", b"a,b\n", "needs rows"),
    "ragged": ("x.csv", b"a,b\n1,2\n1,2,3\n", "as many fields as the first"),
    "another delimiter": ("x.csv", b"a~b\n1~2\n", "the file has no '"),
    "not UTF-8": ("x.csv", b"a,b\n\xff\xe9,2\n" * 40, "encoding"),
    "duplicate names": ("x.csv", b"a,a,b\n1,2,3\n" * 40, "are both called 'a'"),
    "an open quote": ("x.csv", f'a,b\n{ROWS}"1,2\n{ROWS}'.encode(), "quote"),
    "a gzip cut short": ("x.csv.gz", gzip.compress(f"a,b\n{ROWS}".encode())[:-20], "damaged or cut short"),
    "a spreadsheet": ("x.xlsx", b"PK\x03\x04 and so on", "export it as CSV"),
    "a Parquet file cut short": ("x.parquet", _cut_short, "no complete Parquet file"),
    "text called Parquet": ("x.parquet", b"a,b\n1,2\n", "no complete Parquet file"),
    "a nested column": ("x.parquet", _nested, "'a' of"),
    "100,000 columns": ("x.csv", ",".join(f"c{i}" for i in range(100_000)).encode() + b"\n", "the file has no '"),
    "a device": ("/dev/null", None, "must be that of a regular file"),
    "an empty folder": ("folder/", None, "folder"),
    "nothing": ("no/such/file.csv", None, "is not. Check the path"),
}


@pytest.mark.parametrize("command", ["test", "fit"])
@pytest.mark.parametrize("case", REFUSED)
def test_files_that_cannot_be_read_are_refused_with_a_message(tmp_path, monkeypatch, case, command):
    monkeypatch.chdir(tmp_path)
    name, content, message = REFUSED[case]
    if callable(content):
        content(tmp_path / name)
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    elif name.endswith("/"):
        (tmp_path / name).mkdir()
    before = sorted(tmp_path.iterdir())
    words = [name, "a", "b"] if command == "test" else [name, "--target", "b", "--x", "a", "-o", "model"]
    found = CliRunner().invoke(cli.main, [command, *words, "--json"])
    assert found.exit_code == 2, found.output
    assert message in found.stderr
    assert found.stdout == ""
    assert "Traceback" not in found.stderr
    assert sorted(tmp_path.iterdir()) == before


def _decimal(path):
    values = [Decimal(i % 7) / 4 for i in range(60)]
    pd.DataFrame({"a": values, "b": np.arange(60) % 5, "c": [[1]] * 60}).to_parquet(path)


READ = {
    "UTF-16": ("x.csv", f"a,b\n{ROWS}".encode("utf-16")),
    "a byte order mark": ("x.csv", f"\ufeffa,b\n{ROWS}".encode()),
    "mixed line ends": ("x.csv", f"a,b\r\n{ROWS[:120]}{ROWS[120:]}".replace("\n1", "\r\n1").encode()),
    "gzip": ("x.csv.gz", gzip.compress(f"a,b\n{ROWS}".encode())),
    "semicolons": ("x.csv", f"a,b\n{ROWS}".replace(",", ";").encode()),
    "tabs": ("x.tsv", f"a,b\n{ROWS}".replace(",", "\t").encode()),
    "a column without a name": ("x.csv", f"a,b,\n{THREE}".encode()),
    "a field of a million characters": ("x.csv", f"a,b,c\n{THREE}1,2,{'x' * 10**6}\n".encode()),
    "decimals beside lists": ("x.parquet", _decimal),
}


@pytest.mark.parametrize("case", READ)
def test_unusual_files_are_read(tmp_path, case):
    name, content = READ[case]
    if callable(content):
        content(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(content)
    found = CliRunner().invoke(cli.main, ["test", str(tmp_path / name), "a", "b"])
    assert found.exit_code == 0, found.output
    rows = found.stdout.splitlines()[1].split("\t")[-1]
    assert rows == ("61" if "million" in case else "60")


def test_what_a_file_holds_is_never_markup_nor_obeyed_by_a_terminal(tmp_path):
    (tmp_path / "x.csv").write_text("[red]a\x1b[2J[/red],b\n" + ROWS)
    found = CliRunner().invoke(cli.main, ["test", str(tmp_path / "x.csv"), "[red]a\x1b[2J[/red]", "b"])
    assert found.exit_code == 0, found.output
    assert "[red]a\\x1b[2J[/red]\tb" in found.stdout
    assert "\x1b" not in found.output
