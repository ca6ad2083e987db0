"""Numbers given their features: a mean and a spread that follow these, and means of several links."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from support import support_of_numbers

from featgeo.assembly.calibration import Calibration, _least_mean_square, mixed_link
from featgeo.assembly.conditional import Conditional
from featgeo.assembly.links import LinearLink, LocatedLink, MixedLink, Support

N = 20_000


def law(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, and the mean and the spread that follow them."""
    f = np.random.default_rng(seed).normal(size=(N, 2))
    return f, 3 + 2 * f[:, 0], np.exp(0.5 * f[:, 1] - 1)


def support_of(y: np.ndarray) -> Support:
    return support_of_numbers(y, lambda at: np.zeros((len(at), 2)))


@pytest.mark.parametrize("by_rank", [False, True])
def test_means_and_spreads_of_a_law_are_found(by_rank: bool) -> None:
    f, mean, spread = law(0)
    z = mean + spread * np.random.default_rng(1).normal(size=N)
    y = norm.cdf((z - 3) / np.sqrt(4 + np.exp(-1.5))) ** 3 if by_rank else z  # nearly a normal score, or the number
    link = LocatedLink.fit(f, y, support_of(y), by_rank)
    new = np.array([[-1.0, 0.0], [0.0, 0.0], [0.5, -1.0], [1.0, 1.0]])
    at = np.quantile(z, [0.05, 0.2, 0.5, 0.8, 0.95])
    values = norm.cdf((at - 3) / np.sqrt(4 + np.exp(-1.5))) ** 3 if by_rank else at
    told = Conditional(support_of(y), new, link=link).cdf(values)
    truth = norm.cdf((at - (3 + 2 * new[:, [0]])) / np.exp(0.5 * new[:, [1]] - 1))
    np.testing.assert_allclose(told, truth, atol=0.05 if by_rank else 0.03)


def test_masses_add_up_and_an_atom_has_its_share() -> None:
    f, mean, spread = law(2)
    y = np.maximum(mean + spread * np.random.default_rng(3).normal(size=N), 0)  # zeros are an atom
    support = support_of(y)
    mass = LocatedLink.fit(f, y, support).ratio(f[:50], support) * support.mass
    assert (mass >= 0).all()
    np.testing.assert_allclose(mass.sum(axis=1), 1, atol=1e-12)
    assert support.reach[0, 0] == support.reach[0, 1] == 0
    assert mass[:, 0] @ (f[:50, 0] < -1.8) > mass[:, 0] @ (f[:50, 0] > 0)


def test_features_that_determine_y_leave_no_spread() -> None:
    f, mean, _ = law(4)
    told = Conditional(support_of(mean), f[:100], link=LocatedLink.fit(f, mean, support_of(mean)))
    within = np.diff(support_of(mean).reach)[np.searchsorted(support_of(mean).reach[:, 1], mean[:100]), 0]
    assert (np.abs(told.mean() - mean[:100]) <= within).all()  # no further off than neighbourhoods are wide


def test_held_out_rows_prefer_the_formula_where_it_is_the_law() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-1, 1, (2, 4 * N))
    x, y = np.stack([x, y])[:, rng.random(4 * N) * 2 < 1 + x * y]  # p(y|x) = (1 + x y) / 2
    support = support_of_numbers(y, lambda at: np.sqrt(3) * y[at, None])
    link = mixed_link(x[:, None] / np.sqrt(3), y, support)
    shares = link.shares if isinstance(link, MixedLink) else np.ones(1)
    assert isinstance(link.links[0] if isinstance(link, MixedLink) else link, LinearLink)
    assert shares[0] > 0.8


def test_held_out_rows_prefer_a_mean_and_a_spread_where_modes_are_too_few() -> None:
    bell = np.random.default_rng(6).multivariate_normal([0, 0], [[1, 0.98], [0.98, 1]], N)
    support = support_of_numbers(bell[:, 1], lambda at: bell[at, 1:])
    calibration = Calibration.fit(support, 0.98 * bell[:, :1], bell[:, 1])
    near = bell[np.abs(bell[:, 0]) < 2][:200, :1]
    given, plain = calibration.given(support, 0.98 * near), Conditional(support, 0.98 * near)
    np.testing.assert_allclose(given.mean(), 0.98 * near[:, 0], atol=0.03)
    np.testing.assert_allclose(given.std(), np.sqrt(1 - 0.98**2), atol=0.03)
    assert plain.std().min() > 0.5  # one mode of such a law says little of how narrow it is


def test_shares_of_errors_have_the_least_mean_square_there_is() -> None:
    errors = np.random.default_rng(6).normal(size=(3, 500)) * [[1.0], [1.2], [3.0]] + 0.3
    shares = _least_mean_square(errors @ errors.T)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= 0).all()
    grid = np.random.default_rng(7).dirichlet(np.ones(3), 5000)
    assert np.square(shares @ errors).sum() <= np.square(grid @ errors).sum(axis=1).min() * (1 + 1e-9)
