import json

import pytest
import torch

from featgeo.features import networks

# A network, and a batch that it takes.
CASES = {
    "mlp": (lambda: networks.mlp(3), torch.randn(20, 3)),
    "mlp of one column": (lambda: networks.mlp(1, width=16, depth=1), torch.randn(20)),
    "image": (lambda: networks.image(3, 16, 12, filters=4), torch.randn(20, 3, 16, 12)),
    "grey image of bytes": (lambda: networks.image(1, 28, 28), torch.randint(0, 256, (20, 28, 28), dtype=torch.uint8)),
    "sequence": (lambda: networks.sequence(9, channels=2), torch.randn(20, 9, 2)),
    "sequence of one channel": (lambda: networks.sequence(9), torch.randint(0, 2, (20, 9))),
    "short sequence": (lambda: networks.sequence(2), torch.randn(20, 2)),
}


@pytest.fixture(params=CASES)
def trunk_and_batch(request):
    make, batch = CASES[request.param]
    torch.manual_seed(0)
    return make(), batch


def test_features_are_one_row_a_sample(trunk_and_batch):
    trunk, batch = trunk_and_batch
    trunk.fit_input_scale(batch)
    features = trunk(batch)
    assert features.ndim == 2
    assert len(features) == len(batch)
    assert torch.isfinite(features).all()
    assert (features.std(dim=0) > 0).any()


def test_features_of_a_row_depend_on_that_row_alone(trunk_and_batch):
    trunk, batch = trunk_and_batch
    trunk.fit_input_scale(batch)
    torch.testing.assert_close(trunk(batch)[:5], trunk(batch[:5]))


def test_build_recreates_the_network_from_plain_json(trunk_and_batch):
    trunk, batch = trunk_and_batch
    trunk.fit_input_scale(batch)
    again = networks.build(json.loads(json.dumps(trunk.config)))
    again.load_state_dict(trunk.state_dict())
    assert again.config == trunk.config
    assert bool(again.is_scaled)
    assert torch.equal(again(batch), trunk(batch))


def test_shift_and_scale_of_the_inputs_do_not_matter():
    x = torch.randn(50, 3, dtype=torch.float64)
    features = []
    for inputs in (x, 1000 + 7 * x):
        torch.manual_seed(0)
        trunk = networks.mlp(3)
        trunk.fit_input_scale(inputs)
        features.append(trunk(inputs))
    torch.testing.assert_close(*features, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e6])
def test_a_constant_column_becomes_zero(constant):
    trunk = networks.mlp(2)
    x = torch.cat([torch.randn(100, 1), torch.full((100, 1), constant)], dim=1)
    trunk.fit_input_scale(x)
    assert trunk.spread[1] == 1
    assert torch.isfinite(trunk(x)).all()


def test_a_single_channel_may_go_without_its_axis():
    trunk = networks.image(1, 8, 8, filters=4)
    images = torch.randn(5, 8, 8)
    assert torch.equal(trunk(images), trunk(images[:, None]))
    sequences, trunk = torch.randn(5, 9), networks.sequence(9)
    torch.testing.assert_close(trunk(sequences), trunk(sequences[:, :, None]))


def test_the_sequence_network_is_not_linear_in_averages():
    # Of the published network, features of a sequence twice as long are averages of those of its halves.
    torch.manual_seed(0)
    trunk = networks.sequence(8)
    trunk.fit_input_scale(torch.randint(0, 2, (500, 8)))
    pooled = torch.linspace(-1, 1, 3)[:, None] * torch.ones(3, 32)
    low, middle, high = trunk.body[3:](pooled)
    assert (middle - (low + high) / 2).abs().max() > 0.01


def test_large_images_are_halved_more_often():
    convolutions = [part for part in networks.image(3, 56, 60, filters=4).body if isinstance(part, torch.nn.Conv2d)]
    assert [part.out_channels for part in convolutions] == [4, 8, 16]


def test_rows_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="built for"):
        networks.mlp(3)(torch.zeros(5, 4))
    with pytest.raises(ValueError, match="built for"):
        networks.image(3, 8, 8)(torch.zeros(5, 8, 8))


def test_options_that_make_no_network_are_refused():
    with pytest.raises(ValueError, match="`width`"):
        networks.mlp(3, width=0)
    with pytest.raises(ValueError, match="kind"):
        networks.build({"kind": "transformer"})


