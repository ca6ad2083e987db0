"""Nested H-scores: the definition, its gradients, both estimators, both modes, every precision."""

import numpy as np
import pytest
import torch
from support import DEVICES, SEEDS, ascend, assert_reached_never_passed, product, random_counts, random_functions, rows

from featgeo import FiniteJoint, Moments, Nesting, h_score, moments_h_score, nested_h_score, single_sided_h_score


def random_case(seed):
    rng = np.random.default_rng(seed)
    dims = rng.integers(1, 4, rng.integers(1, 6)).tolist()
    nesting = Nesting(dims, rng.uniform(0.1, 3, len(dims)))
    f, g = (torch.from_numpy(rng.standard_normal((rng.integers(5, 40), nesting.k)) + 0.3) for _ in range(2))
    n = min(len(f), len(g))
    return f[:n].requires_grad_(), g[:n].requires_grad_(), nesting


def by_definition(f, g, unbiased):
    """Definition H as written; unbiased: averages over pairs of different rows."""
    n = len(f)
    scores = (f @ g.T) ** 2  # (f(x_i) . g(y_j))^2
    covariance = (f * g).sum() / n - f.mean(0) @ g.mean(0)
    if unbiased:
        return covariance * n / (n - 1) - (scores.sum() - scores.diagonal().sum()) / (n * (n - 1)) / 2
    return covariance - torch.trace((f.T @ f / n) @ (g.T @ g / n)) / 2


def naive(f, g, nesting, unbiased, sequential=False):
    """One H-score a level."""
    total = 0.0
    for level, end in zip(nesting.levels, nesting.ends, strict=True):
        left, right = f[:, :end], g[:, :end]
        if sequential:
            start = end - level.dim
            left = torch.hstack([left[:, :start].detach(), left[:, start:]])
            right = torch.hstack([right[:, :start].detach(), right[:, start:]])
        total = total + level.weight * by_definition(left, right, unbiased)
    return total


