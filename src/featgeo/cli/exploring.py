"""`featgeo explore`: what depends on what in a file, as tables and as a page."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from featgeo.cli import options
from featgeo.cli.manners import polite, working
from featgeo.cli.options import AsJson, Delimiter, Encoding, File, Types, columns_option
from featgeo.cli.printing import Grid, answer, in_terminal, number, plain
from featgeo.files import check_can_be_filled, make_folder, write_whole

if TYPE_CHECKING:
    from featgeo.explore import Exploration
    from featgeo.records import Records

TABLES = ("target", "pairs", "interactions", "columns")
SAVED = "exploration.fg"
PAGE = "report.html"
DOCUMENT = "explore.json"
SHOWN_ROWS = 25  # of a table in a terminal; pipes, JSON documents and folders have all


@polite
def explore(
    file: File,
    target: Annotated[str | None, columns_option("A column that others are ranked by.", several=False)] = None,
    given: Annotated[str | None, columns_option("Columns whose functions are projected out first.")] = None,
    columns: Annotated[str | None, columns_option("Columns to look at; all when not given.")] = None,
    types: Types = None,
    rate: Annotated[
        float, typer.Option(min=0, max=1, help="Share of false discoveries among pairs that are called dependent.")
    ] = 0.05,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the page, all tables, and what can be asked again.", metavar="DIR"
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser; needs --output.")] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Find what depends on what in a file of any size: how strongly, how sure, given what.

    The file is read twice. Strengths, between 0 and 1, are those on rows that were held out.
    Every dependence counts, not only a linear one.
    """
    others = options.listed(given, "--given")
    wanted = options.listed(columns, "--columns")
    options.check_apart({"--target": [target] if target else [], "--given": others})
    if show and output is None:
        raise typer.BadParameter("a page is opened from a folder. Name one by --output.", param_hint="--open")
    if output is not None:
        check_can_be_filled(output, [PAGE, DOCUMENT, SAVED, *(f"{table}.csv" for table in TABLES)])
    with working("explore") as notes:
        from featgeo.explore import explore as explore_table

        needed = [*wanted, *(name for name in (target, *others) if name and name not in wanted)] if wanted else None
        found = explore_table(
            file, target, others or None, needed, types=options.kinds_of(types),
            rate=rate, delimiter=delimiter, encoding=encoding,
        )  # fmt: skip
        tables = {name: table for name, table in _tables(found) if len(table)}
        if output is not None:
            _write(output, found, tables, Path(file).name if file != "-" else "standard input")
    if show and output is not None:
        webbrowser.open((output / PAGE).resolve().as_uri())
    answer(_data(file, found, tables), _shown(found, tables, output), notes, as_json)


def _tables(found: Exploration) -> Iterator[tuple[str, Records]]:
    """The tables of an exploration, by name; some answer only where they were asked."""
    from featgeo.records import Records

    for name in TABLES:
        table = getattr(found, name, None)
        if isinstance(table, Records):
            yield name, table


def _write(folder: Path, found: Exploration, tables: Mapping[str, Records], title: str) -> None:
    """All files of a folder, each whole or not at all; the page comes last."""
    page, document = found.to_html(title), found.to_json(title)
    found.save(make_folder(folder) / SAVED)
    for name, table in tables.items():
        write_whole(folder / f"{name}.csv", table.to_frame().to_csv(index=False))
    write_whole(folder / DOCUMENT, document)
    write_whole(folder / PAGE, page)


def _data(file: str, found: Exploration, tables: Mapping[str, Records]) -> dict[str, Any]:
    return {
        "file": file,
        "rows": found.n_rows,
        "target_name": found.target_name,
        "given_names": found.given_names,
        "rate": found.rate,
        "columns": [asdict(column) for column in found.about],
        **{name: table.to_dict() for name, table in tables.items()},
    }


def _shown(found: Exploration, tables: Mapping[str, Records], output: Path | None) -> Iterator[str | Grid]:
    card = found.card()
    yield from card.lines
    yield from card.doubts
    limit = SHOWN_ROWS if in_terminal() else None
    for table in tables.values():
        names = _side_by_side(table.shown or tuple(table.columns))
        rows = [[_text(name, table.columns[name][i]) for name in names] for i in range(len(table))[:limit]]
        yield ""
        yield f"{table.title}: {len(table):,}" + (f", the first {limit}" if limit and len(table) > limit else "")
        yield Grid(names, rows, words=sum(name in ("a", "b", "column", "name") for name in names[:3]))
    if output is not None:
        yield f"Saved to {output}"
        yield f"Open {(output / PAGE).resolve().as_uri()}"


def _side_by_side(names: Sequence[str]) -> list[str]:
    """The same, with what is left given columns beside what was there before."""
    pairs = ((name, f"{name}_given") for name in names if not name.endswith("_given"))
    return [name for pair in pairs for name in pair if name in names]


def _text(name: str, value: Any) -> str:
    value = plain(value)
    if value is None or isinstance(value, float):
        return number(value, 2 if name.startswith(("pvalue", "qvalue")) else 3)
    return str(value)  # whole numbers without commas, for `sort` and `awk`
