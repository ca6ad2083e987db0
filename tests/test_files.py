"""Writing files: whole or not at all, through links, and with nothing left behind."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time

import pytest

from featgeo import files


def test_what_is_written_is_there_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    for content in (b"first", "second, ∑", b""):
        files.write_whole(path, content)
        assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_stay_and_new_files_have_those_of_any_file(tmp_path):
    plain, own = tmp_path / "plain", tmp_path / "own"
    plain.write_text("")
    files.write_whole(own, "")
    assert stat.S_IMODE(own.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    own.chmod(0o640)
    files.write_whole(own, "again")
    assert stat.S_IMODE(own.stat().st_mode) == 0o640


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path, there):
    (tmp_path / "data").mkdir()
    target, link, outer = tmp_path / "data" / "target", tmp_path / "link", tmp_path / "outer"
    if there:
        target.write_text("old")
    link.symlink_to("data/target")
    outer.symlink_to(link)
    files.write_whole(outer, "new")
    assert outer.is_symlink()
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert not target.is_symlink()


def _pipe(folder):
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def _circle(folder):
    (folder / "circle").symlink_to(folder / "circle")
    return folder / "circle"


REFUSED = {
    "a folder": (lambda folder: folder, IsADirectoryError, "is a folder. Add a file name"),
    "a missing folder": (lambda folder: folder / "a" / "b" / "c", FileNotFoundError, "is not. Make it first"),
    "a file as folder": (lambda folder: folder / "mine" / "x", OSError, "cannot be written"),
    "a long name": (lambda folder: folder / ("n" * 300), OSError, "Choose a shorter name"),
    "a device": (lambda folder: "/dev/null", OSError, "must be that of a regular file"),
    "a pipe": (_pipe, OSError, "must be that of a regular file"),
    "a circle of links": (_circle, OSError, "links go round in circles"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_written_is_refused_before_the_work_with_the_way_out(tmp_path, case):
    (tmp_path / "mine").write_text("mine")
    make, kind, message = REFUSED[case]
    path = make(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(kind, match=re.escape(message)):
        files.write_whole(path, "new")
    with pytest.raises(kind, match=re.escape(message)):
        files.check_can_be_written(path)
    with pytest.raises(kind, match=re.escape(message)), files.writing_whole(path):
        pytest.fail("the work began")
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_name_of_250_characters_is_a_name_like_any_other(tmp_path):
    files.write_whole(tmp_path / ("n" * 250), "x")
    files.write_whole(tmp_path / ("n" * 250), "y")
    assert (tmp_path / ("n" * 250)).read_text() == "y"


@pytest.mark.parametrize("function", ["write", "fsync", "replace"])
def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch, function):
    path = tmp_path / "file"
    path.write_text("old")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, function, full)
    with pytest.raises(OSError, match="Free some space"):
        files.write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_of_the_dead_are_removed_and_those_of_the_living_stay(tmp_path):
    dead = tmp_path / ".featgeo-dead.partial"
    dead.write_text("half")
    other = tmp_path / ".other.partial"
    other.write_text("not ours")
    with files._unfinished(tmp_path, None) as (_, name):
        files.write_whole(tmp_path / "file", "x")
        assert name.exists()
        assert not dead.exists()
        assert other.exists()


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "mine").write_text("")
    for path in (tmp_path / "mine", tmp_path / "mine" / "below"):
        with pytest.raises(OSError, match="must be one that is there or can be made"):
            files.make_folder(path)
    assert files.make_folder(tmp_path / "a" / "b").is_dir()


WRITER = """
import sys
sys.path.insert(0, {source!r})
import importlib.util
spec = importlib.util.spec_from_file_location("files", {source!r} + "/featgeo/files.py")
files = importlib.util.module_from_spec(spec)
spec.loader.exec_module(files)
print("ready", flush=True)
i = 0
while True:
    i += 1
    files.write_whole({path!r}, bytes([i % 256]) * 200_000)
