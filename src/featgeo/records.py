"""Results as rows: a table that prints itself, shows itself in a notebook, and becomes a data frame."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from featgeo.card import Card, Shown

SHOWN_ROWS = 20  # of a long table; a frame has all


@dataclass(frozen=True, eq=False, repr=False)
class Records(Shown):
    """Rows with named columns.

    Attributes:
        title: What the rows are.
        columns: Values of each column, by name, all of one length.
        shown: The columns that are printed; all when empty.
    """

    title: str
    columns: Mapping[str, Sequence[Any] | np.ndarray]
    shown: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for values in zip(*(map(_plain, column) for column in self.columns.values()), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def to_dict(self) -> list[dict[str, Any]]:
        """Each row as a dictionary of plain values; None where there is none."""
        return list(self)

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """A data frame with all rows and columns.

        Args:
            backend: "pandas", "polars" or "pyarrow", which must be installed.
        """
        import narwhals.stable.v1 as nw

        try:
            return nw.from_dict(
                {name: list(values) for name, values in self.columns.items()}, backend=backend
            ).to_native()
        except (ImportError, ValueError) as error:
            raise ImportError(
                f"`backend` must be 'pandas', 'polars' or 'pyarrow' and installed, got {backend!r} ({error}). Use "
                "to_dict(), or run: pip install 'featgeo[data]'"
            ) from error

    def card(self) -> Card:
        """The first rows."""
        names = self.shown or tuple(self.columns)
        rows = [[_text(self.columns[name][i]) for name in names] for i in range(min(len(self), SHOWN_ROWS))]
        more = len(self) - len(rows)
        title = f"{self.title}: {len(self):,}" + (f", the first {len(rows)} of them" if more else "")
        return Card([title], names, rows) if rows else Card([title])


class Result(Shown):
    """A dataclass that prints itself, shows itself in a notebook, and becomes a dictionary or a data frame.

    Attributes:
        each: What the entries of its arrays are of, such as "mode": then a frame has a row for each; else a single one.
    """

    each: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, as plain values: lists for arrays, None for what is no number."""
        return {field.name: as_plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """A data frame of `records`.

        Args:
            backend: "pandas", "polars" or "pyarrow", which must be installed.
        """
        return self.records().to_frame(backend)

    def records(self) -> Records:
        """The result as rows: one with all single values, or one for each entry of its arrays."""
        told, title = self.to_dict(), type(self).__name__
        if not self.each:
            single = {name: [value] for name, value in told.items() if not isinstance(value, dict | list)}
            return Records(title, single)
        arrays = [name for name in told if getattr(getattr(self, name), "ndim", 0) == 1]
        size = max((len(told[name]) for name in arrays), default=0)
        columns = {name: told[name] for name in arrays if len(told[name]) == size}
        return Records(title, {self.each: list(range(1, size + 1)), **columns})


def as_plain(value: Any) -> Any:
    """Arrays, tuples and dataclasses as lists and dictionaries of plain values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): as_plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [as_plain(part) for part in value]
    return _plain(value)


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(value: Any) -> str:
    value = _plain(value)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
