"""Arguments that several commands share, and what is written in them."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

KINDS = ("number", "label", "date", "skip")


def complete_columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """What a shell offers: columns of the file in the command line that go on from what was typed."""
    before, comma, start = incomplete.rpartition(",")
    names = next(filter(None, map(_names_in, _files_in_line(ctx))), ())
    quoted = (f'"{name}"' if "," in name else name for name in names)
    return [f"{before}{comma}{name}" for name in quoted if name.startswith(start)]


def _files_in_line(ctx: typer.Context) -> list[str]:
    """Files that a command line names; where an option still lacks its value, only the line itself has them."""
    if ctx.params.get("file"):
        return [ctx.params["file"]]
    line = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    return [word for word in line.split() if os.path.isfile(word)]


def _names_in(file: str) -> tuple[str, ...]:
    """Columns of a file; none of one that is no table, such as a model."""
    names: list[str] = []

    def first(table: tuple[str, ...]) -> tuple[str, ...]:
        names.extend(table)
        return table[:1]

    with suppress(ImportError, OSError, ValueError):  # whatever is wrong is said by the command itself
        if os.path.isfile(file):
            from featgeo.reading.source import open_source

            open_source(file, columns=first).close()
    return tuple(names)


def columns_option(what: str, several: bool = True) -> Any:
    """An option that names columns of the file, or one of them.

    Args:
        what: Its help.
        several: Whether it may name several.
    """
    metavar = "COLUMN,..." if several else "COLUMN"
    return typer.Option(help=what, metavar=metavar, autocompletion=complete_columns)


File = Annotated[
    str,
    typer.Argument(help="CSV, TSV, Parquet or Arrow; a folder of such files; - for standard input.", metavar="FILE"),
]
Types = Annotated[
    str | None,
    typer.Option(
        help="Kinds of columns that are not to be inferred: number, label, date or skip. What cannot be read so counts "
        "as missing, and is reported.",
        metavar="COLUMN=KIND,...",
        autocompletion=complete_columns,
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="Between the fields of text; seen from the file when not given.", metavar="CHARACTER")
]
Encoding = Annotated[
    str | None, typer.Option(help="Of text; UTF-8, or what a byte order mark says, when not given.", metavar="NAME")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def listed(text: str | None, option: str) -> list[str]:
    """Names with commas between them; one that holds a comma itself stands in double quotes."""
    if text is None:
        return []
    try:
        (names,) = csv.reader([text], strict=True, skipinitialspace=True)
    except (csv.Error, ValueError) as error:
        raise ValueError(
            f"{option} must be names with commas between them, those with commas in double quotes, got {text!r} "
            f"({error})."
        ) from error
    if not names or not all(names):
        raise ValueError(f"{option} must be names with commas between them, and {text!r} leaves one out. Name it.")
    if len(set(names)) < len(names):
        raise ValueError(f"{option} names a column twice: {text!r}. Name each once.")
    return names


def kinds_of(text: str | None) -> dict[str, str]:
    """What `--types` says of columns, by name."""
    pairs = [part.rpartition("=") for part in listed(text, "--types")]
    for name, equals, kind in pairs:
        if not (name and equals) or kind not in KINDS:
            raise ValueError(
                f"--types must be COLUMN=KIND with commas between, and a kind is one of {', '.join(KINDS)}, got "
                f"{name + equals + kind!r}."
            )
    return {name: kind for name, _, kind in pairs}


def numbers_in(text: str | None, option: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(part) for part in listed(text, option)]
    except ValueError as error:
        raise ValueError(f"{option} must be numbers with commas between them, got {text!r} ({error}).") from error


def check_known(wanted: Sequence[str], names: Sequence[str], option: str, what: str = "the file") -> None:
    """Refuse names that a table does not have."""
    unknown = next((name for name in wanted if name not in names), None)
    if unknown is None:
        return
    folded = {name.casefold(): name for name in names}
    near = get_close_matches(unknown.casefold(), folded, n=1)
    if near:
        way_out = f"Is it {folded[near[0]]!r}?"
    else:
        more = f" and {len(names) - 10:,} others" if len(names) > 10 else ""
        way_out = f"There are {', '.join(map(repr, names[:10]))}{more}."
    raise ValueError(f"{option} must name columns, and {what} has no {unknown!r}. {way_out}")


def check_not_skipped(wanted: Sequence[str], kinds: Mapping[str, str]) -> None:
    """Refuse to skip, by `--types`, what is asked for elsewhere."""
    skipped = next((name for name in wanted if kinds.get(name) == "skip"), None)
    if skipped is not None:
        raise ValueError(f"--types skips {skipped!r}, and it is asked for. Take it out of one of them.")


def check_apart(lists: Mapping[str, Sequence[str]]) -> None:
    """Refuse a name that is in two of the lists, by what they are called."""
    owner: dict[str, str] = {}
    for option, names in lists.items():
        for name in names:
            if name in owner:
                raise ValueError(
                    f"A column has one part to play, and {name!r} is in {owner[name]} and in {option}. Take it out of "
                    "one of them."
                )
            owner[name] = option


def check_not_the_same(output: Path, *inputs: str) -> None:
    """Refuse an output that would replace what is read."""
    for path in inputs:
        if path != "-" and os.path.exists(path) and output.exists() and os.path.samefile(path, output):
            raise ValueError(f"The output would replace {path!r}, which is read. Choose another name for it.")
