"""Processes that work together, each with rows of its own: the one module that tells others anything.

All ranks go the same way with the same parameters. What travels is sums over their rows, of k-vectors, of k x k blocks,
of gradients and of moments, and a few words from the first rank; never rows or features. A sum is the same number on
all ranks, so whatever is computed from sums alone they compute alike.

Processes are started by a launcher such as torchrun, or by a program that has set up `torch.distributed` itself.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """This process among those that work together; alone by default.

    Attributes:
        rank: Its position among them. The first one writes files, shows progress and warns.
        size: How many there are.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def there(cls) -> Ranks:
        """Those of the process group of `torch.distributed`; alone where there is none."""
        import torch.distributed as distributed

        if not distributed.is_available() or not distributed.is_initialized():
            return cls()
        return cls(distributed.get_rank(), distributed.get_world_size())

    @classmethod
    def joined(cls, device: str) -> Ranks:
        """The same, and the group is set up where a launcher has left that to do.

        Args:
            device: What is computed with, "cuda" or another. Sums of what a GPU holds travel by NCCL, others by gloo.
        """
        import torch.distributed as distributed

        if not distributed.is_initialized():
            distributed.init_process_group("cuda:nccl,cpu:gloo" if device == "cuda" else "gloo")
            atexit.register(_leave)
        return cls.there()

    @property
    def own(self) -> slice:
        """Which of some rows are those of this rank."""
        return slice(self.rank, None, self.size)

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        """Add up a tensor over all ranks, in place."""
        if self.size > 1:
            _tell("all_reduce", tensor)
        return tensor

    def total(self, tensor: torch.Tensor) -> torch.Tensor:
        """The same as a new tensor that gradients pass through.

        Every rank has the total, and it counts once: so gradients go back as they came, without another word, and those
        of parameters are to be added up (`add_gradients`).
        """
        if self.size == 1:
            return tensor
        return self.add(tensor.detach().clone()) + (tensor - tensor.detach())

    def add_gradients(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Add up gradients over all ranks, those of one dtype in one piece; none counts as zeros."""
        if self.size == 1:
            return
        import torch

        kinds: dict[torch.dtype, list[torch.nn.Parameter]] = {}
        for parameter in parameters:
            kinds.setdefault(parameter.dtype, []).append(parameter)
        for some in kinds.values():
            parts = [torch.zeros_like(part) if part.grad is None else part.grad for part in some]
            flat = self.add(torch.cat([part.reshape(-1) for part in parts]))
            for parameter, part in zip(some, torch.split(flat, [part.numel() for part in parts]), strict=True):
                parameter.grad = part.view_as(parameter)

    def share(self, tensors: Iterable[torch.Tensor]) -> None:
        """Have tensors as the first rank has them, in place."""
        for tensor in tensors if self.size > 1 else ():
            _tell("broadcast", tensor.detach(), 0)

    def told(self, value: T) -> T:
        """What the first rank says."""
        if self.size == 1:
            return value
        said = [value]
        _tell("broadcast_object_list", said, 0)
        return said[0]

    def all_told(self, value: T) -> list[T]:
        """What each rank says."""
        said: list[Any] = [value] * self.size
        if self.size > 1:
            _tell("all_gather_object", said, value)
        return said


ALONE = Ranks()


def _tell(operation: str, what: Any, *others: Any) -> None:
    """One collective of `torch.distributed`, by name.

    Raises:
        RuntimeError: If another rank has ended.
    """
    import torch
    import torch.distributed as distributed

    collective: Callable[..., Any] = getattr(distributed, operation)
    # A group that the caller set up may know GPUs only.
    is_elsewhere = isinstance(what, torch.Tensor) and not what.is_cuda and distributed.get_backend() == "nccl"
    there = what.cuda() if is_elsewhere else what
    try:
        collective(there, *others)
    except RuntimeError as error:  # torch has no narrower class for what gloo says
        raise RuntimeError(
            f"Ranks work together, and this one, {distributed.get_rank()} of {distributed.get_world_size()}, cannot go "
            "on: another has ended, or cannot be reached. What that one said tells why. Start all of them again; with "
            "Training(checkpoint=...) they go on after the last whole epoch."
        ) from error
    if is_elsewhere:
        what.copy_(there)


def _leave() -> None:
    import torch.distributed as distributed

    if distributed.is_initialized():
        distributed.destroy_process_group()
