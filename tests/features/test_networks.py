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
