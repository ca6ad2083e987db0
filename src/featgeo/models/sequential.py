"""The dependence of a symbol on its past, by Markov order, as a scikit-learn style estimator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from featgeo.assembly import Conditional
from featgeo.features.columns import Column, column_of
from featgeo.features.parts import Parts
from featgeo.features.recipes import is_finite
from featgeo.features.spaces import MOST_SYMBOLS, check_not_constant
from featgeo.features.variables import Rows, Variable, symbol_keys
from featgeo.geometry.validation import Array
from featgeo.learning.data import Pairs
from featgeo.learning.learn import Solver, learn
from featgeo.learning.setting import Block, Setting, Step
from featgeo.models.components import DependenceComponent
from featgeo.models.modal import check_training, seed_of
from featgeo.models.supports import support_of

ROWS_A_HISTORY = 10  # with fewer, a table of all histories knows most of them by hearsay


class SequentialDecomposition(BaseEstimator):
    """The dependence of each symbol on those before it, split by how far back one must look.

    Level t holds what functions of the last t symbols know about the next one and functions of the last t - 1 do not.
    A Markov chain of order t has nothing beyond level t.

    Args:
        order: How many symbols back to look. A list of them has one level for each length of history.
        n_modes: How many modes of each level to keep at most, "auto" for as many as raise the H-score on held-out rows,
            or "all" (with networks: as "auto").
        solver: "exact" (a table of all histories), "neural" (a causal network for each length of history), or "auto":
            tables for the lengths whose histories repeat often enough, networks for longer ones.
        random_state: Seed of all that is random.
        training: Options for networks, a `Training`; defaults when None.

    Attributes:
        orders_: The length of history of each level.
        components_: The component of each level, by its length of history.
        energies_: Their energies on the rows of the fit.
        held_out_energies_: Their energies on held-out rows.
        alphabet_: The symbols, in order; None for numbers.
        solver_: The solver that was used.
    """

    def __init__(
        self,
        order: int | Sequence[int] = 3,
        n_modes: int | Literal["auto", "all"] = "all",
        solver: Solver = "auto",
        random_state: int | None = None,
        training: Any = None,
    ) -> None:
        self.order = order
        self.n_modes = n_modes
        self.solver = solver
        self.random_state = random_state
        self.training = training

    def fit(self, sequences: Any, y: Any = None) -> SequentialDecomposition:
        """Learn the component of each order.

        Args:
            sequences: One sequence of symbols or numbers, (length,); several of the same length, (n, length); or a list
                of sequences. A text is a sequence of letters, and a list of texts several of them. Every stretch of
                `order + 1` steps is a row.
            y: Nothing; there for scikit-learn.
        """
        self.orders_ = self._check_parameters()
        arrays = _as_sequences(sequences)
        self.symbol_ = _symbol(arrays)
        windows = _windows(arrays, max(self.orders_) + 1)
        every = [*self.symbol_.categories, *([None] if self.symbol_.missing else [])]
        self.alphabet_ = _as_array(every) if self.symbol_.kind == "label" else None
        histories, following = self._parts(windows[:, :-1]), self._rows(windows[:, -1], "next symbol")
        data = Pairs(histories, following)
        data.check_y()
        check_not_constant(following.table, "The sequence")
        seed = seed_of(self.random_state)
        self.learned_ = learn(data, self._setting(histories, following), self.solver, seed, self.training)
        self.components_ = {
            order: DependenceComponent.of(f"order {order}", part)
            for order, part in zip(self.orders_, self.learned_.components, strict=True)
        }
        self.energies_ = np.array([part.energy_ for part in self.components_.values()])
        self.held_out_energies_ = np.array([part.held_out_energy_ for part in self.components_.values()])
        self.solver_ = self.learned_.solver
        support = support_of(following.variable, following, self._g, seed)
        self.support_ = replace(support, kind="labels") if self.alphabet_ is not None else support
        return self

    def transform(self, histories: Any) -> Array:
        """Features of histories, (n, k): those of each level, side by side.

        Args:
            histories: The steps before the one of interest, oldest first, (n, at least the longest order).
        """
        check_is_fitted(self)
        parts = self._parts(self._last_steps(histories))
        return np.hstack([component.f(parts) for component in self.learned_.components])

    def given(self, histories: Any) -> Conditional:
        """The distribution of the next symbol after each history.

        Args:
            histories: The steps before it, oldest first, (n, at least the longest order).
        """
        check_is_fitted(self)
        sigma = np.concatenate([component.sigma for component in self.learned_.components])
        return Conditional(self.support_, self.transform(histories) * sigma)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of tensors and JSON; `featgeo.load` reads it."""
        from featgeo.models.persistence import save  # it knows all estimators

        check_is_fitted(self)
        save(self, path)

    def _setting(self, histories: Parts, following: Rows) -> Setting:
        names = [_back(step) for step in range(1, max(self.orders_) + 1)]
        parts = {order: tuple(names[:order]) for order in self.orders_}
        blocks = {
            f"last {order}": Block(self._space(histories.of(*part), following), of=part)
            for order, part in parts.items()
        }
        steps = [Step(self.n_modes, (name,), ("y",) if i == 0 else ()) for i, name in enumerate(blocks)]
        return Setting(blocks, {"y": Block("auto")}, tuple(steps))

    def _space(self, histories: Rows, following: Rows) -> str:
        """A table of all histories of a length while they repeat often enough, else a network."""
        if self.solver == "exact":
            return "table"
        if self.solver == "auto" and is_finite(following):
            n_histories = len(np.unique(symbol_keys(histories.table), axis=0))
            if n_histories <= min(MOST_SYMBOLS, len(histories) / ROWS_A_HISTORY):
                return "table"
        return "causal"

    def _g(self, rows: Rows) -> Array:
        return np.hstack([component.g(rows) for component in self.learned_.components])

    def _parts(self, histories: np.ndarray) -> Parts:
        """One variable for each step back, the latest first."""
        columns = histories.T[::-1]
        return Parts({_back(i + 1): self._rows(column, _back(i + 1)) for i, column in enumerate(columns)})

    def _rows(self, values: np.ndarray, name: str) -> Rows:
        return Variable(name, (replace(self.symbol_, name=name),)).rows(values)

    def _last_steps(self, histories: Any) -> np.ndarray:
        texts = isinstance(histories, list | tuple) and all(isinstance(part, str) for part in histories)
        values = np.asarray([list(part) for part in histories] if texts else histories)
        longest = max(self.orders_)
        if values.ndim != 2 or values.shape[1] < longest:
            raise ValueError(
                f"Histories must have at least {longest} steps each, oldest first, shape (n, {longest}); got shape "
                f"{values.shape}. For a single history pass [history]."
            )
        return values[:, values.shape[1] - longest :]

    def _check_parameters(self) -> tuple[int, ...]:
        check_training(self.solver, self.training)
        if self.solver == "closed":
            raise ValueError("`solver` must be 'auto', 'exact' or 'neural' here, got 'closed'.")
        if self.n_modes not in ("auto", "all") and (not isinstance(self.n_modes, Integral) or self.n_modes < 1):
            raise ValueError(f"`n_modes` must be a whole number, at least 1, 'auto' or 'all', got {self.n_modes!r}.")
        if isinstance(self.order, Integral):
            orders = tuple(range(1, int(self.order) + 1))
        else:
            orders = tuple(self.order) if isinstance(self.order, Sequence | np.ndarray) else ()
        if not orders or any(not isinstance(order, Integral) or order < 1 for order in orders):
            raise ValueError(f"`order` must be a whole number, at least 1, or a list of them, got {self.order!r}.")
        if list(orders) != sorted(set(orders)):
            raise ValueError(f"The lengths in `order` must rise, got {self.order!r}. Sort them.")
        return tuple(int(order) for order in orders)


