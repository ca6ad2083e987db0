"""As many threads as there is work for: several that wait for each other on small matrices take ten times as long."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

CELLS_A_THREAD = 500_000  # numbers to read, for a thread to be worth its while


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # slow: it looks for all libraries


def bounded_threads(cells: float = 0) -> AbstractContextManager[object]:
    """Linear algebra, trees and networks in few threads, as long as it lasts; never in more than they had.

    Args:
        cells: How many numbers there are to read; infinite where nobody knows. Matrices that fit into a processor's
            cache count as none.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = max(1, int(min(cells / CELLS_A_THREAD, cores)))
    now = max((library["num_threads"] for library in _controller().info()), default=1)
    limit: AbstractContextManager[object] = _controller().limit(limits=min(most, now))
    return limit
