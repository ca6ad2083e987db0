"""Finite alphabets: all functions are allowed, and modes of tables of counts are judged by rows left out of them.

A table with hardly more rows than labels falls into parts that touch nowhere, and each of them is a mode of strength 1
on the rows of the fit, and of none on others. Such thin tables are shrunk towards no dependence, as if each label had
some more rows with the labels of all: with counts C, row sums a, column sums b, n rows in all and kappa further ones
for each label,

    (C - a b^T / n) / sqrt((a + kappa) (b + kappa)^T)

is decomposed: a ridge on the indicators. Held-out rows choose kappa, and the strength of a mode is the correlation that
they show.

Tables of histories: the next symbol after the last t symbols, from counts, for growing t.

Counts after long histories are few. The estimate after a history h of t symbols leans on that after the last t - 1,

    p_t(y|h) = (max(c(h, y) - d, 0) + (a + d N(h)) ((1 - u) p_{t-1}(y|h) + u / m)) / (c(h) + a),

with N(h) the number of symbols, of m, that ever followed h: the rule of hierarchical Pitman-Yor processes, and for
d = 0, u = 1 that of adding a constant to all counts. It starts from the uniform distribution and the empty history. The
strength a, the discount d and the share u of each length minimise the log loss of stretches of rows that are left out
of all counts. Where cells hold enough rows for a chi-square test, counts need no help: a = d = 0, and everything is
exactly that of the empirical distribution.

The distribution P(h) p_T(y|h) of the longest histories and the next symbol is then decomposed exactly: level t is its
projection onto functions of the last t symbols, less that onto functions of fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy import sparse

from featgeo.features.combined import PartSpace
from featgeo.features.recipes import FREQUENT, has_rows_for_each
from featgeo.features.space import Space
from featgeo.features.spaces import TableSpace, table_function
from featgeo.features.variables import Candidate, Parts, Rows, deal, preferred
from featgeo.geometry.alphabet import Alphabet
from featgeo.geometry.finite import Dependence, FiniteJoint
from featgeo.geometry.spans import Modes, correlations, flag_from_gram, sign_of_columns
from featgeo.geometry.sparse import top_singular
from featgeo.geometry.validation import Array
from featgeo.learning.closed import Task
from featgeo.learning.data import Stream, some_rows
from featgeo.learning.learned import UNSEEN_ROWS, Component, Learned, Unseen, deviation
from featgeo.learning.setting import ModeCount, Plan, Setting
from featgeo.nesting.scores import h_score_of_modes
from featgeo.tuning import in_force


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of two finite variables, dealt into folds.

    Attributes:
        x: Position of each row's symbol of x, (n,).
        y: The same for y.
        fold_of_row: Shape (n,).
        x_space: The symbols of x, with their probabilities.
        y_space: The same for y.
        of: The variables of the side of x that its symbols belong to; all when none is named.
        own_energy: Whether modes count with the energy that they have on the rows they are from: where held-out rows
            of rare symbols are few, these would make it anything.
    """

    x: np.ndarray
    y: np.ndarray
    fold_of_row: np.ndarray
    x_space: TableSpace
    y_space: TableSpace
    of: tuple[str, ...] = ()
    own_energy: bool = False

    def counts(self) -> list[sparse.coo_array]:
        """Of all rows, and of all rows but those of each fold."""
        left_in = [self.fold_of_row != fold for fold in np.unique(self.fold_of_row)]
        size = (len(self.x_space.shares), len(self.y_space.shares))
        return [
            sparse.coo_array((np.ones(len(self.x[rows])), (self.x[rows], self.y[rows])), shape=size)
            for rows in (slice(None), *left_in)
        ]

    def held_out(self, parts: Sequence[Modes]) -> Iterator[tuple[np.ndarray, Modes]]:
        """The rows of each fold, and the modes of all others at them."""
        for fold, part in enumerate(parts):
            rows = self.fold_of_row == fold
            yield rows, Modes(part.sigma, part.f[self.x[rows]], part.g[self.y[rows]])

    def judged(self, modes: Modes, parts: Sequence[Modes], n_modes: ModeCount) -> tuple[Component, Array, float]:
        """What held-out rows say about modes.

        Args:
            modes: From all rows.
            parts: From all rows but those of each fold.
            n_modes: How many to keep; "auto" for as many as raise the held-out H-score.

        Returns:
            The component; sigma f of each row by the modes that have not seen it, in the coordinates of the final g,
            (n, k); and the largest deviation of f and g from orthonormality.
        """
        if n_modes == "auto":
            counts = sorted({*(k for k in in_force.get().mode_counts if k < len(modes)), len(modes)})
            n_modes = preferred([Candidate(k, k, self._scores([part.first(k) for part in parts])) for k in counts]).what
        whole, *parts = (one.first(len(modes) if n_modes == "all" else n_modes) for one in (modes, *parts))
        n_folds, k, x_shares, y_shares = len(parts), len(whole), self.x_space.shares, self.y_space.shares
        unseen, sigma, rotations = np.zeros((len(self.x), k)), np.zeros((n_folds, k)), np.zeros((n_folds, k, k))
        for fold, (rows, at) in enumerate(self.held_out(parts)):
            part = parts[fold]
            sigma[fold, : len(part)] = correlations(at.f, at.g)[:k]
            unseen[rows] = (at.f * at.sigma) @ ((part.g * y_shares[:, None]).T @ whole.g)
            rotations[fold, : len(part)] = ((part.f * x_shares[:, None]).T @ whole.f)[:k]
        f, g = table_function(self.x_space, whole.f, self.of), table_function(self.y_space, whole.g)
        energies = 2 * self._scores(parts, self.own_energy)
        grams = [(z * shares[:, None]).T @ z for z, shares in ((whole.f, x_shares), (whole.g, y_shares))]
        return Component(whole.sigma, f, g, sigma, energies, rotations), unseen, deviation(grams)

    def _scores(self, parts: Sequence[Modes], own_energy: bool = False) -> Array:
        """H-score of the modes of all other rows on each fold, (folds,)."""
        scores = []
        for _, at in self.held_out(parts):
            captured = np.mean((at.f - at.f.mean(axis=0)) * (at.g - at.g.mean(axis=0)), axis=0) @ at.sigma
            scores.append(captured - at.energy / 2 if own_energy else h_score_of_modes(at.f, at.g, at.sigma))
        return np.array(scores)


