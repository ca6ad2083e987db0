"""Spaces of boosted trees: for tables of several columns, where sums and kernels miss interactions.

Given functions t(Y) of the other variable, the best function of X for each is its conditional expectation E[t(Y)|X]
(this is one half-step of alternating conditional expectations). Trees estimate it from all columns at once, with labels
and missing values as they are.

Trees adapt to the rows they are grown on, so what they say about those rows is too good. The space is therefore grown
once for each fold without that fold, and features of the rows of the fit come from the trees that never saw them. New
rows meet the average over some of the folds where there is a single function, since averages of trees are better than
single ones; else trees grown on all rows, the fewer for each function the more there are. So predictions take not much
longer than boosting's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor

from featgeo.features.columns import UNKNOWN
from featgeo.features.encoding import Encoding
from featgeo.features.label_means import LabelMeans, columns_of_many_labels
from featgeo.features.space import Space, Wrapped
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.watch import tell

GROWN_CELLS = 24_000_000  # that all forests of a space are grown on, together: about 20 s of one core
# What predictions may cost: trees that a new row passes through for all functions together, and forests, of a hundred
# trees each, that are averaged where there is a single function.
MOST_TREES, FEWEST_TREES = 220, 20
AVERAGED = 3
FEWEST_GROWN = 2000  # rows of a forest, however many columns they have
MAX_CATEGORIES = 255  # what scikit-learn's trees can split as a set; columns with more are read by their means alone


@dataclass(eq=False, repr=False)
class RegressorSpace(Wrapped):
    """Conditional expectations of given functions of the other variable, by any scikit-learn regressor.

    Attributes:
        regressors: One fitted regressor a target; several such sets are averaged.
        encoding: How rows become inputs; None for trees, which read labels and missing values as they are.
        means: For each set the means of the targets for labels of columns that have many; a regressor reads those of
            its own target besides. None where there is no such column.
    """

    regressors: tuple[tuple[Any, ...], ...]
    encoding: Space | None = None
    means: tuple[LabelMeans | None, ...] = ()

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
        start = trees(rows, seed, **_size(targets.shape[1])) if regressor is None else regressor
        if regressor is None and inputs.size * targets.shape[1] * (fold_of_row.max() + 1) > GROWN_CELLS:
            fold_of_row = fold_of_row % 2  # half of many rows is enough to learn the features of the other half
        folds = np.unique(fold_of_row)
        # Another regressor is asked for by name, and gets all rows.
        width = inputs.shape[1] + 2 * len(columns_of_many_labels(rows.variable))
        most = GROWN_CELLS // max(1, width * targets.shape[1] * (len(folds) + 1)) if regressor is None else None

        def fitted(index: np.ndarray) -> tuple[tuple[Any, ...], LabelMeans | None]:
            means, read = _with_means(rows, inputs, targets, index, seed)
            some = _some(np.arange(len(index)), most, seed)  # means cost nothing, and rest on all rows
            models = zip(read, targets[index[some]].T, strict=True)
            return tuple(clone(start).fit(z[some], t) for z, t in models), means

        unseen = np.empty_like(targets)
        grown = []
        for i, fold in enumerate(folds):
            tell(f"{_name(start)}, part {i + 1} of {len(folds)}")
            out = fold_of_row == fold
            grown.append(fitted(np.flatnonzero(~out)))
            unseen[out] = _predictions(*grown[-1], inputs[out], rows.table.codes[out])
        if targets.shape[1] > 1:
            tell(f"{_name(start)} of all rows")
            grown = [fitted(np.arange(len(inputs)))]
        models, means = zip(*grown[:AVERAGED], strict=True)
        return cls(models, encoding, means), unseen

    def values(self, rows: Rows) -> Array:
        """The average over the sets of regressors, (n, k)."""
        inputs = as_matrix(rows) if self.encoding is None else self.encoding(rows)
        sets = zip(self.regressors, self.means or [None] * len(self.regressors), strict=True)
        return np.mean([_predictions(models, means, inputs, rows.table.codes) for models, means in sets], axis=0)


def _with_means(
    rows: Rows, inputs: Array, targets: Array, index: np.ndarray, seed: int
) -> tuple[LabelMeans | None, list[Array]]:
    """What a regressor of each target is fitted to on some rows: their inputs and, of many labels, the target's means.

    Args:
        rows: All rows.
        inputs: Shape (n, d).
        targets: Shape (n, k).
        index: Positions of the rows to fit to.
        seed: Of the folds by which rows do not see themselves in the means.

    Returns:
        The means, for other rows, and what these rows read, (len(index), d + 2 columns of many labels), k times.
    """
    if not columns_of_many_labels(rows.variable):
        return None, [inputs[index]] * targets.shape[1]
    means, values = LabelMeans.fit(rows.variable, rows.table.codes[index], targets[index], seed)
    return means, [np.hstack([inputs[index], of_target]) for of_target in values]


def _size(n_functions: int) -> dict[str, Any]:
    """How many trees a forest has, and how far each goes: with many functions fewer, so that predictions stay fast."""
    n_trees = int(np.clip(MOST_TREES / max(n_functions, 1), FEWEST_TREES, 100))
    return {"max_iter": n_trees, "learning_rate": 10 / n_trees}


def trees(rows: Rows, seed: int, **options: Any) -> HistGradientBoostingRegressor:
    """Boosted trees that take labels as labels; options as scikit-learn has them."""
    n_numbers = rows.table.numbers.shape[1]
    as_sets = [n_numbers + i for i in range(len(_columns_as_sets(rows)))]
    return HistGradientBoostingRegressor(categorical_features=as_sets or None, random_state=seed, **options)


def as_matrix(rows: Rows) -> Array:
    """Numbers and codes side by side, NaN where missing or unknown; without columns of too many labels for a set."""
    codes = rows.table.codes[:, _columns_as_sets(rows)]
    return np.hstack([rows.table.numbers, np.where(codes == UNKNOWN, np.nan, codes.astype(np.float64))])


def _columns_as_sets(rows: Rows) -> list[int]:
    sizes = [len(column.categories) + column.missing for column in rows.variable.labels]
    return [j for j, size in enumerate(sizes) if size <= MAX_CATEGORIES]


def _predictions(models: tuple[Any, ...], means: LabelMeans | None, inputs: Array, codes: np.ndarray) -> Array:
    """Of each model from the inputs and, of many labels, the means of its target, (n, k)."""
    if not models:
        return np.empty((len(inputs), 0))
    if means is None:
        return np.stack([model.predict(inputs) for model in models], axis=1)
    read = [np.hstack([inputs, of_target]) for of_target in means(codes)]
    return np.stack([model.predict(z) for model, z in zip(models, read, strict=True)], axis=1)


def _some(index: np.ndarray, most: int | None, seed: int) -> np.ndarray:
    if most is None or len(index) <= max(most, FEWEST_GROWN):
        return index
    return np.sort(np.random.default_rng(seed).choice(index, max(most, FEWEST_GROWN), replace=False))


def _name(regressor: Any) -> str:
    name = type(regressor).__name__
    return {"HistGradientBoostingRegressor": "trees", "IndexRegressor": "index"}.get(name, name)
