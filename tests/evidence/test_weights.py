"""Weights count rows: a weight of 2 is the row twice, in statistics and in p-values, whatever the test."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import chi2_contingency

from featgeo import ModalDecomposition
from featgeo.evidence import conditional_independence_test, independence_test, mode_pvalues
from featgeo.evidence.halves import on_halves
from featgeo.evidence.shuffling import read_rows

LINE = ModalDecomposition(1, x_space="linear", y_space="linear", random_state=0)
RNG = np.random.default_rng(0)


def numbers(n, width=1):
    x = RNG.standard_normal((n, width))
    return x, x[:, 0] + 2 * RNG.standard_normal(n)


def labels(n):
    x = RNG.integers(0, 4, n)
    return np.array(list("abcd"))[x], np.array(list("uvw"))[(x + RNG.integers(0, 3, n)) % 3]


def counts_of(n):
    return RNG.integers(0, 4, n)


def twice(values, counts):
    """Each row as often as it counts."""
    index = np.repeat(np.arange(len(counts)), counts)
    return values.iloc[index] if isinstance(values, pd.DataFrame) else values[index]


@pytest.mark.parametrize(
    ("method", "draw", "n"),
    [
        ("smooth", numbers, 30),
        ("smooth", numbers, 900),
        ("smooth", lambda n: numbers(n, 3), 40),
        ("table", labels, 30),
        ("table", labels, 300),
        ("linear", lambda n: numbers(n, 2), 20),
        ("linear", lambda n: numbers(n, 2), 900),
        ("auto", lambda n: (pd.DataFrame({"a": RNG.random(n), "b": labels(n)[0]}), RNG.random(n)), 60),
    ],
)
def test_of_independence(method, draw, n):
    (x, y), counts = draw(n), counts_of(n)
    found = independence_test(x, y, method=method, sample_weight=counts, n_permutations=99)
    due = independence_test(twice(x, counts), twice(y, counts), method=method, n_permutations=99)
    assert found.method == due.method
    assert (found.statistic, found.pvalue) == pytest.approx((due.statistic, due.pvalue), rel=1e-10)


def test_learned_modes_are_tested_on_rows_none_of_whose_copies_taught_them():
    (x, y), counts = numbers(200), np.full(200, 2)
    options = {"method": "learned", "model": LINE, "n_permutations": 99}
    found = independence_test(x, y, sample_weight=counts, **options)
    assert found == independence_test(np.repeat(x, 2, axis=0), np.repeat(y, 2), **options)
    for seen, held_out in on_halves(*read_rows(counts, X=x, Y=y), lambda half: half, RNG, ""):
        assert not np.isin(seen[0].raw, held_out[0].raw).any()


@pytest.mark.parametrize(
    ("condition", "n"),
    [
        (lambda n: RNG.standard_normal(n), 60),
        (lambda n: RNG.standard_normal((n, 3)), 300),
        (lambda n: labels(n)[0], 60),
        (lambda n: None, 60),
        (lambda n: np.ones(n), 60),
    ],
)
@pytest.mark.parametrize("draw", [numbers, labels])
def test_given_s(draw, condition, n):
    (x, y), s, counts = draw(n), condition(n), counts_of(n)
    found = conditional_independence_test(x, y, s, sample_weight=counts, n_permutations=99)
    again = (twice(x, counts), twice(y, counts), None if s is None else twice(s, counts))
    due = conditional_independence_test(*again, n_permutations=99)
    assert found.method == due.method
    assert (found.statistic, found.pvalue) == pytest.approx((due.statistic, due.pvalue), rel=1e-10)


def test_of_modes():
    (x, y), counts = numbers(80, 2), counts_of(80)
    again = twice(x, counts), twice(y, counts)
    np.testing.assert_allclose(mode_pvalues(x, y, sample_weight=counts), mode_pvalues(*again), rtol=1e-10)


def test_a_table_of_counts_is_pearsons():
    counts = np.array([[30, 20, 25], [15, 40, 22]])
    rows, columns = np.indices(counts.shape)
    found = independence_test(rows.ravel(), columns.ravel(), method="table", sample_weight=counts.ravel())
    assert found.pvalue == pytest.approx(chi2_contingency(counts, correction=False).pvalue)


def test_weights_of_one_change_nothing_and_of_nothing_drop_rows():
    x, y = numbers(50)
    plain = independence_test(x, y)
    assert independence_test(x, y, sample_weight=np.ones(50)) == plain
    more = np.vstack([x, [[9.0]]]), np.append(y, 9.0)
    assert independence_test(*more, sample_weight=np.append(np.ones(50), 0)) == plain
    assert independence_test(torch.from_numpy(x), list(y), sample_weight=[1] * 50) == plain


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.full(10, 0.5), "sample_weight.*whole numbers.*0.5.*Pass counts"),
        (np.zeros(10), "sample_weight.*not all zero"),
        (np.ones(9), "one entry a row"),
        (-np.ones(10), "non-negative"),
        ([np.nan] * 10, "finite"),
    ],
)
def test_messages(weight, message):
    x = np.arange(10.0)
    for test in (independence_test, mode_pvalues, lambda *xy, **w: conditional_independence_test(*xy, x % 3, **w)):
        with pytest.raises(ValueError, match=message):
            test(x, x, sample_weight=weight)