@pytest.mark.parametrize("shape", [(1,), (4,), (2, 6, 5)])
def test_each_column_or_channel_enters_with_mean_0_and_variance_1(shape):
    torch.manual_seed(1)
    inputs = 100 + torch.arange(1.0, 1 + shape[0]).reshape(-1, *[1] * (len(shape) - 1)) * torch.randn(200, *shape)
    trunk = networks.mlp(*shape) if len(shape) == 1 else networks.image(*shape, filters=2)
    trunk.fit_input_scale(inputs)
    body = trunk.body
    trunk.body = torch.nn.Sequential(torch.nn.Identity())
    seen = trunk(inputs).transpose(0, 1).flatten(1)
    torch.testing.assert_close(seen.mean(dim=1), torch.zeros(shape[0]), atol=1e-4, rtol=0)
    torch.testing.assert_close(seen.std(dim=1, correction=0), torch.ones(shape[0]), atol=1e-4, rtol=0)
    trunk.body = body
    torch.testing.assert_close(trunk(inputs), body((inputs - trunk.centre) / trunk.spread))


def test_columns_enter_uncorrelated_and_collinear_ones_add_nothing():
    torch.manual_seed(2)
    x = torch.randn(300, 3, dtype=torch.float64)
    inputs = torch.cat([x, x[:, :1] + 1e-2 * x[:, 1:2], x[:, 2:] * 5 - 1], dim=1).float()
    trunk = networks.mlp(5)
    trunk.fit_input_scale(inputs)
    first = trunk.body[0]((inputs - trunk.centre) / trunk.spread).double()
    covariance = first.T @ first / len(first)
    size = covariance.diag()
    torch.testing.assert_close(size.sort().values, torch.tensor([0.0, 0, 1, 1, 1]).double(), atol=1e-3, rtol=0)
    torch.testing.assert_close(covariance, size.diag(), atol=1e-3, rtol=0)


def test_a_causal_network_sees_every_step_of_the_history():
    for length, channels in ((1, 2), (2, 1), (5, 1), (8, 2), (11, 3)):
        torch.manual_seed(0)
        trunk = networks.causal(length, channels).double()
        inputs = torch.randn(1, length * channels, dtype=torch.float64, requires_grad=True)
        (slopes,) = torch.autograd.grad(trunk(inputs).square().sum(), inputs)
        assert (slopes != 0).all()
        assert trunk(inputs).shape == (1, 32)


def test_evidence_is_the_average_over_steps_in_standard_errors():
    part = networks._Evidence(2, steps=9, gain=6)
    part.centre.fill_(1.0)
    part.spread.fill_(2.0)
    values = torch.arange(18.0).reshape(1, 2, 9)
    expected = 6 * 3 * (values.mean(dim=2) - 1) / 2
    torch.testing.assert_close(part(values), expected)
    trunk = networks.sequence(12, filters=4)
    inputs = torch.randn(500, 12)
    trunk.fit_input_scale(inputs)
    pooled = trunk.body[:3](((inputs - trunk.centre) / trunk.spread)[:, None])
    assert pooled.mean(dim=0).abs().max() < 0.05 * 6


def test_a_joint_network_reads_each_input_in_its_own_shape():
    torch.manual_seed(0)
    trunks = [networks.mlp(3, width=4), networks.sequence(5, channels=2, filters=3, features=6)]
    joint = networks.Joint(trunks, [(3,), (5, 2)], features=7)
    a, b = torch.randn(20, 3), 50 + torch.randn(20, 5, 2)
    inputs = torch.cat([a, b.flatten(1)], dim=1)
    assert not joint.is_scaled
    joint.fit_input_scale(inputs)
    assert joint.is_scaled
    torch.testing.assert_close(trunks[1].centre.flatten(), b.mean(dim=(0, 1)))
    torch.testing.assert_close(joint(inputs), joint.mix(torch.cat([trunks[0](a), trunks[1](b)], dim=1)))
    again = networks.build(json.loads(json.dumps(joint.config)))
    again.load_state_dict(joint.state_dict())
    assert torch.equal(again(inputs), joint(inputs))
    assert networks.Joint([torch.nn.Linear(3, 2), *trunks[1:]], [(3,), (5, 2)]).config is None
