"""Joint laws drawn from a seed, with their density ratio p(y|x) / p(y).

X has 1 to 50 columns: numbers of several shapes, ordinal ones, labels, copies of other columns, most of them without
any part in Y. A few of them enter functions eta(x) of some family; Y follows an explicit density given these. So p(y|x)
is exact, and p(y) is its mean over `REFERENCE_ROWS` rows of x, exact but for the last per cent.

    law = draw_law(7)
    rows = law.sample(1000, np.random.default_rng(0))     # rows.x, rows.y are frames, as estimators get them
    law.ratio(rows, others)                               # p(y_j | x_i) / p(y_j), (rows, others)

Seeds below 10,000 are for tuning; each seed above serves a single report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import expit, log_softmax, ndtr
from scipy.stats import t as student

Array = np.ndarray
Function = Callable[[Array], Array]  # from what functions read of x, (n, d), to values, (n,)
Rng = np.random.Generator

REFERENCE_ROWS = 30_000  # of x, over which p(y) is an average
FEWEST_ROWS, MOST_ROWS = 200, 100_000


# --- the columns of X


@dataclass(frozen=True)
class Column:
    """A column, made of a standard normal z.

    Attributes:
        kind: "normal", "uniform", "heavy", "ordinal", "label", or "copy".
        levels: Upper ends of the shares of ordinal values and of labels.
        worth: What functions read in place of each of them.
        of: The column that is copied, with a little noise.
    """

    kind: str
    levels: Array | None = None
    worth: Array | None = None
    of: int = 0

    def seen(self, z: Array) -> tuple[Array, Array]:
        """What estimators get, and what functions read."""
        if self.kind == "uniform":
            return ndtr(z), np.sqrt(12) * (ndtr(z) - 0.5)
        if self.kind == "heavy":
            return student.ppf(ndtr(z), 2), z
        if self.levels is not None and self.worth is not None:
            code = np.searchsorted(self.levels, ndtr(z)).clip(max=len(self.worth) - 1)
            return (code if self.kind == "ordinal" else np.array([f"l{c}" for c in code])), self.worth[code]
        return z, z


def draw_columns(rng: Rng, n_columns: int) -> tuple[Column, ...]:
    """Kinds of columns; a table is of numbers only, or mixed."""
    kinds = ["normal", "uniform", "heavy"] if rng.random() < 0.5 else ["normal", "heavy", "ordinal", "label", "label"]
    columns: list[Column] = []
    for i in range(n_columns):
        kind = "copy" if i > 1 and rng.random() < 0.1 else str(rng.choice(kinds))
        if kind in ("ordinal", "label"):
            m = int(rng.integers(2, 13))
            share = 1 / np.arange(1, m + 1) ** rng.choice([0.0, 1.5])  # even, or most of them rare
            worth = np.linspace(-1.7, 1.7, m) if kind == "ordinal" else rng.standard_normal(m)
            columns.append(Column(kind, np.cumsum(share / share.sum()), worth))
        else:
            columns.append(Column(kind, of=int(rng.integers(0, max(i, 1)))))
    return tuple(columns)


def read_columns(columns: tuple[Column, ...], z: Array) -> tuple[pd.DataFrame, Array]:
    """The frame that estimators get, and what functions read, (n, d); z are normal, (n, d)."""
    for i, column in enumerate(columns):
        if column.kind == "copy":
            z[:, i] = 0.97 * z[:, column.of] + np.sqrt(1 - 0.97**2) * z[:, i]
    seen = [column.seen(z[:, i]) for i, column in enumerate(columns)]
    return pd.DataFrame({f"x{i}": came for i, (came, _) in enumerate(seen)}), np.stack([read for _, read in seen], 1)


# --- functions of a few numbers, (n, a) -> (n,)


def smooth(rng: Rng, a: int) -> Function:
    """A draw of a Gaussian process of random length, by random Fourier features."""
    length = np.exp(rng.uniform(np.log(0.4), np.log(3))) * np.sqrt(a)
    waves, phase, weight = (
        rng.standard_normal((a, 200)) / length,
        rng.uniform(0, 2 * np.pi, 200),
        rng.standard_normal(200),
    )
    return lambda v: np.cos(v @ waves + phase) @ weight


def steps(rng: Rng, a: int) -> Function:
    """Constant between a few thresholds of one number; with several, a sum over boxes."""
    if a == 1:
        at = np.sort(rng.standard_normal(rng.integers(1, 9)))
        height = rng.standard_normal(len(at) + 1)
        return lambda v: height[np.searchsorted(at, v[:, 0])]
    centre, reach = rng.standard_normal((6, a)), rng.uniform(0.7, 2.5, (6, a))
    height = rng.standard_normal(6)
    return lambda v: (np.abs(v[:, None] - centre) < reach).all(axis=2) @ height


def tree(rng: Rng, a: int) -> Function:
    """A tree of random columns and thresholds."""
    depth = int(rng.integers(1, 5))
    column, at, leaf = rng.integers(0, a, 2**depth), rng.standard_normal(2**depth), rng.standard_normal(2**depth)

    def values(v: Array) -> Array:
        node = np.ones(len(v), dtype=int)
        for _ in range(depth):
            node = 2 * node + (v[np.arange(len(v)), column[node]] > at[node])
        return leaf[node - 2**depth]

    return values


def network(rng: Rng, a: int) -> Function:
    """Two random layers."""
    first, shift, second = rng.standard_normal((a, 16)) * 1.5, rng.standard_normal(16), rng.standard_normal((16, 8)) / 2
    last = rng.standard_normal(8)
    return lambda v: np.tanh(np.maximum(v @ first + shift, 0) @ second) @ last


def along(rng: Rng, a: int, n_indices: int = 1) -> Function:
    """A sum of smooth or stepwise curves along as many directions."""
    ways, curves = [], []
    for _ in range(n_indices):
        way = rng.standard_normal(a)
        ways.append(way / np.linalg.norm(way))
        curves.append((smooth, steps, periodic)[rng.choice(3, p=[0.6, 0.25, 0.15])](rng, 1))
    return lambda v: sum(curve(v @ way[:, None]) for way, curve in zip(ways, curves, strict=True))


def several_indices(rng: Rng, a: int) -> Function:
    return along(rng, a, int(rng.integers(2, 4)))


def additive(rng: Rng, a: int) -> Function:
    """A sum of curves of single columns."""
    curves = [(smooth, steps, linear)[rng.choice(3)](rng, 1) for _ in range(a)]
    return lambda v: sum(curve(v[:, [i]]) for i, curve in enumerate(curves))


def product(rng: Rng, a: int) -> Function:
    """A product of curves of up to three columns."""
    curves = [smooth(rng, 1) for _ in range(min(a, 3))]
    return lambda v: np.prod([curve(v[:, [i]]) / 10 for i, curve in enumerate(curves)], axis=0)


def periodic(rng: Rng, a: int) -> Function:
    way = rng.standard_normal((a, 1)) * np.exp(rng.uniform(0, np.log(5))) / np.sqrt(a)
    phase = rng.uniform(0, 2 * np.pi)
    return lambda v: np.sin(v @ way + phase)[:, 0]


def linear(rng: Rng, a: int) -> Function:
    way = rng.standard_normal(a)
    return lambda v: v @ way


FAMILIES = (smooth, steps, tree, network, along, several_indices, additive, product, periodic, linear)


def standardised(function: Function, active: Array, reference: Array) -> Function:
    """The function of some columns, with mean 0 and variance 1 over the reference."""
    values = function(reference[:, active])
    mean, spread = values.mean(), values.std()
    return lambda read: (function(read[:, active]) - mean) / (spread if spread > 1e-9 else 1.0)


# --- Y given the values of functions: each draws y, knows p(y_j | values_i), and how y comes to estimators


@dataclass(frozen=True)
class Located:
    """Numbers: around the value of one of several functions, chosen at random, with noise of some shape.

    Attributes:
        noise: "gaussian", "heavy" (Student's t, two degrees) or "uniform".
        scale: Of the noise, beside functions of unit variance.
        n_peaks: How many functions there are to be around.
        uneven: How much the logarithm of the scale follows one more function.
        bent: Whether y comes as exp(y): no density ratio changes with it.
    """

    noise: str
    scale: float
    n_peaks: int = 1
    uneven: float = 0.0
    bent: bool = False

    @property
    def n_functions(self) -> int:
        return self.n_peaks + (self.uneven > 0)

    def _scale(self, values: Array) -> Array:
        return self.scale * np.exp(self.uneven * values[:, -1]) if self.uneven else np.full(len(values), self.scale)

    def draw(self, values: Array, rng: Rng) -> Array:
        n = len(values)
        noise = {
            "gaussian": lambda: rng.standard_normal(n),
            "heavy": lambda: rng.standard_t(2, n),
            "uniform": lambda: rng.uniform(-1.7, 1.7, n),
        }[self.noise]()
        return values[np.arange(n), rng.integers(0, self.n_peaks, n)] + self._scale(values) * noise

    def density(self, values: Array, y: Array) -> Array:
        """p(y_j | values_i), (values, y)."""
        result, scale = np.zeros((len(values), len(y))), self._scale(values)[:, None]
        for peak in range(self.n_peaks):
            z = (y - values[:, [peak]]) / scale
            if self.noise == "gaussian":
                result += np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
            elif self.noise == "heavy":
                result += (2 + z * z) ** -1.5
            else:
                result += (np.abs(z) < 1.7) / 3.4
        return result / scale / self.n_peaks

    def below(self, values: Array, y: Array) -> Array:
        """P(Y <= y_j | values_i), (values, y)."""
        scale = self._scale(values)[:, None]
        told = {"gaussian": ndtr, "heavy": student(2).cdf, "uniform": lambda z: ((z + 1.7) / 3.4).clip(0, 1)}[
            self.noise
        ]
        return sum(told((y - values[:, [peak]]) / scale) for peak in range(self.n_peaks)) / self.n_peaks

    def frame(self, y: Array) -> Array:
        return np.exp(y) if self.bent else y


@dataclass(frozen=True)
class Labels:
    """Labels, by a softmax of functions; rare ones where biases differ."""

    strength: float
    bias: Array

    @property
    def n_functions(self) -> int:
        return len(self.bias)

    def density(self, values: Array, y: Array) -> Array:
        return np.exp(log_softmax(self.strength * values + self.bias, axis=1))[:, y.astype(int)]

    def draw(self, values: Array, rng: Rng) -> Array:
        share = self.density(values, np.arange(len(self.bias)))
        return (share.cumsum(axis=1) < rng.random((len(values), 1))).sum(axis=1).clip(max=len(self.bias) - 1)

    def frame(self, y: Array) -> Array:
        return np.array([f"c{code}" for code in y.astype(int)])


@dataclass(frozen=True)
class Ordinal:
    """A function with logistic noise, cut into levels."""

    scale: float
    cuts: Array
    n_functions: int = 1

    def density(self, values: Array, y: Array) -> Array:
        below = np.pad(expit((self.cuts - values) / self.scale), ((0, 0), (1, 1)), constant_values=(0, 1))
        return np.diff(below, axis=1)[:, y.astype(int)]

    def below(self, values: Array, y: Array) -> Array:
        """P(Y <= y_j | values_i), (values, y)."""
        cuts = np.append(self.cuts, np.inf)[y.astype(int)]
        return expit((cuts - values) / self.scale)

    def draw(self, values: Array, rng: Rng) -> Array:
        return np.searchsorted(self.cuts, values[:, 0] + self.scale * rng.logistic(size=len(values)))

    def frame(self, y: Array) -> Array:
        return y


Response = Located | Labels | Ordinal


def draw_response(rng: Rng) -> tuple[str, Response]:
    """What Y is, from barely visible to almost a function of X."""
    kind = str(rng.choice(["gaussian", "uneven", "heavy", "uniform", "peaks", "labels", "ordinal"], p=PROBABILITIES))
    scale = float(np.exp(rng.uniform(np.log(0.08), np.log(4))))
    if kind == "labels":
        m = int(rng.integers(2, 9))
        return kind, Labels(1.5 / scale**0.7, -np.arange(m) * rng.choice([0.0, 0.8]))
    if kind == "ordinal":
        return kind, Ordinal(scale / 1.8, np.sort(rng.standard_normal(rng.integers(2, 9)) * np.hypot(1, scale)))
    bent = bool(rng.random() < 0.3)
    if kind == "peaks":
        return kind, Located("gaussian", max(scale / 2, 0.1), int(rng.integers(2, 4)), bent=bent)
    if kind == "uneven":
        return kind, Located("gaussian", scale, uneven=float(rng.uniform(0.3, 1)), bent=bent)
    return kind, Located(kind, scale, bent=bent and kind != "heavy")


PROBABILITIES = (0.28, 0.14, 0.1, 0.08, 0.12, 0.18, 0.1)


# --- the law


@dataclass(frozen=True)
class Draw:
    """Rows of a law: what estimators get, and what densities read."""

    x: pd.DataFrame
    y: pd.DataFrame
    values: tuple[Array, ...]
    told: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True)
class Law:
    """X, functions of it, and a column or two of Y that are independent of each other given these.

    Attributes:
        active: Positions of the columns that functions may read: given these, Y is independent of all others.
    """

    seed: int
    description: str
    columns: tuple[Column, ...]
    shared: float
    responses: tuple[Response, ...]
    functions: tuple[tuple[Function, ...], ...] = field(repr=False)
    size: float = 0.5
    active: tuple[int, ...] = ()

    def n_rows(self, most: int = MOST_ROWS) -> int:
        """How many rows an estimator gets, where it may be so many."""
        return round(FEWEST_ROWS * (most / FEWEST_ROWS) ** self.size)

    def sample(self, n: int, rng: Rng) -> Draw:
        x, read = read_columns(self.columns, normal(rng, n, len(self.columns), self.shared))
        values = tuple(np.stack([one(read) for one in several], 1) for several in self.functions)
        told = tuple(response.draw(v, rng) for response, v in zip(self.responses, values, strict=True))
        y = {f"y{j}": response.frame(t) for j, (response, t) in enumerate(zip(self.responses, told, strict=True))}
        return Draw(x, pd.DataFrame(y), values, told)

    def conditional(self, values: tuple[Array, ...], told: tuple[Array, ...]) -> Array:
        """p(y_j | x_i), a density or a probability, (rows of x, rows of y)."""
        densities = (response.density(v, t) for response, v, t in zip(self.responses, values, told, strict=True))
        return np.prod(list(densities), axis=0)

    def ratio(self, x: Draw, y: Draw) -> Array:
        """p(y_j | x_i) / p(y_j), (rows of x, rows of y)."""
        starts = range(0, REFERENCE_ROWS, 1000)
        parts = (tuple(v[start : start + 1000] for v in self._reference) for start in starts)
        marginal = sum(self.conditional(part, y.told).mean(axis=0) for part in parts) / len(starts)
        return self.conditional(x.values, y.told) / marginal

    @cached_property
    def _reference(self) -> tuple[Array, ...]:
        return self.sample(REFERENCE_ROWS, np.random.default_rng([self.seed, 1])).values


def draw_law(seed: int) -> Law:
    """The law of a seed."""
    rng = np.random.default_rng([seed, 0])
    n_columns = 1 if rng.random() < 0.3 else int(np.exp(rng.uniform(np.log(2), np.log(50.99))))
    columns, shared = draw_columns(rng, n_columns), float(rng.choice([0.0, 0.0, 0.3, 0.7]))
    reference = read_columns(columns, normal(rng, 5000, n_columns, shared))[1]
    family = FAMILIES[rng.integers(len(FAMILIES))]
    active = rng.choice(n_columns, min(n_columns, int(rng.choice([1, 2, 3, 5, 10]))), replace=False)
    named = [draw_response(rng) for _ in range(2 if rng.random() < 0.1 else 1)]
    functions = tuple(
        tuple(standardised(family(rng, len(active)), active, reference) for _ in range(response.n_functions))
        for _, response in named
    )
    strength = ", ".join(f"{name} {getattr(one, 'scale', getattr(one, 'strength', 0)):.2f}" for name, one in named)
    description = f"{family.__name__} of {len(active)} among {n_columns}, {strength}"
    responses = tuple(one for _, one in named)
    return Law(seed, description, columns, shared, responses, functions, rng.random(), tuple(active.tolist()))


def normal(rng: Rng, n: int, d: int, shared: float) -> Array:
    """Standard normal columns that have one cause in common."""
    return np.sqrt(shared) * rng.standard_normal((n, 1)) + np.sqrt(1 - shared) * rng.standard_normal((n, d))
