"""Runs kept on disk: whole, never done twice, and summed up by medians."""

from __future__ import annotations

import pytest
from made_up_experiment import PANELS, experiment

from featgeo.paper import runs
from featgeo.paper.record import Number, Outcome


def test_a_run_comes_back_from_disk_as_it_was(tmp_path):
    run = runs.run(experiment(), "fast", 1, "1.0")
    runs.save(tmp_path, run)
    known = runs.kept(tmp_path, "made-up", "fast", 1, "1.0")
    assert known.outcome.numbers == run.outcome.numbers
    assert known.cpu_seconds == run.cpu_seconds
    runs.save(tmp_path, known)  # what was read is written the same
    assert runs.kept(tmp_path, "made-up", "fast", 1, "1.0") == known
    assert [type(panel) for panel in known.outcome.plots[0].panels] == [type(panel) for panel in PANELS]


def test_runs_of_another_seed_recipe_or_version_are_others(tmp_path):
    runs.save(tmp_path, runs.run(experiment(), "fast", 1, "1.0"))
    assert runs.kept(tmp_path, "made-up", "fast", 2, "1.0") is None
    assert runs.kept(tmp_path, "made-up", "published", 1, "1.0") is None
    assert runs.kept(tmp_path, "made-up", "fast", 1, "1.1") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"numbers": []}', '{"numbers": [{}], "plots": []}'])
def test_a_file_that_is_no_run_is_refused_and_kept(tmp_path, text):
    path = runs.path_of(tmp_path, "made-up", "fast", 1)
    path.write_text(text)
    with pytest.raises(ValueError, match=r"not a run that featgeo wrote .* Remove it"):
        runs.kept(tmp_path, "made-up", "fast", 1, "1.0")
    assert path.read_text() == text


def test_several_draws_are_summed_up_by_medians():
    (number,) = runs.medians([runs.run(experiment(), "fast", seed, "1.0") for seed in range(3)])
    assert number == Number("a", 0.2, bound=0.25, floor=0.05)
    assert number.passed
    assert not runs.medians([runs.run(experiment(), "fast", 0, "1.0")])[0].passed


def test_a_value_is_its_median_with_the_error_of_the_median():
    draws = [Outcome([Number.value("a", 1.0, learned, bound=0.1, optimum=1.01)], []) for learned in (0.8, 1.05, 1.3)]
    (number,) = runs.medians([runs.Run("made-up", "fast", i, "1.0", 0.0, draw) for i, draw in enumerate(draws)])
    assert number == Number.value("a", 1.0, 1.05, bound=0.1, optimum=1.01)
    assert number.error == pytest.approx(0.05)


def test_what_is_not_a_number_in_one_draw_is_none_in_all():
    made = [experiment((error, 0.1, 0.1)) for error in (0.1, float("nan"))]
    for made_up, passes in zip(made, (True, False), strict=True):
        (number,) = runs.medians([runs.run(made_up, "fast", seed, "1.0") for seed in range(3)])
        assert number.passed is passes


def test_runs_of_different_numbers_are_not_summed_up():
    other = runs.Run("made-up", "fast", 1, "1.0", 0.0, Outcome([Number("b", 0.1, bound=1.0)], []))
    with pytest.raises(ValueError, match="different numbers"):
        runs.medians([runs.run(experiment(), "fast", 0, "1.0"), other])
