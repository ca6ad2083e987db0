"""Sources of batches: rows in memory, or any stream that can be read again and again.

Either source keeps some rows apart, on which training is judged, and gives the others in an order that depends on the
seed and the epoch alone: a run that was stopped and goes on sees what it would have seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from typing import Any, Protocol

import numpy as np
import torch

from featgeo.geometry.validation import as_names, check_whole

Batch = dict[str, torch.Tensor]

SMALLEST_BATCH = 2  # the unbiased H-score compares rows with each other
CHUNK_ROWS = 8192  # of held-out rows at a time
CHECKSUM_ROWS = 64


class Batches(Protocol):
    """Batches of inputs by block name, each block with one row a sample."""

    @property
    def n_batches(self) -> int:
        """How many batches an epoch has."""

    def epoch(self, i: int) -> Iterator[Batch]:
        """The batches of epoch i."""

    def validation(self) -> Iterator[Batch]:
        """The rows kept apart, in chunks of bounded size."""

    def describe(self) -> dict[str, Any]:
        """What a run that goes on from a checkpoint must find unchanged: plain numbers and text."""


def default_batch_size(n_rows: int) -> int:
    """The batch size for a number of rows: a fortieth of them as a power of two, between 32 and 1024."""
    return min(max(2 ** round(np.log2(max(n_rows, 1) / 40)), 32), 1024)


class TensorBatches:
    """Batches of rows that are in memory.

    Attributes:
        training_rows: Indices of the rows to train on, in order.
        validation_rows: Indices of the rows kept apart, in order.
    """

    def __init__(
        self,
        inputs: Mapping[str, torch.Tensor],
        batch_size: int | None = None,
        validation: float = 0.1,
        seed: int = 0,
        apart: np.ndarray | None = None,
    ) -> None:
        """Split the rows at random, or as told.

        Args:
            inputs: Tensors by block name, all with the same number of rows.
            batch_size: Rows in a batch, up to rounding: all batches of an epoch have the same size, give or take one
                row. None stands for `default_batch_size` of the rows to train on.
            validation: Share of rows kept apart; 0 for none.
            seed: Of the split and of the order of the rows.
            apart: Positions of the rows to keep apart; `validation` says how many, at random, when None.
        """
        n = _check_rows(inputs)
        if not (isinstance(validation, int | float) and 0 <= validation < 1):
            raise ValueError(
                f"`validation` must be a share of the rows, at least 0 and below 1, got {validation!r}. Use 0.1."
            )
        n_validation = max(round(validation * n), SMALLEST_BATCH) if validation > 0 else 0
        if apart is not None:
            n_validation = len(apart)
        n_training = n - n_validation
        if n_training < SMALLEST_BATCH:
            raise ValueError(
                f"Training needs at least {SMALLEST_BATCH} rows, got {n} of which {n_validation} are kept apart. "
                "Pass more rows, or validation=0."
            )
        size = default_batch_size(n_training) if batch_size is None else check_batch_size(batch_size)
        order = np.random.default_rng([seed]).permutation(n)
        if apart is not None:
            order = np.concatenate([apart, np.setdiff1d(order, apart)])
        self.inputs = dict(inputs)
        self.seed = int(seed)
        self.validation_rows = np.sort(order[:n_validation])
        self.training_rows = np.sort(order[n_validation:])
        # A short last batch would be all noise, so the rows are dealt evenly.
        self._n_batches = max(1, min(round(n_training / size), n_training // SMALLEST_BATCH))

    @property
    def n_batches(self) -> int:
        """How many batches an epoch has."""
        return self._n_batches

    def epoch(self, i: int) -> Iterator[Batch]:
        """The batches of epoch i, in an order that depends on the seed and i alone."""
        order = np.random.default_rng([self.seed, i]).permutation(self.training_rows)
        for rows in np.array_split(order, self._n_batches):
            yield self._take(rows)

    def validation(self) -> Iterator[Batch]:
        """The rows kept apart, in chunks."""
        for start in range(0, len(self.validation_rows), CHUNK_ROWS):
            yield self._take(self.validation_rows[start : start + CHUNK_ROWS])

    def describe(self) -> dict[str, Any]:
        """Rows, batches, seed, and a checksum of the first rows."""
        head = {name: tensor[:CHECKSUM_ROWS] for name, tensor in self.inputs.items()}
        rows = {"training_rows": len(self.training_rows), "validation_rows": len(self.validation_rows)}
        return {**rows, "batches": self._n_batches, "batch_seed": self.seed, "inputs": checksum(head)}

    def _take(self, rows: np.ndarray) -> Batch:
        index = torch.from_numpy(rows)
        return {name: tensor[index.to(tensor.device)] for name, tensor in self.inputs.items()}


class StreamBatches:
    """Batches of a stream, such as a `torch.utils.data.DataLoader`, that is read once an epoch.

    The first batches of every pass are kept apart for validation and held in memory. They must be the same in every
    pass, so shuffle the rows on disk, or all but the first ones; a stream that begins differently each time is refused.
    A stream without a length is read through once to count its batches.
    """

    def __init__(
        self, batches: Iterable[Any], encode: Callable[[Any], Mapping[str, torch.Tensor]], validation_batches: int = 1
    ) -> None:
        """Wrap a stream.

        Args:
            batches: Anything that can be iterated over again and again; not a generator.
            encode: Turns what it yields into tensors by block name.
            validation_batches: How many batches at the start of every pass are kept apart.
        """
        if isinstance(batches, Iterator):
            raise ValueError(
                f"A stream is read once an epoch, but a {type(batches).__name__} can be read only once. Pass something "
                "that starts again at each iter(...): a DataLoader, a list, or an object with __iter__."
            )
        self.batches = batches
        self.encode = encode
        self.validation_batches = check_whole(validation_batches, "validation_batches", 0, "Use 1.")
        self._held_out: list[Batch] | None = None
        self._n_batches: int | None = None

    @property
    def n_batches(self) -> int:
        """How many batches an epoch has, those for validation not counted."""
        if self._n_batches is None:
            n = len(self.batches) if isinstance(self.batches, Sized) else sum(1 for _ in self.batches)
            if n <= self.validation_batches:
                raise ValueError(
                    f"The stream has {n} batches and {self.validation_batches} are kept apart for validation: none is "
                    "left to train on. Make the batches smaller or keep fewer apart."
                )
            self._n_batches = n - self.validation_batches
        return self._n_batches

    def epoch(self, i: int) -> Iterator[Batch]:
        """The batches of a pass after those for validation; a batch of a single row is left out."""
        held_out = self._first_batches()
        for position, raw in enumerate(self.batches):
            if position >= self.validation_batches:
                batch = dict(self.encode(raw))
                if _check_rows(batch) >= SMALLEST_BATCH:
                    yield batch
            elif position == 0 and checksum(dict(self.encode(raw))) != checksum(held_out[0]):
                raise ValueError(
                    f"The first {self.validation_batches} batches of every pass are kept apart for validation, but "
                    "this pass began with other rows than the first one. Do not shuffle the stream, or use "
                    "validation_batches=0."
                )

    def validation(self) -> Iterator[Batch]:
        """The first batches of the stream."""
        yield from self._first_batches()

    def describe(self) -> dict[str, Any]:
        """The number of batches, and a checksum of the first one where it is always the same."""
        head = checksum(self._first_batches()[0]) if self.validation_batches else ""
        return {"batches": self.n_batches, "validation_batches": self.validation_batches, "inputs": head}

    def _first_batches(self) -> list[Batch]:
        if self._held_out is None:
            stream = iter(self.batches) if self.validation_batches else iter(())
            first = [dict(self.encode(raw)) for raw, _ in zip(stream, range(self.validation_batches), strict=False)]
            self._held_out = first
        return self._held_out


def check_batch_size(batch_size: Any) -> int:
    """Return a batch size that the unbiased H-score can work with."""
    return check_whole(batch_size, "batch_size", SMALLEST_BATCH, "None chooses one.")


def _check_rows(inputs: Mapping[str, torch.Tensor]) -> int:
    """The number of rows, the same in every block."""
    if not inputs:
        raise ValueError("Batches need at least one block of inputs, got none. Pass {'x': tensor, 'y': tensor}.")
    as_names(tuple(inputs))
    for name, tensor in inputs.items():
        if not isinstance(tensor, torch.Tensor) or tensor.ndim == 0:
            raise ValueError(
                f"Block {name!r} must be a tensor with one row a sample, got {type(tensor).__name__}. "
                "Use torch.as_tensor."
            )
    lengths = {name: len(tensor) for name, tensor in inputs.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"All blocks must have the same number of rows, got {lengths}. Align them row by row.")
    return next(iter(lengths.values()))


def checksum(inputs: Mapping[str, torch.Tensor]) -> str:
    """A checksum of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, tensor in sorted(inputs.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
