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
from featgeo.evidence.blocks import LIMIT_ROWS
from featgeo.evidence.learned import check_model, halves, learned_on
from featgeo.evidence.null import rests_on_few_rows
from featgeo.evidence.reading import read_rows
from featgeo.evidence.shuffling import Shuffling, check_permutations, permutation_pvalue
from featgeo.geometry.validation import Array, check_level, generator_of
from featgeo.models import ModalDecomposition


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
    shuffling = Shuffling(n_permutations, generator_of(random_state))
    ways = halves(x, y, shuffling.rng, "ask `independence_test` whether there is any dependence")
    measured = []
    for seen, held_out in ways:
        f, g = learned_on(model, seen).transform(*(rows.raw for rows in held_out))
        measured.append(_measured(f, g, shuffling))
    k = min(part.shape[1] for part in measured)
    sigma, error, pvalue = np.mean([part[:, :k] for part in measured], axis=0)
    inside = sigma.clip(-1 + 1e-12, 1 - 1e-12)
    # On Fisher's scale, so that intervals stay between -1 and 1.
    reach = student.ppf((1 + level) / 2, len(x) // 2 - 2) * error / (1 - inside**2)
    low, high = np.tanh(np.arctanh(inside) - reach), np.tanh(np.arctanh(inside) + reach)
    return HeldOutSpectrum(sigma, low, high, (2 * pvalue).clip(max=1), len(x), level)


def _measured(f: Array, g: Array, shuffling: Shuffling) -> Array:
    """Correlations of f_i and g_i on held-out rows, their standard errors, and one-sided p-values, (3, k)."""
    u, v = ((z - z.mean(axis=0)) / z.std(axis=0).clip(min=1e-12) for z in (f, g))
    r, error = studentised(u, v)
    of_u, of_v = (float(np.mean(z**4, axis=0).max(initial=0)) for z in (u, v))
    if len(u) > LIMIT_ROWS and not rests_on_few_rows(of_u, of_v, len(u)):
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
