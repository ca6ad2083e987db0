"""Trunks and linear readouts: from batches of inputs to f and g, level by level."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from featgeo.geometry.spans import AffineFeatures
from featgeo.learning.batches import Batch
from featgeo.nesting import Nesting, nested_h_score

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


def batch_score(f: torch.Tensor, g: torch.Tensor, nesting: Nesting, orthonormal: bool) -> torch.Tensor:
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


def contributions(f: torch.Tensor, g: torch.Tensor, nesting: Nesting) -> torch.Tensor:
    """What each row contributes to the plug-in nested H-score of the rows, (n,): their mean is the score.

    It is the score's influence function, so that differences between rows tell the standard error of the score.
    """
    weights = torch.tensor(nesting.pair_weights, dtype=f.dtype)
    f_gram, g_gram = weights * (f.T @ f) / len(f), weights * (g.T @ g) / len(g)
    covariance = ((f - f.mean(dim=0)) * (g - g.mean(dim=0))) @ weights.diagonal()
    quadratic = ((f @ g_gram) * f).sum(dim=1) + ((g @ f_gram) * g).sum(dim=1)
    return covariance - quadratic / 2 + quadratic.mean() / 4


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