@pytest.mark.parametrize("mode", ["joint", "sequential"])
@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_nested_h_score_is_one_h_score_a_level_in_value_and_gradient(seed, unbiased, mode):
    f, g, nesting = random_case(seed)
    fast = nested_h_score(f, g, nesting, unbiased, mode)
    slow = naive(f, g, nesting, unbiased, sequential=mode == "sequential")
    assert fast.item() == pytest.approx(slow.item(), rel=1e-12, abs=1e-12)
    for a, b in zip(torch.autograd.grad(fast, (f, g)), torch.autograd.grad(slow, (f, g)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_gradients_pass_the_finite_difference_check(seed, unbiased):
    f, g, nesting = random_case(seed)
    assert torch.autograd.gradcheck(lambda f, g: h_score(f, g, unbiased), (f, g))
    assert torch.autograd.gradcheck(lambda f, g: nested_h_score(f, g, nesting, unbiased), (f, g))


@pytest.mark.parametrize("unbiased", [False, True])
def test_sequential_gradient_is_that_of_each_level_with_earlier_levels_fixed(unbiased):
    """By finite differences of the level's own H-score, for every entry of f."""
    f, g, nesting = random_case(3)
    gradient = torch.autograd.grad(nested_h_score(f, g, nesting, unbiased, "sequential"), f)[0]
    step = 1e-6
    for row in range(3):
        for dimension in range(nesting.k):
            level = nesting.level_of[dimension]
            end, weight = nesting.ends[level], nesting.weights[level]
            values = []
            for sign in (1, -1):
                moved = f.detach().clone()
                moved[row, dimension] += sign * step
                values.append(weight * by_definition(moved[:, :end], g.detach()[:, :end], unbiased).item())
            assert gradient[row, dimension].item() == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_h_score_is_the_energy_that_features_capture(seed):
    """Eq. H: 2 H(f, g) = ||i||^2 - ||i - f (x) g||^2, on the empirical distribution."""
    counts = random_counts(seed, (5, 4))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    f, g = random_functions(seed, 5, 3), random_functions(seed + 1, 4, 3)
    metric = np.outer(joint.probability("x"), joint.probability("y"))
    captured = joint.mean_square_contingency() - np.sum(metric * (joint.cdk() - f @ g.T) ** 2)
    assert h_score(torch.from_numpy(f)[x], torch.from_numpy(g)[y]).item() == pytest.approx(captured / 2, abs=1e-10)


def test_unbiased_estimator_is_right_on_average_and_the_plug_in_one_is_not():
    counts = random_counts(0, (5, 4))
    x, y = rows(counts)
    f, g = (torch.from_numpy(random_functions(i, size, 3)) for i, size in ((0, 5), (1, 4)))
    nesting = Nesting([1, 2], [1.0, 0.5])
    truth = nested_h_score(f[x], g[y], nesting).item()
    generator = torch.Generator().manual_seed(0)
    # Minibatches of 8 independent rows of the same distribution.
    batches = torch.randint(len(x), (5_000, 8), generator=generator)
    for unbiased in (True, False):
        values = np.array([nested_h_score(f[x[b]], g[y[b]], nesting, unbiased).item() for b in batches])
        standard_errors = abs(values.mean() - truth) / (values.std() / np.sqrt(len(values)))
        assert (standard_errors < 3) == unbiased


@pytest.mark.parametrize("seed", SEEDS)
def test_moments_give_the_same_score_as_rows(seed):
    f, g, nesting = random_case(seed)
    f, g = f.detach(), g.detach()
    moments = Moments.from_chunks({"f": f[i : i + 3], "g": g[i : i + 3]} for i in range(0, len(f), 3))
    assert moments_h_score(moments, nesting) == pytest.approx(nested_h_score(f, g, nesting).item(), abs=1e-12)
    assert moments_h_score(moments) == pytest.approx(h_score(f, g).item(), abs=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("mode", ["joint", "sequential"])
def test_lower_precision_is_accumulated_in_float32(dtype, mode, device):
    generator = torch.Generator().manual_seed(0)
    f, g = (torch.randn(2000, 6, generator=generator).to(device, dtype).requires_grad_() for _ in range(2))
    nesting = Nesting([2, 4])
    score = nested_h_score(f, g, nesting, unbiased=True, mode=mode)
    exact = nested_h_score(f.detach().cpu().double(), g.detach().cpu().double(), nesting, unbiased=True, mode=mode)
    assert score.dtype == torch.float32
    # 2000 additions in float32 lose at most 2000 * 6e-8 = 1.2e-4; a bfloat16 result alone would be off by 4e-3.
    assert score.item() == pytest.approx(exact.item(), rel=1.2e-4)
    score.backward()
    assert f.grad.dtype == dtype
    with torch.autocast(device, torch.bfloat16):
        assert nested_h_score(f, g, nesting, unbiased=True, mode=mode).item() == score.item()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
@pytest.mark.parametrize("mode", ["joint", "sequential"])
@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("dims", [[1], [1] * 40, [17, 40, 9]])
def test_values_and_gradients_are_those_of_float64_to_the_precision_of_the_dtype(
    dims, unbiased, mode, dtype, error, device
):
    """Where there is a GPU, by its own kernels."""
    generator = torch.Generator().manual_seed(0)
    nesting = Nesting(dims, np.linspace(0.5, 2, len(dims)))
    f, g = ((torch.randn(333, nesting.k, generator=generator) + 0.3).to(device, dtype) for _ in range(2))
    results = []
    for precision in (dtype, torch.float64):
        left, right = (z.to(precision, copy=True).requires_grad_() for z in (f, g))
        score = nested_h_score(left, right, nesting, unbiased, mode)
        results.append([score, *torch.autograd.grad(1.5 * score, (left, right))])
    for ours, exact in zip(*results, strict=True):
        assert (ours.double() - exact).norm() <= error * exact.norm()


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the compiler's own
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # by torch itself
@pytest.mark.parametrize("device", DEVICES)
def test_compiled_scores_are_the_same_in_one_graph(device):
    f, g, nesting = random_case(0)
    f, g = (z.detach().to(device).requires_grad_() for z in (f, g))
    score = lambda f, g: h_score(f, g) + nested_h_score(f, g, nesting, True, "sequential")  # noqa: E731
    compiled = torch.compile(score, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(f, g), f), torch.autograd.grad(score(f, g), f))


@pytest.mark.parametrize("device", DEVICES)
def test_scores_and_gradients_of_many_samples_at_once(device):
    nesting = Nesting([2, 1])
    f, g = torch.randn((2, 4, 20, 3), generator=torch.Generator().manual_seed(0)).to(device)
    score = lambda f, g: nested_h_score(f, g, nesting, unbiased=True)  # noqa: E731
    values, gradients = torch.vmap(score)(f, g), torch.vmap(torch.func.grad(score))(f, g)
    for i in range(4):
        own = f[i].clone().requires_grad_()
        expected = score(own, g[i])
        torch.testing.assert_close(values[i], expected.detach())
        torch.testing.assert_close(gradients[i], torch.autograd.grad(expected, own)[0])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("unbiased", [False, True])
def test_second_derivatives_pass_the_finite_difference_check(unbiased, device):
    f, g, nesting = random_case(1)
    f, g = (z.detach()[:7].to(device).requires_grad_() for z in (f, g))
    assert torch.autograd.gradgradcheck(lambda f, g: nested_h_score(f, g, nesting, unbiased), (f, g))
    single = [z.detach().float().requires_grad_() for z in (f, g)]
    found = []
    for left, right in ((f, g), single):
        (slope,) = torch.autograd.grad(nested_h_score(left, right, nesting, unbiased), left, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), right)[0].double())
    torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_second_derivatives_where_one_side_is_fixed_and_rows_are_every_other(device):
    found = []
    for dtype in (torch.float32, torch.float64):
        f, g = torch.randn((2, 20, 3), generator=torch.Generator().manual_seed(0)).to(device, dtype)
        f.requires_grad_()
        (slope,) = torch.autograd.grad(h_score(f[::2], g[::2]), f, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), f)[0].double())
    assert found[1].norm() > 0
    torch.testing.assert_close(found[0], found[1], rtol=1e-4, atol=1e-6)


