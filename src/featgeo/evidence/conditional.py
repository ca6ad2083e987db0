"""Whether X and Y are independent given S.

Two methods. Given a finite S, rows are compared within its values: rows of Y are permuted there, which is exact, or,
with ample counts or many rows, a limit is used. Otherwise what S explains is taken out of
functions of X and of Y, and the products of what is left are tested (below). Numbers of X and of
Y enter by rank, so strictly monotone maps of them change nothing; numbers of S enter by rank and as they are. Renaming
labels changes nothing.

X, Y and S as tests given S read them, with what one of them, or a pair, gives to many tests.

X and Y are read through *probes*: a few functions on which dependence would show, each with a weight. Of a number, its
normal score, which follows S more simply than any bounded function of its rank, and cosines of the rank; of symbols,
one function for each symbol beyond the first; of several columns together, the leading components of their kernel.
Probes have mean 0 and variance 1; the smoothest come first.

A search asks about the same columns again and again. What depends on one variable alone is a property of it (`Side`,
`GivenS`), computed where it is first asked for; what a condition finds out about one side is kept by the condition.
Whoever keeps these objects saves the work, and no result depends on it.

Conditional independence from products of residuals.

X and Y are independent given S exactly if, for all functions phi of X, psi of Y and m of S,

    E[ m(S) (phi(X) - E[phi(X) | S]) (psi(Y) - E[psi(Y) | S]) ] = 0.

A few probes stand in for phi and psi, and kernel ridge regression for the conditional means. An error in one of the
two regressions is multiplied by a residual of the other, whose mean is 0: only the product of both errors can disturb
the level. The functions m find dependence whose sign changes with S, which cancels without them.

Evidence is doubted before it is given: where the p-value is small, trees that have not seen a row say what they know of
its probes. What they say of Y in a row comes from other rows. It agrees with what the regression left of X in that row
only where both follow S and the regressions missed it, never because X and Y depend on each other. Where it does agree
beyond chance, the regressions are made again of what trees leave. As much may still be missed: the null distribution is
moved by that much, and the result is called doubtful.

Given a finite S, conditional means are those of its strata. There the rows of Y that share a value of S are
exchangeable: permuting them changes nothing, so the rank of the statistic among those of the permuted rows is an exact
p-value, for any number of rows.

The statistic is the weighted sum of the squared means, times n. Under the null hypothesis it is, for large n, a
weighted sum of chi-squares whose weights are the eigenvalues of the covariance matrix of the products, however the
variances of the residuals change with S.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from featgeo.evidence.blocks import table_evidence
from featgeo.evidence.independence import independence_test
from featgeo.evidence.shuffling import (
    Evidence,
    Shuffling,
    checked,
    less_spread,
    read_rows,
    rests_on_few_rows,
    weighted_chi_square_tail,
)
from featgeo.features.regression import Condition, Residuals
from featgeo.features.scored import (
    Ranks,
    Scored,
    Symbols,
    cosines_of,
    indicators,
    joint_symbols,
    kernel_components,
    mid_ranks,
    orthonormal,
    same,
    scored_columns,
)
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array, check_choice, seed_of
from featgeo.tuning import in_force


@dataclass(frozen=True, eq=False)
class Probes:
    """Functions of a variable.

    Attributes:
        values: Shape (n, k), of mean 0.
        weights: Shape (k,), of their squared correlations in a statistic.
    """

    values: Array
    weights: Array

    def scaled(self, left: Array) -> tuple[Array, np.ndarray]:
        """What a regression on S leaves of the probes that S does not determine, and which these are, (k,).

        They have variance 1, times the roots of their weights, (n, at most k).
        """
        spread = left.std(axis=0)
        free = np.square(spread) > in_force.get().determined * self.values.var(axis=0)
        return left[:, free] / spread[free] * np.sqrt(self.weights[free]), free


def probes(columns: Sequence[Scored], n: int, seed: int) -> Probes:
    """Functions of all columns together; the seed is that of the kernel's landmarks."""
    if len(columns) == 1:
        return column_probes(columns[0])
    components, energies = kernel_components(columns, n, seed)
    most = 2 * in_force.get().probe_waves
    return Probes(components[:, :most], np.sqrt(energies / energies[0])[:most])


