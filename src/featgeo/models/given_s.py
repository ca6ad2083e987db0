"""P(y|s): from the same engine, or from a model that the user brings."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from featgeo.assembly.support import Support
from featgeo.features.recipes import is_finite
from featgeo.features.spaces import two_dimensional
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.models.modal import ModalDecomposition
from featgeo.models.predictors import FeatureClassifier


def default_model(support: Support, s: Rows, s_space: Any, y_space: Any, seed: int, training: Any) -> Any:
    """A model of Y given S for the values that Y takes."""
    options = {"x_space": s_space, "random_state": seed, "training": training}
    if support.continuous or support.kind == "rows":
        return ModalDecomposition("auto", y_space=y_space, **options)
    if is_finite(s) or support.values.dtype.kind == "f" or None in support.values.tolist():
        return ModalDecomposition(support.m, y_space="table", **options)
    return FeatureClassifier(**options)


def fitted_model(model: Any, s: Rows, y: Rows) -> Any:
    """A copy of the model; fitted to the rows where it was not yet."""
    try:
        check_is_fitted(model)
    except NotFittedError:
        return clone(model).fit(s.raw if hasattr(model, "given") else two_dimensional(s), y.raw)
    return copy.deepcopy(model)  # the user may fit it again


def mass_given(model: Any, s: Rows, support: Support) -> Array:
    """P(y|s) over the support, (n, m)."""
    if hasattr(model, "given"):
        conditional = model.given(s.raw)
        if support.continuous and not np.array_equal(conditional.classes, support.values):
            edges = (support.values[1:] + support.values[:-1]) / 2  # fitted to other rows: its mass around ours
            return np.diff(conditional.cdf(edges), axis=1, prepend=0.0, append=1.0)
        return _in_order(conditional.proba(), conditional.classes, support.values)
    if hasattr(model, "predict_proba"):
        mass = np.asarray(model.predict_proba(two_dimensional(s)), dtype=np.float64)
        return _in_order(mass, np.asarray(model.classes_), support.values)
    raise ValueError(
        f"`y_given_s` must have `given` or `predict_proba`, and {type(model).__name__} has neither. Pass a classifier "
        "of scikit-learn or a model of this library."
    )


def _in_order(mass: Array, classes: np.ndarray, values: np.ndarray) -> Array:
    """Masses of `classes` as masses of `values`; classes that the fit never saw have no place there."""
    if classes.shape == values.shape and bool(np.all(classes == values)):
        return mass
    position = {_key(label): i for i, label in enumerate(classes.tolist())}
    wanted = [_key(value) for value in values.tolist()]
    missing = [value for value in wanted if value not in position]
    if missing:
        raise ValueError(
            f"`y_given_s` knows {len(position)} values of Y, and {len(missing)} of the {len(wanted)} of the fit, such "
            f"as {missing[0]!r}, are not among them. Fit it to the same rows."
        )
    ordered = mass[:, [position[value] for value in wanted]]
    return ordered / ordered.sum(axis=1, keepdims=True)


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
