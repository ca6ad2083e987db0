"""What a pair of columns means, in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from featgeo.explore.few_rows import few_rows
from featgeo.explore.given_cells import quantiles
from featgeo.explore.modes import MOST_MODES
from featgeo.explore.regions import SHORT
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

if TYPE_CHECKING:
    from featgeo.explore.detail import PairDetail, Side

SIDEWAYS = 0.1  # share of all ways up and down that may go the other way in what is said to rise or to fall


def sentence(detail: PairDetail) -> str:
    """How the two depend on each other: how strongly, how surely, which tells which, and in what way."""
    return " ".join(sentences(detail))


def sentences(detail: PairDetail) -> list[str]:
    """The same in parts: how strongly and how surely, which tells which, in what way, and where most."""
    told, a, b = detail.summary, repr(detail.a.name), repr(detail.b.name)
    rows = f"{told['rows']:,} rows"
    if not detail.depends:
        return [
            f"{a} and {b} may well be independent: what was found in {rows} is no more than chance gives among all "
            f"pairs of the table (p = {told['pvalue']:.2g}, q = {told['qvalue']:.2g})."
        ]
    if not detail.n_modes:
        return [
            f"{a} and {b} depend on each other (p = {told['pvalue']:.2g}, q = {told['qvalue']:.2g}), but too weakly "
            f"for {rows} to show how: held-out rows do not confirm any pair of functions."
        ]
    modes = {1: "one way", MOST_MODES: "many ways at once"}.get(detail.n_modes, f"{detail.n_modes} ways at once")
    parts = [
        f"{a} and {b} depend on each other in {modes}: the strength on held-out rows is {told['strength']:.2f} "
        f"({told['low']:.2f} to {told['high']:.2f}), from {rows}.",
        _direction(detail),
        few_rows(detail) or _shape(detail),
        _where(detail),
    ]
    return [part for part in parts if part]


def _direction(detail: PairDetail) -> str:
    """How much of either is known once the other is: of the variance of ranks, or of the indicators of labels."""
    told = [max(float(detail.summary[name]), 0.0) for name in ("b_from_a", "a_from_b")]
    a, b = detail.a, detail.b
    shares = ["less than 1%" if 0 < share < 0.005 else f"{share:.0%}" for share in told]
    return f"{a.name!r} tells {shares[0]} of {b.name!r}, {b.name!r} tells {shares[1]} of {a.name!r}."


def _shape(detail: PairDetail) -> str:
    """What one does as the other, which tells more of it, goes on; of labels, where it is what."""
    a, b = detail.a, detail.b
    forward, backward = (float(detail.summary[name]) for name in ("b_from_a", "a_from_b"))
    ordered = [side.column.kind != "label" for side in (a, b)]
    if all(ordered):
        if max(forward, backward) <= 0:
            return "The middle of neither changes with the other; the spread does."
        return _along(detail, a, b) if round(forward, 2) >= round(backward, 2) else _along(detail, b, a)
    if not any(ordered):
        return ""
    return _by_label(detail, b, a) if ordered[0] else _by_label(detail, a, b)


def _along(detail: PairDetail, own: Side, other: Side) -> str:
    """Whether the mean rank of one number rises or falls with another."""
    modes, _ = detail.probabilities(own.name)
    ranks = np.cumsum(other.share) - other.share / 2
    table = own.regions.summed(modes * own.counts[:, None])
    there = np.flatnonzero(table.sum(axis=1) > 0)
    means = table[there] @ ranks / table[there].sum(axis=1)
    names = [own.regions.names[i] for i in there]
    return course(means, names, own.name, other.name)


def course(means: Array, names: list[str], own: str, other: str) -> str:
    """How means go along the regions of a column: up, down, up and then down, ..."""
    steps = np.diff(means)
    total = np.abs(steps).sum()
    if not total:
        return ""
    if steps.clip(max=0).sum() >= -SIDEWAYS * total:
        return f"{other!r} rises with {own!r}."
    if steps.clip(min=0).sum() <= SIDEWAYS * total:
        return f"{other!r} falls as {own!r} rises."
    for turn, first, then in ((means.argmax(), "rises", "falls"), (means.argmin(), "falls", "rises")):
        sign = 1 if first == "rises" else -1
        astray = (-sign * steps[:turn]).clip(min=0).sum() + (sign * steps[turn:]).clip(min=0).sum()
        if 0 < turn < len(means) - 1 and astray <= SIDEWAYS * total:
            return f"As {own!r} rises, {other!r} first {first} and then {then}; the turn is at {names[turn]}."
    return f"As {own!r} rises, {other!r} goes up and down."


def _by_label(detail: PairDetail, labels: Side, number: Side) -> str:
    """Between which labels the median of a number differs most."""
    enough = np.flatnonzero(labels.counts >= in_force.get().rows_a_function)
    if len(enough) < 2:
        return ""
    modes, _ = detail.probabilities(labels.name)
    medians = quantiles(modes[enough], number.column.spans, (0.5,))[:, 0]
    low, high = int(medians.argmin()), int(medians.argmax())
    if medians[low] == medians[high]:
        return f"The median of {number.name!r} is the same for all {labels.name!r}; its spread differs."
    names = labels.column.names()
    written = number.column.texts(medians[[low, high]], fewest=SHORT)
    texts = [
        f"{text} where {labels.name!r} is {names[enough[i]]!r}" for text, i in zip(written, (low, high), strict=True)
    ]
    return f"The median of {number.name!r} goes from {texts[0]} to {texts[1]}."


def _where(detail: PairDetail) -> str:
    """The region that holds most rows beyond those expected, and the one that lacks most."""
    certain = [row for row in detail.regions if row["pvalue"] <= 1 - in_force.get().confidence]
    parts = []
    for word, sign in (("Most often beyond chance", 1), ("Least often", -1)):
        found = next((row for row in certain if sign * row["residual"] > 0), None)
        if found:
            parts.append(
                f"{word}: {detail.a.column.at(found['a'])} with {detail.b.column.at(found['b'])}, "
                f"{found['observed']:,} rows where {found['expected']:,.0f} were expected."
            )
    return " ".join(parts)
