"""Gradients, where the features themselves are to be learned: networks that maximise a nested H-score.

Each block of inputs goes through its trunk to features, and a linear readout of them gives the dimensions of every
level that may use the block (`NestedFeatures`):

    f_i(x) = sum over the blocks b of level i on the x side of  A_ib trunk_b(x_b),     and g_i(y) likewise.

AdamW maximises the unbiased nested H-score of f and g under a one-cycle rate; the last level gets a few surplus
dimensions, which help as oversampling does in a randomised SVD. Only the trunks matter in the end: given their
features, the best readouts have a closed form (`featgeo.learning.solve`).

Lightning Fabric takes care of devices and precision. A run that is killed at any point and started again with the same
checkpoint folder ends with the same parameters, bit by bit (`Run`).

Processes that a launcher started train together (`featgeo.ranks`): each computes features of its own rows of a batch,
and all take the step that one process would take on the whole of it.
"""

from __future__ import annotations

import copy
import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn

from featgeo.geometry.spans import AffineFeatures
from featgeo.learning.batches import Batch, Batches, checksum
from featgeo.learning.captured import CapturedSteps, ahead
from featgeo.learning.checkpoint import check_alike, go_on, write_checkpoint
from featgeo.learning.setting import Training
from featgeo.nesting import Nesting, nested_h_score
from featgeo.nesting.scores import dimension_weights
from featgeo.ranks import ALONE, Ranks
from featgeo.watch import is_time_left, launched, progress_bar, shared

if TYPE_CHECKING:
    from lightning_fabric import Fabric

CAPTURED = ("32-true", "64-true", "bf16-true", "bf16-mixed")  # others scale the loss by what the host sees
CONSTANT = 1e-6  # spread of a feature, relative to its size, that is but rounding in single precision


class Orthonormal(nn.Identity):
    """A fixed span whose inputs are already an orthonormal basis of it.

    Where there are as many of them as dimensions, all functions in the span are used and there is nothing to learn on
    this side: the other side then learns by least squares.
    """


class Raw:
    """Inputs that Fabric passes on as they are; in mixed precision it would round them before the trunks scale them."""

    def __init__(self, blocks: Batch) -> None:
        self.blocks = blocks


class NestedFeatures(nn.Module):
    """Trunks and their readouts: inputs by block name to f and g, each (n, k) in level order.

    Attributes:
        orthonormal: Whether all functions of one side are known to be orthonormal: those of a fixed basis, each once.
    """

    def __init__(self, trunks: Mapping[str, nn.Module], nesting: Nesting, sample: Batch, renew: bool = False) -> None:
        """Put readouts on copies of trunks, ready to be trained.

        Args:
            trunks: A network for each block.
            nesting: The levels.
            sample: Some rows: they tell how many features each trunk has, and the scales of inputs and features.
            renew: Whether to draw new parameters, where the trunks know how.
        """
        super().__init__()
        _check_blocks(trunks, nesting, sample)
        copies = copy.deepcopy(dict(trunks))  # together, so that modules that share parameters still do
        features = {}
        for name, trunk in copies.items():
            if renew:
                _renew(trunk)
            fit_input_scale: Any = getattr(trunk, "fit_input_scale", None)
            if fit_input_scale is not None and not bool(getattr(trunk, "is_scaled", False)):
                fit_input_scale(sample[name])
            features[name] = _checked_features(name, trunk.cpu().eval(), sample[name])
        self.names = tuple(copies)
        self.trunks = nn.ModuleList(copies.values())  # not a dictionary: its keys could hold no dots
        dimensions = nesting.refine().levels
        # With several levels each wants its own functions, and a basis is never used up by one of them.
        whole = nesting.k if len(nesting.levels) == 1 else 0
        self.f = _Side([dimension.x for dimension in dimensions], features, copies, whole)
        self.g = _Side([dimension.y for dimension in dimensions], features, copies, whole)
        self.orthonormal = self.f.is_orthonormal or self.g.is_orthonormal
        self.train()

    def forward(self, inputs: Mapping[str, torch.Tensor] | Raw) -> tuple[torch.Tensor, torch.Tensor]:
        """F and g on a batch."""
        blocks = inputs.blocks if isinstance(inputs, Raw) else inputs
        kept = {name: z.to(self.f.bias.dtype) if z.is_floating_point() else z for name, z in blocks.items()}
        features = {name: trunk(kept[name]) for name, trunk in zip(self.names, self.trunks, strict=True)}
        return self.f(features), self.g(features)

    def readout(self, name: str) -> AffineFeatures:
        """The trained linear map from the features of a block to the dimensions that use it."""
        side = self.f if name in self.f.names else self.g
        part = cast(_Readout, side.readouts[side.names.index(name)])
        weight = (part.weight.detach().double() / part.spread.double()).T.cpu().numpy()
        return AffineFeatures(part.centre.double().cpu().numpy(), weight, np.zeros(weight.shape[1]))


