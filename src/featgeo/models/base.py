"""What every estimator has: its arguments, the beginning of a fit, a report that shows itself, names, a file.

The values of Y that a fitted model spreads probability over.

Components of a dependence, as a fitted model shows them.

What can be said about a fit: how strong on unseen rows, how orthogonal, how stable, how many rows behind it.
"""

from __future__ import annotations

import os
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from scipy.stats import t as student
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from featgeo.assembly import Conditional
from featgeo.assembly.links import MAX_ROWS, LinearLink, Support
from featgeo.card import Card
from featgeo.features.columns import UNKNOWN
from featgeo.features.devices import on_host
from featgeo.features.recipes import is_finite
from featgeo.features.spaces import FeatureFunction, check_not_constant
from featgeo.features.variables import Parts, Rows, Variable, distinct, symbol_keys
from featgeo.geometry.validation import Array, check_count, check_same_rows
from featgeo.learning.data import Pairs
from featgeo.learning.learned import Component, Learned
from featgeo.learning.setting import Plan
from featgeo.models.persistence import save
from featgeo.nesting.scores import h_score_of_modes
from featgeo.records import Records, Result
from featgeo.report import charts
from featgeo.schema import saved
from featgeo.tuning import in_force

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def support_of(variable: Variable, rows: Rows, g: FeatureFunction, seed: int, finite: bool | None = None) -> Support:
    """Labels, neighbourhoods of numbers, or rows of vectors, with g at each.

    Args:
        variable: How Y is given.
        rows: Rows of the fit.
        g: Features of Y.
        seed: Of the choice of rows.
        finite: Whether each number stands for itself only; decided by how many there are when None.
    """
    kinds: dict[str, Literal["labels", "numbers", "rows"]] = {"label": "labels", "number": "numbers"}
    kind = kinds.get(variable.columns[0].kind, "rows") if len(variable.columns) == 1 else "rows"
    names = variable.came or tuple(column.name for column in variable.columns) if kind == "rows" else ()
    if kind == "numbers" and not (is_finite(rows) if finite is None else finite):
        numbers, order = _in_order(rows.numbers[:, 0])
        return Support.of_numbers(variable.columns[0].as_came(numbers), lambda at: g(rows.take(order(at))))
    if kind != "rows" or (not variable.is_tensor and is_finite(rows)):
        first, _, counts = distinct(symbol_keys(rows.table))
        kept = rows.take(first)
        return Support(kind, _values(kept, kind), counts / counts.sum(), g(kept), names=names)
    if len(rows) > MAX_ROWS:
        rows = rows.take(np.sort(np.random.default_rng(seed).choice(len(rows), MAX_ROWS, replace=False)))
    features, n = g(rows), len(rows)
    centred = features - features.mean(axis=0)
    return Support("rows", np.asarray(rows.raw), np.full(n, 1 / n), centred, names=names)


def _in_order(numbers: torch.Tensor) -> tuple[Array, Callable[[np.ndarray], np.ndarray]]:
    """Numbers from the smallest to the largest, (n,), and from positions among them to where these were."""
    if numbers.device.type != "cpu":
        ordered, there = numbers.sort()
        return on_host(ordered), lambda at: there[torch.from_numpy(at)].cpu().numpy()
    here = np.argsort(numbers.numpy())  # sooner than torch
    return numbers.numpy()[here], lambda at: here[at]


def happened(y: Rows, support: Support) -> np.ndarray:
    """What Y was, (n,): for continuous numbers itself, for other single values its position in the support.

    The position of values that are not there is -1.
    """
    if support.kind == "rows":
        return np.zeros(len(y), dtype=int)  # nobody asks
    if support.continuous:
        return y.single_numbers
    position = {value: i for i, value in enumerate(support.values.tolist())}
    if not y.variable.labels:
        return np.array([position.get(number, -1) for number in y.single_numbers.tolist()])
    (column,) = y.variable.columns
    of_code = np.array([position.get(label, -1) for label in (*column.categories, None)] + [-1])  # the last: UNKNOWN
    return of_code[y.table.codes[:, 0]]


