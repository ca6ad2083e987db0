"""Spaces over groups of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from support import random_counts, rows

from featgeo import FiniteJoint, Joint, ModalDecomposition, Sum, load


def _table() -> tuple[np.ndarray, pd.DataFrame, np.ndarray]:
    counts = random_counts(0, (3, 4, 3))
    a, b, y = (part.numpy() for part in rows(counts))
    return counts, pd.DataFrame({"a": a, "b": b}), y


@pytest.mark.parametrize("given", [lambda frame: frame, lambda frame: frame.to_numpy()], ids=["frame", "array"])
def test_sums_and_joints_of_tables_are_the_exact_components(given):
    counts, frame, y = _table()
    joint = FiniteJoint(counts, names=("a", "b", "y"))
    exact = joint.multimodal(["a", "b"], "y")
    X = given(frame)
    names = ["a", "b"] if isinstance(X, pd.DataFrame) else [0, 1]
    parts = [(name, "table") for name in names]
    added = ModalDecomposition(2, solver="closed", x_space=Sum(parts), y_space="table").fit(X, y)
    np.testing.assert_allclose(added.singular_values_, exact.bivariate.sigma, atol=1e-3)
    together = ModalDecomposition(2, solver="closed", x_space=Joint(parts), y_space="table").fit(X, y)
    np.testing.assert_allclose(together.singular_values_, joint.modes(x=("a", "b"), y="y").sigma, atol=2e-3)


def test_they_are_saved_and_loaded(tmp_path):
    _, frame, y = _table()
    model = ModalDecomposition(1, x_space=Joint([("a", "table"), (["b"], "linear")])).fit(frame, y)
    model.save(tmp_path / "model.fg")
    np.testing.assert_array_equal(load(tmp_path / "model.fg").transform(frame), model.transform(frame))


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Sum([]), "at least one"),
        (Sum([("nowhere", "table")]), "no columns"),
        (Joint([("a", "network")]), "given"),
        (Joint([("a", "table")] * 7), "products"),
    ],
)
def test_impossible_combinations_are_refused(space, message):
    _, frame, y = _table()
    with pytest.raises(ValueError, match=message):
        ModalDecomposition(1, x_space=space).fit(frame, y)
