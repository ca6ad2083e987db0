"""Rows on devices other than the CPU: how many of them there is room for, and the way there and back.

All rows move to a device at once where they fit there beside what is computed from them, and are then read as often as
wanted. Where they do not, some at a time do, and the features of more would not fit either. Large tensors pass through
page-locked memory, a piece being copied by all threads of the host while the device fetches or brings the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featgeo.geometry.validation import Array

SHARE_OF_FREE = 4  # rows take no more than a quarter of the memory that is free
MOST_ROWS = 2**20  # that are evaluated at a time: a GPU takes as long for fewer
FEWEST_ROWS = 2**13
BYTES_A_ROW = 2**16  # that evaluating a row may take: a thousand features in eight copies
PIECE = 2**25  # bytes of page-locked memory: bounds it


def free_memory(device: torch.device) -> float:
    """How many bytes of a device can be had; nobody knows of others than GPUs."""
    if device.type != "cuda":
        return float("inf")
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # for tensors to come
    return float(torch.cuda.mem_get_info(device)[0] + kept)


def rows_at_once(device: torch.device) -> int:
    """How many rows are evaluated at a time."""
    return int(max(FEWEST_ROWS, min(MOST_ROWS, free_memory(device) / BYTES_A_ROW)))


def moved(rows: Any, device: torch.device) -> Any:
    """The same rows (`Rows`, `Parts`, `Pairs`) on a device where there is room for all of them; else as they are."""
    needed = SHARE_OF_FREE * rows.cells * torch.float64.itemsize
    return rows.on(device) if needed <= free_memory(device) else rows


def on_device(values: np.ndarray, device: torch.device) -> Tensor:
    """An array as a tensor of a device, its rows or its columns beside each other as they were."""
    here = torch.as_tensor(values)
    if device.type != "cuda" or here.nbytes <= PIECE or not (here.is_contiguous() or here.T.is_contiguous()):
        return here.to(device)
    there = torch.empty_like(here, device=device)
    for piece, (source, target) in _pieces(here, there):
        piece.copy_(source)
        target.copy_(piece, non_blocking=True)
    return there


def on_host(values: Tensor) -> Array:
    """A tensor of a device as an array."""
    if values.device.type != "cuda" or values.nbytes <= PIECE or not values.is_contiguous():
        return values.cpu().numpy()
    here, stream = torch.empty(values.shape, dtype=values.dtype), torch.cuda.current_stream()
    brought: list[tuple[torch.Event, Tensor, Tensor]] = []
    for piece, (source, target) in _pieces(values, here):
        piece.copy_(source, non_blocking=True)
        brought.append((stream.record_event(), piece, target))
        if len(brought) > 1:
            _put(*brought.pop(0))
    _put(*brought.pop())
    return here.numpy()


def _put(arrived: torch.Event, piece: Tensor, target: Tensor) -> None:
    """Copy a piece to where it belongs, once the device has brought it."""
    arrived.synchronize()
    target.copy_(piece)


def _pieces(source: Tensor, target: Tensor) -> Iterator[tuple[Tensor, tuple[Tensor, Tensor]]]:
    """Pieces of two tensors of one layout, in the order of memory, with page-locked memory that is free for each."""
    flat = [tensor.as_strided((tensor.numel(),), (1,)) for tensor in (source, target)]
    size, stream = PIECE // source.itemsize, torch.cuda.current_stream()
    locked = [torch.empty(size, dtype=source.dtype, pin_memory=True) for _ in range(2)]
    done: list[torch.Event] = []
    for turn, start in enumerate(range(0, source.numel(), size)):
        if turn > 1:
            done[turn - 2].synchronize()
        part = flat[0][start : start + size], flat[1][start : start + size]
        yield locked[turn % 2][: len(part[0])], part
        done.append(stream.record_event())
    stream.synchronize()  # before others are given the locked memory
