"""Default networks: trunks that map a batch of inputs to features, for spaces whose features are to be learned.

A trunk ends in a nonlinearity. The linear layer that a decomposition needs on top of it is trained with it, thrown
away, and solved in closed form on all the data. Inputs come as they are (whole numbers too): a trunk shifts and scales
each column or channel by what it saw in `Trunk.fit_input_scale`.

Nothing here reads statistics of the batch, so features of a row depend on that row alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn


class _Scaled(nn.Module):
    """Columns or channels, the first axis of a row, shifted and scaled by the means and deviations of some rows."""

    centre: torch.Tensor
    spread: torch.Tensor

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(shape))
        self.register_buffer("spread", torch.ones(shape))

    def fit(self, values: torch.Tensor) -> None:
        """Learn them from values (n, channels, ...)."""
        axes = [axis for axis in range(values.ndim) if axis != 1]
        deviation, mean = torch.std_mean(values, dim=axes, correction=0)
        self.centre.copy_(mean.reshape(self.centre.shape))
        varies = deviation > 16 * torch.finfo(values.dtype).eps * mean.abs()  # else a constant channel, which becomes 0
        self.spread.copy_(torch.where(varies, deviation, 1.0).reshape(self.spread.shape))

    def scaled(self, values: torch.Tensor) -> torch.Tensor:
        return (values.to(self.centre.dtype) - self.centre) / self.spread


class Trunk(_Scaled):
    """A network with its input scale and the few numbers that it can be built from again.

    Attributes:
        config: What `build` takes to make the same network, with parameters of its own.
        is_scaled: Whether the input scale was fitted.
    """

    is_scaled: torch.Tensor

    def __init__(self, config: Mapping[str, Any], shape: tuple[int, ...], body: nn.Sequential) -> None:
        """Wrap the body of a network.

        Args:
            config: The kind of network and its options.
            shape: Shape of one row as the body reads it, columns or channels first.
            body: Maps scaled rows (n, *shape) to features (n, d).
        """
        super().__init__(shape[0], *(1 for _ in shape[1:]))
        self.config, self.shape, self.body = dict(config), shape, body
        self.register_buffer("is_scaled", torch.tensor(False))

    def fit_input_scale(self, inputs: torch.Tensor) -> None:
        """Learn mean and standard deviation of each column or channel from some rows."""
        self.fit(self._arranged(inputs).double())
        self.is_scaled.fill_(True)
        with torch.no_grad():
            values = self.scaled(self._arranged(inputs))
            for part in self.body:
                if isinstance(part, _Evidence | _Decorrelated):
                    part.fit(values)
                values = part(values)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Features of a batch of rows, (n, d)."""
        return self.body(self.scaled(self._arranged(inputs)))

    def _arranged(self, inputs: torch.Tensor) -> torch.Tensor:
        """Rows of the shape that the body reads; a single column or channel may go without its axis."""
        if inputs.ndim == len(self.shape):
            values = inputs.unsqueeze(1)
        else:
            values = inputs.movedim(-1, 1) if self.config["kind"] == "sequence" else inputs
        if tuple(values.shape[1:]) != self.shape:
            raise ValueError(
                f"This network was built for {self.config}, got a batch of shape {tuple(inputs.shape)}. "
                "Pass rows of the shape it was built for, or build another."
            )
        return values


class _Decorrelated(nn.Module):
    """Columns as uncorrelated columns of unit variance.

    What tells two classes apart may be a difference of columns that are nearly the same: too small to be found by
    gradients, unless all directions have the same size.
    """

    basis: torch.Tensor

    def __init__(self, n_inputs: int) -> None:
        super().__init__()
        self.register_buffer("basis", torch.eye(n_inputs))

    def fit(self, values: torch.Tensor) -> None:
        centred = values.double() - values.double().mean(dim=0)
        energies, directions = torch.linalg.eigh(centred.T @ centred / len(centred))
        # Directions of collinear columns hold nothing but rounding.
        rounding = 8 * torch.finfo(torch.float32).eps  # of a sum of products of inputs
        length = torch.where(energies > rounding * energies.max(), energies, torch.inf).rsqrt()
        self.basis.copy_(directions * length)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values @ self.basis


