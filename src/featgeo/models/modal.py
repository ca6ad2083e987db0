"""The modal decomposition of two variables, as a scikit-learn estimator."""

from __future__ import annotations

import os
import warnings
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from scipy.stats import rankdata
from sklearn.base import TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from featgeo.assembly import Conditional
from featgeo.assembly.calibration import Calibration
from featgeo.assembly.links import Link, Recalibration, Support
from featgeo.features.columns import counted, shape_of
from featgeo.features.given import given_recipe
from featgeo.features.variables import Parts, Rows, Variable
from featgeo.geometry.validation import Array, check_choice, check_flag, check_same_rows, seed_of
from featgeo.learning.data import Pairs, Stream, is_apart, some_rows
from featgeo.learning.learn import learn
from featgeo.learning.learned import Component, Learned, Unseen
from featgeo.learning.setting import Block, Setting, Solver, Step
from featgeo.models.base import (
    PANEL_ROWS,
    Decomposition,
    DependenceComponent,
    FitWarning,
    Panel,
    Report,
    check_varying,
    diagnose,
    h_score_on,
    happened,
    panel,
    support_of,
    warn_of_doubts,
)
from featgeo.models.head import Head, Layer, Loss
from featgeo.models.importance import Importance, effects_of, importance_by_refits, importance_of
from featgeo.models.information import Information, Told
from featgeo.models.leakage import Leakage, leakage
from featgeo.report import charts
from featgeo.schema import NOT_SAVED, OPTIONAL, saved
from featgeo.watch import watched

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = Literal["modes", "spectrum", "columns", "effects"]


