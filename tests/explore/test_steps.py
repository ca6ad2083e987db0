"""Functions in steps: what they span, where they step, and that cells end there."""

import numpy as np
import pandas as pd
import pytest

import featgeo as fg
from featgeo.explore.steps import split


def test_each_split_brings_a_function_that_is_orthonormal_to_all_others():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 30, (5, 40)).astype(float)
    functions = split(rng.standard_normal((5, 40, 4)) * np.sqrt(rows)[..., None], rows)
    shares = rows / rows.sum(axis=1, keepdims=True)
    n = functions.shape[2]
    assert np.einsum("na,nak,nal->nkl", shares, functions, functions) == pytest.approx(np.tile(np.eye(n), (5, 1, 1)))
    assert np.einsum("na,nak->nk", shares, functions) == pytest.approx(np.zeros((5, n)))
    for k in range(1, n + 1):  # the first k are constant on k + 1 intervals, cells without rows not counted
        for own, there in zip(functions[..., :k], rows > 0, strict=True):
            assert np.any(np.diff(own[there], axis=0), axis=1).sum() == k


def stepped(rng, n, jump, strength):
    """x uniform, y another uniform that is small more often where x is above the jump."""
    x = rng.uniform(size=n)
    y = rng.uniform(size=n) ** np.where(x > jump, 1 + strength, 1.0)
    return pd.DataFrame({"x": x, "y": y})


def test_a_cell_ends_where_another_column_jumps():
    jump = 0.31416
    frame = stepped(np.random.default_rng(1), 20_000, jump, 8.0)
    pair = fg.explore(frame).pair("x", "y")
    edges = pair.a.column.edges
    assert np.abs(edges - jump).min() < 5e-4  # of cells that are 4e-3 wide
    assert (np.diff(edges) > 0).all()
    assert (pair.a.column.spans[:-1, 1] <= edges).all()
    f = pair.a.functions[pair.a.column.of_numbers(frame.x.to_numpy()), 0]
    assert abs(np.corrcoef(f, frame.x > jump)[0, 1]) > 0.999


def test_cells_of_columns_that_nothing_jumps_along_stay():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((20_000, 2))
    alone, beside = (
        fg.explore(pd.DataFrame(x, columns=["a", "b"])[list(names)]).counts.columns for names in ("a", "ab")
    )
    assert np.array_equal(alone[0].edges, beside[0].edges)


def test_weak_steps_are_told_from_waves():
    """Few rows speak for the step, so that functions on many intervals, or many waves, would mostly show noise."""
    frame = stepped(np.random.default_rng(3), 30_000, 0.7, 0.5)
    pair = fg.explore(frame).pair("x", "y")
    f = pair.a.functions[pair.a.column.of_numbers(frame.x.to_numpy()), 0]
    assert abs(np.corrcoef(f, frame.x > 0.7)[0, 1]) > 0.99
