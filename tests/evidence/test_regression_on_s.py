"""What tests given S are made of, each part against its definition."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm, rankdata

from featgeo import Options
from featgeo.evidence import conditional, shuffling
from featgeo.evidence.conditional import Probes
from featgeo.evidence.shuffling import checked, read_rows
from featgeo.features import regression
from featgeo.features.regression import Condition, Known
from featgeo.features.scored import Ranks, Symbols, cosines_of, orthonormal, same
from featgeo.features.scored import mid_ranks as ranks

N = 120


@pytest.fixture(scope="module")
def given():
    """Features of a kernel, terms without penalty, and the eigenvectors of what those leave of the kernel."""
    rng = np.random.default_rng(0)
    (rows,) = checked(*read_rows(S=rng.standard_normal((2, N)).T))
    features = Condition(rows, 0).kernel.values
    free, _ = orthonormal(rng.standard_normal((N, 3)))
    left = features - free @ (free.T @ features) / N
    vectors, lengths, _ = np.linalg.svd(left, full_matrices=False)
    kept = lengths**2 > 0.05 * regression.RIDGES[0] * lengths[0] ** 2
    eigenvalues = np.concatenate([np.full(3, np.inf), np.square(lengths[kept])])
    return features, free, np.hstack([free, vectors[:, kept] * np.sqrt(N)]), eigenvalues


def test_features_of_a_kernel_have_it_as_their_inner_products():
    rng = np.random.default_rng(1)
    s = pd.DataFrame({"number": rng.standard_normal(50), "label": (rng.permutation(50) % 3).astype(str)})
    (rows,) = checked(*read_rows(S=s))
    given = Condition(rows, 0)
    columns, features = given.columns, given.kernel.values
    apart = np.stack([np.subtract.outer(columns[0].scores, columns[0].scores) ** 2,
                      4.0 * np.not_equal.outer(columns[1].codes, columns[1].codes)])  # fmt: skip
    kernel = np.exp(-apart / 2).mean(axis=0) + np.exp(-apart.sum(axis=0) / 4)
    centre = np.eye(50) - 1 / 50
    np.testing.assert_allclose(features @ features.T, centre @ kernel @ centre, atol=1e-6)


def test_residuals_are_those_of_ridge_regression_two_steps_below_cross_validation(given):
    features, free, vectors, eigenvalues = given
    rng = np.random.default_rng(1)
    targets = vectors @ rng.standard_normal((len(eigenvalues), 2)) / np.sqrt(N) + rng.standard_normal((N, 2))
    found, weight = regression.residuals(features, free, targets)
    predicted = targets - targets.mean(axis=0) - found.values
    np.testing.assert_allclose(np.hstack([free, features]) @ weight, predicted, atol=1e-8)
    ridges = regression.RIDGES * eigenvalues[3]
    shares = []
    for j, target in enumerate((targets - targets.mean(axis=0)).T):
        criteria, rests = [], []
        for ridge in ridges:
            left = ridge / (eigenvalues + ridge)
            smoother = np.full((N, N), 1 / N) + (vectors * (1 - left)) @ vectors.T / N
            rest = target - smoother @ target
            within = np.trace(smoother) <= N / 2
            criteria.append(rest @ rest / (1 - np.trace(smoother) / N) ** 2 if within else np.inf)
            rests.append(rest)
        best = max(int(np.argmin(criteria)) - 2, int(np.flatnonzero(np.isfinite(criteria))[0]))
        np.testing.assert_allclose(found.values[:, j], rests[best], atol=1e-6)
        shares.append(1 - (ridges[best] / (eigenvalues + ridges[best])) ** 2)
    taken = np.stack(shares, axis=1)
    seen = taken.max(axis=1) > regression.HARDLY
    assert not seen.all()
    np.testing.assert_allclose(np.sort(found.taken, axis=0)[::-1], np.vstack([[1.0, 1.0], taken[seen]]), atol=1e-6)
    gram = found.vectors.T @ found.vectors / N
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-4)
    inside = vectors[:, seen].T @ found.vectors / N  # the same eigenvectors, up to sign and order
    np.testing.assert_allclose(np.linalg.svd(inside, compute_uv=False), 1, atol=1e-4)
    np.testing.assert_allclose(found.of_rows, found.vectors**2 @ found.taken / N, atol=1e-5)
    exact = np.column_stack([np.ones(N), vectors[:, seen]]) ** 2 @ np.vstack([[1.0, 1.0], taken[seen]]) / N
    np.testing.assert_allclose(found.of_rows, exact, atol=1e-4)


def test_what_follows_free_terms_is_taken_out_whole(given):
    features, free, _, _ = given
    target = free @ [[1.0], [-2.0], [3.0]]
    np.testing.assert_allclose(regression.residuals(features, free, target + 5)[0].values, 0, atol=1e-8)


def test_narrow_features_are_a_kernel_of_that_width():
    scores = np.array([-1.0, -0.9, 0.0, 0.1, 0.3, 1.5])
    features = Known(norm.cdf(scores), lambda: None).along(narrow=True).values
    features = features - features.mean(axis=0)
    distances = np.subtract.outer(scores, scores)
    kernel = regression.INDEX_SHARE * np.exp(-(distances**2) / (2 * regression.INDEX_WIDTH**2))
    centre = np.eye(6) - 1 / 6
    np.testing.assert_allclose(features @ features.T, centre @ kernel @ centre, atol=0.05)  # a grid stands in for all


# Terms without penalty.


def known(values):
    return Known(values, lambda: None)


def index_of(terms, target, even):
    return regression.index_of(known(terms), target, even).values


@pytest.mark.parametrize("seed", [0, 1])
def test_an_index_is_refined_until_it_is_the_direction_that_the_target_follows(seed):
    rng = np.random.default_rng(seed)
    s = rng.exponential(size=(600, 3))  # of a skewed S the straight fit points elsewhere
    direction = s @ [1.0, -0.5, 0.7]
    lines, _ = orthonormal(s)
    target = np.sin(3 * np.pi * ranks(direction))
    straight = np.abs(np.corrcoef(ranks(lines @ (lines.T @ target)), ranks(direction))[0, 1])
    found = np.abs(np.corrcoef(index_of(lines, target, even=True), ranks(direction))[0, 1])
    assert straight < 0.99
    assert found > 0.9999


def test_an_index_along_which_the_target_is_even_is_found_from_its_curvature():
    s = np.random.default_rng(0).standard_normal((600, 4))
    direction = s @ [0.5, -0.5, 0.5, 0.5]
    target, (lines, _) = np.abs(direction) ** 1.5, orthonormal(s)
    assert np.abs(np.corrcoef(index_of(lines, target, even=True), ranks(direction))[0, 1]) > 0.9999


def test_an_index_of_ties_has_mid_ranks():
    s = np.random.default_rng(0).integers(0, 4, (300, 2)).astype(float)
    target = s @ [1.0, 1.0]
    found = index_of(orthonormal(s)[0], target, even=False)
    np.testing.assert_allclose(found, (rankdata(found) - 0.5) / 300)
    assert len(np.unique(found)) <= 16  # as many as there are different rows


def test_waves_and_their_slopes_at_all_mid_ranks():
    waves, slopes = regression.wave_table(30, 5)
    index, h = np.arange(60) / 60, 1e-6
    np.testing.assert_allclose(waves[:, 1], np.sqrt(2) * np.cos(2 * np.pi * index))
    above, below = (cosines_of(index + step, 5) for step in (h, -h))
    np.testing.assert_allclose(slopes, (above - below) / (2 * h), atol=1e-6)


def test_density_is_how_fast_ranks_rise():
    np.testing.assert_allclose(regression.density(np.arange(50) / 50 * 2.0), 0.5)
    np.testing.assert_allclose(regression.density(np.array([0.0, 1.0, 3.0, 3.0])), [1 / 6, 1 / 4, 1 / 4, 1 / 4])


def test_the_best_direction_at_random_is_one_that_a_fast_wave_follows():
    rng = np.random.default_rng(0)
    s, _ = orthonormal(rng.standard_normal((250, 5)))
    direction = s.sum(axis=1) / np.sqrt(5)
    target = np.sin(3 * direction) + 0.7 * rng.standard_normal(250)
    found = s @ regression.best_at_random(s, target)
    assert np.abs(np.corrcoef(found, direction)[0, 1]) > 0.85
    assert np.abs(np.corrcoef(index_of(s, target, even=True), ranks(direction))[0, 1]) > 0.98


def test_regressions_leave_of_other_functions_what_they_left_of_their_targets(given):
    features, free, _, _ = given
    targets = np.random.default_rng(2).standard_normal((N, 3))
    found = regression.residuals(features, free, targets)[0]
    np.testing.assert_allclose(found.left_of(targets + 4), found.values, atol=0.05 * targets.std())
    np.testing.assert_allclose(found.left_of(free[:, :3]), 0, atol=1e-5)


@pytest.mark.parametrize("turned", [1, -1])
def test_a_jump_is_found_where_it_is(turned):
    rng = np.random.default_rng(0)
    n, place = 300, 90
    along = rng.permutation(n)
    target = turned * (along >= place) + 0.1 * rng.standard_normal(n)
    lines, _ = orthonormal(rng.standard_normal((n, 2)))
    (found,) = regression.jumps_of(known(lines), known(lines), [known(along / n)], target)
    np.testing.assert_array_equal(found.values[:, 0], along >= place)
    assert regression.jumps_of(known(lines), known(lines), [known(along / n)], rng.standard_normal(n)) == []


# The statistic and its null distribution.


def test_the_statistic_is_the_sum_of_squared_means_of_products_and_its_weights_those_of_their_covariance(monkeypatch):
    monkeypatch.setattr(conditional, "CHUNK", 7)
    monkeypatch.setattr(conditional, "less_spread", lambda spectrum, same_row, n: spectrum)
    rng = np.random.default_rng(0)
    n, x, y, m = 40, *(rng.standard_normal((40, k)) for k in (5, 2, 3))
    every = [x[:, i] * y[:, j] for i in range(5) for j in range(2)]
    every += [x[:, i] * y[:, j] * m[:, q] for i in range(4) for j in range(2) for q in range(3)]
    shares = rng.uniform(0.9, 1.1, (5, 2, 4))
    ratios = np.concatenate([shares[:, :, 0].ravel(), shares[:4, :, 1:].ravel()])
    statistic, weights = conditional._quadratic_form(x, y, m, shares)
    assert statistic == pytest.approx(n * sum(product.mean() ** 2 for product in every))
    covariance = np.cov(every, bias=True) * np.sqrt(np.outer(ratios, ratios))
    np.testing.assert_allclose(weights, np.linalg.eigvalsh(covariance).clip(min=0), atol=1e-10)


def test_what_errors_share_shortens_the_means_that_are_evidence():
    rng = np.random.default_rng(0)
    x, y, m = (rng.standard_normal((200, k)) for k in (3, 2, 1))
    ones = np.ones((3, 2, 2))
    statistic, weights = conditional._quadratic_form(x, y, m, ones)
    found = conditional.moment_evidence(x, y, m, ones, "", shared=0.7)
    assert found.statistic == pytest.approx(statistic)
    assert found.pvalue == pytest.approx(shuffling.weighted_chi_square_tail((np.sqrt(statistic) - 0.7) ** 2, weights))
    assert conditional.moment_evidence(x, y, m, ones, "", shared=1e3).pvalue == 1


def test_what_two_sides_share_is_what_is_said_of_one_and_left_of_the_other():
    rng = np.random.default_rng(0)
    missed, m = rng.standard_normal((400, 1)), rng.standard_normal((400, 1))
    left = [missed + rng.standard_normal((400, k)) for k in (2, 3)]
    x, y = ((one, np.repeat(0.5 * missed, one.shape[1], axis=1)) for one in left)
    agreeing = sum(one.T @ other for one, other in ((x[0], y[1]), (x[1], y[0]))) / 400
    means = left[0].T @ left[1] / 400
    expected = np.sqrt(400) * np.sum(means * agreeing) / np.linalg.norm(means)
    assert conditional.shared_length(x, y, 1e-9 * m) == pytest.approx(expected)


def test_dependence_is_not_what_two_sides_share():
    rng = np.random.default_rng(0)
    x, m = rng.standard_normal((400, 2)), rng.standard_normal((400, 1))
    y = x + 0.1 * rng.standard_normal((400, 2))
    said = 0.5 * rng.standard_normal((2, 400, 2))  # of a row, by others
    assert conditional.shared_length((x, said[0]), (y, said[1]), m) == 0
    assert conditional.shared_length((x, 0 * x), (y, 0 * y), m) == 0


def test_weights_that_independence_implies_are_products_of_energies():
    rng = np.random.default_rng(0)
    x, y, m = (rng.standard_normal((50, k)) for k in (6, 2, 3))
    sizes = [float(np.square(z).sum() / 50) for z in (x, y, m, x[:, :4])]
    weights = conditional._implied_weights(x, y, m)
    assert len(weights) == 6 * 2 + 4 * 2 * 3
    assert weights.sum() == pytest.approx(sizes[0] * sizes[1] + sizes[3] * sizes[1] * sizes[2])


def test_eigenvalues_drawn_together_have_the_squares_that_pairs_of_different_rows_show():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((30, 8)) * np.arange(1, 9)
    gram = np.square(rows @ rows.T)
    spectrum = np.linalg.eigvalsh(rows.T @ rows / 30)
    drawn = shuffling.less_spread(spectrum, np.trace(gram) / gram.sum(), 30)
    assert drawn.sum() == pytest.approx(spectrum.sum())
    assert np.square(drawn).sum() == pytest.approx((gram.sum() - np.trace(gram)) / (30 * 29))


def test_what_s_determines_is_left_out_and_the_rest_is_scaled_by_its_weight(given):
    features, free, _, _ = given
    rng = np.random.default_rng(0)
    probed = Probes(np.column_stack([free[:, 0], rng.standard_normal((N, 2))]), np.array([1.0, 0.5, 0.3]))
    left = regression.residuals(features, free, probed.values)[0].values
    scaled, free_of_s = probed.scaled(left)
    assert free_of_s.tolist() == [False, True, True]
    np.testing.assert_allclose(scaled.var(axis=0), [0.5, 0.3])
    np.testing.assert_allclose(scaled[:, 0] / left[:, 1], np.sqrt(0.5) / left[:, 1].std())


def test_a_condition_regresses_each_side_once():
    rng = np.random.default_rng(0)
    s, x, copy = rng.standard_normal((200, 2)), rng.standard_normal((200, 1)), np.empty((200, 1))
    copy[:, 0] = np.exp(s[:, 1])
    tables = checked(*read_rows(S=s, X=x, Y=copy))
    given = conditional.GivenS(tables[0], 0)
    one, determined = map(conditional.Side, tables[1:])
    assert given.left_of(one) is given.left_of(one)
    assert given.left_of(determined) is None  # it is part of S
    weights = np.arange(1.0, 7) ** -Options().probe_decay
    np.testing.assert_allclose(np.square(given.left_of(one).scaled.values).mean(axis=0), weights)


@pytest.mark.parametrize("width", [1, 3, 17])
def test_functions_of_s_have_their_weight_together(width):
    s = np.random.default_rng(0).standard_normal((200, width))
    (rows,) = checked(*read_rows(S=s))
    given = conditional.GivenS(rows, 0).modulators
    assert np.square(given).mean(axis=0).sum() == pytest.approx(Options().modulation)
    np.testing.assert_allclose(given.mean(axis=0), 0, atol=1e-10)
    assert given.shape[1] == min(2 * width, 16)


def test_columns_that_say_the_same():
    rng = np.random.default_rng(0)
    numbers, codes = rng.standard_normal(30), rng.integers(0, 4, 30)
    one = Ranks.read(numbers)
    for other, agree in ((np.exp(numbers), True), (-numbers, True), (np.abs(numbers), False)):
        assert same(one, Ranks.read(other)) == agree
    named, merged = Symbols(3 - codes, 4), Symbols(np.minimum(codes, 2), 3)
    assert same(Symbols(codes, 4), named)
    assert not same(Symbols(codes, 4), merged)
    assert not same(one, named)


@pytest.mark.parametrize("kind", ["number", "label", "several", "mixed"])
def test_means_have_the_same_values_at_other_rows_and_at_those_of_the_regression(kind):
    rng = np.random.default_rng(3)
    n = 600
    s = pd.DataFrame({
        "a": rng.standard_normal(n), "b": rng.exponential(size=n), "c": rng.integers(0, 60, n) * 1.0,
        "label": rng.choice(list("uvw"), n),
    })  # fmt: skip
    s.loc[::9, "b"] = np.nan
    s = s[{"number": ["a"], "label": ["label"], "several": ["a", "c"], "mixed": list(s)}[kind]]
    (rows,) = checked(*read_rows(S=s))
    first = s.iloc[:, 0].to_numpy()
    jump = 3.0 * (first > "u" if kind == "label" else first > 0.5)
    targets = np.column_stack([jump + rng.standard_normal(n), rng.standard_normal(n)])
    left, mean = Condition(rows, 0).regress(targets)
    np.testing.assert_allclose(mean.values, targets - left.values)
    again = mean.space(rows.variable.rows(s.iloc[::-1]))[::-1]
    np.testing.assert_allclose(again, mean.values, atol=1e-7)