def column_probes(column: Scored) -> Probes:
    """Functions of one column."""
    if isinstance(column, Ranks):
        options = in_force.get()
        rougher = cosines_of(column.values, options.probe_waves)[:, 1:]
        orders = np.arange(1.0, rougher.shape[1] + 2)
        return Probes(np.column_stack([column.scores, rougher]), orders**-options.probe_decay)
    values = contrasts(column)
    return Probes(values, np.ones(values.shape[1]))


def contrasts(column: Symbols) -> Array:
    """An orthonormal basis of the functions of the symbols that have mean 0, (n, symbols - 1)."""
    return orthonormal(indicators(column, min(column.size, in_force.get().probe_symbols) - 1))[0]


@dataclass(eq=False)
class Side:
    """Rows of X or Y."""

    rows: Rows

    @cached_property
    def columns(self) -> list[Scored]:
        """Those that vary, for products of residuals."""
        return scored_columns(self.rows.table, in_force.get().unordered_values)

    @cached_property
    def finite(self) -> Symbols | None:
        """All columns as one of symbols; None where they take many values."""
        return joint_symbols(self.rows)


class GivenS(Condition, Side):
    """S, and what it leaves of each side."""

    @cached_property
    def _left(self) -> dict[Side, Left | None]:
        return {}

    def left_of(self, side: Side) -> Left | None:
        """What S leaves of functions of a side; None where it determines them all."""
        if side not in self._left:
            columns = [column for column in side.columns if not any(same(column, other) for other in self.columns)]
            self._left[side] = Left.of(self, columns) if columns else None
        return self._left[side]

    @cached_property
    def modulators(self) -> Array:
        """Functions of S that multiply products of residuals, times the roots of their weights, (n, q)."""
        options = in_force.get()
        width = len(self.columns)
        if width > options.probe_symbols:
            return self.lines.values[:, : options.probe_symbols] * np.sqrt(options.modulation / options.probe_symbols)
        parts = []
        for column in self.columns:
            if isinstance(column, Ranks):
                values = cosines_of(column.values, options.modulating_waves)
                weights = 1 / np.arange(1, values.shape[1] + 1)
            else:
                values, weights = contrasts(column), np.ones(column.size)
            values = values[:, : options.probe_symbols // width]
            weights = weights[: values.shape[1]]
            parts.append(values * np.sqrt(options.modulation / width * weights / weights.sum()))
        return np.hstack(parts)


@dataclass(frozen=True, eq=False)
class Left:
    """What S leaves of probes that it does not determine.

    Attributes:
        s: The condition.
        probes: All of them.
        whole: What its regression leaves of them.
        scaled: The same of those that are free, of variance 1, times the roots of their weights.
    """

    s: GivenS
    probes: Probes
    whole: Residuals
    scaled: Residuals

    @classmethod
    def of(cls, s: GivenS, columns: list[Scored]) -> Left | None:
        """Of functions of some columns; None where S determines them all."""
        given = probes(columns, len(s.rows), s.seed)
        whole, _ = s.regress(given.values)
        values, free = given.scaled(whole.values)
        scaled = replace(whole, values=values, taken=whole.taken[:, free], of_rows=whole.of_rows[:, free])
        return cls(s, given, whole, scaled) if free.any() else None

    @cached_property
    def again(self) -> tuple[Residuals, Array]:
        """What is left where trees say theirs before the regression does, scaled, and what of it is new, (n, k)."""
        targets = self.probes.values - self.probes.values.mean(axis=0)
        new = -self.whole.left_of(self.s.by_trees(targets))
        left = self.whole.values + new
        values, free = self.probes.scaled(left)
        scale = np.sqrt(self.probes.weights[free]) / left[:, free].std(axis=0)
        found = replace(self.whole, values=values, taken=self.whole.taken[:, free], of_rows=self.whole.of_rows[:, free])
        return found, new[:, free] * scale


CHUNK = 8192  # rows at once; it bounds the memory
NAME = "products of residuals"
MOST_PERMUTED = 5000  # rows; with more the limit is as good, and it bounds the time


def variance_ratio(x: Residuals, y: Residuals, modulating: Array) -> Array:
    """Variance of the sum of products of residuals over what the sum of their squared products says, (k, l, q).

    Residuals of one regression are correlated over the rows, so their products are not quite independent. With A and B
    the squares of the matrices that take targets to residuals, m a function of S that multiplies the products, and
    targets of constant variance given S, the ratio is sum_ij m_i m_j A_ij B_ij over sum_i m_i^2 A_ii B_ii.

    Args:
        x: Residuals of k functions of X.
        y: Residuals of l functions of Y.
        modulating: Functions m, (n, q).
    """
    n, squares = len(modulating), np.square(modulating)
    # A is the identity less the vectors, each by the share of it that is taken.
    once = squares.sum(axis=0) - (x.of_rows.T @ squares)[:, None] - y.of_rows.T @ squares
    both = ((x.of_rows[:, :, None] * y.of_rows[:, None, :]).reshape(n, -1).T @ squares).reshape(once.shape)
    off = np.empty_like(both)
    for q, m in enumerate(modulating.T.astype(x.vectors.dtype)):
        products = (x.vectors * m[:, None]).T @ y.vectors / n
        off[:, :, q] = x.taken.T @ np.square(products) @ y.taken  # sum_ij m_i m_j (1 - A)_ij (1 - B)_ij
    return (once + off) / np.maximum(once + both, np.finfo(np.float64).tiny)  # functions of weight 0 are 0


def product_test(x: Side, y: Side, s: GivenS) -> Evidence:
    """Test the independence of x and y given s, of which a column varies."""
    of_x, of_y = s.left_of(x), s.left_of(y)
    if of_x is None or of_y is None:
        return Evidence(0.0, 1.0, NAME)
    found = residual_evidence(of_x.scaled, of_y.scaled, s.modulators)
    return found if found.pvalue > in_force.get().doubted else doubted(found, of_x.again, of_y.again, s.modulators)


def residual_evidence(x: Residuals, y: Residuals, modulating: Array, shared: float = 0.0) -> Evidence:
    """The test of what two regressions leave; `shared` as in `moment_evidence`."""
    ratios = variance_ratio(x, y, np.column_stack([np.ones(len(modulating)), modulating]))
    return moment_evidence(x.values, y.values, modulating, ratios, NAME, shared)


def doubted(found: Evidence, x: tuple[Residuals, Array], y: tuple[Residuals, Array], modulating: Array) -> Evidence:
    """What was found, or, where the regressions missed what X and Y share, what is left of it with trees."""
    (left_x, new_x), (left_y, new_y) = x, y
    if 0 in (left_x.values.shape[1], left_y.values.shape[1]):
        return Evidence(0.0, 1.0, NAME)
    shared = shared_length((left_x.values - new_x, -new_x), (left_y.values - new_y, -new_y), modulating)
    if shared == 0:
        return found
    again = residual_evidence(left_x, left_y, modulating, shared)
    return replace(again, pvalue=max(again.pvalue, found.pvalue), method=f"{NAME}, also of trees", doubtful=True)


def shared_length(x: tuple[Array, Array], y: tuple[Array, Array], modulating: Array) -> float:
    """By how much errors that X and Y share lengthen the means of the products; 0 where it may be chance.

    Args:
        x: What regressions leave of k functions of X, and what others, made from other rows, say of that, (n, k) each.
        y: The same of l functions of Y.
        modulating: Functions m, (n, q).
    """
    n, lead = len(modulating), slice(in_force.get().modulated_probes)
    leading = [one[:, lead] for one in y]
    modulated = [([one[:, lead] * m[:, None] for one in x], leading) for m in modulating.T]
    size, shared = 0.0, np.zeros(n)
    for (left_x, said_x), (left_y, said_y) in [(x, y), *modulated]:
        means = left_x.T @ left_y / n
        size += float(np.square(means).sum())
        shared += ((left_x @ means) * said_y).sum(axis=1) + ((said_x @ means) * left_y).sum(axis=1)
    shared /= max(np.sqrt(size), np.finfo(np.float64).tiny)
    clear = shared.sum() > in_force.get().doubt_errors * np.sqrt(n) * shared.std()
    return float(shared.sum() / np.sqrt(n)) if clear else 0.0


def stratified_probe_test(
    x: Sequence[Scored], y: Sequence[Scored], s: Symbols, seed: int, shuffling: Shuffling
) -> Evidence:
    """Test of squared moments of probes of x and y, centred in each stratum, over all and by stratum."""
    n = len(s.codes)
    of_x, of_y = (probes([_within(column, s) for column in columns], n, seed) for columns in (x, y))
    by_stratum = contrasts(s)
    by_stratum = by_stratum * np.sqrt(in_force.get().modulation / max(by_stratum.shape[1], 1))
    if n > MOST_PERMUTED:
        return _limit_within(of_x, of_y, by_stratum, s)
    modulating = np.hstack([np.ones((n, 1)), by_stratum])
    left, right = (_centred(given.values, s) * np.sqrt(given.weights) for given in (of_x, of_y))
    modulated = (left[:, :, None] * modulating[:, None, :]).reshape(n, -1).T

    def of_orders(orders: np.ndarray) -> Array:
        return np.square(modulated @ right[orders]).sum(axis=(1, 2)) / n

    return shuffling.evidence(of_orders, s.groups, "")


def _limit_within(of_x: Probes, of_y: Probes, by_stratum: Array, s: Symbols) -> Evidence:
    """The same statistic against its limit: products of what centring within strata leaves of the probes."""
    name = "products within strata"
    x, y = (given.scaled(_centred(given.values, s))[0] for given in (of_x, of_y))
    if x.shape[1] * y.shape[1] == 0:
        return Evidence(0.0, 1.0, name)
    of_rows = 1 - 1 / np.bincount(s.codes)[s.codes]  # what centring leaves of the variance of each row
    squares = np.column_stack([np.ones(len(of_rows)), np.square(by_stratum)])
    alone = np.maximum(np.square(of_rows) @ squares, np.finfo(np.float64).tiny)
    ratio = (of_rows @ squares) / alone  # as in `variance_ratio`
    ratios = np.broadcast_to(ratio, (x.shape[1], y.shape[1], len(ratio)))
    return moment_evidence(x, y, by_stratum, ratios, name)


def _within(column: Scored, s: Symbols) -> Scored:
    """Ranks among the rows of the same stratum: there each number is spread evenly, wherever S has moved it."""
    if isinstance(column, Symbols):
        return column
    values = np.empty_like(column.values)
    for rows in s.groups:
        values[rows] = mid_ranks(column.values[rows])
    return replace(column, values=values)


def _centred(values: Array, s: Symbols) -> Array:
    means = np.stack([np.bincount(s.codes, column) for column in values.T], axis=1) / np.bincount(s.codes)[:, None]
    return values - means[s.codes]


def moment_evidence(x: Array, y: Array, modulating: Array, ratios: Array, name: str, shared: float = 0.0) -> Evidence:
    """Test whether products of residuals have mean 0.

    Args:
        x: Residuals of the probes of X, (n, k), scaled.
        y: Those of Y, (n, l).
        modulating: Functions of S that multiply the products, (n, q).
        ratios: From `variance_ratio`, of a constant and of these functions, (k, l, 1 + q).
        name: What the method is called.
        shared: By how much errors that X and Y share may lengthen the means of the products, whose squared length is
            the statistic: only the rest of its length is evidence.
    """
    statistic, weights = _quadratic_form(x, y, modulating, ratios)
    beyond = max(0.0, np.sqrt(statistic) - shared) ** 2
    pvalue = weighted_chi_square_tail(beyond, weights)
    if rests_on_few_rows(x, y):
        # Residuals rest on few rows: where these never meet, the products hardly vary, and their own variance says too
        # little. Then the variance that independence implies must not be exceeded either.
        pvalue = max(pvalue, weighted_chi_square_tail(beyond, _implied_weights(x, y, modulating)))
    return Evidence(statistic, pvalue, name)


def _implied_weights(x: Array, y: Array, modulating: Array) -> Array:
    """Weights of the null distribution where residuals of X, of Y and the modulators are independent."""
    functions = (x, y, modulating, *(z[:, : in_force.get().modulated_probes] for z in (x, y)))
    energy_x, energy_y, energy_m, lead_x, lead_y = (np.linalg.eigvalsh(z.T @ z / len(z)) for z in functions)
    modulated = np.multiply.outer(np.multiply.outer(lead_x, lead_y), energy_m)
    return np.concatenate([np.multiply.outer(energy_x, energy_y).ravel(), modulated.ravel()]).clip(min=0)


def _quadratic_form(x: Array, y: Array, modulating: Array, ratios: Array) -> tuple[float, Array]:
    """The statistic and the weights of its null distribution."""
    n, lead = len(x), slice(in_force.get().modulated_probes)
    total, gram, fourth = np.zeros(()), np.zeros(()), 0.0
    for start in range(0, n, CHUNK):
        rows = slice(start, start + CHUNK)
        plain = x[rows, :, None] * y[rows, None, :]
        leading = plain[:, lead, lead, None] * modulating[rows, None, None, :]
        block = np.hstack([plain.reshape(len(plain), -1), leading.reshape(len(plain), -1)])
        total = total + block.sum(axis=0)
        gram = gram + block.T @ block
        fourth += float(np.square(np.square(block).sum(axis=1)).sum())
    mean = total / n
    scale = np.sqrt(np.concatenate([ratios[:, :, 0].ravel(), ratios[lead, lead, 1:].ravel()]))
    covariance = (gram / n - np.outer(mean, mean)) * np.outer(scale, scale)
    spectrum = np.maximum(np.linalg.eigvalsh(covariance), 0.0)
    return float(n * mean @ mean), less_spread(spectrum, fourth / float(np.square(gram).sum()), n)


METHODS = ("auto", "products", "strata")
FEWEST_ROWS = 4  # of fewer no order of the rows is evidence


def conditional_independence_test(
    X: Any,
    Y: Any,
    S: Any,
    *,
    method: Literal["auto", "products", "strata"] = "auto",
    n_permutations: int = 999,
    random_state: Any = None,
    sample_weight: Any = None,
) -> Evidence:
    """Test whether X and Y are independent given S.

    Args:
        X: n rows of one or more columns: numbers, labels, dates, or a mixture, as an array, a data frame or a list. A
            missing value is a value of its own, so that what is missing may be evidence too.
        Y: Rows of the other variable.
        S: Rows of the condition. Columns that never vary say nothing and do not count; where none varies, or S is None,
            this is `independence_test`.
        method: "strata" compares rows within the values of S; "products" tests products of residuals; "auto" takes
            strata where S is finite, that is a single column of labels or at most min(32, sqrt(n)) distinct rows.
        n_permutations: Random permutations within strata, or of all rows where there is no S, where these are used;
            the smallest p-value is then 1 / (n_permutations + 1).
        random_state: Seed of permutations and of the choice of kernel centres; None is 0. The same seed gives the same
            answer.
        sample_weight: How often each row counts, whole numbers, (n,): a weight of 2 is the row twice. Once when None.

    Returns:
        Statistic, p-value and the method that gave them.

    Where X or Y is part of S, or a regression on S leaves less than a thousandth of its variance, the p-value is 1:
    such data hold no evidence against independence. Products of residuals hold their level as far as the regressions
    are right: what they miss of a function of S that X and Y share looks like dependence. A result is `doubtful` where
    another kind of regression shows that they missed much; its p-value allows for that. The guide has measured cases.
    """
    seed = check_options(method, n_permutations, random_state)
    plain = {"n_permutations": n_permutations, "random_state": seed, "sample_weight": sample_weight}
    if S is None:
        return independence_test(X, Y, **plain)
    x, y, s = checked(*read_rows(sample_weight, X=X, Y=Y, S=S))
    condition = GivenS(s, seed)
    if not condition.columns and len(s) >= FEWEST_ROWS:
        return independence_test(X, Y, **plain)
    return conditional_evidence(Side(x), Side(y), condition, method, n_permutations)


def check_options(method: str, n_permutations: int, random_state: Any) -> int:
    """Refuse options that are none; the seed."""
    check_choice(method, "method", METHODS, "Use 'auto' to let S decide.")
    seed = seed_of(random_state)
    Shuffling.of(n_permutations, seed)
    return seed


def conditional_evidence(x: Side, y: Side, s: GivenS, method: str, n_permutations: int) -> Evidence:
    """The test of variables that are read: x and y must vary, and a column of s."""
    n, n_columns = len(s.rows), len(s.columns)
    if n < FEWEST_ROWS:
        raise ValueError(f"A test given S needs at least {FEWEST_ROWS} rows, got {n}. Pass more.")
    if method == "strata" and s.finite is None:
        raise ValueError(
            "method='strata' needs an S that is a single column of labels or has at most min(32, sqrt(n)) distinct "
            f"rows, got more in n = {n} rows. Use method='products', or group the values of S."
        )
    if method != "products" and s.finite is not None:
        shuffling = Shuffling.of(n_permutations, s.seed)
        if x.finite and y.finite:
            return table_evidence(x.finite, y.finite, shuffling, s.finite)
        of_x, of_y = ([side.finite] if side.finite else scored_columns(side.rows.table) for side in (x, y))
        return stratified_probe_test(of_x, of_y, s.finite, s.seed, shuffling)
    if n < (ample := in_force.get().ample_count) * n_columns:
        raise ValueError(
            f"A test given S needs at least {ample} rows for each column of S that varies, got {n} rows and "
            f"{n_columns} columns: regressions on S would explain anything. Pass more rows or fewer columns."
        )
    return product_test(x, y, s)