def test_a_validation_step_first_does_not_spoil_training():
    f, nesting = torch.randn(8, 3, requires_grad=True), Nesting([1, 1, 1], [1.0, 0.25, 0.125])
    for mode in ("joint", "sequential"):
        with torch.inference_mode():
            value = nested_h_score(f, f, nesting, mode=mode)
        score = nested_h_score(f, f, nesting, mode=mode)
        score.backward()
        assert score.item() == value.item()


def test_score_runs_without_reading_values_on_other_devices():
    f = torch.empty(8, 3, device="meta", requires_grad=True)
    for mode in ("joint", "sequential"):
        score = nested_h_score(f, torch.empty(8, 3, device="meta"), Nesting.modes(3), unbiased=True, mode=mode)
        score.backward()
        assert score.device.type == f.grad.device.type == "meta"


def test_where_both_sides_grow_joint_levels_compete_and_sequential_ones_give_the_closed_form():
    """The closed form is the maximiser of the sequential objective; the joint one can do better by mixing levels."""
    counts = random_counts(1, (4, 4))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    phi, psi = (torch.from_numpy(random_functions(i, 4, 2)) for i in (0, 1))
    inner, border = joint.components([phi.numpy(), None], [psi.numpy(), None])
    nesting = Nesting([2, 1], x=["phi", ("phi", "x")], y=["psi", ("psi", "y")])
    telescoped = (2 * inner.energy + border.sigma[0] ** 2) / 2

    def score(a, b, f, g):
        return nested_h_score(torch.hstack([phi @ a, f])[x], torch.hstack([psi @ b, g])[y], nesting)

    best = max(value for value, _ in ascend(score, [(2, 2), (2, 2), (4, 1), (4, 1)], starts=6))
    assert best > telescoped + 1e-4

    f_bar, g_bar = torch.from_numpy(inner.f * inner.sigma), torch.from_numpy(inner.g)

    def second_level(f, g):
        return nested_h_score(torch.hstack([f_bar, f])[x], torch.hstack([g_bar, g])[y], nesting, mode="sequential")

    f, g = assert_reached_never_passed(ascend(second_level, [(4, 1), (4, 1)], starts=6), telescoped)
    np.testing.assert_allclose(product(f, g), border.top(1).kernel(), atol=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_single_sided_h_score_is_the_best_over_all_partners(seed):
    counts = random_counts(seed, (6, 4))
    joint, (x, y) = FiniteJoint(counts), rows(counts)
    phi = random_functions(seed, 6, 2)
    centred = phi - joint.probability("x") @ phi
    f = torch.from_numpy(phi)[x]
    score = single_sided_h_score(f, y)
    assert score.item() == pytest.approx(joint.modes(x_space=centred).energy / 2, abs=1e-10)
    spanned = single_sided_h_score(f, torch.eye(4, dtype=torch.float64)[y])
    assert spanned.item() == pytest.approx(score.item(), abs=1e-12)
    results = ascend(lambda g: h_score(f - f.mean(0), g[y]), [(4, 2)])
    assert_reached_never_passed(results, score.item())
    assert torch.autograd.gradcheck(lambda f: single_sided_h_score(f, y), (f.clone().requires_grad_(),))
    shifted_and_mixed = f @ torch.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=torch.float64) + 7
    assert single_sided_h_score(shifted_and_mixed, y).item() == pytest.approx(score.item(), abs=1e-10)


