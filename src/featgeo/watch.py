"""What a long fit tells while it lasts, and how long it may last.

`fit` is `watched`; the engine tells what it is about to do (`tell`), and asks whether there is time to try more
(`is_time_left`). Both do nothing where no fit is watched. One line is shown, after two seconds, and is gone in the end.
Of processes that were started together the first shows it, and in a fit that all share (`shared`) it alone warns.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import cache, partial, wraps
from numbers import Real
from time import monotonic
from types import TracebackType
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

RENDEZVOUS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what launchers tell, and torch reads
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
    return _controller().limit(limits=min(most, now))


def launched() -> tuple[int, int] | None:
    """Which of how many processes this is on its machine, where several were started; None where not."""
    distributed = _process_group()
    if distributed is not None:
        rank, size = distributed.get_rank(), distributed.get_world_size()
    elif all(name in os.environ for name in RENDEZVOUS):
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    else:
        return None
    here = int(os.environ.get("LOCAL_RANK", rank)), int(os.environ.get("LOCAL_WORLD_SIZE", size))
    return here if size > 1 else None


def is_first() -> bool:
    """Whether this is the first of all processes that were started together; it may not have met the others yet."""
    distributed = _process_group()
    if distributed is not None:
        return bool(distributed.get_rank() == 0)
    return launched() is None or os.environ["RANK"] == "0"


def _process_group() -> Any:
    """`torch.distributed` where it has a process group; it is not imported for the question."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed


PATIENCE = 2.0  # seconds before anything is shown
INTERVAL = 0.5  # seconds between two looks

_Method = TypeVar("_Method", bound=Callable[..., Any])


def in_notebook() -> bool:
    """Whether a notebook runs this; to have its packages imported is not enough."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class Watch:
    """A clock, and the line that says what goes on.

    Args:
        what: What lasts, such as the name of an estimator.
        verbose: 0 shows nothing, 1 shows the line in terminals and notebooks, 2 everywhere.
        time_limit: Seconds after which nothing more is tried; None for no limit.
    """

    def __init__(self, what: str, verbose: int = 1, time_limit: float | None = None) -> None:
        if isinstance(verbose, bool) or verbose not in (0, 1, 2):
            raise ValueError(
                f"`verbose` must be 0 (no progress), 1 (in terminals and notebooks) or 2 (always), got {verbose!r}."
            )
        if time_limit is not None and (
            isinstance(time_limit, bool) or not isinstance(time_limit, Real) or not 0 < time_limit < float("inf")
        ):
            raise ValueError(
                f"`time_limit` must be a positive number of seconds, or None for no limit, got {time_limit!r}."
            )
        self.what, self.step = what, ""
        self.start = monotonic()
        self.end = float("inf") if time_limit is None else self.start + float(time_limit)
        self.shown = is_first() and (verbose == 2 or (verbose == 1 and (sys.stderr.isatty() or in_notebook())))
        self.is_shared = False
        self._width = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Watch:
        self._token = _current.set(self)
        if self.shown:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._token)
        if self.shown:
            self._over.set()
            self._thread.join()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """As long as something is watched."""
        with self:
            if is_first():
                yield
                return
            try:
                with warnings.catch_warnings(record=True) as caught:
                    yield
            finally:
                for warning in () if self.is_shared else caught:  # who found that alone says so
                    warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)

    def _show(self) -> None:
        wait = PATIENCE
        while not self._over.wait(wait):
            wait = INTERVAL
            self._write(f"{self.what}: {self.step} ({monotonic() - self.start:.0f} s)" if self.step else "")
        self._write("")

    def _write(self, text: str) -> None:
        if text or self._width:
            sys.stderr.write("\r" + text.ljust(self._width) + ("" if text else "\r"))
            sys.stderr.flush()
        self._width = len(text)


_NOBODY = Watch("", verbose=2)  # never starts, and has all the time
_current: ContextVar[Watch] = ContextVar("watch", default=_NOBODY)


def watched(method: _Method) -> _Method:
    """Watch a method of an estimator, by its `verbose` and `time_limit`; inside another's, that one's count."""

    @wraps(method)
    def with_watch(self: Any, *args: Any, **options: Any) -> Any:
        watch = Watch(type(self).__name__, self.verbose, self.time_limit)
        with watch.watching() if _current.get() is _NOBODY else nullcontext():
            return method(self, *args, **options)

    return with_watch  # type: ignore[return-value]


def tell(step: str) -> None:
    """Say what is about to be done; "" while something else shows how it goes on."""
    _current.get().step = step


def shared() -> None:
    """What is found is found by all processes that were started together."""
    _current.get().is_shared = True


def is_time_left() -> bool:
    """Whether more may be tried."""
    return monotonic() < _current.get().end


def is_quiet() -> bool:
    """Whether nothing is to be shown."""
    return not _current.get().shown


@contextmanager
def progress_bar(
    name: str, total: int, done: int = 0, wanted: bool | None = None, stays: bool = False
) -> Iterator[Callable[..., None]]:
    """Show how far something has come, step by step; nothing where that is not wanted or rich is not installed.

    Args:
        name: What goes on; it is told where no bar shows it.
        total: How many steps there are.
        done: How many of them are done.
        wanted: Whether to show it; None on terminals only.
        stays: Whether its last state is left to be read, such as a score beside it.

    Yields:
        What to call with `advance`, steps that were done since, with another `description`, or with a `text` to show
        beside the bar.
    """
    bar: Any = None
    if wanted or (wanted is None and sys.stderr.isatty() and not is_quiet()):
        with suppress(ImportError):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
            bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=not stays)
    tell(name if bar is None else "")
    if bar is None:
        yield lambda **_: None
        return
    with bar:
        task = bar.add_task(name, total=total, completed=done, text="")
        yield partial(bar.update, task)
