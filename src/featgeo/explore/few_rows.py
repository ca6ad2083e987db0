"""Dependences that a few rows make: zeros that go together, a place on one day."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featgeo.explore.regions import MOST_REGIONS, SHORT

if TYPE_CHECKING:
    from featgeo.explore.detail import PairDetail, Side


def few_rows(detail: PairDetail) -> str:
    """Where the first mode is strongest, if that is less of either column than one of its regions; else nothing.

    Nothing either where ranks and labels tell most of what the mode does: then its course is the better sentence.
    """
    told = max(float(detail.summary[name]) for name in ("b_from_a", "a_from_b"))
    if told > float(detail.summary["strength"]) ** 2 / 2 or detail.a.column.kind == detail.b.column.kind == "label":
        return ""
    first, second = _peak(detail.a), _peak(detail.b)
    if not (len(first) and len(second)) or detail.a.functions[first[0], 0] * detail.b.functions[second[0], 0] < 0:
        return ""
    rows = detail.table[np.ix_(first, second)].sum()
    expected = detail.a.counts[first].sum() * detail.b.counts[second].sum() / detail.table.sum()
    at = f"{detail.a.column.at(_name(detail.a, first))} with {detail.b.column.at(_name(detail.b, second))}"
    how_many = f"{expected:,.0f}" if expected >= 1 else f"{expected:.1g}"
    return f"It is strongest in few rows: {at}, {rows:,.0f} rows where {how_many} were expected."


def _peak(side: Side) -> np.ndarray:
    """Neighbouring cells with most of the energy of the first mode, of labels one; none where they hold many rows."""
    function = side.functions[:, 0]
    energy = side.share * function**2
    first = last = int(energy.argmax())
    inside = function * function[first] >= function[first] ** 2 / 2  # at least half as high, and to the same side
    if side.column.kind != "label":
        last += int(np.argmin(np.append(inside[first:], False))) - 1
        first -= int(np.argmin(np.append(inside[first::-1], False))) - 1
    cells = np.arange(first, last + 1)
    is_most, is_few = energy[cells].sum() > energy.sum() / 2, side.share[cells].sum() < 1 / MOST_REGIONS
    return cells if is_most and is_few else cells[:0]


def _name(side: Side, cells: np.ndarray) -> str:
    """What to call neighbouring cells: a label, a value, or the values that they go from and to."""
    column = side.column
    if column.kind == "label":
        return column.names()[cells[0]]
    spans = column.spans if len(column.spans) else np.column_stack([column.places, column.places])
    low, high = column.texts([spans[cells[0], 0], spans[cells[-1], 1]], fewest=SHORT)
    return low if low == high else f"{low} to {high}"
