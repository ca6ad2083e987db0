"""Spans learned by gradients, then solved in closed form on all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from featgeo.features import networks
from featgeo.features.dealing import deal
from featgeo.features.encoding import Encoding
from featgeo.features.recipes import Recipe, is_finite, recipes
from featgeo.features.space import Space
from featgeo.features.spaces import NetworkSpace, check_module, network_inputs
from featgeo.features.variables import Rows
from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import AffineFeatures, complement
from featgeo.geometry.validation import Array
from featgeo.learning.batches import Batches, StreamBatches
from featgeo.learning.choice import Candidate, preferred
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.heads import Orthonormal
from featgeo.learning.learned import N_FOLDS, UNSEEN_ROWS, Learned, Unseen, from_solution
from featgeo.learning.options import Training
from featgeo.learning.plan import Plan
from featgeo.learning.setting import Block, Setting
from featgeo.learning.solve import MODE_COUNTS, Folds, Search, Solution, solve
from featgeo.learning.task import Task
from featgeo.learning.train import Trained, train
from featgeo.nesting import Level, Nesting
from featgeo.nesting.nesting import MOST_DIMENSIONS

AGREEMENT_ROWS = 4096
AUTO_MODES = 9  # dimensions to train where the number of modes is to be chosen and nothing limits it
NO_LIMIT = MOST_DIMENSIONS


@dataclass(frozen=True, eq=False)
class _Trunk:
    """A block on its way through training: what goes into its network, and the space that comes out."""

    side: str
    block: Block
    key: str
    name: str
    module: nn.Module
    encoding: Encoding | None = None
    fixed: Space | None = None
    basis: AffineFeatures | None = None

    def inputs(self, pairs: Pairs) -> torch.Tensor:
        rows = getattr(pairs, self.side).of(*self.block.of)
        if self.fixed is not None and self.basis is not None:
            return torch.from_numpy(self.basis(self.fixed(rows))).float()
        return network_inputs(rows, self.encoding)

    def space(self, module: nn.Module) -> Space:
        space = NetworkSpace(module, self.encoding, self.key) if self.fixed is None else self.fixed
        return self.block.seen_from_side(space)

    @property
    def dim(self) -> int:
        """A fixed span has no more modes than dimensions."""
        return NO_LIMIT if self.basis is None else max(1, self.basis.weight.shape[1])


def learn_neural(task: Task) -> Learned:
    """Train networks for the blocks that need one, and solve in the spans they end with."""
    data, setting, plan = task.data, task.setting, task.plan
    options, seed, apart = Training() if plan.training is None else plan.training, plan.seed, plan.apart
    head = data.head if isinstance(data, Stream) else data
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # default networks draw their parameters here
        trunks = {
            name: _trunk(block, side, name, getattr(head, side), seed + (side == "y"))
            for name, (side, block) in setting.blocks.items()
        }
    dims, room = _dims(setting, trunks)
    options = replace(options, surplus=min(options.surplus, room))
    batches = _batches(data, trunks, options, seed, apart)
    nesting = Nesting([Level(dim, *spaces) for dim, spaces in zip(dims, setting.spaces(), strict=True)])
    trained = train({name: trunk.module for name, trunk in trunks.items()}, batches, nesting, options, seed)
    counts = [
        [dim] if isinstance(step.n_modes, int) else [*(count for count in MODE_COUNTS if count < dim), dim]
        for step, dim in zip(setting.steps, dims, strict=True)
    ]
    apart = getattr(batches, "validation_rows", apart)
    finish = _Finish(data, trunks, nesting, counts, replace(plan, apart=apart))
    spaces, solution = finish(trained)
    left_out = None
    if isinstance(data, Pairs) and apart is not None and len(apart):
        rows, fold_of_row = apart[:UNSEEN_ROWS], 1 + deal(len(apart), N_FOLDS, seed)[:UNSEEN_ROWS]
        values = np.hstack([spaces[name](data.x.take(rows)) for name in setting.x])
        left_out = Unseen.of(solution, rows, values, fold_of_row, setting, spaces)
    x_name, y_name = setting.richest
    names = trunks[x_name].name, trunks[y_name].name
    learned = from_solution(solution, setting, spaces, names, "neural", left_out)
    others = [run for run in trained.runs if run.trunks is not trained.trunks]
    if others:
        learned = _with_restarts(
            learned, [finish(run) for run in others], list(setting.x), head.sample(AGREEMENT_ROWS, seed)
        )
    if apart is None or not len(apart):  # all rows were trained on: none of them can judge
        return _unjudged(learned)
    return learned


def _dims(setting: Setting, trunks: Mapping[str, _Trunk]) -> tuple[tuple[int, ...], int]:
    """How many dimensions each level trains, and how many more the last has room for."""
    dims: list[int] = []
    x_dim = y_dim = 0
    for step in setting.steps:
        # A side that grows adds what is new in it; one that stays may be used whole again.
        x_new, y_new = (sum(trunks[name].dim for name in names) for names in (step.x, step.y))
        x_dim, y_dim = x_new or x_dim, y_new or y_dim
        most = min(x_dim, y_dim)
        if isinstance(step.n_modes, int):
            wanted = step.n_modes
        else:
            wanted = min(most, max(MODE_COUNTS)) if most < NO_LIMIT else AUTO_MODES
        dims.append(min(wanted, most))
    return tuple(dims), most - dims[-1]


@dataclass(frozen=True, eq=False)
class _Finish:
    """From trained networks to spaces, and the closed form in them."""

    data: Pairs | Stream
    trunks: Mapping[str, _Trunk]
    nesting: Nesting
    counts: list[list[int]]
    plan: Plan

    def __call__(self, trained: Trained) -> tuple[dict[str, Space], Solution]:
        head = self.data.head if isinstance(self.data, Stream) else self.data
        spaces = {
            name: trunk.block.centred(trunk.space(trained.trunks[name]), getattr(head, trunk.side), self.plan.seed)
            for name, trunk in self.trunks.items()
        }
        folds, held_out = self._folds(spaces)
        readouts = {name: trained.model.readout(name) for name, trunk in self.trunks.items() if trunk.fixed is None}
        return spaces, self._solved(folds, held_out, readouts)

    def _folds(self, spaces: Mapping[str, Space]) -> tuple[Folds, tuple[int, ...] | None]:
        """Moments of the rows that were trained on and of those kept apart: only the latter can judge."""

        def features(chunk: Pairs) -> dict[str, Array]:
            return {name: space(getattr(chunk, self.trunks[name].side)) for name, space in spaces.items()}

        chunks = (features(chunk) for chunk in self.data.chunks())
        if not isinstance(self.data, Pairs) or self.plan.apart is None or not len(self.plan.apart):
            return Folds.from_chunks(chunks, N_FOLDS, self.plan.seed), None
        fold_of_row = np.zeros(len(self.data), dtype=int)  # fold 0 was trained on
        fold_of_row[self.plan.apart] = 1 + deal(len(self.plan.apart), N_FOLDS, self.plan.seed)
        held_out = tuple(range(1, 1 + min(N_FOLDS, len(self.plan.apart))))
        return Folds.from_chunks(chunks, 1 + N_FOLDS, self.plan.seed, fold_of_row), held_out

    def _solved(self, folds: Folds, held_out: tuple[int, ...] | None, readouts: dict[str, AffineFeatures]) -> Solution:
        """Solve in the span of the trained readouts, or in that of all trunk features where it is clearly better.

        The readouts have few dimensions and so little room for noise; the trunks' last layer has more room for the
        truth.
        """
        ridges = self.plan.ridges()
        # No ridge in the narrow span: which of its few directions vary most says nothing about what they know.
        ways: tuple[tuple[Any, dict[str, AffineFeatures]], ...] = ((ridges, {}), (ridges[:1], readouts))
        wide, narrow = (
            solve(folds, self.nesting.spaces, [Search(c, some) for c in self.counts], held_out, through=through)
            for some, through in ways
        )
        found = [Candidate(narrow, 1, narrow.held_out_scores), Candidate(wide, 2, wide.held_out_scores)]
        return preferred(found).what


def _with_restarts(
    learned: Learned, found: list[tuple[dict[str, Space], Solution]], x_names: list[str], sample: Pairs
) -> Learned:
    """Compare the features of X with those of other runs as well."""
    components = []
    for level, component in enumerate(learned.components):
        ours = component.f(sample.x)
        turns = [
            _overlap(solution.levels[level].f(np.hstack([spaces[name](sample.x) for name in x_names])), ours)
            for spaces, solution in found
        ]
        components.append(replace(component, rotations=np.concatenate([component.rotations, turns])))
    return replace(learned, components=tuple(components))


def _unjudged(learned: Learned) -> Learned:
    components = tuple(
        replace(part, held_out_sigma=np.full((0, len(part)), np.nan), held_out_energies=np.empty(0))
        for part in learned.components
    )
    return replace(learned, components=components, held_out_score=float("nan"))


def _overlap(other: Array, ours: Array) -> Array:
    """Inner products of two sets of features over the same rows, (k, k), each of unit norm; zeros where one lacks."""
    k = ours.shape[1]
    other, ours = (z / np.linalg.norm(z, axis=0).clip(min=1e-300) for z in (other[:, :k], ours))
    result = np.zeros((k, k))
    result[: other.shape[1]] = other.T @ ours
    return result


def _trunk(block: Block, side: str, key: str, rows_of_side: Any, seed: int) -> _Trunk:
    rows = rows_of_side.of(*block.of)
    recipe = _recipe(block.space, rows)
    if recipe.learned == "regressor":
        raise ValueError(
            f"Regressors such as trees or an index are not trained by gradients, got the space {recipe.name!r}. Use "
            "solver='closed', or another space."
        )
    if recipe.fit is not None:
        fixed = recipe.fit(rows, seed)
        basis = complement(Moments.from_features({"z": fixed(rows)}), "z", ())
        return _Trunk(side, block, key, recipe.name, Orthonormal(), fixed=fixed, basis=basis)
    if recipe.argument is not None:
        check_module(recipe.argument, rows)
        return _Trunk(side, block, key, recipe.name, recipe.argument)
    if recipe.name == "sequence":
        return _Trunk(side, block, key, recipe.name, networks.sequence(*_sequence_shape(rows)))
    if recipe.name == "image" or (rows.variable.is_tensor and len(rows.variable.shape) == 3):
        return _Trunk(side, block, key, "image", networks.image(*_image_shape(rows)))
    if rows.variable.is_tensor:
        name = rows.variable.name
        single = f"{name.lower()}_space='image' or {name.lower()}_space='sequence'"
        several = f"spaces={{{name!r}: 'image'}} or spaces={{{name!r}: 'sequence'}}"
        raise ValueError(
            f"{name} has rows of shape {rows.variable.shape}, which could be images (height, width) or sequences "
            f"(length, channels). Say {single if name in ('X', 'Y', 'S') else several}, or pass a torch module."
        )
    encoding = Encoding.fit(rows, "standard")
    n_inputs, n_columns = encoding(rows.take(slice(0, 1))).shape[1], len(rows.variable.columns)
    if recipe.name == "causal" and n_inputs % n_columns == 0:
        return _Trunk(side, block, key, "causal", networks.causal(n_columns, n_inputs // n_columns), encoding)
    return _Trunk(side, block, key, "network", networks.mlp(n_inputs), encoding)


def joint_network(spaces: Sequence[Any], rows: Sequence[Rows], seed: int) -> nn.Module:
    """A network of several sources of images or sequences, with a trunk of its own for each."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        trunks = [_trunk(Block(space), "x", "", part, seed).module for space, part in zip(spaces, rows, strict=True)]
        return networks.Joint(trunks, [part.variable.shape for part in rows])


