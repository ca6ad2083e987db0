"""Model files that are damaged or made to do harm, and what loading them must come to: a clear error or the same model.

A new kind of crafted file is one line in `CRAFTED` (a change of an honest file's parts, whose checksums are then put
right), in `PACKED` (a file in other bytes) or in `PAYLOADS` (an object that would run code).
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors.numpy
import skops.io

import featgeo as fg


@dataclass
class Parts:
    """What an honest file holds, to be changed.

    Attributes:
        line: The words of its first line, but for the checksum.
        manifest: What the model is made of.
        tensors: All other arrays.
        payload: What is packed in place of manifest and tensors.
    """

    line: list[str]
    manifest: dict[str, Any]
    tensors: dict[str, np.ndarray]
    payload: bytes | None = None

    @classmethod
    def of(cls, content: bytes) -> Parts:
        line, _, body = content.partition(b"\n")
        tensors = safetensors.numpy.load(zlib.decompress(body))
        manifest = json.loads(tensors.pop("manifest").tobytes())
        return cls(line.decode().split(" ")[:-1], manifest, tensors)

    def packed(self, manifest: bytes | None = None) -> bytes:
        """A file whose checksum is right."""
        text = json.dumps(self.manifest).encode() if manifest is None else manifest
        everything = {**self.tensors, "manifest": np.frombuffer(text, dtype=np.uint8)}
        payload = safetensors.numpy.save(everything) if self.payload is None else self.payload
        return self.sealed(zlib.compress(payload, level=0))

    def sealed(self, body: bytes) -> bytes:
        """A body under a line with its checksum."""
        return " ".join([*self.line, hashlib.sha256(body).hexdigest()]).encode() + b"\n" + body

    def places(self) -> list[tuple[Any, Any]]:
        """Every place in the description of the model: what holds it, and its name or position there."""
        found, waiting = [], [self.manifest["parameters"], self.manifest["attributes"]]
        while waiting:
            part = waiting.pop()
            names = list(part) if isinstance(part, dict) else range(len(part))
            for name in names:
                found.append((part, name))
                if isinstance(part[name], dict | list):
                    waiting.append(part[name])
        return found


def packed(members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    """Members as a zip archive, as skops writes it; with the comment that models had when they were archives."""
    with io.BytesIO() as buffer:
        with zipfile.ZipFile(buffer, "w", kind) as file:
            if "manifest.json" in members:
                file.comment = f"featgeo sha256 {hashlib.sha256(members['manifest.json']).hexdigest()}".encode()
            for name, content in members.items():
                file.writestr(name, content)
        return buffer.getvalue()


@dataclass(frozen=True)
class Kind:
    """A kind of model: a fitted one and its answers to a few questions."""

    model: Any
    answers: Callable[[Any], np.ndarray]


def _labels_and_numbers(n: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(n)
    frame = pd.DataFrame({"x": x, "colour": rng.choice(["red", "blue"], n), "day": pd.date_range("2024", periods=n)})
    y = x + (frame.colour == "red").to_numpy() + 0.3 * rng.standard_normal(n)
    return frame, y, np.where(y > 0.5, "high", "low")


@functools.cache
def kinds() -> dict[str, Kind]:
    """One small model of every kind."""
    frame, y, label = _labels_and_numbers(150)
    colour, x = frame.colour.to_numpy(), frame.x.to_numpy()
    training = fg.Training(max_epochs=1, progress=False)
    text = list("abcabbbacabc" * 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the fit says of so few rows does not matter here
        made: dict[str, tuple[Any, Callable[[Any], Any]]] = {
            "table": (fg.ModalDecomposition().fit(colour, label), lambda m: m.given(colour).proba()),
            "linear": (
                fg.ModalDecomposition(2, x_space="linear", y_space="linear").fit(frame, y),
                lambda m: m.given(frame).quantile(0.3),
            ),
            "spline": (
                fg.ModalDecomposition(2, x_space="spline", y_space="spline").fit(frame, y),
                lambda m: m.transform(frame),
            ),
            "kernel": (
                fg.ModalDecomposition(2, x_space="kernel", y_space="linear", random_state=0).fit(frame, y),
                lambda m: m.transform(frame),
            ),
            "index": (
                fg.ModalDecomposition(1, x_space="index", y_space="linear", random_state=0).fit(frame, y),
                lambda m: m.transform(frame),
            ),
            "trees": (
                fg.ModalDecomposition(1, x_space="trees", y_space="linear", random_state=0).fit(frame, y),
                lambda m: m.transform(frame),
            ),
            "network": (
                fg.ModalDecomposition(1, solver="neural", training=training).fit(frame, y),
                lambda m: m.transform(frame),
            ),
            "classifier": (
                fg.FeatureClassifier(x_space="linear", random_state=0).fit(frame, label),
                lambda m: m.predict_proba(frame),
            ),
            "regressor": (
                fg.FeatureRegressor(x_space="linear", random_state=0).fit(frame, y),
                lambda m: m.predict_interval(frame),
            ),
            "conditional": (
                fg.ConditionalDecomposition(
                    1, x_space="linear", y_space="linear", s_space="linear", random_state=0
                ).fit(x, y, colour),
                lambda m: m.given(x, colour).quantile(0.3),
            ),
            "multimodal": (
                fg.MultimodalDecomposition(spaces="linear", random_state=0).fit({"a": x, "b": colour}, y),
                lambda m: m.given(a=x, b=colour).quantile(0.3),
            ),
            "sequential": (
                fg.SequentialDecomposition(2).fit(text),
                lambda m: m.given([["a", "b"], ["b", "b"], ["c", "a"]]).proba(),
            ),
        }
    return {name: Kind(*kind) for name, kind in made.items()}


@functools.cache
def honest(kind: str) -> bytes:
    """The file of a model."""
    with tempfile.TemporaryDirectory() as folder:
        kinds()[kind].model.save(Path(folder) / "model.fg")
        return (Path(folder) / "model.fg").read_bytes()


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """A file with one accident: bytes changed, lost, doubled, swapped or made zero, or the end cut off."""
    n, data = len(content), bytearray(content)
    at, length = int(rng.integers(n)), int(rng.integers(1, 1 + min(64, n)))
    kind = rng.integers(7)
    if kind == 0:
        data[at] ^= int(rng.integers(1, 256))
    elif kind == 1:
        data[at : at + length] = rng.bytes(len(data[at : at + length]))
    elif kind == 2:
        del data[at : at + length]
    elif kind == 3:
        data[at:at] = data[at : at + length]
    elif kind == 4:
        del data[at:]
    elif kind == 5:
        data[at : at + length] = bytes(len(data[at : at + length]))
    else:
        other = int(rng.integers(n))
        data[at], data[other] = data[other], data[at]
    return bytes(data)


def outcome(content: bytes, kind: str) -> str:
    """What loading a file comes to: "refused" with a clear error, "identical", or what went wrong."""
    try:
        model = fg.load(io.BytesIO(content))
    except ValueError as error:
        text = str(error)
        return "refused" if _is_clear(text) else f"unclear: {text[:200]}"
    except Exception as error:
        return f"raw {type(error).__name__}: {str(error)[:200]}"
    try:
        answers, wanted = kinds()[kind].answers(model), _wanted(kind)
    except Exception as error:
        return f"loaded, then {type(error).__name__}: {str(error)[:200]}"
    same = answers.shape == wanted.shape and np.array_equal(answers, wanted, equal_nan=True)
    return "identical" if same else "another model"


def _is_clear(text: str) -> bool:
    rules = ("is not a featgeo model, or it is damaged", "has format version", "which this version does not know")
    return any(rule in text for rule in (*rules, "wants to create")) and text.endswith(".")


@functools.cache
def _wanted(kind: str) -> np.ndarray:
    return kinds()[kind].answers(kinds()[kind].model)


def _of_kind(value: Any, key: str) -> Iterator[dict[str, Any]]:
    """All parts of the description that have a key."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict) and key in part:
            yield part
        waiting += [
            inner for inner in (part.values() if isinstance(part, dict) else part) if isinstance(inner, dict | list)
        ]