def mlp(n_inputs: int, width: int = 64, depth: int = 2) -> Trunk:
    """A network for columns of numbers.

    Args:
        n_inputs: Number of columns; a batch is (n, n_inputs), or (n,) for a single one.
        width: Number of units of each layer, and of features.
        depth: Number of layers.
    """
    config = _config("mlp", n_inputs=n_inputs, width=width, depth=depth)
    sizes = [n_inputs, *[width] * depth]
    # SiLU, because softplus stalls: with it the second mode of the paper's examples often stays at zero.
    layers = [(nn.Linear(a, b), nn.SiLU()) for a, b in pairwise(sizes)]
    first = [_Decorrelated(n_inputs)] if n_inputs > 1 else []
    return Trunk(config, (n_inputs,), nn.Sequential(*first, *(part for layer in layers for part in layer)))


def image(
    channels: int, height: int, width: int, filters: int = 32, features: int = 128, shortest_side: int = 7
) -> Trunk:
    """A small convolutional network for images.

    Args:
        channels: Number of channels; a batch is (n, channels, height, width), or (n, height, width) for a single one.
        height: Pixels from top to bottom.
        width: Pixels from left to right.
        filters: Number of filters of the first convolution; it doubles with each halving of the image.
        features: Number of features.
        shortest_side: An image is halved until its shorter side is about this.
    """
    config = _config(
        "image",
        channels=channels,
        height=height,
        width=width,
        filters=filters,
        features=features,
        shortest_side=shortest_side,
    )
    halvings = max(1, round(math.log2(min(height, width) / shortest_side)))
    counts = [channels, *(filters * 2**i for i in range(halvings))]
    layers: list[nn.Module] = []
    for stage in range(halvings):
        kernel = 5 if stage == 0 else 3
        # A stride costs a quarter of what pooling after the convolution does.
        layers += [nn.Conv2d(counts[stage], counts[stage + 1], kernel, stride=2, padding=kernel // 2), nn.SiLU()]
        height, width = (height + 1) // 2, (width + 1) // 2
    layers += [nn.Flatten(), nn.Linear(counts[-1] * height * width, features), nn.SiLU()]
    shape = (channels, config["height"], config["width"])
    return Trunk(config, shape, nn.Sequential(*layers))


def sequence(
    length: int, channels: int = 1, filters: int = 32, features: int = 32, pattern: int = 4, gain: int = 6
) -> Trunk:
    """A network for sequences: how often which short patterns occur, and any function of that.

    It is the paper's network with a nonlinearity after the average pooling. Without one, what the network can represent
    is linear in the counts of patterns, and the true modes of the paper's example are not (Prop. seq).

    Args:
        length: Number of steps.
        channels: Numbers a step; a batch is (n, length, channels), or (n, length) for a single one. Symbols of an
            alphabet of more than two are best passed as indicators.
        filters: Number of patterns.
        features: Number of features.
        pattern: Steps of a pattern, the paper's when 4.
        gain: Units a standard error of an average: the evidence of many steps should saturate what follows it.
    """
    config = _config(
        "sequence", length=length, channels=channels, filters=filters, features=features, pattern=pattern, gain=gain
    )
    kernel = min(pattern, length)
    body = nn.Sequential(
        nn.Conv1d(channels, filters, kernel),
        nn.SiLU(),
        _Evidence(filters, length - kernel + 1, gain),
        nn.Linear(filters, features),
        nn.Tanh(),
    )
    return Trunk(config, (channels, length), body)


def causal(length: int, channels: int = 1, width: int = 32) -> Trunk:
    """A network for histories: convolutions that see twice as far back with each layer, up to the whole history.

    Args:
        length: Number of steps back; a batch is (n, length * channels), step after step.
        channels: Numbers a step.
        width: Number of units of each layer, and of features.
    """
    config = _config("causal", length=length, channels=channels, width=width)
    layers: list[nn.Module] = [nn.Unflatten(1, (length, channels)), _StepsLast()]
    steps, reach = length, 1
    while steps > reach:
        layers += [nn.Conv1d(channels if reach == 1 else width, width, 2, dilation=reach), nn.SiLU()]
        steps, reach = steps - reach, 2 * reach
    last = steps * (channels if length == 1 else width)
    return Trunk(config, (length * channels,), nn.Sequential(*layers, nn.Flatten(), nn.Linear(last, width), nn.SiLU()))


class Joint(nn.Module):
    """A network of several inputs: a trunk for each, and layers that mix their features.

    Attributes:
        config: What `build` takes; None where a trunk is none of these here.
    """

    def __init__(self, trunks: Sequence[nn.Module], shapes: Sequence[tuple[int, ...]], features: int = 128) -> None:
        """Put trunks side by side.

        Args:
            trunks: One an input.
            shapes: Shape of one row of each input; a batch is (n, all of them flattened, side by side).
            features: Number of features.
        """
        super().__init__()
        self.trunks = nn.ModuleList(trunks)
        self.shapes = [tuple(shape) for shape in shapes]
        self.mix = nn.Sequential(nn.LazyLinear(features), nn.SiLU())
        with torch.no_grad():
            self(torch.zeros(1, sum(math.prod(shape) for shape in self.shapes)))  # how many features come in
        configs = [getattr(trunk, "config", None) for trunk in trunks]
        self.config = None
        if all(isinstance(config, dict) for config in configs):
            self.config = {"kind": "joint", "trunks": configs, "shapes": self.shapes, "features": features}

    @property
    def is_scaled(self) -> bool:
        """Whether the input scales were fitted."""
        return all(bool(getattr(trunk, "is_scaled", True)) for trunk in self.trunks)

    def fit_input_scale(self, inputs: torch.Tensor) -> None:
        """Learn mean and standard deviation of each column or channel of each input from some rows."""
        for trunk, part in zip(self.trunks, self._parts(inputs), strict=True):
            fit: Any = getattr(trunk, "fit_input_scale", None)
            if fit is not None:
                fit(part)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Features of a batch of rows, (n, d)."""
        parts = zip(self.trunks, self._parts(inputs), strict=True)
        return self.mix(torch.cat([trunk(part) for trunk, part in parts], dim=1))

    def _parts(self, inputs: torch.Tensor) -> list[torch.Tensor]:
        pieces = torch.split(inputs, [math.prod(shape) for shape in self.shapes], dim=1)
        return [piece.reshape(len(inputs), *shape) for piece, shape in zip(pieces, self.shapes, strict=True)]


class _StepsLast(nn.Module):
    """(n, steps, channels) to (n, channels, steps), as convolutions read it."""

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values.transpose(1, 2)


class _Evidence(_Scaled):
    """The average over steps, (n, c, steps) to (n, c), scaled by its standard error if steps were independent.

    What steps say about a hidden cause adds up, so true modes are steep in the average (Prop. seq: tanh of a sum).
    Unscaled averages differ so little that training would take long to get as steep.
    """

    def __init__(self, channels: int, steps: int, gain: int) -> None:
        super().__init__(channels, 1)
        self.gain = gain * math.sqrt(steps)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.gain * self.scaled(values).mean(dim=2)


_KINDS: dict[str, Callable[..., Trunk]] = {"mlp": mlp, "image": image, "sequence": sequence, "causal": causal}


def build(config: Mapping[str, Any]) -> nn.Module:
    """The network that a `Trunk.config` describes, with fresh parameters."""
    options = dict(config)
    kind = options.pop("kind", None)
    if kind == "joint":
        return Joint([build(part) for part in options["trunks"]], options["shapes"], options["features"])
    if kind not in _KINDS:
        raise ValueError(f"The kind of a network must be one of {sorted(_KINDS)}, got {kind!r}. Pass a `Trunk.config`.")
    return _KINDS[kind](**options)


def rebuild(config: Mapping[str, Any], state: Mapping[str, torch.Tensor]) -> nn.Module:
    """The network that a `Trunk.config` describes, with these parameters.

    It is laid out without memory first, so that a config that asks for more than there are parameters takes none.
    """
    if not isinstance(config, Mapping) or _depth(config) > len(state):
        raise ValueError(f"A network must be no deeper than it has parameters, got {str(config)[:80]}.")
    with torch.device("meta"):
        network = build(config)
    found = {name: (tuple(part.shape), part.dtype) for name, part in state.items()}
    wanted = {name: (tuple(part.shape), part.dtype) for name, part in network.state_dict().items()}
    if found != wanted:
        raise ValueError(f"The parameters must be those of {str(config)[:80]}, and have other names, shapes or types.")
    network.load_state_dict({name: part.clone() for name, part in state.items()}, assign=True)
    return network


def _depth(config: Mapping[str, Any]) -> int:
    """The most layers that a part of a network is to have."""
    inner = config.get("trunks", [])
    depths = [_depth(part) for part in inner] if isinstance(inner, list) else []
    own = config.get("depth", 1)
    return max([own if isinstance(own, int) else 1, *depths])


def _config(kind: str, **options: int) -> dict[str, Any]:
    for name, value in options.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"`{name}` of a network must be a whole number, at least 1, got {value!r}. Pass a count.")
    return {"kind": kind, **options}
