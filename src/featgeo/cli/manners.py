"""How every command behaves: what ends it and with which exit code, and what it says beside its answer.

| code | meaning |
| --- | --- |
| 0 | done |
| 1 | done, and the answer is no; only where a command says so in its help |
| 2 | wrong usage, or input or output that cannot be had: a message on standard error, and nothing written |
| 130 | interrupted from the keyboard |
| 141 | whoever read the output left, as `head` does |
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import typer
from rich.console import Console
from rich.text import Text

from featgeo.cli.printing import visible
from featgeo.watch import Watch

REFUSED, INTERRUPTED, LEFT_BY_READER = 2, 130, 141

_Command = TypeVar("_Command", bound=Callable[..., None])


def polite(command: _Command) -> _Command:
    """Let a command end as a user of a shell expects: messages without tracebacks, exit codes, quiet broken pipes."""

    @wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            command(*args, **options)
            sys.stdout.flush()  # here, where a reader who left does no harm, and not when Python ends
        except KeyboardInterrupt as error:
            complain("Interrupted.")
            raise typer.Exit(INTERRUPTED) from error
        except BrokenPipeError as error:
            _write_to_nobody()
            raise typer.Exit(LEFT_BY_READER) from error
        except (ImportError, MemoryError, OSError, ValueError) as error:
            complain(_in_words(error))
            raise typer.Exit(REFUSED) from error

    return run  # type: ignore[return-value]


def complain(message: str) -> None:
    """Say on standard error what is wrong."""
    Console(stderr=True).print(Text(visible(message, lines=True), style="red"), soft_wrap=True)


@contextmanager
def working(what: str) -> Iterator[list[str]]:
    """Long work of a command: progress is shown on terminals, and what the library warns of is kept.

    Args:
        what: What progress calls it.

    Yields:
        The warnings so far, each once, to be said beside the answer.
    """
    notes: list[str] = []

    def keep(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        # What held-out rows have against a fit is part of the answer, and need not be said twice.
        if str(message) not in notes and category.__name__ != "FitWarning":
            notes.append(str(message))

    with Watch(what), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said to programmers
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = keep
        yield notes


def _in_words(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"The featgeo command needs its extra ({error.name} is missing). Run: pip install 'featgeo[cli]'"
    if isinstance(error, MemoryError):
        return "There is not enough memory for this. Name fewer columns, or take fewer rows."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _write_to_nobody() -> None:
    """What is still to be written, when Python ends, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
