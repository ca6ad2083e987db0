"""Tests given S on drawn laws: how often they reject where X and Y are independent given S, and where they are not.

    OMP_NUM_THREADS=1 python benchmarks/lottery/levels.py --first 10000 --laws 100 --draws 200 --results null.jsonl
    ... --kind alike --results alike.jsonl
    ... --kind alternative --methods featgeo RCIT GCM copula KCI --rows 250 1000 --results power.jsonl

Laws are those of `given.py`; n is 250, 1,000 or 2,500 in turns of their seeds. Results are appended to a file, a line
for each law and method, and those that it holds are not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy comes

import numpy as np  # noqa: E402
from given import draw_given  # noqa: E402
from given_rivals import RIVALS  # noqa: E402

from featgeo import conditional_independence_test  # noqa: E402

ALPHA = 0.05
ROWS = (250, 1000, 2500)


def measured(method: str, seed: int, kind: str, draws: int) -> dict:
    """Share of rejections, share of doubtful results, CPU seconds of a test, and all p-values."""
    law, n = draw_given(seed, kind == "alternative", kind == "alike"), ROWS[seed % len(ROWS)]
    pvalues, doubtful, seconds = [], 0, 0.0
    for r in range(draws):
        x, y, s = law.sample(n, np.random.default_rng([seed, 11, r]))
        start = time.process_time()
        if method == "featgeo":
            found = conditional_independence_test(x, y, s)
            pvalues.append(found.pvalue)
            doubtful += found.doubtful
        else:
            pvalues.append(RIVALS[method](x, y, s, np.random.default_rng(r)))
        seconds += time.process_time() - start
    share = float(np.mean(np.array(pvalues) <= ALPHA))
    return {
        "method": method, "seed": seed, "n": n, "law": law.description, "share": share, "doubtful": doubtful / draws,
        "seconds": round(seconds / draws, 4), "p": [round(p, 6) for p in pvalues],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="seed of the first law; from 10,000 on for reporting")
    parser.add_argument("--laws", type=int, default=40)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="leave out laws of other numbers of rows")
    parser.add_argument("--kind", choices=["null", "alike", "alternative"], default="null")
    parser.add_argument("--methods", nargs="+", default=["featgeo"], choices=["featgeo", *RIVALS])
    parser.add_argument("--results", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = options.results.read_text().splitlines() if options.results.exists() else []
    known = {(record["method"], record["seed"]): record for record in map(json.loads, lines)}
    seeds = [s for s in range(options.first, options.first + options.laws) if ROWS[s % len(ROWS)] in options.rows]
    for seed in seeds:
        for method in options.methods:
            if (method, seed) not in known:
                known[method, seed] = measured(method, seed, options.kind, options.draws)
                with options.results.open("a") as file:
                    file.write(json.dumps(known[method, seed]) + "\n")
    for method in options.methods:
        shares, doubtful = np.array([(known[method, s]["share"], known[method, s]["doubtful"]) for s in seeds]).T
        print(f"{method}: {len(seeds)} laws, mean {shares.mean():.3f}, largest {shares.max():.3f}, ", end="")
        print(f"above 0.15: {np.sum(shares > 0.15)}, doubtful {doubtful.mean():.3f}")


if __name__ == "__main__":
    main()
