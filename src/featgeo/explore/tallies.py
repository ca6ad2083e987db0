"""What a first pass keeps of columns, batch by batch: a sample of the rows, moments and values of numbers, labels."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from featgeo.explore.values import Missing, Repeated, rows_of
from featgeo.geometry.validation import Array
from featgeo.reading.arrow import pa, pc

STREAM_ROWS = 2**40  # that a stream has, at most
MOST_VALUES = 100_000  # distinct values of a column that are told apart exactly, at least: bounds memory
MOST_LOOKED_UP = 256  # labels that texts are looked up among, row by row: time
LABEL_BYTES = 1 << 25  # of the texts of a column that are held at a time: bounds memory where labels are long


class Sampler:
    """A uniform sample of the rows of a stream: those with the smallest hashed row numbers.

    Args:
        size: Rows of the sample, at most.
        seed: Of the hash.
        place: Of the stream among others that it is merged with: rows with the same number are not of one hash.

    Attributes:
        n_rows: Rows that went by.
        rows: Numbers of the rows that are held, int64, sorted: up to twice `size` between two calls of `thin`.
    """

    def __init__(self, size: int, seed: int, place: int = 0) -> None:
        self._size, self._seed, self._place = size, np.uint64(seed % 2**64), np.int64(place * STREAM_ROWS)
        self._limit = np.uint64(2**64 - 1)
        self._hashes = np.empty(0, np.uint64)
        self.rows = np.empty(0, np.int64)
        self.n_rows = 0

    def pick(self, count: int) -> np.ndarray | slice:
        """Which of the next `count` rows are in the sample so far."""
        rows = np.arange(self.n_rows, self.n_rows + count, dtype=np.int64)
        self.n_rows += count
        hashes = _hashed(rows + self._place, self._seed)
        chosen: np.ndarray | slice = slice(None)
        if self._limit < np.uint64(2**64 - 1):
            chosen = np.flatnonzero(hashes <= self._limit)
        self._hashes = np.append(self._hashes, hashes[chosen])
        self.rows = np.append(self.rows, rows[chosen])
        return chosen

    def thin(self, end: bool = False) -> np.ndarray | None:
        """Which of the rows that are held stay, now that there are too many; None for all."""
        if len(self.rows) <= (self._size if end else 2 * self._size):
            return None
        self._limit = np.partition(self._hashes, self._size - 1)[self._size - 1]
        stay = np.flatnonzero(self._hashes <= self._limit)
        self._hashes, self.rows = self._hashes[stay], self.rows[stay]
        return stay

    def merged(self, other: Sampler) -> Sampler:
        """The sample of both streams, the other's rows after these; `thin` it."""
        both = copy(self)
        both.n_rows = self.n_rows + other.n_rows
        both.rows = np.append(self.rows, self.n_rows + other.rows)
        both._hashes = np.append(self._hashes, other._hashes)
        return both


