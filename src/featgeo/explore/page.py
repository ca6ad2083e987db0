"""From an exploration to the page that shows it: plain values, and no more of them than a browser should be handed.

Numbers of all pairs are there, in as many digits as a reader can use. Functions, conditional distributions and regions
are kept of the pairs that people open first, until the page is as large as it may be: those with the target, those that
are strongest, those that the usual coefficients miss; what may be chance comes last.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from featgeo.explore import regions, wording
from featgeo.explore.cells import GIVEN, Cells
from featgeo.explore.detail import PairDetail, Side, number_columns
from featgeo.explore.pictures import clustered, placed
from featgeo.geometry.validation import Array
from featgeo.report.app import page_of
from featgeo.tuning import in_force
from featgeo.watch import tell

if TYPE_CHECKING:
    from featgeo.explore.exploration import Exploration
    from featgeo.records import Records

FORMAT = 1  # of the document, which the page checks
DIGITS = 5  # that count: more than a reader sees, so that what is rounded for show is rounded once
DATE_DIGITS = 14  # of milliseconds since 1970
FEWER = 4  # digits of points of curves, which nobody reads as numbers
BYTES_A_COLUMN = 26_000  # of the document: with the program, 1.5 MB for 50 columns and 6 MB for 200
LEAST_BYTES = 1_300_000  # that a document may always have
LEAST_DETAILS = 300_000  # bytes that details may always have, however many pairs there are
MOST_DETAILS = 2_000  # pairs: what takes longer than reading the table
LONGEST = 80  # characters of a label or a name inside a sentence; whole names of columns are kept once
MOST_POINTS = 64  # of a curve, evenly along the cells: finer ones cannot be seen
MOST_SHARES = 8  # labels whose shares are stacked; more cannot be told apart
MOST_DIRECT = 80  # columns, each of which is looked at given all others: time grows with their cube
MOST_LINES = 120  # of the graph: the strongest; a table has all
GAP = 0.8  # between parts of the graph, about the length of a line
MOST_INTERACTIONS = 8  # whose cells are shown
ROUNDED = ("strength", "low", "high", "classic", "sigma1", "energy", "held_out_energy", "mutual_information")
PAIR_NUMBERS = (
    *ROUNDED, "b_from_a", "a_from_b", "pvalue", "qvalue", "qvalue_any", "n_modes", "rows",
    "strength_given", "energy_given", "held_out_energy_given", "n_modes_given", "pvalue_given", "qvalue_given",
)  # fmt: skip


def html_of(exploration: Exploration, title: str) -> str:
    """The page as one file that needs no other.

    Args:
        exploration: What is shown.
        title: Of the page.
    """
    return page_of(title, json_of(exploration, title))


def json_of(exploration: Exploration, title: str) -> str:
    """What the page shows as a JSON document: in ASCII, the same bytes for the same exploration."""
    return json.dumps(payload_of(exploration, title), separators=(",", ":"), allow_nan=False)


def payload_of(exploration: Exploration, title: str) -> dict[str, Any]:
    """What the page shows, as plain values."""
    import featgeo

    tell("the page: columns")
    columns = _Columns(exploration)
    result: dict[str, Any] = {
        "format": FORMAT,
        "version": featgeo.__version__,
        "title": _cut(title),
        "rows": exploration.n_rows,
        "rate": exploration.rate,
        "confidence": in_force.get().confidence,
        "target": columns.place.get(exploration.target_name),
        "given": [columns.place[name] for name in exploration.given_names],
        "alerts": [columns.shorter(alert) for alert in exploration.alerts],
        "columns": columns.records,
        "order": columns.order(),
        "pairs": columns.pairs(),
        "graph": _graph(exploration, columns) if len(exploration.compared) <= MOST_DIRECT else None,
        "about_target": _about_target(exploration, columns),
        "interactions": _interactions(exploration, columns),
        "details": {},
    }
    spent = len(json.dumps(result, separators=(",", ":")))
    most = max(LEAST_BYTES, BYTES_A_COLUMN * len(columns.records))
    result["details"] = dict(_details(exploration, columns, max(most - spent, LEAST_DETAILS)))
    return result


class _Columns:
    """The columns of the page, parts of dates after those of the table, and pairs by their places among them."""

    def __init__(self, exploration: Exploration) -> None:
        self.exploration = exploration
        own = {column.name: i for i, column in enumerate(exploration.counts.columns) if column.name != GIVEN}
        about = [column.name for column in exploration.about]
        self.names = [*about, *(name for name in own if name not in set(about))]
        self.place = {name: i for i, name in enumerate(self.names)}
        self._long = {name: _cut(name) for name in self.names if len(name) > LONGEST}
        cells = exploration.counts.columns
        for column in cells:
            self._long |= {label: _cut(label) for label in column.labels if len(label) > LONGEST}
        known = {row["name"]: row for row in exploration.columns}
        self.records = []
        for name in self.names:
            record: dict[str, Any] = _rounded(known.get(name, {"name": name}))
            for relation in ("strongest_partner", "missing_depends_on", "determined_by", "duplicate_of"):
                record[relation] = self.place.get(record.get(relation) or "")
            if name in own:
                column = cells[own[name]]
                rows = exploration.counts.single(own[name]).sum(axis=0)
                record |= {"kind": column.kind, "parent": self.place.get(column.parent), "cells": _cells(column, rows)}
            self.records.append(record)

    def shorter(self, text: str) -> str:
        """The same with names and labels of readable length."""
        for long, cut in self._long.items():
            text = text.replace(repr(long), repr(cut)).replace(long, cut)
        return text

    def pairs(self) -> dict[str, Any]:
        """Numbers of all pairs, the strongest first."""
        values = self.exploration.pairs.columns
        result: dict[str, Any] = {side: [self.place[name] for name in values[side]] for side in ("a", "b")}
        result["classic_kind"] = list(values["classic_kind"])
        for name in PAIR_NUMBERS:
            if name in values:
                result[name] = _listed(np.asarray(values[name]), DIGITS)
        return result

    def order(self) -> list[int]:
        """Columns that are compared, those that depend on each other beside each other."""
        compared = [self.place[column.name] for column in self.exploration.compared]
        at = {place: i for i, place in enumerate(compared)}
        strength = np.zeros((len(compared), len(compared)))
        for pair in self.exploration.pairs:
            if pair["qvalue"] <= self.exploration.rate:
                i, j = at[self.place[pair["a"]]], at[self.place[pair["b"]]]
                strength[i, j] = strength[j, i] = max(pair["strength"], 0.0)
        return [compared[i] for i in clustered(strength)]


def _cells(column: Cells, rows: np.ndarray) -> dict[str, Any]:
    """The cells of a column: names of labels, ends of numbers, milliseconds since 1970 of dates; and their rows."""
    result: dict[str, Any] = {"rows": rows[:-1].tolist(), "missing": int(rows[-1])}
    if column.kind == "label":
        return result | {"labels": [_cut(name) for name in column.names()[:-1]]}
    spans = column.spans / 1000 if column.kind == "date" else column.spans
    places = column.places / 1000 if column.kind == "date" else column.places
    digits = DATE_DIGITS if column.kind == "date" else 8
    return result | {
        "low": _listed(spans[:, 0], digits),
        "high": _listed(spans[:, 1], digits),
        "place": _listed(places, digits),
        "points": points_of(column).tolist(),
        "whole": bool(column.whole),
    }


def points_of(column: Cells) -> np.ndarray:
    """The cells on which curves are drawn: all of them where they are few."""
    n = column.n_values
    if column.kind == "label" or n <= MOST_POINTS:
        return np.arange(n)
    return np.unique(np.rint(np.linspace(0, n - 1, MOST_POINTS)).astype(np.int64))


def _about_target(exploration: Exploration, columns: _Columns) -> dict[str, Any] | None:
    if not exploration.target_name:
        return None
    values = exploration.target.columns
    result = {name: _listed(np.asarray(values[name]), DIGITS) for name in values if name != "column"}
    return result | {"column": [columns.place[name] for name in values["column"]]}


def _interactions(exploration: Exploration, columns: _Columns) -> list[dict[str, Any]]:
    """Pairs that tell of the target together; of the first ones that are no chance, where."""
    result = []
    for place, row in enumerate(exploration.interactions):
        record = _rounded(row) | {"a": columns.place[row["a"]], "b": columns.place[row["b"]]}
        record["where"] = columns.shorter(row["where"])
        if place < MOST_INTERACTIONS and row["qvalue"] <= exploration.rate:
            record["cells"] = _interaction_cells(exploration.interaction(row["a"], row["b"]), columns)
        result.append(record)
    return result


def _interaction_cells(cells: Records, columns: _Columns) -> dict[str, Any]:
    """Pairs of cells as columns: names of the first, of the second, rows, share of the effect, and effects by name."""
    first, second, rows, share, *effects = cells.columns
    return {
        "a": [columns.shorter(name) for name in cells.columns[first]],
        "b": [columns.shorter(name) for name in cells.columns[second]],
        "rows": _listed(np.asarray(cells.columns[rows]), DIGITS),
        "share": _listed(np.asarray(cells.columns[share]), FEWER),
        "effects": {columns.shorter(name): _listed(np.asarray(cells.columns[name]), FEWER) for name in effects},
    }


def _graph(exploration: Exploration, columns: _Columns) -> dict[str, Any]:
    """Pairs that depend on each other given all others, and where their columns are drawn."""
    tell("the page: direct dependences")
    direct = exploration.direct.columns
    found = np.flatnonzero((np.asarray(direct["qvalue"]) <= exploration.rate) & (np.asarray(direct["strength"]) > 0))
    names = ("strength", "pvalue", "qvalue", "n_modes")
    result: dict[str, Any] = {name: _listed(np.asarray(direct[name])[found], DIGITS) for name in names}
    for side in ("a", "b"):
        result[side] = [columns.place[name] for name in np.asarray(direct[side], dtype=object)[found]]
    lines = np.array([result["a"], result["b"]], dtype=np.int64).T.reshape(-1, 2)[:MOST_LINES]
    nodes, ends = np.unique(lines, return_inverse=True)
    strength = np.asarray(direct["strength"], dtype=np.float64)[found][:MOST_LINES]
    at = _side_by_side(len(nodes), ends.reshape(-1, 2), strength)
    return result | {"drawn": len(lines), "nodes": nodes.tolist(), "at": [_listed(point, FEWER) for point in at]}


def _side_by_side(n: int, lines: np.ndarray, strength: Array) -> Array:
    """Points of a graph, (n, 2), between 0 and 1: parts that no line joins stand side by side, the largest first."""
    joined = coo_array((np.ones(len(lines)), (lines[:, 0], lines[:, 1])), shape=(n, n))
    part = connected_components(joined, directed=False)[1]
    result, left = np.zeros((n, 2)), 0.0
    for own in sorted((np.flatnonzero(part == one) for one in np.unique(part)), key=len, reverse=True):
        inside = np.isin(lines[:, 0], own)
        at = placed(len(own), np.searchsorted(own, lines[inside]), strength[inside])
        at = (at - at.min(axis=0)) / max(float(np.ptp(at, axis=0).max()), 1e-9) * np.sqrt(len(own))
        result[own] = at + np.array([left, 0.0])
        left += float(np.ptp(at[:, 0])) + GAP
    return result / max(float(result.max(initial=0.0)), 1e-9)


def _details(exploration: Exploration, columns: _Columns, budget: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Pairs in full, by their place among all pairs, until the budget of bytes is spent."""
    values = exploration.pairs.columns
    order = _opened_first(exploration)[:MOST_DETAILS]
    for n, place in enumerate(order):
        if n % 20 == 0:
            tell(f"the page: pair {n} of up to {len(order)}")
        detail = exploration.pair(values["a"][place], values["b"][place])
        record = _detail(detail, columns)
        budget -= len(json.dumps(record, separators=(",", ":"))) + 10
        if budget < 0:
            return
        yield str(place), record


