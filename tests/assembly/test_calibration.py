"""Calibration by held-out rows: maximum likelihood for labels, observed frequencies for numbers, atoms included."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from scipy.special import expit
from scipy.stats import kstest
from support import support_of_numbers

import featgeo as fg
from featgeo import Conditional
from featgeo.assembly.calibration import Calibration, spread
from featgeo.assembly.links import Along, ExponentialLink, LinearLink, Recalibration, Support


@pytest.mark.parametrize("m", [2, 4])
def test_the_softmax_link_meets_the_equations_of_maximum_likelihood(m):
    """Residuals of the labels are orthogonal to constants, and to features up to the unit penalty of their weights."""
    rng = np.random.default_rng(m)
    f = rng.standard_normal((600, 2)) * [1.0, 30.0] + [0.0, 5.0]
    label = np.argmax(f @ rng.standard_normal((2, m)) / [1.0] + rng.gumbel(size=(600, m)) * 5, axis=1)
    mass = rng.dirichlet(np.full(m, 5.0))  # the prior of the fit; these rows have another, and theirs counts
    support = Support("labels", np.arange(m), mass, np.zeros((m, 2)))
    link = ExponentialLink.fit(f, label, support)
    happened = np.eye(m)[label]
    residual = happened - Conditional(support, f, link=link).proba()
    np.testing.assert_allclose(residual.mean(axis=0), 0, atol=2e-4)
    scale = f.std(axis=0)
    penalty = link.weight * scale
    gradient = (residual.T @ (f / scale))[1 if m == 2 else 0 :]
    np.testing.assert_allclose(gradient, penalty[1 if m == 2 else 0 :], atol=600 * 2e-4)
    assert (np.abs(penalty).max(axis=0) > 0.1).all()


def test_labels_that_no_row_shows_are_all_but_impossible():
    f = np.random.default_rng(0).standard_normal((100, 1))
    support = Support("labels", np.arange(3), np.array([0.2, 0.5, 0.3]), np.zeros((3, 1)))
    link = ExponentialLink.fit(f, 2 * (f[:, 0] > 0).astype(int), support)
    assert (Conditional(support, f, link=link).proba()[:, 1] < 1e-4).all()


def _numbers(n: int, seed: int, atom: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers with a share of zeros, and a feature that tells them half as surely as it seems to."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < atom, 0.0, rng.standard_normal(n))
    return y, 0.8 * np.sign(y + rng.standard_normal(n))[:, None]


@pytest.mark.parametrize("atom", [0.0, 0.4])
def test_frequencies_are_true_on_new_rows(atom):
    y, f = _numbers(4000, 0, atom)
    support = support_of_numbers(y, lambda index: np.sign(y[index])[:, None])
    calibration = Calibration.fit(support, f, y)
    new, new_f = _numbers(4000, 1, atom)
    share = np.random.default_rng(7).random(4000)
    plain = Conditional(support, new_f).pit(new, share)
    given = Conditional(support, new_f, None, calibration.link, calibration.recalibration)
    one_percent = 1.63 * np.sqrt(1 / 4000 + 1 / 4000)  # of two samples: the rows that calibrate are finite, too
    assert kstest(plain, "uniform").statistic > 1.2 * one_percent
    assert kstest(given.pit(new, share), "uniform").statistic < one_percent


def _uneven(n: int, seed: int, uneven: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers about 2 x, spread more where x is far from 0, and x."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return 2 * x + (0.4 + uneven * np.abs(x)) * rng.standard_normal(n), x[:, None]


def _held_by_fifth(given: Conditional, y: np.ndarray) -> np.ndarray:
    low, high = given.interval(0.9).T
    fifths = np.array_split(np.argsort(given.mean()), 5)
    return np.array([np.mean(((low <= y) & (y <= high))[part]) for part in fifths])


def test_intervals_hold_as_often_for_small_predictions_as_for_large_ones():
    (y, f), (new, new_f) = (_uneven(5000, seed, 1.2) for seed in (0, 1))
    support = support_of_numbers(y, lambda index: 2 * y[index][:, None] / np.var(y))
    right = Calibration.fit(support, f, y)
    pit = Conditional(support, f, link=right.link).pit(y)
    for_all = Conditional(support, new_f, link=right.link, recalibration=Recalibration.fit(pit))
    assert np.ptp(_held_by_fifth(for_all, new)) > 0.1  # the link's spread goes one way only
    held = _held_by_fifth(right.given(support, new_f), new)
    assert np.all(np.abs(held - 0.9) < 0.05)
    given, at = right.given(support, new_f[:50]), np.linspace(-3, 3, 7)
    np.testing.assert_allclose(given.quantile(given.cdf(at)[:, 3])[np.arange(50), np.arange(50)], 0.0, atol=1e-9)
    fine = np.linspace(-8, 8, 40_001)
    squares = (given.cdf(fine)[0] - (new[0] <= fine)) ** 2
    assert given.crps(new[:50])[0] == pytest.approx(np.trapezoid(squares, fine), rel=1e-3)


def test_what_predictions_do_not_show_is_not_followed():
    rng = np.random.default_rng(3)
    f = rng.standard_normal((2000, 1))
    found = [Along.fit(rng.random(2000), f, f[:, 0]) for _ in range(40)]
    moved = np.array([np.zeros(2) if one is None else np.abs(one.moves).max(axis=1) for one in found])
    assert np.mean(moved == 0) > 0.4  # P(chi-square of 4 degrees <= 4) is 0.59
    # Groups of 200 rows alone are off by 0.12 and 0.06 on average, the largest of ten by twice that.
    assert np.all(moved.mean(axis=0) < [0.1, 0.05])


def test_shifts_and_stretches_of_log_odds_along_predictions_are_found():
    rng = np.random.default_rng(4)
    f, n = rng.uniform(-1, 1, (20_000, 1)), 20_000
    odds = 0.2 * f[:, 0] + np.exp(0.1 * f[:, 0] ** 2 - 0.1 / 3) * rng.logistic(size=n)
    along = Along.fit(expit(odds), f, f[:, 0])
    shift, stretch = (moved[:, 0].numpy() for moved in along.of(torch.from_numpy(f)))
    assert np.abs(shift - 0.2 * f[:, 0]).max() < 0.1
    assert np.abs(np.log(stretch) - (0.1 * f[:, 0] ** 2 - 0.1 / 3)).max() < 0.05
    right = along.right(expit(odds)[:, None], f)
    np.testing.assert_allclose(along.wrong(right, f)[:, 0], expit(odds), rtol=1e-12)


def test_quantiles_probabilities_and_means_are_of_one_distribution():
    y, f = _numbers(3000, 0, 0.3)
    support = support_of_numbers(y, lambda index: np.sign(y[index])[:, None])
    calibration = Calibration.fit(support, f, y)
    given = Conditional(support, f[:5], None, calibration.link, calibration.recalibration)
    ends = support.ends[:, 1]
    np.testing.assert_allclose(given.cdf(ends), np.cumsum(given.proba(), axis=1), atol=1e-12)
    np.testing.assert_allclose(given.mean(), given.proba() @ support.values, atol=1e-12)
    levels = np.linspace(0.02, 0.98, 25)
    for row, at in enumerate(given.quantile(levels)):
        reached = given.cdf(at)[row]
        assert (reached >= levels - 1e-9).all()
        np.testing.assert_allclose(reached[at != 0], levels[at != 0], atol=1e-9)
    flat = Conditional(support, f[:5], lambda y: np.ones(len(y)), calibration.link, calibration.recalibration)
    np.testing.assert_allclose(flat.quantile(levels), given.quantile(levels), atol=0.05)  # by another way


def test_maps_go_there_and_back():
    recalibration = Recalibration.fit(np.random.default_rng(0).beta(0.5, 2, 2000))
    at = np.linspace(0, 1, 50)
    np.testing.assert_allclose(recalibration.backward(recalibration.forward(at)), at, atol=1e-6)
    np.testing.assert_array_equal(recalibration.forward(np.array([0.0, 1.0])), [0, 1])


def test_few_rows_and_vectors_keep_the_formula():
    support = support_of_numbers(np.arange(100.0), lambda index: index[:, None] * 1.0)
    few = Calibration.fit(support, np.zeros((49, 1)), np.arange(49.0))
    vectors = Support("rows", np.zeros((3, 2)), np.full(3, 1 / 3), np.zeros((3, 1)))
    for found in (few, Calibration.fit(vectors, np.zeros((200, 1)), np.zeros(200, dtype=int))):
        assert found.recalibration is None
        assert found.link == LinearLink()


def test_ties_are_spread_evenly():
    np.testing.assert_allclose(spread(np.array([3.0, 1.0, 3.0, 2.0, 3.0])), [1 / 6, 1 / 2, 3 / 6, 1 / 2, 5 / 6])


def test_a_calibration_that_is_put_off_is_the_one_of_the_fit():
    rng = np.random.default_rng(5)
    x = rng.standard_normal(600)
    y = x + rng.standard_normal(600)
    with fg.options(calibrating_rows=10**6):  # more than there are: distributions keep the formula
        plain = fg.ModalDecomposition(2, random_state=0).fit(x, y)
    model = fg.ModalDecomposition(2, random_state=0).fit(x, y)
    with fg.options(calibrating_rows=10**6):
        late = copy.deepcopy(model).given(x).proba()
    formula = plain.given(x, calibrated=False).proba()
    np.testing.assert_array_equal(plain.given(x).proba(), formula)
    np.testing.assert_array_equal(late, model.given(x).proba())
    np.testing.assert_array_equal(late, pickle.loads(pickle.dumps(model)).given(x).proba())  # noqa: S301 - our own
    assert np.abs(late - formula).max() > 1e-4
    with pytest.raises(AttributeError, match="lnik"):
        _ = model.calibration_.lnik
