"""The fitted pieces of a model as torch modules without control flow that depends on data, as exporters want them.

Everything is in double precision but networks. ONNX has neither a sorted search nor the normal quantile function, and
its exporter rounds Python numbers to single precision: searches are bisections of a fixed number of steps, and
constants are buffers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from scipy.interpolate import BSpline
from torch import Tensor, nn

from featgeo.assembly.links import ExponentialLink, LinearLink, Recalibration
from featgeo.assembly.support import Support
from featgeo.features.columns import UNKNOWN, Column
from featgeo.features.encoding import Encoding
from featgeo.features.functions import SpanFunction, TableFunction
from featgeo.features.spaces import KernelSpace, LinearSpace, SplineSpace, TableSpace
from featgeo.features.variables import Variable
from featgeo.geometry.validation import Array

# Wichura's rational approximations of the normal quantile function (algorithm AS 241, 1988), numerator and denominator,
# highest power first: near the middle, and up to 1e-11 from either end. Ranks are clipped at a row's share, well above.
_CENTRE = (
    (
        2.5090809287301226727e3,
        3.3430575583588128105e4,
        6.7265770927008700853e4,
        4.5921953931549871457e4,
        1.3731693765509461125e4,
        1.9715909503065514427e3,
        1.3314166789178437745e2,
        3.3871328727963666080e0,
    ),
    (
        5.2264952788528545610e3,
        2.8729085735721942674e4,
        3.9307895800092710610e4,
        2.1213794301586595867e4,
        5.3941960214247511077e3,
        6.8718700749205790830e2,
        4.2313330701600911252e1,
        1.0,
    ),
)
_TAIL = (
    (
        7.74545014278341407640e-4,
        2.27238449892691845833e-2,
        2.41780725177450611770e-1,
        1.27045825245236838258e0,
        3.64784832476320460504e0,
        5.76949722146069140550e0,
        4.63033784615654529590e0,
        1.42343711074968357734e0,
    ),
    (
        1.05075007164441684324e-9,
        5.47593808499534494600e-4,
        1.51986665636164571966e-2,
        1.48103976427480074590e-1,
        6.89767334985100004550e-1,
        1.67638483018380384940e0,
        2.05319162663775882187e0,
        1.0,
    ),
)


def are_labels(variable: Variable) -> list[bool]:
    """Whether each column of the input tensor holds codes of labels."""
    return [column.kind == "label" for column in variable.columns for _ in range(1 + len(column.parts))]


def frozen(module: nn.Module) -> nn.Module:
    """The module for evaluation only."""
    return module.eval().requires_grad_(False)


def _doubles(array: Any) -> Tensor:
    return torch.tensor(np.array(array, dtype=np.float64, order="C"))


class OfColumns(nn.Module):
    """The input tensor taken apart into numbers, (n, p), and codes of labels, (n, q), for a module of both."""

    missing_codes: Tensor

    def __init__(self, variable: Variable, body: nn.Module) -> None:
        super().__init__()
        is_label = are_labels(variable)
        self.numbers = [j for j, label in enumerate(is_label) if not label]
        self.labels = [j for j, label in enumerate(is_label) if label]
        self.n_columns = len(is_label)
        self.body = body
        self.register_buffer("missing_codes", _doubles([_missing_code(column) for column in variable.labels]))

    def forward(self, inputs: Tensor) -> Tensor:
        _check_shape(inputs, (self.n_columns,))
        values = inputs.double()
        codes = values[:, self.labels]
        return self.body(values[:, self.numbers], torch.where(torch.isnan(codes), self.missing_codes, codes))


def _check_shape(inputs: Tensor, row: tuple[int, ...]) -> None:
    if tuple(inputs.shape[1:]) != row:
        raise ValueError(
            f"The input must have rows of shape {row} as in the fit, got {tuple(inputs.shape)}. `encode_inputs` makes "
            "it."
        )


def _missing_code(column: Column) -> int:
    """Where labels missed in the fit, missing is a label of its own."""
    return len(column.categories) if column.missing else UNKNOWN


class _SymbolPosition(nn.Module):
    """The position of each row among sorted symbols, (n,); their number where it is none of them."""

    symbols: Tensor

    def __init__(self, space: TableSpace) -> None:
        super().__init__()
        self.register_buffer("symbols", _doubles(space.symbols))

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        keys = torch.cat([torch.where(torch.isnan(numbers), math.inf, numbers), codes], dim=1)
        m = self.symbols.shape[0]
        first = torch.zeros_like(keys[:, 0], dtype=torch.int64)
        position = _last(lambda at: _at_most(self.symbols[at], keys), first, m)
        return torch.where((self.symbols[position] == keys).all(dim=1), position, m)


def _at_most(rows: Tensor, others: Tensor) -> Tensor:
    """Whether each row comes before the other, or is the same, in lexicographic order, (n,)."""
    result = rows[:, -1] <= others[:, -1]
    for j in reversed(range(rows.shape[1] - 1)):
        result = (rows[:, j] < others[:, j]) | ((rows[:, j] == others[:, j]) & result)
    return result


class SymbolIndicators(nn.Module):
    """`TableSpace`."""

    shares: Tensor

    def __init__(self, space: TableSpace) -> None:
        super().__init__()
        self.position = _SymbolPosition(space)
        self.register_buffer("shares", _doubles(space.shares))

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        return _indicators(self.position(numbers, codes), self.shares)


class SymbolValues(nn.Module):
    """`TableFunction`."""

    values: Tensor

    def __init__(self, function: TableFunction) -> None:
        super().__init__()
        self.position = _SymbolPosition(function.space)
        self.register_buffer("values", _doubles(np.vstack([function.values, np.zeros(function.values.shape[1])])))

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        return self.values[self.position(numbers, codes)]


class EncodingModule(nn.Module):
    """`Encoding`."""

    quantiles: Tensor | None
    references: Tensor | None
    lowest: Tensor
    highest: Tensor
    centre: Tensor
    scale: Tensor
    root: Tensor

    def __init__(self, encoding: Encoding) -> None:
        super().__init__()
        self.with_missing = list(encoding.with_missing)
        self.from_ranks = _NormalQuantile() if encoding.scores == "normal" else _UniformScore()
        ranks = encoding.ranks
        self.register_buffer("quantiles", None if ranks is None else _doubles(ranks.quantiles_.T))
        self.register_buffer("references", None if ranks is None else _doubles(ranks.references_))
        self.register_buffer("lowest", _doubles(encoding.clip))
        self.register_buffer("highest", _doubles(1 - encoding.clip))
        self.register_buffer("centre", _doubles(encoding.centre))
        self.register_buffer("scale", _doubles(encoding.scale))
        self.register_buffer("root", _doubles(math.sqrt(2)))
        self.n_labels = len(encoding.shares)
        for j, share in enumerate(encoding.shares):
            self.register_buffer(f"shares{j}", _doubles(share))
            indicators = encoding.indicator_of_label(j)
            self.register_buffer(f"indicators{j}", None if indicators is None else torch.from_numpy(indicators))

    def numbers(self, numbers: Tensor) -> Tensor:
        missing = torch.isnan(numbers)
        filled = torch.where(missing, 0.0, self._scores(numbers))
        return torch.cat([filled, missing[:, self.with_missing].double()], dim=1) if self.with_missing else filled

    def _scores(self, numbers: Tensor) -> Tensor:
        if self.quantiles is None or self.references is None:
            return (numbers - self.centre) / self.scale
        return self.from_ranks(_ranks(numbers, self.quantiles, self.references).clamp(self.lowest, self.highest))

    def labels(self, codes: Tensor) -> Tensor:
        blocks = [
            _indicators(self._positions(codes[:, j], j), self.get_buffer(f"shares{j}")) for j in range(self.n_labels)
        ]
        return torch.cat(blocks, dim=1) if blocks else codes

    def _positions(self, codes: Tensor, j: int) -> Tensor:
        """The indicator of each label of a column, (n,): its own, or one that rare labels share with unknown ones."""
        indicators: Tensor | None = getattr(self, f"indicators{j}")
        if indicators is None:
            return codes
        unknown = indicators.shape[0] - 1
        return indicators[torch.where((codes >= 0) & (codes < unknown), codes, unknown).long()]

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        return torch.cat([self.numbers(numbers), self.labels(codes) / self.root], dim=1)


class _UniformScore(nn.Module):
    """Ranks, shifted and scaled to mean 0 and variance 1."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", _doubles(math.sqrt(12)))

    def forward(self, rank: Tensor) -> Tensor:
        return self.scale * (rank - 0.5)