def _opened_first(exploration: Exploration) -> list[int]:
    """Places of pairs in the order in which people open them."""
    pairs = exploration.pairs.columns
    strength, classic = (np.nan_to_num(np.asarray(pairs[name], dtype=np.float64)) for name in ("strength", "classic"))
    chance = np.asarray(pairs["qvalue"]) > exploration.rate
    names = zip(pairs["a"], pairs["b"], strict=True)
    target = np.array([exploration.target_name in pair for pair in names], dtype=bool)
    worth = np.maximum(strength, 2 * (strength - np.abs(classic)))  # what is missed elsewhere is looked for here
    return np.lexsort((-worth, ~target, chance)).tolist() if len(strength) else []


def _detail(detail: PairDetail, columns: _Columns) -> dict[str, Any]:
    """One pair: words, modes, functions in thousandths, either column given the other, and regions."""
    k = min(max(detail.n_modes, 1), len(detail.sigma))
    modes = detail.modes.columns
    return {
        "words": [columns.shorter(part) for part in wording.sentences(detail)],
        "modes": {name: _listed(np.asarray(modes[name]), DIGITS) for name in modes if name != "mode"},
        "f": [_thousandths(detail.a, detail.a.functions[:, i]) for i in range(k)],
        "g": [_thousandths(detail.b, detail.b.functions[:, i]) for i in range(k)],
        "b_given_a": _given(detail, detail.a, detail.b),
        "a_given_b": _given(detail, detail.b, detail.a),
        "regions": _regions(detail, columns),
        "negative_mass": _short(detail.negative_mass, FEWER),
    }


