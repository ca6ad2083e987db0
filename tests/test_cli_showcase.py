"""`demo` and `reproduce`: what they print, in wide terminals and in narrow ones."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from made_up_experiment import experiment
from rich.console import Console
from typer.testing import CliRunner

import featgeo
from featgeo import cli
from featgeo.cli import printing, showcase
from featgeo.report.contents import Chapter, Number


def printed(what, width):
    stream = io.StringIO()
    Console(file=stream, width=width).print(what)
    return [line.split() for line in stream.getvalue().splitlines() if line.strip()]


def drawn(chapters, room):
    return printing.drawn(showcase._grid(chapters, room), room)


def chapter(*numbers, name="made-up"):
    return Chapter(experiment(name=name).about, numbers, ())


GOOD = chapter(Number("σ", 0.012345, 0.5, 0.512345, bound=0.02), Number("[f]", 0.1, floor=0.2))
BAD = chapter(Number("σ", 0.3, bound=0.2), Number("f", 0.1, bound=0.2), name="wrong")


def test_a_wide_table_has_all_figures_and_an_experiment_a_row_of_its_own():
    head, _, *rows = printed(drawn([GOOD, BAD], 80), 120)
    assert head == ["figure", "theory", "learned", "error", "floor", "allowed", "verdict"]
    assert rows == [
        ["made-up", "pass"],
        ["σ", "0.5", "0.5123", "0.012", "–", "0.02", "pass"],
        ["[f]", "–", "–", "0.1", "0.2", "0.22", "pass"],
        ["wrong", "FAIL"],
        ["σ", "–", "–", "0.3", "–", "0.2", "FAIL"],
        ["f", "–", "–", "0.1", "–", "0.2", "pass"],
    ]


def test_a_narrow_table_has_errors_and_verdicts_alone():
    head, _, *rows = printed(drawn([GOOD], 79), 79)
    assert head == ["figure", "error", "verdict"]
    assert rows == [["made-up", "pass"], ["σ", "0.012", "pass"], ["[f]", "0.1", "pass"]]


def test_figures_and_verdicts_are_never_broken_in_two():
    long = chapter(Number("a name of a figure that takes all the room", 0.1234, bound=1.0))
    lines = printed(drawn([long], 30), 30)
    assert any(line[-2:] == ["0.12", "pass"] for line in lines)


def test_in_a_pipe_all_figures_are_there_with_tabs_between_them(monkeypatch, tmp_path):
    monkeypatch.setattr("featgeo.reproduce.reproduce", lambda *_, **__: [GOOD, BAD])
    found = CliRunner(env={"COLUMNS": "20"}).invoke(cli.main, ["reproduce", "-o", str(tmp_path)])
    assert found.exit_code == 1  # one of them fails
    head, *rows = (line.split("\t") for line in found.output.splitlines())
    assert head == ["figure", "theory", "learned", "error", "floor", "allowed", "verdict"]
    assert rows[1] == ["  σ", "0.5", "0.5123", "0.012", "–", "0.02", "pass"]
    assert rows[-2:] == [
        ["1 of 2 experiments agree with their theory."],
        [f"Open {(tmp_path / 'report.html').resolve().as_uri()}"],
    ]


def test_without_a_command_there_is_help_and_the_version_is_that_of_the_library():
    bare = CliRunner().invoke(cli.main, [])
    assert "Usage" in bare.output
    assert "reproduce" in bare.output
    found = CliRunner().invoke(cli.main, ["--version"])
    assert found.exit_code == 0
    assert found.output == f"featgeo {featgeo.__version__}\n"


@pytest.mark.parametrize(("given", "folder"), [(["-o", "mine"], "mine"), ([], "demo")])
def test_the_demo_writes_to_the_folder_that_is_named(monkeypatch, tmp_path, given, folder):
    asked = []
    for what, page in (("explore_patients", "explore.html"), ("demonstrate", "index.html")):
        monkeypatch.setattr(f"featgeo.demo.{what}", lambda output, page=page: asked.append(output) or tmp_path / page)
    found = CliRunner(env={"COLUMNS": "20"}).invoke(cli.main, ["demo", *given])
    assert asked == [Path(folder)] * 2
    for page in ("explore.html", "index.html"):
        assert f"Open {(tmp_path / page).as_uri()}\n" in found.output


def test_experiments_are_told_as_they_are_done(monkeypatch, tmp_path):
    told = []

    class Bar:
        """Stands in for the bar of progress."""

        def __init__(self, *columns, **options):
            self.options = options

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def add_task(self, description, total, completed, text):
            told.append((description, total, self.options["transient"]))
            return 7

        def update(self, task, advance, description):
            told.append((task, advance, description))

    made = experiment()
    monkeypatch.setattr("rich.progress.Progress", Bar)
    monkeypatch.setattr("featgeo.reproduce.EXPERIMENTS", {made.name: made})
    found = CliRunner().invoke(cli.main, ["reproduce", "--draws", "3", "--seed", "0", "-o", str(tmp_path)])
    assert found.exit_code == 0
    assert told == [("starting", 3, True), *[(7, 1, "made-up")] * 3]
    assert "1 of 1 experiments agree with their theory." in found.output
    assert (tmp_path / "report.html").resolve().as_uri() in found.output.replace("\n", "")
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(cli.main, ["reproduce", "--draws", "1", "--seed", "1", "--recipe", "published"])
    assert (tmp_path / "reproduce-published" / "report.html").is_file()


@pytest.mark.parametrize(("command", "room"), [("demo", "featgeo.demo"), ("reproduce", "featgeo.reproduce")])
def test_what_misses_is_named_with_the_way_to_get_it(monkeypatch, command, room):
    monkeypatch.setitem(sys.modules, room, None)  # as if it could not be imported
    found = CliRunner().invoke(cli.main, [command])
    assert found.exit_code == 2
    assert found.stderr == f"The featgeo command needs its extra ({room} is missing). Run: pip install 'featgeo[cli]'\n"
