"""Drop-in scikit-learn predictors over the same features: a classifier and a regressor.

What they add to the modal decomposition is calibration: held-out rows say how far the assembled probabilities can be
trusted. The features stay.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from featgeo.assembly.support import Support
from featgeo.features.columns import column_of, family_of
from featgeo.features.exact_numbers import in_units
from featgeo.features.missing import rows_of
from featgeo.features.raw import RawColumn, columns_of, dimensions, plain, shape_of
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array, as_weights, check_same_rows
from featgeo.learning.solve import MODE_COUNTS
from featgeo.models.diagnostics import Panel
from featgeo.models.modal import ModalDecomposition
from featgeo.models.supports import support_of
from featgeo.schema import saved
from featgeo.watch import watched


@saved
@dataclass(eq=False, repr=False)
class FeatureClassifier(ClassifierMixin, ModalDecomposition):
    """A classifier from the modes of the dependence of X and the label.

    Args:
        n_modes: How many modes to keep at most; "auto" keeps all, one less than labels, up to 32.
        solver: As in `ModalDecomposition`.
        x_space: Functions of X to allow, as in `ModalDecomposition`.
        calibrate: Whether held-out rows choose between the theory's density ratios, a share of the prior mixed in, and
            a softmax of the features.
        orthogonal_to: Given features, as in `ModalDecomposition`: predictions then rest on features of X that are
            uncorrelated with them, calibrated all the same.
        random_state, training, ridge, time_limit, verbose: By name, as every estimator has them, see
            `featgeo.models.base.Decomposition`.

    Attributes:
        classes_: The labels, in order.
        link_: How features become probabilities.
    """

    n_modes: int | Literal["auto"] = "auto"
    y_space: ClassVar[str] = "table"  # type: ignore[misc]
    calibrate: bool = field(default=True, kw_only=True)

    classes_: np.ndarray = field(init=False)

    @watched
    def fit(self, X: Any, y: Any = None, Z: Any = None) -> FeatureClassifier:
        """Learn from rows of X, as in `ModalDecomposition.fit`, and their labels y, (n,).

        Args:
            X: Rows of X.
            y: Their labels.
            Z: Rows of what predictions are not to rest on, as in `ModalDecomposition.fit`; due wherever X is.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass the labels."
            )
        if dimensions(X) <= 2:
            columns_of(plain(X), "X")  # first of all, whether there are any rows
        labels = _labels(y)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"A classifier needs at least two classes, got one class: {self.classes_[0]!r}. Add rows of another."
            )
        super().fit(X, labels, Z)
        self.panels_ = self.panels_[0], Panel("bars", self.classes_.astype(object), self.support_.g)
        return self

    def predict(self, X: Any, Z: Any = None) -> np.ndarray:
        """The most probable label of each row, (n,)."""
        return self.given(X, Z=Z).map()

    def predict_proba(self, X: Any, Z: Any = None) -> Array:
        """Probability of each label of `classes_`, (n, m)."""
        return self.given(X, Z=Z).proba()

    def score(self, X: Any, y: Any, sample_weight: Any = None, Z: Any = None) -> float:  # type: ignore[override]
        """Accuracy on the given rows; a label that the fit never saw is never right."""
        labels, predicted = _labels(y), self.predict(X, Z)
        check_same_rows(X=predicted, y=labels)
        weights = None if sample_weight is None else as_weights(sample_weight, len(labels))
        right = np.array([a == b for a, b in zip(labels.tolist(), predicted.tolist(), strict=True)])
        return float(np.average(right, weights=weights))

    def _n_modes(self) -> int | Literal["auto"]:
        return min(len(self.classes_) - 1, max(MODE_COUNTS)) if self.n_modes == "auto" else self.n_modes

    def _as_y(self, y: Any) -> Any:
        """Labels as positions among `classes_`."""
        labels = _labels(y)
        check_same_family(labels, self.classes_)
        position = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        unknown = self.classes_[position] != labels
        if unknown.any():
            raise ValueError(f"The fit never saw the label {labels[unknown][0]!r}. Its labels are {self.classes_}.")
        return position

    def _support(self, rows: Rows, seed: int) -> Support:
        support = support_of(self.y_variable_, rows, self._all_g, seed, finite=True)
        return replace(support, kind="labels", values=self.classes_)

    def _calibrates(self) -> bool:
        return self.calibrate

    def _happened(self, y: Rows) -> np.ndarray:
        return y.table.numbers[:, 0].astype(int)  # labels are positions already

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        return tags


