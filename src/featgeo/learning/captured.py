"""Steps of training on a CUDA device: captured once as a graph, then replayed without Python or a launch in between.

A step is a function of a batch that changes parameters and nothing that the host must see. It is captured once for each
number of rows: it is run a few times, as libraries set themselves up in their first calls, then parameters and the
state of the optimiser are put back to what they were, and what the step does is recorded. Every step is then a replay,
also the first, so that a run that goes on from a checkpoint does what it would have done.

Where a step cannot be captured, as it asks for values or does other things from one time to the next, it runs as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import nn

from featgeo.learning.batches import Batch

WARM_UPS = 3  # of what is set up in first calls


class CapturedSteps:
    """A step, captured for each number of rows that it meets.

    Attributes:
        step: What is done with a batch.
        module: Whose parameters and buffers the step changes.
        optimizer: How.
    """

    def __init__(self, step: Callable[[Batch], None], module: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.step, self.module, self.optimizer = step, module, optimizer
        self._graphs: dict[int, tuple[Batch, torch.cuda.CUDAGraph] | None] = {}

    def __call__(self, batch: Batch) -> None:
        """Do the step."""
        n = len(next(iter(batch.values())))
        if n not in self._graphs:
            self._graphs[n] = self._captured({name: block.clone() for name, block in batch.items()})
        captured = self._graphs[n]
        if captured is None:
            self.step(batch)
            return
        places, graph = captured
        for name, place in places.items():
            place.copy_(batch[name], non_blocking=True)
        graph.replay()

    def _captured(self, places: Batch) -> tuple[Batch, torch.cuda.CUDAGraph] | None:
        """The step on rows that will come to these places."""
        graph, before, random = torch.cuda.CUDAGraph(), self._state(), torch.cuda.get_rng_state()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                self.step(places)
            self._put_back(before)
        torch.cuda.current_stream().wait_stream(aside)
        torch.cuda.set_rng_state(random)
        try:
            with torch.cuda.graph(graph):
                self.step(places)
        except RuntimeError:
            torch.cuda.synchronize()
            return None
        return places, graph

    def _tensors(self) -> Iterator[torch.Tensor]:
        """All that a step may change."""
        yield from self.module.parameters()
        yield from self.module.buffers()
        for kept in self.optimizer.state.values():
            yield from kept.values()

    def _state(self) -> dict[int, torch.Tensor]:
        return {id(tensor): tensor.detach().clone() for tensor in self._tensors()}

    @torch.no_grad()
    def _put_back(self, before: Mapping[int, torch.Tensor]) -> None:
        """What was there before; what was not, as optimisers begin: with zeros."""
        for tensor in self._tensors():
            known = before.get(id(tensor))
            tensor.zero_() if known is None else tensor.copy_(known)


def ahead(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """The same batches on a CUDA device; those that are elsewhere are copied while the one before is in use."""
    copying, using = torch.cuda.Stream(device), torch.cuda.current_stream(device)  # type: ignore[no-untyped-call]
    coming = None
    for batch in batches:
        if all(block.is_cuda for block in batch.values()):
            yield batch
            continue
        here = coming
        with torch.cuda.stream(copying):
            coming = {name: block.pin_memory().to(device, non_blocking=True) for name, block in batch.items()}
        if here is not None:
            yield here
        using.wait_stream(copying)
        for block in coming.values():
            block.record_stream(using)
    if coming is not None:
        yield coming
