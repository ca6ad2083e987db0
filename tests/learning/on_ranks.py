"""What processes do that are started together, and how tests start them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import traceback
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from support import cosine_samples
from torch.utils.data import DataLoader, Dataset

from featgeo import ModalDecomposition, Nesting, Training, nested_h_score, ranks
from featgeo.geometry.moments import Moments
from featgeo.learning.batches import Batches
from featgeo.learning.train import Run, fabric_of, train
from featgeo.ranks import Ranks
from featgeo.watch import Watch

FORKS = multiprocessing.get_context("forkserver")  # which imports what takes long only once
FORKS.set_forkserver_preload(["featgeo.models.modal", "featgeo.learning.train", "lightning_fabric", "torch._dynamo"])


def together(n: int, do: Callable[..., Any], folder: Path, *arguments: Any) -> list[Any]:
    """What a function returns on each of n ranks, or the traceback of what it raised; None where it was killed."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    files = [folder / f"{do.__name__} {rank} of {n}" for rank in range(n)]
    started = [
        FORKS.Process(target=_rank, args=(rank, n, port, do, file, arguments)) for rank, file in enumerate(files)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join()
    return [pickle.loads(file.read_bytes()) if file.exists() else None for file in files]  # noqa: S301


def _rank(rank: int, n: int, port: int, do: Callable[..., Any], file: Path, arguments: tuple[Any, ...]) -> None:
    """Be a rank, as torchrun starts them."""
    torch.set_num_threads(1)
    places = {"RANK": rank, "WORLD_SIZE": n, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": n}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} | {k: str(v) for k, v in places.items()}
    try:
        result = do(*arguments)
    except Exception:
        result = traceback.format_exc()
    file.write_bytes(pickle.dumps(result))


@contextmanager
def counted():
    """Collectives as they happen: which, and how many bytes of tensors each rank hands in."""
    told, tell = [], ranks._tell

    def counting(operation, what, *others):
        told.append((operation, what.nbytes if isinstance(what, torch.Tensor) else None))
        tell(operation, what, *others)

    ranks._tell = counting
    try:
        yield told
    finally:
        ranks._tell = tell


def rows(n: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Two numbers that depend on each other."""
    generator = torch.Generator().manual_seed(seed)
    x, noise = torch.randn(2, n, 1, generator=generator, dtype=torch.float64)
    return {"x": x, "y": x.square() + 0.3 * noise}


def networks() -> dict[str, torch.nn.Module]:
    """One for each of both; parameters that the first rank has are those that count."""
    return {
        name: torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.SiLU(), torch.nn.Linear(8, 6)).double()
        for name in "xy"
    }


WAYS = [(unbiased, mode) for unbiased in (False, True) for mode in ("joint", "sequential")]
NESTINGS = [Nesting([6]), Nesting.modes(6), Nesting([2, 4], [1.0, 0.3])]


def gradients(n: int, who: Ranks) -> list[torch.Tensor]:
    """Of the parameters of both networks, under each objective, on n rows."""
    found = []
    for nesting in NESTINGS:
        for unbiased, mode in WAYS:
            torch.manual_seed(3)
            parts = networks()
            f, g = (parts[name](block[who.own]) for name, block in rows(n).items())
            score = nested_h_score(f, g, nesting, unbiased, mode, over_ranks=who.size > 1)
            score.backward()
            parameters = [weight for part in parts.values() for weight in part.parameters()]
            who.add_gradients(parameters)
            found += [score.detach(), *(weight.grad for weight in parameters)]
    return found


def options(**more: Any) -> Training:
    """Of short trainings, in float64, so that the order of sums hardly shows."""
    return Training(**{"max_epochs": 3, "batch_size": 64, "precision": "64-true", "progress": False, **more})


def trained(n: int = 500, **more: Any) -> Run:
    """A training without any noise of its own."""
    torch.manual_seed(torch.distributed.get_rank() if torch.distributed.is_initialized() else 0)
    how = options(**more)
    return train(networks(), Batches.in_memory(rows(n), how, 1), Nesting.modes(3), how, 1)


def bytes_of_a_step(batch_size: int) -> list[Any]:
    """What is told in one step."""
    how = options(batch_size=batch_size)
    fabric, who = fabric_of(how)
    run = Run(networks(), Batches.in_memory(rows(800), how, 1), Nesting.modes(3), how, (1, 0), fabric, who)
    (share, *_) = run._shares(0)
    with counted() as told:
        run._learn(share)
    return [len(share["x"]), told]


class Read(Dataset):
    """A data set that notes which of its rows are read."""

    def __init__(self, n: int) -> None:
        self.x, self.y = cosine_samples(n, seed=0)
        self.read: list[int] = []

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, position: int) -> tuple[float, float]:
        self.read.append(position)
        return self.x[position], self.y[position]


def rows_read(shuffle: bool) -> list[list[int]]:
    """Positions that each of two passes of training reads from a loader, and the pass of the closed form."""
    data = Read(230)
    loader = DataLoader(data, batch_size=50, shuffle=shuffle)
    who = Ranks.there()
    way = Batches.streamed(loader, lambda pair: {"x": pair[0][:, None]}, int(not shuffle)).dealt(who)
    found = []
    for epoch in range(2):
        data.read.clear()
        torch.manual_seed(epoch)
        assert sum(len(batch["x"]) for batch in way.epoch(epoch)) <= len(data.read)
        found.append(list(data.read))
    return found


def fitted(source: str = "rows", **more: Any) -> dict[str, Any]:
    """A model as each rank has it."""
    x, y = cosine_samples(1500, seed=0)
    training = options(**{"precision": "32-true", **more})
    model = ModalDecomposition(2, solver="neural", random_state=0, training=training)
    if source == "rows":
        model.fit(x, y)
    else:
        pairs = torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))
        model.fit(DataLoader(pairs, batch_size=250, shuffle=source == "shuffled"))
    return {
        "sigma": model.singular_values_,
        "held_out": model.held_out_singular_values_,
        "features": model.transform(x[:50]),
        "score": model.report().held_out_score,
    }


def moments(who: Ranks) -> list[Moments | None]:
    """Moments of three parts of rows far from 0, the last of which has a single row, and of none."""
    x, y = (block.numpy() for block in rows(200).values())
    parts = [slice(0, 50), slice(50, 199), slice(199, 200), slice(0, 0)]
    own = [{"x": x[part][who.own] + 1e6, "y": np.hstack([y[part][who.own]] * 2)} for part in parts]
    several = [Moments.from_features(part) if len(part["x"]) else None for part in own]
    return Moments.over_ranks(several, who) if who.size > 1 else several


def everything(folder: Path) -> dict[str, Any]:
    """What two ranks are asked."""
    run = trained()
    return {
        "gradients": gradients(101, Ranks.there()),
        "history": run.history,
        "parameters": run.model.state_dict(),
        "bytes": [bytes_of_a_step(size) for size in (40, 400)],
        "read": [rows_read(shuffle) for shuffle in (False, True)],
        "fitted": {source: fitted(source) for source in ("rows", "in order", "shuffled")},
        "moments": moments(Ranks.there()),
        "alone": trained(devices=1).history,
        "went on": trained(checkpoint=folder / "of one").history,
        "resumed": trained(checkpoint=folder / "killed", max_epochs=4).history,
        "never killed": trained(max_epochs=4).history,
        "differing": refusals(),
        "warned": [warned(), warned(devices=1)],
        "shown": Watch("", verbose=2).shown,
    }


class Loud(torch.nn.Identity):
    """A module that warns."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        warnings.warn("read", stacklevel=1)
        return inputs


def warned(**more: Any) -> bool:
    """Whether a fit warns."""
    x, y = cosine_samples(400, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ModalDecomposition(1, x_space=Loud(), y_space="spline", training=options(**more)).fit(x, y)
    return any(str(warning.message) == "read" for warning in caught)


def refusals() -> list[str]:
    """What is said where each rank brings rows of its own, and where it has the same rows in an order of its own."""
    how, rank, said = options(), Ranks.there().rank, []
    order = torch.Generator().manual_seed(rank)
    loader = DataLoader(Read(200), batch_size=50, shuffle=True, generator=order)
    for batches in (
        Batches.in_memory(rows(500, seed=rank), how, 1),
        Batches.streamed(loader, lambda pair: {"x": pair[0][:, None], "y": pair[1][:, None]}, 0),
    ):
        try:
            train(networks(), batches, Nesting([1]), how, 1)
        except ValueError as error:
            said.append(str(error))
    return said


def on_four() -> dict[str, Any]:
    """What four ranks are asked, whose group is there before featgeo comes."""
    torch.distributed.init_process_group("gloo")
    return {
        "gradients": gradients(3, Ranks.there()) + gradients(102, Ranks.there()),
        "history": trained().history,
        "moments": moments(Ranks.there()),
        "bytes": [bytes_of_a_step(size) for size in (40, 400)],
    }


def killed(folder: Path) -> str:
    """Train until the second rank is killed in its third epoch."""
    steps, learn = [], Run._learn

    def fragile(self, share):
        steps.append(share)
        if self.ranks.rank == 1 and len(steps) == 2 * self.batches.n_batches + 3:
            os.kill(os.getpid(), signal.SIGKILL)
        learn(self, share)

    Run._learn = fragile
    trained(checkpoint=folder, max_epochs=4)
    return "nobody was killed"