def _thousandths(side: Side, values: Array) -> list[int | None]:
    """On the cells where curves are drawn; None where no rows are."""
    points = points_of(side.column)
    rounded = np.rint(values[points] * 1000).astype(np.int64).tolist()
    return [value if rows else None for value, rows in zip(rounded, side.counts[points], strict=True)]


def _given(detail: PairDetail, own: Side, other: Side) -> dict[str, Any]:
    """The other column given each cell of one: shares of labels in thousandths, or mean and quantiles of numbers."""
    points = points_of(own.column)
    probability, observed = (part[points] for part in detail.probabilities(own.name))
    there = own.counts[points] > 0
    if other.column.kind == "label":
        first = np.argsort(-other.counts, kind="stable")[: MOST_SHARES - (len(other.seen) > MOST_SHARES)]
        kept = first[other.counts[first] > 0]
        shares = [_cell_list(np.rint(part[:, kept] * 1000), there) for part in (probability, observed)]
        return {"labels": kept.tolist(), "share": shares[0], "observed": shares[1]}
    is_date = other.column.kind == "date"
    result = {}
    for name, values in number_columns(other.column, probability, observed).items():
        scaled = np.where(there, values, np.nan) / (1000 if is_date else 1)
        result[name] = _listed(scaled, DATE_DIGITS if is_date else DIGITS)
    return result


def _cell_list(values: Array, there: np.ndarray) -> list[list[float | None] | None]:
    return [_listed(row, FEWER) if seen else None for row, seen in zip(values, there, strict=True)]


def _regions(detail: PairDetail, columns: _Columns) -> dict[str, Any]:
    """Rows in pairs of regions, how far they are from those expected, and which of these chance does not explain."""
    table = detail.region_table
    return {
        "a": [columns.shorter(name) for name in detail.a.regions.names],
        "b": [columns.shorter(name) for name in detail.b.regions.names],
        "observed": table.astype(np.int64).tolist(),
        "residual": [_listed(row, 3) for row in regions.residuals(table)],
        "sure": (regions.adjusted_pvalues(table) <= 1 - in_force.get().confidence).astype(np.int64).tolist(),
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _short(value, DIGITS) if isinstance(value, float) else value for name, value in row.items()}


def _listed(values: np.ndarray, digits: int) -> list[Any]:
    return [_short(value, digits) for value in values.tolist()]


def _short(value: Any, digits: int) -> Any:
    """A number in so many digits, whole ones without a point; None for one that is not there."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short
