"""The `featgeo` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import featgeo

try:
    import typer
    from rich.console import Console

    from featgeo.demo import demonstrate
except ModuleNotFoundError as error:
    sys.exit(f"The featgeo command needs its extra ({error.name} is missing). Run: pip install 'featgeo[cli]'")

main = typer.Typer(no_args_is_help=True, add_completion=False, help=featgeo.__doc__)


def _print_version(wanted: bool) -> None:
    if wanted:
        Console().print(f"featgeo {featgeo.__version__}")
        raise typer.Exit


@main.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, help="Print the version.")] = False,
) -> None:
    """Options of all commands."""


@main.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the page and its figures.")] = Path("demo"),
) -> None:
    """Decompose real data and the paper's discrete experiment, and write a page to look at."""
    console = Console()
    with console.status("Decomposing ..."):
        page = demonstrate(output)
    console.print(f"Open [bold]{page.resolve().as_uri()}[/bold]", soft_wrap=True)
