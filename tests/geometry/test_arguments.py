"""Each kind of argument: what is taken, as what, and what a message says."""

from __future__ import annotations

import numpy as np
import pytest

from featgeo.geometry import validation
from featgeo.nesting import Level

WHOLE = {"name": "k", "least": 2, "way_out": "Use 3."}


def whole(value, most=None):
    return validation.check_whole(value, most=most, **WHOLE)


def test_whole_numbers():
    assert [whole(value) for value in (2, np.int8(7), 10**30)] == [2, 7, 10**30]
    assert whole(9, most=9) == 9
    for value in (1, True, np.True_, 2.0, "2", None, np.nan):
        with pytest.raises(ValueError, match=r"^`k` must be a whole number, at least 2, got .*\. Use 3\.$"):
            whole(value)
        with pytest.raises(ValueError, match=r"^`k` must be a whole number, between 2 and 9, got .*\. Use 3\.$"):
            whole(value, most=9)
    with pytest.raises(ValueError, match="between 2 and 9, got 10"):
        whole(10, most=9)


def test_counts_are_whole_numbers_or_words():
    assert validation.check_count(1, "n") == 1
    assert validation.check_count(np.int64(5), "n") == 5
    assert validation.check_count("auto", "n") == "auto"
    assert validation.check_count("all", "n", ("auto", "all")) == "all"
    for value in (0, -1, True, 1.0, "all", None):
        with pytest.raises(ValueError, match=r"at least 1, or 'auto', got .*Use 'auto' to let held-out rows choose"):
            validation.check_count(value, "n")
    with pytest.raises(ValueError, match=r"or 'auto' or 'all', got 0\. Use 'auto' to let held-out rows choose\.$"):
        validation.check_count(0, "n", ("auto", "all"))


def test_numbers_with_a_least_one():
    rule = {"name": "a", "rule": "a rule", "way_out": "Way out."}
    assert validation.check_number(0, **rule) == 0.0
    assert validation.check_number(np.float32(0.5), **rule) == 0.5
    assert validation.check_number(0.9, **rule, below=1.0) == 0.9
    assert validation.check_number(1e308, **rule, above=True) == 1e308
    for value in (-0.1, np.nan, np.inf, -np.inf, True, "1", None, 1j, 10**400):
        with pytest.raises(ValueError, match=r"^`a` must be a rule, got .*\. Way out\.$"):
            validation.check_number(value, **rule)
    with pytest.raises(ValueError, match="got 0"):
        validation.check_number(0, **rule, above=True)
    with pytest.raises(ValueError, match="got 1"):
        validation.check_number(1, **rule, below=1.0)


def test_levels_lie_between_0_and_1():
    assert validation.check_level(np.float64(0.5), "level", "") == 0.5
    for value in (0, 1, -0.1, 1.1, np.nan, True, "0.5", None):
        with pytest.raises(ValueError, match="between 0 and 1, got"):
            validation.check_level(value, "level", "")


def test_choices_and_flags():
    assert validation.check_choice("b", "c", ("a", "b", "d")) == "b"
    for value in ("x", 1, None, ["a"]):
        with pytest.raises(ValueError, match=r"^`c` must be 'a', 'b' or 'd', got "):
            validation.check_choice(value, "c", ("a", "b", "d"))
    assert validation.check_flag(np.False_, "f") is False
    assert validation.check_flag(True, "f") is True
    for value in (0, 1, "no", None):
        with pytest.raises(ValueError, match="`f` must be True or False, got"):
            validation.check_flag(value, "f")


def test_seeds_are_numbers_or_are_drawn():
    assert [validation.seed_of(value) for value in (None, 0, 7, np.int64(7))] == [0, 0, 7, 7]
    assert validation.seed_of(validation.MOST_SEED - 1) == validation.MOST_SEED - 1
    large = [validation.seed_of(validation.MOST_SEED + i) for i in range(5)]
    assert len(set(large)) == 5
    assert all(0 <= seed < validation.MOST_SEED for seed in large)
    for kind in (np.random.default_rng, np.random.RandomState):
        one, other = kind(3), kind(3)
        drawn = [validation.seed_of(one) for _ in range(3)]
        assert drawn == [validation.seed_of(other) for _ in range(3)]
        assert len(set(drawn)) == 3
    for value in (-1, True, 1.5, "a"):
        with pytest.raises(ValueError, match="`random_state` must be None, a whole number"):
            validation.seed_of(value)
    generator = np.random.default_rng(0)
    assert validation.generator_of(generator) is generator
    assert validation.generator_of(5).random() == np.random.default_rng(5).random()
    assert validation.generator_of(None).random() == np.random.default_rng(0).random()


def test_numbers_or_vectors_of_them():
    for value in (3, 2.5, [1, 2], np.arange(3, dtype=np.int8)):
        found = validation.as_numbers(value, "y", "")
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, value)
    for value in ("3", True, [True], [[1.0]], [1, [2]], None, 1j):
        with pytest.raises(ValueError, match="`y` must be a number or a vector of numbers, got"):
            validation.as_numbers(value, "y", "")
    with pytest.raises(ValueError, match="`y` holds NaN"):
        validation.as_numbers([1, np.nan], "y", "")


def test_a_level_counts_once_unless_told():
    assert Level(2) == Level(2, "x", "y", 1.0)
