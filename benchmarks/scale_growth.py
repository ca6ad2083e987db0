"""How the time of closed forms grows: with rows, with features, with columns; exponents fitted by least squares.

Rows come as batches that are drawn when they are asked for, and so need not fit in memory; drawing them counts. Times
are CPU seconds of one thread. What a fit costs whatever its size is part of it, so small sizes bend a line, and an
exponent is told for all sizes and for the largest three.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import featgeo as fg

SEED = 12_000
BATCH_ROWS = 65_536
Row = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """Batches of four columns, and a number that depends on them."""

    n: int

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        rng = np.random.default_rng(SEED)
        for start in range(0, self.n, BATCH_ROWS):
            x = rng.standard_normal((min(BATCH_ROWS, self.n - start), 4))
            yield x, np.sin(2 * x[:, 0]) + np.abs(x[:, 1]) + 0.5 * x[:, 2] + 0.5 * rng.standard_normal(len(x))


def of_rows(n: int) -> Callable[[], Any]:
    """A closed form on splines of four columns and of y."""
    model = fg.ModalDecomposition(
        3, solver="closed", x_space="spline", y_space="spline", ridge=1e-3, random_state=0, verbose=0
    )
    return lambda: model.fit(Drawn(n))


def of_features(k: int, n: int = 20_000) -> Callable[[], Any]:
    """Moments of k given features a side, and their modes."""
    rng = np.random.default_rng(SEED + k)
    f = rng.standard_normal((n, k), dtype=np.float32)
    g = 0.5 * f + rng.standard_normal((n, k), dtype=np.float32)
    return lambda: fg.decompose(fg.Moments.from_features({"f": f, "g": g}), [("f", "g")])


def of_columns(p: int, n: int = 5_000) -> Callable[[], Any]:
    """All pairs of p columns of numbers."""
    rng = np.random.default_rng(SEED + p)
    mixed = rng.standard_normal((n, p)) @ np.triu(rng.standard_normal((p, p)) < -1)
    frame = pd.DataFrame(mixed + rng.standard_normal((n, p)), columns=[f"c{i}" for i in range(p)])
    return lambda: fg.explore(frame, verbose=0).pairs


GROWING = {
    "rows": (of_rows, (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000), 1.05),
    "features a side": (of_features, (64, 128, 256, 512, 1024, 2048), None),
    "columns, all pairs": (of_columns, (10, 20, 50, 100, 200, 500), None),
}


def seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def growth() -> Iterator[Row]:
    """Seconds for each size, and the exponents."""
    for what, (work, sizes, most) in GROWING.items():
        work(sizes[0])()  # what is imported late is imported
        spent = [min(seconds(work(size)) for _ in range(3 if size <= sizes[1] else 1)) for size in sizes]
        logs = np.log(sizes), np.log(spent)
        exponents = [float(np.polyfit(*(log[-last:] for log in logs), 1)[0]) for last in (len(sizes), 3)]
        yield {
            "row": f"closed form against {what}", "sizes": list(sizes), "seconds": spent, "ratio": exponents[0],
            "at most": most, "note": f"exponent; of the largest three {exponents[1]:.3f}",
        }  # fmt: skip
