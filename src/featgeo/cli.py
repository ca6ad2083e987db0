"""The `featgeo` command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import featgeo
from featgeo.paper import DRAWS, SEED, Recipe


@contextmanager
def _of_the_extra() -> Iterator[None]:
    """Import what the command's extra brings."""
    try:
        yield
    except ModuleNotFoundError as error:
        sys.exit(f"The featgeo command needs its extra ({error.name} is missing). Run: pip install 'featgeo[cli]'")


with _of_the_extra():
    import typer
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

if TYPE_CHECKING:  # each command imports what it needs, so that help comes at once
    from featgeo.report.contents import Chapter

ROOM_FOR_ALL = 80  # columns of a terminal that the whole table takes

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
    """Decompose real data, and write a page to look at."""
    console = Console()
    with _of_the_extra():
        from featgeo.demo import demonstrate
    with console.status("Decomposing ..."):
        page = demonstrate(output)
    _show(console, page)


@main.command("reproduce")
def reproduce_command(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments to run; all when none is named.")] = None,
    recipe: Annotated[
        Recipe,
        typer.Option(help="The library's defaults (seconds), or the authors' training (a quarter of an hour a draw)."),
    ] = "fast",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder; reproduce-RECIPE when not given.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Samples of each experiment; results are medians.")] = DRAWS,
    seed: Annotated[int, typer.Option(help="Of the first draw.")] = SEED,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what the folder already has.")] = False,
) -> None:
    """Run every experiment of the paper and check it against its theory.

    Interrupted and started again, it goes on with what is missing. Exits with 1 if a number is not within its bound.
    """
    console, folder = Console(), output or Path(f"reproduce-{recipe}")
    with _of_the_extra():
        from featgeo.reproduce import reproduce
    try:
        chapters = reproduce(folder, names or [], recipe, range(seed, seed + draws), fresh, progress=True)
    except (OSError, ValueError) as error:
        console.print(f"[red]{escape(str(error))}[/red]")
        raise typer.Exit(2) from error
    console.print(_table(chapters, console.width))
    agreed = sum(chapter.passed for chapter in chapters)
    console.print(f"{agreed} of {len(chapters)} experiments agree with their theory.")
    _show(console, folder / "report.html")
    if agreed < len(chapters):
        raise typer.Exit(1)


def _table(chapters: list[Chapter], width: int) -> Table:
    """An experiment has a row of its own, and its figures follow; a narrow terminal gets errors and chapters alone."""
    every = {"theory": "4g", "learned": "4g", "error": "2g", "floor": "2g", "allowed": "2g"}
    shown = every if width >= ROOM_FOR_ALL else {"error": "2g"}
    table = Table("figure", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in shown:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for chapter in chapters:
        table.add_row(f"[bold]{chapter.about.name}[/bold]", *[""] * len(shown), _word(chapter.passed))
        for number in chapter.numbers:
            values = {name: getattr(number, name) for name in shown}
            cells = ("–" if value is None else f"{value:.{shown[name]}}" for name, value in values.items())
            table.add_row(f"  {escape(number.name)}", *cells, _word(number.passed))
    return table


def _word(passed: bool) -> str:
    return "[green]pass[/green]" if passed else "[bold red]FAIL[/bold red]"


def _show(console: Console, page: Path) -> None:
    console.print(f"Open [bold]{page.resolve().as_uri()}[/bold]", soft_wrap=True)
