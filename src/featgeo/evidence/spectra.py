"""How strong are the modes really? Spectra on rows that had no part in learning them.

The rows are parted in two; modes are learned on either part and measured on the other. Measured on rows of its own, the
correlation r of f_i and g_i is an ordinary correlation of two given functions. Its standard error comes from its
influence function, u v - r (u^2 + v^2) / 2 with u and v the standardised f_i and g_i.

The two measurements are not independent: each part taught the modes that the other measured (in the span of one
feature a side, chance gives both the same sign). So they are combined by rules that hold under any dependence: twice
the average of two p-values is a p-value, and the standard error of an average is at most the average of the standard
errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from featgeo.card import Card, Shown
from featgeo.evidence.learned import Half, check_model, halves, learned_on
from featgeo.evidence.null import rests_on_few_rows
from featgeo.evidence.reading import read_rows
from featgeo.evidence.shuffling import arrangements, check_permutations, permutation_pvalue
from featgeo.geometry.arguments import check_level, generator_of
from featgeo.geometry.validation import Array
from featgeo.models import ModalDecomposition

SHUFFLED_ROWS = 1000  # parts with more rows are compared with Student's distribution
_BELOW_ONE = 1 - 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class HeldOutSpectrum(Shown):
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
    check_permutations(n_permutations)
    check_model(model)
    x, y = read_rows(X=X, Y=Y)
    rng = generator_of(random_state)
    half, rest = halves(x, y, rng, "ask `independence_test` whether there is any dependence")
    one, other = (_measured(model, *pair, n_permutations, rng) for pair in ((half, rest), (rest, half)))
    return _combined(one, other, len(x), level)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Correlations of one held-out part, their standard errors, and one-sided p-values, (k,) each."""

    r: Array
    error: Array
    pvalue: Array


def _measured(
    model: ModalDecomposition | None, seen: Half, held_out: Half, n_permutations: int, rng: np.random.Generator
) -> _Measured:
    f, g = learned_on(model, seen).transform(*(rows.raw for rows in held_out))
    u, v = _standardised(f), _standardised(g)
    r, error = studentised(u, v)
    ratio = r / error
    kurtosis = np.mean(u**4, axis=0).max(initial=0), np.mean(v**4, axis=0).max(initial=0)
    few = rests_on_few_rows(*kurtosis, len(u))
    if len(u) > SHUFFLED_ROWS and not few:  # where features rest on few rows, Student's distribution is not reached
        return _Measured(r, error, student.sf(ratio, len(u) - 2))
    # Shuffled and studentised: exact where X and Y are independent, right in the limit where only this mode is nothing.
    draws = np.concatenate([
        np.divide(*studentised(u, v[orders])) for orders in arrangements(len(u), n_permutations, rng)
    ])  # fmt: skip
    pvalue = [permutation_pvalue(one, column, complete=False) for one, column in zip(ratio, draws.T, strict=True)]
    return _Measured(r, error, np.array(pvalue))


def studentised(u: Array, v: Array) -> tuple[Array, Array]:
    """Correlations of standardised columns and their standard errors, (n, k) and (..., n, k) to (..., k) each."""
    product = u * v
    r = product.mean(axis=-2)
    influence = product - r[..., None, :] * (u**2 + v**2) / 2
    return r, np.sqrt(np.mean(influence**2, axis=-2) / len(u)).clip(min=1e-12)


def _standardised(features: Array) -> Array:
    centred = features - features.mean(axis=0)
    return centred / np.sqrt(np.mean(centred**2, axis=0)).clip(min=1e-12)


def _combined(one: _Measured, other: _Measured, n_rows: int, level: float) -> HeldOutSpectrum:
    k = min(len(one.r), len(other.r))
    sigma = (one.r[:k] + other.r[:k]) / 2
    inside = sigma.clip(-_BELOW_ONE, _BELOW_ONE)
    # On Fisher's scale, so that intervals stay between -1 and 1.
    reach = student.ppf((1 + level) / 2, n_rows // 2 - 2) * (one.error[:k] + other.error[:k]) / 2 / (1 - inside**2)
    low, high = np.tanh(np.arctanh(inside) - reach), np.tanh(np.arctanh(inside) + reach)
    return HeldOutSpectrum(sigma, low, high, (one.pvalue[:k] + other.pvalue[:k]).clip(max=1), n_rows, level)
