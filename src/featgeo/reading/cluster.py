"""Parts of a table on a cluster of Dask: the tree of `featgeo.reading.tree`, each branch a task.

Tasks are `dask.delayed`, not futures of their own: what a worker held that dies is computed again, by others, from the
same parts in the same order, and so to the same bits. Dask is imported where its objects or its client are there.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np

from featgeo.reading.tables import TEXT, PandasFrame, family_of
from featgeo.reading.tree import folded
from featgeo.tuning import Options, in_force, under
from featgeo.watch import bounded_threads

ALLOWED_FAILURES = 100  # workers that may die under one task, at least, before it is given up
RETRIES = 3  # of a task that fails, as reading over a network may

T = TypeVar("T")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of options in the C library's malloc.h


def client() -> Any:
    """The client of Dask that is there; None where there is none. Nothing is imported to find out."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        found = distributed.default_client()
    except ValueError:  # there is none
        return None
    if found.asynchronous:
        raise ValueError(
            "Tables are read through a Client of Dask that waits for results, and this one is asynchronous. Open "
            "another by `distributed.Client(address)`, or close it to read without a cluster."
        )
    return found


def reduced(client: Any, parts: Sequence[Any], of_part: Callable[[Any], T], merged: Callable[[T, T], T]) -> T:
    """What is told of all parts, computed by the workers of a client.

    Args:
        client: Of a cluster whose scheduler and workers have this package.
        parts: Of a table (`featgeo.reading.source.Part`).
        of_part: What is told of one; it is sent to the workers once.
        merged: As in `folded`.
    """
    from dask.delayed import delayed
    from distributed import KilledWorker

    work = delayed(_Work(of_part, merged, in_force.get()), traverse=False)
    tell, merge = delayed(_of_part), delayed(_merged)
    tree = folded(parts, lambda part: tell(work, *part.apart()), lambda a, b: merge(work, a, b))
    with _failures_allowed(client):
        future = client.compute(tree, retries=RETRIES)
        try:
            return future.result()
        except KilledWorker as error:
            raise RuntimeError(
                f"A part of the table must be read by some worker, and workers died over it again and again ({error}). "
                "Give them more memory, or write the table in smaller files or partitions."
            ) from error
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{error} Workers of a cluster must find files under the same path: use a folder that all of them "
                "see, or close the Client to read them here."
            ) from error
        finally:
            future.cancel()  # where it was interrupted, nobody waits for it


class _Work:
    """What workers do, and under which options."""

    def __init__(self, of_part: Callable[[Any], Any], merged: Callable[[Any, Any], Any], options: Options) -> None:
        self.of_part, self.merged, self.options = of_part, merged, options


def _of_part(work: _Work, part: Any, frame: Any) -> Any:
    with under(work.options), _alone():
        return work.of_part(part.with_frame(frame))


def _merged(work: _Work, a: Any, b: Any) -> Any:
    with under(work.options), _alone():
        return work.merged(a, b)


_lock = threading.Lock()
_limits: list[Any] = []  # of this process: the first is what was there before


@contextmanager
def _alone() -> Iterator[None]:
    """As this package works without a cluster. Tasks of one process overlap as they like.

    Linear algebra is in one thread: how it sums may depend on their number. What OpenMP keeps for each thread is set by
    each; what is of the process is set back by the last one out.
    """
    with _lock:
        limit = bounded_threads()
        limit.__enter__()
        _limits.append(limit)
        _reuse_memory(True)
    try:
        yield
    finally:
        with _lock:
            limit = _limits.pop()
            if not _limits:
                limit.__exit__(None, None, None)
                _reuse_memory(False)


def _reuse_memory(wanted: bool) -> None:
    """Let arrays have the memory that those before them gave back, or do again what Dask says.

    Dask has the allocator of its workers hand all memory back at once, by an environment variable; the system then
    clears every page of every array anew, which takes longer than all that is done with them.
    """
    handed_back = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
    if not handed_back.isdecimal():
        return
    with suppress(OSError, AttributeError):  # where the C library has no such thing
        allocator = ctypes.CDLL(None).mallopt
        allocator(_TRIM_THRESHOLD, 1 << 28 if wanted else int(handed_back))
        allocator(_MMAP_THRESHOLD, 1 << 25 if wanted else 1 << 17)  # the most that can be, and the default


@contextmanager
def _failures_allowed(client: Any) -> Iterator[None]:
    """The default, 3, gives a task up that was there by chance when some workers died."""
    before = client.run_on_scheduler(_allow, least=ALLOWED_FAILURES)
    try:
        yield
    finally:
        client.run_on_scheduler(_allow, exactly=before)


def _allow(dask_scheduler: Any, least: int = 0, exactly: int | None = None) -> int:
    before = dask_scheduler.allowed_failures
    dask_scheduler.allowed_failures = max(before, least) if exactly is None else exactly
    return int(before)


class Partition:
    """One partition of a Dask frame.

    Args:
        place: Its number.
        types: The Arrow types of the columns, as the frame promises them.
        frame: A pandas frame, or what computes it; None while it is on its way to a worker.
    """

    def __init__(self, place: int, types: Mapping[str, Any], frame: Any) -> None:
        self.place, self.types, self.frame = place, types, frame

    def batches(self, wanted: Sequence[str], numeric: Any = ()) -> Iterator[Any]:
        """Record batches of the columns `wanted`."""
        frame = self.frame.compute() if hasattr(self.frame, "compute") else self.frame
        names = [str(name) for name in getattr(frame, "columns", ())]
        missing, added = ([name for name in a if name not in b] for a, b in ((self.types, names), (names, self.types)))
        if missing or added:
            raise ValueError(
                f"Partitions of a Dask frame must have its columns, and partition {self.place} lacks {missing[:5]} and "
                f"adds {added[:5]}. Make them alike, such as by `map_partitions`, or give the right `meta`."
            )
        own = PandasFrame(frame, self.types)
        for name in wanted:
            if len({family_of(own.found[name]), family_of(self.types[name])} - {"nothing"}) > 1:
                raise ValueError(
                    f"Partitions of a Dask frame must hold what it promises: column {name!r} is {self.types[name]}, "
                    f"and {own.found[name]} in partition {self.place}. Convert it by `astype`, or give the right "
                    "`meta`."
                )
        yield from own.batches(wanted)


def partitions_of(frame: Any, columns: Callable[[tuple[str, ...]], Sequence[str]]) -> list[tuple[str, Partition]]:
    """The partitions of a Dask frame, with the columns that are chosen of it, and what they are called."""
    meta = frame._meta_nonempty  # what Dask takes for its rows: of no rows, objects are of no type
    types = {**PandasFrame(meta).types}
    chosen = columns(tuple(types))
    places = [place for place, name in enumerate(types) if name in chosen]
    wanted = frame[[frame.columns[place] for place in places]]
    texts = {str(name) for name, kind in meta.dtypes.items() if isinstance(kind, np.dtype) and kind.kind == "O"}
    promised = {name: TEXT if name in texts else types[name] for name in types if name in chosen}
    return [(f"partition {i}", Partition(i, promised, part)) for i, part in enumerate(wanted.to_delayed())]