class _NormalQuantile(nn.Module):
    """The normal quantile function of ranks between 1e-11 and 1 - 1e-11: ONNX has no `ndtri`."""

    centre: Tensor
    tail: Tensor
    half_width: Tensor
    shifts: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centre", _doubles(_CENTRE))
        self.register_buffer("tail", _doubles(_TAIL))
        self.register_buffer("half_width", _doubles(0.425))  # of the middle
        self.register_buffer("shifts", _doubles([0.425**2, 1.6]))  # where the approximations are centred

    def forward(self, rank: Tensor) -> Tensor:
        from_middle = rank - 0.5
        centre = from_middle * _ratio_of_polynomials(self.centre, self.shifts[0] - from_middle * from_middle)
        depth = torch.sqrt(-torch.log(torch.where(from_middle < 0, rank, 1 - rank)))
        tail = torch.sign(from_middle) * _ratio_of_polynomials(self.tail, depth - self.shifts[1])
        return torch.where(from_middle.abs() <= self.half_width, centre, tail)


class SplinesModule(nn.Module):
    """`SplineSpace`: on each piece a polynomial; the outermost ones go on for ever."""

    starts: Tensor | None
    coefficients: Tensor | None

    def __init__(self, space: SplineSpace) -> None:
        super().__init__()
        self.encoding = EncodingModule(space.encoding)
        splines = [] if space.splines is None else space.splines.bsplines_
        self.register_buffer("starts", _doubles([_starts(spline) for spline in splines]) if splines else None)
        coefficients = [_coefficients(spline) for spline in splines]
        if space.mix is not None:
            coefficients = [by_spline @ space.mix for by_spline in coefficients]
        self.register_buffer("coefficients", _doubles(coefficients) if splines else None)

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        labels = self.encoding.labels(codes)
        if self.starts is None or self.coefficients is None:
            return labels
        return torch.cat([_splines(self.encoding.numbers(numbers), self.starts, self.coefficients), labels], dim=1)


