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

import contextlib
import copy
import json
import logging
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from featgeo.geometry.spans import AffineFeatures
from featgeo.learning.batches import (
    SMALLEST_BATCH,
    Batch,
    Batches,
    TensorBatches,
    check_batch_size,
    checksum,
    default_batch_size,
)
from featgeo.nesting import Level, Nesting, nested_h_score

if TYPE_CHECKING:
    from lightning_fabric import Fabric

SAMPLE_ROWS = 4096  # what input and feature scales are read from
FEWEST_EPOCHS, MOST_EPOCHS, FEWEST_STEPS = 8, 200, 400
WARM_UP = 0.3  # share of the steps in which the rate rises
FIRST_RATE, LAST_RATE = 1 / 25, 1 / 25_000  # of the maximum
CHECKPOINT_FORMAT = 1
SMALL_NETWORK, SMALL_NETWORK_RATE, LARGE_NETWORK_RATE = 100_000, 0.01, 0.003


@dataclass(frozen=True)
class Training:
    """How to train.

    Attributes:
        max_epochs: Passes over the rows. None chooses as many as give 400 steps, at least 8 and at most 200.
        batch_size: Rows in a batch, of all devices together. None chooses a fortieth of the rows as a power of two,
            between 32 and 1024; half of that for networks of more than 100,000 parameters. (Read by `batches`; a stream
            brings its own batches.)
        learning_rate: The largest rate of the cycle. None chooses 0.01, and 0.003 for networks of more than 100,000
            parameters.
        weight_decay: Of AdamW.
        surplus: Dimensions added to the last level while training.
        patience: Stop after this many epochs without a better held-out score; None never does. The rate falls to zero
            in the end, and most of the gain comes there: choose a large one, or none.
        validation: Share of rows kept apart (read by `batches`).
        precision: One of Fabric's names: "32-true", "bf16-mixed", "16-mixed", "64-true", ...
        accelerator: One of Fabric's names: "cpu", "cuda", "mps", "auto", ...
        devices: How many devices, or which, as Fabric takes them.
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
        _check_whole("max_epochs", self.max_epochs, 1, "None chooses from the number of rows")
        _check_whole("patience", self.patience, 1, "None never stops early")
        if self.batch_size is not None:
            check_batch_size(self.batch_size)
        for name, least in {"surplus": 0, "restarts": 1, "num_nodes": 1}.items():
            if getattr(self, name) is None:
                raise ValueError(f"`{name}` must be a whole number, got None. Use {least}.")
            _check_whole(name, getattr(self, name), least, f"Use {least}")
        for name, above in {"learning_rate": True, "weight_decay": False}.items():
            value = getattr(self, name)
            if value is None and name == "learning_rate":
                continue
            if not isinstance(value, Real) or not math.isfinite(value) or value < 0 or (above and value == 0):
                rule = "a positive number" if above else "a number, at least 0"
                raise ValueError(f"`{name}` must be {rule}, got {value!r}. Leave it out for the default.")
        if not isinstance(self.validation, Real) or not 0 <= self.validation < 1:
            raise ValueError(
                f"`validation` must be a share of the rows, at least 0 and below 1, got {self.validation!r}. Use 0.1."
            )

    def batches(self, inputs: Mapping[str, torch.Tensor], seed: int, n_parameters: int = 0) -> TensorBatches:
        """Rows in memory as batches for networks of so many parameters, some rows kept apart, as these options say."""
        size = self.batch_size
        if size is None and n_parameters > SMALL_NETWORK:
            size = max(SMALLEST_BATCH, default_batch_size(len(next(iter(inputs.values())))) // 2)
        return TensorBatches(inputs, size, self.validation, seed)

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


@dataclass(frozen=True, eq=False)
class Trained:
    """What training leaves.

    Attributes:
        trunks: The trunks with the best parameters, in evaluation mode, on the CPU.
        model: These trunks with their trained readouts: inputs by block name to (f, g), surplus dimensions last.
        history: Nested H-score on the rows kept apart, after each epoch; NaN where none were kept apart.
        best_epoch: The epoch that the parameters come from, counted from 0; None where no epoch came to its end.
        interrupted: Whether Ctrl-C ended it.
        runs: All runs, where there were several.
    """

    trunks: dict[str, nn.Module]
    model: NestedFeatures
    history: tuple[float, ...]
    best_epoch: int | None
    interrupted: bool = False
    runs: tuple[Trained, ...] = ()

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
        batches: Where the inputs come from; see `Training.batches`.
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
    fabric = _fabric(options)
    trained_nesting = _with_surplus(nesting, options.surplus)
    runs: list[Trained] = []
    with _own_random_numbers(fabric.device):
        for index in range(options.restarts):
            run = _Run.start(trunks, batches, trained_nesting, options, (seed, index), fabric)
            runs.append(run.train(batches, options))
            if options.restarts > 1 and math.isnan(runs[0].score) and not runs[0].interrupted:
                raise ValueError(
                    "Restarts are compared on rows kept apart, and there are none. Keep some apart, or use restarts=1."
                )
            if run.interrupted:
                break
    best = max(runs, key=lambda trained: -math.inf if math.isnan(trained.score) else trained.score)
    if run.interrupted:
        warnings.warn(
            f"Training was interrupted after epoch {len(runs[-1].history)} of {run.max_epochs}; "
            "the best parameters until then are returned.",
            stacklevel=2,
        )
    return replace(best, interrupted=run.interrupted, runs=tuple(runs) if options.restarts > 1 else ())


class NestedFeatures(nn.Module):
    """Trunks and their readouts: inputs by block name to f and g, each (n, k) in level order."""

    def __init__(self, trunks: Mapping[str, nn.Module], nesting: Nesting, sample: Batch) -> None:
        """Put readouts on the trunks.

        Args:
            trunks: A network for each block.
            nesting: The levels.
            sample: Some rows: they tell how many features each trunk has, and their scale.
        """
        super().__init__()
        self.names = tuple(trunks)
        self.trunks = nn.ModuleList(trunks.values())  # not a dictionary: its keys could hold no dots
        with torch.no_grad():
            features = {name: _features(name, trunk.eval(), sample[name]) for name, trunk in trunks.items()}
        dimensions = nesting.refine().levels
        self.f = _Side([dimension.x for dimension in dimensions], features, trunks)
        self.g = _Side([dimension.y for dimension in dimensions], features, trunks)
        self.train()

    def forward(self, inputs: Mapping[str, torch.Tensor] | _Unseen) -> tuple[torch.Tensor, torch.Tensor]:
        """F and g on a batch."""
        blocks = inputs.blocks if isinstance(inputs, _Unseen) else inputs
        precision = self.f.bias.dtype
        features = {}
        for name, trunk in zip(self.names, self.trunks, strict=True):
            block = blocks[name]
            features[name] = trunk(block.to(precision) if block.is_floating_point() else block)
        return self.f(features), self.g(features)

    @property
    def orthonormal(self) -> bool:
        """Whether all functions of one side are known to be orthonormal: those of a fixed basis, each used once."""
        return any(side.is_orthonormal for side in (self.f, self.g))

    def readout(self, name: str) -> AffineFeatures:
        """The trained linear map from the features of a block to the dimensions that use it."""
        side = self.f if name in self.f.names else self.g
        part = cast(_Readout, side.readouts[side.names.index(name)])
        weight = (part.linear.weight.detach().double() / part.spread.double()).T.cpu().numpy()
        return AffineFeatures(part.centre.double().cpu().numpy(), weight, np.zeros(weight.shape[1]))


def _score(f: torch.Tensor, g: torch.Tensor, nesting: Nesting, orthonormal: bool) -> torch.Tensor:
    """An unbiased estimate of the nested H-score from a batch.

    Where one side is orthonormal, its means and Gram matrix are known, 0 and I, and need not be estimated: what is left
    is least squares, E[f.g] - E[|f|^2] / 2, without the noise of a Gram matrix of few rows. Where the dependence is
    strong that noise is most of the gradient.
    """
    if not orthonormal:
        return nested_h_score(f, g, nesting, unbiased=True)
    learned = f if f.requires_grad else g
    weights = torch.as_tensor(nesting.pair_weights.diagonal().copy(), dtype=f.dtype, device=f.device)
    return (weights * (f * g - learned.square() / 2)).sum(dim=1).mean()


class Orthonormal(nn.Identity):
    """A fixed span whose inputs are already an orthonormal basis of it.

    Where there are as many of them as dimensions, all functions in the span are used and there is nothing to learn on
    this side: the other side then learns by least squares.
    """


class _Side(nn.Module):
    """All functions of x, or all of y: readouts of the blocks, added up."""

    def __init__(
        self, spaces: list[tuple[str, ...]], features: Mapping[str, torch.Tensor], trunks: Mapping[str, nn.Module]
    ) -> None:
        super().__init__()
        self.names = spaces[-1]
        # Spaces grow, so a block serves all dimensions from the first that may use it on.
        starts = [next(i for i, space in enumerate(spaces) if name in space) for name in self.names]
        self.readouts = nn.ModuleList(
            _readout(trunks[name], features[name], len(spaces) - start)
            for name, start in zip(self.names, starts, strict=True)
        )
        self.bias = nn.Parameter(torch.zeros(len(spaces)), requires_grad=not self.is_orthonormal)

    @property
    def is_orthonormal(self) -> bool:
        """Whether the dimensions are those of one fixed basis, each once."""
        (readout, *others) = self.readouts
        return not others and isinstance(readout, _FixedReadout) and readout.is_complete

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        total: torch.Tensor = self.bias
        for name, readout in zip(self.names, self.readouts, strict=True):
            values = readout(features[name])
            total = total + nn.functional.pad(values, (len(self.bias) - values.shape[1], 0))
        return total


class _Readout(nn.Module):
    """A linear map of features; fixed ones, which can have any scale, are first shifted and scaled by constants.

    Features that are trained are left as they are: their first, small spread would make every step too large.
    """

    centre: torch.Tensor
    spread: torch.Tensor

    def __init__(self, features: torch.Tensor, k: int, fixed: bool) -> None:
        super().__init__()
        d = features.shape[1]
        spread, centre = torch.ones(d), torch.zeros(d)
        if fixed:
            std, mean = torch.std_mean(features.double(), dim=0, correction=0)
            spread, centre = torch.where(std > 1e-6 * (1 + mean.abs()), std, 1.0).float(), mean.float()
        self.register_buffer("centre", centre)
        self.register_buffer("spread", spread)
        self.linear = nn.Linear(d, k, bias=False)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        values: torch.Tensor = self.linear((features - self.centre) / self.spread)
        return values


class _FixedReadout(_Readout):
    """A readout of an orthonormal basis: each function once where there is room for all, else trained combinations."""

    def __init__(self, features: torch.Tensor, k: int) -> None:
        super().__init__(features, k, fixed=False)
        self.is_complete = features.shape[1] == k
        if self.is_complete:
            nn.init.eye_(self.linear.weight)
            self.linear.weight.requires_grad_(False)


def _readout(trunk: nn.Module, features: torch.Tensor, k: int) -> _Readout:
    if isinstance(trunk, Orthonormal):
        return _FixedReadout(features, k)
    return _Readout(features, k, fixed=not any(parameter.requires_grad for parameter in trunk.parameters()))


class _Unseen:
    """Inputs that Fabric passes on as they are; in mixed precision it would round them before the trunks scale them."""

    def __init__(self, blocks: Batch) -> None:
        self.blocks = blocks


@dataclass(eq=False)
class _Run:
    """One training from one start, and how far it has come."""

    fabric: Fabric
    result: NestedFeatures  # on the CPU and in the precision that came; gets the best parameters in the end
    model: Any  # the same, wrapped by Fabric
    optimizer: Any
    nesting: Nesting
    seed: tuple[int, int]
    max_epochs: int
    n_steps: int
    rate: float
    step: int = 0
    history: list[float] = field(default_factory=list)
    best_epoch: int | None = None
    best: dict[str, torch.Tensor] = field(default_factory=dict)
    peak_epoch: int | None = None
    peak: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.float64))
    interrupted: bool = False

    @classmethod
    def start(
        cls,
        trunks: Mapping[str, nn.Module],
        batches: Batches,
        nesting: Nesting,
        options: Training,
        seed: tuple[int, int],
        fabric: Fabric,
    ) -> _Run:
        _set_seed(fabric.device, *seed)
        module = _nested_features(trunks, nesting, _sample(batches, tuple(trunks)), renew=seed[1] > 0)
        result = copy.deepcopy(module)
        trainable = [parameter for parameter in module.parameters() if parameter.requires_grad]
        rate = options.rate(sum(parameter.numel() for parameter in trainable))
        optimizer = torch.optim.AdamW(trainable, rate, weight_decay=options.weight_decay, fused=True)
        with _quiet():
            model, optimizer = fabric.setup(module, optimizer)
        epochs = options.epochs(batches.n_batches)
        return cls(fabric, result, model, optimizer, nesting, seed, epochs, epochs * batches.n_batches, rate)

    def train(self, batches: Batches, options: Training) -> Trained:
        checkpoint = _Checkpoint.of(self, batches, options)
        if checkpoint is not None:
            checkpoint.load(self)
        try:
            with _ProgressBar(self, options) as bar:
                while len(self.history) < self.max_epochs and not self._is_stale(options.patience):
                    self._epoch(batches, bar)
                    if checkpoint is not None and self.fabric.is_global_zero:
                        checkpoint.save(self)
        except KeyboardInterrupt:
            self.interrupted = True
        self.result.load_state_dict(self.best if self.best else _on_cpu(self.model.state_dict()))
        model = self.result.eval()
        trunks = dict(zip(model.names, model.trunks, strict=True))
        return Trained(trunks, model, tuple(self.history), self.best_epoch, self.interrupted)

    def _epoch(self, batches: Batches, bar: _ProgressBar) -> None:
        _set_seed(self.fabric.device, *self.seed, 1 + len(self.history))
        self.model.train()
        for batch in batches.epoch(len(self.history)):
            self._step(batch)
            bar.advance(self)
        held_out = self._held_out(batches)
        if self.fabric.world_size > 1:
            held_out = self.fabric.broadcast(held_out)  # rounding may differ between ranks, and they must stop together
        self.history.append(float(held_out.mean()))
        if self.peak_epoch is None or not self.history[-1] <= self.history[self.peak_epoch]:
            self.peak_epoch, self.peak = len(self.history) - 1, held_out
        # The score is noisy and the last parameters, at the lowest rate, are the best settled: they are kept unless
        # they are worse than the highest score by more than a standard error.
        loss = self.peak - held_out
        if len(loss) == 0 or loss.mean() <= loss.std(correction=0) / len(loss) ** 0.5:
            self.best_epoch, self.best = len(self.history) - 1, _on_cpu(self.model.state_dict())
        bar.advance(self, 0)

    def _step(self, batch: Batch) -> None:
        ranks = self.fabric.world_size
        if len(next(iter(batch.values()))) >= SMALLEST_BATCH * ranks:
            # Each rank scores rows of its own, and DDP averages the gradients: an average of unbiased estimates is
            # unbiased too, so no rows need to meet.
            share = {name: block[self.fabric.global_rank :: ranks] for name, block in batch.items()}
            f, g = self.model(_Unseen(self.fabric.to_device(share)))
            loss = -_score(f, g, self.nesting, self.result.orthonormal)
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate * one_cycle(self.step / self.n_steps)
            self.optimizer.zero_grad()
            self.fabric.backward(loss)
            self.optimizer.step()
        self.step += 1

    def _held_out(self, batches: Batches) -> torch.Tensor:
        """What each row kept apart contributes to the score, (n,); empty where there are none."""
        self.model.eval()
        parts = []
        with torch.no_grad():
            for batch in batches.validation():
                f, g = self.model(_Unseen(self.fabric.to_device(batch)))
                parts.append((f.cpu().double(), g.cpu().double()))
        if not parts:
            return torch.empty(0, dtype=torch.float64)
        f, g = (torch.cat(side) for side in zip(*parts, strict=True))
        if not (torch.isfinite(f).all() and torch.isfinite(g).all()):
            raise ValueError(
                f"Training diverged: features are not finite in epoch {len(self.history)}. Use a lower `learning_rate`."
            )
        return contributions(f, g, self.nesting)

    def _is_stale(self, patience: int | None) -> bool:
        if patience is None or self.peak_epoch is None:
            return False
        return len(self.history) - 1 - self.peak_epoch >= patience


def contributions(f: torch.Tensor, g: torch.Tensor, nesting: Nesting) -> torch.Tensor:
    """What each row contributes to the plug-in nested H-score of the rows, (n,): their mean is the score.

    It is the score's influence function, so that differences between rows tell the standard error of the score.
    """
    weights = torch.tensor(nesting.pair_weights, dtype=f.dtype)
    f_gram, g_gram = weights * (f.T @ f) / len(f), weights * (g.T @ g) / len(g)
    covariance = ((f - f.mean(dim=0)) * (g - g.mean(dim=0))) @ weights.diagonal()
    quadratic = ((f @ g_gram) * f).sum(dim=1) + ((g @ f_gram) * g).sum(dim=1)
    return covariance - quadratic / 2 + quadratic.mean() / 4


def one_cycle(progress: float) -> float:
    """The rate, as a share of its maximum, when a share of the steps is done (Smith & Topin 2019, with cosines).

    It depends on nothing else, so a run that goes on needs no state of a scheduler.
    """
    if progress < WARM_UP:
        start, end, share = FIRST_RATE, 1.0, progress / WARM_UP
    else:
        start, end, share = 1.0, LAST_RATE, min((progress - WARM_UP) / (1 - WARM_UP), 1.0)
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2


@dataclass(frozen=True)
class _Checkpoint:
    """A file with all that a run needs to go on: tensors as safetensors, numbers as JSON in its header."""

    path: Path
    fingerprint: dict[str, Any]

    @classmethod
    def of(cls, run: _Run, batches: Batches, options: Training) -> _Checkpoint | None:
        if options.checkpoint is None:
            return None
        folder = Path(options.checkpoint)
        folder.mkdir(parents=True, exist_ok=True)
        names = ("learning_rate", "weight_decay", "patience", "precision")
        shapes = {name: list(value.shape) for name, value in run.result.state_dict().items()}
        fingerprint = {
            "format": CHECKPOINT_FORMAT,
            "seed": list(run.seed),
            "max_epochs": run.max_epochs,
            **{name: getattr(options, name) for name in names},
            "levels": [asdict(level) for level in run.nesting.levels],
            **batches.describe(),
            "parameters": shapes,
        }
        return cls(folder / f"run-{run.seed[1]}.safetensors", json.loads(json.dumps(fingerprint)))

    def save(self, run: _Run) -> None:
        from safetensors.torch import save_file

        optimizer = run.optimizer.state_dict()["state"]
        moments = {f"{index}.{key}": value for index, entry in optimizer.items() for key, value in entry.items()}
        parts = {
            "model": run.model.state_dict(),
            "best": run.best,
            "optimizer": moments,
            "peak": {"contributions": run.peak},
        }
        tensors = {f"{part}.{name}": value for part, values in parts.items() for name, value in _on_cpu(values).items()}
        numbers = {
            "fingerprint": self.fingerprint,
            "step": run.step,
            "history": run.history,
            "best_epoch": run.best_epoch,
            "peak_epoch": run.peak_epoch,
            "precision": run.fabric.strategy.precision.state_dict(),
            "checksum": checksum(tensors),
        }
        partial = self.path.with_suffix(".partial")
        save_file(tensors, partial, {"featgeo": json.dumps(numbers)})
        os.replace(partial, self.path)  # at once: a run killed here leaves the old file or the new one

    def load(self, run: _Run) -> None:
        if not self.path.exists():
            return
        tensors, numbers = self._read()
        self._check(numbers["fingerprint"])
        parts: dict[str, dict[str, torch.Tensor]] = {"model": {}, "best": {}, "optimizer": {}, "peak": {}}
        for key, value in tensors.items():
            part, name = key.split(".", 1)
            parts[part][name] = value
        run.model.load_state_dict(parts["model"])
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key, value in parts["optimizer"].items():
            index, name = key.split(".", 1)
            state.setdefault(int(index), {})[name] = value
        run.optimizer.load_state_dict({**run.optimizer.state_dict(), "state": state})
        run.fabric.strategy.precision.load_state_dict(numbers["precision"])
        run.best, run.best_epoch = parts["best"], numbers["best_epoch"]
        run.peak, run.peak_epoch = parts["peak"]["contributions"], numbers["peak_epoch"]
        run.step, run.history = numbers["step"], numbers["history"]

    def _read(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.path, framework="pt") as file:
                numbers = json.loads(file.metadata()["featgeo"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
            sound = checksum(tensors) == numbers["checksum"]
        except (SafetensorError, KeyError, TypeError, ValueError):
            sound = False
        if not sound:
            raise ValueError(
                f"A checkpoint must be a whole file written by featgeo, and {self.path} is damaged or something else. "
                "Delete it to start anew, or use another folder."
            )
        return tensors, numbers

    def _check(self, found: dict[str, Any]) -> None:
        ours = self.fingerprint
        differing = [name for name in ours.keys() | found.keys() if ours.get(name) != found.get(name)]
        if differing:
            details = "; ".join(f"{name}: {found.get(name)} there, {ours.get(name)} here" for name in sorted(differing))
            raise ValueError(
                f"A run goes on only from a checkpoint of the same run, and {self.path} differs in {details}. "
                "Use another folder."
            )


class _ProgressBar:
    """A bar with the held-out score; nothing where it is not wanted or rich is not installed."""

    def __init__(self, run: _Run, options: Training) -> None:
        wanted = sys.stderr.isatty() if options.progress is None else options.progress
        self.bar: Any = None
        if not (wanted and run.fabric.is_global_zero):
            return
        with contextlib.suppress(ImportError):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[score]}"))
            self.bar = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))
            name = "training" if options.restarts == 1 else f"training {run.seed[1] + 1}/{options.restarts}"
            self.task = self.bar.add_task(name, total=run.n_steps, completed=run.step, score="")

    def __enter__(self) -> _ProgressBar:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def advance(self, run: _Run, steps: int = 1) -> None:
        if self.bar is not None:
            score = f"held-out H-score {run.history[-1]:.4f}" if run.history else ""
            self.bar.update(self.task, advance=steps, score=f"epoch {len(run.history)}/{run.max_epochs} {score}")


def _fabric(options: Training) -> Fabric:
    try:
        from lightning_fabric import Fabric
        from safetensors import safe_open  # noqa: F401 (checkpoints are written with it; better to know at once)
    except ImportError as error:
        raise ImportError(f"Training networks needs more ({error}). Run: pip install 'featgeo[neural]'") from error
    with _quiet():
        fabric = Fabric(
            accelerator=options.accelerator,
            strategy=options.strategy,
            devices=options.devices,
            num_nodes=options.num_nodes,
            precision=options.precision,  # type: ignore[arg-type]  # a name of theirs, which they check
        )
        fabric.launch()
    return fabric


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the banners that Lightning logs."""
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _own_random_numbers(device: torch.device) -> Iterator[None]:
    """Random numbers drawn inside leave those of the caller as they were."""
    others = [device] if device.type != "cpu" else []
    with torch.random.fork_rng(others, device_type=device.type if others else "cuda"):
        yield


def _set_seed(device: torch.device, *entropy: int) -> None:
    seed = int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
    torch.default_generator.manual_seed(seed)  # torch.manual_seed would reach devices that are not ours
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(seed)


def _with_surplus(nesting: Nesting, surplus: int) -> Nesting:
    last = nesting.levels[-1]
    return Nesting([*nesting.levels[:-1], Level(last.dim + surplus, last.x, last.y, last.weight)])


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


def _features(name: str, trunk: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    values = trunk(inputs)
    if not isinstance(values, torch.Tensor) or values.ndim != 2 or len(values) != len(inputs):
        got = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
        raise ValueError(
            f"A trunk must give features of shape (n, d), and that of {name!r} gives {got} for {len(inputs)} rows. "
            "End it with nn.Flatten()."
        )
    if not torch.isfinite(values).all():
        raise ValueError(f"The features of {name!r} are not finite before training. Scale its inputs.")
    return values


def _on_cpu(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies that no later step changes."""
    return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in tensors.items()}


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


def _check_whole(name: str, value: Any, least: int, way_out: str) -> None:
    if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value < least):
        raise ValueError(f"`{name}` must be a whole number, at least {least}, got {value!r}. {way_out}.")
