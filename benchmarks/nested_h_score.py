"""Cost of the nested H-score, forward and backward, against the plain H-score and against one H-score a level.

    python benchmarks/nested_h_score.py --n 4096 --k 256 --device cpu

Each figure is a ratio of medians measured in this run, one thread, interleaved so that a busy machine slows all alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch

from featgeo import Nesting, h_score, nested_h_score


def naive(f: torch.Tensor, g: torch.Tensor, nesting: Nesting, unbiased: bool) -> torch.Tensor:
    """The definition: one H-score a level."""
    scores = [h_score(f[:, :end], g[:, :end], unbiased) for end in nesting.ends]
    return torch.stack([w * s for w, s in zip(nesting.weights, scores, strict=True)]).sum()


def seconds(score: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], f: torch.Tensor, g: torch.Tensor) -> float:
    """Seconds of one forward and backward pass: of the processor on a CPU, of the clock on an accelerator."""
    f, g = (z.clone().requires_grad_() for z in (f, g))
    if f.device.type == "cpu":
        start = time.process_time()
        score(f, g).backward()
        return time.process_time() - start
    torch.accelerator.synchronize()
    start = time.perf_counter()
    score(f, g).backward()
    torch.accelerator.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--k", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    f, g = torch.randn(2, options.n, options.k, device=options.device)
    nesting = Nesting.modes(options.k)
    result = {"n": options.n, "k": options.k, "levels": len(nesting.levels), "device": options.device}
    for unbiased in (False, True):
        runs = {
            "plain": lambda f, g: h_score(f, g, unbiased),
            "joint": lambda f, g: nested_h_score(f, g, nesting, unbiased),
            "sequential": lambda f, g: nested_h_score(f, g, nesting, unbiased, mode="sequential"),
        }
        for run in runs.values():
            seconds(run, f, g)  # warm up
        times = {name: [] for name in runs}
        for _ in range(options.repeats):
            for name, run in runs.items():
                times[name].append(seconds(run, f, g))
        median = {name: statistics.median(values) for name, values in times.items()}
        loop = statistics.median(seconds(lambda f, g: naive(f, g, nesting, unbiased), f, g) for _ in range(3))
        result["unbiased" if unbiased else "plug-in"] = {
            "nested_over_plain": round(median["joint"] / median["plain"], 3),
            "sequential_over_plain": round(median["sequential"] / median["plain"], 3),
            "naive_over_nested": round(loop / median["joint"], 1),
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
