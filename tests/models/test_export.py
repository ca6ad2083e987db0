"""What is exported gives the numbers of the model that it was made from: as a module, and as files of both kinds."""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import ndtri
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.preprocessing import PolynomialFeatures

from featgeo.assembly.calibration import Calibration
from featgeo.assembly.links import Along, ExponentialLink, LinearLink, Recalibration, nearest_density
from featgeo.features import networks
from featgeo.features.combined import NetworkSpace, Sum
from featgeo.features.space import rational_quantile
from featgeo.features.spaces import Encoding, SpanFunction, TableSpace
from featgeo.features.variables import Variable
from featgeo.geometry.spans import AffineFeatures
from featgeo.models import (
    ConditionalDecomposition,
    FeatureClassifier,
    FeatureRegressor,
    ModalDecomposition,
    export,
)
from featgeo.models.export import as_module, encode_inputs, to_onnx, to_torch
from featgeo.tuning import options

N = 120


def given_by(model: ModalDecomposition, part: str, X: Any, Y: Any = None) -> np.ndarray:
    if part == "posterior":
        return model.given(X).proba()
    return model.transform(X) if part == "f" else model.transform(X, Y)[1]


def exported(model: ModalDecomposition, part: str, values: Any) -> np.ndarray:
    return as_module(model, part)(encode_inputs(model, values, part)).numpy()


def in_files(model: ModalDecomposition, part: str, inputs: torch.Tensor, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """What the files say, torch's and ONNX's."""
    import onnxruntime

    to_torch(model, part, folder / "model.pt2")
    to_onnx(model, part, folder / "model.onnx")
    assert sorted(os.listdir(folder)) == ["model.onnx", "model.pt2"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own
        program = torch.export.load(folder / "model.pt2")
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    return program.module()(inputs).numpy(), session.run([part], {"inputs": inputs.numpy()})[0]


@functools.cache
def numbers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of X, of Y, and others of X that repeat some, lie between them and far outside."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=N).round(1)  # with ties
    y = x + rng.normal(size=N)
    return x, y, np.concatenate([x[:20], rng.normal(size=20), [-30.0, x.min(), x.max(), 30.0]])


@functools.cache
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "size": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N).round(1)),
            "colour": rng.choice(["blue", "green", "red"], N),
            "age": rng.exponential(size=N),
            "grade": np.where(rng.random(N) < 0.2, None, rng.choice(["a", "b"], N)),
        }
    )


@functools.cache
def new_frame() -> pd.DataFrame:
    """Rows with missing numbers and labels, and labels that the fit never saw."""
    new = frame().iloc[:40].copy()
    new.loc[0, "colour"], new.loc[1, "grade"], new.loc[2, "age"], new.loc[3, "size"] = "pink", "z", 1e6, np.nan
    return new


@functools.cache
def target() -> np.ndarray:
    noise = np.random.default_rng(2).normal(size=N)
    return frame()["size"].fillna(1).to_numpy() + (frame()["colour"] == "red") + frame()["age"].to_numpy() + 0.3 * noise


@functools.cache
def classifier(space: str) -> FeatureClassifier:
    labels = np.array(["low", "middle", "high"])[np.digitize(target(), [0.5, 2.0])]
    return FeatureClassifier(x_space=space).fit(frame(), labels)


@functools.cache
def regressor(space: str) -> FeatureRegressor:
    return FeatureRegressor(x_space=space).fit(frame(), target())


def with_link(model: ModalDecomposition, link: Any) -> ModalDecomposition:
    model = copy.copy(model)
    model.calibration_ = Calibration(link)
    return model


def exponential(model: ModalDecomposition) -> ExponentialLink:
    rng = np.random.default_rng(3)
    return ExponentialLink(rng.normal(size=(model.support_.m, model.n_modes_)), rng.normal(size=model.support_.m))


