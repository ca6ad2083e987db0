"""From what a user asks for to spaces that can be fitted.

A recipe fits one space. "auto" gives several; which of them serves is for the held-out H-score to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import is_regressor
from sklearn.linear_model import LinearRegression

from featgeo.features.combined import Joint, PartSpace, ProductSpace, Sum, TransformerSpace, as_columns
from featgeo.features.space import Space
from featgeo.features.spaces import Encoding, KernelSpace, SideBySide, SplineSpace, TableSpace
from featgeo.features.trees import BaggedTrees, IndexRegressor, MetricRegressor
from featgeo.features.variables import HEAD_ROWS, Rows, symbols_of
from featgeo.features.windows import WindowSpace
from featgeo.geometry.validation import shown
from featgeo.tuning import in_force


@dataclass(frozen=True)
class Recipe:
    """How to make a space.

    Attributes:
        name: What reports call it.
        fit: From rows and a seed to the fitted space; None where the space is learned together with the other side.
        learned: "regressor" or "network" for spaces that need the other variable to be learned, else "".
        argument: The scikit-learn regressor or torch module to learn with; None for boosted trees or a default network.
        inputs: What a regressor reads, as a space of its own; its standardised columns when None.
        given: Whether its features are given, and not there to be chosen from.
    """

    name: str
    fit: Callable[[Rows, int], Space] | None = None
    learned: str = ""
    argument: Any = None
    inputs: Callable[[Rows, int], Space] | None = None
    given: bool = False

    @property
    def kind(self) -> str:
        """The name without its options."""
        return self.name.partition(",")[0]


TABLE = Recipe("table", lambda rows, seed: TableSpace.fit(rows))
# For a single column of many labels: its frequent ones, and the means of the other variable for each of them.
FREQUENT = Recipe("labels", lambda rows, seed: Encoding.fit(rows))
MEANS = Recipe("means", None, "regressor", LinearRegression(), lambda rows, seed: Encoding.fit(rows))
SINGLE = {
    recipe.name: recipe
    for recipe in (
        TABLE,
        Recipe("spline", lambda rows, seed: SplineSpace.fit(rows)),
        Recipe("linear", lambda rows, seed: Encoding.fit(rows)),
        Recipe("index", None, "regressor", IndexRegressor, lambda rows, seed: Encoding.fit(rows, "bounded")),
        Recipe("metric", None, "regressor", MetricRegressor, lambda rows, seed: Encoding.fit(rows, "uniform")),
        Recipe("forest", None, "regressor", BaggedTrees, lambda rows, seed: Encoding.fit(rows, "uniform")),
        Recipe("trees", learned="regressor"),
        Recipe("windows", None, "regressor", IndexRegressor, lambda rows, seed: WindowSpace.fit(rows)),
        *(Recipe(name, learned="network") for name in ("network", "image", "sequence", "causal")),
    )
}


def recipes(space: Any, rows: Rows) -> list[Recipe]:
    """The spaces that an argument such as `x_space` stands for, the simplest first."""
    several = space if isinstance(space, list) else [space]
    if several and all(isinstance(recipe, Recipe) for recipe in several):
        return several
    if isinstance(space, torch.nn.Module):
        return [Recipe("module", learned="network", argument=space)]
    if isinstance(space, Sum | Joint):
        return [Recipe(type(space).__name__.lower(), lambda rows, seed: _combined(space, rows, seed))]
    if isinstance(space, type):
        raise ValueError(f"A space must be an object, got the class {space.__name__}. Write {space.__name__}().")
    if rows.variable.is_sparse and not (hasattr(space, "fit") and hasattr(space, "transform")):
        raise TypeError(
            f"{rows.variable.name} is a sparse matrix of {len(rows):,} x {rows.variable.shape[0]:,} cells, too many to "
            f"be dense, and the space {shown(space)} reads dense columns. Use a scikit-learn transformer that reads "
            "sparse rows, such as x_space=TruncatedSVD(64), or reduce the matrix before: "
            "make_pipeline(TruncatedSVD(64), FeatureClassifier())."
        )
    if hasattr(space, "fit") and hasattr(space, "predict") and is_regressor(space):
        return [Recipe(type(space).__name__, learned="regressor", argument=space)]
    if hasattr(space, "fit") and hasattr(space, "transform"):
        return [Recipe(type(space).__name__, lambda rows, seed: TransformerSpace.fit(rows, space))]
    if isinstance(space, str) and space in ("auto", "kernel"):
        return _automatic(rows) if space == "auto" else [_kernel(gamma) for gamma in in_force.get().kernel_gammas]
    if not isinstance(space, str) or space not in SINGLE:
        raise ValueError(
            f"A space must be one of {('auto', 'kernel', *SINGLE)}, a scikit-learn transformer or regressor, or a "
            f"torch module, got {shown(space)}. For several spaces together write Sum or Joint."
        )
    return [SINGLE[space]]


def _combined(space: Sum | Joint, rows: Rows, seed: int) -> Space:
    """Fit the space of each group of columns."""
    pairs = isinstance(space.parts, list | tuple) and all(
        isinstance(part, list | tuple) and len(part) == 2 for part in space.parts
    )
    if not pairs or len(space.parts) == 0:
        raise ValueError(
            f"A {type(space).__name__} needs at least one pair of columns and a space, got {shown(space.parts)}. Write "
            f"{type(space).__name__}([('column', 'spline'), ...])."
        )
    spaces = []
    for columns, part in space.parts:
        group = rows.select(as_columns(columns))
        fit = next((recipe.fit for recipe in recipes(part, group) if recipe.fit is not None), None)
        if fit is None:
            raise ValueError(f"Each part of a {type(space).__name__} needs a space that is given, got {part!r}.")
        spaces.append(PartSpace((), fit(group, seed), as_columns(columns)))
    if isinstance(space, Joint):
        return ProductSpace(tuple(spaces), or_one=(True,) * len(spaces))
    return SideBySide(tuple(spaces))


def is_finite(rows: Rows) -> bool:
    """Whether a variable takes few enough values to be treated as a finite alphabet.

    A single column of labels is one, however many there are: they have no order that could serve instead.
    """
    if rows.variable.is_tensor:
        return False
    if len(rows.variable.columns) == 1 and rows.variable.labels:
        return True
    most = most_values(len(rows))
    if "is finite" not in rows.memo:
        head = rows.table.take(slice(0, HEAD_ROWS))
        rows.memo["is finite"] = all(len(symbols_of(table)[0]) <= most for table in (head, rows.table))
    return bool(rows.memo["is finite"])


def most_values(n_rows: int, most: int | None = None) -> int:
    """How many values a finite alphabet has at most, in so many rows; `Options.finite_values` when None."""
    return max(2, min(most or in_force.get().finite_values, int(np.sqrt(n_rows))))


def has_rows_for_each(rows: Rows) -> bool:
    """Whether the labels of a column have enough rows, on average, for counts to say what each is like."""
    return len(rows) >= in_force.get().rows_a_function * len(rows.variable.columns[0].categories)


def _automatic(rows: Rows) -> list[Recipe]:
    if rows.variable.is_tensor:
        return [SINGLE["network"]]
    if len(rows.variable.columns) == 1 and rows.variable.many_labels:
        return [FREQUENT, MEANS]
    if is_finite(rows):
        return [TABLE]
    options, of_all = in_force.get(), [SINGLE["metric"], SINGLE["forest"]]
    if len(rows.variable.columns) > 1:
        return [SINGLE["linear"], _kernel(options.joint_gamma), SINGLE["index"], *of_all, SINGLE["trees"]]
    *finer, smoothest = (_kernel(gamma) for gamma in options.kernel_gammas[::-1])
    smooth = Recipe("spline", lambda rows, seed: SplineSpace.fit(rows, smooth=True))
    return [*finer[-1:], smooth, smoothest, *finer[:-1], *of_all]


def _kernel(gamma: float) -> Recipe:
    return Recipe(f"kernel, gamma {gamma:g}", lambda rows, seed: KernelSpace.fit(rows, gamma=gamma, seed=seed))
