"""What every estimator has: its arguments, the beginning of a fit, a report that shows itself, names, a file."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from featgeo.assembly.support import Support
from featgeo.features.columns import UNKNOWN
from featgeo.features.functions import FeatureFunction
from featgeo.features.parts import Parts
from featgeo.features.spaces import check_not_constant
from featgeo.features.variables import Rows, Variable
from featgeo.geometry.validation import Array, check_count, check_same_rows
from featgeo.learning.learned import Component
from featgeo.learning.plan import Plan
from featgeo.models.components import ComponentsReport, DependenceComponent
from featgeo.models.persistence import save
from featgeo.nesting.scores import h_score_of_modes


@dataclass(eq=False, repr=False)
class Decomposition(BaseEstimator):
    """A dependence, learned and asked. What every estimator takes besides its own arguments, by name:

    Args:
        random_state: Seed of all that is random: folds, centres of kernels, networks.
        training: Options for networks, a `Training`; defaults when None.
        device: Where functions are evaluated and moments are summed: "cpu", "cuda", or "auto" for a GPU where there is
            one. (Networks are trained where `training` says.)
        ridge: Shrinks features of unit variance, so that smooth functions are preferred; "auto" for what held-out rows
            prefer, 0 for none.
        time_limit: Seconds after which "auto" tries no more spaces, and training no more epochs: the best so far is
            kept. None for no limit.
        verbose: 0 for no progress, 1 for one line in terminals and notebooks where a fit takes longer than two seconds,
            2 for that line everywhere.

    What a fit leaves are the fields with names that end in "_"; they are what files hold.

    Attributes:
        y_variable_: How Y was given.
        learned_: What the engine hands on.
        support_: The values of Y that `given` spreads mass over.
    """

    _: KW_ONLY
    random_state: int | np.random.RandomState | np.random.Generator | None = None
    training: Any = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    ridge: float | Literal["auto"] = "auto"
    time_limit: float | None = None
    verbose: int = 1

    y_variable_: Variable = field(init=False)
    learned_: Any = field(init=False)
    support_: Support = field(init=False)

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"n_modes": ("auto",)}  # arguments, and words that they may be
    feature_name: ClassVar[str] = "{}{}"  # of a component's name and a position

    def _begin(self) -> Plan:
        """What every fit begins with: arguments are checked, and nothing is left of an earlier fit."""
        for name, words in self.counts.items():
            check_count(getattr(self, name), name, words)
        plan = Plan.of(self)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        return plan

    @property
    @abstractmethod
    def components_(self) -> Mapping[Any, DependenceComponent]:
        """The components of the dependence, by name."""

    @property
    def solver_(self) -> str:
        """The solver that was used."""
        return str(self.learned_.solver)

    @property
    def spaces_(self) -> tuple[str, str]:
        """What the spaces of both sides are."""
        return self.learned_.spaces

    def report(self) -> Any:
        """What each component holds, on seen and on held-out rows, and what these have against the fit."""
        check_is_fitted(self)
        return ComponentsReport(tuple(self.components_.values()), self.solver_, self.learned_.dropped)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, in the order of the columns of `transform`."""
        check_is_fitted(self)
        return np.array(list(self._feature_names()), dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of tensors and JSON; `featgeo.load` reads it."""
        check_is_fitted(self)
        save(self, path)

    def _feature_names(self) -> Iterable[str]:
        for name, part in zip(self.components_, self._parts, strict=True):
            yield from (self.feature_name.format(name, i + 1) for i in range(len(part)))

    @property
    def _parts(self) -> tuple[Component, ...]:
        """The components as they were learned, in order."""
        return tuple(self.learned_.components)

    @property
    def _sigma(self) -> Array:
        return np.concatenate([part.sigma for part in self._parts])

    def _f(self, rows: Any) -> Array:
        """Features of X of all components, side by side."""
        return np.hstack([part.f(rows) for part in self._parts])

    def _g(self, rows: Any) -> Array:
        """Features of Y of all components, side by side."""
        return np.hstack([part.g(rows) for part in self._parts])

    def _html_repr(self) -> str:
        """What scikit-learn shows in a notebook: the report of a fitted model, the parameters of another."""
        return self.report().card().html() if hasattr(self, "learned_") else str(super()._html_repr())


def check_varying(**variables: Rows) -> None:
    """Refuse variables, by name, that never vary."""
    for name, rows in variables.items():
        if not rows.variable.is_tensor:
            check_not_constant(rows.table, name)


def h_score_on(side: Rows | Parts, f: Array, g: FeatureFunction, sigma: Array) -> float:
    """H-score of features of X, (n, k), and functions of rows that hold Y; refused where Y cannot be scored."""
    y = side.of("y")
    if not y.variable.is_tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that they count as average: here they do not
            numbers = y.table.numbers
        if np.isnan(numbers).any():
            raise ValueError("Y holds missing values (NaN), which cannot be scored. Drop these rows.")
        for column, codes in zip(y.variable.labels, y.table.codes.T, strict=True):
            if (codes == UNKNOWN).all():
                raise ValueError(
                    f"Y has none of the labels of the fit, such as {column.categories[:3]}: there is nothing to score. "
                    "Pass labels of the same alphabet."
                )
    check_same_rows(X=f, Y=y)
    return h_score_of_modes(f, g(side), sigma)


def figures() -> ModuleType:
    """The figures of models, where matplotlib is there."""
    try:
        from featgeo.report import mode_figures
    except ModuleNotFoundError as error:
        raise ImportError(f"Plots need {error.name}. Run: pip install 'featgeo[plot]'") from error
    return mode_figures
