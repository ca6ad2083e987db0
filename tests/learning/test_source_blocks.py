"""Functions of each source and of several together: which rows carry which, and what they are made of."""

import numpy as np
from numpy.testing import assert_allclose

from featgeo.features.variables import Variable
from featgeo.learning.data import Incomplete
from featgeo.learning.setting import Plan
from featgeo.learning.source_blocks import SourceBlocks
from featgeo.learning.sources import worthwhile

GROUPS = (("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c"))


def blocks_of(values, missing=None, **options):
    missing = missing or {}
    n = len(values["y"])
    there = {name: ~missing.get(name, np.zeros(n, dtype=bool)) for name in values}
    rows = {name: Variable.seen(z[there[name]], name).rows(z[there[name]]) for name, z in values.items()}
    where = {name: np.where(mask, np.cumsum(mask) - 1, -1) for name, mask in there.items()}
    sources = [name for name in values if name != "y"]
    return SourceBlocks(Incomplete(rows, where), dict.fromkeys(sources, "auto"), "auto", GROUPS, Plan("closed"))


def numbers(n, seed):
    a, b, c, noise = np.random.default_rng(seed).normal(size=(4, n))
    return {"a": a, "b": b, "c": c, "y": a * b + 0.3 * c + 0.3 * noise}


def test_rows_carry_the_blocks_of_the_sources_that_they_have():
    missing = {"a": np.arange(90) % 3 == 0, "y": np.arange(90) % 9 == 1}
    blocks = blocks_of(numbers(90, 0), missing)
    names = [*(name for group in GROUPS[:3] for name in blocks.of_group(group)), blocks.products(("a", "b")), "y"]
    chunks = {frozenset(chunk): chunk for chunk in blocks.features(names)}
    everything = set(names)
    assert set(chunks) == {
        frozenset(everything), frozenset(everything - {"y"}), frozenset(everything - {"a", "a x b"}),
    }  # fmt: skip
    assert sum(len(next(iter(chunk.values()))) for chunk in chunks.values()) == 90


def test_products_are_those_of_functions_of_each_source():
    blocks = blocks_of(numbers(200, 1))
    for source in ("a", "b"):
        blocks.of_group((source,))
    name = blocks.products(("a", "b"))
    index = np.arange(50)
    chunk = blocks.features_of(["a", "b", name], index)
    first, second = (np.hstack([map_(chunk[block]) for block, map_ in factor]) for factor in blocks.factors[name])
    products = np.einsum("ni,nj->nij", first, second).reshape(50, -1)
    assert_allclose(chunk[name], products, atol=1e-12)
    assert_allclose(blocks.spaces[name](blocks.data.take(index, "a", "b")), products, atol=1e-9)  # as new rows have it


def test_only_those_interactions_are_tried_that_held_out_rows_want():
    blocks = blocks_of(numbers(600, 2))
    for source in "abc":
        blocks.of_group((source,))
    wanted = worthwhile(blocks, GROUPS[3:])
    assert wanted[0] == "a x b"
    assert "b x c" not in wanted
    assert worthwhile(blocks, GROUPS[4:5]) == ["a x c"]  # one at least, for the level to judge


def test_rows_of_the_fit_count_with_features_learned_without_them():
    rng, n = np.random.default_rng(3), 400
    values = {"a": rng.normal(size=(n, 6)), "b": rng.normal(size=n), "y": rng.integers(0, 2, n)}
    blocks = blocks_of(values)
    name = blocks.of_group(("a",))[0]
    index = np.arange(n)
    own = blocks.features_of([name], index)[name][:, 0]
    fitted = blocks.spaces[name](blocks.data.take(index, "a"))[:, 0]
    unseen, remembered = (np.corrcoef(feature, values["y"])[0, 1] for feature in (own, fitted))
    # Noise that all rows remember was not there for those that were left out.
    assert np.sign(remembered) * unseen < abs(remembered) / 4
