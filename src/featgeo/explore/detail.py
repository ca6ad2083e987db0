"""Two columns in full: their modes as functions, each given the other, and where they meet beyond chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from featgeo.card import Card, Shown
from featgeo.explore import given_cells, regions, wording
from featgeo.explore.batches import Batch
from featgeo.explore.cells import Cells
from featgeo.explore.counting import Counts
from featgeo.explore.modes import MOST_MODES, chosen_modes
from featgeo.explore.pairs import standard_error
from featgeo.explore.regions import Regions
from featgeo.geometry.spans import COLLINEAR, Modes, sign_of_columns
from featgeo.geometry.validation import Array
from featgeo.records import Records
from featgeo.tuning import in_force

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # of the quantiles that are told
SHOWN_REGIONS = 6  # of a card


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two columns, over the rows that have both.

    Attributes:
        column: Its cells.
        counts: Rows in each cell that holds values, (n_values,).
        functions: Of each mode on these cells, (n_values, m); 0 in a cell without rows.
    """

    column: Cells
    counts: Array
    functions: Array

    @property
    def name(self) -> str:
        """Of the column."""
        return self.column.name

    @cached_property
    def seen(self) -> np.ndarray:
        """Cells that hold rows."""
        return np.flatnonzero(self.counts)

    @cached_property
    def share(self) -> Array:
        """Of the rows in each cell, (n_values,)."""
        return self.counts / max(self.counts.sum(), 1.0)

    @cached_property
    def regions(self) -> Regions:
        """Its cells joined to a few."""
        return Regions.of(self.column, self.counts)

    def in_units(self, values: Array) -> np.ndarray:
        """Numbers as they are, dates as text; of the column's own scale."""
        if self.column.kind != "date":
            return values
        texts = [self.column.text(value) if np.isfinite(value) else None for value in values.ravel()]
        return np.array(texts, dtype=object).reshape(values.shape)

    def cell_columns(self) -> dict[str, np.ndarray]:
        """The cells that hold rows, as columns of a table."""
        names = np.array(self.column.names(), dtype=object)[self.seen]
        places = np.full(len(self.seen), np.nan)
        if self.column.kind != "label":
            places = self.in_units(self.column.places[self.seen])
        return {"cell": names, "place": places, "rows": self.counts[self.seen].astype(np.int64)}


