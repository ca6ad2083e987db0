"""The closed form inside spans agrees with the exact answers on finite alphabets, and with known cases."""

import numpy as np
import pytest
from support import SEEDS, random_counts, random_functions, rows

from featgeo import FiniteJoint, Moments, Nesting, decompose


def indicators(symbols, size):
    return np.eye(size)[symbols]


@pytest.mark.parametrize("seed", SEEDS)
def test_indicator_features_give_the_exact_modes(seed):
    counts = random_counts(seed, (6, 4))
    x, y = rows(counts)
    exact = FiniteJoint(counts).modes()
    (modes,) = decompose(Moments.from_features({"x": indicators(x, 6), "y": indicators(y, 4)}), [("x", "y")])
    np.testing.assert_allclose(modes.sigma, exact.sigma, atol=1e-12)
    assert modes.energy == pytest.approx(exact.energy, abs=1e-12)
    np.testing.assert_allclose(modes.at(np.eye(6), np.eye(4)).kernel(), exact.kernel(), atol=1e-11)


@pytest.mark.parametrize("seed", SEEDS)
def test_side_information_levels_give_markov_and_conditional_components(seed):
    counts = random_counts(seed, (4, 3, 3))
    x, s, y = rows(counts)
    blocks = {"x": indicators(x, 4), "s": indicators(s, 3), "sy": indicators(s * 3 + y, 9)}
    nesting = Nesting([2, 3], y=["s", ("s", "sy")])
    markov, conditional = decompose(Moments.from_features(blocks), nesting.spaces)
    exact = FiniteJoint(counts, names=("x", "s", "y")).conditional("x", "y", "s")
    np.testing.assert_allclose(markov.sigma, exact.markov.sigma, atol=1e-10)
    np.testing.assert_allclose(conditional.sigma, exact.conditional.sigma, atol=1e-10)
    features = np.hstack([np.repeat(np.eye(3), 3, axis=0), np.eye(9)])
    kernel = conditional.at(np.eye(4), features).kernel().reshape(4, 3, 3)
    np.testing.assert_allclose(kernel, exact.conditional.kernel(), atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_multimodal_levels_give_the_components_by_interaction_order(seed):
    counts = random_counts(seed, (2, 3, 2, 3))
    *sources, y = rows(counts)
    exact = FiniteJoint(counts).multimodal()
    sizes = counts.shape[:3]
    blocks = {str(i): indicators(sources[i], sizes[i]) for i in range(3)}
    for i in range(3):
        for j in range(i):
            blocks[f"{j}{i}"] = indicators(sources[j] * sizes[i] + sources[i], sizes[j] * sizes[i])
    blocks["012"] = indicators((sources[0] * 3 + sources[1]) * 2 + sources[2], 12)
    blocks["y"] = indicators(y, 3)
    names = ["0", "1", "2", "01", "02", "12", "012"]
    orders = decompose(Moments.from_features(blocks), [(names[:3], "y"), (names[:6], "y"), (names, "y")])
    for learned, truth in zip(orders, exact.orders, strict=True):
        np.testing.assert_allclose(learned.sigma, truth.sigma, atol=1e-10)


def test_levels_that_grow_on_both_sides_add_up_to_the_whole():
    counts = random_counts(0, (5, 5))
    joint = FiniteJoint(counts)
    phi, psi = random_functions(0, 5, 2), random_functions(1, 5, 2)
    inner, border = joint.components([phi, None], [psi, None])
    np.testing.assert_allclose(inner.kernel() + border.kernel(), joint.cdk(), atol=1e-12)
    np.testing.assert_allclose(inner.kernel(), joint.modes(x_space=phi, y_space=psi).kernel(), atol=1e-12)
    metric = np.outer(joint.probability("x"), joint.probability("y"))
    assert abs(np.sum(metric * inner.kernel() * border.kernel())) < 1e-13


def test_ridge_shrinks_singular_values_and_keeps_components_orthogonal():
    rng = np.random.default_rng(3)
    phi = rng.standard_normal((300, 2))
    x = np.hstack([phi @ rng.standard_normal((2, 3)), rng.standard_normal((300, 3))]) + rng.standard_normal((300, 6))
    y = x @ rng.standard_normal((6, 4)) + rng.standard_normal((300, 4))
    moments = Moments.from_features({"phi": phi, "x": x, "y": y})
    levels = [("phi", "y"), (("phi", "x"), "y")]
    _, plain = decompose(moments, levels)
    _, shrunk = decompose(moments, levels, ridge=0.2)
    assert np.all(shrunk.sigma < plain.sigma)
    f = shrunk.f(np.hstack([phi, x]))
    np.testing.assert_allclose((phi - phi.mean(0)).T @ f / 300, 0, atol=1e-12)


def test_sign_makes_the_largest_standardised_coefficient_positive():
    rng = np.random.default_rng(4)
    for _ in range(10):
        x = rng.standard_normal((100, 3)) * [1e-3, 1, 1e3]
        y = x @ rng.standard_normal((3, 3)) / [1, 1, 1e3] + rng.standard_normal((100, 3))
        (modes,) = decompose(Moments.from_features({"x": x, "y": y}), [("x", "y")])
        coefficients = modes.f.weight * x.std(0)[:, None]
        assert np.all(coefficients[np.argmax(np.abs(coefficients), axis=0), range(3)] > 0)


def test_rows_that_do_not_fit_together_still_give_correlations_and_say_so():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 2))
    y = x @ rng.standard_normal((2, 2)) + 0.1 * rng.standard_normal((30, 2))
    together = Moments.from_features({"x": x, "y": y})
    patchwork = together + Moments.from_features({"x": 0.2 * rng.standard_normal((200, 2))})
    (complete,), (mended,) = decompose(together, [("x", "y")]), decompose(patchwork, [("x", "y")])
    assert complete.removed == 0
    assert mended.removed > 0.1
    assert np.all(mended.sigma <= 1 + 1e-12)


def test_independent_spans_have_no_modes():
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(3.0)), axis=-1).reshape(-1, 2)
    (modes,) = decompose(Moments.from_features({"x": grid[:, 0], "y": grid[:, 1]}), [("x", "y")])
    assert len(modes) == 0
    assert modes.energy == 0
    assert modes.blocks() == ()


def test_levels_must_grow():
    moments = Moments.from_features({"a": np.arange(4.0), "b": np.ones(4), "y": np.arange(4.0)})
    with pytest.raises(ValueError, match=r"level 1 of x has \('b',\) and lacks \['a'\]"):
        decompose(moments, [("a", "y"), ("b", "y")])
    with pytest.raises(ValueError, match="must list pairs"):
        decompose(moments, [])
    assert len(decompose(moments, [((), "y")])[0]) == 0
    with pytest.raises(ValueError, match="There is no block 'q'"):
        decompose(moments, [("q", "y")])
