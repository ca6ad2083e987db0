"""Checkpoints: a run that is killed at any point and started again ends as if it had never stopped.

A checkpoint is a file with all that a run needs to go on, as torch writes it, after a checksum of it: what is damaged
is not even looked into, and of what is whole only tensors and plain numbers are read.
"""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch

from featgeo.files import make_folder, write_whole

if TYPE_CHECKING:
    from featgeo.learning.train import Run

CHECKPOINT_FORMAT = 3
CHECKSUM_BYTES = sha256().digest_size
PROGRESS = ("history", "best_epoch", "best", "peak")  # attributes of a run


def write_checkpoint(run: Run) -> None:
    """Keep where a run is, all or nothing, where its options want that."""
    path = _path(run)
    if path is None or run.ranks.rank > 0:
        return
    states = {name: part.state_dict() for name, part in _parts(run).items()}
    content = io.BytesIO()
    torch.save({"fingerprint": _fingerprint(run), **{name: getattr(run, name) for name in PROGRESS}, **states}, content)
    write_whole(path, sha256(content.getvalue()).digest() + content.getvalue())


def go_on(run: Run) -> None:
    """Bring a run to where it was, where there is a checkpoint of it.

    Raises:
        ValueError: If it is one of another run, or damaged.
    """
    path = _path(run)
    if path is None:
        return
    content = run.ranks.told(path.read_bytes() if run.ranks.rank == 0 and path.exists() else None)
    if content is None:
        return
    try:
        if sha256(content[CHECKSUM_BYTES:]).digest() != content[:CHECKSUM_BYTES]:
            raise ValueError("its checksum does not fit")
        kept = torch.load(io.BytesIO(content[CHECKSUM_BYTES:]), map_location="cpu", weights_only=True)
        found = dict(kept["fingerprint"])
    except (EOFError, KeyError, RuntimeError, TypeError, UnpicklingError, ValueError) as error:
        raise ValueError(
            f"A checkpoint must be a whole file written by featgeo, and {path} is damaged or something else. "
            "Delete it to start anew, or use another folder."
        ) from error
    differing = _difference(_fingerprint(run), found)
    if differing:
        raise ValueError(
            f"A run goes on only from a checkpoint of the same run, and {path} differs in {differing}. "
            "Use another folder."
        )
    for name in PROGRESS:
        setattr(run, name, kept[name])
    for name, part in _parts(run).items():
        part.load_state_dict(kept[name])


def check_alike(run: Run) -> None:
    """Refuse ranks that are about to train different things together."""
    first, *others = run.ranks.all_told({**_fingerprint(run), "first batches": run.begins})
    differing = next(filter(None, (_difference(first, other) for other in others)), None)
    if differing:
        raise ValueError(
            f"Ranks train on the same rows with the same options, each with its share of every batch, and they differ "
            f"in {differing}. Pass all rows on every rank, or use devices=1 for a training of its own on each."
        )


def _difference(ours: dict[str, Any], found: dict[str, Any]) -> str:
    """In what two fingerprints differ; "" where in nothing."""
    differing = sorted(name for name in ours.keys() | found.keys() if ours.get(name) != found.get(name))
    return "; ".join(f"{name}: {found.get(name)} there, {ours.get(name)} here" for name in differing)


def _parts(run: Run) -> dict[str, Any]:
    """What has a state of its own."""
    return {"model": run.trainee, "optimizer": run.optimizer, "precision": run.fabric.strategy.precision}


def _path(run: Run) -> Path | None:
    folder = run.options.checkpoint
    return None if folder is None else make_folder(folder) / f"run-{run.seed[1]}.pt"


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
        "parameters": {name: value.shape for name, value in run.model.state_dict().items()},
    }
    return dict(json.loads(json.dumps(told)))
