"""Fitted models in files: tensors and JSON, never pickle.

A file is one line and a body. The line has the word `featgeo`, the version of the format, that of the library, and the
sha256 of the body, which is a safetensors file, packed by zlib. Nothing unpacks to more than `MOST_RATIO` times what it
takes in the file, and safetensors knows every size before it reads anything, so that reading takes memory in proportion
to the file, whoever made it. The checksum finds damage, not malice: whoever writes a file can write it, too.

One of its arrays, the manifest, is JSON that says what the model is made of; others are those of the model, long lists,
and the bytes that skops makes of objects of other libraries, one array for each that the user passed. Loading creates
the classes that say `@saved` (`featgeo.schema`), each with fields of the types that it declares, and nothing else: no
other class, no function, nothing by a name that a file brings, unless the user names it. A network of the user is saved
by its parameters alone, and handed in again at load.
"""

from __future__ import annotations

import copy
import json
import math
import os
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as fields_of
from datetime import datetime
from hashlib import sha256
from importlib import import_module, metadata
from pathlib import Path
from typing import IO, Any

import numpy as np
import safetensors.numpy
import torch
from sklearn.base import BaseEstimator

from featgeo.features import networks
from featgeo.files import check_is_there, write_whole
from featgeo.models import foreign
from featgeo.schema import SAVED, RefusedError, damaged, filled, is_saved, made, saved_fields

# 1.x kept objects of scikit-learn by the names of their types, 2.x spaces as they were before they were modules, 3.x
# zip archives.
FORMAT_VERSION = "4.0"
MANIFEST = "manifest"
MOST_RATIO = 8  # what packs better is stored as it is
# A value takes at most about 80 bytes of memory ("[]," is the worst), so these take 120 MB. Labels and long lists
# are not in the manifest, and the widest tables that can be fitted need a tenth of it.
MOST_VALUES = 1_500_000
_LINE = re.compile(rb"featgeo (\S{1,40}) (\S{1,40}) ([0-9a-f]{64})\n")

