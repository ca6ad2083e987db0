"""Quantities of a table by other ways of computing them: plain sums, and canonical correlations of its rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.cross_decomposition import CCA
from support import SEEDS, random_counts, random_functions, rows

from featgeo import FiniteJoint, Moments, Nesting, heterogeneous_estimate
from featgeo.geometry import finite

NAMES = ("a", "b", "y")


@pytest.fixture(params=SEEDS)
def joint(request):
    return FiniteJoint(random_counts(request.param, (3, 4, 5)), NAMES)


def test_the_kernel_is_the_density_ratio_less_1_and_its_matrix_carries_the_roots(joint):
    p = joint.probability()
    p_x, p_y = p.sum(axis=2), p.sum(axis=(0, 1))
    ratio = p / (p_x[..., None] * p_y) - 1
    np.testing.assert_allclose(joint.cdk(), ratio, atol=1e-12)
    np.testing.assert_allclose(joint.cdm(), (np.sqrt(p_x[..., None] * p_y) * ratio).reshape(12, 5), atol=1e-12)
    energy = np.sum(p_x[..., None] * p_y * ratio**2)
    assert joint.mean_square_contingency() == pytest.approx(energy, abs=1e-12)
    assert joint.mutual_information() == pytest.approx(np.sum(p * np.log(ratio + 1)), abs=1e-12)
    assert joint.rank() == 4
    assert joint.maximal_correlation() == pytest.approx(joint.modes().sigma[0], abs=1e-12)
    reference = np.random.default_rng(0).uniform(1, 2, p.shape)
    reference /= reference.sum()
    np.testing.assert_allclose(joint.density_ratio(7 * reference), p / reference - 1, atol=1e-12)


def test_sides_may_be_named_in_any_order(joint):
    p = joint.probability("y", "a")
    np.testing.assert_allclose(p, joint.probability().sum(axis=1).T, atol=1e-15)
    np.testing.assert_allclose(joint.cdk("y", "a"), p / np.outer(p.sum(axis=1), p.sum(axis=0)) - 1, atol=1e-12)
    swapped = joint.modes(x="y", y=("a", "b"))
    straight = joint.modes(x=("a", "b"), y="y")
    np.testing.assert_allclose(swapped.sigma, straight.sigma, atol=1e-12)
    np.testing.assert_allclose(np.moveaxis(swapped.kernel(), 0, 2), straight.kernel(), atol=1e-12)


def test_cca_is_that_of_the_rows(joint):
    """Numbers attached to the symbols, of different dimension on either side, correlated over the rows."""
    a, b, y = rows(np.rint(joint.probability() * joint.total).astype(int))
    x_values, y_values = random_functions(0, 3, 4, 2), random_functions(1, 5, 3)
    modes = joint.cca(x_values, y_values)
    u, v = x_values[a, b], y_values[y]
    u, v = (np.linalg.qr(z - z.mean(axis=0))[0] for z in (u, v))
    np.testing.assert_allclose(modes.sigma, np.linalg.svd(u.T @ v)[1], atol=1e-10)
    f, g = modes.f[a, b], modes.g[y]
    np.testing.assert_allclose(f.T @ g / len(f), np.diag(modes.sigma), atol=1e-10)
    alone = joint.cca(x_values[:, 0, 0], y_values[:, 0], x="a", y="y")
    assert alone.sigma[0] == pytest.approx(abs(np.corrcoef(x_values[a, 0, 0], y_values[y, 0])[0, 1]), abs=1e-10)
    first = CCA(1, scale=False, tol=1e-12, max_iter=10_000).fit(x_values[a, b], y_values[y])
    scores = first.transform(x_values[a, b], y_values[y])
    assert abs(np.corrcoef(scores[0][:, 0], f[:, 0])[0, 1]) == pytest.approx(1, abs=1e-6)


def test_projected_parts_are_orthogonal_and_add_up(joint):
    phi = random_functions(2, 3, 4, 2)
    aligned, rest = joint.projected(phi)
    np.testing.assert_allclose(aligned.kernel() + rest.kernel(), joint.cdk(), atol=1e-10)
    p_x = joint.probability("a", "b")
    np.testing.assert_allclose(np.einsum("ab,abi,aby->iy", p_x, phi, rest.kernel()), 0, atol=1e-10)


def test_conditional_parts_are_the_kernels_given_s(joint):
    """i(a; y | b): what p(a, b, y) / (p(a) p(b, y)) has beyond p(a, b) / (p(a) p(b))."""
    parts = joint.conditional("a", "y", "b")
    p = joint.probability()
    p_a, p_by, p_ab, p_b = p.sum(axis=(1, 2)), p.sum(axis=0), p.sum(axis=2), p.sum(axis=(0, 2))
    markov = p_ab / np.outer(p_a, p_b)
    np.testing.assert_allclose(parts.markov.kernel(), markov - 1, atol=1e-12)
    whole = p / (p_a[:, None, None] * p_by)
    np.testing.assert_allclose(parts.conditional.kernel(), whole - markov[..., None], atol=1e-12)
    few = joint.conditional("a", "y", "b", k=1)
    assert len(few.markov) == len(few.conditional) == 1


@pytest.mark.parametrize("k", [1, 2])
def test_sparse_tables_say_the_same(joint, k, monkeypatch):
    monkeypatch.setattr(finite, "_DENSE_CELLS", 0)  # small ones would be made dense
    pair = joint.marginal("a", "y")
    counts = pair.probability() * pair.total
    thin = FiniteJoint(sparse.coo_array(counts), ("a", "y"))
    assert thin.is_sparse
    np.testing.assert_allclose(thin.modes(k).sigma, pair.modes(k).sigma, atol=1e-10)
    np.testing.assert_allclose(thin.modes(k).kernel(), pair.modes(k).kernel(), atol=1e-9)
    mirrored = thin.strongest(k, x="y", y="a")
    assert (mirrored.f.shape, mirrored.g.shape) == ((5, k), (3, k))
    np.testing.assert_allclose(mirrored.kernel().T, pair.modes(k).kernel(), atol=1e-9)
    assert len(thin.strongest(9)) == len(pair.strongest(9)) == 2
    assert thin.mean_square_contingency() == pytest.approx(pair.mean_square_contingency(), abs=1e-12)
    assert thin.mutual_information() == pytest.approx(pair.mutual_information(), abs=1e-12)
    assert repr(thin) == f"FiniteJoint(a: 3, y: 5; total {pair.total:g}, sparse)"
    assert repr(pair) == f"FiniteJoint(a: 3, y: 5; total {pair.total:g})"


def test_maximum_entropy_keeps_pairs_and_has_no_interaction_of_three(joint):
    fitted = joint.maximum_entropy()
    for pair in (("a", "b"), ("a", "y"), ("b", "y")):
        np.testing.assert_allclose(fitted.probability(*pair), joint.probability(*pair), atol=1e-9)
    log = np.log(fitted.probability())
    for axis in range(3):
        log = np.diff(log, axis=axis)
    np.testing.assert_allclose(log, 0, atol=1e-6)
    assert fitted.total == joint.total
    alone = joint.maximum_entropy([["a"], ["b"], ["y"]]).probability()
    p = [joint.probability(name) for name in NAMES]
    np.testing.assert_allclose(alone, np.einsum("a,b,y->aby", *p), atol=1e-12)


def test_an_estimate_from_one_complete_table_is_that_table(joint):
    estimate = heterogeneous_estimate([joint], "y")
    np.testing.assert_allclose(estimate.density, joint.cdk(), atol=1e-10)
    np.testing.assert_allclose(estimate.table, joint.probability(), atol=1e-10)
    assert estimate.negative_mass == pytest.approx(0, abs=1e-12)
    parts, exact = estimate.multimodal(), joint.multimodal(["a", "b"], "y")
    np.testing.assert_allclose(parts.bivariate.sigma, exact.bivariate.sigma, atol=1e-10)
    np.testing.assert_allclose(parts.interaction.sigma, exact.interaction.sigma, atol=1e-10)


def test_what_things_print():
    assert repr(Nesting([2, 1], weights=[1, 3])) == repr(Nesting(Nesting([2, 1], weights=[1, 3]).levels))
    assert "dim=2" in repr(Nesting([2]))
    moments = Moments.from_features({"x": np.zeros((6, 2)), "y": np.zeros((6, 1))})
    assert repr(moments) == "Moments(x: 2 of weight 6, y: 1 of weight 6)"
