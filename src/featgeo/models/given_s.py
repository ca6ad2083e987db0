"""P(y|s): from the same engine, or from a model that the user brings. And P(y|f(x), s), from features of x beside s."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict
from sklearn.utils.validation import check_is_fitted

from featgeo.assembly import Conditional
from featgeo.assembly.conditional import Support
from featgeo.features.spaces import Encoding, two_dimensional
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.learning.setting import Plan
from featgeo.models.modal import ModalDecomposition
from featgeo.models.predictors import FeatureClassifier, FeatureRegressor
from featgeo.schema import saved


def default_model(support: Support, finite: bool, s_space: Any, y_space: Any, plan: Plan) -> Any:
    """A model of Y given S for the values that Y takes; `finite` tells whether S has few values."""
    options = {"x_space": s_space, "random_state": plan.seed, "training": plan.training}
    if support.continuous or support.kind == "rows":
        return ModalDecomposition("auto", y_space=y_space, **options)
    if finite or support.values.dtype.kind == "f" or None in support.values.tolist():
        return ModalDecomposition(support.m, y_space="table", **options)
    return FeatureClassifier(**options)


@saved
@dataclass(frozen=True, eq=False)
class FeaturesModel:
    """P(y|f(x), s): a model of this library that reads features of x beside the columns of s.

    Attributes:
        encoding: How rows of s become numbers.
        model: The model.
    """

    encoding: Encoding
    model: Any

    @classmethod
    def fit(cls, f: Array, s: Rows, y: Rows, support: Support, plan: Plan) -> FeaturesModel:
        """Learn it from features of x, (n, k), that should not have seen their rows."""
        encoding = Encoding.fit(s, "standard")
        inputs = np.hstack([f, encoding(s)])
        if support.continuous:  # here trees would have many targets, and take long
            numbers = y.single_numbers
            return cls(encoding, FeatureRegressor(x_space="kernel", random_state=plan.seed).fit(inputs, numbers))
        return cls(encoding, default_model(support, False, "auto", "table", plan).fit(inputs, y.raw))

    def mass(self, f: Array, s: Rows, support: Support) -> Array:
        """P(y|f(x), s) over the support, (n, m)."""
        conditional = self.model.given(np.hstack([f, self.encoding(s)]))
        return _mass_over(conditional, support, all_known=False)


@saved
@dataclass(frozen=True, eq=False)
class WithResiduals:
    """P(y|s) for numbers, from a regressor: its prediction and the residuals of rows that it was not fitted to.

    Attributes:
        regressor: A fitted scikit-learn regressor.
        residuals: Ordered, (r,); they are taken to be distributed alike for all s.
    """

    regressor: Any
    residuals: Array

    @classmethod
    def fit(cls, regressor: Any, s: Rows, y: Rows) -> WithResiduals:
        """Fit a copy, or keep one that is fitted: then the residuals of these rows are those that it has."""
        inputs, numbers = two_dimensional(s), y.single_numbers
        if _is_fitted(regressor):
            return cls(copy.deepcopy(regressor), np.sort(numbers - np.ravel(regressor.predict(inputs))))
        unseen = np.ravel(cross_val_predict(regressor, inputs, numbers))
        return cls(clone(regressor).fit(inputs, numbers), np.sort(numbers - unseen))

    def mass(self, s: Rows, support: Support) -> Array:
        """P(y|s) around each number of the support, (n, m)."""
        edges = (support.values[1:] + support.values[:-1]) / 2
        away = edges - np.ravel(self.regressor.predict(two_dimensional(s)))[:, None]
        below = np.interp(away, self.residuals, (np.arange(len(self.residuals)) + 0.5) / len(self.residuals), 0.0, 1.0)
        return np.diff(below, axis=1, prepend=0.0, append=1.0)


def check_model(model: Any, support: Support) -> None:
    """Refuse what is no model of y given s."""
    has_probabilities = hasattr(model, "given") or hasattr(model, "predict_proba")
    if isinstance(model, type) or not (has_probabilities or (hasattr(model, "predict") and is_regressor(model))):
        raise ValueError(
            f"`y_given_s` must be a model with `given` or `predict_proba`, or a regressor, got {model!r}. Pass a "
            "scikit-learn estimator such as LogisticRegression(), or a model of this library; a function of s can be "
            "made one by a class with `fit` and `predict_proba`."
        )
    if not has_probabilities and not support.continuous:
        raise ValueError(
            f"`y_given_s` is a regressor, {type(model).__name__}, and Y takes {support.m} values that are not a "
            "continuous number. Pass a classifier, which has `predict_proba`."
        )


def fitted_model(model: Any, s: Rows, y: Rows) -> Any:
    """A copy of the model; fitted to the rows where it was not yet."""
    if not hasattr(model, "given") and not hasattr(model, "predict_proba"):
        return WithResiduals.fit(model, s, y)
    if not _is_fitted(model):
        return clone(model).fit(s.raw if hasattr(model, "given") else two_dimensional(s), y.raw)
    return copy.deepcopy(model)  # the user may fit it again


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def mass_given(model: Any, s: Rows, support: Support) -> Array:
    """P(y|s) over the support, (n, m)."""
    if isinstance(model, WithResiduals):
        return model.mass(s, support)
    if hasattr(model, "given"):
        return _mass_over(model.given(s.raw), support)
    mass = np.asarray(model.predict_proba(two_dimensional(s)), dtype=np.float64)
    return _in_order(mass, np.asarray(model.classes_), support.values)


def _mass_over(conditional: Conditional, support: Support, all_known: bool = True) -> Array:
    if support.continuous and not np.array_equal(conditional.classes, support.values):
        edges = (support.values[1:] + support.values[:-1]) / 2  # fitted to other rows: its mass around ours
        return np.diff(conditional.cdf(edges), axis=1, prepend=0.0, append=1.0)
    return _in_order(conditional.proba(), conditional.classes, support.values, all_known)


def _in_order(mass: Array, classes: np.ndarray, values: np.ndarray, all_known: bool = True) -> Array:
    """Masses of `classes` as masses of `values`; classes that the fit never saw have no place there.

    Values that are no classes have mass 0, or are refused where all should be known.
    """
    if classes.shape == values.shape and bool(np.all(classes == values)):
        return mass
    position = {_key(label): i for i, label in enumerate(classes.tolist())}
    wanted = [_key(value) for value in values.tolist()]
    missing = [value for value in wanted if value not in position]
    if missing and all_known:
        raise ValueError(
            f"`y_given_s` knows {len(position)} values of Y, and {len(missing)} of the {len(wanted)} of the fit, such "
            f"as {missing[0]!r}, are not among them. Fit it to the same rows."
        )
    with_none = np.hstack([mass, np.zeros((len(mass), 1))])
    ordered = with_none[:, [position.get(value, -1) for value in wanted]]
    return ordered / ordered.sum(axis=1, keepdims=True)


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
