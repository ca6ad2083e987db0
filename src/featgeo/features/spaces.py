"""Feature spaces: which functions of a variable are allowed.

A space is the span of a few features of the rows of a variable; `space(rows)` gives their values, (n, d). Wherever the
spans are given, the best functions in them have a closed form (`featgeo.learning.solve`).

The features themselves are those of scikit-learn: kernels through `Nystroem`, splines through `SplineTransformer`, or
whatever transformer the user brings. Spaces of labels and of finite alphabets are indicators.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.linalg import eigh, hadamard
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import SplineTransformer

from featgeo.features.encoding import Encoding, Scores
from featgeo.features.variables import Rows, Table, symbol_keys
from featgeo.geometry.validation import Array, shown
from featgeo.schema import saved

KERNEL_FEATURES = 32  # of one number
JOINT_FEATURES = 300  # of several columns together
UNIFORM_KNOTS = 8
NORMAL_KNOTS = 5
QUADRATURE_NODES = 60
ROWS_BEYOND_KNOTS = 300  # of normal scores, on either side
NETWORK_ROWS = 4096  # at once
MOST_SYMBOLS = 2000
MOST_SPLINES = 500  # beyond, a Gram matrix of all of them costs more than it tells


class Space(Protocol):
    """A fitted space of functions of a variable, or of the variables of a side (`Parts`)."""

    def __call__(self, rows: Any) -> Array:
        """Values of the features that span it, (n, d)."""


@saved
@dataclass(frozen=True, eq=False)
class TableSpace:
    """All functions of a variable with finitely many values: one indicator a value.

    Attributes:
        symbols: The distinct rows seen in the fit, (m, columns), in order, as `symbol_keys` writes them.
        shares: The share of each in the fit, (m,); it stands in for values that the fit never saw.
    """

    symbols: Array
    shares: Array

    @classmethod
    def fit(cls, rows: Rows) -> TableSpace:
        """Learn the values."""
        keys = symbol_keys(rows.table)
        if keys.shape[1] == 1:  # the same, sooner
            values, counts = np.unique(keys[:, 0], return_counts=True)
            return cls(values[:, None], counts / counts.sum())
        symbols, counts = np.unique(keys, axis=0, return_counts=True)
        return cls(symbols, counts / counts.sum())

    def index(self, rows: Rows) -> np.ndarray:
        """The position of each row's value among the symbols, (n,); -1 where the fit never saw it."""
        keys = symbol_keys(rows.table)
        if keys.shape[1] == 1:  # the same, sooner
            position = np.searchsorted(self.symbols[:, 0], keys[:, 0]).clip(max=len(self.symbols) - 1)
            return np.where(self.symbols[position, 0] == keys[:, 0], position, -1)
        symbols, where = np.unique(np.vstack([self.symbols, keys]), axis=0, return_inverse=True)
        position = np.full(len(symbols), -1)
        position[where.reshape(-1)[: len(self.symbols)]] = np.arange(len(self.symbols))
        return position[where.reshape(-1)[len(self.symbols) :]]

    def __call__(self, rows: Rows) -> Array:
        """One indicator a value."""
        if len(self.shares) > MOST_SYMBOLS:
            raise ValueError(
                f"{rows.variable.name} has {len(self.shares)} values, indicators are made for {MOST_SYMBOLS}. "
                "Group the rare ones, use solver='exact' where both variables are finite, or ModalDecomposition, which "
                "takes any number of texts as labels."
            )
        return np.vstack([np.eye(len(self.shares)), self.shares])[self.index(rows)]


@saved
@dataclass(frozen=True, eq=False)
class LinearSpace:
    """The columns themselves: with it and without ridge, the modal decomposition is canonical correlation analysis."""

    encoding: Encoding

    @classmethod
    def fit(cls, rows: Rows, scores: Scores = "standard") -> LinearSpace:
        """Learn centre and scale of the columns."""
        return cls(Encoding.fit(rows, scores))

    def __call__(self, rows: Rows) -> Array:
        """Numbers, standardised, and indicators of labels."""
        return self.encoding(rows)


