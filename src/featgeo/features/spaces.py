"""Feature spaces: which functions of a variable are allowed.

A space is the span of a few features of the rows of a variable; `space(rows)` gives their values, (n, d). Wherever the
spans are given, the best functions in them have a closed form (`featgeo.learning.solve`), and f and g are affine
functions of the features (`SpanFunction`). Spaces of finite alphabets are indicators of their values; those of numbers
and labels the columns themselves (`Encoding`), splines of them, or kernels.

Dependence does not change under monotone maps of a number, so numbers enter by their *scores*: where a value stands
among those of the fit. Uniform scores spread evenly; normal scores follow a bell curve, clipped at the outermost ranks,
so that no extreme row can make a mode of its own. Both have mean 0 and variance about 1. "Standard" numbers are only
shifted and scaled; "bounded" ones too, but they end where no more than a few rows lie, far away from all others. A
missing number counts as average, with an indicator of its own where the fit had missing ones. Labels become indicators;
an unknown label counts as average.

A column of many labels has indicators of its frequent ones only, and one for all others together, unknown ones too: so
features are never more than a few dozen a column, whatever the number of labels. What the rare ones say by themselves
is for means of the other variable to tell (`featgeo.features.labels`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import torch
from scipy.interpolate import BSpline
from scipy.linalg import eigh, hadamard
from scipy.special import ndtri
from sklearn.kernel_approximation import Nystroem
from torch import Tensor, nn

from featgeo.features.columns import LARGEST, SMALLEST, UNKNOWN
from featgeo.features.space import Space, at_code, bisected, last_at_most, looked_up, normal_quantile
from featgeo.features.variables import HEAD_ROWS, Rows, Variable, symbol_keys, symbols_of
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.tuning import in_force
from featgeo.watch import bounded_threads

Scores = Literal["uniform", "normal", "standard", "bounded"]

MOST_QUANTILES = 10_000  # of a number, between which ranks are interpolated: bounds memory


@saved
@dataclass(eq=False, repr=False)
class Encoding(Space):
    """A fitted encoding of a table: the space of its columns themselves.

    With it and without ridge, the modal decomposition is canonical correlation analysis.

    Attributes:
        scores: How numbers are mapped.
        quantiles: Of each number in the fit, (p, r), evenly spread over the ranks from 0 to 1; none where numbers are
            only shifted and scaled.
        bounds: The least and the largest of each number that count, (2, p), for "bounded"; else infinite.
        centre: Means of the numbers, for "standard" and "bounded".
        scale: Standard deviations of the numbers.
        clip: Uniform scores are kept this far from 0 and 1.
        with_missing: Positions of the numbers that missed in some rows of the fit.
        shares: For each column of labels the share of each indicator in the fit.
        indicators: For each column of labels the indicator that each label has, (labels + 1,), the last for unknown
            ones: one for all rare labels, or, where each has its own, one beyond them all, the shares.
    """

    scores: Scores
    quantiles: Array | None
    bounds: Array
    centre: Array
    scale: Array
    clip: float
    with_missing: tuple[int, ...]
    shares: tuple[Array, ...]
    indicators: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        self.rows_of_indicators = tuple(np.vstack([np.eye(len(share)), share]) for share in self.shares)
        self.width, self.apart = math.sqrt(12), math.sqrt(2)  # of uniform ranks; of two rows that differ in a label
        if self.quantiles is not None:
            self.ranks = np.array([_ranks_at(knots) for knots in self.quantiles])

    @classmethod
    def fit(cls, rows: Rows, scores: Scores = "standard") -> Encoding:
        """Learn the scores of each number and the shares of each label."""
        table, n, ranked = rows.table, len(rows), scores in ("uniform", "normal")
        numbers = table.numbers[: 0 if ranked else n]  # ranks have no use for a centre and a scale
        missing = np.isnan(numbers)
        bounds = np.array([[-np.inf], [np.inf]]) * np.ones(numbers.shape[1])
        if scores == "bounded":
            bounds = np.array([_bounds(column[~np.isnan(column)]) for column in numbers.T]).reshape(-1, 2).T
            numbers = numbers.clip(*bounds)
        known = (~missing).sum(axis=0).clip(min=1)
        centre = np.where(missing, 0, numbers).sum(axis=0) / known
        away = np.abs(np.where(missing, 0, numbers - centre))
        size = np.maximum(away.max(axis=0, initial=0), 1e-300)  # squares of huge or tiny numbers are not numbers
        spread = size * np.sqrt(np.square(away / size).sum(axis=0) / known)
        columns = zip(rows.variable.labels, table.codes.T, strict=True)
        counts = [np.bincount(codes[codes != UNKNOWN], minlength=column.n_labels) for column, codes in columns]
        indicators = tuple(map(_indicators, counts))
        shares = tuple(
            np.bincount(of_label[:-1], count) / n for of_label, count in zip(indicators, counts, strict=True)
        )
        clip = min(1 / n, 0.05) if scores == "normal" else 0.5 / n  # normal scores stop a row from either end
        scale = np.where(spread > 0, spread, 1.0)
        quantiles = _quantiles(rows) if ranked and numbers.shape[1] else None
        return cls(scores, quantiles, bounds, centre, scale, clip, _with_missing(rows.variable), shares, indicators)

    def numbers(self, rows: Rows) -> Tensor:
        """Scores of the numbers, (n, p), and an indicator for each that may be missing."""
        missing = torch.isnan(rows.numbers)
        filled = torch.where(missing, 0.0, self._scores(rows))
        if not self.with_missing:
            return filled
        return torch.cat([filled, missing[:, list(self.with_missing)].double()], dim=1)

    def _scores(self, rows: Rows) -> Tensor:
        if self.quantiles is None:
            low, high = self.tensor("bounds")
            bounded = rows.numbers.clamp(low, high) if self.scores == "bounded" else rows.numbers
            return (bounded - self.tensor("centre")) / self.tensor("scale")
        if id(self.quantiles) not in rows.memo:  # spaces with different scores share them, and the id stays taken
            rows.memo[id(self.quantiles)] = self._ranks(rows.numbers), self.quantiles
        rank = rows.memo[id(self.quantiles)][0].clamp(self.tensor("clip"), 1 - self.tensor("clip"))
        return normal_quantile(rank) if self.scores == "normal" else self.tensor("width") * (rank - 0.5)

    def _ranks(self, numbers: Tensor) -> Tensor:
        """Where numbers stand among the quantiles, between 0 and 1, (n, p)."""
        knots, ranks = self.tensor("quantiles"), self.tensor("ranks")
        left = last_at_most(knots, numbers)
        right = (left + 1).clamp(max=knots.shape[1] - 1)
        start = looked_up(knots, left)
        share = (numbers - start) / (looked_up(knots, right) - start)
        between = (left + share) / max(knots.shape[1] - 1, 1)
        return torch.where(numbers > start, between, looked_up(ranks, left)).clamp(max=1.0)

    def labels(self, rows: Rows) -> Tensor:
        """Indicators of the labels, (n, those of all columns); the shares of the fit where unknown among few."""
        blocks = [rows.numbers[:, :0]]
        for j in range(len(self.shares)):
            of_row = at_code(self.tensor("indicators", j), rows.codes[:, j])
            blocks.append(nn.functional.embedding(of_row, self.tensor("rows_of_indicators", j)))
        return torch.cat(blocks, dim=1)

    def forward(self, rows: Rows) -> Tensor:
        """Numbers and labels side by side; two rows that differ in a label are as far apart as one in a number."""
        numbers = self.numbers(rows)
        return torch.cat([numbers, self.labels(rows) / self.tensor("apart")], dim=1) if self.shares else numbers


def _quantiles(rows: Rows) -> Array:
    """Quantiles of each number, (p, r), known once for all spaces of these rows."""
    if "quantiles" not in rows.memo:
        rows.memo["quantiles"] = np.array([_quantiles_of(column, len(rows)) for column in rows.table.numbers.T])
    return np.asarray(rows.memo["quantiles"])


def _quantiles_of(numbers: Array, n_rows: int) -> Array:
    """Evenly spaced quantiles of numbers, rising, (r,); NaN is missing, and what is never known is 0."""
    known = np.sort(numbers[~np.isnan(numbers)]) if not np.isnan(numbers).all() else np.zeros(1)
    places = np.linspace(0, len(known) - 1, min(MOST_QUANTILES, n_rows))
    return np.interp(places, np.arange(len(known)), known)


def _ranks_at(knots: Array) -> Array:
    """The rank of each quantile of a number, (r,): where several are one value the middle of theirs, or the end."""
    last = max(len(knots) - 1, 1)
    below, above = (np.searchsorted(knots, knots, side=side) for side in ("left", "right"))
    middle = (below + above - 1) / 2 / last
    return np.where(below == 0, 0.0, np.where(above == len(knots), 1.0, middle))


def _bounds(values: Array) -> tuple[float, float]:
    """Where a number is cut off: not at all where its outer rows lie in the middle, as in sparse columns."""
    options = in_force.get()
    n_outer = max(1, int(options.outer_share * len(values)))
    if len(values) <= 2 * n_outer:
        return -np.inf, np.inf
    places = (n_outer, len(values) // 2, len(values) - 1 - n_outer)
    low, middle, high = np.partition(values, places)[list(places)].tolist()
    return (
        middle - options.outer_reach * (middle - low) if low < middle else -np.inf,
        middle + options.outer_reach * (high - middle) if high > middle else np.inf,
    )


def _indicators(counts: np.ndarray) -> np.ndarray:
    """The indicator of each label and of unknown ones, (labels + 1,).

    Of many labels the most frequent ones, in order, have their own, the others the last.
    """
    few = in_force.get().finite_values
    if len(counts) <= few:
        return np.arange(len(counts) + 1)
    frequent = np.argsort(-counts, kind="stable")[: few - 1]
    frequent = np.sort(frequent[counts[frequent] >= in_force.get().rows_a_function])
    indicators = np.full(len(counts) + 1, len(frequent))
    indicators[frequent] = np.arange(len(frequent))
    return indicators


def _with_missing(variable: Variable) -> tuple[int, ...]:
    """Positions among the numbers of columns with missing values; a date counts once, not for each of its parts."""
    first = np.unique(variable.owners[0], return_index=True)[1].tolist()
    return tuple(j for j, column in zip(first, variable.numbers, strict=True) if column.missing)


QUADRATURE_NODES = 60  # integrals of squares of splines are exact to rounding
MOST_SYMBOLS = 2000  # indicators of a variable: bounds memory
MOST_SPLINES = 500  # bounds time: beyond, a Gram matrix of all of them costs more than it tells


@saved
@dataclass(eq=False, repr=False)
class TableSpace(Space):
    """All functions of a variable with finitely many values: one indicator a value.

    Attributes:
        symbols: The distinct rows seen in the fit, (m, columns), in order, as `symbol_keys` writes them.
        shares: The share of each in the fit, (m,); it stands in for values that the fit never saw.
        at: The columns that are read: among numbers, labels, and where each number is missing, in this order. All
            numbers and labels when none is named.
    """

    symbols: Array
    shares: Array
    at: tuple[int, ...] = ()

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
        missing = torch.isnan(rows.numbers)
        keys = torch.cat([torch.where(missing, torch.inf, rows.numbers), rows.codes], dim=1)
        if self.at:
            keys = torch.cat([keys, missing], dim=1)[:, list(self.at)]
        symbols, m = self.tensor("symbols"), len(self.symbols)
        if keys.shape[1] == 1:  # the same, sooner
            found = last_at_most(symbols.T, keys)[:, 0]
        else:
            found = bisected(lambda at: _at_most(symbols[at], keys), torch.zeros_like(keys[:, 0], dtype=torch.int64), m)
        return torch.where((symbols[found] == keys).all(dim=1), found, m)

    def mapped(self, rows: Rows, centre: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
        """The row of the matrix at each value: no indicators are made, however many there would be."""
        values = torch.cat([weight, (self.tensor("shares") @ weight)[None]]) + (offset - centre @ weight)
        return nn.functional.embedding(self.position(rows), values)

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
        options = in_force.get()
        if scores == "normal":
            outermost, n_knots = -ndtri(min(options.rows_beyond_knots / len(rows), 0.1)), options.normal_knots
        else:
            outermost, n_knots = np.sqrt(3), options.uniform_knots  # where uniform scores end
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
            features: How many kernel features; as `Options` has them for one column and for several when None.
        """
        encoding = Encoding.fit(rows, scores)
        encoded = encoding(rows)
        single = encoded.shape[1] == 1
        default = in_force.get().kernel_features if single else in_force.get().joint_kernel_features
        width = gamma / max(1.0, float(encoded.var(axis=0).sum()))
        size = min(features or default, len(encoded))
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


