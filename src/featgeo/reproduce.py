"""Every experiment of the paper, run, checked against its theory, and written down: numbers, figures and one page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import featgeo
from featgeo.files import make_folder, write_whole
from featgeo.paper import DRAWS, SEED, Recipe, runs
from featgeo.paper.experiments import EXPERIMENTS
from featgeo.report.contents import Chapter
from featgeo.report.drawing import draw
from featgeo.report.html import write_page
from featgeo.watch import progress_bar

INTRODUCTION = (
    "Experiments of “Neural Feature Learning in Function Space” (Xu and Zheng, JMLR 2024), and of what accompanies it, "
    "learned from samples and compared with what the theory says exactly. Numbers sum up the draws of each experiment; "
    "figures show the first draw."
)


def reproduce(
    folder: Path,
    names: Sequence[str] = (),
    recipe: Recipe = "fast",
    seeds: Sequence[int] = range(SEED, SEED + DRAWS),
    fresh: bool = False,
    progress: bool = False,
) -> list[Chapter]:
    """Run experiments, or take what a folder has of them, and write results, figures and the page.

    Args:
        folder: For `report.html`, `results.json`, `figures/` and `runs/`.
        names: Which experiments; all when empty.
        recipe: "fast", the library's defaults, or "published", the authors' training.
        seeds: Of the draws of each experiment; results are medians over them.
        fresh: Whether to run again what the folder already has.
        progress: Whether to show how many runs are done.

    Returns:
        What came of each experiment, in the order of the paper.
    """
    if not seeds:
        raise ValueError("There must be at least 1 draw, got 0. Pass a positive number.")
    if min(seeds) < 0:
        raise ValueError(f"The seed must be a whole number, at least 0, got {min(seeds)}. Pass another one.")
    unknown = sorted(set(names) - set(EXPERIMENTS))
    if unknown:
        raise ValueError(f"There is no experiment {', '.join(unknown)}. The names are: {', '.join(EXPERIMENTS)}.")
    experiments = [experiment for name, experiment in EXPERIMENTS.items() if not names or name in names]
    make_folder(folder)
    chapters = []
    with progress_bar("starting", len(experiments) * len(seeds), wanted=progress) as show:
        for experiment in experiments:
            own = []
            for seed in seeds:
                own.append(runs.known_or_new(folder / "runs", experiment, recipe, seed, featgeo.__version__, fresh))
                show(advance=1, description=experiment.name)
            chapters.append(Chapter(experiment.about, runs.medians(own), own[0].plots))
    _write(folder, chapters, {"recipe": recipe, "draws": str(len(seeds)), "seed": str(seeds[0])})
    return chapters


def _write(folder: Path, chapters: Sequence[Chapter], facts: Mapping[str, str]) -> None:
    """The same results give the same files: times are in the runs alone."""
    facts = {"featgeo": featgeo.__version__, **facts}
    experiments = {
        chapter.about.name: {
            "passed": chapter.passed,
            "numbers": [
                asdict(number) | {"allowed": number.allowed, "passed": number.passed} for number in chapter.numbers
            ],
        }
        for chapter in chapters
    }
    results = json.dumps({**facts, "experiments": experiments}, indent=1, ensure_ascii=False)
    write_whole(folder / "results.json", results + "\n")
    write_page(
        folder / "report.html",
        "report.html.j2",
        {f"figures/{plot.slug}.svg": draw(plot) for chapter in chapters for plot in chapter.plots},
        title="The paper, reproduced",
        introduction=INTRODUCTION,
        facts=facts,
        chapters=chapters,
    )
