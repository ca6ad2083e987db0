"""Feature spaces: which functions of a variable are allowed.

A space is the span of a few features of the rows of a variable; `space(rows)` gives their values, (n, d). Wherever the
spans are given, the best functions in them have a closed form (`featgeo.learning.solve`). Spaces of labels and of
finite alphabets are indicators; those of numbers the numbers themselves (`Encoding`), splines of them, or kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.linalg import eigh, hadamard
from scipy.special import ndtri
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from torch import Tensor

from featgeo.features.encoding import Encoding, Scores
from featgeo.features.space import Space, Wrapped
from featgeo.features.tensors import bisected, last_at_most
from featgeo.features.variables import Rows, Table, symbol_keys, symbols_of
from featgeo.geometry.validation import Array, shown
from featgeo.schema import saved

KERNEL_FEATURES = 32  # of one number
JOINT_FEATURES = 300  # of several columns together
UNIFORM_KNOTS = 8
NORMAL_KNOTS = 5
QUADRATURE_NODES = 60
ROWS_BEYOND_KNOTS = 300  # of normal scores, on either side
MOST_SYMBOLS = 2000
MOST_SPLINES = 500  # beyond, a Gram matrix of all of them costs more than it tells


@saved
@dataclass(eq=False, repr=False)
class TableSpace(Space):
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
        symbols, counts = symbols_of(rows.table)
        return cls(symbols, counts / counts.sum())

    def index(self, rows: Rows) -> np.ndarray:
        """The position of each row's value among the symbols, (n,); -1 where the fit never saw it."""
        position = self.position(rows.on(self.device)).cpu().numpy()
        return np.where(position < len(self.shares), position, -1)

    def position(self, rows: Rows) -> Tensor:
        """The position of each row's value among the symbols, (n,); their number where the fit never saw it."""
        symbols, m = self.tensor("symbols"), len(self.symbols)
        keys = torch.cat([torch.where(torch.isnan(rows.numbers), torch.inf, rows.numbers), rows.codes], dim=1)
        if keys.shape[1] == 1:  # the same, sooner
            found = last_at_most(symbols.T, keys)[:, 0]
        else:
            found = bisected(lambda at: _at_most(symbols[at], keys), torch.zeros_like(keys[:, 0], dtype=torch.int64), m)
        return torch.where((symbols[found] == keys).all(dim=1), found, m)

    def forward(self, rows: Rows) -> Tensor:
        """One indicator a value."""
        if len(self.shares) > MOST_SYMBOLS:
            raise ValueError(
                f"{rows.variable.name} has {len(self.shares)} values, indicators are made for {MOST_SYMBOLS}. "
                "Group the rare ones, use solver='exact' where both variables are finite, or ModalDecomposition, which "
                "takes any number of texts as labels."
            )
        shares = self.tensor("shares")
        indicators = torch.eye(len(self.shares), dtype=shares.dtype, device=shares.device)
        return torch.nn.functional.embedding(self.position(rows), torch.cat([indicators, shares[None]]))


def _at_most(rows: Tensor, others: Tensor) -> Tensor:
    """Whether each row comes before the other, or is the same, in lexicographic order, (n,)."""
    result = rows[:, -1] <= others[:, -1]
    for j in reversed(range(rows.shape[1] - 1)):
        result = (rows[:, j] < others[:, j]) | ((rows[:, j] == others[:, j]) & result)
    return result


@saved
@dataclass(eq=False, repr=False)
class SplineSpace(Space):
    """Sums of a smooth function of each number (a cubic spline of its score) and any function of each label.

    Few knots, well inside, and cubics that go on beyond them: so functions of normal scores can follow the growth of
    Hermite polynomials, the modes of Gaussian variables, and no piece of them rests on a few extreme rows.

    A ridge prefers directions in which the features vary much. They may be mixed so that these are the smooth functions
    (`_smooth_first`); the span is the same.

    Attributes:
        encoding: How numbers are scored.
        knots: Evenly spread, (r,), the same for every number.
        mix: From the splines of a number to its features, (r + 2, features); None where they are the features.
    """

    encoding: Encoding
    knots: Array
    mix: Array | None = None

    def __post_init__(self) -> None:
        # On each piece four splines: cubics in the distance from its start, highest power last, in steps.
        self.cubics = np.array([[1, 4, 1, 0], [-3, 0, 3, 0], [3, -6, 3, 0], [-1, 3, -3, 1]]) / 6
        self.step = float(self.knots[1] - self.knots[0])

    @classmethod
    def fit(cls, rows: Rows, scores: Scores = "normal", smooth: bool = False) -> SplineSpace:
        """Place the knots evenly over the scores.

        Args:
            rows: Rows to learn from.
            scores: How numbers are scored.
            smooth: Whether a ridge is to prefer smooth functions, of normal scores.
        """
        if scores == "normal":
            outermost, n_knots = -ndtri(min(ROWS_BEYOND_KNOTS / len(rows), 0.1)), NORMAL_KNOTS
        else:
            outermost, n_knots = np.sqrt(3), UNIFORM_KNOTS
        space = cls(Encoding.fit(rows, scores), np.linspace(-outermost, outermost, n_knots))
        return replace(space, mix=_smooth_first(space)) if smooth else space

    def splines(self, scores: Tensor) -> Tensor:
        """Cubic splines of each score, (n, p, r + 2); beyond the outermost knots the cubics go on."""
        n_pieces = len(self.knots) - 1
        steps = (scores - self.tensor("knots")[0]) / self.tensor("step")
        piece = steps.floor().clamp(0, n_pieces - 1)
        within = (steps - piece)[:, :, None]
        values = torch.cat([torch.ones_like(within), within, within**2, within**3], dim=2) @ self.tensor("cubics")
        at = piece.long()[:, :, None] + torch.arange(4, device=scores.device)
        return scores.new_zeros((*scores.shape, n_pieces + 3)).scatter(2, at, values)

    def forward(self, rows: Rows) -> Tensor:
        """Splines of the numbers and indicators of the labels."""
        values = self.splines(self.encoding.numbers(rows))
        features = values if self.mix is None else values @ self.tensor("mix")
        return torch.cat([features.flatten(1), self.encoding.labels(rows)], dim=1)


