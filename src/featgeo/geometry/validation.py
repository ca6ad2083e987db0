"""Checks of what users hand in: every message says the rule, what came, and the way out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Array: TypeAlias = NDArray[np.float64]

_SHOWN = 80  # characters of what came


def shown(value: Any) -> str:
    """What came, short enough for a message."""
    if isinstance(value, int) and abs(value) > 10**_SHOWN:  # Python refuses to print the longest
        return f"a whole number of {value.bit_length()} bits"
    text = repr(value) if not hasattr(value, "shape") else f"{type(value).__name__} of shape {tuple(value.shape)}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def is_tensor(value: Any) -> TypeGuard[torch.Tensor]:
    """Whether it is a tensor; torch itself is not imported for that: without it there is none."""
    return "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor)


def as_features(values: Any, name: str, finite: bool = True) -> torch.Tensor:
    """Return real features as a float64 tensor of shape (n, d), on the device they came on.

    One-dimensional input is one feature. All are finite, or else (`finite`) they are refused.
    """
    import torch

    if is_tensor(values):
        check_tensor(values, repr(name))
        # Apple's devices have no float64.
        on_device = values.detach().cpu() if values.device.type == "mps" else values.detach()
        features = on_device.to(torch.float64)
    else:
        features = torch.from_numpy(as_real(values, name))
    features = features[:, None] if features.ndim == 1 else features
    if features.ndim != 2:
        raise ValueError(
            f"{name!r} must have one row a sample, shape (n,) or (n, d), got {tuple(features.shape)}. Flatten each row "
            "to a vector first."
        )
    if finite:
        check_finite(features, name)
    return features


def check_finite(features: torch.Tensor, name: str) -> None:
    """Refuse features that are no numbers."""
    if not features.isfinite().all():
        raise ValueError(
            f"{name!r} holds NaN or infinite values. Impute them, or mark the rows as missing with `present`."
        )


def check_tensor(tensor: torch.Tensor, name: str, with_values: bool = True) -> None:
    """Refuse tensors that cannot be computed with, or (`with_values`) whose values cannot be read."""
    if tensor.is_complex():
        raise ValueError(
            f"{name} must hold real numbers, got {tensor.dtype}. Complex data not supported: pass real and imaginary "
            "parts."
        )
    if str(tensor.layout) != "torch.strided":
        raise ValueError(f"{name} must be a dense tensor, got one of layout {tensor.layout}. Use .to_dense().")
    if with_values and tensor.device.type == "meta":
        raise ValueError(f"{name} is a tensor on the device 'meta', which holds no values. Pass one that does.")


def as_real(values: Any, name: str) -> Array:
    """Return real numbers (booleans and integers included) as a float64 array; never parse text or objects."""
    if np.ma.isMaskedArray(values):
        raise ValueError(f"{name!r} is a masked array. Fill the masked values, or drop them, first.")
    if is_tensor(values):
        check_tensor(values, repr(name))
        values = values.detach().cpu().double().numpy()  # numpy has no bfloat16
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name!r} must be an array of numbers, got a ragged list ({error}).") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name!r} must hold real numbers, got dtype {array.dtype}. Encode the values as numbers first."
        )
    return array.astype(np.float64)


def as_weights(weights: Any, n_rows: int) -> Array:
    """Return finite, non-negative row weights of shape (n,)."""
    array = as_real(weights, "weights")
    if array.shape != (n_rows,):
        raise ValueError(f"`weights` must have one entry a row: expected shape ({n_rows},), got {array.shape}.")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError("`weights` must be finite and non-negative. Drop the rows with a negative or NaN weight.")
    return array


def check_same_rows(**variables: Any) -> None:
    """Refuse variables of different lengths."""
    lengths = {name: len(rows) for name, rows in variables.items()}
    if len(set(lengths.values())) > 1:
        names = " and ".join(lengths)
        raise ValueError(
            f"{names} must have the same rows, got inconsistent numbers of samples: {lengths}. Align them row by row."
        )


def as_mass(table: Array, name: str = "table") -> Array:
    """Check the entries of a probability or count table."""
    if not np.isfinite(table).all():
        raise ValueError(f"{name!r} holds NaN or infinite entries. Use zero for cells that were never seen.")
    if (table < 0).any():
        raise ValueError(
            f"{name!r} must be non-negative, its smallest entry is {table.min():g}. Pass probabilities or counts."
        )
    with np.errstate(over="ignore"):
        total = table.sum()
    if not np.isfinite(total):
        raise ValueError(f"The entries of {name!r} add up to more than a float can hold. Divide them by the largest.")
    if not total > 0:
        raise ValueError(f"{name!r} is empty or all zero, so it describes no distribution. Pass at least one count.")
    return table


def check_mode_count(k: int | None, rank: int) -> int:
    """Return the number of modes to keep: k where it is between 1 and rank, rank where k is None."""
    if k is None:
        return rank
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise ValueError(
            f"The number of modes must be a whole number, at least 1, got {shown(k)}. None keeps all modes."
        )
    if rank == 0:
        raise ValueError(f"{shown(k)} modes were asked for but the dependence has rank 0: there is none. Use None.")
    if k > rank:
        raise ValueError(
            f"{shown(k)} modes were asked for but the dependence has rank {rank}. Use k <= {rank}, or None for all."
        )
    return int(k)


def check_ridge(ridge: float) -> float:
    """Return a ridge that is finite and not negative."""
    if not isinstance(ridge, Real) or isinstance(ridge, bool) or not 0 <= ridge <= sys.float_info.max:
        raise ValueError(f"`ridge` must be a number, finite and at least 0, got {shown(ridge)}. Use 0 for none.")
    return float(ridge)


def as_names(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return a tuple of distinct names; a single string is one name."""
    try:
        result = (names,) if isinstance(names, str) else tuple(names)
    except TypeError as error:
        raise ValueError(f"Names must be text, or a list of texts, got {names!r}.") from error
    if not all(isinstance(name, str) for name in result):
        raise ValueError(f"Names must be text, got {result}. Convert them with str.")
    if len(set(result)) != len(result):
        raise ValueError(f"Names must differ from each other, got {result}. Name each of them once.")
    return result


def position(name: str, names: Sequence[str]) -> int:
    """Which of several variables a name is."""
    if name not in names:
        raise ValueError(f"There is no variable {name!r} here. The variables are {names}.")
    return names.index(name)


def check_growth(spaces: Sequence[tuple[str, ...]], side: str) -> None:
    """Check that the space of each level contains that of the level before."""
    for level, (before, after) in enumerate(pairwise(spaces), start=1):
        missing = set(before) - set(after)
        if missing:
            raise ValueError(
                f"Spaces must grow from level to level, but level {level} of {side} has {after} and lacks "
                f"{sorted(missing)}. Add the missing blocks to it, or put the levels in another order."
            )
