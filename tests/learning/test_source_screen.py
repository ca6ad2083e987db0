"""Which groups of sources are worth learning: the most useful first, as far as held-out rows and room allow."""

from __future__ import annotations

import numpy as np
import pytest

from featgeo import ModalDecomposition, Options
from featgeo.features.variables import Candidate
from featgeo.learning import closed, sources
from featgeo.learning.sources import MOST_FUNCTIONS, MOST_JOINT, worthwhile


class Blocks:
    """Stands in for the functions of sources."""

    exact = False

    def products(self, group):
        return " x ".join(group)

    def joint(self, group):
        return f"({', '.join(group)})"

    def of_group(self, group):
        return [f"table of {group}"]


def chosen(monkeypatch, found, sizes=None):
    """What is chosen where groups have these gains, errors and left-overs, and their products these sizes."""

    def tried(_, group):
        gain, error, left_over = found[group]
        by_fold = np.array([gain - error, gain + error])
        return Candidate(group, sizes[group] if sizes else 1, by_fold), left_over

    monkeypatch.setattr(sources, "_tried", tried)
    return worthwhile(Blocks(), list(found))


A, B, C, D = ("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")


def test_clear_gains_are_kept_the_largest_first(monkeypatch):
    found = {A: (0.1, 0.05, 0.0), B: (0.3, 0.1, 0.0), C: (0.2, 0.25, 0.0), D: (0.15, 0.15, 0.0)}
    assert chosen(monkeypatch, found) == ["a x c", "a x b"]  # others are within their error
    assert chosen(monkeypatch, {A: (-0.2, 0.1, 0.0), B: (-0.1, 0.1, 0.0)}) == ["a x c"]  # one always


def test_no_more_functions_than_there_is_room_for(monkeypatch):
    found = {A: (0.3, 0.1, 0.0), B: (0.2, 0.1, 0.0), C: (0.15, 0.1, 0.0)}
    assert chosen(monkeypatch, found, {A: MOST_FUNCTIONS - 5, B: 5, C: 1}) == ["a x b", "a x c"]
    assert chosen(monkeypatch, found, {A: 2 * MOST_FUNCTIONS, B: 5, C: 1}) == ["a x b"]


def test_groups_that_know_more_together_are_learned_together_the_clearest_first(monkeypatch):
    found = {group: (0.0, 1.0, Options().group_errors + i) for i, group in enumerate((A, B, C, D))}
    _, *joint = chosen(monkeypatch, found)
    clearest = [f"({', '.join(group)})" for group in (D, C, B)]  # at the bound itself it is not clear
    assert joint == clearest[:MOST_JOINT]


def test_tables_are_kept_whole(monkeypatch):
    monkeypatch.setattr(Blocks, "exact", True)
    assert worthwhile(Blocks(), [A, B]) == [f"table of {A}", f"table of {B}"]


def test_a_rare_symbol_has_a_function_of_its_own_however_few_rows_fit_spaces(monkeypatch):
    monkeypatch.setattr(closed, "SPACE_ROWS", 30)
    rng = np.random.default_rng(0)
    x = np.repeat(list("abc"), [200, 197, 3])
    y = rng.standard_normal(400) + (x == "b") + 5 * (x == "c")
    model = ModalDecomposition(1, "closed", x_space="table", random_state=0).fit(x, y)
    rare, common, unknown = np.abs(model.transform(np.array(["c", "a", "zzz"]))[:, 0])
    assert rare > 3 * common
    assert unknown == pytest.approx(0, abs=1e-6)
