"""Independence by features that are learned on one half of the rows and tested on the other, both ways.

Modes that one half teaches are an alternative to independence: the density ratio 1 + sum_i sigma_i f_i g_i. On the
other half they are given functions, and the test that is most powerful against this alternative, where it is close to
independence, is the one-sided test of the score

    T = E_n[a(X, Y)],    a(x, y) = sum_i w_i f_i(x) g_i(y),

with f_i and g_i centred on these rows and w_i the strengths of the modes. So all modes are tested together, the strong
ones more than the weak. Weights are the strengths on rows that the learning half held out from its own fit, so that
what it only learned by heart counts for nothing. Given the learned functions, arrangements of the held-out rows are
exact; for many rows T is normal.

The halves teach each other, so that their p-values may depend on each other in any way. Twice the smaller one is a
p-value whatever this dependence. So is twice their mean, but it asks both halves for evidence: one that learned
nothing, whose p-value is 1, would silence the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.base import clone

from featgeo.evidence.blocks import LIMIT_ROWS
from featgeo.evidence.null import AMPLE_COUNT
from featgeo.evidence.reading import varies
from featgeo.evidence.result import Evidence
from featgeo.evidence.shuffling import Shuffling, as_they_are
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array, shown
from featgeo.learning.data import Pairs
from featgeo.models import ModalDecomposition

FEWEST_ROWS = 20

Half = tuple[Rows, Rows]


def learned_evidence(x: Rows, y: Rows, model: ModalDecomposition | None, shuffling: Shuffling) -> Evidence:
    """Test the independence of two variables by modes learned on one half of the rows and tested on the other."""
    ways = []
    for seen, held_out in halves(x, y, shuffling.rng, "use method='smooth'"):
        if not all(map(varies, seen)):
            ways.append(Evidence(0.0, 1.0, "a half that never varies teaches no mode"))
            continue
        fitted = learned_on(model, seen)
        f, g = fitted.transform(*(rows.raw for rows in held_out))
        ways.append(score_evidence(f, g, mode_weights(fitted), shuffling))
    better = min(ways, key=lambda evidence: evidence.pvalue)
    return Evidence(better.statistic, min(1.0, 2 * better.pvalue), f"learned on halves: {better.method}")


def halves(x: Rows, y: Rows, rng: np.random.Generator, otherwise: str) -> tuple[tuple[Half, Half], tuple[Half, Half]]:
    """The rows parted in two at random, one half to learn from and one to test on, both ways.

    `otherwise` says what to do where they are too few.
    """
    n = len(x)
    if n < FEWEST_ROWS:
        raise ValueError(
            f"Learning on halves of the rows needs at least {FEWEST_ROWS} rows, got {n}. With so few, {otherwise}."
        )
    fold = Pairs(x, y).folds(2, int(rng.integers(2**31)))
    one, other = ((x.take(part), y.take(part)) for part in (np.flatnonzero(fold == i) for i in range(2)))
    return (one, other), (other, one)


def check_model(model: Any) -> None:
    """Refuse what is no model to learn with."""
    if model is not None and not isinstance(model, ModalDecomposition):
        raise ValueError(
            f"`model` must be a ModalDecomposition, got {shown(model)}. Leave it out for a default one, or write "
            "ModalDecomposition(n_modes=2)."
        )


def learned_on(model: ModalDecomposition | None, seen: Half) -> ModalDecomposition:
    """A clone of the model, or a default one, fitted to a half."""
    try:
        return clone(ModalDecomposition(random_state=0) if model is None else model).fit(*(rows.raw for rows in seen))
    except ValueError as reason:
        raise ValueError(
            f"A half of the rows cannot be learned from: {reason} A value that few rows have may be in the other half "
            "alone. Pass more rows, or merge rare values."
        ) from reason


def mode_weights(fitted: ModalDecomposition) -> Array:
    """Strengths on rows that the fit held out for itself, (k,); where none is left of these, those of its own rows."""
    held_out = np.clip(fitted.held_out_singular_values_, 0.0, None)
    return held_out if held_out.any() else fitted.singular_values_


def score_evidence(f: Array, g: Array, weights: Array, shuffling: Shuffling) -> Evidence:
    """Test whether given functions f_i of X and g_i of Y go together, one-sided.

    Args:
        f: Functions of X on n rows, (n, k).
        g: Functions of Y on the same rows, (n, k).
        weights: Weights w, (k,), at least 0.
        shuffling: Of the rows, where they are few.
    """
    n, name = len(f), f"{len(weights)} mode{'s' * (len(weights) != 1)}"
    left, right = (np.sqrt(weights) * (values - values.mean(axis=0)) for values in (f, g))
    spread = np.sqrt(np.sum((left.T @ left) * (right.T @ right)) / (n - 1))  # of n T over all arrangements
    if spread <= 1e-12 * n:
        return Evidence(0.0, 1.0, f"{name}, none of which varies")

    def of_orders(orders: np.ndarray) -> Array:
        return np.einsum("nk,bnk->b", left, right[orders]) / spread

    # |a|^2 <= |sqrt(w) f|^2 |sqrt(w) g|^2 bounds the kurtosis of a: with one mode it is the product of the two.
    fourth = np.prod([np.mean(np.square(np.square(side).sum(axis=1))) for side in (left, right)])
    if n <= LIMIT_ROWS or AMPLE_COUNT * fourth > n * (spread**2 / n) ** 2:
        return shuffling.evidence(of_orders, [np.arange(n)], f"{name}, {{}}arrangements of the rows")
    statistic = as_they_are(of_orders, n)
    return Evidence(statistic, float(norm.sf(statistic)), f"{name}, normal limit")
