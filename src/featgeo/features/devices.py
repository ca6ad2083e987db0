"""Rows on devices: how many of them there is room for, and the way there and back.

All rows move to a device at once where they fit there beside what is computed from them, and are then read as often as
wanted. Where they do not, some at a time do, and the features of more would not fit either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from featgeo.geometry.validation import Array

SHARE_OF_FREE = 4  # rows take no more than a quarter of the memory that is free
MOST_ROWS = 2**20  # that are evaluated at a time: a GPU takes as long for fewer
FEWEST_ROWS = 2**13
BYTES_A_ROW = 2**16  # that evaluating a row may take: a thousand features in eight copies


def free_memory(device: torch.device) -> float:
    """How many bytes of a device can be had; nobody knows of others than GPUs."""
    if device.type != "cuda":
        return float("inf")
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # for tensors to come
    return float(torch.cuda.mem_get_info(device)[0] + kept)


def rows_at_once(device: torch.device) -> int:
    """How many rows are evaluated at a time on a device other than the CPU."""
    return int(max(FEWEST_ROWS, min(MOST_ROWS, free_memory(device) / BYTES_A_ROW)))


def moved(rows: Any, device: torch.device) -> Any:
    """The same rows (`Rows`, `Parts`, `Pairs`) on a device where there is room for all of them; else as they are."""
    needed = SHARE_OF_FREE * rows.cells * torch.float64.itemsize
    return rows if device.type == "cpu" or needed > free_memory(device) else rows.on(device)


def on_host(values: Tensor) -> Array:
    """Values on any device as an array."""
    if values.device.type == "cpu":
        return values.numpy()
    # Memory that was written to before takes copies several times as fast.
    return torch.empty(values.shape, dtype=values.dtype).fill_(0).copy_(values).numpy()


def in_order(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers from the smallest to the largest, (n,), and where each of them was; on a CPU NumPy sorts soonest."""
    if numbers.device.type != "cpu":
        return tuple(numbers.sort())  # type: ignore[return-value]
    order = torch.from_numpy(np.argsort(numbers.numpy()))
    return numbers[order], order