class _Side(nn.Module):
    """All functions of x, or all of y: readouts of the blocks, added up.

    Attributes:
        is_orthonormal: Whether they are those of one fixed basis, each once; nothing of them is then trained.
    """

    def __init__(
        self,
        spaces: Sequence[tuple[str, ...]],
        features: Mapping[str, torch.Tensor],
        trunks: Mapping[str, nn.Module],
        whole: int,
    ) -> None:
        super().__init__()
        self.names = spaces[-1]
        # Spaces grow, so a block serves all dimensions from the first that may use it on.
        self.starts = [sum(name not in space for space in spaces) for name in self.names]
        self.readouts = nn.ModuleList(
            _Readout(trunks[name], features[name], len(spaces) - start)
            for name, start in zip(self.names, self.starts, strict=True)
        )
        self.bias = nn.Parameter(torch.zeros(len(spaces)))
        (first, *others) = self.names
        is_basis = isinstance(trunks[first], Orthonormal) and features[first].shape[1] == whole
        self.is_orthonormal = is_basis and not others
        if self.is_orthonormal:
            nn.init.eye_(cast(_Readout, self.readouts[0]).weight)
            self.requires_grad_(False)

    def forward(self, features: Mapping[str, torch.Tensor]) -> torch.Tensor:
        parts = zip(self.names, self.starts, self.readouts, strict=True)
        values = (nn.functional.pad(readout(features[name]), (start, 0)) for name, start, readout in parts)
        return sum(values, start=self.bias)


class _Readout(nn.Linear):
    """A linear map of features; fixed ones, which can have any scale, are first shifted and scaled by constants.

    Features that are trained are left as they are: their first, small spread would make every step too large.
    """

    centre: torch.Tensor
    spread: torch.Tensor

    def __init__(self, trunk: nn.Module, features: torch.Tensor, k: int) -> None:
        super().__init__(features.shape[1], k, bias=False)
        std, mean = torch.std_mean(features.double(), dim=0, correction=0)
        if isinstance(trunk, Orthonormal) or any(parameter.requires_grad for parameter in trunk.parameters()):
            std, mean = torch.ones_like(std), torch.zeros_like(mean)
        self.register_buffer("centre", mean.float())
        self.register_buffer("spread", torch.where(std > CONSTANT * (1 + mean.abs()), std, 1.0).float())

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return super().forward((features - self.centre) / self.spread)


def batch_score(
    f: torch.Tensor, g: torch.Tensor, nesting: Nesting, orthonormal: bool, ranks: Ranks = ALONE
) -> torch.Tensor:
    """An unbiased estimate of the nested H-score from a batch, of which each rank has its own rows.

    Where one side is orthonormal, its means and Gram matrix are known, 0 and I, and need not be estimated: what is left
    is least squares, E[f.g] - E[|f|^2] / 2, without the noise of a Gram matrix of few rows. Where the dependence is
    strong that noise is most of the gradient.
    """
    if not orthonormal:
        return nested_h_score(f, g, nesting, unbiased=True, over_ranks=ranks.size > 1)
    learned = f if f.requires_grad else g
    weights = dimension_weights(nesting, f.dtype, f.device)
    of_rows = (weights * (f * g - learned.square() / 2)).sum(dim=1)
    if ranks.size == 1:
        return of_rows.mean()
    total, n = ranks.total(torch.stack([of_rows.sum(), of_rows.new_tensor(len(of_rows))]))
    return total / n


