"""FiniteJoint beyond the theorems: measures, views of many variables, sparse tables, bad input."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats.contingency import association
from sklearn.metrics import mutual_info_score
from support import SEEDS, random_counts, rows

from featgeo import FiniteJoint, heterogeneous_estimate


@pytest.mark.parametrize("seed", SEEDS)
def test_measures_agree_with_the_libraries_that_know_them(seed):
    counts = random_counts(seed, (6, 4))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    assert joint.mutual_information() == pytest.approx(mutual_info_score(x, y), abs=1e-12)
    pearson = association(counts, method="pearson")  # sqrt(phi^2 / (1 + phi^2))
    assert joint.mean_square_contingency() == pytest.approx(pearson**2 / (1 - pearson**2), abs=1e-12)
    np.testing.assert_allclose(np.linalg.svd(joint.cdm(), compute_uv=False)[:3], joint.modes().sigma, atol=1e-12)
    assert joint.rank() == 3
    reference = np.outer(joint.probability("x"), joint.probability("y"))
    np.testing.assert_allclose(joint.density_ratio(reference), joint.cdk(), atol=1e-13)


def test_independent_variables_have_rank_zero():
    joint = FiniteJoint(np.outer([1, 2, 3], [0.2, 0.5, 0.1, 0.2]))
    assert joint.rank() == 0
    assert joint.maximal_correlation() == 0
    assert joint.mean_square_contingency() == pytest.approx(0, abs=1e-15)
    with pytest.raises(ValueError, match="rank 0"):
        joint.modes(1)


def test_a_function_of_x_has_maximal_correlation_one():
    joint = FiniteJoint(np.kron(np.eye(3), np.ones((2, 1))))
    np.testing.assert_allclose(joint.modes().sigma, [1, 1], atol=1e-12)


def test_marginals_keep_names_labels_order_and_size():
    joint = FiniteJoint(random_counts(0, (2, 3, 4)), ("a", "b", "c"), [("u", "v"), "xyz", range(4)])
    swapped = joint.marginal("c", "a")
    assert swapped.shape == (4, 2)
    assert swapped.names == ("c", "a")
    assert swapped.categories == ((0, 1, 2, 3), ("u", "v"))
    assert swapped.total == joint.total
    np.testing.assert_allclose(swapped.probability(), joint.probability().sum(1).T, atol=1e-15)
    assert joint.mean_square_contingency("c", "a") == pytest.approx(swapped.mean_square_contingency("c", "a"))
    merged = FiniteJoint(joint.probability().reshape(6, 4))
    np.testing.assert_allclose(joint.modes().sigma, merged.modes().sigma, atol=1e-13)
    assert joint.modes().f.shape == (2, 3, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_interaction_orders_add_up_and_see_only_what_they_should(seed):
    joint = FiniteJoint(random_counts(seed, (3, 2, 3, 4)))
    parts = joint.multimodal()
    np.testing.assert_allclose(sum(order.kernel() for order in parts.orders), joint.cdk(), atol=1e-12)
    assert sum(order.energy for order in parts.orders) == pytest.approx(joint.mean_square_contingency(), abs=1e-12)
    assert parts.interaction.energy == pytest.approx(sum(order.energy for order in parts.orders[1:]), abs=1e-12)
    # Averaging the third order over one source, given the other two, leaves nothing.
    p = joint.probability("x1", "x2", "x3")
    for axis in range(3):
        left = (p[..., None] * parts.orders[2].kernel()).sum(axis)
        np.testing.assert_allclose(left, 0, atol=1e-14)


def test_exclusive_or_is_pure_interaction_of_the_highest_order():
    bits = np.indices((2, 2, 2)).reshape(3, -1)
    table = np.zeros((2, 2, 2, 2))
    table[(*bits, bits.sum(0) % 2)] = 1
    parts = FiniteJoint(table).multimodal()
    np.testing.assert_allclose([order.energy for order in parts.orders], [0, 0, 1], atol=1e-12)


def test_components_on_tables_with_impossible_cells():
    counts = random_counts(0, (3, 3, 3))
    counts[0, 1] = 0  # (x1, x2) = (0, 1) never happens
    counts[2, 2, 0] = 0
    joint = FiniteJoint(counts)
    parts = joint.multimodal()
    possible = joint.probability("x1", "x2") > 0
    whole = parts.bivariate.kernel() + parts.interaction.kernel()
    np.testing.assert_allclose(whole[possible], joint.cdk()[possible], atol=1e-12)
    assert np.all(parts.bivariate.f[0, 1] == 0)


def test_samples_are_counted_with_their_labels():
    joint = FiniteJoint.from_samples(pet=["cat", "dog", "cat", "cat"], size=[1, 3, 1, 2])
    assert joint.names == ("pet", "size")
    assert joint.categories == (("cat", "dog"), (1, 2, 3))
    np.testing.assert_allclose(joint.probability() * 4, [[2, 1, 0], [0, 0, 1]])


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_and_dense_tables_give_the_same_answers(seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.3, (150, 120))
    dense, thin = FiniteJoint(counts), FiniteJoint(sparse.csr_array(counts))
    exact, found = dense.modes(10), thin.modes(10)
    np.testing.assert_allclose(found.sigma, exact.sigma, atol=1e-8)
    np.testing.assert_allclose(found.f, exact.f, atol=1e-6)
    np.testing.assert_allclose(found.g, exact.g, atol=1e-6)
    for measure in ("mean_square_contingency", "mutual_information", "maximal_correlation"):
        assert getattr(thin, measure)() == pytest.approx(getattr(dense, measure)(), abs=1e-12)
    np.testing.assert_allclose(thin.probability("y"), dense.probability("y"), atol=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_conditional_component_is_exact(seed):
    counts = np.random.default_rng(seed).poisson(0.5, (30, 6, 20))
    names = ("x", "s", "y")
    exact = FiniteJoint(counts, names).conditional("x", "y", "s", k=3)
    found = FiniteJoint(sparse.coo_array(counts), names).conditional("x", "y", "s", k=3)
    np.testing.assert_allclose(found.markov.sigma, exact.markov.sigma, atol=1e-10)
    np.testing.assert_allclose(found.conditional.sigma, exact.conditional.sigma, atol=1e-10)
    np.testing.assert_allclose(found.conditional.g, exact.conditional.g, atol=1e-6)


def test_sparse_side_information_may_have_fewer_modes_than_asked_for():
    counts = np.random.default_rng(0).poisson(0.5, (30, 2, 20))
    names = ("x", "s", "y")
    found = FiniteJoint(sparse.coo_array(counts), names).conditional("x", "y", "s", k=3)
    assert len(found.markov) == 1  # two symbols of s
    assert len(found.conditional) == 3
    np.testing.assert_allclose(found.markov.sigma, FiniteJoint(counts, names).modes(x="x", y="s").sigma, atol=1e-12)


def test_samples_of_a_large_alphabet_stay_sparse():
    rng = np.random.default_rng(0)
    codes = rng.permutation(5000)
    joint = FiniteJoint.from_samples(x=codes, y=codes % 4999)
    assert joint.is_sparse
    assert joint.shape == (5000, 4999)
    assert joint.modes(2).sigma == pytest.approx([1, 1], abs=1e-10)


SPARSE = sparse.csr_array(np.eye(4) + 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FiniteJoint([[1, np.nan]]), "NaN or infinite"),
        (lambda: FiniteJoint([[1, -1]]), "non-negative"),
        (lambda: FiniteJoint(np.zeros((2, 2))), "all zero"),
        (lambda: FiniteJoint(np.empty((0, 3))), "empty"),
        (lambda: FiniteJoint([["1", "2"]]), "real numbers"),
        (lambda: FiniteJoint(3.0), "at least one variable"),
        (lambda: FiniteJoint(sparse.csr_array(-np.eye(2))), "non-negative"),
        (lambda: FiniteJoint(np.eye(2), names=("a",)), "Name each axis"),
        (lambda: FiniteJoint(np.eye(2), names=("a", "a")), "differ"),
        (lambda: FiniteJoint(np.eye(2), categories=[(1, 2), (1,)]), "one label"),
        (lambda: FiniteJoint(np.eye(3)).modes(3), "rank 2"),
        (lambda: FiniteJoint(np.eye(3)).modes(0), "at least 1"),
        (lambda: FiniteJoint(np.eye(3)).modes(x="x", y="x"), "different variables"),
        (lambda: FiniteJoint(np.eye(3)).marginal("q"), "no variable 'q'"),
        (lambda: FiniteJoint(np.eye(3)).components([None], []), "same length"),
        (lambda: FiniteJoint(np.eye(3)).modes(x_space=np.ones((2, 1))), "shape"),
        (lambda: FiniteJoint(np.eye(3)).density_ratio(np.eye(2)), "shape of the table"),
        (lambda: FiniteJoint(np.ones((3, 3))).density_ratio(np.eye(3)), "infinite"),
        (lambda: FiniteJoint(np.eye(3)).multimodal(), "two sources"),
        (lambda: FiniteJoint(SPARSE).modes(), "got k=None"),
        (lambda: FiniteJoint(SPARSE).modes(4), "between 1 and 3"),
        (lambda: FiniteJoint(sparse.csr_array(np.ones((5, 5)))).modes(1), "rank 0"),
        (lambda: FiniteJoint(SPARSE).multimodal(), "two sources"),
        (lambda: FiniteJoint(SPARSE).projected(np.ones((4, 1))), "dense"),
        (lambda: FiniteJoint.from_samples(x=[1, 2], y=[1]), "same length"),
        (lambda: FiniteJoint.from_samples(x=[1.0, np.nan], y=[1, 2]), "missing"),
        (lambda: FiniteJoint.from_samples(x=np.array(["a", None], dtype=object), y=[1, 2]), "missing"),
        (lambda: FiniteJoint.from_samples(x=np.array(["a", 1], dtype=object), y=[1, 2]), "put in order"),
        (lambda: FiniteJoint(np.eye(3)).modes(1.5), "whole number"),
        (lambda: FiniteJoint(SPARSE).rank(), "dense"),
        (lambda: FiniteJoint(sparse.eye_array(100_000)).cdk(), "dense"),
        (lambda: heterogeneous_estimate([], "y"), "at least one table"),
        (lambda: heterogeneous_estimate([FiniteJoint(np.eye(2), ("a", "b"))], "y"), "must hold 'y'"),
        (
            lambda: heterogeneous_estimate(
                [FiniteJoint(np.eye(2), ("a", "y")), FiniteJoint(np.eye(2), ("b", "y"))], "y"
            ),
            "No table sees all",
        ),
        (
            lambda: heterogeneous_estimate(
                [FiniteJoint([[[1, 1]], [[0, 0]]], ("a", "b", "y")), FiniteJoint(np.eye(2), ("a", "y"))], "y"
            ),
            "never shows",
        ),
        (
            lambda: heterogeneous_estimate(
                [FiniteJoint(np.ones((2, 2, 2)), ("a", "b", "y")), FiniteJoint(np.eye(3), ("a", "y"))], "y"
            ),
            "same alphabet",
        ),
    ],
)
def test_bad_input_is_refused_with_the_way_out(call, message):
    with pytest.raises(ValueError, match=message):
        call()
