"""A whole table at once: what depends on what, how, how sure, and given what.

Everything here is asked of counts (`featgeo.explore.counting`); the data is read twice and never again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import combinations
from typing import Any, TypedDict, Unpack

import numpy as np

from featgeo.card import Card, Shown
from featgeo.explore.cells import GIVEN, Cells, JointCells
from featgeo.explore.counting import Counts
from featgeo.explore.gram import Moments
from featgeo.explore.pairs import estimates_of
from featgeo.explore.partial import Partial, direct_dependence, given_dependence
from featgeo.explore.reading import open_source
from featgeo.explore.second_pass import Coder, are_rows_apart, cells_of, counted, sample_batch
from featgeo.explore.sketch import ColumnSketch, Sketch, sketch
from featgeo.explore.target import about_target
from featgeo.geometry.validation import Array
from featgeo.records import Records
from featgeo.schema import saved
from featgeo.tuning import in_force
from featgeo.watch import Watch, bounded_threads


@saved
@dataclass(frozen=True, eq=False)
class AboutColumn:
    """What a column is, as it was read.

    Attributes:
        name: Its name.
        kind: "number", "label" or "date".
        original: Its type as it was handed in.
        n_distinct: Distinct values.
        distinct_exact: Whether there are not more of them.
        n_missing: Rows without a value.
        n_words: Values that are no numbers, or no dates, of a column that mostly holds them.
        example: The first of them.
        aside: Why it is not compared with others: "constant", "identifier"; "" where it is.
    """

    name: str
    kind: str
    original: str
    n_distinct: int
    distinct_exact: bool
    n_missing: int
    n_words: int
    example: str
    aside: str


@saved
@dataclass(frozen=True, eq=False, repr=False)
class Exploration(Shown):
    """What depends on what in a table.

    Attributes:
        about: What each column is.
        counts: Tables of all pairs of columns that vary.
        target_name: The column that others are ranked by; "" for none.
        given_names: Columns whose functions are projected out.
        joint: These together as one column, the last of the counts, where they are several.
        rate: Share of false discoveries among those that are reported.
    """

    about: tuple[AboutColumn, ...]
    counts: Counts
    target_name: str = ""
    given_names: tuple[str, ...] = ()
    joint: JointCells | None = None
    rate: float = 0.05

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.counts.n_rows

    @cached_property
    def _place(self) -> dict[str, int]:
        return {column.name: i for i, column in enumerate(self.counts.columns)}

    @cached_property
    def _all_pairs(self) -> list[tuple[int, int]]:
        columns = [column for column in self.counts.columns if column.name != GIVEN]
        return [(i, j) for i, j in combinations(range(len(columns)), 2) if not _is_same_date(columns[i], columns[j])]

    @cached_property
    def _given(self) -> list[int]:
        """The given columns, by place, with parts of dates."""
        columns = self.counts.columns
        return [i for i, column in enumerate(columns) if (column.parent or column.name) in self.given_names]

    @cached_property
    def _given_pairs(self) -> tuple[list[int], Partial, Moments]:
        """Which pairs are looked at given columns, what they say then, and what is left of all functions."""
        places = [place for place, pair in enumerate(self._all_pairs) if not set(pair) & set(self._given)]
        strata = len(self.counts.columns) - 1 if self.joint else self._given[0]
        with bounded_threads():
            found, left = given_dependence(self.counts, [self._all_pairs[i] for i in places], self._given, strata)
        return places, found, left

    @cached_property
    def _pairs_given(self) -> dict[str, np.ndarray]:
        """What is left of each pair given columns; nothing for pairs with these."""
        places, found, _ = self._given_pairs
        told = {
            "strength_given": found.strength,
            "energy_given": found.energy,
            "held_out_energy_given": found.held_out_energy,
            "n_modes_given": found.n_modes,
            "pvalue_given": found.pvalue,
            "qvalue_given": benjamini_hochberg(found.pvalue),
        }
        result = {name: np.full(len(self._all_pairs), np.nan) for name in told}
        for name, values in told.items():
            result[name][places] = values
        return result

    @cached_property
    def direct(self) -> Records:
        """Every pair of columns given all others, the strongest first: which dependences are direct."""
        columns, pairs = self.counts.columns, self._all_pairs
        with bounded_threads():
            found = direct_dependence(self.counts, pairs)
        values = {
            "a": np.array([columns[i].name for i, _ in pairs], dtype=object),
            "b": np.array([columns[j].name for _, j in pairs], dtype=object),
            "strength": found.strength,
            "sigma1": found.sigma1,
            "held_out_energy": found.held_out_energy,
            "n_modes": found.n_modes,
            "pvalue": found.pvalue,
            "qvalue": benjamini_hochberg(found.pvalue),
        }
        order = np.argsort(-found.strength, kind="stable")
        return Records("pairs given all other columns", {name: column[order] for name, column in values.items()})

    @cached_property
    def target(self) -> Records:
        """What each column says of the target, alone and beside all others; first the fewest that say most of it."""
        if not self.target_name:
            return Records("columns (no target was named: fg.explore(data, target=...))", {"column": []})
        place = self._place[self.target_name]
        columns = self.counts.columns
        own = columns[place]
        others = [
            i
            for i, column in enumerate(columns)
            if i != place and column.name != GIVEN and i not in self._given and not _is_same_date(column, own)
        ]
        with bounded_threads():
            moments = self._given_pairs[2] if self.given_names else Moments.of(self.counts)
            found = about_target(moments, place, others)
        step = {column: i for i, column in enumerate(found.order)}
        n_folds = np.sqrt(found.added.shape[1])
        values: dict[str, Any] = {
            "column": np.array([columns[i].name for i in others], dtype=object),
            "alone": found.alone @ moments.shares,
            "alone_error": found.alone.std(axis=1, ddof=1) / n_folds,
            "added": found.added @ moments.shares,
            "added_error": found.added.std(axis=1, ddof=1) / n_folds,
            "pvalue": found.pvalue,
            "qvalue": benjamini_hochberg(found.pvalue),
            "step": np.array([step.get(i, -1) + 1 for i in range(len(others))]),
            "held": np.array([
                found.curve[step[i]] / found.curve[-1] if i in step else np.nan for i in range(len(others))
            ]),
        }  # fmt: skip
        order = np.lexsort((-values["alone"], np.where(values["step"] > 0, values["step"], len(others) + 1)))
        title = (
            f"columns and what they say of {self.target_name!r} (all together {found.together @ moments.shares:.3g})"
        )
        return Records(title, {name: column[order] for name, column in values.items()})

    def least_set(self, share: float = 0.95) -> list[str]:
        """The fewest columns, found forward, that hold a share of what all columns say of the target.

        Args:
            share: Between 0 and 1, of the energy that the forward search ends with, on held-out rows.
        """
        if not 0 < share <= 1:
            raise ValueError(f"`share` must be over 0 and at most 1, got {share!r}. 0.95 is usual.")
        taken = [row for row in self.target if row["step"]]
        enough = next((i for i, row in enumerate(taken) if row["held"] >= share), len(taken) - 1)
        return [row["column"] for row in taken[: enough + 1]]

    @cached_property
    def pairs(self) -> Records:
        """Every pair of columns, the strongest first."""
        columns, pairs = self.counts.columns, self._all_pairs
        with bounded_threads():
            found = estimates_of(self.counts, pairs)
        reach = _normal_quantile(in_force.get().confidence) * found.error
        values = {
            "a": np.array([columns[i].name for i, _ in pairs], dtype=object),
            "b": np.array([columns[j].name for _, j in pairs], dtype=object),
            "strength": found.strength,
            "low": np.clip(found.strength - reach, 0, 1),
            "high": np.clip(found.sigma1 + reach, 0, 1),
            "n_modes": found.n_modes,
            "pvalue": found.pvalue,
            "qvalue": benjamini_hochberg(found.pvalue),
            "qvalue_any": benjamini_hochberg(found.pvalue, any_dependence=True),
            "sigma1": found.sigma1,
            "energy": found.energy,
            "held_out_energy": found.held_out_energy,
            "mutual_information": found.information,
            "b_from_a": found.forward,
            "a_from_b": found.backward,
            **self._classic(pairs),
            "rows": found.rows.astype(np.int64),
            **(self._pairs_given if self.given_names else {}),
        }
        order = np.lexsort((found.pvalue, -found.strength))
        also = ("strength_given", "qvalue_given") if self.given_names else ()
        shown = ("a", "b", "strength", "low", "high", "n_modes", "pvalue", "qvalue", "classic", "rows", *also)
        return Records("pairs of columns", {name: column[order] for name, column in values.items()}, shown)

    def _classic(self, pairs: Sequence[tuple[int, int]]) -> dict[str, np.ndarray]:
        """What people know: Pearson's correlation of numbers, Cramér's V of labels, the correlation ratio of both."""
        pearson = self.counts.pearson()
        values, kinds = np.empty(len(pairs)), np.empty(len(pairs), dtype=object)
        for place, (i, j) in enumerate(pairs):
            if (i, j) in pearson:
                values[place], kinds[place] = pearson[i, j], "pearson"
                continue
            table = self.counts.table(i, j)[:, :-1, :-1].sum(axis=0).astype(np.float64)
            labels = [self.counts.columns[column].kind == "label" for column in (i, j)]
            kinds[place] = "cramer" if all(labels) else "ratio"
            values[place] = cramers_v(table) if all(labels) else correlation_ratio(table if labels[0] else table.T)
        return {"classic": values, "classic_kind": kinds}

    def merge(self, other: Exploration) -> Exploration:
        """Of the rows of both, exactly as if they had been one table.

        Args:
            other: Explored `like` this one, or both like a third.
        """
        if not isinstance(other, Exploration):
            raise TypeError(f"An exploration merges with an exploration, got a {type(other).__name__}.")
        mine, theirs = (one.counts.columns for one in (self, other))
        if len(mine) != len(theirs) or not all(a.is_same(b) for a, b in zip(mine, theirs, strict=True)):
            raise ValueError(
                "Explorations merge where their functions are the same, and these have other cells. Explore the second "
                "table by fg.explore(table, like=first)."
            )
        about = tuple(
            replace(a, n_missing=a.n_missing + b.n_missing, n_words=a.n_words + b.n_words, distinct_exact=False)
            for a, b in zip(self.about, other.about, strict=True)
        )
        return replace(self, about=about, counts=self.counts.merged(other.counts))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: counts, not rows. `fg.load` reads it, and everything can be asked again."""
        from featgeo.models.persistence import save

        save(self, path)

    def card(self) -> Card:
        """The strongest pairs."""
        own = self.pairs.card()
        found = int(np.sum(np.asarray(self.pairs.columns["qvalue"]) <= self.rate))
        title = f"{self.n_rows:,} rows, {len(self.about)} columns, {len(self.pairs):,} pairs; {found:,} depend"
        aside = [f"{column.name!r} is set aside: {column.aside}" for column in self.about if column.aside]
        return Card([title], own.columns, own.rows, aside)


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
        data: A data frame of pandas, polars or Arrow; a path to a CSV, TSV or Parquet file, a folder of Parquet files,
            or a list of paths; an Arrow reader; "-" for standard input. Files may be larger than memory.
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
        coder = _coder(found, _listed(given), like)
        _check_columns(target, given, found.columns, coder.columns)
        counts = counted(coder, source, found, like.counts if like else None)
    about = tuple(_about(column, coder.columns) for column in found.columns.values())
    named = target or (like.target_name if like else "")
    return Exploration(about, counts, named, like.given_names if like else _listed(given), coder.joint, rate)


