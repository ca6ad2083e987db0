"""Windows count what they say they count."""

from itertools import product

import numpy as np
import pytest

from featgeo.features.variables import Variable
from featgeo.features.windows import WindowSpace


def _rows(values, seen=None):
    return Variable.seen(values if seen is None else seen, "X").rows(values)


def _sequences(n: int, length: int, m: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, m, (n, length))


@pytest.mark.parametrize(("m", "length", "w"), [(2, 9, 4), (3, 7, 4), (2, 3, 3), (5, 8, 3), (16, 6, 2), (4, 1, 1)])
def test_features_are_the_shares_of_all_patterns(m, length, w):
    values = _sequences(300, length, m)
    space = WindowSpace.fit(_rows(values))
    assert space.length == w
    features = space(_rows(values))
    for column, pattern in enumerate(product(range(m), repeat=w)):
        share = np.mean([(values[:, i : i + w] == pattern).all(axis=1) for i in range(length - w + 1)], axis=0)
        np.testing.assert_allclose(features[:, column], share)
    np.testing.assert_allclose(features.sum(axis=1), 1)


def test_flips_are_linear_in_windows_of_two():
    values = _sequences(200, 12)
    flips = (values[:, 1:] != values[:, :-1]).sum(axis=1)
    features = WindowSpace((0.0, 1.0), 2, np.full(4, 0.25))(_rows(values))
    np.testing.assert_allclose(11 * (features[:, 1] + features[:, 2]), flips)


def test_symbols_may_be_numbers_or_labels():
    values = _sequences(400, 10, 3)
    as_text = np.array(["a", "b", "c"])[values]
    numbers, labels = (WindowSpace.fit(_rows(z))(_rows(z)) for z in (values, as_text))
    np.testing.assert_array_equal(numbers, labels)


@pytest.mark.parametrize("unknown", [7.0, np.nan], ids=["unknown", "missing"])
def test_windows_with_an_unknown_symbol_do_not_count(unknown):
    values = _sequences(500, 8).astype(float)
    values[0] = np.nan
    space = WindowSpace.fit(_rows(values))
    assert space.symbols == (0, 1)
    np.testing.assert_allclose(space.shares, space(_rows(values))[1:].mean(axis=0))
    later = values[5:7].copy()
    later[0, :3] = later[1] = unknown
    features = space(_rows(later, seen=values))
    np.testing.assert_allclose(features[0], space(_rows(values[5:6, 3:]))[0])
    np.testing.assert_allclose(features[1], space.shares)


def test_unknown_labels_do_not_count_either():
    text = np.array(["a", "b"])[_sequences(300, 6)]
    space = WindowSpace.fit(_rows(text))
    features = space(_rows(np.array([["z"] * 6, ["z", *"abab", "z"]]), seen=text))
    np.testing.assert_allclose(features[0], space.shares)
    assert features[1].max() == 1


def test_errors_say_the_way_out():
    with pytest.raises(ValueError, match="at most 16 symbols, and X holds more"):
        WindowSpace.fit(_rows(np.random.default_rng(0).standard_normal((50, 5))))
    with pytest.raises(ValueError, match=r"X holds 26\. Group the symbols"):
        WindowSpace.fit(_rows(np.array(list("abcdefghijklmnopqrstuvwxyz") * 10).reshape(-1, 4)))
    with pytest.raises(ValueError, match="1 columns of labels beside 1 of numbers"):
        WindowSpace.fit(_rows(np.array([["a", 1], ["b", 2]], dtype=object)))
    with pytest.raises(ValueError, match="'sequence'"):
        WindowSpace.fit(_rows(np.zeros((5, 4, 2))))
