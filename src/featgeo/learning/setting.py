"""Settings as data: which functions each level may use. No setting has an engine of its own.

| setting | levels (modes, functions of x, functions of y) |
| --- | --- |
| bivariate | (k, x, y) |
| orthogonal to phi | (all, phi, y), (k, phi + x, y) |
| side information | (k, x, s), (k, x, s + (s, y)) |
| sequential | for each order t: (k, the last t symbols, the next symbol) |

How to learn, whatever the setting: what a user decides once, and every part of the engine reads.

`Plan` holds it all; `Training` is the part of it that networks need, with defaults that depend on data and networks.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import Any, Literal, cast, get_args

import numpy as np
import torch

from featgeo.features.combined import PartSpace
from featgeo.features.recipes import Recipe
from featgeo.features.regression import CentredSpace
from featgeo.features.space import Space
from featgeo.geometry.validation import check_choice, check_flag, check_number, check_whole, is_whole, seed_of
from featgeo.schema import saved
from featgeo.tuning import in_force

ModeCount = int | Literal["auto", "all"]
Solver = Literal["auto", "exact", "closed", "neural"]

SMALLEST_BATCH = 2  # the unbiased H-score compares rows with each other
MOST_APART = 5000  # rows that judge training: bounds time
# What None stands for in `Training`, as its documentation says.
FEWEST_EPOCHS, MOST_EPOCHS, FEWEST_STEPS = 8, 200, 350
SMALL_NETWORK, SMALL_NETWORK_RATE, LARGE_NETWORK_RATE = 100_000, 0.01, 0.005

PRECISIONS = ("32-true", "64-true", "16-true", "bf16-true", "16-mixed", "bf16-mixed", "transformer-engine",
              "transformer-engine-float16")  # fmt: skip  # Fabric's names
ACCELERATORS = ("auto", "cpu", "gpu", "cuda", "mps", "tpu")
LEAST = {"max_epochs": 1, "batch_size": SMALLEST_BATCH, "surplus": 0, "auto_modes": 1, "patience": 1,
         "restarts": 1}  # fmt: skip  # of options that are whole numbers


@saved
@dataclass(frozen=True)
class Training:
    """How to train.

    Attributes:
        max_epochs: Passes over the rows. None chooses as many as give 350 steps, at least 8 and at most 200.
        batch_size: Rows in a batch, of all devices together. None chooses a fortieth of the rows as a power of two,
            between 32 and 1024; half of that for networks of more than 100,000 parameters. (A stream brings its own
            batches.)
        learning_rate: The largest rate of the cycle. None chooses 0.01, and 0.005 for networks of more than 100,000
            parameters.
        warm_up: Share of the steps in which the rate rises to its largest; from there it falls to nearly nothing.
        weight_decay: Of AdamW.
        surplus: Dimensions added to the last level while training.
        auto_modes: Dimensions of a level whose number of modes is to be chosen, where no fixed span limits it.
        patience: Stop after this many epochs without a better held-out score; None never does. The rate falls to zero
            in the end, and most of the gain comes there: choose a large one, or none.
        validation: Share of rows kept apart, at most 5,000 of them.
        precision: One of Fabric's names: "32-true", "bf16-mixed", "16-mixed", "64-true", ...
        accelerator: One of Fabric's names: "cpu", "cuda", "mps", "auto", ...
        devices: Which devices of a machine, by position, or how many of them; -1 and "auto" are all GPUs. Several need
            a process each, started by a launcher such as torchrun: these then train together. None takes as many as
            were started, and with 1 each trains alone.
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
    devices: int | str | list[int] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: bool | None = None
    restarts: int = 1
    warm_up: float = 0.3
    auto_modes: int = 9

    def __post_init__(self) -> None:
        given = ((option, getattr(self, option.name)) for option in fields(self))
        # Where None is the default, it stands for what is to be chosen.
        values = {option.name: value for option, value in given if value is not None or option.default is not None}
        default = "Leave it out for the default."
        for name in LEAST.keys() & values.keys():
            check_whole(values[name], name, LEAST[name], default)
        for name in ("validation", "warm_up"):
            share = f"a share of the {'rows' if name == 'validation' else 'steps'}, at least 0 and below 1"
            check_number(values[name], name, share, default, below=1.0)
        check_number(self.weight_decay, "weight_decay", "a number, at least 0", default)
        if "learning_rate" in values:
            check_number(self.learning_rate, "learning_rate", "a positive number", default, above=True)
        if "progress" in values:
            check_flag(self.progress, "progress")
        for name, names in {"precision": PRECISIONS, "accelerator": ACCELERATORS}.items():
            check_choice(values[name], name, names, f"Use {names[0]!r}.")
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise ValueError(f"`checkpoint` must be the path of a folder, got {self.checkpoint!r}. None keeps nothing.")
        self._check_devices()

    def _check_devices(self) -> None:
        if self.devices is None:
            return
        counts = self.devices if isinstance(self.devices, list | tuple) else [self.devices]
        least = 0 if isinstance(self.devices, list | tuple) else -1  # positions, or how many; -1 is all of them
        whole = all(is_whole(part) and int(part) >= least for part in counts)
        named = isinstance(self.devices, str) and (self.devices == "auto" or self.devices.lstrip("-").isdigit())
        if not (whole and counts and self.devices != 0) and not named:
            raise ValueError(
                f"`devices` must be how many devices (-1 for all), a list of their positions, or 'auto', got "
                f"{self.devices!r}. Use 1."
            )

    def share_apart(self, n_rows: int) -> float:
        """The share of so many rows that is kept apart."""
        return min(self.validation, MOST_APART / max(n_rows, 1))

    def batch_rows(self, n_rows: int, n_parameters: int = 0) -> int:
        """Rows in a batch, where networks of so many parameters are trained on so many rows."""
        default = min(max(2 ** round(math.log2(max(n_rows, 1) / 40)), 32), 1024)
        default = default if n_parameters <= SMALL_NETWORK else default // 2
        return default if self.batch_size is None else self.batch_size

    def rate(self, n_parameters: int) -> float:
        """The largest learning rate for networks of so many parameters."""
        default = SMALL_NETWORK_RATE if n_parameters <= SMALL_NETWORK else LARGE_NETWORK_RATE
        return default if self.learning_rate is None else self.learning_rate

    def epochs(self, n_batches: int) -> int:
        """How many epochs there will be at most."""
        default = min(max(math.ceil(FEWEST_STEPS / n_batches), FEWEST_EPOCHS), MOST_EPOCHS)
        return default if self.max_epochs is None else self.max_epochs


