"""Densities add up to 1, agree with the distribution function, and come close to known laws; scores are exact."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from support import support_of_numbers

import featgeo as fg
from featgeo.assembly.calibration import Calibration
from featgeo.assembly.links import Kernels, Recalibration, Smoothing, Support, smoothed


def _values(seed: int = 0, zeros: bool = False) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(3000)
    return np.where(values < -0.5, 0.0, values) if zeros else values


def _conditional(zeros: bool = False, **options) -> fg.Conditional:
    values = _values(zeros=zeros)
    support = support_of_numbers(values, lambda i: np.stack([values[i], values[i] ** 2 - 1], axis=1))
    return fg.Conditional(support, np.array([[0.0, 0.0], [0.4, 0.1], [-0.3, 0.2]]), **options)


LEVELS = np.linspace(0, 1, 9)
BENT = Recalibration(LEVELS, LEVELS + 0.05 * np.sin(2 * np.pi * LEVELS))
GRID = np.linspace(-12, 12, 20_001)


@pytest.mark.parametrize("options", [{}, {"recalibration": BENT}, {"prior": lambda y: np.exp(y)}])
@pytest.mark.parametrize("zeros", [False, True])
def test_density_and_single_values_add_up_to_one(zeros, options):
    given = _conditional(zeros, **options)
    spread = np.trapezoid(given.pdf(GRID[None] + 1e-7), GRID, axis=1)  # beside 0, which has a probability of its own
    own = given.pdf(0.0) if zeros else 0.0
    np.testing.assert_allclose(spread + own, 1, atol=1e-5)
    if zeros:
        np.testing.assert_allclose(own, given.cdf(0.0) - given.cdf(-1e-12), atol=1e-9)


@pytest.mark.parametrize("zeros", [False, True])
def test_the_integral_of_the_density_is_the_distribution_function_but_for_smoothing(zeros):
    given = _conditional(zeros)
    up_to = integrate.cumulative_trapezoid(given.pdf(GRID[None] + 1e-7), GRID, axis=1, initial=0)
    up_to += given.pdf(0.0)[:, None] * (GRID >= 0) if zeros else 0.0
    share = given._smoothing.share
    assert np.abs(up_to - given.cdf(GRID)).max() < share  # of the prior, that curves reach to either side


def test_logarithms_do_not_end_where_densities_do():
    given = _conditional()
    assert (given.pdf(300.0) == 0).all()
    assert np.isfinite(given.logpdf(300.0)).all()
    assert (given.logpdf(np.inf) < -1e100).all()


@pytest.mark.parametrize("zeros", [False, True])
def test_entropy_is_the_mean_of_minus_the_log_density(zeros):
    given = _conditional(zeros)
    density = given.pdf(GRID[None] + 1e-7)
    expected = np.trapezoid(-density * np.log(density.clip(min=1e-300)), GRID, axis=1)
    expected += -given.pdf(0.0) * given.logpdf(0.0) if zeros else 0.0
    np.testing.assert_allclose(given.entropy(), expected, atol=2e-3)


@pytest.mark.parametrize("options", [{}, {"recalibration": BENT}, {"prior": lambda y: np.exp(y)}])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("y", [-7.0, -0.3, 0.0, 1.2, 9.0])
def test_the_ranked_score_is_its_integral(zeros, options, y):
    given = _conditional(zeros, **options)
    grid = np.linspace(-10, 10, 200_001)
    expected = np.trapezoid((given.cdf(grid) - (grid >= y)) ** 2, grid, axis=1)
    np.testing.assert_allclose(given.crps(y), expected, atol=2e-4)


def test_the_ranked_score_is_the_energy_form_of_draws():
    given = _conditional()
    draws = given.sample(4000, random_state=0)
    apart = np.abs(draws - draws[:, ::-1]).mean(axis=1) / 2
    np.testing.assert_allclose(given.crps(0.7), np.abs(draws - 0.7).mean(axis=1) - apart, atol=0.02)
    np.testing.assert_allclose(given.std(), draws.std(axis=1), rtol=0.02)


def test_one_value_for_all_one_for_each_or_several():
    given = _conditional()
    own = np.array([-1.0, 0.5, 2.0])
    table = given.pdf(own[None])
    assert table.shape == (3, 3)
    np.testing.assert_allclose(given.pdf(own), np.diag(table))
    np.testing.assert_allclose(given.pdf(0.5), table[:, 1])
    np.testing.assert_allclose(given.crps(own), np.diag(given.crps(np.tile(own, (3, 1)))))
    with pytest.raises(ValueError, match="one for each of 3 rows"):
        given.logpdf([0.0, 1.0])


def test_labels_and_numbers_of_few_values_have_probabilities():
    mass = np.array([[0.5, 0.25, 0.25], [0.2, 0.8, 0.0]])
    prior, g = np.array([0.4, 0.4, 0.2]), np.eye(3)
    for kind, values in (("labels", np.array(["a", "b", "c"])), ("numbers", np.array([1.0, 2.0, 4.0]))):
        given = fg.Conditional(Support(kind, values, prior, g - prior), mass / prior - 1)
        np.testing.assert_allclose(given.pdf(values[None]), mass, atol=1e-12)
        np.testing.assert_allclose(np.exp(given.logpdf(values[:2])), [0.5, 0.8], atol=1e-12)
        np.testing.assert_allclose(given.entropy(), stats.entropy(mass, axis=1), atol=1e-12)
        assert (given.pdf(np.array("z") if kind == "labels" else 3.0) == 0).all()
    np.testing.assert_allclose(given.std() ** 2, mass @ values**2 - (mass @ values) ** 2)
    np.testing.assert_allclose(given.crps(2.0), [0.25 + 2 * 0.0625, 0.04], atol=1e-12)


def test_vectors_have_deviations_but_no_density():
    values = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, 4.0]])
    given = fg.Conditional(Support("rows", values, np.full(3, 1 / 3), np.zeros((3, 1))), np.zeros((2, 1)))
    np.testing.assert_allclose(given.std(), np.tile(values.std(axis=0), (2, 1)))
    for ask in (lambda: given.pdf(0.0), given.entropy, given.plot):
        with pytest.raises(ValueError, match="several columns"):
            ask()


def test_numbers_of_any_size_have_densities():
    for size in (2.0**-900, 2.0**1000):
        values = _values() * size
        support = support_of_numbers(values, lambda i: np.zeros((len(i), 1)))
        given = fg.Conditional(support, np.zeros((1, 1)))
        same = _conditional()
        np.testing.assert_allclose(given.logpdf(0.3 * size) + np.log(size), same.logpdf(0.3)[:1], rtol=1e-6)
        np.testing.assert_allclose(given.entropy() - np.log(size), same.entropy()[:1], rtol=1e-6)
        np.testing.assert_allclose(given.std() / size, same.std()[:1], rtol=1e-6)
        np.testing.assert_allclose(given.crps(0.3 * size) / size, same.crps(0.3)[:1], rtol=1e-6)


def test_a_value_takes_no_part_in_judging_itself():
    values = np.sort(np.random.default_rng(1).standard_normal(60))  # each a neighbourhood
    support = support_of_numbers(values, lambda i: np.zeros((len(i), 1)))
    kernels = Kernels.of(support, 0.05, 1.0)
    (without,) = kernels.without_own(values, support, np.broadcast_to(support.mass, (60, 60)))
    near = np.abs(values[:, None] - values) <= kernels.widths  # without the value curves reach over 5 rows and not 6
    bells = stats.norm.pdf(values[:, None], values, kernels.widths * (1 + near / 5))
    np.fill_diagonal(bells, 0)
    np.testing.assert_allclose(without, np.log(bells.sum(axis=1) / 59), rtol=1e-9)


def test_held_out_rows_choose_the_smoothing():
    values = np.random.default_rng(2).standard_normal(2000)
    support = support_of_numbers(values, lambda i: np.zeros((len(i), 1)))
    prior = np.broadcast_to(support.mass, (2000, support.m))
    chosen = smoothed(prior, values, support, 1.0)
    fresh = np.random.default_rng(3).standard_normal(4000)[:, None]
    score = {
        share: Kernels.of(support, share, 1.0).log_density(np.tile(support.mass, (4000, 1)), fresh).mean()
        for share in fg.Options().density_shares
    }
    assert max(score.values()) - score[chosen.share] < 0.003
    assert max(score.values()) - min(score.values()) > 0.03
    with fg.options(density_shares=(0.004,)):
        assert smoothed(prior, values, support, 1.0).share == 0.004
    assert 0.05 < Smoothing.of_rows(2000).share < 0.12


LAWS = {
    "gaussian": (
        lambda x, rng: 0.8 * x + 0.6 * rng.standard_normal(len(x)),
        lambda x, y: stats.norm.logpdf(y, 0.8 * x, 0.6),
        0.08,
    ),
    "exponential": (
        lambda x, rng: np.exp(x / 2) * rng.exponential(size=len(x)),
        lambda x, y: stats.expon.logpdf(y, scale=np.exp(x / 2)),
        0.06,
    ),
    "mixture": (
        lambda x, rng: 2 * np.where(rng.random(len(x)) < 1 / (1 + np.exp(-2 * x)), 1, -1) + rng.normal(0, 0.5, len(x)),
        lambda x, y: np.logaddexp(
            stats.norm.logpdf(y, 2, 0.5) - np.logaddexp(0, -2 * x),
            stats.norm.logpdf(y, -2, 0.5) - np.logaddexp(0, 2 * x),
        ),
        0.08,
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_log_scores_come_close_to_those_of_the_law(name):
    draw, truth, most = LAWS[name]
    rng = np.random.default_rng(20_001)
    x, x_new = rng.standard_normal(2000), rng.standard_normal(4000)
    y, y_new = draw(x, rng), draw(x_new, rng)
    given = fg.ModalDecomposition("auto", random_state=0).fit(x, y).given(x_new)
    lost = truth(x_new, y_new) - given.logpdf(y_new)
    assert -0.01 < lost.mean() < most
    np.testing.assert_allclose(given.entropy().mean(), -truth(x_new, y_new).mean(), atol=0.1)


def test_smoothing_is_kept_in_files(tmp_path):
    x = _values()
    model = fg.ModalDecomposition(1, random_state=0).fit(x, x + _values(1))
    model.save(tmp_path / "model")
    again = fg.load(tmp_path / "model")
    assert isinstance(again.calibration_, Calibration)
    assert again.calibration_.smoothing == model.calibration_.smoothing
    np.testing.assert_array_equal(again.given(x[:5]).logpdf(0.1), model.given(x[:5]).logpdf(0.1))


def test_figures_of_rows_and_along_a_column_show_themselves():
    given = _conditional()
    labelled = fg.Conditional(
        Support("labels", np.array(["a", "b"]), np.array([0.5, 0.5]), np.array([[1.0], [-1.0]])), np.zeros((3, 1))
    )
    for figure in (
        given.plot(),
        given.plot(along=np.array([3.0, 1.0, 2.0]), y=np.zeros(3)),
        given.plot(along=["x", "z", "x"]),
        labelled.plot(along=np.array([3.0, 1.0, 2.0])),
        labelled.plot(along=["x", "z", "x"]),
    ):
        assert figure._repr_png_().startswith(b"\x89PNG")
    (axes,) = given.plot(along=np.array([3.0, 1.0, 2.0])).axes
    (median,) = axes.lines
    np.testing.assert_array_equal(median.get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(median.get_ydata(), given.quantile(0.5)[[1, 2, 0]])
    with pytest.raises(ValueError, match="`along` must have one value for each of 3 rows"):
        given.plot(along=[1.0])
