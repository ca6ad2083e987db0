"""Spans learned by gradients, then solved in closed form on all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from featgeo.features import networks
from featgeo.features.encoding import Encoding
from featgeo.features.recipes import Recipe, is_finite, recipes
from featgeo.features.spaces import NetworkSpace, Space, network_inputs
from featgeo.features.variables import Rows
from featgeo.geometry.moments import Moments
from featgeo.geometry.spans import AffineFeatures, complement
from featgeo.geometry.validation import Array
from featgeo.learning.batches import Batches, StreamBatches
from featgeo.learning.data import Pairs, Stream
from featgeo.learning.heads import Orthonormal
from featgeo.learning.learned import N_FOLDS, UNSEEN_ROWS, Learned, Unseen, deal, from_solution, unseen_features
from featgeo.learning.options import Training
from featgeo.learning.solve import MODE_COUNTS, RIDGES, Folds, Solution, solve
from featgeo.learning.train import Trained, train
from featgeo.nesting import Nesting

AGREEMENT_ROWS = 4096
AUTO_MODES = 9  # dimensions to train where the number of modes is to be chosen and nothing limits it
NO_LIMIT = 10**6


@dataclass(frozen=True, eq=False)
class _Side:
    """One variable on its way through training: what goes into its trunk, and the space that comes out."""

    name: str
    trunk: nn.Module
    encoding: Encoding | None = None
    fixed: Space | None = None
    basis: AffineFeatures | None = None

    def inputs(self, rows: Rows) -> torch.Tensor:
        if self.fixed is not None and self.basis is not None:
            return torch.from_numpy(self.basis(self.fixed(rows))).float()
        return network_inputs(rows, self.encoding)

    def space(self, trunk: nn.Module, side: str) -> Space:
        return NetworkSpace(trunk, self.encoding, side) if self.fixed is None else self.fixed


def learn_neural(
    data: Pairs | Stream,
    n_modes: int | Literal["auto"],
    x_space: Any,
    y_space: Any,
    seed: int,
    training: Training | None,
    unseen: bool,
) -> Learned:
    """Train networks for the sides that need one, and solve in the spans they end with."""
    options = Training() if training is None else training
    head = data.head if isinstance(data, Stream) else data
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # default networks draw their parameters here
        x, y = _side(x_space, head.x, seed), _side(y_space, head.y, seed + 1)
    most = min(_most_modes(x), _most_modes(y))
    automatic = min(most, max(MODE_COUNTS)) if most < NO_LIMIT else AUTO_MODES
    k = automatic if n_modes == "auto" else min(n_modes, most)
    options = replace(options, surplus=min(options.surplus, most - k))
    trunks = {"x": x.trunk, "y": y.trunk}
    batches = _batches(data, x, y, options, seed)
    trained = train(trunks, batches, Nesting([k]), options, seed)
    counts = [*(count for count in MODE_COUNTS if count < k and n_modes == "auto"), k]
    apart = getattr(batches, "validation_rows", None)
    spaces, solution = _finished(trained, data, x, y, counts, apart, seed)
    left_out = None
    if unseen and isinstance(data, Pairs) and apart is not None and len(apart):
        rows, fold_of_row = apart[:UNSEEN_ROWS], 1 + deal(len(apart), seed)[:UNSEEN_ROWS]
        left_out = Unseen(rows, unseen_features(solution, spaces[0](data.x.take(rows)), fold_of_row))
    learned = from_solution(solution, *spaces, (x.name, y.name), "neural", left_out)
    others = [run for run in trained.runs if run.trunks is not trained.trunks]
    if others:
        sample = head.sample(AGREEMENT_ROWS, seed).x
        found = [_finished(run, data, x, y, counts, apart, seed) for run in others]
        turns = [_overlap(modes.levels[0].f(space(sample)), learned.f(sample)) for (space, _), modes in found]
        learned = replace(learned, rotations=np.concatenate([learned.rotations, turns]))
    if apart is None or not len(apart):  # all rows were trained on: none of them can judge
        return replace(learned, held_out_sigma=np.full((0, len(learned.sigma)), np.nan), held_out_score=float("nan"))
    return learned


def _finished(
    trained: Trained,
    data: Pairs | Stream,
    x: _Side,
    y: _Side,
    counts: list[int],
    apart: np.ndarray | None,
    seed: int,
) -> tuple[tuple[Space, Space], Solution]:
    """The spaces that training ended with, and the closed form in them."""
    spaces = x.space(trained.trunks["x"], "x"), y.space(trained.trunks["y"], "y")
    folds, held_out = _folds(data, spaces, apart, seed)
    readouts = {side: trained.model.readout(side) for side in ("x", "y")}
    return spaces, _solved(folds, counts, held_out, readouts, x, y)


def _overlap(other: Array, ours: Array) -> Array:
    """Inner products of two sets of features over the same rows, (k, k), each of unit norm; zeros where one lacks."""
    k = ours.shape[1]
    other, ours = (z / np.linalg.norm(z, axis=0).clip(min=1e-300) for z in (other[:, :k], ours))
    result = np.zeros((k, k))
    result[: other.shape[1]] = other.T @ ours
    return result


def _solved(
    folds: Folds,
    counts: list[int],
    held_out: tuple[int, ...] | None,
    readouts: dict[str, AffineFeatures],
    x: _Side,
    y: _Side,
) -> Solution:
    """Solve in the span of the trained readouts, or in that of all trunk features where it is clearly better.

    The readouts have few dimensions and so little room for noise; the trunks' last layer has more room for the truth.
    """
    nesting = Nesting([counts[-1]])
    maps = {name: readouts[name] for name, side in (("x", x), ("y", y)) if side.fixed is None}
    wide = solve(folds, nesting, mode_counts=counts, held_out=held_out)
    # No ridge in the narrow span: which of its few directions vary most says nothing about what they know.
    narrow = solve(folds.through(maps), nesting, RIDGES[:1], mode_counts=counts, held_out=held_out)
    gain = wide.held_out_scores - narrow.held_out_scores
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
    return wide if gain.mean() > error else narrow.before(maps, folds)


def _most_modes(side: _Side) -> int:
    """A fixed span has no more modes than dimensions."""
    return NO_LIMIT if side.basis is None else max(1, side.basis.weight.shape[1])


def _side(space: Any, rows: Rows, seed: int) -> _Side:
    recipe = _recipe(space, rows)
    if recipe.learned == "regressor":
        raise ValueError("Trees are not trained by gradients. Use solver='closed', or another space.")
    if recipe.fit is not None:
        fixed = recipe.fit(rows, seed)
        basis = complement(Moments.from_features({"z": fixed(rows)}), "z", ())
        return _Side(recipe.name, Orthonormal(), fixed=fixed, basis=basis)
    if recipe.argument is not None:
        return _Side(recipe.name, recipe.argument)
    if recipe.name == "sequence":
        return _Side(recipe.name, networks.sequence(*_sequence_shape(rows)))
    if recipe.name == "image" or (rows.variable.is_tensor and len(rows.variable.shape) == 3):
        return _Side("image", networks.image(*_image_shape(rows)))
    if rows.variable.is_tensor:
        side = f"{rows.variable.name.lower()}_space"
        raise ValueError(
            f"{rows.variable.name} has rows of shape {rows.variable.shape}, which could be images (height, width) or "
            f"sequences (length, channels). Say {side}='image' or {side}='sequence', or pass a torch module."
        )
    encoding = Encoding.fit(rows, "standard")
    return _Side("network", networks.mlp(encoding(rows.take(slice(0, 1))).shape[1]), encoding)


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


def _batches(data: Pairs | Stream, x: _Side, y: _Side, options: Training, seed: int) -> Batches:
    if isinstance(data, Pairs):
        n_parameters = sum(parameter.numel() for side in (x, y) for parameter in side.trunk.parameters())
        return options.batches({"x": x.inputs(data.x), "y": y.inputs(data.y)}, seed, n_parameters)

    def encode(batch: Any) -> dict[str, torch.Tensor]:
        pair = data.pair(batch)
        return {"x": x.inputs(pair.x), "y": y.inputs(pair.y)}

    return StreamBatches(data.batches, encode, validation_batches=int(data.starts_alike))


def _folds(
    data: Pairs | Stream, spaces: tuple[Space, Space], apart: np.ndarray | None, seed: int
) -> tuple[Folds, tuple[int, ...] | None]:
    """Moments of the rows that were trained on and of those kept apart: only the latter can judge."""
    if not isinstance(data, Pairs) or apart is None or not len(apart):
        chunks = ({"x": spaces[0](chunk.x), "y": spaces[1](chunk.y)} for chunk in data.chunks())
        return Folds.from_chunks(chunks, N_FOLDS, seed), None
    fold_of_row = np.zeros(len(data), dtype=int)  # fold 0 was trained on
    fold_of_row[apart] = 1 + deal(len(apart), seed)
    chunks = ({"x": spaces[0](chunk.x), "y": spaces[1](chunk.y)} for chunk in data.chunks())
    return Folds.from_chunks(chunks, 1 + N_FOLDS, seed, fold_of_row), tuple(range(1, 1 + min(N_FOLDS, len(apart))))