def learn_exact(task: Task) -> Learned:
    """The modes of the empirical distribution of two finite variables; shrunk where rows are few beside labels."""
    data, plan = task.data, task.plan
    if isinstance(data, Stream):
        raise ValueError("The exact solver needs all rows in memory. Pass arrays, or use solver='closed'.")
    x, y = sides = data.x.of("x"), data.y.of("y")
    x_space, y_space = spaces = [TableSpace.fit(side) for side in sides]
    for side, space in zip(sides, spaces, strict=True):
        check_repeats(side.variable.name, space, len(data))
    many = all(FREQUENT in recipes for recipes in task.recipes.values())
    thin = plan.solver == "auto" and many and not all(map(has_rows_for_each, sides))
    fold_of_row = deal(len(data), in_force.get().folds, plan.seed)
    rows = TableRows(x_space.index(x), y_space.index(y), fold_of_row, x_space, y_space)
    n_modes = task.setting.steps[0].n_modes
    most = {"auto": max(in_force.get().mode_counts), "all": min(len(space.shares) for space in spaces)}
    k = most[n_modes] if isinstance(n_modes, str) else n_modes
    modes, *parts = _thin_modes(rows, k) if thin else [FiniteJoint(counts).strongest(k) for counts in rows.counts()]
    return learned_tables([rows.judged(modes, parts, n_modes)], plan.seed, *(("closed", "labels") if thin else ()))


def check_repeats(name: str, space: TableSpace, n_rows: int) -> None:
    """Refuse a table of which every row has a symbol of its own."""
    if len(space.shares) == n_rows > 2:
        raise ValueError(
            f"Every row of {name} has a value of its own, so a table of counts says nothing. Use solver='closed', or "
            "'neural'."
        )