def _hashed(rows: np.ndarray, seed: np.uint64) -> np.ndarray:
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
        self._pending: list[Array] = []
        self._n_pending = self._n_distinct = 0
        self._finite, self._origin, self._mean, self._scatter = 0, 0.0, 0.0, 0.0
        self._values = pa.array([], pa.float64())

    def add(self, values: Array | Repeated) -> None:
        """Add values, float64 (n,); NaN is missing."""
        rows = None  # of each value, where it is not one
        if isinstance(values, Repeated):
            rows, values = values.counts(), values.values
        there = ~np.isnan(values) if rows is None else ~np.isnan(values) & (rows > 0)
        known, rows = values[there], None if rows is None else rows[there]
        if not len(known):
            return
        self.count += len(known) if rows is None else int(rows.sum())
        low, high = known.min(), known.max()
        self.minimum, self.maximum = min(self.minimum, float(low)), max(self.maximum, float(high))
        self.whole = self.whole and bool((known == np.floor(known)).all())
        if self.distinct_exact:
            self._tell_apart(known)
        if not np.isfinite(low) or not np.isfinite(high):
            finite = np.isfinite(known)
            self.n_infinite += int(np.sum(~finite if rows is None else rows[~finite]))
            known, rows = known[finite], None if rows is None else rows[finite]
        self._add_moments(known, rows)

    def _tell_apart(self, known: Array) -> None:
        """Look for new values whenever there are as many to look through as are known: each is looked at few times."""
        self._pending.append(known)
        self._n_pending += len(known)
        if self._n_pending > max(MOST_VALUES, len(self._values)):
            self._merge()

    def _merge(self) -> None:
        self._values = pc.unique(pa.concat_arrays([self._values, *map(pa.array, self._pending)]))
        self._pending, self._n_pending = [], 0
        self._n_distinct = len(self._values)
        if self._n_distinct > MOST_VALUES:
            self.distinct_exact = False
            self._values = pa.array([], pa.float64())

    @property
    def n_distinct(self) -> int:
        """How many values are different; where that is not exact, there are at least so many."""
        if self._pending:
            self._merge()
        return self._n_distinct

    def _add_moments(self, known: Array, rows: np.ndarray | None) -> None:
        """Means and squared distances from them, pooled; counted from a first value, so nothing large cancels."""
        if not len(known):
            return
        count = len(known) if rows is None else int(rows.sum())
        self._origin = self._origin if self._finite else float(known[0])
        with np.errstate(over="ignore", invalid="ignore"):  # squares of numbers near the largest are infinite
            known = known - self._origin
            mean = float(np.average(known, weights=rows))
            self._pool(count, mean, count * float(np.average((known - mean) ** 2, weights=rows)))

    def _pool(self, count: int, mean: float, scatter: float) -> None:
        """Add the moments of some values, counted from the same first value."""
        apart = mean - self._mean
        total = self._finite + count
        self._scatter += scatter + apart * apart * (self._finite / total) * count
        self._mean += apart * (count / total)
        self._finite = total

    def merged(self, other: NumberTally) -> NumberTally:
        """Of the values of both."""
        both = copy(self if self._finite else other)
        both.count, both.n_infinite = self.count + other.count, self.n_infinite + other.n_infinite
        both.minimum, both.maximum = min(self.minimum, other.minimum), max(self.maximum, other.maximum)
        both.whole = self.whole and other.whole
        both._n_distinct = max(self.n_distinct, other.n_distinct)
        both.distinct_exact = self.distinct_exact and other.distinct_exact
        both._values = self._values if both.distinct_exact else pa.array([], pa.float64())
        both._pending, both._n_pending = [], 0
        if both.distinct_exact and len(other._values):
            both._pending = [other._values.to_numpy(zero_copy_only=False)]
            both._merge()
        if self._finite and other._finite:
            with np.errstate(over="ignore", invalid="ignore"):
                both._pool(other._finite, other._origin - self._origin + other._mean, other._scatter)
        return both

    @property
    def mean(self) -> float:
        """Of the finite values."""
        return self._origin + self._mean if self._finite else np.nan

    @property
    def std(self) -> float:
        """Of the finite values, over n - 1."""
        return float(np.sqrt(self._scatter / (self._finite - 1))) if self._finite > 1 else np.nan


