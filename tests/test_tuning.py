"""Options hold inside a `with` block, are checked, and change what a fit does."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import featgeo as fg
from featgeo.tuning import in_force


def test_options_hold_inside_a_block_and_blocks_nest():
    with fg.options(finite_values=7):
        assert in_force.get() == fg.Options(finite_values=7)
        with fg.options(finite_values=9) as inner:
            assert in_force.get() is inner
            assert inner.finite_values == 9
        assert in_force.get().finite_values == 7
    assert in_force.get() == fg.Options()


def test_options_end_with_a_block_that_fails():
    with pytest.raises(KeyError), fg.options(finite_values=7):
        raise KeyError
    assert in_force.get() == fg.Options()


@pytest.mark.parametrize("value", [-1, 2.5, "many", True, float("nan"), None, (3,)])
def test_what_is_not_of_its_kind_is_refused(value):
    with (
        pytest.raises(ValueError, match=r"`finite_values` must be a whole number.* The default is 32"),
        fg.options(finite_values=value),
    ):
        pass


def test_unknown_names_and_late_changes_are_refused():
    with pytest.raises(TypeError, match="finite_valeus"), fg.options(finite_valeus=3):
        pass
    with pytest.raises(FrozenInstanceError):
        fg.Options().finite_values = 3


def test_a_fit_follows_them():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 12, 2000).astype(float)
    y = x % 3 + rng.normal(size=2000)
    alphabet = fg.ModalDecomposition(1, random_state=0).fit(x, y)
    with fg.options(finite_values=6):
        number = fg.ModalDecomposition(1, random_state=0).fit(x, y)
    assert alphabet.spaces_[0] == "table"
    assert number.spaces_[0] != "table"


def test_what_is_chosen_is_one_of_what_they_list():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 6, 600)
    y = (x + rng.integers(0, 2, 600)) % 6
    with fg.options(mode_counts=(2,), ridges=(0.5,)):
        exact = fg.ModalDecomposition("auto", random_state=0).fit(x, y)
        smooth = fg.ModalDecomposition("auto", "closed", "linear", "linear", random_state=0).fit(x.astype(float), y)
    assert exact.n_modes_ == 2
    assert smooth.learned_.ridge == 0.5


@pytest.mark.parametrize("kind", ["exact", "closed"])
def test_as_many_folds_judge_as_they_say(kind):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 4, 300)
    y = (x + rng.integers(0, 2, 300)) % 4
    with fg.options(folds=3):
        model = fg.ModalDecomposition(1, kind, random_state=0).fit(x, y)
    assert model.learned_.components[0].held_out_energies.shape == (3,)


def test_windows_and_forests_are_as_large_as_they_say():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 2, (200, 8))
    with fg.options(longest_window=2):
        windows = fg.ModalDecomposition(1, "closed", "windows", random_state=0).fit(x, x.sum(axis=1) > 4)
    assert windows.learned_.components[0].f.space.encoding.length == 2
    with fg.options(forest_trees=60, averaged_forests=2):
        trees = fg.ModalDecomposition(1, "closed", "trees", random_state=0).fit(x, x.sum(axis=1) > 4)
    assert [len(forest.models[0].roots) for forest in trees.learned_.components[0].f.space.sets] == [60, 60]


def test_tests_given_s_follow_them():
    rng = np.random.default_rng(0)
    s, x, y = rng.standard_normal((3, 200))
    every = fg.conditional_independence_test(x, y, s).statistic
    with fg.options(probe_waves=1, modulation=0.5):
        first = fg.conditional_independence_test(x, y, s).statistic
    with fg.options(probe_waves=1, modulation=0.5, index_waves=0, column_waves=0, most_jumps=0, undersmoothing=0):
        smooth = fg.conditional_independence_test(x, y, s).statistic
    assert 0 < first < every
    assert smooth != first


@pytest.mark.parametrize("given", ["numbers", "strata"])
def test_without_modulation_only_plain_products_count(given):
    rng = np.random.default_rng(0)
    s = rng.normal(size=6000) if given == "numbers" else rng.integers(0, 4, 6000)
    x, y = np.sin(s) + rng.normal(size=(2, 6000))
    with fg.options(modulation=0.0):
        plain = fg.conditional_independence_test(x, y, s)
    with fg.options(modulation=1e-9):
        hardly = fg.conditional_independence_test(x, y, s)
    assert plain.pvalue == pytest.approx(hardly.pvalue, rel=1e-4)