@dataclass(frozen=True, eq=False)
class Plan:
    """How to learn.

    Attributes:
        solver: The way; "auto" takes the most exact one that applies.
        seed: Of everything random.
        training: Options of training, for networks.
        ridge: That shrinks features of unit variance; "auto" for what held-out rows prefer. With 0 linear spaces give
            canonical correlations, tables correspondence analysis.
        apart: Positions of the rows that networks are not trained on; at random when None.
        device: Where spaces are evaluated and moments are summed.
        mean: Whether the mean of Y given x is told by itself, besides by the modes.
    """

    solver: Solver = "auto"
    seed: int = 0
    training: Training = field(default_factory=Training)
    ridge: float | Literal["auto"] = "auto"
    apart: np.ndarray | None = None
    device: str = "cpu"
    mean: bool = False

    @classmethod
    def of(cls, estimator: Any) -> Plan:
        """What the arguments of an estimator say, checked; those that it does not have are the defaults."""
        solver = check_choice(estimator.solver, "solver", get_args(Solver))
        training, ridge = estimator.training, cast("Any", getattr(estimator, "ridge", "auto"))
        training = Training() if training is None else training
        if not isinstance(training, Training):
            raise ValueError(f"`training` must be a Training, got {training!r}. Write Training(max_epochs=20).")
        if not (isinstance(ridge, str) and ridge == "auto"):
            ridge = check_number(ridge, "ridge", "'auto' or at least 0", "Use 0 for none, or 'auto'.")
        device = check_choice(estimator.device, "device", ("auto", "cpu", "cuda"))
        if device == "cuda" and not torch.cuda.is_available():
            raise ValueError("device='cuda' needs a GPU that torch can see, and there is none. Use 'auto', or 'cpu'.")
        if device != "cpu":  # by number, as tensors tell theirs: else what is there would seem to be elsewhere
            device = f"cuda:{torch.cuda.current_device()}" if torch.cuda.is_available() else "cpu"
        return cls(cast("Solver", solver), seed_of(estimator.random_state), training, ridge, device=device)

    def ridges(self, weak: bool = False) -> tuple[float, ...]:
        """To choose from, for functions that may be many and weak; or the one that was asked for."""
        options = in_force.get()
        return (options.weak_ridges if weak else options.ridges) if self.ridge == "auto" else (self.ridge,)


