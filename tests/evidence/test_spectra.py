"""Held-out spectra: intervals cover, p-values hold their level, and real modes are told from chance."""

import contextlib

import numpy as np
import pytest
from scipy.stats import norm

from featgeo import ModalDecomposition
from featgeo.evidence import HeldOutSpectrum, held_out_spectrum
from featgeo.evidence.blocks import LIMIT_ROWS
from featgeo.evidence.halves import studentised


def linear(n_modes):
    return ModalDecomposition(n_modes, solver="closed", x_space="linear", y_space="linear")


def related(seed, n, *correlations, noise=3):
    """Vectors with the given canonical correlations and some columns that have none."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((2, n, len(correlations) + noise))
    for i, rho in enumerate(correlations):
        Y[:, i] = rho * X[:, i] + np.sqrt(1 - rho**2) * Y[:, i]
    return X, Y


def test_real_modes_are_told_from_chance():
    spectrum = held_out_spectrum(*related(0, 600, 0.8, 0.5), linear(3))
    assert spectrum.sigma[:2] == pytest.approx([0.8, 0.5], abs=0.1)
    assert (spectrum.pvalue[:2] <= 0.01).all()
    assert spectrum.pvalue[2] > 0.05
    assert ((spectrum.low < spectrum.sigma) & (spectrum.sigma < spectrum.high)).all()
    assert spectrum.n_rows == 600


def test_pvalues_hold_their_level_where_both_parts_always_agree_in_sign():
    """With one feature a side the parts are as dependent as can be: a sum of their z-values would fail here."""
    pvalues = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        spectrum = held_out_spectrum(rng.standard_normal(60), rng.standard_t(3, 60), linear(1), random_state=seed)
        pvalues.append(spectrum.pvalue[0])
    assert np.mean(np.array(pvalues) <= 0.2) < 0.2 + 3 * np.sqrt(0.2 * 0.8 / 40)


def test_level_and_coverage_of_a_mode_that_is_nothing_beside_one_that_is_real():
    spectra = [held_out_spectrum(*related(seed, 200, 0.6, noise=2), linear(2), random_state=seed) for seed in range(30)]
    first, second = np.array([spectrum.pvalue for spectrum in spectra]).T
    assert (first <= 0.05).all()
    assert np.mean(second <= 0.2) < 0.2 + 3 * np.sqrt(0.2 * 0.8 / 30)
    covered = [spectrum.low[0] <= 0.6 <= spectrum.high[0] for spectrum in spectra]
    assert np.mean(covered) >= 0.9


def test_standard_errors_are_right_for_features_that_are_not_normal():
    rng = np.random.default_rng(0)
    x = rng.exponential(size=(4000, 300))
    y = x * rng.choice([-0.5, 1.5], x.shape) + rng.standard_normal(x.shape)  # the spread of y grows with x
    u, v = ((z - z.mean(axis=0)) / z.std(axis=0) for z in (x, y))
    r, error = studentised(u, v)
    assert np.sqrt(np.mean(error**2)) == pytest.approx(np.std(r), rel=0.15)
    assert np.std(r) > 1.4 * (1 - np.mean(r) ** 2) / np.sqrt(4000)  # where the rule for normals would be far off


def test_more_rows_than_are_shuffled():
    spectrum = held_out_spectrum(*related(0, 2 * LIMIT_ROWS + 2, 0.7), linear(2))
    assert spectrum.pvalue[0] < 1e-20
    assert spectrum.pvalue[1] > 0.01


def test_wider_intervals_for_a_higher_level():
    X, Y = related(0, 200, 0.6)
    narrow, wide = (held_out_spectrum(X, Y, linear(1), level=level) for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.sigma < narrow.high < wide.high
    ratio = np.ptp(np.arctanh([wide.low, wide.high])) / np.ptp(np.arctanh([narrow.low, narrow.high]))
    assert ratio == pytest.approx(norm.isf(0.005) / norm.isf(0.1), rel=0.02)


def test_perfect_dependence():
    spectrum = held_out_spectrum(np.arange(50) % 2, np.arange(50) % 2)
    assert spectrum.sigma == pytest.approx([1.0])
    assert np.isfinite([spectrum.low, spectrum.high]).all()
    assert spectrum.pvalue[0] <= 0.002 + 1e-12


def test_default_model_and_labels():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(300)
    y = np.where(x + rng.standard_normal(300) > 0, "high", "low")
    spectrum = held_out_spectrum(x, y)
    assert spectrum.pvalue[0] <= 0.01
    assert len(spectrum.sigma) == 1  # two labels have one mode
    lines = str(spectrum).splitlines()
    assert "300 rows" in lines[0]
    assert "95% interval" in lines[1]
    assert len(lines) == 3


def test_model_is_left_alone_and_seeds_repeat():
    X, Y = related(0, 100, 0.5)
    model = linear(1)
    first, second = (held_out_spectrum(X, Y, model, random_state=4) for _ in range(2))
    assert not hasattr(model, "singular_values_")
    assert isinstance(first, HeldOutSpectrum)
    assert (first.sigma, first.pvalue) == (second.sigma, second.pvalue)
    assert held_out_spectrum(X, Y, model, random_state=5).sigma != first.sigma


@pytest.mark.parametrize(
    ("rows", "level", "message"), [(19, 0.95, "at least 20 rows, got 19.*independence_test"), (50, 95, "level.*got 95")]
)
def test_messages(rows, level, message):
    with pytest.raises(ValueError, match=message):
        held_out_spectrum(np.arange(rows), np.arange(rows), level=level)


def test_features_that_rest_on_few_rows_are_compared_with_arrangements():
    rejected = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rare = np.isin(np.arange(2400), rng.choice(2400, 6, replace=False)).astype(int)
        with contextlib.suppress(ValueError):  # all rare rows may be in one half
            spectrum = held_out_spectrum(rare, rng.integers(0, 2, 2400), ModalDecomposition(1), random_state=seed)
            rejected += (spectrum.pvalue < 0.05).tolist()
    assert len(rejected) > 30
    assert np.mean(rejected) < 0.12


def test_a_half_without_variation_is_named():
    rare = (np.arange(100) == 0).astype(int)
    with pytest.raises(ValueError, match="half of the rows"):
        held_out_spectrum(rare, np.arange(100) % 2, ModalDecomposition(1))
