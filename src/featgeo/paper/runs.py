"""Runs of experiments, kept on disk one by one, so that what was computed is never computed again.

A run is one draw, learned by one recipe. Its file appears whole when the run has ended, or not at all. Files of another
version of featgeo are not taken for this one's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from featgeo.files import make_folder, write_whole
from featgeo.paper import Recipe
from featgeo.paper.record import AnyExperiment, Number
from featgeo.report.panels import Plot, as_plain, from_plain
from featgeo.schema import made

MOST_BYTES = 2**26  # of a file; those that are written have a hundredth of it


@dataclass(frozen=True)
class Run:
    """One draw of an experiment, learned and compared with its theory.

    Attributes:
        experiment: Its name.
        recipe: How it was learned.
        seed: Of the draw, and of what learned from it.
        version: Of featgeo.
        cpu_seconds: Spent on learning; the comparison not counted.
        numbers: Figures beside their theory.
        plots: What was learned over the theory.
    """

    experiment: str
    recipe: Recipe
    seed: int
    version: str
    cpu_seconds: float
    numbers: Sequence[Number]
    plots: Sequence[Plot]


def known_or_new(
    folder: Path, experiment: AnyExperiment, recipe: Recipe, seed: int, version: str, fresh: bool = False
) -> Run:
    """The run that a folder has; where there is none of this version, or it is to be fresh, it is done and kept."""
    done = None if fresh else kept(folder, experiment.name, recipe, seed, version)
    if done is None:
        done = run(experiment, recipe, seed, version)
        save(folder, done)
    return done


def run(experiment: AnyExperiment, recipe: Recipe, seed: int, version: str) -> Run:
    """Draw, learn and compare."""
    data, learn = experiment.draw(seed), experiment.fast if recipe == "fast" else experiment.published
    start = time.process_time()
    learned = learn(data, seed)
    seconds = time.process_time() - start
    outcome = experiment.measure(data, learned)
    return Run(experiment.name, recipe, seed, version, seconds, outcome.numbers, outcome.plots)


def path_of(folder: Path, experiment: str, recipe: Recipe, seed: int) -> Path:
    """Where a run is kept."""
    return folder / f"{experiment}-{recipe}-{seed}.json"


def save(folder: Path, done: Run) -> None:
    """Keep a run."""
    numbers, plots = [asdict(number) for number in done.numbers], [as_plain(plot) for plot in done.plots]
    plain = vars(done) | {"numbers": numbers, "plots": plots}
    make_folder(folder)
    write_whole(path_of(folder, done.experiment, done.recipe, done.seed), json.dumps(plain, ensure_ascii=False))


def kept(folder: Path, experiment: str, recipe: Recipe, seed: int, version: str) -> Run | None:
    """The run of this version that is kept in a folder, if there is one."""
    path = path_of(folder, experiment, recipe, seed)
    if not path.exists():
        return None
    try:
        done = _read(path)
        if (done.experiment, done.recipe, done.seed) != (experiment, recipe, seed):
            raise ValueError(f"it says it is {done.experiment}, {done.recipe}, {done.seed}")
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a run that featgeo wrote ({str(error)[:200]}). Remove it, and the run is done again."
        ) from error
    return done if done.version == version else None


def _read(path: Path) -> Run:
    """A run from its file, every part of the type that it is to have."""
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise ValueError(f"not a regular file of at most {MOST_BYTES} bytes")
    plain: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    numbers = [made(Number, number) for number in plain["numbers"]]
    plots = [from_plain(plot) for plot in plain["plots"]]
    for number in numbers:
        number.allowed  # noqa: B018 (refuses one that cannot be judged)
    if len({plot.slug for plot in plots}) < len(plots):
        raise ValueError("two figures have the same name")
    return made(Run, plain | {"numbers": numbers, "plots": plots})


def medians(runs: Sequence[Run]) -> list[Number]:
    """The numbers of several draws of an experiment: of values the median and its error, else the median of errors."""
    names = {tuple(number.name for number in done.numbers) for done in runs}
    if len(names) != 1:
        raise ValueError(
            f"Runs of {runs[0].experiment} have different numbers: they come from different code. Run them afresh."
        )
    return [_median(draws) for draws in zip(*(done.numbers for done in runs), strict=True)]


def _median(draws: Sequence[Number]) -> Number:
    first = draws[0]
    learned, floor, optimum = (_middle(draws, name) for name in ("learned", "floor", "optimum"))
    if first.theory is not None and learned is not None:
        return Number.value(first.name, first.theory, learned, bound=first.bound, optimum=optimum)
    return replace(first, error=float(np.median([number.error for number in draws])), floor=floor)


def _middle(draws: Sequence[Number], name: str) -> float | None:
    """The median; not a number where one draw has none, and None where it is not known."""
    values = [getattr(number, name) for number in draws]
    return None if None in values else float(np.median(values))
