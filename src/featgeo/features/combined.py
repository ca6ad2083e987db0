"""Spaces made of spaces, of networks and of transformers.

A space may be one of some of the variables of a side, or of some columns; sums and products of spaces; the outputs of a
network; or those of a scikit-learn transformer, which reads rows as they came. `Sum` allows f_1(x_1) + f_2(x_2) + ...
of groups of columns, `Joint` the span of products of functions of each. In a nesting the first lies inside the second,
and the difference is interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse
from sklearn.base import clone
from torch import Tensor

from featgeo.features.space import Space, Wrapped
from featgeo.features.spaces import Encoding
from featgeo.features.variables import Rows, Table
from featgeo.geometry.validation import Array, shown
from featgeo.schema import saved

MOST_PRODUCTS = 2000  # features of a joint space: bounds memory


@saved
@dataclass(eq=False, repr=False)
class PartSpace(Space):
    """Functions of some of the variables of a side, or of some of the columns of a variable.

    Attributes:
        names: The variables that are read; all when none is named.
        space: Functions of them.
        columns: Names or positions of the columns of a variable that are read; all when none is named.
    """

    names: tuple[str, ...]
    space: Space
    columns: tuple[str | int, ...] = ()

    def forward(self, rows: Any) -> Tensor:
        """Features of that part, (n, d)."""
        part = rows.of(*self.names)
        return self.space.forward(part.select(self.columns) if self.columns else part)


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
        return numbers_from(self.transformer, self.transformer.transform(two_dimensional(rows)), rows)


def numbers_from(source: Any, values: Any, rows: Rows) -> Array:
    """Features that a function or a transformer of the user's own gives, (n, d), unless they are none."""
    name = getattr(source, "__name__", type(source).__name__)
    values = values.detach().cpu() if isinstance(values, torch.Tensor) else values
    values = np.asarray(values.toarray() if sparse.issparse(values) else values)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or len(values) != len(rows) or values.dtype.kind not in "biuf":
        raise ValueError(
            f"Features of {rows.variable.name} must give numbers for each of {len(rows)} rows, one row of numbers a "
            f"sample, got shape {values.shape} of {values.dtype} from {name}. Write it for all rows at once, and turn "
            "labels into indicators."
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} of {rows.variable.name} gives values that are not finite. Mend it.")
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
        """Encoded columns, or the values as they came, in single precision; whole numbers of 8 bits stay small."""
        tensor = rows.tensor if self.encoding is None else self.encoding.forward(rows)
        return tensor if tensor.dtype in (torch.uint8, torch.float32) else tensor.float()

    def forward(self, rows: Rows) -> Tensor:
        """Outputs of the network."""
        return self.module(self.inputs(rows)).double()


def check_module(module: torch.nn.Module, rows: Rows, side: str = "x") -> NetworkSpace:
    """The space of a module, unless it cannot read the rows, or gives no features of them."""
    space = NetworkSpace(module, None, side)
    inputs, was_training = space.inputs(rows.take(slice(0, 2))), module.training
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
    return space


def two_dimensional(rows: Rows) -> Any:
    """Rows as they came; scikit-learn's transformers want a column where a single variable came."""
    if isinstance(rows.raw, Table):
        raise ValueError(
            f"{rows.variable.name} are several variables side by side, which a transformer cannot read as they came. "
            "Use a named space such as 'kernel'."
        )
    return np.asarray(rows.raw)[:, None] if np.ndim(rows.raw) == 1 else rows.raw


@saved
@dataclass(eq=False, repr=False)
class ProductSpace(Space):
    """Products of one function of each of several variables.

    Attributes:
        factors: Functions of each variable.
        or_one: Whether a product may go without each factor; never without all. Without the first of two, those of the
            second come alone as well; without none, there is only what no sum of functions of fewer holds.
    """

    factors: tuple[Space, ...]
    or_one: tuple[bool, ...]

    def forward(self, rows: Any) -> Tensor:
        """All products of one feature of each, (n, d), those with 1 first."""
        blocks = [space.forward(rows) for space in self.factors]
        if any(self.or_one):  # others are counted by whoever multiplies them
            check_few_products([block.shape[1] for block in blocks])
        ones = zip(blocks, self.or_one, strict=True)
        result = products_of([torch.nn.functional.pad(z, (1, 0), value=1.0) if one else z for z, one in ones])
        return result[:, 1:] if all(self.or_one) else result


def check_few_products(sizes: Sequence[int]) -> None:
    """Refuse more products of features of several blocks, and 1, than a Gram matrix should hold."""
    n_products = int(np.prod([size + 1 for size in sizes])) - 1
    if n_products > MOST_PRODUCTS:
        raise ValueError(
            f"A joint space of {list(sizes)} features has {n_products} products, more than {MOST_PRODUCTS}. Use "
            "smaller spaces, or 'kernel' or 'trees' for all columns together."
        )


def products_of(factors: Sequence[Any]) -> Any:
    """All products of one column of each, (n, d_1 d_2 ...), of arrays or of tensors."""
    result = factors[0]
    for factor in factors[1:]:
        result = (result[:, :, None] * factor[:, None, :]).reshape(factor.shape[0], -1)
    return result


@saved
@dataclass(frozen=True)
class Sum:
    """Sums of functions of groups of columns, one space a group.

    Attributes:
        parts: Pairs of columns (a name, a position, or a list of them) and a space such as "spline" or a scikit-learn
            transformer.
    """

    parts: Sequence[tuple[Any, Any]]


@saved
@dataclass(frozen=True)
class Joint:
    """Sums of products of functions of groups of columns, one space a group: functions of all of them together.

    Attributes:
        parts: Pairs of columns (a name, a position, or a list of them) and a space.
    """

    parts: Sequence[tuple[Any, Any]]


def as_columns(columns: Any) -> tuple[str | int, ...]:
    """A single name or position as a group of one."""
    if isinstance(columns, str | int):
        return (columns,)
    if not isinstance(columns, list | tuple) or not all(isinstance(column, str | int) for column in columns):
        raise ValueError(f"Columns must be a name, a position, or a list of them, got {columns!r}.")
    return tuple(columns)
