"""A last layer of one's own choice on the modes of a fit: the loss is chosen after the features.

The features that are best under log loss, hinge loss or squared loss are functions of the modes f(x): they hold all
that x says of Y. So a single fit serves every such loss; what is left to learn is a layer that is linear in them, by
scikit-learn, on rows that the modes have not seen where there are such. P(y|x) = P(y) (1 + f.g) is linear in all modes,
and so the best layer for squared loss is, and the best borders between labels are; logarithms of it are so to first
order, where the dependence is weak.

Costs and priors act on labels. Where probabilities are known, P(y|x) is first moved to another prior (label shift,
p(x|y) stays) and then the label of the smallest expected cost is taken, which is the best that can be done with them.
A hinge loss knows no probabilities: there both are weights of rows, the prior over that of the fit, times what a
mistake costs beyond the right decision. For two labels that has the same minimiser; for more it has not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from featgeo.assembly import Conditional
from featgeo.assembly.conditional import as_cost, prior_mass
from featgeo.assembly.links import ExponentialLink, LinearLink, Link, Support
from featgeo.card import Card, Shown
from featgeo.geometry.validation import Array, check_choice

Loss = Literal["log", "hinge", "squared"]


@dataclass(frozen=True, eq=False, repr=False)
class Head(Shown):
    """A decision from the modes of a fitted model.

    Attributes:
        loss: What the layer is best for.
        modes: From rows of X, and of Z where the fit had them, to sigma_i f_i(x), (n, k).
        support: The values of Y.
        n_rows: How many rows the layer was fitted to.
    """

    loss: Loss
    modes: Callable[..., Array]
    support: Support
    n_rows: int

    @abstractmethod
    def predict(self, X: Any, Z: Any = None) -> np.ndarray:
        """What to decide for each row."""

    def card(self) -> Card:
        """In one line."""
        return Card([f"A layer of {self.loss} loss on the modes, fitted to {self.n_rows:,} rows"])


@dataclass(frozen=True, eq=False, repr=False)
class ProbabilityHead(Head):
    """Labels by their probabilities: a softmax of the modes (log loss), or least squares (squared loss).

    Attributes:
        link: From modes, and for least squares a constant beside them, to density ratios over `support`.
        cost: What each decision costs, (m, m); None where only mistakes do, all alike.
        prior: Another prior of Y; None for that of the fit.
    """

    link: Link
    cost: Array | None
    prior: Any

    def given(self, X: Any, Z: Any = None, prior: Any = None) -> Conditional:
        """The distribution of Y for each row; under another prior than that of the head where one is passed."""
        modes = self.modes(X, Z)
        if isinstance(self.link, LinearLink):
            modes = _with_constant(modes)
        return Conditional(self.support, modes, self.prior if prior is None else prior, self.link)

    def predict(self, X: Any, Z: Any = None) -> np.ndarray:
        """The label of the smallest expected cost for each row, the most probable one without costs, (n,)."""
        given = self.given(X, Z)
        return given.map() if self.cost is None else given.decide(self.cost)


@dataclass(frozen=True, eq=False, repr=False)
class LinearHead(Head):
    """Labels by the side of a plane that they lie on (hinge loss), or numbers that are linear in the modes (squared).

    Attributes:
        layer: Fitted by scikit-learn.
    """

    layer: Pipeline

    def predict(self, X: Any, Z: Any = None) -> np.ndarray:
        """The label, (n,), or the number or vector, (n,) or (n, columns), for each row."""
        told = self.layer.predict(self.modes(X, Z))
        return self.support.values[told] if self.loss == "hinge" else told


@dataclass(frozen=True, eq=False)
class Layer:
    """What a head is learned from.

    Attributes:
        modes: As of `Head`.
        support: The values of Y.
        a: The modes of some rows, (n, k).
        y: What Y was there: positions in the support of labels, (n,); else numbers, (n,) or (n, columns).
        seed: Of solvers that draw.
    """

    modes: Callable[..., Array]
    support: Support
    a: Array
    y: np.ndarray
    seed: int

    def head(self, loss: Any, cost: Any, prior: Any) -> Head:
        """The layer of a loss.

        Args:
            loss: Which one.
            cost: Of decisions for labels, (m, m), or None.
            prior: Of labels, or None.
        """
        check_choice(loss, "loss", get_args(Loss))
        if not self.a.shape[1]:
            raise ValueError("The fit has no mode that held-out rows confirm: there is nothing to put a layer on.")
        if self.support.kind != "labels":
            return self._of_numbers(loss, cost, prior)
        matrix = None if cost is None else as_cost(cost, self.support)
        mass = None if prior is None else prior_mass(prior, self.support)
        if loss == "hinge":
            return self._by_planes(matrix, mass)
        if loss == "log":
            link: Link = ExponentialLink.fit(self.a, self.y, self.support)
            return ProbabilityHead("log", self.modes, self.support, len(self.a), link, matrix, mass)
        mean, wanted = self.support.mass, np.eye(self.support.m)[self.y]
        layer = self._fitted(Ridge(), wanted / mean - 1)
        # P(y|x) / P(y) = 1 + a.w + b: the formula itself, with other functions of y.
        b = layer.predict(np.zeros((1, self.a.shape[1])))
        w = layer.predict(np.eye(self.a.shape[1])) - b
        linear = replace(self.support, g=np.vstack([w, b]).T)
        return ProbabilityHead("squared", self.modes, linear, len(self.a), LinearLink(), matrix, mass)

    def _of_numbers(self, loss: Loss, cost: Any, prior: Any) -> Head:
        if loss != "squared" or cost is not None or prior is not None:
            raise ValueError(
                f"Y holds {self.support.kind}: a head of them has the squared loss, without costs and without a prior, "
                f"got loss={loss!r}. Use head(loss='squared'), or `given`, which knows the whole distribution."
            )
        return LinearHead("squared", self.modes, self.support, len(self.a), self._fitted(Ridge(), self.y))

    def _by_planes(self, cost: Array | None, prior: Array | None) -> Head:
        """Rows weigh as much as their label is more frequent in the prior, times what its mistake costs."""
        weight = np.ones(self.support.m) if prior is None else prior / self.support.mass
        if cost is not None:
            if self.support.m > 2:
                raise ValueError(
                    f"With a hinge loss costs weigh rows of two labels, and Y has {self.support.m}. Use loss='log', "
                    "which takes the smallest expected cost of any number."
                )
            weight = weight * (cost.max(axis=1) - np.diag(cost))
        if np.count_nonzero(weight > 0) < 2:
            raise ValueError(
                "Under these costs and this prior mistakes of at least two labels must cost something, got weights "
                f"{weight.tolist()} of {self.support.values.tolist()}. A decision that is always right needs no model."
            )
        layer = self._fitted(LinearSVC(random_state=self.seed), self.y, weight[self.y])
        return LinearHead("hinge", self.modes, self.support, len(self.a), layer)

    def _fitted(self, model: Any, wanted: np.ndarray, weight: Array | None = None) -> Pipeline:
        """Scikit-learn's model of modes of unit variance."""
        layer = make_pipeline(StandardScaler(), model)
        weights = {} if weight is None else {f"{layer.steps[-1][0]}__sample_weight": weight}
        return layer.fit(self.a, wanted, **weights)


def _with_constant(modes: Array) -> Array:
    return np.hstack([modes, np.ones((len(modes), 1))])
