"""Models in files: the same answers after loading, and no file that is not what it should be."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
from crafted_files import Parts
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

from featgeo import FeatureClassifier, FeatureRegressor, ModalDecomposition, Training, load, schema
from featgeo.models import persistence
from featgeo.tuning import options


class Doubler(TransformerMixin, BaseEstimator):
    """A transformer that no library knows."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return 2 * np.asarray(X)


def _data(n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(n)
    frame = pd.DataFrame({"x": x, "colour": rng.choice(["red", "blue"], n), "day": pd.date_range("2024", periods=n)})
    return frame, x + (frame.colour == "red") + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("space", ["kernel", "spline", "linear", "index", "metric", "forest", "trees"])
def test_a_loaded_model_gives_the_same_answers(tmp_path, space):
    frame, y = _data()
    with options(forest_trees=20, bagged_trees=5):  # more would only make larger files
        model = ModalDecomposition(2, x_space=space, random_state=0).fit(frame, y)
    model.save(tmp_path / "model.fg")
    loaded = load(tmp_path / "model.fg")
    assert type(loaded) is ModalDecomposition
    assert str(loaded.get_params()) == str(model.get_params())
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    np.testing.assert_array_equal(loaded.given(frame).quantile(0.3), model.given(frame).quantile(0.3))
    assert str(loaded.report()) == str(model.report())
    assert loaded.score(frame, y) == model.score(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame.rename(columns={"x": "z"}))


def test_tables_of_labels_and_predictors_too(tmp_path):
    exact = ModalDecomposition().fit(["a", "b", None, "a"] * 20, ["u", "v", "v", "u"] * 20)
    X, y = load_iris(return_X_y=True, as_frame=True)
    classifier = FeatureClassifier(x_space="spline", random_state=0).fit(X, y.map({0: "s", 1: "ve", 2: "vi"}))
    regressor = FeatureRegressor(x_space="spline", random_state=0).fit(X.iloc[:, :3], X.iloc[:, 3])
    for model, ask in (
        (exact, lambda m: m.given(["a", None, "z"]).proba()),
        (classifier, lambda m: m.predict_proba(X)),
        (classifier, lambda m: (m.predict(X) == m.classes_[0]).astype(float)),
        (regressor, lambda m: m.predict_interval(X.iloc[:, :3])),
    ):
        model.save(tmp_path / "model.fg")
        np.testing.assert_array_equal(ask(load(tmp_path / "model.fg")), ask(model))


def test_default_networks_come_back_by_themselves(tmp_path):
    frame, y = _data()
    model = ModalDecomposition(1, solver="neural", training=Training(max_epochs=2)).fit(frame, y)
    model.save(tmp_path / "model.fg")
    np.testing.assert_array_equal(load(tmp_path / "model.fg").transform(frame), model.transform(frame))


def test_a_network_of_the_user_is_handed_in_again(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(200)

    def network(width: int = 8) -> torch.nn.Module:
        return torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.Tanh())

    model = ModalDecomposition(1, x_space=network(), y_space="linear", training=Training(max_epochs=2)).fit(X, y)
    path = tmp_path / "model.fg"
    model.save(path)
    with pytest.raises(ValueError, match="modules="):
        load(path)
    with pytest.raises(ValueError, match="architecture"):
        load(path, modules={"x": network(5)})
    np.testing.assert_array_equal(load(path, modules={"x": network()}).transform(X), model.transform(X))


def test_foreign_types_must_be_trusted_by_name(tmp_path):
    frame, y = _data()
    path = tmp_path / "model.fg"
    ModalDecomposition(1, x_space=Doubler()).fit(frame[["x"]], y).save(path)
    with pytest.raises(ValueError, match="trusted"):
        load(path)
    for trusted in (f"{Doubler.__module__}.Doubler", Doubler):
        assert load(path, trusted=[trusted]).n_modes_ == 1
    with pytest.raises(ValueError, match="must be a list"):
        load(path, trusted="Doubler")


def test_estimators_of_the_user_are_the_users_types(tmp_path):
    frame, y = _data()
    path = tmp_path / "model.fg"
    X = frame[["x"]].assign(z=frame.x**2)
    model = ModalDecomposition(1, x_space=PCA(2), y_space="linear").fit(X, y)
    model.save(path)
    with pytest.raises(ValueError, match=r"trusted=\['sklearn.decomposition._pca.PCA'\]"):
        load(path)
    np.testing.assert_array_equal(load(path, trusted=[PCA]).transform(X), model.transform(X))


@pytest.fixture
def saved(tmp_path):
    frame, y = _data(60)
    path = tmp_path / "model.fg"
    ModalDecomposition(1, x_space="linear", y_space="linear").fit(frame, y).save(path)
    return path


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_truncated_files_are_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ValueError, match="damaged or cut short"):
        load(saved)