def varies(rows: Rows) -> bool:
    """Whether two rows differ."""
    parts = (rows.take(slice(0, HEAD_ROWS)), rows)  # most differ early
    values = (part.tensor.flatten(1).numpy() if rows.variable.is_tensor else symbol_keys(part.table) for part in parts)
    return any((keys != keys[0]).any() for keys in values)


def check_not_constant(rows: Rows, name: str) -> None:
    """Refuse a variable that never varies: nothing depends on it, and it depends on nothing."""
    if not varies(rows):
        raise ValueError(
            f"{name} never varies in these {len(rows)} sample(s) (one class, n_samples={len(rows)}): nothing can "
            "depend on it. Pass rows in which it takes at least two values."
        )


FeatureFunction = Callable[[Any], Array]  # from rows to values at each, (n, k)


@saved
@dataclass(eq=False, repr=False)
class SpanFunction(Space):
    """Affine functions of the features of a space, the strongest first: f or g once they are learned.

    Attributes:
        space: The space.
        affine: From its features to the functions.
        of: The variables of a side that the space reads; all when none is named.
    """

    in_chunks = True
    space: Space
    affine: AffineFeatures
    of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.centre, self.weight, self.offset = self.affine.centre, self.affine.weight, self.affine.offset
        self.to(self.space.device)

    def forward(self, rows: Any) -> Tensor:
        """Values at each row, (n, k)."""
        return self.space.mapped(rows.of(*self.of), *map(self.tensor, ("centre", "weight", "offset")))

    def __call__(self, rows: Any) -> Array:
        """Values at each row, (n, k)."""
        with bounded_threads(rows.cells):
            return super().__call__(rows)

    def first(self, k: int) -> SpanFunction:
        """The first k of the features."""
        return replace(self, affine=self.affine.first(k))

    def scaled(self, factors: Array | float) -> SpanFunction:
        """The features, each times a factor, (k,)."""
        affine = replace(self.affine, weight=self.affine.weight * factors, offset=self.affine.offset * factors)
        return replace(self, affine=affine)