def _values(kept: Rows, kind: str) -> np.ndarray:
    """What the rows of a support are, as they came: whole numbers and truth values are such."""
    if kind == "numbers":
        numbers, came = kept.single_numbers, getattr(kept.raw, "dtype", None)
        return numbers.astype(came) if isinstance(came, np.dtype) and came.kind in "biu" else numbers
    if kind == "rows":
        return np.asarray(kept.raw)
    (column,) = kept.variable.columns
    every = [*column.categories, None]
    labels = [every[code] for code in kept.table.codes[:, 0]]
    values = np.array(labels)
    return values if values.dtype.kind in "biufUS" and not column.missing else np.array(labels, dtype=object)


SHOWN = 5  # singular values in a line of a report


class FitWarning(UserWarning):
    """A fit found nothing, or held-out rows do not confirm what it found; `report()` says the same."""


@dataclass(frozen=True, eq=False, repr=False)
class DependenceComponent(Result):
    """One component of the dependence, with its spectrum and its energy; print it for a line of text.

    Attributes:
        name: What it is.
        singular_values_: On the rows of the fit, (k,), strongest first.
        held_out_singular_values_: Correlations of f_i and g_i on rows held out from learning them, (k,).
        held_out_errors_: Their standard errors, (k,); NaN where a single part of the rows was held out.
        energy_: The squared norm of the component on the rows of the fit, sum_i sigma_i^2.
        held_out_energy_: The energy that the learned modes hold on held-out rows: an estimate from below, about 0 where
            there is nothing.
        held_out_energy_error_: Its standard error.
    """

    name: str
    singular_values_: Array
    held_out_singular_values_: Array
    held_out_errors_: Array
    energy_: float
    held_out_energy_: float
    held_out_energy_error_: float

    each: ClassVar[str] = "mode"

    @classmethod
    def of(cls, name: str, component: Component) -> DependenceComponent:
        """What a user wants to know of a learned component."""
        held_out, error = mean_and_error(component.held_out_sigma)
        energy, energy_error = map(float, mean_and_error(component.held_out_energies))
        return cls(name, component.sigma, held_out, error, float(np.sum(component.sigma**2)), energy, energy_error)

    @property
    def doubt(self) -> str | None:
        """What held-out rows have against the component; None where nothing."""
        if not len(self.singular_values_):
            return f"{self.name}: no mode was found that held-out rows confirm"
        if not np.isfinite(self.held_out_energy_):
            return None
        found = (
            f"{self.name}: the energy is {self.energy_:.4g} on the rows of the fit and {self.held_out_energy_:.4g} +- "
            f"{self.held_out_energy_error_:.2g} on held-out rows"
        )
        if abs(self.held_out_energy_) > len(self.singular_values_):
            return f"{found}, more than {len(self.singular_values_)} modes can hold: a few rows make it"
        most = self.held_out_energy_ + in_force.get().doubt_errors * self.held_out_energy_error_
        if most < 0:
            return f"{found}, less than without any mode"
        return f"{found}, less than half of it" if most < self.energy_ / 2 else None

    def card(self) -> Card:
        """Energy and strengths, in one line."""
        values = ", ".join(f"{sigma:.4f}" for sigma in self.singular_values_)
        line = (
            f"{self.name}: energy {self.energy_:.4f} (held-out {self.held_out_energy_:.4f} "
            f"+- {self.held_out_energy_error_:.4f}), singular values [{values}]"
        )
        return Card([line])


@dataclass(frozen=True, eq=False, repr=False)
class ComponentsReport(Result):
    """What the components of a fit hold; print it for a table.

    Attributes:
        components: Those that were learned.
        solver: How they were found.
        dropped: What held-out rows called worse than no dependence, and is therefore not there.
        notes: What else there is to say, a line each.
        posterior: With side information, how Y given X and S is assembled, and how it fares.
    """

    components: tuple[DependenceComponent, ...]
    solver: str
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    posterior: Any = None

    def records(self) -> Records:
        """A row for each component."""
        told = ("energy_", "held_out_energy_", "held_out_energy_error_")
        columns: dict[str, list[Any]] = {
            "component": [part.name for part in self.components],
            "modes": [len(part.singular_values_) for part in self.components],
            **{name[:-1]: [getattr(part, name) for part in self.components] for name in told},
        }
        return Records("Components", columns)

    def card(self) -> Card:
        """A row for each component."""
        rows = [
            (part.name, str(len(part.singular_values_)), f"{part.energy_:.4f}", f"{part.held_out_energy_:.4f}",
             f"{part.held_out_energy_error_:.4f}", ", ".join(f"{sigma:.4f}" for sigma in part.singular_values_[:SHOWN]))
            for part in self.components
        ]  # fmt: skip
        doubts = [*(part.doubt for part in self.components if part.doubt), *self.dropped]
        lines = [f"solver {self.solver}", *self.notes, *([] if self.posterior is None else [str(self.posterior)])]
        return Card(lines, ("", "modes", "energy", "held-out", "(s.e.)", "singular values"), rows, doubts)


