"""Which columns matter: how much of the dependence rests on each column of X.

With a_i = sigma_i f_i(x), the energy that functions a of X hold is E[a.g(Y)] on rows that they have not seen. The part
of it that some columns hold is that of E[a | columns], the projection of a onto their functions. So for a column

- *alone* is the energy of b = E[a | column], E[b.g];
- *added* is that of b = E[a | all columns] - E[a | all other columns], E[b.(g - E[a | all other columns])];
- *shared* by two columns is what each holds alone, together, less the energy of E[a | both]: above 0 where they say the
  same, below 0 where they tell more together than apart.

Projections are onto sums of smooth functions of single columns, and of products of those of two of the strongest. One
Gram matrix of all of them serves every set of columns. Copies of a column hold as much alone and add nothing.

None of this is cut off at 0. Each row is told by two sets of others that have no row in common: b comes from one of
them, what is taken off g from the other. Where a column says nothing, b follows noise that has no part in the rest of
the product, whose mean is 0 then. (In twice the H-score, E[2 b.g - |b|^2], noise counts against a column, the more the
more functions it has; were b and what is taken off from the same rows, noise of both would count in its favour.) Errors
are those of such products: of the judging rows, for g and for the projection of a alike, and of a, as if it had been
learned from as many other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from featgeo.assembly.conditional import Conditional
from featgeo.assembly.links import TINY, Support
from featgeo.card import Card
from featgeo.features.scored import Ranks, cosines_of, indicators, scored_columns
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.learning.data import Pairs, some_rows
from featgeo.learning.learned import Component
from featgeo.models.base import mean_and_error
from featgeo.records import Records, Result
from featgeo.report import charts
from featgeo.tuning import in_force

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JUDGING_ROWS = 4000  # for time
TEACHING = 2  # parts of the rows that the others are told by, twice, apart from each other: more cost time
PARTS = 2 * TEACHING + 1
REFITS = 3  # parts of the rows of a fit that it is made again without: for time
MOST_PAIRED = 8  # columns, the strongest, whose pairs are looked at: for time
SHOWN_COLUMNS, SHOWN_EFFECTS, SHOWN_MODES, SHOWN_LABELS = 12, 4, 3, 2  # of a figure: more cannot be read
STEPS = 20  # along a column, in a figure
Columns = tuple[int, ...]  # positions of columns


@dataclass(frozen=True, eq=False, repr=False)
class Importance(Result):
    """How much of the dependence each column of X carries, in all and for each mode; energies with standard errors.

    What holds nothing comes out as likely below 0 as above.

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


