"""Modes that are learned on one half of the rows and measured on the other, both ways: a test, and a spectrum.

Modes that one half teaches are an alternative to independence: the density ratio 1 + sum_i sigma_i f_i g_i. On the
other half they are given functions, and the test that is most powerful against this alternative, where it is close to
independence, is the one-sided test of the score

    T = E_n[a(X, Y)],    a(x, y) = sum_i w_i f_i(x) g_i(y),

with f_i and g_i centred on these rows and w_i the strengths of the modes. So all modes are tested together, the strong
ones more than the weak. Weights are the strengths on rows that the learning half held out from its own fit, so that
what it only learned by heart counts for nothing. Given the learned functions, arrangements of the held-out rows are
exact; for many rows T is normal.

The correlation r of a single pair f_i and g_i is an ordinary correlation of two given functions. Its standard error
comes from its influence function, u v - r (u^2 + v^2) / 2 with u and v the standardised f_i and g_i.

The halves teach each other, so that what they say may depend on each other in any way (in the span of one feature a
side, chance gives both the same sign). So it is combined by rules that hold under any dependence. Twice the smaller of
two p-values is a p-value; so is twice their mean, which asks both halves for evidence: of a single mode it should, but
in a test of all a half that learned nothing, whose p-value is 1, would silence the other. The standard error of an
average is at most the average of the standard errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.base import clone

from featgeo.card import Card
from featgeo.evidence.blocks import LIMIT_ROWS
from featgeo.evidence.shuffling import (
    Evidence,
    Shuffling,
    permutation_pvalue,
    read_rows,
    rests_on_few_rows,
)
from featgeo.features.spaces import varies
from featgeo.features.variables import Model, Rows, in_turn
from featgeo.geometry.validation import Array, check_level, shown
from featgeo.learning.data import Pairs
from featgeo.models import ModalDecomposition
from featgeo.records import Result
from featgeo.tuning import in_force

Half = tuple[Rows, Rows]


def learned_evidence(x: Rows, y: Rows, model: ModalDecomposition | None, shuffling: Shuffling) -> Evidence:
    """Test the independence of two variables by modes learned on one half of the rows and tested on the other."""
    ways = []
    taught = on_halves(
        x,
        y,
        lambda seen: learned_on(model, seen) if all(map(varies, seen)) else None,
        shuffling.rng,
        "use method='smooth'",
    )
    for fitted, held_out in taught:
        if fitted is None:
            ways.append(Evidence(0.0, 1.0, "a half that never varies teaches no mode"))
            continue
        f, g = fitted.transform(*(rows.raw for rows in held_out))
        weights = fitted.held_out_singular_values_.clip(min=0.0)  # where none is left of these, those of its own rows
        ways.append(score_evidence(f, g, weights if weights.any() else fitted.singular_values_, shuffling))
    better = min(ways, key=lambda evidence: evidence.pvalue)
    return Evidence(better.statistic, min(1.0, 2 * better.pvalue), f"learned on halves: {better.method}")


def on_halves(
    x: Rows, y: Rows, learned: Callable[[Half], Model], rng: np.random.Generator, otherwise: str
) -> Iterator[tuple[Model, Half]]:
    """What is learned on one half of the rows, parted at random, and the rows of the other; both ways.

    `otherwise` says what to do where they are too few.
    """
    n, fewest = len(x), 2 * in_force.get().rows_a_function  # for one function to learn, and to show it
    if n < fewest:
        raise ValueError(
            f"Learning on halves of the rows needs at least {fewest} rows, got {n}. With so few, {otherwise}."
        )

    def without(rows: np.ndarray) -> Model:
        others = np.delete(np.arange(n), rows)
        return learned((x.take(others), y.take(others)))

    for model, rows in in_turn(Pairs(x, y).folds(2, int(rng.integers(2**31))), without):
        yield model, (x.take(rows), y.take(rows))


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


def score_evidence(f: Array, g: Array, weights: Array, shuffling: Shuffling) -> Evidence:
    """Test whether given functions f_i of X and g_i of Y go together, one-sided.

    Args:
        f: Functions of X on n rows, (n, k).
        g: Functions of Y on the same rows, (n, k).
        weights: Weights w, (k,), at least 0.
        shuffling: Of the rows, where they are few.
    """
    n, name = len(f), f"{len(weights)} mode{'s' * (len(weights) != 1)}, "
    left, right = (np.sqrt(weights) * (values - values.mean(axis=0)) for values in (f, g))
    spread = np.sqrt(np.sum((left.T @ left) * (right.T @ right)) / (n - 1))  # of n T over all arrangements
    if spread <= 1e-12 * n:
        return Evidence(0.0, 1.0, f"{name}none of which varies")

    def of_orders(orders: np.ndarray) -> Array:
        return np.einsum("nk,bnk->b", left, right[orders]) / spread

    # |a|^2 <= |sqrt(w) f|^2 |sqrt(w) g|^2 bounds the kurtosis of a: with one mode it is the product of the two.
    fourth = np.prod([np.mean(np.square(np.square(side).sum(axis=1))) for side in (left, right)])
    few = n <= LIMIT_ROWS or in_force.get().ample_count * fourth > n * (spread**2 / n) ** 2
    return shuffling.evidence(of_orders, [np.arange(n)], name, None if few else (norm.sf, "normal limit"))


@dataclass(frozen=True, eq=False, repr=False)
class HeldOutSpectrum(Result):
    """Strengths of modes on rows that had no part in learning them; print it for a table.

    Attributes:
        sigma: Correlation of f_i and g_i on held-out rows, the average of both parts, (k,).
        low: Lower ends of the confidence intervals, (k,).
        high: Upper ends, (k,).
        pvalue: For each mode, how often chance alone gives as strong a mode where there is none, (k,).
        n_rows: Rows of both parts together.
        level: Of the intervals.
    """

    sigma: Array
    low: Array
    high: Array
    pvalue: Array
    n_rows: int
    level: float = 0.95

    each: ClassVar[str] = "mode"

    def card(self) -> Card:
        """A row for each mode."""
        figures = zip(self.sigma, self.low, self.high, self.pvalue, strict=True)
        rows = [
            (str(i), f"{sigma:.3f}", f"[{low:6.3f}, {high:6.3f}]", f"{pvalue:.3g}")
            for i, (sigma, low, high, pvalue) in enumerate(figures, start=1)
        ]
        columns = ("mode", "sigma", f"{self.level:.0%} interval", "p-value")
        return Card([f"{self.n_rows:,} rows, each held out once"], columns, rows)


def held_out_spectrum(
    X: Any,
    Y: Any,
    model: ModalDecomposition | None = None,
    level: float = 0.95,
    *,
    n_permutations: int = 999,
    random_state: Any = None,
) -> HeldOutSpectrum:
    """Learn modes on one half of the rows, measure them on the other, and the other way round.

    Args:
        X: Rows of X, as `ModalDecomposition.fit` takes them.
        Y: Rows of Y, in the same order.
        model: A `ModalDecomposition` to learn with; it is cloned and not changed. A default one when None.
        level: Of the confidence intervals.
        n_permutations: Random arrangements that the modes of a half are compared with, where rows are few; no p-value
            is then below 2 / (n_permutations + 1).
        random_state: Seed of the halves and of shuffling; None is always the same.

    Returns:
        For each mode its held-out correlation, a confidence interval and a p-value. They speak of the modes that half
        of the rows teach; those of a fit to all rows are, if anything, stronger. Where strengths lie close together the
        order of modes is arbitrary, and only the group is meaningful.
    """
    check_level(level, "level", "0.95 is usual.")
    shuffling = Shuffling.of(n_permutations, random_state)
    check_model(model)
    x, y = read_rows(X=X, Y=Y)
    ask = "ask `independence_test` whether there is any dependence"
    ways = on_halves(x, y, partial(learned_on, model), shuffling.rng, ask)
    measured = [_measured(*fitted.transform(a.raw, b.raw), shuffling=shuffling) for fitted, (a, b) in ways]
    k = min(part.shape[1] for part in measured)
    sigma, error, pvalue = np.mean([part[:, :k] for part in measured], axis=0)
    inside = sigma.clip(-1 + 1e-12, 1 - 1e-12)
    # On Fisher's scale, so that intervals stay between -1 and 1.
    reach = student.ppf((1 + level) / 2, len(x) // 2 - 2) * error / (1 - inside**2)
    low, high = np.tanh(np.arctanh(inside) - reach), np.tanh(np.arctanh(inside) + reach)
    return HeldOutSpectrum(sigma, low, high, (2 * pvalue).clip(max=1), len(x), level)


def _measured(f: Array, g: Array, *, shuffling: Shuffling) -> Array:
    """Correlations of f_i and g_i on held-out rows, their standard errors, and one-sided p-values, (3, k)."""
    u, v = ((z - z.mean(axis=0)) / z.std(axis=0).clip(min=1e-12) for z in (f, g))
    r, error = studentised(u, v)
    if len(u) > LIMIT_ROWS and not rests_on_few_rows(u, v):
        return np.stack([r, error, student.sf(r / error, len(u) - 2)])
    # Shuffled and studentised: exact where X and Y are independent, right in the limit where only this mode is nothing.
    orders = shuffling.orders([np.arange(len(u))])
    draws = np.concatenate([np.divide(*studentised(u, v[some])) for some in orders])
    pvalues = [permutation_pvalue(one, [column], False) for one, column in zip(r / error, draws.T, strict=True)]
    return np.stack([r, error, pvalues])


def studentised(u: Array, v: Array) -> tuple[Array, Array]:
    """Correlations of standardised columns and their standard errors, (n, k) and (..., n, k) to (..., k) each."""
    product = u * v
    r = product.mean(axis=-2)
    influence = product - r[..., None, :] * (u**2 + v**2) / 2
    return r, np.sqrt(np.mean(influence**2, axis=-2) / len(u)).clip(min=1e-12)