def _smooth_first(space: SplineSpace) -> Array:
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
    n_knots = len(space.knots)
    splines = BSpline(space.knots[0] + space.step * np.arange(-3, n_knots + 3), np.eye(n_knots + 2), 3)
    values, slopes = splines(z), splines(z, nu=1)
    roughness, functions = eigh((slopes.T * mass) @ slopes, (values.T * mass) @ values)
    roughness, functions = roughness[1:], functions[:, 1:]
    n_features = 1 << (len(roughness) - 1).bit_length()  # Hadamard's matrices come in powers of two
    return (functions / roughness) @ hadamard(n_features)[: len(roughness)] / np.sqrt(n_features)


@saved
@dataclass(eq=False, repr=False)
class KernelSpace(Space):
    """Smooth functions of all columns together: features of a Gaussian kernel.

    With several columns, sums of functions of one column each are added: most dependence is additive, and no kernel of
    many columns sees that as clearly.

    Attributes:
        encoding: How columns become numbers, d of them.
        centres: Encoded rows, (k, d).
        normalization: From the kernel at the centres to features whose inner products are the kernel, (k, k).
        gamma: Inverse squared width of the kernel.
        additive: The sums; None where there is a single number.
    """

    encoding: Encoding
    centres: Array
    normalization: Array
    gamma: float
    additive: SplineSpace | Encoding | None

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
        additive = None if single else _additive(rows, scores)
        return cls(encoding, kernel.components_, kernel.normalization_.T, width, additive)

    def kernel(self, rows: Rows) -> Tensor:
        """The kernel of each row and each centre, (n, k)."""
        encoded, centres = self.encoding.forward(rows), self.tensor("centres")
        if encoded.shape[1] == 1:  # to the last digit, and as soon
            squares = (encoded - centres.T).square()
        else:
            squares = torch.addmm(centres.square().sum(dim=1), encoded, centres.T, alpha=-2)
            squares += encoded.square().sum(dim=1, keepdim=True)
        return squares.clamp_(min=0).mul_(-self.tensor("gamma")).exp_()

    def forward(self, rows: Rows) -> Tensor:
        """Kernel features, after the additive ones where there are several columns."""
        smooth = self.kernel(rows) @ self.tensor("normalization")
        return smooth if self.additive is None else torch.cat([self.additive.forward(rows), smooth], dim=1)

    def mapped(self, rows: Rows, centre: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
        """By fewer products than the features themselves take: the normalization is multiplied with the matrix."""
        of_sums, of_kernel = weight.tensor_split([len(weight) - len(self.centres)])
        result = self.kernel(rows) @ (self.tensor("normalization") @ of_kernel) + (offset - centre @ weight)
        return result if self.additive is None else result + self.additive.forward(rows) @ of_sums


def _additive(rows: Rows, scores: Scores) -> SplineSpace | Encoding:
    """Sums of functions of single columns: smooth ones, or, of very many columns, those linear in them."""
    splines = SplineSpace.fit(rows, scores)
    return splines if splines(rows.take(slice(0, 1))).shape[1] <= MOST_SPLINES else Encoding.fit(rows)


class Transformer(Protocol):
    """What scikit-learn calls so."""

    def transform(self, X: Any) -> Any:
        """Features of the rows."""


@saved
@dataclass(eq=False, repr=False)
class TransformerSpace(Wrapped):
    """The outputs of a scikit-learn transformer of the rows as they came."""

    transformer: Transformer

    @classmethod
    def fit(cls, rows: Rows, transformer: Any) -> TransformerSpace:
        """Fit a copy of the transformer."""
        return cls(clone(transformer).fit(two_dimensional(rows)))

    def values(self, rows: Rows) -> Array:
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
@dataclass(eq=False, repr=False)
class NetworkSpace(Space):
    """The outputs of a network, trained or given.

    Attributes:
        module: Maps a batch of inputs to features, (n, d).
        encoding: For tables, how columns become inputs; None where the network reads the values as they are.
        side: The argument it came from: "x" or "y", "s", "orthogonal_to".
    """

    in_chunks = True
    module: torch.nn.Module = field(metadata={"named_by": "side"})  # as what one of the user is handed in again
    encoding: Encoding | None
    side: str

    def inputs(self, rows: Rows) -> Tensor:
        """What the network reads."""
        return network_inputs(rows, self.encoding)

    def forward(self, rows: Rows) -> Tensor:
        """Outputs of the network."""
        features: Tensor = self.module(self.inputs(rows))
        return features.double()


def network_inputs(rows: Rows, encoding: Encoding | None) -> Tensor:
    """Encoded columns, or the values as they came, in single precision; whole numbers of 8 bits stay small."""
    tensor = rows.tensor if encoding is None else encoding.forward(rows)
    return tensor if tensor.dtype in (torch.uint8, torch.float32) else tensor.float()


def check_module(module: torch.nn.Module, rows: Rows) -> torch.nn.Module:
    """The module, unless it cannot read the rows, or gives no features of them."""
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
    return module


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
