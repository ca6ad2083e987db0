"""Rows of several sources and of Y as users hand them in: in one table with missing cells, or in several data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from featgeo.features.columns import present, rows_of, stacked, taken
from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Variable
from featgeo.learning.data import Incomplete, Pairs

RESERVED = ("y", "prior")
MARKS = (" + ", " x ", ", ", "(", ")")  # what names of components are made with


def read_rows(datasets: Sequence[Mapping[str, Any]], masks: Mapping[str, Any]) -> Incomplete:
    """All rows, one data set after the other, with where each variable is there.

    Args:
        datasets: Rows by name, those of one data set in the same order; Y is called "y".
        masks: By name, which rows are there, for a single data set.
    """
    names = list(dict.fromkeys(name for part in datasets for name in part))
    _check_names(names)
    if not isinstance(masks, Mapping):
        raise ValueError(f"`present` must be a mapping from name to a boolean array, got {type(masks).__name__}.")
    unknown = set(masks) - set(names)
    if unknown:
        raise ValueError(f"`present` names {sorted(unknown)}, which are no variables here: {names}.")
    n_rows = [n_rows_of(part, f" in the data set at position {i}") for i, part in enumerate(datasets)]
    rows, where = {}, {}
    for name in names:
        pieces, positions, start = [], [np.full(n, -1) for n in n_rows], 0
        for i, part in enumerate(datasets):
            if name not in part:
                continue
            values = rows_of(part[name], shown(name))
            there = np.flatnonzero(_present(values, name, masks.get(name)))
            positions[i][there] = start + np.arange(len(there))
            start += len(there)
            if len(there):
                pieces.append(values if len(there) == n_rows[i] else taken(values, there))
        if not pieces:
            raise ValueError(
                f"{shown(name)} is missing in every row: nothing can be learned from it. "
                + ("Pass rows of Y." if name == "y" else "Leave it out.")
            )
        values = stacked(pieces, shown(name))
        variable = Variable.seen(values, shown(name))
        rows[name], where[name] = variable.rows(values), np.concatenate(positions)
        if not variable.is_tensor:
            check_not_constant(rows[name].table, shown(name))
    Pairs(rows["y"], rows["y"]).check_y()
    return Incomplete(rows, where).in_order()


def n_rows_of(part: Mapping[str, Any], where: str = "") -> int:
    """How many rows the variables of a data set have, all of them the same."""
    lengths = {name: len(rows_of(values, shown(name))) for name, values in part.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(
            f"All variables must have the same rows, got inconsistent numbers of samples{where}: {lengths}. Align them "
            "row by row, or pass data sets of their own to fit_datasets."
        )
    return next(iter(lengths.values()))


def shown(name: str) -> str:
    """What messages call a variable."""
    return "Y" if name == "y" else name


def _present(values: Any, name: str, mask: Any) -> np.ndarray:
    there = present(values, shown(name))
    if mask is None:
        return there
    given = np.asarray(mask)
    if given.dtype != bool or given.shape != there.shape:
        raise ValueError(
            f"`present[{name!r}]` must be boolean of shape {there.shape}, got {given.dtype} of shape {given.shape}."
        )
    return there & given


def _check_names(names: list[str]) -> None:
    bad = [name for name in names if not isinstance(name, str) or not name or name == "prior"]
    bad += [name for name in names if isinstance(name, str) and any(mark in name for mark in MARKS)]
    if bad:
        raise ValueError(
            f"Sources need names that are texts other than {RESERVED}, without any of {MARKS}, got {bad[0]!r}. "
            "Rename it."
        )
    sources = [name for name in names if name != "y"]
    if "y" not in names:
        raise ValueError(f"No data set has Y, got {names}. Call it 'y'.")
    if len(sources) < 2:
        raise ValueError(
            f"A multimodal decomposition needs at least two sources, got {sources}. For a single one use "
            "ModalDecomposition."
        )
