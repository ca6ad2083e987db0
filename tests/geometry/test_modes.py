"""Conventions of modes: signs, symbols that never occur, equal singular values."""

import numpy as np
import pytest
from support import random_counts

from featgeo import FiniteJoint


def test_sign_makes_the_largest_entry_of_the_information_vector_positive():
    for seed in range(20):
        joint = FiniteJoint(random_counts(seed, (5, 4)))
        vectors = np.sqrt(joint.probability("x"))[:, None] * joint.modes().f
        assert np.all(vectors[np.argmax(np.abs(vectors), axis=0), range(vectors.shape[1])] > 0)


def test_sign_does_not_depend_on_rounding_when_entries_tie():
    table = np.array([[3, 1], [1, 3]])  # f = (1, -1): both entries tie
    for scale in (1, 1 / 3, 1e9, 1e-9):
        modes = FiniteJoint(table * scale).modes()
        np.testing.assert_allclose(modes.f[:, 0], [1, -1], atol=1e-12)
        np.testing.assert_allclose(modes.g[:, 0], [1, -1], atol=1e-12)
    for nudge in (1e-8, -1e-8):  # the larger entry changes sides, the sign stays
        assert FiniteJoint(table + np.diag([nudge, 0])).modes().f[0, 0] > 0


def test_symbols_that_never_occur_change_nothing_and_get_zero():
    counts = random_counts(0, (4, 3))
    holed = np.zeros((6, 4), dtype=int)
    holed[np.ix_([0, 2, 3, 5], [0, 1, 3])] = counts
    modes, whole = FiniteJoint(counts).modes(), FiniteJoint(holed).modes()
    np.testing.assert_allclose(whole.sigma, modes.sigma, atol=1e-14)
    np.testing.assert_allclose(whole.f[[0, 2, 3, 5]], modes.f, atol=1e-12)
    assert np.all(whole.f[[1, 4]] == 0)
    assert np.all(whole.g[2] == 0)


def test_equal_singular_values_come_in_blocks():
    # A cyclic random walk: its Fourier modes come in pairs of equal strength.
    walk = sum(w * np.roll(np.eye(7), shift, axis=1) for shift, w in ((-1, 0.25), (0, 0.5), (1, 0.25)))
    modes = FiniteJoint(walk).modes()
    assert modes.blocks() == (range(2), range(2, 4), range(4, 6))
    assert FiniteJoint(random_counts(0, (4, 4))).modes().blocks() == (range(1), range(1, 2), range(2, 3))


def test_top_refuses_more_modes_than_there_are():
    modes = FiniteJoint(random_counts(0, (4, 3))).modes()
    assert len(modes.top(None)) == len(modes) == 2
    for k in (3, 0):
        with pytest.raises(ValueError, match="modes"):
            modes.top(k)
