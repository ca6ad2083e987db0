"""Objects of the user's own types in a file, by skops: every type and every function in them is named by the user.

skops trusts all estimators of scikit-learn and some functions by itself; here nothing is trusted but numbers, texts,
arrays and what holds them. It is all decided before skops reads anything.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from featgeo.schema import RefusedError, damaged

_SCALARS = {f"numpy.{kind.__name__}" for kind in np.sctypeDict.values() if issubclass(kind, np.number | np.bool_)}
_PLAIN_TYPES = {"builtins.str", "builtins.int", "builtins.float", "builtins.bool", *_SCALARS}
# By the part of skops that would make it, because the same name means different things to different parts.
PLAIN = {
    "JsonNode": {"builtins.str"},
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "BytesNode": {"builtins.bytes"},
    "NdArrayNode": {"numpy.ndarray", *_SCALARS},
    "TypeNode": _PLAIN_TYPES,
}


def unpack(contents: Mapping[str, bytes], trusted: Collection[str]) -> dict[str, Any]:
    """The objects again, by name, if the user trusts all that they are made of.

    Args:
        contents: What `skops().dumps` gave, by name.
        trusted: Full names of types and functions that they may be made of.
    """
    every = sorted({kind for content in contents.values() for kind in _wanted(content)})
    missing = [kind for kind in every if kind not in trusted]
    if missing:
        raise RefusedError(
            f"wants to create {missing}, which are not among the types that featgeo itself writes. Only if you trust "
            f"whoever made the file, pass load(path, trusted={every})."
        )
    return {name: skops().loads(content, trusted=every) for name, content in contents.items()}


def _wanted(content: bytes) -> set[str]:
    """Names of all that would be imported, from the description alone."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(info.file_size for info in archive.infolist()) > len(content):
            raise damaged("an object would unpack to more than it takes")  # skops packs nothing
        schema = json.loads(archive.read("schema.json"))
    if not isinstance(schema, dict) or schema.get("protocol") != skops()._protocol.PROTOCOL:
        raise RefusedError("holds objects that another version of skops wrote. Load it with that one, or fit again.")
    wanted: set[str] = set()
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting.pop()
        inside = part.values() if isinstance(part, dict) else part
        waiting += [inner for inner in inside if isinstance(inner, dict | list)]
        if isinstance(part, dict) and "__loader__" in part:
            name = f"{part.get('__module__')}.{part.get('__class__')}"
            if name not in PLAIN.get(str(part["__loader__"]), ()):
                wanted.add(name)
            if part["__loader__"] == "MethodNode":
                wanted.add(f"{name}.{part['content']['func']}")
    return wanted


def skops() -> Any:
    """What packs and unpacks them; slow to import, as it imports all of scikit-learn."""
    return import_module("skops.io")
