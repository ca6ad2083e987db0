"""Dependence of two ladders of features: the energy of their leading blocks, from smooth to rough.

With orthonormal features f_1, ..., f_d of x and g_1, ..., g_e of y, independent variables have cross-moments
c_ij = E_n[f_i g_j] of variance 1 / (n - 1) over all arrangements of the rows, and for many rows they are independent
normals. So the energy (n - 1) sum_{i <= k, j <= l} c_ij^2 of each leading block is about chi-square with k l degrees of
freedom, and its tail probability says how surprising this block is. Smooth dependence fills a small block, a wave along
x a long and flat one. All blocks of rungs k and l are tried, of each ladder of x with each of y, and the statistic is
a weighted harmonic mean of their tail probabilities, which is about as small as the smallest of them and less at the
mercy of a single one. Most dependence is smooth, and blocks are many: so the i-th rung of a ladder counts for 1 / i of
its first. The null distribution comes from arrangements of the rows, or from normal cross-moments where rows are many.

How many rows are many? The moments of a block can each be normal and still not be independent: where the features of x
and of y all rest on the same few rows, what these rows weigh together moves all of them. For independent rows the
variance of the energy of a block of k x l features is

    2 k l + (E|f|^4 E|g|^4 - (k l)^2 - 2 k l) / n,    |f|^2 = f_1^2 + ... + f_k^2,  |g|^2 = g_1^2 + ... + g_l^2,

and chi-square serves where the second term is small beside the first.

Independence of two finite alphabets, from their tables of counts: a single one, or one for each stratum.

The statistic is Pearson's, n sum_i sigma_i^2 with sigma_i the strengths of all modes of a table, summed over strata.
Where every expected count is ample it is compared with chi-square; else a two by two table is tested by Fisher's exact
test, any other by orders of the rows within strata, which keep all margins.

Ladders of features: orthonormal functions of a variable, from the smoothest to the roughest.

A number enters by its rank, as cosines of one, two, ... half-waves; labels as indicators. Several columns have two
ladders of all: the functions of single columns, and the principal components of a kernel of all of them, which see what
columns say only together. Among many columns a dependence of two drowns: so the smoothest functions of each column are
ladders of their own, to which half of the weight goes, as long as columns are few. All of them are functions of one
variable alone, so shuffling the other variable's rows leaves them as they are: whatever the ladder, tests by shuffling
keep their level.

Canonical correlations of given spans, and how many of them are more than chance.

With rho_1 >= rho_2 >= ... the canonical correlations of p and q features over n rows, the hypothesis that only the
first i modes are real is measured by Bartlett's statistic (1941; the sum of 1 / rho_j^2 is Lawley's refinement),

    -(n - 1 - i - (p + q + 1) / 2 + sum_{j <= i} 1 / rho_j^2) sum_{j > i} log(1 - rho_j^2).

To first order it is n times the sum of the squared cross-moments of the canonical variates a_{i+1}, ... with b_{i+1},
...; errors of the spans and of the first i modes enter in second order only. For many rows these moments are normal,
with the covariance of the products a_j b_l, j, l > i. So the statistic is a weighted sum of chi-squares, and the
weights are the eigenvalues of that covariance. All are 1 where what is left of X is independent of what is left of Y,
as it is where there are no modes; where it is only uncorrelated (a common scale, symbols that exclude each other) they
are not, and chi-square with (p - i)(q - i) degrees of freedom, which is Bartlett's limit, may be far off. The weighted
sum needs finite fourth moments and many rows, no more (F. Kleibergen and R. Paap (2006), J. Econometrics 133:97).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import block_diag, sqrtm
from scipy.special import chdtrc
from scipy.stats import chi2, fisher_exact

from featgeo.evidence.shuffling import (
    BATCH_ENTRIES,
    Evidence,
    Limit,
    Shuffling,
    less_spread,
    rests_on_few_rows,
    weighted_chi_square_tail,
)
from featgeo.features.scored import (
    Ranks,
    Symbols,
    cosines_of,
    indicators,
    kernel_components,
    orthonormal,
    scored_columns,
)
from featgeo.features.spaces import Encoding
from featgeo.features.variables import Rows
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

_MOST_CELLS = 2**20  # tables with more are counted by sorting, which takes less memory


def table_evidence(x: Symbols, y: Symbols, shuffling: Shuffling, s: Symbols | None = None) -> Evidence:
    """Test the independence of two finite variables, within the strata of s if it is given."""
    strata = s or Symbols(np.zeros(len(x.codes), dtype=np.int64), 1)
    of_s, inside = np.bincount(strata.codes), strata.codes * x.size + x.codes
    of_x, of_y = _counts(inside), _counts(strata.codes * y.size + y.codes)

    def of_orders(orders: np.ndarray) -> Array:
        seen = np.array([_counts(cells) for cells in inside * y.size + y.codes[orders]])
        return np.sum(seen * (of_s[strata.codes] / of_x) / of_y[orders], axis=1) - len(inside)

    fewest, values = np.ones((2, len(of_s)))
    for counts in (of_x, of_y):  # of each row
        rarest = np.full(len(of_s), np.inf)
        np.minimum.at(rarest, strata.codes, counts)
        fewest *= rarest
        values *= np.bincount(strata.codes, 1 / counts) - 1  # every value adds up to one
    limit: Limit | None = None
    if (fewest >= in_force.get().ample_count * of_s).all():
        freedom = round(values.sum())
        named = "chi-square within strata" if s else f"chi-square with {freedom} d.f."
        limit = (chi2(freedom).sf if freedom else lambda statistic: 1.0, named)
    elif s is None and x.size == y.size == 2:
        exact = fisher_exact(np.bincount(2 * x.codes + y.codes, minlength=4).reshape(2, 2)).pvalue
        limit = (lambda statistic: exact, "Fisher's exact test")
    return shuffling.evidence(of_orders, strata.groups, "" if s else f"{x.size} x {y.size} table, ", limit)


def _counts(cells: np.ndarray) -> np.ndarray:
    """How many rows are in the cell of each, (n,)."""
    if cells.max() < _MOST_CELLS:
        return np.bincount(cells)[cells]
    _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    return counts[place]


@dataclass(frozen=True, eq=False)
class Ladder:
    """Orthonormal features of the rows of a variable.

    Attributes:
        features: Mean 0 and covariance the identity over the rows, (n, d).
        rungs: Numbers of leading features that belong together, rising, the last is d.
    """

    features: Array
    rungs: tuple[int, ...]

    @cached_property
    def rung_kurtosis(self) -> Array:
        """E|f|^4 of the leading k features of each rung, (rungs,): k^2 where all rows weigh alike."""
        energy = np.square(self.features).cumsum(axis=1)[:, np.array(self.rungs) - 1]
        return np.mean(np.square(energy), axis=0)


def smooth_ladders(rows: Rows, seed: int) -> tuple[Ladder, ...]:
    """The ladders of a variable: of its single columns, and where there are several of all together."""
    table = rows.table
    columns, width = scored_columns(table, 2), table.numbers.shape[1] + table.codes.shape[1]
    single = _column_ladder(columns, len(table), width)
    if width == 1:
        return (single,)
    together, _ = kernel_components(columns, len(table), seed)
    return single, Ladder(together, doubling(together.shape[1])), *_own_ladders(columns, width)


def _own_ladders(columns: Sequence[Ranks | Symbols], width: int) -> Iterator[Ladder]:
    """Of each column by itself, as smooth as it takes for all together to have few functions."""
    options = in_force.get()
    waves = min(options.own_waves, options.test_features // width)
    for column in columns if waves else ():
        if isinstance(column, Ranks):
            features, ends = orthonormal(cosines_of(column.values, waves), [1] * waves)
        else:
            features, ends = orthonormal(indicators(column, options.test_features))
        yield Ladder(features, tuple(sorted({*ends})))


def linear_ladder(rows: Rows) -> Ladder:
    """The columns themselves, labels as indicators, as a single rung."""
    features, rungs = orthonormal(Encoding.fit(rows)(rows))
    return Ladder(features, rungs)


def _column_ladder(columns: Sequence[Ranks | Symbols], n: int, width: int) -> Ladder:
    """Functions of single columns: of all the first waves and the labels, then of all the second waves, and so on."""
    options = in_force.get()
    most = max(1, min(options.test_features, n // options.rows_per_feature))
    most_waves = min(options.test_waves, max(1, most // width))
    ranks = [column.values for column in columns if isinstance(column, Ranks)]
    known = [int(np.sum(~np.isnan(rank))) // options.rows_per_feature for rank in ranks]
    waves = [cosines_of(rank, max(1, min(most_waves, few))) for rank, few in zip(ranks, known, strict=True)]
    labels = [indicators(column, options.test_features) for column in columns if isinstance(column, Symbols)]
    spans = [[*labels, *(wave[:, :1] for wave in waves)]]
    spans += [[wave[:, i : i + 1] for wave in waves] for i in range(1, max((w.shape[1] for w in waves), default=0))]
    blocks = [np.hstack(span) for span in spans]
    features, ends = orthonormal(np.hstack(blocks), [block.shape[1] for block in blocks])
    # Among the first waves of several columns the leading combinations are rungs; labels of one column have no order.
    leading = doubling(ends[0]) if width > 1 else ()
    features = features[:, : max(most, options.test_features)]
    rungs = {min(rung, features.shape[1]) for rung in (*leading, *(ends[i - 1] for i in doubling(len(ends))))}
    return Ladder(features, tuple(sorted(rungs)))


def doubling(most: int) -> tuple[int, ...]:
    """1, 2, 4, ..., and the last."""
    return (*(2**i for i in range((most - 1).bit_length())), most)


LIMIT_ROWS = 1000  # bounds time: with fewer, orders of the rows take none, and need no limit
LIMIT_DRAWS = 19_999  # drawn once: more digits than a p-value needs
SEVERAL_DRAWS = 4999  # of several ladders: these draws are of the data, and made anew
TAIL_DRAWS = 100  # the largest, which fix the tail to a tenth

Rungs = tuple[int, ...]


def block_evidence(x: Sequence[Ladder], y: Sequence[Ladder], shuffling: Shuffling) -> Evidence:
    """Test the independence of two variables by their ladders over the same rows."""
    of_x, of_y = (np.hstack([ladder.features for ladder in ladders]) for ladders in (x, y))
    x_rungs, y_rungs = (tuple(ladder.rungs for ladder in ladders) for ladders in (x, y))
    n, n_blocks = len(of_x), sum(map(len, x_rungs)) * sum(map(len, y_rungs))

    def of_orders(orders: np.ndarray) -> Array:
        return surprise(cross_moments(of_x, of_y.take(orders, axis=0)), x_rungs, y_rungs)

    def tail(statistic: float) -> float:
        if len(x) == len(y) == 1:
            return limit_pvalue(statistic, lone_draws(x_rungs, y_rungs))
        # Features of different ladders correlate: moments are normals between roots of covariances.
        left, right = (np.real(sqrtm(features.T @ features / n)) for features in (of_x, of_y))
        return limit_pvalue(statistic, limit_draws(left, right, x_rungs, y_rungs, SEVERAL_DRAWS))

    normal = limit_holds(x, y)
    name = f"{n_blocks} block{'s' * (n_blocks != 1)}, "
    return shuffling.evidence(of_orders, [np.arange(n)], name, (tail, "normal limit") if normal else None)


def limit_holds(x: Sequence[Ladder], y: Sequence[Ladder]) -> bool:
    """Whether rows are many, and no feature and no block rests on few of them, so that cross-moments are normal."""
    of_x, of_y = ([ladder.features for ladder in ladders] for ladders in (x, y))
    if len(of_x[0]) <= LIMIT_ROWS or rests_on_few_rows(np.hstack(of_x), np.hstack(of_y)):
        return False
    most = in_force.get().added_variance
    return all((added_variance(one, other) <= most).all() for one in x for other in y)


def added_variance(x: Ladder, y: Ladder) -> Array:
    """By what share rows that weigh more than others add to the variance of the energy of each block."""
    size = np.multiply.outer(x.rungs, y.rungs).astype(np.float64)  # k l
    fourth = np.multiply.outer(x.rung_kurtosis, y.rung_kurtosis)  # E|f|^4 E|g|^4
    return (fourth - size**2 - 2 * size) / (2 * size * len(x.features))


def cross_moments(f: Array, g: Array) -> Array:
    """Cross-moments scaled to variance 1 under independence: (n, d) and (b, n, e) to (b, d, e)."""
    n = len(f)
    return np.sqrt(n - 1) / n * (f.T @ g)


def surprise(moments: Array, x_rungs: Sequence[Rungs], y_rungs: Sequence[Rungs]) -> Array:
    """-log10 of the harmonic mean of the chi-square tails of all leading blocks, (b, d, e) to (b,).

    Args:
        moments: Between the features of all ladders of x, one ladder after the other, and all of y.
        x_rungs: Of each ladder of x.
        y_rungs: Of each ladder of y.
    """
    (of_x, x_sizes, x_weights), (of_y, y_sizes, y_weights) = (_leading(tuple(rungs)) for rungs in (x_rungs, y_rungs))
    energies = of_x @ np.square(moments) @ of_y.T
    # Not 0, so that the mean of the inverses is a number.
    tails = chdtrc(np.multiply.outer(x_sizes, y_sizes), energies).clip(min=1e-300)
    return np.log10(x_weights @ (1 / tails) @ y_weights)


@lru_cache(maxsize=64)
def _leading(every: tuple[Rungs, ...]) -> tuple[Array, Array, Array]:
    """The features that each rung of some ladders holds, (rungs, d), how many these are, and its weight."""
    shares = np.ones(len(every))
    shares[:2] = max(1, (len(every) - 2) / 2)  # those of all columns: each a quarter, beside those of single ones
    falling = [1 / np.arange(1, len(rungs) + 1) for rungs in every]
    weights = [share * fall / fall.sum() for share, fall in zip(shares / shares.sum(), falling, strict=True)]
    inside = [np.arange(rungs[-1]) < np.array(rungs)[:, None] for rungs in every]
    return block_diag(*inside).astype(np.float64), np.concatenate(every), np.concatenate(weights)


def limit_draws(left: Array, right: Array, x_rungs: Sequence[Rungs], y_rungs: Sequence[Rungs], n_draws: int) -> Array:
    """Draws of the statistic where cross-moments are normal, in order, (n_draws,); the same in every call.

    Args:
        left: Root of the covariance of the features of x, (d, d).
        right: Of those of y, (e, e).
        x_rungs: Of each ladder of x.
        y_rungs: Of each ladder of y.
        n_draws: How many.
    """
    rng = np.random.default_rng(0)
    batch = max(1, BATCH_ENTRIES // (len(left) * len(right)))
    left, right = (root.astype(np.float32) for root in (left, right))  # type: ignore[assignment]
    draws = [
        surprise(left @ rng.standard_normal((size, len(left), len(right)), np.float32) @ right, x_rungs, y_rungs)
        for size in np.diff([*range(0, n_draws, batch), n_draws])
    ]
    return np.sort(np.concatenate(draws))


@lru_cache(maxsize=64)
def lone_draws(x_rungs: tuple[Rungs], y_rungs: tuple[Rungs]) -> Array:
    """The same for one ladder a side, whose features are orthonormal: the limit knows nothing of the data."""
    return limit_draws(np.eye(x_rungs[0][-1]), np.eye(y_rungs[0][-1]), x_rungs, y_rungs, LIMIT_DRAWS)


def limit_pvalue(statistic: float, draws: Array) -> float:
    """The share of draws, (B,) in order, as large; beyond the last ones a mean of 1 / p falls off as 1 / t."""
    edge = draws[-TAIL_DRAWS]
    if statistic <= edge:
        return (1 + len(draws) - int(np.searchsorted(draws, statistic))) / (1 + len(draws))
    return TAIL_DRAWS / len(draws) * 10 ** float(edge - statistic)


MOST_PRODUCTS = 1024  # bounds time: beyond, the weights are taken as equal, with the same sum and sum of squares
MOST_ROWS = 2000  # that sums of squares come from: bounds time


def linear_evidence(x: Ladder, y: Ladder, shuffling: Shuffling) -> Evidence:
    """Test independence inside the spans of two ladders: Bartlett's statistic of "there are no modes"."""
    n, p, q = len(x.features), x.features.shape[1], y.features.shape[1]
    if p == 0 or q == 0:
        raise ValueError(
            f"Features of X and of Y must vary, got {p} and {q} that do, as far as floats tell. Rescale the columns."
        )
    if p + q > n - 2:
        raise ValueError(
            f"{p} and {q} features need at least {p + q + 2} rows, got {n}: with fewer, some of their combinations "
            "agree whatever the rows. Pass fewer columns or more rows, or use method='smooth'."
        )

    def of_orders(orders: np.ndarray) -> Array:
        moments = cross_moments(x.features, y.features[orders]) / np.sqrt(n - 1)
        return bartlett_statistics(np.linalg.svd(moments, compute_uv=False), n, p, q)[:, 0]

    limit = (chi2(p * q).sf, f"chi-square with {p * q} d.f.") if limit_holds([x], [y]) else None
    return shuffling.evidence(of_orders, [np.arange(n)], f"Bartlett's statistic of {p} x {q} features, ", limit)