@saved
@dataclass(eq=False, repr=False)
class ModalDecomposition(TransformerMixin, Decomposition):
    """The strongest modes of the dependence of X and Y: pairs of functions f_i(x), g_i(y) with strengths sigma_i.

    i(x, y) = p(x, y) / (p(x) p(y)) - 1 = sum_i sigma_i f_i(x) g_i(y). One fit gives the spectrum, features of either
    variable, and the distribution of Y given X with everything that follows from it.

    Args:
        n_modes: How many modes to keep at most (fewer where there are no more), or "auto": as many as raise the H-score
            on held-out rows.
        solver: "exact" (finite alphabets), "closed" (given spaces), "neural" (networks), or "auto".
        x_space: Functions of X to allow: "auto", "table", "kernel", "spline", "linear", "index", "metric", "forest",
            "trees", "windows", "network", "image", "sequence", a scikit-learn transformer or regressor, or a torch
            module.
        y_space: Functions of Y to allow.
        orthogonal_to: Given features phi that the learned features of X are to be uncorrelated with, exactly so on the
            rows of the fit: names of columns, a function of X, a torch module (it stays as it is), or a scikit-learn
            transformer (one that is fitted stays as it is; inside a search, which clones, wrap it in a
            `FrozenEstimator`). Where `fit` gets Z, phi are functions of Z instead; its columns themselves when None.
        random_state, training, device, ridge, time_limit, verbose: By name, as every estimator has them, see
            `featgeo.models.base.Decomposition`.

    Attributes:
        singular_values_: sigma_i on the rows of the fit, (k,), strongest first.
        held_out_singular_values_: Correlations of f_i and g_i on rows held out from learning them, (k,).
        n_modes_: Number of modes kept.
        solver_: The solver that was used.
        spaces_: What the spaces of X and Y are.
        components_: The components of the dependence by name: all of it in "modes", or, with given features, what they
            hold in "aligned" and what is beyond them in "orthogonal". The modes of the model are those of the last.
    """

    n_modes: int | Literal["auto"] = 3
    solver: Solver = "auto"
    x_space: Any = "auto"
    y_space: Any = "auto"
    orthogonal_to: Any = None

    x_variable_: Variable = field(init=False)
    z_variable_: Variable = field(init=False, metadata=OPTIONAL)
    n_features_in_: int = field(init=False, metadata=OPTIONAL)
    feature_names_in_: np.ndarray = field(init=False, metadata=OPTIONAL)
    learned_: Learned = field(init=False)
    calibration_: Calibration = field(init=False)
    aligned_calibration_: Calibration = field(init=False)
    report_: Report = field(init=False)
    panels_: tuple[Panel, Panel] = field(init=False)
    information_: Information | None = field(init=False)
    told_y_: Any = field(init=False, metadata=NOT_SAVED)
    told_x_: Any = field(init=False, metadata=NOT_SAVED)
    importance_: Any = field(init=False, metadata=NOT_SAVED)

    @watched
    def fit(self, X: Any, y: Any = None, Z: Any = None, sample_weight: Any = None) -> ModalDecomposition:
        """Learn the modes.

        Args:
            X: Rows of X: an array, tensor, data frame, series or list. For data that do not fit in memory, without Y,
                an iterable of batches (x, y) such as a DataLoader; or, with the name of Y, a table: a Dask frame, a
                Parquet or Arrow file, or a folder of such files. Where `distributed` has a Client, its workers sum.
            y: Rows of Y, in the same order; of a table the name of its column, or of several. All others are X.
            Z: Rows of what the features of X are to be orthogonal to, where that is not part of X. It is then due
                wherever X is.
            sample_weight: How often each row counts, whole numbers, (n,): a weight of 2 is the row twice.
        """
        plan = self._begin()
        is_read = y is None or is_apart(X, y)
        if is_read and not (Z is None and sample_weight is None):
            raise ValueError(
                "Weights need all rows in memory, and so does Z: pass fit(X, Y, Z). In batches and tables repeat rows, "
                "and make Z columns of X."
            )
        if not is_read:
            X, y, Z = counted(sample_weight, X=X, Y=y, Z=Z)
        seed, device = plan.seed, torch.device(plan.device)
        data = self._stream(X, y) if is_read else self._pairs(X, y, Z).in_order(device)
        head = data.head if isinstance(data, Stream) else data
        head.check_y()
        check_varying(X=head.x.of("x"), Y=head.y.of("y"))
        self.learned_ = self._upwards(learn(data, self._setting(), plan), head.y.of("y"))
        self.support_ = self._support(head.there(device).y.of("y"), seed)
        self._calibrate(head.y.of("y"))
        self.told_x_, self.told_y_, self.information_ = head.x.of("x"), head.y.of("y"), self._by_counts(head)
        known = "the distribution of Y over all rows" if self.learned_.mean is None else "told by E[Y|x] alone"
        warn_of_doubts(self.components_.values(), f"`given` is {known}")
        self.report_ = diagnose(self.learned_, self.components_, self._own_support, head, seed)
        sample = head.sample(PANEL_ROWS, seed)
        self.panels_ = panel(sample.x, self._main.f, seed), panel(sample.y, self._main.g, seed)
        return self

    @property
    def singular_values_(self) -> Array:
        """Strengths of the modes on the rows of the fit, (k,), strongest first."""
        return self._main.sigma

    @property
    def held_out_singular_values_(self) -> Array:
        """Correlations of f_i and g_i on rows held out from learning them, (k,)."""
        return self.report_.held_out_sigma

    @property
    def mutual_information_(self) -> Information:
        """How much X tells of Y through the modes, in nats; computed when first asked for, and kept."""
        if self.information_ is None:
            unseen = self.learned_.unseen
            if self.support_.kind == "rows" or unseen is None or not len(unseen.rows):
                raise AttributeError(
                    "The modes tell no information: Y has several columns, or no rows were held out. Use "
                    "featgeo.mutual_information(X, Y), or pass more rows."
                )
            own, calibrated = self._own_support, getattr(self, "calibrate", True)
            self.information_ = Told.by_features(
                own, unseen, self.told_y_, self.singular_values_, calibrated
            ).information()
        return self.information_

    def _by_counts(self, data: Pairs) -> Information | None:
        """Of finite alphabets that are solved exactly, the information that their counts hold."""
        if self.solver_ != "exact" or len(self._parts) > 1:
            return None
        told = Told.by_counts(data.x.of("x"), data.y.of("y"))
        return None if told is None else told.information()

    def importance(self, X: Any = None, y: Any = None) -> Importance:
        """Which columns of X matter, in all and for each mode: what each holds alone, adds to all others, and shares.

        Told by rows of the fit, each by a fit without it: up to three are made, by default of two thirds of the rows.
        This is kept. A model from a file, and one with Z, needs rows.

        Args:
            X: Rows of X, not those of the fit.
            y: Rows of Y.
        """
        if X is not None:
            if y is None:
                raise ValueError("Importance is judged by what Y was: pass importance(X, y).")
            a, g = self.transform(X, y)
            return importance_of(self._x_rows(X), a * self.singular_values_, g, seed_of(self.random_state))
        if not hasattr(self, "importance_"):
            self._judging("importance(X, y)")
            seed = seed_of(self.random_state)
            self.importance_ = importance_by_refits(self.told_x_, self.told_y_, self._without, seed)
        return self.importance_

    def _without(self, left_out: np.ndarray) -> tuple[Array, Array]:
        """sigma_i f_i of the rows of the fit by one without some of them, and the g_i that both have, (n, k) each."""
        others, x, y = np.delete(np.arange(len(self.told_y_)), left_out), self.told_x_, self.told_y_
        again = copy(self)
        if hasattr(again, "calibrate"):
            again.calibrate = False  # only modes are asked for
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # of doubts, the fit itself has warned
            again.fit(x.take(others).raw, y.take(others).raw)
        g = self._main.g(y)
        turn = again._main.g(again.y_variable_.rows(y.take(others).raw)).T @ g[others] / len(others)
        return (again.transform(x.raw) * again.singular_values_) @ turn, g

    def head(self, loss: Loss = "log", cost: Any = None, prior: Any = None, X: Any = None, y: Any = None) -> Head:
        """A small last layer on the modes for a loss of one's own: `head(...).predict(X)`. The modes stay as they are.

        Fitted to rows of the fit that were held out from the modes that they are seen by; a model from a file, and one
        with Z, needs rows.

        Args:
            loss: "log" and "squared" of labels give probabilities, "hinge" planes between labels; of numbers and
                vectors "squared" gives what is closest on average.
            cost: What decisions for labels cost, (m, m): entry [i, j] that for the j-th of `support_.values` where Y
                is the i-th. With a hinge loss, of two labels.
            prior: Another distribution of Y, as in `given`: costs and label shift go together.
            X: Rows of X, not those of the fit.
            y: Rows of Y.
        """
        if (X is None) != (y is None):
            raise ValueError("A head is fitted to rows of X and of Y: pass both, or neither.")
        if X is not None:
            a, rows = self._scaled(X, None), self.y_variable_.rows(self._as_y(y))
            check_same_rows(X=a, Y=rows)
        else:
            a, index = self._judging("head(..., X=X, y=y)")
            rows = self.told_y_.take(index)
        return Layer(self._scaled, self._own_support, a, self._wanted(rows), seed_of(self.random_state)).head(
            loss, cost, self._prior if prior is None else prior
        )

    def _scaled(self, X: Any, Z: Any) -> Array:
        """sigma_i f_i(x), (n, k)."""
        return self._main.f(self._x_side(X, Z)) * self._main.sigma

    def _wanted(self, y: Rows) -> np.ndarray:
        """What heads are to tell: positions of labels in the support, numbers, or vectors."""
        if self.support_.kind == "labels":
            at = happened(y, self.support_)
            self._check_known(at)
            return at
        return y.single_numbers if self.support_.kind == "numbers" else np.asarray(y.raw)

    def _judging(self, way_out: str) -> tuple[Array, np.ndarray]:
        """sigma_i f_i of rows of the fit that have not been seen by these modes, (n, k), and which rows they are."""
        unseen = self.learned_.unseen
        if unseen is None or not hasattr(self, "told_y_") or hasattr(self, "z_variable_"):
            raise ValueError(f"No held-out rows are there to judge by. Pass rows: {way_out}.")
        return unseen.f[:, unseen.f.shape[1] - self.n_modes_ :], unseen.rows

    def _check_known(self, at: np.ndarray) -> None:
        if (at < 0).any():
            raise ValueError(f"Y has a value that the fit never saw, in row {int(np.argmin(at))}. Drop it.")

    def pointwise_information(self, X: Any, y: Any, Z: Any = None) -> Array:
        """Log p(y|x) / p(y) of each row, in nats, (n,): which rows carry the dependence, and which speak against it.

        Rows far below 0 are outliers, or have the wrong label.

        Args:
            X: Rows of X.
            y: Rows of Y.
            Z: Rows of Z, where the fit had them.
        """
        given, rows = self.given(X, Z=Z), self.y_variable_.rows(self._as_y(y))
        check_same_rows(X=given, Y=rows)
        at = happened(rows, self.support_)
        if not self.support_.continuous:
            self._check_known(at)
        return given.information(at if self.support_.continuous else self.support_.values[at])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of tensors and JSON; `featgeo.load` reads it."""
        if getattr(self, "information_", True) is None and self.support_.kind != "rows" and self.learned_.unseen:
            self.information_ = self.mutual_information_  # it needs rows of the fit, which stay behind
        super().save(path)

    @property
    def n_modes_(self) -> int:
        """Number of modes kept."""
        return len(self._main)

    @property
    def aligned_(self) -> DependenceComponent:
        """The dependence that the given features hold: its energy is twice their single-sided H-score."""
        return self._component("aligned")

    @property
    def orthogonal_(self) -> DependenceComponent:
        """The dependence beyond the given features."""
        return self._component("orthogonal")

    def fit_transform(self, X: Any, y: Any = None, Z: Any = None, sample_weight: Any = None) -> Array:
        """Learn the modes and give the features of the same rows."""
        return np.asarray(self.fit(X, y, Z, sample_weight).transform(X, Z=Z))

    def transform(self, X: Any, y: Any = None, Z: Any = None) -> Any:
        """Normalised features f(X), (n, k); with Y also g(Y), as a pair. With given features those orthogonal to them.

        Args:
            X: Rows of X.
            y: Rows of Y.
            Z: Rows of Z, where the fit had them.
        """
        f = self._main.f(self._x_side(X, Z))
        return f if y is None else (f, self._main.g(self.y_variable_.rows(self._as_y(y))))

    def transform_aligned(self, X: Any, Z: Any = None) -> Array:
        """Normalised features in the span of the given ones, (n, k_aligned), strongest first."""
        self._component("aligned")
        return self._parts[0].f(self._x_side(X, Z))

    def score(self, X: Any, y: Any, Z: Any = None, sample_weight: Any = None) -> float:
        """H-score on the given rows: half the energy of the dependence that the modes capture there."""
        main = self._main
        X, y, Z = counted(sample_weight, X=X, Y=y, Z=Z)
        return h_score_on(self.y_variable_.rows(self._as_y(y)), main.f(self._x_side(X, Z)), main.g, main.sigma)

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
        check_flag(aligned, "aligned")
        check_flag(calibrated, "calibrated")
        if aligned:
            self._component("aligned")
        rows, parts = self._x_side(X, Z), self._parts if aligned else self._parts[-1:]
        prior = self._prior if prior is None else prior
        if calibrated and not aligned:
            return self._calibrated(rows, prior)
        f = np.hstack([part.f.scaled(part.sigma)(rows) for part in parts])
        calibration = self.aligned_calibration_ if calibrated else Calibration()
        return calibration.given(self.support_ if aligned else self._own_support, f, prior)

    def _calibrated(self, rows: Any, prior: Any) -> Conditional:
        """The calibrated distributions of rows, by the model's own modes and what is told of Y itself."""
        mean, f = self.learned_.mean, self._main.f.scaled(self._main.sigma)
        told = f if mean is None else mean.beside(f)
        return self.calibration_.given(self._read_support, told(rows), prior)

    def leakage(self, X: Any, Z: Any = None, about: Any = None) -> Leakage:
        """How much the features tell about Z, linearly and in any way, on rows that were not fitted to.

        Args:
            X: Rows of X, not those of the fit.
            Z: What the features should not tell: numbers, labels, or several columns; rows of Z where the fit had them.
                The given features themselves when None.
            about: Something else to measure instead of Z.
        """
        rows = self._x_side(X, Z if hasattr(self, "z_variable_") else None)
        if about is None and Z is None:
            self._component("aligned")
            given: Any = self.learned_.components[0].f.space
            about = given(rows)
        return leakage(self._main.f(rows), Z if about is None else about, seed_of(self.random_state))

    def report(self) -> Report:
        """How far the fit can be trusted: held-out spectrum, stability, orthogonality, rows behind each mode."""
        return self.report_

    def plot(self, what: Picture = "modes", X: Any = None, y: Any = None) -> Figure:
        """A matplotlib figure.

        Args:
            what: "modes" f_i and g_i; the "spectrum" on seen and held-out rows; "columns" of X, ranked by what they
                hold alone and add; or "effects": the modes, and E[Y|x] or the probability of each label, along the
                columns that matter.
            X: Rows for "columns" and "effects" of a model from a file; else held-out rows of the fit are there.
            y: Rows of Y, for the same.
        """
        check_choice(what, "what", get_args(Picture))
        if what in ("columns", "effects"):
            importance = self.importance(X, y)
            if what == "columns":
                return importance.plot()
            rows = self._x_rows(X) if X is not None else self.told_x_
            some = rows.take(some_rows(len(rows), 0, PANEL_ROWS))
            given = self._calibrated(some, None)
            return charts().effects(*effects_of(some, importance, self._main, given, self.support_))
        if what == "spectrum":
            return charts().spectrum(self.report_.sigma, self.report_.held_out_sigma, self.report_.held_out_error)
        sides = [
            (letter, _axis_name(variable), part.kind, part.at, part.values)
            for letter, variable, part in zip("fg", (self.x_variable_, self.y_variable_), self.panels_, strict=True)
        ]
        return charts().modes(sides, self.singular_values_)

    @property
    def _names(self) -> tuple[str, ...]:
        return ("modes",) if len(self._parts) == 1 else ("aligned", "orthogonal")

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, in the order of the columns of `transform`."""
        return np.array([f"f{i + 1}" for i in range(self.n_modes_)], dtype=object)

    def _pairs(self, X: Any, y: Any, Z: Any) -> Pairs:
        x = Rows.seen(X, "X")
        self.x_variable_ = x.variable
        if not self.x_variable_.is_tensor and len(shape_of(X, "X")) != 1:
            validate_data(self, X, skip_check_array=True)  # scikit-learn's `n_features_in_` and `feature_names_in_`
        rows = self._seen_y(y)
        if Z is None:
            return Pairs(x, rows)
        z = Rows.seen(Z, "Z")
        self.z_variable_ = z.variable
        return Pairs(Parts({"x": x, "z": z}), rows)

    def _setting(self) -> Setting:
        with_z = hasattr(self, "z_variable_")
        if self.orthogonal_to is None and not with_z:
            return Setting.bivariate(self._n_modes(), self.x_space, self.y_space)
        given = Block(given_recipe(self.orthogonal_to), of=("z",) if with_z else ())
        blocks = {"orthogonal_to": given, "x": Block(self.x_space, of=("x",) if with_z else ())}
        steps = Step("all", ("orthogonal_to",), ("y",)), Step(self._n_modes(), ("x",))
        return Setting(blocks, {"y": Block(self.y_space)}, steps)

    def _upwards(self, learned: Learned, y: Rows) -> Learned:
        """Where Y is a number, modes grow with it, and so f_1 with E[Y|x]."""
        if len(y.variable.columns) != 1 or y.variable.columns[0].kind != "number":
            return learned
        some = y.take(some_rows(len(y), 0, PANEL_ROWS))
        ranks = rankdata(some.single_numbers)
        together = (ranks - ranks.mean()) @ learned.components[-1].g(some)
        return learned.turned(np.where(together < 0, -1.0, 1.0))

    @property
    def _main(self) -> Component:
        return self._parts[-1]

    def _component(self, name: str) -> DependenceComponent:
        if name not in self.components_:
            raise AttributeError(
                f"There is no {name} component: the model was fitted without given features. Pass orthogonal_to, or "
                "fit(X, Y, Z)."
            )
        return self.components_[name]

    def _stream(self, batches: Any, y: Any) -> Stream:
        if is_apart(batches, y):
            from featgeo.learning.tables import TableStream  # pyarrow reads tables, and is an extra

            data: Stream = TableStream(batches, y)
        elif hasattr(batches, "shape") or hasattr(batches, "columns") or not hasattr(batches, "__iter__"):
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass fit(X, Y), or an "
                "iterable of batches (x, y)."
            )
        else:
            data = Stream(batches)
        self.x_variable_, self.y_variable_ = data.x_variable, data.y_variable
        return data

    def _n_modes(self) -> int | Literal["auto"]:
        return self.n_modes

    @property
    def _prior(self) -> Array | None:
        """Another distribution of Y than that of the fit, where none is asked for; None for that of the fit."""
        return None

    def _as_y(self, y: Any) -> Any:
        """What the engine sees as Y."""
        return y

    def _seen_y(self, y: Any) -> Rows:
        """The same as rows, for the first time: what Y is is learned from them."""
        rows = Rows.seen(self._as_y(y), "Y")
        self.y_variable_ = rows.variable
        return rows

    def _support(self, rows: Rows, seed: int) -> Support:
        return support_of(self.y_variable_, rows, self._g, seed)

    @property
    def _own_support(self) -> Support:
        """With the features of the model's own modes alone."""
        g = self.support_.g
        return replace(self.support_, g=g[:, g.shape[1] - self.n_modes_ :])

    @property
    def _read_support(self) -> Support:
        """With what links read: where Y itself is told, it comes first, and modes less what they say of it."""
        mean, own = self.learned_.mean, self._own_support
        return own if mean is None else own.beside(mean.t(self.y_variable_.rows(own.values)))

    def _calibrate(self, y: Rows) -> None:
        """Have distributions set right by held-out rows: all features, and those of the last level alone."""
        self.calibration_ = self.aligned_calibration_ = Calibration()
        unseen = self.learned_.unseen
        # Counts of a finite alphabet answer for themselves, unless a predictor asks for more.
        if unseen is None or not getattr(self, "calibrate", self.solver_ != "exact"):
            return
        at = happened(y.take(unseen.rows), self.support_)
        read = self._read(unseen)
        self.calibration_ = self.aligned_calibration_ = Calibration.later(self._read_support, read, at)
        if len(self._parts) > 1:
            self.aligned_calibration_ = Calibration.later(self.support_, unseen.f, at)

    def _read(self, unseen: Unseen) -> Array:
        """What links read of rows of the fit that were held out, (rows, k)."""
        mean, own = self.learned_.mean, unseen.f[:, unseen.f.shape[1] - self.n_modes_ :]
        return own if mean is None else np.hstack([mean.unseen, own])

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
        if hasattr(self, "n_features_in_") and not self.x_variable_.is_tensor and len(shape_of(X, "X")) != 1:
            validate_data(self, X, reset=False, skip_check_array=True)
        return self.x_variable_.rows(X)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inputs = replace(tags.input_tags, allow_nan=True, string=True, categorical=True, sparse=True)
        return replace(tags, input_tags=inputs, target_tags=replace(tags.target_tags, required=True))


def _axis_name(variable: Variable) -> str:
    named = len(variable.columns) == 1 and not variable.columns[0].name.isdigit()
    return variable.columns[0].name if named else variable.name
