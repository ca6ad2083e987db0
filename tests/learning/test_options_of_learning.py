"""How training is told: defaults by the number of rows and of parameters, the rate over the steps, and what is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from featgeo import Nesting, Training, nested_h_score
from featgeo.learning.batches import Batches
from featgeo.learning.train import contributions, one_cycle


def test_defaults_are_those_of_the_docs():
    found = Training()
    assert (found.weight_decay, found.surplus, found.validation, found.restarts) == (0.3, 2, 0.1, 1)
    assert (found.precision, found.accelerator, found.devices) == ("32-true", "auto", None)
    assert (found.max_epochs, found.batch_size, found.learning_rate, found.patience) == (None,) * 4
    assert (found.checkpoint, found.progress) == (None, None)
    assert (found.warm_up, found.auto_modes) == (0.3, 9)


@pytest.mark.parametrize(
    ("rows", "size"), [(100, 32), (1280, 32), (2560, 64), (20_000, 512), (41_000, 1024), (10**6, 1024)]
)
def test_a_batch_is_about_a_fortieth_of_the_rows(rows, size):
    assert Training().batch_rows(rows) == size


@pytest.mark.parametrize(("batches", "epochs"), [(1, 200), (2, 175), (7, 50), (8, 44), (44, 8), (1000, 8)])
def test_epochs_give_350_steps_at_least_8_and_at_most_200(batches, epochs):
    assert Training().epochs(batches) == epochs
    assert Training(max_epochs=3).epochs(batches) == 3


def test_large_networks_have_half_the_rate_and_half_the_batch():
    assert [Training().rate(size) for size in (100_000, 100_001)] == [0.01, 0.005]
    assert Training(learning_rate=0.2).rate(10**6) == 0.2
    inputs = {"x": torch.zeros((4000, 1))}
    usual = Training().batch_rows(4000)
    small, large = (Batches.in_memory(inputs, Training(validation=0), 0, size) for size in (100_000, 100_001))
    assert small.n_batches == round(4000 / usual)
    assert large.n_batches == round(4000 / (usual // 2))
    assert Batches.in_memory(inputs, Training(batch_size=100, validation=0), 0, 10**6).n_batches == 40
    assert len(Batches.in_memory(inputs, Training(validation=0.25)).apart) == 1000
    many = {"x": torch.zeros((100_000, 1))}
    assert len(Batches.in_memory(many, Training(validation=0.25)).apart) == 5000  # at most


def test_the_rate_rises_falls_and_ends_near_nothing():
    assert one_cycle(0) == pytest.approx(0.04)
    assert one_cycle(0.3) == pytest.approx(1)
    assert one_cycle(1) == one_cycle(2) == pytest.approx(one_cycle(1 - 1e-9), abs=1e-6)
    assert one_cycle(1) < 1e-3
    assert one_cycle(0.1, warm_up=0.1) == one_cycle(0, warm_up=0) == pytest.approx(1)
    for start, end in ((0.0, 0.3), (0.3, 1.0)):  # half-way between both ends, along cosines
        assert one_cycle((start + end) / 2) == pytest.approx((one_cycle(start) + one_cycle(end)) / 2)
        quarter = one_cycle(end) + (one_cycle(start) - one_cycle(end)) * (1 + math.cos(math.pi / 4)) / 2
        assert one_cycle(start + (end - start) / 4) == pytest.approx(quarter)


@pytest.mark.parametrize(
    "options",
    [
        {"max_epochs": 0}, {"max_epochs": 1.5}, {"patience": 0}, {"batch_size": 0}, {"surplus": -1}, {"restarts": 0},
        {"learning_rate": 0}, {"learning_rate": math.inf}, {"weight_decay": -0.1}, {"validation": 1},
        {"validation": 1.5}, {"validation": -0.1}, {"progress": 1}, {"precision": "8"}, {"accelerator": "abacus"},
        {"devices": 0}, {"devices": []}, {"devices": -2}, {"devices": [-1]}, {"devices": "two"}, {"devices": 1.0},
        {"checkpoint": 3}, {"warm_up": 1}, {"warm_up": -0.1}, {"auto_modes": 0},
    ],
)  # fmt: skip
def test_what_is_no_option_is_refused_by_name(options):
    (name,) = options
    with pytest.raises(ValueError, match=f"`{name}`"):
        Training(**options)


@pytest.mark.parametrize(
    "options",
    [{"devices": part} for part in (None, 1, -1, [0], [0, 1], "auto", "2", "-1")]
    + [{"surplus": 0}, {"weight_decay": 0}, {"validation": 0}, {"patience": 1}, {"progress": False}, {"max_epochs": 1}],
)
def test_what_is_an_option_is_taken(options):
    (name,) = options
    assert getattr(Training(**options), name) == options[name]


@pytest.mark.parametrize("levels", [[2], [1, 1], [1, 2]])
def test_contributions_of_rows_have_the_score_as_mean_and_are_its_influence(levels):
    rng = torch.Generator().manual_seed(0)
    nesting = Nesting(levels, weights=[1.0, 0.5][: len(levels)])
    f, g = (torch.randn((40, nesting.k), generator=rng, dtype=torch.float64) + 0.3 for _ in range(2))
    found = contributions(f, g, nesting)
    score = nested_h_score(f, g, nesting)
    assert float(found.mean()) == pytest.approx(float(score))
    # A row that counts a little more moves the score by its contribution less the mean: compare with copies of rows.
    for row in (0, 7):
        copies = 2000
        f_more, g_more = (torch.cat([z.repeat(copies, 1), z[[row]]]) for z in (f, g))
        moved = (float(nested_h_score(f_more, g_more, nesting)) - float(score)) * (40 * copies + 1)
        assert moved == pytest.approx(float(found[row] - found.mean()), rel=0.01, abs=0.01)
    assert np.isfinite(found.numpy()).all()