def bartlett_statistics(rho: Array, n_rows: int, p: int, q: int) -> Array:
    """The statistic of "only the first i modes are real" for i = 0, 1, ..., (..., k) to (..., k)."""
    inside = rho.clip(1e-8, 1 - 1e-15)  # no infinities
    inverse, i = 1 / inside**2, np.arange(rho.shape[-1])
    tails = np.log1p(-(inside**2))[..., ::-1].cumsum(axis=-1)[..., ::-1]
    return -(n_rows - 1 - i - (p + q + 1) / 2 + np.cumsum(inverse, axis=-1) - inverse) * tails


def rank_pvalues(x: Array, y: Array) -> Array:
    """P-values of "only the first i modes are real" for i = 0, 1, ..., (min(p, q),), each by itself.

    Args:
        x: Orthonormal features of X, (n, p).
        y: Orthonormal features of Y, (n, q).
    """
    left, rho, right = np.linalg.svd(x.T @ y / len(x))
    a, b = x @ left, y @ right.T
    return np.array([
        weighted_chi_square_tail(statistic, product_spectrum(a[:, i:], b[:, i:]))
        for i, statistic in enumerate(bartlett_statistics(rho, len(x), x.shape[1], y.shape[1]))
    ])  # fmt: skip


def product_spectrum(a: Array, b: Array) -> Array:
    """Eigenvalues of the covariance of all products a_j b_l, or fewer of the same spread, (n, k) and (n, l) to (m,)."""
    n, size = len(a), a.shape[1] * b.shape[1]
    trace = float(np.mean(np.square(a).sum(axis=1) * np.square(b).sum(axis=1)))
    if size > MOST_PRODUCTS:
        count = np.clip(round(trace**2 / max(_sum_of_squares(a, b), trace**2 / size)), 1, size)
        return np.full(count, trace / count)
    products = (a[:, :, None] * b[:, None, :]).reshape(n, size)
    spectrum = np.linalg.eigvalsh(products.T @ products / n).clip(min=0.0)
    fourth = float(np.square(np.square(products).sum(axis=1)).sum())
    return less_spread(spectrum, fourth / max(n * n * float(np.square(spectrum).sum()), 1e-300), n)


def _sum_of_squares(a: Array, b: Array) -> float:
    """The sum of the squared eigenvalues, from pairs of different rows."""
    a, b = a[:MOST_ROWS], b[:MOST_ROWS]
    gram = np.square((a @ a.T) * (b @ b.T))
    return float((gram.sum() - np.trace(gram)) / (len(a) * (len(a) - 1)))