def warn_of_doubts(components: Iterable[DependenceComponent], without_modes: str) -> None:
    """Warn where a fit found nothing at all, and of modes that held-out rows do not confirm.

    Args:
        components: Of a fit. That one of several is empty is an answer, not a doubt.
        without_modes: What `given` is then.
    """
    parts = list(components)
    doubts = [
        f"{part.doubt}. Allow fewer functions or modes, or pass more rows; see `report()`."
        for part in parts
        if len(part.singular_values_) and part.doubt
    ]
    if not any(len(part.singular_values_) for part in parts):
        doubts = [f"Held-out rows confirm no mode: {without_modes}. Pass more rows, or allow other functions."]
    for doubt in doubts:
        warnings.warn(doubt, FitWarning, stacklevel=_of_the_user())


def _of_the_user() -> int:
    """How many calls below the function that asks the user's own code is."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("featgeo."):
        frame, depth = frame.f_back, depth + 1
    return depth


def mean_and_error(folds: Array) -> tuple[Array, Array]:
    """The mean over the folds, (n, ...) -> (...), and its standard error; NaN where there are too few to tell."""
    none = np.full(folds.shape[1:], np.nan)
    mean = folds.mean(axis=0) if len(folds) else none
    return mean, folds.std(axis=0, ddof=1) / np.sqrt(len(folds)) if len(folds) > 1 else none


def interval_of(folds: Array) -> tuple[float, float]:
    """Where the mean of numbers of each fold, (n,), is believed to lie, by Student's t."""
    mean, error = map(float, mean_and_error(folds))
    reach = float(student.ppf((1 + in_force.get().confidence) / 2, max(len(folds) - 1, 1))) * error
    return mean - reach, mean + reach


# For time: rows that reports and figures look at.
SAMPLE_ROWS = 2000
NEGATIVE_MASS_ROWS = 500  # each costs as much as the support has values
PANEL_ROWS = 5000
# The look of figures:
MOST_BARS = 200  # of the most frequent labels
CURVE_POINTS = 300


@saved
@dataclass(frozen=True, eq=False)
class Panel:
    """Features of a variable in the form that a figure wants.

    Attributes:
        kind: "curve" over a number, "bars" over labels, or "rows", a sample of values.
        at: Numbers or labels, (m,); positions for a sample.
        values: Features there, (m, k).
    """

    kind: str
    at: np.ndarray
    values: Array


