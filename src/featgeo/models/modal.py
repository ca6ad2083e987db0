"""The modal decomposition of two variables, as a scikit-learn estimator."""

from __future__ import annotations

import os
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from featgeo.assembly import Conditional
from featgeo.assembly.links import LinearLink, Link, Recalibration
from featgeo.assembly.support import Support
from featgeo.features.raw import dimensions
from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Rows, Variable
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.learn import Solver, learn
from featgeo.learning.options import Training
from featgeo.models.diagnostics import PANEL_ROWS, Report, diagnose, panel
from featgeo.models.supports import support_of
from featgeo.nesting import h_score

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ModalDecomposition(TransformerMixin, BaseEstimator):
    """The strongest modes of the dependence of X and Y: pairs of functions f_i(x), g_i(y) with strengths sigma_i.

    i(x, y) = p(x, y) / (p(x) p(y)) - 1 = sum_i sigma_i f_i(x) g_i(y). One fit gives the spectrum, features of either
    variable, and the distribution of Y given X with everything that follows from it.

    Args:
        n_modes: How many modes to keep at most (fewer where there are no more), or "auto": as many as raise the H-score
            on held-out rows.
        solver: "exact" (finite alphabets), "closed" (given spaces), "neural" (networks), or "auto".
        x_space: Functions of X to allow: "auto", "table", "kernel", "spline", "linear", "trees", "network", "image",
            "sequence", a scikit-learn transformer or regressor, or a torch module.
        y_space: Functions of Y to allow.
        random_state: Seed of all that is random: folds, centres of kernels, networks.
        training: Options for networks, a `Training`; defaults when None.

    Attributes:
        singular_values_: sigma_i on the rows of the fit, (k,), strongest first.
        held_out_singular_values_: Correlations of f_i and g_i on rows held out from learning them, (k,).
        n_modes_: Number of modes kept.
        solver_: The solver that was used.
        spaces_: What the spaces of X and Y are.
    """

    def __init__(
        self,
        n_modes: int | Literal["auto"] = 3,
        solver: Solver = "auto",
        x_space: Any = "auto",
        y_space: Any = "auto",
        random_state: int | None = None,
        training: Any = None,
    ) -> None:
        self.n_modes = n_modes
        self.solver = solver
        self.x_space = x_space
        self.y_space = y_space
        self.random_state = random_state
        self.training = training

    def fit(self, X: Any, y: Any = None) -> ModalDecomposition:
        """Learn the modes.

        Args:
            X: Rows of X: an array, tensor, data frame, series or list. Or, without Y, an iterable of batches (x, y)
                such as a DataLoader, for data that do not fit in memory.
            y: Rows of Y, in the same order.
        """
        self._check_parameters()
        for name in ("n_features_in_", "feature_names_in_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        data = self._stream(X) if y is None else self._pairs(X, y)
        seed = _seed(self.random_state)
        spaces = self.x_space, self._y_space()
        self.learned_ = learn(data, self._n_modes(), self.solver, *spaces, seed, self.training, self._calibrates())
        head = data.head if isinstance(data, Stream) else data
        self.support_ = self._support(head.y, seed)
        self.singular_values_ = self.learned_.sigma
        self.n_modes_ = len(self.singular_values_)
        self.solver_ = self.learned_.solver
        self.spaces_ = self.learned_.spaces
        self.link_, self.recalibration_ = self._calibration(head.y)
        self.report_ = diagnose(self.learned_, self.support_, head, seed)
        self.held_out_singular_values_ = self.report_.held_out_sigma
        sample = head.sample(PANEL_ROWS, seed)
        self.panels_ = panel(sample.x, self.learned_.f, seed), panel(sample.y, self.learned_.g, seed)
        return self

    def transform(self, X: Any, y: Any = None) -> Any:
        """Normalised features f(X), (n, k); with Y also g(Y), as a pair."""
        check_is_fitted(self)
        f = self.learned_.f(self._x_rows(X))
        return f if y is None else (f, self.learned_.g(self.y_variable_.rows(self._as_y(y))))

    def score(self, X: Any, y: Any) -> float:
        """H-score on the given rows: half the energy of the dependence that the modes capture there."""
        check_is_fitted(self)
        f, g = self.learned_.f(self._x_rows(X)), self.learned_.g(self.y_variable_.rows(self._as_y(y)))
        if len(f) != len(g):
            raise ValueError(f"X and Y must have the same rows, got {len(f)} and {len(g)}. Align them row by row.")
        if self.n_modes_ == 0:
            return 0.0
        scale = np.sqrt(self.singular_values_)
        return float(h_score(torch.from_numpy(f * scale), torch.from_numpy(g * scale)))

    def given(self, X: Any, prior: Any = None) -> Conditional:
        """The distribution of Y for each row of X.

        Args:
            X: Rows of X.
            prior: Another distribution of Y than that of the fit (label shift): masses in the order of
                `support_.values`, a mapping from value to mass, or a function of the values that gives weights.
        """
        check_is_fitted(self)
        f = self.learned_.f(self._x_rows(X))
        return Conditional(self.support_, f * self.singular_values_, prior, self.link_, self.recalibration_)

    def report(self) -> Report:
        """How far the fit can be trusted: held-out spectrum, stability, orthogonality, rows behind each mode."""
        check_is_fitted(self)
        return self.report_

    def plot(self, what: Literal["modes", "spectrum"] = "modes") -> Figure:
        """A matplotlib figure of the modes f_i and g_i, or of the spectrum on seen and held-out rows."""
        check_is_fitted(self)
        if what not in ("modes", "spectrum"):
            raise ValueError(f"`what` must be 'modes' or 'spectrum', got {what!r}.")
        try:
            from featgeo.report import mode_figures
        except ModuleNotFoundError as error:
            raise ImportError(f"Plots need {error.name}. Run: pip install 'featgeo[plot]'") from error
        if what == "spectrum":
            return mode_figures.spectrum(self.report_.sigma, self.report_.held_out_sigma, self.report_.held_out_error)
        sides = [
            (letter, _axis_name(variable), part.kind, part.at, part.values)
            for letter, variable, part in zip("fg", (self.x_variable_, self.y_variable_), self.panels_, strict=True)
        ]
        return mode_figures.modes(sides, self.singular_values_)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of tensors and JSON; `featgeo.load` reads it."""
        from featgeo.models.persistence import save  # it knows all estimators

        check_is_fitted(self)
        save(self, path)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features of X: f1, f2, ..."""
        check_is_fitted(self)
        return np.array([f"f{i + 1}" for i in range(self.n_modes_)], dtype=object)

    def _check_parameters(self) -> None:
        if self.n_modes != "auto" and (not isinstance(self.n_modes, Integral) or self.n_modes < 1):
            raise ValueError(
                f"`n_modes` must be a whole number, at least 1, or 'auto', got {self.n_modes!r}. Use 'auto' to let "
                "held-out rows choose."
            )
        if self.solver not in ("auto", "exact", "closed", "neural"):
            raise ValueError(f"`solver` must be 'auto', 'exact', 'closed' or 'neural', got {self.solver!r}.")
        if self.training is not None and not isinstance(self.training, Training):
            raise ValueError(f"`training` must be a Training, got {self.training!r}. Write Training(max_epochs=20).")

    def _pairs(self, X: Any, y: Any) -> Pairs:
        self.x_variable_ = Variable.seen(X, "X")
        self._remember_columns(X)
        values = self._as_y(y)
        self.y_variable_ = Variable.seen(values, "Y")
        data = Pairs(self._x_rows(X), self.y_variable_.rows(values))
        _check(data)
        return data

    def _stream(self, batches: Any) -> Stream:
        if hasattr(batches, "shape") or hasattr(batches, "columns") or not hasattr(batches, "__iter__"):
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass fit(X, Y), or an "
                "iterable of batches (x, y)."
            )
        data = Stream(batches)
        self.x_variable_, self.y_variable_ = data.x_variable, data.y_variable
        _check(data.head)
        return data

    def _n_modes(self) -> int | Literal["auto"]:
        return self.n_modes

    def _y_space(self) -> Any:
        return self.y_space

    def _as_y(self, y: Any) -> Any:
        """What the engine sees as Y."""
        return y

    def _support(self, rows: Rows, seed: int) -> Support:
        return support_of(self.y_variable_, rows, self.learned_.g, seed)

    def _calibrates(self) -> bool:
        return False

    def _calibration(self, rows: Rows) -> tuple[Link, Recalibration | None]:
        """How density ratios are set right; here they stay what the theory says."""
        return LinearLink(), None

    def _x_rows(self, X: Any) -> Rows:
        if hasattr(self, "n_features_in_") and not self.x_variable_.is_tensor and dimensions(X) != 1:
            validate_data(self, X, reset=False, skip_check_array=True)
        return self.x_variable_.rows(X)

    def _remember_columns(self, X: Any) -> None:
        """scikit-learn's `n_features_in_` and `feature_names_in_`."""
        if self.x_variable_.is_tensor or dimensions(X) == 1:
            return
        validate_data(self, X, skip_check_array=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags


def _check(data: Pairs) -> None:
    data.check_y()
    for name, rows in (("X", data.x), ("Y", data.y)):
        if not rows.variable.is_tensor:
            check_not_constant(rows.table, name)


def _axis_name(variable: Variable) -> str:
    named = len(variable.columns) == 1 and not variable.columns[0].name.isdigit()
    return variable.columns[0].name if named else variable.name


def _seed(random_state: Any) -> int:
    """One number for all that is random; None is always the same, so that a fit can be repeated."""
    if random_state is None:
        return 0
    if isinstance(random_state, Integral):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(check_random_state(random_state).randint(2**31))
