"""Moments: all that the theory ever reads from data.

For named feature blocks a(Z), b(Z), ... of the same rows, `Moments` holds for every pair of blocks, over the rows that
carry both,

    weight  w      = sum_i w_i
    means   m_a, m_b
    scatter S_ab   = sum_i w_i (a_i - m_a)(b_i - m_b)^T

Two sets of rows merge exactly (Chan, Golub & LeVeque 1983): with d = m' - m,

    S = S_1 + S_2 + (w_1 w_2 / (w_1 + w_2)) d_a d_b^T.

Everything is centred before it is multiplied, in float64, and a mean is kept as an origin plus a small offset, so that
a large mean costs no digits however many chunks are merged. Because each pair of blocks has its own weight and its own
means, a row that misses some blocks still counts for the pairs it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from featgeo.geometry.validation import (
    Array,
    as_features,
    as_names,
    as_weights,
    check_finite,
    check_same_rows,
    is_tensor,
    shown,
)

if TYPE_CHECKING:
    import torch

    from featgeo.ranks import Ranks

# A mean is kept as two rows, an origin and an offset. The offset stays small, so differences of means keep all their
# digits; this adds a step to it.
_OFFSET = np.array([[0.0], [1.0]])


@dataclass(frozen=True, eq=False)
class _Pair:
    """Weight, means (origin and offset) and scatter of two blocks over the rows that carry both."""

    weight: float
    mean_a: Array  # (2, d_a)
    mean_b: Array  # (2, d_b)
    scatter: Array  # (d_a, d_b)

    @classmethod
    def merged(cls, parts: Sequence[_Pair]) -> _Pair:
        """Of all rows of several parts."""
        first, *others = parts
        if not others:
            return first
        weights = np.array([part.weight for part in parts])
        share = weights / weights.sum()
        steps_a = np.stack([(part.mean_a - first.mean_a).sum(axis=0) for part in parts])
        steps_b = np.stack([(part.mean_b - first.mean_b).sum(axis=0) for part in parts])
        step_a, step_b = share @ steps_a, share @ steps_b
        between = ((steps_a - step_a) * weights[:, None]).T @ (steps_b - step_b)
        scatter = sum((part.scatter for part in others), first.scatter) + between
        means = first.mean_a + _OFFSET * step_a, first.mean_b + _OFFSET * step_b
        return cls(float(weights.sum()), *means, scatter)

    @property
    def swapped(self) -> _Pair:
        return _Pair(self.weight, self.mean_b, self.mean_a, self.scatter.T)


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of named feature blocks: immutable, merged by addition.

    Build one with `from_features` or `from_chunks`; `moments_1 + moments_2` are the moments of both sets of rows.

    Attributes:
        dims: The dimension of each block, by name.
    """

    dims: Mapping[str, int]
    _pairs: Mapping[tuple[str, str], _Pair]

    @classmethod
    def from_features(
        cls,
        blocks: Mapping[str, Any],
        *,
        weights: Any = None,
        present: Mapping[str, Any] | None = None,
    ) -> Moments:
        """Moments of one chunk of rows.

        Args:
            blocks: Features by name, arrays or tensors of shape (n, d) or (n,). A block that the whole chunk lacks is
                simply left out.
            weights: Non-negative weight of each row, shape (n,); 1 when None.
            present: For blocks that some rows lack, a boolean mask of shape (n,): True where the row has the block.
                Values of absent rows are never read.

        Raises:
            ValueError: For empty data, lengths that differ, NaN or infinite values in rows that are present.
        """
        for name, value in (("blocks", blocks), ("present", {} if present is None else present)):
            if not isinstance(value, Mapping):
                what = "features" if name == "blocks" else "a boolean array"
                raise ValueError(
                    f"`{name}` must be a mapping from block to {what}, by name, got {type(value).__name__}. Pass "
                    f"{{'x': {what}, ...}}."
                )
        if not as_names(tuple(blocks)):
            raise ValueError("Moments need at least one block of features, got none. Pass {'x': features, ...}.")
        features = {name: as_features(block, name, finite=False) for name, block in blocks.items()}
        check_same_rows(**features)
        n_rows = len(next(iter(features.values())))
        if n_rows and weights is None and not present:  # the usual case
            return _complete(features)
        row_weights = np.ones(n_rows) if weights is None else as_weights(weights, n_rows)
        carries = _presence(tuple(blocks), n_rows, present or {}) & (row_weights > 0)[:, None]
        # Rows with the same blocks present are one complete chunk; merging does the rest.
        patterns, pattern_of_row = np.unique(carries, axis=0, return_inverse=True)
        chunks = []
        for index, pattern in enumerate(patterns):
            rows = np.flatnonzero(pattern_of_row.reshape(-1) == index)
            carried = [name for name, has in zip(blocks, pattern, strict=True) if has]
            if carried:
                chunks.append(_complete({name: rows_of(features[name], rows) for name in carried}, row_weights[rows]))
        if not chunks:
            raise ValueError(f"No row carries any of {list(blocks)}: the data are empty. Pass at least one row.")
        return cls.merged(chunks)

    @classmethod
    def from_chunks(cls, chunks: Iterable[Mapping[str, Any] | Moments]) -> Moments:
        """Moments of a stream of chunks, each a mapping of features by name or already `Moments`."""
        if not isinstance(chunks, Iterable) or getattr(chunks, "ndim", 1) == 0:
            raise ValueError(f"Chunks must be a list or another iterable of mappings, got {type(chunks).__name__}.")
        several = (chunk if isinstance(chunk, Moments) else cls.from_features(chunk) for chunk in chunks)
        total = sum(several, start=_restored({}, {}))  # one after the other: a stream may be long
        if not total.dims:
            raise ValueError("The stream of chunks is empty. Pass at least one chunk.")
        return total

    @classmethod
    def merged(cls, several: Iterable[Moments]) -> Moments:
        """Moments of the rows of all of them, at once; what `+` does, sooner where they are many."""
        dims: dict[str, int] = {}
        parts: dict[tuple[str, str], list[_Pair]] = {}
        for one in several:
            for name, dim in one.dims.items():
                if dims.setdefault(name, dim) != dim:
                    raise ValueError(
                        f"Block {name!r} must have one dimension everywhere, got {dims[name]} and {dim}. Compute both "
                        "sides with the same features."
                    )
            for key, pair in one._pairs.items():
                parts.setdefault(key, []).append(pair)
        return _restored(dims, {key: _Pair.merged(pairs) for key, pairs in parts.items()})

    @classmethod
    def over_ranks(cls, several: Sequence[Moments | None], ranks: Ranks) -> list[Moments | None]:
        """Moments of the rows of all ranks, position by position; None where no rank has any.

        Everything is told about one point near the data, from which sums over all rows are taken, in one collective.

        Args:
            several: Of the rows of this rank, all with the same blocks; None where it has no rows. Some are there.
            ranks: Who has the other rows.
        """
        import torch

        known = next(moments for moments in several if moments is not None)
        origin = ranks.told({name: known.mean(name) for name in known.dims})
        pairs = [(key, None if one is None else one._pairs[key]) for one in several for key in known._pairs]
        told = [_about(pair, *(origin[name] for name in key)) for key, pair in pairs]
        flat = ranks.add(torch.from_numpy(np.concatenate(told))).numpy()
        sums = iter(np.split(flat, np.cumsum([part.size for part in told])[:-1]))
        found: list[Moments | None] = []
        for _ in several:
            of_all = {key: _from_sums(next(sums), *(origin[name] for name in key)) for key in known._pairs}
            there = {key: pair for key, pair in of_all.items() if pair is not None}
            found.append(_restored(dict(known.dims), there) if there else None)
        return found

    def joined(self, others: Moments) -> Moments:
        """The moments of the same rows with more blocks: what both know is taken from here."""
        return _restored({**others.dims, **self.dims}, {**others._pairs, **self._pairs})

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            raise TypeError(
                f"Moments are added to Moments only, got {type(other).__name__}. Use Moments.from_features for "
                "features."
            )
        return Moments.merged([self, other])

    def __radd__(self, other: Any) -> Moments:
        return self if isinstance(other, int) and other == 0 else self + other  # 0 is where `sum` begins

    def _pair(self, a: str, b: str | None) -> _Pair:
        b = a if b is None else b
        for name in (a, b):
            if not isinstance(name, str) or name not in self.dims:
                raise ValueError(f"There is no block {shown(name)}. The blocks are {sorted(self.dims)}.")
        pair = self._pairs.get((min(a, b), max(a, b)))
        if pair is None:
            raise ValueError(f"No row carries both {a!r} and {b!r}. Add data where the two are seen together.")
        return pair if a <= b else pair.swapped

    def weight(self, a: str, b: str | None = None) -> float:
        """Total weight (the number of rows where weights are 1) of the rows that carry a, or both a and b."""
        return self._pair(a, b).weight

    def knows(self, names: Iterable[str]) -> bool:
        """Whether there are rows for every pair of some blocks."""
        return all((a, b) in self._pairs for a in names for b in names if a <= b)

    @property
    def is_complete(self) -> bool:
        """Whether all rows carry all blocks."""
        return len({pair.weight for pair in self._pairs.values()}) <= 1

    def mean(self, a: str, b: str | None = None) -> Array:
        """Mean of block a, shape (d_a,), over the rows that carry a, or both a and b."""
        return self._pair(a, b).mean_a.sum(axis=0)

    def covariance(self, a: str, b: str | None = None) -> Array:
        """Centred cross-moment E[(a - E a)(b - E b)^T], shape (d_a, d_b), divided by the weight; b = a when None."""
        pair = self._pair(a, b)
        return pair.scatter / pair.weight

    def second_moment(self, a: str, b: str | None = None) -> Array:
        """Cross-moment E[a b^T] without centring, shape (d_a, d_b): the paper's Lambda_{a,b}."""
        return self.covariance(a, b) + np.outer(self.mean(a, b), self.mean(a if b is None else b, a))

    def joint_covariance(self, rows: str | Sequence[str], columns: str | Sequence[str]) -> Array:
        """The covariance of several blocks with several others, assembled block by block."""
        rows, columns = as_names(rows), as_names(columns)
        if not rows or not columns:
            return np.zeros((len(self.joint_mean(rows)), len(self.joint_mean(columns))))
        return np.block([[self.covariance(a, b) for b in columns] for a in rows])

    def joint_mean(self, names: str | Sequence[str]) -> Array:
        """The means of several blocks, one after the other."""
        return np.concatenate([np.empty(0), *(self.mean(name) for name in as_names(names))])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (dict(self.dims), dict(self._pairs))  # read-only views cannot be pickled

    def __repr__(self) -> str:
        blocks = ", ".join(f"{name}: {dim} of weight {self.weight(name):g}" for name, dim in self.dims.items())
        return f"Moments({blocks})"


