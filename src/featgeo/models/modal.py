"""The modal decomposition of two variables, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from featgeo.assembly import Conditional
from featgeo.assembly.calibration import Calibration
from featgeo.assembly.links import Link, Recalibration
from featgeo.assembly.support import Support
from featgeo.features.columns import UNKNOWN
from featgeo.features.given import given_recipe
from featgeo.features.missing import rows_of
from featgeo.features.parts import Parts
from featgeo.features.raw import dimensions
from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Rows, Variable
from featgeo.geometry.arguments import check_choice, check_count, check_flag, seed_of
from featgeo.geometry.validation import Array, check_same_rows
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.learn import learn
from featgeo.learning.learned import Component
from featgeo.learning.plan import Plan, Solver
from featgeo.learning.setting import Block, Setting, Step
from featgeo.models.base import Decomposition
from featgeo.models.components import DependenceComponent, warn_of_doubts
from featgeo.models.diagnostics import PANEL_ROWS, Report, diagnose, panel
from featgeo.models.leakage import Leakage, leakage
from featgeo.models.supports import happened, support_of
from featgeo.nesting.scores import h_score_of_modes
from featgeo.watch import watched

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ModalDecomposition(TransformerMixin, Decomposition):
    """The strongest modes of the dependence of X and Y: pairs of functions f_i(x), g_i(y) with strengths sigma_i.

    i(x, y) = p(x, y) / (p(x) p(y)) - 1 = sum_i sigma_i f_i(x) g_i(y). One fit gives the spectrum, features of either
    variable, and the distribution of Y given X with everything that follows from it.

    Args:
        n_modes: How many modes to keep at most (fewer where there are no more), or "auto": as many as raise the H-score
            on held-out rows.
        solver: "exact" (finite alphabets), "closed" (given spaces), "neural" (networks), or "auto".
        x_space: Functions of X to allow: "auto", "table", "kernel", "spline", "linear", "index", "trees", "windows",
            "network", "image", "sequence", a scikit-learn transformer or regressor, or a torch module.
        y_space: Functions of Y to allow.
        orthogonal_to: Given features phi that the learned features of X are to be uncorrelated with, exactly so on the
            rows of the fit: names of columns, a function of X, a torch module (it stays as it is), or a scikit-learn
            transformer (one that is fitted stays as it is; inside a search, which clones, wrap it in a
            `FrozenEstimator`). Where `fit` gets Z, phi are functions of Z instead; its columns themselves when None.
        random_state: Seed of all that is random: folds, centres of kernels, networks.
        training: Options for networks, a `Training`; defaults when None.
        ridge: Shrinks features of unit variance, so that smooth functions are preferred; "auto" for what held-out rows
            prefer, 0 for none.
        time_limit: Seconds after which "auto" tries no more spaces, and training no more epochs: the best so far is
            kept. None for no limit.
        verbose: 0 for no progress, 1 for one line in terminals and notebooks where a fit takes longer than two seconds,
            2 for that line everywhere.

    Attributes:
        singular_values_: sigma_i on the rows of the fit, (k,), strongest first.
        held_out_singular_values_: Correlations of f_i and g_i on rows held out from learning them, (k,).
        n_modes_: Number of modes kept.
        solver_: The solver that was used.
        spaces_: What the spaces of X and Y are.
        components_: The components of the dependence by name: all of it in "modes", or, with given features, what they
            hold in "aligned" and what is beyond them in "orthogonal". The modes of the model are those of the last.
    """

    def __init__(
        self,
        n_modes: int | Literal["auto"] = 3,
        solver: Solver = "auto",
        x_space: Any = "auto",
        y_space: Any = "auto",
        orthogonal_to: Any = None,
        random_state: int | None = None,
        training: Any = None,
        ridge: float | Literal["auto"] = "auto",
        time_limit: float | None = None,
        verbose: int = 1,
    ) -> None:
        self.n_modes = n_modes
        self.solver = solver
        self.x_space = x_space
        self.y_space = y_space
        self.orthogonal_to = orthogonal_to
        self.random_state = random_state
        self.training = training
        self.ridge = ridge
        self.time_limit = time_limit
        self.verbose = verbose

    @watched
    def fit(self, X: Any, y: Any = None, Z: Any = None) -> ModalDecomposition:
        """Learn the modes.

        Args:
            X: Rows of X: an array, tensor, data frame, series or list. Or, without Y, an iterable of batches (x, y)
                such as a DataLoader, for data that do not fit in memory.
            y: Rows of Y, in the same order.
            Z: Rows of what the features of X are to be orthogonal to, where that is not part of X. It is then due
                wherever X is.
        """
        plan = self._check_parameters()
        for name in ("n_features_in_", "feature_names_in_", "z_variable_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if y is None and Z is not None:
            raise ValueError("Z needs all rows in memory: pass fit(X, Y, Z), or make Z columns of the batches of X.")
        seed, data = plan.seed, self._stream(X) if y is None else self._pairs(X, y, Z)
        self.learned_ = learn(data, self._setting(), plan)
        head = data.head if isinstance(data, Stream) else data
        *before, main = self.learned_.components
        self.support_ = self._support(head.y.of("y"), seed)
        self.aligned_support_g_ = self.support_.g[:, : -len(main) or None] if before else np.empty((self.support_.m, 0))
        self.support_ = replace(self.support_, g=self.support_.g[:, self.aligned_support_g_.shape[1] :])
        self.singular_values_ = main.sigma
        self.n_modes_ = len(self.singular_values_)
        self.solver_ = self.learned_.solver
        self.spaces_ = self.learned_.spaces
        names = ("aligned", "orthogonal") if before else ("modes",)
        self.components_ = {
            name: DependenceComponent.of(name, part) for name, part in zip(names, self.learned_.components, strict=True)
        }
        self._calibrate(head.y.of("y"))
        warn_of_doubts(self.components_.values(), "`given` is the distribution of Y over all rows")
        self.report_ = diagnose(self.learned_, self.components_, self.support_, head, seed)
        self.held_out_singular_values_ = self.report_.held_out_sigma
        sample = head.sample(PANEL_ROWS, seed)
        self.panels_ = panel(sample.x, main.f, seed), panel(sample.y, main.g, seed)
        return self

    @property
    def aligned_(self) -> DependenceComponent:
        """The dependence that the given features hold: its energy is twice their single-sided H-score."""
        return self._component("aligned")

    @property
    def orthogonal_(self) -> DependenceComponent:
        """The dependence beyond the given features."""
        return self._component("orthogonal")

    def fit_transform(self, X: Any, y: Any = None, Z: Any = None) -> Array:
        """Learn the modes and give the features of the same rows."""
        self.fit(X, y) if Z is None else self.fit(X, y, Z)
        return np.asarray(self.transform(X) if Z is None else self.transform(X, Z=Z))

    def transform(self, X: Any, y: Any = None, Z: Any = None) -> Any:
        """Normalised features f(X), (n, k); with Y also g(Y), as a pair. With given features those orthogonal to them.

        Args:
            X: Rows of X.
            y: Rows of Y.
            Z: Rows of Z, where the fit had them.
        """
        check_is_fitted(self)
        f = self._main.f(self._x_side(X, Z))
        return f if y is None else (f, self._main.g(self.y_variable_.rows(self._as_y(y))))

    def transform_aligned(self, X: Any, Z: Any = None) -> Array:
        """Normalised features in the span of the given ones, (n, k_aligned), strongest first."""
        check_is_fitted(self)
        self._component("aligned")
        return self.learned_.components[0].f(self._x_side(X, Z))

    def score(self, X: Any, y: Any, Z: Any = None) -> float:
        """H-score on the given rows: half the energy of the dependence that the modes capture there."""
        check_is_fitted(self)
        check_scored(self.y_variable_.rows(self._as_y(y)))
        f, g = self.transform(X, y, Z) if Z is not None else self.transform(X, y)
        check_same_rows(X=f, Y=g)
        return h_score_of_modes(f, g, self.singular_values_)

    def given(
        self, X: Any, prior: Any = None, Z: Any = None, aligned: bool = False, calibrated: bool = True
    ) -> Conditional:
        """The distribution of Y for each row of X.

        Args:
            X: Rows of X.
            prior: Another distribution of Y than that of the fit (label shift): masses in the order of
                `support_.values`, a mapping from value to mass, or a function of the values that gives weights.
            Z: Rows of Z, where the fit had them.
            aligned: With given features: whether what they know of Y counts as well. Without them the distribution
                rests on features that are uncorrelated with them.
            calibrated: Whether distributions are set right as held-out rows want it; else they are the plain formula
                P(y) (1 + sum_i sigma_i f_i(x) g_i(y)), the nearest density where it goes below zero. The same where
                `solver_` is "exact", where Y has several columns, or where fewer than 50 rows were held out.
        """
        check_is_fitted(self)
        check_flag(aligned, "aligned")
        check_flag(calibrated, "calibrated")
        rows = self._x_side(X, Z)
        calibration = (self.aligned_calibration_ if aligned else self.calibration_) if calibrated else Calibration()
        support, f = self.support_, self._main.f(rows) * self.singular_values_
        if aligned:
            self._component("aligned")
            first = self.learned_.components[0]
            support = replace(support, g=np.hstack([self.aligned_support_g_, support.g]))
            f = np.hstack([first.f(rows) * first.sigma, f])
        return Conditional(support, f, prior, calibration.link, calibration.recalibration)

    def leakage(self, X: Any, Z: Any = None, about: Any = None) -> Leakage:
        """How much the features tell about Z, linearly and in any way, on rows that were not fitted to.

        Args:
            X: Rows of X, not those of the fit.
            Z: What the features should not tell: numbers, labels, or several columns; rows of Z where the fit had them.
                The given features themselves when None.
            about: Something else to measure instead of Z.
        """
        check_is_fitted(self)
        rows = self._x_side(X, Z if hasattr(self, "z_variable_") else None)
        if about is None and Z is None:
            self._component("aligned")
            given: Any = self.learned_.components[0].f.space
            about = given(rows)
        return leakage(self._main.f(rows), Z if about is None else about, seed_of(self.random_state))

    def report(self) -> Report:
        """How far the fit can be trusted: held-out spectrum, stability, orthogonality, rows behind each mode."""
        check_is_fitted(self)
        return self.report_

    def plot(self, what: Literal["modes", "spectrum"] = "modes") -> Figure:
        """A matplotlib figure of the modes f_i and g_i, or of the spectrum on seen and held-out rows."""
        check_is_fitted(self)
        check_choice(what, "what", ("modes", "spectrum"))
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

    def _feature_names(self) -> list[str]:
        return [f"f{i + 1}" for i in range(self.n_modes_)]

    def _check_parameters(self) -> Plan:
        check_count(self.n_modes, "n_modes")
        check_flag(getattr(self, "calibrate", True), "calibrate")
        return Plan.of(self)

    def _pairs(self, X: Any, y: Any, Z: Any) -> Pairs:
        self.x_variable_ = Variable.seen(X, "X")
        self._remember_columns(X)
        values = self._as_y(y)
        self.y_variable_ = Variable.seen(values, "Y")
        if Z is not None:
            self.z_variable_ = Variable.seen(Z, "Z")
        data = Pairs(self._x_side(X, Z), self.y_variable_.rows(values))
        _check(data)
        return data

    def _setting(self) -> Setting:
        given = getattr(self, "orthogonal_to", None)
        with_z = hasattr(self, "z_variable_")
        if given is None and not with_z:
            return Setting.bivariate(self._n_modes(), self.x_space, self._y_space())
        return Setting(
            {
                "orthogonal_to": Block(given_recipe(given), of=("z",) if with_z else ()),
                "x": Block(self.x_space, of=("x",) if with_z else ()),
            },
            {"y": Block(self._y_space())},
            (Step("all", ("orthogonal_to",), ("y",)), Step(self._n_modes(), ("x",))),
        )

    @property
    def _main(self) -> Component:
        return self.learned_.components[-1]

    def _component(self, name: str) -> DependenceComponent:
        check_is_fitted(self)
        if name not in self.components_:
            raise AttributeError(
                f"There is no {name} component: the model was fitted without given features. Pass orthogonal_to, or "
                "fit(X, Y, Z)."
            )
        return self.components_[name]

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
        return support_of(self.y_variable_, rows, self._all_g, seed)

    def _all_g(self, rows: Rows) -> Array:
        """Features of Y of all components, side by side."""
        return np.hstack([component.g(rows) for component in self.learned_.components])

    def _calibrate(self, y: Rows) -> None:
        """Set distributions right on held-out rows; by all features, and by those of the last level alone."""
        self.calibration_ = self.aligned_calibration_ = Calibration()
        unseen = self.learned_.unseen
        if unseen is None or not self._calibrates():
            return
        at = self._happened(y.take(unseen.rows))
        g = np.hstack([self.aligned_support_g_, self.support_.g])
        self.aligned_calibration_ = Calibration.fit(replace(self.support_, g=g), unseen.f, at)
        self.calibration_ = self.aligned_calibration_
        if g.shape[1] > len(self._main):
            self.calibration_ = Calibration.fit(self.support_, unseen.f[:, g.shape[1] - len(self._main) :], at)

    def _calibrates(self) -> bool:
        """Whether held-out rows have a say: counts of a finite alphabet answer for themselves."""
        return self.solver_ != "exact"

    def _happened(self, y: Rows) -> np.ndarray:
        return happened(y, self.support_)

    @property
    def link_(self) -> Link:
        """How features become probabilities."""
        return self.calibration_.link

    @property
    def recalibration_(self) -> Recalibration | None:
        """How the distribution function of numbers is mapped to what held-out rows show."""
        return self.calibration_.recalibration

    def _x_side(self, X: Any, Z: Any) -> Rows | Parts:
        """The rows of X, and those of Z where the fit had them."""
        if not hasattr(self, "z_variable_"):
            if Z is not None:
                raise ValueError("Z was passed, but the fit had none. Leave it out, or fit(X, Y, Z).")
            return self._x_rows(X)
        if Z is None:
            raise ValueError("The fit had Z, so Z is due here as well. Pass its rows with those of X.")
        return Parts({"x": self._x_rows(X), "z": self.z_variable_.rows(Z)})

    def _x_rows(self, X: Any) -> Rows:
        rows_of(X, "X")
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
    for name, rows in (("X", data.x.of("x")), ("Y", data.y.of("y"))):
        if not rows.variable.is_tensor:
            check_not_constant(rows.table, name)


def _axis_name(variable: Variable) -> str:
    named = len(variable.columns) == 1 and not variable.columns[0].name.isdigit()
    return variable.columns[0].name if named else variable.name


def check_scored(rows: Rows) -> None:
    """Refuse rows of Y that no score can be computed from: missing ones, and those of another alphabet altogether."""
    if rows.variable.is_tensor:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that they count as average: here they do not
        numbers = rows.table.numbers
    if np.isnan(numbers).any():
        raise ValueError("Y holds missing values (NaN), which cannot be scored. Drop these rows.")
    for column, codes in zip(rows.variable.labels, rows.table.codes.T, strict=True):
        if (codes == UNKNOWN).all():
            raise ValueError(
                f"Y has none of the labels of the fit, such as {column.categories[:3]}: there is nothing to score. "
                "Pass labels of the same alphabet."
            )
