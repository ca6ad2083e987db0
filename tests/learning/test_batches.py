import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from featgeo.learning.batches import CHUNK_ROWS, Batches
from featgeo.learning.setting import Training


def numbered(n, seed=0, apart=None, **options):
    """Rows that know their number, in two blocks."""
    rows = torch.arange(n)
    inputs = {"x": rows, "y": torch.stack([rows, -rows], dim=1).float()}
    return Batches.in_memory(inputs, Training(**options), seed, apart=apart)


def seen(batches, epoch=0):
    return torch.cat([batch["x"] for batch in batches.epoch(epoch)])


def test_every_row_is_either_trained_on_or_kept_apart():
    batches = numbered(103, batch_size=10, validation=0.2, seed=0)
    assert len(batches.apart) == 21
    np.testing.assert_array_equal(np.sort(np.concatenate([seen(batches), batches.apart])), range(103))
    kept_apart = torch.cat([batch["x"] for batch in batches.held_out])
    np.testing.assert_array_equal(kept_apart, batches.apart)


def test_rows_that_are_named_are_kept_apart_whatever_the_share():
    apart = np.array([90, 3, 41, 7])
    batches = numbered(103, batch_size=10, validation=0.2, seed=0, apart=apart)
    np.testing.assert_array_equal(batches.apart, [3, 7, 41, 90])
    for epoch in range(2):
        np.testing.assert_array_equal(seen(batches, epoch).sort().values, np.setdiff1d(np.arange(103), apart))
    assert batches.description | {"inputs": ""} == {
        "training_rows": 99,
        "validation_rows": 4,
        "batches": 10,
        "batch_seed": 0,
        "inputs": "",
    }


@pytest.mark.parametrize(("validation", "kept"), [(0.001, 2), (0.2, 21), (0.25, 26), (0, 0)])
def test_a_share_of_the_rows_is_kept_apart_and_two_at_least(validation, kept):
    assert len(numbered(103, validation=validation).apart) == kept


def test_blocks_stay_aligned():
    for batch in numbered(50, batch_size=7).epoch(0):
        assert torch.equal(batch["y"], torch.stack([batch["x"], -batch["x"]], dim=1).float())


def test_the_order_depends_on_seed_and_epoch_alone():
    batches = numbered(100, batch_size=10, seed=3)
    first, second = seen(batches, 0), seen(batches, 1)
    torch.manual_seed(99)
    assert torch.equal(seen(numbered(100, batch_size=10, seed=3), 1), second)
    assert torch.equal(seen(batches, 0), first)
    assert not torch.equal(first, second)
    assert not torch.equal(seen(numbered(100, batch_size=10, seed=4), 0), first)


@pytest.mark.parametrize("n", [2, 3, 5, 21, 22, 23])
def test_no_batch_has_a_single_row(n):
    batches = numbered(n, batch_size=2, validation=0)
    sizes = [len(batch["x"]) for batch in batches.epoch(0)]
    assert sum(sizes) == n
    assert min(sizes) >= 2
    assert len(sizes) == batches.n_batches
    assert list(batches.held_out) == []


def test_batches_of_an_epoch_have_equal_sizes():
    sizes = [len(batch["x"]) for batch in numbered(1001, batch_size=100, validation=0).epoch(0)]
    assert max(sizes) - min(sizes) <= 1


def test_held_out_rows_come_in_bounded_chunks():
    apart = np.arange(3 * CHUNK_ROWS // 2)
    batches = Batches.in_memory({"x": torch.zeros(3 * CHUNK_ROWS, 1)}, Training(), apart=apart)
    assert [len(batch["x"]) for batch in batches.held_out] == [CHUNK_ROWS, CHUNK_ROWS // 2]


def test_default_batch_size():
    assert [Training().batch_rows(n) for n in (1, 100, 10_000, 45_000, 10**9)] == [32, 32, 256, 1024, 1024]


def described(inputs):
    return Batches.in_memory(inputs, Training(), seed=1).description


def test_the_description_changes_with_the_data():
    x = torch.randn(100, 2)
    description = described({"x": x})
    assert described({"x": x.clone()}) == description
    assert described({"x": x + 1}) != description
    assert described({"x": x[:99]}) != description
    assert described({"z": x}) != description


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ({}, {}, "at least one block"),
        ({"x": torch.zeros(5), "y": torch.zeros(6)}, {}, "same number of rows"),
        ({"x": [1, 2, 3]}, {}, "must be a tensor"),
        ({"x": torch.zeros(3)}, {}, "at least 2 rows"),
        ({"x": torch.zeros(9)}, {"validation": 1.0}, "`validation`"),
        ({"x": torch.zeros(9)}, {"batch_size": 1}, "`batch_size`"),
    ],
)
def test_what_cannot_be_batched_is_refused(inputs, options, message):
    with pytest.raises(ValueError, match=message):
        Batches.in_memory(inputs, Training(**options))


class WithoutLength:
    """A stream that can be read again but has no length."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def encode(raw):
    return {"x": raw}


@pytest.mark.parametrize("wrap", [list, WithoutLength])
def test_a_stream_keeps_its_first_batches_apart(wrap):
    stream = Batches.streamed(wrap(list(torch.arange(20).reshape(5, 4))), encode, validation_batches=2)
    assert stream.n_batches == 3
    assert torch.cat([batch["x"] for batch in stream.held_out]).tolist() == list(range(8))
    for epoch in range(2):
        assert seen(stream, epoch).tolist() == list(range(8, 20))


def test_a_data_loader_is_a_stream():
    loader = DataLoader(TensorDataset(torch.arange(21)), batch_size=4)
    stream = Batches.streamed(loader, lambda raw: {"x": raw[0]}, validation_batches=1)
    assert stream.n_batches == 5
    assert seen(stream).tolist() == list(range(4, 20))  # row 20 would be a batch of its own


def test_a_generator_is_refused():
    with pytest.raises(ValueError, match="can be read only once"):
        Batches.streamed((torch.zeros(4) for _ in range(3)), encode)


def test_a_stream_that_begins_differently_is_refused():
    loader = DataLoader(TensorDataset(torch.arange(40)), batch_size=4, shuffle=True)
    torch.manual_seed(0)
    stream = Batches.streamed(loader, lambda raw: {"x": raw[0]}, validation_batches=1)
    with pytest.raises(ValueError, match="Do not shuffle"):
        list(stream.epoch(0))
    assert len(seen(Batches.streamed(loader, lambda raw: {"x": raw[0]}, validation_batches=0))) == 40


def test_a_stream_needs_batches_to_train_on():
    with pytest.raises(ValueError, match="none is left"):
        _ = Batches.streamed([torch.zeros(4)], encode, validation_batches=1).n_batches
    with pytest.raises(ValueError, match="`validation_batches`"):
        Batches.streamed([torch.zeros(4)], encode, validation_batches=-1)
