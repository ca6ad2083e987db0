"""What a first pass keeps of columns, batch by batch: a sample of the rows, moments and values of numbers, labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from featgeo.explore.arrow import pa, pc
from featgeo.geometry.validation import Array

MOST_VALUES = 100_000  # distinct values of a column that are told apart exactly, at least: bounds memory
LABEL_BYTES = 1 << 25  # of the texts of a column that are held at a time: bounds memory where labels are long


class Sampler:
    """A uniform sample of the rows of a stream: those with the smallest hashed row numbers.

    Args:
        size: Rows of the sample, at most.
        seed: Of the hash.

    Attributes:
        n_rows: Rows that went by.
        rows: Numbers of the rows that are held, int64, sorted: up to twice `size` between two calls of `thin`.
    """

    def __init__(self, size: int, seed: int) -> None:
        self._size, self._seed = size, np.uint64(seed % 2**64)
        self._limit = np.uint64(2**64 - 1)
        self._hashes = np.empty(0, np.uint64)
        self.rows = np.empty(0, np.int64)
        self.n_rows = 0

    def pick(self, count: int) -> Array | slice:
        """Which of the next `count` rows are in the sample so far."""
        rows = np.arange(self.n_rows, self.n_rows + count, dtype=np.int64)
        self.n_rows += count
        hashes = _hashed(rows, self._seed)
        chosen: Array | slice = slice(None)
        if self._limit < np.uint64(2**64 - 1):
            chosen = np.flatnonzero(hashes <= self._limit)
        self._hashes = np.append(self._hashes, hashes[chosen])
        self.rows = np.append(self.rows, rows[chosen])
        return chosen

    def thin(self, end: bool = False) -> Array | None:
        """Which of the rows that are held stay, now that there are too many; None for all."""
        if len(self.rows) <= (self._size if end else 2 * self._size):
            return None
        self._limit = np.partition(self._hashes, self._size - 1)[self._size - 1]
        stay = np.flatnonzero(self._hashes <= self._limit)
        self._hashes, self.rows = self._hashes[stay], self.rows[stay]
        return stay


def _hashed(rows: Array, seed: np.uint64) -> Array:
    """Numbers that look drawn at random, all different, uint64 (n,): the finalizer of SplitMix64."""
    with np.errstate(over="ignore"):
        z = (rows.astype(np.uint64) + seed * np.uint64(0xD1B54A32D192ED03)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


class NumberTally:
    """Moments, range and distinct values of numbers."""

    def __init__(self) -> None:
        self.count = self.n_infinite = 0
        self.minimum, self.maximum = np.inf, -np.inf
        self.whole = True
        self.distinct_exact = True
        self.n_distinct = 0
        self._finite, self._mean, self._scatter = 0, 0.0, 0.0
        self._values = pa.array([], pa.float64())

    def add(self, values: Array) -> None:
        """Add values, float64 (n,); NaN is missing."""
        known = values[~np.isnan(values)]
        if not len(known):
            return
        self.count += len(known)
        low, high = known.min(), known.max()
        self.minimum, self.maximum = min(self.minimum, float(low)), max(self.maximum, float(high))
        self.whole = self.whole and bool((known == np.floor(known)).all())
        if self.distinct_exact:
            self._tell_apart(known)
        if not np.isfinite(low) or not np.isfinite(high):
            finite = known[np.isfinite(known)]
            self.n_infinite += len(known) - len(finite)
            known = finite
        self._add_moments(known)

    def _tell_apart(self, known: Array) -> None:
        found = pc.unique(pa.array(known))
        self._values = pc.unique(pa.concat_arrays([self._values, found]))
        self.n_distinct = len(self._values)
        if self.n_distinct > MOST_VALUES:
            self.distinct_exact = False
            self._values = pa.array([], pa.float64())

    def _add_moments(self, known: Array) -> None:
        """Means and squared distances from them, pooled: no large sums of squares are subtracted."""
        count = len(known)
        if not count:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # squares of numbers near the largest are infinite
            mean = float(known.mean())
            apart = mean - self._mean
            total = self._finite + count
            self._scatter += float(((known - mean) ** 2).sum()) + apart**2 * (self._finite / total) * count
            self._mean += apart * (count / total)
        self._finite = total

    @property
    def mean(self) -> float:
        """Of the finite values."""
        return self._mean if self._finite else np.nan

    @property
    def std(self) -> float:
        """Of the finite values, over n - 1."""
        return float(np.sqrt(self._scatter / (self._finite - 1))) if self._finite > 1 else np.nan


class LabelTally:
    """Counts of labels: exact while they are few; later those of frequent ones, too small by `error` at most.

    Attributes:
        texts: Labels, by their ids, as an Arrow array.
        counts: Of each, int64.
        count: Rows with a label.
        error: What a count may lack; 0 while all are exact.
        n_distinct: Labels that were told apart; with an error, there are at least so many.
    """

    def __init__(self) -> None:
        self.texts = pa.array([], pa.string())
        self.counts = np.empty(0, np.int64)
        self.count = self.error = 0
        self._distinct = 0

    @property
    def n_distinct(self) -> int:
        return max(self._distinct, int((self.counts > 0).sum()))

    def add(self, codes: Array, dictionary: Any) -> Array:
        """Add labels; returns the id of each entry of the dictionary, int64."""
        counts = np.bincount(codes + 1, minlength=len(dictionary) + 1)[1:]
        places = pc.index_in(dictionary, value_set=self.texts)
        if places.null_count:
            new = pc.unique(dictionary.filter(places.is_null()))
            self.texts = pa.concat_arrays([self.texts, new])
            self.counts = np.append(self.counts, np.zeros(len(new), np.int64))
            places = pc.index_in(dictionary, value_set=self.texts)
        ids = places.to_numpy(zero_copy_only=False).astype(np.int64)
        np.add.at(self.counts, ids, counts)
        self.count += len(codes) - int((codes < 0).sum())
        return ids

    def is_full(self) -> bool:
        """Whether there are more labels than can be held."""
        return len(self.texts) > 2 * MOST_VALUES or self.texts.nbytes > LABEL_BYTES

    def trim(self) -> Array:
        """Forget rare labels; returns the new id of each, -1.0 where it is forgotten, and NaN at the end for missing."""
        self._distinct = self.n_distinct
        room = min(MOST_VALUES, len(self.texts) // 2)
        lost = int(np.partition(self.counts, -(room + 1))[-(room + 1)])
        stay = np.flatnonzero(self.counts > lost)
        renamed = np.full(len(self.texts) + 1, -1.0)
        renamed[stay], renamed[-1] = np.arange(len(stay)), np.nan
        self.texts, self.counts = self.texts.take(pa.array(stay)), self.counts[stay] - lost
        self.error += lost
        return renamed
