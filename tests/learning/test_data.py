"""Rows that miss variables, gathered by what they have."""

import numpy as np

from featgeo.learning.data import rows_by_pattern


def test_patterns_of_rows():
    has = np.array([[1, 0], [1, 1], [1, 0], [0, 0]], dtype=bool)
    found = {tuple(pattern): index.tolist() for pattern, index in rows_by_pattern(has)}
    assert found == {(True, False): [0, 2], (True, True): [1], (False, False): [3]}
    assert list(rows_by_pattern(np.empty((0, 2), dtype=bool))) == []
    wide = np.random.default_rng(10).random((200, 12)) < 0.5
    assert sorted(np.concatenate([index for _, index in rows_by_pattern(wide)])) == list(range(200))
    for pattern, index in rows_by_pattern(wide):
        assert (wide[index] == pattern).all()
