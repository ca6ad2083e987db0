"""Functions in steps: constant on a few intervals of a number, cut where functions of another column change most."""

from __future__ import annotations

import numpy as np

from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

STEP_DIRECTIONS = 4  # of functions of the other column that steps are cut by: time


def maybe_stepped(smooth: Array, sums: Array, rows: Array, in_steps: np.ndarray) -> Array:
    """Functions in steps for some pairs, and all functions, (P, 1, a, k), for the others: (P, F, a, k)."""
    n_steps = min(in_force.get().explore_steps, rows.shape[-1]) - 1
    result = np.zeros((*rows.shape, max(n_steps, smooth.shape[3])))
    result[~in_steps, :, :, : smooth.shape[3]] = smooth[~in_steps]
    if in_steps.any():
        result[in_steps, :, :, :n_steps] = _steps(sums[in_steps], rows[in_steps])
    return result


def leading_sums(sums: Array, rows: Array) -> Array:
    """Sums over the rows of each cell, (..., a, k), in the few directions in which cells differ most."""
    scaled = sums / np.sqrt(np.maximum(rows, 1.0))[..., None]
    directions = np.linalg.eigh(scaled.swapaxes(-1, -2) @ scaled)[1]
    return sums @ directions[..., -STEP_DIRECTIONS:]


def _steps(sums: Array, rows: Array) -> Array:
    """Orthonormal functions that are constant on intervals of cells, on which the other column differs most.

    Intervals are split one after the other, each time the one, and where, that tells most.

    Args:
        sums: Over the rows of each cell, of functions of the other column, (..., a, k).
        rows: Of each cell, (..., a).

    Returns:
        Shape (..., a, intervals - 1).
    """
    n_steps = min(in_force.get().explore_steps, rows.shape[-1])
    before = np.concatenate([np.zeros_like(sums[..., :1, :]), sums.cumsum(axis=-2)], axis=-2)
    held = np.concatenate([np.zeros_like(rows[..., :1]), rows.cumsum(axis=-1)], axis=-1)
    cuts = np.zeros((*rows.shape[:-1], n_steps + 1), dtype=np.int64)  # in order; those not made yet are at the end
    cuts[..., 1:] = rows.shape[-1]
    place = np.arange(1, rows.shape[-1])
    for _ in range(n_steps - 1):
        inside = (place[:, None] > cuts[..., None, :]).sum(axis=-1) - 1  # the interval that each place is in
        ends = [np.take_along_axis(cuts, inside + side, axis=-1) for side in (0, 1)]
        start, stop = (
            (np.take_along_axis(before, end[..., None], axis=-2), np.take_along_axis(held, end, axis=-1))
            for end in ends
        )
        left, right = before[..., 1:-1, :] - start[0], stop[0] - before[..., 1:-1, :]
        n_left, n_right = held[..., 1:-1] - start[1], stop[1] - held[..., 1:-1]
        gain = _energy(left, n_left) + _energy(right, n_right) - _energy(stop[0] - start[0], stop[1] - start[1])
        gain = np.where((n_left > 0) & (n_right > 0), gain, 0.0)
        best = gain.argmax(axis=-1)
        cuts = np.sort(np.concatenate([cuts[..., :-1], place[best][..., None]], axis=-1), axis=-1)
    leaf = (np.arange(rows.shape[-1])[:, None] >= cuts[..., None, 1:-1]).sum(axis=-1)
    own = (leaf[..., None] == np.arange(n_steps)).astype(np.float64)
    shares = np.einsum("...a,...as->...s", rows, own) / np.maximum(rows.sum(axis=-1), 1.0)[..., None]
    return own @ contrasts(shares)


def _energy(sums: Array, rows: Array) -> Array:
    return np.square(sums).sum(axis=-1) / np.maximum(rows, 1.0)


def contrasts(shares: Array) -> Array:
    """Orthonormal functions of parts that hold these shares, less their means, (..., s) to (..., s, s - 1)."""
    root = np.sqrt(shares)
    unit = np.broadcast_to(np.eye(shares.shape[-1])[:, 1:], (*shares.shape, shares.shape[-1] - 1))
    vectors = np.concatenate([root[..., None], unit], axis=-1)
    basis = np.linalg.qr(vectors)[0][..., 1:]
    there = shares > COLLINEAR
    return np.where(there[..., None], basis / np.where(there, root, 1.0)[..., None], 0.0)
