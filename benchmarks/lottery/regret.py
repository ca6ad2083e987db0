"""What "auto" loses by not knowing the law: its error beside that of each single space, and of plain rivals.

    python benchmarks/lottery/regret.py --seeds 0:80 --most-rows 3000 --out tuning.json
    python benchmarks/lottery/regret.py --seeds 0:80 --most-rows 3000 --out tuning.json --again auto

For each drawn law (`laws.py`) every estimator gets the same rows. The error is |i^ - i| / |i| in L2(Px Py), over all
pairs of fresh rows of x and of y; 1 is what the estimate "no dependence" has. *Regret* is the error of "auto" over that
of the best single space in hindsight; *work* its CPU time over that of a fit with the spaces that it chose. What is in
the output file already is not measured again, unless it is named. One thread; seeds below 10,000 are for tuning.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy comes

import numpy as np
from laws import MOST_ROWS, Draw, Law, draw_law
from rivals import RIVALS, Sides

from featgeo import ModalDecomposition
from featgeo.features.recipes import recipes
from featgeo.features.variables import Variable

X_ROWS, Y_ROWS = 1500, 600  # fresh rows whose pairs tell the error
SPACES = ("table", "linear", "spline", "kernel", "index", "metric", "forest", "trees", "network")
MOST_SYMBOLS = 200  # of x, for a table of it to make sense


def decomposed(rows: Draw, seed: int, x_space: Any, y_space: str = "auto") -> tuple[Sides, tuple[str, str]]:
    """Our estimate of i, and what its spaces are."""
    model = ModalDecomposition("auto", x_space=x_space, y_space=y_space, random_state=seed).fit(rows.x, rows.y)
    main = model.learned_.components[-1]
    f = lambda x: main.f(model.x_variable_.rows(x)) * main.sigma  # noqa: E731
    return (f, lambda y: main.g(model.y_variable_.rows(y)), 0.0), model.spaces_


def alone(rows: Draw, chosen: str) -> Any:
    """What to ask for to get only the space that "auto" ended with: its name, or recipes whose mean is taken."""
    names = chosen.split(" and ")
    if len(names) == 1:
        return chosen.partition(",")[0]
    x = Variable.seen(rows.x, "X").rows(rows.x)
    known = {recipe.name: recipe for space in ("auto", "kernel", "spline", "linear") for recipe in recipes(space, x)}
    wanted = [known[name] for name in names]
    return wanted if not wanted[0].learned else [known["kernel, gamma 0.3"], *wanted]


def error(sides: Sides, truth: np.ndarray, x: Draw, y: Draw) -> float:
    """|i^ - i| / |i| over all pairs of rows."""
    found = sides[0](x.x) @ sides[1](y.y).T + sides[2]
    return float(np.sqrt(np.mean((found - truth) ** 2) / np.mean(truth**2)))


def measured(law: Law, most_rows: int, known: dict[str, Any]) -> dict[str, Any]:
    """The record of a law, with what is known of it already."""
    rows, x, y = (
        law.sample(n, np.random.default_rng([law.seed, 2 + i]))
        for i, n in enumerate((law.n_rows(most_rows), X_ROWS, Y_ROWS))
    )
    truth = law.ratio(x, y) - 1
    record = {"description": law.description, "n": len(rows), "energy": round(float(np.mean(truth**2)), 3), **known}
    errors, cpu = record.setdefault("errors", {}), record.setdefault("cpu", {})

    def run(name: str, fit: Callable[[], Sides]) -> None:
        if name in errors:
            return
        start = time.process_time()
        try:
            sides = fit()
        except ValueError:  # this space is not for these columns
            errors[name] = cpu[name] = None
            return
        cpu[name] = round(time.process_time() - start, 3)
        errors[name] = round(error(sides, truth, x, y), 4)

    def auto() -> Sides:
        sides, record["spaces"] = decomposed(rows, law.seed, "auto")
        cpu.pop("chosen", None)
        return sides

    run("auto", auto)
    if "chosen" not in cpu:
        start = time.process_time()
        x_space, y_space = record["spaces"]
        decomposed(rows, law.seed, alone(rows, x_space), y_space.partition(",")[0])
        cpu["chosen"] = round(time.process_time() - start, 3)
    is_small = len(rows.x.drop_duplicates()) <= MOST_SYMBOLS
    for space in SPACES[not is_small :]:
        run(space, lambda space=space: decomposed(rows, law.seed, space)[0])
    for name, rival in RIVALS.items():
        run(name, lambda rival=rival: rival(rows.x, rows.y, law.seed))
    return record


def summary(records: dict[str, dict[str, Any]]) -> str:
    """A table in markdown: figures over all laws, then the laws where "auto" loses most."""
    auto = np.array([r["errors"]["auto"] for r in records.values()])
    single = np.array([min(best(r, SPACES)) for r in records.values()])
    rival = np.array([min(best(r, RIVALS)) for r in records.values()])
    work = np.array([r["cpu"]["auto"] / max(r["cpu"]["chosen"], 1e-3) for r in records.values()])
    regret = auto / single
    lines = ["| over all laws | |", "| --- | --- |", f"| laws | {len(auto)} |"]
    lines += [f"| regret, median and 95th percentile | {spread(regret)} |"]
    lines += [f"| work, median and 95th percentile | {spread(work)} |"]
    lines += [f"| error, geometric mean | {geometric(auto):.3f} (best single space {geometric(single):.3f}) |"]
    lines += [f"| beside the best of all rivals, geometric mean | {geometric(auto / rival):.3f} |"]
    for name in RIVALS:
        theirs = np.array([r["errors"].get(name) or np.inf for r in records.values()])
        lines += [f"| error below that of {name} | {np.mean(auto < theirs):.0%}, {geometric(auto / theirs):.3f} |"]
    for name in SPACES:
        is_best = [min(best(r, SPACES)) == r["errors"].get(name) for r in records.values()]
        lines += [f"| {name} is the best single space | {np.mean(is_best):.0%} |"]
    lines += [
        "",
        "| seed | n | law | auto | best | regret | work | rivals |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for i in np.argsort(-regret)[:25]:
        seed, r = list(records.items())[i]
        name = min(SPACES, key=lambda space: r["errors"].get(space) or np.inf)
        theirs = " ".join(f"{value:.3f}" for value in best(r, RIVALS))
        lines += [
            f"| {seed} | {r['n']} | {r['description']} | {auto[i]:.3f} {'/'.join(r['spaces'])} "
            f"| {single[i]:.3f} {name} | {regret[i]:.2f} | {work[i]:.1f} | {theirs} |"
        ]
    return "\n".join(lines)


def best(record: dict[str, Any], names: Iterable[str]) -> list[float]:
    return [record["errors"].get(name) or np.inf for name in names]


def spread(values: np.ndarray) -> str:
    return f"{np.median(values):.2f}, {np.quantile(values, 0.95):.2f}"


def geometric(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:80", help="first:last, the last not among them")
    parser.add_argument("--most-rows", type=int, default=MOST_ROWS, help="rows are drawn between 200 and so many")
    parser.add_argument("--out", type=Path, default=Path("lottery.json"))
    parser.add_argument("--again", nargs="*", default=[], help="what to measure again, such as: auto trees")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    records = json.loads(options.out.read_text()) if options.out.exists() else {}
    for seed in range(*map(int, options.seeds.split(":"))):
        known = records.get(str(seed), {})
        for kind in ("errors", "cpu"):
            known[kind] = {name: value for name, value in known.get(kind, {}).items() if name not in options.again}
        records[str(seed)] = measured(draw_law(seed), options.most_rows, known)
        options.out.write_text(json.dumps(records, indent=1))
        print(seed, records[str(seed)]["description"], records[str(seed)]["errors"], file=sys.stderr, flush=True)
    print(summary(records))


if __name__ == "__main__":
    main()
