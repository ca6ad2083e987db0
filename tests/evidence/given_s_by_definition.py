"""The tests given S written down slowly, with matrices as large as there are rows, as the guide and the modules say."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from featgeo.evidence.shuffling import weighted_chi_square_tail as tail  # against closed forms in test_null

Columns = list[np.ndarray]  # floats are numbers, integers symbols 0, 1, ...


def mid_ranks(column: np.ndarray) -> np.ndarray:
    known = ~np.isnan(column)
    ranks = np.full(len(column), np.nan)
    ranks[known] = (rankdata(column[known]) - 0.5) / known.sum()
    return ranks


def waves(column: np.ndarray, count: int) -> np.ndarray:
    return np.nan_to_num(np.sqrt(2) * np.cos(np.pi * np.outer(mid_ranks(column), np.arange(1, count + 1))))


def is_number(column: np.ndarray) -> bool:
    return column.dtype.kind == "f"


def contrast(symbols: np.ndarray) -> np.ndarray:
    """Of two symbols there is one function of mean 0 and variance 1, up to its sign."""
    assert set(symbols) == {0, 1}
    return ((symbols - symbols.mean()) / symbols.std())[:, None]


def left_by(terms: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """What least squares on a constant and some terms leave."""
    design = np.column_stack([np.ones(len(targets)), terms])
    return targets - design @ np.linalg.lstsq(design, targets, rcond=1e-12)[0]


def kernel(columns: Columns, widths: tuple[float, ...] = (0.3, 1.0)) -> np.ndarray:
    distances = []
    for column in columns:
        values = np.nan_to_num(ndtri(mid_ranks(column))) if is_number(column) else column
        apart = values[:, None] - values
        distances.append(apart**2 if is_number(column) else 4.0 * (apart != 0))
    if len(columns) == 1:
        return np.mean([np.exp(-distances[0] / (2 * width**2)) for width in widths], axis=0)
    additive = np.mean([np.exp(-one / 2) for one in distances], axis=0)
    return additive + np.exp(-np.sum(distances, axis=0) / (2 * len(columns)))


def through(whole: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Nystroem: the kernel as far as some rows tell."""
    return whole[:, some] @ np.linalg.pinv(whole[np.ix_(some, some)], rcond=1e-10, hermitian=True) @ whole[some]


def narrow_kernel(index: np.ndarray) -> np.ndarray:
    """Of width 0.2 in normal scores, as far as a grid of steps of 0.3 from -2.7 to 2.7 tells, with half the weight."""
    points = np.concatenate([ndtri(index), np.arange(-9, 10) * 0.3])
    whole = np.exp(-(np.subtract.outer(points, points) ** 2) / (2 * 0.2**2))
    n = len(index)
    return 0.5 * whole[:n, n:] @ np.linalg.inv(whole[n:, n:]) @ whole[n:, :n]


def lines(columns: Columns) -> np.ndarray:
    terms = []
    for column in columns:
        if not is_number(column):
            terms += [column == symbol for symbol in range(column.max())]
            continue
        known = ~np.isnan(column)
        number = np.where(known, (column - column[known].mean()) / column[known].std(), 0.0)
        score = np.nan_to_num(ndtri(mid_ranks(column)))
        terms += [number] if np.corrcoef(number, score)[0, 1] ** 2 > 0.97 else [number, score]
    return np.column_stack(terms).astype(float)


def clearest_jumps(along: list[np.ndarray], straight: np.ndarray, smooth: np.ndarray, target: np.ndarray) -> list:
    """Up to four cuts: each the best split of what lines leave into two means, if it explains more than chance does."""
    n, found = len(target), []
    noise = np.mean(left_by(smooth, target) ** 2)
    for _ in range(4):
        rest = left_by(straight, target)
        best, chosen = -1.0, np.zeros(n)
        for ranks in along:
            for place in range(5, n - 4):  # five rows or more on either side; missing ones come last
                beyond = np.argsort(np.argsort(ranks)) >= place
                gain = beyond.mean() * (1 - beyond.mean()) * (rest[beyond].mean() - rest[~beyond].mean()) ** 2
                if gain > best * (1 + 1e-9):
                    best, chosen = gain, beyond.astype(float)
        new = left_by(smooth, chosen)
        if (new @ target) ** 2 / (new @ new) < 2 * np.log(n * len(along)) * noise:
            break
        found.append(chosen)
        straight, smooth = np.column_stack([straight, chosen]), np.column_stack([smooth, chosen])
    return found


