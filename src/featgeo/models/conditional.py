"""Learning with side information: the dependence of X and Y given S, as a scikit-learn style estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from featgeo.assembly import Conditional
from featgeo.assembly.side import ModelLink, SideLink, SideRows
from featgeo.assembly.support import Support
from featgeo.features.parts import Parts
from featgeo.features.recipes import is_finite
from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Rows, Variable
from featgeo.geometry.arguments import check_count
from featgeo.geometry.validation import Array, as_features, check_same_rows
from featgeo.learning.data import Pairs
from featgeo.learning.learn import learn
from featgeo.learning.learned import Component, Learned, LeftOut, Unseen
from featgeo.learning.plan import Plan, Solver
from featgeo.learning.setting import Block, Setting, Step
from featgeo.models.base import Decomposition
from featgeo.models.components import DependenceComponent, warn_of_doubts
from featgeo.models.given_s import FeaturesModel, WithResiduals, check_model, default_model, fitted_model, mass_given
from featgeo.models.modal import check_scored
from featgeo.models.pairs import over_pairs
from featgeo.models.products import products_block
from featgeo.models.side_posterior import Posterior, SideReport, Way
from featgeo.models.supports import happened, positions, support_of
from featgeo.nesting.scores import h_score_of_modes
from featgeo.schema import saved
from featgeo.watch import watched

# The least that 1 + f_markov.g_markov is taken to be where it is estimated: pairs of x and s that are observed are
# rarely five times less likely together than if they were independent, and a small estimate is mostly error.
FEWEST_TOGETHER = 0.2
FEWEST_JUDGED, JUDGED_ROWS = 50, 2000  # rows that choose how posteriors are assembled
FEWEST_TO_LEARN = 200  # rows for a model of features of x beside s


@saved
@dataclass(eq=False, repr=False)
class ConditionalDecomposition(Decomposition):
    """The dependence of X and (S, Y), split into what S explains and what Y adds given S (eq. side:dcmp:i).

    i(x; s, y) = i(x; s) + i(x; y|s), the Markov and the conditional component, each with its modes. X and Y are
    independent given S exactly where the second is zero. The distribution of Y given X and S follows from both
    (Prop. pred:est:side), and needs of X only its features: they can be computed elsewhere. Where X and S depend so
    strongly that the formula asks for more modes than a sample can tell, a model of Y from the conditional features
    beside S takes its place; held-out rows decide.

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
        random_state, training, ridge, time_limit, verbose: By name, as every estimator has them, see
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
    y_variable_: Variable = field(init=False)
    s_variable_: Variable = field(init=False)
    learned_: Learned = field(init=False)
    support_: Support = field(init=False)
    components_: dict[str, DependenceComponent] = field(init=False)
    markov_: DependenceComponent = field(init=False)
    conditional_: DependenceComponent = field(init=False)
    solver_: str = field(init=False)
    spaces_: tuple[str, str] = field(init=False)
    g_range_: Array = field(init=False)
    y_given_s_: BaseEstimator | WithResiduals = field(init=False)
    y_given_features_: FeaturesModel | None = field(init=False)
    posterior_: Posterior = field(init=False)

    @watched
    def fit(self, X: Any, y: Any, S: Any) -> ConditionalDecomposition:
        """Learn both components.

        Args:
            X: Rows of X: an array, tensor, data frame, series or list.
            y: Rows of Y, in the same order.
            S: Rows of the side information: numbers, labels, several columns, or mixed.
        """
        plan = self._check_parameters()
        seed = plan.seed
        self.x_variable_, self.y_variable_, self.s_variable_ = (
            Variable.seen(values, name) for values, name in ((X, "X"), (y, "Y"), (S, "S"))
        )
        y_rows, s_rows = self.y_variable_.rows(y), self.s_variable_.rows(S)
        data = Pairs(self.x_variable_.rows(X), Parts({"s": s_rows, "y": y_rows}))
        data.check_y()
        for name, rows in (("X", data.x.of("x")), ("Y", y_rows), ("S", s_rows)):
            if not rows.variable.is_tensor:
                check_not_constant(rows.table, name)
        self.support_ = support_of(self.y_variable_, y_rows, lambda rows: np.zeros((len(rows), 0)), seed)
        if self.y_given_s is not None:
            check_model(self.y_given_s, self.support_)
        self.learned_ = learn(data, self._setting(s_rows, y_rows), plan)
        self.components_ = {
            name: DependenceComponent.of(name, part)
            for name, part in zip(("markov", "conditional"), self.learned_.components, strict=True)
        }
        self.markov_, self.conditional_ = self.components_.values()
        self.solver_, self.spaces_ = self.learned_.solver, self.learned_.spaces
        g = np.vstack([self.learned_.components[1].g(chunk.y) for chunk in data.chunks()])
        self.g_range_ = np.stack([g.min(axis=0), g.max(axis=0)])
        model = self.y_given_s
        if model is None:
            model = default_model(self.support_, is_finite(s_rows), self.s_space, self.y_space, seed, self.training)
        self.y_given_s_ = fitted_model(model, s_rows, y_rows)
        self._mass_given(s_rows.take(slice(0, 1)))  # a model that does not fit is better known now
        self.posterior_ = Posterior()
        self.y_given_features_ = None
        self._choose_posterior(data, model, seed)
        warn_of_doubts(self.components_.values(), "`given` is the distribution of Y given S alone")
        return self

    def fit_transform(self, X: Any, y: Any, S: Any) -> Array:
        """Learn both components and give the features of the same rows of X."""
        return self.fit(X, y, S).transform(X)

    def transform(self, X: Any) -> Array:
        """Features of X, (n, k_markov + k): those of the Markov component, then those of the conditional one."""
        check_is_fitted(self)
        return self._features(self.x_variable_.rows(X))

    def conditional_values(self, S: Any, y: Any) -> Array:
        """Normalised features g(s, y) of the conditional component, (n, k), of mean 0 given s."""
        check_is_fitted(self)
        return self.learned_.components[1].g(self._side(S, y))

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
        check_is_fitted(self)
        markov, conditional = self.learned_.components
        f = as_features(features, "features").cpu().numpy()
        if f.shape[1] != len(markov) + len(conditional):
            raise ValueError(
                f"`features` must be what `transform` gives, {len(markov) + len(conditional)} columns, got "
                f"{f.shape[1]}."
            )
        s = self.s_variable_.rows(S)
        check_same_rows(X=f, S=s)
        posterior = self.posterior_ if calibrated else Posterior()
        rows, link = self._by_formula(self._scaled(f), s, self._mass_given, posterior.prior_share)
        if self.y_given_features_ is None or not calibrated:
            return Conditional(self.support_, rows, prior, link, posterior.recalibration)
        mass = partial(self.y_given_features_.mass, support=self.support_)
        model = ModelLink(mass, self._mass_given, posterior.prior_share)
        return Conditional(self.support_, rows, prior, model, posterior.recalibration)

    def score(self, X: Any, y: Any, S: Any) -> float:
        """H-score on the given rows: half the energy of the conditional dependence that the modes capture there."""
        check_is_fitted(self)
        check_scored(self.y_variable_.rows(y))
        part = self.learned_.components[1]
        f, g = part.f(self.x_variable_.rows(X)), part.g(self._side(S, y))
        check_same_rows(X=f, Y=g)
        return h_score_of_modes(f, g, part.sigma)

    @property
    def prior_share_(self) -> float:
        """How much of P(y|s) is mixed into P(y|x, s), as held-out rows chose."""
        check_is_fitted(self)
        return self.posterior_.prior_share

    def report(self) -> SideReport:
        """Both components, and how Y given X and S fares on held-out rows beside Y given S alone."""
        check_is_fitted(self)
        return SideReport(self.markov_, self.conditional_, self.posterior_, self.learned_.dropped)

    def _feature_names(self) -> list[str]:
        names = zip(self.components_, self.learned_.components, strict=True)
        return [f"{name}{i + 1}" for name, part in names for i in range(len(part))]

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

    def _choose_posterior(self, data: Pairs, model: Any, seed: int) -> None:
        """Decide how features become P(y|x, s), on rows that neither they nor models fitted here have seen.

        Tables are cheap to learn again, so there all folds judge; else the first does.
        """
        unseen, support, exact = self.learned_.unseen, self.support_, self.solver_ == "exact"
        if unseen is None or support.kind == "rows":
            return
        some = data.y.take(unseen.rows)
        s, y = some.of("s"), some.of("y")
        index = None if support.continuous else positions(data.y.of("y"), support.values)
        folds = [_judging(fold, unseen, index) for fold in unseen.left_out[: None if exact else 1]]
        judged = np.concatenate([np.empty(0, dtype=int), *(fold.index for fold in folds)])
        if len(judged) < FEWEST_JUDGED:
            return
        found = [self._judged(data, unseen, fold, model) for fold in folds]
        alone, formula = (np.vstack(mass) for mass in zip(*found, strict=True))
        ways: dict[Way, Array] = {"formula": formula}
        others = np.delete(np.arange(len(unseen.rows)), judged)
        if not exact and not s.variable.is_tensor and len(others) >= FEWEST_TO_LEARN:
            f = unseen.without_first
            of_features = FeaturesModel.fit(f[others], s.take(others), y.take(others), support, seed)
            ways["features"] = of_features.mass(f[judged], s.take(judged), support)
        self.posterior_ = Posterior.judged(alone, ways, happened(y.take(judged), support), support, mixed=not exact)
        if self.posterior_.way == "features":
            self.y_given_features_ = FeaturesModel.fit(unseen.final, s, y, support, seed)

    def _judged(self, data: Pairs, unseen: Unseen, fold: LeftOut, model: Any) -> tuple[Array, Array]:
        """P(y|s) and, by the formula, P(y|x, s) of the rows of a fold, (n, m) each, from other rows alone."""
        rows = unseen.rows[fold.index]
        others = data.y.take(np.delete(np.arange(len(data)), rows))
        s = data.y.take(rows).of("s")
        mass = partial(mass_given, fitted_model(model, others.of("s"), others.of("y")), support=self.support_)
        g = fold.components[1].g(others)
        g_range = np.stack([g.min(axis=0), g.max(axis=0)])
        side, link = self._by_formula(fold.f, s, mass, 0.0, fold.components, g_range)
        return mass(s), Conditional(self.support_, side, None, link).proba()

    def _features(self, rows: Any) -> Array:
        return np.hstack([component.f(rows) for component in self.learned_.components])

    def _scaled(self, features: Array) -> Array:
        """Each feature times its singular value."""
        return features * np.concatenate([component.sigma for component in self.learned_.components])

    def _by_formula(
        self,
        f: Array,
        s: Rows,
        mass: Callable[[Rows], Array],
        prior_share: float,
        components: tuple[Component, ...] | None = None,
        g_range: Array | None = None,
    ) -> tuple[SideRows, SideLink]:
        """What Prop. pred:est:side needs, from features times their singular values and P(y|s).

        Both components are those of all rows, and so is the range of g, unless others are given.
        """
        markov, conditional = self.learned_.components if components is None else components
        together = 1 + (f[:, : len(markov)] * markov.g(Parts({"s": s}))).sum(axis=1)
        fewest = 0.0 if self.solver_ == "exact" else FEWEST_TOGETHER
        g = partial(self._g_given, conditional, self.g_range_ if g_range is None else g_range)
        return SideRows(f[:, len(markov) :], together, s), SideLink(mass, g, fewest, prior_share, len(conditional))

    def _mass_given(self, s: Rows) -> Array:
        return mass_given(self.y_given_s_, s, self.support_)

    def _g_given(self, conditional: Component, g_range: Array, s: Rows) -> Array:
        """G(s, y) for each row of s and each y of the support, (n, m, k).

        Most of these pairs never occur, and there functions are extrapolated: they keep within the range that they had
        on the rows of the fit.
        """
        return over_pairs(conditional.g, s, self.y_variable_.rows(self.support_.values)).clip(*g_range)

    def _check_parameters(self) -> Plan:
        for name in ("n_modes", "n_markov_modes"):
            check_count(getattr(self, name), name)
        return Plan.of(self)


def _judging(fold: LeftOut, unseen: Unseen, position: np.ndarray | None) -> LeftOut:
    """Some rows of a fold, to judge posteriors; a value of Y, by its position, is left out that no other row has."""
    kept = np.arange(min(len(fold.index), JUDGED_ROWS))
    if position is not None:
        rows = unseen.rows[fold.index[kept]]
        kept = kept[np.isin(position[rows], np.delete(position, rows))]
    return replace(fold, index=fold.index[kept], f=fold.f[kept])
