"""`explore` from the shell: the tables of the library, in every form that they are printed and written in."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from featgeo import cli, load
from featgeo.explore import explore


def run(*words, code=0, **options):
    found = CliRunner(**options).invoke(cli.main, ["explore", *map(str, words)])
    assert found.exit_code == code, found.output
    return found


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    frame = pd.DataFrame(
        {
            "key": [f"k{i}" for i in range(500)],
            "x": x,
            "[y]": x**2 + 0.1 * rng.normal(size=500),
            "sign": np.where(x > 0, "up", "down"),
            "noise, pure": rng.normal(size=500),
        }
    )
    path = tmp_path_factory.mktemp("explore") / "file.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_document_holds_all_pairs_as_the_library_gives_them(file):
    said = json.loads(run(file, "--json").stdout)
    known = explore(file, verbose=0)
    assert said["pairs"] == known.pairs.to_dict()
    assert (said["rows"], len(said["pairs"])) == (500, 6)
    assert said["notes"] == []


def test_a_pipe_gets_all_rows_with_tabs_and_a_sentence_on_what_was_set_aside(file):
    lines = run(file, env={"COLUMNS": "20"}).stdout.splitlines()
    assert lines[0].startswith("500 rows, 5 columns, 6 pairs")
    assert any(line.startswith("'key' ") for line in lines)
    head = next(i for i, line in enumerate(lines) if line.startswith("a\tb\tstrength"))
    assert {tuple(line.split("\t")[:2]) for line in lines[head + 1 : head + 3]} == {("x", "[y]"), ("x", "sign")}
    assert len(lines[head + 1 :]) >= 6


def test_a_narrow_terminal_gets_what_it_has_room_for_and_is_told_of_the_rest(file):
    said = run(file, env={"COLUMNS": "50", "FORCE_COLOR": "1"}).stdout
    assert "[y]" in said
    assert "no room for: " in said
    assert "rows" in said.partition("no room for: ")[2]


def test_columns_that_are_named_are_looked_at_and_the_target_is_among_them(file):
    said = json.loads(run(file, "--columns", 'x,"noise, pure"', "--target", "sign", "--json").stdout)
    assert {name for pair in said["pairs"] for name in (pair["a"], pair["b"])} == {"x", "noise, pure", "sign"}


def test_what_columns_say_of_the_target_comes_first(file):
    lines = run(file, "--target", "x").stdout.splitlines()
    heads = [line.split("\t")[:3] for line in lines if "\t" in line and line.split("\t")[0] in ("a", "column")]
    assert heads == [["column", "alone", "alone_error"], ["a", "b", "strength"], ["a", "b", "energy"]]


def test_given_columns_stand_beside_what_was_there_before(file):
    said = run(file, "--given", "x").stdout
    assert "\nstrength\t" not in said
    assert "a\tb\tstrength\tstrength_given\t" in said
    rows = {tuple(line.split("\t")[:2]): line.split("\t") for line in said.splitlines() if "\t" in line}
    before, after = map(float, rows["[y]", "sign"][2:4])
    assert abs(after) < 0.2
    assert rows["x", "[y]"][3] == "–"  # of what is given nothing is left to ask
    assert abs(before) < 0.5


def test_text_is_read_as_the_user_says(tmp_path):
    rows = "".join(f"{i % 7}~é{i % 3}\n" for i in range(90))
    (tmp_path / "x.txt").write_bytes(f"a~b\n{rows}".encode("latin-1"))
    said = json.loads(run(tmp_path / "x.txt", "--delimiter", "~", "--encoding", "latin-1", "--json").stdout)
    assert [column["name"] for column in said["columns"]] == ["a", "b"]


def test_a_folder_holds_all_tables_and_what_can_be_asked_again(file, tmp_path):
    folder = tmp_path / "new" / "folder"
    run(file, "-o", folder)
    known = explore(file, verbose=0)
    pd.testing.assert_frame_equal(pd.read_csv(folder / "pairs.csv"), known.pairs.to_frame(), check_dtype=False)
    assert load(folder / "exploration.fg").pairs.to_dict() == known.pairs.to_dict()
    assert json.loads((folder / "explore.json").read_text())["title"] == "file.csv"
    assert (folder / "report.html").read_text() == known.to_html("file.csv")
    program = "import sys, featgeo; print(featgeo.load(sys.argv[1]).n_rows)"
    words = [sys.executable, "-c", program, folder / "exploration.fg"]
    again = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
    assert again.stdout.strip() == "500", "a program that has not explored anything yet can read it"


def test_the_page_is_opened_where_it_was_written_and_refused_without_a_folder(file, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run(file, "-o", tmp_path / "folder", "--open")
    assert opened == [(tmp_path / "folder" / "report.html").as_uri()]
    assert "--output" in run(file, "--open", code=2).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target", "z"], "'z'"),
        (["--columns", "x,z"], "'z'"),
        (["--target", "x", "--given", "x"], "'x' is in --target and in --given"),
        (["--types", "x=words"], "a kind is one of"),
        (["--rate", "2"], "--rate"),
    ],
)
def test_what_cannot_be_explored_is_refused_and_nothing_is_written(file, tmp_path, words, message):
    found = run(file, *words, "-o", tmp_path / "folder", code=2)
    assert message in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused_before_the_file_is_read(tmp_path):
    (tmp_path / "mine").write_text("")
    found = run(tmp_path / "no.csv", "-o", tmp_path / "mine", code=2)
    assert "must be one that is there or can be made" in found.stderr