def _splines(scores: Tensor, starts: Tensor, coefficients: Tensor) -> Tensor:
    """Values, (n, p * splines), at scores (n, p) of pieces that start at (p, pieces)."""
    piece = _last_at_most(starts, scores)
    distance = (scores - _looked_up(starts, piece))[:, :, None]
    powers = _looked_up(coefficients, piece).unbind(dim=2)  # each (n, p, splines)
    return _polynomial(powers, distance).flatten(1)


def _starts(spline: BSpline) -> Array:
    """Where the pieces of a spline begin, (pieces,)."""
    return spline.t[spline.k : -spline.k - 1]


def _coefficients(spline: BSpline) -> Array:
    """Coefficients of powers of the distance from the start of each piece, highest first, (pieces, powers, splines)."""
    powers = range(spline.k, -1, -1)
    return np.stack([spline(_starts(spline), nu=power) / math.factorial(power) for power in powers], axis=1)


class KernelModule(nn.Module):
    """`KernelSpace`."""

    gamma: Tensor
    centres: Tensor
    normalization: Tensor

    def __init__(self, space: KernelSpace) -> None:
        super().__init__()
        self.encoding = EncodingModule(space.encoding)
        self.additive = None if space.additive is None else _additive(space.additive)
        self.register_buffer("gamma", _doubles(space.kernel.gamma))
        self.register_buffer("centres", _doubles(space.kernel.components_))
        self.register_buffer("normalization", _doubles(space.kernel.normalization_.T))

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        smooth = self._kernel(self.encoding(numbers, codes)) @ self.normalization
        return smooth if self.additive is None else torch.cat([self.additive(numbers, codes), smooth], dim=1)

    def _kernel(self, encoded: Tensor) -> Tensor:
        # In scikit-learn's order: the normalization magnifies rounding up to a million times.
        squares = -2 * (encoded @ self.centres.T) + (encoded * encoded).sum(dim=1, keepdim=True)
        return torch.exp(-self.gamma * (squares + (self.centres * self.centres).sum(dim=1)).clamp(min=0))