def table_of(space: Space) -> TableSpace | None:
    """The table that a space of a side is, if it is one."""
    table = space.space if isinstance(space, PartSpace) else space
    return table if isinstance(table, TableSpace) else None


def learned_tables(
    levels: Sequence[tuple[Component, Array, float]], seed: int, solver: str = "exact", space: str = "table"
) -> Learned:
    """The record of what `TableRows.judged` says of each level."""
    components, unseen, errors = zip(*levels, strict=True)
    kept = some_rows(len(unseen[0]), seed, UNSEEN_ROWS)
    return Learned(
        components,
        held_out_score=float(np.mean(sum(component.held_out_energies for component in components)) / 2),
        solver=solver,
        spaces=(space, space),
        ridge=0.0,
        residual=max(errors),
        unseen=Unseen(kept, np.hstack(unseen)[kept]),
    )


def _thin_modes(rows: TableRows, k: int) -> list[Modes]:
    """Modes of all rows, and of all rows but each fold, of which held-out rows show the strengths; at most k."""
    tables, found = rows.counts(), []
    for kappa in in_force.get().label_rows:
        parts = [_shrunken(counts, k, kappa) for counts in tables[1:]]
        shown = np.array([correlations(at.f, at.g) for _, at in rows.held_out(parts)])
        strength = shown.mean(axis=0).clip(min=0)
        energies = 2 * shown @ strength - strength @ strength  # of modes of that strength on each fold
        found.append(Candidate((strength, kappa, parts), 1, energies))
    strength, kappa, parts = preferred(found).what
    order = [i for i in np.argsort(-strength, kind="stable") if strength[i] > 0]
    return [
        Modes(strength[order], one.f[:, order], one.g[:, order]) for one in (_shrunken(tables[0], k, kappa), *parts)
    ]


def _shrunken(counts: sparse.coo_array, k: int, kappa: float) -> Modes:
    """Modes inside the best k functions of either label, normalised on the rows; 0 where there are fewer than k."""
    a, b, n = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    a_root, b_root = np.sqrt(a + kappa), np.sqrt(b + kappa)
    scaled = (sparse.diags_array(1 / a_root) @ counts @ sparse.diags_array(1 / b_root)).tocsr()
    k = min(k, min(counts.shape) - 1)
    u, _, v = top_singular(scaled, ((a / a_root / n)[:, None], (b / b_root)[:, None]), k, once=True)
    f, g = _whitened(u / a_root[:, None], a / n), _whitened(v / b_root[:, None], b / n)
    left, sigma, right = np.linalg.svd(f.T @ (counts @ g) / n, full_matrices=False)
    f, g = f @ left, g @ right.T
    sign, lacking = sign_of_columns(f), (0, k - len(sigma))
    return Modes(np.pad(sigma, lacking), *(np.pad(side * sign, ((0, 0), lacking)) for side in (f, g)))


def _whitened(values: Array, shares: Array) -> Array:
    """Functions of mean 0, uncorrelated and of unit variance with the same span, (labels, r)."""
    centred = values - shares @ values
    return centred @ flag_from_gram((centred * shares[:, None]).T @ centred, [centred.shape[1]]).basis


@dataclass(frozen=True)
class BackOff:
    """How far the counts after histories of one length are trusted; as they are by default.

    Attributes:
        strength: a, how many rows the estimate after shorter histories is worth.
        discount: d, what is taken off each count.
        uniform_share: u, what the uniform distribution is worth beside that estimate.
    """

    strength: float = 0.0
    discount: float = 0.0
    uniform_share: float = 0.0

    def __call__(self, counts: Array, total: Array, kinds: Array, shorter: Array, m: int) -> Array:
        """Probabilities of symbols.

        Args:
            counts: c(h, y).
            total: c(h).
            kinds: N(h).
            shorter: p_{t-1}(y|h).
            m: Number of symbols.
        """
        shorter = (1 - self.uniform_share) * shorter + self.uniform_share / m
        kept = (counts - self.discount).clip(min=0) + (self.strength + self.discount * kinds) * shorter
        rows = total + self.strength
        return np.where(rows > 0, kept / np.where(rows > 0, rows, 1), shorter)