def _as_array(labels: list[Any]) -> np.ndarray:
    if None not in labels:
        return np.array(labels)
    result = np.empty(len(labels), dtype=object)
    result[:] = labels
    return result


def _back(step: int) -> str:
    return f"{step} back"


def _as_sequences(sequences: Any) -> list[np.ndarray]:
    values = sequences.detach().cpu().numpy() if hasattr(sequences, "detach") else sequences
    if isinstance(values, str):
        values = [values]
    if isinstance(values, list | tuple) and values and all(isinstance(part, str) and len(part) > 1 for part in values):
        values = [list(part) for part in values]  # texts are sequences of letters
    nested = isinstance(values, list | tuple) and len(values) > 0 and np.ndim(values[0]) == 1
    arrays = [np.asarray(part) for part in values] if nested else [np.asarray(values)]
    if not nested and arrays[0].ndim == 2:
        arrays = list(arrays[0])
    if any(array.ndim != 1 for array in arrays):
        raise ValueError(
            f"Sequences must have one symbol a step, (length,) or (n, length), got shape {np.shape(values)}. Pass a "
            "list of one-dimensional sequences."
        )
    return arrays


def _symbol(arrays: list[np.ndarray]) -> Column:
    """What a step holds. Whole numbers and truth values are symbols; other numbers are numbers."""
    values = np.concatenate(arrays)
    if values.dtype.kind in "biu":
        return Column("symbol", "label", tuple(np.unique(values).tolist()))
    return column_of("symbol", values, "The sequence")


def _windows(arrays: list[np.ndarray], length: int) -> np.ndarray:
    short = [i for i, array in enumerate(arrays) if len(array) < length]
    if short:
        raise ValueError(
            f"Each sequence needs at least order + 1 = {length} steps; those at positions {short[:5]} are shorter "
            f"({len(arrays[short[0]])} steps in the first). Drop them, or use a smaller `order`."
        )
    return np.concatenate([np.lib.stride_tricks.sliding_window_view(array, length) for array in arrays])
