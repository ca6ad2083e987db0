"""Nesting configurations: their algebra and their rules."""

import pickle

import numpy as np
import pytest
import torch

from featgeo import Level, Nesting


def test_levels_hold_dims_spaces_and_weights():
    nesting = Nesting([2, 3], weights=[1, 0.5], x=[("a", "b"), ("a", "b", "ab")], y="y")
    assert nesting.k == 5
    assert nesting.dims == (2, 3)
    assert nesting.ends == (2, 5)
    assert nesting.weights == (1, 0.5)
    assert nesting.levels[1] == Level(3, ("a", "b", "ab"), ("y",), 0.5)
    assert nesting == Nesting(nesting.levels)
    assert hash(nesting) == hash(Nesting(nesting.levels))


def test_refinement_splits_levels_and_keeps_their_spaces():
    refined = Nesting([2, 1], weights=[3, 1], y=["s", ("s", "sy")]).refine()
    assert refined.dims == (1, 1, 1)
    assert [level.y for level in refined.levels] == [("s",), ("s",), ("s", "sy")]
    assert refined.weights == (3, 3, 1)
    assert refined.refine() == refined
    assert Nesting.modes(3) == Nesting([3]).refine()


def test_pair_weights_count_the_levels_that_hold_both_dimensions():
    rng = np.random.default_rng(0)
    for _ in range(20):
        dims = rng.integers(1, 4, rng.integers(1, 5)).tolist()
        nesting = Nesting(dims, rng.uniform(0.1, 2, len(dims)))
        expected = np.zeros((nesting.k, nesting.k))
        for weight, end in zip(nesting.weights, nesting.ends, strict=True):
            expected[:end, :end] += weight
        np.testing.assert_allclose(nesting.pair_weights, expected, atol=1e-14)


def test_spaces_may_grow_on_both_sides():
    nesting = Nesting([1, 1], x=["a", ("a", "b")], y=["s", ("s", "y")])
    assert nesting.levels[1].x == ("a", "b")


def test_spaces_are_what_the_closed_form_takes():
    nesting = Nesting([2, 1], y=["s", ("s", "sy")])
    assert nesting.spaces == ((("x",), ("s",)), (("x",), ("s", "sy")))


def test_numbers_of_any_kind_make_the_same_nesting():
    plain = Nesting([2, 1], [1.0, 0.5])
    for weights in (np.array([1, 0.5]), torch.tensor([1, 0.5]), (1, 0.5)):
        other = Nesting(np.array([2, 1]), weights)
        assert other == plain
        assert hash(other) == hash(plain)


def test_nesting_cannot_be_changed_and_travels_without_its_hash():
    nesting = Nesting([2, 1])
    with pytest.raises(ValueError, match="read-only"):
        nesting.pair_weights[0, 0] = 9
    before = pickle.dumps(Nesting([2, 1]))
    hash(nesting)  # it differs from process to process
    assert pickle.dumps(Nesting([2, 1])) == before
    assert pickle.loads(pickle.dumps(nesting)) == nesting  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "at least one level"),
        (([2, 0],), "at least 1"),
        (([2, -1],), "at least 1"),
        (([1.5],), "whole number"),
        (([True],), "whole number"),
        (([1, 2], [1]), "one entry a level: expected 2, got 1"),
        (([1, 2], [1, 0]), "strictly positive"),
        (([1, 2], [1, np.nan]), "strictly positive"),
        (([1, 2], None, ["a", "b"]), r"level 1 of x has \('b',\) and lacks \['a'\]"),
        (([1, 2], None, "x", [("s", "y"), "y"]), "level 1 of y"),
        (([1, 2], None, ["a", "a", "a"]), "one entry a level"),
        (([1, Level(2)],), "not both"),
        (([Level(2)], [1.0]), "bring their own"),
        (([1, 2], 2.0), "one entry a level"),
        (([1, 2], ["a", "b"]), "strictly positive"),
        (([1], None, ()), "at least one block"),
        ((None,), "must list the dimensions"),
        ((3,), r"Use Nesting\(\[3\]\)"),
        (([1], None, ("a", "a")), "differ"),
    ],
)
def test_rules_are_enforced_with_the_way_out(arguments, message):
    with pytest.raises(ValueError, match=message):
        Nesting(*arguments)


def test_modes_of_named_spaces_keep_their_names():
    assert Nesting.modes(2, x="a", y=("b", "c")) == Nesting([Level(1, "a", ("b", "c"))] * 2)