@dataclass(frozen=True, eq=False, repr=False)
class PairDetail(Shown):
    """How two columns depend on each other.

    Attributes:
        a: The first column.
        b: The second.
        summary: The row of this pair in `Exploration.pairs`.
        sigma: Strength of each mode on the rows that have chosen it, (m,).
        held_out: On rows that have not, (m,).
        error: Standard error of each, (m,).
        table: Rows in each pair of cells that hold values, (A, B).
        ratio: The density that the modes give over the product of its margins, (A, B).
        rate: Share of false discoveries at which a pair is called dependent.
    """

    a: Side
    b: Side
    summary: Mapping[str, Any]
    sigma: Array
    held_out: Array
    error: Array
    table: Array
    ratio: Array
    rate: float

    @classmethod
    def of(cls, counts: Counts, pair: tuple[int, int], summary: Mapping[str, Any], rate: float) -> PairDetail:
        """Of two columns by their places, the one that comes first in the table first."""
        columns = counts.columns[pair[0]], counts.columns[pair[1]]
        batch = Batch.of(counts, [pair])
        modes, _, _, correlation = chosen_modes(batch, [columns])
        table = batch.tables[0].sum(axis=0)
        there = np.flatnonzero(modes.sigma[0] > COLLINEAR)
        f, g = modes.f[0][:, there], modes.g[0][:, there]
        sign = sign_of_columns(f * np.sqrt(table.sum(axis=1))[:, None])
        shares = batch.n_rows[0] / max(table.sum(), 1.0)
        error = np.array([standard_error(batch, modes, int(i))[0] for i in there])
        sides = Side(columns[0], table.sum(axis=1), f * sign), Side(columns[1], table.sum(axis=0), g * sign)
        held_out = shares @ correlation[0][:, there]
        ratio = _ratio(batch, Modes(modes.sigma[0, there], f, g), int(summary["n_modes"]))
        return cls(*sides, summary, modes.sigma[0, there], held_out, error, table, ratio, rate)

    def turned(self) -> PairDetail:
        """The same with the two columns in the other order."""
        other = {"a": "b", "b": "a", "b_from_a": "a_from_b", "a_from_b": "b_from_a"}
        summary = {name: self.summary[other.get(name, name)] for name in self.summary}
        return replace(self, a=self.b, b=self.a, summary=summary, table=self.table.T, ratio=self.ratio.T)

    @property
    def n_modes(self) -> int:
        """How many modes held-out rows support."""
        return int(self.summary["n_modes"])

    @property
    def depends(self) -> bool:
        """Whether the pair is called dependent, at the rate of false discoveries over all pairs of the table."""
        return bool(self.summary["qvalue"] <= self.rate)

    @property
    def sentence(self) -> str:
        """What it means, in plain words."""
        return wording.sentence(self)

    @cached_property
    def modes(self) -> Records:
        """Each mode: its strength on the rows that have chosen it and on others, an interval, and whether it counts."""
        reach = float(ndtri(0.5 + in_force.get().confidence / 2)) * self.error
        number = np.arange(1, len(self.sigma) + 1)
        columns = {
            "mode": number,
            "sigma": self.sigma,
            "held_out": self.held_out,
            "low": np.clip(
                np.minimum(self.held_out, self.sigma) - reach, 0, 1
            ),  # folds may choose modes in other order
            "high": np.clip(np.maximum(self.held_out, self.sigma) + reach, 0, 1),
            "supported": number <= self.n_modes,
        }
        return Records("modes", columns)

    def functions(self, n_modes: int | None = None) -> Records:
        """The functions f of the first column and g of the second on their cells, under which both correlate most.

        Args:
            n_modes: How many modes; as many as held-out rows support, at least one, when None.
        """
        k = min(max(self.n_modes, 1) if n_modes is None else n_modes, len(self.sigma))
        parts = []
        for side in (self.a, self.b):
            part = {"column": np.full(len(side.seen), side.name, dtype=object), **side.cell_columns()}
            part["place"] = part["place"].astype(object)  # dates are text, numbers are not
            parts.append(part | {f"mode_{i + 1}": side.functions[side.seen, i] for i in range(k)})
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return Records("functions on the cells of both columns", columns)

    @property
    def negative_mass(self) -> float:
        """How far the modes alone are from a probability: the share of mass below zero."""
        return given_cells.negative_mass(self.ratio, self.a.share, self.b.share)

    def probabilities(self, name: str) -> tuple[Array, Array]:
        """P(the other column | cells of the one named), from modes and as observed, (cells, cells of the other) each.

        Observed shares are NaN in cells of few rows.
        """
        own, other = self._sides(name)
        ratio, table = (self.ratio, self.table) if own is self.a else (self.ratio.T, self.table.T)
        fewest = in_force.get().rows_a_function
        return given_cells.conditional(ratio, other.share), given_cells.observed(table, fewest)

    def _sides(self, name: str) -> tuple[Side, Side]:
        if name == self.a.name:
            return self.a, self.b
        if name == self.b.name:
            return self.b, self.a
        raise ValueError(f"This pair is {self.a.name!r} and {self.b.name!r}, got {name!r}. Name one of the two.")

    def given(self, name: str) -> Records:
        """The other column given the cells of the one named, in the data's units.

        Of numbers and dates mean and quantiles, of labels the likeliest; what was observed stands beside it, where
        enough rows share the cell.

        Args:
            name: One of the two columns.
        """
        own, other = self._sides(name)
        modes, observed = (part[own.seen] for part in self.probabilities(name))
        if other.column.kind == "label":
            told = _label_columns(other, modes, observed)
        else:
            told = {name: other.in_units(v) for name, v in number_columns(other.column, modes, observed).items()}
        columns = own.cell_columns() | told
        return Records(f"{other.name!r} given {own.name!r}", columns)

    def shares(self, name: str) -> Records:
        """How likely each label, or each value of a column of few, is given the cells of the other column.

        Args:
            name: The other column, whose cells are given.
        """
        own, other = self._sides(name)
        if not (other.column.kind == "label" or other.column.whole):
            raise ValueError(
                f"Shares are those of labels, or of few values, and {other.name!r} has many. Use given({name!r})."
            )
        modes, observed = (part[np.ix_(own.seen, other.seen)] for part in self.probabilities(name))
        table = (self.table if own is self.a else self.table.T)[np.ix_(own.seen, other.seen)]
        columns = {key: np.repeat(values, len(other.seen)) for key, values in own.cell_columns().items()}
        values = np.array(other.column.names(), dtype=object)[other.seen]
        columns |= {
            "value": np.tile(values, len(own.seen)),
            "share": modes.ravel(),
            "observed": observed.ravel(),
            "overall": np.tile(other.share[other.seen], len(own.seen)),
            "rows_of_both": table.ravel().astype(np.int64),
        }
        return Records(f"shares of {other.name!r} given {own.name!r}", columns)

    @cached_property
    def region_table(self) -> Array:
        """Rows in each pair of regions, (regions of a, regions of b)."""
        return self.b.regions.summed(self.a.regions.summed(self.table).T).T

    @property
    def residual_bound(self) -> float:
        """How large the largest standardised residual of all regions may be by chance."""
        return regions.residual_bound(int((regions.expected_rows(self.region_table) > 0).sum()))

    @cached_property
    def regions(self) -> Records:
        """Cells or regions with the rows there, and those expected under independence, the most surprising first.

        `pvalue` is that of so many or so few rows by chance, for all regions that were looked at together.
        """
        table = self.region_table
        expected = regions.expected_rows(table)
        a, b = np.nonzero(expected > 0)
        residual = regions.residuals(table)[a, b]
        values = {
            "a": np.array([self.a.regions.names[i] for i in a], dtype=object),
            "b": np.array([self.b.regions.names[i] for i in b], dtype=object),
            "observed": table[a, b].astype(np.int64),
            "expected": expected[a, b],
            "ratio": table[a, b] / expected[a, b],
            "residual": residual,
            "pvalue": regions.adjusted_pvalues(table)[a, b],
        }
        order = np.argsort(-np.abs(residual), kind="stable")
        return Records("regions", {name: column[order] for name, column in values.items()})

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values; None where there is none."""
        return {
            "sentence": self.sentence,
            "depends": self.depends,
            **Records("", {name: [value] for name, value in self.summary.items()}).to_dict()[0],
            "modes": self.modes.to_dict(),
            "functions": self.functions().to_dict(),
            "b_given_a": self.given(self.a.name).to_dict(),
            "a_given_b": self.given(self.b.name).to_dict(),
            "regions": self.regions.to_dict(),
            "residual_bound": self.residual_bound,
            "negative_mass": self.negative_mass,
        }

    def card(self) -> Card:
        """What it means, the strengths, and where the two meet more often, or less, than by chance."""
        beyond = np.flatnonzero(np.asarray(self.regions.columns["pvalue"]) <= 1 - in_force.get().confidence)
        names = ("a", "b", "observed", "expected", "ratio")
        some = {name: np.asarray(self.regions.columns[name])[beyond[:SHOWN_REGIONS]] for name in names}
        table = Records("", some).card()
        heads = (self.a.name, self.b.name, "rows", "expected", "ratio") if table.columns else ()
        doubts = [] if self.depends else ["What is shown may be chance."]
        shown = slice(max(self.n_modes, 1))
        return Card([self.sentence], heads, table.rows, doubts, list(self.sigma[shown]), list(self.held_out[shown]))


def _ratio(batch: Batch, modes: Modes, n_modes: int) -> Array:
    """The density over the product of its margins by the modes that held-out rows support, (A, B).

    Where they support all that are looked at there are more, and one column is next to a function of the other: then
    all modes count that are stronger than noise is, whose largest strength is about the roots of d / n of both sides.
    """
    if n_modes < MOST_MODES:
        return given_cells.density_ratio(modes.sigma[:n_modes], modes.f[:, :n_modes], modes.g[:, :n_modes])
    left, sigma, right = np.linalg.svd(batch.core[0], full_matrices=False)
    n_functions = [int((np.abs(functions[0]).max(axis=0) > 0).sum()) for functions in (batch.f, batch.g)]
    noise = np.sqrt(np.array(n_functions) / max(batch.n_rows.sum(), 1.0)).sum()
    k = max(int((sigma > noise).sum()), n_modes)
    return given_cells.density_ratio(sigma[:k], batch.f[0] @ left[:, :k], batch.g[0] @ right[:k].T)


def number_columns(column: Cells, modes: Array, observed: Array) -> dict[str, Array]:
    """Mean and quantiles of a number or a date, on its own scale.

    Args:
        column: Its cells.
        modes: Their probability given each cell of the other column, (cells of the other, cells).
        observed: The same as observed; NaN where there are few rows.
    """
    quantiles = given_cells.quantiles(modes, column.spans, LEVELS)
    return {
        "mean": modes @ column.places,
        **{f"q{level * 100:02.0f}": quantiles[:, i] for i, level in enumerate(LEVELS)},
        "observed_mean": observed @ column.places,
        "observed_q50": given_cells.quantiles(observed, column.spans, (0.5,))[:, 0],
    }


def _label_columns(other: Side, modes: Array, observed: Array) -> dict[str, np.ndarray]:
    """The likeliest label, and how likely it is."""
    likeliest = modes.argmax(axis=1)
    place = np.arange(len(modes))
    return {
        "likeliest": np.array(other.column.names(), dtype=object)[likeliest],
        "share": modes[place, likeliest],
        "observed": observed[place, likeliest],
        "overall": other.share[likeliest],
    }


def no_column(name: object, names: Sequence[str]) -> str:
    """What to say of a name that no column has, with those that are close to it."""
    from difflib import get_close_matches

    text = name if isinstance(name, str) else str(name)
    lower = {one.lower(): one for one in names}
    close = [lower[one] for one in get_close_matches(text.lower(), lower, n=3)]
    known = ", ".join(map(repr, names[:10])) + (" and others" if len(names) > 10 else "")
    return f"There is no column {name!r}. " + (
        f"Did you mean {' or '.join(map(repr, close))}?" if close else f"The table has {known}."
    )