def _restored(dims: dict[str, int], pairs: dict[tuple[str, str], _Pair]) -> Moments:
    return Moments(MappingProxyType(dims), MappingProxyType(pairs))


def _about(pair: _Pair | None, a: Array, b: Array) -> Array:
    """Sums over the rows of two blocks, less an origin of each: weights, both blocks, and their products."""
    if pair is None:
        return np.zeros(1 + len(a) + len(b) + len(a) * len(b))
    w, step_a, step_b = pair.weight, pair.mean_a[0] - a + pair.mean_a[1], pair.mean_b[0] - b + pair.mean_b[1]
    return np.concatenate([[w], w * step_a, w * step_b, (pair.scatter + w * np.outer(step_a, step_b)).ravel()])


def _from_sums(sums: Array, a: Array, b: Array) -> _Pair | None:
    """The pair whose sums less these origins these are; None where there are no rows."""
    if sums[0] == 0:
        return None
    weight, of_a, of_b, products = np.split(sums, np.cumsum([1, len(a), len(b)]))
    step_a, step_b = of_a / weight, of_b / weight
    scatter = products.reshape(len(a), len(b)) - weight * np.outer(step_a, step_b)
    return _Pair(float(weight[0]), np.stack([a, step_a]), np.stack([b, step_b]), scatter)


