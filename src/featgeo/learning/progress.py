"""A progress bar with the held-out score."""

from __future__ import annotations

import contextlib
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from featgeo.learning.options import Training
from featgeo.watch import is_quiet, tell

if TYPE_CHECKING:
    from featgeo.learning.train import Run


class ProgressBar:
    """A bar with the held-out score; nothing where it is not wanted or rich is not installed."""

    def __init__(self, run: Run, options: Training) -> None:
        wanted = (sys.stderr.isatty() and not is_quiet()) if options.progress is None else options.progress
        self.bar: Any = None
        if not (wanted and run.fabric.is_global_zero):
            return
        with contextlib.suppress(ImportError):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[score]}"))
            self.bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
            name = "training" if options.restarts == 1 else f"training {run.seed[1] + 1}/{options.restarts}"
            self.task = self.bar.add_task(name, total=run.n_steps, completed=run.step, score="")

    def __enter__(self) -> ProgressBar:
        if self.bar is None:
            tell("training")
        else:
            tell("")  # the bar says it
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, run: Run, steps: int = 1) -> None:
        """Show that a run has gone on."""
        if self.bar is not None:
            score = f"held-out H-score {run.history[-1]:.4f}" if run.history else ""
            self.bar.update(self.task, advance=steps, score=f"epoch {len(run.history)}/{run.max_epochs} {score}")
