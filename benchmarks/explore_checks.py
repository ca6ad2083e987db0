"""False discoveries, power and interactions of `explore`; run by `benchmarks/explore.py fdr`, `power`, `interactions`.

What a contestant found in a table is kept in a file of the user's choice and read again from there, since phik takes
half a minute for each table; featgeo is always run anew.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from explore_peers import QVALUES, Pair, PValues
from explore_tables import PLANTED, STRENGTHS, independent_table, interaction_table, planted_table

RATE = 0.05
Row = dict[str, Any]


@dataclass
class Kept:
    """What contestants found, by contestant, table and seed; in memory, and in a file where one is named."""

    path: Path | None

    def __post_init__(self) -> None:
        self.found: dict[str, Row] = json.loads(self.path.read_text()) if self.path and self.path.exists() else {}

    def add(self, key: str, found: Row) -> None:
        """Keep what was found, in the file at once: a run may be stopped."""
        from featgeo.files import write_whole

        self.found[key] = found
        if self.path:
            write_whole(self.path, json.dumps(self.found, indent=1))


def discoveries(qvalues: PValues, truth: dict[Pair, str]) -> Row:
    """Which planted dependences were found at `RATE`, and how many pairs without any were called dependent."""
    called = [pair for pair, q in qvalues.items() if q <= RATE]
    return {
        "kinds": sorted(truth[pair] for pair in called if pair in truth),
        "false": sum(pair not in truth for pair in called),
    }


def _found(contestant: str, table: str, seed: int, n: int, kept: Kept) -> Row:
    """What a contestant finds in the table "independent", "weak" or "clear" of this seed."""
    key = f"{contestant} / {table} / {n} / {seed}"
    if contestant.startswith("featgeo") or key not in kept.found:
        if table == "independent":
            frame, truth = independent_table(seed, n), {}
        else:
            planted = planted_table(seed, n, table)
            frame, truth = planted.frame, planted.truth
        start = time.process_time()
        found = discoveries(QVALUES[contestant](frame), truth)
        kept.add(key, {**found, "process_s": time.process_time() - start})
        print(f"  {key}: {len(kept.found[key]['kinds'])} true, {found['false']} false", file=sys.stderr, flush=True)
    return kept.found[key]


def false_discoveries(contestants: list[str], sizes: list[int], seeds: range, kept: Kept) -> list[Row]:
    """The share of tables of 30 independent columns in which anything is reported at `RATE`."""
    rows = []
    most = RATE + 3 * np.sqrt(RATE * (1 - RATE) / len(seeds))
    for n in sizes:
        for contestant in contestants:
            found = [_found(contestant, "independent", seed, n, kept) for seed in seeds]
            rows.append({
                "n": n,
                "contestant": contestant,
                "tables": len(seeds),
                "share_with_any": float(np.mean([one["false"] > 0 for one in found])),
                "at_most": float(most),
                "pairs_reported": sum(one["false"] for one in found),
                "s_per_table": float(np.mean([one["process_s"] for one in found])),
            })  # fmt: skip
    return rows


def power(contestants: list[str], sizes: list[int], seeds: range, kept: Kept) -> list[Row]:
    """The share of ten planted dependences found in tables of 30 columns; the share of discoveries that are true."""
    rows = []
    for n in sizes:
        for strength in STRENGTHS:
            for contestant in contestants:
                found = [_found(contestant, strength, seed, n, kept) for seed in seeds]
                true, false = (np.array([count(one) for one in found]) for count in (_n_true, _n_false))
                kinds = [kind for one in found for kind in one["kinds"]]
                rows.append({
                    "n": n,
                    "strength": strength,
                    "contestant": contestant,
                    "tables": len(seeds),
                    "power": len(kinds) / len(PLANTED) / len(seeds),
                    "true_share": float(true.sum() / max(true.sum() + false.sum(), 1)),
                    "false_share_of_a_table": float(np.mean(false / np.maximum(true + false, 1))),
                    **{kind: kinds.count(kind) / len(seeds) for kind in PLANTED},
                })  # fmt: skip
    return rows


def _n_true(found: Row) -> int:
    return len(found["kinds"])


def _n_false(found: Row) -> int:
    return int(found["false"])


def interactions(n: int, seeds: range) -> list[Row]:
    """How often the planted pair of 40 columns comes first, and how often anything is reported where there is none."""
    rows = []
    for kind in ("product", "xor", "threshold", None):
        ranks, reported, seconds = [], [], []
        for seed in seeds:
            table = interaction_table(seed, n, kind)
            start = time.process_time()
            ranking, n_reported = _interactions_of(table.frame)
            seconds.append(time.process_time() - start)
            ranks.append(ranking.index(table.planted) + 1 if table.planted in ranking else np.inf)
            reported.append(n_reported)
            print(f"  {kind}, seed {seed}: rank {ranks[-1]}, {n_reported} reported", file=sys.stderr, flush=True)
        rows.append({
            "planted": kind or "none",
            "tables": len(seeds),
            "first": float(np.mean(np.array(ranks) == 1)) if kind else None,
            "not_listed": float(np.mean(np.isinf(ranks))) if kind else None,
            "tables_with_any_reported": float(np.mean(np.array(reported) > 0)),
            "pairs_reported": int(np.sum(reported)),
            "s_per_table": float(np.mean(seconds)),
        })  # fmt: skip
    return rows


def _interactions_of(frame: Any) -> tuple[list[Pair], int]:
    """Pairs of columns in the order in which featgeo lists them, and how many it reports at `RATE`."""
    import featgeo

    listed = featgeo.explore(frame, target="y", verbose=0).interactions.to_frame()
    pairs = [frozenset(pair) for pair in zip(listed["a"], listed["b"], strict=True)]
    return pairs, int((listed["qvalue"] <= RATE).sum())
