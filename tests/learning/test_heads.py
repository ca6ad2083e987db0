"""From trunks to f and g: what each block may add to, fixed features in units of their own, the score of a batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support import random_counts, rows
from torch import nn

from featgeo import FiniteJoint, Nesting, nested_h_score
from featgeo.learning.train import NestedFeatures, Orthonormal, Raw, batch_score


def _network(d: int, k: int) -> nn.Module:
    return nn.Sequential(nn.Linear(d, k), nn.Tanh())


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(40, 3, generator=generator) for name in ("a", "b", "y")}


@pytest.fixture
def growing(batch):
    """Two levels: functions of a alone, one dimension, then of a and b, two more."""
    torch.manual_seed(0)
    nesting = Nesting([1, 2], x=["a", ("a", "b")], y=["y", "y"])
    return NestedFeatures({name: _network(3, 4) for name in batch}, nesting, batch)


def test_a_dimension_reads_only_the_blocks_of_its_level(batch, growing):
    f, g = growing(batch)
    assert f.shape == g.shape == (40, 3)
    other = {**batch, "b": batch["b"] + 1}
    f_other, g_other = growing(other)
    torch.testing.assert_close(f_other[:, 0], f[:, 0], rtol=0, atol=0)
    assert (f_other[:, 1:] - f[:, 1:]).abs().amax(dim=0).min() > 1e-3
    torch.testing.assert_close(g_other, g, rtol=0, atol=0)


def test_f_and_g_are_sums_of_the_readouts_and_the_bias(batch, growing):
    with torch.no_grad():
        growing.f.bias.copy_(torch.tensor([1.0, 2.0, 3.0]))
    f, _ = growing(batch)
    features = {
        name: trunk(batch[name]).detach().double().numpy() for name, trunk in zip("aby", growing.trunks, strict=True)
    }
    expected = np.array([1.0, 2.0, 3.0]) + growing.readout("a")(features["a"])
    expected[:, 1:] += growing.readout("b")(features["b"])
    np.testing.assert_allclose(f.detach().numpy(), expected, atol=1e-5)
    assert growing.readout("y").weight.shape == (4, 3)
    torch.testing.assert_close(growing(Raw(batch))[0], f)


def test_fixed_features_are_centred_and_scaled_and_trained_ones_left_alone():
    torch.manual_seed(0)
    z = torch.tensor([100.0, -3e4, 7.0]) + torch.tensor([0.01, 1e4, 0.0]) * torch.randn(60, 3)
    trunks = {"x": nn.Identity(), "y": _network(3, 2)}
    model = NestedFeatures(trunks, Nesting([2], x=["x"], y=["y"]), {"x": z, "y": torch.randn(60, 3)})
    fixed, trained = model.readout("x"), model.readout("y")
    np.testing.assert_allclose(fixed.centre, z.double().mean(dim=0), rtol=1e-6)
    weight = model.f.readouts[0].weight.detach().double().numpy().T
    spread = z.double().std(dim=0, correction=0).numpy()
    spread[2] = 1.0  # constant: there is nothing to scale by
    np.testing.assert_allclose(fixed.weight, weight / spread[:, None], rtol=1e-4)
    np.testing.assert_array_equal(trained.centre, 0)
    np.testing.assert_array_equal(trained.weight, model.g.readouts[0].weight.detach().double().numpy().T)


@pytest.mark.parametrize(
    ("levels", "k", "is_fixed"),
    [
        (Nesting([3], x=["x"], y=["y"]), 3, True),
        (Nesting([2], x=["x"], y=["y"]), 3, False),  # more functions than dimensions: which, must be learned
        (Nesting([1, 2], x=["x", "x"], y=["y", "y"]), 3, False),  # each level wants its own
    ],
)
def test_a_basis_is_used_as_it_is_where_there_is_room_for_all_of_it(levels, k, is_fixed):
    z = torch.randn(30, k)
    sample = {"x": torch.randn(30, 2), "y": z}
    model = NestedFeatures({"x": _network(2, 5), "y": Orthonormal()}, levels, sample)
    assert model.orthonormal is is_fixed
    assert model.g.is_orthonormal is is_fixed
    assert not model.f.is_orthonormal
    assert model.f.bias.requires_grad
    assert model.g.bias.requires_grad is not is_fixed
    if is_fixed:
        torch.testing.assert_close(model(sample)[1], z)
        assert not any(parameter.requires_grad for parameter in model.g.parameters())
    mirrored = NestedFeatures({"x": Orthonormal(), "y": _network(2, 5)}, levels, {"x": z, "y": sample["x"]})
    assert mirrored.orthonormal is is_fixed


@pytest.fixture
def table():
    """Rows of a table, and on y an exactly orthonormal basis of all functions of mean 0."""
    counts = random_counts(0, (5, 4))
    x, y = rows(counts)
    basis = torch.from_numpy(FiniteJoint(counts).modes().g)
    torch.testing.assert_close(basis[y].T @ basis[y] / len(y), torch.eye(3, dtype=torch.float64))
    return FiniteJoint(counts), x, y, basis


@pytest.mark.parametrize("weights", [None, [0.7]])
@pytest.mark.parametrize("swapped", [False, True])
def test_where_one_side_is_orthonormal_least_squares_is_the_h_score(table, weights, swapped):
    """E[f.g] - E|f|^2 / 2 is the H-score, value and gradient, and its maximum half the energy."""
    joint, x, y, basis = table
    nesting = Nesting([3], weights)
    f = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()

    def value(score):
        pair = (basis[y], f[x]) if swapped else (f[x], basis[y])
        return score(*pair)

    least_squares = value(lambda f, g: batch_score(f, g, nesting, orthonormal=True))
    plain = value(lambda f, g: nested_h_score(f, g, nesting))
    torch.testing.assert_close(least_squares, plain, rtol=0, atol=1e-12)
    slopes = [torch.autograd.grad(score, f)[0] for score in (least_squares, plain)]
    torch.testing.assert_close(*slopes, rtol=0, atol=1e-12)
    with torch.no_grad():
        f.copy_(torch.from_numpy(joint.modes().f * joint.modes().sigma))
    best = value(lambda f, g: batch_score(f, g, nesting, orthonormal=True))
    assert best.item() == pytest.approx((1 if weights is None else 0.7) * joint.modes().energy / 2, abs=1e-12)
    torch.testing.assert_close(
        torch.autograd.grad(best, f)[0], torch.zeros(5, 3, dtype=torch.float64), atol=1e-12, rtol=0
    )


def test_otherwise_a_batch_is_judged_by_the_unbiased_nested_h_score():
    f, g = torch.randn(2, 20, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    nesting = Nesting([1, 2])
    expected = nested_h_score(f, g, nesting, unbiased=True)
    assert batch_score(f, g, nesting, orthonormal=False).item() == expected.item()


@pytest.mark.parametrize(
    ("trunk", "message"),
    [
        (nn.Unflatten(1, (3, 1)), r"gives \(30, 3, 1\) for 30 rows"),
        (nn.Flatten(0), r"gives \(90,\) for 30 rows"),
        (nn.LSTM(3, 2), "gives tuple"),
    ],
)
def test_trunks_must_give_one_row_of_features_a_sample(trunk, message):
    sample = {"x": torch.randn(30, 3), "y": torch.randn(30, 3)}
    with pytest.raises(ValueError, match=message):
        NestedFeatures({"x": trunk, "y": nn.Identity()}, Nesting([1], x=["x"], y=["y"]), sample)


def test_features_must_be_finite():
    sample = {"x": torch.full((30, 3), torch.inf), "y": torch.randn(30, 3)}
    with pytest.raises(ValueError, match="not finite before training"):
        NestedFeatures({name: nn.Identity() for name in "xy"}, Nesting([1], x=["x"], y=["y"]), sample)
