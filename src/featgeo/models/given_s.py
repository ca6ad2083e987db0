"""P(y|s): from the same engine, or from a model that the user brings. And P(y|f(x), s), from features of x beside s.

Functions of (s, y) at every pair of some rows of s and some values of y.

Functions of (s, y): products of functions of each, a table of both, or a network that reads both.

How features of x become P(y|x, s): by the formula, or by a model that reads them beside s; held-out rows decide.

The formula (Prop. pred:est:side) is exact where all modes are there. Where X and S depend strongly, modes are many and
the divisor 1 + f_markov.g_markov is large, and the few modes that a sample can tell fall short of it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import clone, is_regressor
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_predict
from sklearn.utils.validation import _is_fitted

from featgeo.assembly import Conditional
from featgeo.assembly.calibration import Calibration, best_share, losses
from featgeo.assembly.links import MassLink, Recalibration, Smoothing, Support
from featgeo.card import Card
from featgeo.features.combined import ProductSpace, two_dimensional
from featgeo.features.recipes import Recipe, is_finite, recipes
from featgeo.features.regression import CentredSpace
from featgeo.features.space import Space
from featgeo.features.spaces import Encoding, FeatureFunction, KernelSpace, SideBySide, SpanFunction, SplineSpace
from featgeo.features.variables import Candidate, Parts, Rows, distinct, preferred, symbol_keys
from featgeo.geometry.validation import Array
from featgeo.learning.setting import Block, Plan
from featgeo.models.base import mean_and_error
from featgeo.models.modal import ModalDecomposition
from featgeo.models.predictors import FeatureClassifier, FeatureRegressor
from featgeo.records import Result
from featgeo.schema import saved
from featgeo.tuning import in_force

PAIRS_AT_ONCE = 100_000  # it bounds the memory


def over_pairs(function: FeatureFunction, s: Rows, y: Rows) -> Array:
    """Values at each pair, (rows of s, rows of y, k); rows of s that repeat are computed once."""
    if not s.variable.is_tensor:
        first, where, _ = distinct(symbol_keys(s.table))
        if len(first) < len(s):
            return over_pairs(function, s.take(first), y)[where]
    if isinstance(function, SpanFunction) and isinstance(function.space, SideBySide):
        *others, last = function.space.spaces
        if isinstance(last, ProductSpace):
            return _of_products(function, others, last, s, y)
    step = max(1, PAIRS_AT_ONCE // len(y))
    parts = []
    for start in range(0, len(s), step):
        some = s.take(slice(start, start + step))
        rows = {
            "s": some.take(np.repeat(np.arange(len(some)), len(y))),
            "y": y.take(np.tile(np.arange(len(y)), len(some))),
        }
        parts.append(function(Parts(rows)).reshape(len(some), len(y), -1))
    return np.concatenate(parts)


def _of_products(function: SpanFunction, others: list[Space], space: ProductSpace, s: Rows, y: Rows) -> Array:
    """Products factor: no pair needs features of its own."""
    s_rows, y_rows = Parts({"s": s}), Parts({"y": y})
    first, centred = space.factors
    if isinstance(centred, CentredSpace):
        y_features, mean = centred.space(y_rows), centred.mean(s_rows)
    else:
        y_features, mean = centred(y_rows), np.zeros((len(s), 1))
    alone = np.hstack([np.empty((len(s), 0)), *(other(s_rows) for other in others)])
    affine = function.affine
    n_alone, k = alone.shape[1], affine.weight.shape[1]
    n_products = (len(affine.weight) - n_alone) // y_features.shape[1]  # said, as there may be no mode
    weight = affine.weight[n_alone:].reshape(n_products, y_features.shape[1], k)
    of_s = np.einsum("na,abk->nbk", np.insert(first(s_rows), 0, 1.0, axis=1), weight)
    constant = affine.offset - affine.centre @ affine.weight
    of_s_alone = constant + alone @ affine.weight[:n_alone] - (of_s * mean[:, :, None]).sum(axis=1)
    return np.einsum("nbk,mb->nmk", of_s, y_features, optimize=True) + of_s_alone[:, None]


NETWORKS = ("network", "image", "sequence", "causal")
# Functions of y alone: all that is needed where y says the same whatever s is, and the safest with few rows.
ALONE = Recipe("alone", lambda rows, seed: SideBySide(()))


def products_block(s_space: Any, y_space: Any, solver: str, s_rows: Rows, y_rows: Rows) -> Block:
    """Functions of s and y together, for spaces of each as the user asked for them."""
    spaces = ((s_space, s_rows), (y_space, y_rows))
    if isinstance(y_space, torch.nn.Module):
        raise ValueError(
            "Functions of S and Y together are learned by a network that reads both, and `y_space` is a module of Y "
            "alone. Use y_space='network'."
        )
    if solver == "exact" or all(_is_table(space, rows) for space, rows in spaces):
        return Block("table", of=("s", "y"))
    if solver == "neural" or any(_is_network(space) for space, _ in spaces):
        return Block("network", of=("s", "y"), centred_given="s")
    s_factors = _factors("s_space", s_space, s_rows, in_force.get().side_s_features)
    y_factors = _factors("y_space", y_space, y_rows, in_force.get().side_y_features)
    pairs = [(s, y) for s in s_factors for y in y_factors if len(s_factors) != len(y_factors) or s.kind == y.kind]
    pairs = pairs or [(s_factors[0], y_factors[0])]
    return Block([*(_product(ALONE, y) for y in y_factors), *(_product(s, y) for s, y in pairs)])


def _is_table(space: Any, rows: Rows) -> bool:
    return isinstance(space, str) and (space == "table" or (space == "auto" and is_finite(rows)))


def _is_network(space: Any) -> bool:
    return isinstance(space, torch.nn.Module) or (isinstance(space, str) and space in NETWORKS)


def _factors(argument: str, space: Any, rows: Rows, n_features: int) -> list[Recipe]:
    """Spaces of a few functions of a variable, for products with those of another."""
    if _is_table(space, rows):
        return recipes("table", rows)
    small = partial(KernelSpace.fit, features=n_features)
    smooth = Recipe("kernel", lambda rows, seed: replace(small(rows, seed=seed), additive=None))
    if isinstance(space, str) and space == "kernel":
        return [smooth]
    if not isinstance(space, str) or space != "auto":
        given = [recipe for recipe in recipes(space, rows) if recipe.fit is not None]
        if not given:
            raise ValueError(f"`{argument}` must be a space that is given, got {space!r}. Use 'kernel' or 'spline'.")
        return given
    splines = SplineSpace.fit(rows)(rows.take(slice(0, 1))).shape[1]
    additive = "spline" if splines <= in_force.get().side_additive else "linear"
    return [*recipes(additive, rows), smooth]


def _centred(y: Recipe, side: Any, seed: int) -> Space:
    """Functions of y less their means given s; several products share them."""
    block, memo = Block(y, of=("y",), centred_given="s"), side.of("s").memo
    if (y.name, seed) not in memo:
        memo[y.name, seed] = block.centred(block.fitted(y, side, seed), side, seed)
    space: Space = memo[y.name, seed]
    return space


def _product(s: Recipe, y: Recipe) -> Recipe:
    def fit(side: Any, seed: int) -> Space:
        return ProductSpace((Block(s, of=("s",)).fitted(s, side, seed), _centred(y, side, seed)), or_one=(True, False))

    if s is ALONE:
        return Recipe(f"{y.name} of y", fit)
    return Recipe(s.name if s.name == y.name else f"{s.name} x {y.name}", fit)


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


BY_S_ALONE = "y given s alone"

Way = Literal["formula", "features"]


@saved
@dataclass(frozen=True, eq=False, repr=False)
class Posterior(Result):
    """How Y given X and S is assembled, and how it fares on rows that its features have not seen.

    Attributes:
        way: "formula" for that of Prop. pred:est:side, "features" for a model of Y from features of X beside S.
        prior_share: How much of P(y|s) is mixed in; at 1 nothing but P(y|s) is left.
        measure: Of the losses: "log loss", or "CRPS" (the continuous ranked probability score) for numbers.
        losses: The mean of each way with its best share, of P(y|s) alone, and of what was chosen.
        gain: By how much the choice is better than P(y|s) alone, on the same rows and in the same units: for log loss
            nats a row, an estimate from below of the information that X adds to S.
        gain_error: Its standard error over the rows.
        r2: For numbers the coefficients of determination of the means, by the choice and by P(y|s) alone.
        n_rows: How many rows judged; 0 where there were too few.
        recalibration: For numbers, how the distribution function of the choice is mapped to what these rows show.
        smoothing: For numbers, how its masses become densities.
    """

    way: Way = "formula"
    prior_share: float = 0.0
    measure: str = "log loss"
    losses: Mapping[str, float] | None = None
    gain: float = float("nan")
    gain_error: float = float("nan")
    r2: tuple[float, float] | None = None
    n_rows: int = 0
    recalibration: Recalibration | None = None
    smoothing: Smoothing | None = None

    @classmethod
    def judged(
        cls, alone: Array, ways: Mapping[Way, Array], happened: np.ndarray, support: Support, mixed: bool = True
    ) -> Posterior:
        """Choose the way and the share of the smallest loss; the formula where nothing is clearly better.

        Args:
            alone: P(y|s) over the support, (n, m), from rows other than these.
            ways: P(y|x, s) by each way, in the order of preference.
            happened: What Y was, (n,): for continuous numbers itself, else its position in the support.
            support: The values of Y.
            mixed: Whether some of P(y|s) may be mixed in.
        """
        shares = {way: best_share(mass, alone, happened, support) if mixed else 0.0 for way, mass in ways.items()}
        masses = {way: (1 - share) * ways[way] + share * alone for way, share in shares.items()}
        lost = {way: losses(mass, happened, support) for way, mass in masses.items()}
        chosen = preferred([Candidate(way, cost, -lost[way]) for cost, way in enumerate(ways, start=1)]).what
        lost_alone = losses(alone, happened, support)
        gain, gain_error = map(float, mean_and_error(lost_alone - lost[chosen]))
        calibration = Calibration.fit(support, masses[chosen], happened, MassLink())
        return cls(
            chosen,
            shares[chosen],
            "CRPS" if support.continuous else "log loss",
            {way: float(part.mean()) for way, part in (lost | {BY_S_ALONE: lost_alone}).items()},
            gain,
            gain_error,
            (r2_score(happened, masses[chosen] @ support.values), r2_score(happened, alone @ support.values))
            if support.continuous
            else None,
            len(happened),
            calibration.recalibration,
            calibration.smoothing,
        )

    def card(self) -> Card:
        """In one line how Y is assembled, and how well."""
        if not self.losses:
            return Card([f"y given x and s: by the {self.way}; no rows were held out to judge it"])
        by = {"formula": "the formula", "features": "a model of features of x beside s"}[self.way]
        share = f", {self.prior_share:.2g} of y given s mixed in" if self.prior_share else ""
        losses = ", ".join(f"{name} {loss:.4f}" for name, loss in self.losses.items())
        r2 = f"; R^2 {self.r2[0]:.4f}, of s alone {self.r2[1]:.4f}" if self.r2 else ""
        unit = " nats a row" if self.measure == "log loss" else ""
        line = (
            f"y given x and s: by {by}{share}; {self.measure} on {self.n_rows} held-out rows: {losses}; "
            f"gain over s alone {self.gain:.4f} +- {self.gain_error:.4f}{unit}{r2}"
        )
        return Card([line])
