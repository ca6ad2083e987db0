"""Functions in steps: constant on a few intervals of a number, cut where functions of another column change most."""

from __future__ import annotations

import numpy as np

from featgeo.geometry.spans import COLLINEAR
from featgeo.geometry.validation import Array
from featgeo.tuning import in_force

STEP_DIRECTIONS = 4  # of functions of the other column that steps are cut by: time


def steps(sums: Array, rows: Array) -> Array:
    """Functions in steps on the cells of one column, cut by the few functions of the other that differ most there.

    Args:
        sums: Over the rows of each cell, of functions on the cells of the other column, from smooth to rough,
            (P, F, a, k).
        rows: Of each cell, (P, F, a).

    Returns:
        Orthonormal functions, (P, F, a, intervals - 1).
    """
    sums = sums[..., : in_force.get().explore_waves[1]]
    sums = sums @ leading_directions(sums, rows)
    n_cells = rows.shape[-1]
    return split(sums.reshape(-1, *sums.shape[2:]), rows.reshape(-1, n_cells)).reshape(*rows.shape, -1)


def leading_directions(sums: Array, rows: Array) -> Array:
    """The few directions in which sums over the rows of each cell, (..., a, k), differ most, (..., k, directions)."""
    scaled = sums / np.sqrt(np.maximum(rows, 1.0))[..., None]
    if scaled.shape[-2] >= scaled.shape[-1]:
        return np.asarray(np.linalg.eigh(scaled.swapaxes(-1, -2) @ scaled)[1][..., -STEP_DIRECTIONS:])
    cells = np.linalg.eigh(scaled @ scaled.swapaxes(-1, -2))[1][..., -STEP_DIRECTIONS:]
    directions = scaled.swapaxes(-1, -2) @ cells
    return directions / np.maximum(np.sqrt(np.square(directions).sum(axis=-2, keepdims=True)), COLLINEAR)


def split(sums: Array, rows: Array) -> Array:
    """Orthonormal functions that are constant on intervals of cells, on which the other column differs most.

    Intervals are split one after the other, each time the one, and where, that tells most. Each split brings a
    function, which tells one of its parts from the other: so the first of them are all functions on fewer intervals.

    Args:
        sums: Over the rows of each cell, of functions of the other column, (N, a, k).
        rows: Of each cell, (N, a).

    Returns:
        Shape (N, a, intervals - 1).
    """
    n, n_cells = rows.shape
    held = np.concatenate([np.zeros((n, 1)), rows.cumsum(axis=1)], axis=1)
    before = np.concatenate([np.zeros_like(sums[:, :1]), sums.cumsum(axis=1)], axis=1).reshape(-1, sums.shape[2])
    first = (n_cells + 1) * np.arange(n)[:, None]  # where the cumulated sums of each begin
    start, stop = (np.full((n, n_cells - 1), first + end) for end in (0, n_cells))  # of the interval of each cut
    cuts = first + np.arange(1, n_cells)  # that can be made
    gains = _gains(before, held, (start, cuts, stop))
    split = np.empty((min(in_force.get().explore_steps, n_cells) - 1, 3, n, 1), dtype=np.intp)  # where they are cut
    for interval in split:
        best = gains.argmax(axis=1)[:, None] + (n_cells - 1) * np.arange(n)[:, None]
        interval[:] = low, made, _ = [place.take(best) for place in (start, cuts, stop)]
        new = np.flatnonzero(start == low)  # cuts of the interval, and so of its two parts; nothing changes for others
        cut, split_at = cuts.take(new), made.take(new // (n_cells - 1))
        is_left = cut < split_at
        begin, end = np.where(is_left, start.take(new), split_at), np.where(is_left, split_at, stop.take(new))
        start.put(new, begin)
        stop.put(new, end)
        gains.put(new, _gains(before, held, (begin, cut, end)))
    return _contrasts_of(split.swapaxes(0, 1), held).transpose(1, 2, 0)


def _contrasts_of(split: np.ndarray, held: Array) -> Array:
    """Functions that tell one part of each interval from the other, (intervals, N, a).

    Args:
        split: Where intervals begin, where they are cut and where they end, as places in all of `held`, (3, ., N, 1).
        held: How many rows there are before each cell, (N, a + 1).
    """
    low, made, high = split
    cells = np.arange(held.size).reshape(held.shape)[:, :-1]
    n_low, n_high = held.take(made) - held.take(low), held.take(high) - held.take(made)
    apart = np.sqrt(n_low * n_high * (n_low + n_high) / np.maximum(held[:, -1:], 1.0))
    own = np.where(cells < made, n_high, -n_low) * ((cells >= low) & (cells < high))
    return np.divide(own, apart, out=np.zeros_like(own), where=apart > 0)


def _gains(before: Array, held: Array, interval: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Array:
    """How much more the two parts of an interval tell than the whole does, for each of some cuts, of any shape.

    Args:
        before: Sums over all rows before each cell, in each direction, (N (a + 1), k).
        held: How many rows these are, (N, a + 1).
        interval: Where it begins, where it is cut and where it ends, as places in all of `held`.
    """
    at_start, at_cut, at_stop = (held.take(place) for place in interval)
    n_left, n_all = at_cut - at_start, at_stop - at_start
    is_cut = (n_left > 0) & (n_left < n_all)
    share = np.divide(n_left, n_all, out=np.zeros_like(n_all), where=is_cut)
    at_start, at_cut, at_stop = (before.take(place, axis=0) for place in interval)
    at_cut -= at_start
    at_stop -= at_start
    at_stop *= share[..., None]
    at_cut -= at_stop
    told = np.einsum("...k,...k->...", at_cut, at_cut)
    return np.divide(told, share * (n_all - n_left), out=np.zeros_like(told), where=is_cut)


def contrasts(shares: Array) -> Array:
    """Orthonormal functions of parts that hold these shares, each of a part against those before, (..., s, s - 1)."""
    own = np.where(shares > COLLINEAR, shares, 0.0)
    so_far = own.cumsum(axis=-1)
    earlier, upto = so_far[..., :-1], so_far[..., 1:]
    own = own[..., 1:]
    there = (own > 0) & (earlier > 0)
    on_own, on_earlier = (
        np.sqrt(np.divide(a, b * upto, out=np.zeros_like(upto), where=there))
        for a, b in ((earlier, own), (own, earlier))
    )
    place = np.arange(shares.shape[-1])
    signs = np.sign(1 + place[:-1] - place[:, None])  # of parts before the one that a function is of: 1
    result = np.where(signs == 0, on_own[..., None, :], -on_earlier[..., None, :] * (signs > 0))
    return result * (shares > COLLINEAR)[..., None]
