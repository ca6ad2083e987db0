"""A whole table at once: what depends on what, how, how sure, and given what.

Everything here is asked of counts (`featgeo.explore.counting`); the data is read twice and never again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from featgeo.card import Card, Shown
from featgeo.explore.cells import Cells
from featgeo.explore.counting import Counts
from featgeo.explore.pairs import estimates_of
from featgeo.explore.reading import open_source
from featgeo.explore.second_pass import Coder, are_rows_apart, cells_of, counted, sample_batch
from featgeo.explore.sketch import ColumnSketch, sketch
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
        target: The column that others are ranked by; "" for none.
        given: Columns whose functions are projected out.
        rate: Share of false discoveries among those that are reported.
    """

    about: tuple[AboutColumn, ...]
    counts: Counts
    target: str = ""
    given: tuple[str, ...] = ()
    rate: float = 0.05

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.counts.n_rows

    @cached_property
    def _place(self) -> dict[str, int]:
        return {column.name: i for i, column in enumerate(self.counts.columns)}

    @cached_property
    def pairs(self) -> Records:
        """Every pair of columns, the strongest first."""
        columns = self.counts.columns
        pairs = [(i, j) for i, j in combinations(range(len(columns)), 2) if not _is_same_date(columns[i], columns[j])]
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
        }
        order = np.lexsort((found.pvalue, -found.strength))
        shown = ("a", "b", "strength", "low", "high", "n_modes", "pvalue", "qvalue", "classic", "rows")
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


def explore(
    data: Any,
    target: str | None = None,
    given: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    missing_values: Sequence[str] = (),
    like: Exploration | None = None,
    rate: float = 0.05,
    verbose: int = 1,
) -> Exploration:
    """Find what depends on what in a table.

    Args:
        data: A data frame of pandas, polars or Arrow; a path to a CSV, TSV or Parquet file, a folder of Parquet files,
            or a list of paths; an Arrow reader; "-" for standard input. Files may be larger than memory.
        target: A column that others are ranked by.
        given: Columns whose functions are projected out.
        columns: Those to look at; all when None.
        types: Kinds of columns that are not to be inferred: "number", "label", "date" or "skip".
        missing_values: Texts that stand for a missing value, beside the usual ones.
        like: An earlier exploration, whose functions are used, so that both can be merged.
        rate: Share of false discoveries among the pairs that are called dependent.
        verbose: 0 shows no progress, 1 shows it in terminals and notebooks, 2 everywhere.

    Returns:
        All pairs with held-out strengths, and everything that can be asked of them.
    """
    with Watch("explore", verbose), bounded_threads():
        source = open_source(data, columns=columns)
        if like is not None:
            types = {**{column.name: column.kind for column in like.about}, **(types or {})}
        found = sketch(source, types, missing_values)
        names = tuple(found.columns)
        for name in (*([target] if target else []), *_listed(given)):
            _check_column(name, names)
        cells = cells_of(found) if like is None else like.counts.columns
        by_content = Coder(cells, by_number=False)
        by_number = like.counts.by_number if like else not are_rows_apart(by_content, sample_batch(found))
        counts = counted(replace(by_content, by_number=by_number), source, found, like.counts if like else None)
        about = tuple(_about(column, cells) for column in found.columns.values())
    return Exploration(about, counts, target or "", _listed(given), rate)


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


def _check_column(name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise ValueError(
            f"`target` and `given` must name columns of the table, and {name!r} is none. It has "
            f"{', '.join(map(repr, names[:10]))}{' and others' if len(names) > 10 else ''}."
        )


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
