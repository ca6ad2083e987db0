"""Tables drawn for `benchmarks/explore.py`: independent columns, planted dependences, planted interactions.

Laws are drawn, not listed: the kind of each column, its ties, its rare labels and its holes come from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

Values = np.ndarray
Rng = np.random.Generator
Pair = frozenset[str]


def _labels(rng: Rng, n: int, share: Values) -> pd.Series:
    names = np.array([f"label {at}" for at in range(share.size)], object)
    return pd.Series(names[rng.choice(share.size, n, p=share)], dtype="str")


def _even_labels(rng: Rng, n: int) -> pd.Series:
    return _labels(rng, n, rng.dirichlet(np.full(rng.integers(2, 9), 2.0)))


def _rare_label(rng: Rng, n: int) -> pd.Series:
    return _labels(rng, n, np.array([0.98, 0.02]))


def _zipf_labels(rng: Rng, n: int) -> pd.Series:
    share = 1 / np.arange(1, 41)
    return _labels(rng, n, share / share.sum())


def _many_labels(rng: Rng, n: int) -> pd.Series:
    return _labels(rng, n, rng.dirichlet(np.full(n // 4, 0.7)))


def _days(rng: Rng, n: int) -> pd.Series:
    return pd.Series(np.datetime64("2015-01-01") + rng.integers(0, 3650, n).astype("timedelta64[D]")).astype(
        "datetime64[us]"
    )


# numbers smooth, with tails, with ties and atoms; truth values; dates; labels few, rare and many
COLUMNS: tuple[Callable[[Rng, int], pd.Series], ...] = (
    lambda rng, n: pd.Series(rng.standard_normal(n)),
    lambda rng, n: pd.Series(rng.uniform(size=n)),
    lambda rng, n: pd.Series(rng.standard_t(2, n)),
    lambda rng, n: pd.Series(np.exp(2 * rng.standard_normal(n))),
    lambda rng, n: pd.Series(np.round(2 * rng.standard_normal(n)) / 2),
    lambda rng, n: pd.Series(rng.poisson(rng.uniform(0.2, 6), n)),
    lambda rng, n: pd.Series(rng.exponential(size=n) * (rng.random(n) > rng.uniform(0.5, 0.95))),
    lambda rng, n: pd.Series(rng.integers(1, 6, n)),
    lambda rng, n: pd.Series(rng.random(n) < rng.uniform(0.1, 0.5)),
    _days,
    _even_labels,
    _rare_label,
    _zipf_labels,
    _many_labels,
)
HOLES = (0.0, 0.0, 0.02, 0.15, 0.4)  # shares of missing values, drawn for each column


def with_holes(rng: Rng, column: pd.Series, missing: Values | float | None = None) -> pd.Series:
    """The column with a share of its values missing, by chance or with the probability given for each row."""
    share = rng.choice(HOLES) if missing is None else missing
    if column.dtype.kind in "iu":
        column = column.astype("float64")
    elif column.dtype.kind == "b":
        column = column.astype("boolean")
    return column.mask(rng.random(len(column)) < share) if np.any(share) else column


def independent_table(seed: int, n: int, n_columns: int = 30) -> pd.DataFrame:
    """Columns of kinds drawn from `COLUMNS`, each with its own share of holes, all independent."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(len(COLUMNS), size=n_columns)
    return pd.DataFrame({f"c{at}": with_holes(rng, COLUMNS[kind](rng, n)) for at, kind in enumerate(kinds)})


def _standard(values: Values) -> Values:
    return (values - values.mean()) / values.std()


def monotone_map(rng: Rng, values: Values, rounded: bool = True) -> pd.Series:
    """Numbers as tables have them: as they are, skewed, with heavy tails, or rounded."""
    maps: tuple[Callable[[Values], Values], ...] = (lambda v: v, np.exp, lambda v: v**3, lambda v: np.round(v, 1))
    return pd.Series(maps[rng.integers(len(maps) if rounded else len(maps) - 1)](values))


def _shifted(shape: Callable[[Values], Values]) -> Callable[[Rng, int, float], tuple[pd.Series, pd.Series]]:
    """Y = rho phi(x) + noise, with phi of unit variance, so that rho is the correlation of Y and phi(x)."""

    def plant(rng: Rng, n: int, rho: float) -> tuple[pd.Series, pd.Series]:
        x = rng.standard_normal(n)
        y = rho * _standard(shape(x)) + np.sqrt(1 - rho**2) * rng.standard_normal(n)
        return monotone_map(rng, x), monotone_map(rng, y)

    return plant


def _label_shifts_number(rng: Rng, n: int, rho: float) -> tuple[pd.Series, pd.Series]:
    label = rng.integers(6, size=n)
    means = rng.standard_normal(6)[label]
    y = rho * _standard(means) + np.sqrt(1 - rho**2) * rng.standard_normal(n)
    return pd.Series(np.array(list("abcdef"), object)[label], dtype="str"), monotone_map(rng, y)


def _label_label(rng: Rng, n: int, rho: float) -> tuple[pd.Series, pd.Series]:
    """P(x, y) = (1 + rho f(x) g(y)) / 16, with f and g of unit variance and values 1 and -1."""
    f, g = np.array([1, 1, -1, -1]), np.array([1, -1, 1, -1])
    joint = (1 + rho * np.outer(f, g)) / 16
    x, y = np.divmod(rng.choice(16, n, p=joint.ravel()), 4)
    names = np.array(list("abcd"), object)
    return pd.Series(names[x], dtype="str"), pd.Series(names[y], dtype="str")


