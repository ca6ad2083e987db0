"""Speed and scale in one table, each row a ratio of two things in one run, or the exponent of a growth.

    python benchmarks/scale.py [objective | growth | peers | cluster | predict | fit | wide ...]
        [--flights FILE] [--census FILE] [--output build/scale]

Prints the table, and writes it as JSON with a figure of the growth. One thread, CPU seconds; the machine may be busy.
Peers that are not installed are skipped with a note (pip install prince ace maxcorr "cca-zoo[deep]"); the cluster needs
the files that `explore.py` says where to find.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from explore import markdown
from explore_speed import ONE_THREAD

os.environ.update(ONE_THREAD)  # before numpy comes

Row = dict[str, Any]


def _objective(options: argparse.Namespace) -> Iterator[Row]:
    import nested_h_score

    for row in nested_h_score.measured(argparse.Namespace(device="cpu", sizes=["8192,256"], levels=False)):
        size = f"{row['n']:,} x {row['k']}"
        yield {"row": f"nested H-score, {size}, over its four products", "ratio": row["score"], "at most": 1.3}


def _growth(options: argparse.Namespace) -> Iterator[Row]:
    from scale_growth import growth

    yield from growth()


def _peers(options: argparse.Namespace) -> Iterator[Row]:
    from scale_deep import deep_peers
    from scale_peers import peers

    yield from peers()
    yield from deep_peers()


def _cluster(options: argparse.Namespace) -> Iterator[Row]:
    from scale_cluster import overhead

    for name, path, target in (("flights", options.flights, "delay"), ("Census-Income", options.census, "age")):
        if path is None:
            yield {"row": f"one worker, {name}", "note": f"skipped: no --{name.partition('-')[0].lower()}"}
        else:
            yield from overhead(name, path, target)


def _boosting(name: str) -> Callable[[argparse.Namespace], Iterator[Row]]:
    def part(options: argparse.Namespace) -> Iterator[Row]:
        import scale_boosting

        yield from getattr(scale_boosting, name)()

    return part


PARTS = {"objective": _objective, "growth": _growth, "peers": _peers, "cluster": _cluster}
PARTS |= {name: _boosting(name) for name in ("predict", "fit", "wide")}


def figure(rows: list[Row], path: Path) -> None:
    """Seconds against sizes, with the exponents."""
    from matplotlib.figure import Figure

    grown = [row for row in rows if "sizes" in row]
    if not grown:
        return
    drawing = Figure(figsize=(4 * len(grown), 3.2), layout="constrained")
    for axis, row in zip(drawing.subplots(1, len(grown), squeeze=False)[0], grown, strict=True):
        axis.loglog(row["sizes"], row["seconds"], "o-")
        axis.set_title(f"exponent {row['ratio']:.2f}")
        axis.set_xlabel(row["row"].removeprefix("closed form against "))
        axis.set_ylabel("CPU seconds, one thread")
    drawing.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--flights", type=Path, help="flights-3m.parquet")
    parser.add_argument("--census", type=Path, help="census_income_1994_1995_train.csv")
    parser.add_argument("--output", type=Path, default=Path("build/scale"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: list[Row] = []
    for name in options.parts or PARTS:
        for row in PARTS[name](options):
            rows.append(row)
            print(
                ", ".join(
                    f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
                ),
                flush=True,
            )
    print(markdown([{key: value for key, value in row.items() if key not in ("sizes", "seconds")} for row in rows]))
    options.output.mkdir(parents=True, exist_ok=True)
    from featgeo.files import write_whole

    write_whole(options.output / "scale.json", json.dumps(rows, indent=1))
    figure(rows, options.output / "growth.svg")


if __name__ == "__main__":  # workers of a cluster import this file again
    main()
