"""Every experiment of the paper, run, checked against its theory, and written down: numbers, figures and one page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import featgeo
from featgeo.files import make_folder, write_whole
from featgeo.paper import runs
from featgeo.paper.experiments import EXPERIMENTS
from featgeo.paper.record import DRAWS, SEED, AnyExperiment, Number, Recipe
from featgeo.paper.runs import Run
from featgeo.report.drawing import draw
from featgeo.report.experiments import Chapter, Picture, Row, write_report

INTRODUCTION = (
    "Experiments of “Neural Feature Learning in Function Space” (Xu and Zheng, JMLR 2024), and of what accompanies it, "
    "learned from samples and compared with what the theory says exactly. Numbers sum up the draws of each experiment; "
    "figures show the first draw."
)


@dataclass(frozen=True)
class Verdict:
    """An experiment after all its draws.

    Attributes:
        experiment: What was run.
        numbers: Medians over the draws.
        first: The first draw, whose figures are shown.
    """

    experiment: AnyExperiment
    numbers: Sequence[Number]
    first: Run

    @property
    def passed(self) -> bool:
        """Whether there are numbers, and every one is within what is allowed."""
        return len(self.numbers) > 0 and all(number.passed for number in self.numbers)


def chosen(names: Sequence[str]) -> list[AnyExperiment]:
    """The experiments of these names, in the order of the paper; all of them for no name."""
    unknown = sorted(set(names) - set(EXPERIMENTS))
    if unknown:
        raise ValueError(f"There is no experiment {', '.join(unknown)}. The names are: {', '.join(EXPERIMENTS)}.")
    return [experiment for name, experiment in EXPERIMENTS.items() if not names or name in names]


def reproduce(
    folder: Path,
    names: Sequence[str] = (),
    recipe: Recipe = "fast",
    draws: int = DRAWS,
    seed: int = SEED,
    fresh: bool = False,
    done: Callable[[Run], None] = lambda run: None,
) -> list[Verdict]:
    """Run experiments, or take what a folder has of them, and write results, figures and the page.

    Args:
        folder: For `report.html`, `results.json`, `figures/` and `runs/`.
        names: Which experiments; all when empty.
        recipe: "fast", the library's defaults, or "published", the authors' training.
        draws: Samples of each experiment; results are medians over them.
        seed: Of the first draw.
        fresh: Whether to run again what the folder already has.
        done: Told of each run that is there.

    Returns:
        One verdict an experiment, in the order of the paper.
    """
    if draws < 1:
        raise ValueError(f"There must be at least 1 draw, got {draws}. Pass a positive number.")
    if seed < 0:
        raise ValueError(f"The seed must be a whole number, at least 0, got {seed}. Pass another one.")
    experiments = chosen(names)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"The output must be a folder, and {folder} is a file. Choose another name.")
    verdicts = []
    for experiment in experiments:
        own = []
        for at in range(seed, seed + draws):
            known = None if fresh else runs.kept(folder / "runs", experiment.name, recipe, at, featgeo.__version__)
            run = known or runs.run(experiment, recipe, at, featgeo.__version__)
            if known is None:
                runs.save(folder / "runs", run)
            done(run)
            own.append(run)
        verdicts.append(Verdict(experiment, runs.medians(own), own[0]))
    _write(folder, verdicts, {"recipe": recipe, "draws": str(draws), "seed": str(seed)})
    return verdicts


def _write(folder: Path, verdicts: Sequence[Verdict], facts: Mapping[str, str]) -> None:
    """The same verdicts give the same files: times are in the runs alone."""
    facts = {"featgeo": featgeo.__version__, **facts}
    results = {
        **facts,
        "experiments": {
            verdict.experiment.name: {
                "passed": verdict.passed,
                "numbers": [
                    asdict(number) | {"allowed": number.allowed, "passed": number.passed} for number in verdict.numbers
                ],
            }
            for verdict in verdicts
        },
    }
    figures = folder / "figures"
    make_folder(figures)
    chapters = []
    for verdict in verdicts:
        pictures = []
        for plot in verdict.first.outcome.plots:
            svg = draw(plot)
            write_whole(figures / f"{plot.slug}.svg", svg)
            pictures.append(Picture(svg, plot.caption, plot.alt))
        chapters.append(_chapter(verdict, pictures))
    write_whole(folder / "results.json", json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    write_report(folder / "report.html", "The paper, reproduced", INTRODUCTION, facts, chapters)


def _chapter(verdict: Verdict, pictures: Sequence[Picture]) -> Chapter:
    """What the page shows of an experiment goes by the names that the experiment has for it."""
    rows = [Row(**{field.name: getattr(number, field.name) for field in fields(Row)}) for number in verdict.numbers]
    own: dict[str, Any] = {"slug": verdict.experiment.name, "pictures": pictures, "rows": rows}
    taken = {field.name: getattr(verdict.experiment, field.name) for field in fields(Chapter) if field.name not in own}
    return Chapter(**own, **taken)
