"""FiniteJoint beyond the theorems: measures, views of many variables, sparse tables, bad input."""

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.stats.contingency import association
from sklearn.metrics import mutual_info_score
from support import SEEDS, random_counts, rows

from featgeo import FiniteJoint, heterogeneous_estimate
from featgeo.geometry.alphabet import Alphabet


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


def test_a_reference_may_be_0_where_the_table_is():
    ratio = FiniteJoint(np.array([[1.0, 0], [1, 2]])).density_ratio(np.array([[1, 0], [1, 1]]))
    np.testing.assert_allclose(ratio, [[-0.25, 0], [-0.25, 0.5]])


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


def test_a_joint_takes_any_tensor_and_hands_out_copies():
    joint = FiniteJoint(torch.ones(2, 3, dtype=torch.bfloat16, requires_grad=True))
    joint.probability()[:] = 7
    joint.probability("x", "y")[:] = 7
    np.testing.assert_allclose(joint.probability(), 1 / 6, atol=1e-15)


def test_samples_are_counted_with_their_labels():
    joint = FiniteJoint.from_samples(pet=["cat", "dog", "cat", "cat"], size=[1, 3, 1, 2])
    assert joint.names == ("pet", "size")
    assert joint.categories == (("cat", "dog"), (1, 2, 3))
    np.testing.assert_allclose(joint.probability() * 4, [[2, 1, 0], [0, 0, 1]])


@pytest.fixture
def always_sparse(monkeypatch):
    """Keep even small tables sparse, so that they can be compared with dense ones."""
    monkeypatch.setattr("featgeo.geometry.finite._DENSE_CELLS", 0)


def sparse_twin(counts, names=None):
    joint = FiniteJoint(sparse.coo_array(counts), names)
    assert joint.is_sparse
    return joint


def test_small_sparse_tables_are_made_dense_and_large_ones_are_not():
    small = FiniteJoint(sparse.eye_array(4))
    assert not small.is_sparse
    assert small.rank() == 3
    rng = np.random.default_rng(0)
    codes = rng.permutation(5000)
    large = FiniteJoint.from_samples(x=codes, y=codes % 4999)
    assert large.is_sparse
    assert large.shape == (5000, 4999)
    assert not large.marginal("x").is_sparse
    tall = FiniteJoint(sparse.eye_array(2**20 + 5, 2))
    assert tall.probability("x").sum() == pytest.approx(1)


@pytest.mark.parametrize("seed", SEEDS)
def test_sparse_and_dense_tables_give_the_same_answers(seed, always_sparse):
    counts = np.random.default_rng(seed).poisson(0.3, (150, 120))
    dense, thin = FiniteJoint(counts), sparse_twin(counts)
    exact, found = dense.modes(10), thin.modes(10)
    np.testing.assert_allclose(found.sigma, exact.sigma, atol=1e-10)
    np.testing.assert_allclose(found.f, exact.f, atol=1e-6)
    np.testing.assert_allclose(found.g, exact.g, atol=1e-6)
    for measure in ("mean_square_contingency", "mutual_information", "maximal_correlation"):
        assert getattr(thin, measure)() == pytest.approx(getattr(dense, measure)(), abs=1e-12)


def test_sparse_modes_of_a_table_beyond_the_dense_limit():
    counts = np.random.default_rng(0).poisson(0.02, (1100, 1000))
    thin = FiniteJoint(sparse.csr_array(counts))
    assert thin.is_sparse
    cdm = FiniteJoint(counts).cdm()
    np.testing.assert_allclose(thin.modes(10).sigma, np.linalg.svd(cdm, compute_uv=False)[:10], atol=1e-10)