@saved
@dataclass(eq=False, repr=False)
class FeatureRegressor(RegressorMixin, ModalDecomposition):
    """A regressor that knows the whole distribution of Y given X: means, quantiles, intervals.

    Args:
        n_modes: As in `ModalDecomposition`.
        solver: As in `ModalDecomposition`.
        x_space: Functions of X to allow, as in `ModalDecomposition`.
        y_space: Functions of Y to allow.
        calibrate: Whether the predicted distributions are recalibrated by how often held-out values fell below their
            predicted quantiles; intervals then cover as often as they say.
        orthogonal_to: Given features, as in `ModalDecomposition`: predictions then rest on features of X that are
            uncorrelated with them.
        random_state, training, ridge, time_limit, verbose: By name, as every estimator has them, see
            `featgeo.models.base.Decomposition`.
    """

    n_modes: int | Literal["auto"] = "auto"
    calibrate: bool = field(default=True, kw_only=True)

    @watched
    def fit(self, X: Any, y: Any = None, Z: Any = None) -> FeatureRegressor:
        """Learn from rows of X, as in `ModalDecomposition.fit`, and their numbers y, (n,).

        Args:
            X: Rows of X.
            y: Their numbers.
            Z: Rows of what predictions are not to rest on, as in `ModalDecomposition.fit`; due wherever X is.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass the numbers."
            )
        super().fit(X, self._as_y(y), Z)
        return self

    def predict(self, X: Any, Z: Any = None) -> Array:
        """E[Y|x] for each row, (n,)."""
        return self.given(X, Z=Z).mean()

    def predict_interval(self, X: Any, level: float = 0.9, Z: Any = None) -> Array:
        """Lower and upper end, (n, 2), of intervals that hold y with probability `level`."""
        return self.given(X, Z=Z).interval(level)

    def score(self, X: Any, y: Any, sample_weight: Any = None, Z: Any = None) -> float:  # type: ignore[override]
        """Coefficient of determination R^2 of the means."""
        numbers, predicted = self._as_y(y), self.predict(X, Z)
        check_same_rows(X=predicted, y=numbers)
        weights = None if sample_weight is None else as_weights(sample_weight, len(numbers))
        return float(r2_score(numbers, predicted, sample_weight=weights))

    def _as_y(self, y: Any) -> Any:
        values = _one_column(y)
        column = column_of("y", RawColumn(values), "the target")
        if column.kind != "number" or column.form:
            raise ValueError(
                f"A regressor needs numbers as y, got {_example(values)}. Convert them, or use FeatureClassifier for "
                "labels."
            )
        if column.missing:
            raise ValueError("Input y contains NaN or other missing values. Drop these rows.")
        if column.origin:
            raise ValueError(
                "y holds whole numbers beyond 2**53 that are one and the same as floats, which is what predictions "
                "are. Subtract what they have in common, such as y - y.min()."
            )
        return in_units(values, 0, 0)

    def _calibrates(self) -> bool:
        return self.calibrate


def _one_column(y: Any) -> np.ndarray:
    """Labels or numbers as an array (n,)."""
    values = rows_of(y, "y")
    shape = shape_of(values, "y")
    if len(shape) > 2 or (len(shape) == 2 and shape[1] != 1):
        raise ValueError(f"y must have one value a row, (n,), got shape {shape}. Pass a single column.")
    if len(shape) == 2:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass shape (n,), such as y.ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
    columns, _ = columns_of(values, "y")
    (column,) = columns.values()
    return column.values


def _labels(y: Any) -> np.ndarray:
    """Labels of one kind that can be put in order, none missing, as an array (n,)."""
    labels = _one_column(y)
    if labels.dtype.kind in "mM":
        raise ValueError(f"A classifier needs labels as y, got {_example(labels)}. Use FeatureRegressor for numbers.")
    column = column_of("y", RawColumn(labels), "the target")  # no infinite ones, and what can be a label
    if column.missing:
        raise ValueError(
            "Input y contains NaN or other missing labels. Drop these rows, or give them a label of their own."
        )
    if labels.dtype != object:
        return labels
    plain = np.array(labels.tolist())
    kinds = {family_of(label) for label in labels.tolist()}
    if len(kinds) > 1:
        raise ValueError(
            f"y must hold labels of one kind, got {' and '.join(sorted(map(str, kinds)))}s. Convert them to text."
        )
    return plain if plain.dtype.kind in "biuf" else labels


def check_same_family(labels: np.ndarray, classes: np.ndarray) -> None:
    """Refuse texts where the fit had numbers, and the like."""
    new, known = family_of(labels.tolist()[0]), family_of(classes.tolist()[0])
    if new != known:
        raise ValueError(f"The labels of the fit were {known}s such as {classes[0]!r}, got {new}s. Convert them.")


def _example(values: np.ndarray) -> str:
    return f"{str(values.tolist()[0])[:80]!r} of {values.dtype}"