def importance_by_refits(
    x: Rows, y: Rows, without: Callable[[np.ndarray], tuple[Array, Array]], seed: int
) -> Importance:
    """The importance of the columns of X, by rows of a fit that is made again without some of them, a few times.

    Features that are cross-fitted do not suffice: those of any other row have seen the row that judges.

    Args:
        x: Rows of X.
        y: Rows of Y.
        without: From positions of rows to sigma_i f_i of all rows by a fit without those, and g_i, (n, k) each, the
            same g whatever rows are left out.
        seed: Of folds.
    """
    _check(x)
    fold_of_row = Pairs(x, y).folds(REFITS, seed)
    enough = max(1, min(REFITS, -(-REFITS * JUDGING_ROWS // len(fold_of_row))))
    told = [without(np.flatnonzero(fold_of_row == fold)) for fold in range(enough)]
    judging = np.flatnonzero(fold_of_row < enough)
    a = np.stack([a[judging] for a, _ in told])
    return importance_of(x.take(judging), a, told[0][1][judging], seed, fold_of_row[judging])


def importance_of(x: Rows, a: Array, g: Array, seed: int, unseen_by: np.ndarray | None = None) -> Importance:
    """The importance of the columns of X.

    Args:
        x: Rows of X.
        a: sigma_i f_i of these rows, by features that have not seen them, (n, k); or by several, each of which has not
            seen some of them, (several, n, k).
        g: g_i of their Y, (n, k).
        seed: Of folds.
        unseen_by: For each row which of several has not seen it, (n,).
    """
    _check(x)
    some = some_rows(len(g), seed, JUDGING_ROWS)
    by = np.zeros(len(some), dtype=int) if unseen_by is None else unseen_by[some]
    x, targets, g = x.take(some), Targets(np.reshape(a, (-1, *g.shape))[:, some], by), g[some]
    blocks: dict[Columns, Array] = {(i,): _functions(x.select([i])) for i in range(len(x.variable.columns))}
    every, folds = [i for (i,) in blocks], Pairs(x, x).folds(PARTS, seed)
    first, a = Projections.of(blocks, targets, folds), targets.own
    none = first.onto([])
    alone = [Energy.of(first.onto([i]), none, a, g) for i in every]
    strongest = np.argsort([-one.total[0] for one in alone], kind="stable")[:MOST_PAIRED]
    paired = list(combinations(np.sort(strongest).tolist(), 2))
    both = Projections.of(blocks | {pair: _products(*(blocks[i,] for i in pair)) for pair in paired}, targets, folds)
    whole, ridge = both.best(every)
    added = [Energy.of(whole, others, a, g) for others in both.without_each(every, ridge)]
    shared = [alone[i].rows + alone[j].rows - Energy.of(both.onto([i, j]), none, a, g).rows for i, j in paired]
    names = [column.name for column in x.variable.columns]
    energy, energy_error = Energy.of(whole, none, a, g).modes
    (held, held_error), (new, new_error) = (np.stack([one.modes for one in kind], axis=1) for kind in (alone, added))
    said, said_error = np.reshape([_energy_and_error(rows) for rows in shared], (len(paired), 2)).T
    return Importance(
        columns=tuple(names),
        energy=energy,
        energy_error=energy_error,
        alone=held,
        alone_error=held_error,
        added=new,
        added_error=new_error,
        pairs=tuple((names[i], names[j]) for i, j in paired),
        shared=said,
        shared_error=said_error,
        totals=np.array([(*one.total, *other.total) for one, other in zip(alone, added, strict=True)]),
    )


def _check(x: Rows) -> None:
    """Refuse rows whose columns nothing can be told of."""
    if x.variable.is_tensor:
        raise ValueError("Images, sequences and large sparse matrices have no columns whose importance could be told.")
    if len(x) < PARTS:
        raise ValueError(f"Importance needs {PARTS} rows or more, got {len(x)}. Pass more rows.")


@dataclass(frozen=True, eq=False)
class Energy:
    """What functions of some columns add to those of others.

    Attributes:
        modes: For each mode, and its standard error, (2, k).
        rows: For all modes: each row's part of it, and what each row adds to its error as one that judges, and as one
            that taught, (3, n).
    """

    modes: Array
    rows: Array

    @classmethod
    def of(cls, after: Array, before: Array, a: Array, g: Array) -> Energy:
        """From E[a | columns] with and without those that are added, twice each, (2, n, k), a, and g, (n, k)."""
        one, other = after - before
        told = (one * (g - before[1]) + other * (g - before[0])) / 2
        confirmed = np.clip(told.mean(axis=0) / (one * other).mean(axis=0).clip(min=TINY), 0, 1)
        b, both = (one + other) / 2, (after + before).mean(axis=0)
        parts = np.stack([told, b * (g + a - both), np.sqrt(confirmed) * b * (g - a)])
        return cls(np.stack(_energy_and_error(parts)), parts.sum(axis=-1))

    @property
    def total(self) -> tuple[float, float]:
        """In all modes, and its standard error."""
        mean, error = _energy_and_error(self.rows)
        return float(mean), float(error)


@dataclass(frozen=True, eq=False)
class Targets:
    """Functions to project, of which each row is told one set: by those that have not seen it.

    Attributes:
        values: Of all rows, (sets, n, k).
        unseen_by: The set of each row, (n,).
    """

    values: Array
    unseen_by: np.ndarray

    @property
    def every(self) -> Array:
        """All sets side by side, (n, sets k)."""
        return np.hstack(list(self.values))

    @property
    def own(self) -> Array:
        """What each row is told, (n, k)."""
        return self.of_own(self.every, slice(None))

    def of_own(self, every: Array, rows: Any) -> Array:
        """The same of values of all sets, for some rows, (rows, sets k)."""
        by_set = every.reshape(len(every), len(self.values), -1)
        return by_set[np.arange(len(every)), self.unseen_by[rows]]


@dataclass(frozen=True, eq=False)
class Projections:
    """Projections of some functions onto functions of any set of columns, from one Gram matrix for each part of rows.

    Attributes:
        columns: Which columns each feature reads.
        features: All of them, (n, p).
        targets: The functions.
        parts: For each: which rows it tells, as the first and as the second of two, and moments of the rows that teach
            it: mean of features and targets, Gram matrix, cross-moments.
    """

    columns: list[Columns]
    features: Array
    targets: Targets
    parts: list[tuple[list[np.ndarray], Array, Array, Array, Array]]

    @classmethod
    def of(cls, blocks: Mapping[Columns, Array], targets: Targets, fold_of_row: np.ndarray) -> Projections:
        """From functions of single columns and of pairs."""
        columns = [name for name, block in blocks.items() for _ in range(block.shape[1])]
        features, every, parts = np.hstack(list(blocks.values())), targets.every, []
        for fold in range(PARTS):
            taught = (fold - fold_of_row) % PARTS < TEACHING
            mean, middle = features[taught].mean(axis=0), every[taught].mean(axis=0)
            centred, wanted = features[taught] - mean, every[taught] - middle
            n = len(centred)
            judged = [fold_of_row == (fold + after) % PARTS for after in (1, 1 + TEACHING)]
            parts.append((judged, mean, middle, centred.T @ centred / n, centred.T @ wanted / n))
        return cls(columns, features, targets, parts)

    def onto(self, columns: Iterable[int]) -> Array:
        """E[targets | columns] of each row by those that teach it, (2, n, k), with the ridge that does best."""
        return self.best(columns)[0]

    def best(self, columns: Iterable[int]) -> tuple[Array, float]:
        """The same, and the ridge."""
        allowed = set(columns)
        kept = np.array([allowed.issuperset(names) for names in self.columns], dtype=bool)
        own = self.targets.own
        found = {ridge: np.empty((2, *own.shape)) for ridge in in_force.get().ridges}
        for judged, mean, middle, gram, cross in self.parts:
            part = gram[np.ix_(kept, kept)]
            weights = {ridge: np.linalg.solve(part + ridge * np.eye(len(part)), cross[kept]) for ridge in found}
            for which, rows in enumerate(judged):
                seen = self.features[np.ix_(rows, kept)] - mean[kept]
                for ridge, told in found.items():
                    told[which, rows] = self.targets.of_own(middle + seen @ weights[ridge], rows)
        lost = {ridge: float(np.square(own - told).sum()) for ridge, told in found.items()}
        ridge = min(lost, key=lost.__getitem__)
        return found[ridge], ridge

    def without_each(self, columns: Iterable[int], ridge: float) -> Iterator[Array]:
        """E[targets | all but one column], with this ridge, for each of these columns."""
        known = []
        for judged, mean, middle, gram, cross in self.parts:
            inverse = np.linalg.inv(gram + ridge * np.eye(len(gram)))
            known.append((inverse, inverse @ cross, middle, [(rows, self.features[rows] - mean) for rows in judged]))
        for column in columns:
            gone = np.array([column in names for names in self.columns], dtype=bool)
            told = np.empty((2, *self.targets.values.shape[1:]))
            for inverse, weight, middle, both in known:
                # What is best without some features, from the inverse of all: one elimination serves all columns.
                left = weight - inverse[:, gone] @ np.linalg.solve(inverse[np.ix_(gone, gone)], weight[gone])
                for which, (rows, seen) in enumerate(both):
                    told[which, rows] = self.targets.of_own(middle + seen @ left, rows)
            yield told


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
    means, errors = zip(*(mean_and_error(values[part]) for part in groups), strict=True)
    return column.name, np.asarray(at), shares, np.stack(means), np.stack(errors)


def _steps(number: Array) -> np.ndarray:
    """The step that each of some numbers is in, (n,): each of few values, or steps of about equal mass.

    None is of much fewer rows than others. Values that many rows share leave rests between them, of which a mean would
    tell nothing.
    """
    known = np.sort(number[~np.isnan(number)])
    starts = np.unique(known)
    if len(starts) > STEPS:  # the largest number belongs to the step below it
        starts = np.unique(np.quantile(known, np.linspace(0, 1, STEPS + 1)))[:-1]
    rows, kept = len(known) / (2 * STEPS), [0]
    for start in np.searchsorted(known, starts)[1:].tolist():
        if start - kept[-1] >= rows and len(known) - start >= rows:
            kept.append(start)
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


def _energy_and_error(parts: Array) -> tuple[Array, Array]:
    """Of energies, from `Energy.rows`, (3, n) or (3, n, k)."""
    told, judged, taught = parts
    return told.mean(axis=0), np.sqrt((judged.var(axis=0) + taught.var(axis=0)) / len(told))