class LabelTally:
    """Counts of labels: exact while they are few; later those of frequent ones, too small by `error` at most.

    Args:
        missing: What stands for a missing value.

    Attributes:
        texts: Labels, by their ids, as an Arrow array.
        counts: Of each, int64.
        count: Rows with a label.
        nbytes: Of the texts.
        error: What a count may lack; 0 while all are exact.
        is_full: Whether there are more labels than can be held: `trim` forgets some.
    """

    def __init__(self, missing: Missing) -> None:
        self.texts = pa.array([], pa.string())
        self.counts = np.empty(0, np.int64)
        self.count = self.error = self.nbytes = 0
        self.is_full = False
        self._missing, self._distinct = missing, 0
        self._ids = np.empty(0, np.int32)

    @property
    def n_distinct(self) -> int:
        """Labels that were told apart; with an error, there are at least so many."""
        return max(self._distinct, int((self.counts > 0).sum()))

    def add(self, codes: np.ndarray, dictionary: Any) -> np.ndarray:
        """Add labels by their places in a dictionary, -1 where missing; returns their ids, -1 where missing."""
        places = pc.index_in(dictionary, value_set=self.texts)
        if places.null_count:
            self._learn(pc.unique(dictionary.filter(places.is_null())))
            places = pc.index_in(dictionary, value_set=self.texts)
        return self._counted(self._ids[places.to_numpy(zero_copy_only=False)], codes)

    def add_known(self, texts: Any) -> np.ndarray | None:
        """Add texts that are all known, row by row; None where some are not, or more are known than repeat in a batch.

        To look for texts among a few takes less time than to find out which are different.
        """
        is_text = pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)
        if not is_text or not 0 < len(self.texts) <= MOST_LOOKED_UP:
            return None
        places = pc.index_in(texts, value_set=self.texts.cast(texts.type))
        if places.null_count > texts.null_count:
            return None
        codes = places.fill_null(-1) if places.null_count else places
        return self._counted(self._ids, codes.to_numpy(zero_copy_only=False))

    def _counted(self, ids: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Ids of rows by their places among ids, -1 where missing; they are counted."""
        small = np.append(ids, np.int32(-1)).astype(np.min_scalar_type(-len(self.texts) - 2))
        result = small.take(codes)
        rows = rows_of(result, len(self.texts) + 1)[:-1]
        self.counts += rows
        self.count += int(rows.sum())
        return result

    def merged(self, other: LabelTally) -> tuple[LabelTally, np.ndarray]:
        """Of the labels of both, and what the other's ids become, those of -2 and -1 included."""
        both = copy(self)
        both.counts = self.counts.copy()
        both.count, both.error = self.count + other.count, self.error + other.error
        both._distinct = max(self._distinct, other._distinct)
        places = pc.index_in(other.texts, value_set=both.texts)
        if places.null_count:
            both._learn(other.texts.filter(places.is_null()))
            places = pc.index_in(other.texts, value_set=both.texts)
        ids = both._ids[places.to_numpy(zero_copy_only=False)]
        there = ids >= 0
        both.counts[ids[there]] += other.counts[there]
        return both, np.append(ids, [-2, -1]).astype(np.min_scalar_type(-len(both.texts) - 2))  # few bits travel sooner

    def _learn(self, new: Any) -> None:
        """Give ids to texts that were not seen before."""
        first = len(self.texts)
        there = self._missing.out_of(new).is_valid().to_numpy(zero_copy_only=False)
        self._ids = np.append(self._ids, np.where(there, np.arange(first, first + len(new)), -1).astype(np.int32))
        self.counts = np.append(self.counts, np.zeros(len(new), np.int64))
        self.texts = pa.concat_arrays([self.texts, new])
        self.nbytes = self.texts.nbytes
        self.is_full = len(self.texts) > 2 * MOST_VALUES or self.nbytes > LABEL_BYTES

    def trim(self) -> np.ndarray:
        """Forget rare labels; returns the new id of each, -2 where it is forgotten; ids of -2 and -1 stay."""
        self._distinct = self.n_distinct
        room = min(MOST_VALUES, len(self.texts) // 2)
        lost = int(np.partition(self.counts, -(room + 1))[-(room + 1)])
        stay = np.flatnonzero(self.counts > lost)
        renamed = np.full(len(self.texts) + 2, -2, np.int32)
        renamed[stay], renamed[-1] = np.arange(len(stay)), -1
        self.texts, self.counts = self.texts.take(pa.array(stay)), self.counts[stay] - lost
        self._ids = np.arange(len(stay), dtype=np.int32)
        self.error += lost
        self.is_full = False
        return renamed
