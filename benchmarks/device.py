"""Closed-form fit and `given` on a GPU beside the same on the CPU: singular values and time.

    python benchmarks/device.py --rows 10000000

needs a GPU. The same rows, the same spaces; what is printed is the largest difference of singular values and of
conditional means, and the ratio of times, each measured once after a small fit has warmed both up.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import featgeo as fg


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Seven numbers, and one that depends on some of them: smoothly, and on two together."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 7))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * rng.standard_normal(n)


def timed(device: str, x: np.ndarray, y: np.ndarray, space: str) -> tuple[float, float, Any, np.ndarray]:
    """Seconds of the fit and of `given`, the model, and conditional means."""
    start = time.perf_counter()
    model = fg.ModalDecomposition(3, "closed", space, space, random_state=0, device=device, verbose=0).fit(x, y)
    fitted = time.perf_counter()
    model.given(x)
    return fitted - start, time.perf_counter() - fitted, model, model.given(x[:10_000]).mean()


def main() -> None:
    """Print one line a device, and what they differ by."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--space", default="kernel")
    options = parser.parse_args()
    x, y = rows(options.rows, 50_000)
    found = {}
    for device in ("cuda", "cpu"):
        timed(device, x[:5000], y[:5000], options.space)
        found[device] = timed(device, x, y, options.space)
        fit, given, model, _ = found[device]
        print(f"{device}: fit {fit:.1f} s, given {given:.1f} s, sigma {model.singular_values_}", flush=True)
    (gpu_fit, gpu_given, gpu, gpu_mean), (cpu_fit, cpu_given, cpu, cpu_mean) = found["cuda"], found["cpu"]
    print(
        f"largest difference of sigma {np.abs(gpu.singular_values_ - cpu.singular_values_).max():.2g}, of means "
        f"{np.abs(gpu_mean - cpu_mean).max():.2g}; time {(gpu_fit + gpu_given) / (cpu_fit + cpu_given):.3f}"
    )


if __name__ == "__main__":
    main()