def _recipe(space: Any, rows: Rows) -> Recipe:
    """Networks wherever the user left the choice, except for finite alphabets: there a table holds all functions."""
    if isinstance(space, str) and space == "auto":
        finite = not rows.variable.is_tensor and is_finite(rows)
        return recipes("table" if finite else "network", rows)[0]
    choices = recipes(space, rows)
    return choices[len(choices) // 2]  # kernels come with several widths: the middle one


def _sequence_shape(rows: Rows) -> tuple[int, int]:
    shape = rows.variable.shape or (len(rows.variable.columns),)
    if len(shape) > 2:
        raise ValueError(
            f"Sequences have rows of shape (length,) or (length, channels), got {shape}. Flatten the rest."
        )
    return shape[0], shape[1] if len(shape) == 2 else 1


def _image_shape(rows: Rows) -> tuple[int, int, int]:
    shape = rows.variable.shape
    if len(shape) not in (2, 3):
        raise ValueError(f"Images have rows of shape (height, width) or (channels, height, width), got {shape}.")
    return (1, *shape) if len(shape) == 2 else shape  # type: ignore[return-value]


def _batches(
    data: Pairs | Stream, trunks: Mapping[str, _Trunk], options: Training, seed: int, apart: np.ndarray | None
) -> Batches:
    def encode(pairs: Pairs) -> dict[str, torch.Tensor]:
        return {name: trunk.inputs(pairs) for name, trunk in trunks.items()}

    if isinstance(data, Pairs):
        n_parameters = sum(parameter.numel() for trunk in trunks.values() for parameter in trunk.module.parameters())
        return options.batches(encode(data), seed, n_parameters, apart)
    return StreamBatches(
        data.batches, lambda batch: encode(data.pair(batch)), validation_batches=int(data.starts_alike)
    )
