"""Numbers that steer distributions and reports are those of the options in force."""

from __future__ import annotations

import numpy as np
import pytest
from support import support_of_numbers

import featgeo as fg
from featgeo.assembly.calibration import Calibration, losses
from featgeo.assembly.links import ExponentialLink, LinearLink, Recalibration, Support
from featgeo.learning.learned import Component
from featgeo.models.base import DependenceComponent
from featgeo.models.leakage import Leakage

LABELS = Support("labels", np.arange(3), np.array([0.2, 0.5, 0.3]), np.zeros((3, 1)))
RNG = np.random.default_rng(0)
F = RNG.standard_normal((100, 1))


def test_how_many_rows_calibrate_and_what_no_row_shows():
    index = 2 * (F[:, 0] > 0).astype(int)
    with fg.options(calibrating_rows=101):
        assert Calibration.fit(LABELS, F, index).link == LinearLink()
    with fg.options(unseen_ratio=1e-3):
        assert ExponentialLink.fit(F, index, LABELS).bias[1] == pytest.approx(np.log(1e-3 / 0.5))
    with fg.options(least_probability=0.25):
        assert losses(np.array([[0.1, 0.4, 0.5]]), np.array([0]), LABELS)[0] == pytest.approx(np.log(4))


def test_atoms_and_tails_of_numbers():
    values = np.concatenate([RNG.standard_normal(400), np.zeros(200)])

    def of_values() -> Support:
        return support_of_numbers(values, lambda index: values[index, None])

    assert (np.diff(of_values().ends, axis=1) == 0).sum() == 1
    with fg.options(atom_rows=1000):
        assert not (np.diff(of_values().ends, axis=1) == 0).any()
    pit = RNG.random(10_000)
    few = len(Recalibration.fit(pit).predicted)
    with fg.options(tail_rows=1):
        assert len(Recalibration.fit(pit).predicted) > few


def test_limits_and_doubts_of_reports():
    found = Leakage(0.2, 0.01, 0.1, 0.02, 0.5, 0.05)
    with fg.options(confidence=0.5):
        assert found.linear_upper == pytest.approx(0.2)
    part = Component(np.array([0.9]), None, None, np.zeros((2, 1)), np.array([0.1, 0.3]), None)
    with fg.options(doubt_errors=5):
        assert DependenceComponent.of("main", part).doubt is None
    with fg.options(doubt_errors=1):
        assert DependenceComponent.of("main", part).doubt.endswith("less than half of it")


def test_how_often_histories_must_come_back():
    model = fg.SequentialDecomposition([1, 3], training=fg.Training(max_epochs=1), verbose=0)
    symbols = RNG.integers(0, 5, 600)
    assert model.fit(symbols).solver_ != "neural"
    with fg.options(rows_a_history=50):
        assert model.fit(symbols).solver_ == "neural"