def test_few_modes_of_a_dense_table_with_many_empty_cells_are_those_of_all(monkeypatch):
    counts = np.random.default_rng(0).poisson(0.01, (500, 450))
    joint = FiniteJoint(counts)
    exact = joint.modes().first(5)
    monkeypatch.setattr(FiniteJoint, "components", None)  # which finds all modes
    found = joint.modes(5)
    np.testing.assert_allclose(found.sigma, exact.sigma, atol=1e-13)
    np.testing.assert_allclose(found.f, exact.f, atol=1e-6)
    np.testing.assert_allclose(found.g, exact.g, atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_repeated_singular_values_are_all_found(seed, always_sparse):
    """Unconnected parts repeat sigma = 1, once less than there are parts; a single Lanczos run can miss some."""
    rng = np.random.default_rng(seed)
    parts = [rng.poisson(1.0, (8, 8)) + np.eye(8) for _ in range(60)]
    found = sparse_twin(sparse.block_diag(parts)).modes(10)
    np.testing.assert_allclose(found.sigma, 1, atol=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("shape", [(30, 6, 20), (80, 10, 70)])
def test_sparse_conditional_component_is_exact(seed, shape, always_sparse):
    counts = np.random.default_rng(seed).poisson(0.5, shape)
    names = ("x", "s", "y")
    exact = FiniteJoint(counts, names).conditional("x", "y", "s", k=3)
    found = sparse_twin(counts, names).conditional("x", "y", "s", k=3)
    np.testing.assert_allclose(found.markov.sigma, exact.markov.sigma, atol=1e-10)
    np.testing.assert_allclose(found.conditional.sigma, exact.conditional.sigma, atol=1e-10)
    np.testing.assert_allclose(found.conditional.kernel(), exact.conditional.kernel(), atol=1e-6)


def test_conditional_keeps_at_most_k_modes(always_sparse):
    counts = np.random.default_rng(0).poisson(0.5, (30, 2, 20))
    names = ("x", "s", "y")
    for joint in (sparse_twin(counts, names), FiniteJoint(counts, names)):
        components = joint.conditional("x", "y", "s", k=3)
        assert len(components.markov) == 1  # two symbols of s
        assert len(components.conditional) == 3
    independent = FiniteJoint(np.ones((3, 2, 2)), names).conditional("x", "y", "s", k=1)
    assert len(independent.markov) == len(independent.conditional) == 0


def test_large_product_alphabets_cost_only_the_cells_that_occur():
    rng = np.random.default_rng(0)
    coordinates = rng.integers(0, 100_000, (5, 3000))
    joint = FiniteJoint(sparse.coo_array((np.ones(3000), tuple(coordinates)), shape=(100_000,) * 5))
    assert joint.mutual_information() == pytest.approx(np.log(3000), abs=0.05)  # y nearly tells the row
    assert joint.maximal_correlation("x1", "x2") == pytest.approx(1, abs=1e-10)
    with pytest.raises(ValueError, match="too much memory"):
        joint.modes(1)


def test_repeated_cells_of_small_integers_add_up():
    cells = (np.array([200, 100, 50], dtype=np.uint8), ([0, 0, 1], [0, 0, 1]))
    assert FiniteJoint(sparse.coo_array(cells, shape=(2, 2))).total == 350


def test_energy_counts_the_cells_that_never_occur():
    counts = np.array([[5, 0, 0], [0, 3, 1], [2, 0, 4]])
    p = counts / counts.sum()
    independent = np.outer(p.sum(1), p.sum(0))
    exact = np.sum((p - independent) ** 2 / independent)
    assert FiniteJoint(counts).mean_square_contingency() == pytest.approx(exact, abs=1e-14)


@pytest.mark.parametrize("tiny", [1e-100, 1e-160, 1e-200])
def test_tiny_probabilities_are_not_lost(tiny):
    joint = FiniteJoint(np.diag([1, tiny, 1]))
    np.testing.assert_allclose(joint.modes().sigma, [1, 1], atol=1e-12)
    assert joint.mean_square_contingency() == pytest.approx(2, abs=1e-12)


def test_constant_numbers_add_no_canonical_correlation():
    rng = np.random.default_rng(0)
    for _ in range(50):
        joint = FiniteJoint(rng.integers(1, 9, (4, 3)))
        x, y = rng.standard_normal((4, 1)), rng.standard_normal((3, 2))
        assert len(joint.cca(np.full(4, 0.1), y)) == 0
        with_constant = joint.cca(np.hstack([x, np.full((4, 1), 0.1)]), y)
        np.testing.assert_allclose(with_constant.sigma, joint.cca(x, y).sigma, atol=1e-12)


def test_heterogeneous_metric_pools_the_samples():
    first = FiniteJoint(30 * np.ones((2, 2, 2)), ("a", "b", "y"))
    second = FiniteJoint([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], ("a", "b", "y"))
    third = FiniteJoint([[40, 10], [5, 45]], ("a", "y"))
    estimate = heterogeneous_estimate([first, second, third], "y")
    pooled_y = [120 + 16 + 45, 120 + 20 + 55]
    np.testing.assert_allclose(estimate.y.mass, np.divide(pooled_y, sum(pooled_y)), atol=1e-15)
    pooled_x = 60 + np.array([[3, 7], [11, 15]])
    np.testing.assert_allclose(estimate.x.mass, pooled_x / pooled_x.sum(), atol=1e-15)


def test_a_rare_complete_table_still_identifies_the_interaction():
    complete = FiniteJoint(random_counts(0, (2, 3, 2)), ("a", "b", "y"))
    many = FiniteJoint(1e11 * random_counts(1, (2, 2)), ("a", "y"))
    _, interaction = heterogeneous_estimate([complete, many], "y").components([["a", "b"], None])
    _, alone = heterogeneous_estimate([complete], "y").components([["a", "b"], None])
    # The sizes of tables weigh the additive parts against each other; only R_Y differs for the interaction.
    assert interaction.energy == pytest.approx(alone.energy, rel=0.5)


def test_maximum_entropy_keeps_single_marginals_and_the_number_of_samples():
    joint = FiniteJoint(random_counts(0, (4,)), ("x",))
    np.testing.assert_allclose(joint.maximum_entropy().probability(), joint.probability(), atol=1e-14)
    pair = FiniteJoint(random_counts(0, (4, 3)))
    independent = pair.maximum_entropy([["x"], ["y"]])
    assert independent.total == pytest.approx(pair.total)
    np.testing.assert_allclose(
        independent.probability(), np.outer(pair.probability("x"), pair.probability("y")), atol=1e-14
    )


LARGE = sparse.eye_array(5000)
COMPLETE = FiniteJoint(np.ones((2, 2, 2)), ("a", "b", "y"), [("u", "v"), (0, 1), (0, 1)])


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
        (lambda: FiniteJoint(LARGE).modes(), "Pass k"),
        (lambda: FiniteJoint(LARGE).modes(2.5), "whole number"),
        (lambda: FiniteJoint(LARGE).rank(), "dense"),
        (lambda: FiniteJoint(LARGE).cdk(), "dense"),
        (lambda: FiniteJoint(LARGE).projected(np.ones((5000, 1))), "dense"),
        (lambda: FiniteJoint(np.full((2, 2), 1e308)), "more than a float can hold"),
        (lambda: FiniteJoint(np.ma.masked_array(np.eye(2), np.eye(2) > 0)), "masked"),
        (lambda: FiniteJoint(np.eye(3) + 1).projected(np.array([[np.nan], [1], [2.0]])), "NaN or infinite"),
        (lambda: FiniteJoint(np.eye(3) + 1).cca([np.inf, 1, 2], [1, 2, 3]), "NaN or infinite"),
        (lambda: FiniteJoint(np.eye(3) + 1).modes(x_space=["q"]), "no variable 'q'"),
        (lambda: FiniteJoint.from_samples(x=["a", float("nan"), "b"], y=[1, 2, 3]), "missing"),
        (lambda: FiniteJoint.from_samples(x=[1, "1", 2], y=[1, 2, 3]), "put in order"),
        (lambda: FiniteJoint.from_samples(x=[1, 2], y=[1]), "same length"),
        (lambda: FiniteJoint.from_samples(x=[1.0, np.nan], y=[1, 2]), "missing"),
        (lambda: FiniteJoint.from_samples(x=np.array(["a", None], dtype=object), y=[1, 2]), "missing"),
        (lambda: FiniteJoint.from_samples(x=np.array(["a", 1], dtype=object), y=[1, 2]), "put in order"),
        (lambda: FiniteJoint(np.eye(3)).modes(1.5), "whole number"),
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
        (lambda: heterogeneous_estimate([COMPLETE, FiniteJoint(np.ones((4, 2)), ("a", "y"))], "y"), "same symbols"),
        (lambda: heterogeneous_estimate([COMPLETE, FiniteJoint(np.ones((2, 3)), ("a", "y"))], "y"), "same symbols"),
        (
            lambda: heterogeneous_estimate([COMPLETE, FiniteJoint(np.eye(2), ("a", "y"), [("v", "u"), (0, 1)])], "y"),
            "same symbols",
        ),
    ],
)
def test_bad_input_is_refused_with_the_way_out(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_interactions_of_many_variables_take_no_more_than_their_table():
    """2^11 symbols have 3^11 functions of subsets, of which 2^11 are enough; the energies still add up."""
    rng = np.random.default_rng(0)
    joint = FiniteJoint(rng.random((2,) * 10))
    orders = joint.multimodal().orders
    assert len(orders) == 9
    energy = sum(float(np.sum(modes.sigma**2)) for modes in orders)
    assert energy == pytest.approx(joint.mean_square_contingency(), rel=1e-10)


def test_spaces_of_subsets_are_those_of_all_their_indicators():
    """With holes in the table and symbols of any probability."""
    rng = np.random.default_rng(1)
    table = rng.random((3, 2, 4, 2)) ** 8
    table[rng.random(table.shape) < 0.2] = 0
    joint = FiniteJoint(table, names=("a", "b", "c", "y"))
    side = Alphabet(("a", "b", "c"), joint.probability("a", "b", "c"))
    spaces = [["a", "b"], [("a", "c")], [("a", "b", "c")]]
    flag = side.flag(spaces)
    before = np.empty((len(side.root_mass), 0))
    for space, end in zip(spaces, flag.ends, strict=True):
        before = np.hstack([before, *(side.coarsening(names).toarray() for names in space)])
        assert np.linalg.matrix_rank(before) == end
        own = flag.basis[:, :end]
        np.testing.assert_allclose(own @ (own.T @ before), before, atol=1e-8)


@pytest.mark.parametrize("shape", [(2,) * 15, (3,) * 10, (12,) * 5])
def test_work_without_end_is_refused_with_its_size(shape):
    joint = FiniteJoint(np.ones(shape))
    with pytest.raises(ValueError, match=r"functions on the .* take about .* operations and .* GB; .* Name fewer"):
        joint.multimodal()


def test_functions_may_come_as_lists_of_numbers():
    joint = FiniteJoint(np.arange(1.0, 13).reshape(3, 4) ** 2 % 7 + 1)
    functions = np.array([[0.0], [1.0], [5.0]])
    np.testing.assert_allclose(joint.modes(x_space=functions.tolist()).sigma, joint.modes(x_space=functions).sigma)
