"""Each column of a table beside all others: what it is, what it depends on, what repeats it, where it is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc

from featgeo.explore.cells import GIVEN
from featgeo.explore.counting import Counts
from featgeo.explore.discoveries import benjamini_hochberg
from featgeo.explore.regions import Regions, expected_rows
from featgeo.geometry.validation import Array
from featgeo.records import Records
from featgeo.tuning import in_force
from featgeo.watch import tell

if TYPE_CHECKING:
    from featgeo.explore.exploration import Exploration

Pair = Mapping[str, Any]  # a row of `Exploration.pairs`


@dataclass(frozen=True)
class Relation:
    """What ties a column to another.

    Attributes:
        name: The other column.
        strength: How strongly, between 0 and 1.
    """

    name: str
    strength: float


@dataclass(frozen=True, eq=False)
class Overview:
    """What is found of the columns of a table beside each other, each by the name of the column.

    Attributes:
        partners: Columns that it depends on at the rate, the strongest first.
        determined_by: The column that tells next to all of it.
        duplicate_of: An earlier column with which it is one-to-one.
        missing_with: The column on which its being missing depends most.
        groups: Columns that tell next to all of each other, several names each, in the order of the table.
    """

    partners: Mapping[str, list[Relation]]
    determined_by: Mapping[str, Relation]
    duplicate_of: Mapping[str, str]
    missing_with: Mapping[str, Relation]
    groups: Sequence[tuple[str, ...]]

    @classmethod
    def of(cls, exploration: Exploration) -> Overview:
        """Of a table whose pairs are known."""
        counts, names = exploration.counts, [column.name for column in exploration.about]
        place = {column.name: i for i, column in enumerate(counts.columns)}
        found = [pair for pair in exploration.pairs if pair["qvalue"] <= exploration.rate]
        determined = _determined(counts, found, place)
        known = {(own, other.name) for own, other in determined}
        same = [pair for pair in found if is_one_to_one(counts.table(place[pair["a"]], place[pair["b"]]).sum(axis=0))]
        return cls(
            _partners(found, {column.name: column.parent for column in counts.columns if column.parent}),
            # What a copy tells is no news: columns that tell it without being told by it come first.
            _strongest(determined) | _strongest([one for one in determined if (one[1].name, one[0]) not in known]),
            _duplicates(same, names),
            _strongest(missing_dependence(counts, exploration.rate)),
            _groups([(a, b) for a, b in known if (b, a) in known and a in names and b in names], names),
        )


def columns_of(exploration: Exploration, overview: Overview) -> Records:
    """The columns of a table as rows."""
    rows = []
    for about in exploration.about:
        partners = overview.partners.get(about.name, [])
        missing, determined = (
            part.get(about.name, Relation("", np.nan)) for part in (overview.missing_with, overview.determined_by)
        )
        rows.append({
            "name": about.name,
            "kind": about.kind,
            "original": about.original,
            "rows": about.n_rows - about.n_missing,
            "missing": about.n_missing,
            "missing_share": about.n_missing / max(about.n_rows, 1),
            "distinct": about.n_distinct,
            "distinct_exact": about.distinct_exact,
            "aside": about.aside,
            "strongest_partner": partners[0].name if partners else "",
            "strength": partners[0].strength if partners else np.nan,
            "n_partners": len(partners),
            "missing_depends_on": missing.name,
            "missing_strength": missing.strength,
            "determined_by": determined.name,
            "determined_share": determined.strength,
            "duplicate_of": overview.duplicate_of.get(about.name, ""),
        })  # fmt: skip
    shown = ("name", "kind", "rows", "missing", "distinct", "aside", "strongest_partner", "strength", "n_partners")
    return Records("columns", {name: [row[name] for row in rows] for name in rows[0]} if rows else {}, shown)


def _partners(found: Sequence[Pair], of_date: Mapping[str, str]) -> dict[str, list[Relation]]:
    """Columns that depend on each, the strongest first; what a part of a date depends on counts for the date."""
    partners: dict[str, dict[str, Relation]] = defaultdict(dict)
    for pair in found:  # the strongest first
        for own, other in ((pair["a"], pair["b"]), (pair["b"], pair["a"])):
            partners[of_date.get(own, own)].setdefault(of_date.get(other, other), Relation(other, pair["strength"]))
    return {name: list(relations.values()) for name, relations in partners.items()}


def is_one_to_one(table: np.ndarray) -> bool:
    """Whether each cell of one column, the missing one too, goes with one cell of the other alone, and back."""
    there = table > 0
    return bool((there.sum(axis=0) <= 1).all() and (there.sum(axis=1) <= 1).all())


def told_share(table: np.ndarray) -> float:
    """How much better held-out rows of the second column are guessed from the first than without it, 0 to 1.

    The guess is the cell that is most frequent among the rows of other folds.

    Args:
        table: Rows in each pair of cells, by fold, (folds, A, B).
    """
    rest = table.sum(axis=0) - table
    guess, blind = rest.argmax(axis=2), rest.sum(axis=1).argmax(axis=1)
    right = np.take_along_axis(table, guess[..., None], axis=2).sum()
    by_chance = np.take_along_axis(table.sum(axis=1), blind[:, None], axis=1).sum()
    n = table.sum()
    return float((right - by_chance) / (n - by_chance)) if n > by_chance else 0.0


def _determined(counts: Counts, pairs: Sequence[Pair], place: Mapping[str, int]) -> list[tuple[str, Relation]]:
    """Each column that another tells next to all of, with that one: its ranks, or which of its values it is."""
    result = []
    for pair in pairs:
        table = counts.table(place[pair["a"]], place[pair["b"]]).astype(np.int64)
        same = is_one_to_one(table.sum(axis=0))
        for own, other, told, by_other in (
            (pair["b"], pair["a"], pair["b_from_a"], table),
            (pair["a"], pair["b"], pair["a_from_b"], table.transpose(0, 2, 1)),
        ):
            column = counts.columns[place[own]]
            share = 1.0 if same else told
            if column.kind == "label" or column.whole:
                share = max(share, told_share(by_other[:, :-1, :-1]))
            if share > in_force.get().redundant:
                result.append((own, Relation(other, share)))
    return result


def _strongest(relations: Sequence[tuple[str, Relation]]) -> dict[str, Relation]:
    """Of each column the strongest; of equals the first."""
    best: dict[str, Relation] = {}
    for name, relation in relations:
        if name not in best or relation.strength > best[name].strength:
            best[name] = relation
    return best


def _duplicates(same: Sequence[Pair], names: Sequence[str]) -> dict[str, str]:
    """The first column of the table that each is one-to-one with."""
    order = {name: i for i, name in enumerate(names)}
    result: dict[str, str] = {}
    for pair in same:
        if pair["a"] in order and pair["b"] in order:  # no parts of dates
            first, later = sorted((pair["a"], pair["b"]), key=order.__getitem__)
            result[later] = min(first, result.get(later, first), key=order.__getitem__)
    return result


def _groups(pairs: Sequence[tuple[str, str]], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Columns that pairs connect."""
    order = {name: i for i, name in enumerate(names)}
    ends = np.array([(order[a], order[b]) for a, b in pairs], dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(names), len(names)))
    group = connected_components(graph, directed=False)[1]
    several = [np.flatnonzero(group == one) for one in np.unique(group[ends.ravel()])]
    return [tuple(names[int(i)] for i in members) for members in several]


