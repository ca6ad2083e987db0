"""`featgeo reproduce`: goes on where it stopped, says the same again, and fails when a number does."""

from __future__ import annotations

import json

import pytest
from made_up_experiment import experiment
from typer.testing import CliRunner

from featgeo import reproduce as room
from featgeo.cli import main


@pytest.fixture
def made_up(monkeypatch):
    """Two experiments: one passes, one fails on medians of three draws; the seeds drawn are counted."""
    drawn = []

    def counted(made):
        draw = made.draw

        def counting(seed):
            drawn.append((made.name, seed))
            return draw(seed)

        object.__setattr__(made, "draw", counting)
        return made

    figures = {}

    def drawn_once(plot):
        """Both experiments show the same figure, and tests ask for it a dozen times."""
        if plot.slug not in figures:
            figures[plot.slug] = draw(plot)
        return figures[plot.slug]

    draw = room.draw
    monkeypatch.setattr(room, "draw", drawn_once)
    good = counted(experiment())
    bad = counted(experiment((0.3, 0.4, 0.1), "wrong"))
    monkeypatch.setattr(room, "EXPERIMENTS", {made.name: made for made in (good, bad)})
    return drawn


def run(*arguments):
    return CliRunner(env={"COLUMNS": "120"}).invoke(main, ["reproduce", *map(str, arguments)])


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "runs" not in path.parts
    }


def test_all_passed_exits_with_0_and_a_failure_with_1(made_up, tmp_path):
    passed = run("made-up", "--draws", 3, "--seed", 0, "-o", tmp_path / "good")
    assert passed.exit_code == 0, passed.output
    assert "1 of 1 experiments agree" in passed.output
    failed = run("--draws", 3, "--seed", 0, "-o", tmp_path / "both")
    assert failed.exit_code == 1
    assert "FAIL" in failed.output
    assert "1 of 2 experiments agree" in failed.output
    results = json.loads((tmp_path / "both" / "results.json").read_text())
    assert {name: found["passed"] for name, found in results["experiments"].items()} == {
        "made-up": True,
        "wrong": False,
    }
    (number,) = results["experiments"]["wrong"]["numbers"]
    assert (number["name"], number["error"], number["allowed"], number["passed"]) == ("a", 0.3, 0.25, False)
    assert (number["bound"], number["floor"]) == (0.25, 0.05)
    assert (results["recipe"], results["draws"], results["seed"]) == ("fast", "3", "0")


def test_the_same_seed_gives_the_same_files(made_up, tmp_path):
    for name in ("a", "b"):
        run("--draws", 3, "--seed", 0, "-o", tmp_path / name)
    first = files(tmp_path / "a")
    assert first == files(tmp_path / "b")
    assert {str(path) for path in first} == {"results.json", "report.html", "figures/made-up.svg"}


def test_interrupted_and_started_again_it_goes_on_with_what_is_missing(made_up, tmp_path, monkeypatch):
    whole = tmp_path / "whole"
    run("--draws", 3, "--seed", 0, "-o", whole)
    made_up.clear()
    compare = room.EXPERIMENTS["made-up"].compare

    def interrupted(data, learned, best):
        if data == 2:
            raise KeyboardInterrupt
        return compare(data, learned, best)

    object.__setattr__(room.EXPERIMENTS["made-up"], "compare", interrupted)
    again = tmp_path / "again"
    assert run("--draws", 3, "--seed", 0, "-o", again).exit_code != 0
    assert not (again / "results.json").exists()
    object.__setattr__(room.EXPERIMENTS["made-up"], "compare", compare)
    run("--draws", 3, "--seed", 0, "-o", again)
    assert made_up == [
        ("made-up", 0),
        ("made-up", 1),
        ("made-up", 2),
        ("made-up", 2),
        *(("wrong", i) for i in range(3)),
    ]
    assert files(again) == files(whole)


def test_fresh_runs_again_what_is_there(made_up, tmp_path):
    for extra in ([], [], ["--fresh"]):
        run("made-up", "--draws", 1, "--seed", 1, "-o", tmp_path, *extra)
    assert made_up == [("made-up", 1)] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["typo"], "There is no experiment typo. The names are: made-up, wrong."),
        (["--draws", "0"], "at least 1 draw, got 0"),
        (["--seed", "-1"], "at least 0, got -1"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_is_written(made_up, tmp_path, arguments, message):
    result = run(*arguments, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_stays(made_up, tmp_path):
    (tmp_path / "out").write_text("mine")
    result = run("-o", tmp_path / "out")
    assert result.exit_code == 2
    assert (tmp_path / "out").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_said(made_up, tmp_path):
    (tmp_path / "file").write_text("mine")
    result = run("made-up", "--draws", 1, "--seed", 1, "-o", tmp_path / "file" / "out")
    assert result.exit_code == 2
    assert "file" in result.output


def test_a_run_without_numbers_agrees_with_nothing(made_up, tmp_path):
    arguments = ("made-up", "--draws", 1, "--seed", 1, "-o", tmp_path)
    assert run(*arguments).exit_code == 0
    (path,) = (tmp_path / "runs").iterdir()
    path.write_text(json.dumps(json.loads(path.read_text()) | {"numbers": []}))
    assert run(*arguments).exit_code == 1


def test_two_real_experiments_from_the_command_line(tmp_path):
    result = run("discrete", "sequential", "--draws", 1, "-o", tmp_path)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["discrete.svg", "sequential.svg"]
    page = (tmp_path / "report.html").read_text()
    assert "Discrete data" in page
    assert "<math" in page
