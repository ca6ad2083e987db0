"""Whole tables: what cannot be explored, and what nobody should ask of an exploration."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from hostile_case import Case

from featgeo import Exploration, explore

RNG = np.random.default_rng(0)
A = RNG.normal(size=200)
FRAME = pd.DataFrame(
    {"a": A, "b": A + RNG.normal(size=200), "label": np.where(A > 0, "p", "n"), "one": 1, "id": range(200)}
)


@cache
def explored() -> Exploration:
    return explore(FRAME, verbose=0)


def strength(frame: pd.DataFrame) -> float:
    return explore(frame[["a", "b"]], verbose=0).pair("a", "b").summary["strength"]


# fmt: off
CASES = [
    Case("explore: None", lambda: explore(None), raises="table|None"),
    Case("explore: a number", lambda: explore(3), raises="table|int"),
    Case("explore: no rows", lambda: explore(FRAME[:0]), raises="row"),
    Case("explore: no columns", lambda: explore(FRAME[[]]), raises="column"),
    Case("explore: one row", lambda: explore(FRAME[:1]), raises="must have a column that varies"),
    Case("explore: constants", lambda: explore(FRAME[["one"]]), raises="must have a column that varies"),
    Case("explore: a file that is not there", lambda: explore("/no/such/table.csv"), raises="/no/such/table.csv"),
    Case("explore: a target that is not there", lambda: explore(FRAME, target="lable"), raises="'label'"),
    Case("explore: a target that does not vary", lambda: explore(FRAME, target="one"), raises="must vary"),
    Case("explore: the target given", lambda: explore(FRAME, target="a", given="a"), raises="is both"),
    Case("explore: types of no column", lambda: explore(FRAME, types={"z": "number"}), raises="must name columns"),
    Case("explore: types of no kind", lambda: explore(FRAME, types={"a": "text"}), raises="must be one of"),
    Case("explore: labels as numbers", lambda: explore(FRAME, types={"label": "number"}), raises="none of its 200 values"),
    Case("explore: a rate of 2", lambda: explore(FRAME, rate=2), raises="`rate` must be"),
    Case("explore: verbose 7", lambda: explore(FRAME, verbose=7), raises="`verbose` must be"),
    Case("explore: an argument that is none", lambda: explore(FRAME, colour="red"), raises="no argument 'colour'"),
    Case("explore: rows in another order", lambda: strength(FRAME[::-1]), gives=lambda: strength(FRAME)),
    Case("explore: an index of texts", lambda: strength(FRAME.set_index("label")), gives=lambda: strength(FRAME)),
    Case("explore: numbers as texts", lambda: strength(FRAME.astype({"a": str})), gives=lambda: strength(FRAME)),
    Case("explore: float32 twice over", lambda: strength(FRAME.astype({"a": np.float32}).astype({"a": float})), gives=lambda: strength(FRAME.astype({"a": np.float32}))),
    Case("explore: like a table with other columns", lambda: explore(FRAME[["a"]], like=explored()), raises="'b'"),
    Case("Exploration: a pair of one", lambda: explored().pair("a", "a"), raises="two columns"),
    Case("Exploration: a pair with no column", lambda: explored().pair("a", "B"), raises="Did you mean 'b'"),
    Case("Exploration: a pair with a number", lambda: explored().pair("a", 3), raises="no column 3"),
    Case("Exploration: a pair with a constant", lambda: explored().pair("a", "one"), raises="not compared.*constant"),
    Case("Exploration: a pair with an identifier", lambda: explored().pair("id", "a"), raises="types={'id': 'number'}"),
    Case("Exploration: given neither of a pair", lambda: explored().pair("a", "b").given("label"), raises="Name one of the two"),
    Case("Exploration: shares of many values", lambda: explored().pair("a", "b").shares("a"), raises="Use given"),
    Case("Exploration: merged with a frame", lambda: explored().merge(FRAME), raises="merges with an exploration"),
    Case("Exploration: merged with other cells", lambda: explored().merge(explore(2 * FRAME[["a", "b"]])), raises="like=first"),
    Case("Exploration: a map of no columns", lambda: explored().heatmap(0), raises="`most` must be"),
    Case("Exploration: a graph of a text", lambda: explored().graph("all"), raises="`most` must be"),
    Case("Exploration: a share of 2", lambda: explored().least_set(2), raises="`share` must be"),
    Case("Exploration: saved to a folder", lambda: explored().save("/"), raises="folder|directory"),
]
# fmt: on
