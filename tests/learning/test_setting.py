"""A setting is its levels: what each may use, and what options make of numbers of rows and of parameters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from featgeo import Training
from featgeo.learning.batches import Batches
from featgeo.learning.setting import (
    LARGE_NETWORK_RATE,
    MOST_APART,
    SMALL_NETWORK,
    SMALL_NETWORK_RATE,
    Block,
    Setting,
    Step,
)

SETTING = Setting(
    {"a": Block("spline"), "b": Block("kernel")},
    {"s": Block("table"), "y": Block("table")},
    (Step(2, ("a",), ("s",)), Step("auto", ("b",)), Step("all", (), ("y",))),
)


def test_levels_may_use_what_they_and_those_before_them_add():
    assert SETTING.spaces() == [(("a",), ("s",)), (("a", "b"), ("s",)), (("a", "b"), ("s", "y"))]
    assert SETTING.spaces({"b": "better"})[1] == (("a", "better"), ("s",))


def test_blocks_know_their_side_and_the_last_is_the_richest():
    assert {name: block.space for name, block in SETTING.blocks.items()} == {
        "a": "spline", "b": "kernel", "s": "table", "y": "table",
    }  # fmt: skip
    assert [name in SETTING.x for name in SETTING.blocks] == [True, True, False, False]
    assert SETTING.richest == ("b", "y")
    assert not SETTING.is_bivariate
    plain = Setting.bivariate(3, "spline", "table")
    assert plain.is_bivariate
    assert plain.spaces() == [(("x",), ("y",))]
    assert (plain.x["x"].space, plain.y["y"].space) == ("spline", "table")


@pytest.mark.parametrize(
    ("parameters", "rate"), [(SMALL_NETWORK, SMALL_NETWORK_RATE), (SMALL_NETWORK + 1, LARGE_NETWORK_RATE)]
)
def test_large_networks_take_smaller_steps_and_batches(parameters, rate):
    assert Training().rate(parameters) == rate
    assert Training(learning_rate=0.3).rate(parameters) == 0.3
    n = 20_000
    batches = Batches.in_memory({"x": torch.zeros(n, 1)}, Training(), 0, parameters)
    size = (n - len(batches.apart)) / batches.n_batches
    expected = Training().batch_rows(n) // (1 if parameters <= SMALL_NETWORK else 2)
    assert size == pytest.approx(expected, rel=0.02)
    assert len(batches.apart) == 2000
    fixed = Batches.in_memory({"x": torch.zeros(1000, 1)}, Training(batch_size=100), 0, parameters)
    assert fixed.n_batches == 9


def test_no_more_rows_are_kept_apart_than_judge_well():
    n = 20 * MOST_APART
    assert len(Batches.in_memory({"x": torch.zeros(n, 1)}, Training()).apart) == MOST_APART
    apart = np.array([5, 9])
    found = Batches.in_memory({"x": torch.zeros(60, 1)}, Training(), apart=apart)
    np.testing.assert_array_equal(found.apart, apart)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_epochs": 0},
        {"patience": 0},
        {"surplus": -1},
        {"restarts": 0},
        {"batch_size": 1},
        {"learning_rate": 0},
        {"learning_rate": float("inf")},
        {"weight_decay": -0.1},
        {"weight_decay": None},
        {"validation": 1},
        {"validation": -0.1},
        {"surplus": None},
        {"restarts": True},
    ],
    ids=str,
)
def test_options_out_of_range_are_named(wrong):
    with pytest.raises(ValueError, match=f"`{next(iter(wrong))}`"):
        Training(**wrong)


@pytest.mark.parametrize(
    "right", [{"surplus": 0}, {"weight_decay": 0}, {"validation": 0}, {"patience": 1}, {"max_epochs": None}], ids=str
)
def test_options_at_the_edge_are_fine(right):
    ((name, value),) = right.items()
    assert getattr(Training(**right), name) == value