@saved
@dataclass(eq=False, repr=False)
class SideBySide(Space):
    """The sum of several spaces of the same side: their features side by side; of no space, none."""

    spaces: tuple[Space, ...]

    def forward(self, rows: Any) -> Tensor:
        """All features, (n, d_1 + d_2 + ...)."""
        if not self.spaces:
            return torch.empty((len(rows), 0), dtype=torch.float64, device=rows.device)
        return torch.cat([space.forward(rows) for space in self.spaces], dim=1)


@dataclass(eq=False, repr=False)
class SharedSpaces(Space):
    """Functions side by side that read the same spaces: each space is evaluated once.

    Attributes:
        parts: For each space its part of all functions, which are the sums of these.
    """

    in_chunks = True
    parts: tuple[SpanFunction, ...]

    @classmethod
    def of(cls, *functions: SpanFunction) -> SharedSpaces:
        """Several functions as one."""
        sizes = [function.affine.weight.shape[1] for function in functions]
        found: dict[int, tuple[Space, Array]] = {}
        outputs = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1])
        offset = sum(_gathered(one, to, found) for one, to in zip(functions, outputs, strict=True))
        affine = [AffineFeatures(np.zeros(len(weight)), weight, np.zeros(sum(sizes))) for _, weight in found.values()]
        affine[0] = replace(affine[0], offset=np.asarray(offset))
        return cls(tuple(SpanFunction(space, own) for (space, _), own in zip(found.values(), affine, strict=True)))

    def forward(self, rows: Any) -> Tensor:
        """Values at each row, (n, k)."""
        return torch.stack([part.forward(rows) for part in self.parts]).sum(dim=0)

    def __call__(self, rows: Any) -> Array:
        """Values at each row, (n, k)."""
        with bounded_threads(rows.cells):
            return super().__call__(rows)


