"""PyArrow, which reads tables: the one place that says how to get it."""

try:
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.compute as pc  # type: ignore[import-untyped]
    from pyarrow import csv, ipc, parquet
except ImportError as error:
    raise ImportError(
        "Tables are read by pyarrow, which is not installed. Install it: pip install 'featgeo[data]'."
    ) from error

__all__ = ["csv", "ipc", "pa", "parquet", "pc"]
