"""A whole table at once: what depends on what, how, how sure, and given what.

Everything here is asked of counts (`featgeo.explore.counting`); the data is read twice and never again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from featgeo.card import Card, Shown
from featgeo.explore import page, pictures
from featgeo.explore.alerts import alerts_of, bring_back
from featgeo.explore.cells import GIVEN, Cells, JointCells, is_same_date
from featgeo.explore.counting import Counts
from featgeo.explore.detail import PairDetail, no_column
from featgeo.explore.discoveries import benjamini_hochberg
from featgeo.explore.gram import Moments
from featgeo.explore.interactions import interaction_cells, interaction_records, no_interactions
from featgeo.explore.overview import Overview, columns_of
from featgeo.explore.pairs import estimates_of, missing_pvalues
from featgeo.explore.partial import Partial, direct_dependence, given_dependence
from featgeo.explore.tails import joined_pvalues
from featgeo.explore.target import about_target
from featgeo.explore.three_way import Interactions
from featgeo.records import Records
from featgeo.report.app import frame_of
from featgeo.schema import saved
from featgeo.tuning import in_force
from featgeo.watch import bounded_threads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_ALERTS = 12  # of a card
TITLE = "What depends on what"  # of a page, where it is given none


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
        n_rows: Rows of the table.
        n_missing: Rows without a value.
        n_words: Values that are no numbers, or no dates, of a column that mostly holds them.
        example: The first of them.
        aside: Why it is not compared with others: "empty", "constant", "identifier", "rare" where no label has enough
            rows, "few rows", or "not compared" where an earlier exploration has no cells for it; "" where it is.
    """

    name: str
    kind: str
    original: str
    n_distinct: int
    distinct_exact: bool
    n_rows: int
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
        n_repeated: Rows of a sample that are equal to an earlier one of it.
        n_compared: Rows of that sample; 0 where rows were not compared.
        three_way: Sums for the interactions of two columns about the target; None without one.
    """

    is_root: ClassVar[bool] = True  # files hold it alone
    about: tuple[AboutColumn, ...]
    counts: Counts
    target_name: str = ""
    given_names: tuple[str, ...] = ()
    joint: JointCells | None = None
    rate: float = 0.05
    n_repeated: int = 0
    n_compared: int = 0
    three_way: Interactions | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return self.about[0].n_rows

    @cached_property
    def _place(self) -> dict[str, int]:
        return {column.name: i for i, column in enumerate(self.counts.columns)}

    @property
    def compared(self) -> list[Cells]:
        """The columns that are compared with each other, with parts of dates."""
        return [column for column in self.counts.columns if column.name != GIVEN]

    @cached_property
    def _all_pairs(self) -> list[tuple[int, int]]:
        columns = self.compared
        return [(i, j) for i, j in combinations(range(len(columns)), 2) if not is_same_date(columns[i], columns[j])]

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
            if i != place and column.name != GIVEN and i not in self._given and not is_same_date(column, own)
        ]
        if not others:
            return Records(f"columns that could say something of {self.target_name!r}", {"column": []})
        with bounded_threads():
            moments = self._given_pairs[2] if self.given_names else Moments.of(self.counts)
            found = about_target(moments, place, others)
        step = {column: i for i, column in enumerate(found.order)}
        values: dict[str, Any] = {
            "column": np.array([columns[i].name for i in others], dtype=object),
            "alone": found.alone[0],
            "alone_error": found.alone[1],
            "added": found.added[0],
            "added_error": found.added[1],
            "pvalue": found.pvalue,
            "qvalue": benjamini_hochberg(found.pvalue),
            "step": np.array([step.get(i, -1) + 1 for i in range(len(others))]),
            "held": np.array([
                found.curve[step[i]] / found.curve[-1] if i in step else np.nan for i in range(len(others))
            ]),
        }  # fmt: skip
        order = np.lexsort((-values["alone"], np.where(values["step"] > 0, values["step"], len(others) + 1)))
        title = f"columns and what they say of {self.target_name!r} (all together {found.together:.3g})"
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
            of_missing = missing_pvalues(self.counts, pairs)
        pvalue = joined_pvalues(found.pvalue, of_missing)
        reach = _normal_quantile(in_force.get().confidence) * found.error
        values = {
            "a": np.array([columns[i].name for i, _ in pairs], dtype=object),
            "b": np.array([columns[j].name for _, j in pairs], dtype=object),
            "strength": found.strength,
            "low": np.clip(found.strength - reach, 0, 1),
            "high": np.clip(found.sigma1 + reach, 0, 1),
            "n_modes": found.n_modes,
            "pvalue": pvalue,
            "qvalue": benjamini_hochberg(pvalue),
            "qvalue_any": benjamini_hochberg(pvalue, any_dependence=True),
            "pvalue_missing": of_missing,
            "sigma1": found.sigma1,
            "energy": found.energy,
            "held_out_energy": found.held_out_energy,
            "mutual_information": found.information,
            "b_from_a": found.forward,
            "a_from_b": found.backward,
            **self._classic(pairs, found.classic),
            "rows": found.rows.astype(np.int64),
            **(self._pairs_given if self.given_names else {}),
        }
        order = np.lexsort((pvalue, -found.strength))
        also = ("strength_given", "qvalue_given") if self.given_names else ()
        shown = ("a", "b", "strength", "low", "high", "n_modes", "pvalue", "qvalue", "classic", "rows", *also)
        return Records("pairs of columns", {name: column[order] for name, column in values.items()}, shown)

    @cached_property
    def interactions(self) -> Records:
        """Pairs of columns that tell of the target together what they do not tell beside each other.

        Discoveries come first, by their energy: the share of the target's variance (of classes, the sum of squared
        correlations) that functions of both add, on held-out rows, to functions of all single columns. Rows that miss
        one of the two are left out. False discoveries are controlled for over all pairs, not these alone.
        """
        if self.three_way is None:
            return no_interactions("no target was named: fg.explore(data, target=...)")
        with bounded_threads():
            return interaction_records(self.three_way, self.counts, self.rate)

    def interaction(self, a: str, b: str) -> Records:
        """Where two columns tell of the target together: cells of both, those that tell most first.

        Args:
            a: A column.
            b: Another one; the two must be among `interactions`.
        """
        pair = frozenset(self._checked_place(name) for name in (a, b))
        listed = [] if self.three_way is None else [frozenset(map(int, one)) for one in self.three_way.pairs]
        if self.three_way is None or pair not in listed:
            raise ValueError(
                f"Cells are known of the pairs that `interactions` lists, and {a!r} with {b!r} is none of them. "
                f"{'Choose one of these' if listed else 'Name a target: fg.explore(data, target=...)'}."
            )
        return interaction_cells(self.three_way, self.counts, listed.index(pair))

    def _classic(self, pairs: Sequence[tuple[int, int]], of_labels: np.ndarray) -> dict[str, np.ndarray]:
        """What people know: Pearson's correlation of numbers, Cramér's V of labels, the correlation ratio of both."""
        pearson = self.counts.pearson()
        values = np.array([pearson.get(pair, own) for pair, own in zip(pairs, of_labels, strict=True)])
        labels = {i for i, column in enumerate(self.counts.columns) if column.kind == "label"}
        kinds = ["pearson" if pair in pearson else "cramer" if labels.issuperset(pair) else "ratio" for pair in pairs]
        return {"classic": values, "classic_kind": np.array(kinds, dtype=object)}

    def pair(self, a: str, b: str) -> PairDetail:
        """How two columns depend on each other, in full.

        Args:
            a: The first column; parts of a date are named as in `pairs`, such as "when (month)".
            b: The second.
        """
        i, j = (self._checked_place(name) for name in (a, b))
        columns = self.counts.columns
        if i == j or is_same_date(columns[i], columns[j]):
            raise ValueError(f"A pair is two columns, and {a!r} and {b!r} are one. Name another.")
        first, second = sorted((i, j))
        place = self._place_of_pair[columns[first].name, columns[second].name]
        summary = {name: values[place] for name, values in self.pairs.columns.items()}
        with bounded_threads():
            detail = PairDetail.of(self.counts, (first, second), summary, self.rate)
        return detail if i == first else detail.turned()

    @cached_property
    def _place_of_pair(self) -> dict[tuple[str, str], int]:
        """The row of each pair in `pairs`, by the names of its columns in the order of the table."""
        names = self.pairs.columns
        return {pair: i for i, pair in enumerate(zip(names["a"], names["b"], strict=True))}

    def _checked_place(self, name: str) -> int:
        """Where a column stands among those that are compared."""
        names = [column.name for column in self.compared]
        if name in names:
            return self._place[name]
        aside = {column.name: column.aside for column in self.about}
        if name in aside:
            raise ValueError(f"{name!r} is not compared with others: {aside[name]}. {bring_back(name, aside[name])}")
        raise ValueError(no_column(name, names))

    @cached_property
    def overview(self) -> Overview:
        """What each column has to do with the others: partners, copies, what determines it, where it is missing."""
        with bounded_threads():
            return Overview.of(self)

    @cached_property
    def columns(self) -> Records:
        """Every column: what it is, its strongest partner, what determines it, and where it is missing."""
        return columns_of(self, self.overview)

    @cached_property
    def alerts(self) -> list[str]:
        """What to know of the table before it is used, in sentences."""
        return alerts_of(self, self.overview)

    def heatmap(self, most: int = 40) -> Figure:
        """A figure of the strengths of all pairs that depend, columns that go together beside each other.

        Args:
            most: Columns, at most: those with the strongest pairs.
        """
        return pictures.heatmap_of(self, most)

    def graph(self, most: int = 60, direct: bool = False) -> Figure:
        """A figure of the pairs that depend, as lines between columns, the broader the stronger.

        Args:
            most: Lines, at most: the strongest.
            direct: Whether to show what is left of each pair given all other columns.
        """
        return pictures.graph_of(self, most, direct)

    def to_dict(self) -> dict[str, Any]:
        """Rows, columns, pairs and alerts as plain values; None where there is none."""
        return {
            "rows": self.n_rows,
            "rate": self.rate,
            "target": self.target_name or None,
            "given": list(self.given_names),
            "alerts": list(self.alerts),
            "columns": self.columns.to_dict(),
            "pairs": self.pairs.to_dict(),
            **({"about_target": self.target.to_dict()} if self.target_name else {}),
            **({"interactions": self.interactions.to_dict()} if self.target_name else {}),
        }

    @cached_property
    def _document(self) -> dict[str, Any]:
        """What pages of it show."""
        return page.document_of(self)

    def to_html(self, title: str = TITLE) -> str:
        """A page of all of it as one file: it needs no other, asks nobody, and runs in any browser.

        Args:
            title: Of the page, such as the name of the table.
        """
        return page.html_of(self._document, title)

    def to_json(self, title: str = TITLE) -> str:
        """What the page shows, as a JSON document: all pairs in short numbers, the first of them in full.

        Args:
            title: Of the page.
        """
        return page.json_of(self._document, title)

    def _repr_html_(self) -> str:
        """The page in a frame of its own; where a notebook is shown without frames, the card is left."""
        frame = frame_of(self.to_html(), TITLE)
        return f"{frame}<details><summary>As text</summary>{self.card().html()}</details>"

    def merge(self, other: Exploration) -> Exploration:
        """Of the rows of both, exactly as if they had been one table.

        Args:
            other: Explored `like` this one, or both like a third.
        """
        if not isinstance(other, Exploration):
            raise TypeError(f"An exploration merges with an exploration, got a {type(other).__name__}.")
        mine, theirs = (one.counts.columns for one in (self, other))
        names = [{column.name for column in one.about} for one in (self, other)]
        same = len(mine) == len(theirs) and all(a.is_same(b) for a, b in zip(mine, theirs, strict=True))
        if not same or names[0] != names[1]:
            raise ValueError(
                "Explorations merge where their functions are the same, and these have other cells. Explore the second "
                "table by fg.explore(table, like=first)."
            )
        if self.target_name != other.target_name:
            raise ValueError(
                f"Explorations merge about one target, got {self.target_name!r} and {other.target_name!r}. Explore the "
                "second table like the first, without a target of its own."
            )
        others = {column.name: column for column in other.about}
        about = tuple(_both(column, others[column.name]) for column in self.about)
        return replace(
            self,
            about=about,
            counts=self.counts.merged(other.counts),
            n_repeated=self.n_repeated + other.n_repeated,
            n_compared=self.n_compared + other.n_compared,
            three_way=self.three_way.merged(other.three_way) if self.three_way and other.three_way else None,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: counts, not rows. `fg.load` reads it, and everything can be asked again."""
        from featgeo.models.persistence import save

        save(self, path)

    def card(self) -> Card:
        """The strongest pairs."""
        own = self.pairs.card()
        found = int(np.sum(np.asarray(self.pairs.columns["qvalue"]) <= self.rate))
        title = f"{self.n_rows:,} rows, {len(self.about)} columns, {len(self.pairs):,} pairs; {found:,} depend"
        more = len(self.alerts) - SHOWN_ALERTS
        rest = [f"{more:,} more are in .alerts"] if more > 0 else []
        return Card([title], own.columns, own.rows, [*self.alerts[:SHOWN_ALERTS], *rest])


def _both(a: AboutColumn, b: AboutColumn) -> AboutColumn:
    """What a column is in the rows of two tables; how many values both share is not known."""
    sums = {name: getattr(a, name) + getattr(b, name) for name in ("n_rows", "n_missing", "n_words")}
    return replace(
        a,
        **sums,
        n_distinct=max(a.n_distinct, b.n_distinct),
        distinct_exact=False,
        example=a.example or b.example,
        aside=a.aside if a.aside == b.aside else "not compared",
    )


def _normal_quantile(confidence: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + confidence / 2))
