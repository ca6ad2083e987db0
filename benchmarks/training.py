"""Training on a GPU beside the same steps by plain PyTorch, and beside a CPU: one line each.

    python benchmarks/training.py [cosine | fashion ...] [--threads 1]

*cosine*: steps a second of the cosine experiment's network at batches of 4,096, rows and parameters on the GPU, beside
a loop of plain PyTorch over the same network, batches, objective and optimiser. *fashion*: seconds of a fit of
Fashion-MNIST by the default network, and its accuracy on the test rows, on the GPU and on the CPU of the same machine.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
import torch

import featgeo as fg
from featgeo import Nesting, Training, datasets, nested_h_score
from featgeo.features import networks
from featgeo.learning.batches import Batches
from featgeo.learning.train import NestedFeatures, train
from featgeo.paper import cosine as cosine_experiment

SEED, BATCH, EPOCHS = 20_000, 4096, 200


def cosine() -> None:
    data = cosine_experiment.draw(SEED)
    inputs = {name: torch.from_numpy(z).float()[:, None] for name, z in (("x", data.x), ("y", data.y))}
    nesting = Nesting.modes(cosine_experiment.MODES)
    options = Training(batch_size=BATCH, validation=0, progress=False, accelerator="cuda")
    trunks = {name: networks.mlp(1) for name in inputs}

    def seconds(epochs: int) -> tuple[float, int]:
        batches = Batches.in_memory(inputs, replace(options, max_epochs=epochs), SEED)
        start = time.perf_counter()
        train(trunks, batches, nesting, replace(options, max_epochs=epochs), SEED)
        torch.cuda.synchronize()
        return time.perf_counter() - start, batches.n_batches

    def ours() -> float:
        """By the difference of two runs: neither counts how it was set up, and captured."""
        (few, n_batches), (many, _) = seconds(EPOCHS // 4), seconds(EPOCHS)
        return (EPOCHS - EPOCHS // 4) * n_batches / (many - few)

    def plain() -> float:
        model = NestedFeatures(trunks, nesting, inputs).cuda()
        here = {name: z.cuda() for name, z in inputs.items()}
        optimizer = torch.optim.AdamW(model.parameters(), 0.01, weight_decay=0.3, fused=True)
        n_batches = len(data.x) // BATCH

        def epoch() -> None:
            for rows in torch.randperm(len(data.x), device="cuda").split(BATCH)[:n_batches]:
                f, g = model({name: z[rows] for name, z in here.items()})
                optimizer.zero_grad()
                (-nested_h_score(f, g, nesting, unbiased=True)).backward()
                optimizer.step()

        epoch()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(EPOCHS // 4):
            epoch()
        torch.cuda.synchronize()
        return n_batches * (EPOCHS // 4) / (time.perf_counter() - start)

    seconds(2)  # kernels are compiled
    found = [(ours(), plain()) for _ in range(3)]
    graph, eager = np.median(found, axis=0)
    print(f"cosine: {graph:.0f} steps a second, plain PyTorch {eager:.0f}: {graph / eager:.1f} x", flush=True)


def fashion() -> None:
    data = datasets.fashion_mnist()
    seconds = {}
    for device in ("cuda", "cuda", "cpu"):  # the first one compiles kernels, and does not count
        training = Training(accelerator=device, progress=False)
        start = time.perf_counter()
        model = fg.FeatureClassifier(x_space="image", device=device, random_state=SEED, training=training)
        model.fit(data.train_images, data.train_labels)
        seconds[device] = time.perf_counter() - start
        accuracy = np.mean(model.predict(data.test_images) == data.test_labels)
        print(f"fashion, {device}: {seconds[device]:.1f} s, accuracy {accuracy:.4f}", flush=True)
    print(f"fashion: {seconds['cuda'] / seconds['cpu']:.4f} of the CPU's time, {torch.get_num_threads()} threads")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["cosine", "fashion"])
    parser.add_argument("--threads", type=int, help="of the CPU")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    for part in options.parts:
        {"cosine": cosine, "fashion": fashion}[part]()


if __name__ == "__main__":
    main()
