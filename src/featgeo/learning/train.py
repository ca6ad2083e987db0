"""Gradients, where the features themselves are to be learned: networks that maximise a nested H-score.

Each block of inputs goes through its trunk to features, and a linear readout of them gives the dimensions of every
level that may use the block:

    f_i(x) = sum over the blocks b of level i on the x side of  A_ib trunk_b(x_b),     and g_i(y) likewise.

AdamW maximises the unbiased nested H-score of f and g under a one-cycle rate; the last level gets a few surplus
dimensions, which help as oversampling does in a randomised SVD. Only the trunks matter in the end: given their
features, the best readouts have a closed form (`featgeo.learning.solve`).

Lightning Fabric takes care of devices, precision and ranks. A run that is killed at any point and started again with
the same checkpoint folder ends with the same parameters, bit by bit.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from featgeo.learning.batches import Batch, Batches
from featgeo.learning.checkpoint import Checkpoint, on_cpu
from featgeo.learning.devices import fabric_of, quiet
from featgeo.learning.heads import NestedFeatures, Raw, batch_score
from featgeo.learning.plan import SMALLEST_BATCH, Training
from featgeo.nesting import Nesting
from featgeo.watch import is_time_left, progress_bar

if TYPE_CHECKING:
    from lightning_fabric import Fabric

SAMPLE_ROWS = 4096  # what input and feature scales are read from: bounds time


@dataclass(frozen=True, eq=False)
class Trained:
    """What training leaves.

    Attributes:
        model: The trunks with their readouts and the best parameters, in evaluation mode, on the CPU: inputs by block
            name to (f, g), surplus dimensions last.
        history: Nested H-score on the rows kept apart, after each epoch; NaN where none were kept apart.
        best_epoch: The epoch that the parameters come from, counted from 0; None where no epoch came to its end.
        interrupted: Whether Ctrl-C ended it.
        runs: All runs, where there were several.
    """

    model: NestedFeatures
    history: tuple[float, ...]
    best_epoch: int | None
    interrupted: bool = False
    runs: tuple[Trained, ...] = ()

    @property
    def trunks(self) -> dict[str, nn.Module]:
        """The trunks by block name."""
        return dict(zip(self.model.names, self.model.trunks, strict=True))

    @property
    def score(self) -> float:
        """Nested H-score of the best epoch on the rows kept apart."""
        return math.nan if self.best_epoch is None else self.history[self.best_epoch]


def train(
    trunks: Mapping[str, nn.Module],
    batches: Batches,
    nesting: Nesting,
    options: Training | None = None,
    seed: int = 0,
) -> Trained:
    """Train the trunks to maximise a nested H-score.

    Args:
        trunks: A network for each block that the nesting names, from inputs to features (n, d). It is copied, never
            changed. One without trainable parameters, such as `nn.Identity`, is a fixed span with a trained readout.
            One with a method `fit_input_scale` that was not called yet gets it called on some rows.
        batches: Where the inputs come from.
        nesting: The levels, with the blocks that each may use on either side.
        options: How to train; the defaults when None.
        seed: Of the readouts, of dropout and the like, and of restarts. The first run starts from the parameters of the
            trunks as they are; others draw new ones, where the modules have a `reset_parameters`.

    Returns:
        The last parameters whose score on the rows kept apart is no more than a standard error below the highest. After
        Ctrl-C, which is only warned about, those until then.

    Raises:
        ValueError: Where the blocks do not fit together, features are not of shape (n, d), or the checkpoint is not one
            of this run.
    """
    options = Training() if options is None else options
    _check_blocks(trunks, nesting)
    if options.restarts > 1 and not batches.held_out:
        raise ValueError(
            "Restarts are compared on rows kept apart, and there are none. Keep some apart, or use restarts=1."
        )
    fabric, runs = fabric_of(options), []
    others = [fabric.device] if fabric.device.type != "cpu" else []
    with torch.random.fork_rng(others, device_type=fabric.device.type):  # the caller's random numbers stay as they were
        for index in range(options.restarts):
            run = Run(trunks, batches, nesting, options, (seed, index), fabric)
            runs.append(run.train())
            if runs[-1].interrupted:
                break
    best = max(runs, key=lambda trained: -math.inf if math.isnan(trained.score) else trained.score)
    if runs[-1].interrupted:
        warnings.warn(
            f"Training was interrupted after epoch {len(runs[-1].history)} of {run.max_epochs}; "
            "the best parameters until then are returned.",
            stacklevel=2,
        )
    return replace(best, interrupted=runs[-1].interrupted, runs=tuple(runs) if options.restarts > 1 else ())


class Run:
    """One training from one start, and how far it has come.

    Attributes:
        result: The model on the CPU and in the precision that came; gets the best parameters in the end.
        model: The same, wrapped by Fabric.
        history: As `Trained` has it.
        best_epoch: Likewise.
        best: The parameters of that epoch.
        peak: What each row kept apart contributed to the highest score so far, (n,).
    """

    def __init__(
        self,
        trunks: Mapping[str, nn.Module],
        batches: Batches,
        nesting: Nesting,
        options: Training,
        seed: tuple[int, int],
        fabric: Fabric,
    ) -> None:
        """Set everything up; nothing is trained yet."""
        self.batches, self.options, self.seed, self.fabric = batches, options, seed, fabric
        last = nesting.levels[-1]
        self.nesting = Nesting([*nesting.levels[:-1], replace(last, dim=last.dim + options.surplus)])
        _set_seed(fabric.device, *seed)
        module = _nested_features(trunks, self.nesting, _sample(batches, tuple(trunks)), renew=seed[1] > 0)
        self.result = copy.deepcopy(module)
        trainable = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.rate = options.rate(sum(parameter.numel() for parameter in trainable))
        optimizer = torch.optim.AdamW(trainable, self.rate, weight_decay=options.weight_decay, fused=True)
        with quiet():
            self.model, self.optimizer = fabric.setup(module, optimizer)
        self.max_epochs = options.epochs(batches.n_batches)
        self.history: list[float] = []
        self.best_epoch: int | None = None
        self.best: dict[str, torch.Tensor] = {}
        self.peak = torch.empty(0, dtype=torch.float64)

    def train(self) -> Trained:
        """Go through the epochs that are left."""
        checkpoint, interrupted = Checkpoint.of(self), False
        if checkpoint is not None:
            checkpoint.load(self)
        n, restarts = self.batches.n_batches, self.options.restarts
        name = "training" if restarts == 1 else f"training {self.seed[1] + 1}/{restarts}"
        wanted = self.options.progress if self.fabric.is_global_zero else False
        try:
            with progress_bar(name, self.max_epochs * n, len(self.history) * n, wanted) as show:
                while self._goes_on():
                    self._epoch(show)
                    if checkpoint is not None and self.fabric.is_global_zero:
                        checkpoint.save(self)
        except KeyboardInterrupt:
            interrupted = True
        self.result.load_state_dict(self.best if self.best else on_cpu(self.model.state_dict()))
        return Trained(self.result.eval(), tuple(self.history), self.best_epoch, interrupted)

    def _goes_on(self) -> bool:
        """Whether there is another epoch: none beyond the first where time is up, by the clock of the first rank."""
        done, patience = len(self.history), self.options.patience
        stale = patience is not None and len(self.peak) > 0 and done - 1 - np.argmax(self.history) >= patience
        if done >= self.max_epochs or stale:
            return False
        return done == 0 or bool(self.fabric.broadcast(is_time_left()))

    def _epoch(self, show: Callable[..., None]) -> None:
        epoch, n = len(self.history), self.batches.n_batches
        _set_seed(self.fabric.device, *self.seed, 1 + epoch)
        self.model.train()
        for position, batch in enumerate(self.batches.epoch(epoch)):
            self._step(batch, (epoch * n + position) / (self.max_epochs * n))
            show(advance=1)
        held_out = self._held_out()
        if self.fabric.world_size > 1:
            held_out = self.fabric.broadcast(held_out)  # rounding may differ between ranks, and they must stop together
        self.history.append(float(held_out.mean()))
        show(text=f"epoch {epoch + 1}/{self.max_epochs} held-out H-score {self.history[-1]:.4f}")
        if np.argmax(self.history) == epoch:
            self.peak = held_out
        # The score is noisy and the last parameters, at the lowest rate, are the best settled: they are kept unless
        # they are worse than the highest score by more than a standard error.
        loss = self.peak - held_out
        if len(loss) == 0 or loss.mean() <= loss.std(correction=0) / len(loss) ** 0.5:
            self.best_epoch, self.best = epoch, on_cpu(self.model.state_dict())

    def _step(self, batch: Batch, progress: float) -> None:
        ranks = self.fabric.world_size
        if len(next(iter(batch.values()))) < SMALLEST_BATCH * ranks:
            return
        # Each rank scores rows of its own, and DDP averages the gradients: an average of unbiased estimates is
        # unbiased too, so no rows need to meet.
        f, g = self._features({name: block[self.fabric.global_rank :: ranks] for name, block in batch.items()})
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * one_cycle(progress, self.options.warm_up)
        self.optimizer.zero_grad()
        self.fabric.backward(-batch_score(f, g, self.nesting, self.result.orthonormal))
        self.optimizer.step()

    def _features(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        f, g = self.model(Raw(self.fabric.to_device(batch)))
        return f, g

    @torch.no_grad()
    def _held_out(self) -> torch.Tensor:
        """What each row kept apart contributes to the score, (n,); empty where there are none."""
        self.model.eval()
        parts = [self._features(batch) for batch in self.batches.held_out]
        if not parts:
            return self.peak
        f, g = (torch.cat(side).cpu().double() for side in zip(*parts, strict=True))
        if not (torch.isfinite(f).all() and torch.isfinite(g).all()):
            raise ValueError(
                f"Training diverged: features are not finite in epoch {len(self.history)}. Use a lower `learning_rate`."
            )
        return contributions(f, g, self.nesting)


def contributions(f: torch.Tensor, g: torch.Tensor, nesting: Nesting) -> torch.Tensor:
    """What each row contributes to the plug-in nested H-score of the rows, (n,): their mean is the score.

    It is the score's influence function, so that differences between rows tell the standard error of the score.
    """
    weights = torch.tensor(nesting.pair_weights, dtype=f.dtype)
    f_gram, g_gram = weights * (f.T @ f) / len(f), weights * (g.T @ g) / len(g)
    covariance = ((f - f.mean(dim=0)) * (g - g.mean(dim=0))) @ weights.diagonal()
    quadratic = ((f @ g_gram) * f).sum(dim=1) + ((g @ f_gram) * g).sum(dim=1)
    return covariance - quadratic / 2 + quadratic.mean() / 4


def one_cycle(progress: float, warm_up: float = 0.3) -> float:
    """The rate, as a share of its maximum, when a share of the steps is done (Smith & Topin 2019, with cosines).

    It depends on nothing else, so a run that goes on needs no state of a scheduler.
    """
    if progress < warm_up:
        start, end, share = 1 / 25, 1.0, progress / warm_up
    else:
        start, end, share = 1.0, 1 / 25_000, min((progress - warm_up) / (1 - warm_up), 1.0)
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


def _set_seed(device: torch.device, *entropy: int) -> None:
    seed = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
    torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach devices that are not ours
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(seed)


def _sample(batches: Batches, names: tuple[str, ...]) -> Batch:
    """Some rows to train on."""
    parts: list[Batch] = []
    for batch in batches.epoch(0):
        missing = [name for name in names if name not in batch]
        if missing:
            raise ValueError(f"The batches must hold a block for every trunk, and {missing} are not in {list(batch)}.")
        parts.append(batch)
        if sum(len(part[names[0]]) for part in parts) >= SAMPLE_ROWS:
            break
    if not parts:
        raise ValueError("There are no batches to train on. Pass more rows.")
    return {name: torch.cat([part[name].cpu() for part in parts])[:SAMPLE_ROWS] for name in names}


def _nested_features(trunks: Mapping[str, nn.Module], nesting: Nesting, sample: Batch, renew: bool) -> NestedFeatures:
    copies = copy.deepcopy(dict(trunks))  # together, so that modules that share parameters still do
    for name, trunk in copies.items():
        if renew:
            _renew(trunk)
        fit_input_scale: Any = getattr(trunk, "fit_input_scale", None)
        if fit_input_scale is not None and not bool(getattr(trunk, "is_scaled", False)):
            fit_input_scale(sample[name])
        trunk.cpu()
    return NestedFeatures(copies, nesting, sample)


def _renew(trunk: nn.Module) -> None:
    """Draw new parameters, where all of a part are to be trained and it knows how."""
    for part in trunk.modules():
        own = list(part.parameters(recurse=False))
        reset: Any = getattr(part, "reset_parameters", None)
        if own and all(parameter.requires_grad for parameter in own) and reset is not None:
            reset()


def _check_blocks(trunks: Mapping[str, nn.Module], nesting: Nesting) -> None:
    last = nesting.levels[-1]
    named = {*last.x, *last.y}
    if named != set(trunks):
        raise ValueError(
            f"There must be a trunk for each block that the nesting names, {sorted(named)}; got {sorted(trunks)}. "
            "Add what is missing, and drop what is never used."
        )
    for name, trunk in trunks.items():
        if not isinstance(trunk, nn.Module):
            raise ValueError(f"Trunks must be torch modules, got {type(trunk).__name__} for {name!r}. Wrap it in one.")
