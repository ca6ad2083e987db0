"""Which columns matter: how much of the dependence rests on each column of X.

With a_i = sigma_i f_i(x), the energy that functions a of X hold is E[2 a.g(Y) - |a|^2] on rows that they have not seen,
twice their H-score. The part of it that some columns hold is that of E[a | columns], the projection of a onto their
functions. So for a column

- *alone* is the energy of E[a | column];
- *added* is the energy of E[a | all columns] less that of E[a | all other columns], never less than 0 in all modes;
- *shared* by two columns is what each holds alone, together, less the energy of E[a | both]: above 0 where they say the
  same, below 0 where they tell more together than apart.

Projections are onto sums of smooth functions of single columns, and of products of those of two of the strongest. One
Gram matrix of all of them serves every set of columns; what is learned on one half of the rows is judged on the other.
Copies of a column hold as much alone and add nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from featgeo.assembly.conditional import Conditional
from featgeo.assembly.links import Support
from featgeo.card import Card
from featgeo.features.scored import Ranks, cosines_of, indicators, scored_columns
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.learning.data import Pairs, some_rows
from featgeo.learning.learned import Component
from featgeo.records import Records, Result
from featgeo.report import charts
from featgeo.tuning import in_force

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JUDGING_ROWS = 4000  # for time
PARTS = 2  # of the rows, each judged by what the other tells: for time
MOST_PAIRED = 8  # columns, the strongest, whose pairs are looked at: for time
SHOWN_COLUMNS, SHOWN_EFFECTS, SHOWN_MODES, SHOWN_LABELS = 12, 4, 3, 2  # of a figure: more cannot be read
STEPS = 20  # along a column, in a figure
Columns = tuple[int, ...]  # positions of columns


@dataclass(frozen=True, eq=False, repr=False)
class Importance(Result):
    """How much of the dependence each column of X carries, in all and for each mode; energies with standard errors.

    Attributes:
        columns: Names of the columns, (d,).
        energy: The energy of all columns together, for each mode, (k,).
        energy_error: Its standard error.
        alone: What each column holds by itself, (d, k).
        alone_error: Its standard error.
        added: What each column adds to all others, (d, k).
        added_error: Its standard error.
        pairs: Names of pairs of the strongest columns.
        shared: What they share, in all modes, (pairs,); below 0 where they tell more together than apart.
        shared_error: Its standard error.
        totals: For all modes together: alone, its error, added, its error, (d, 4).
    """

    columns: tuple[str, ...]
    energy: Array
    energy_error: Array
    alone: Array
    alone_error: Array
    added: Array
    added_error: Array
    pairs: tuple[tuple[str, str], ...]
    shared: Array
    shared_error: Array
    totals: Array

    @property
    def order(self) -> np.ndarray:
        """Positions of the columns, those that hold most first: the larger of what they hold alone and add."""
        return np.argsort(-np.maximum(self.totals[:, 0], self.totals[:, 2]), kind="stable")

    @property
    def clear(self) -> np.ndarray:
        """Positions of the columns that hold or add more than two standard errors, in that order."""
        errors = in_force.get().doubt_errors * self.totals[:, 1::2]
        return np.array([i for i in self.order if (self.totals[i, ::2] > errors[i]).any()], dtype=int)

    def records(self) -> Records:
        """A row for each column, in all and for each mode; the strongest columns first."""
        rows = [(name, "all", *self.totals[i]) for i, name in self._ordered()]
        for mode in range(len(self.energy)):
            parts = (self.alone, self.alone_error, self.added, self.added_error)
            rows += [(name, str(mode + 1), *(part[i, mode] for part in parts)) for i, name in self._ordered()]
        names = ("column", "mode", "alone", "alone_error", "added", "added_error")
        return Records("Importance", dict(zip(names, zip(*rows, strict=True), strict=True)))

    def card(self) -> Card:
        """The strongest columns, and the pairs that share most."""
        lines = [f"energy {self.energy.sum():.4f} of {len(self.columns)} columns, on rows that had no part in it"]
        rows = [(name, *(f"{value:.4f}" for value in self.totals[i])) for i, name in self._ordered()][:SHOWN_COLUMNS]
        clear = np.flatnonzero(np.abs(self.shared) > in_force.get().doubt_errors * self.shared_error)
        for i in clear[np.argsort(-np.abs(self.shared[clear]))][:3]:
            how = "share" if self.shared[i] > 0 else "tell more together, by"
            lines.append(f"{' and '.join(self.pairs[i])} {how} {abs(self.shared[i]):.4f} +- {self.shared_error[i]:.4f}")
        return Card(lines, ("column", "alone", "(s.e.)", "added", "(s.e.)"), rows)

    def plot(self) -> Figure:
        """A matplotlib figure: ranked bars of what columns hold alone and add to all others, with two errors."""
        order = self.order[:SHOWN_COLUMNS]
        return charts().importance([self.columns[i] for i in order], self.totals[order])

    def _ordered(self) -> Iterable[tuple[int, str]]:
        return ((int(i), self.columns[i]) for i in self.order)


def importance_of(x: Rows, a: Array, g: Array, seed: int) -> Importance:
    """The importance of the columns of X.

    Args:
        x: Rows of X.
        a: sigma_i f_i of these rows, by features that have not seen them, (n, k).
        g: g_i of their Y, (n, k).
        seed: Of folds.
    """
    if x.variable.is_tensor:
        raise ValueError("Images, sequences and large sparse matrices have no columns whose importance could be told.")
    some = some_rows(len(a), seed, JUDGING_ROWS)
    x, a, g = x.take(some), a[some], g[some]
    blocks: dict[Columns, Array] = {(i,): _functions(x.select([i])) for i in range(len(x.variable.columns))}
    every, folds = [i for (i,) in blocks], Pairs(x, x).folds(PARTS, seed)
    first = Projections.of(blocks, a, folds)
    alone = np.stack([_energies(first.onto([i]), g) for i in every])
    held = alone.sum(axis=-1).mean(axis=-1)
    paired = list(combinations(np.sort(np.argsort(-held, kind="stable")[:MOST_PAIRED]).tolist(), 2))
    both = Projections.of(blocks | {pair: _products(*(blocks[i,] for i in pair)) for pair in paired}, a, folds)
    whole, ridge = _energies(both.onto(every), g), both.best_ridge(every)
    added = whole - np.stack([_energies(both.onto([j for j in every if j != i], (ridge,)), g) for i in every])
    shared = [(alone[i] + alone[j] - _energies(both.onto([i, j]), g)).sum(axis=-1) for i, j in paired]
    (told, error), (total, total_error) = _mean_and_error(added, -2), _mean_and_error(added.sum(axis=-1))
    says = total > 0  # no column adds less than nothing: what lies below 0 is noise that its functions followed
    names = [column.name for column in x.variable.columns]
    return Importance(
        tuple(names),
        *_mean_and_error(whole, -2),
        *_mean_and_error(alone, -2),
        np.where(says[:, None], told, 0.0),
        error,
        tuple((names[i], names[j]) for i, j in paired),
        *_mean_and_error(np.reshape(shared, (len(paired), len(a)))),
        np.stack([*_mean_and_error(alone.sum(axis=-1)), np.where(says, total, 0.0), total_error], axis=1),
    )


@dataclass(frozen=True, eq=False)
class Projections:
    """Projections of some functions onto functions of any set of columns, from one Gram matrix for each half.

    Attributes:
        columns: Which columns each feature reads.
        features: All of them, (n, p).
        targets: The functions, (n, k).
        halves: For each part of the rows: which these are, and the moments of all others: mean of features and targets,
            Gram matrix, cross-moments.
    """

    columns: list[Columns]
    features: Array
    targets: Array
    halves: list[tuple[np.ndarray, Array, Array, Array, Array]]

    @classmethod
    def of(cls, blocks: Mapping[Columns, Array], targets: Array, fold_of_row: np.ndarray) -> Projections:
        """From functions of single columns and of pairs."""
        columns = [name for name, block in blocks.items() for _ in range(block.shape[1])]
        features, halves = np.hstack(list(blocks.values())), []
        for fold in np.unique(fold_of_row):
            own = fold_of_row == fold
            mean, middle = features[~own].mean(axis=0), targets[~own].mean(axis=0)
            centred, wanted = features[~own] - mean, targets[~own] - middle
            n = len(centred)
            halves.append((own, mean, middle, centred.T @ centred / n, centred.T @ wanted / n))
        return cls(columns, features, targets, halves)

    def onto(self, columns: Iterable[int], ridges: tuple[float, ...] = ()) -> Array:
        """E[targets | columns] of each row by the others, (n, k), with the ridge that does best; 0 if none helps."""
        return min(self._found(columns, ridges).values(), key=self._lost)

    def best_ridge(self, columns: Iterable[int]) -> float:
        """The ridge of `onto`; infinite where none helps."""
        return min((self._lost(told), ridge) for ridge, told in self._found(columns, ()).items())[1]

    def _lost(self, told: Array) -> float:
        return float(np.square(self.targets - told).sum())

    def _found(self, columns: Iterable[int], ridges: tuple[float, ...]) -> dict[float, Array]:
        """The projections by ridge."""
        allowed = set(columns)
        kept = np.array([allowed.issuperset(names) for names in self.columns], dtype=bool)
        found = {np.inf: np.zeros_like(self.targets)}
        finite = [ridge for ridge in ridges or in_force.get().ridges if np.isfinite(ridge)]
        for ridge in finite if kept.any() else ():
            found[ridge] = np.empty_like(self.targets)
            for own, mean, middle, gram, cross in self.halves:
                part = gram[np.ix_(kept, kept)]
                weight = np.linalg.solve(part + ridge * np.eye(len(part)), cross[kept])
                found[ridge][own] = middle + (self.features[own][:, kept] - mean[kept]) @ weight
        return found


def effects_of(
    x: Rows, importance: Importance, modes: Component, given: Conditional, support: Support
) -> tuple[list[str], list[tuple[str, np.ndarray, Array, Array, Array]]]:
    """What a figure of effects shows: means along the columns that matter.

    Args:
        x: Rows of X.
        importance: Of its columns.
        modes: The functions of X.
        given: The distributions of Y.
        support: Its values.

    Returns:
        What is averaged, and for each column its name, places or labels (m,), their shares of the rows (m,), and the
        means there with their standard errors (m, what is averaged).
    """
    f = modes.f(x)
    titles, values = [f"$f_{{{i + 1}}}$" for i in range(min(f.shape[1], SHOWN_MODES))], f[:, :SHOWN_MODES]
    if support.kind == "numbers":
        titles, values = [*titles, "E[Y | x]"], np.column_stack([values, given.mean()])
    elif support.kind == "labels":
        often = np.argsort(-support.mass, kind="stable")[:SHOWN_LABELS]
        titles = [*titles, *(f"P({support.values[i]} | x)" for i in often)]
        values = np.column_stack([values, given.proba()[:, often]])
    shown = importance.clear if len(importance.clear) else importance.order[:1]
    return titles, [_along(x, int(i), values) for i in shown[:SHOWN_EFFECTS]]


def _along(x: Rows, position: int, values: Array) -> tuple[str, np.ndarray, Array, Array, Array]:
    """Means of values, (n, c), along a column: over steps of equal mass of a number, for each frequent label."""
    column, table = x.variable.columns[position], x.select([position]).table
    if column.kind == "label":
        names = np.array([*map(str, column.categories), "missing", "unknown"])
        code = np.where(table.codes[:, 0] < 0, len(names) - 1, table.codes[:, 0])
        kept = [i for i in np.argsort(-np.bincount(code, minlength=len(names)))[:STEPS].tolist() if (code == i).any()]
        groups, at = [code == i for i in sorted(kept)], names[sorted(kept)]
    else:
        number = table.numbers[:, 0]
        step = np.where(np.isnan(number), -1, _steps(number))
        groups = [step == i for i in np.unique(step[step >= 0])]
        at = column.as_came(np.array([number[part].mean() for part in groups]))
    shares = np.array([part.mean() for part in groups])
    means, errors = zip(*(_mean_and_error(values[part], axis=0) for part in groups), strict=True)
    return column.name, np.asarray(at), shares, np.stack(means), np.stack(errors)


def _steps(number: Array) -> np.ndarray:
    """The step that each of some numbers is in, (n,): steps of about equal mass, none of much less than others.

    Values that many rows share leave rests between them, of which a mean would tell nothing.
    """
    edges = np.unique(np.nanquantile(number, np.linspace(0, 1, STEPS + 1)))[:-1]
    known = np.sort(number[~np.isnan(number)])
    rows, kept = len(known) / (2 * STEPS), [0]
    for i, start in enumerate(np.searchsorted(known, edges)):
        if i and start - kept[-1] >= rows and len(known) - start >= rows:
            kept.append(int(start))
    return np.searchsorted(known[kept], number, side="right") - 1


def _functions(x: Rows) -> Array:
    """Smooth functions of a single column, or one for each of its frequent labels, (n, p), of unit variance."""
    parts, options = [np.empty((len(x), 0))], in_force.get()
    for column in scored_columns(x.table):
        if isinstance(column, Ranks):
            waves = cosines_of(column.values, options.sum_functions)
            own = np.hstack([column.scores[:, None], waves[:, 1:], waves[:, :1]])  # a line and a curve first
            parts += [own, _products(own, own)]  # as products with a copy: those tell nothing new
        else:
            parts.append(indicators(column, options.probe_symbols))
    features = np.hstack(parts)
    spread = features.std(axis=0)
    return (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]


def _products(one: Array, other: Array) -> Array:
    """Products of the first functions of two columns, (n, p)."""
    most = in_force.get().interaction_functions
    return np.einsum("na,nb->nab", one[:, :most], other[:, :most]).reshape(len(one), -1)


def _energies(b: Array, g: Array) -> Array:
    """2 b g - b^2, by row and mode, (n, k)."""
    return 2 * b * g - b**2


def _mean_and_error(values: Array, axis: int = -1) -> tuple[Array, Array]:
    """Over the rows, which lie along an axis."""
    return values.mean(axis=axis), values.std(axis=axis) / np.sqrt(values.shape[axis])
