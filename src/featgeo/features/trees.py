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
from typing import Any, Protocol

import numpy as np
import torch
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from torch import Tensor

from featgeo.features.columns import UNKNOWN
from featgeo.features.encoding import Encoding
from featgeo.features.forest import Forest
from featgeo.features.index import IndexRegressor
from featgeo.features.label_means import LabelMeans, columns_of_many_labels
from featgeo.features.space import Fields, Space
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.schema import saved
from featgeo.watch import tell

GROWN_CELLS = 24_000_000  # that all forests of a space are grown on, together: about 20 s of one core
# What predictions may cost: trees that a new row passes through for all functions together, and forests, of a hundred
# trees each, that are averaged where there is a single function.
MOST_TREES, FEWEST_TREES = 220, 20
AVERAGED = 3
FEWEST_GROWN = 2000  # rows of a forest, however many columns they have
MAX_CATEGORIES = 255  # what scikit-learn's trees can split as a set; columns with more are read by their means alone


@saved
@dataclass(eq=False, repr=False)
class Line(Fields):
    """A fitted linear regression."""

    weight: Array
    bias: float

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions, (n,)."""
        return inputs @ self.tensor("weight") + self.tensor("bias")


@saved
@dataclass(eq=False, repr=False)
class Foreign(Fields):
    """A fitted regressor of the user's own."""

    is_ours = False
    regressor: Regressor

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions, (n,)."""
        return torch.from_numpy(np.asarray(self.regressor.predict(inputs.cpu().numpy()))).to(inputs)


class Regressor(Protocol):
    """What scikit-learn calls so."""

    def predict(self, X: Any) -> Any:
        """Expectations of the target."""


def fitted(regressor: Any, inputs: Array, target: Array) -> Fields:
    """A copy of a regressor, fitted, as a module: by its numbers alone where they are all that there is to it."""
    if regressor is IndexRegressor:
        return IndexRegressor.fit(inputs, target)
    regressor = clone(regressor).fit(inputs, target)
    if type(regressor) is LinearRegression:
        return Line(regressor.coef_, float(regressor.intercept_))
    forest = Forest.of(regressor) if type(regressor) is HistGradientBoostingRegressor else None
    return Foreign(regressor) if forest is None else forest


@saved
@dataclass(eq=False, repr=False)
class Regressions(Fields):
    """Regressors of several targets.

    Attributes:
        models: One for each target.
        means: The means of the targets for labels of columns that have many; a regressor reads those of its own target
            besides.
    """

    models: tuple[Fields, ...]
    means: LabelMeans

    def forward(self, inputs: Tensor, codes: Tensor) -> Tensor:
        """Predictions of each target, (n, k)."""
        means = self.means.forward(codes)
        read = [torch.cat([inputs, means[:, self.means.read_by(j)]], dim=1) for j in range(len(self.models))]
        found = [model.forward(z) for model, z in zip(self.models, read, strict=True)]
        return torch.stack(found, dim=1) if found else inputs[:, :0]


@saved
@dataclass(eq=False, repr=False)
class RegressorSpace(Space):
    """Conditional expectations of given functions of the other variable, by any scikit-learn regressor.

    Attributes:
        sets: Fitted regressors of all targets; several such sets are averaged.
        encoding: How rows become inputs; None for trees, which read labels and missing values as they are.
    """

    sets: tuple[Regressions, ...]
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
        start = trees(rows, seed, **_size(targets.shape[1])) if regressor is None else regressor
        if regressor is None and inputs.size * targets.shape[1] * (fold_of_row.max() + 1) > GROWN_CELLS:
            fold_of_row = fold_of_row % 2  # half of many rows is enough to learn the features of the other half
        folds = np.unique(fold_of_row)
        # Another regressor is asked for by name, and gets all rows.
        width = inputs.shape[1] + 2 * len(columns_of_many_labels(rows.variable))
        most = GROWN_CELLS // max(1, width * targets.shape[1] * (len(folds) + 1)) if regressor is None else None

        def of_rows(index: np.ndarray) -> Regressions:
            means, told = LabelMeans.fit(rows.variable, rows.table.codes[index], targets[index], seed)
            some = _some(np.arange(len(index)), most, seed)  # means cost nothing, and rest on all rows
            at = index[some]
            models = [
                fitted(start, np.hstack([inputs[at], told[some][:, means.read_by(j)]]), target)
                for j, target in enumerate(targets[at].T)
            ]
            return Regressions(tuple(models), means)

        unseen = np.empty_like(targets)
        grown = []
        for i, fold in enumerate(folds):
            tell(f"{_name(start)}, part {i + 1} of {len(folds)}")
            out = fold_of_row == fold
            grown.append(of_rows(np.flatnonzero(~out)))
            unseen[out] = grown[-1].forward(*map(torch.from_numpy, (inputs[out], rows.table.codes[out]))).numpy()
        if targets.shape[1] > 1:
            tell(f"{_name(start)} of all rows")
            grown = [of_rows(np.arange(len(inputs)))]
        return cls(tuple(grown[:AVERAGED]), encoding), unseen

    def forward(self, rows: Rows) -> Tensor:
        """The average over the sets of regressors, (n, k)."""
        inputs = _matrix(rows) if self.encoding is None else self.encoding.forward(rows)
        return torch.stack([regressions.forward(inputs, rows.codes) for regressions in self.sets]).mean(dim=0)


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
    matrix: Array = _matrix(rows).numpy()
    return matrix


def _matrix(rows: Rows) -> Tensor:
    codes = rows.codes[:, _columns_as_sets(rows)]
    return torch.cat([rows.numbers, torch.where(codes == UNKNOWN, torch.nan, codes.double())], dim=1)


def _columns_as_sets(rows: Rows) -> list[int]:
    sizes = [len(column.categories) + column.missing for column in rows.variable.labels]
    return [j for j, size in enumerate(sizes) if size <= MAX_CATEGORIES]


def _some(index: np.ndarray, most: int | None, seed: int) -> np.ndarray:
    if most is None or len(index) <= max(most, FEWEST_GROWN):
        return index
    return np.sort(np.random.default_rng(seed).choice(index, max(most, FEWEST_GROWN), replace=False))


def _name(regressor: Any) -> str:
    name = type(regressor).__name__
    return {"HistGradientBoostingRegressor": "trees", "type": "index"}.get(name, name)
