"""Finite alphabets: all functions are allowed, and modes of tables of counts are judged by rows left out of them.

A table with hardly more rows than labels falls into parts that touch nowhere, and each of them is a mode of strength 1
on the rows of the fit, and of none on others. Such thin tables are shrunk towards no dependence, as if each label had
some more rows with the labels of all: with counts C, row sums a, column sums b, n rows in all and kappa further ones
for each label,

    (C - a b^T / n) / sqrt((a + kappa) (b + kappa)^T)

is decomposed: a ridge on the indicators. Held-out rows choose kappa, and the strength of a mode is the correlation that
they show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from featgeo.features.spaces import LearnedFunction, TableFunction, TableSpace
from featgeo.features.variables import deal
from featgeo.geometry.finite import FiniteJoint
from featgeo.geometry.spans import Modes, correlations, flag_from_gram, sign_of_columns
from featgeo.geometry.sparse import top_singular
from featgeo.geometry.validation import Array
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.learned import N_FOLDS, Component, Learned, Unseen, some_rows
from featgeo.learning.setting import ModeCount
from featgeo.learning.solve import MODE_COUNTS, Candidate, preferred
from featgeo.nesting.scores import h_score_of_modes

KAPPAS = (1.0, 4.0, 16.0, 64.0)  # few: held-out correlations are flat around their maximum


@dataclass(frozen=True, eq=False)
class Judged:
    """Modes by their values at symbols, and what held-out rows say about them (as in `Component`).

    Attributes:
        modes: From all rows.
        sigma: Held-out correlations, (folds, k).
        energies: Held-out energies, (folds,).
        rotations: Inner products with the functions of each fold, (folds, k, k).
        unseen: sigma f of each row by the modes that have not seen it, in the coordinates of the final g, (n, k).
    """

    modes: Modes
    sigma: Array
    energies: Array
    rotations: Array
    unseen: Array


@dataclass(frozen=True, eq=False)
class TableRows:
    """Rows of two finite variables, dealt into folds.

    Attributes:
        x: Position of each row's symbol of x, (n,).
        y: The same for y.
        fold_of_row: Shape (n,).
        x_shares: The probability of each symbol of x.
        y_shares: The same for y.
        own_energy: Whether modes count with the energy that they have on the rows they are from: where held-out rows
            of rare symbols are few, these would make it anything.
    """

    x: np.ndarray
    y: np.ndarray
    fold_of_row: np.ndarray
    x_shares: Array
    y_shares: Array
    own_energy: bool = False

    def counts(self) -> list[sparse.coo_array]:
        """Of all rows, and of all rows but those of each fold."""
        left_in = [self.fold_of_row != fold for fold in np.unique(self.fold_of_row)]
        size = (len(self.x_shares), len(self.y_shares))
        return [
            sparse.coo_array((np.ones(len(self.x[rows])), (self.x[rows], self.y[rows])), shape=size)
            for rows in (slice(None), *left_in)
        ]

    def held_out(self, parts: Sequence[Modes]) -> Iterator[tuple[np.ndarray, Modes]]:
        """The rows of each fold, and the modes of all others at them."""
        for fold, part in enumerate(parts):
            rows = self.fold_of_row == fold
            yield rows, Modes(part.sigma, part.f[self.x[rows]], part.g[self.y[rows]])

    def judged(self, modes: Modes, parts: Sequence[Modes], n_modes: ModeCount) -> Judged:
        """What held-out rows say about modes.

        Args:
            modes: From all rows.
            parts: From all rows but those of each fold.
            n_modes: How many to keep; "auto" for as many as raise the held-out H-score.
        """
        if n_modes == "auto":
            counts = sorted({*(k for k in MODE_COUNTS if k < len(modes)), len(modes)})
            n_modes = preferred([Candidate(k, k, self._scores([part.first(k) for part in parts])) for k in counts]).what
        whole, *parts = (one.first(len(modes) if n_modes == "all" else n_modes) for one in (modes, *parts))
        n_folds, k = len(parts), len(whole)
        unseen, sigma, rotations = np.zeros((len(self.x), k)), np.zeros((n_folds, k)), np.zeros((n_folds, k, k))
        for fold, (rows, at) in enumerate(self.held_out(parts)):
            part = parts[fold]
            sigma[fold, : len(part)] = correlations(at.f, at.g)[:k]
            unseen[rows] = (at.f * at.sigma) @ ((part.g * self.y_shares[:, None]).T @ whole.g)
            rotations[fold, : len(part)] = ((part.f * self.x_shares[:, None]).T @ whole.f)[:k]
        return Judged(whole, sigma, 2 * self._scores(parts, self.own_energy), rotations, unseen)

    def _scores(self, parts: Sequence[Modes], own_energy: bool = False) -> Array:
        """H-score of the modes of all other rows on each fold, (folds,)."""
        scores = []
        for _, at in self.held_out(parts):
            captured = np.mean((at.f - at.f.mean(axis=0)) * (at.g - at.g.mean(axis=0)), axis=0) @ at.sigma
            scores.append(captured - at.energy / 2 if own_energy else h_score_of_modes(at.f, at.g, at.sigma))
        return np.array(scores)


def learn_exact(data: Pairs | Stream, n_modes: ModeCount, seed: int, thin: bool = False) -> Learned:
    """The modes of the empirical distribution of two finite variables.

    Args:
        data: The rows.
        n_modes: How many modes at most.
        seed: Of the folds.
        thin: Whether rows are so few beside labels that modes are to be shrunk.
    """
    if isinstance(data, Stream):
        raise ValueError("The exact solver needs all rows in memory. Pass arrays, or use solver='closed'.")
    x_rows, y_rows = data.x.of("x"), data.y.of("y")
    x_space, y_space = TableSpace.fit(x_rows), TableSpace.fit(y_rows)
    for name, space in (("X", x_space), ("Y", y_space)):
        if len(space.shares) == len(data) > 2:
            raise ValueError(
                f"Every row of {name} has a value of its own, so a table of counts says nothing. Use solver='closed'."
            )
    fold_of_row = deal(len(data), N_FOLDS, seed)
    rows = TableRows(x_space.index(x_rows), y_space.index(y_rows), fold_of_row, x_space.shares, y_space.shares)
    most = {"auto": max(MODE_COUNTS), "all": min(len(x_space.shares), len(y_space.shares))}
    k = most[n_modes] if isinstance(n_modes, str) else n_modes
    modes, *parts = _thin_modes(rows, k) if thin else [FiniteJoint(counts).strongest(k) for counts in rows.counts()]
    judged = rows.judged(modes, parts, n_modes)
    functions = TableFunction(x_space, judged.modes.f), TableFunction(y_space, judged.modes.g)
    error = max(residual(judged.modes.f, rows.x_shares), residual(judged.modes.g, rows.y_shares))
    names = ("closed", "labels") if thin else ("exact", "table")
    return learned_tables([(judged, *functions)], seed, error, *names)


def learned_tables(
    levels: Sequence[tuple[Judged, LearnedFunction, LearnedFunction]],
    seed: int,
    residual: float,
    solver: str = "exact",
    space: str = "table",
) -> Learned:
    """The record of the modes of each level, with their functions f and g."""
    kept = some_rows(len(levels[0][0].unseen), seed)
    return Learned(
        tuple(Component(one.modes.sigma, f, g, one.sigma, one.energies, one.rotations) for one, f, g in levels),
        held_out_score=float(np.mean(sum(one.energies for one, *_ in levels)) / 2),
        solver=solver,
        spaces=(space, space),
        ridge=0.0,
        residual=residual,
        unseen=Unseen(kept, np.hstack([one.unseen for one, *_ in levels])[kept]),
    )


def residual(values: Array, shares: Array) -> float:
    """Largest deviation of E[f f^T] from the identity."""
    return float(np.abs((values * shares[:, None]).T @ values - np.eye(values.shape[1])).max(initial=0))


def _thin_modes(rows: TableRows, k: int) -> list[Modes]:
    """Modes of all rows, and of all rows but each fold, of which held-out rows show the strengths; at most k."""
    tables, found = rows.counts(), []
    for kappa in KAPPAS:
        parts = [_shrunken(counts, k, kappa) for counts in tables[1:]]
        shown = np.mean([correlations(at.f, at.g) for _, at in rows.held_out(parts)], axis=0).clip(min=0)
        found.append((float(np.square(shown).sum()), shown, kappa, parts))
    _, strength, kappa, parts = max(found, key=lambda tried: tried[0])
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
