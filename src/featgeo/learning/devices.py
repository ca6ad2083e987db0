"""Where to train: Lightning Fabric on the devices that the options name, once it is sure that they are there.

Several devices need several processes. Those are started by whoever starts the program (torchrun, Slurm, MPI): Fabric
would start the user's script again from its first line, once for each device, and again in each of these.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from featgeo.learning.plan import Training

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_NEEDS = {"cuda": "an NVIDIA GPU and a build of torch for CUDA", "mps": "a Mac with Apple silicon"}


def fabric_of(options: Training) -> Fabric:
    """Fabric, launched.

    Raises:
        ValueError: If the accelerator is absent, there are not so many devices, or several of them were asked for in a
            process that no launcher started.
    """
    try:
        from lightning_fabric import Fabric
        from safetensors import safe_open  # noqa: F401 (checkpoints are written with it; better to know at once)
    except ImportError as error:
        raise ImportError(f"Training networks needs more ({error}). Run: pip install 'featgeo[neural]'") from error
    _check_there(options)
    with quiet():
        try:
            fabric = Fabric(
                accelerator=options.accelerator,
                strategy=options.strategy,
                devices=options.devices,
                num_nodes=options.num_nodes,
                precision=options.precision,  # type: ignore[arg-type]  # a name of theirs, which `Training` checked
            )
        except (ValueError, RuntimeError, TypeError) as error:
            asked = {name: getattr(options, name) for name in ("accelerator", "devices", "strategy", "precision")}
            raise ValueError(
                f"Training needs devices that are there and go together, got {asked}: {error}. Leave them out of "
                "`Training` for what this machine has."
            ) from error
        _check_launched(fabric.strategy.launcher)
        fabric.launch()
    return fabric


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the banners that Lightning logs."""
    logger = logging.getLogger("lightning_fabric")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _check_there(options: Training) -> None:
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    wanted = {"gpu": tuple(there), "cuda": ("cuda",), "mps": ("mps",)}.get(options.accelerator, ())
    if wanted and not any(there[name] for name in wanted):
        needs = ", or ".join(_NEEDS[name] for name in wanted)
        raise ValueError(
            f"accelerator={options.accelerator!r} needs {needs}, and this machine has none that torch can see. Use "
            "accelerator='auto', which takes what there is, or 'cpu'."
        )


def _check_launched(launcher: Any) -> None:
    """Refuse to start the user's script again."""
    environment, n = getattr(launcher, "cluster_environment", None), getattr(launcher, "num_processes", 1)
    if environment is not None and n > 1 and not environment.creates_processes_externally:
        raise ValueError(
            f"Training on {n} devices takes {n} processes, started by a launcher, and this is a single one that none "
            f"started. Run the script by `torchrun --nproc_per_node={n} script.py`, or use devices=1."
        )
