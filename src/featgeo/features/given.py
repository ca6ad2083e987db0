"""Features that are given: nothing about them is learned, and others are to be orthogonal to them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import _is_fitted

from featgeo.features.columns import is_frame
from featgeo.features.combined import PartSpace, TransformerSpace, as_columns, check_module, numbers_from
from featgeo.features.recipes import Recipe
from featgeo.features.space import Wrapped
from featgeo.features.spaces import Encoding
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.schema import saved


@saved
@dataclass(eq=False, repr=False)
class FunctionSpace(Wrapped):
    """The values of a function of the rows as they came."""

    function: Callable[[Any], Any]

    def values(self, rows: Rows) -> Array:
        """Numbers, one row a sample, (n, d)."""
        return numbers_from(self.function, self.function(rows.raw), rows)


def given_recipe(features: Any) -> Recipe:
    """The recipe of given features.

    Args:
        features: Names or positions of columns, a function of the rows as they came, a torch module or a scikit-learn
            transformer (both are copied; a transformer that is fitted stays as it is), or None for the columns of a
            variable themselves.
    """
    if features is None:
        return Recipe("given", lambda rows, seed: Encoding.fit(rows), given=True)
    _check_kind(features)
    if isinstance(features, torch.nn.Module):
        frozen = copy.deepcopy(features).eval().requires_grad_(False)
        return Recipe("module", lambda rows, seed: check_module(frozen, rows, "orthogonal_to"), given=True)
    if hasattr(features, "transform"):
        fitted = TransformerSpace(copy.deepcopy(features)) if _is_fitted(features) else None  # users may fit it again
        name = type(features).__name__
        return Recipe(name, lambda rows, seed: fitted or TransformerSpace.fit(rows, features), given=True)
    if callable(features):
        name = getattr(features, "__name__", "function")
        return Recipe(name, lambda rows, seed: FunctionSpace(features), given=True)
    columns = _as_names(features)
    if columns:
        name = ", ".join(map(str, columns))
        return Recipe(name, lambda rows, seed: PartSpace((), Encoding.fit(rows.select(columns)), columns), given=True)
    raise ValueError(
        "Given features must be column names, a function of the rows, a torch module or a scikit-learn transformer, "
        f"got {type(features).__name__}{getattr(features, 'shape', '')}. Values of features are passed to `fit` as Z."
    )


def _check_kind(features: Any) -> None:
    """Refuse what is easily taken for given features, and say what was meant."""
    what = type(features).__name__
    if isinstance(features, type):
        raise ValueError(
            f"Given features must be an object, got the class {features.__name__}. Pass an instance, such as "
            f"{features.__name__}()."
        )
    if is_frame(features):
        raise ValueError(
            f"Given features must be column names, a function, a module or a transformer, got a {what} of values. Pass "
            "it to `fit` as Z, or the names of the columns of X that are meant."
        )
    if hasattr(features, "predict") and not hasattr(features, "transform"):
        outputs = [name for name in ("decision_function", "predict_proba", "predict") if hasattr(features, name)]
        raise ValueError(
            f"Given features must be a function, a module or a transformer, got {what}, which only predicts. Pass its "
            f"output as a function: orthogonal_to=model.{outputs[0]}."
        )


def _as_names(features: Any) -> tuple[Any, ...]:
    """Names or positions of columns; none where it is something else, such as the values of features."""
    if isinstance(features, str | Integral):
        return as_columns(features if isinstance(features, str) else int(features))
    if isinstance(features, np.ndarray) and features.ndim == 1 and features.dtype.kind in "iuUO":
        features = features.tolist()
    names = list(features) if isinstance(features, Sequence) or hasattr(features, "get_indexer") else []
    named = all(isinstance(name, str | Integral) and not isinstance(name, bool) for name in names)
    named = named and len(set(names)) == len(names)  # what repeats are values
    return tuple(name if isinstance(name, str) else int(name) for name in names) if named else ()
