"""Laws of X, Y and S for tests given S, drawn from a seed.

X and Y follow functions of S, each of its own, of the families of `laws.py`, and are else independent: the null. Where
they are *alike* Y follows the functions of X, so that whatever a test misses of them looks like dependence. In an
*alternative* Y also follows X ("edge"), or both follow something that is not seen ("cause"). S has 1 to 10 columns,
mixed, drawn or real: columns of scikit-learn's tables, whose rows are drawn with replacement.

    law = draw_given(7)
    x, y, s = law.sample(1000, np.random.default_rng(0))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from laws import (
    FAMILIES,
    Array,
    Column,
    Function,
    Labels,
    Response,
    Rng,
    draw_columns,
    draw_response,
    normal,
    read_columns,
    standardised,
)
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

TABLES = (load_diabetes, load_wine, load_breast_cancer)


@dataclass(frozen=True)
class Given:
    """X and Y given S.

    Attributes:
        description: In words.
        columns: Of S, where they are drawn.
        shared: What they have in common.
        real: Columns of a real table and what functions read of them, where they are not.
        x: What X is, and the functions of S that it follows.
        y: The same for Y.
        effect: How much Y, or both, follow what S does not tell; 0 under the null.
        cause: Whether that is a hidden cause, and not X itself.
    """

    description: str
    columns: tuple[Column, ...]
    shared: float
    real: tuple[pd.DataFrame, Array] | None
    x: tuple[Response, tuple[Function, ...]]
    y: tuple[Response, tuple[Function, ...]]
    effect: float = 0.0
    cause: bool = False

    def sample(self, n: int, rng: Rng) -> tuple[Array, Array, pd.DataFrame]:
        """X, Y, (n,), and S."""
        s, read = self._given(n, rng)
        hidden = rng.standard_normal(n) * self.cause
        x = _drawn(self.x, read, self.effect * hidden, rng)
        centred = (x - x.mean()) / (x.std() or 1.0)
        pushed = hidden if self.cause else ndtri((rankdata(centred) - 0.5) / n)
        y = _drawn(self.y, read, self.effect * pushed, rng)
        return self.x[0].frame(x), self.y[0].frame(y), s

    def _given(self, n: int, rng: Rng) -> tuple[pd.DataFrame, Array]:
        if self.real is None:
            return read_columns(self.columns, normal(rng, n, len(self.columns), self.shared))
        frame, read = self.real
        rows = rng.integers(0, len(frame), n)
        return frame.iloc[rows].reset_index(drop=True), read[rows]


def _drawn(side: tuple[Response, tuple[Function, ...]], read: Array, pushed: Array, rng: Rng) -> Array:
    response, functions = side
    values = np.stack([function(read) for function in functions], 1)
    values[:, 0] += pushed
    return response.draw(values, rng)


def draw_given(seed: int, effect: bool = False, alike: bool = False) -> Given:
    """The null law of a seed, or the alternative; X and Y follow the same functions where they are alike."""
    rng = np.random.default_rng([seed, 10])
    d = int(rng.integers(1, 11))
    columns, shared = draw_columns(rng, d), float(rng.choice([0.0, 0.3, 0.7]))
    real = _real(rng, d) if rng.random() < 0.3 else None
    reference = real[1] if real else read_columns(columns, normal(rng, 5000, d, shared))[1]
    sides, names = [], []
    for _ in "xy":
        family = FAMILIES[rng.integers(len(FAMILIES))]
        name, response = draw_response(rng)
        active = rng.choice(d, min(d, int(rng.choice([1, 2, 3, 5]))), replace=False)
        functions = tuple(
            standardised(family(rng, len(active)), active, reference) for _ in range(response.n_functions)
        )
        sides.append((response, functions))
        names.append(f"{name} of {family.__name__} of {len(active)}")
    if alike:
        shared_by = sides[0][1]
        sides[1] = (sides[1][0], (shared_by + sides[1][1][len(shared_by) :])[: sides[1][0].n_functions])
    scales = [1 / one.strength if isinstance(one, Labels) else one.scale for one, _ in sides]
    size = float(rng.uniform(0.2, 0.8)) * max(scales)  # beside the noise that it is to be seen through
    cause = bool(rng.random() < 0.5)
    words = f"{', '.join(names)}, {'real' if real else 'drawn'} S of {d}"
    return Given(words, columns, shared, real, sides[0], sides[1], size if effect else 0.0, cause and effect)


def _real(rng: Rng, d: int) -> tuple[pd.DataFrame, Array]:
    """Some columns of a table, and their normal scores."""
    table = TABLES[rng.integers(len(TABLES))](as_frame=True).data
    table = table[list(rng.choice(table.columns, min(d, table.shape[1]), replace=False))]
    return table, ndtri((rankdata(table.to_numpy(), axis=0) - 0.5) / len(table))
