"""What commands print: tables in a terminal, plain text in a pipe, or one JSON document.

In a terminal tables are drawn by rich, and names that do not fit are folded. In a pipe there is nothing but the text:
cells of a row have tabs between them, for `cut`, `sort` and `awk`; no colours, and nothing is cut off. What comes from
files (names, labels) is text and nothing else: neither markup, nor what would make a terminal do something.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

LEGIBLE = 16  # characters of a word beside which numbers are left out of a narrow terminal, rather than fold it more


@dataclass(frozen=True)
class Grid:
    """A table to print.

    Attributes:
        columns: Its heads.
        rows: Its cells, already written.
        words: How many of the first columns hold words, which begin at the left.
        styles: Of some cells, by what they say.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    styles: Mapping[str, str] = field(default_factory=dict)


def visible(text: str, lines: bool = False) -> str:
    """The same with characters that terminals obey, and those that would break a line, written out.

    Args:
        text: Anything, such as the name of a column.
        lines: Whether it may have several lines.
    """
    if text.isprintable():
        return text
    kept = "\n" if lines else ""
    return "".join(c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text)


def number(value: float | None, digits: int = 4) -> str:
    """A number in a cell; a dash where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}g}"


def answer(
    data: Mapping[str, Any],
    shown: Iterable[str | Grid],
    notes: Sequence[str],
    as_json: bool,
    stream: TextIO | None = None,
) -> None:
    """Print what a command found.

    Args:
        data: All of it, as numbers, texts, lists and mappings.
        shown: The same for people: lines and tables.
        notes: What was noticed on the way: in a JSON document a part of it, else on standard error.
        as_json: Whether the answer is a JSON document.
        stream: Where people read it; standard output when None.
    """
    if as_json:
        in_ascii = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        document = json.dumps(plain({**data, "notes": notes}), ensure_ascii=in_ascii, allow_nan=False, indent=2)
        sys.stdout.write(document + "\n")
        return
    print_parts(shown, stream)
    for note in notes:
        Console(stderr=True).print(Text(f"Note: {visible(note)}"), soft_wrap=True)


def print_parts(parts: Iterable[str | Grid], stream: TextIO | None = None) -> None:
    """Print lines and tables, as the terminal or the pipe wants them."""
    stream = stream or sys.stdout
    console = Console(file=stream)
    for part in parts:
        if not console.is_terminal:
            _write_plain(part, stream)
        elif isinstance(part, Grid):
            console.print(drawn(part, console.width))
        else:
            console.print(Text(visible(part)), soft_wrap=True)
    stream.flush()


def in_terminal() -> bool:
    """Whether standard output is read by a person."""
    return Console().is_terminal


def plain(value: Any) -> Any:
    """Values as JSON has them: arrays and numbers of numpy as those of Python, and null for what is no number."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, None | bool | int | float | str) else str(value)


def drawn(grid: Grid, room: int) -> Table:
    """A table for a terminal: words are folded where there is no room, and of the numbers the last ones left out.

    Args:
        grid: The table.
        room: Characters of a line.
    """
    n_kept = _fitting(grid, room)
    left_out = ", ".join(grid.columns[n_kept:])
    caption = Text(f"no room for: {visible(left_out)}", style="dim") if left_out else None
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    for i, column in enumerate(grid.columns[:n_kept]):
        words = i < grid.words
        table.add_column(
            Text(visible(column)), justify="left" if words else "right", no_wrap=not words, overflow="fold"
        )
    for row in grid.rows:
        table.add_row(*(Text(visible(cell), style=grid.styles.get(cell, "")) for cell in row[:n_kept]))
    return table


def _fitting(grid: Grid, room: int) -> int:
    """How many columns fit beside words of a legible width; at least two of numbers do."""
    widths = [max(len(visible(cell)) for cell in cells) for cells in zip(grid.columns, *grid.rows, strict=True)]
    needed = [min(width, LEGIBLE) if i < grid.words else width for i, width in enumerate(widths)]
    total = 1
    for i, width in enumerate(needed):
        total += width + 2
        if total > room and i >= grid.words + 2:
            return i
    return len(widths)


def _write_plain(part: str | Grid, stream: TextIO) -> None:
    """In what the pipe cannot encode, characters are written out."""
    rows = [part.columns, *part.rows] if isinstance(part, Grid) else [[part]]
    encoding = stream.encoding or "utf-8"
    for row in rows:
        line = "\t".join(visible(cell) for cell in row)
        stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
