"""Each block of functions is whitened once for each set of rows, and a fit walks through few files."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import featgeo
from featgeo import ModalDecomposition
from featgeo.geometry import spans

ROOM = str(Path(featgeo.__file__).parent)


@pytest.fixture(scope="module")
def table():
    """Numbers and labels, of which two act together."""
    rng = np.random.default_rng(0)
    n = 520  # enough for trees to be tried
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(list("xyz"), n)})
    return frame, frame["a"] * frame["b"] + (frame["c"] == "x") + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("n_modes", [2, "auto"])
def test_no_gram_matrix_is_whitened_twice(table, n_modes, monkeypatch):
    whitened, whiten = [], spans.flag_from_gram

    def counting(gram, sizes):
        whitened.append(gram.tobytes())
        return whiten(gram, sizes)

    monkeypatch.setattr(spans, "flag_from_gram", counting)
    ModalDecomposition(n_modes, random_state=0).fit(*table)
    assert len(whitened) > 10
    assert len(set(whitened)) == len(whitened)


def test_a_fit_walks_through_twenty_files_at_most(table):
    ModalDecomposition(2, random_state=0).fit(*table)  # what is imported late is imported
    entered = set()

    def see(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(ROOM):
            entered.add(frame.f_code.co_filename)

    gc.collect()
    gc.disable()  # what other tests left is not to be finished here
    sys.setprofile(see)
    try:
        ModalDecomposition(2, random_state=0).fit(*table)
    finally:
        sys.setprofile(None)
        gc.enable()
    assert 5 < len(entered) <= 20, sorted(entered)
