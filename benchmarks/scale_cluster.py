"""What a cluster of one worker costs beside no cluster: `explore` and a closed form, of one folder of Parquet files.

The worker is a process of its own with one thread. Seconds are those of the processor, of this process (with the
scheduler) and of the worker together; each figure is a ratio of medians of interleaved runs after a first one that
counts for nobody, unless it is long. The partitions of the Dask frame are the files; of a folder, small files are one
part together.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

FILES = 8
REPEATS = 2
LONG = 8.0  # seconds: what takes longer is measured once


def written(path: Path, folder: Path) -> Path:
    """A table as a folder of Parquet files of as many rows each."""
    import pandas as pd
    from explore_speed import census_income

    frame = pd.read_parquet(path) if path.suffix == ".parquet" else census_income(path)
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), FILES)):
        frame.iloc[rows].to_parquet(folder / f"{i}.parquet")
    return folder


def _processors() -> float:
    """Seconds of this process and of those that it started."""
    import psutil

    own = psutil.Process(os.getpid())
    times = [process.cpu_times() for process in [own, *own.children(recursive=True)]]
    return float(sum(one.user + one.system for one in times))


def _seconds(run: Callable[[], Any]) -> tuple[float, float]:
    start, wall = _processors(), time.perf_counter()
    run()
    return _processors() - start, time.perf_counter() - wall


def overhead(data: str, path: Path, target: str) -> Iterator[dict[str, Any]]:
    """A row for `explore` and one for a closed form: a worker's cost as a multiple of none."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import featgeo as fg
    from featgeo.reading import cluster as room

    model = {"solver": "closed", "x_space": "spline", "y_space": "spline", "ridge": 1e-3, "random_state": 0}
    works: dict[str, Callable[[Any], Any]] = {
        "explore, to the counts": lambda table: fg.explore(table, verbose=0),
        "explore, with all pairs": lambda table: fg.explore(table, verbose=0).pairs,
        "closed form": lambda table: fg.ModalDecomposition(3, **model).fit(table, target),
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = written(path, Path(temporary, "table"))
        with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
            frame, client = dd.read_parquet(folder), room.client
            for name, work in works.items():
                times: dict[str, list[tuple[float, float]]] = {"here": [], "folder": [], "frame": []}
                while len(times["here"]) < 1 + REPEATS and not (times["here"] and times["here"][0][0] > LONG):
                    for way, own in times.items():
                        room.client = (lambda: None) if way == "here" else client
                        table = frame if way == "frame" else str(folder)
                        own.append(_seconds(lambda table=table, work=work: work(table)))
                room.client = client
                spent = {
                    way: [statistics.median(kind) for kind in zip(*(own[1:] or own), strict=True)]
                    for way, own in times.items()
                }
                here, on_worker, of_frame = (spent[way] for way in ("here", "folder", "frame"))
                yield {
                    "row": f"one worker, {name}, {data}",
                    "ours": on_worker[0],
                    "other": here[0],
                    "other is": "the same folder without a cluster",
                    "ratio": on_worker[0] / here[0],
                    "at most": 1.5,
                    "note": f"by the clock {on_worker[1] / here[1]:.2f}; a Dask frame {of_frame[0] / here[0]:.2f}",
                }
