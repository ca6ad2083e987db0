"""Components of a dependence, as a fitted model shows them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from featgeo.card import Card, Shown
from featgeo.geometry.validation import Array
from featgeo.learning.learned import Component

SHOWN = 5  # singular values in a line of a report
ERRORS = 2.0  # standard errors by which held-out rows must differ before that counts


class FitWarning(UserWarning):
    """A fit found nothing, or held-out rows do not confirm what it found; `report()` says the same."""


@dataclass(frozen=True, eq=False, repr=False)
class DependenceComponent(Shown):
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

    @classmethod
    def of(cls, name: str, component: Component) -> DependenceComponent:
        """What a user wants to know of a learned component."""
        held_out, error = mean_and_error(component.held_out_sigma)
        energy, energy_error = mean_and_error(component.held_out_energies[:, None])
        total = float(np.sum(component.sigma**2))
        return cls(name, component.sigma, held_out, error, total, float(energy[0]), float(energy_error[0]))

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
        most = self.held_out_energy_ + ERRORS * self.held_out_energy_error_
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
class ComponentsReport(Shown):
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
        warnings.warn(doubt, FitWarning, stacklevel=3)


def mean_and_error(folds: Array) -> tuple[Array, Array]:
    """The mean over the folds, (k,), and its standard error; NaN where there are too few to tell."""
    none = np.full(folds.shape[1], np.nan)
    mean = folds.mean(axis=0) if len(folds) else none
    return mean, folds.std(axis=0, ddof=1) / np.sqrt(len(folds)) if len(folds) > 1 else none
