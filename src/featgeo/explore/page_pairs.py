"""Pairs in full, as plain values that a page shows: words, functions, either column given the other, and regions.

They are kept of the pairs that people open first, until the page is as large as it may be: those with the target, those
that are strongest, those that the usual coefficients miss; what may be chance comes last.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from featgeo.explore import regions, wording
from featgeo.explore.cells import Cells
from featgeo.explore.detail import PairDetail, Side, number_columns
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force
from featgeo.watch import tell

if TYPE_CHECKING:
    from featgeo.explore.exploration import Exploration

DIGITS = 5  # that count: more than a reader sees, so that what is rounded for show is rounded once
DATE_DIGITS = 14  # of milliseconds since 1970
FEWER = 4  # digits of points of curves, which nobody reads as numbers
MOST_DETAILS = 2_000  # pairs: what takes longer than reading the table
MOST_POINTS = 64  # of a curve, evenly along the cells: finer ones can hardly be seen
SEEN_FROM = 0.05  # of the range of a function: where it is so far from the line between points, there are more
MOST_STRONGEST = 10  # pairs that are told in words at first
MOST_MISSED = 5  # pairs that Pearson misses, likewise
MISSED_FROM = 0.1  # strength of such pairs: what is weaker nobody misses
MOST_SHARES = 8  # labels, or values of a number, whose shares are stacked; more cannot be told apart

Shorter = Callable[[str], str]  # a text with names and labels of readable length


def details(exploration: Exploration, shorter: Shorter, budget: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Pairs in full, by their place among all pairs, until the budget of bytes is spent."""
    values = exploration.pairs.columns
    order = _opened_first(exploration)[:MOST_DETAILS]
    for n, place in enumerate(order):
        if n % 20 == 0:
            tell(f"the page: pair {n} of up to {len(order)}")
        detail = exploration.pair(values["a"][place], values["b"][place])
        record = _detail(detail, shorter)
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


def findings(exploration: Exploration, place: Mapping[str, int], shorter: Shorter) -> dict[str, Any]:
    """How many pairs depend; the strongest of them, and those of numbers that Pearson misses, in words."""
    pairs = exploration.pairs.columns
    strength, classic = (np.asarray(pairs[name], dtype=np.float64) for name in ("strength", "classic"))
    found = np.asarray(pairs["qvalue"]) <= exploration.rate
    missed = strength - np.abs(classic)
    is_missed = found & (np.asarray(pairs["classic_kind"]) == "pearson") & (np.asarray(pairs["n_modes"]) > 0)
    is_missed &= (strength >= MISSED_FROM) & (np.abs(classic) < strength / 2)
    order = [i for i in np.argsort(-missed, kind="stable").tolist() if is_missed[i]]

    def told(i: int) -> dict[str, Any]:
        a, b = pairs["a"][i], pairs["b"][i]
        numbers = {name: short(float(pairs[name][i]), DIGITS) for name in ("strength", "low", "high", "classic")}
        words = [shorter(part) for part in wording.sentences(exploration.pair(a, b))]
        return {"a": place[a], "b": place[b], **numbers, "classic_kind": pairs["classic_kind"][i], "words": words}

    return {
        "found": int(found.sum()),
        "pairs": len(strength),
        "strongest": [told(i) for i in np.flatnonzero(found).tolist()[:MOST_STRONGEST]],
        "missed": [told(i) for i in order[:MOST_MISSED]],
    }


def _detail(detail: PairDetail, shorter: Shorter) -> dict[str, Any]:
    """One pair: words, modes, functions in thousandths, either column given the other, and regions."""
    k = min(max(detail.n_modes, 1), len(detail.sigma))
    modes = detail.modes.columns
    points = {"a": _drawn_cells(detail.a, k), "b": _drawn_cells(detail.b, k)}
    usual = {"a": points_of(detail.a.column), "b": points_of(detail.b.column)}
    return {
        "points": {side: own.tolist() for side, own in points.items() if len(own) > len(usual[side])},
        "words": [shorter(part) for part in wording.sentences(detail)],
        "modes": {name: listed(np.asarray(modes[name]), DIGITS) for name in modes if name != "mode"},
        "f": [_thousandths(detail.a, points["a"], i) for i in range(k)],
        "g": [_thousandths(detail.b, points["b"], i) for i in range(k)],
        "b_given_a": _given(detail, (detail.a, detail.b), points["a"]),
        "a_given_b": _given(detail, (detail.b, detail.a), points["b"]),
        "regions": _regions(detail, shorter),
        "negative_mass": short(detail.negative_mass, FEWER),
    }


