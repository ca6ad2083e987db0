"""Spaces of boosted trees: for tables of several columns, where sums and kernels miss interactions.

Given functions t(Y) of the other variable, the best function of X for each is its conditional expectation E[t(Y)|X]
(this is one half-step of alternating conditional expectations). Trees estimate it from all columns at once, with labels
and missing values as they are.

Trees adapt to the rows they are grown on, so what they say about those rows is too good. The space is therefore grown
once for each fold without that fold, and features of the rows of the fit come from the trees that never saw them. New
rows meet the average over some of the folds where functions are few, since averages of trees are better than single
ones; else trees grown on all rows, one forest for each function. So predictions take not much longer than boosting's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from featgeo.features.columns import UNKNOWN
from featgeo.features.encoding import Encoding
from featgeo.features.spaces import Space
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.watch import tell

GROWN_CELLS = 24_000_000  # that all forests of a space are grown on, together: about 20 s of one core
MOST_PREDICTED = 4  # forests that each new row passes through, where functions are no more: what predictions may cost
FEWEST_GROWN = 2000  # rows of a forest, however many columns they have
MAX_CATEGORIES = 255  # what scikit-learn's trees can split as a set; columns with more are split by their order


@dataclass(frozen=True, eq=False)
class RegressorSpace:
    """Conditional expectations of given functions of the other variable, by any scikit-learn regressor.

    Attributes:
        regressors: One fitted regressor a target; several such sets are averaged.
        encoding: How rows become inputs; None for trees, which read labels and missing values as they are.
    """

    regressors: tuple[tuple[Any, ...], ...]
    encoding: Space | None = None

    @classmethod
    def fit(
        cls,
        rows: Rows,
        targets: Array,
        fold_of_row: np.ndarray,
        regressor: Any = None,
        seed: int = 0,
        encoding: Space | None = None,
    ) -> tuple[RegressorSpace, Array]:
        """Grow the space, and give the features of its own rows as seen by the folds that left them out, (n, k).

        Args:
            rows: Rows of the variable.
            targets: Functions of the other variable on the same rows, (n, k).
            fold_of_row: Fold of each row, (n,).
            regressor: A scikit-learn regressor; boosted trees when None.
            seed: Of the trees.
            encoding: What the regressor reads; standardised columns when None.
        """
        if encoding is None and regressor is not None:
            encoding = Encoding.fit(rows, "standard")
        inputs = as_matrix(rows) if encoding is None else encoding(rows)
        start = trees(rows, seed) if regressor is None else regressor
        if regressor is None and inputs.size * targets.shape[1] * (fold_of_row.max() + 1) > GROWN_CELLS:
            fold_of_row = fold_of_row % 2  # half of many rows is enough to learn the features of the other half
        folds = np.unique(fold_of_row)
        # Another regressor is asked for by name, and gets all rows.
        most = GROWN_CELLS // (inputs.shape[1] * targets.shape[1] * (len(folds) + 1)) if regressor is None else None

        def fitted(index: np.ndarray) -> tuple[Any, ...]:
            some = _some(index, most, seed)
            return tuple(clone(start).fit(inputs[some], target) for target in targets[some].T)

        unseen = np.empty_like(targets)
        grown = []
        for i, fold in enumerate(folds):
            tell(f"{_name(start)}, part {i + 1} of {len(folds)}")
            out = fold_of_row == fold
            grown.append(fitted(np.flatnonzero(~out)))
            unseen[out] = _predictions(grown[-1], inputs[out])
        n_averaged = MOST_PREDICTED // targets.shape[1]
        if n_averaged < 2:
            tell(f"{_name(start)} of all rows")
            return cls((fitted(np.arange(len(inputs))),), encoding), unseen
        return cls(tuple(grown[:n_averaged]), encoding), unseen

    def __call__(self, rows: Rows) -> Array:
        """The average over the sets of regressors, (n, k)."""
        inputs = as_matrix(rows) if self.encoding is None else self.encoding(rows)
        return np.mean([_predictions(models, inputs) for models in self.regressors], axis=0)


def trees(rows: Rows, seed: int, **options: Any) -> HistGradientBoostingRegressor:
    """Boosted trees that take labels as labels; options as scikit-learn has them."""
    n_numbers = rows.table.numbers.shape[1]
    sizes = [len(column.categories) + column.missing for column in rows.variable.labels]
    as_sets = [n_numbers + i for i, size in enumerate(sizes) if size <= MAX_CATEGORIES]
    return HistGradientBoostingRegressor(categorical_features=as_sets or None, random_state=seed, **options)


def as_matrix(rows: Rows) -> Array:
    """Numbers and codes side by side, NaN where missing or unknown."""
    table = rows.table
    return np.hstack([table.numbers, np.where(table.codes == UNKNOWN, np.nan, table.codes.astype(np.float64))])


def _predictions(models: tuple[Any, ...], inputs: Array) -> Array:
    return np.stack([model.predict(inputs) for model in models], axis=1)


def _some(index: np.ndarray, most: int | None, seed: int) -> np.ndarray:
    if most is None or len(index) <= max(most, FEWEST_GROWN):
        return index
    return np.sort(np.random.default_rng(seed).choice(index, max(most, FEWEST_GROWN), replace=False))


def _name(regressor: Any) -> str:
    name = type(regressor).__name__
    return {"HistGradientBoostingRegressor": "trees", "IndexRegressor": "index"}.get(name, name)
