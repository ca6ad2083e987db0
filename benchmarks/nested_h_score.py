"""Cost of the nested H-score, forward and backward, against its four bare matrix products.

    OMP_NUM_THREADS=1 python benchmarks/nested_h_score.py [--device cpu | cuda] [--sizes 8192,256 ...] [--json FILE]

The products are f^T f, g^T g and one a side for the gradients, in the dtype of the features (float32 as TF32 on a GPU).
On a GPU both are replayed from a graph, and the score is run without one as well; on a CPU there is one thread and time
is the processor's. Each figure is a ratio of medians of interleaved runs. Peak memory is what a step takes beyond its
inputs, in tensors of n x k. With --levels it is one H-score a level, as the definition has it, that the nested one is
measured against.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from featgeo import Nesting, h_score, nested_h_score

SIZES = {"cpu": ["4096,64", "8192,256"], "cuda": ["4096,64", "65536,256", "65536,1024", "16384,2048"]}
DTYPES = {"cpu": ["float32"], "cuda": ["float32", "bfloat16"]}

Step = Callable[[], Any]


def products(f: torch.Tensor, g: torch.Tensor) -> Step:
    matrices = [torch.randn(f.shape[1], f.shape[1], device=f.device, dtype=f.dtype) for _ in range(2)]
    f, g = f.detach(), g.detach()
    return lambda: (f.T @ f, g.T @ g, f @ matrices[0], g @ matrices[1])


def step(f: torch.Tensor, g: torch.Tensor, nesting: Nesting, **options: Any) -> Step:
    return lambda: torch.autograd.grad(nested_h_score(f, g, nesting, **options), (f, g))


def one_a_level(f: torch.Tensor, g: torch.Tensor, nesting: Nesting) -> Step:
    def score() -> torch.Tensor:
        scores = [h_score(f[:, :end], g[:, :end]) for end in nesting.ends]
        return torch.stack([w * s for w, s in zip(nesting.weights, scores, strict=True)]).sum()

    return lambda: torch.autograd.grad(score(), (f, g))


def replayed(run: Step) -> Step:
    """The same as a graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def seconds(run: Step, device: str, repeats: int) -> float:
    """Of one run: of the processor on a CPU, by events on a GPU, where several follow each other."""
    if device == "cpu":
        start = time.process_time()
        run()
        return time.process_time() - start
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1000 / repeats


def medians(runs: dict[str, Step], device: str) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        for _ in range(3):
            run()
    repeats = 1 if device == "cpu" else max(5, int(0.02 / seconds(runs["products"], device, 5)))
    for _ in range(9):
        for name, run in runs.items():
            times[name].append(seconds(run, device, repeats))
    return {name: statistics.median(values) for name, values in times.items()}


def peak(run: Step, f: torch.Tensor) -> float:
    """Memory of a step, in tensors of the size of f."""
    run()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = run()
    torch.cuda.synchronize()
    del kept
    return (torch.cuda.max_memory_allocated() - before) / (f.numel() * f.element_size())


def measured(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    torch.backends.cuda.matmul.allow_tf32 = True
    for dtype in DTYPES[options.device]:
        for n, k in (map(int, size.split(",")) for size in options.sizes or SIZES[options.device]):
            f, g = (torch.randn(n, k, device=options.device).to(getattr(torch, dtype)).requires_grad_() for _ in "fg")
            ours = partial(step, f, g, Nesting.modes(k))
            steps = {"score": ours(), "unbiased": ours(unbiased=True), "sequential": ours(mode="sequential")}
            steps["unbiased, sequential"] = ours(unbiased=True, mode="sequential")
            runs = {"products": products(f, g), **steps}
            if options.device == "cuda":
                runs = {name: replayed(run) for name, run in runs.items()} | {"score without a graph": steps["score"]}
            if options.levels:
                runs["one a level"] = one_a_level(f, g, Nesting.modes(k))
            found = medians(runs, options.device)
            row: dict[str, Any] = {"n": n, "k": k, "dtype": dtype, "products, ms": 1000 * found.pop("products")}
            row |= {name: 1000 * value / row["products, ms"] for name, value in found.items()}
            if options.device == "cuda":
                row["peak memory"] = peak(steps["score"], f)
                row["peak memory, unbiased"] = peak(steps["unbiased"], f)
            print(", ".join(f"{name} {x if isinstance(x, int | str) else f'{x:.3f}'}" for name, x in row.items()))
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=SIZES)
    parser.add_argument("--sizes", nargs="*", help="n,k of each row")
    parser.add_argument("--levels", action="store_true", help="one H-score a level as well")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = list(measured(options))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
