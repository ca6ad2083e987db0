"""Runs kept on disk: whole, never done twice, and summed up by medians."""

from __future__ import annotations

import json

import pytest
from made_up_experiment import PANELS, experiment

from featgeo.paper import runs
from featgeo.paper.record import Number
from featgeo.report.panels import Plot


def test_a_run_comes_back_from_disk_as_it_was(tmp_path):
    run = runs.run(experiment(), "fast", 1, "1.0")
    runs.save(tmp_path, run)
    known = runs.kept(tmp_path, "made-up", "fast", 1, "1.0")
    assert known.numbers == run.numbers
    assert known.cpu_seconds == run.cpu_seconds
    runs.save(tmp_path, known)  # what was read is written the same
    assert runs.kept(tmp_path, "made-up", "fast", 1, "1.0") == known
    assert [type(panel) for panel in known.plots[0].panels] == [type(panel) for panel in PANELS]


def test_runs_of_another_seed_recipe_or_version_are_others(tmp_path):
    runs.save(tmp_path, runs.run(experiment(), "fast", 1, "1.0"))
    assert runs.kept(tmp_path, "made-up", "fast", 2, "1.0") is None
    assert runs.kept(tmp_path, "made-up", "published", 1, "1.0") is None
    assert runs.kept(tmp_path, "made-up", "fast", 1, "1.1") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "1",
        '"x"',
        "[" * 10**5,
        '{"a":' * 10**5,
        '{"numbers": []}',
        '{"numbers": [{}], "plots": []}',
    ],
    ids=lambda text: text[:12],
)
def test_a_file_that_is_no_run_is_refused_and_kept(tmp_path, text):
    path = runs.path_of(tmp_path, "made-up", "fast", 1)
    path.write_text(text)
    with pytest.raises(ValueError, match=r"not a run that featgeo wrote .* Remove it"):
        runs.kept(tmp_path, "made-up", "fast", 1, "1.0")
    assert path.read_text() == text


def _set(*path_and_value):
    """A change of one place in a run."""
    *path, last, value = path_and_value

    def change(plain):
        for key in path:
            plain = plain[key]
        plain[last] = value

    return change


# Whatever is changed in a run's file, it is refused: one line for each.
CRAFTED = {
    "a figure outside of the folder": _set("plots", 0, "slug", "../../x"),
    "a figure at the root": _set("plots", 0, "slug", "/x"),
    "a figure without a name": _set("plots", 0, "slug", ""),
    "a figure named by a number": _set("plots", 0, "slug", 1),
    "a figure of 1000 letters": _set("plots", 0, "slug", "x" * 1000),
    "a figure with a zero byte": _set("plots", 0, "slug", "a\0b"),
    "another experiment": _set("experiment", "cosine"),
    "an experiment elsewhere": _set("experiment", "../../x"),
    "another recipe": _set("recipe", "published"),
    "no recipe": _set("recipe", "slow"),
    "another seed": _set("seed", 2),
    "a seed that is a text": _set("seed", "1"),
    "version null": _set("version", None),
    "seconds that are a text": _set("cpu_seconds", "1"),
    "numbers null": _set("numbers", None),
    "numbers a text": _set("numbers", "abc"),
    "a number that is null": _set("numbers", 0, None),
    "a number that is a list": _set("numbers", 0, []),
    "an error that is a text": _set("numbers", 0, "error", "small"),
    "an error that is null": _set("numbers", 0, "error", None),
    "a name that is a number": _set("numbers", 0, "name", 3),
    "a number with another field": _set("numbers", 0, "shell", "x"),
    "a number that cannot be judged": _set("numbers", 0, {"name": "a", "error": 0.1}),
    "plots null": _set("plots", None),
    "a plot that is null": _set("plots", 0, None),
    "a plot without panels": _set("plots", 0, "panels", []),
    "panels null": _set("plots", 0, "panels", None),
    "a panel that is a text": _set("plots", 0, "panels", 0, "x"),
    "a panel of no kind": _set("plots", 0, "panels", 0, "kind", "Mystery"),
    "a panel of the system": _set("plots", 0, "panels", 0, "kind", ["os"]),
    "a panel with a title of numbers": _set("plots", 0, "panels", 0, "title", 5),
    "curves of other lengths": _set("plots", 0, "panels", 0, "theory", [1.0]),
    "curves of texts": _set("plots", 0, "panels", 0, "theory", ["a"] * 2),
    "no columns": _set("plots", 0, "columns", 0),
    "columns that are a text": _set("plots", 0, "columns", "2"),
    "widths of other columns": _set("plots", 0, "widths", [1.0] * 9),
    "a caption that is null": _set("plots", 0, "caption", None),
    "another outcome": _set("outcome", 1),
    "another field": _set("shell", "x"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_run_that_is_not_as_written_is_refused(tmp_path, name):
    runs.save(tmp_path, runs.run(experiment(), "fast", 1, "1.0"))
    path = runs.path_of(tmp_path, "made-up", "fast", 1)
    plain = json.loads(path.read_text())
    CRAFTED[name](plain)
    path.write_text(json.dumps(plain))
    with pytest.raises(ValueError, match=r"not a run that featgeo wrote .* Remove it"):
        runs.kept(tmp_path, "made-up", "fast", 1, "1.0")


def test_a_file_elsewhere_is_never_written(tmp_path):
    with pytest.raises(ValueError, match="becomes a file name"):
        Plot("../../x", "", "", PANELS, 1)


def test_several_draws_are_summed_up_by_medians():
    (number,) = runs.medians([runs.run(experiment(), "fast", seed, "1.0") for seed in range(3)])
    assert number == Number("a", 0.2, bound=0.25, floor=0.05)
    assert number.passed
    assert not runs.medians([runs.run(experiment(), "fast", 0, "1.0")])[0].passed


def test_a_value_is_its_median_with_the_error_of_the_median():
    draws = [[Number.value("a", 1.0, learned, bound=0.1, optimum=1.01)] for learned in (0.8, 1.05, 1.3)]
    (number,) = runs.medians([runs.Run("made-up", "fast", i, "1.0", 0.0, draw, []) for i, draw in enumerate(draws)])
    assert number == Number.value("a", 1.0, 1.05, bound=0.1, optimum=1.01)
    assert number.error == pytest.approx(0.05)


def test_what_is_not_a_number_in_one_draw_is_none_in_all():
    made = [experiment((error, 0.1, 0.1)) for error in (0.1, float("nan"))]
    for made_up, passes in zip(made, (True, False), strict=True):
        (number,) = runs.medians([runs.run(made_up, "fast", seed, "1.0") for seed in range(3)])
        assert number.passed is passes


def test_runs_of_different_numbers_are_not_summed_up():
    other = runs.Run("made-up", "fast", 1, "1.0", 0.0, [Number("b", 0.1, bound=1.0)], [])
    with pytest.raises(ValueError, match="different numbers"):
        runs.medians([runs.run(experiment(), "fast", 0, "1.0"), other])