def _additive(space: SplineSpace | LinearSpace) -> nn.Module:
    return SplinesModule(space) if isinstance(space, SplineSpace) else EncodingModule(space.encoding)


class NetworkModule(nn.Module):
    """`NetworkSpace` of values as they are."""

    def __init__(self, network: nn.Module, shape: tuple[int, ...] | None = None) -> None:
        super().__init__()
        self.shape = shape  # of a row; None where it was checked before
        self.network = copy.deepcopy(network).cpu()

    def forward(self, inputs: Tensor) -> Tensor:
        if self.shape is not None:
            _check_shape(inputs, self.shape)
        return self.network(inputs.float()).double()


class EncodedNetwork(nn.Module):
    """`NetworkSpace` of encoded columns."""

    def __init__(self, network: nn.Module, encoding: Encoding) -> None:
        super().__init__()
        self.encoding = EncodingModule(encoding)
        self.network = NetworkModule(network)

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        return self.network(self.encoding(numbers, codes))


class AffineModule(nn.Module):
    """`AffineFeatures`."""

    centre: Tensor
    weight: Tensor
    offset: Tensor

    def __init__(self, function: SpanFunction) -> None:
        super().__init__()
        self.register_buffer("centre", _doubles(function.affine.centre))
        self.register_buffer("weight", _doubles(function.affine.weight))
        self.register_buffer("offset", _doubles(function.affine.offset))

    def forward(self, features: Tensor) -> Tensor:
        return self.offset + (features - self.centre) @ self.weight


class LinearLinkModule(nn.Module):
    """`LinearLink`, of normalised features."""

    sigma_g: Tensor
    mass: Tensor
    prior_share: Tensor

    def __init__(self, link: LinearLink, support: Support, sigma: Array) -> None:
        super().__init__()
        self.register_buffer("sigma_g", _doubles((support.g * sigma).T))
        self.register_buffer("mass", _doubles(support.mass))
        self.register_buffer("prior_share", _doubles(link.prior_share))

    def forward(self, f: Tensor) -> Tensor:
        density = _nearest_density(1 + f @ self.sigma_g, self.mass)
        return (1 - self.prior_share) * density + self.prior_share


class ExponentialLinkModule(nn.Module):
    """`ExponentialLink`, of normalised features."""

    weight: Tensor
    bias: Tensor

    def __init__(self, link: ExponentialLink, sigma: Array) -> None:
        super().__init__()
        self.register_buffer("weight", _doubles((link.weight * sigma).T))
        self.register_buffer("bias", _doubles(link.bias))

    def forward(self, f: Tensor) -> Tensor:
        logits = f @ self.weight + self.bias
        return torch.exp(logits - logits.amax(dim=1, keepdim=True))


class _Recalibration(nn.Module):
    """`Recalibration`."""

    predicted: Tensor
    observed: Tensor

    def __init__(self, recalibration: Recalibration) -> None:
        super().__init__()
        self.register_buffer("predicted", _doubles(recalibration.predicted))
        self.register_buffer("observed", _doubles(recalibration.observed))

    def forward(self, weights: Tensor) -> Tensor:
        cumulative = torch.cumsum(weights / weights.sum(dim=1, keepdim=True), dim=1)
        upper = _interpolated(cumulative, self.predicted[None], self.observed[None])
        lower = torch.cat([torch.zeros_like(upper[:, :1]), upper[:, :-1]], dim=1)
        return (upper - lower).clamp(min=0)