def _coder(found: Sketch, given: Sequence[str], like: Exploration | None) -> Coder:
    """Cells, folds and what is counted together: chosen from the sketch, or those of an earlier exploration."""
    if like is not None:
        return Coder(like.counts.columns, like.counts.by_number, like.joint)
    coder = Coder(cells_of(found), by_number=False)
    if not coder.columns:
        raise ValueError(
            f"A table must have a column that varies, and none of these {len(found.columns)} does over {found.n_rows:,}"
            " rows. Look at how it is read: delimiter, header, missing values."
        )
    apart = are_rows_apart(coder, sample_batch(found), found.n_rows)
    return replace(coder.joined(given, found), by_number=not apart)


def _about(column: ColumnSketch, cells: Sequence[Cells]) -> AboutColumn:
    """What a column is, and why it is not among the cells where it is not."""
    aside = ""
    if all(own.name != column.name for own in cells):
        aside = "constant" if column.n_distinct <= 1 else "identifier"
    example = f"{column.examples[0][1]!r} in row {column.examples[0][0]:,}" if column.examples else ""
    return AboutColumn(
        column.name,
        column.kind,
        column.original,
        column.n_distinct,
        column.distinct_exact,
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


def _is_same_date(a: Cells, b: Cells) -> bool:
    return bool(a.parent or b.parent) and (a.parent or a.name) == (b.parent or b.name)


def benjamini_hochberg(pvalues: Array, any_dependence: bool = False) -> Array:
    """The smallest false-discovery rate at which each hypothesis is rejected, (m,).

    Args:
        pvalues: One for each hypothesis.
        any_dependence: Whether the rate is to hold however the tests depend on each other, which costs a factor of
            1 + 1/2 + ... + 1/m (Y. Benjamini and D. Yekutieli (2001), Annals of Statistics 29:1165).
    """
    m = len(pvalues)
    order = np.argsort(pvalues)
    rates = pvalues[order] * m / np.arange(1, m + 1) * (np.sum(1 / np.arange(1, m + 1)) if any_dependence else 1.0)
    result = np.empty(m)
    result[order] = np.minimum.accumulate(rates[::-1])[::-1].clip(max=1)
    return result


def cramers_v(table: Array) -> float:
    """Of a table of counts, (a, b)."""
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n, least = table.sum(), min(table.shape) - 1
    if not n or least < 1:
        return float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    return float(np.sqrt(np.sum((table - expected) ** 2 / expected) / n / least))


def correlation_ratio(table: Array) -> float:
    """The share of the variance of ranks between labels, under a root; labels are the rows of the table, (a, b)."""
    n, of_label = table.sum(), table.sum(axis=1)
    of_rank = table.sum(axis=0)
    if not n:
        return float("nan")
    ranks = (np.cumsum(of_rank) - of_rank / 2) / n
    total = np.sum(of_rank * (ranks - 0.5) ** 2)
    means = table @ ranks / np.maximum(of_label, 1)
    return float(np.sqrt(np.sum(of_label * (means - 0.5) ** 2) / total)) if total > 0 else float("nan")


def _normal_quantile(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + confidence / 2))
