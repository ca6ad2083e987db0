"""Files that are damaged or made to do harm end in a clear error or in the identical model, and nothing runs.

The files are in `crafted_files`: anyone can add one with one line.
"""

from __future__ import annotations

import io
import pickle
import re
import warnings
import zlib

import crafted_files
import numpy as np
import pytest
import skops.io
from crafted_files import CRAFTED, PACKED, PAYLOADS, Parts, honest, kinds, mutated, outcome, peak_memory, with_payload

from featgeo import ModalDecomposition, load
from featgeo.models.base import Decomposition
from featgeo.models.persistence import packed, unpacked
from featgeo.schema import SAVED

KINDS = ("table", "linear", "spline", "kernel", "index", "trees", "network", "classifier", "regressor", "conditional",
         "multimodal", "sequential")  # fmt: skip
MOST_MEMORY = 90  # MB; the smallest bomb here would take 100, and the promise is 200 above an honest load


def test_every_kind_of_model_is_here():
    assert set(KINDS) == set(kinds())
    assert {type(kind.model).__name__ for kind in kinds().values()} == {
        name for name, cls in SAVED.items() if issubclass(cls, Decomposition)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_an_honest_file_is_the_identical_model(kind):
    assert outcome(honest(kind), kind) == "identical"


@pytest.mark.parametrize("kind", KINDS)
def test_accidents_are_refused_or_without_effect(kind):
    rng = np.random.default_rng(20_000)
    content = honest(kind)
    outcomes = [outcome(mutated(content, rng), kind) for _ in range(6)]
    assert set(outcomes) <= {"refused", "identical"}


@pytest.mark.parametrize("kind", KINDS)
def test_crafted_parts_are_refused_or_without_effect(kind):
    wrong = {}
    # All of them for one kind of model and a quarter for the others, in turn; benchmarks/damaged_files.py tries all.
    names = list(CRAFTED) if kind == "linear" else list(CRAFTED)[KINDS.index(kind) % 4 :: 4]
    for name in {*names, "record without fields"}:
        parts = Parts.of(honest(kind))
        CRAFTED[name](parts)
        found = outcome(parts.packed(), kind)
        if found not in ("refused", "identical"):
            wrong[name] = found
    assert not wrong


@pytest.mark.parametrize("name", PACKED)
def test_crafted_bytes_are_refused_or_without_effect_and_take_no_memory(name):
    content = PACKED[name](honest("table"))
    found = []
    assert peak_memory(lambda: found.append(outcome(content, "table"))) < MOST_MEMORY
    assert found[0] in ("refused", "identical")


def _is_record(value: object) -> bool:
    return isinstance(value, dict) and "record" in value


@pytest.mark.parametrize("value", ["x", -1, {"list": []}, {"dict": []}, []], ids=str)
def test_a_wrong_type_in_the_place_of_any_record_is_refused(value):
    for kind in KINDS:
        for position in range(0, 40, 8):
            parts = Parts.of(honest(kind))
            places = [(part, key) for part, key in parts.places() if _is_record(part[key])]
            part, key = places[position % len(places)]
            part[key] = value
            assert outcome(parts.packed(), kind) in ("refused", "identical")


@pytest.mark.parametrize("name", PAYLOADS)
def test_payloads_would_run_and_do_not(name, tmp_path):
    marker = tmp_path / "marker"
    payload = PAYLOADS[name](str(marker))
    with pytest.raises(ValueError, match=r"wants to create \[.*load\(path, trusted="):
        load(io.BytesIO(with_payload(honest("linear"), payload)))
    assert not marker.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about an object that it did not write
        skops.io.loads(payload, trusted=[*skops.io.get_untrusted_types(data=payload)])
    assert marker.exists()  # it is a real one: with everything trusted, it runs


def test_trust_of_one_name_is_not_trust_of_others(tmp_path):
    marker = tmp_path / "marker"
    payload = PAYLOADS["inside an estimator"](str(marker))
    content = with_payload(honest("linear"), payload)
    for trusted in (["sklearn."], ["sklearn"], ["sklearn.preprocessing._data.StandardScaler"], ["*"]):
        with pytest.raises(ValueError, match="check_output"):
            load(io.BytesIO(content), trusted=trusted)
    assert not marker.exists()


def test_a_module_is_not_even_imported(tmp_path, monkeypatch):
    marker = tmp_path / "marker"
    (tmp_path / "evil_module.py").write_text(f"open({str(marker)!r}, 'w')\nclass Thing: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    payload = crafted_files._skops(crafted_files._node("TypeNode", "evil_module.Thing"))
    with pytest.raises(ValueError, match="evil_module"):
        load(io.BytesIO(with_payload(honest("linear"), payload)))
    assert not marker.exists()


class _Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_pickles_inside_arrays_are_not_opened(tmp_path):
    marker = tmp_path / "marker"
    with io.BytesIO() as buffer:
        np.save(buffer, np.array([_Touch(str(marker))], dtype=object), allow_pickle=True)
        array = buffer.getvalue()
    node = crafted_files._node("NdArrayNode", "numpy.ndarray", type="numpy", file="a.npy")
    content = with_payload(honest("linear"), crafted_files._skops(node, **{"a.npy": array}))
    with pytest.raises(ValueError, match="is not a featgeo model, or it is damaged"):
        load(io.BytesIO(content))
    assert not marker.exists()
    with pytest.raises(ValueError, match="is not a featgeo model"):
        load(io.BytesIO(pickle.dumps(_Touch(str(marker)))))
    assert not marker.exists()


def test_what_is_trusted_are_classes_and_each_by_itself():
    assert all(isinstance(cls, type) and cls.__name__ == name for name, cls in SAVED.items())
    assert all(cls.__module__.startswith("featgeo.") for cls in SAVED.values() if cls.__module__ != "test_persistence")


@pytest.mark.parametrize("kind", KINDS)
def test_featgeo_itself_writes_no_other_types(kind):
    assert all(name.startswith("array-") for name in Parts.of(honest(kind)).tensors)


def test_nodes_that_point_outside_of_their_tree_are_refused():
    for field, value in (
        (1, 10**6),  # where rows go
        (2, 0),
        (0, 10**6),  # the column
        (0, -1),
        (3, 99_999),  # the set of labels
    ):
        parts = Parts.of(honest("trees"))
        records = crafted_files._of_kind(parts.manifest["attributes"], "record")
        forest = next(part["fields"] for part in records if part["record"] == "Forest")
        name = forest["nodes"]["array"]
        nodes = parts.tensors[name].copy()
        inner = np.flatnonzero(nodes[:, 1] != np.arange(len(nodes)))
        nodes[inner[0], field] = value
        parts.tensors[name] = nodes
        assert outcome(parts.packed(), "trees") == "refused", field


def test_a_network_wider_than_its_parameters_takes_no_memory():
    for option in ("width", "n_inputs", "depth"):
        parts = Parts.of(honest("network"))
        crafted_files._config(parts, **{option: 100_000})
        found = []
        assert peak_memory(lambda: found.append(outcome(parts.packed(), "network"))) < MOST_MEMORY
        assert found == ["refused"]


def test_the_message_says_what_is_wrong_and_the_way_out(tmp_path):
    path = tmp_path / "model.fg"
    path.write_bytes(honest("table")[:-1])
    with pytest.raises(
        ValueError, match=re.escape(str(path)) + r" is not a featgeo model, .* Save the model again, or"
    ):
        load(path)


def test_an_array_that_was_replaced_is_noticed_though_all_is_sound_but_the_checksum(tmp_path):
    path, crafted = tmp_path / "model.fg", tmp_path / "crafted.fg"
    ModalDecomposition(1, x_space="linear", y_space="linear", verbose=0).fit(*np.eye(2).repeat(20, 1)).save(path)
    line, _, body = path.read_bytes().partition(b"\n")
    content = bytearray(zlib.decompress(body))
    content[-1] ^= 1
    crafted.write_bytes(line + b"\n" + zlib.compress(bytes(content)))
    with pytest.raises(ValueError, match="its checksum is that of another content"):
        load(crafted)


def test_a_file_of_the_format_before_says_so():
    with pytest.raises(
        ValueError, match=r"The file has format version 3\.x or older and this featgeo reads version 4\.x"
    ):
        load(io.BytesIO(PACKED["an archive of format 3.0"](honest("table"))))


def test_what_packs_too_well_is_stored_as_it_is():
    content = packed({"model": "x"}, {"zeros": np.zeros(10**6)})
    assert len(content) > 8 * 10**6
    manifest, arrays = unpacked(content)
    assert manifest == {"model": "x"}
    np.testing.assert_array_equal(arrays["zeros"], np.zeros(10**6))
