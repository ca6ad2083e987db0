"""Columns as numbers of comparable size: scores by rank, what is missing or unknown as average."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from scipy.stats import rankdata

from featgeo.features.spaces import Encoding
from featgeo.features.variables import Variable


def _rows(values, seen=None):
    return Variable.seen(values if seen is None else seen, "X").rows(values)


@pytest.fixture
def numbers():
    return np.random.default_rng(0).lognormal(size=(200, 2))


def test_standard_scores_have_mean_0_and_variance_1(numbers):
    encoding = Encoding.fit(_rows(numbers), "standard")
    scores = encoding(_rows(numbers))
    np.testing.assert_allclose(scores, (numbers - numbers.mean(axis=0)) / numbers.std(axis=0), atol=1e-12)
    np.testing.assert_allclose(encoding(_rows(numbers[:3])), scores[:3], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_standard_scores_of_tiny_and_huge_numbers(numbers, scale):
    scores = Encoding.fit(_rows(scale * numbers), "standard")(_rows(scale * numbers))
    np.testing.assert_allclose(scores, (numbers - numbers.mean(axis=0)) / numbers.std(axis=0), atol=1e-9)


def test_uniform_and_normal_scores_follow_the_ranks_and_no_monotone_map_changes_them(numbers):
    ranks = (rankdata(numbers, axis=0) - 1) / 199
    uniform = Encoding.fit(_rows(numbers), "uniform")(_rows(numbers))
    np.testing.assert_allclose(uniform, np.sqrt(12) * (ranks.clip(0.5 / 200, 1 - 0.5 / 200) - 0.5), atol=1e-9)
    normal = Encoding.fit(_rows(numbers), "normal")(_rows(numbers))
    np.testing.assert_allclose(normal, ndtri(ranks.clip(1 / 200, 1 - 1 / 200)), atol=1e-9)
    for scores, found in (("uniform", uniform), ("normal", normal)):
        mapped = Encoding.fit(_rows(np.log(numbers)), scores)(_rows(np.log(numbers)))
        np.testing.assert_allclose(mapped, found, atol=1e-9)
        beyond = Encoding.fit(_rows(numbers), scores)(_rows(np.array([[-1e9, 1e9]]), seen=numbers))
        np.testing.assert_allclose(beyond, [[found[:, 0].min(), found[:, 1].max()]], atol=1e-12)


@pytest.mark.parametrize("scores", ["standard", "uniform", "normal"])
def test_a_missing_number_is_average_with_an_indicator_of_its_own(numbers, scores):
    numbers[:50, 1] = np.nan
    encoding = Encoding.fit(_rows(numbers), scores)
    values = encoding(_rows(numbers))
    assert values.shape == (200, 3)
    np.testing.assert_array_equal(values[:50, 1], 0)
    np.testing.assert_array_equal(values[:, 2], np.arange(200) < 50)
    if scores == "standard":
        known = numbers[50:, 1]
        np.testing.assert_allclose(values[50:, 1], (known - known.mean()) / known.std(), atol=1e-12)


def test_a_number_that_never_varies_is_0():
    values = np.column_stack([np.full(20, 7.0), np.arange(20.0)])
    np.testing.assert_array_equal(Encoding.fit(_rows(values), "standard")(_rows(values))[:, 0], 0)


def test_labels_are_indicators_and_an_unknown_one_is_average():
    frame = pd.DataFrame({"a": list("xyyx"), "b": list("ppqp")})
    encoding = Encoding.fit(_rows(frame), "uniform")
    expected = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])
    np.testing.assert_array_equal(encoding.labels(_rows(frame)), expected)
    np.testing.assert_allclose(encoding(_rows(frame)), expected / np.sqrt(2))
    far = encoding(_rows(frame))
    assert np.linalg.norm(far[0] - far[1]) == pytest.approx(1)  # as far apart as one number differs by
    unknown = encoding.labels(_rows(pd.DataFrame({"a": ["new"], "b": ["q"]}), seen=frame))
    np.testing.assert_allclose(unknown, [[0.5, 0.5, 0, 1]])