def free_terms(columns: Columns, targets: np.ndarray, indices: list[np.ndarray]) -> np.ndarray:
    """Lines, waves along indices and columns, and jumps; a quarter of the rows at most."""
    n, width, straight = len(targets), len(columns), lines(columns)
    numbers = [column for column in columns if is_number(column)]
    count = min(5, (n // 4 - np.linalg.matrix_rank(left_by(np.empty((n, 0)), straight))) // len(indices))
    terms = [straight, *(waves(index, count) for index in indices)]
    count = min(n // (80 * width), (n // 4 - np.linalg.matrix_rank(straight) - count * len(indices)) // width)
    smooth = np.column_stack([*terms, *(waves(number, count) for number in numbers)])
    jumps = []
    if n // 4 - np.linalg.matrix_rank(left_by(np.empty((n, 0)), smooth)) >= 4 * targets.shape[1]:
        along = [mid_ranks(number) for number in numbers] + ([] if width == 1 else indices)
        for target in targets.T:
            jumps += clearest_jumps(along, straight, smooth, target)
    return np.column_stack([smooth, *jumps])


def residual_makers(whole: np.ndarray, free: np.ndarray, targets: np.ndarray) -> list[np.ndarray]:
    """For each target the matrix of ridge regression beside free terms, two ridges below that of least GCV."""
    n = len(targets)
    outside = left_by(free, np.eye(n))
    energies, vectors = np.linalg.eigh(outside @ whole @ outside)
    energies, vectors = energies[energies > 5e-9 * energies[-1]], vectors[:, energies > 5e-9 * energies[-1]]
    makers = [outside - (vectors * (energies / (energies + ridge))) @ vectors.T for ridge in _ridges(energies[-1])]
    degrees = np.array([n - np.trace(maker) for maker in makers])
    allowed = np.flatnonzero(degrees <= n / 2)
    chosen = []
    for target in targets.T:
        gcv = [np.sum((makers[i] @ target) ** 2) / (1 - degrees[i] / n) ** 2 for i in allowed]
        chosen.append(makers[max(allowed[int(np.argmin(gcv))] - 2, allowed[0])])
    return chosen


def _ridges(largest: float) -> np.ndarray:
    return largest * 10.0 ** (-7 + 0.5 * np.arange(15))


def probes(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Functions of X or Y of mean about 0 and variance about 1, and their weights."""
    n = len(columns[0])
    if len(columns) > 1:
        centring = np.eye(n) - 1 / n
        scores = np.column_stack([np.sqrt(12) * (mid_ranks(column) - 0.5) for column in columns])
        gamma = 0.3 / scores.var(axis=0).sum()
        together = np.exp(-gamma * np.square(scores[:, None] - scores).sum(axis=2))
        energies, vectors = np.linalg.eigh(centring @ together @ centring)
        return vectors[:, :-13:-1] * np.sqrt(n), np.sqrt(energies[:-13:-1] / energies[-1])
    if is_number(columns[0]):
        score = np.nan_to_num(ndtri(mid_ranks(columns[0])))
        return np.column_stack([score, waves(columns[0], 6)[:, 1:]]), np.arange(1, 7) ** -1.5
    return contrast(columns[0]), np.ones(1)


def modulators(columns: Columns) -> np.ndarray:
    """Two waves of each number, one twice as heavy as the other, or a contrast of symbols: of weight 0.75 together."""
    parts = []
    for column in columns:
        values, weights = (waves(column, 2), np.array([2, 1]) / 3) if is_number(column) else (contrast(column), 1.0)
        parts.append(values * np.sqrt(0.75 / len(columns) * weights))
    return np.hstack(parts)


def moment_test(x: np.ndarray, y: np.ndarray, functions: np.ndarray, ratio: object) -> tuple[float, float]:
    """Squared means of products of residuals, and of leading ones times functions of S, against their covariance.

    `ratio(i, j, m)` is the variance of the sum of m x_i y_j over what the sum of its squares says.
    """
    n = len(x)
    pairs = list(product(range(x.shape[1]), range(y.shape[1])))
    parts = [(i, j, np.ones(n)) for i, j in pairs]
    parts += [(i, j, m) for i, j in pairs if i < 4 and j < 4 for m in functions.T]
    products = np.column_stack([x[:, i] * y[:, j] * m for i, j, m in parts])
    scale = np.sqrt([ratio(i, j, m) for i, j, m in parts])
    means = products.mean(axis=0)
    statistic = n * np.sum(means**2)
    spectrum = np.linalg.eigvalsh(np.cov(products.T, bias=True).reshape(len(parts), -1) * np.outer(scale, scale))
    spectrum = spectrum.clip(min=0)
    gram = (products @ products.T) ** 2  # rows with themselves are noise of the squares
    due = np.sum(spectrum**2) * (gram.sum() - np.trace(gram)) / gram.sum() * n / (n - 1)
    spread = np.sum((spectrum - spectrum.mean()) ** 2)
    share = np.clip((due - len(spectrum) * spectrum.mean() ** 2) / spread, 0, 1) if spread > 1e-12 else 1.0
    pvalue = tail(statistic, spectrum.mean() + np.sqrt(share) * (spectrum - spectrum.mean()))
    heavy = [np.max(np.mean(side**4, axis=0) / np.mean(side**2, axis=0) ** 2) for side in (x, y)]
    if 5 * heavy[0] * heavy[1] > n:
        energies = [np.linalg.eigvalsh(z.T @ z / n).clip(0) for z in (x, y, x[:, :4], y[:, :4], functions)]
        plain = np.outer(energies[0], energies[1]).ravel()
        modulated = np.multiply.outer(np.outer(energies[2], energies[3]), energies[4]).ravel()
        pvalue = max(pvalue, tail(statistic, np.concatenate([plain, modulated])))
    return statistic, pvalue


def left_of(
    side: Columns, s: Columns, indices: list[np.ndarray], some: np.ndarray, said: np.ndarray | float = 0.0
) -> tuple[np.ndarray, list]:
    """What S leaves of the probes of a side that it does not determine, scaled, and the matrices that do so, squared.

    Args:
        side: Columns of X, or of Y.
        s: Of S.
        indices: Ranks along the combinations of S that the side follows; the column itself where S is one number.
        some: The rows that the kernel rests on.
        said: What trees say of the probes, which is taken off before.
    """
    targets, weights = probes(side)
    n, centred = len(targets), targets - targets.mean(axis=0)
    free = free_terms(s, targets[:, :1], indices)
    whole = through(kernel(s), some) + sum(narrow_kernel(index) for index in indices if len(s) > 1 and n >= 500)
    makers = residual_makers(whole, free, centred)
    rests = np.column_stack([maker @ target for maker, target in zip(makers, (centred - said).T, strict=True)])
    kept = np.flatnonzero(np.var(rests, axis=0) > 1e-3 * np.var(targets, axis=0))
    return (rests / rests.std(axis=0) * np.sqrt(weights))[:, kept], [makers[i] @ makers[i] for i in kept]


def products_test(x: tuple[np.ndarray, list], y: tuple[np.ndarray, list], s: Columns) -> tuple[float, float]:
    """Statistic and p-value of products of what S leaves of X and of Y."""

    def ratio(i: int, j: int, m: np.ndarray) -> float:
        a, b = x[1][i], y[1][j]
        return m @ (a * b) @ m / (m**2 @ (np.diag(a) * np.diag(b)))

    return moment_test(x[0], y[0], modulators(s), ratio)
