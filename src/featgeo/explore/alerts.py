"""What to know of a table before it is used, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from featgeo.explore.cells import OTHERS

if TYPE_CHECKING:
    from featgeo.explore.exploration import AboutColumn, Exploration
    from featgeo.explore.overview import Overview

_ASIDE = {
    "empty": "has no value at all",
    "constant": "has one value only",
    "identifier": "names its rows, as an identifier does",
    "rare": "has no label that enough rows share",
    "few rows": "has too few rows to be cut in two",
    "not compared": "did not vary in the table that was explored first",
}


def alerts_of(exploration: Exploration, overview: Overview) -> list[str]:
    """All sentences, those on what is left out first."""
    parts = (_aside, _words, _same, _determined, _missing, _pooled, _new_labels, _repeated)
    return [sentence for part in parts for sentence in part(exploration, overview)]


def bring_back(name: str, aside: str) -> str:
    """How a column that is set aside is compared after all."""
    return f"Pass types={{{name!r}: 'number'}} to compare it." if aside == "identifier" else "Leave it out."


def _aside(exploration: Exploration, overview: Overview) -> Iterator[str]:
    for column in exploration.about:
        if column.aside:
            way_back = f" {bring_back(column.name, column.aside)}" if _is_number_name(column) else ""
            yield f"{column.name!r} {_ASIDE[column.aside]}, and is not compared with others.{way_back}"


def _is_number_name(column: AboutColumn) -> bool:
    """Whether it is a number, which has cells if it is asked for; labels that no rows share have none."""
    return column.aside == "identifier" and column.kind == "number"


def _words(exploration: Exploration, overview: Overview) -> Iterator[str]:
    for column in exploration.about:
        if column.n_words:
            what = "date" if column.kind == "date" else "number"
            values = "one value that is no" if column.n_words == 1 else f"{column.n_words:,} values that are no"
            result = (
                f"all of it is read as labels. Pass types={{{column.name!r}: 'number'}} to take them as missing"
                if column.kind == "label"
                else "taken as missing"
            )
            yield f"{column.name!r} has {values} {what}{'s' * (column.n_words > 1)} ({column.example}): {result}."


def _same(exploration: Exploration, overview: Overview) -> Iterator[str]:
    for later, first in overview.duplicate_of.items():
        yield f"{later!r} repeats {first!r}: each of its values goes with one value of {first!r} alone."
    for group in overview.groups:
        if not all(name in overview.duplicate_of for name in group[1:]):
            yield f"{_listed(group)} tell nearly all of each other: one of them may do."


def _determined(exploration: Exploration, overview: Overview) -> Iterator[str]:
    same = {(a, b) for group in overview.groups for a in group for b in group}
    for column in exploration.about:
        by = overview.determined_by.get(column.name)
        if by is not None and (column.name, by.name) not in same:
            told = f"{by.strength:.1%} of it is known on held-out rows"
            yield f"{column.name!r} follows from {by.name!r} nearly always: {told}."


def _missing(exploration: Exploration, overview: Overview) -> Iterator[str]:
    for name, relation in overview.missing_with.items():
        yield f"Whether {name!r} is missing depends on {relation.name!r} (strength {relation.strength:.2f})."


def _pooled(exploration: Exploration, overview: Overview) -> Iterator[str]:
    counts = exploration.counts
    distinct = {column.name: column.n_distinct for column in exploration.about}
    for i, column in enumerate(counts.columns):
        pooled = distinct.get(column.name, 0) - len(column.labels)
        if column.kind == "label" and pooled > 1:
            rows = int(counts.single(i)[:, len(column.labels)].sum())
            yield (
                f"{column.name!r}: {pooled:,} labels are too rare for cells of their own; their {rows:,} rows "
                f"({rows / max(exploration.n_rows, 1):.1%}) count as {OTHERS!r}."
            )


def _new_labels(exploration: Exploration, overview: Overview) -> Iterator[str]:
    for column, rows in zip(exploration.counts.columns, exploration.counts.new_labels.tolist(), strict=True):
        if rows:
            yield f"{column.name!r}: {rows:,} rows have labels that the first exploration had not seen."


def _repeated(exploration: Exploration, overview: Overview) -> Iterator[str]:
    if exploration.n_repeated:
        whole = exploration.n_compared == exploration.n_rows
        of = f"of the {exploration.n_rows:,} rows" if whole else f"of {exploration.n_compared:,} rows in a sample"
        are = "is equal to an earlier one" if exploration.n_repeated == 1 else "are equal to earlier ones"
        yield f"{exploration.n_repeated:,} {of} {are}."


def _listed(names: tuple[str, ...]) -> str:
    quoted = [repr(name) for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