@saved
@dataclass(frozen=True, eq=False, repr=False)
class Report(Result):
    """Diagnostics of a fitted decomposition; print it for a table.

    Attributes:
        sigma: Singular values on the rows of the fit, (k,).
        held_out_sigma: Correlations of f_i and g_i on held-out rows, (k,): the mean over the folds.
        held_out_error: Its standard error, (k,); NaN where a single part of the rows was held out.
        held_out_score: H-score on held-out rows.
        effective_rows: How many rows each mode rests on, (k,): (sum f^2)^2 / sum f^4, or that of g if smaller. A mode
            of a few extreme rows shows here.
        blocks: First and last mode (counted from 1) of each group whose strengths cannot be told apart. Within a group
            single modes are arbitrary; only the group is meaningful.
        agreement: For each block, how well the span of its f is found again from other rows or restarts: the smallest
            cosine of an angle between the spans, over all of them. 1 is perfect.
        orthogonality: Largest deviation of E[f f^T] and E[g g^T] from the identity, over all rows of the fit.
        negative_mass: Mass of 1 + f.g below zero, the average over a sample of rows.
        n_rows: Rows of the sample behind `effective_rows`; at most 500 of them are behind `negative_mass`.
        solver: How it was solved.
        spaces: The spaces of X and of Y.
        ridge: The ridge that was chosen.
        doubts: What held-out rows have against the fit, in words; empty where nothing.
    """

    sigma: Array
    held_out_sigma: Array
    held_out_error: Array
    held_out_score: float
    effective_rows: Array
    blocks: tuple[tuple[int, int], ...]
    agreement: Array
    orthogonality: float
    negative_mass: float
    n_rows: int
    solver: str
    spaces: tuple[str, str]
    ridge: float
    doubts: tuple[str, ...] = ()

    each: ClassVar[str] = "mode"

    def card(self) -> Card:
        """Strengths with what held-out rows say of them, mode by mode."""
        block_of = {i: (block, cosine) for block, cosine in zip(self.blocks, self.agreement, strict=True)
                    for i in range(block[0], block[1] + 1)}  # fmt: skip
        lines = [
            f"{len(self.sigma)} mode{'s' * (len(self.sigma) != 1)}, solver {self.solver}, "
            f"spaces {self.spaces[0]} | {self.spaces[1]}, ridge {self.ridge:g}",
            f"held-out H-score {self.held_out_score:.4f}, orthogonality residual {self.orthogonality:.1e}, "
            f"negative mass {self.negative_mass:.1e}",
        ]
        rows = []
        for i, sigma in enumerate(self.sigma):
            (first, last), cosine = block_of[i + 1]
            strengths = (f"{value:.4f}" for value in (sigma, self.held_out_sigma[i], self.held_out_error[i]))
            block = f"{first}-{last}" if last > first else str(first)
            rows.append((str(i + 1), *strengths, f"{self.effective_rows[i]:,.0f}", block, f"{cosine:.4f}"))
        columns = ("mode", "sigma", "held-out", "(s.e.)", "rows behind", "block", "agreement")
        return Card(lines, columns, rows, self.doubts, self.sigma.tolist(), self.held_out_sigma.tolist())


def diagnose(
    learned: Learned, components: Mapping[str, DependenceComponent], support: Support, data: Pairs, seed: int
) -> Report:
    """Put together what the engine knows and what a sample of the rows shows, for the last component."""
    sample = data.sample(SAMPLE_ROWS, seed)
    component, shown = learned.components[-1], list(components.values())[-1]
    f, g = component.f(sample.x), component.g(sample.y)
    blocks = _blocks(component.sigma, component.held_out_sigma)
    return Report(
        sigma=component.sigma,
        held_out_sigma=shown.held_out_singular_values_,
        held_out_error=shown.held_out_errors_,
        held_out_score=shown.held_out_energy_ / 2,
        effective_rows=np.minimum(_effective(f), _effective(g)) * (len(data) / max(len(f), 1)),
        blocks=tuple((block[0] + 1, block[-1] + 1) for block in blocks),
        agreement=np.array([_agreement(component.rotations, block) for block in blocks]),
        orthogonality=learned.residual,
        negative_mass=float(LinearLink().negative_mass((f * component.sigma)[:NEGATIVE_MASS_ROWS], support).mean()),
        n_rows=len(f),
        solver=learned.solver,
        spaces=learned.spaces,
        ridge=learned.ridge,
        doubts=(*(part.doubt for part in components.values() if part.doubt), *learned.dropped),
    )


def panel(rows: Rows | Parts, features: FeatureFunction, seed: int) -> Panel:
    """Features of a variable over its values, or of a sample of its rows."""
    column = rows.variable.columns[0] if isinstance(rows, Rows) and len(rows.variable.columns) == 1 else None
    if isinstance(rows, Parts) or column is None or column.kind == "date":
        kept = np.random.default_rng(seed).choice(len(rows), min(len(rows), CURVE_POINTS), replace=False)
        return Panel("rows", np.arange(len(kept), dtype=np.float64), features(rows.take(np.sort(kept))))
    if column.kind == "number":
        numbers, first = np.unique(rows.table.numbers[:, 0], return_index=True)
        some = np.unique(np.linspace(0, len(numbers) - 1 - np.isnan(numbers[-1]), CURVE_POINTS).astype(int))
        # What no float can hold is shown from its smallest value on.
        return Panel("curve", replace(column, origin=0).as_came(numbers[some]), features(rows.take(first[some])))
    _, first, counts = np.unique(rows.table.codes[:, 0], return_index=True, return_counts=True)
    frequent = rows.take(first[np.sort(np.argsort(-counts, kind="stable")[:MOST_BARS])])
    return Panel("bars", _values(frequent, "labels"), features(frequent))


