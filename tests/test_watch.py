"""Progress and time limits of a fit."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import featgeo as fg
from featgeo import watch
from featgeo.watch import _controller, bounded_threads

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
    assert any(learned in patient for learned in ("metric", "forest", "trees"))


def test_many_rows_and_no_time_rest_on_some_of_them(monkeypatch):
    monkeypatch.setattr("featgeo.learning.closed.PATIENT_ROWS", 600)
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


# The watch itself, without an estimator that takes its time.


class Told:
    """An estimator whose fit says what it meets."""

    def __init__(self, inner=None, verbose=1, time_limit=None):
        self.inner, self.verbose, self.time_limit = inner, verbose, time_limit

    @watch.watched
    def fit(self, step, *, more=""):
        """Fit."""
        watch.tell(step + more)
        if self.inner is not None:
            return self.inner.fit(step)
        return watch._current.get()


def test_a_fit_inside_another_has_the_clock_of_the_outer_one():
    assert Told.fit.__doc__ == "Fit."
    alone, inside = Told(time_limit=7.0).fit("a", more="b"), Told(Told(time_limit=7.0), 0, 1e6).fit("a")
    assert (alone.what, alone.step) == ("Told", "ab")
    assert alone.end == alone.start + 7.0
    assert inside.end == inside.start + 1e6
    assert Told().fit("a").end == float("inf")
    assert watch._current.get() is watch._NOBODY
    with pytest.raises(ValueError, match="time_limit"):
        Told(Told(time_limit=-1.0)).fit("a")
    assert watch._current.get() is watch._NOBODY  # an error ends the watch, too


def test_time_is_left_until_the_end_and_always_where_nobody_watches(monkeypatch):
    assert watch.is_time_left()
    now = [100.0]
    monkeypatch.setattr(watch, "monotonic", lambda: now[0])
    with watch.Watch("fit", 0, 5.0):
        for now[0], left in ((100.0, True), (104.9, True), (105.0, False), (106.0, False)):
            assert watch.is_time_left() == left
    assert watch.is_time_left()


@pytest.mark.parametrize(
    ("verbose", "stream", "notebook", "is_shown"),
    [
        (0, Terminal, True, False),
        (1, io.StringIO, False, False),
        (1, Terminal, False, True),
        (1, io.StringIO, True, True),
        (2, io.StringIO, False, True),
    ],
)
def test_who_is_shown_what_goes_on(monkeypatch, verbose, stream, notebook, is_shown):
    monkeypatch.setattr(sys, "stderr", stream())
    if notebook:
        shell = SimpleNamespace(kernel=None)
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    else:
        monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not watch.is_quiet()
    assert watch.Watch("fit").shown == watch.Watch("fit", 1).shown
    with watch.Watch("fit", verbose) as current:
        assert current.shown == is_shown
        assert watch.is_quiet() != is_shown
        assert current._thread.is_alive() == is_shown
    assert not current._thread.is_alive()
    assert sys.stderr.getvalue() == ""  # it did not take two seconds


class Looks:
    """Stands in for the end of a fit, which comes after some looks; what was shown by then is noted."""

    def __init__(self, steps, current, clock):
        self.steps, self.current, self.clock, self.waits = list(steps), current, clock, []

    def wait(self, seconds):
        self.waits.append(seconds)
        self.clock[0] += seconds
        if not self.steps:
            return True
        self.current.step = self.steps.pop(0)
        return False


def test_one_line_says_what_goes_on_since_when_and_is_wiped_out(monkeypatch):
    clock, stream = [50.0], Terminal()
    monkeypatch.setattr(watch, "monotonic", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", stream)
    current = watch.Watch("Model", 2)
    current._over = Looks(["", "a longer step", "step", "", "", "last"], current, clock)
    current._show()
    assert current._over.waits == [2.0, *[0.5] * 6]
    longer = "Model: a longer step (2 s)"
    short, last = "Model: step (3 s)".ljust(len(longer)), "Model: last (4 s)"
    wiped = f"\r{' ' * len('Model: step (3 s)')}\r"
    assert stream.getvalue() == f"\r{longer}\r{short}{wiped}\r{last}\r{' ' * len(last)}\r"