@dataclass(frozen=True, eq=False)
class Histories:
    """Rows of histories of each length up to the longest, and of the symbol that followed.

    Attributes:
        of_row: For each length from 0 on the position of each row's history, (n,).
        parents: For each length from 1 on the position of each history without its oldest symbol.
        next: Position of each row's next symbol, (n,).
        m: Number of symbols.
    """

    of_row: list[np.ndarray]
    parents: list[np.ndarray]
    next: np.ndarray
    m: int

    @classmethod
    def of(cls, steps: Sequence[np.ndarray], following: np.ndarray, m: int) -> Histories:
        """From the positions of symbols.

        Args:
            steps: For each step back, the latest first, the symbol of each row, (n,).
            following: The next symbol of each row, (n,).
            m: Number of symbols.
        """
        of_row, parents = [np.zeros(len(following), dtype=np.int64)], []
        for step in steps:
            keys, inverse = np.unique(of_row[-1] * m + step, return_inverse=True)
            of_row.append(inverse)
            parents.append(keys // m)
        return cls(of_row, parents, following, m)

    def counts(self, rows: np.ndarray | slice = slice(None)) -> list[Array]:
        """For each length how often each symbol followed each history among some of the rows, (histories, m)."""
        sizes = [1, *map(len, self.parents)]
        cells = [(of_row * self.m + self.next)[rows] for of_row in self.of_row]
        return [
            np.bincount(cell, minlength=size * self.m).reshape(size, self.m).astype(np.float64)
            for cell, size in zip(cells, sizes, strict=True)
        ]

    def back_off(self, folds: Sequence[np.ndarray]) -> list[BackOff]:
        """For each length how far counts are to be trusted, by the log loss of folds that are left out of them."""
        result: list[BackOff] = []
        whole, without = self.counts(), [self.counts(~rows) for rows in folds]
        shorter = [np.full((1, self.m), 1 / self.m) for _ in folds]
        for length, parent in enumerate([np.zeros(1, dtype=np.int64), *self.parents]):
            left_in, shorter = [tables[length] for tables in without], [below[parent] for below in shorter]
            ample = length > 0 and _is_ample(whole[length])
            result.append(BackOff() if ample else _trusted(whole[length], left_in, shorter))
            # What is ample on the whole may still miss a symbol without one of the folds.
            trust = result[-1] if result[-1].strength else BackOff(in_force.get().history_rows[0])
            both = zip(left_in, shorter, strict=True)
            shorter = [trust(*_statistics(table), below, self.m) for table, below in both]
        return result

    def joint(self, trust: Sequence[BackOff], rows: np.ndarray | slice = slice(None)) -> Array:
        """The distribution of the longest histories and the next symbol, (histories, m), from some of the rows."""
        counts = self.counts(rows)
        probability = np.full((1, self.m), 1 / self.m)
        for table, parent, choice in zip(counts, [np.zeros(1, dtype=np.int64), *self.parents], trust, strict=True):
            probability = choice(*_statistics(table), probability[parent], self.m)
        return probability * counts[-1].sum(axis=1, keepdims=True) / len(self.next[rows])

    def decomposed(self, joint: Array, lengths: Sequence[int]) -> list[Modes]:
        """The modes of each level: functions f of the histories of its length, (histories, k), and g, (m, k).

        Args:
            joint: Of the longest histories and the next symbol.
            lengths: The length of history of each level, rising; the last is the longest.
        """
        tables = [joint]
        for parent in reversed(self.parents):
            tables.append(np.zeros((int(parent.max()) + 1, self.m)))
            np.add.at(tables[-1], parent, tables[-2])
        tables.reverse()
        y = Alphabet(("next",), tables[0][0])
        levels: list[Modes] = []
        ratio, length = np.zeros((1, self.m)), 0
        for after in lengths:
            for parent in self.parents[length:after]:
                ratio = ratio[parent]
            x = Alphabet(("history",), tables[after].sum(axis=1))
            now = Dependence.of_joint(tables[after], x, y).density
            levels += Dependence(x, y, y.vectors(x.vectors(now - ratio).T).T).components([None])
            ratio, length = now, after
        return levels


def learn_histories(
    histories: Parts, following: Rows, symbols: Rows, setting: Setting, plan: Plan
) -> tuple[Learned, Array]:
    """The components of each length of history, from tables.

    Args:
        histories: One variable for each step back, the latest first.
        following: The next symbol.
        symbols: A row of each symbol.
        setting: The levels; the last block of x that each adds reads all steps of it.
        plan: How to learn: exactly, or else estimates after rare histories lean on those after shorter ones.

    Returns:
        The components, and the probability of each symbol, (m,).
    """
    alphabet = TableSpace.fit(symbols)
    steps = [alphabet.index(rows) for rows in histories.rows.values()]
    data = Histories.of(steps, alphabet.index(following), len(alphabet.shares))
    names, n = [setting.x[step.x[-1]].of for step in setting.steps], len(following)
    spaces = [TableSpace.fit(histories.of(*part)) for part in names]
    check_repeats("a variable", spaces[-1], n)
    # Stretches, not single rows: neighbours are alike.
    fold_of_row = np.arange(n) * min(in_force.get().folds, n) // n
    folds = [fold_of_row == fold for fold in range(fold_of_row.max() + 1)]
    trust = [BackOff()] * len(data.of_row) if plan.solver == "exact" else data.back_off(folds)
    joints = [data.joint(trust), *(data.joint(trust, ~rows) for rows in folds)]
    found = zip(*(data.decomposed(joint, [len(part) for part in names]) for joint in joints), strict=True)
    mass = joints[0].sum(axis=0)
    levels = []
    for part, space, step, (whole, *parts) in zip(names, spaces, setting.steps, found, strict=True):
        # Symbols of a space are in order, and so are histories: the latest symbol counts first.
        of_row, next_symbol = data.of_row[len(part)], replace(alphabet, shares=mass)
        rows = TableRows(of_row, data.next, fold_of_row, space, next_symbol, part, own_energy=True)
        levels.append(rows.judged(whole, parts, step.n_modes))
    return learned_tables(levels, plan.seed), mass


def _statistics(counts: Array) -> tuple[Array, Array, Array]:
    """c(h, y), c(h) and N(h), each (histories, m)."""
    total, kinds = counts.sum(axis=1, keepdims=True), np.count_nonzero(counts, axis=1)[:, None]
    return counts, np.broadcast_to(total, counts.shape), np.broadcast_to(kinds, counts.shape)


def _trusted(counts: Array, left_in: Sequence[Array], shorter: Sequence[Array]) -> BackOff:
    """How far counts after histories of one length are to be trusted.

    Args:
        counts: Of all rows, (histories, m).
        left_in: For each fold those of all other rows.
        shorter: For each fold the estimate after shorter histories from all other rows.
    """
    cells = []
    for fold, (table, below) in enumerate(zip(left_in, shorter, strict=True)):
        at = np.nonzero(counts - table)  # where the fold itself has rows
        parts = (counts - table, *_statistics(table), below)
        cells.append((np.full(len(at[0]), fold), *(part[at] for part in parts)))
    of_fold, weight, c, total, kinds, beneath = map(np.concatenate, zip(*cells, strict=True))
    found: list[Candidate[BackOff]] = []
    options = in_force.get()
    grid = product(options.history_rows, options.history_discounts, options.history_uniform)
    for choice in (BackOff(*numbers) for numbers in grid):
        log_probability = np.log(choice(c, total, kinds, beneath, counts.shape[1]))
        found.append(Candidate(choice, 1, np.bincount(of_fold, weight * log_probability).astype(float)))
    return preferred(found).what


def _is_ample(counts: Array) -> bool:
    """Whether counts speak for themselves: few cells are expected to have few rows, and none of these is empty."""
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    enough = expected.min() >= 1 and np.mean(expected >= in_force.get().ample_count) >= in_force.get().ample_share
    return bool(enough and (counts[expected < in_force.get().empty_count] > 0).all())
