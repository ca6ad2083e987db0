"""Files that appear whole or not at all: the one way in which everything here is written.

The content goes into a hidden file in the folder of the target, is synced to the disk, and only then gets the name of
the target. Whoever looks meets the old content or the new one, whatever happens in between, a power cut included. The
hidden file is locked as long as it is written to: one that a killed process left is known by its lock, which is free,
and the next writer into that folder removes it.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

try:
    import fcntl
except ImportError:  # not on Windows, which keeps no lock and so cleans up after no one else
    fcntl = None  # type: ignore[assignment]

_PREFIX, _SUFFIX = ".featgeo-", ".partial"


def write_whole(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file, all or nothing; one that is there already is replaced only once the new one is on the disk.

    Args:
        path: The file. A link is followed: what it points to is written, and the link stays.
        content: Its bytes, or text, which is written as UTF-8.

    Raises:
        OSError: If the folder is not there, the name cannot be had, the path is a folder, a device or anything else but
            a regular file, or the disk is full. What was there before is there still.
    """
    with writing_whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def writing_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file piece by piece, all or nothing: it has its name once the block ends, and not where that fails.

    What cannot be written is refused before the block begins, as `write_whole` refuses it.

    Args:
        path: The file. A link is followed: what it points to is written, and the link stays.

    Yields:
        A binary file to write to, from its beginning to its end.
    """
    target = Path(os.path.realpath(os.fspath(path)))
    mode = _mode_of(target, path)
    with contextlib.ExitStack() as until_renamed:
        with _explaining(path):
            _remove_leftovers(target.parent)
            file, name = until_renamed.enter_context(_unfinished(target.parent, mode))
        with _Pieces(file, path) as pieces:
            yield cast(IO[bytes], pieces)
        with _explaining(path):
            os.fsync(file)
            os.replace(name, target)
    _sync_folder(target.parent)


def check_can_be_written(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work is done for it, a path that `write_whole` would refuse after it."""
    target = Path(os.path.realpath(os.fspath(path)))
    mode = _mode_of(target, path)
    with _explaining(path), _unfinished(target.parent, mode):
        pass  # the folder takes a new file


def check_is_there(path: str | os.PathLike[str]) -> None:
    """Refuse a path that nothing is at."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"There is no file {os.fspath(path)!r}. Correct the path.")


def make_folder(path: str | os.PathLike[str]) -> Path:
    """A folder, made where it is missing, together with those above it."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_folder(error, path) from error
    return folder


def check_can_be_filled(path: str | os.PathLike[str], names: Sequence[str]) -> None:
    """Refuse, before any work is done for it, a folder that cannot be made, or files that cannot be written into it.

    Args:
        path: The folder. It is not made.
        names: Of the files.
    """
    folder = Path(path)
    if folder.is_dir():
        for name in names:
            check_can_be_written(folder / name)
        return
    try:
        above = next(parent for parent in (folder, *folder.parents) if os.path.lexists(parent))
        if not above.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        with _unfinished(above, None):
            pass  # it takes something new
    except OSError as error:
        raise _no_folder(error, path) from error


def _no_folder(error: OSError, path: str | os.PathLike[str]) -> OSError:
    return type(error)(
        error.errno,
        f"A folder must be one that is there or can be made, and {str(path)!r} cannot ({error.strerror}). Choose "
        "another, or make it yourself.",
    )


def _mode_of(target: Path, path: str | os.PathLike[str]) -> int | None:
    """Permissions of a regular file that is there already, None where none is; all else is refused."""
    try:
        found = target.stat()
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(
                errno.ENOENT,
                f"A file needs a folder that is there, and {str(target.parent)!r} is not. Make it first, such as by "
                "Path.mkdir(parents=True), or correct the path.",
            ) from None
        return None
    except OSError as error:
        raise _explained(error, path) from error
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(
            errno.EISDIR, f"The path must be that of a file, and {str(path)!r} is a folder. Add a file name to it."
        )
    if not stat.S_ISREG(found.st_mode):
        raise OSError(
            errno.EINVAL,
            f"The path must be that of a regular file, and {str(path)!r} is a device, a pipe or a socket. Choose "
            "another.",
        )
    return stat.S_IMODE(found.st_mode)


def _explained(error: OSError, path: str | os.PathLike[str]) -> OSError:
    """The same kind of error, saying which file was meant (not the hidden one) and what to do."""
    ways_out = {
        errno.ENAMETOOLONG: "Choose a shorter name",
        errno.ENOSPC: "Free some space; what was there before is there still",
        errno.EDQUOT: "Free some space; what was there before is there still",
        errno.ELOOP: "Its links go round in circles; choose another path",
    }
    way_out = ways_out.get(error.errno or 0, "Choose a path that can be written to")
    name = os.fspath(path)
    shown = name if len(name) <= 120 else f"{name[:60]}...{name[-40:]}"
    return type(error)(error.errno, f"{shown!r} cannot be written: {error.strerror or error}. {way_out}.")


@contextlib.contextmanager
def _explaining(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _explained(error, path) from error


@contextlib.contextmanager
def _unfinished(folder: Path, mode: int | None) -> Iterator[tuple[int, Path]]:
    """A new file, open and locked, with its hidden name; gone in the end unless it was renamed."""
    named = False
    while not named:
        name = folder / f"{_PREFIX}{uuid.uuid4().hex}{_SUFFIX}"
        file = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        try:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # where nothing can be locked, nothing is taken for a leftover
                    fcntl.flock(file, fcntl.LOCK_EX)
            named = name.exists()  # else another writer took it for a leftover before it was locked
            if named and mode is not None and hasattr(os, "fchmod"):
                os.fchmod(file, mode)
            if named:
                yield file, name
        finally:
            os.close(file)
            name.unlink(missing_ok=True)


class _Pieces(io.RawIOBase):
    """The unfinished file for who writes it: nothing is held back, and errors name the file that is meant."""

    def __init__(self, file: int, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._file, self._path = file, path

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.closed:
            raise ValueError("The file is written and closed. Open another.")
        view = memoryview(data).cast("B")
        with _explaining(self._path):
            while view:
                view = view[os.write(self._file, view) :]
        return memoryview(data).nbytes


def _sync_folder(folder: Path) -> None:
    """The name is on the disk, too; where a system cannot sync folders, this is as much as it gives."""
    with contextlib.suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed writers left: hidden files of ours that no one has locked."""
    if fcntl is None:
        return
    for name in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with contextlib.suppress(OSError):  # gone meanwhile, or still written to by another process
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                name.unlink()
            finally:
                os.close(opened)
