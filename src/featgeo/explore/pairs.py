"""What is told of the dependence of two columns, for many pairs at once, from their tables of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from featgeo.explore.batches import Batch, alike, margins_of
from featgeo.explore.cells import Cells
from featgeo.explore.classic import classic_of
from featgeo.explore.counting import Counts
from featgeo.explore.modes import MOST_MODES, Modes, chosen_modes
from featgeo.explore.tails import cauchy_score, cauchy_tail
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force


@dataclass(frozen=True, eq=False)
class Estimates:
    """What is told of some pairs; arrays with an entry for each, (P,).

    Attributes:
        rows: Rows that have both.
        strength: Correlation of the first pair of functions on rows that have not chosen them.
        sigma1: The same on the rows that have.
        error: Standard error of the first correlation.
        energy: Sum of the squared strengths of the modes that held-out rows support; of the first where they support
            none.
        held_out_energy: The same on held-out rows.
        n_modes: How many modes held-out rows support.
        information: Mutual information in nats: the mean of log p(a, b) / (p(a) p(b)) on held-out rows.
        forward: Share of the second column's variance that the first one tells on held-out rows.
        backward: Share of the first column's that the second one tells.
        pvalue: That the two are independent.
        classic: Cramér's V of labels, the correlation ratio of others.
    """

    rows: Array
    strength: Array
    sigma1: Array
    error: Array
    energy: Array
    held_out_energy: Array
    n_modes: np.ndarray
    information: Array
    forward: Array
    backward: Array
    pvalue: Array
    classic: Array

    @classmethod
    def of(cls, batch: Batch, columns: Sequence[tuple[Cells, Cells]], are_labels: np.ndarray) -> Estimates:
        """Of the pairs of a batch, whose columns are these, of which some count as labels, (P, 2)."""
        modes, n_modes, scores, correlation = chosen_modes(batch, columns)
        least_one = np.maximum(n_modes, 1)
        kept = np.arange(modes.sigma.shape[1]) < least_one[:, None]
        rows = batch.n_rows.sum(axis=1)
        held_out = scores[np.arange(len(rows)), :, least_one]
        shares = batch.n_rows / np.maximum(rows, 1.0)[:, None]
        return cls(
            rows,
            np.sum(correlation[..., 0] * shares, axis=1),
            modes.sigma[:, 0],
            standard_error(batch, modes),
            np.sum(np.square(modes.sigma) * kept, axis=1),
            2 * np.sum(held_out * shares, axis=1),
            n_modes,
            _information(batch, modes, kept),
            _told(batch, modes, kept, [pair[1] for pair in columns], 1),
            _told(batch, modes, kept, [pair[0] for pair in columns], 0),
            batch.pvalues(),
            classic_of(batch.tables.sum(axis=1), are_labels),
        )

    @classmethod
    def joined(cls, parts: Sequence[Estimates]) -> Estimates:
        """Of the pairs of all of them."""
        if not parts:
            nothing: tuple[Any, ...] = tuple(
                np.empty(0, dtype=int if one.name == "n_modes" else float) for one in fields(cls)
            )
            return cls(*nothing)
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))


def standard_error(batch: Batch, modes: Modes, mode: int = 0) -> Array:
    """Of the correlation of a mode, (P,): its influence function is f g - sigma (f^2 + g^2) / 2."""
    table = batch.tables.sum(axis=1)
    n = np.maximum(table.sum(axis=(1, 2)), 1.0)
    f, g, half = modes.f[..., mode], modes.g[..., mode], modes.sigma[:, mode, None] / 2
    influence = f[:, :, None] * g[:, None, :] - (half * f**2)[:, :, None] - (half * g**2)[:, None, :]
    return np.sqrt(np.einsum("pab,pab->p", table, influence**2)) / n


def _information(batch: Batch, modes: Modes, kept: np.ndarray) -> Array:
    """Mean log density ratio of held-out rows under the modes of the others, (P,)."""
    sigma = modes.fold_sigma * kept[:, None]
    ratio = (modes.fold_f * sigma[:, :, None]) @ modes.fold_g.swapaxes(2, 3)
    ratio += 1
    np.maximum(ratio, in_force.get().least_ratio, out=ratio)
    n = np.maximum(batch.n_rows, 1.0)
    of_f, of_g = (margin.sum(axis=1) / np.maximum(batch.n_rows.sum(axis=1), 1.0)[:, None] for margin in batch.margins)
    norm = (of_f[:, None, None] @ ratio @ of_g[:, None, :, None])[..., 0, 0]
    np.log(ratio, out=ratio)
    means = np.einsum("pfab,pfab->pf", batch.tables, ratio) / n - np.log(np.where(norm > 0, norm, 1.0))
    return np.sum(means * batch.n_rows, axis=1) / np.maximum(batch.n_rows.sum(axis=1), 1.0)


def _told(batch: Batch, modes: Modes, kept: np.ndarray, columns: Sequence[Cells], side: int) -> Array:
    """Share of the variance of one column, as ranks or as indicators of labels, that the other tells, (P,).

    The prediction is E[code | other] = E[code] + sum_i sigma_i f_i(other) E[g_i code], from all rows but a fold's.
    Where there may be more modes than are looked at, all functions of the other predict, too: equal strengths are in
    any order, and the first of them need not hold the ranks.
    """
    other, own = (modes.fold_f, modes.fold_g) if side else (modes.fold_g, modes.fold_f)
    kernel = own.swapaxes(2, 3) * _shares_of_others(batch.margins[side])[:, :, None]
    kernel *= (modes.fold_sigma * kept[:, None])[..., None]
    result = _share_told(batch, columns, side, other, kernel)
    many = np.flatnonzero(kept.sum(axis=1) == MOST_MODES)
    if len(many):
        result[many] = np.maximum(result[many], _told_by_all(batch.taken(many), [columns[int(i)] for i in many], side))
    return result


def _told_by_all(batch: Batch, columns: Sequence[Cells], side: int) -> Array:
    """The same by all functions of the other column."""
    tables = batch.tables if side else batch.tables.swapaxes(2, 3)
    other = (batch.f if side else batch.g)[:, None]
    rest = tables.sum(axis=1, keepdims=True) - tables
    n = np.maximum(margins_of(rest)[0].sum(axis=2), 1.0)[..., None, None]
    return _share_told(batch, columns, side, other, other.swapaxes(2, 3) @ rest / n)


def _shares_of_others(rows: Array) -> Array:
    """Shares of cells among the rows of all folds but one, (P, F, cells)."""
    rest = rows.sum(axis=1, keepdims=True) - rows
    return rest / np.maximum(rest.sum(axis=2, keepdims=True), 1.0)


def _share_told(batch: Batch, columns: Sequence[Cells], side: int, other: Array, kernel: Array) -> Array:
    """By how much held-out squared errors of codes are less than their variance, as a share of it, (P,).

    Args:
        batch: The pairs.
        columns: Those that are predicted: numbers as ranks, labels as indicators.
        side: Which of the two they are.
        other: Functions of the other one, (P, F, other, m), or (P, 1, other, m).
        kernel: Codes of the cells times it, summed over the cells, times these functions is the prediction,
            (P, F, m, own).
    """
    tables = batch.tables if side else batch.tables.swapaxes(2, 3)  # (P, F, other, own)
    seen = other.swapaxes(2, 3) @ tables
    spread = other.swapaxes(2, 3) * batch.margins[1 - side][..., None, :] @ other
    is_label = np.array([column.kind == "label" for column in columns])
    result = np.zeros(len(columns))
    for coded, those in ((_by_indicators, is_label), (_by_ranks, ~is_label)):
        some = slice(None) if those.all() else those  # no copy of all of them
        if those.any():
            total, weights, found = coded(batch.margins[side][some], kernel[some], seen[some])
            gain = np.einsum("pfme,pfme->p", weights, 2 * found - spread[some] @ weights)
            result[some] = np.divide(gain, total, out=np.zeros(len(gain)), where=total > 0)
    return result


def _by_indicators(rows: Array, *sums: Array) -> tuple[Array, Array, Array]:
    """Variance of indicators of all cells about the shares of other folds, (P,), and sums over cells times these codes.

    Args:
        rows: Of each cell, by fold, (P, F, cells).
        *sums: Two of them, (P, F, m, cells); they become (P, F, m, codes).
    """
    share = _shares_of_others(rows)
    variance = np.sum(rows * (1 - 2 * share + np.square(share).sum(axis=2, keepdims=True)), axis=(1, 2))
    every = np.ones((share.shape[2], 1))
    first, second = (values - (values @ every) * share[:, :, None] for values in sums)
    return variance, first, second


def _by_ranks(rows: Array, *sums: Array) -> tuple[Array, Array, Array]:
    """The same for ranks of the cells, one code."""
    every = rows.sum(axis=1)
    ranks = (np.cumsum(every, axis=1) - every / 2) / np.maximum(every.sum(axis=1, keepdims=True), 1.0)
    centred = ranks[:, None] - (_shares_of_others(rows) @ ranks[..., None])
    first, second = (values @ centred[..., None] for values in sums)
    return np.sum(rows * np.square(centred), axis=(1, 2)), first, second


def estimates_of(counts: Counts, pairs: Sequence[tuple[int, int]]) -> Estimates:
    """What the tables of some pairs of columns tell, in the order of the pairs."""
    # The larger column comes first, so that more tables are of one shape.
    turned = np.array([counts.columns[i].n_values < counts.columns[j].n_values for i, j in pairs], dtype=bool)
    ordered = [(j, i) if turn else (i, j) for (i, j), turn in zip(pairs, turned, strict=True)]
    is_label = [column.kind == "label" for column in counts.columns]
    are_labels = np.array([(is_label[i], is_label[j] or not is_label[i]) for i, j in pairs]).reshape(-1, 2)
    are_labels[turned] = are_labels[turned, ::-1]
    order, parts = [], []
    for places in alike(counts, ordered):
        few = [ordered[place] for place in places]
        columns = [(counts.columns[i], counts.columns[j]) for i, j in few]
        parts.append(Estimates.of(Batch.of(counts, few), columns, are_labels[places]))
        order += places
    joined, back = Estimates.joined(parts), np.argsort(order)
    found = Estimates(*(getattr(joined, one.name)[back] for one in fields(Estimates)))
    forward, backward = (
        np.where(turned, a, b) for a, b in ((found.backward, found.forward), (found.forward, found.backward))
    )
    return replace(found, forward=forward, backward=backward)


def missing_pvalues(counts: Counts, pairs: Sequence[tuple[int, int]]) -> Array:
    """That being missing in either column does not depend on the other, (P,); NaN where too few rows are, or all."""
    fewest = in_force.get().rows_a_function
    can = [  # a part of a date is missing where the date is, and would say the same again
        min(own[-1], own[:-1].sum()) >= fewest and not column.parent
        for own, column in zip(counts.rows, counts.columns, strict=True)
    ]
    scores, count = np.zeros(len(pairs)), np.zeros(len(pairs))
    for every in (pairs, [(j, i) for i, j in pairs]):
        some = [place for place, (i, _) in enumerate(every) if can[i]]
        turned = [every[place] for place in some]
        for places in alike(counts, turned):
            at = [some[place] for place in places]
            tails = Batch.of_missing(counts, [turned[place] for place in places]).pvalues()
            scores[at] += cauchy_score(tails)
            count[at] += 1
    return np.where(count > 0, cauchy_tail(scores / np.maximum(count, 1)), np.nan)
