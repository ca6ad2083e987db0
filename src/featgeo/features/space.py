"""What a space is: one object that gives features in a fit, on a GPU, in an exported graph and in a file.

A space is a torch module over the columns of a variable as they were read once: numbers, (n, p), and codes of labels,
(n, q). `space(rows)` gives the values of its features as an array, (n, d), computed on the device that the space is on
(`space.to("cuda")`); `space.forward(rows)` gives them as a tensor there, for spaces made of spaces and for exporters.

Spaces are dataclasses, and their fields are all that a file keeps of them. Fields stay what they are, arrays above all;
each array or float has a buffer beside it that moves with the module. Exported graphs read these buffers, too: ONNX
would make Python's own numbers single precision.

What spaces look up in tables they find by searches and interpolation on tensors. ONNX has neither a sorted search nor
the normal quantile function: graphs that are exported search by bisection, with a fixed number of steps, and
approximate the function to double precision.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from featgeo.features.devices import moved, on_host, rows_at_once
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


def last_at_most(knots: Tensor, x: Tensor) -> Tensor:
    """The last knot that is at most x, for each of x, (n, p); the first where none is.

    Args:
        knots: Ascending, (p, r), or (1, r) for all columns.
        x: Shape (n, p).
    """
    if torch.compiler.is_exporting():
        return bisected(lambda at: looked_up(knots, at) <= x, torch.zeros_like(x, dtype=torch.int64), knots.shape[1])
    found = torch.searchsorted(knots[0] if len(knots) == 1 else knots, x.T.contiguous(), right=True).T
    return (found - 1).clamp(min=0)


def bisected(holds: Callable[[Tensor], Tensor], first: Tensor, size: int) -> Tensor:
    """The last of `size` positions at which a condition holds that holds up to some position; 0 where none does.

    Args:
        holds: The condition, from positions of any shape.
        first: Zeros of that shape.
        size: How many positions there are.
    """
    position = first
    while size > 1:  # the answer is among the next `size` positions
        ahead = position + size // 2
        position = torch.where(holds(ahead), ahead, position)
        size -= size // 2
    return position


def looked_up(table: Tensor, position: Tensor) -> Tensor:
    """Entries at positions (n, p) of tables (p, r), one a column; or (1, r), the same for all columns."""
    if len(table) > 1:
        position = position + table.shape[1] * torch.arange(len(table), device=table.device)
    return table.flatten()[position]


def at_code(table: Tensor, codes: Tensor) -> Tensor:
    """Rows of a table at codes of labels, (n,); the last of them where a label is unknown."""
    unknown = len(table) - 1
    return table[torch.where((codes >= 0) & (codes < unknown), codes, unknown)]


def interpolated(x: Tensor, knots: Tensor, values: Tensor) -> Tensor:
    """`numpy.interp` of each column: x is (n, p); ascending knots and their values are (p, r), or (1, r) for all."""
    left = last_at_most(knots, x)
    right = (left + 1).clamp(max=knots.shape[1] - 1)
    start, value = looked_up(knots, left), looked_up(values, left)
    gap = looked_up(knots, right) - start
    share = (x - start).clamp(min=0) / torch.where(gap > 0, gap, 1.0)  # of a tiny gap no slope is a number
    return share * (looked_up(values, right) - value) + value


def normal_quantile(rank: Tensor) -> Tensor:
    """The normal quantile function of ranks between 1e-11 and 1 - 1e-11."""
    return rational_quantile(rank) if torch.compiler.is_exporting() else torch.special.ndtri(rank)


def rational_quantile(rank: Tensor) -> Tensor:
    """The normal quantile function by operations that every exporter knows, to double precision."""
    half_width, middle, depth = torch.tensor([0.425, 0.425**2, 1.6], dtype=rank.dtype, device=rank.device)
    from_middle = rank - 0.5
    centre = from_middle * _ratio(_CENTRE, middle - from_middle * from_middle)
    away = torch.sqrt(-torch.log(torch.where(from_middle < 0, rank, 1 - rank)))
    tail = torch.sign(from_middle) * _ratio(_TAIL, away - depth)
    return torch.where(from_middle.abs() <= half_width, centre, tail)


def _ratio(coefficients: tuple[tuple[float, ...], ...], x: Tensor) -> Tensor:
    """The ratio of two polynomials, by Horner's scheme."""
    pairs = torch.tensor(coefficients, dtype=x.dtype, device=x.device).unbind(dim=1)
    result = pairs[0].expand(*x.shape, 2)
    for pair in pairs[1:]:
        result = result * x[..., None] + pair
    numerator, denominator = result.unbind(dim=-1)
    return numerator / denominator


ROWS_AT_ONCE = 8192  # bounds memory: a space may have many more features than are wanted of it


class Fields(nn.Module):
    """A module that is a dataclass: arrays and modules among its fields, also in tuples, are those of the module.

    Attributes:
        is_ours: Whether it can be exported: whether it is evaluated by torch.
    """

    is_ours: ClassVar[bool] = True

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """A module to begin with: dataclasses have an `__init__` of their own."""
        space = super().__new__(cls)
        nn.Module.__init__(space)
        return space

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self.__dict__[name] = value  # before the default that a dataclass has for the field
        for i, part in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(part, np.ndarray | float):
                self.register_buffer(f"{name}_{i}", torch.tensor(np.asarray(part, order="C")), persistent=False)
            elif isinstance(part, nn.Module) and part is not value:
                self.add_module(f"{name}_{i}", part)

    def tensor(self, name: str, i: int = 0) -> Tensor:
        """The buffer beside a field; beside one of its parts where the field is a tuple."""
        return self.get_buffer(f"{name}_{i}")


class Space(Fields):
    """A fitted space of functions of a variable, or of the variables of a side (`Parts`).

    Attributes:
        in_chunks: Whether some rows are evaluated at a time on the CPU as well, and not only on other devices.
    """

    in_chunks: ClassVar[bool] = False

    @property
    def device(self) -> torch.device:
        """Where features are computed."""
        return next((part.device for part in chain(self.parameters(), self.buffers())), torch.device("cpu"))

    @abstractmethod
    def forward(self, rows: Any) -> Tensor:
        """Values of the features that span the space, (n, d), from rows on its device."""

    def mapped(self, rows: Any, centre: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
        """The features, less a centre (d,), times a matrix (d, k), plus an offset (k,): (n, k)."""
        return offset + (self.forward(rows) - centre) @ weight

    def features(self, rows: Any) -> Tensor:
        """Values of the features that span it, (n, d), on the device of the space."""
        device, n = self.device, len(rows)
        size = ROWS_AT_ONCE if self.in_chunks or device.type != "cpu" else n
        if n > size and device.type != "cpu":
            rows, size = moved(rows, device), rows_at_once(device)
        chunks = [rows] if n <= size else [rows.take(slice(at, at + size)) for at in range(0, n, size)]
        with torch.no_grad():
            values = [self.forward(part.on(device)) for part in chunks]
        return values[0] if len(values) == 1 else torch.cat(values)

    def __call__(self, rows: Any) -> Array:
        """Values of the features that span it, (n, d)."""
        values = self.features(rows)
        return values.numpy() if values.device.type == "cpu" else on_host(values)


class Wrapped(Space):
    """A space of something that is not ours to evaluate: it reads rows as they came, and cannot be exported."""

    is_ours = False

    @abstractmethod
    def values(self, rows: Any) -> Array:
        """Values of the features, (n, d)."""

    def forward(self, rows: Any) -> Tensor:
        """The same as a tensor."""
        return torch.from_numpy(self.values(rows)).to(rows.device)