def _gathered(space: Space, weight: Array, found: dict[int, tuple[Space, Array]]) -> Any:
    """Add up by space, under its id, what multiplies its features, (d, k); and give the constant, (k,)."""
    if isinstance(space, SpanFunction) and not space.of:
        affine = space.affine
        inner = _gathered(space.space, affine.weight @ weight, found)
        return inner + (affine.offset - affine.centre @ affine.weight) @ weight
    if isinstance(space, SideBySide) and all(isinstance(part, SpanFunction) for part in space.spaces):
        parts = cast("tuple[SpanFunction, ...]", space.spaces)
        ends = np.cumsum([part.affine.weight.shape[1] for part in parts])[:-1]
        return sum(_gathered(part, own, found) for part, own in zip(parts, np.split(weight, ends), strict=True))
    before = found[id(space)][1] if id(space) in found else 0.0
    found[id(space)] = space, before + weight
    return 0.0


def table_function(space: TableSpace, values: Array, of: tuple[str, ...] = ()) -> SpanFunction:
    """One value for each symbol of a finite alphabet, (m, k); 0 for symbols that the fit never saw: no change.

    Args:
        space: The symbols.
        values: One row each.
        of: The variables of the side that the symbols belong to; all when none is named.
    """
    m, k = values.shape
    return SpanFunction(replace(space, shares=np.zeros(m)), AffineFeatures(np.zeros(m), values, np.zeros(k)), of)


def in_reach(space: Space, rows: Any) -> Space:
    """The space, with features so large or so small that their squares would not be numbers brought to size 1."""
    size = np.abs(space(rows)).max(axis=0, initial=0)
    beyond = (size > LARGEST) | ((size < SMALLEST) & (size > 0))
    scale = np.where(beyond, size, 1.0).clip(min=1e-300)  # whose inverse is a number
    zero = np.zeros(len(scale))
    return SpanFunction(space, AffineFeatures(zero, np.diag(1 / scale), zero)) if beyond.any() else space
