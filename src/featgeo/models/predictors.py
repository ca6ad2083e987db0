"""Drop-in scikit-learn predictors over the same features: a classifier and a regressor.

What they add to the modal decomposition is calibration: held-out rows say how far the assembled probabilities can be
trusted. The features stay.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score
from sklearn.utils.multiclass import check_classification_targets

from featgeo.assembly.conditional import Conditional, affordable
from featgeo.assembly.links import Support
from featgeo.features.columns import Column, RawColumn, column_of, columns_of, family_of, in_units, rows_of, shape_of
from featgeo.features.variables import Rows, Variable
from featgeo.geometry.validation import Array, as_real, as_weights, check_flag, check_same_rows, shown
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.setting import Plan
from featgeo.models.modal import ModalDecomposition
from featgeo.schema import OPTIONAL, saved
from featgeo.tuning import in_force

FEWEST_JUDGED = 2  # rows without which there is no variance to compare with


@dataclass(eq=False, repr=False)
class _Predictor(ModalDecomposition):
    """What both have: `calibrate`, rows of y in memory, the name of y, and how good predictions are."""

    n_modes: int | Literal["auto"] = "auto"
    calibrate: bool = field(default=True, kw_only=True)

    target_name_: str = field(init=False, metadata=OPTIONAL)
    held_out_score_: float = field(init=False, metadata=OPTIONAL)
    date_forms_: dict[str, str] = field(init=False, metadata=OPTIONAL)

    def _begin(self) -> Plan:
        check_flag(self.calibrate, "calibrate")
        return super()._begin()

    def _pairs(self, X: Any, y: Any, Z: Any) -> Pairs:
        name = nw.from_native(y, series_only=True).name if nw.dependencies.is_into_series(y) else None
        if name:
            self.target_name_ = str(name)
        return super()._pairs(X, y, Z)

    def _calibrate(self, y: Rows) -> None:
        """Rows that the features have not seen judge the predictions, too."""
        super()._calibrate(y)
        unseen = self.learned_.unseen
        if unseen is None or len(unseen.rows) < FEWEST_JUDGED:
            return
        some = affordable(len(unseen.rows), self.support_.m)
        own = unseen.f[some, unseen.f.shape[1] - self.n_modes_ :]
        values = np.asarray(y.take(unseen.rows[some]).raw)
        self.held_out_score_ = self._judged(self.calibration_.given(self._own_support, own, self._prior), values)

    @abstractmethod
    def _judged(self, given: Conditional, values: np.ndarray) -> float:
        """The score of distributions of Y where it took these values, (n,)."""

    def _stream(self, batches: Any) -> Stream:
        raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None. Pass it.")

    def _mean_score(self, measure: Callable[..., float], y: np.ndarray, predicted: np.ndarray, weight: Any) -> float:
        check_same_rows(X=predicted, y=y)
        return float(measure(y, predicted, sample_weight=None if weight is None else as_weights(weight, len(y))))


@saved
@dataclass(eq=False, repr=False)
class FeatureClassifier(ClassifierMixin, _Predictor):
    """A classifier from the modes of the dependence of X and the label.

    Args:
        n_modes: How many modes to keep at most; "auto" keeps all, one less than labels, up to 32.
        solver: As in `ModalDecomposition`.
        x_space: Functions of X to allow, as in `ModalDecomposition`.
        orthogonal_to: Given features, as in `ModalDecomposition`: predictions then rest on features of X that are
            uncorrelated with them, calibrated all the same.
        calibrate: Whether held-out rows choose between the theory's density ratios, a share of the prior mixed in, and
            a softmax of the features.
        class_weight: How much each label counts: "balanced" for all alike, or a mapping from labels to weights, 1 for
            those that it does not name. To weigh the rows of a label is to give it another prior, p(x|y) stays, and so
            P(y|x) is weighted exactly and the features are those of all rows: nothing is fitted again, and
            `given(X, prior=...)` asks the same model under any other prior.
        random_state, training, device, ridge, time_limit, verbose: By name, as every estimator has them, see
            `featgeo.models.base.Decomposition`.

    Attributes:
        classes_: The labels, in order.
        link_: How features become probabilities.
        class_prior_: The prior of each label that `class_weight` asks for, (m,); not there without.
        target_name_: What y is called, where it came as a series with a name.
        held_out_score_: The accuracy on rows of the fit, told by features that were learned without them; not there
            where no rows, or fewer than 2, were held out.
        date_forms_: How dates were written in the file that the rows came from, by the name of their column; set by
            the command `featgeo fit`.
    """

    y_space: ClassVar[str] = "table"  # type: ignore[misc]

    class_weight: Mapping[Any, float] | Literal["balanced"] | None = field(default=None, kw_only=True)

    classes_: np.ndarray = field(init=False)
    class_prior_: Array = field(init=False, metadata=OPTIONAL)

    def predict_proba(self, X: Any, Z: Any = None) -> Array:
        """Probability of each label of `classes_`, (n, m)."""
        return self.given(X, Z=Z).proba()

    def predict_log_proba(self, X: Any, Z: Any = None) -> Array:
        """The logarithms of `predict_proba`, (n, m)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, Z))

    def score(self, X: Any, y: Any, sample_weight: Any = None, Z: Any = None) -> float:  # type: ignore[override]
        """Accuracy on the given rows; a label that the fit never saw is never right."""
        return self._mean_score(_accuracy, _labels(y), self.predict(X, Z=Z), sample_weight)

    def _judged(self, given: Conditional, values: np.ndarray) -> float:
        return _accuracy(values, given.map(), None)

    def _n_modes(self) -> int | Literal["auto"]:
        return min(len(self.classes_) - 1, max(in_force.get().mode_counts)) if self.n_modes == "auto" else self.n_modes

    def _as_y(self, y: Any) -> Any:
        """Labels of the fit."""
        labels, known = _labels(y), set(self.classes_.tolist())
        unknown = [label for label in labels.tolist() if label not in known]
        if unknown:
            raise ValueError(f"The fit never saw the label {unknown[0]!r}. Its labels are {self.classes_}.")
        return labels

    def _seen_y(self, y: Any) -> Any:
        """Whatever they are, numbers too, labels have no order."""
        labels = _labels(y)
        check_classification_targets(labels)
        self.classes_, counts = np.unique(labels, return_counts=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"A classifier needs at least two classes, got one class: {self.classes_[0]!r}. Add rows of another."
            )
        if self.class_weight is not None:
            self.class_prior_ = _weighted(self.classes_, counts, self.class_weight)
        self.y_variable_ = Variable("Y", (Column("y", "label", tuple(self.classes_.tolist())),))
        return labels

    def _support(self, rows: Rows, seed: int) -> Support:
        return replace(super()._support(rows, seed), values=self.classes_)

    @property
    def _prior(self) -> Array | None:
        return getattr(self, "class_prior_", None)


