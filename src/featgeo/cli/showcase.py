"""The commands that show what the library does: `demo` on real data, `reproduce` on the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from featgeo.cli.manners import polite
from featgeo.cli.printing import Grid, number, print_parts
from featgeo.paper import DRAWS, SEED, Recipe

if TYPE_CHECKING:
    from featgeo.report.contents import Chapter

ROOM_FOR_ALL = 80  # columns of a terminal that the whole table takes
VERDICTS = {"pass": "green", "FAIL": "bold red"}


@polite
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the page and its figures.")] = Path("demo"),
) -> None:
    """Explore a real table and decompose real data, and write pages to look at."""
    from featgeo.demo import demonstrate, explore_patients

    with Console(stderr=True).status("Exploring and decomposing ..."):
        pages = explore_patients(output), demonstrate(output)
    print_parts([_where(page) for page in pages])


@polite
def reproduce(
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
    from featgeo.reproduce import reproduce as run_experiments

    folder, console = output or Path(f"reproduce-{recipe}"), Console()
    chapters = run_experiments(folder, names or [], recipe, range(seed, seed + draws), fresh, progress=True)
    agreed = sum(chapter.passed for chapter in chapters)
    verdict = f"{agreed} of {len(chapters)} experiments agree with their theory."
    room = console.width if console.is_terminal else ROOM_FOR_ALL
    print_parts([_grid(chapters, room), verdict, _where(folder / "report.html")])
    if agreed < len(chapters):
        raise typer.Exit(1)


def _grid(chapters: list[Chapter], room: int) -> Grid:
    """An experiment has a row of its own, and its figures follow; a narrow terminal gets errors and chapters alone."""
    every = {"theory": 4, "learned": 4, "error": 2, "floor": 2, "allowed": 2}
    shown = every if room >= ROOM_FOR_ALL else {"error": 2}
    rows = []
    for chapter in chapters:
        rows.append([chapter.about.name, *[""] * len(shown), _word(chapter.passed)])
        for figure in chapter.numbers:
            cells = (number(getattr(figure, name), digits) for name, digits in shown.items())
            rows.append([f"  {figure.name}", *cells, _word(figure.passed)])
    return Grid(("figure", *shown, "verdict"), rows, styles=VERDICTS)


def _word(passed: bool) -> str:
    return "pass" if passed else "FAIL"


def _where(page: Path) -> str:
    return f"Open {page.resolve().as_uri()}"
