"""`explore`: a table is sketched, its columns become cells, and all rows are counted in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypedDict, Unpack

from featgeo.explore.cells import Cells
from featgeo.explore.edges import aligned
from featgeo.explore.exploration import AboutColumn, Exploration
from featgeo.explore.second_pass import (
    Coder,
    are_rows_apart,
    cells_of,
    counted,
    repeated_rows,
    sample_batch,
    why_aside,
)
from featgeo.explore.seen import ColumnSketch
from featgeo.explore.sketch import Sketch, sketch
from featgeo.explore.three_way import Interactions
from featgeo.reading.source import open_source
from featgeo.tuning import in_force
from featgeo.watch import Watch, bounded_threads


class Settings(TypedDict, total=False):
    """Further arguments of `explore`; all are optional."""

    missing_values: Sequence[str]  # texts that stand for a missing value, beside the usual ones
    encoding: str | None  # of text files; None for UTF-8, or what a byte order mark says
    delimiter: str | None  # of text files; None for the one that the name or the header shows
    header: bool  # whether the first row of text files holds the names
    names: Sequence[str] | None  # of all columns of text files, in place of those of the header
    rate: float  # share of false discoveries among the pairs that are called dependent, 0.05 by default
    verbose: int  # 0 shows no progress, 1 shows it in terminals and notebooks, 2 everywhere


TEXT_SETTINGS = ("encoding", "delimiter", "header", "names")  # that are of text files alone


def explore(
    data: Any,
    target: str | None = None,
    given: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    like: Exploration | None = None,
    **settings: Unpack[Settings],
) -> Exploration:
    """Find what depends on what in a table.

    Args:
        data: A data frame of pandas, polars, Arrow or Dask; a path to a CSV, TSV or Parquet file, a folder of Parquet
            files, or a list of paths; an Arrow reader; "-" for standard input. Files may be larger than memory. Where
            `distributed` has a Client, its workers read partitions, and the files of folders and lists.
        target: A column that others are ranked by.
        given: Columns whose functions are projected out.
        columns: Those to look at; all when None.
        types: Kinds of columns that are not to be inferred: "number", "label", "date" or "skip".
        like: An earlier exploration, whose functions, target and given columns are used, so that both can be merged.
        **settings: How text files are read, `missing_values`, `rate` and `verbose`: see `Settings`.

    Returns:
        All pairs with held-out strengths, and everything that can be asked of them.
    """
    unknown = settings.keys() - Settings.__annotations__.keys()
    if unknown:
        raise TypeError(f"explore() has no argument {min(unknown)!r}. It takes {', '.join(Settings.__annotations__)}.")
    text: dict[str, Any] = {name: settings[name] for name in TEXT_SETTINGS if name in settings}  # type: ignore[literal-required]
    rate = _checked_rate(settings.get("rate", like.rate if like else 0.05))
    with Watch("explore", settings.get("verbose", 1)), bounded_threads():
        source = open_source(data, columns=columns if like is None else [column.name for column in like.about], **text)
        if like is not None:
            types = {**{column.name: column.kind for column in like.about}, **(types or {})}
        found = sketch(source, types, settings.get("missing_values", ()))
        spoken_of = {*(types or ()), *_listed(target), *_listed(given)}
        coder = _coder(found, _listed(given), spoken_of, like)
        _check_columns(target, given, found.columns, coder.columns)
        named = target or (like.target_name if like else "")
        three_way = _three_way(coder, found, named, like) if named else None
        counts, three_way = counted(coder, source, found, like.counts if like else None, three_way)
    about = tuple(_about(column, coder.columns) for column in found.columns.values())
    given_names = like.given_names if like else _listed(given)
    return Exploration(about, counts, named, given_names, coder.joint, rate, *repeated_rows(found), three_way)


def _coder(found: Sketch, given: Sequence[str], spoken_of: Collection[str], like: Exploration | None) -> Coder:
    """Cells, folds and what is counted together: chosen from the sketch, or those of an earlier exploration."""
    if like is not None:
        return Coder(like.counts.columns, like.counts.by_number, like.joint)
    coder = Coder(cells_of(found, spoken_of), by_number=False)
    if not coder.columns:
        raise ValueError(
            f"A table must have a column that varies, with {in_force.get().rows_a_function} rows to a cell, and none "
            f"of these {len(found.columns)} does over {found.n_rows:,} rows. Look at how it is read: delimiter, "
            "header, missing values."
        )
    sample = sample_batch(found)
    cells = coder.cells(sample)
    apart = are_rows_apart(coder, sample, cells, found.n_rows)
    coder = replace(coder, columns=aligned(coder.columns, sample, cells, found.n_rows), by_number=not apart)
    return coder.joined(given, found)


def _three_way(coder: Coder, found: Sketch, target: str, like: Exploration | None) -> Interactions:
    """The short list of pairs that may interact about the target, or that of an earlier exploration."""
    if like is not None and like.three_way is not None and like.target_name == target:
        return like.three_way.emptied()
    place = next(i for i, column in enumerate(coder.columns) if column.name == target)
    return Interactions.planned(coder.columns, coder.cells(sample_batch(found)), place, found.n_rows)


def _about(column: ColumnSketch, cells: Sequence[Cells]) -> AboutColumn:
    """What a column is, and why it is not among the cells where it is not."""
    aside = ""
    if all(own.name != column.name for own in cells):
        aside = why_aside(column)
    example = f"{column.examples[0][1]!r} in row {column.examples[0][0]:,}" if column.examples else ""
    return AboutColumn(
        column.name,
        column.kind,
        column.original,
        column.n_distinct,
        column.distinct_exact,
        column.n_rows,
        column.n_missing,
        column.n_words,
        example,
        aside,
    )


def _listed(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _check_columns(target: str | None, given: Any, names: Iterable[str], cells: Sequence[Cells]) -> None:
    """Refuse a target or given columns that are not there, do not vary, or are one and the same."""
    every, vary = list(names), {column.name for column in cells}
    for name in (*([target] if target else []), *_listed(given)):
        if name not in every:
            near = get_close_matches(str(name), every, 3) or every[:10]
            raise ValueError(
                f"`target` and `given` must name columns of the table, and {name!r} is none. Is it one of "
                f"{', '.join(map(repr, near))}?"
            )
        if name not in vary:
            raise ValueError(f"`target` and `given` must vary, and {name!r} is constant or names rows. Choose another.")
    if target in _listed(given):
        raise ValueError(f"The target must not be given, and {target!r} is both. Leave it out of `given`.")


def _checked_rate(rate: float) -> float:
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1:
        raise ValueError(f"`rate` must be a number between 0 and 1, got {rate!r}. 0.05 is usual.")
    return float(rate)
