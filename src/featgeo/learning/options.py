"""How to train: the options of gradient training, and the defaults that depend on data and networks."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from featgeo.geometry.validation import check_choice, check_flag, check_number, check_whole, is_whole
from featgeo.learning.batches import SMALLEST_BATCH, TensorBatches, check_batch_size, default_batch_size
from featgeo.schema import saved

MOST_APART = 5000
FEWEST_EPOCHS, MOST_EPOCHS, FEWEST_STEPS = 8, 200, 350
SMALL_NETWORK, SMALL_NETWORK_RATE, LARGE_NETWORK_RATE = 100_000, 0.01, 0.005

PRECISIONS = ("32-true", "64-true", "16-true", "bf16-true", "16-mixed", "bf16-mixed", "transformer-engine",
              "transformer-engine-float16")  # fmt: skip  # Fabric's names
ACCELERATORS = ("auto", "cpu", "gpu", "cuda", "mps", "tpu")


@saved
@dataclass(frozen=True)
class Training:
    """How to train.

    Attributes:
        max_epochs: Passes over the rows. None chooses as many as give 350 steps, at least 8 and at most 200.
        batch_size: Rows in a batch, of all devices together. None chooses a fortieth of the rows as a power of two,
            between 32 and 1024; half of that for networks of more than 100,000 parameters. (Read by `batches`; a stream
            brings its own batches.)
        learning_rate: The largest rate of the cycle. None chooses 0.01, and 0.005 for networks of more than 100,000
            parameters.
        weight_decay: Of AdamW.
        surplus: Dimensions added to the last level while training.
        patience: Stop after this many epochs without a better held-out score; None never does. The rate falls to zero
            in the end, and most of the gain comes there: choose a large one, or none.
        validation: Share of rows kept apart, at most 5,000 of them (read by `batches`).
        precision: One of Fabric's names: "32-true", "bf16-mixed", "16-mixed", "64-true", ...
        accelerator: One of Fabric's names: "cpu", "cuda", "mps", "auto", ...
        devices: How many devices, or which, as Fabric takes them. Several need a process each, started by a launcher
            such as torchrun.
        strategy: How several devices work together, as Fabric takes it.
        num_nodes: How many machines.
        checkpoint: A folder for checkpoints, written after every epoch; None for none.
        progress: Whether to show a progress bar; None shows it on terminals only.
        restarts: How often to train, from different starts; the best run on held-out rows is kept.
    """

    max_epochs: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    weight_decay: float = 0.3
    surplus: int = 2
    patience: int | None = None
    validation: float = 0.1
    precision: str = "32-true"
    accelerator: str = "auto"
    devices: int | str | list[int] = 1
    strategy: str = "auto"
    num_nodes: int = 1
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool | None = None
    restarts: int = 1

    def __post_init__(self) -> None:
        if self.max_epochs is not None:
            check_whole(self.max_epochs, "max_epochs", 1, "None chooses from the number of rows.")
        if self.patience is not None:
            check_whole(self.patience, "patience", 1, "None never stops early.")
        if self.batch_size is not None:
            check_batch_size(self.batch_size)
        for name, least in {"surplus": 0, "restarts": 1, "num_nodes": 1}.items():
            check_whole(getattr(self, name), name, least, f"Use {least}.")
        default = "Leave it out for the default."
        if self.learning_rate is not None:
            check_number(self.learning_rate, "learning_rate", "a positive number", default, above=True)
        check_number(self.weight_decay, "weight_decay", "a number, at least 0", default)
        share = "a share of the rows, at least 0 and below 1"
        if check_number(self.validation, "validation", share, "Use 0.1.") >= 1:
            raise ValueError(f"`validation` must be {share}, got {self.validation!r}. Use 0.1.")
        if self.progress is not None:
            check_flag(self.progress, "progress")
        for name, names in {"precision": PRECISIONS, "accelerator": ACCELERATORS}.items():
            check_choice(getattr(self, name), name, names, f"Use {names[0]!r}.")
        self._check_devices()
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise ValueError(f"`checkpoint` must be the path of a folder, got {self.checkpoint!r}. None keeps nothing.")

    def _check_devices(self) -> None:
        counts = self.devices if isinstance(self.devices, list | tuple) else [self.devices]
        least = 0 if isinstance(self.devices, list | tuple) else -1  # positions, or how many; -1 is all of them
        whole = all(is_whole(part) and int(part) >= least for part in counts)
        named = isinstance(self.devices, str) and (self.devices == "auto" or self.devices.lstrip("-").isdigit())
        if not (whole and counts and self.devices != 0) and not named:
            raise ValueError(
                f"`devices` must be how many devices (-1 for all), a list of their positions, or 'auto', got "
                f"{self.devices!r}. Use 1."
            )

    def batches(
        self,
        inputs: Mapping[str, torch.Tensor],
        seed: int,
        n_parameters: int = 0,
        apart: np.ndarray | None = None,
    ) -> TensorBatches:
        """Rows in memory as batches for networks of so many parameters, some rows kept apart, as these options say.

        Args:
            inputs: Tensors by block name.
            seed: Of the split and of the order of the rows.
            n_parameters: How large the networks are.
            apart: Positions of the rows to keep apart, where that is already settled.
        """
        size = self.batch_size
        if size is None and n_parameters > SMALL_NETWORK:
            size = max(SMALLEST_BATCH, default_batch_size(len(next(iter(inputs.values())))) // 2)
        n = len(next(iter(inputs.values())))
        return TensorBatches(inputs, size, min(self.validation, MOST_APART / max(n, 1)), seed, apart)

    def rate(self, n_parameters: int) -> float:
        """The largest learning rate for networks of so many parameters."""
        if self.learning_rate is not None:
            return self.learning_rate
        return SMALL_NETWORK_RATE if n_parameters <= SMALL_NETWORK else LARGE_NETWORK_RATE

    def epochs(self, n_batches: int) -> int:
        """How many epochs there will be at most."""
        if self.max_epochs is not None:
            return self.max_epochs
        return min(max(math.ceil(FEWEST_STEPS / n_batches), FEWEST_EPOCHS), MOST_EPOCHS)
