"""Drop-in scikit-learn predictors over the same features: a classifier and a regressor.

What they add to the modal decomposition is calibration: held-out rows say how far the assembled probabilities can be
trusted. The features stay.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite

from featgeo.assembly.support import Support
from featgeo.features.raw import arrays_of, dimensions, plain
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.learning.learn import Solver
from featgeo.learning.solve import MODE_COUNTS
from featgeo.models.diagnostics import Panel
from featgeo.models.modal import ModalDecomposition
from featgeo.models.supports import support_of
from featgeo.watch import watched


class FeatureClassifier(ClassifierMixin, ModalDecomposition):
    """A classifier from the modes of the dependence of X and the label.

    Args:
        n_modes: How many modes to keep at most; "auto" keeps all, one less than labels, up to 32.
        solver: As in `ModalDecomposition`.
        x_space: Functions of X to allow, as in `ModalDecomposition`.
        calibrate: Whether held-out rows choose between the theory's density ratios, a share of the prior mixed in, and
            a softmax of the features.
        random_state: Seed of all that is random.
        training: Options for networks, a `Training`.
        orthogonal_to: Given features, as in `ModalDecomposition`: predictions then rest on features of X that are
            uncorrelated with them, calibrated all the same.
        time_limit: Seconds after which "auto" tries no more spaces, and training no more epochs: the best so far is
            kept. None for no limit.
        verbose: 0 for no progress, 1 for one line in terminals and notebooks where a fit takes longer than two seconds,
            2 for that line everywhere.

    Attributes:
        classes_: The labels, in order.
        link_: How features become probabilities.
    """

    def __init__(
        self,
        n_modes: int | Literal["auto"] = "auto",
        solver: Solver = "auto",
        x_space: Any = "auto",
        calibrate: bool = True,
        random_state: int | None = None,
        training: Any = None,
        orthogonal_to: Any = None,
        time_limit: float | None = None,
        verbose: int = 1,
    ) -> None:
        self.n_modes = n_modes
        self.solver = solver
        self.x_space = x_space
        self.calibrate = calibrate
        self.random_state = random_state
        self.training = training
        self.orthogonal_to = orthogonal_to
        self.time_limit = time_limit
        self.verbose = verbose

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
            arrays_of(plain(X), "X")  # first of all, whether there are any rows
        labels = _one_column(y)
        if labels.dtype.kind == "f":
            assert_all_finite(labels, input_name="y")
        if labels.dtype == object and any(label is None or label != label for label in labels.tolist()):
            raise ValueError(
                "y holds missing labels (None or NaN). Drop these rows, or give them a label of their own."
            )
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
        """Accuracy on the given rows."""
        return float(accuracy_score(y, self.predict(X, Z), sample_weight=sample_weight))

    def _n_modes(self) -> int | Literal["auto"]:
        return min(len(self.classes_) - 1, max(MODE_COUNTS)) if self.n_modes == "auto" else self.n_modes

    def _y_space(self) -> Any:
        return "table"

    def _as_y(self, y: Any) -> Any:
        """Labels as positions among `classes_`."""
        labels = _one_column(y)
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


class FeatureRegressor(RegressorMixin, ModalDecomposition):
    """A regressor that knows the whole distribution of Y given X: means, quantiles, intervals.

    Args:
        n_modes: As in `ModalDecomposition`.
        solver: As in `ModalDecomposition`.
        x_space: Functions of X to allow, as in `ModalDecomposition`.
        y_space: Functions of Y to allow.
        calibrate: Whether the predicted distributions are recalibrated by how often held-out values fell below their
            predicted quantiles; intervals then cover as often as they say.
        random_state: Seed of all that is random.
        training: Options for networks, a `Training`.
        orthogonal_to: Given features, as in `ModalDecomposition`: predictions then rest on features of X that are
            uncorrelated with them.
        time_limit: Seconds after which "auto" tries no more spaces, and training no more epochs: the best so far is
            kept. None for no limit.
        verbose: 0 for no progress, 1 for one line in terminals and notebooks where a fit takes longer than two seconds,
            2 for that line everywhere.
    """

    def __init__(
        self,
        n_modes: int | Literal["auto"] = "auto",
        solver: Solver = "auto",
        x_space: Any = "auto",
        y_space: Any = "auto",
        calibrate: bool = True,
        random_state: int | None = None,
        training: Any = None,
        orthogonal_to: Any = None,
        time_limit: float | None = None,
        verbose: int = 1,
    ) -> None:
        self.n_modes = n_modes
        self.solver = solver
        self.x_space = x_space
        self.y_space = y_space
        self.calibrate = calibrate
        self.random_state = random_state
        self.training = training
        self.orthogonal_to = orthogonal_to
        self.time_limit = time_limit
        self.verbose = verbose

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
        return float(r2_score(y, self.predict(X, Z), sample_weight=sample_weight))

    def _as_y(self, y: Any) -> Any:
        values = _one_column(y)
        if values.dtype.kind not in "biuf":
            try:
                values = values.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"A regressor needs numbers as y, got {values.dtype}: {error}. Convert them."
                ) from error
        assert_all_finite(values, input_name="y")
        return values.astype(np.float64)

    def _calibrates(self) -> bool:
        return self.calibrate


def _one_column(y: Any) -> np.ndarray:
    """Labels or numbers as an array (n,)."""
    array = y.detach().cpu().numpy() if hasattr(y, "detach") else y
    return np.asarray(column_or_1d(array, warn=True))
