"""The dependence of a symbol on its past, by Markov order, as a scikit-learn style estimator."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import TransformerMixin

from featgeo.assembly import Conditional
from featgeo.assembly.calibration import Calibration, best_share
from featgeo.assembly.links import LinearLink
from featgeo.features.columns import Column, RawColumn, column_of, missing_in, repeats
from featgeo.features.recipes import is_finite
from featgeo.features.spaces import MOST_SYMBOLS, check_not_constant
from featgeo.features.variables import Parts, Rows, Variable, distinct, symbol_keys
from featgeo.geometry.validation import Array, check_flag, check_whole, is_whole
from featgeo.learning.data import Pairs
from featgeo.learning.exact import learn_histories
from featgeo.learning.learn import learn
from featgeo.learning.learned import Learned
from featgeo.learning.setting import Block, Setting, Solver, Step
from featgeo.models.base import Decomposition, h_score_on, happened, support_of, warn_of_doubts
from featgeo.schema import saved
from featgeo.tuning import in_force
from featgeo.watch import watched

# For time:
MOST_ORDER = 10**6  # steps back; sequences are shorter
MOST_WORK = 10**9  # multiplications of the decomposition of a table
MOST_STEPS = 1000  # of all networks together: 20 lengths, with 210 steps, take half a minute, and time grows with steps


@saved
@dataclass(eq=False, repr=False)
class SequentialDecomposition(TransformerMixin, Decomposition):
    """The dependence of each symbol on those before it, split by how far back one must look.

    Level t holds what functions of the last t symbols know about the next one and functions of the last t - 1 do not.
    A Markov chain of order t has nothing beyond level t.

    Args:
        order: How many symbols back to look. A list of them has one level for each length of history.
        n_modes: How many modes of each level to keep at most, "auto" for as many as raise the H-score on held-out rows,
            or "all" (with networks: as "auto").
        solver: "exact" (the table of all histories, by its counts alone: what never came has probability 0), "neural"
            (a causal network for each length of history), or "auto": while histories come back, tables whose
            estimates after rare histories lean on those after shorter ones, and causal networks beyond. Where every
            symbol followed every history at least five times, "auto" is the same as "exact".
        texts: Whether strings in a list or an array are texts, each a sequence of letters (True), or symbols of one
            sequence, such as words (False). It must be said where they are several and longer than a letter.
        random_state, training, device, ridge, time_limit, verbose: By name, as every estimator has them, see
            `featgeo.models.base.Decomposition`.

    Attributes:
        orders_: The length of history of each level.
        components_: The component of each level, by its length of history.
        energies_: Their energies on the rows of the fit.
        held_out_energies_: Their energies on held-out rows.
        alphabet_: The symbols, in order; None for numbers.
        solver_: The solver that was used.
    """

    order: int | Sequence[int] = 3
    n_modes: int | Literal["auto", "all"] = "all"
    solver: Solver = "auto"
    texts: bool | None = field(default=None, kw_only=True)

    orders_: tuple[int, ...] = field(init=False)
    learned_: Learned = field(init=False)
    calibration_: Calibration = field(init=False)

    counts: ClassVar[Mapping[str, tuple[str, ...]]] = {"n_modes": ("auto", "all")}
    component_name: ClassVar[str] = "order {}"
    feature_name: ClassVar[str] = "order{}_f{}"

    @watched
    def fit(self, sequences: Any, y: Any = None, sample_weight: Any = None) -> SequentialDecomposition:
        """Learn the component of each order.

        Args:
            sequences: One sequence of symbols or numbers, (length,); several of the same length, (n, length); or a list
                of sequences. A text is a sequence of letters; for several of them see `texts`. Every stretch of
                `order + 1` steps is a row.
            y: Nothing; there for scikit-learn.
            sample_weight: How often each sequence counts, whole numbers, one for each. Once when None.
        """
        plan = self._begin()
        self.orders_ = self._lengths()
        arrays = _as_sequences(sequences, self.texts, sample_weight)
        self.y_variable_ = Variable("next symbol", (_symbol(arrays),))
        windows = _windows(arrays, max(self.orders_) + 1)
        histories, following = self._histories(windows[:, :-1]), self.y_variable_.rows(windows[:, -1])
        check_not_constant(following, "The sequence")
        tables = self._has_tables(histories, following)
        setting = self._setting(histories, following, tables)
        if tables:
            values = np.unique(np.concatenate(arrays)) if self.alphabet_ is None else self.alphabet_
            symbols = self.y_variable_.rows(values)
            self.learned_, mass = learn_histories(histories, following, symbols, setting, plan)
            support = support_of(symbols.variable, symbols, self._g, plan.seed, finite=True)
            seen = np.flatnonzero(mass)
            self.support_ = replace(support, values=support.values[seen], mass=mass[seen], g=support.g[seen])
        else:
            self.learned_ = learn(Pairs(histories, following), setting, plan)
            self.support_ = support_of(following.variable, following, self._g, plan.seed)
        self.calibration_ = self._calibration(following, whole=tables and self.n_modes == "all")
        warn_of_doubts(self.components_.values(), "`given` is the distribution of all symbols")
        return self

    @property
    def energies_(self) -> Array:
        """Energies of the components on the rows of the fit."""
        return np.array([part.energy_ for part in self.components_.values()])

    @property
    def held_out_energies_(self) -> Array:
        """Their energies on held-out rows."""
        return np.array([part.held_out_energy_ for part in self.components_.values()])

    @property
    def alphabet_(self) -> np.ndarray | None:
        """The symbols, in order; None for numbers."""
        (symbol,) = self.y_variable_.columns
        if symbol.kind != "label":
            return None
        labels = [*symbol.categories, *([None] if symbol.missing else [])]
        alike = len({type(label) for label in labels}) == 1
        return np.array(labels, dtype=None if alike else object)

    def transform(self, histories: Any) -> Array:
        """Features of histories, (n, k): those of each level, side by side.

        Args:
            histories: The steps before the one of interest, oldest first, (n, at least the longest order).
        """
        return self._f(self._histories(self._last_steps(histories)))

    def given(self, histories: Any, calibrated: bool = True) -> Conditional:
        """The distribution of the next symbol after each history.

        Args:
            histories: The steps before it, oldest first, (n, at least the longest order).
            calibrated: Whether distributions are set right as held-out rows want it, and nothing is called impossible
                that the sample merely did not show; else they are the plain formula.
        """
        calibration = self.calibration_ if calibrated else Calibration()
        return calibration.given(self.support_, self.transform(histories) * self._sigma)

    def score(self, sequences: Any, y: Any = None, sample_weight: Any = None) -> float:
        """How well other sequences are predicted, more is better; so a search can choose the order.

        For symbols the mean log probability of each that has enough of them before it, in nats; those that the fit
        never saw are left out, with a warning. For numbers the H-score, half the energy that the features capture.

        Args:
            sequences: As in `fit`.
            y: Nothing; there for scikit-learn.
            sample_weight: How often each sequence counts, as in `fit`.
        """
        arrays = _as_sequences(sequences, self.texts, sample_weight)
        windows = _windows(arrays, max(self.orders_) + 1)
        following = self.y_variable_.rows(windows[:, -1])
        if self.support_.continuous:
            return h_score_on(following, self.transform(windows[:, :-1]), self._g, self._sigma)
        position = happened(following, self.support_)
        known = position >= 0
        if not known.all():
            warnings.warn(
                f"{np.count_nonzero(~known)} of {len(known)} symbols to predict were never seen in the fit and are "
                "left out of the score. Fit to sequences that show the whole alphabet.",
                stacklevel=2,
            )
        probability = self.given(windows[known, :-1]).proba()[np.arange(known.sum()), position[known]]
        with np.errstate(divide="ignore"):
            return float(np.log(probability).mean())

    @property
    def _names(self) -> tuple[int, ...]:
        return self.orders_

    def _has_tables(self, histories: Parts, following: Rows) -> bool:
        """Whether the longest histories come back often enough, and are few enough, for a table."""
        n_histories, m = self._sizes(histories, following, max(self.orders_))
        most = len(following) / max(in_force.get().rows_a_history, 1.0)
        return n_histories <= most and n_histories * m * min(n_histories, m) <= MOST_WORK

    def _sizes(self, histories: Parts, following: Rows, order: int) -> tuple[float, float]:
        """How many histories of a length a table would have, and symbols; no end of them where there is to be none."""
        if self.solver != "auto" or not is_finite(following):
            return (0, 0) if self.solver == "exact" else (np.inf, np.inf)
        past, symbols = symbol_keys(histories.of(*self._steps(order)).table), symbol_keys(following.table)
        return len(distinct(past)[0]), len(np.unique(symbols))

    def _calibration(self, following: Rows, whole: bool) -> Calibration:
        """As held-out rows want it; some of the modes may go below zero, so symbols need some of the prior mixed in.

        With all modes of tables (`whole`) nothing does: "auto" only calls no symbol impossible.
        """
        unseen, support = self.learned_.unseen, self.support_
        if whole:
            return Calibration(LinearLink(in_force.get().least_probability if self.solver == "auto" else 0.0))
        if unseen is None:
            return Calibration() if support.continuous else Calibration(LinearLink(1.0))
        at, link = happened(following.take(unseen.rows), support), None
        if not support.continuous:  # so many rows cannot call a symbol impossible
            share = best_share(Conditional(support, unseen.f).proba(), support.mass, at, support)
            link = LinearLink(max(share, 1 / (1 + len(at))))
        return Calibration.fit(support, unseen.f, at, link)

    def _setting(self, histories: Parts, following: Rows, tables: bool) -> Setting:
        """A level for each length of history: a table where counts are ample on average, else a network."""
        ample = min(MOST_SYMBOLS, len(following) / in_force.get().ample_count)
        short = {order: tables or np.prod(self._sizes(histories, following, order)) <= ample for order in self.orders_}
        blocks = {
            f"last {order}": Block("table" if is_short else "causal", of=self._steps(order))
            for order, is_short in short.items()
        }
        learned = [order for order, is_short in short.items() if not is_short]
        if sum(learned) > MOST_STEPS:
            # Each twice the one before, and the longest.
            some = sorted({learned[-1], *(1 << i for i in range(learned[-1].bit_length()))})
            raise ValueError(
                f"The {len(learned)} lengths of history from {learned[0]} to {learned[-1]} take a network each, of "
                f"{sum(learned)} steps in all, and at most {MOST_STEPS} can be learned. Name only some of the lengths, "
                f"such as order={some}, or use a smaller `order`."
            )
        steps = [Step(self.n_modes, (name,), ("y",) if i == 0 else ()) for i, name in enumerate(blocks)]
        return Setting(blocks, {"y": Block("auto")}, tuple(steps))

    @staticmethod
    def _steps(order: int) -> tuple[str, ...]:
        return tuple(f"{step} back" for step in range(1, order + 1))

    def _histories(self, histories: np.ndarray) -> Parts:
        """One variable for each step back, the latest first."""
        names = self._steps(histories.shape[1])
        (symbol,) = self.y_variable_.columns
        variables = [Variable(name, (replace(symbol, name=name),)) for name in names]
        return Parts({v.name: v.rows(column) for v, column in zip(variables, histories.T[::-1], strict=True)})

    def _last_steps(self, histories: Any) -> np.ndarray:
        symbols, longest = self.y_variable_.columns[0].categories, max(self.orders_)
        letters = all(isinstance(symbol, str) and len(symbol) == 1 for symbol in symbols)
        nested = isinstance(histories, list | tuple) and any(np.ndim(part) == 1 for part in histories[:1])
        several = nested or getattr(histories, "ndim", 1) > 1 or (letters and _all_strings(histories))
        steps = _as_sequences(histories, letters) if several else []
        if not steps or min(map(len, steps)) < longest:
            found = f"some of {sorted(set(map(len, steps)))[:5]}" if steps else f"shape {np.shape(histories)}"
            raise ValueError(
                f"Histories must have at least {longest} steps each, oldest first, shape (n, {longest}); got {found}. "
                "Leave out the short ones; for a single history pass [history]."
            )
        return np.stack([part[len(part) - longest :] for part in steps])  # what is further back says nothing

    def _lengths(self) -> tuple[int, ...]:
        """The lengths of history, from the arguments; with what else is special to them."""
        if self.solver == "closed":
            raise ValueError("`solver` must be 'auto', 'exact' or 'neural' here, got 'closed'.")
        if self.texts is not None:
            check_flag(self.texts, "texts")
        if isinstance(self.order, Integral):
            orders = tuple(range(1, check_whole(self.order, "order", 1, "Use 3.", MOST_ORDER) + 1))
        else:
            orders = tuple(self.order) if isinstance(self.order, Iterable) else ()
        if not orders or any(not is_whole(order) or order < 1 for order in orders):
            raise ValueError(f"`order` must be a whole number, at least 1, or a list of them, got {self.order!r}.")
        if list(orders) != sorted(set(orders)):
            raise ValueError(f"The lengths in `order` must rise, got {self.order!r}. Sort them.")
        return tuple(int(order) for order in orders)


def _as_sequences(sequences: Any, texts: bool | None, sample_weight: Any = None) -> list[np.ndarray]:
    """What a user handed in as one-dimensional arrays, each as often as it counts."""
    values = sequences.detach().cpu().numpy() if hasattr(sequences, "detach") else sequences
    values = [values] if isinstance(values, str) else values
    if not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0 or len(values) == 0:
        raise ValueError(f"Sequences must be a list or an array of symbols or of sequences, got {values!r}. Pass some.")
    if _all_strings(values):
        values = _letters_or_symbols(values, texts)
    values = values if isinstance(values, list | tuple) else np.asarray(values)
    arrays = [np.asarray(part) for part in (values if np.ndim(values[0]) == 1 else [values])]
    if any(array.ndim != 1 for array in arrays):
        raise ValueError(
            f"Sequences must have one symbol a step, (length,) or (n, length), got shape {np.shape(values)}. Pass a "
            "list of one-dimensional sequences."
        )
    return arrays if sample_weight is None else [arrays[i] for i in repeats(sample_weight, len(arrays))]


def _all_strings(values: Any) -> bool:
    listed = isinstance(values, list | tuple) or getattr(values, "ndim", 0) == 1
    return listed and all(isinstance(part, str) for part in values)


def _letters_or_symbols(strings: Any, texts: bool | None) -> Any:
    """Several strings are several texts, or one sequence; whatever holds them."""
    if texts is None:
        texts = len(strings) == 1
        longer = next((string for string in strings if len(string) > 1), None)
        if not texts and longer is not None:
            raise ValueError(
                f"{len(strings)} strings such as {str(longer)!r} can be the symbols of one sequence, or a text each. "
                "Pass texts=False for symbols, such as words, or texts=True for sequences of letters."
            )
    return [list(string) for string in strings] if texts else strings


def _symbol(arrays: list[np.ndarray]) -> Column:
    """What a step holds. Whole numbers and truth values are symbols; other numbers are numbers."""
    values = np.concatenate(arrays)
    values = values if values.dtype == object else np.unique(values)
    present = values[~missing_in(values)].tolist()
    whole = bool(present) and values.dtype.kind in "biuO" and all(isinstance(value, Integral) for value in present)
    came = RawColumn(values, tuple(sorted(set(present))) if whole else None)
    column = column_of("next symbol", came, "The sequence")
    if column.kind != "label" and column.missing:
        raise ValueError(
            "Numbers in a sequence must be finite, got some that miss (NaN or None). Fill the gaps, or cut there and "
            "pass the parts as a list."
        )
    return column


def _windows(arrays: list[np.ndarray], length: int) -> np.ndarray:
    short = [i for i, array in enumerate(arrays) if len(array) < length]
    if short:
        raise ValueError(
            f"Each sequence needs at least order + 1 = {length} steps; those at positions {short[:5]} are shorter "
            f"({len(arrays[short[0]])} steps in the first). Drop them, or use a smaller `order`."
        )
    return np.concatenate([np.lib.stride_tricks.sliding_window_view(array, length) for array in arrays])
