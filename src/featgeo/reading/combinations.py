"""Rows of a table counted by what they hold: the combinations of values of some columns that occur."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from featgeo.reading.arrow import pa, pc
from featgeo.reading.source import Part, Source

ROWS = "rows"


def combinations(source: Source) -> tuple[dict[str, Any], Any]:
    """How many rows hold each combination of values of all columns.

    Args:
        source: The table, of typed columns.

    Returns:
        The values of each column in each combination, by name, NumPy arrays (m,); and its rows, int64 (m,).
    """
    found = source.reduced(_Combinations(source.names), _both)
    source.check_rows(found.num_rows)
    values = (found.column(f"value {i}").to_numpy() for i in range(len(source.names)))
    return dict(zip(source.names, values, strict=True)), found.column(ROWS).to_numpy()


class _Combinations:
    """Of one part."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def __call__(self, part: Part) -> Any:
        found = None
        for _, batch in part.batches(self._names):
            values = {f"value {i}": _plain(batch.column(name)) for i, name in enumerate(self._names)}
            own = _grouped(pa.table({**values, ROWS: pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows)}))
            found = own if found is None else _both(found, own)
        empty = {f"value {i}": pa.nulls(0) for i in range(len(self._names))}
        return pa.table({**empty, ROWS: pa.array([], pa.int64())}) if found is None else found


def _both(a: Any, b: Any) -> Any:
    held = [one for one in (a, b) if one.num_rows] or [a]
    return _grouped(pa.concat_tables(held, promote_options="permissive")) if len(held) > 1 else held[0]


def _grouped(table: Any) -> Any:
    keys = [name for name in table.column_names if name != ROWS]
    return table.group_by(keys, use_threads=False).aggregate([(ROWS, "sum")]).rename_columns({f"{ROWS}_sum": ROWS})


def _plain(array: Any) -> Any:
    """Values and not places in a dictionary; what is no number is missing."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return array