@pytest.mark.parametrize("part", ["f", "g", "posterior"])
@pytest.mark.parametrize("space", ["spline", "linear", "kernel"])
def test_functions_of_a_number(space: str, part: str) -> None:
    x, y, new = numbers()
    model = ModalDecomposition(3, x_space=space, y_space=space).fit(x, y)
    expected = given_by(model, part, new, new)
    # Kernel features of a single number magnify rounding: the model itself changes so much with the size of a batch.
    tolerance = 1e-7 if space == "kernel" and part != "posterior" else 1e-9
    np.testing.assert_allclose(exported(model, part, new), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("part", ["f", "g", "posterior"])
@pytest.mark.parametrize("solver", ["exact", "closed"])
def test_tables(solver: str, part: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 2, (N, 2)).astype(float)
    x[rng.random(N) < 0.2, 1] = np.nan
    y = (np.nan_to_num(x, nan=3).sum(axis=1) + rng.integers(0, 2, N)) % 4
    model = ModalDecomposition(2, solver, x_space="table", y_space="table").fit(x, y)
    assert isinstance(model._main.f.space, TableSpace)
    new = np.vstack([x[:30], [[0.5, 0.0], [7.0, 7.0], [-9.0, np.nan]]])
    values = np.resize([0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 9.0], len(new))
    expected = given_by(model, part, new, values)
    np.testing.assert_allclose(exported(model, part, values if part == "g" else new), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("part", ["f", "posterior"])
@pytest.mark.parametrize("space", ["kernel", "spline", "linear"])
def test_a_frame_of_numbers_and_labels(space: str, part: str) -> None:
    expected = given_by(classifier(space), part, new_frame())
    np.testing.assert_allclose(exported(classifier(space), part, new_frame()), expected, rtol=0, atol=1e-9)


def test_g_of_a_classifier_reads_positions_among_its_classes() -> None:
    model = classifier("linear")
    expected = model.transform(frame().iloc[:3], model.classes_)[1]
    inputs = encode_inputs(model, model.classes_, "g")
    assert inputs.tolist() == [[0.0], [1.0], [2.0]]
    np.testing.assert_allclose(as_module(model, "g")(inputs).numpy(), expected, atol=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.03])
def test_the_linear_link_where_it_needs_a_projection(share: float) -> None:
    model = with_link(classifier("spline"), LinearLink(share))
    assert model.given(new_frame()).negative_mass > 0
    expected = model.given(new_frame()).proba()
    np.testing.assert_allclose(exported(model, "posterior", new_frame()), expected, rtol=0, atol=1e-9)


def test_the_exponential_link() -> None:
    model = with_link(classifier("spline"), exponential(classifier("spline")))
    expected = model.given(new_frame()).proba()
    np.testing.assert_allclose(exported(model, "posterior", new_frame()), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("prior", [[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])
def test_weights_of_labels_go_along(prior: list[float]) -> None:
    model = with_link(classifier("spline"), LinearLink(0.0))
    model.class_prior_ = np.array(prior)
    expected = model.given(new_frame()).proba()
    np.testing.assert_allclose(exported(model, "posterior", new_frame()), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("space", ["spline", "kernel"])
def test_a_recalibrated_posterior(space: str) -> None:
    model = regressor(space)
    assert model.recalibration_ is not None
    expected = model.given(new_frame()).proba()
    np.testing.assert_allclose(exported(model, "posterior", new_frame()), expected, rtol=0, atol=1e-9)


def test_no_modes_leave_the_prior() -> None:
    x, y, new = numbers()
    model = ModalDecomposition(1, x_space="linear", y_space="linear").fit(x, y)
    set_f(model, without_modes(model._main.f))
    model.learned_ = dataclasses.replace(
        model.learned_, components=(dataclasses.replace(model._main, sigma=np.empty(0)),)
    )
    model.calibration_ = Calibration()
    model.support_ = dataclasses.replace(model.support_, g=np.empty((model.support_.m, 0)))
    expected = np.tile(model.support_.mass, (len(new), 1))
    np.testing.assert_allclose(exported(model, "posterior", new), expected, atol=1e-12)


def set_f(model: ModalDecomposition, f: SpanFunction) -> None:
    component = dataclasses.replace(model._main, f=f)
    model.learned_ = dataclasses.replace(model.learned_, components=(component,))


def without_modes(function: SpanFunction) -> SpanFunction:
    affine = dataclasses.replace(function.affine, weight=function.affine.weight[:, :0], offset=np.empty(0))
    return SpanFunction(function.space, affine)


def with_network(network: torch.nn.Module, X: Any, encoded: bool) -> ModalDecomposition:
    """A fitted model whose f is a function of a network's outputs."""
    x, y, _ = numbers()
    model = ModalDecomposition(2, x_space="linear", y_space="linear").fit(x, y)
    model.x_variable_ = Variable.seen(X, "X")
    rows = model.x_variable_.rows(X)
    space = NetworkSpace(network, Encoding.fit(rows, "uniform") if encoded else None, "x")
    features = space(rows)
    weight = np.random.default_rng(0).normal(size=(features.shape[1], 1))
    affine = AffineFeatures(features.mean(axis=0), weight, np.zeros(1))
    set_f(model, SpanFunction(space, affine))
    return model


def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (20, 3, 8, 8)).astype(np.uint8)


def test_networks_of_images() -> None:
    torch.manual_seed(0)
    model = with_network(networks.image(3, 8, 8, filters=4, features=5), images(), encoded=False)
    np.testing.assert_allclose(exported(model, "f", images()), model.transform(images()), rtol=0, atol=1e-9)


def test_networks_of_columns() -> None:
    torch.manual_seed(0)
    width = sum(share.size for share in classifier("linear")._main.f.space.shares) + 3
    model = with_network(networks.mlp(width, width=8), frame(), encoded=True)
    np.testing.assert_allclose(exported(model, "f", new_frame()), model.transform(new_frame()), rtol=0, atol=1e-9)


def test_files_of_a_frame_with_sums_and_given_columns(tmp_path: Path) -> None:
    """Of a regressor, recalibrated; one file has it all, because each takes seconds to write."""
    X, new = (rows[["size", "colour", "grade"]] for rows in (frame(), new_frame()))
    parts = Sum([("grade", "table"), ("size", "spline")])
    model = FeatureRegressor(x_space=parts, orthogonal_to=["grade", "colour"], random_state=0).fit(X, target())
    assert model.n_modes_ >= 1
    # Few rows show nothing along the mean: here it is moved.
    along = Along(np.full(model.n_modes_ + 1, 0.5), np.arange(-1.0, 2), np.array([[0.2, 0, -0.1], [0.1, -0.2, 0.3]]))
    recalibration = dataclasses.replace(model.recalibration_, along=along)
    model.calibration_ = dataclasses.replace(model.calibration_, recalibration=recalibration)
    expected = model.given(new).proba()
    for values in in_files(model, "posterior", encode_inputs(model, new), tmp_path):
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


def test_files_of_a_kernel(tmp_path: Path) -> None:
    x, y, new = numbers()
    model = with_link(ModalDecomposition(2, x_space="kernel", y_space="linear").fit(x, y), LinearLink(0.03))
    expected = model.given(new).proba()
    for values in in_files(model, "posterior", encode_inputs(model, new), tmp_path):
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


def test_files_of_a_table(tmp_path: Path) -> None:
    x, y = np.repeat([[1.0, 2.0], [1.0, np.nan], [3.0, -1.0]], 20, axis=0), np.repeat(["a", "b", "b"], 20)
    plain = ModalDecomposition(1, "exact").fit(x, y)
    model = with_link(plain, exponential(plain))
    new = np.vstack([x[::20], [[1.0, 7.0]]])
    assert (model.transform(new)[-1] == 0).all()  # the fit never saw it
    expected = model.given(new).proba()
    for values in in_files(model, "posterior", encode_inputs(model, new), tmp_path):
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


def test_files_of_networks(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = with_network(networks.image(3, 8, 8, filters=4, features=5), images(), encoded=False)
    for values in in_files(model, "f", encode_inputs(model, images()), tmp_path):
        np.testing.assert_allclose(values, model.transform(images()), rtol=1e-4, atol=1e-5)  # single precision


def test_inputs_are_numbers_codes_and_parts_of_dates() -> None:
    days = pd.to_datetime(["2024-01-01", "2024-02-06", "2024-01-01", "2024-02-06"] * 20)
    X = pd.DataFrame({"day": days, "label": ["b", "a", "b", "a"] * 20, "number": [1.0, 2.0, np.nan, 4.0] * 20})
    model = ModalDecomposition(1, x_space="linear", y_space="linear").fit(X, np.arange(80.0))
    new = pd.DataFrame({"day": days[:2], "label": ["b", "unheard of"], "number": [5.0, np.nan]})
    first, second = encode_inputs(model, new).tolist()
    assert first == [19723.0, 1.0, 0.0, 1.0, 5.0]  # days, month, weekday, position of the label, number
    assert second[:4] == [19759.0, 2.0, 1.0, -1.0]
    assert np.isnan(second[4])
    np.testing.assert_allclose(exported(model, "f", new), model.transform(new), atol=1e-9)


def test_nan_is_a_missing_label() -> None:
    model = classifier("linear")
    inputs = encode_inputs(model, frame().iloc[:1].assign(grade=[None]))
    as_nan = inputs.clone()
    as_nan[0, 3] = torch.nan
    assert inputs[0, 3] == 2
    assert torch.equal(as_module(model, "f")(as_nan), as_module(model, "f")(inputs))


class Mean(RegressorMixin, BaseEstimator):
    """A regressor of the user's own."""

    def fit(self, X: Any, y: Any) -> Mean:
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.mean_) + np.asarray(X)[:, 0]


@pytest.mark.parametrize("space", [Mean(), PolynomialFeatures()], ids=["regressor", "transformer"])
def test_what_cannot_be_exported_says_the_way_out(space: Any, tmp_path: Path) -> None:
    x, y, _ = numbers()
    model = ModalDecomposition(1, x_space=space, y_space="linear").fit(x[:, None], y)
    for write in (to_torch, to_onnx):
        with pytest.raises(NotImplementedError, match="x_space='kernel'"):
            write(model, "f", tmp_path / "model")
    assert as_module(model, "g")(torch.zeros(1, 1)).shape == (1, 1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "space", ["trees", "index", "metric", "forest", HistGradientBoostingRegressor(max_iter=2)], ids=str
)
def test_trees_and_indices(space: Any) -> None:
    model = ModalDecomposition(2, x_space=space, y_space="linear", random_state=0).fit(frame(), target())
    np.testing.assert_allclose(exported(model, "f", new_frame()), model.transform(new_frame()), rtol=0, atol=1e-12)


def test_files_of_trees(tmp_path: Path) -> None:
    with options(forest_trees=40, averaged_forests=2):  # graphs of more take longer to write, and are no other
        model = ModalDecomposition(1, x_space="trees", y_space="linear", random_state=0).fit(frame(), target())
    for values in in_files(model, "f", encode_inputs(model, new_frame()), tmp_path):
        np.testing.assert_allclose(values, model.transform(new_frame()), rtol=0, atol=1e-12)


def test_files_of_windows(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    steps = rng.integers(0, 2, (N, 6)).astype(float)
    y = steps[:, 0] + steps[:, 1] * steps[:, 2] + rng.normal(size=N)
    model = ModalDecomposition(1, x_space="windows", y_space="linear", random_state=0)
    with options(averaged_forests=2):  # graphs of more take longer to write, and are no other
        model.fit(steps, y)
    for values in in_files(model, "f", encode_inputs(model, steps), tmp_path):
        np.testing.assert_allclose(values, model.transform(steps), rtol=0, atol=1e-9)


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="'posterior', got 'h'"):
        as_module(classifier("linear"), "h")


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt2"
    path.write_text("old")

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        to_torch(classifier("linear"), "f", path)
    assert os.listdir(tmp_path) == ["model.pt2"]
    assert path.read_text() == "old"


def test_without_the_extra_the_message_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ImportError, match=r"featgeo\[export\]"):
        to_onnx(classifier("linear"), "f", tmp_path / "model.onnx")
    assert os.listdir(tmp_path) == []


def test_normal_quantiles() -> None:
    tail = np.logspace(-11, -1, 200)
    ranks = np.concatenate([tail, np.linspace(0.01, 0.99, 501), 1 - tail])
    found = rational_quantile(torch.from_numpy(ranks)).numpy()
    np.testing.assert_allclose(found, ndtri(ranks), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("m", [2, 7, 300])
def test_projections_onto_densities(m: int) -> None:
    rng = np.random.default_rng(m)
    ratio, mass = 1 + 3 * rng.normal(size=(200, m)), rng.dirichlet(np.ones(m))
    found = export.nearest_density(torch.from_numpy(ratio), torch.from_numpy(mass)).numpy()
    np.testing.assert_allclose(found, nearest_density(ratio, mass), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "along",
    [None, Along(np.array([0.1, 1.0, -0.5]), np.arange(-1.0, 2), np.array([[0, 0.5, -1], [0, 0.7, -0.4]]))],
)
def test_recalibration_at_ties(along: Along | None) -> None:
    rng = np.random.default_rng(0)
    weights, f = rng.random((50, 8)), rng.standard_normal((50, 2))
    recalibration = Recalibration.fit(rng.choice([0.2, 0.5, 0.9], 50), along, f)
    weights[:, 3] = 0
    found = export.recalibrated(torch.from_numpy(weights), recalibration, torch.from_numpy(f))
    # At ties slopes are up to 1e9, which is what rounding of logarithms is multiplied with.
    np.testing.assert_allclose(found, recalibration(weights, f), rtol=0, atol=1e-9 if along is None else 1e-7)


def test_other_estimators_and_missing_folders_are_said(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=r"can be exported, got a ConditionalDecomposition. Keep the model"):
        as_module(ConditionalDecomposition(), "f")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="Make it first"):
        to_torch(classifier("linear"), "f", tmp_path / "nowhere" / "f.pt2")
    assert os.listdir(tmp_path) == []


SHAPES = [lambda inputs: inputs[:, :-1], lambda inputs: inputs.repeat(1, 2), lambda inputs: inputs[0]]


@pytest.mark.parametrize("change", SHAPES)
def test_columns_too_many_or_too_few_are_refused(change) -> None:
    model = ModalDecomposition(1, x_space="linear", y_space="linear")
    X = np.random.default_rng(0).normal(size=(200, 3))
    inputs = encode_inputs(model.fit(X, X[:, 0]), X)
    with pytest.raises(ValueError, match=r"rows of shape \(3,\) as in the fit, got"):
        as_module(model, "f")(change(inputs))
