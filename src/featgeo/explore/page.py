"""From an exploration to the page that shows it: plain values, and no more of them than a browser should be handed.

Numbers of all pairs are there, in as many digits as a reader can use; `page_pairs` says of which there is more. What is
shown first stands first in the file: a browser draws it before it has read the rest.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from featgeo.explore import page_pairs
from featgeo.explore.cells import GIVEN, Cells
from featgeo.explore.page_pairs import DATE_DIGITS, DIGITS, FEWER, listed, points_of, rounded
from featgeo.explore.pictures import clustered, placed
from featgeo.geometry.validation import Array
from featgeo.report.app import page_of
from featgeo.tuning import in_force
from featgeo.watch import tell

if TYPE_CHECKING:
    from featgeo.explore.exploration import Exploration
    from featgeo.records import Records

FORMAT = 1  # of the document, which the page checks
BYTES_A_COLUMN = 26_000  # of the document: with the program, 1.5 MB for 50 columns and 6 MB for 200
LEAST_BYTES = 1_300_000  # that a document may always have
LEAST_DETAILS = 300_000  # bytes that details may always have, however many pairs there are
LONGEST = 80  # characters of a label or a name inside a sentence; whole names of columns are kept once
MOST_DIRECT = 300  # columns, each of which is looked at given all others: up to here less time than all pairs take
MOST_LINES = 120  # of the graph: the strongest; a table has all
GAP = 0.8  # between parts of the graph, about the length of a line
WIDER = 1.6  # than high is a graph of many parts, as screens are
MOST_INTERACTIONS = 8  # whose cells are shown
ROUNDED = ("strength", "low", "high", "classic", "sigma1", "energy", "held_out_energy", "mutual_information")
PAIR_NUMBERS = (
    *ROUNDED, "b_from_a", "a_from_b", "pvalue", "qvalue", "qvalue_any", "n_modes", "rows",
    "strength_given", "energy_given", "held_out_energy_given", "n_modes_given", "pvalue_given", "qvalue_given",
)  # fmt: skip
LATER = ("cells", "order", "pairs", "graph", "about_target", "interactions")  # what the first view does without


def html_of(document: dict[str, Any], title: str) -> str:
    """The page as one file that needs no other.

    Args:
        document: What is shown.
        title: Of the page.
    """
    first = {"title": _cut(title)} | {name: document[name] for name in document if name not in (*LATER, "details")}
    later = {name: document[name] for name in LATER}
    lines = [f"{place} {_json(detail)}" for place, detail in document["details"].items()]
    return page_of(title, _json(first), {"later": _json(later), "details": "\n".join(lines)})


def json_of(document: dict[str, Any], title: str) -> str:
    """What the page shows as a JSON document: in ASCII, the same bytes for the same exploration."""
    return _json({"title": _cut(title)} | document)


def _json(values: Any) -> str:
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def document_of(exploration: Exploration) -> dict[str, Any]:
    """What the page shows, as plain values."""
    import featgeo

    tell("the page: columns")
    columns = _Columns(exploration)
    result: dict[str, Any] = {
        "format": FORMAT,
        "version": featgeo.__version__,
        "rows": exploration.n_rows,
        "rate": exploration.rate,
        "confidence": in_force.get().confidence,
        "target": columns.place.get(exploration.target_name),
        "given": [columns.place[name] for name in exploration.given_names],
        "alerts": [columns.shorter(alert) for alert in exploration.alerts],
        "columns": columns.records,
        "findings": page_pairs.findings(exploration, columns.place, columns.shorter),
        "cells": columns.cells,
        "order": columns.order(),
        "pairs": columns.pairs(),
        "graph": _graph(exploration, columns) if len(exploration.compared) <= MOST_DIRECT else None,
        "about_target": _about_target(exploration, columns),
        "interactions": _interactions(exploration, columns),
    }
    most = max(LEAST_BYTES, BYTES_A_COLUMN * len(columns.records)) - len(_json(result))
    return result | {"details": dict(page_pairs.details(exploration, columns.shorter, max(most, LEAST_DETAILS)))}


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
        for labels in (column.labels for column in cells):
            self._long |= {label: _cut(label) for label in labels if len(label) > LONGEST}
        known = {row["name"]: row for row in exploration.columns}
        self.records: list[dict[str, Any]] = []
        self.cells: list[dict[str, Any] | None] = []
        for name in self.names:
            record: dict[str, Any] = rounded(known.get(name, {"name": name}))
            for relation in ("strongest_partner", "missing_depends_on", "determined_by", "duplicate_of"):
                record[relation] = self.place.get(record.get(relation) or "")
            column = cells[own[name]] if name in own else None
            if column is not None:
                record |= {"kind": column.kind, "parent": self.place.get(column.parent)}
            self.records.append(record)
            self.cells.append(None if column is None else _cells(column, exploration.counts.single(own[name])))

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
                result[name] = listed(np.asarray(values[name]), DIGITS)
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


def _cells(column: Cells, counts: np.ndarray) -> dict[str, Any]:
    """The cells of a column: names of labels, ends of numbers, milliseconds since 1970 of dates; and their rows."""
    rows = counts.sum(axis=0)
    result: dict[str, Any] = {"rows": rows[:-1].tolist(), "missing": int(rows[-1])}
    if column.kind == "label":
        return result | {"labels": [_cut(name) for name in column.names()[:-1]]}
    spans = column.spans / 1000 if column.kind == "date" else column.spans
    places = column.places / 1000 if column.kind == "date" else column.places
    digits = DATE_DIGITS if column.kind == "date" else 8
    return result | {
        "low": listed(spans[:, 0], digits),
        "high": listed(spans[:, 1], digits),
        "place": listed(places, digits),
        "points": points_of(column).tolist(),
        "whole": bool(column.whole),
    }


def _about_target(exploration: Exploration, columns: _Columns) -> dict[str, Any] | None:
    if not exploration.target_name:
        return None
    values = exploration.target.columns
    result = {name: listed(np.asarray(values[name]), DIGITS) for name in values if name != "column"}
    return result | {"column": [columns.place[name] for name in values["column"]]}


def _interactions(exploration: Exploration, columns: _Columns) -> list[dict[str, Any]]:
    """Pairs that tell of the target together; of the first ones that are no chance, where."""
    result = []
    for place, row in enumerate(exploration.interactions):
        record = rounded(row) | {"a": columns.place[row["a"]], "b": columns.place[row["b"]]}
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
        "rows": listed(np.asarray(cells.columns[rows]), DIGITS),
        "share": listed(np.asarray(cells.columns[share]), FEWER),
        "effects": {columns.shorter(name): listed(np.asarray(cells.columns[name]), FEWER) for name in effects},
    }


def _graph(exploration: Exploration, columns: _Columns) -> dict[str, Any]:
    """Pairs that depend on each other given all others, and where their columns are drawn."""
    tell("the page: direct dependences")
    direct = exploration.direct.columns
    found = np.flatnonzero((np.asarray(direct["qvalue"]) <= exploration.rate) & (np.asarray(direct["strength"]) > 0))
    names = ("strength", "pvalue", "qvalue", "n_modes")
    result: dict[str, Any] = {name: listed(np.asarray(direct[name])[found], DIGITS) for name in names}
    for side in ("a", "b"):
        result[side] = [columns.place[name] for name in np.asarray(direct[side], dtype=object)[found]]
    lines = np.array([result["a"], result["b"]], dtype=np.int64).T.reshape(-1, 2)[:MOST_LINES]
    nodes, ends = np.unique(lines, return_inverse=True)
    strength = np.asarray(direct["strength"], dtype=np.float64)[found][:MOST_LINES]
    at = _side_by_side(len(nodes), ends.reshape(-1, 2), strength)
    return result | {"drawn": len(lines), "nodes": nodes.tolist(), "at": [listed(point, FEWER) for point in at]}


def _side_by_side(n: int, lines: np.ndarray, strength: Array) -> Array:
    """Points of a graph, (n, 2), at most 1: parts that no line joins stand in rows, the largest first."""
    joined = coo_array((np.ones(len(lines)), (lines[:, 0], lines[:, 1])), shape=(n, n))
    part = connected_components(joined, directed=False)[1]
    parts = sorted((np.flatnonzero(part == one) for one in np.unique(part)), key=len, reverse=True)
    drawn = []
    for own in parts:
        inside = np.isin(lines[:, 0], own)
        at = placed(len(own), np.searchsorted(own, lines[inside]), strength[inside])
        at -= at.min(axis=0)
        drawn.append(at / max(float(at.max()), 1e-9) * np.sqrt(len(own)))
    sizes = np.array([at.max(axis=0) + GAP for at in drawn]).reshape(-1, 2)
    width = max(np.sqrt(WIDER * sizes.prod(axis=1).sum()), sizes[:, 0].max(initial=0.0))
    result, corner, tall = np.zeros((n, 2)), np.zeros(2), 0.0
    for own, at, size in zip(parts, drawn, sizes, strict=True):
        if corner[0] + size[0] > width:
            corner, tall = np.array([0.0, corner[1] + tall]), 0.0
        result[own] = at + corner
        corner, tall = corner + np.array([size[0], 0.0]), max(tall, float(size[1]))
    return result / max(float(result.max(initial=0.0)), 1e-9)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
