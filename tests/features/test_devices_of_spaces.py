"""Every space follows the device that it is moved to: nothing of it stays behind."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression
from support import DEVICES

from featgeo import ModalDecomposition
from featgeo.features import networks
from featgeo.features.combined import NetworkSpace, PartSpace, ProductSpace
from featgeo.features.devices import on_device, on_host
from featgeo.features.regression import CentredSpace
from featgeo.features.spaces import (
    Encoding,
    KernelSpace,
    SideBySide,
    SpanFunction,
    SplineSpace,
    TableSpace,
    table_function,
)
from featgeo.features.trees import BaggedTrees, IndexRegressor, MetricRegressor, RegressorSpace
from featgeo.features.variables import Parts, Variable
from featgeo.features.windows import WindowSpace
from featgeo.geometry.spans import AffineFeatures

N = 300


@cache
def spaces():
    """Spaces by name, each with rows that it reads."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "b": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "few": rng.choice(list("xyz"), N),
            "many": rng.choice([f"l{i}" for i in range(60)], N),
        }
    )
    steps = rng.integers(0, 2, (N, 6))
    rows, sequence = (Variable.seen(values, "X").rows(values) for values in (frame, steps))
    side = Parts({"s": rows, "y": sequence})
    targets, folds = np.column_stack([frame["a"], frame["a"] ** 2]), np.arange(N) % 3
    bounded, kernel, table = Encoding.fit(rows, "bounded"), KernelSpace.fit(rows, features=20), TableSpace.fit(sequence)
    windows = PartSpace(("y",), WindowSpace.fit(sequence))
    groups = (("a",), ("few", "b"))
    width = kernel(rows).shape[1]
    torch.manual_seed(0)
    return {
        "bounded": (bounded, rows),
        "normal": (Encoding.fit(rows, "normal"), rows),
        "splines": (SplineSpace.fit(rows, smooth=True), rows),
        "kernel": (kernel, rows),
        "table": (table, sequence),
        "values": (table_function(table, rng.normal(size=(len(table.shares), 2))), sequence),
        "function": (SpanFunction(kernel, AffineFeatures(np.ones(width), np.ones((width, 2)), np.ones(2))), rows),
        "network": (NetworkSpace(networks.mlp(bounded(rows).shape[1]).eval(), bounded, "x"), rows),
        "trees": (RegressorSpace.fit(rows, targets, folds)[0], rows),
        "index": (RegressorSpace.fit(rows, targets, folds, IndexRegressor)[0], rows),
        "metric": (RegressorSpace.fit(rows, targets, folds, MetricRegressor)[0], rows),
        "forest": (RegressorSpace.fit(rows, targets, folds, BaggedTrees)[0], rows),
        "lines": (RegressorSpace.fit(rows, targets, folds, LinearRegression())[0], rows),
        "centred windows": (CentredSpace.fit(windows, "s", side, seed=0), side),
        "side by side": (
            SideBySide((PartSpace(("s",), bounded), windows)),
            side,
        ),
        "products": (
            ProductSpace(tuple(PartSpace((), SplineSpace.fit(rows.select(g)), g) for g in groups), (True, True)),
            rows,
        ),
    }


NAMES = (
    *("bounded", "normal", "splines", "kernel", "table", "values", "function", "network"),
    *("trees", "index", "metric", "forest", "lines", "centred windows", "side by side", "products"),
)


@pytest.mark.parametrize("name", NAMES)
def test_features_are_computed_where_the_space_is(name):
    """On a device that only knows shapes: whatever stayed behind would not go together with it."""
    space, rows = spaces()[name]
    meta = torch.device("meta")
    moved = copy.deepcopy(space).to(meta)
    assert moved.device == meta
    features = moved.forward(rows.on(meta))
    assert features.device == meta
    assert tuple(features.shape) == space(rows).shape
    assert space.device.type == "cpu"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_features_are_the_same_on_every_device_and_for_few_rows_at_a_time(name, device, monkeypatch):
    space, rows = spaces()[name]
    expected = space(rows)
    monkeypatch.setattr("featgeo.features.space.ROWS_AT_ONCE", 77)
    found = copy.deepcopy(space).to(device)(rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 if name == "network" else 1e-8)


def test_all_spaces_are_listed():
    assert tuple(spaces()) == NAMES


def test_an_estimator_computes_where_it_is_told_and_refuses_what_is_not_there():
    x = np.random.default_rng(0).standard_normal(60)
    model = ModalDecomposition(1, "closed", "linear", "linear", device="cpu", random_state=0).fit(x, x + x**2)
    assert model.learned_.components[0].f.device == torch.device("cpu")
    with pytest.raises(ValueError, match="`device` must be 'auto', 'cpu' or 'cuda', got 'tpu'"):
        ModalDecomposition(1, device="tpu").fit(x, x)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device='cuda' needs a GPU that torch can see"):
            ModalDecomposition(1, device="cuda").fit(x, x)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("n_rows", [7, 3_000_001])
def test_rows_come_back_from_a_gpu_as_they_went(n_rows):
    values = np.random.default_rng(0).standard_normal((n_rows, 3))
    for laid_out in (values, np.asfortranarray(values), values[::2]):
        there = on_device(laid_out, torch.device("cuda"))
        assert there.is_cuda
        np.testing.assert_array_equal(on_host(there), laid_out)
