"""The container of a model: a line that says what it is, and arrays of numbers, packed, under a checksum.

The line has the word `featgeo`, the version of the format, that of the library, and the sha256 of all that follows it:
a safetensors file, packed by zlib. One of its arrays, the manifest, is the JSON that says what the model is made of.
Nothing unpacks to more than `MOST_RATIO` times what it takes in the file, and safetensors knows every size before it
reads anything, so that reading takes memory in proportion to the file, whoever made it. The checksum finds damage, not
malice: whoever writes a file can write it, too. What a file may create is settled elsewhere.
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Mapping
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import numpy as np
import safetensors.numpy

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


class RefusedError(ValueError):
    """A file that is not, or no longer, what `save` writes; the message lacks only its subject, the file."""


def damaged(reason: object) -> RefusedError:
    """The error for a file whose content cannot be what was saved."""
    return RefusedError(
        f"is not a featgeo model, or it is damaged or cut short ({str(reason)[:300]}). Save the model again, or get "
        "another copy of the file."
    )


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
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}. Correct the path.")
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
    if len(content) >= MOST_RATIO * len(body):
        body = zlib.compress(content, level=0)
    line = f"featgeo {FORMAT_VERSION} {metadata.version('featgeo')} {sha256(body).hexdigest()}\n"
    return line.encode() + body


def unpacked(content: bytes) -> tuple[Any, dict[str, np.ndarray]]:
    """The manifest and the other arrays of what `packed` gave; whatever goes wrong is the file's fault."""
    if content.startswith(b"PK") and b"featgeo sha256 " in content[-80:]:
        raise _other_version("3.x or older", "an earlier one")
    line = _LINE.match(content)
    if line is None:
        raise damaged("its first line is not that of a model")
    version, library, checksum = (part.decode("latin-1") for part in line.groups())
    if version.split(".")[0] != FORMAT_VERSION.split(".")[0]:
        raise _other_version(version, library)
    body = memoryview(content)[line.end() :]
    if sha256(body).hexdigest() != checksum:
        raise damaged("its checksum is that of another content")
    arrays = safetensors.numpy.load(_decompressed(body))
    return parse(arrays.pop(MANIFEST).tobytes()), arrays


def _decompressed(body: memoryview) -> bytes:
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(body, MOST_RATIO * len(body))
    if not unpacker.eof:
        raise damaged(f"it would unpack to more than {MOST_RATIO} times its size")
    return content


def parse(text: bytes) -> Any:
    """JSON as `packed` writes it: each name once, finite numbers, not too much of it."""
    if reason := _too_large(text):
        raise damaged(reason)
    return json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite)


def _other_version(version: str, library: str) -> RefusedError:
    return RefusedError(
        f"has format version {version} and this featgeo reads version {FORMAT_VERSION.split('.')[0]}.x. Load it with "
        f"the featgeo that wrote it ({library}), or fit the model again."
    )


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
