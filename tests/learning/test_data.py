"""Rows in memory, rows that miss variables, and streams: every row once, and pairs stay pairs."""

import numpy as np
import pandas as pd
import pytest

from featgeo import ModalDecomposition
from featgeo.features.variables import Variable
from featgeo.learning.data import CHUNK_ROWS, Incomplete, Pairs, Stream, rows_by_pattern


def test_patterns_of_rows():
    has = np.array([[1, 0], [1, 1], [1, 0], [0, 0]], dtype=bool)
    found = {tuple(pattern): index.tolist() for pattern, index in rows_by_pattern(has)}
    assert found == {(True, False): [0, 2], (True, True): [1], (False, False): [3]}
    assert list(rows_by_pattern(np.empty((0, 2), dtype=bool))) == []
    wide = np.random.default_rng(10).random((200, 12)) < 0.5
    assert sorted(np.concatenate([index for _, index in rows_by_pattern(wide)])) == list(range(200))
    for pattern, index in rows_by_pattern(wide):
        assert (wide[index] == pattern).all()


def _pairs(n: int) -> Pairs:
    return Pairs(*(Variable.seen(z, name).rows(z) for name, z in (("X", np.arange(n)), ("Y", -np.arange(n)))))


def _numbers(rows) -> list[float]:
    return rows.table.numbers[:, 0].tolist()


def test_chunks_are_all_rows_in_order_and_samples_keep_pairs():
    pairs = _pairs(100)
    assert [len(chunk) for chunk in pairs.chunks(40)] == [40, 40, 20]
    assert [number for chunk in pairs.chunks(40) for number in _numbers(chunk.x)] == list(range(100))
    assert len(list(_pairs(40).chunks(40))) == 1
    sample = pairs.sample(10, seed=0)
    assert len(set(_numbers(sample.x))) == 10
    assert _numbers(sample.y) == [-number for number in _numbers(sample.x)]
    assert _numbers(sample.x) == sorted(_numbers(sample.x))
    assert pairs.sample(100, seed=0) is pairs


def test_incomplete_rows_are_taken_where_they_are():
    has = {"a": [0, 1, 3], "b": [1, 2, 3], "y": [0, 1, 3]}
    rows, where = {}, {}
    for name, index in has.items():
        values = 10.0 * np.array(index)
        rows[name] = Variable.seen(values, name).rows(values)
        where[name] = np.full(5, -1)
        where[name][index] = np.arange(3)
    incomplete = Incomplete(rows, where)
    assert len(incomplete) == 5
    assert incomplete.having("a", "b").tolist() == [1, 3]
    assert _numbers(incomplete.take(np.array([3, 1]), "b").of("b")) == [30, 10]
    pairs = incomplete.pairs(np.array([1, 3]), ("a", "b"))
    np.testing.assert_array_equal(pairs.x.table.numbers, [[10, 10], [30, 30]])
    assert _numbers(pairs.y) == [10, 30]
    groups = [(names, index.tolist()) for index, names in incomplete.groups()]
    assert groups[0] == (("a", "b", "y"), [1, 3])
    assert sorted(groups[1:]) == [(("a", "y"), [0]), (("b",), [2])]  # and nothing of the row that has nothing


def test_a_stream_is_read_whole_and_again_where_it_can_be():
    batches = [(np.arange(i, i + 3.0), np.arange(i, i + 3.0)) for i in (0, 3, 6)]
    stream = Stream(batches, head_rows=4)
    assert _numbers(stream.head.x) == [0, 1, 2, 3, 4, 5]
    for _ in range(2):
        assert [number for chunk in stream.chunks() for number in _numbers(chunk.y)] == list(range(9))
    assert stream.starts_alike
    once = Stream(iter(batches), head_rows=4)
    assert not once.starts_alike
    assert [number for chunk in once.chunks() for number in _numbers(chunk.y)] == list(range(9))
    with pytest.raises(ValueError, match="only once"):
        list(once.chunks())

    class Shuffled:
        def __init__(self):
            self.passes = 0

        def __iter__(self):
            self.passes += 1
            return iter(batches[self.passes :] + batches[: self.passes])

    assert not Stream(Shuffled(), head_rows=4).starts_alike


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
