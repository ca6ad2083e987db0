"""As many threads as there is work for, as there are cores, and as there were."""

from __future__ import annotations

import os

import pytest

from featgeo import watch


class Libraries:
    """Stands in for what looks for libraries: those that are there have so many threads each."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def info(self):
        return [{"num_threads": number} for number in self.numbers]

    def limit(self, *, limits=None):
        return limits


def granted(monkeypatch, cells, cores, *numbers):
    monkeypatch.setattr(watch, "_controller", lambda: Libraries(*numbers))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(cores) if process == 0 else (), raising=False)
    return watch.bounded_threads(cells)


@pytest.mark.parametrize(
    ("cells", "cores", "libraries", "due"),
    [
        (0, 8, (16,), 1),
        (999_999, 8, (16,), 1),
        (1_000_000, 8, (16,), 2),  # half a million a thread
        (1_500_000, 8, (16, 4), 3),
        (float("inf"), 8, (16,), 8),
        (float("inf"), 8, (3, 6), 6),  # never more than they had
        (float("inf"), 8, (1,), 1),
        (float("inf"), 8, (), 1),
    ],
)
def test_threads_by_cells_cores_and_what_there_was(monkeypatch, cells, cores, libraries, due):
    assert granted(monkeypatch, cells, cores, *libraries) == due


@pytest.mark.parametrize(("count", "due"), [(5, 5), (None, 1)])
def test_cores_where_the_system_does_not_say_which_are_ours(monkeypatch, count, due):
    monkeypatch.setattr(watch, "_controller", lambda: Libraries(16))
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert watch.bounded_threads(1e12) == due
    assert watch.bounded_threads() == 1
