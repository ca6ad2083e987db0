"""MNIST's left and right halves beside cca-zoo's DCCA and DCCA-EY: correlation on test rows, and time.

Needs `pip install "cca-zoo[deep]"` beside featgeo. Ours is `ModalDecomposition` with its default image networks. Theirs
are the networks of the authors' paper on MNIST halves (two layers of 800 units with leaky ReLU) under Adam at its
default rate of cca-zoo, batches of 1,000 rows (DCCA, which whitens each batch) and 200 (DCCA-EY), as many epochs as
told; after them cca-zoo's CCA on their training encodings, as its documentation has it.

Total correlation is the sum over components of Pearson's correlation on the 10,000 test rows, of what each method's own
transform says: nothing is fitted to test rows. Seconds are those of the processor, one thread; what it takes to look at
the peers in between is left out. Their time is told at the epoch of their highest correlation, and at the first that is
no lower than ours: both look at the test rows, in their favour.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

import featgeo as fg
from featgeo import datasets

SEED = 110_000
BATCHES = {"DCCA": 1_000, "DCCAEY": 200}
Halves = tuple[torch.Tensor, torch.Tensor]


def halves(images: Any) -> Halves:
    pixels = torch.as_tensor(np.asarray(images)).float() / 255
    return pixels[:, :, :14].contiguous(), pixels[:, :, 14:].contiguous()


def total_correlation(f: np.ndarray, g: np.ndarray) -> float:
    f, g = f - f.mean(axis=0), g - g.mean(axis=0)
    return float(((f * g).sum(axis=0) / np.sqrt((f * f).sum(axis=0) * (g * g).sum(axis=0))).sum())


def ours(k: int, train: Halves, test: Halves) -> tuple[float, float]:
    """Seconds and total correlation."""
    start = time.process_time()
    model = fg.ModalDecomposition(
        k, solver="neural", x_space="image", y_space="image", random_state=SEED, verbose=0
    ).fit(*train)
    spent = time.process_time() - start
    return spent, total_correlation(*model.transform(*test))


def theirs(name: str, k: int, train: Halves, test: Halves, epochs: int) -> list[tuple[float, float]]:
    """The same after each epoch."""
    import lightning.pytorch as pl
    from cca_zoo import deep
    from cca_zoo.linear import CCA
    from torch import nn
    from torch.utils.data import DataLoader

    def encoder() -> nn.Module:
        sizes = [(392, 800), (800, 800)]
        layers = [part for size in sizes for part in (nn.Linear(*size), nn.LeakyReLU())]
        return nn.Sequential(*layers, nn.Linear(800, k))

    told: list[tuple[float, float]] = []
    away = 0.0

    class Look(pl.Callback):
        @torch.no_grad()
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            nonlocal away
            reached = time.process_time()
            encoded = [
                [encode(rows.flatten(1)).double().numpy() for encode, rows in zip(module.encoders, part, strict=True)]
                for part in (train, test)
            ]
            begun = time.process_time()
            cca = CCA(n_components=k).fit(encoded[0])
            solved = time.process_time() - begun
            told.append((reached - start - away + solved, total_correlation(*cca.transform(encoded[1]))))
            away += time.process_time() - reached

    pl.seed_everything(SEED)
    model = getattr(deep, name)(n_components=k, encoders=[encoder(), encoder()])
    rows = deep.MultiviewDataset([part.flatten(1).numpy() for part in train])
    quiet: dict[str, Any] = {"enable_progress_bar": False, "enable_checkpointing": False, "enable_model_summary": False}
    start = time.process_time()
    trainer = pl.Trainer(max_epochs=epochs, logger=False, accelerator="cpu", callbacks=[Look()], **quiet)
    trainer.fit(model, DataLoader(rows, batch_size=BATCHES[name], shuffle=True, drop_last=True))
    return told


def deep_peers(counts: tuple[int, ...] = (10, 50), epochs: int = 12) -> Iterator[dict[str, Any]]:
    """Rows of the table."""
    try:
        import cca_zoo.deep  # noqa: F401
    except ImportError:
        yield {"row": "MNIST halves beside DCCA and DCCA-EY", "note": "skipped: cca-zoo[deep] is not installed"}
        return
    torch.set_num_threads(1)
    data = datasets.mnist()
    train, test = halves(data[0]), halves(data[2])
    for k in counts:
        spent, found = ours(k, train, test)
        for name in BATCHES:
            told = theirs(name, k, train, test, epochs)
            seconds, best = max(told, key=lambda one: one[1])
            first = next((f"{time:.0f} s" for time, correlation in told if correlation >= found), "never")
            yield {
                "row": f"MNIST halves, {k} components", "ours": spent, "other": seconds,
                "other is": f"{name} of cca-zoo, epoch {1 + [one[1] for one in told].index(best)} of {epochs}",
                "ratio": spent / seconds, "at most": 0.2 if found >= best else None,
                "note": f"total correlation on test rows {found:.2f}, {name} {best:.2f}; it reaches ours after {first}",
            }  # fmt: skip


if __name__ == "__main__":
    for row in deep_peers():
        print(row, flush=True)
