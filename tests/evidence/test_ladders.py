"""The parts of tests of independence, each by another way of computing it."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from featgeo import Options
from featgeo.evidence import blocks, shuffling
from featgeo.evidence.blocks import table_evidence
from featgeo.evidence.shuffling import Shuffling
from featgeo.features import scored
from featgeo.features.variables import Variable
from featgeo.geometry import FiniteJoint

RNG = np.random.default_rng(0)


def _rows(values):
    return Variable.seen(values, "X").rows(values)


def _correlates(features: np.ndarray, with_: np.ndarray) -> float:
    """The share of a function that features span, constants aside."""
    centred = with_ - with_.mean()
    return float(np.linalg.norm(features.T @ centred) / np.sqrt(len(features)) / np.linalg.norm(centred))


def test_a_number_climbs_by_cosines_of_its_ranks():
    x = RNG.lognormal(size=80)
    (ladder,) = blocks.smooth_ladders(_rows(x), seed=0)
    ranks = (np.argsort(np.argsort(x)) + 0.5) / 80
    assert ladder.rungs == (1, 2, 4, 8, 12)
    for i in range(12):
        wave = np.cos((i + 1) * np.pi * ranks)
        assert abs(np.corrcoef(ladder.features[:, i], wave)[0, 1]) == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(ladder.features.T @ ladder.features / 80, np.eye(12), atol=1e-10)


def test_rungs_of_several_columns_hold_their_first_waves_before_any_second():
    X = RNG.standard_normal((200, 3))
    single, together, *own = blocks.smooth_ladders(_rows(X), seed=0)
    ranks = (np.argsort(np.argsort(X, axis=0), axis=0) + 0.5) / 200
    for order in (1, 2):
        leading = single.features[:, : 3 * order]
        assert 3 * order in single.rungs
        for column in ranks.T:
            assert _correlates(leading, np.cos(order * np.pi * column)) == pytest.approx(1, abs=1e-6)
    assert _correlates(single.features[:, :3], np.cos(2 * np.pi * ranks[:, 0])) < 0.9
    assert single.rungs[:2] == (1, 2)  # leading combinations of the first waves
    gram = together.features.T @ together.features / 200
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-8)
    np.testing.assert_allclose(together.features.mean(axis=0), 0, atol=1e-10)
    assert together.rungs == (1, 2, 4, 8, 16, 24)
    assert [ladder.rungs for ladder in own] == [(1, 2)] * 3
    for ladder, column in zip(own, ranks.T, strict=True):  # the smoothest of each column by itself
        for order in (1, 2):
            assert _correlates(ladder.features[:, [order - 1]], np.cos(order * np.pi * column)) == pytest.approx(1)


def test_many_columns_have_no_ladders_of_their_own():
    for width, waves in ((8, (1, 2)), (20, (1,)), (25, None)):
        own = blocks.smooth_ladders(_rows(RNG.standard_normal((100, width))), seed=0)[2:]
        assert [ladder.rungs for ladder in own] == ([waves] * width if waves else [])


def test_the_kernel_of_all_columns_has_its_principal_components_strongest_first():
    """With a centre for each row they are the eigenvectors of the centred kernel of the scores."""
    frame = pd.DataFrame({"number": RNG.standard_normal(60), "label": RNG.choice(list("ab"), 60)})
    ladder = blocks.smooth_ladders(_rows(frame), seed=0)[1]
    scores = np.sqrt(12) * ((frame["number"].rank().to_numpy() - 0.5) / 60 - 0.5)
    marks = np.column_stack([frame["label"] == label for label in "ab"]) / np.sqrt(2)
    scores = np.column_stack([scores, marks])  # two rows of other labels are as far apart as one spread of a number
    gamma = Options().test_gamma / max(1.0, scores.var(axis=0).sum())
    kernel = np.exp(-gamma * np.square(scores[:, None] - scores[None]).sum(axis=2))
    centring = np.eye(60) - 1 / 60
    energies, vectors = np.linalg.eigh(centring @ kernel @ centring)
    for i in range(4):
        assert abs(vectors[:, -1 - i] @ ladder.features[:, i]) / np.sqrt(60) == pytest.approx(1, abs=1e-4), energies


def test_a_missing_number_is_average_in_waves_and_told_apart():
    x = RNG.standard_normal(80)
    x[:20] = np.nan
    (ladder,) = blocks.smooth_ladders(_rows(x), seed=0)
    assert _correlates(ladder.features[:, : ladder.rungs[0]], np.isnan(x).astype(float)) == pytest.approx(1, abs=1e-6)


def test_labels_have_indicators_and_rare_ones_share_one():
    codes = np.concatenate([np.repeat(np.arange(40), 3), [0] * 10])
    marks = scored.indicators(scored.Symbols(codes, 40), 32)
    assert marks.shape == (130, 32)
    np.testing.assert_array_equal(marks.sum(axis=1), codes < 32)
    np.testing.assert_array_equal(marks[:, 0], codes == 0)  # the most frequent


def test_fourth_moments_of_a_ladder():
    features = RNG.standard_normal((50, 4))
    ladder = blocks.Ladder(features, (1, 3, 4))
    expected = ((features**4).mean(axis=0) / features.var(axis=0) ** 2).max()
    assert shuffling.kurtosis(features) == pytest.approx(expected, 0.1)
    assert shuffling.kurtosis(2 * features) == pytest.approx(shuffling.kurtosis(features))
    expected = [(np.square(features[:, :k]).sum(axis=1) ** 2).mean() for k in (1, 3, 4)]
    np.testing.assert_allclose(ladder.rung_kurtosis, expected)


@pytest.mark.parametrize("x_rungs", [[(1, 2), (1, 3)], [(1, 3), (2,), (1,), (1, 2), (1,)]])
def test_surprise_is_the_weighted_harmonic_mean_of_the_tails_of_all_leading_blocks(x_rungs):
    """The i-th rung counts for 1 / i of the first; two ladders of all columns for a half, those of single ones, too."""
    ends = np.cumsum([0, *(rungs[-1] for rungs in x_rungs)])
    moments = RNG.standard_normal((3, ends[-1], 4))
    shares = [1 / 2, 1 / 2] if len(x_rungs) == 2 else [1 / 4, 1 / 4, 1 / 6, 1 / 6, 1 / 6]
    for moment, found in zip(moments, blocks.surprise(moments, x_rungs, [(2, 4)]), strict=True):
        inverse = 0.0
        for start, rungs, share in zip(ends, x_rungs, shares, strict=False):
            for i, j in product(range(len(rungs)), range(2)):
                k, m = rungs[i], (2, 4)[j]
                tail = chi2.sf(np.square(moment[start : start + k, :m]).sum(), k * m)
                of_x, of_y = share / (i + 1) / (1.5 if len(rungs) == 2 else 1), 1 / (j + 1) / 1.5
                inverse += of_x * of_y / tail
        assert found == pytest.approx(np.log10(inverse), abs=1e-10)


def test_cross_moments_have_variance_1_over_all_arrangements():
    f, g = (scored.orthonormal(RNG.standard_normal((6, 2)))[0] for _ in range(2))
    orders = np.array(list(permutations(range(6))))
    moments = blocks.cross_moments(f, g[orders])
    assert moments.shape == (720, 2, 2)
    np.testing.assert_allclose(np.square(moments).mean(axis=0), 1, atol=1e-10)
    np.testing.assert_allclose(moments[0], np.sqrt(5) / 6 * f.T @ g)


def test_pvalues_count_arrangements_and_ties(monkeypatch):
    draws = [np.array([0.0, 1]), np.array([2.0, 3])]
    assert shuffling.permutation_pvalue(2.0, draws, complete=True) == 0.5
    assert shuffling.permutation_pvalue(2.0, draws, complete=False) == 3 / 5
    for scale in (1e-3, 1.0, 1e9):  # a sum in another order is a tie, at any size
        tied = np.full(9, scale * (1 - 1e-12))
        assert shuffling.permutation_pvalue(scale, [tied], complete=False) == 1
    assert shuffling.permutation_pvalue(1e9, [np.full(9, 1e9 - 1e4)], complete=False) == 0.1
    monkeypatch.setattr(shuffling, "REACHED", 2)
    assert shuffling.permutation_pvalue(2.0, map(np.array, [[3.0], [0, 5, 9]]), complete=False) == 2 / 3
    assert shuffling.permutation_pvalue(2.0, map(np.array, [[3.0, 0], [0, 0]]), complete=False) == 2 / 5
    assert shuffling.permutation_pvalue(2.0, [np.array([3.0, 3, 3, 0])], complete=True) == 3 / 4


@pytest.mark.parametrize(("n", "wanted", "complete"), [(4, 23, True), (4, 22, False), (5, 119, True)])
def test_all_orders_are_tried_where_they_are_no_more_than_asked_for(n, wanted, complete):
    every, groups = Shuffling(wanted, np.random.default_rng(0)), [np.arange(n)]
    assert every.is_complete(groups) is complete
    orders = np.concatenate(list(every.orders(groups)))
    assert len(orders) == (wanted + 1 if complete else wanted)
    np.testing.assert_array_equal(np.sort(orders, axis=1), np.tile(np.arange(n), (len(orders), 1)))
    assert len({tuple(order) for order in orders}) == (len(orders) if complete else pytest.approx(18, abs=6))


@pytest.mark.parametrize("wanted", [11, 40])
def test_orders_stay_within_groups(wanted):
    codes = np.array([0, 1, 0, 1, 2, 1])
    groups = scored.Symbols(codes, 3).groups
    orders = np.concatenate(list(Shuffling(wanted, np.random.default_rng(0)).orders(groups)))
    np.testing.assert_array_equal(codes[orders], np.tile(codes, (len(orders), 1)))
    assert len({tuple(order) for order in orders}) == 12 or wanted < 12


def test_random_orders_come_in_batches_of_bounded_size(monkeypatch):
    monkeypatch.setattr(shuffling, "BATCH_ENTRIES", 100)
    batches = list(Shuffling(10, np.random.default_rng(0)).orders([np.arange(30)]))
    assert [len(batch) for batch in batches] == [3, 3, 3, 1]


def test_evidence_of_all_arrangements_is_exact():
    x = np.arange(5.0)

    def of_orders(orders):
        return (x * x[orders]).sum(axis=1)

    found = Shuffling(500, np.random.default_rng(0)).evidence(of_orders, [np.arange(5)], "sum, ")
    assert found.statistic == 30
    assert found.pvalue == 1 / 120
    assert found.method == "sum, all arrangements of the rows"


def test_pearsons_statistic_is_n_times_the_energy_of_the_table():
    x, y = RNG.integers(0, 4, 90), RNG.integers(0, 3, 90)
    expected = 90 * FiniteJoint.from_samples(x=x, y=y).mean_square_contingency()
    found = table_evidence(scored.Symbols(x, 4), scored.Symbols(y, 3), Shuffling(1, RNG)).statistic
    assert found == pytest.approx(expected, abs=1e-9)


def test_the_sum_of_squares_of_a_spectrum_from_pairs_of_rows(monkeypatch):
    a, b = RNG.standard_normal((2, 12, 2))
    products = (a[:, :, None] * b[:, None, :]).reshape(12, 4)
    gram = products @ products.T
    pairs = [gram[i, j] ** 2 for i in range(12) for j in range(12) if i != j]
    assert blocks._sum_of_squares(a, b) == pytest.approx(np.mean(pairs))
    monkeypatch.setattr(blocks, "MOST_ROWS", 7)
    pairs = [gram[i, j] ** 2 for i in range(7) for j in range(7) if i != j]
    assert blocks._sum_of_squares(a, b) == pytest.approx(np.mean(pairs))
