"""How to learn, whatever the setting: what a user decides once, and every part of the engine reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from featgeo.geometry.validation import check_choice, check_number, seed_of
from featgeo.learning.options import Training

ModeCount = int | Literal["auto", "all"]
Solver = Literal["auto", "exact", "closed", "neural"]

# Relative to features of unit variance. Few: the held-out H-score is flat around its maximum.
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True, eq=False)
class Plan:
    """How to learn.

    Attributes:
        solver: The way; "auto" takes the most exact one that applies.
        seed: Of everything random.
        training: Options of training, for networks.
        ridge: That shrinks features of unit variance; "auto" for what held-out rows prefer. With 0 linear spaces give
            canonical correlations, tables correspondence analysis.
        apart: Positions of the rows that networks are not trained on; at random when None.
    """

    solver: Solver = "auto"
    seed: int = 0
    training: Training | None = None
    ridge: float | Literal["auto"] = "auto"
    apart: np.ndarray | None = None

    @classmethod
    def of(cls, estimator: Any) -> Plan:
        """What the arguments of an estimator say, checked; those that it does not have are the defaults."""
        solver = check_choice(estimator.solver, "solver", get_args(Solver))
        training, ridge = estimator.training, cast("Any", getattr(estimator, "ridge", "auto"))
        if training is not None and not isinstance(training, Training):
            raise ValueError(f"`training` must be a Training, got {training!r}. Write Training(max_epochs=20).")
        if not (isinstance(ridge, str) and ridge == "auto"):
            ridge = check_number(ridge, "ridge", "'auto' or at least 0", "Use 0 for none, or 'auto'.")
        return cls(cast("Solver", solver), seed_of(estimator.random_state), training, ridge)

    def ridges(self, some: tuple[float, ...] = RIDGES) -> tuple[float, ...]:
        """To choose from: some, or the one that was asked for."""
        return some if self.ridge == "auto" else (self.ridge,)

    @property
    def steady(self) -> tuple[bool, ...]:
        """Whether modes may stay what they are under the ridge (`SpanProblem.best_directions`): what to choose from."""
        return (False, True) if self.ridge == "auto" else (False,)
