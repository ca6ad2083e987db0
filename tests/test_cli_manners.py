"""What every command does: exit codes, where things are printed, and what comes from files is text and nothing else."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from featgeo import FitWarning, cli
from featgeo.cli import manners, options, printing

COMMAND = [sys.executable, "-c", "from featgeo.cli import main; main()"]
COMMANDS = ("fit", "predict", "test", "demo", "reproduce")


def ending_with(error):
    app = typer.Typer()

    @app.command()
    @manners.polite
    def command() -> None:
        """Ends as it is told."""
        raise error

    return CliRunner().invoke(app, [])


ENDS = {
    "a message": (ValueError("A rule. The way out."), 2, "A rule. The way out.\n"),
    "markup": (ValueError("[red]x[/red] \x1b[2J"), 2, "[red]x[/red] \\x1b[2J\n"),
    "a missing file": (FileNotFoundError(errno.ENOENT, "No such file", "x.csv"), 2, "x.csv: No such file\n"),
    "our own": (
        OSError(errno.ENOSPC, "'x' cannot be written. Free some space."),
        2,
        "'x' cannot be written. Free some ",
    ),
    "without words": (OSError(), 2, "OSError\n"),
    "memory": (MemoryError(), 2, "not enough memory"),
    "a missing package": (ModuleNotFoundError("No module named 'y'", name="y"), 2, "pip install 'featgeo[cli]'"),
    "a missing extra": (ImportError("Install it: pip install 'featgeo[data]'."), 2, "pip install 'featgeo[data]'"),
    "the keyboard": (KeyboardInterrupt(), 130, "Interrupted.\n"),
}


@pytest.mark.parametrize("case", ENDS)
def test_errors_are_messages_on_standard_error_with_exit_codes(case):
    error, code, message = ENDS[case]
    found = ending_with(error)
    assert found.exit_code == code
    assert found.stdout == ""
    assert message in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("error", [RuntimeError("a bug"), TypeError("f() takes 1 argument"), KeyError("a")])
def test_a_fault_of_our_own_is_no_message_for_users(error):
    assert ending_with(error).exception is error


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    found = CliRunner().invoke(cli.main, [command, "--help"])
    assert found.exit_code == 0
    assert "Usage" in found.output
    assert command in CliRunner().invoke(cli.main, ["--help"]).output


def test_shells_can_complete():
    assert "--install-completion" in CliRunner().invoke(cli.main, ["--help"]).output


@pytest.mark.parametrize("words", [["fit"], ["fit", "x.csv"], ["nothing"], ["test", "x.csv", "a"], ["fit", "--wrong"]])
def test_wrong_usage_ends_with_2(words):
    found = CliRunner().invoke(cli.main, words)
    assert found.exit_code == 2
    assert found.stdout == ""
    assert "Traceback" not in found.output


def test_what_the_library_warns_of_is_noted_once_and_doubts_are_part_of_the_answer():
    with manners.working("x") as notes:
        for _ in range(2):
            warnings.warn("set aside", UserWarning, stacklevel=1)
        warnings.warn("held-out rows do not confirm it", FitWarning, stacklevel=1)
        warnings.warn("for programmers", DeprecationWarning, stacklevel=1)
    assert notes == ["set aside"]


def test_what_terminals_obey_is_written_out():
    assert printing.visible("a\x1b[31m\tb\nc\u202e[red]é") == "a\\x1b[31m\\tb\\nc\\u202e[red]é"
    assert printing.visible("two\nlines\r", lines=True) == "two\nlines\\r"


GRID = printing.Grid(("name", "p"), [("[bold]x[/bold]\x1b[0m", "0.1"), ("a long name " * 30, "–")])


def test_in_a_pipe_there_is_plain_text_with_tabs_and_nothing_is_cut(capsys):
    printing.answer({}, [GRID, "a line"], ["a note"], as_json=False)
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "name\tp",
        "[bold]x[/bold]\\x1b[0m\t0.1",
        "a long name " * 30 + "\t–",
        "a line",
    ]
    assert said.err == "Note: a note\n"


def test_in_a_terminal_long_names_are_folded_and_markup_is_text(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    printing.answer({}, [GRID], [], as_json=False)
    said = capsys.readouterr().out
    assert "[bold]x[/bold]\\x1b[0m" in said
    assert said.replace("\n", " ").count("long") == 30
    assert "0.1" in said


def test_a_json_document_is_all_that_is_printed(capsys):
    data = {"p": np.float64(0.5), "none": float("nan"), "list": np.arange(2), 1: (np.inf, True, "é")}
    printing.answer(data, ["a line"], ["a note"], as_json=True)
    said = capsys.readouterr()
    assert json.loads(said.out) == {
        "p": 0.5,
        "none": None,
        "list": [0, 1],
        "1": [None, True, "é"],
        "notes": ["a note"],
    }
    assert said.err == ""


def test_names_with_commas_stand_in_quotes():
    assert options.listed('a,"b, c", d', "--x") == ["a", "b, c", "d"]
    assert options.listed(None, "--x") == []
    assert options.kinds_of('a=label,"b=c, d=number"') == {"a": "label", "b=c, d": "number"}


@pytest.mark.parametrize("text", ["", "a,,b", "a,a", '"a', "a\nb"])
def test_names_that_are_none_are_refused(text):
    with pytest.raises(ValueError, match="--x"):
        options.listed(text, "--x")


@pytest.mark.parametrize("text", ["a", "a=", "=label", "a=words"])
def test_kinds_that_are_none_are_refused(text):
    with pytest.raises(ValueError, match="one of number, label, date, skip"):
        options.kinds_of(text)


def test_a_name_that_is_nearly_right_is_put_right():
    with pytest.raises(ValueError, match=r"has no 'incom'\. Is it 'income'\?"):
        options.check_known(["incom"], ["age", "income"], "--x")
    with pytest.raises(ValueError, match=r"There are 'c0', .*'c9' and 90 others\."):
        options.check_known(["x"], [f"c{i}" for i in range(100)], "--x")


def test_an_interrupt_while_standard_input_is_read_ends_with_130_and_leaves_nothing(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, "test", "-", "a", "b"], env=environment, **pipes) as process:  # noqa: S603
        process.stdin.write(b"a,b\n" + b"1,2\n" * 200_000)  # more than a pipe holds: the command is reading
        process.send_signal(signal.SIGINT)
        out, error = process.communicate()
    assert (process.returncode, out, error) == (130, b"", b"Interrupted.\n")
    assert list(tmp_path.iterdir()) == []
    assert tempfile.gettempdir() != str(tmp_path)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("featgeo fi", ["fit"]),
        ("featgeo test x.csv ", ["age", "income", '"in, all"']),
        ("featgeo test x.csv age inc", ["income"]),
        ("featgeo fit x.csv --target a", ["age"]),
        ("featgeo fit x.csv --x age,i", ["age,income"]),
        ("featgeo predict model.fg x.csv --keep a", ["age"]),
        ("featgeo test no.csv ", []),
    ],
)
def test_shells_are_offered_the_columns_of_the_file(tmp_path, monkeypatch, line, offered):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text('age,income,"in, all"\n1,2,3\n')
    (tmp_path / "model.fg").write_bytes(b"PK\x03\x04")
    environment = {
        "_FEATGEO_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - (not line.endswith(" "))),
    }
    found = CliRunner(env=environment).invoke(cli.main, prog_name="featgeo")
    assert found.stdout.split("\n") == [*offered, ""] or (not offered and not found.stdout.strip())
