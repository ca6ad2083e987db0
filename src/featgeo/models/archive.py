"""The container of a model: a zip archive whose every size is known, and right, before anything is unpacked.

`manifest.json` says what the model is made of, and lists size and sha256 of every other member; its own sha256 is the
comment of the archive. Nothing that is not listed is read, and no member unpacks to more than `MOST_RATIO` times what
it takes in the file, so that reading takes memory in proportion to the file, whoever made it. Checksums find damage,
not malice: whoever writes a file can write them, too. What a file may create is settled elsewhere.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from featgeo.files import write_whole

# 1.x kept objects of scikit-learn by the names of their types, 2.x spaces as they were before they were modules.
FORMAT_VERSION = (3, 0)
MANIFEST = "manifest.json"
MOST_RATIO = 8  # what compresses better is stored as it is
MOST_MANIFEST_BYTES = 2**25
# A value takes at most about 80 bytes of memory ("[]," is the worst), so these take 120 MB. Labels and long lists
# are not in the manifest, and the widest tables that can be fitted need a tenth of it.
MOST_VALUES = 1_500_000
_COMMENT = "featgeo sha256 "

Readable = str | os.PathLike[str] | IO[bytes]


class RefusedError(ValueError):
    """A file that is not, or no longer, what `save` writes; the message lacks only its subject, the file."""


def damaged(reason: object) -> RefusedError:
    """The error for a file whose content cannot be what was saved."""
    return RefusedError(
        f"is not a featgeo model, or it is damaged or cut short ({str(reason)[:300]}). Save the model again, or get "
        "another copy of the file."
    )


def write_archive(path: str | os.PathLike[str], manifest: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
    """Write a model's parts to a file, all or nothing."""
    head = {"format": "featgeo", "version": FORMAT_VERSION, **manifest, "members": _listed(members)}
    text = json.dumps(head, allow_nan=False).encode()
    if reason := _too_large(text):
        raise ValueError(f"This model has too many parts to be saved: {reason}. Fit it to fewer columns.")
    with io.BytesIO() as buffer:
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.comment = f"{_COMMENT}{_sha256(text)}".encode()
            archive.writestr(MANIFEST, text, zipfile.ZIP_DEFLATED)
            for name, content in members.items():
                packed = len(zlib.compress(content))
                worth_it = packed < len(content) <= MOST_RATIO * packed
                archive.writestr(name, content, zipfile.ZIP_DEFLATED if worth_it else zipfile.ZIP_STORED)
        write_whole(path, buffer.getvalue())


@contextmanager
def opened(file: Readable) -> Iterator[IO[bytes]]:
    """What a user wants to read a model from: a path, or a binary file that can be read and sought in."""
    if isinstance(file, str | os.PathLike):
        path = Path(file)
        if path.is_dir():
            raise IsADirectoryError(f"A model is a file, and {str(path)!r} is a folder. Add the name of the file.")
        if not path.exists():
            raise FileNotFoundError(f"There is no file {str(path)!r}. Correct the path.")
        if not path.is_file():  # reading from a pipe or a device may never end
            raise ValueError(f"{path} {damaged('a device, a pipe or a socket, not a regular file')}")
        with path.open("rb") as found:
            yield found
    elif all(hasattr(file, name) for name in ("read", "seek", "tell")):
        yield file
    else:
        raise TypeError(f"A model is read from a path or from a binary file, got a {type(file).__name__}. Pass a path.")


def read_archive(file: IO[bytes]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the members of a file that `write_archive` wrote; whatever goes wrong is the file's fault."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        infos = checked_members(archive, size)
        if MANIFEST not in infos or infos[MANIFEST].file_size > MOST_MANIFEST_BYTES:
            raise damaged(f"there is no {MANIFEST}, or one too large")
        text = archive.read(MANIFEST)
        manifest = parse(text)
        _check_version(manifest)
        if archive.comment.decode("latin-1") != f"{_COMMENT}{_sha256(text)}":
            raise damaged("the manifest does not have its checksum")
        members = {name: archive.read(name) for name in infos if name != MANIFEST}
    if manifest.get("members") != _listed(members):
        raise damaged("its members do not have the names, sizes and checksums of the manifest")
    return manifest, members


def parse(text: bytes) -> Any:
    """JSON as `write_archive` writes it: each name once, finite numbers, not too much of it."""
    if reason := _too_large(text):
        raise damaged(reason)
    return json.loads(text, object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite)


def checked_members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """The members of an archive by name, once nothing about their sizes is suspect.

    Args:
        archive: Opened, nothing read yet.
        size: Of the whole file.
    """
    infos = archive.infolist()
    for info in infos:
        stored = info.compress_type == zipfile.ZIP_STORED
        if info.flag_bits & 1 or not (stored or info.compress_type == zipfile.ZIP_DEFLATED):
            raise damaged(f"{info.filename!r} is packed in a way that featgeo does not use")
        limit = info.compress_size * (1 if stored else MOST_RATIO)
        if info.file_size > limit and info.filename != MANIFEST:
            raise damaged(f"{info.filename!r} would unpack to {info.file_size} bytes")
    if len({info.filename for info in infos}) < len(infos):
        raise damaged("two members have the same name")
    if sum(info.compress_size for info in infos) > size:
        raise damaged("its members are larger than the file")
    return {info.filename: info for info in infos}


def _check_version(manifest: Any) -> None:
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise damaged("the manifest is none of featgeo's")
    version = manifest.get("version")
    major = version[0] if isinstance(version, list) and version else None
    if manifest["format"] != "featgeo" or major != FORMAT_VERSION[0]:
        raise RefusedError(
            f"has format version {str(version)[:40]} and this featgeo reads version {FORMAT_VERSION[0]}.x. Load it "
            f"with the featgeo that wrote it ({str(manifest.get('featgeo'))[:40]}), or fit the model again."
        )


def _listed(members: Mapping[str, bytes]) -> dict[str, Any]:
    """Size and checksum of each member."""
    return {name: {"size": len(content), "sha256": _sha256(content)} for name, content in members.items()}


def _too_large(text: bytes) -> str:
    values = sum(map(text.count, (b",", b"[", b"{", b":")))
    if len(text) > MOST_MANIFEST_BYTES or values > MOST_VALUES:
        return f"{values} values in {len(text)} bytes, at most {MOST_VALUES} in {MOST_MANIFEST_BYTES}"
    return ""


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


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
