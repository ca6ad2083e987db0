"""Rows that miss variables, gathered by what they have."""

import numpy as np
import pandas as pd
import pytest

from featgeo import ModalDecomposition
from featgeo.learning.data import CHUNK_ROWS, rows_by_pattern


def test_patterns_of_rows():
    has = np.array([[1, 0], [1, 1], [1, 0], [0, 0]], dtype=bool)
    found = {tuple(pattern): index.tolist() for pattern, index in rows_by_pattern(has)}
    assert found == {(True, False): [0, 2], (True, True): [1], (False, False): [3]}
    assert list(rows_by_pattern(np.empty((0, 2), dtype=bool))) == []
    wide = np.random.default_rng(10).random((200, 12)) < 0.5
    assert sorted(np.concatenate([index for _, index in rows_by_pattern(wide)])) == list(range(200))
    for pattern, index in rows_by_pattern(wide):
        assert (wide[index] == pattern).all()


def _late_labels(n: int = 70_000, batch: int = 7_000) -> tuple[list[tuple[np.ndarray, np.ndarray]], float]:
    """Batches whose labels "c" and "d" come after the rows that spaces are learned from; and the true sigma."""
    rng = np.random.default_rng(0)
    late = np.arange(n) >= CHUNK_ROWS + 500
    x = np.where(late, rng.choice(["c", "d"], n), rng.choice(["a", "b"], n))
    y = (x == "d") + rng.random(n) / 4
    between = sum((x == label).mean() * (y[x == label].mean() - y.mean()) ** 2 for label in "abcd")
    return [(x[i : i + batch], y[i : i + batch]) for i in range(0, n, batch)], float(np.sqrt(between / y.var()))


@pytest.mark.parametrize("kind", [list, lambda batches: [(pd.Series(x, dtype="category"), y) for x, y in batches]])
def test_labels_that_come_late_in_a_stream_are_known(kind):
    batches, sigma = _late_labels(batch=1_000)
    model = ModalDecomposition(1, y_space="linear").fit(kind(batches))
    assert model.singular_values_[0] == pytest.approx(sigma, abs=1e-3)
    assert {column.categories for column in model.x_variable_.columns} == {("a", "b", "c", "d")}


def test_late_labels_of_batches_that_come_only_once_are_refused():
    batches, _ = _late_labels(batch=1_000)
    with pytest.raises(ValueError, match="did not show"):
        ModalDecomposition(1, y_space="linear").fit(iter(batches))


def test_batches_of_frames_whose_columns_come_in_another_order():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(300), "b": rng.random(300)})
    y = frame["a"] + rng.random(300)
    one = [(frame[:100], y[:100]), (frame[100:][["b", "a"]], y[100:])]
    model = ModalDecomposition(1, x_space="linear", y_space="linear")
    sigma = model.fit(one).singular_values_
    np.testing.assert_allclose(sigma, model.fit([(frame[:100], y[:100]), (frame[100:], y[100:])]).singular_values_)
    with pytest.raises(ValueError, match="same columns"):
        model.fit([(frame[:100], y[:100]), (frame[100:].rename(columns={"a": "c"}), y[100:])])