@pytest.mark.parametrize("nothing", [0.0, 7.0, 1e8])
def test_features_that_never_vary_add_nothing_to_the_single_sided_h_score(nothing):
    rng = np.random.default_rng(0)
    f = torch.from_numpy(rng.standard_normal((50, 2)))
    y = f[:, :1] + torch.from_numpy(rng.standard_normal((50, 1)))
    squared = np.corrcoef(f[:, 0], y[:, 0])[0, 1] ** 2
    flat = torch.full((50, 1), nothing, dtype=torch.float64)
    assert single_sided_h_score(f[:, :1], y).item() == pytest.approx(squared / 2)  # of one function a side
    for left, right in ((torch.hstack([flat, f]), y), (f, torch.hstack([y, flat]))):
        assert single_sided_h_score(left, right).item() == pytest.approx(single_sided_h_score(f, y).item())
    assert single_sided_h_score(flat, y).item() == 0
    assert single_sided_h_score(f, flat).item() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_single_sided_h_score_does_not_depend_on_units_or_repetition(dtype):
    generator = torch.Generator().manual_seed(0)
    f = torch.randn(2000, 2, generator=generator, dtype=dtype)
    y = (f[:, 1] > 0).long()
    score = single_sided_h_score(f, y).item()
    assert score > 0.3
    assert single_sided_h_score(f * torch.tensor([1, 1e-7], dtype=dtype), y).item() == pytest.approx(score, rel=1e-5)
    clumsy = torch.hstack([f, f[:, :1], torch.full((2000, 1), 0.1, dtype=dtype)])
    assert single_sided_h_score(clumsy, y).item() == pytest.approx(score, rel=1e-5)


@pytest.mark.parametrize("constant", [0.0, 3.0, -0.1, 1e9, 1e-12])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constant_features_say_nothing_and_change_nothing(constant, dtype):
    """A column of any one value has no part in the dependence: neither alone nor beside others, on either side."""
    counts = random_counts(3, (6, 4))
    x, y = rows(counts)
    phi = torch.from_numpy(random_functions(3, 6, 2)).to(dtype)[x]
    column = torch.full((len(x), 1), constant, dtype=dtype)
    assert single_sided_h_score(column, y).item() == 0
    assert single_sided_h_score(column.repeat(1, 2), phi).item() == 0
    assert single_sided_h_score(phi, column).item() == 0
    expected = single_sided_h_score(phi, y).item()
    assert expected > 0.01
    for with_column in (torch.hstack([phi, column]), torch.hstack([column, phi, column])):
        assert single_sided_h_score(with_column, y).item() == pytest.approx(expected, rel=1e-9)
    indicators = torch.hstack([torch.eye(4, dtype=dtype)[y], column])
    assert single_sided_h_score(phi, indicators).item() == pytest.approx(expected, rel=1e-9)


def test_the_gradient_of_a_constant_feature_is_finite():
    f = torch.hstack([torch.zeros(12, 1), torch.randn(12, 1, generator=torch.Generator().manual_seed(0))])
    f.requires_grad_()
    single_sided_h_score(f, torch.arange(12) % 3).backward()
    assert torch.isfinite(f.grad).all()
    assert (f.grad[:, 0] == 0).all()
    assert (f.grad[:, 1] != 0).any()


@pytest.mark.parametrize("labels", [torch.arange(12) % 3, 10 * (torch.arange(12) % 3) - 7])
def test_the_single_sided_h_score_of_a_function_of_the_label_is_half_the_number_of_its_dimensions(labels):
    f = torch.stack([(labels == labels.min()).double(), labels.double() ** 2], dim=1)
    assert single_sided_h_score(f, labels).item() == pytest.approx(1.0, abs=1e-12)
    assert single_sided_h_score(f[:, :1], labels).item() == pytest.approx(0.5, abs=1e-12)


F, G = torch.ones(5, 3), torch.ones(5, 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: h_score(F, G[:4]), "one row a sample"),
        (lambda: h_score(F, G[:, :2]), "same shape"),
        (lambda: h_score(F[:, 0], G[:, 0]), "matrices"),
        (lambda: h_score(F[:0], G[:0]), "At least 1 rows"),
        (lambda: h_score(F[:, :0], G[:, :0]), "k >= 1"),
        (lambda: h_score(F[:1], G[:1], unbiased=True), "At least 2 rows"),
        (lambda: h_score(F.int(), G.int()), "floating point"),
        (lambda: h_score(F * torch.nan, G), "not finite"),
        (lambda: h_score(F * 1e30, G * 1e30), "not finite"),
        (lambda: nested_h_score(F, G, Nesting([1, 1])), r"1 \+ 1 = 2 dimensions but the features have 3"),
        (lambda: nested_h_score(F, G, Nesting([3]), mode="greedy"), "'joint' or 'sequential'"),
        (lambda: nested_h_score(F, G, [1, 2]), "must be a Nesting"),
        (lambda: h_score(F.numpy(), G.numpy()), "torch tensors"),
        (lambda: single_sided_h_score(F, G[:, 0]), "whole-number labels"),
        (lambda: single_sided_h_score(F[:0], torch.empty(0, dtype=torch.long)), "matrices"),
        (lambda: single_sided_h_score(F * torch.nan, G), "not finite"),
        (lambda: moments_h_score(Moments.from_features({"x": F, "y": G})), "no block 'f'"),
        (lambda: moments_h_score(Moments.from_features({"f": F, "g": G[:, :2]})), "Make the three agree"),
    ],
)
def test_bad_input_is_refused_with_the_way_out(call, message):
    with pytest.raises(ValueError, match=message):
        call()