Readable = str | os.PathLike[str] | IO[bytes]
_OBJECT = "object"  # how names of arrays begin that are objects of the user
FROM_TEXT: dict[str, Any] = {"float": float, "bytes": bytes.fromhex, "datetime": datetime.fromisoformat}
LISTS: dict[str, Any] = {"tuple": tuple, "list": list}
PLAIN = None | bool | int | float | str
LATER_ROOMS = {"Exploration": "featgeo.explore.exploration"}  # records that stand alone, declared above this room
COUNTS = ("uint16", "uint32")  # what counts are kept in
LONG = 64  # lists of more plain values than this are kept among the tensors, where they take less


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file; a file that is there already is replaced only once the new one is whole."""
    if not is_saved(model):
        raise ValueError(f"A {type(model).__name__} cannot be saved: it is none of featgeo's own classes.")
    writer = _Writer()
    write_whole(path, packed(writer.encode(model), writer.tensors))


def load(file: Readable, modules: Mapping[str, Any] | None = None, trusted: Sequence[str | type] = ()) -> Any:
    """Read a model that `save` wrote.

    Args:
        file: The path, or a binary file that is open for reading, such as `io.BytesIO`.
        modules: For models with networks of the user: modules of the same architecture, by the argument they came from
            ("x", "y", "s", "orthogonal_to", and "y_given_s.x" for the model of Y given S). They are copied, with the
            parameters in the file. For a model that is orthogonal to a function of the user, that function, as
            "orthogonal_to".
        trusted: Types other than those that featgeo itself writes which the file may create, or their full names. Their
            code may run: name them only if you trust whoever made the file.

    Raises:
        ValueError: If the file is not a model, is damaged, holds types that are not trusted, or comes from another
            major version of the format.
    """
    name = os.fspath(file) if isinstance(file, str | os.PathLike) else "The file"
    if isinstance(trusted, str):
        raise ValueError(f"`trusted` must be a list of names, got {trusted!r}. Pass trusted=[{trusted!r}].")
    names = {kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}" for kind in trusted}
    content = content_of(file)
    try:
        manifest, tensors = unpacked(content)
        packages = {name: part.tobytes() for name, part in tensors.items() if name.startswith(_OBJECT)}
        return _Reader(foreign.unpack(packages, names), tensors, dict(modules or {})).root(manifest)
    except _NotGivenError:
        raise
    except Exception as error:  # whatever a file makes go wrong is that file's fault
        refused = error if isinstance(error, RefusedError) else damaged(f"{type(error).__name__}: {error}")
        raise ValueError(f"{name} {refused}") from error


class _NotGivenError(ValueError):
    """What the user has to hand in."""


class _Writer:
    """Objects as JSON, with arrays, long lists and objects of the user's types put aside as arrays."""

    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self._known: dict[int, tuple[Any, Any]] = {}  # objects that several parts share are written once

    def encode(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case float():
                return value if math.isfinite(value) else {"float": str(value)}
            case np.generic() if value.dtype.kind in "biufUS":
                return self.encode(value.item())
            case tuple() | list() if len(value) > LONG and all(isinstance(part, PLAIN) for part in value):
                return {"long": type(value).__name__, "items": self._array(np.array(value, dtype=object))}
            case tuple() | list():
                return {type(value).__name__: [self.encode(part) for part in value]}
            case dict():
                return {"dict": [[self.encode(key), self.encode(part)] for key, part in value.items()]}
            case Path():
                return str(value)
            case bytes():
                return {"bytes": value.hex()}
            case datetime():
                return {"datetime": value.isoformat()}
            case np.random.RandomState() | np.random.Generator():
                return None  # where it stood is not part of what was learned
        if id(value) not in self._known:
            self._known[id(value)] = value, self._encode_object(value)  # kept alive, so that its id stays its own
        return self._known[id(value)][1]

    def _encode_object(self, value: Any) -> Any:
        match value:
            case _ if is_saved(value):
                return self._saved(value)
            case np.ndarray():
                return self._array(value)
            case torch.nn.Module():
                config = getattr(value, "config", None)
                state = {
                    name: self._array(tensor.detach().cpu().numpy()) for name, tensor in value.state_dict().items()
                }
                return {"module": config if isinstance(config, dict) else None, "state": state}
            case BaseEstimator():
                return {"foreign": self._tensor(np.frombuffer(foreign.skops().dumps(value), dtype=np.uint8), _OBJECT)}
            case _ if callable(value):
                return {"function": "orthogonal_to"}
        raise ValueError(
            f"A {type(value).__name__} cannot be saved. Parts of a model must be arrays, scikit-learn objects, torch "
            "modules or plain values."
        )

    def _saved(self, value: Any) -> dict[str, Any]:
        """What a class declares, as far as the object has it."""
        name, fields = type(value).__name__, saved_fields(type(value))
        if not isinstance(value, BaseEstimator):
            return {"record": name, "fields": {part: self.encode(getattr(value, part)) for part in fields}}
        there = {*vars(value), *(value.learned_later if "put_off_" in vars(value) else ())}  # some are learned only now
        left = {part: getattr(value, part) for part in fields if part.endswith("_") and part in there}
        declared = {part.name for part in fields_of(value)}
        unknown = [part for part in vars(value) if part.endswith("_") and part not in declared]
        if unknown:
            raise ValueError(f"{unknown} of a {name} cannot be saved: its class does not declare them. Delete them.")
        return {
            "model": name,
            "parameters": self.encode(value.get_params(deep=False)),
            "attributes": self.encode(left),
        }

    def _array(self, array: np.ndarray) -> Any:
        """Labels are one long text and the length of each; JSON where they are not all texts."""
        if array.dtype.kind in "mM":
            return {"times": self._array(array.view(np.int64)), "dtype": array.dtype.str}
        if array.dtype.name in COUNTS:  # in as few bytes as they need: tables of counts are large, and most are small
            small = array.astype(np.min_scalar_type(array.max(initial=0)))
            return {"array": self._tensor(small), "shape": list(array.shape), "counts": array.dtype.name}
        if array.dtype.kind not in "OUS":
            return {"array": self._tensor(array), "shape": list(array.shape)}
        items = array.ravel().tolist()
        as_they_are = all(type(item) is str for item in items)
        texts = items if as_they_are else [json.dumps(self.encode(item), allow_nan=False) for item in items]
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        return {
            "labels": array.dtype.kind,
            "text": self._tensor(np.frombuffer(b"".join(parts), dtype=np.uint8)),
            "lengths": self._tensor(np.array([len(part) for part in parts], dtype=np.int64)),
            "json": not as_they_are,
            "shape": list(array.shape),
        }

    def _tensor(self, array: np.ndarray, kind: str = "array") -> str:
        name = f"{kind}-{len(self.tensors)}"
        self.tensors[name] = np.ascontiguousarray(array)
        return name


@dataclass
class _Reader:
    """The way back. What is not exactly what the writer writes is refused."""

    objects: Mapping[str, Any]
    tensors: Mapping[str, np.ndarray]
    modules: Mapping[str, Any]
    inside: str = ""  # the argument that holds this model, where it is part of another

    def root(self, value: dict[str, Any]) -> Any:
        """What the file holds: an estimator, or a record that stands alone."""
        kind = value.get("record")
        if not isinstance(kind, str):
            return self.model(value)
        if kind in LATER_ROOMS:
            import_module(LATER_ROOMS[kind])
        if not getattr(SAVED.get(kind), "is_root", False):
            raise RefusedError(f"holds a {kind[:40]!r}, which is no whole result. Upgrade featgeo.")
        return self._record(SAVED[kind], value["fields"])

    def model(self, value: dict[str, Any]) -> Any:
        """An estimator again."""
        kind = value["model"]
        if not isinstance(kind, str) or not issubclass(SAVED.get(kind, object), BaseEstimator):
            raise RefusedError(f"holds a {str(kind)[:40]!r}, which this version does not know. Upgrade featgeo.")
        return filled(SAVED[kind](**self.decode(value["parameters"])), self.decode(value["attributes"]))

    def decode(self, value: Any) -> Any:
        if isinstance(value, PLAIN):
            return value
        match sorted(value.items()):
            case [("float" | "bytes" | "datetime" as kind, text)]:
                return FROM_TEXT[kind](text)
            case [("tuple" | "list" as kind, list(parts))]:
                return LISTS[kind](map(self.decode, parts))
            case [("dict", list(pairs))]:
                return {self.decode(key): self.decode(part) for key, part in pairs}
            case [("items", items), ("long", "tuple" | "list" as kind)]:
                return LISTS[kind](self.decode(items).tolist())
            case [("json", as_json), ("labels", kind), ("lengths", lengths), ("shape", shape), ("text", text)] if (
                kind in ("O", "U", "S") and min(shape, default=0) >= 0
            ):
                return np.array(self._texts(text, lengths, as_json), dtype=kind).reshape(shape)
            case [("array", name), ("shape", shape)] if min(shape, default=0) >= 0:
                return self.tensors[name].reshape(shape)
            case [("array", name), ("counts", kind), ("shape", shape)] if kind in COUNTS and min(shape, default=0) >= 0:
                return self.tensors[name].astype(kind, casting="safe").reshape(shape)
            case [("dtype", str(kind)), ("times", times)] if np.dtype(kind).kind in "mM":
                return self.decode(times).view(kind)
            case [("foreign", name)]:
                return self.objects[name]
            case [("module", config), ("state", state)]:
                return self._module(config, state)
            case [("attributes", _), ("model", _), ("parameters", _)]:
                return replace(self, inside=f"{self.inside}y_given_s.").model(value)
            case [("function", "orthogonal_to")]:
                return self._handed_in("orthogonal_to", "a function of your own", "the same one")
            case [("fields", fields), ("record", name)]:
                return self._record(SAVED[name], fields)
        raise damaged(f"a value that featgeo never writes: {str(value)[:80]}")

    def _texts(self, text: str, lengths: str, as_json: bool) -> list[Any]:
        content, sizes = self.tensors[text].tobytes(), self.tensors[lengths]
        if (sizes < 0).any() or sizes.sum() != len(content):
            raise damaged("texts of other lengths")
        ends = np.cumsum(sizes).tolist()
        parts = [content[end - size : end] for end, size in zip(ends, sizes.tolist(), strict=True)]
        return [self.decode(parse(part)) if as_json else part.decode("utf-8", "surrogatepass") for part in parts]

    def _handed_in(self, name: str, what: str, which: str) -> Any:
        """What the user has to hand in."""
        if name not in self.modules:
            raise _NotGivenError(
                f"This model has {what} as {name!r}. Pass {which}: load(path, modules={{{name!r}: ...}})."
            )
        return self.modules[name]

    def _record(self, cls: type, fields: dict[str, Any]) -> Any:
        parts = {}
        for name, part in fields.items():
            named_by = saved_fields(cls)[name].metadata.get("named_by")
            parts[name] = self.decode(part) if named_by is None else self._module(**part, side=fields[named_by])
        return made(cls, parts)

    def _module(self, module: Any, state: Mapping[str, Any], side: str | None = None) -> torch.nn.Module | None:
        """A network with its parameters; one of the user must be handed in, or stays out where it was a mere option."""
        tensors = {name: torch.from_numpy(self.decode(part)) for name, part in state.items()}
        if module is not None:
            return networks.rebuild(module, tensors).eval()
        if side is None:
            return None
        where = self.inside + side
        own: torch.nn.Module = copy.deepcopy(
            self._handed_in(where, "a network of your own", "one of the same architecture")
        )
        try:
            own.load_state_dict(tensors)
        except RuntimeError as error:
            raise _NotGivenError(
                f"The module for {where!r} has another architecture than the saved one: {error}. Pass one of the same."
            ) from error
        return own.eval()


def content_of(file: Readable) -> bytes:
    """All of what a user wants to read a model from: a path, or a binary file that can be read and sought in."""
    if not isinstance(file, str | os.PathLike):
        if not (hasattr(file, "read") and hasattr(file, "seek")):
            kind = type(file).__name__
            raise TypeError(f"A model is read from a path or from a binary file, got a {kind}. Pass a path.")
        file.seek(0)
        return file.read()
    path = Path(file)
    if path.is_dir():
        raise IsADirectoryError(f"A model is a file, and {str(path)!r} is a folder. Add the name of the file.")
    check_is_there(path)
    if not path.is_file():  # reading from a pipe or a device may never end
        raise ValueError(f"{path} {damaged('a device, a pipe or a socket, not a regular file')}")
    return path.read_bytes()


def packed(manifest: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of a file."""
    text = json.dumps(manifest, allow_nan=False).encode()
    if reason := _too_large(text):
        raise ValueError(f"This model has too many parts to be saved: {reason}. Fit it to fewer columns.")
    content = safetensors.numpy.save({**arrays, MANIFEST: np.frombuffer(text, dtype=np.uint8)})
    body = zlib.compress(content)
    if len(content) > MOST_RATIO * len(body):
        body = zlib.compress(content, level=0)
    line = f"featgeo {FORMAT_VERSION} {metadata.version('featgeo')} {sha256(body).hexdigest()}\n"
    return line.encode() + body


def unpacked(content: bytes) -> tuple[Any, dict[str, np.ndarray]]:
    """The manifest and the other arrays of what `packed` gave; whatever goes wrong is the file's fault."""
    line, was_archive = _LINE.match(content), content.startswith(b"PK") and b"featgeo sha256 " in content[-80:]
    if line is None and not was_archive:
        raise damaged("its first line is not that of a model")
    words = line.groups() if line else (b"3.x or older", b"an earlier one", b"")
    version, library, checksum = (word.decode("latin-1") for word in words)
    if line is None or version.split(".")[0] != FORMAT_VERSION.split(".")[0]:
        raise RefusedError(
            f"has format version {version} and this featgeo reads version {FORMAT_VERSION.split('.')[0]}.x. Load it "
            f"with the featgeo that wrote it ({library}), or fit the model again."
        )
    body = memoryview(content)[line.end() :]
    if sha256(body).hexdigest() != checksum:
        raise damaged("its checksum is that of another content")
    # Where it would unpack to more, safetensors finds too few bytes for the sizes that it read first.
    arrays = safetensors.numpy.load(zlib.decompressobj().decompress(body, MOST_RATIO * len(body)))
    return parse(arrays.pop(MANIFEST).tobytes()), arrays


def parse(text: bytes) -> Any:
    """JSON as `packed` writes it: each name once, finite numbers, not too much of it."""
    if reason := _too_large(text):
        raise damaged(reason)
    return json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite)


def _too_large(text: bytes) -> str:
    values = sum(map(text.count, (b",", b"[", b"{", b":")))
    return f"{values} values, at most {MOST_VALUES}" if values > MOST_VALUES else ""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a name comes twice")
    return result


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no number, or too large")
    return number