def test_a_changed_byte_is_noticed(saved):
    content = saved.read_bytes()
    refused = 0
    for position in range(40, len(content), max(1, len(content) // 40)):
        changed = bytearray(content)
        changed[position] ^= 0xFF
        saved.write_bytes(bytes(changed))
        try:
            model = load(saved)
        except ValueError:
            refused += 1
        else:  # bytes that carry nothing, such as times of day, may change
            assert model.n_modes_ == 1
    assert refused > 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda parts: parts.line.__setitem__(1, "5.0"), "has format version 5.0 and this featgeo reads version 4.x"),
        (lambda parts: parts.line.__setitem__(0, "other"), "its first line is not that of a model"),
        (lambda parts: parts.manifest.update(model="Mystery"), "does not know"),
        (
            lambda parts: parts.line.__setitem__(slice(1, 3), ["1.0", "0.1.0"]),
            r"Load it with the featgeo that wrote it \(0.1.0\), or fit",
        ),
        (lambda parts: parts.tensors.clear(), "KeyError"),
    ],
)
def test_other_versions_and_missing_parts_are_refused(saved, change, message):
    parts = Parts.of(saved.read_bytes())
    change(parts)
    saved.write_bytes(parts.packed())
    with pytest.raises(ValueError, match=message):
        load(saved)


def test_what_was_saved_survives_a_failing_save(saved, monkeypatch):
    before = saved.read_bytes()
    model = load(saved)
    model.strange_ = object()
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(saved)
    model.report_, report = object(), model.report_
    del model.strange_
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(saved)
    model.report_ = report
    monkeypatch.setattr(safetensors.numpy, "save", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        model.save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_something_else_is_not_a_model(tmp_path):
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(ValueError, match="not a featgeo model"):
        load(tmp_path / "note.txt")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere.fg"):
        load(tmp_path / "nowhere.fg")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(ValueError, match="not a regular file"):
        load("/dev/zero")
    with pytest.raises(TypeError, match="from a path or from a binary file, got a int"):
        load(5)


def test_a_model_can_be_read_from_an_open_file(saved):
    assert load(io.BytesIO(saved.read_bytes())).n_modes_ == 1
    with saved.open("rb") as file:
        assert load(file).n_modes_ == 1


def test_save_follows_links_and_says_what_it_cannot_write(saved, tmp_path):
    model = load(saved)
    (tmp_path / "link.fg").symlink_to(saved)
    model.save(tmp_path / "link.fg")
    assert (tmp_path / "link.fg").is_symlink()
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "m.fg", "Make it first"),
        ("/dev/null", "regular"),
    ):
        with pytest.raises(OSError, match=message):
            model.save(path)


def test_many_labels_are_not_in_the_manifest(tmp_path):
    labels = np.array([f"label {i % 300}" for i in range(2400)])
    model = ModalDecomposition(1).fit(labels, labels)
    model.save(tmp_path / "model.fg")
    assert len(json.dumps(Parts.of((tmp_path / "model.fg").read_bytes()).manifest)) < 10_000
    np.testing.assert_array_equal(load(tmp_path / "model.fg").transform(labels), model.transform(labels))


@schema.saved
@dataclass(eq=False)
class Turned(torch.nn.Module):
    """A space that is a module: its fields are arrays, and modules of its own kind."""

    weight: np.ndarray
    inner: Turned | None = field(default_factory=lambda: None)  # a default in the class would hide the module
    seen: int = field(default=0, metadata=schema.NOT_SAVED)

    def __new__(cls, *args, **options):
        made = super().__new__(cls)
        torch.nn.Module.__init__(made)
        return made


def test_modules_are_saved_by_their_fields():
    writer = persistence._Writer()
    turned = Turned(np.eye(3), Turned(np.arange(2)), seen=5)
    state = json.loads(json.dumps(writer.encode(turned)))
    again = persistence._Reader({}, writer.tensors, {}).decode(state)
    np.testing.assert_array_equal(again.weight, turned.weight)
    assert again.weight.dtype == np.float64
    np.testing.assert_array_equal(again.inner.weight, np.arange(2))
    assert (again.inner.inner, again.seen) == (None, 0)
    state["fields"]["weight"] = 3
    with pytest.raises(TypeError, match="weight of a Turned is a int"):
        persistence._Reader({}, writer.tensors, {}).decode(state)


def test_labels_of_every_kind_come_back(tmp_path):
    odd = ["a", "", "ä\ud800", None, True, 3, 2.5, float("inf")]
    writer = persistence._Writer()
    items = {"short": odd, "long": odd * 20, "tuple": tuple(odd * 20), "texts": ["x", "yz"] * 50, "empty": []}
    arrays = {
        "objects": np.array(odd, dtype=object),
        "texts": np.array(["x", "yz", ""]),
        "bytes": np.array([b"x", b"\xff"]),
        "none": np.array([], dtype=str),
        "times": np.array(["2024-01-01", "NaT"], dtype="datetime64[D]"),
    }
    state = json.loads(json.dumps(writer.encode({**items, "arrays": arrays})))
    found = persistence._Reader({}, writer.tensors, {}).decode(state)
    found_arrays = found.pop("arrays")
    assert found == items
    for name, array in arrays.items():
        assert found_arrays[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found_arrays[name], array)
