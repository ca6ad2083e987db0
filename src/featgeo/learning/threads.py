"""One thread for small matrices: on a busy machine several that wait for each other take ten to fifty times as long."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

# Rows and features up to which matrices count as small.
FEW_ROWS = 5000
FEW_FEATURES = 1000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # slow: it looks for all libraries


def one_thread(small: bool = True) -> AbstractContextManager[object]:
    """Linear algebra and trees in one thread, as long as it lasts.

    Args:
        small: Whether the matrices are; else there are as many threads as before.
    """
    limit: AbstractContextManager[object] = _controller().limit(limits=1 if small else None)
    return limit
