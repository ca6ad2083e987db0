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
from scipy.stats import rankdata
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets

from featgeo.assembly.calibration import affordable, spread
from featgeo.assembly.conditional import Conditional
from featgeo.assembly.links import MAX_ROWS, Support
from featgeo.features.columns import (
    Column,
    RawColumn,
    column_of,
    columns_of,
    counted,
    family_of,
    in_units,
    rows_of,
    shape_of,
    taken,
)
from featgeo.features.variables import Rows, Variable
from featgeo.geometry.validation import Array, as_real, as_weights, check_flag, check_same_rows, seed_of, shown
from featgeo.learning.data import Pairs, Stream, some_rows
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
        values = np.asarray(y.take(unseen.rows[some]).raw)
        given = self.calibration_.given(self._read_support, self._read(unseen)[some], self._prior)
        self.held_out_score_ = self._judged(given, values)

    @abstractmethod
    def _judged(self, given: Conditional, values: np.ndarray) -> float:
        """The score of distributions of Y where it took these values, (n,)."""

    def _stream(self, batches: Any, y: Any) -> Stream:
        if y is not None:
            raise ValueError(
                f"{type(self).__name__} needs all rows in memory, and X is a table that is read in parts. Read it "
                "first, by `.compute()` or `pandas.read_parquet`, or fit a ModalDecomposition, which reads parts."
            )
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

    def _seen_y(self, y: Any) -> Rows:
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
        return self.y_variable_.rows(labels)

    def _support(self, rows: Rows, seed: int) -> Support:
        return replace(super()._support(rows, seed), values=self.classes_)

    @property
    def _prior(self) -> Array | None:
        return getattr(self, "class_prior_", None)


@saved
@dataclass(eq=False, repr=False)
class FeatureRegressor(RegressorMixin, _Predictor):
    """A regressor that knows the whole distribution of Y given X: means, quantiles, intervals.

    Modes are chosen by all that X tells of Y. The mean of y is told beside them, by all functions of X that were tried,
    and calibrated distributions rest on both (`featgeo.learning.mean`).

    Where y has several columns, each is predicted by a fit of its own, which tells more of it than modes of all of them
    together do. How columns depend on each other given x is read from where the rows of the fit fell in the predicted
    distributions, and is taken to be the same for all x. The modes are those of X and all columns.

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
        target_name_, held_out_score_: As in `FeatureClassifier`; the score is R^2, the mean over several columns.
        columns_: The regressors of the columns of y, where it has several.
        levels_: P(Y_j <= y_j | x) of some rows of the fit for each column, by rank, (rows, q), where it has several.
    """

    columns_: tuple[FeatureRegressor, ...] = field(init=False, metadata=OPTIONAL)
    levels_: Array = field(init=False, metadata=OPTIONAL)

    def _begin(self) -> Plan:
        return replace(super()._begin(), mean=self.calibrate)

    def fit(self, X: Any, y: Any = None, Z: Any = None, sample_weight: Any = None) -> FeatureRegressor:
        """Learn the modes, as in `ModalDecomposition.fit`; y may have several columns, (n, q)."""
        super().fit(X, y, Z, sample_weight)
        values = self._as_y(y)
        if values.ndim > 1:
            self.columns_ = tuple(clone(self).fit(X, column, Z, sample_weight) for column in values.T)
            self.held_out_score_ = float(np.mean([getattr(one, "held_out_score_", np.nan) for one in self.columns_]))
            self.levels_ = self._fallen(*counted(sample_weight, X=X, Y=values, Z=Z))
        return self

    def _fallen(self, X: Any, values: Array, Z: Any) -> Array:
        """Where each column of some rows fell in its predicted distribution, by rank, (rows, q)."""
        some = some_rows(len(values), seed_of(self.random_state), MAX_ROWS)
        x, z = (None if part is None else taken(rows_of(part, name), some) for name, part in (("X", X), ("Z", Z)))
        fell = zip(self.columns_, values[some].T, strict=True)
        ranks = [rankdata(one.given(x, Z=z).pit(column, spread(column))) for one, column in fell]
        return (np.column_stack(ranks) - 0.5) / len(some)

    def given(
        self, X: Any, prior: Any = None, Z: Any = None, aligned: bool = False, calibrated: bool = True
    ) -> Conditional:
        """The distribution of Y for each row of X, as in `ModalDecomposition.given`.

        With another prior, the columns of a Y of several are those of the joint distribution.
        """
        given = super().given(X, prior, Z, aligned, calibrated)
        if prior is not None or not hasattr(self, "columns_"):
            return given
        columns = (column.given(X, None, Z, aligned, calibrated) for column in self.columns_)
        return given.with_columns(columns, self.levels_)

    def predict_interval(self, X: Any, level: float = 0.9, Z: Any = None) -> Array:
        """Lower and upper end, (n, 2), of intervals that hold y with probability `level`; (n, q, 2) of q columns."""
        return self.given(X, Z=Z).interval(level)

    def score(self, X: Any, y: Any, sample_weight: Any = None, Z: Any = None) -> float:  # type: ignore[override]
        """Coefficient of determination R^2 of the means."""
        return self._mean_score(r2_score, self._as_y(y), self.predict(X, Z=Z), sample_weight)

    def _judged(self, given: Conditional, values: np.ndarray) -> float:
        return float(r2_score(values, given.mean()))

    def _as_y(self, y: Any) -> Any:
        """Numbers, (n,) or (n, q)."""
        if len(shape_of(y, "y")) != 2 or shape_of(y, "y")[1] < 2:
            return _numbers(_one_column(y), "y")
        columns, _ = columns_of(rows_of(y, "y"), "y")
        return np.column_stack([_numbers(part.values, f"Column {name!r} of y") for name, part in columns.items()])

    def _seen_y(self, y: Any) -> Rows:
        """Columns of a frame keep their names."""
        rows = super()._seen_y(y)
        if len(rows.variable.columns) == 1:
            return rows
        named = zip(rows.variable.columns, columns_of(rows_of(y, "y"), "y")[0], strict=True)
        columns = tuple(replace(column, name=name) for column, name in named)
        self.y_variable_ = replace(rows.variable, columns=columns)
        return self.y_variable_.rows(rows.raw)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        return replace(tags, target_tags=replace(tags.target_tags, multi_output=True))


def _numbers(values: np.ndarray, name: str) -> Array:
    """Finite numbers as floats, (n,)."""
    column = column_of("y", RawColumn(values), "the target")
    if column.kind != "number" or column.form:
        raise ValueError(
            f"A regressor needs numbers as y, got {_example(values)}. Convert them, or use FeatureClassifier for "
            "labels."
        )
    if column.missing:
        raise ValueError(f"Input {name} contains NaN or other missing values. Drop these rows.")
    if column.origin:
        raise ValueError(
            f"{name} holds whole numbers beyond 2**53 that are one and the same as floats, which is what predictions "
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
