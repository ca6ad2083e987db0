"""The one rule by which held-out rows choose: spaces, ridges, numbers of modes, levels and strengths alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from featgeo.geometry.validation import Array

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Candidate(Generic[T]):
    """Something to choose.

    Attributes:
        what: It.
        cost: Of the same kind for all that it is compared with: modes, functions, work. Cost 0 is to have nothing.
        scores: On each fold of rows that it has not seen, (folds,); the larger the better.
    """

    what: T
    cost: float
    scores: Array

    @property
    def score(self) -> float:
        """Mean over the folds; 0 where no rows judge."""
        return float(np.mean(self.scores)) if len(self.scores) else 0.0


def preferred(candidates: Sequence[Candidate[T]]) -> Candidate[T]:
    """The cheapest that falls short of the best by no more than one standard error of the difference.

    Of several that cost the same the best, and of equals the first. Whether to have anything at all is for the mean
    score to say: that something is weak is no reason to have nothing.
    """
    best = max(candidates, key=lambda one: one.score)
    close = [one for one in candidates if (one.cost == 0) == (best.cost == 0) and is_within_an_error(best, one)]
    return min(close, key=lambda one: (one.cost, -one.score))


def is_within_an_error(best: Candidate[T], other: Candidate[T]) -> bool:
    """Whether what the other lacks is no more than its own standard error over the folds."""
    loss = best.scores - other.scores
    error = loss.std(ddof=1) / np.sqrt(len(loss)) if len(loss) > 1 else 0.0
    return best is other or not len(loss) or bool(loss.mean() <= error)
