"""Moments: the same for any chunking, any backend, any pattern of missing blocks."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from functools import reduce

import numpy as np
import pytest
import torch

from featgeo import Moments


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return {"x": rng.standard_normal((60, 3)), "y": rng.standard_normal((60, 2)), "z": rng.standard_normal((60, 4))}


def assert_same(a, b, names, tolerance=1e-12):
    for first in names:
        np.testing.assert_allclose(a.mean(first), b.mean(first), atol=tolerance)
        for second in names:
            assert a.weight(first, second) == pytest.approx(b.weight(first, second))
            np.testing.assert_allclose(a.covariance(first, second), b.covariance(first, second), atol=tolerance)
            np.testing.assert_allclose(a.second_moment(first, second), b.second_moment(first, second), atol=tolerance)


def test_values_are_the_moments_of_the_rows(data):
    moments = Moments.from_features(data)
    assert moments.weight("x", "y") == 60
    np.testing.assert_allclose(moments.mean("x"), data["x"].mean(0), atol=1e-15)
    np.testing.assert_allclose(moments.second_moment("x", "y"), data["x"].T @ data["y"] / 60, atol=1e-14)
    joint = np.cov(np.hstack([data["x"], data["z"]]).T, bias=True)
    np.testing.assert_allclose(moments.joint_covariance(["x", "z"], ["x", "z"]), joint, atol=1e-14)


def test_chunks_merge_in_any_order_and_grouping(data):
    parts = [
        Moments.from_features({name: block[start : start + 7] for name, block in data.items()})
        for start in range(0, 60, 7)
    ]
    whole = Moments.from_features(data)
    backwards = reduce(lambda a, b: a + b, parts[::-1])
    paired = (parts[0] + parts[1]) + reduce(lambda a, b: a + b, parts[2:])
    for merged in (Moments.from_chunks(parts), backwards, paired):
        assert_same(merged, whole, data)


def test_weights_count_as_repeated_rows(data):
    repeats = np.random.default_rng(1).integers(0, 4, 60)
    weighted = Moments.from_features(data, weights=repeats)
    repeated = Moments.from_features({name: np.repeat(block, repeats, axis=0) for name, block in data.items()})
    assert_same(weighted, repeated, data)


@pytest.mark.parametrize("mean", [1e6, 1e8, 1e10])
def test_a_large_mean_costs_no_digits(mean):
    """However many chunks are merged; naive sums of squares lose everything at 1e8."""
    rng = np.random.default_rng(3)
    shifted = {"x": rng.standard_normal((3000, 2)) + mean, "y": rng.standard_normal((3000, 3)) + mean}
    exact = Moments.from_features({name: block - mean for name, block in shifted.items()})
    chunks = [{name: block[i : i + 10] for name, block in shifted.items()} for i in range(0, 3000, 10)]
    for moments in (Moments.from_features(shifted), Moments.from_chunks(chunks), Moments.from_chunks(chunks[::-1])):
        for pair in (("x", "x"), ("x", "y")):
            np.testing.assert_allclose(moments.covariance(*pair), exact.covariance(*pair), atol=2e-14)


def test_each_pair_of_blocks_counts_the_rows_that_have_both(data):
    rng = np.random.default_rng(2)
    present = {"x": rng.random(60) < 0.7, "y": rng.random(60) < 0.5, "z": np.ones(60, dtype=bool)}
    holed = {name: np.where(present[name][:, None], block, np.nan) for name, block in data.items()}
    moments = Moments.from_features(holed, present={**present, "y": torch.from_numpy(present["y"])})
    for a in data:
        for b in data:
            both = present[a] & present[b]
            alone = Moments.from_features({"a": data[a][both], "b": data[b][both]})
            assert moments.weight(a, b) == both.sum()
            np.testing.assert_allclose(moments.mean(a, b), data[a][both].mean(0), atol=1e-14)
            np.testing.assert_allclose(moments.covariance(a, b), alone.covariance("a", "b"), atol=1e-13)


def test_separate_datasets_merge_by_name(data):
    pairs = [("x", "y"), ("y", "z")]
    merged = Moments.from_chunks({a: data[a], b: data[b]} for a, b in pairs)
    assert merged.weight("y") == 120
    assert merged.weight("x", "y") == 60
    with pytest.raises(ValueError, match="No row carries both 'x' and 'z'"):
        merged.covariance("x", "z")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_tensors_give_the_moments_of_their_values_in_float64(data, dtype):
    tensors = {name: torch.from_numpy(block).to(dtype) for name, block in data.items()}
    values = {name: tensor.double().numpy() for name, tensor in tensors.items()}
    assert_same(Moments.from_features(tensors), Moments.from_features(values), data, tolerance=1e-14)
    mixed = Moments.from_features({"x": tensors["x"], "y": values["y"]})
    np.testing.assert_allclose(
        mixed.covariance("x", "y"), Moments.from_features(values).covariance("x", "y"), atol=1e-14
    )


def test_moments_cannot_be_changed(data):
    moments = Moments.from_features(data)
    before = moments.covariance("x").copy(), moments.mean("x").copy()
    data["x"][:] = 0
    moments.covariance("x")[:] = 7
    moments.mean("x")[:] = 7
    np.testing.assert_array_equal(moments.covariance("x"), before[0])
    np.testing.assert_array_equal(moments.mean("x"), before[1])
    with pytest.raises(TypeError):
        moments.dims["x"] = 7
    with pytest.raises(FrozenInstanceError):
        moments.dims = {}


def test_moments_travel_between_processes(data):
    moments = Moments.from_features(data)
    for copied in (pickle.loads(pickle.dumps(moments)), copy.deepcopy(moments)):  # noqa: S301 - our own bytes
        assert_same(copied + moments, moments + moments, data, tolerance=0)


@pytest.mark.parametrize(
    ("blocks", "options", "message"),
    [
        ({}, {}, "at least one block"),
        ({"x": np.empty((0, 2))}, {}, "the data are empty"),
        ({"x": np.ones((3, 2)), "y": np.ones((4, 2))}, {}, "must have the same rows"),
        ({"x": [[1.0], [np.nan]]}, {}, "NaN or infinite"),
        ({"x": torch.tensor([1.0, torch.inf])}, {}, "NaN or infinite"),
        ({"x": ["1", "2"]}, {}, "real numbers"),
        ({"x": torch.ones(2, dtype=torch.complex64)}, {}, "real numbers"),
        ({"x": np.ones((2, 2, 2))}, {}, "Flatten"),
        ({"x": 3.0}, {}, "one row a sample"),
        ({1: np.ones(3)}, {}, "Names must be text"),
        ({"x": np.ma.masked_array([1.0, 2.0], [True, False])}, {}, "masked"),
        ({"x": np.array([1e200, -1e200])}, {}, "more than a float can hold"),
        ({"x": np.ones(3)}, {"weights": [1, 1]}, "one entry a row"),
        ({"x": np.ones(3)}, {"weights": [1, -1, 1]}, "non-negative"),
        ({"x": np.ones(3)}, {"weights": [0, 0, 0]}, "the data are empty"),
        ({"x": np.ones(3)}, {"present": {"q": np.ones(3, dtype=bool)}}, "not passed"),
        ({"x": np.ones(3)}, {"present": {"x": np.ones(3)}}, "must be boolean"),
        ({"x": np.ones(3)}, {"present": {"x": np.zeros(3, dtype=bool)}}, "the data are empty"),
    ],
)
def test_bad_input_is_refused_with_the_way_out(blocks, options, message):
    with pytest.raises(ValueError, match=message):
        Moments.from_features(blocks, **options)


def test_merging_and_asking_for_what_does_not_fit(data):
    moments = Moments.from_features(data)
    with pytest.raises(ValueError, match="one dimension everywhere"):
        moments + Moments.from_features({"x": np.ones((5, 2))})
    with pytest.raises(ValueError, match="There is no block 'q'"):
        moments.mean("q")
    with pytest.raises(ValueError, match="stream of chunks is empty"):
        Moments.from_chunks([])


@pytest.mark.parametrize("present", [[True, False], np.array([True, False]), "x"])
def test_presence_comes_by_name(present):
    with pytest.raises(ValueError, match="`present` must be a mapping from block to a boolean array"):
        Moments.from_features({"x": np.arange(2.0)}, present=present)