@saved
@dataclass(eq=False, repr=False)
class FeatureRegressor(RegressorMixin, _Predictor):
    """A regressor that knows the whole distribution of Y given X: means, quantiles, intervals.

    Args:
        n_modes: As in `ModalDecomposition`.
        solver: As in `ModalDecomposition`.
        x_space: Functions of X to allow, as in `ModalDecomposition`.
        y_space: Functions of Y to allow.
        orthogonal_to: Given features, as in `ModalDecomposition`: predictions then rest on features of X that are
            uncorrelated with them.
        calibrate: Whether the predicted distributions are recalibrated by how often held-out values fell below their
            predicted quantiles; intervals then cover as often as they say.
        random_state, training, device, ridge, time_limit, verbose: By name, as every estimator has them, see
            `featgeo.models.base.Decomposition`.

    Attributes:
        target_name_, held_out_score_: As in `FeatureClassifier`; the score is R^2.
    """

    def predict_interval(self, X: Any, level: float = 0.9, Z: Any = None) -> Array:
        """Lower and upper end, (n, 2), of intervals that hold y with probability `level`."""
        return self.given(X, Z=Z).interval(level)

    def score(self, X: Any, y: Any, sample_weight: Any = None, Z: Any = None) -> float:  # type: ignore[override]
        """Coefficient of determination R^2 of the means."""
        return self._mean_score(r2_score, self._as_y(y), self.predict(X, Z=Z), sample_weight)

    def _judged(self, given: Conditional, values: np.ndarray) -> float:
        return float(r2_score(values, given.mean()))

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


def _weighted(classes: np.ndarray, counts: np.ndarray, weight: Any) -> Array:
    """The prior of each class, where each of its rows counts by a weight."""
    if isinstance(weight, str) and weight == "balanced":
        return np.full(len(classes), 1 / len(classes))
    known = classes.tolist()
    if not isinstance(weight, Mapping) or any(label not in known for label in weight):
        raise ValueError(
            "`class_weight` must be 'balanced', None, or a mapping from labels of y to weights, got "
            f"{shown(weight)}. The labels are {shown(known)}."
        )
    prior = counts * as_real([weight.get(label, 1.0) for label in known], "class_weight")
    if not np.isfinite(prior).all() or (prior < 0).any() or not prior.any():
        raise ValueError(
            f"Weights in `class_weight` must be finite, not negative, and not all 0, got {shown(weight)}. Correct them."
        )
    return np.asarray(prior / prior.sum())


def _accuracy(labels: np.ndarray, predicted: np.ndarray, sample_weight: Array | None) -> float:
    right = np.array([a == b for a, b in zip(labels.tolist(), predicted.tolist(), strict=True)])
    return float(np.average(right, weights=sample_weight))


def _one_column(y: Any) -> np.ndarray:
    """Labels or numbers as an array (n,)."""
    values = rows_of(y, "y")
    shape = shape_of(values, "y")
    if shape[1:] not in ((), (1,)):
        raise ValueError(f"y must have one value a row, (n,), got shape {shape}. Pass a single column.")
    if len(shape) == 2:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Pass shape (n,), such as y.ravel().",
            DataConversionWarning,
            stacklevel=3,
        )
    (column,) = columns_of(values, "y")[0].values()
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


def _example(values: np.ndarray) -> str:
    return f"{str(values.tolist()[0])[:80]!r} of {values.dtype}"
