"""What every estimator has: a report that shows itself, names of its features, a file."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from featgeo.card import Shown
from featgeo.models.persistence import save


@dataclass(eq=False, repr=False)
class Decomposition(BaseEstimator):
    """A dependence, learned and asked. What every estimator takes besides its own arguments, by name:

    Args:
        random_state: Seed of all that is random: folds, centres of kernels, networks.
        training: Options for networks, a `Training`; defaults when None.
        ridge: Shrinks features of unit variance, so that smooth functions are preferred; "auto" for what held-out rows
            prefer, 0 for none.
        time_limit: Seconds after which "auto" tries no more spaces, and training no more epochs: the best so far is
            kept. None for no limit.
        verbose: 0 for no progress, 1 for one line in terminals and notebooks where a fit takes longer than two seconds,
            2 for that line everywhere.

    What a fit leaves are the fields with names that end in "_"; they are what files hold.
    """

    _: KW_ONLY
    random_state: int | np.random.RandomState | np.random.Generator | None = None
    training: Any = None
    ridge: float | Literal["auto"] = "auto"
    time_limit: float | None = None
    verbose: int = 1

    @abstractmethod
    def report(self) -> Shown:
        """How far the fit can be trusted."""

    @abstractmethod
    def _feature_names(self) -> Iterable[str]:
        """Names of the columns of `transform`."""

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, in the order of the columns of `transform`."""
        check_is_fitted(self)
        return np.array(list(self._feature_names()), dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of tensors and JSON; `featgeo.load` reads it."""
        check_is_fitted(self)
        save(self, path)

    def _html_repr(self) -> str:
        """What scikit-learn shows in a notebook: the report of a fitted model, the parameters of another."""
        return self.report().card().html() if hasattr(self, "learned_") else str(super()._html_repr())