def contributions(f: torch.Tensor, g: torch.Tensor, nesting: Nesting, ranks: Ranks = ALONE) -> torch.Tensor:
    """What each row contributes to the plug-in nested H-score of the rows, (n,): their mean is the score.

    It is the score's influence function, so that differences between rows tell the standard error of the score. Where
    ranks have rows of their own each tells what these contribute to the score of all.
    """
    k, n = f.shape[1], f.new_tensor([len(f)])
    told = torch.cat([n, f.sum(dim=0), g.sum(dim=0), (f.T @ f).ravel(), (g.T @ g).ravel()])
    n, f_mean, g_mean, f_gram, g_gram = torch.split(ranks.add(told), [1, k, k, k * k, k * k])
    weights = torch.tensor(nesting.pair_weights, dtype=f.dtype)
    f_gram, g_gram = f_gram.view(k, k) / n, g_gram.view(k, k) / n
    covariance = ((f - f_mean / n) * (g - g_mean / n)) @ weights.diagonal()
    quadratic = ((f @ (weights * g_gram)) * f).sum(dim=1) + ((g @ (weights * f_gram)) * g).sum(dim=1)
    return covariance - quadratic / 2 + (weights * f_gram * g_gram).sum() / 2


def _renew(trunk: nn.Module) -> None:
    """Draw new parameters, where all of a part are to be trained and it knows how."""
    for part in trunk.modules():
        own = list(part.parameters(recurse=False))
        reset: Any = getattr(part, "reset_parameters", None)
        if own and all(parameter.requires_grad for parameter in own) and reset is not None:
            reset()


def _check_blocks(trunks: Mapping[str, nn.Module], nesting: Nesting, sample: Batch) -> None:
    last = nesting.levels[-1]
    named = {*last.x, *last.y}
    if named != set(trunks) or not named <= sample.keys():
        raise ValueError(
            f"There must be a trunk for each block that the nesting names, {sorted(named)}, and inputs for it; got "
            f"trunks for {sorted(trunks)} and inputs for {sorted(sample)}. Add what is missing, drop what is not used."
        )
    for name, trunk in trunks.items():
        if not isinstance(trunk, nn.Module):
            raise ValueError(f"Trunks must be torch modules, got {type(trunk).__name__} for {name!r}. Wrap it in one.")


