"""Modes of tables of counts, judged by rows that were left out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from featgeo.features.functions import LearnedFunction
from featgeo.geometry.modes import Modes, correlations
from featgeo.geometry.validation import Array
from featgeo.learning.choice import Candidate, preferred
from featgeo.learning.learned import Component
from featgeo.learning.plan import ModeCount
from featgeo.learning.solve import MODE_COUNTS
from featgeo.nesting.scores import h_score_of_modes


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

    def component(self, f: LearnedFunction, g: LearnedFunction) -> Component:
        """The record of a level."""
        return Component(self.modes.sigma, f, g, self.sigma, self.energies, self.rotations)


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

    def judged(self, modes: Modes, parts: Sequence[Modes], n_modes: ModeCount) -> Judged:
        """What held-out rows say about modes.

        Args:
            modes: From all rows.
            parts: From all rows but those of each fold.
            n_modes: How many to keep; "auto" for as many as raise the held-out H-score.
        """
        if not isinstance(n_modes, int):
            n_modes = self._as_many_as_help(len(modes), parts) if n_modes == "auto" else len(modes)
        whole, *parts = (one.first(n_modes) for one in (modes, *parts))
        n_folds, k = len(parts), len(whole)
        unseen, sigma, rotations = np.zeros((len(self.x), k)), np.zeros((n_folds, k)), np.zeros((n_folds, k, k))
        energies = np.zeros(n_folds)
        for fold, part in enumerate(parts):
            rows = self.fold_of_row == fold
            f, g = part.f[self.x[rows]], part.g[self.y[rows]]
            energies[fold] = 2 * h_score_of_modes(f, g, part.sigma)
            if self.own_energy:
                captured = np.mean((f - f.mean(axis=0)) * (g - g.mean(axis=0)), axis=0) @ part.sigma
                energies[fold] = 2 * captured - part.energy
            sigma[fold, : len(part)] = correlations(f, g)[:k]
            unseen[rows] = (f * part.sigma) @ ((part.g * self.y_shares[:, None]).T @ whole.g)
            rotations[fold, : len(part)] = ((part.f * self.x_shares[:, None]).T @ whole.f)[:k]
        return Judged(whole, sigma, energies, rotations, unseen)

    def _as_many_as_help(self, most: int, parts: Sequence[Modes]) -> int:
        candidates = []
        for k in sorted({*(k for k in MODE_COUNTS if k < most), most}):
            scores = []
            for fold, part in enumerate(parts):
                rows = self.fold_of_row == fold
                f, g = part.f[self.x[rows], :k], part.g[self.y[rows], :k]
                scores.append(h_score_of_modes(f, g, part.sigma[:k]))
            candidates.append(Candidate(k, k, np.array(scores)))
        return preferred(candidates).what


def residual(values: Array, shares: Array) -> float:
    """Largest deviation of E[f f^T] from the identity."""
    return float(np.abs((values * shares[:, None]).T @ values - np.eye(values.shape[1])).max(initial=0))