def _thousandths(side: Side, points: np.ndarray, mode: int) -> list[int | None]:
    """The function of a mode on the cells where it is drawn; None where no rows are."""
    rounded = np.rint(side.functions[points, mode] * 1000).astype(np.int64).tolist()
    return [value if rows else None for value, rows in zip(rounded, side.counts[points], strict=True)]


def _given(detail: PairDetail, sides: tuple[Side, Side], points: np.ndarray) -> dict[str, Any]:
    """The second column given cells of the first: shares in thousandths of labels and of few values, else quantiles."""
    own, other = sides
    probability, observed = (part[points] for part in detail.probabilities(own.name))
    there = own.counts[points] > 0
    is_label = other.column.kind == "label"
    is_counted = other.column.whole or other.column.is_of_whole_numbers
    if is_label or (is_counted and len(other.seen) <= MOST_SHARES):
        first = other.seen[np.argsort(-other.counts[other.seen], kind="stable")] if is_label else other.seen
        kept = first[: MOST_SHARES - (len(first) > MOST_SHARES)]
        shares = [_cell_list(np.rint(part[:, kept] * 1000), there) for part in (probability, observed)]
        return {"labels": kept.tolist(), "share": shares[0], "observed": shares[1]}
    is_date = other.column.kind == "date"
    result = {}
    for name, values in number_columns(other.column, probability, observed).items():
        scaled = np.where(there, values, np.nan) / (1000 if is_date else 1)
        result[name] = listed(scaled, DATE_DIGITS if is_date else DIGITS)
    return result


def _cell_list(values: Array, there: np.ndarray) -> list[list[float | None] | None]:
    return [listed(row, FEWER) if seen else None for row, seen in zip(values, there, strict=True)]


def _regions(detail: PairDetail, shorter: Shorter) -> dict[str, Any]:
    """Rows in pairs of regions, how far they are from those expected, and which of these chance does not explain."""
    table = detail.region_table
    return {
        "a": [shorter(name) for name in detail.a.regions.names],
        "b": [shorter(name) for name in detail.b.regions.names],
        "observed": table.astype(np.int64).tolist(),
        "residual": [listed(row, 3) for row in regions.residuals(table)],
        "sure": (regions.adjusted_pvalues(table) <= 1 - in_force.get().confidence).astype(np.int64).tolist(),
    }


def _drawn_cells(side: Side, k: int) -> np.ndarray:
    """The cells on which curves of a pair are drawn: those of the column, and where lines between these miss something.

    What is given a cell depends on it by the functions of the modes alone, so that it misses nothing either.
    """
    points = points_of(side.column)
    known = points[side.counts[points] > 0]
    if len(points) == side.column.n_values or not len(known) or not k:
        return points
    cells = np.arange(side.column.n_values)
    functions = side.functions[:, :k]
    lines = np.column_stack([np.interp(cells, known, function[known]) for function in functions.T])
    reach = SEEN_FROM * np.ptp(functions[side.seen], axis=0)
    missed = np.flatnonzero((np.abs(functions - lines) > reach).any(axis=1) & (side.counts > 0))
    beside = (missed[:, None] + np.arange(-1, 2)).clip(0, len(cells) - 1)
    return np.union1d(points, beside)


def points_of(column: Cells) -> np.ndarray:
    """The cells on which curves are drawn: all of them where they are few."""
    n = column.n_values
    if column.kind == "label" or n <= MOST_POINTS:
        return np.arange(n)
    return np.unique(np.rint(np.linspace(0, n - 1, MOST_POINTS)).astype(np.int64))


def rounded(row: Mapping[str, Any]) -> dict[str, Any]:
    """The same with short numbers."""
    return {name: short(value, DIGITS) if isinstance(value, float) else value for name, value in row.items()}


def listed(values: np.ndarray, digits: int) -> list[Any]:
    """Short numbers."""
    return [short(value, digits) for value in values.tolist()]


def short(value: Any, digits: int) -> Any:
    """A number in so many digits, whole ones without a point; None for one that is not there."""
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short
