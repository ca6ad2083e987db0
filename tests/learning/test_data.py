"""Rows in memory, rows that miss variables, and streams: every row once, and pairs stay pairs."""

import numpy as np
import pytest

from featgeo.features.variables import Variable
from featgeo.learning import data
from featgeo.learning.data import Incomplete, Pairs, Stream, rows_by_pattern


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


def test_chunks_are_all_rows_in_order_and_samples_keep_pairs(monkeypatch):
    monkeypatch.setattr(data, "CHUNK_ROWS", 40)
    pairs = _pairs(100)
    assert [len(chunk) for chunk in pairs.chunks()] == [40, 40, 20]
    assert [number for chunk in pairs.chunks() for number in _numbers(chunk.x)] == list(range(100))
    assert len(list(_pairs(40).chunks())) == 1
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