@dataclass(frozen=True)
class Block:
    """Some functions of one side.

    Attributes:
        space: Which functions, as `recipes` reads it.
        of: The variables of the side that they read; all when none is named.
        centred_given: The variable given which learned functions are to have mean 0; "" for none.
    """

    space: Any
    of: tuple[str, ...] = ()
    centred_given: str = ""

    def fitted(self, recipe: Recipe, side: Any, seed: int) -> Space:
        """The space of a recipe, as functions of the rows of the side."""
        if recipe.fit is None:
            raise ValueError(f"The space {recipe.name!r} must be learned together with the other variable.")
        return self.seen_from_side(recipe.fit(side.of(*self.of), seed))

    def seen_from_side(self, space: Space) -> Space:
        """A space of the variables that this block reads as one of the whole side."""
        return PartSpace(self.of, space) if self.of else space

    def centred(self, space: Space, side: Any, seed: int) -> Space:
        """A space of the side with conditional means taken off, where this block wants that."""
        return CentredSpace.fit(space, self.centred_given, side, seed) if self.centred_given else space


@dataclass(frozen=True)
class Step:
    """A level of a setting: what it adds to the levels before.

    Attributes:
        n_modes: How many modes at most; "auto" for as many as raise the held-out H-score, "all" for all there are.
        x: Blocks of the x side that it adds.
        y: Blocks of the y side that it adds.
    """

    n_modes: ModeCount
    x: tuple[str, ...] = ()
    y: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setting:
    """Blocks of either side, and the levels that use them.

    Attributes:
        x: Blocks of the x side by name, in the order in which the levels add them; the last is the richest.
        y: Blocks of the y side; names differ from those of x.
        steps: The levels in order.
    """

    x: Mapping[str, Block]
    y: Mapping[str, Block]
    steps: tuple[Step, ...]

    @classmethod
    def bivariate(cls, n_modes: ModeCount, x_space: Any, y_space: Any) -> Setting:
        """The modes of two variables."""
        return cls({"x": Block(x_space)}, {"y": Block(y_space)}, (Step(n_modes, ("x",), ("y",)),))

    @property
    def is_bivariate(self) -> bool:
        """Whether there is one level with one block on either side."""
        return len(self.steps) == len(self.x) == len(self.y) == 1

    @property
    def blocks(self) -> dict[str, Block]:
        """All blocks by name."""
        return {**self.x, **self.y}

    @property
    def richest(self) -> tuple[str, str]:
        """The last block of x and the last of y."""
        return list(self.x)[-1], list(self.y)[-1]

    def spaces(self, called: Mapping[str, str] | None = None) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """The blocks of x and of y that each level may use, by their own or by other names."""
        x, y = ([(called or {}).get(name, name) for name in side] for side in (self.x, self.y))
        n_x, n_y = accumulate(len(step.x) for step in self.steps), accumulate(len(step.y) for step in self.steps)
        return [(tuple(x[:i]), tuple(y[:j])) for i, j in zip(n_x, n_y, strict=True)]
