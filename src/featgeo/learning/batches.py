"""Batches to train on: of rows in memory, or of any stream that can be read again and again.

Some rows are kept apart, on which training is judged, and the others come in an order that depends on the seed and the
epoch alone: a run that was stopped and goes on sees what it would have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

from featgeo.geometry.validation import check_whole
from featgeo.learning.data import shares_of
from featgeo.learning.setting import SMALLEST_BATCH, Training
from featgeo.ranks import ALONE, Ranks

Batch = dict[str, torch.Tensor]

CHUNK_ROWS = 8192  # of held-out rows at a time: bounds memory
SHARE = 0.25  # of the free memory of a GPU that rows may fill: what is learned from them needs more
CHECKSUM_ROWS = 64  # that tell one set of inputs from another: bounds time


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches of inputs by block name, each block with one row a sample.

    Attributes:
        n_batches: How many an epoch has.
        epoch: From the number of an epoch to its batches.
        held_out: The rows kept apart, in batches of bounded size.
        description: What a run that goes on from a checkpoint must find unchanged: plain numbers and text.
        dealt: From ranks to the same batches with this rank's rows only, read by no other rank where that can be. Rows
            kept apart stay those of all ranks.
        apart: Positions of the rows kept apart, in order; none of a stream.
        elsewhere: From a device to the same batches on it; None of a stream.
    """

    n_batches: int
    epoch: Callable[[int], Iterator[Batch]]
    held_out: Sequence[Batch]
    description: dict[str, Any]
    dealt: Callable[[Ranks], Batches]
    apart: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=int))
    elsewhere: Callable[[torch.device], Batches] | None = None

    @classmethod
    def in_memory(
        cls,
        inputs: Mapping[str, torch.Tensor],
        options: Training,
        seed: int = 0,
        n_parameters: int = 0,
        apart: np.ndarray | None = None,
    ) -> Batches:
        """Split the rows at random, or as told; all batches of an epoch have the same size, give or take one row.

        Args:
            inputs: Tensors by block name, all with the same number of rows.
            options: Rows in a batch, and the share of rows kept apart.
            seed: Of the split and of the order of the rows.
            n_parameters: How large the networks are that will read them.
            apart: Positions of the rows to keep apart, where that is already settled.
        """
        n = _check_rows(inputs)
        order = np.random.default_rng([seed]).permutation(n)
        if apart is None:
            share = options.share_apart(n)
            apart = order[: max(round(share * n), SMALLEST_BATCH) if share > 0 else 0]
        kept, training = np.sort(apart), np.setdiff1d(order, apart)
        if len(training) < SMALLEST_BATCH:
            raise ValueError(
                f"Training needs at least {SMALLEST_BATCH} rows, got {n} of which {len(kept)} are kept apart. "
                "Pass more rows, or validation=0."
            )
        # A short last batch would be all noise, so the rows are dealt evenly.
        n_batches = round(len(training) / options.batch_rows(len(training), n_parameters))
        n_batches = max(1, min(n_batches, len(training) // SMALLEST_BATCH))

        head = checksum({name: tensor[:CHECKSUM_ROWS] for name, tensor in inputs.items()})
        sizes = {"training_rows": len(training), "validation_rows": len(kept), "batches": n_batches}
        description = {**sizes, "batch_seed": seed, "inputs": head}

        def of(inputs: Mapping[str, torch.Tensor], ranks: Ranks = ALONE) -> Batches:
            def epoch(i: int) -> Iterator[Batch]:
                order = torch.from_numpy(np.random.default_rng([seed, i]).permutation(training))
                there = order.to(next(iter(inputs.values())).device)  # once, as it waits for the device
                return (_taken(inputs, rows[ranks.own]) for rows in there.tensor_split(n_batches))

            def elsewhere(device: torch.device) -> Batches:
                needed = sum(tensor.numel() * tensor.element_size() for tensor in inputs.values())
                fits = needed <= SHARE * torch.cuda.mem_get_info(device)[0]
                return of({name: tensor.to(device) for name, tensor in inputs.items()} if fits else inputs, ranks)

            def dealt(ranks: Ranks) -> Batches:
                _check_for_each(ranks, len(training) // n_batches)
                return of(inputs, ranks)

            held_out = [_taken(inputs, rows) for rows in torch.split(torch.from_numpy(kept), CHUNK_ROWS) if len(rows)]
            return cls(n_batches, epoch, held_out, description, dealt, kept, elsewhere)

        return of(inputs)

    @classmethod
    def streamed(
        cls, batches: Iterable[Any], encode: Callable[[Any], Mapping[str, torch.Tensor]], validation_batches: int = 1
    ) -> Batches:
        """Batches of a stream, such as a `torch.utils.data.DataLoader`, that is read once an epoch.

        The first batches of every pass are kept apart and held in memory. They must be the same in every pass, so
        shuffle the rows on disk, or all but the first ones; a stream that begins differently each time is refused. A
        stream without a length is read through once to count its batches. A batch of a single row is left out, and so
        is one with fewer rows than there are ranks.

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
        n_apart = check_whole(validation_batches, "validation_batches", 0, "Use 1.")
        n_batches = (len(batches) if isinstance(batches, Sized) else sum(1 for _ in batches)) - n_apart
        if n_batches < 1:
            raise ValueError(
                f"The stream has {n_batches + n_apart} batches and {n_apart} are kept apart for validation: none is "
                "left to train on. Make the batches smaller or keep fewer apart."
            )
        held_out = [dict(encode(raw)) for raw in islice(batches, n_apart)] if n_apart else []
        first = checksum(held_out[0]) if held_out else ""

        description = {"batches": n_batches, "validation_batches": n_apart, "inputs": first}

        def of(ranks: Ranks = ALONE) -> Batches:
            for batch in held_out:
                _check_for_each(ranks, _check_rows(batch))
            fewest = max(SMALLEST_BATCH, ranks.size)
            read, rows = shares_of(batches, ranks, fewest)
            way = _Pass(read, encode, n_apart, rows, fewest if read is batches else 1)
            begins = checksum(way.first()) if held_out and ranks.size > 1 else first
            return cls(n_batches, lambda _: way.batches(begins), held_out, description, of)

        return of()


def _taken(inputs: Mapping[str, torch.Tensor], rows: torch.Tensor) -> Batch:
    return {name: tensor.index_select(0, rows.to(tensor.device)) for name, tensor in inputs.items()}


@dataclass(frozen=True, eq=False)
class _Pass:
    """Passes over a stream.

    Attributes:
        stream: What is read.
        encode: As in `Batches.streamed`.
        n_apart: How many batches come first that are kept apart.
        rows: Which rows of a batch are taken.
        fewest: Rows that a batch has at least; smaller ones are left out.
    """

    stream: Iterable[Any]
    encode: Callable[[Any], Mapping[str, torch.Tensor]]
    n_apart: int
    rows: slice
    fewest: int

    def first(self) -> Batch:
        """The first batch."""
        return self._own(dict(self.encode(next(iter(self.stream)))))

    def batches(self, first: str) -> Iterator[Batch]:
        """The batches after those kept apart, the first of which must have this checksum."""
        n_taken = 0
        for position, raw in enumerate(self.stream):
            batch = dict(self.encode(raw))
            if position == 0 and self.n_apart and checksum(self._own(batch)) != first:
                raise ValueError(
                    f"The first {self.n_apart} batches of every pass are kept apart for validation, but this pass "
                    "began with other rows than the first one. Do not shuffle the stream, or use validation_batches=0."
                )
            if position >= self.n_apart and _check_rows(batch) >= self.fewest:
                n_taken += 1
                yield self._own(batch)
        if n_taken == 0:
            raise ValueError(
                f"Batches to train on have {SMALLEST_BATCH} rows at least, and one for each rank, and none of the "
                "stream is like that. Make them larger."
            )

    def _own(self, batch: Batch) -> Batch:
        return {name: block[self.rows] for name, block in batch.items()}


def _check_for_each(ranks: Ranks, n_rows: int) -> None:
    """Refuse batches that have no row for some rank."""
    if n_rows < ranks.size:
        raise ValueError(
            f"Each rank needs a row of every batch, and there are {ranks.size} ranks and batches of {n_rows}. Use "
            "larger batches, or fewer ranks."
        )


def _check_rows(inputs: Mapping[str, torch.Tensor]) -> int:
    """The number of rows, the same in every block."""
    lengths = {name: len(z) if isinstance(z, torch.Tensor) and z.ndim else type(z) for name, z in inputs.items()}
    (n, *others) = set(lengths.values()) or (None,)
    if others or not isinstance(n, int):
        raise ValueError(
            f"Batches need at least one block, each must be a tensor with one row a sample, and all must have the same "
            f"number of rows; got {lengths}. Pass {{'x': tensor, 'y': tensor}}, aligned row by row."
        )
    return n


def checksum(inputs: Mapping[str, torch.Tensor]) -> str:
    """A checksum of names, types, shapes and values."""
    copies = {name: z.detach().cpu().clone(memory_format=torch.contiguous_format) for name, z in inputs.items()}
    return sha256(save(copies)).hexdigest()
