"""Tables drawn from laws whose modes are known, and how far `explore` is from them; `benchmarks/explore.py truth`.

A law comes with its singular values and with its functions f and g at the rows that were drawn, from a formula or from
the exact decomposition of its table of probabilities (of a fine grid, where a column is continuous). Single functions
mean nothing where singular values are equal, so the first true function is compared with the span of as many of ours as
it takes until the next singular value is clearly smaller.

What a column adds to the others is compared with the energies of the law: for jointly Gaussian columns a sum over the
powers k of correlations, r^k (R^k)^-1 r^k entry by entry; for labels that of indicators under the true probabilities.

Of Gaussian columns with a correlation of 1/2 or more, the density ratio has no third moment, so that estimates of the
energy have no finite variance, and the outermost rows hold what is there to be seen of high powers: of 50,000 rows, the
squared correlations of the true functions, as many as are best, tell energies of 0.56, 0.73 and 0.96 with root mean
squared errors of 0.023, 0.038 and 0.078. There ("strong") the errors stand beside those of the sample's correlations in
the same formula, for which one has to know the law, and columns that are moderate alone stand by themselves.

Where a shape is made of d functions, the chance of n rows leaves a correlation of about 1 - d / (2 n sigma^2) with the
true one: of 50,000 rows and 12 functions 0.99 where sigma is 0.11. So the least sigma stands beside it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from explore_tables import Rng, Values, monotone_map
from scipy.special import ndtri
from scipy.stats import norm

GRID = 800  # points of a continuous column, at equal steps of probability
CLEARLY_SMALLER = 0.05  # singular values that differ by less are taken together
MODERATE = 0.5  # energy of a column alone, of Gaussian ones at a correlation of 0.58
Row = dict[str, Any]


@dataclass(frozen=True)
class DrawnPair:
    """Columns x and y, the singular values of their law, and its functions at the rows, (n, k) each."""

    x: pd.Series
    y: pd.Series
    sigma: Values
    f: Values
    g: Values


def _letters(codes: Values) -> pd.Series:
    return pd.Series(np.array([f"label {at}" for at in range(codes.max() + 1)], object)[codes], dtype="str")


def _of_table(joint: Values, x: pd.Series, y: pd.Series, x_at: Values, y_at: Values) -> DrawnPair:
    """The modes of a table of probabilities, and their functions at rows in cells `x_at` and `y_at`."""
    from featgeo import FiniteJoint

    modes = FiniteJoint(joint).modes()
    return DrawnPair(x, y, np.asarray(modes.sigma), np.asarray(modes.f)[x_at], np.asarray(modes.g)[y_at])


def _drawn_cells(rng: Rng, joint: Values, n: int) -> tuple[Values, Values]:
    return np.divmod(rng.choice(joint.size, n, p=joint.ravel() / joint.sum()), joint.shape[1])


def _rough_table(rng: Rng, most: int) -> Values:
    shape = rng.integers(2, most + 1, size=2)
    return rng.dirichlet(np.full(shape.prod(), 1.5)).reshape(shape)


def gaussian(rng: Rng, n: int) -> DrawnPair:
    rho = rng.uniform(0.2, 0.9)
    u, noise = rng.standard_normal((2, n))
    v = rho * u + np.sqrt(1 - rho**2) * noise
    powers = rho ** np.arange(1, 5)
    f, g = (np.polynomial.hermite_e.hermevander(z, 4)[:, 1:] / np.sqrt([1, 2, 6, 24]) for z in (u, v))
    return DrawnPair(monotone_map(rng, u, rounded=False), monotone_map(rng, v, rounded=False), powers, f, g)


def cosine(rng: Rng, n: int) -> DrawnPair:
    """Density (1 + cos pi (x - y)) / 4 on the square: two modes of 1/2."""
    x, shift = rng.uniform(-1, 1, (2, n))
    ranks = (np.arange(20_001) + 0.5) / 20_001 * 2 - 1
    shift = np.interp((shift + 1) / 2, (ranks + 1 + np.sin(np.pi * ranks) / np.pi) / 2, ranks)
    y = (x + shift + 1) % 2 - 1
    f, g = (np.sqrt(2) * np.column_stack([np.cos(np.pi * z), np.sin(np.pi * z)]) for z in (x, y))
    return DrawnPair(pd.Series(x), pd.Series(y), np.array([0.5, 0.5]), f, g)


def steps(rng: Rng, n: int) -> DrawnPair:
    """Numbers whose density is constant on boxes with edges anywhere."""
    joint = _rough_table(rng, 6)
    cells = _drawn_cells(rng, joint, n)
    numbers = []
    for at, size in zip(cells, joint.shape, strict=True):
        edges = np.concatenate([[0.0], np.sort(rng.uniform(size=size - 1)), [1.0]])
        numbers.append(monotone_map(rng, ndtri(rng.uniform(edges[at], edges[at + 1])), rounded=False))
    return _of_table(joint, *numbers, *cells)


def labels(rng: Rng, n: int) -> DrawnPair:
    joint = _rough_table(rng, 12)
    cells = _drawn_cells(rng, joint, n)
    return _of_table(joint, _letters(cells[0]), _letters(cells[1]), *cells)


def ties(rng: Rng, n: int) -> DrawnPair:
    """Gaussian numbers, rounded."""
    rho, step = rng.uniform(0.3, 0.9), rng.uniform(0.4, 1.0)
    u, noise = rng.standard_normal((2, n))
    v = rho * u + np.sqrt(1 - rho**2) * noise
    most = np.ceil(6 / step)
    edges = (np.arange(-most, most) + 0.5) * step
    fine = np.linspace(-8, 8, 8001)
    cumulative = norm.cdf((edges - rho * fine[:, None]) / np.sqrt(1 - rho**2)) * norm.pdf(fine)[:, None]
    cells = np.searchsorted(edges, fine)
    at_or_below = np.stack([np.bincount(cells, column, edges.size + 1) for column in cumulative.T], axis=1)
    whole = np.bincount(cells, norm.pdf(fine), edges.size + 1)
    joint = np.diff(np.column_stack([np.zeros(len(whole)), at_or_below, whole]), axis=1)
    joint = np.maximum(joint, 0) / joint.sum()
    x, y = (pd.Series(np.round(z / step) * step) for z in (u, v))
    return _of_table(joint, x, y, *(np.searchsorted(edges, np.round(z / step) * step) for z in (u, v)))


def label_number(rng: Rng, n: int) -> DrawnPair:
    """Each label has a middle and a spread of its own; with an atom at zero in every other table."""
    size = rng.integers(2, 8)
    share, middle, spread = rng.dirichlet(np.full(size, 3.0)), rng.normal(0, 0.7, size), rng.uniform(0.5, 1.5, size)
    zero = rng.uniform(0, 0.6, size) * (rng.random() < 0.5)
    label = rng.choice(size, n, p=share)
    y = middle[label] + spread[label] * rng.standard_normal(n)
    is_zero = rng.random(n) < zero[label]
    edges = np.linspace(-6, 6, GRID - 1) * 1.5
    density = np.diff(norm.cdf((edges[:, None] - middle) / spread), axis=0, prepend=0.0, append=1.0).T
    joint = share[:, None] * np.column_stack([(1 - zero)[:, None] * density, zero])
    cells = np.where(is_zero, GRID, np.searchsorted(edges, y))
    seen = joint.sum(axis=0) > 1e-12
    places = np.cumsum(seen) - 1
    number = pd.Series(np.where(is_zero, 0.0, np.exp(y)))
    return _of_table(joint[:, seen], _letters(label), number, label, places[cells])


def _curve(rng: Rng, n: int, edges: Values, shape: Callable[[Values], Values]) -> DrawnPair:
    """Y = shape(x) + noise, x normal; what is between two edges, rising ranks of x, counts as one point."""
    noise = rng.uniform(0.5, 1.5)
    ranks = rng.uniform(size=n)
    ends = np.concatenate([[0.0], edges, [1.0]])
    middles = shape(ndtri((ends[1:] + ends[:-1]) / 2))
    u = ndtri(ranks)
    v = shape(u) + noise * rng.standard_normal(n)
    y_edges = np.linspace(v.min(), v.max(), GRID - 1)
    said = np.diff(norm.cdf((y_edges - middles[:, None]) / noise), axis=1, prepend=0.0, append=1.0)
    x, y = (monotone_map(rng, z, rounded=False) for z in (u, v))
    joint = np.diff(ends)[:, None] * said
    return _of_table(joint, x, y, np.searchsorted(edges, ranks), np.searchsorted(y_edges, v))


def curve(rng: Rng, n: int) -> DrawnPair:
    waves, turns = rng.normal(size=3), rng.uniform(0, 2 * np.pi, 3)
    fine = np.arange(1, GRID) / GRID
    return _curve(rng, n, fine, lambda x: sum(waves[k] * np.sin((k + 1) * x + turns[k]) for k in range(3)))


def step_function(rng: Rng, n: int) -> DrawnPair:
    edges, levels = np.cumsum(rng.dirichlet(np.full(4, 3.0)))[:3], rng.normal(0, 1.5, 4)
    return _curve(rng, n, edges, lambda x: levels[np.searchsorted(edges, norm.cdf(x))])


def line_and_jump(rng: Rng, n: int) -> DrawnPair:
    slope, jump, place = rng.uniform(0.3, 1), rng.uniform(0.5, 1.5), rng.uniform(-1, 1)
    return _curve(rng, n, np.arange(1, GRID) / GRID, lambda x: slope * x + jump * (x > place))


LAWS = (gaussian, cosine, curve, steps, step_function, line_and_jump, labels, ties, label_number)


@dataclass(frozen=True)
class DrawnTarget:
    """A table with a target y, and what each other column says alone and adds to the rest, as energies of its law.

    Where the law has parameters, also those energies under the ones that fit the rows best.
    """

    frame: pd.DataFrame
    alone: dict[str, float]
    adds: dict[str, float]
    fitted_adds: dict[str, float] | None = None


def _energies(size: int, energy: Callable[[list[int]], float]) -> tuple[dict[str, float], dict[str, float]]:
    every = list(range(size))
    whole = energy(every)
    alone = {f"x{j}": energy([j]) for j in every}
    return alone, {f"x{j}": whole - energy([i for i in every if i != j]) for j in every}


def _gaussian_energies(correlation: Values) -> tuple[dict[str, float], dict[str, float]]:
    size = len(correlation) - 1

    def energy(columns: list[int]) -> float:
        among, with_y = correlation[np.ix_(columns, columns)], correlation[columns, size]
        powers = range(1, 41)
        return float(sum(with_y**k @ np.linalg.solve(among**k, with_y**k) for k in powers))

    return _energies(size, energy)


def strong_gaussian_target(rng: Rng, n: int, told: float | None = None) -> DrawnTarget:
    """Gaussian columns and a target of which they tell, linearly, the share `told` of its variance; None: any."""
    size = 5
    loadings = rng.normal(size=(size + 1, 3))
    covariance = loadings @ loadings.T + np.diag(rng.uniform(0.2, 1, size + 1))
    if told is not None:
        linear = covariance[:size, size] @ np.linalg.solve(covariance[:size, :size], covariance[:size, size])
        covariance[size, size] = linear / told
    scale = np.sqrt(np.diag(covariance))
    values = rng.multivariate_normal(np.zeros(size + 1), covariance / np.outer(scale, scale), n)
    frame = pd.DataFrame({f"x{j}": monotone_map(rng, values[:, j], rounded=False) for j in range(size)})
    frame["y"] = values[:, size]
    exact = _gaussian_energies(covariance / np.outer(scale, scale))
    return DrawnTarget(frame, *exact, _gaussian_energies(np.corrcoef(values, rowvar=False))[1])


def gaussian_target(rng: Rng, n: int) -> DrawnTarget:
    """The same with a multiple correlation below 1/2, so that energies can be estimated."""
    return strong_gaussian_target(rng, n, told=rng.uniform(0.05, 0.25))


def label_target(rng: Rng, n: int) -> DrawnTarget:
    shape = (*rng.integers(2, 5, size=4), 3)
    logarithm = np.zeros(shape)
    for i, j in combinations(range(5), 2):
        logarithm += np.expand_dims(
            rng.normal(0, 0.6, (shape[i], shape[j])), tuple(axis for axis in range(5) if axis not in (i, j))
        )
    joint = np.exp(logarithm) / np.exp(logarithm).sum()
    cells = np.stack(np.unravel_index(rng.choice(joint.size, n, p=joint.ravel()), shape), axis=1)
    frame = pd.DataFrame({f"x{j}": _letters(cells[:, j]) for j in range(4)} | {"y": _letters(cells[:, 4])})
    symbols = np.indices(shape).reshape(5, -1)
    indicators = [np.eye(size)[symbol] for size, symbol in zip(shape, symbols, strict=True)]
    mass = joint.ravel()[:, None]

    def energy(columns: list[int]) -> float:
        x, y = np.hstack([indicators[j] for j in columns]), indicators[4]
        whiten_y = (x.T @ (mass * y)) / np.sqrt((mass * y).sum(axis=0))
        return float(np.trace(whiten_y.T @ np.linalg.pinv(x.T @ (mass * x), rcond=1e-10) @ whiten_y)) - 1

    return DrawnTarget(frame, *_energies(4, energy))


TARGETS = (gaussian_target, label_target, strong_gaussian_target)


def shape_correlation(true: Values, ours: Values) -> float:
    """The multiple correlation of a true function with the span of ours, (n,) and (n, k)."""
    centred = ours - ours.mean(axis=0)
    wanted = true - true.mean()
    fitted = centred @ np.linalg.lstsq(centred, wanted, rcond=None)[0]
    return float(np.sqrt(np.vdot(fitted, fitted) / np.vdot(wanted, wanted)))


def taken_together(sigma: Values) -> int:
    """How many of the first singular values are not clearly larger than the next."""
    gaps = sigma - np.append(sigma[1:], 0.0)
    clear = np.flatnonzero(gaps >= CLEARLY_SMALLER)
    return int(clear[0]) + 1 if clear.size else len(sigma)


def _at_rows(side: Any, values: pd.Series) -> Values:
    """The functions of one side of a pair at its rows, (n, m)."""
    column = side.column
    if column.kind == "label":
        codes, texts = pd.factorize(values)
        return side.functions[column.of_labels(codes, list(texts))]
    return side.functions[column.of_numbers(values.to_numpy(float))]


def _judged(drawn: DrawnPair) -> Row:
    """How far featgeo is from the truth of one pair."""
    import featgeo

    pair = featgeo.explore(pd.DataFrame({"x": drawn.x, "y": drawn.y}), verbose=0).pair("x", "y")
    m = taken_together(drawn.sigma)
    return {
        "true_sigma": drawn.sigma[0],
        "sigma": abs(pair.summary["sigma1"] - drawn.sigma[0]),
        "held_out": abs(pair.summary["strength"] - drawn.sigma[0]),
        "f": shape_correlation(drawn.f[:, 0], _at_rows(pair.a, drawn.x)[:, :m]),
        "g": shape_correlation(drawn.g[:, 0], _at_rows(pair.b, drawn.y)[:, :m]),
    }


def truth(n: int, seeds: range) -> list[Row]:
    """The largest errors of strengths and shapes over the tables of each law, then those of what columns add."""
    rows: list[Row] = []
    for law in LAWS:
        start = time.process_time()
        judged = pd.DataFrame([_judged(law(np.random.default_rng(seed), n)) for seed in seeds])
        close = judged[["f", "g"]].min(axis=1) >= 0.99
        rows.append({
            "law": law.__name__.replace("_", " "),
            "tables": len(seeds),
            "largest_error_of_sigma": float(judged["sigma"].max()),
            "of_held_out": float(judged["held_out"].max()),
            "least_correlation_of_f": float(judged["f"].min()),
            "of_g": float(judged["g"].min()),
            "tables_below_0.99": int((~close).sum()),
            "least_sigma": float(judged["true_sigma"].min()),
        })  # fmt: skip
        print(f"  {law.__name__}: {time.process_time() - start:.1f} s", file=sys.stderr, flush=True)
    for target in TARGETS:
        drawn = [target(np.random.default_rng(seed), n) for seed in seeds]
        errors = np.concatenate([_target_errors(one) for one in drawn])
        moderate = np.array([value < MODERATE for one in drawn for value in one.alone.values()])
        rows.append({
            "law": target.__name__.replace("_", " "),
            "tables": len(seeds),
            "largest_error_alone": float(errors[:, 0].max()),
            "of_energies_up_to": max(max(one.alone.values()) for one in drawn),
            "largest_error_of_what_is_added": float(errors[:, 1].max()),
            "of_moderate_columns": float(errors[moderate, 1].max()),
            "of_additions_up_to": max(max(one.adds.values()) for one in drawn),
            "of_fitted_parameters": max(_error_of_fitted(one) for one in drawn) if drawn[0].fitted_adds else None,
        })  # fmt: skip
    return rows


def _error_of_fitted(drawn: DrawnTarget) -> float:
    """The largest error of what columns add under the parameters that fit the rows best."""
    return max(abs(value - drawn.adds[name]) for name, value in (drawn.fitted_adds or {}).items())


def _target_errors(drawn: DrawnTarget) -> Values:
    """Errors of what each column says alone, and adds to the others, (columns, 2)."""
    import featgeo

    told = featgeo.explore(drawn.frame, target="y", verbose=0).target.to_frame().set_index("column")
    return np.array([
        [abs(told.loc[name, "alone"] - drawn.alone[name]), abs(told.loc[name, "added"] - drawn.adds[name])]
        for name in drawn.adds
    ])  # fmt: skip