def _blocks(sigma: Array, folds: Array) -> list[range]:
    """Neighbours whose difference is within two standard errors of zero, the error read from the folds."""
    _, error = mean_and_error(folds[:, :-1] - folds[:, 1:])
    apart = sigma[:-1] - sigma[1:] > in_force.get().doubt_errors * np.nan_to_num(error) + 1e-8
    edges = dict.fromkeys([0, *(np.flatnonzero(apart) + 1).tolist(), len(sigma)])  # without modes there is one alone
    return [range(a, b) for a, b in pairwise(edges)]


def _agreement(rotations: Array, block: range) -> float:
    if len(rotations) == 0:
        return float("nan")
    inside = rotations[:, block.start : block.stop, block.start : block.stop]
    return float(np.linalg.svd(inside, compute_uv=False).min().clip(max=1))


def _effective(values: Array) -> Array:
    fourth = (values**4).sum(axis=0)
    return np.divide((values**2).sum(axis=0) ** 2, fourth, out=np.zeros(values.shape[1]), where=fourth > 0)


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
    component_name: ClassVar[str] = "{}"  # in words
    feature_name: ClassVar[str] = "{}{}"  # of a component's name and a position

    if not TYPE_CHECKING:  # who knows all attributes

        def __getattr__(self, name: str) -> Any:
            """Whoever asks for what a fit leaves, before one, is told so."""
            if name.endswith("_") and not name.startswith("_"):
                check_is_fitted(self)
            return object.__getattribute__(self, name)  # the error of Python, or that of a property

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
    def _names(self) -> Iterable[Any]:
        """What the components are called, in order."""

    @property
    def components_(self) -> dict[Any, DependenceComponent]:
        """The components of the dependence, by name."""
        named = zip(self._names, self._parts, strict=True)
        return {name: DependenceComponent.of(self.component_name.format(name), part) for name, part in named}

    @property
    def solver_(self) -> str:
        """The solver that was used."""
        return str(self._learned[0].solver)

    @property
    def spaces_(self) -> tuple[str, str]:
        """What the spaces of both sides are."""
        return self.learned_.spaces

    def report(self) -> Any:
        """What each component holds, on seen and on held-out rows, and what these have against the fit."""
        dropped = tuple(sentence for learned in self._learned for sentence in learned.dropped)
        return ComponentsReport(tuple(self.components_.values()), self.solver_, dropped)

    def plot(self) -> Figure:
        """A matplotlib figure of the energies of the components, on seen and on held-out rows; notebooks show it."""
        names, fitted, held_out, intervals = zip(*self._drawn_energies(), strict=True)
        return charts().energies(names, np.array(fitted), np.array(held_out), np.array(intervals))

    def _drawn_energies(self) -> Iterator[tuple[str, float, float, tuple[float, float]]]:
        """Names, energies on the rows of the fit, on held-out rows, and intervals of the latter."""
        for shown, part in zip(self.components_.values(), self._parts, strict=True):
            yield shown.name, shown.energy_, shown.held_out_energy_, interval_of(part.held_out_energies)

    @abstractmethod
    def given(self, *rows: Any, **options: Any) -> Conditional:
        """The distribution of Y for each row."""

    def predict(self, *rows: Any, **options: Any) -> np.ndarray:
        """What Y is to be expected in each row: E[Y|x] of numbers, (n,) or (n, columns); the most probable label.

        Args:
            *rows: Rows, as `given` takes them.
            **options: Also as those of `given`.
        """
        given = self.given(*rows, **options)
        return given.mean() if self._has_mean else given.map()

    @property
    def _has_mean(self) -> bool:
        """Whether Y is a number, or a vector of them; truth values are labels."""
        return self.support_.kind != "labels" and self.support_.values.dtype.kind in "iuf"

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features, in the order of the columns of `transform`."""
        named = zip(self._names, self._parts, strict=True)
        names = [self.feature_name.format(name, i + 1) for name, part in named for i in range(len(part))]
        return np.array(names, dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of tensors and JSON; `featgeo.load` reads it."""
        check_is_fitted(self)
        save(self, path)

    @property
    def _learned(self) -> tuple[Any, ...]:
        """What the engine handed on, of one solution or of several."""
        return self.learned_ if isinstance(self.learned_, tuple) else (self.learned_,)

    @property
    def _parts(self) -> tuple[Component, ...]:
        """The components as they were learned, in order."""
        return tuple(part for learned in self._learned for part in learned.components)

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
            check_not_constant(rows, name)


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
