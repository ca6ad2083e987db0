"""What can be said about a fit: how strong on unseen rows, how orthogonal, how stable, how many rows behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from featgeo.assembly import Conditional
from featgeo.assembly.support import Support
from featgeo.card import Card, Shown
from featgeo.features.functions import FeatureFunction
from featgeo.features.parts import Parts
from featgeo.features.variables import Rows, Variable
from featgeo.geometry.validation import Array
from featgeo.learning.data import Pairs
from featgeo.learning.learned import Learned
from featgeo.models.components import DependenceComponent, mean_and_error
from featgeo.schema import saved

SAMPLE_ROWS = 2000
NEGATIVE_MASS_ROWS = 500  # each costs as much as the support has values
PANEL_ROWS = 5000
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
class Report(Shown):
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
    component = learned.components[-1]
    f, g = component.f(sample.x), component.g(sample.y)
    folds = component.held_out_sigma
    held_out, error = mean_and_error(folds)
    blocks = _blocks(component.sigma, folds)
    return Report(
        sigma=component.sigma,
        held_out_sigma=held_out,
        held_out_error=error,
        held_out_score=float(component.held_out_energies.mean() / 2) if len(folds) else float("nan"),
        effective_rows=np.minimum(_effective(f), _effective(g)) * (len(data) / max(len(f), 1)),
        blocks=tuple((block[0] + 1, block[-1] + 1) for block in blocks),
        agreement=np.array([_agreement(component.rotations, block) for block in blocks]),
        orthogonality=learned.residual,
        negative_mass=Conditional(support, (f * component.sigma)[:NEGATIVE_MASS_ROWS]).negative_mass,
        n_rows=len(f),
        solver=learned.solver,
        spaces=learned.spaces,
        ridge=learned.ridge,
        doubts=(*(part.doubt for part in components.values() if part.doubt), *learned.dropped),
    )


def panel(rows: Rows | Parts, features: FeatureFunction, seed: int) -> Panel:
    """Features of a variable over its values, or of a sample of its rows."""
    variable = rows.variable if isinstance(rows, Rows) else Variable("several")
    if isinstance(rows, Rows) and len(variable.columns) == 1 and variable.columns[0].kind == "number":
        numbers, first = np.unique(rows.table.numbers[:, 0], return_index=True)
        some = np.unique(np.linspace(0, len(numbers) - 1 - np.isnan(numbers[-1]), CURVE_POINTS).astype(int))
        column = replace(variable.columns[0], origin=0)  # what no float can hold is shown from its smallest value on
        at = column.as_came(numbers[some])
        return Panel("curve", at, features(rows.take(first[some])))
    if isinstance(rows, Rows) and len(variable.columns) == 1 and variable.labels:
        codes, first, counts = np.unique(rows.table.codes[:, 0], return_index=True, return_counts=True)
        frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_BARS])
        codes, first = codes[frequent], first[frequent]
        names = [*variable.columns[0].categories, None]
        labels = np.empty(len(codes), dtype=object)
        labels[:] = [names[code] for code in codes]
        return Panel("bars", labels, features(rows.take(first)))
    rng = np.random.default_rng(seed)
    kept = rows.take(np.sort(rng.choice(len(rows), min(len(rows), CURVE_POINTS), replace=False)))
    values = features(kept)
    return Panel("rows", np.arange(len(values), dtype=np.float64), values)


def _blocks(sigma: Array, folds: Array) -> list[range]:
    """Neighbours whose difference is within two standard errors of zero, the error read from the folds."""
    if len(sigma) == 0:
        return []
    gaps = sigma[:-1] - sigma[1:]
    if len(folds) > 1:
        error = (folds[:, :-1] - folds[:, 1:]).std(axis=0, ddof=1) / np.sqrt(len(folds))
    else:
        error = np.zeros(len(gaps))
    edges = [0, *(np.flatnonzero(gaps > 2 * error + 1e-8) + 1).tolist(), len(sigma)]
    return [range(a, b) for a, b in pairwise(edges)]


def _agreement(rotations: Array, block: range) -> float:
    if len(rotations) == 0:
        return float("nan")
    inside = rotations[:, block.start : block.stop, block.start : block.stop]
    return float(np.linalg.svd(inside, compute_uv=False).min().clip(max=1))


def _effective(values: Array) -> Array:
    fourth = (values**4).sum(axis=0)
    return np.divide((values**2).sum(axis=0) ** 2, fourth, out=np.zeros(values.shape[1]), where=fourth > 0)
