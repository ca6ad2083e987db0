"""An experiment of no consequence, to test what runs and shows experiments."""

from __future__ import annotations

from featgeo.paper.record import Experiment, Number, Outcome
from featgeo.report.contents import About
from featgeo.report.panels import Bars, Cells, Curves, Map, Plot, Points

PANELS = [
    Curves("c", [0.0, 1.0], [1.0, 2.0], {"learned": [1.5, 2.5]}, level=0.5),
    Bars("b", ["1", "2"], [0.1, 0.2], {"learned": [0.1, 0.3]}),
    Map("m", [[0.0, 1.0], [1.0, 0.0]], (-1, 1), (0, 1)),
    Points("p", {"group": [[0.0, 1.0]]}, ("f", "g")),
    Cells("s", {"x": [0, 1, 1]}),
]


def experiment(errors=(0.3, 0.1, 0.2), name="made-up"):
    """An experiment whose draw of seed i has the i-th error."""

    def compare(data, learned, best):
        plots = [Plot("made-up", "caption", "alt", PANELS, columns=2)]
        return Outcome([Number("a", 0.05 if learned == "best" else errors[data], bound=0.25)], plots)

    return Experiment(
        About(name, "title", "source", "law", "statement", "x", "code"), draw=lambda seed: seed,
        fast=lambda data, seed: "fast", published=lambda data, seed: "slow", optimum=lambda data: "best",
        compare=compare,
    )  # fmt: skip
