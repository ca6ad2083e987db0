"""Learning with side information: the dependence of X and Y given S, as a scikit-learn style estimator."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator

from featgeo.assembly import Conditional
from featgeo.assembly.calibration import Later
from featgeo.assembly.links import Link
from featgeo.assembly.side import ModelLink, SideLink, SideRows
from featgeo.features.columns import counted
from featgeo.features.recipes import is_finite
from featgeo.features.variables import Parts, Rows, Variable
from featgeo.geometry.validation import Array, as_features, check_same_rows, seed_of
from featgeo.learning.data import Pairs
from featgeo.learning.learn import learn
from featgeo.learning.learned import Learned, LeftOut, Unseen
from featgeo.learning.setting import Block, Plan, Setting, Solver, Step
from featgeo.models.base import (
    ComponentsReport,
    Decomposition,
    DependenceComponent,
    check_varying,
    h_score_on,
    happened,
    support_of,
    warn_of_doubts,
)
from featgeo.models.given_s import (
    FeaturesModel,
    Posterior,
    Way,
    WithResiduals,
    check_model,
    default_model,
    fitted_model,
    mass_given,
    over_pairs,
    products_block,
)
from featgeo.models.importance import Importance, importance_of
from featgeo.schema import saved
from featgeo.tuning import in_force
from featgeo.watch import watched

JUDGED_ROWS = 2000  # that choose how posteriors are assembled, for time


@saved
@dataclass(eq=False, repr=False)
class ConditionalDecomposition(Later, Decomposition):
    """The dependence of X and (S, Y), split into what S explains and what Y adds given S (eq. side:dcmp:i).

    i(x; s, y) = i(x; s) + i(x; y|s), the Markov and the conditional component, each with its modes. X and Y are
    independent given S exactly where the second is zero. The distribution of Y given X and S follows from both
    (Prop. pred:est:side), and needs of X only its features: they can be computed elsewhere. Where X and S depend so
    strongly that the formula asks for more modes than a sample can tell, a model of Y from the conditional features
    beside S takes its place; held-out rows decide.

    What distributions of Y need and strengths do not is learned when somebody first asks for it. Until then the model
    keeps the rows of the fit.

    Args:
        n_modes: How many modes of the conditional component to keep at most, or "auto": as many as raise the H-score on
            held-out rows.
        n_markov_modes: The same for the Markov component.
        solver: As in `ModalDecomposition`.
        x_space: Functions of X to allow, as in `ModalDecomposition`.
        y_space: Functions of Y to allow; the conditional component uses their products with functions of S.
        s_space: Functions of S to allow.
        y_given_s: A model of Y given S: a scikit-learn classifier, for numbers a regressor (its residuals are taken to
            be distributed alike for all s), or a model of this library; fitted or not (then a copy is fitted). When
            None, one is learned from the same rows.
        random_state, training, device, ridge, time_limit, verbose: By name, as every estimator has them, see
            `featgeo.models.base.Decomposition`.

    Attributes:
        markov_: The Markov component, with its `singular_values_` and energy.
        conditional_: The conditional component.
        components_: Both, by name.
        y_given_s_: The fitted model of Y given S.
        posterior_: How Y given X and S is assembled, and how it fares on held-out rows beside Y given S alone.
        y_given_features_: The model of Y from features of X beside S, where it was chosen; else None.
        solver_: The solver that was used.
        spaces_: What the spaces of X and of (S, Y) are.
    """

    n_modes: int | Literal["auto"] = "auto"
    n_markov_modes: int | Literal["auto"] = "auto"
    solver: Solver = "auto"
    x_space: Any = "auto"
    y_space: Any = "auto"
    s_space: Any = "auto"
    y_given_s: Any = None

    x_variable_: Variable = field(init=False)
    s_variable_: Variable = field(init=False)
    learned_: Learned = field(init=False)
    g_range_: Array = field(init=False)
    y_given_s_: BaseEstimator | WithResiduals = field(init=False)
    y_given_features_: FeaturesModel | None = field(init=False)
    posterior_: Posterior = field(init=False)

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"n_modes": ("auto",), "n_markov_modes": ("auto",)}
    learned_later: ClassVar[frozenset[str]] = frozenset({"g_range_", "y_given_s_", "y_given_features_", "posterior_"})
    _names: ClassVar[tuple[str, ...]] = ("markov", "conditional")

    @watched
    def fit(self, X: Any, y: Any, S: Any, sample_weight: Any = None) -> ConditionalDecomposition:
        """Learn both components.

        Args:
            X: Rows of X: an array, tensor, data frame, series or list.
            y: Rows of Y, in the same order.
            S: Rows of the side information: numbers, labels, several columns, or mixed.
            sample_weight: How often each row counts, whole numbers, (n,): a weight of 2 is the row twice.
        """
        plan = self._begin()
        X, y, S = counted(sample_weight, X=X, Y=y, S=S)
        x, y_rows, s_rows = (Rows.seen(values, name) for values, name in ((X, "X"), (y, "Y"), (S, "S")))
        self.x_variable_, self.y_variable_, self.s_variable_ = x.variable, y_rows.variable, s_rows.variable
        data = Pairs(x, Parts({"s": s_rows, "y": y_rows})).in_order()
        data.check_y()
        y_rows, s_rows = data.y.of("y"), data.y.of("s")
        check_varying(X=data.x.of("x"), Y=y_rows, S=s_rows)
        self.support_ = support_of(self.y_variable_, y_rows, lambda rows: np.zeros((len(rows), 0)), plan.seed)
        model = self.y_given_s
        if model is None:
            model = default_model(self.support_, is_finite(s_rows), self.s_space, self.y_space, plan)
        check_model(model, self.support_)
        self.learned_ = learn(data, self._setting(s_rows, y_rows), plan)
        self.put_off(data, model, plan)  # many fits are for the strengths
        if self.y_given_s is not None:
            self._mass_given(s_rows.take(slice(0, 1)))  # a model that does not fit is better known now
        warn_of_doubts(self.components_.values(), "`given` is the distribution of Y given S alone")
        return self

    @property
    def markov_(self) -> DependenceComponent:
        """What S explains."""
        return self.components_["markov"]

    @property
    def conditional_(self) -> DependenceComponent:
        """What Y adds given S."""
        return self.components_["conditional"]

    def fit_transform(self, X: Any, y: Any, S: Any, sample_weight: Any = None) -> Array:
        """Learn both components and give the features of the same rows of X."""
        return self.fit(X, y, S, sample_weight).transform(X)

    def transform(self, X: Any) -> Array:
        """Features of X, (n, k_markov + k): those of the Markov component, then those of the conditional one."""
        return self._f(self.x_variable_.rows(X))

    def conditional_values(self, S: Any, y: Any) -> Array:
        """Normalised features g(s, y) of the conditional component, (n, k), of mean 0 given s."""
        return self._parts[1].g(self._side(S, y))

    def given(self, X: Any, S: Any, prior: Any = None, calibrated: bool = True) -> Conditional:
        """The distribution of Y for each row of X and S.

        Args:
            X: Rows of X.
            S: Rows of S, in the same order.
            prior: Another distribution of Y than that of the fit, as in `ModalDecomposition.given`.
            calibrated: Whether distributions are assembled and set right as held-out rows want it; else they are the
                plain formula. The same where `solver_` is "exact".
        """
        return self.given_features(self.transform(X), S, prior, calibrated)

    def given_features(self, features: Any, S: Any, prior: Any = None, calibrated: bool = True) -> Conditional:
        """The same from features of X that were computed elsewhere: nothing else of X is needed.

        Args:
            features: What `transform` gave for the rows of X, (n, k_markov + k).
            S: Rows of S, in the same order.
            prior: Another distribution of Y than that of the fit.
            calibrated: As in `given`.
        """
        f = as_features(features, "features").cpu().numpy()
        if f.shape[1] != len(self._sigma):
            raise ValueError(
                f"`features` must be what `transform` gives, {len(self._sigma)} columns, got {f.shape[1]}."
            )
        s = self.s_variable_.rows(S)
        check_same_rows(X=f, S=s)
        posterior = self.posterior_ if calibrated else Posterior()
        rows, link = self._by_formula(f * self._sigma, s, posterior.prior_share)
        if self.y_given_features_ is not None and calibrated:
            mass = partial(self.y_given_features_.mass, support=self.support_)
            link = ModelLink(mass, self._mass_given, posterior.prior_share)
        support = replace(self.support_, smoothing=posterior.smoothing)
        return Conditional(support, rows, prior, link, posterior.recalibration)

    def score(self, X: Any, y: Any, S: Any, sample_weight: Any = None) -> float:
        """H-score on the given rows: half the energy of the conditional dependence that the modes capture there."""
        X, y, S = counted(sample_weight, X=X, Y=y, S=S)
        part = self._parts[1]
        return h_score_on(self._side(S, y), part.f(self.x_variable_.rows(X)), part.g, part.sigma)

    def importance(self, X: Any, y: Any, S: Any) -> Importance:
        """Which columns of X matter for what Y adds given S: what each holds alone, adds to all others, and shares.

        Args:
            X: Rows of X, not those of the fit.
            y: Rows of Y.
            S: Rows of S.
        """
        x, side, part = self.x_variable_.rows(X), self._side(S, y), self._parts[1]
        check_same_rows(X=x, Y=side)
        return importance_of(x, part.f(x) * part.sigma, part.g(side), seed_of(self.random_state))

    def report(self) -> ComponentsReport:
        """Both components, and how Y given X and S fares on held-out rows beside Y given S alone."""
        return replace(super().report(), posterior=self.posterior_)

    def _side(self, S: Any, y: Any) -> Parts:
        return Parts({"s": self.s_variable_.rows(S), "y": self.y_variable_.rows(y)})

    def _setting(self, s_rows: Rows, y_rows: Rows) -> Setting:
        return Setting(
            {"x": Block(self.x_space)},
            {
                "s": Block(self.s_space, of=("s",)),
                "sy": products_block(self.s_space, self.y_space, self.solver, s_rows, y_rows),
            },
            (Step(self.n_markov_modes, ("x",), ("s",)), Step(self.n_modes, (), ("sy",))),
        )

    def _learned_now(self, data: Pairs, model: Any, plan: Plan) -> Mapping[str, Any]:
        """All that distributions of Y need and strengths do not."""
        other = copy(self)
        other._know(data, model)
        other.posterior_, other.y_given_features_ = Posterior(), None
        other._choose_posterior(data, model, plan)
        return {name: vars(other)[name] for name in self.learned_later}

    def _know(self, data: Pairs, model: Any) -> None:
        """What else of some rows the formula needs: the range of g, and P(y|s)."""
        g = np.vstack([self._parts[1].g(chunk.y) for chunk in data.chunks()])
        self.g_range_ = np.stack([g.min(axis=0), g.max(axis=0)])
        self.y_given_s_ = fitted_model(model, data.y.of("s"), data.y.of("y"))

    def _choose_posterior(self, data: Pairs, model: Any, plan: Plan) -> None:
        """Decide how features become P(y|x, s), on rows that neither they nor models fitted here have seen.

        Tables are cheap to learn again, so there all folds judge; else the first does.
        """
        unseen, support, exact = self.learned_.unseen, self.support_, self.solver_ == "exact"
        if unseen is None or support.kind == "rows":
            return
        some = data.y.take(unseen.rows)
        s, y = some.of("s"), some.of("y")
        position = None if support.continuous else happened(data.y.of("y"), support)
        folds = [_judging(fold, unseen, position) for fold in unseen.left_out[: None if exact else 1]]
        judged = np.concatenate([np.empty(0, dtype=int), *(fold.index for fold in folds)])
        if len(judged) < in_force.get().calibrating_rows:
            return
        alone, formula = np.concatenate([self._without(fold, data, unseen, model) for fold in folds], axis=1)
        ways: dict[Way, Array] = {"formula": formula}
        others = np.delete(np.arange(len(unseen.rows)), judged)
        if not exact and not s.variable.is_tensor and len(others) >= in_force.get().features_model_rows:
            f = unseen.without_first
            of_features = FeaturesModel.fit(f[others], s.take(others), y.take(others), support, plan)
            ways["features"] = of_features.mass(f[judged], s.take(judged), support)
        self.posterior_ = Posterior.judged(alone, ways, happened(y.take(judged), support), support, mixed=not exact)
        if self.posterior_.way == "features":
            self.y_given_features_ = FeaturesModel.fit(unseen.final, s, y, support, plan)

    def _without(self, fold: LeftOut, data: Pairs, unseen: Unseen, model: Any) -> Array:
        """P(y|s) and, by the formula, P(y|x, s) of the rows of a fold, (2, n, m), from other rows alone."""
        rows = unseen.rows[fold.index]
        other = copy(self)
        other.learned_ = replace(self.learned_, components=fold.components)
        other._know(data.take(np.delete(np.arange(len(data)), rows)), model)
        s = data.y.take(rows).of("s")
        side, link = other._by_formula(fold.f, s)
        return np.stack([other._mass_given(s), Conditional(self.support_, side, None, link).proba()])

    def _by_formula(self, f: Array, s: Rows, prior_share: float = 0.0) -> tuple[SideRows, Link]:
        """What Prop. pred:est:side needs, from features times their singular values."""
        markov, conditional = self._parts
        together = 1 + (f[:, : len(markov)] * markov.g(Parts({"s": s}))).sum(axis=1)
        fewest = 0.0 if self.solver_ == "exact" else in_force.get().least_together
        link = SideLink(self._mass_given, self._g_given, fewest, prior_share, len(conditional))
        return SideRows(f[:, len(markov) :], together, s), link

    def _mass_given(self, s: Rows) -> Array:
        return mass_given(self.y_given_s_, s, self.support_)

    def _g_given(self, s: Rows) -> Array:
        """G(s, y) for each row of s and each y of the support, (n, m, k).

        Most of these pairs never occur, and there functions are extrapolated: they keep within the range that they had
        on the rows of the fit.
        """
        values = over_pairs(self._parts[1].g, s, self.y_variable_.rows(self.support_.values))
        return values.clip(*self.g_range_)


def _judging(fold: LeftOut, unseen: Unseen, position: np.ndarray | None) -> LeftOut:
    """Some rows of a fold, to judge posteriors; a value of Y, by its position, is left out that no other row has."""
    kept = np.arange(min(len(fold.index), JUDGED_ROWS))
    if position is not None:
        rows = unseen.rows[fold.index[kept]]
        kept = kept[np.isin(position[rows], np.delete(position, rows))]
    return replace(fold, index=fold.index[kept], f=fold.f[kept])
