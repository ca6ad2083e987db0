"""Information in nats: exact for tables, close to closed forms elsewhere, and as unsure as it says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import digamma, gammaln

import featgeo as fg
from featgeo.features.variables import Variable
from featgeo.models.information import Told


def _gaussian(n: int, rho: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    x, noise = np.random.default_rng(seed).standard_normal((2, n))
    return x, rho * x + np.sqrt(1 - rho**2) * noise


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_of_bell_curves_it_is_the_closed_form(rho):
    x, y = _gaussian(2000, rho, 30_001)
    found, truth = fg.mutual_information(x, y, random_state=0), -np.log(1 - rho**2) / 2
    assert found.estimate == pytest.approx(truth, rel=0.1, abs=0.02)
    assert found.interval[0] <= truth <= found.interval[1]
    assert found.interval[0] <= found.estimate <= found.interval[1]


def test_several_columns_add_up_by_the_chain_rule():
    rng = np.random.default_rng(30_002)
    rho = np.array([0.8, 0.5])
    x = rng.standard_normal((1500, 2))
    y = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal((1500, 2))
    truth = -np.log(1 - rho**2).sum() / 2
    assert fg.mutual_information(x, y, random_state=0).estimate == pytest.approx(truth, rel=0.15)


def test_vectors_tell_by_their_lengths_where_no_column_tells_of_another():
    freedom, d, n = 2, 2, 2000  # Student's law: lines are uncorrelated, lengths share their scale
    rng = np.random.default_rng(30_008)
    both = rng.standard_normal((n, 2 * d)) / np.sqrt(rng.chisquare(freedom, (n, 1)) / freedom)
    halves = np.array([freedom, freedom + d, freedom + d, freedom + 2 * d]) / 2
    truth = np.array([1, -1, -1, 1]) @ (gammaln(halves) - halves * digamma(halves))
    found = fg.mutual_information(both[:, :d], both[:, d:], random_state=0)
    assert found.estimate == pytest.approx(truth, abs=0.05)
    assert found.interval[0] <= truth <= found.interval[1]


def test_vectors_that_have_nothing_in_common_tell_nothing():
    x, y = np.random.default_rng(30_009).standard_normal((2, 1500, 3))
    found = fg.mutual_information(x, y, random_state=0)
    assert found.estimate < 0.01
    assert found.interval[0] == 0


def test_labels_and_numbers_mix():
    rng = np.random.default_rng(30_003)
    label, noise = rng.integers(0, 3, 3000), rng.standard_normal(3000)
    at = np.linspace(-8, 10, 4001)
    density = np.exp(-((at[:, None] - np.arange(3)) ** 2) / 2).mean(axis=1) / np.sqrt(2 * np.pi)
    truth = np.trapezoid(-density * np.log(density), at) - np.log(2 * np.pi * np.e) / 2
    words = np.array(["a", "b", "c"])[label]
    for pair in ((words, label + noise), (label + noise, words)):
        assert fg.mutual_information(*pair, random_state=0).estimate == pytest.approx(truth, abs=0.04)


def test_counts_are_exact_but_for_their_known_bias():
    rng = np.random.default_rng(0)
    table = rng.integers(5, 60, (4, 3))
    x, y = (np.repeat(part.ravel(), table.ravel()) for part in np.indices(table.shape))
    plain, n = fg.FiniteJoint(table).mutual_information(), table.sum()
    assert fg.mutual_information(x, y).estimate == pytest.approx(plain - (12 - 4 - 3 + 1) / (2 * n), abs=1e-12)
    model = fg.ModalDecomposition("auto", random_state=0).fit(x, y)
    assert model.mutual_information_ == fg.mutual_information(x, y)


def test_intervals_of_counts_cover_and_estimates_are_unbiased():
    law = np.random.default_rng(5).dirichlet(np.ones(12)).reshape(4, 3)
    truth = fg.FiniteJoint(law).mutual_information()
    found = []
    for seed in range(31_000, 31_200):
        cell = np.random.default_rng(seed).choice(12, 500, p=law.ravel())
        found.append(fg.mutual_information(cell // 3, cell % 3))
    estimates = np.array([one.estimate for one in found])
    assert estimates.mean() == pytest.approx(truth, abs=3 * estimates.std() / np.sqrt(len(found)))
    assert np.mean([one.interval[0] <= truth <= one.interval[1] for one in found]) > 0.9
    assert np.mean([one.standard_error for one in found]) == pytest.approx(estimates.std(), rel=0.2)


def test_given_s_only_what_is_beyond_it_counts():
    rng = np.random.default_rng(30_004)
    s, own, noise = rng.standard_normal((3, 1500))
    apart = fg.conditional_mutual_information(s + own, s + noise, s, random_state=0)
    assert apart.interval[0] == pytest.approx(0, abs=0.01)
    assert apart.estimate < 0.03
    together = fg.conditional_mutual_information(s + own, s + own + noise, s, random_state=0)
    assert together.estimate == pytest.approx(np.log(2) / 2, rel=0.2)


def test_given_s_counts_are_those_of_its_strata():
    rng = np.random.default_rng(1)
    s = rng.integers(0, 2, 4000)
    x = np.where(rng.random(4000) < 0.7, s, 1 - s)
    y = np.where(rng.random(4000) < 0.8, x, s)
    found = fg.conditional_mutual_information(x, y, s)
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, (s, x, y), 1)
    exact = sum(part.sum() / 4000 * fg.FiniteJoint(part).mutual_information() for part in counts)
    assert found.estimate == pytest.approx(exact, abs=3 / 4000)


def test_weights_count_rows():
    x, y = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    twice = fg.mutual_information(x, y, sample_weight=[30, 10, 10, 30])
    assert twice == fg.mutual_information(np.repeat(x, [30, 10, 10, 30]), np.repeat(y, [30, 10, 10, 30]))


def test_models_tell_it_and_keep_it(tmp_path):
    x, y = _gaussian(1500, 0.7, 30_005)
    for model in (fg.ModalDecomposition("auto", random_state=0), fg.FeatureRegressor(random_state=0)):
        told = model.fit(x, y).mutual_information_
        assert told.estimate == pytest.approx(-np.log(1 - 0.49) / 2, rel=0.15)
        model.save(tmp_path / "model")
        assert fg.load(tmp_path / "model").mutual_information_ == told
    assert told.to_dict()["estimate"] == told.estimate
    assert told.to_frame()["standard_error"].tolist() == [told.standard_error]
    assert "nats" in repr(told)


def test_pointwise_information_is_that_of_each_row_and_finds_wrong_labels():
    rng = np.random.default_rng(30_006)
    x = rng.standard_normal(3000)
    label = np.where(x + 0.3 * rng.standard_normal(3000) > 0, "high", "low")
    wrong = np.flatnonzero(np.abs(x) > 1.5)[:20]
    noisy = label.copy()
    noisy[wrong] = np.where(label[wrong] == "high", "low", "high")
    model = fg.FeatureClassifier(random_state=0).fit(pd.DataFrame({"x": x}), noisy)
    told = model.pointwise_information(pd.DataFrame({"x": x}), noisy)
    assert set(wrong) <= set(np.argsort(told)[:60])  # 2 % of the rows
    assert told.mean() == pytest.approx(model.mutual_information_.estimate, abs=0.03)
    x, y = _gaussian(1000, 0.7, 30_007)
    continuous = fg.ModalDecomposition("auto", random_state=0).fit(x, y)
    alone = fg.Conditional(continuous.given(x)._support, np.zeros((1000, continuous.n_modes_))).logpdf(y)
    np.testing.assert_allclose(continuous.pointwise_information(x, y), continuous.given(x).logpdf(y) - alone)


def test_what_tells_nothing_is_refused():
    with pytest.raises(ValueError, match="never saw"):
        fg.ModalDecomposition(random_state=0).fit(["a", "b"] * 50, ["u", "v"] * 50).pointwise_information(["a"], ["w"])
    rng = np.random.default_rng(0)
    model = fg.ModalDecomposition(1, random_state=0).fit(rng.random(200), rng.random((200, 2)))
    with pytest.raises(AttributeError, match="several columns"):
        _ = model.mutual_information_


def test_tables_that_are_too_thin_for_counts_are_not_counted():
    words = [f"w{i}" for i in range(100)]
    rows = Variable.seen(words, "X").rows(words)
    assert Told.by_counts(rows, rows) is None
