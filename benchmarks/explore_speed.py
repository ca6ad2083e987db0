"""Time and memory of `explore` beside phik, skrub and pyarrow; run by `benchmarks/explore.py speed` and `stream`.

Each contestant runs in a process of its own, with one thread, on a file that the first process wrote; reading a frame
into memory and importing the contestant come before the clock starts. What is timed is a first call, with whatever it
still imports or compiles. Short runs are repeated, and the best counts, for everyone alike.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR", "VECLIB", "POLARS")
}
REPEATED_BELOW = 20.0  # seconds: what takes longer is measured once
MEGABYTE = 2**20

# the columns of Census-Income (KDD), in the order of the file, by the names of its codebook
CENSUS = """age class_of_worker industry_code occupation_code education wage_per_hour enrolled marital_status industry
occupation race hispanic_origin sex union_member unemployment_reason employment capital_gains capital_losses dividends
tax_filer region_before state_before household_detail household_summary weight migration_msa migration_region
migration_within same_house sunbelt_before persons_worked_for parents_present father_birth mother_birth birth
citizenship self_employed veteran_questionnaire veterans_benefits weeks_worked year income"""

Row = dict[str, Any]


def census_income(path: Path) -> Any:
    """Census-Income as a frame: "?" and "NA" are labels of the source, so that all contestants see the same columns."""
    import pandas

    return pandas.read_csv(path, header=None, names=CENSUS.split(), skipinitialspace=True, keep_default_na=False)


def independent_frame(n_rows: int, n_columns: int, seed: int) -> Any:
    """Independent columns in turn: normal, heavy-tailed, counts, 5 labels, 200 labels; every other has holes."""
    import numpy as np
    import pandas

    rng = np.random.default_rng(seed)
    frame = {}
    for column in range(n_columns):
        kind = column % 5
        if kind == 0:
            values = rng.standard_normal(n_rows)
        elif kind == 1:
            values = np.exp(2 * rng.standard_normal(n_rows))
        elif kind == 2:
            values = rng.poisson(3, n_rows).astype(float)
        else:
            share = rng.dirichlet(np.full((5, 200)[kind - 3], 0.5))
            values = pandas.Series(np.array([f"label {at}" for at in range(share.size)], object))
            values = values.iloc[rng.choice(share.size, n_rows, p=share)].reset_index(drop=True)
        series = pandas.Series(values)
        frame[f"column {column}"] = series.mask(rng.random(n_rows) < 0.05) if column % 2 else series
    return pandas.DataFrame(frame)


def _featgeo(data: Any) -> object:
    import featgeo

    return featgeo.explore(data, verbose=0).pairs.to_frame()


def _phik(frame: Any) -> object:
    import phik

    return phik.phik_matrix(frame, verbose=False, njobs=1)


def _skrub(frame: Any) -> object:
    import skrub

    return skrub.column_associations(frame)


def _read_csv(path: str) -> object:
    from pyarrow import csv

    return csv.read_csv(path, csv.ReadOptions(use_threads=False))


def _stream_csv(path: str) -> object:
    from pyarrow import csv

    return sum(batch.num_rows for batch in csv.open_csv(path, csv.ReadOptions(use_threads=False)))


def _stream_parquet(path: str) -> object:
    from pyarrow import parquet

    return sum(batch.num_rows for batch in parquet.ParquetFile(path).iter_batches(use_threads=False))


CONTESTANTS: dict[str, Callable[[Any], object]] = {
    "featgeo": _featgeo,
    "phik": _phik,
    "skrub": _skrub,
    "pyarrow, read into memory": _read_csv,
    "pyarrow, read once in batches": _stream_csv,
    "pyarrow, batches of Parquet": _stream_parquet,
}


def _import(name: str) -> None:
    import importlib

    module = importlib.import_module(name.partition(",")[0])
    if name == "featgeo":
        _ = module.explore  # imported when it is first asked for


def run_contestant(name: str, path: str, in_memory: bool) -> Row:
    """Run a contestant in this process, on a file or on the frame that it holds."""
    import warnings

    warnings.simplefilter("ignore")  # phik and skrub warn of what they set aside
    _import(name)
    data: Any = path
    if in_memory:
        import pandas

        data = pandas.read_parquet(path)
    before = _peak_megabytes()
    wall, process = time.perf_counter(), time.process_time()
    CONTESTANTS[name](data)
    process, wall = time.process_time() - process, time.perf_counter() - wall
    return {"process_s": process, "wall_s": wall, "peak_mb": _peak_megabytes(), "peak_before_mb": before}


def _peak_megabytes() -> float:
    """The most memory that this process has held at once.

    Linux's own count begins anew with the program; that of getrusage begins with what the process held that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / MEGABYTE if sys.platform == "darwin" else peak / 1024


