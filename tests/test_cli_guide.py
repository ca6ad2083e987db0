"""The guide to the commands is true: each of them runs, on the files that its Python makes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from featgeo import cli

GUIDE = Path(__file__).parent.parent / "docs" / "guides" / "from-the-shell.md"


def test_commands_in_the_guide_run_and_print_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text()
    (python,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(compile(python, GUIDE.name, "exec"), {})  # noqa: S102 (our own)
    printed = ""
    for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL):
        for line in block.splitlines():
            name, *words = shlex.split(line)
            assert name == "featgeo"
            found = CliRunner().invoke(cli.main, words)
            assert found.exit_code == 0, found.output
            printed += found.stdout
    said = [line.split("\t") for line in printed.splitlines()]
    for block in re.findall(r"```text\n(.*?)```", text, flags=re.DOTALL):
        for cells in (re.split(r" {2,}", line) for line in block.splitlines() if line not in ("", "...")):
            # Of a pair of columns the guide shows what a pair looks like, and the names are right.
            assert any(cells == line or ("pairs" in block and cells[:2] == line[:2]) for line in said), cells
