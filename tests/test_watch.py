"""Progress and time limits of a fit."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import featgeo as fg
from featgeo import watch
from featgeo.threads import _controller, bounded_threads

rng = np.random.default_rng(0)
X = rng.normal(size=(700, 3))
y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=700)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, stream, **options):
    monkeypatch.setattr(watch, "PATIENCE", 0.0)
    monkeypatch.setattr(watch, "INTERVAL", 0.01)
    monkeypatch.setattr(sys, "stderr", stream)
    fg.ModalDecomposition(1, x_space="index", random_state=0, **options).fit(X, y)
    return stream.getvalue()


def test_a_terminal_shows_one_line_that_is_gone_in_the_end(monkeypatch):
    text = shown(monkeypatch, Terminal())
    assert "ModalDecomposition: " in text
    assert "index" in text
    assert "\n" not in text
    assert text.endswith(" \r")


@pytest.mark.parametrize(("stream", "options"), [(io.StringIO, {}), (Terminal, {"verbose": 0})])
def test_nothing_is_shown_where_nobody_looks_or_wants_it(monkeypatch, stream, options):
    assert shown(monkeypatch, stream(), **options) == ""


def test_two_shows_it_everywhere(monkeypatch):
    assert "ModalDecomposition: " in shown(monkeypatch, io.StringIO(), verbose=2)


def test_time_that_is_up_keeps_the_best_so_far():
    steps = X[:, 0] * (X[:, 1] > 0) > 0.2
    hurried, patient = (
        fg.FeatureClassifier(random_state=0, time_limit=limit).fit(X, steps).spaces_[0] for limit in (1e-6, 1e6)
    )
    assert hurried == "linear" or hurried.startswith("kernel")
    assert patient == "trees"


def test_many_rows_and_no_time_rest_on_some_of_them(monkeypatch):
    monkeypatch.setattr("featgeo.learning.learn.PATIENT_ROWS", 600)
    with pytest.warns(UserWarning, match="600 of them"):
        fg.FeatureRegressor(random_state=0, time_limit=1e-6).fit(X, y)


def test_training_stops_after_the_epoch_in_which_time_is_up():
    model = fg.ModalDecomposition(1, "neural", x_space="network", y_space="network", time_limit=1e-6, random_state=0)
    model.set_params(training=fg.Training(max_epochs=50))
    with watch.Watch("test", 0, 1e-6):
        from featgeo.learning import train

        epochs = []
        original = train.Run._epoch
        train.Run._epoch = lambda self, *a: (epochs.append(1), original(self, *a))[1]
        try:
            model.fit(X[:, :1], y)
        finally:
            train.Run._epoch = original
    assert len(epochs) == 1


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_limit_is_a_positive_number_of_seconds(limit):
    with pytest.raises(ValueError, match="time_limit"):
        fg.ModalDecomposition(time_limit=limit).fit(X, y)


@pytest.mark.parametrize("verbose", [True, 3, -1, "1"])
def test_verbose_is_0_1_or_2(verbose):
    with pytest.raises(ValueError, match="verbose"):
        fg.MultimodalDecomposition(verbose=verbose).fit({"a": X}, y)


def test_few_cells_are_for_one_thread():
    def threads():
        return max(library["num_threads"] for library in _controller().info())

    before = threads()
    with bounded_threads(1000):
        assert threads() == 1
    assert threads() == before
