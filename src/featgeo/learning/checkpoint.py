"""Checkpoints: a run that is killed at any point and started again ends as if it had never stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from featgeo.files import make_folder, write_whole
from featgeo.learning.batches import checksum

if TYPE_CHECKING:
    from featgeo.learning.train import Run

CHECKPOINT_FORMAT = 2


@dataclass(frozen=True)
class Checkpoint:
    """A file with all that a run needs to go on: tensors as safetensors, numbers as JSON in its header."""

    path: Path
    fingerprint: dict[str, Any]

    @classmethod
    def of(cls, run: Run) -> Checkpoint | None:
        """The checkpoint of a run, where its options want one."""
        if run.options.checkpoint is None:
            return None
        names = ("learning_rate", "warm_up", "weight_decay", "patience", "precision")
        fingerprint = {
            "format": CHECKPOINT_FORMAT,
            "seed": run.seed,
            "max_epochs": run.max_epochs,
            **{name: getattr(run.options, name) for name in names},
            "levels": [asdict(level) for level in run.nesting.levels],
            **run.batches.description,
            "parameters": {name: value.shape for name, value in run.result.state_dict().items()},
        }
        folder = make_folder(run.options.checkpoint)
        return cls(folder / f"run-{run.seed[1]}.safetensors", json.loads(json.dumps(fingerprint)))

    def save(self, run: Run) -> None:
        """Write it, all or nothing."""
        from safetensors.torch import save

        moments = {str(index): entry for index, entry in run.optimizer.state_dict()["state"].items()}
        parts = {"model": run.model.state_dict(), "best": run.best, "peak": {"contributions": run.peak}, **moments}
        tensors = {f"{part}.{name}": value for part, values in parts.items() for name, value in on_cpu(values).items()}
        numbers = {
            "fingerprint": self.fingerprint,
            "history": run.history,
            "best_epoch": run.best_epoch,
            "precision": run.fabric.strategy.precision.state_dict(),
            "checksum": checksum(tensors),
        }
        write_whole(self.path, save(tensors, {"featgeo": json.dumps(numbers)}))

    def load(self, run: Run) -> None:
        """Bring a run to where it was, where there is a file of it."""
        if not self.path.exists():
            return
        tensors, numbers = self._read()
        self._check(numbers["fingerprint"])
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


def on_cpu(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies that no later step changes."""
    return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in tensors.items()}