"""


def test_a_killed_writer_loses_nothing_and_the_next_write_leaves_one_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\0" * 200_000)
    source = os.path.dirname(os.path.dirname(files.__file__))
    code = WRITER.format(source=source, path=str(path))
    for pause in (0.003, 0.011, 0.017, 0.023):
        with subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE) as process:  # noqa: S603 (our own)
            process.stdout.readline()
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
        content = path.read_bytes()
        assert len(content) == 200_000
        assert len(set(content)) == 1
    files.write_whole(path, b"last")
    assert list(tmp_path.iterdir()) == [path]


def test_content_and_then_the_name_are_synced_to_the_disk(tmp_path, monkeypatch):
    synced, sync = [], os.fsync

    def noted(file):
        found = os.fstat(file)
        synced.append("folder" if stat.S_ISDIR(found.st_mode) else found.st_size)
        return sync(file)

    monkeypatch.setattr(os, "fsync", noted)
    for content in (b"first", b"second"):
        files.write_whole(tmp_path / "file", content)
    assert synced == [5, "folder", 6, "folder"]


def test_folders_that_cannot_be_synced_and_files_that_cannot_be_locked_are_written_all_the_same(tmp_path, monkeypatch):
    sync = os.fsync

    def of_files_alone(file):
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(22, "Invalid argument")
        return sync(file)

    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(os, "fsync", of_files_alone)
    monkeypatch.setattr(files.fcntl, "flock", no_locks)
    (tmp_path / ".featgeo-x.partial").write_text("perhaps of another")
    files.write_whole(tmp_path / "file", "x")
    assert (tmp_path / "file").read_text() == "x"
    assert (tmp_path / ".featgeo-x.partial").exists()  # nothing is known to be a leftover without locks


def test_what_the_system_takes_in_pieces_is_whole(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:3]))
    files.write_whole(tmp_path / "file", "0123456789")
    assert (tmp_path / "file").read_text() == "0123456789"


def test_what_is_larger_than_any_buffer_is_whole(tmp_path):
    content = os.urandom(3_000_000)
    files.write_whole(tmp_path / "file", content)
    assert (tmp_path / "file").read_bytes() == content


def test_a_long_name_is_shown_by_its_ends(tmp_path):
    name = "a" * 150 + "z" * 150
    with pytest.raises(OSError, match="cannot be written") as raised:
        files.write_whole(name, "x")
    assert f"'{'a' * 60}...{'z' * 40}' cannot be written" in str(raised.value)
    assert raised.value.errno == 36
    with pytest.raises(OSError, match=f"'{'n' * 120}' cannot") as raised:
        raise files._explained(OSError(5, "Input/output error"), "n" * 120)
    assert str(raised.value).endswith("cannot be written: Input/output error. Choose a path that can be written to.")


def test_open_files_are_closed_again(tmp_path):
    def opened():
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    for _ in range(2):
        (tmp_path / ".featgeo-dead.partial").write_text("half")
        files.write_whole(tmp_path / "file", "x")
    with pytest.raises(OSError, match="shorter"):
        files.write_whole(tmp_path / ("n" * 300), "x")
    assert opened() == before


def test_what_looks_like_a_leftover_and_is_no_file_of_ours_stays(tmp_path):
    """A link may lead anywhere, and a pipe is never done."""
    (tmp_path / "kept").write_text("mine")
    link, pipe = (tmp_path / f"{files._PREFIX}{name}{files._SUFFIX}" for name in ("link", "pipe"))
    link.symlink_to(tmp_path / "kept")
    os.mkfifo(pipe)
    files.write_whole(tmp_path / "new", b"new")
    assert link.is_symlink()
    assert (tmp_path / "kept").read_text() == "mine"
    assert (tmp_path / "new").read_bytes() == b"new"


def test_a_file_written_piece_by_piece_appears_with_its_last_piece(tmp_path):
    path = tmp_path / "file"
    with files.writing_whole(path) as file:
        for piece in (b"first ", bytearray(b"second "), memoryview(b"third")):
            assert file.write(piece) == len(piece)
        assert not path.exists()
    assert path.read_bytes() == b"first second third"
    with pytest.raises(ValueError, match="written and closed"):
        file.write(b"more")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(5, "the input broke"), ValueError("bad row"), KeyboardInterrupt()])
def test_work_that_fails_leaves_what_was_there_and_keeps_its_own_error(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("old")

    def work():
        with files.writing_whole(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)) as raised:
        work()
    assert raised.value is error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_asking_whether_a_file_can_be_written_changes_nothing(tmp_path):
    (tmp_path / "there").write_text("old")
    for name in ("there", "new"):
        files.check_can_be_written(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert (tmp_path / "there").read_text() == "old"


def test_whether_a_folder_can_be_filled_is_known_before_it_is_made(tmp_path):
    (tmp_path / "mine").write_text("")
    files.check_can_be_filled(tmp_path / "a" / "b", ["x"])
    files.check_can_be_filled(tmp_path, ["x", "mine"])
    for path in (tmp_path / "mine", tmp_path / "mine" / "below"):
        with pytest.raises(OSError, match="must be one that is there or can be made"):
            files.check_can_be_filled(path, ["x"])
    (tmp_path / "x").mkdir()
    with pytest.raises(IsADirectoryError, match="Add a file name"):
        files.check_can_be_filled(tmp_path, ["x"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "x"]
