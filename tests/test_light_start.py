"""`import featgeo` is light: what takes seconds to import is imported when it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import featgeo

HEAVY = ("torch", "sklearn", "pandas", "pyarrow", "matplotlib")


@pytest.mark.parametrize(
    "statement",
    [
        "import featgeo",
        "import featgeo; assert 'FiniteJoint' in dir(featgeo)",
        "import featgeo; assert featgeo.FiniteJoint([[0.3, 0.2], [0.1, 0.4]]).modes().sigma[0] > 0.4",
        "import featgeo.cli",
        "import typer.testing as t; from featgeo.cli import main; t.CliRunner().invoke(main, ['fit', '--help'])",
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(statement):
    loaded = f"import sys; print([name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", f"{statement}; {loaded}"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == "[]"


def test_public_names_are_what_type_checkers_take_them_for():
    tree = ast.parse(Path(featgeo.__file__).read_text())
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    home = {alias.name: part.module for part in typed.body for alias in part.names}
    assert sorted(home) == sorted(featgeo.__all__)
    for name, module in home.items():
        found = getattr(featgeo, name)
        assert getattr(sys.modules[module], name) is (found.explore if found is sys.modules[module] else found)


def test_explore_can_be_called_whatever_was_imported_of_its_room_before():
    code = "import featgeo.explore.sketch, featgeo; featgeo.Exploration; featgeo.explore(None)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)  # noqa: S603
    assert "TypeError: A table must be a pandas, polars, Arrow or Dask frame" in run.stderr


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'NoSuchThing'"):
        featgeo.NoSuchThing  # noqa: B018


def test_files_are_opened_without_torch():
    """So that one that cannot be read is refused at once."""
    command = [sys.executable, "-c", "import sys, featgeo.cli.tables; print('torch' in sys.modules)"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "False"  # noqa: S603
