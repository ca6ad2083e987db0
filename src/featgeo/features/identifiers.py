"""Columns that identify rows: texts of which nearly every row has one of its own, such as names, keys or remarks.

What is learned about a label is learned from the rows that share it. Where next to none do, a column tells nothing of
new rows, whose labels are new as well; all that it can do is to make every row its own explanation. Such columns are
set aside. Numbers and dates are not labels, and a column that is declared to hold categories does so.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from featgeo.features.columns import Column, codes_of
from featgeo.features.raw import RawColumn

# Labels drawn from m equally frequent ones fall below this share where m is over twenty times the number of rows.
FEWEST_SHARED = 0.05
FEWEST_ROWS = 20  # with fewer, so many labels can be there by chance


def identifiers(columns: tuple[Column, ...], raw: Mapping[str, RawColumn], name: str) -> tuple[int, ...]:
    """Positions of the columns that identify rows, with a warning that names them.

    Where there is no other column, none is set aside: then it is all that the user asks about.

    Args:
        columns: What each column holds.
        raw: The columns as they came.
        name: What messages call the variable.
    """
    own = tuple(
        i
        for i, (column, came) in enumerate(zip(columns, raw.values(), strict=True))
        if column.kind == "label" and came.categories is None and _identifies(column, came, name)
    )
    if not own or len(own) == len(columns):
        return ()
    names = ", ".join(repr(columns[i].name) for i in own)
    warnings.warn(
        f"Nearly every row of {name} has a label of its own in {names}: there is nothing to learn from it for other "
        f"rows, and it is set aside. Drop it from {name}, or declare it categorical to keep it.",
        stacklevel=2,
    )
    return own


def _identifies(column: Column, came: RawColumn, name: str) -> bool:
    """Whether hardly any of the labels that are there is shared by several rows."""
    if not column.missing and len(column.categories) <= (1 - FEWEST_SHARED) * len(came.values):
        return False  # the same, sooner: labels of single rows alone cannot be as many
    codes = codes_of(column, came, name)
    counts = np.bincount(codes[codes < len(column.categories)])
    present = counts.sum()
    return bool(present >= FEWEST_ROWS and present - np.sum(counts == 1) < FEWEST_SHARED * present)