def _spread(rng: Rng, n: int, rho: float) -> tuple[pd.Series, pd.Series]:
    """The spread of Y grows with x, its middle does not: log-variance of slope 2 rho."""
    x = rng.standard_normal(n)
    return monotone_map(rng, x), pd.Series(np.exp(rho * x) * rng.standard_normal(n))


def _rare_label_shifts(rng: Rng, n: int, rho: float) -> tuple[pd.Series, pd.Series]:
    rare = rng.random(n) < 0.04
    y = rho * (rare - 0.04) / np.sqrt(0.04 * 0.96) + np.sqrt(1 - rho**2) * rng.standard_normal(n)
    return pd.Series(np.where(rare, "rare", "usual"), dtype="str"), monotone_map(rng, y)


def _missing_follows(rng: Rng, n: int, rho: float) -> tuple[pd.Series, pd.Series]:
    """Whether y is missing, in a fifth of the rows, depends on whether x is above its middle."""
    x, y = rng.standard_normal((2, n))
    return monotone_map(rng, x), with_holes(rng, pd.Series(y), np.clip(0.2 + 0.4 * rho * np.sign(x), 0, 1))


PLANTED: dict[str, Callable[[Rng, int, float], tuple[pd.Series, pd.Series]]] = {
    "linear": _shifted(lambda x: x),
    "monotone": _shifted(lambda x: np.exp(1.5 * np.clip(x, -2.5, 2.5))),
    "quadratic": _shifted(lambda x: x**2),
    "sine": _shifted(lambda x: np.sin(3 * x)),
    "step": _shifted(lambda x: np.where(x > 0.8, 1.0, 0.0)),
    "label shifts number": _label_shifts_number,
    "label and label": _label_label,
    "spread": _spread,
    "rare label": _rare_label_shifts,
    "missingness": _missing_follows,
}
STRENGTHS = {"weak": 6.0, "clear": 10.0}  # times 1/sqrt(n): correlations of the planted functions, alike at all sizes


@dataclass(frozen=True)
class PlantedTable:
    """A table, and the kind of dependence planted in each pair that has one."""

    frame: pd.DataFrame
    truth: dict[Pair, str]


def planted_table(seed: int, n: int, strength: str, n_columns: int = 30) -> PlantedTable:
    """One pair of columns for each kind of dependence, in columns drawn at random among independent ones."""
    frame = independent_table(seed, n, n_columns)
    rng = np.random.default_rng([seed, 1])
    places = rng.permutation(frame.columns.to_numpy())
    rho = min(STRENGTHS[strength] / np.sqrt(n), 0.9)
    truth = {}
    for at, (kind, plant) in enumerate(PLANTED.items()):
        a, b = str(places[2 * at]), str(places[2 * at + 1])
        x, y = plant(rng, n, rho)
        holes = 0.0 if kind == "missingness" else None
        frame[a], frame[b] = with_holes(rng, x, holes), with_holes(rng, y, holes)
        truth[frozenset((a, b))] = kind
    return PlantedTable(frame, truth)


@dataclass(frozen=True)
class InteractionTable:
    """A table with a target `y`, and the pair of columns that acts on it together (None: there is no such pair)."""

    frame: pd.DataFrame
    planted: Pair | None


def _correlated_columns(rng: Rng, n: int, n_columns: int) -> tuple[pd.DataFrame, Values]:
    """Numbers, ties and labels by turns, in groups of five with correlation 0.3; and the normal scores behind them."""
    shared = np.repeat(rng.standard_normal((n, -(-n_columns // 5))), 5, axis=1)[:, :n_columns]
    scores = np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.standard_normal((n, n_columns))
    letters = np.array(list("abcdef"), object)
    makers: tuple[Callable[[Values], pd.Series], ...] = (
        lambda s: pd.Series(s),
        lambda s: pd.Series(np.exp(s)),
        lambda s: pd.Series(np.round(s)),
        lambda s: pd.Series(letters[np.clip(np.round(s) + 3, 0, 5).astype(int)], dtype="str"),
    )
    kinds = rng.integers(len(makers), size=n_columns)
    return pd.DataFrame({f"c{at}": makers[kind](scores[:, at]) for at, kind in enumerate(kinds)}), scores


def interaction_table(seed: int, n: int, kind: str | None, n_columns: int = 40) -> InteractionTable:
    """A target that some columns act on one by one, and, of a `kind`, two columns together.

    Each row of y comes from the law of one column, drawn by chance, or from that of the planted pair: P(y|x) is then a
    weighted sum of P(y|x_j), a sum of functions of single columns exactly, but for what the pair adds. The pair acts on
    three rows in four, single columns on the rest.

    Args:
        seed: Of all that is drawn.
        n: Rows.
        kind: "product", "xor", "threshold", or None for a table without interaction.
        n_columns: Columns beside y.
    """
    rng = np.random.default_rng(seed)
    frame, scores = _correlated_columns(rng, n, n_columns)
    first, second, *alone = rng.permutation(n_columns)[:6]
    noise = rng.standard_normal(n)
    y = scores[np.arange(n), np.array(alone)[rng.integers(len(alone), size=n)]] + 0.7 * noise
    together = rng.random(n) < 0.75
    u, v = scores[:, first], scores[:, second]
    if kind is not None:
        law = {
            "product": 0.6 * u * v + 0.8 * noise,
            "xor": 0.5 * np.sign(u * v) + noise,
            "threshold": 1.5 * ((u > 0.5) & (v > 0.5)) + noise,
        }[kind]
        y = np.where(together, law, y)
    labelled = kind == "xor" or (kind is None and seed % 2 == 1)
    frame["y"] = pd.Series(np.where(y > np.median(y), "high", "low"), dtype="str") if labelled else y
    return InteractionTable(frame, frozenset((f"c{first}", f"c{second}")) if kind else None)