class Posterior(nn.Module):
    """Features of X, the link to density ratios, and the prior."""

    mass: Tensor

    def __init__(self, f: nn.Module, link: nn.Module, support: Support, recalibration: Recalibration | None) -> None:
        super().__init__()
        self.f = f
        self.link = link
        self.recalibration = nn.Identity() if recalibration is None else _Recalibration(recalibration)
        self.register_buffer("mass", _doubles(support.mass))

    def forward(self, inputs: Tensor) -> Tensor:
        weights = self.recalibration(self.link(self.f(inputs)) * self.mass)
        return weights / weights.sum(dim=1, keepdim=True)


def _nearest_density(ratio: Tensor, mass: Tensor) -> Tensor:
    """`nearest_density` of each row, (n, m): the largest values stay, as many as lie above the shift that they need."""
    ordered, order = torch.sort(ratio, dim=1, descending=True)
    masses = mass[order]
    shifts = (torch.cumsum(ordered * masses, dim=1) - 1) / torch.cumsum(masses, dim=1)
    kept = (ordered > shifts).sum(dim=1, keepdim=True)
    return (ratio - torch.gather(shifts, 1, kept - 1)).clamp(min=0)


def _indicators(position: Tensor, shares: Tensor) -> Tensor:
    """One indicator a value, (n, m), of positions (n,); the shares where the position is of none."""
    values = torch.arange(shares.shape[0], device=shares.device)
    hits = position[:, None] == values
    return torch.where(hits.any(dim=1, keepdim=True), hits.double(), shares)


def _ranks(numbers: Tensor, quantiles: Tensor, references: Tensor) -> Tensor:
    """scikit-learn's `QuantileTransformer`: the mean of interpolations from either side, which differ at ties."""
    up = references.expand_as(quantiles)
    knots, values = torch.cat([quantiles, -quantiles.flip(1)]), torch.cat([up, -up.flip(1)])
    from_below, from_above = _interpolated(torch.cat([numbers, -numbers], dim=1), knots, values).chunk(2, dim=1)
    ranks = 0.5 * (from_below - from_above)
    ranks = torch.where(numbers == quantiles[:, -1], 1.0, ranks)
    return torch.where(numbers == quantiles[:, 0], 0.0, ranks)


def _interpolated(x: Tensor, knots: Tensor, values: Tensor) -> Tensor:
    """`numpy.interp` of each column: x is (n, p); ascending knots and their values are (p, r), or (1, r) for all."""
    left = _last_at_most(knots, x)
    right = (left + 1).clamp(max=knots.shape[1] - 1)
    start, value = _looked_up(knots, left), _looked_up(values, left)
    gap = _looked_up(knots, right) - start
    slope = (_looked_up(values, right) - value) / torch.where(gap > 0, gap, 1.0)
    return slope * (x - start).clamp(min=0) + value


def _last_at_most(knots: Tensor, x: Tensor) -> Tensor:
    """The last of each column's knots, (p, r) and ascending, that is at most x, (n, p); the first where none is."""
    first = torch.zeros_like(x, dtype=torch.int64)
    return _last(lambda at: _looked_up(knots, at) <= x, first, knots.shape[1])


def _last(holds: Callable[[Tensor], Tensor], first: Tensor, size: int) -> Tensor:
    """The last of `size` positions at which a condition holds that holds up to some position; 0 where none does.

    Bisection with a fixed number of steps: ONNX has no `searchsorted`.
    """
    position = first
    while size > 1:  # the answer is among the next `size` positions
        ahead = position + size // 2
        position = torch.where(holds(ahead), ahead, position)
        size -= size // 2
    return position


def _looked_up(table: Tensor, position: Tensor) -> Tensor:
    """Entries at positions (n, p) of tables (p, r, ...), one a column; or (1, r, ...), the same for all columns."""
    offset = table.shape[1] * torch.arange(table.shape[0], device=table.device)
    return table.flatten(0, 1)[position + offset]


def _ratio_of_polynomials(coefficients: Tensor, x: Tensor) -> Tensor:
    numerator, denominator = _polynomial(coefficients.unbind(dim=1), x[..., None]).unbind(dim=-1)
    return numerator / denominator


def _polynomial(coefficients: Sequence[Tensor], x: Tensor) -> Tensor:
    """Horner's scheme; the highest power comes first."""
    result = coefficients[0]
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result