@torch.no_grad()
def _checked_features(name: str, trunk: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
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


SAMPLE_ROWS = 4096  # what input and feature scales are read from: bounds time


def train(
    trunks: Mapping[str, nn.Module],
    batches: Batches,
    nesting: Nesting,
    options: Training,
    seed: int = 0,
) -> Run:
    """Train the trunks to maximise a nested H-score.

    Args:
        trunks: A network for each block that the nesting names, from inputs to features (n, d). It is copied, never
            changed. One without trainable parameters, such as `nn.Identity`, is a fixed span with a trained readout.
            One with a method `fit_input_scale` that was not called yet gets it called on some rows.
        batches: Where the inputs come from.
        nesting: The levels, with the blocks that each may use on either side.
        options: How to train.
        seed: Of the readouts, of dropout and the like, and of restarts. The first run starts from the parameters of the
            trunks as they are; others draw new ones, where the modules have a `reset_parameters`.

    Returns:
        The best run, with the last parameters whose score on the rows kept apart is no more than a standard error below
        the highest. After Ctrl-C, which is only warned about, those until then; but several ranks end with it.
    """
    if options.restarts > 1 and not batches.held_out:
        raise ValueError(
            "Restarts are compared on rows kept apart, and there are none. Keep some apart, or use restarts=1."
        )
    fabric, ranks = fabric_of(options)
    if ranks.size > 1:
        shared()
    runs: list[Run] = []
    others = [fabric.device] if fabric.device.type != "cpu" else []
    if fabric.device.type == "cuda" and batches.elsewhere is not None:
        batches = batches.elsewhere(fabric.device)
    with torch.random.fork_rng(others, device_type=fabric.device.type):  # the caller's random numbers stay as they were
        for index in range(options.restarts):
            runs.append(Run(trunks, batches, nesting, options, (seed, index), fabric, ranks))
            runs[-1].train()
            if runs[-1].interrupted:
                break
    best = max(runs, key=lambda run: -math.inf if math.isnan(run.score) else run.score)
    best.interrupted, best.runs = runs[-1].interrupted, tuple(runs)
    return best


class Run:
    """One training from one start, how far it has come, and what it leaves.

    Attributes:
        model: The trunks with their readouts, on the CPU and in the precision that came: inputs by block name to
            (f, g), surplus dimensions last. In the end it gets the best parameters, and is in evaluation mode.
        trainee: The same as Fabric trains it.
        history: Nested H-score on the rows kept apart, after each epoch; NaN where none were kept apart.
        best_epoch: The epoch that the parameters come from, counted from 0; None where no epoch came to its end.
        best: The parameters of that epoch.
        peak: What each row kept apart contributed to the highest score so far, (n,).
        ranks: Who trains it.
        own: The batches with the rows of this rank.
        begins: A checksum of the first rows to train on, where other ranks must have the same.
        interrupted: Whether Ctrl-C ended it.
        runs: It and the others that it is the best of.
    """

    interrupted = False
    runs: tuple[Run, ...] = ()

    def __init__(
        self,
        trunks: Mapping[str, nn.Module],
        batches: Batches,
        nesting: Nesting,
        options: Training,
        seed: tuple[int, int],
        fabric: Fabric,
        ranks: Ranks = ALONE,
    ) -> None:
        """Set everything up; nothing is trained yet."""
        self.batches, self.options, self.seed, self.fabric, self.ranks = batches, options, seed, fabric, ranks
        self.own = batches if ranks.size == 1 else batches.dealt(ranks)
        last = nesting.levels[-1]
        self.nesting = Nesting([*nesting.levels[:-1], replace(last, dim=last.dim + options.surplus)])
        _set_seed(fabric.device, *seed)
        sample = _sample(batches)
        self.begins = "" if ranks.size == 1 else checksum(sample)
        module = NestedFeatures(trunks, self.nesting, sample, renew=seed[1] > 0)
        ranks.share([*module.parameters(), *module.buffers()])
        self.model = copy.deepcopy(module)
        trainable = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self.rate = options.rate(sum(parameter.numel() for parameter in trainable))
        optimizer = torch.optim.AdamW(trainable, self.rate, weight_decay=options.weight_decay, fused=True)
        self.trainee, self.optimizer = fabric.setup(module, optimizer)
        self.learn: Callable[[Batch], None] = self._learn
        self.max_epochs = options.epochs(batches.n_batches)
        self.history: list[float] = []
        self.best_epoch: int | None = None
        self.best: dict[str, torch.Tensor] = {}
        self.peak = torch.empty(0, dtype=torch.float64)

    @property
    def trunks(self) -> dict[str, nn.Module]:
        """The trunks by block name."""
        return dict(zip(self.model.names, self.model.trunks, strict=True))

    @property
    def score(self) -> float:
        """Nested H-score of the best epoch on the rows kept apart."""
        return math.nan if self.best_epoch is None else self.history[self.best_epoch]

    def train(self) -> None:
        """Go through the epochs that are left."""
        check_alike(self)
        go_on(self)
        if self.fabric.device.type == "cuda":
            self._capture()
        n, restarts = self.batches.n_batches, self.options.restarts
        name = "training" if restarts == 1 else f"training {self.seed[1] + 1}/{restarts}"
        wanted = self.options.progress if self.ranks.rank == 0 else False
        try:
            with progress_bar(name, self.max_epochs * n, len(self.history) * n, wanted, stays=True) as show:
                while self._goes_on():
                    self._epoch(show)
                    write_checkpoint(self)
        except KeyboardInterrupt:
            if self.ranks.size > 1:  # which are not interrupted at the same step
                raise
            self.interrupted = True
            warnings.warn(
                f"Training was interrupted after epoch {len(self.history)} of {self.max_epochs}; the best parameters "
                "until then are returned.",
                stacklevel=3,
            )
        self.model.load_state_dict(self.best or self.trainee.state_dict())
        self.model.eval()
        del self.trainee, self.optimizer, self.learn  # they fill the device, and other runs may follow

    def _goes_on(self) -> bool:
        """Whether there is another epoch: none beyond the first where time is up, by the clock of the first rank."""
        done, patience = len(self.history), self.options.patience
        stale = patience is not None and len(self.peak) > 0 and done - 1 - np.argmax(self.history) >= patience
        return done < self.max_epochs and not stale and (done == 0 or self.ranks.told(is_time_left()))

    def _epoch(self, show: Callable[..., None]) -> None:
        epoch, n = len(self.history), self.batches.n_batches
        _set_seed(self.fabric.device, *self.seed, 1 + epoch)
        self.trainee.train()
        for position, share in enumerate(self._shares(epoch)):
            progress = (epoch * n + position) / (self.max_epochs * n)
            self._set_rate(self.rate * one_cycle(progress, self.options.warm_up))
            self.learn(share)
            show(advance=1)
        self.ranks.share(self.trainee.buffers())  # statistics of batches are each rank's own
        held_out = self._held_out()
        self.history.append(float(held_out.mean()))
        show(text=f"epoch {epoch + 1}/{self.max_epochs} held-out H-score {self.history[-1]:.4f}")
        if np.argmax(self.history) == epoch:
            self.peak = held_out
        # The score is noisy and the last parameters, at the lowest rate, are the best settled: they are kept unless
        # they are worse than the highest score by more than a standard error.
        loss = self.peak - held_out
        if len(loss) == 0 or loss.mean() <= loss.std(correction=0) / len(loss) ** 0.5:
            state = self.trainee.state_dict().items()
            self.best_epoch, self.best = epoch, {name: value.clone() for name, value in state}

    def _shares(self, epoch: int) -> Iterator[Batch]:
        """Of each batch the rows of this rank, on its device.

        Who shuffles them draws the same numbers on all ranks; dropout and the like draws others on each.
        """
        shares = self.own.epoch(epoch)
        if self.ranks.rank > 0:
            shares = chain(list(islice(shares, 1)), shares)
            _set_seed(self.fabric.device, *self.seed, 1 + epoch, self.ranks.rank)
        return ahead(shares, self.fabric.device) if self.fabric.device.type == "cuda" else shares

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def _learn(self, share: Batch) -> None:
        """One step."""
        f, g = self.trainee(Raw(self.fabric.to_device(share)))
        self.optimizer.zero_grad()
        self.fabric.backward(-batch_score(f, g, self.nesting, self.model.orthonormal, self.ranks))
        self.ranks.add_gradients(part for part in self.trainee.parameters() if part.requires_grad)
        self.optimizer.step()

    def _capture(self) -> None:
        """Have steps captured, where nothing of them is for the host or for other ranks."""
        captured = self.ranks.size == 1 and self.options.precision in CAPTURED
        for group in self.optimizer.param_groups:
            group["capturable"] = captured
            group["lr"] = torch.tensor(self.rate, device=self.fabric.device) if captured else self.rate
        if captured:
            self.learn = CapturedSteps(self._learn, self.trainee, self.optimizer.optimizer)

    @torch.no_grad()
    def _held_out(self) -> torch.Tensor:
        """What each row kept apart contributes to the score, (n,), told by who has it; empty where there are none."""
        self.trainee.eval()
        none = torch.empty(0, self.nesting.k, dtype=torch.float64)
        parts, whose = [(none, none)], [torch.empty(0, dtype=torch.bool)]
        for batch in self.batches.held_out:
            is_own = torch.zeros(len(next(iter(batch.values()))), dtype=torch.bool)
            is_own[self.ranks.own] = True
            whose.append(is_own)
            if is_own.any():
                own = {name: block[self.ranks.own] for name, block in batch.items()}
                parts.append(tuple(z.cpu().double() for z in self.trainee(Raw(self.fabric.to_device(own)))))
        if len(whose) == 1:
            return self.peak
        f, g = (torch.cat(side) for side in zip(*parts, strict=True))
        everyones = torch.zeros(sum(map(len, whose)), dtype=torch.float64)
        everyones[torch.cat(whose)] = contributions(f, g, self.nesting, self.ranks)
        return self._checked(self.ranks.add(everyones))

    def _checked(self, held_out: torch.Tensor) -> torch.Tensor:
        """Numbers that are finite as long as training does not diverge."""
        if not torch.isfinite(held_out).all():
            raise ValueError(
                f"Training diverged: features are not finite in epoch {len(self.history)}. Use a lower `learning_rate`."
            )
        return held_out


def fabric_of(options: Training) -> tuple[Fabric, Ranks]:
    """Lightning Fabric on the device of this process, and the processes that train together.

    Raises:
        ValueError: If these devices are not there, or several were asked for and a launcher did not start as many
            processes.
    """
    try:
        from lightning_fabric import Fabric
    except ImportError as error:
        raise ImportError(f"Training networks needs more ({error}). Run: pip install 'featgeo[neural]'") from error
    devices, are_several = _devices_of_process(options)
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.WARNING)  # without its banners
    asked: dict[str, Any] = {"accelerator": options.accelerator, "devices": devices, "precision": options.precision}
    try:
        fabric = Fabric(**asked)
    except (ImportError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"Training needs devices that are there and go together, got {asked}: {error}. Leave them out of "
            "`Training` for what this machine has."
        ) from error
    else:
        fabric.launch()
    finally:
        logger.setLevel(level)
    return fabric, Ranks.joined(fabric.device.type) if are_several else ALONE


