"""What a space is: one object that gives features in a fit, on a GPU, in an exported graph and in a file.

A space is a torch module over the columns of a variable as they were read once: numbers, (n, p), and codes of labels,
(n, q). `space(rows)` gives the values of its features as an array, (n, d), computed on the device that the space is on
(`space.to("cuda")`); `space.forward(rows)` gives them as a tensor there, for spaces made of spaces and for exporters.

Spaces are dataclasses, and their fields are all that a file keeps of them. Fields stay what they are, arrays above all;
each array or float has a buffer beside it that moves with the module. Exported graphs read these buffers, too: ONNX
would make Python's own numbers single precision.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from featgeo.geometry.validation import Array

ROWS_AT_ONCE = 8192  # bounds memory: a space may have many more features than are wanted of it


class Fields(nn.Module):
    """A module that is a dataclass: arrays and modules among its fields, also in tuples, are those of the module.

    Attributes:
        is_ours: Whether it can be exported: whether it is evaluated by torch.
    """

    is_ours: ClassVar[bool] = True

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """A module to begin with: dataclasses have an `__init__` of their own."""
        space = super().__new__(cls)
        nn.Module.__init__(space)
        return space

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self.__dict__[name] = value  # before the default that a dataclass has for the field
        for i, part in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(part, np.ndarray | float):
                self.register_buffer(f"{name}_{i}", torch.tensor(np.asarray(part, order="C")), persistent=False)
            elif isinstance(part, nn.Module) and part is not value:
                self.add_module(f"{name}_{i}", part)

    def tensor(self, name: str, i: int = 0) -> Tensor:
        """The buffer beside a field; beside one of its parts where the field is a tuple."""
        return self.get_buffer(f"{name}_{i}")


class Space(Fields):
    """A fitted space of functions of a variable, or of the variables of a side (`Parts`).

    Attributes:
        in_chunks: Whether some rows are evaluated at a time on the CPU as well, and not only on other devices.
    """

    in_chunks: ClassVar[bool] = False

    @property
    def device(self) -> torch.device:
        """Where features are computed."""
        return next((part.device for part in (*self.parameters(), *self.buffers())), torch.device("cpu"))

    @abstractmethod
    def forward(self, rows: Any) -> Tensor:
        """Values of the features that span the space, (n, d), from rows on its device."""

    def mapped(self, rows: Any, centre: Tensor, weight: Tensor, offset: Tensor) -> Tensor:
        """The features, less a centre (d,), times a matrix (d, k), plus an offset (k,): (n, k)."""
        return offset + (self.forward(rows) - centre) @ weight

    def features(self, rows: Any) -> Tensor:
        """Values of the features that span it, (n, d), on the device of the space."""
        device, n = self.device, len(rows)
        size = n if device.type == "cpu" and not self.in_chunks else ROWS_AT_ONCE
        chunks = [rows] if n <= size else [rows.take(slice(at, at + size)) for at in range(0, n, size)]
        with torch.no_grad():
            values = [self.forward(part.on(device)) for part in chunks]
        return values[0] if len(values) == 1 else torch.cat(values)

    def __call__(self, rows: Any) -> Array:
        """Values of the features that span it, (n, d)."""
        values: Array = self.features(rows).cpu().numpy()
        return values


class Wrapped(Space):
    """A space of something that is not ours to evaluate: it reads rows as they came, and cannot be exported."""

    is_ours = False

    @abstractmethod
    def values(self, rows: Any) -> Array:
        """Values of the features, (n, d)."""

    def forward(self, rows: Any) -> Tensor:
        """The same as a tensor."""
        return torch.from_numpy(self.values(rows)).to(rows.device)