def _first(parts: Parts, key: str) -> dict[str, Any]:
    return next(_of_kind([parts.manifest["attributes"], parts.manifest["parameters"]], key), {})


def _attribute(parts: Parts, name: str, value: Any) -> None:
    parts.manifest["attributes"]["dict"].append([name, value])


def _without(parts: Parts, name: str) -> None:
    attributes = parts.manifest["attributes"]["dict"]
    attributes[:] = [pair for pair in attributes if pair[0] != name]


def _parameter(parts: Parts, value: Any) -> None:
    parts.manifest["parameters"]["dict"][0][1] = value


def _tensor(parts: Parts, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Another array in the place of the largest."""
    name = max(parts.tensors, key=lambda key: parts.tensors[key].nbytes)
    parts.tensors[name] = change(parts.tensors[name])


def _config(parts: Parts, **options: Any) -> None:
    for part in _of_kind(parts.manifest["attributes"], "module"):
        if isinstance(part["module"], dict):
            part["module"].update(options)


def _bytes(content: bytes) -> np.ndarray:
    return np.frombuffer(content, dtype=np.uint8)


def _patched(content: bytes, signature: bytes, offset: int, value: bytes) -> bytes:
    """Some bytes of the first header of a kind in an archive."""
    at = content.index(signature) + offset
    return content[:at] + value + content[at + len(value) :]


def _with_member(content: bytes, name: str, member: bytes) -> bytes:
    with io.BytesIO(content) as buffer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile's own, about names that come twice
            with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as file:
                file.writestr(name, member)
        return buffer.getvalue()


LOCAL, CENTRAL, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
HUGE = struct.pack("<I", 2**31)

# Changes of the zip archive that an object of the user is.
ARCHIVES: dict[str, tuple[bytes, int, bytes]] = {
    "members that are encrypted": (CENTRAL, 8, b"\1"),
    "members packed in an unknown way": (CENTRAL, 10, b"\x63"),
    "members packed by bzip2": (CENTRAL, 10, b"\x0c"),
    "a size of 2 GB": (CENTRAL, 24, HUGE),
    "a packed size of 2 GB": (CENTRAL, 20, HUGE),
    "both sizes of 2 GB": (CENTRAL, 20, HUGE + HUGE),
    "a place outside of the file": (CENTRAL, 42, HUGE),
    "a directory outside of the file": (END, 16, HUGE),
    "a directory of 2 GB": (END, 12, HUGE),
    "65,535 members": (END, 8, b"\xff\xff\xff\xff"),
    "a name of 65,535 letters": (CENTRAL, 28, b"\xff\xff"),
    "a local header of something else": (LOCAL, 0, b"XXXX"),
}

# Changes of an honest file; its checksum is put right afterwards.
CRAFTED: dict[str, Callable[[Parts], Any]] = {
    "no attributes": lambda parts: parts.manifest.update(attributes={"dict": []}),
    "attributes null": lambda parts: parts.manifest.update(attributes=None),
    "attributes a list": lambda parts: parts.manifest.update(attributes=[]),
    "attributes a text": lambda parts: parts.manifest.update(attributes="x"),
    "attributes a number": lambda parts: parts.manifest.update(attributes=1),
    "parameters null": lambda parts: parts.manifest.update(parameters=None),
    "parameters unknown": lambda parts: parts.manifest["parameters"]["dict"].append(["more", "x"]),
    "parameters not text": lambda parts: parts.manifest["parameters"]["dict"].append([1, 2]),
    "no model": lambda parts: parts.manifest.pop("model"),
    "model null": lambda parts: parts.manifest.update(model=None),
    "model a list": lambda parts: parts.manifest.update(model=["ModalDecomposition"]),
    "model unknown": lambda parts: parts.manifest.update(model="Mystery"),
    "model a record": lambda parts: parts.manifest.update(model="Support"),
    "model of the system": lambda parts: parts.manifest.update(model="os.system"),
    "another estimator": lambda parts: parts.manifest.update(
        model="SequentialDecomposition" if parts.manifest["model"] != "SequentialDecomposition" else "FeatureClassifier"
    ),
    "version null": lambda parts: parts.line.__setitem__(1, "null"),
    "version a text": lambda parts: parts.line.__setitem__(1, "four"),
    "version empty": lambda parts: parts.line.__setitem__(1, ""),
    "version of dots": lambda parts: parts.line.__setitem__(1, "..."),
    "version of tomorrow": lambda parts: parts.line.__setitem__(1, "5.0"),
    "version of yesterday": lambda parts: parts.line.__setitem__(1, "1.0"),
    "version of 10^6 digits": lambda parts: parts.line.__setitem__(1, "4" * 10**6),
    "no format": lambda parts: parts.line.pop(0),
    "no version": lambda parts: parts.line.pop(1),
    "another format": lambda parts: parts.line.__setitem__(0, "other"),
    "no parameters": lambda parts: parts.manifest.pop("parameters"),
    "no tensors": lambda parts: parts.tensors.clear(),
    "nothing packed": lambda parts: setattr(parts, "payload", b""),
    "garbage for tensors": lambda parts: setattr(parts, "payload", b"x" * 999),
    "tensors with a header of 2^60": lambda parts: setattr(parts, "payload", struct.pack("<Q", 2**60) + b"{}"),
    "tensors of 10^12 numbers": lambda parts: setattr(
        parts, "payload", _header({"manifest": {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8]}})
    ),
    "tensors outside of the file": lambda parts: setattr(
        parts, "payload", _header({"manifest": {"dtype": "U8", "shape": [2**31], "data_offsets": [0, 2**31]}})
    ),
    "tensors that overlap": lambda parts: setattr(
        parts,
        "payload",
        _header({name: {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]} for name in ("manifest", "array-0")}),
    ),
    "tensors of an unknown kind": lambda parts: setattr(
        parts, "payload", _header({"manifest": {"dtype": "O", "shape": [8], "data_offsets": [0, 8]}})
    ),
    "tensors without a manifest": lambda parts: setattr(parts, "payload", safetensors.numpy.save(parts.tensors)),
    "a manifest of numbers": lambda parts: setattr(
        parts, "payload", safetensors.numpy.save({**parts.tensors, "manifest": np.arange(5.0)})
    ),
    "one tensor missing": lambda parts: parts.tensors.pop(min(parts.tensors)),
    "tensor of another shape": lambda parts: _tensor(parts, lambda array: array.ravel()[: array.size // 2]),
    "tensor empty": lambda parts: _tensor(parts, lambda array: array.ravel()[:0]),
    "array of a huge shape": lambda parts: _first(parts, "array").update(shape=[10**12]),
    "array of a negative shape": lambda parts: _first(parts, "array").update(shape=[-1]),
    "array of a text as shape": lambda parts: _first(parts, "array").update(shape="x"),
    "array with no name": lambda parts: _first(parts, "array").update(array=None),
    "array that is not there": lambda parts: _first(parts, "array").update(array="array-99999"),
    "array of a path": lambda parts: _first(parts, "array").update(array="../../../etc/passwd"),
    "record unknown": lambda parts: _first(parts, "record").update(record="Mystery"),
    "record null": lambda parts: _first(parts, "record").update(record=None),
    "record of the system": lambda parts: _first(parts, "record").update(record="os.system"),
    "record a list": lambda parts: _first(parts, "record").update(record=["Support"]),
    "record without fields": lambda parts: _first(parts, "record").update(fields={}),
    "record with fields null": lambda parts: _first(parts, "record").update(fields=None),
    "record with a field more": lambda parts: _first(parts, "record")["fields"].update(more="x"),
    "record with a key more": lambda parts: _first(parts, "record").update(more="x"),
    "support null": lambda parts: (_without(parts, "support_"), _attribute(parts, "support_", None)),
    "support a list": lambda parts: (_without(parts, "support_"), _attribute(parts, "support_", {"list": []})),
    "no support": lambda parts: _without(parts, "support_"),
    "nothing learned": lambda parts: _without(parts, "learned_"),
    "learned null": lambda parts: (_without(parts, "learned_"), _attribute(parts, "learned_", None)),
    "learned an empty tuple": lambda parts: (
        _without(parts, "learned_"),
        _attribute(parts, "learned_", {"tuple": [1]}),
    ),
    "no components": lambda parts: _without(parts, "components_"),
    "no variable of Y": lambda parts: (_without(parts, "y_variable_"), _without(parts, "symbol_")),
    "another class": lambda parts: _attribute(parts, "__class__", {"record": "Mystery", "fields": {}}),
    "another dictionary": lambda parts: _attribute(parts, "__dict__", {"dict": []}),
    "an attribute with dots": lambda parts: _attribute(parts, "a.b_", 1),
    "an attribute that is a number": lambda parts: _attribute(parts, 5, 1),
    "an attribute that is a list": lambda parts: _attribute(parts, {"list": []}, 1),
    "an empty object": lambda parts: _parameter(parts, {}),
    "a bare list": lambda parts: _parameter(parts, []),
    "a value of two kinds": lambda parts: _parameter(parts, {"list": [], "tuple": []}),
    "a value of no kind": lambda parts: _parameter(parts, {"pickle": "gASVAAAA"}),
    "a tuple that is a text": lambda parts: _parameter(parts, {"tuple": "abc"}),
    "a dictionary of triples": lambda parts: _parameter(parts, {"dict": [[1, 2, 3]]}),
    "a dictionary that is a number": lambda parts: _parameter(parts, {"dict": 5}),
    "a float that is none": lambda parts: _parameter(parts, {"float": "abc"}),
    "a float that is a list": lambda parts: _parameter(parts, {"float": []}),
    "bytes that are none": lambda parts: _parameter(parts, {"bytes": "zz"}),
    "bytes that are null": lambda parts: _parameter(parts, {"bytes": None}),
    "a date that is none": lambda parts: _parameter(parts, {"datetime": "yesterday"}),
    "times of objects": lambda parts: _parameter(parts, {"times": {"array": "array-0", "shape": [1]}, "dtype": "O"}),
    "labels of no kind": lambda parts: _parameter(
        parts, {"labels": "V", "text": "array-0", "lengths": "array-0", "json": True, "shape": [1]}
    ),
    "texts of other lengths": lambda parts: _parameter(
        parts,
        {
            "long": "list",
            "items": {"labels": "O", "text": "array-0", "lengths": "array-0", "json": False, "shape": [1]},
        },
    ),
    "an object of the system": lambda parts: _parameter(parts, {"object": "subprocess.Popen", "state": {"dict": []}}),
    "an object without a state": lambda parts: _parameter(parts, {"object": "Nystroem", "state": None}),
    "an object of nothing": lambda parts: _parameter(parts, {"object": "Nystroem", "state": {"dict": []}}),
    "a spline without knots": lambda parts: _parameter(
        parts, {"object": "BSpline", "state": {"dict": [["t", None], ["c", None], ["k", 3], ["extrapolate", True]]}}
    ),
    "trees of nothing": lambda parts: _parameter(
        parts, {"object": "HistGradientBoostingRegressor", "state": {"dict": [["parameters", 1], ["nodes", 2]]}}
    ),
    "many workers": lambda parts: _parameter(
        parts,
        {
            "object": "Nystroem",
            "state": {"dict": [["parameters", {"dict": [["n_jobs", 10**6]]}], ["learned", {"dict": []}]]},
        },
    ),
    "a method made data": lambda parts: _parameter(
        parts,
        {
            "object": "Nystroem",
            "state": {"dict": [["parameters", {"dict": []}], ["learned", {"dict": [["transform", 1]]}]]},
        },
    ),
    "a function of the system": lambda parts: _parameter(parts, {"function": "os.system"}),
    "an object that is not there": lambda parts: _parameter(parts, {"foreign": "object-0"}),
    "an object that is the manifest": lambda parts: _parameter(parts, {"foreign": "manifest"}),
    "an object of garbage": lambda parts: (
        _parameter(parts, {"foreign": "object-0"}),
        parts.tensors.update({"object-0": _bytes(b"garbage")}),
    ),
    "an object without description": lambda parts: (
        _parameter(parts, {"foreign": "object-0"}),
        parts.tensors.update({"object-0": _bytes(packed({"x": b""}))}),
    ),
    "an object that unpacks to 64 MB": lambda parts: (
        _parameter(parts, {"foreign": "object-0"}),
        parts.tensors.update({"object-0": _bytes(packed({"schema.json": b"0" * 2**26}, zipfile.ZIP_DEFLATED))}),
    ),
    "a tensor more": lambda parts: parts.tensors.update(more=np.zeros(1)),  # unused, so the same model
    "a network of 10 GB": lambda parts: _parameter(
        parts, {"module": {"kind": "mlp", "n_inputs": 50_000, "width": 50_000, "depth": 1}, "state": {}}
    ),
    "a network without end": lambda parts: _parameter(
        parts, {"module": {"kind": "mlp", "n_inputs": 1, "width": 1, "depth": 10**9}, "state": {}}
    ),
    "a network of no kind": lambda parts: _parameter(parts, {"module": {"kind": "os.system"}, "state": {}}),
    "a network that is a text": lambda parts: _parameter(parts, {"module": "x", "state": {}}),
    "a network with a state of null": lambda parts: _parameter(parts, {"module": {"kind": "mlp"}, "state": None}),
    "a network of its own width": lambda parts: _config(parts, width=10**9),  # nothing in models without networks
    "a model in a model in a model": lambda parts: _parameter(
        parts,
        functools.reduce(
            lambda inner, _: {
                "model": parts.manifest["model"],
                "parameters": {"dict": [["x", inner]]},
                "attributes": 1,
            },
            range(50),
            None,
        ),
    ),
    "lists 200 deep": lambda parts: _parameter(
        parts, functools.reduce(lambda part, _: {"list": [part]}, range(200), 1)
    ),
    "numbers of 5000 digits": lambda parts: _parameter(parts, {"float": "9" * 5000}),  # infinity, as an option
}


def _header(tensors: dict[str, Any], content: bytes = b"12345678") -> bytes:
    text = json.dumps(tensors).encode()
    return struct.pack("<Q", len(text)) + text + content


def _with_manifest(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    parts = Parts.of(content)
    return parts.packed(change(json.dumps(parts.manifest).encode()))


def _with_body(content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """What is packed in another way, with the right checksum."""
    return Parts.of(content).sealed(change(content.partition(b"\n")[2]))


def _bomb(content: bytes, size: int, level: int = -1) -> bytes:
    """Tensors of zeros."""
    parts = Parts.of(content)
    parts.tensors["bomb"] = np.zeros(size, dtype=np.uint8)
    return _with_body(parts.packed(), lambda body: zlib.compress(zlib.decompress(body), level))


def _header_twice(content: bytes, name: str) -> bytes:
    """An array that comes twice."""
    payload = zlib.decompress(content.partition(b"\n")[2])
    end = 8 + int.from_bytes(payload[:8], "little")
    header = json.loads(payload[8:end])
    text = json.dumps(header)[:-1] + f', "{name}": {json.dumps(header[name])}' + "}"
    twice = struct.pack("<Q", len(text)) + text.encode() + payload[end:]
    return _with_body(content, lambda body: zlib.compress(twice, level=0))


def _as_archive(content: bytes) -> bytes:
    """The file as format 3.0 would have had it."""
    parts = Parts.of(content)
    manifest = {"format": "featgeo", "version": [3, 0], "featgeo": "0.1.0", **parts.manifest}
    tensors = safetensors.numpy.save(parts.tensors)
    return packed({"manifest.json": json.dumps(manifest).encode(), "tensors.safetensors": tensors})


# Files in other bytes.
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda content: b"",
    "a text": lambda content: b"hello",
    "an empty archive": lambda content: packed({}),
    "an archive of something else": lambda content: packed({"a.txt": b"a"}),
    "a pickle": lambda content: b"cos\nsystem\n(S'true'\ntR.",
    "a manifest that is empty": lambda content: _with_manifest(content, lambda text: b""),
    "a manifest that is null": lambda content: _with_manifest(content, lambda text: b"null"),
    "a manifest that is a list": lambda content: _with_manifest(content, lambda text: b"[]"),
    "a manifest that is a number": lambda content: _with_manifest(content, lambda text: b"1"),
    "a manifest cut short": lambda content: _with_manifest(content, lambda text: text[:-1]),
    "a manifest that is no text": lambda content: _with_manifest(content, lambda text: b"\xff\xfe" + text),
    "a manifest with NaN": lambda content: _with_manifest(
        content, lambda text: text.replace(b"null", b"NaN", 1) + b" "
    ),
    "a manifest with Infinity": lambda content: _with_manifest(content, lambda text: text[:-1] + b', "x": Infinity}'),
    "a manifest with 1e999": lambda content: _with_manifest(content, lambda text: text[:-1] + b', "x": 1e999}'),
    "a manifest with a name twice": lambda content: _with_manifest(content, lambda text: text[:-1] + b', "model": 1}'),
    "a manifest 100,000 deep": lambda content: _with_manifest(content, lambda text: b"[" * 100_000 + b"]" * 100_000),
    "a manifest 100,000 objects deep": lambda content: _with_manifest(content, lambda text: b'{"a":' * 100_000),
    "a manifest of 30 MB of lists": lambda content: _with_manifest(
        content, lambda text: b"[" + b"[]," * 10**7 + b"[]]"
    ),
    "a number of 10,000 digits": lambda content: _with_manifest(
        content, lambda text: text[:-1] + b', "x": ' + b"9" * 10**4 + b"}"
    ),
    "a line alone": lambda content: content.partition(b"\n")[0] + b"\n",
    "a line without its checksum": lambda content: content[: content.index(b"\n") - 64] + b"\n" + content[-64:],
    "a checksum of another content": lambda content: content[: content.index(b"\n") - 64] + b"0" * 64 + b"\n" + content,
    "a line without end": lambda content: content[: content.index(b"\n")] + b"a" * 10**6,
    "an array twice": lambda content: _header_twice(content, "array-0"),
    "a manifest twice": lambda content: _header_twice(content, "manifest"),
    "not packed": lambda content: _with_body(content, zlib.decompress),
    "packed twice": lambda content: _with_body(content, zlib.compress),
    "packed, then cut short": lambda content: _with_body(content, lambda body: body[: len(body) // 2]),
    "packed, then more": lambda content: _with_body(content, lambda body: body + b"more"),
    "packed, then 10 MB more": lambda content: _with_body(content, lambda body: body + bytes(10**7)),
    "tensors of 100 MB of zeros": lambda content: _bomb(content, 10**8),
    "tensors of 1 MB of zeros": lambda content: _bomb(content, 10**6, 9),
    **{
        f"an object with {what}": lambda content, change=change: with_payload(content, _patched(_one(), *change))
        for what, change in ARCHIVES.items()
    },
    "an object with a member twice": lambda content: with_payload(
        content, _with_member(_one(), "schema.json", json.dumps(_schema(_call("os.system", "false"))).encode())
    ),
    "an object with a member of 100 MB": lambda content: with_payload(
        content, _with_member(_one(), "more", bytes(10**8))
    ),
    "an archive of format 3.0": _as_archive,
    "an archive of format 3.0 cut short": lambda content: _as_archive(content)[:-100],
    "twice the same file": lambda content: content + content,
    "something before it": lambda content: b"#!/bin/sh\n" + content,
    "cut in half": lambda content: content[: len(content) // 2],
    "without its end": lambda content: content[:-1],
    "zeros of the same size": lambda content: bytes(len(content)),
}


def _node(loader: str, name: str, **content: Any) -> dict[str, Any]:
    module, _, cls = name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": cls, **content}


def _json(value: Any) -> dict[str, Any]:
    return _node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True)


def _list(*nodes: Any, name: str = "builtins.list", loader: str = "ListNode") -> dict[str, Any]:
    return _node(loader, name, content=list(nodes))


def _schema(root: dict[str, Any]) -> dict[str, Any]:
    from skops.io._protocol import PROTOCOL

    return {**root, "protocol": PROTOCOL, "_skops_version": skops.__version__}


def _skops(root: dict[str, Any], **files: bytes) -> bytes:
    return packed({**files, "schema.json": json.dumps(_schema(root)).encode()})


def _one() -> bytes:
    """An object that is a number."""
    return _skops(_json(1))


def _array_of(texts: list[str]) -> bytes:
    with io.BytesIO() as buffer:
        np.save(buffer, np.array(texts), allow_pickle=False)
        return buffer.getvalue()


def _call(name: str, *arguments: Any) -> dict[str, Any]:
    """What makes skops call something with plain arguments."""
    inner = _list(*map(_json, arguments), name="builtins.tuple", loader="TupleNode")
    return _node("ConstructorFromReduceNode", name, content=inner)


# Objects that, once trusted, run the command `touch MARKER`: by name the object for a marker.
PAYLOADS: dict[str, Callable[[str], bytes]] = {
    "a function that scikit-learn re-exports": lambda marker: _skops(
        _call("sklearn.utils._testing.check_output", ["touch", marker])
    ),
    "the function itself": lambda marker: _skops(_call("subprocess.check_output", ["touch", marker])),
    "a list by another name": lambda marker: _skops(
        _list(_json("touch"), _json(marker), name="sklearn.utils._testing.check_output")
    ),
    "a set by another name": lambda marker: _skops(
        _list(_json("touch"), _json(marker), name="subprocess.check_output", loader="SetNode")
    ),
    "an array by another name": lambda marker: _skops(
        _node("NdArrayNode", "subprocess.check_output", type="numpy", file="a.npy"),
        **{"a.npy": _array_of(["touch", marker])},
    ),
    "a type of keys": lambda marker: _skops(
        _node(
            "DictNode",
            "builtins.dict",
            content={f"touch {marker}": _json(1)},
            key_types=_list(_node("TypeNode", "os.system")),
        )
    ),
    "inside an array of objects": lambda marker: _skops(
        _node(
            "NdArrayNode",
            "numpy.ndarray",
            type="json",
            content=[_call("subprocess.check_output", ["touch", marker])],
            shape=_json([1]),
        )
    ),
    "inside an estimator": lambda marker: _skops(
        _node(
            "ObjectNode",
            "sklearn.preprocessing._data.StandardScaler",
            content=_node(
                "DictNode",
                "builtins.dict",
                content={"x": _call("sklearn.utils._testing.check_output", ["touch", marker])},
                key_types=_list(_node("TypeNode", "builtins.str")),
            ),
        )
    ),
    "in the arguments of a partial": lambda marker: _skops(
        _node(
            "PartialNode",
            "functools.partial",
            content={
                "func": _node("FunctionNode", "operator.add"),
                "args": _list(_call("os.system", f"touch {marker}"), name="builtins.tuple", loader="TupleNode"),
                "kwds": _node("DictNode", "builtins.dict", content={}, key_types=_list()),
                "namespace": _json(None),
            },
        )
    ),
    "in the arguments of an operator": lambda marker: _skops(
        _node(
            "OperatorFuncNode",
            "operator.methodcaller",
            attrs=_list(_json("x"), _call("os.system", f"touch {marker}"), name="builtins.tuple", loader="TupleNode"),
        )
    ),
    "in the data of a masked array": lambda marker: _skops(
        _node(
            "MaskedArrayNode",
            "numpy.ma.MaskedArray",
            content={"data": _call("os.system", f"touch {marker}"), "mask": _json(False)},
        )
    ),
    "in the arguments of a loss": lambda marker: _skops(
        _node(
            "LossNode",
            "sklearn._loss._loss.CyHalfSquaredError",
            content=_json(None),
            __reduce__={
                "args": _list(_call("os.system", f"touch {marker}"), name="builtins.tuple", loader="TupleNode")
            },
        )
    ),
    "a sparse matrix by another name": lambda marker: _skops(
        _node(
            "TupleNode",
            "builtins.tuple",
            content=[_list(_json("touch"), _json(marker), name="subprocess.check_output")],
        )
    ),
}


def with_payload(content: bytes, payload: bytes) -> bytes:
    """A file that has an object of the user's own where an option is."""
    parts = Parts.of(content)
    _parameter(parts, {"foreign": "object-0"})
    parts.tensors["object-0"] = _bytes(payload)
    return parts.packed()


def peak_memory(function: Callable[[], Any]) -> float:
    """The most memory that a call takes beyond what there was, in MB; 0 where the system does not tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        function()
        return (_status("VmHWM") - before) / 1024
    except OSError:
        function()
        return 0.0


def _status(name: str) -> int:
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text()).group(1))