@saved
@dataclass(frozen=True, eq=False)
class SplineSpace:
    """Sums of a smooth function of each number (a cubic spline of its score) and any function of each label.

    Few knots, well inside, and cubics that go on beyond them: so functions of normal scores can follow the growth of
    Hermite polynomials, the modes of Gaussian variables, and no piece of them rests on a few extreme rows.

    A ridge prefers directions in which the features vary much. They may be mixed so that these are the smooth functions
    (`_smooth_first`); the span is the same.

    Attributes:
        encoding: How numbers are scored.
        splines: The splines of each number; None without numbers.
        mix: From the splines of a number to its features, (splines, features); None where they are the features.
    """

    encoding: Encoding
    splines: SplineTransformer | None
    mix: Array | None = None

    @classmethod
    def fit(cls, rows: Rows, scores: Scores = "normal", smooth: bool = False) -> SplineSpace:
        """Place the knots evenly over the scores.

        Args:
            rows: Rows to learn from.
            scores: How numbers are scored.
            smooth: Whether a ridge is to prefer smooth functions, of normal scores.
        """
        encoding = Encoding.fit(rows, scores)
        values = encoding.numbers(rows)
        if values.shape[1] == 0:
            return cls(encoding, None)
        if scores == "normal":
            outermost = -ndtri(min(ROWS_BEYOND_KNOTS / len(values), 0.1))
            knots = np.linspace(-outermost, outermost, NORMAL_KNOTS)
        else:
            knots = np.linspace(-np.sqrt(3), np.sqrt(3), UNIFORM_KNOTS)
        in_columns = np.tile(knots[:, None], values.shape[1])
        splines = SplineTransformer(knots=in_columns, extrapolation="continue").fit(values)
        # The knots are those of every column, and so is the mixture.
        return cls(encoding, splines, _smooth_first(splines.bsplines_[0]) if smooth else None)

    def __call__(self, rows: Rows) -> Array:
        """Splines of the numbers and indicators of the labels."""
        labels = self.encoding.labels(rows)
        if self.splines is None:
            return labels
        values = self.splines.transform(self.encoding.numbers(rows))
        if self.mix is not None:
            values = (values.reshape(-1, len(self.mix)) @ self.mix).reshape(len(values), -1)
        return np.hstack([values, labels])


def _smooth_first(splines: BSpline) -> Array:
    """Mix the splines of a standard normal z into features that vary along smooth functions the most.

    Let phi_i be the functions in the span with E[phi_i phi_j] = 1{i = j} and E[phi_i' phi_j'] = r_i 1{i = j}; r_0 = 0,
    the constant. Among all functions these are the Hermite polynomials, with r_i = i: the modes of Gaussian
    variables, so that a preference for small r_i turns none of them towards another. Features whose Gram matrix has
    the eigenfunctions phi_i and the eigenvalues r_i^-2 make of a ridge a penalty on sum_i r_i^2 E[f phi_i]^2, which for
    smooth f is E[(f'' - z f')^2].

    Solvers scale features to unit variance. Signs that are orthogonal (Hadamard's) spread each phi_i evenly over all
    features, which then are equally large as they are, and their eigenfunctions stay.

    Returns:
        Shape (splines, features), with the constant left out.
    """
    z, mass = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES)
    mass = mass / mass.sum()
    values, slopes = splines(z), splines(z, nu=1)
    roughness, functions = eigh((slopes.T * mass) @ slopes, (values.T * mass) @ values)
    roughness, functions = roughness[1:], functions[:, 1:]
    n_features = 1 << (len(roughness) - 1).bit_length()  # Hadamard's matrices come in powers of two
    return (functions / roughness) @ hadamard(n_features)[: len(roughness)] / np.sqrt(n_features)


@saved
@dataclass(frozen=True, eq=False)
class KernelSpace:
    """Smooth functions of all columns together: features of a Gaussian kernel.

    With several columns, sums of functions of one column each are added: most dependence is additive, and no kernel of
    many columns sees that as clearly.
    """

    encoding: Encoding
    kernel: Nystroem
    additive: SplineSpace | LinearSpace | None

    @classmethod
    def fit(
        cls, rows: Rows, scores: Scores = "uniform", gamma: float = 0.3, seed: int = 0, features: int | None = None
    ) -> KernelSpace:
        """Choose the centres among the rows.

        Args:
            rows: Rows to learn from.
            scores: How numbers are scored.
            gamma: Inverse squared width of the kernel, for one column; it is divided by the total variance.
            seed: Of the choice of centres.
            features: How many kernel features; 32 for one column and 300 for several when None.
        """
        encoding = Encoding.fit(rows, scores)
        encoded = encoding(rows)
        single = encoded.shape[1] == 1
        size = min(features or (KERNEL_FEATURES if single else JOINT_FEATURES), len(encoded))
        width = gamma / max(1.0, float(encoded.var(axis=0).sum()))
        kernel = Nystroem(gamma=width, n_components=size, random_state=seed).fit(encoded)
        return cls(encoding, kernel, None if single else _additive(rows, scores))

    def __call__(self, rows: Rows) -> Array:
        """Kernel features, after the additive ones where there are several columns."""
        smooth = self.kernel.transform(self.encoding(rows))
        return smooth if self.additive is None else np.hstack([self.additive(rows), smooth])

    def times(self, rows: Rows, weight: Array) -> Array:
        """The features times a matrix (d, k), (n, k), by fewer products than the features themselves take."""
        n_smooth = len(self.kernel.components_)
        values = rbf_kernel(self.encoding(rows), self.kernel.components_, gamma=self.kernel.gamma)
        result: Array = values @ (self.kernel.normalization_.T @ weight[len(weight) - n_smooth :])
        return result if self.additive is None else result + self.additive(rows) @ weight[: len(weight) - n_smooth]