def measured(name: str, path: Path, in_memory: bool) -> Row:
    """The best of three runs, or of one where one is long, each in a process of its own."""
    runs: list[Row] = []
    while len(runs) < 3 and not any(run["process_s"] > REPEATED_BELOW for run in runs):
        command = [sys.executable, __file__, name, str(path), *(["--in-memory"] if in_memory else [])]
        done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            raise SystemExit(f"{name} failed on {path.name}:\n{done.stderr}")
        runs.append(json.loads(done.stdout.splitlines()[-1]))
        print(f"  {name}: {runs[-1]['process_s']:.2f} s of CPU", file=sys.stderr, flush=True)
    best = min(runs, key=lambda run: run["process_s"])
    return {"contestant": name, **best, "peak_mb": max(run["peak_mb"] for run in runs), "runs": len(runs)}


def race(data: str, path: Path, names: list[str], in_memory: bool) -> list[Row]:
    """Contestants on one file; `times_featgeo` is how many times the CPU seconds of featgeo each needs."""
    rows = [{"data": data, **measured(name, path, in_memory)} for name in names]
    ours = next((row["process_s"] for row in rows if row["contestant"] == "featgeo"), None)
    return [{**row, "times_featgeo": row["process_s"] / ours if ours else None} for row in rows]


def speed(census: Path, peers: list[str], n_rows: int, seed: int) -> list[Row]:
    """Census-Income from memory and as CSV, and 50 independent columns of `n_rows` rows from memory."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        frame = census_income(census)
        held, text = Path(folder, "census.parquet"), Path(folder, "census.csv")
        frame.to_parquet(held)
        frame.to_csv(text, index=False)
        shape = f"Census-Income, {frame.shape[0]:,} x {frame.shape[1]}"
        del frame
        rows += race(f"{shape}, in memory", held, peers, in_memory=True)
        if "featgeo" in peers:
            csv = ["featgeo", "pyarrow, read into memory", "pyarrow, read once in batches"]
            rows += race(f"{shape}, CSV", text, csv, in_memory=False)
        independent_frame(n_rows, 50, seed).to_parquet(held)
        rows += race(f"independent columns, {n_rows:,} x 50, in memory", held, peers, in_memory=True)
    return rows


def stream(flights: Path, copies: list[int], gigabytes: float) -> list[Row]:
    """Flights streamed as CSV and as Parquet, repeated; then a CSV of so many gigabytes, made here and removed."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix, once in (("csv", "pyarrow, read once in batches"), ("parquet", "pyarrow, batches of Parquet")):
            for count in copies:
                path = Path(folder, f"flights.{suffix}")
                n_rows = repeated_flights(flights, path, count)
                rows += _streamed(path, n_rows, f"flights x {count}, {suffix}", ["featgeo", once])
        if gigabytes:
            path = Path(folder, "large.csv")
            n_rows = repeated_flights(flights, path, 1)
            count = round(gigabytes * 1e9 / path.stat().st_size)
            n_rows = repeated_flights(flights, path, count)
            rows += _streamed(path, n_rows, f"flights x {count}, csv", ["featgeo"])
    return rows


def _streamed(path: Path, n_rows: int, data: str, names: list[str]) -> list[Row]:
    rows = race(data, path, names, in_memory=False)
    size = path.stat().st_size / 1e9
    path.unlink()
    return [
        {**row, "rows": n_rows, "gigabytes": size, "s_per_million": 1e6 * row["process_s"] / n_rows} for row in rows
    ]


def repeated_flights(flights: Path, path: Path, copies: int) -> int:
    """Write the table so many times over, in batches, as CSV or Parquet by the suffix; returns the number of rows."""
    from pyarrow import csv, parquet

    source = parquet.ParquetFile(flights)
    schema = source.schema_arrow
    writer = csv.CSVWriter(path, schema) if path.suffix == ".csv" else parquet.ParquetWriter(path, schema)
    with writer:
        for _ in range(copies):
            for batch in source.iter_batches(batch_size=2**18):
                writer.write_batch(batch)
    return source.metadata.num_rows * copies


if __name__ == "__main__":
    print(json.dumps(run_contestant(sys.argv[1], sys.argv[2], "--in-memory" in sys.argv)))
