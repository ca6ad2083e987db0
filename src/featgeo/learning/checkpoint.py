"""Checkpoints: a run that is killed at any point and started again ends as if it had never stopped.

A checkpoint is a file with all that a run needs to go on: tensors as safetensors, numbers as JSON in its header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from featgeo.files import make_folder, write_whole
from featgeo.learning.batches import checksum

if TYPE_CHECKING:
    from featgeo.learning.train import Run

CHECKPOINT_FORMAT = 2


def write_checkpoint(run: Run) -> None:
    """Keep where a run is, all or nothing, where its options want that."""
    from safetensors.torch import save

    path = _path(run)
    if path is None or not run.fabric.is_global_zero:
        return
    moments = {str(index): entry for index, entry in run.optimizer.state_dict()["state"].items()}
    parts = {"model": run.model.state_dict(), "best": run.best, "peak": {"contributions": run.peak}, **moments}
    tensors = {f"{part}.{name}": value for part, values in parts.items() for name, value in on_cpu(values).items()}
    numbers = {
        "fingerprint": _fingerprint(run),
        "history": run.history,
        "best_epoch": run.best_epoch,
        "precision": run.fabric.strategy.precision.state_dict(),
        "checksum": checksum(tensors),
    }
    write_whole(path, save(tensors, {"featgeo": json.dumps(numbers)}))


def go_on(run: Run) -> None:
    """Bring a run to where it was, where there is a checkpoint of it.

    Raises:
        ValueError: If it is one of another run, or damaged.
    """
    path = _path(run)
    if path is None or not path.exists():
        return
    tensors, numbers = _read(path)
    ours, found = _fingerprint(run), numbers["fingerprint"]
    differing = sorted(name for name in ours.keys() | found.keys() if ours.get(name) != found.get(name))
    if differing:
        details = "; ".join(f"{name}: {found.get(name)} there, {ours.get(name)} here" for name in differing)
        raise ValueError(
            f"A run goes on only from a checkpoint of the same run, and {path} differs in {details}. "
            "Use another folder."
        )
    parts: dict[str, dict[str, torch.Tensor]] = {"best": {}}
    for key, value in tensors.items():
        part, name = key.split(".", 1)
        parts.setdefault(part, {})[name] = value
    run.model.load_state_dict(parts.pop("model"))
    run.best, run.best_epoch = parts.pop("best"), numbers["best_epoch"]
    run.peak, run.history = parts.pop("peak")["contributions"], numbers["history"]
    state = {int(index): entry for index, entry in parts.items()}
    run.optimizer.load_state_dict({**run.optimizer.state_dict(), "state": state})
    run.fabric.strategy.precision.load_state_dict(numbers["precision"])


def _path(run: Run) -> Path | None:
    folder = run.options.checkpoint
    return None if folder is None else make_folder(folder) / f"run-{run.seed[1]}.safetensors"


def _fingerprint(run: Run) -> dict[str, Any]:
    """What tells runs apart, as JSON has it."""
    names = ("learning_rate", "warm_up", "weight_decay", "patience", "precision")
    told = {
        "format": CHECKPOINT_FORMAT,
        "seed": run.seed,
        "max_epochs": run.max_epochs,
        **{name: getattr(run.options, name) for name in names},
        "levels": [asdict(level) for level in run.nesting.levels],
        **run.batches.description,
        "parameters": {name: value.shape for name, value in run.result.state_dict().items()},
    }
    return dict(json.loads(json.dumps(told)))


def _read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            numbers = json.loads(file.metadata()["featgeo"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        sound = checksum(tensors) == numbers["checksum"]
    except (SafetensorError, KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise ValueError(
            f"A checkpoint must be a whole file written by featgeo, and {path} is damaged or something else. "
            "Delete it to start anew, or use another folder."
        )
    return tensors, numbers


def on_cpu(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies that no later step changes."""
    return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in tensors.items()}