def _additive(rows: Rows, scores: Scores) -> SplineSpace | LinearSpace:
    """Sums of functions of single columns: smooth ones, or, of very many columns, those linear in them."""
    splines = SplineSpace.fit(rows, scores)
    return splines if splines(rows.take(slice(0, 1))).shape[1] <= MOST_SPLINES else LinearSpace.fit(rows)


class Transformer(Protocol):
    """What scikit-learn calls so."""

    def transform(self, X: Any) -> Any:
        """Features of the rows."""


@saved
@dataclass(frozen=True, eq=False)
class TransformerSpace:
    """The outputs of a scikit-learn transformer of the rows as they came."""

    transformer: Transformer

    @classmethod
    def fit(cls, rows: Rows, transformer: Any) -> TransformerSpace:
        """Fit a copy of the transformer."""
        return cls(clone(transformer).fit(two_dimensional(rows)))

    def __call__(self, rows: Rows) -> Array:
        """The transformed rows."""
        features = self.transformer.transform(two_dimensional(rows))
        if sparse.issparse(features):
            features = features.toarray()
        values = np.asarray(features)
        if values.ndim != 2 or values.dtype.kind not in "biuf":
            raise ValueError(
                f"A transformer must give one row of numbers a sample, got shape {values.shape} of {values.dtype} from "
                f"{type(self.transformer).__name__}. Choose one whose output is (n, d) numbers."
            )
        return values.astype(np.float64)


@saved
@dataclass(frozen=True, eq=False)
class NetworkSpace:
    """The outputs of a network, trained or given.

    Attributes:
        module: Maps a batch of inputs to features, (n, d).
        encoding: For tables, how columns become inputs; None where the network reads the values as they are.
        side: The argument it came from: "x" or "y", "s", "orthogonal_to".
    """

    module: torch.nn.Module = field(metadata={"named_by": "side"})  # as what one of the user is handed in again
    encoding: Encoding | None
    side: str

    def inputs(self, rows: Rows) -> torch.Tensor:
        """What the network reads."""
        return network_inputs(rows, self.encoding)

    def __call__(self, rows: Rows) -> Array:
        """Outputs of the network, some rows at a time."""
        inputs = self.inputs(rows)
        with torch.inference_mode():
            parts = [self.module(inputs[i : i + NETWORK_ROWS]) for i in range(0, len(inputs), NETWORK_ROWS)]
        return torch.cat(parts).double().numpy()


def network_inputs(rows: Rows, encoding: Encoding | None) -> torch.Tensor:
    """Encoded columns, or the values as they came, in single precision; whole numbers of 8 bits stay small."""
    if encoding is not None:
        return torch.from_numpy(encoding(rows)).float()
    tensor = rows.tensor
    return tensor if tensor.dtype in (torch.uint8, torch.float32) else tensor.float()


def check_module(module: torch.nn.Module, rows: Rows) -> None:
    """Refuse a module that cannot read the rows, or gives no features of them."""
    inputs = network_inputs(rows.take(slice(0, 2)), None)
    was_training = module.training
    try:
        with torch.no_grad():
            features = module.eval()(inputs)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"The given module must read the rows of {rows.variable.name}, of shape {tuple(inputs.shape[1:])} each, "
            f"and cannot: {error}. Pass a module of that input, or a function that picks what yours reads."
        ) from error
    finally:
        module.train(was_training)
    if not isinstance(features, torch.Tensor) or features.ndim != 2 or len(features) != len(inputs):
        raise ValueError(
            f"The given module must give features (n, d) of {rows.variable.name}, got {shown(features)} for "
            f"{len(inputs)} rows. Flatten what it gives."
        )


def two_dimensional(rows: Rows) -> Any:
    """Rows as they came; scikit-learn's transformers want a column where a single variable came."""
    if isinstance(rows.raw, Table):
        raise ValueError(
            f"{rows.variable.name} are several variables side by side, which a transformer cannot read as they came. "
            "Use a named space such as 'kernel'."
        )
    return np.asarray(rows.raw)[:, None] if np.ndim(rows.raw) == 1 else rows.raw


def check_not_constant(table: Table, name: str) -> None:
    """Refuse a variable that never varies: nothing depends on it, and it depends on nothing."""
    keys = symbol_keys(table)
    if (keys == keys[0]).all():
        raise ValueError(
            f"{name} never varies in these {len(keys)} sample(s) (one class, n_samples={len(keys)}): nothing can "
            "depend on it. Pass rows in which it takes at least two values."
        )