def _presence(names: Sequence[str], n_rows: int, present: Mapping[str, Any]) -> np.ndarray:
    """Which rows carry which blocks, boolean, (n, blocks)."""
    unknown = present.keys() - set(names)
    if unknown:
        raise ValueError(
            f"`present` names blocks that were not passed: {sorted(unknown)}. Pass them or drop the masks."
        )
    masks = np.ones((n_rows, len(names)), dtype=bool)
    for name, given in present.items():
        try:
            mask = np.asarray(given.cpu() if is_tensor(given) else given)
        except ValueError as error:
            raise ValueError(f"`present[{name!r}]` must be a boolean array, got a ragged list.") from error
        if mask.dtype != bool or mask.shape != (n_rows,):
            raise ValueError(
                f"`present[{name!r}]` must be boolean of shape ({n_rows},), got {mask.dtype} of shape {mask.shape}."
            )
        masks[:, names.index(name)] = mask
    return masks


def rows_of(features: torch.Tensor, rows: Any) -> torch.Tensor:
    """Some of the rows, by positions in order, an array or a tensor."""
    import torch

    if len(rows) == len(features):
        return features
    return features.index_select(0, torch.as_tensor(rows, device=features.device))  # sooner than indexing


def _complete(blocks: Mapping[str, torch.Tensor], weights: Array | None = None) -> Moments:
    """Moments of rows that carry every block: one centred product of all columns together."""
    import torch

    device = next((block.device for block in blocks.values() if block.device.type != "cpu"), torch.device("cpu"))
    centred = torch.cat([block.to(device) for block in blocks.values()], dim=1)  # a copy
    if weights is None:
        total, share = float(len(centred)), centred.new_full((len(centred),), 1 / len(centred))
    else:
        row_weights = torch.from_numpy(weights).to(device)
        total, share = float(row_weights.sum()), row_weights / row_weights.sum()
    mean = share @ centred
    centred -= mean
    correction = share @ centred  # the rounding of the first mean
    centred -= correction
    weighted = centred if weights is None else centred * row_weights[:, None]
    means, scatter = torch.stack([mean, correction]).cpu().numpy(), (weighted.T @ centred).cpu().numpy()
    if not (np.isfinite(total) and np.isfinite(scatter).all()):
        for name, block in blocks.items():
            check_finite(block, name)
        raise ValueError("The moments are more than a float can hold. Scale the features or the weights down.")
    dims = {name: int(block.shape[1]) for name, block in blocks.items()}
    ends = dict(zip(dims, np.cumsum(list(dims.values())), strict=True))
    columns = {name: slice(ends[name] - dims[name], ends[name]) for name in dims}
    pairs = {
        (a, b): _Pair(total, means[:, columns[a]], means[:, columns[b]], scatter[columns[a], columns[b]].copy())
        for a in dims
        for b in dims
        if a <= b
    }
    return _restored(dims, pairs)
