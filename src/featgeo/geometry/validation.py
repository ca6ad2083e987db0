"""Checks of what users hand in, data and other arguments: one for each kind, used wherever it comes in.

Every message says the rule, what came, and the way out.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Array: TypeAlias = NDArray[np.float64]

MOST_SEED = 2**31  # seeds are passed on to libraries that want no more, some of them plus 1
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
    # A sum is finite only where all terms are, and takes a twentieth of the time to look at each.
    if not (features.sum().isfinite() or features.isfinite().all()):
        raise ValueError(
            f"{name!r} holds NaN or infinite values. Impute them, leave these rows out, or mark them as missing where "
            "there is an argument for that (`present`)."
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


def as_weights(weights: Any, n_rows: int, name: str = "weights") -> Array:
    """Return finite, non-negative row weights of shape (n,)."""
    array = as_real(weights, name)
    if array.shape != (n_rows,):
        raise ValueError(f"`{name}` must have one entry a row: expected shape ({n_rows},), got {array.shape}.")
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(f"`{name}` must be finite and non-negative. Drop the rows with a negative or NaN weight.")
    return array


def n_rows_in(values: Any) -> int:
    """How many rows there are; of sparse matrices, too, which have no length."""
    return int(values.shape[0]) if hasattr(values, "shape") and len(values.shape) else len(values)


def check_same_rows(**variables: Any) -> None:
    """Refuse variables of different lengths."""
    lengths = {name: n_rows_in(rows) for name, rows in variables.items()}
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
    count = check_whole(k, "k", 1, "It is the number of modes; None keeps all.")
    if count > rank:
        raise ValueError(
            f"{shown(count)} modes were asked for but the dependence has rank {rank}. Use None for all that there are."
        )
    return count


def check_ridge(ridge: Any) -> float:
    """Return a ridge that is finite and not negative."""
    return check_number(ridge, "ridge", "a number, finite and at least 0", "Use 0 for none.")


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


def is_whole(value: Any) -> bool:
    """Whether it is a whole number; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def check_whole(value: Any, name: str, least: int, way_out: str, most: int | None = None, also: str = "") -> int:
    """Return a whole number, `least` or more; `also` tells of other values, which the caller takes."""
    if not is_whole(value) or value < least or (most is not None and value > most):
        rule = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"`{name}` must be a whole number, {rule}{also}, got {shown(value)}. {way_out}")
    return int(value)


def check_count(value: Any, name: str, words: Collection[str] = ("auto",)) -> Any:
    """Return a number of modes: a whole number, at least 1, or one of a few words."""
    if isinstance(value, str) and value in words:
        return value
    way_out = f"Use {next(iter(words))!r} to let held-out rows choose."
    return check_whole(value, name, 1, way_out, also=f", or {' or '.join(map(repr, words))}")


def check_number(value: Any, name: str, rule: str, way_out: str, above: bool = False, below: float = math.inf) -> float:
    """Return a finite number, at least (or above) 0 and below some other; `rule` says which in words."""
    good = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    try:
        number = float(value) if good else math.nan
    except OverflowError:  # of a whole number
        number = math.inf
    if not 0 <= number < below or (above and number == 0):
        raise ValueError(f"`{name}` must be {rule}, got {shown(value)}. {way_out}")
    return number


def check_level(value: Any, name: str, way_out: str) -> float:
    """Return a number strictly between 0 and 1."""
    return check_number(value, name, "a number that lies between 0 and 1", way_out, above=True, below=1.0)


def check_choice(value: Any, name: str, choices: Collection[str], way_out: str = "") -> str:
    """Return one of a few words."""
    if not isinstance(value, str) or value not in choices:
        *first, last = (repr(choice) for choice in choices)
        raise ValueError(f"`{name}` must be {', '.join(first)} or {last}, got {shown(value)}. {way_out}".rstrip())
    return value


def check_flag(value: Any, name: str) -> bool:
    """Return a truth value; texts such as "no" are none."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"`{name}` must be True or False, got {shown(value)}.")
    return bool(value)


def seed_of(random_state: Any) -> int:
    """One number for all that is random; None is always the same, so that a fit can be repeated.

    Whole numbers of any size are seeds; generators of numpy, new and old, are drawn from.
    """
    if random_state is None:
        return 0
    if is_whole(random_state) and random_state >= 0:
        seed = int(random_state)
        return seed if seed < MOST_SEED else int(np.random.SeedSequence(seed).generate_state(1)[0] % MOST_SEED)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(MOST_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(MOST_SEED))
    raise ValueError(
        f"`random_state` must be None, a whole number, at least 0, or a generator of numpy, got {shown(random_state)}. "
        "Use 0 for a fit that can be repeated."
    )


def generator_of(random_state: Any) -> np.random.Generator:
    """A generator of random numbers; one that came is used, and so moves on."""
    return (
        random_state if isinstance(random_state, np.random.Generator) else np.random.default_rng(seed_of(random_state))
    )


def as_numbers(values: Any, name: str, way_out: str) -> Array:
    """Return numbers, one or a vector of them, as an array of at most one dimension; text is never parsed."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" or array.ndim > 1 or array.dtype.kind == "b":
        raise ValueError(f"`{name}` must be a number or a vector of numbers, got {shown(values)}. {way_out}")
    if np.isnan(array).any():
        raise ValueError(f"`{name}` holds NaN. Leave these values out.")
    return array.astype(np.float64)
