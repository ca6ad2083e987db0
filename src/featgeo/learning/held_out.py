"""What rows that a solution has not seen say about it: H-scores, correlations and energies, by algebra on moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from featgeo.geometry.incomplete import Kind, kinds
from featgeo.geometry.observed import Patterns
from featgeo.geometry.problem import Directions, SpanProblem
from featgeo.geometry.validation import Array

MOST_SCALE = 20.0  # rows that see less of a function cannot judge it


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that a problem has not seen, in its coordinates.

    Rows that miss blocks judge what they see of a function, tau f; what is found is told for f itself, by the ratio of
    the energies of both. They see levels mixed, which are orthogonal only for complete rows: so what other levels say
    there is taken off first.

    Attributes:
        kinds: What the rows of each kind say.
        y_gram: Second moments of the basis of y on these rows, (r_y, r_y).
        y_step: Its means, (r_y,).
    """

    kinds: list[Kind]
    y_gram: Array
    y_step: Array

    @classmethod
    def of(cls, problem: SpanProblem, unseen: Patterns, tau_ridge: float | None = None) -> HeldOut:
        """See the rows of one fold."""
        y, basis = problem.y, problem.y.flag.basis
        moments = unseen.metric(y.names)
        step = (moments.joint_mean(y.names) - y.mean) @ basis
        gram = basis.T @ moments.joint_covariance(y.names, y.names) @ basis + np.outer(step, step)
        return cls(kinds(problem, unseen, tau_ridge, own_means=True), gram, step)

    def seen_under(self, problem: SpanProblem, tau_ridge: float) -> HeldOut:
        """The same rows under another tau ridge."""
        return replace(self, kinds=[kind.under(problem, tau_ridge) for kind in self.kinds])

    def score(self, levels: Sequence[Directions]) -> float:
        """H-score of all modes together, f and g each carrying sqrt(sigma): of each kind of row what it can see."""
        captured, own, _ = self._seen(_all(levels), None)
        return float(captured.sum() - own.sum() / 2)

    def captured(self, levels: Sequence[Directions], i: int, k: int) -> Array:
        """How much of the dependence of these rows each mode of a level captures, <i, f g>, and its own energy there,
        (2, k); 0 for modes that are not there.
        """
        sigma = levels[i][1]
        captured, own, visible = self._seen(levels[i], _but(levels, i))
        scale = float(np.sum(sigma**2)) / visible.sum() if visible.sum() > 0 else 0.0
        result = np.zeros((2, k))
        result[:, : min(k, len(sigma))] = min(scale, MOST_SCALE) * np.stack([captured, own])[:, :k]
        return result

    def correlations(self, levels: Sequence[Directions], i: int, k: int) -> Array:
        """Correlation of f_j with g_j of a level, (k,); 0 for modes that are not there."""
        left, _, right = levels[i]
        captured, _, visible = self._seen((left, np.ones(left.shape[1]), right), _but(levels, i))
        variance = np.zeros(left.shape[1])
        for kind in self.kinds:
            seen = kind.seen(left)
            variance += kind.share * (np.sum(seen * (kind.gram @ seen), axis=0) - (kind.step @ seen) ** 2)
        y_variance = np.sum(right * (self.y_gram @ right), axis=0) - (self.y_step @ right) ** 2
        # Rounding can push the variance of a feature that is constant on these rows below zero.
        scale = np.sqrt(variance.clip(min=0) * y_variance.clip(min=0) * visible)
        correlation = np.divide(captured, scale, out=np.zeros_like(captured), where=scale > 0)
        result = np.zeros(k)
        result[: min(k, len(correlation))] = correlation[:k]
        return result

    def _seen(self, level: Directions, others: Directions | None) -> tuple[Array, Array, Array]:
        """For each mode sigma f g: its covariance with these rows, its energy there, and what that should be, (k,)."""
        left, sigma, right = level
        captured, own, visible = np.zeros((3, len(sigma)))
        g_gram = right.T @ self.y_gram @ right
        for kind in self.kinds:
            seen = kind.seen(left)
            captured += kind.share * sigma * np.sum(seen * (kind.covariance @ right), axis=0)
            own += kind.share * (sigma * (((seen.T @ kind.gram @ seen) * g_gram) @ sigma))
            visible += kind.share * np.sum(seen**2, axis=0) * sigma**2
            if others is not None and kind.inside is not None:
                other, strength, g = others
                mixed = (seen.T @ kind.gram @ kind.seen(other)) * (right.T @ self.y_gram @ g)
                captured -= kind.share * sigma * (mixed @ strength)
        return captured, own, visible


def _all(levels: Sequence[Directions]) -> Directions:
    """Several levels as one."""
    left, sigma, right = (np.concatenate(part, axis=-1) for part in zip(*levels, strict=True))
    return left, sigma, right


def _but(levels: Sequence[Directions], i: int) -> Directions | None:
    """All levels but one, as one."""
    others = [level for j, level in enumerate(levels) if j != i % len(levels)]
    return _all(others) if others else None
