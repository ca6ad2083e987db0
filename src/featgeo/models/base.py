"""What every estimator has: a report that shows itself, names of its features, a file."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from featgeo.card import Shown


class Decomposition(BaseEstimator):
    """A dependence, learned and asked."""

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
        from featgeo.models.persistence import save  # it knows all estimators

        check_is_fitted(self)
        save(self, path)

    def _html_repr(self) -> str:
        """What scikit-learn shows in a notebook: the report of a fitted model, the parameters of another."""
        return self.report().card().html() if hasattr(self, "learned_") else str(super()._html_repr())
