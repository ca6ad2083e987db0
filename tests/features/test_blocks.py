"""Products of functions, and the spaces of single variables that they are made of."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from numpy.polynomial.hermite_e import hermegauss
from support import Computed

from featgeo.features import combined, spaces
from featgeo.features.spaces import Encoding, KernelSpace, SplineSpace, TableSpace
from featgeo.features.variables import Parts, Variable

RNG = np.random.default_rng(0)
A, B, C = RNG.standard_normal((7, 2)), RNG.standard_normal((7, 3)), RNG.standard_normal((7, 2))


def _rows(values, name="X"):
    return Variable.seen(values, name).rows(values)


SEVEN = _rows(np.arange(7.0))
OF_A, OF_B = Computed(lambda _: A), Computed(lambda _: B)


def test_products_of_one_column_of_each():
    expected = np.column_stack([A[:, i] * B[:, j] * C[:, k] for i, j, k in product(range(2), range(3), range(2))])
    np.testing.assert_allclose(combined.products_of([A, B, C]), expected)
    interaction = combined.ProductSpace((OF_A, OF_B), (False, False))
    np.testing.assert_allclose(interaction(SEVEN), np.column_stack([A[:, [i]] * B for i in range(2)]))


def test_a_product_space_holds_the_second_factor_alone_too():
    space = combined.ProductSpace((OF_A, OF_B), (True, False))
    np.testing.assert_allclose(space(SEVEN), np.hstack([B, A[:, :1] * B, A[:, 1:] * B]))
    alone = combined.ProductSpace((spaces.SideBySide(()), OF_B), (True, False))
    np.testing.assert_allclose(alone(SEVEN), B)


def test_joint_spaces_hold_all_products_with_1_but_1_itself():
    ones = np.ones((7, 1))
    with_one = [np.hstack([ones, z]) for z in (A, B)]
    joint = combined.ProductSpace((OF_A, OF_B), (True, True))
    np.testing.assert_allclose(joint(SEVEN), combined.products_of(with_one)[:, 1:])
    assert combined.ProductSpace((OF_A, OF_B, OF_A), (True,) * 3)(SEVEN).shape == (7, 3 * 4 * 3 - 1)
    np.testing.assert_allclose(combined.ProductSpace((OF_A,), (True,))(SEVEN), A)


@pytest.mark.parametrize(("sizes", "allowed"), [([2000], True), ([2001], False), ([43, 44], True), ([44, 44], False)])
def test_no_more_products_than_a_gram_matrix_should_hold(sizes, allowed):
    if allowed:  # (43 + 1) (44 + 1) - 1 = 1979
        combined.check_few_products(sizes)
    else:
        with pytest.raises(ValueError, match=r"more than 2000"):
            combined.check_few_products(sizes)


def test_spaces_read_their_parts_side_by_side():
    side = Parts({"a": _rows(A, "a"), "b": _rows(B, "b")})
    both = combined.PartSpace(("a", "b"), Encoding.fit(side.of("a", "b")))
    one = combined.PartSpace(("b",), Encoding.fit(side.of("b")))
    standard = [(z - z.mean(axis=0)) / z.std(axis=0) for z in (A, B)]
    np.testing.assert_allclose(one(side), standard[1])
    np.testing.assert_allclose(both(side), np.hstack(standard))
    np.testing.assert_allclose(spaces.SideBySide((one, both))(side), np.hstack([standard[1], *standard]))
    assert len(side.take(slice(0, 3))) == 3


@pytest.mark.parametrize("columns", [1, 2])
def test_a_table_has_an_indicator_for_each_row_that_was_seen_and_shares_for_others(columns):
    seen = RNG.integers(0, 3, (50, columns)).astype(float)
    variable = Variable.seen(seen, "X")
    table = TableSpace.fit(variable.rows(seen))
    symbols, place, counts = np.unique(seen, axis=0, return_inverse=True, return_counts=True)
    np.testing.assert_allclose(table.shares, counts / 50)
    np.testing.assert_array_equal(table.index(variable.rows(seen)), place.ravel())
    np.testing.assert_array_equal(table(variable.rows(seen)), np.eye(len(symbols))[place.ravel()])
    never = np.vstack([np.full(columns, 9.0), np.full(columns, -9.0), seen[0]])
    np.testing.assert_array_equal(table.index(variable.rows(never)), [-1, -1, place.ravel()[0]])
    np.testing.assert_allclose(table(variable.rows(never))[:2], [counts / 50] * 2)


def test_splines_hold_every_cubic_of_the_scores():
    """Also beyond the outermost knots, where they go on as cubics."""
    x = np.random.default_rng(1).standard_normal(2000)
    space = SplineSpace.fit(_rows(x), "normal")
    features = space(_rows(x))
    z = space.encoding.numbers(_rows(x))[:, 0].numpy()
    for power in range(4):
        weights = np.linalg.lstsq(features, z**power, rcond=None)[0]
        np.testing.assert_allclose(features @ weights, z**power, atol=1e-7)
    np.testing.assert_allclose(features.sum(axis=1), 1, atol=1e-9)


def test_smooth_splines_span_the_same_but_for_the_constant_and_prefer_hermite_polynomials():
    """The Gram matrix of their features has eigenvalues r^-2, and r is 1 for z and about 2 for z^2 - 1."""
    x = np.random.default_rng(1).standard_normal(3000)
    plain, smooth = (SplineSpace.fit(_rows(x), "normal", smooth=is_smooth) for is_smooth in (False, True))
    z, mass = hermegauss(spaces.QUADRATURE_NODES)
    splines = plain.splines(torch.from_numpy(z)[:, None])[:, 0].numpy()
    features = splines @ smooth.mix
    mass = mass / mass.sum()
    np.testing.assert_allclose(mass @ features, 0, atol=1e-9)  # nothing of the constant
    energies = np.linalg.eigvalsh((features.T * mass) @ features)[::-1]
    assert energies[:2] == pytest.approx([1, 1 / 4], rel=1e-3)
    lengths = np.sqrt(mass @ features**2)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-9)  # no feature is larger than another
    assert np.linalg.matrix_rank(features, tol=1e-8) == splines.shape[1] - 1
    np.testing.assert_allclose(smooth(_rows(x)), plain(_rows(x)) @ smooth.mix, atol=1e-9)


def test_kernel_features_reproduce_the_kernel_at_their_centres():
    """With as many centres as rows, their inner products are the Gaussian kernel of the scores."""
    x = np.random.default_rng(2).standard_normal(25)
    space = KernelSpace.fit(_rows(x), gamma=0.7, features=25)
    scores = space.encoding(_rows(x))
    width = 0.7 / max(1.0, scores.var(axis=0).sum())
    expected = np.exp(-width * np.square(scores - scores.T))
    np.testing.assert_allclose(space(_rows(x)) @ space(_rows(x)).T, expected, atol=1e-6)


def test_kernels_of_several_columns_come_with_sums_of_functions_of_each():
    X = np.random.default_rng(3).standard_normal((60, 2))
    space = KernelSpace.fit(_rows(X), features=10)
    additive = SplineSpace.fit(_rows(X), "uniform")(_rows(X))
    np.testing.assert_allclose(space(_rows(X))[:, : additive.shape[1]], additive)
    assert space(_rows(X)).shape[1] == additive.shape[1] + 10
    assert KernelSpace.fit(_rows(X[:, 0])).additive is None
    many = np.random.default_rng(3).standard_normal((20, spaces.MOST_SPLINES))
    assert isinstance(KernelSpace.fit(_rows(many), features=5).additive, Encoding)