def _devices_of_process(options: Training) -> tuple[Any, bool]:
    """What Fabric takes for the device of this process, and whether others train with it on theirs."""
    is_cuda = options.accelerator in ("auto", "gpu", "cuda") and torch.cuda.is_available()
    asked, others = options.devices, launched()
    position, started = others or (0, 1)
    if asked in (-1, "-1", "auto"):
        asked = torch.cuda.device_count() if is_cuda else None
    if asked is None:
        return [position] if is_cuda and others else 1, others is not None
    there = list(asked) if isinstance(asked, list | tuple) else [*range(int(asked))]
    n = len(there)
    if n == 1:
        return there if is_cuda else 1, False
    if n != started:
        found = "this is a single one that none started" if started == 1 else f"one has started {started} here"
        raise ValueError(
            f"Training on {n} devices takes {n} processes, started by a launcher, and {found}. Run the script by "
            f"`torchrun --nproc_per_node={n} script.py`, or use devices=1."
        )
    return [there[position]] if is_cuda else 1, True


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


def _sample(batches: Batches) -> Batch:
    """Some rows to train on."""
    parts: list[Batch] = []
    for batch in batches.epoch(0):
        parts.append(batch)
        if sum(len(next(iter(part.values()))) for part in parts) >= SAMPLE_ROWS:
            break
    if not parts:
        raise ValueError("There are no batches to train on. Pass more rows.")
    return {name: torch.cat([part[name].cpu() for part in parts])[:SAMPLE_ROWS] for name in parts[0]}