def missing_dependence(counts: Counts, rate: float) -> list[tuple[str, Relation]]:
    """Columns on which it depends whether each is missing, at a rate of false discoveries over all of them.

    The strength is Cramér's V of being missing and the regions of the other column, its being missing among them, less
    what chance adds to it.
    """
    tried: list[tuple[str, Relation]] = []
    pvalues: list[float] = []
    for i, own in enumerate(counts.columns):
        if own.parent or not 0 < counts.single(i)[:, -1].sum() < counts.n_rows:
            continue
        tell(f"where {own.name!r} is missing")
        for j, other in enumerate(counts.columns):
            if j != i and not other.parent and other.name != GIVEN:
                pvalue, strength = _missing_test(counts, i, j)
                tried.append((own.name, Relation(other.name, strength)))
                pvalues.append(pvalue)
    rates = benjamini_hochberg(np.array(pvalues))
    return [one for one, qvalue in zip(tried, rates, strict=True) if qvalue <= rate]


def _missing_test(counts: Counts, i: int, j: int) -> tuple[float, float]:
    """Whether column i is missing against the regions of column j: a p-value and the strength.

    Regions that too few missing rows are expected in for a chi-square limit count as one.
    """
    table = counts.table(i, j).sum(axis=0).astype(np.float64)
    missing = np.stack([table[-1], table[:-1].sum(axis=0)], axis=1)  # (cells of j, 2)
    regions = Regions.of(counts.columns[j], missing[:-1].sum(axis=1))
    joined = _ample(np.concatenate([regions.summed(missing[:-1]), missing[-1:]]))
    freedom = len(joined) - 1
    if freedom < 1:
        return 1.0, 0.0
    expected = expected_rows(joined)
    chi_square = float(np.sum((joined - expected) ** 2 / expected))
    return float(chdtrc(freedom, chi_square)), float(np.sqrt(max(chi_square - freedom, 0.0) / joined.sum()))


def _ample(table: Array) -> Array:
    """Regions, (A, 2), the smallest joined until each is expected to have enough rows of either kind."""
    rarer = table.sum(axis=0).min() / table.sum()
    groups = [np.zeros(2)]
    for row in table[np.argsort(table.sum(axis=1), kind="stable")]:
        groups[-1] = groups[-1] + row
        if groups[-1].sum() * rarer >= in_force.get().ample_count:
            groups.append(np.zeros(2))
    last = groups.pop()
    if groups:
        groups[-1] = groups[-1] + last
    return np.array(groups).reshape(-1, 2)
