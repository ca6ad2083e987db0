"""Spans learned by gradients, then solved in closed form on all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from featgeo.features import networks
from featgeo.features.combined import NetworkSpace, check_module
from featgeo.features.recipes import is_finite, recipes
from featgeo.features.space import Space
from featgeo.features.spaces import Encoding, SpanFunction
from featgeo.features.variables import Candidate, Rows, Variable, deal, preferred
from featgeo.geometry.moments import Moments
from featgeo.geometry.projections import complement
from featgeo.geometry.spans import AffineFeatures
from featgeo.geometry.validation import Array
from featgeo.learning.batches import Batches
from featgeo.learning.closed import Task
from featgeo.learning.data import Pairs
from featgeo.learning.learned import UNSEEN_ROWS, Learned, Unseen, from_solution
from featgeo.learning.setting import Setting, Training
from featgeo.learning.solve import Folds, Search, Solution, solve
from featgeo.learning.train import Orthonormal, Run, train
from featgeo.nesting import Level, Nesting
from featgeo.nesting.nesting import MOST_DIMENSIONS as NO_LIMIT
from featgeo.tuning import in_force

AGREEMENT_ROWS = 4096  # on which restarts are compared: bounds time


@dataclass(frozen=True, eq=False)
class _Span:
    """A fixed space: training only combines its orthonormal functions."""

    space: Space
    basis: AffineFeatures
    module: nn.Module = field(default_factory=Orthonormal)

    def inputs(self, rows: Rows) -> torch.Tensor:
        return torch.from_numpy(self.basis(self.space(rows))).float()


Trunks = Mapping[str, tuple[str, NetworkSpace | _Span]]  # what spaces are called, and what they are before training


def learn_neural(task: Task) -> Learned:
    """Train networks for the blocks that need one, and solve in the spans they end with."""
    setting, plan = task.setting, task.plan
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(plan.seed)  # default networks draw their parameters here
        trunks = {
            name: _trunk(block.space, name, task.rows(name), plan.seed + (name in setting.y))
            for name, block in setting.blocks.items()
        }
    widths = {name: max(1, t.basis.weight.shape[1]) for name, (_, t) in trunks.items() if isinstance(t, _Span)}
    dims, room = _dims(setting, widths, plan.training.auto_modes)
    options = replace(plan.training, surplus=min(plan.training.surplus, room))
    batches = _batches(task, trunks, options)
    nesting = Nesting([Level(dim, *spaces) for dim, spaces in zip(dims, setting.spaces(), strict=True)])
    trained = train({name: trunk.module for name, (_, trunk) in trunks.items()}, batches, nesting, options, plan.seed)
    best_first = sorted(trained.runs, key=lambda run: run is not trained)
    learned, *others = (_finished(task, trunks, dims, batches.apart, run) for run in best_first)
    if others:
        learned = _with_restarts(learned, others, task.every.sample(AGREEMENT_ROWS, plan.seed))
    return learned if len(batches.apart) else _unjudged(learned)  # all rows were trained on: none of them can judge


def _dims(setting: Setting, widths: Mapping[str, int], auto_modes: int) -> tuple[tuple[int, ...], int]:
    """How many dimensions each level trains, and how many more the last has room for.

    Args:
        setting: The levels.
        widths: How many functions each block has that is not trained.
        auto_modes: Dimensions where their number is to be chosen and no block limits it.
    """
    dims: list[int] = []
    x_dim = y_dim = 0
    for step in setting.steps:
        # A side that grows adds what is new in it; one that stays may be used whole again.
        x_new, y_new = (sum(widths.get(name, NO_LIMIT) for name in names) for names in (step.x, step.y))
        x_dim, y_dim = x_new or x_dim, y_new or y_dim
        most = min(x_dim, y_dim)
        wanted = auto_modes if most >= NO_LIMIT else max(in_force.get().mode_counts)
        dims.append(min(step.n_modes if isinstance(step.n_modes, int) else wanted, most))
    return tuple(dims), most - dims[-1]


def _batches(task: Task, trunks: Trunks, options: Training) -> Batches:
    def encode(pairs: Pairs) -> dict[str, torch.Tensor]:
        return {name: trunk.inputs(task.rows(name, pairs)) for name, (_, trunk) in trunks.items()}

    data = task.data
    if isinstance(data, Pairs):
        n_parameters = sum(weight.numel() for _, trunk in trunks.values() for weight in trunk.module.parameters())
        return Batches.in_memory(encode(data), options, task.plan.seed, n_parameters, task.plan.apart)
    return Batches.streamed(data.batches, lambda batch: encode(data.pair(batch)), int(data.starts_alike))


def _finished(task: Task, trunks: Trunks, dims: tuple[int, ...], apart: np.ndarray, run: Run) -> Learned:
    """From trained networks to spaces, and the closed form in them.

    Args:
        task: What is to be learned.
        trunks: What the space of each block is called, and what it was before training.
        dims: How many dimensions each level has.
        apart: Positions of the rows that were not trained on.
        run: The trained networks.
    """
    setting, seed = task.setting, task.plan.seed
    spaces: dict[str, Space] = {}
    for name, (_, trunk) in trunks.items():
        space = trunk.space if isinstance(trunk, _Span) else replace(trunk, module=run.trunks[name])
        block, side = setting.blocks[name], task.side(name, task.every)
        spaces[name] = block.centred(block.seen_from_side(space).to(task.plan.device), side, seed)
    readouts = {n: run.model.readout(n) for n, (_, trunk) in trunks.items() if not isinstance(trunk, _Span)}

    def features(rows: Pairs) -> dict[str, Array]:
        values = {name: space(task.side(name, rows)) for name, space in spaces.items()}
        return values | {f"{name}, read out": readout(values[name]) for name, readout in readouts.items()}

    fold_of_row, held_out, n_folds = None, None, in_force.get().folds
    if len(apart):  # fold 0 was trained on: only the others can judge
        fold_of_row, held_out = np.zeros(len(task.every), dtype=int), range(1, 1 + min(n_folds, len(apart)))
        fold_of_row[apart] = 1 + deal(len(apart), n_folds, seed)
    fold_of_own = None if fold_of_row is None else fold_of_row[run.ranks.own]
    chunks = map(features, task.data.own_chunks(run.ranks))
    folds = Folds.from_chunks(chunks, n_folds + len(apart[:1]), seed, fold_of_own, run.ranks)
    solution, narrow = _solved(task, folds, held_out, [*readouts], dims)
    if narrow:
        spaces |= {name: SpanFunction(spaces[name], readout) for name, readout in readouts.items()}
    unseen = None
    if fold_of_row is not None:
        rows = apart[:UNSEEN_ROWS]
        values = np.hstack([spaces[name](task.every.x.take(rows)) for name in setting.x])
        unseen = Unseen.of(solution, rows, values, fold_of_row[rows], setting, spaces)
    kinds = trunks[setting.richest[0]][0], trunks[setting.richest[1]][0]
    return from_solution(solution, setting, spaces, kinds, "neural", unseen)


def _solved(
    task: Task, folds: Folds, held_out: Sequence[int] | None, trained: Sequence[str], dims: tuple[int, ...]
) -> tuple[Solution, bool]:
    """Solve in the span of the trained readouts, or in that of all trunk features where it is clearly better.

    The readouts have few dimensions and so little room for noise; the trunks' last layer has more room for the truth.

    Returns:
        The solution, and whether it is the narrow one.
    """
    setting, ridges, tried = task.setting, task.plan.ridges(), in_force.get().mode_counts
    counts = [
        [dim] if isinstance(step.n_modes, int) else [*(count for count in tried if count < dim), dim]
        for step, dim in zip(setting.steps, dims, strict=True)
    ]
    found = []
    # No ridge in the narrow span: which of its few directions vary most says nothing about what they know.
    for cost, (some, names) in enumerate([(ridges[:1], trained), (ridges, [])], start=1):
        levels = setting.spaces({name: f"{name}, read out" for name in names})
        solution = solve(folds, levels, [Search(several, some) for several in counts], held_out)
        found.append(Candidate((solution, cost == 1), cost, solution.held_out_scores))
    return preferred(found).what


def _with_restarts(learned: Learned, others: Sequence[Learned], sample: Pairs) -> Learned:
    """Compare the features of X with those of other runs as well."""
    components = []
    for ours, *theirs in zip(learned.components, *(other.components for other in others), strict=True):
        turns = [_overlap(other.f(sample.x), ours.f(sample.x)) for other in theirs]
        components.append(replace(ours, rotations=np.concatenate([ours.rotations, turns])))
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
    return np.pad(other.T @ ours, ((0, k - other.shape[1]), (0, 0)))


def _trunk(space: Any, key: str, rows: Rows, seed: int) -> tuple[str, NetworkSpace | _Span]:
    """What the space of a block is called, and what it is before training.

    Networks wherever the user left the choice, except for finite alphabets: there a table holds all functions.
    """
    if isinstance(space, str) and space == "auto":
        space = "table" if not rows.variable.is_tensor and is_finite(rows) else "network"
    choices = recipes(space, rows)
    recipe = choices[len(choices) // 2]  # kernels come with several widths: the middle one
    if recipe.learned == "regressor":
        raise ValueError(
            f"Regressors such as trees or an index are not trained by gradients, got the space {recipe.name!r}. Use "
            "solver='closed', or another space."
        )
    if recipe.fit is not None:
        fixed = recipe.fit(rows, seed)
        return recipe.name, _Span(fixed, complement(Moments.from_features({"z": fixed(rows)}), "z", ()))
    if recipe.argument is not None:
        return recipe.name, check_module(recipe.argument, rows, key)
    if recipe.name == "sequence" or recipe.name == "image" or rows.variable.is_tensor:
        network = _tensor_network(recipe.name, rows.variable)
        return network.config["kind"], NetworkSpace(network, None, key)
    encoding = Encoding.fit(rows, "standard")
    n_inputs, n_columns = encoding(rows.take(slice(0, 1))).shape[1], len(rows.variable.columns)
    if recipe.name == "causal" and n_inputs % n_columns == 0:
        return "causal", NetworkSpace(networks.causal(n_columns, n_inputs // n_columns), encoding, key)
    return "network", NetworkSpace(networks.mlp(n_inputs), encoding, key)


def _tensor_network(kind: str, variable: Variable) -> networks.Trunk:
    """A network of images or sequences, as asked for; rows with channels, height and width are images."""
    name, shape = variable.name, variable.shape or (len(variable.columns),)
    if kind == "sequence":
        if len(shape) > 2:
            raise ValueError(
                f"Sequences have rows of shape (length,) or (length, channels), got {shape}. Flatten the rest."
            )
        return networks.sequence(*shape)
    if kind != "image" and len(shape) != 3:
        single = f"{name.lower()}_space='image' or {name.lower()}_space='sequence'"
        several = f"spaces={{{name!r}: 'image'}} or spaces={{{name!r}: 'sequence'}}"
        raise ValueError(
            f"{name} has rows of shape {shape}, which could be images (height, width) or sequences (length, channels). "
            f"Say {single if name in ('X', 'Y', 'S') else several}, or pass a torch module."
        )
    if len(shape) not in (2, 3):
        raise ValueError(f"Images have rows of shape (height, width) or (channels, height, width), got {shape}.")
    return networks.image(*([1, *shape] if len(shape) == 2 else shape))


def joint_network(spaces: Sequence[Any], rows: Sequence[Rows], seed: int) -> nn.Module:
    """A network of several sources of images or sequences, with a trunk of its own for each."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        trunks = [_trunk(space, "", part, seed)[1].module for space, part in zip(spaces, rows, strict=True)]
        return networks.Joint(trunks, [part.variable.shape for part in rows])
