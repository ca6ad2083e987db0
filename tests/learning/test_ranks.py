"""Processes that train together: one step on the rows of all of them, each reading its own, and none left waiting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import on_ranks
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from torch.utils.data import DataLoader, DistributedSampler

from featgeo import Nesting, h_score, nested_h_score
from featgeo.learning import data as learning_data
from featgeo.learning.batches import Batches
from featgeo.learning.data import Stream, shares_of
from featgeo.learning.tables import TableStream
from featgeo.ranks import ALONE, Ranks
from featgeo.reading import source
from featgeo.watch import is_first, launched


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process finds; and a folder with a checkpoint of its, stopped after two epochs of three."""
    folder, whole = tmp_path_factory.mktemp("ranks"), on_ranks.trained()
    stopped = on_ranks.Run._goes_on

    def goes_on(self):
        return len(self.history) < 2 and stopped(self)

    on_ranks.Run._goes_on = goes_on
    on_ranks.trained(checkpoint=folder / "of one")
    on_ranks.Run._goes_on = stopped
    return folder, whole


@pytest.fixture(scope="module")
def ended(alone):
    """What is said by two ranks one of which is killed in its third epoch."""
    folder, _ = alone
    return on_ranks.together(2, on_ranks.killed, folder, folder / "killed")


@pytest.fixture(scope="module")
def two(alone, ended):
    folder, _ = alone
    found = on_ranks.together(2, on_ranks.everything, folder, folder)
    assert not any(isinstance(one, str) for one in found), found
    return found


@pytest.fixture(scope="module")
def four(alone):
    folder, _ = alone
    found = on_ranks.together(4, on_ranks.on_four, folder)
    assert not any(isinstance(one, str) for one in found), found
    return found


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_one_process_on_the_whole_batch(two, four):
    """Plug-in and unbiased, joint and sequential, one level and several; also where a rank has no row."""
    for found in two:
        assert_same(found["gradients"], on_ranks.gradients(101, ALONE))
    for found in four:
        assert_same(found["gradients"], on_ranks.gradients(3, ALONE) + on_ranks.gradients(102, ALONE))


def test_ranks_take_the_steps_of_one_process(alone, two, four):
    _, whole = alone
    for found in (*two, *four):
        assert_allclose(found["history"], whole.history, rtol=1e-6)  # AdamW divides rounding by what is nearly 0
    for name, weight in whole.model.state_dict().items():
        torch.testing.assert_close(two[0]["parameters"][name], weight, rtol=1e-6, atol=1e-6)
        assert torch.equal(two[0]["parameters"][name], two[1]["parameters"][name])


def test_what_is_told_in_a_step_does_not_grow_with_the_batch(two, four):
    """One sum of k x k and k numbers, and one of gradients."""
    k, weights = 3 + 2, sum(weight.numel() for part in on_ranks.networks().values() for weight in part.parameters())
    weights += 2 * (6 * k + k)  # of readouts
    blocks = 8 * (k * k + 4 * k + 2)
    for n, ranks in ((2, two), (4, four)):
        for found in ranks:
            (few, told), (many, more) = found["bytes"]
            assert many > 5 * few >= 5 * 40 // n - 5
            assert told == more == [("all_reduce", blocks), ("all_reduce", 8 * weights)]


def test_each_rank_reads_its_share_of_a_loader_and_no_other(two):
    first, second = (found["read"] for found in two)
    for in_order_and_shuffled in zip(first, second, strict=True):
        for ours, theirs in zip(*in_order_and_shuffled, strict=True):
            assert sorted(ours + theirs) == list(range(230))
            assert abs(len(ours) - len(theirs)) <= 5  # batches of odd sizes


def test_each_rank_takes_its_share_of_rows_in_memory():
    """Of the same batches, whatever it is a share of."""
    inputs = {"x": torch.arange(103.0)[:, None]}
    whole = Batches.in_memory(inputs, on_ranks.options(), 2)
    shares = [whole.dealt(Ranks(rank, 3)) for rank in range(3)]
    for epoch in range(2):
        for batch, *parts in zip(whole.epoch(epoch), *(share.epoch(epoch) for share in shares), strict=True):
            for rank, part in enumerate(parts):
                assert torch.equal(part["x"], batch["x"][rank::3])
    assert all(share.description == whole.description for share in shares)
    with pytest.raises(ValueError, match=r"there are 99 ranks and batches of .* Use larger batches, or fewer ranks"):
        whole.dealt(Ranks(0, 99))


class Whole:
    """A stream of batches that can only be read one after the other."""

    def __init__(self, *sizes):
        self.sizes = sizes

    def __iter__(self):
        start = 0
        for size in self.sizes:
            yield torch.arange(start, start + size)
            start += size


def test_of_other_streams_each_rank_takes_its_rows_and_small_batches_count_for_none():
    stream = Batches.streamed(Whole(5, 6, 2, 7, 3), lambda raw: {"x": raw}, validation_batches=1)
    shares = [stream.dealt(Ranks(rank, 3)) for rank in range(3)]
    for batches in zip(*(share.epoch(0) for share in shares), strict=True):
        assert all(len(batch["x"]) for batch in batches)
    seen = torch.cat([batch["x"] for share in shares for batch in share.epoch(0)])
    assert sorted(seen.tolist()) == [*range(5, 11), *range(13, 23)]
    with pytest.raises(ValueError, match="there are 6 ranks and batches of 5"):
        stream.dealt(Ranks(0, 6))
    small = Batches.streamed(Whole(1, 1), lambda raw: {"x": raw}, validation_batches=0)
    for batches in (small, Batches.streamed(Whole(3, 3), lambda raw: {"x": raw}, 0).dealt(Ranks(0, 4))):
        with pytest.raises(ValueError, match=r"2 rows at least, and one for each rank.* Make them larger"):
            list(batches.epoch(0))


class Counted(Sequence):
    """Batches in a list, which tell when they are taken out of it."""

    def __init__(self, n_batches):
        x = np.arange(20.0 * n_batches).reshape(n_batches, 20)
        self.batches, self.read = [(part, np.cos(part)) for part in x], []

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, position):
        batch = self.batches[position]  # which says where they end
        self.read.append(position)
        return batch


def test_of_a_list_of_batches_the_closed_form_reads_each_on_one_rank():
    batches, seen = Counted(8), []
    for rank in range(3):
        stream = Stream(batches, head_rows=20)
        batches.read.clear()
        seen += [number for chunk in stream.own_chunks(Ranks(rank, 3)) for number in chunk.x.numbers[:, 0].tolist()]
        assert batches.read == [*range(8)][rank::3]
    assert sorted(seen) == [*range(160)]
    few = [Stream(Counted(2)).own_chunks(Ranks(rank, 3)) for rank in range(3)]  # rows of each batch
    assert [sum(map(len, chunks)) for chunks in few] == [14, 14, 12]


def test_of_a_table_in_parts_the_closed_form_reads_each_on_one_rank(tmp_path, monkeypatch):
    for part in range(5):
        x = np.arange(100.0 * part, 100.0 * part + 100)
        pd.DataFrame({"x": x, "y": np.cos(x)}).to_parquet(tmp_path / f"{part}.parquet")
    monkeypatch.setattr(source, "PART_BYTES", 0)  # files are read one by one
    table, read, seen = TableStream(tmp_path, "y", head_rows=100), [], []
    batches = type(table._columns).batches

    def counted(columns, part):
        read.append(part.place)
        return batches(columns, part)

    monkeypatch.setattr(type(table._columns), "batches", counted)
    for rank in range(2):
        seen += [x for chunk in table.own_chunks(Ranks(rank, 2)) for x in chunk.x.numbers[:, 0].tolist()]
    assert read == [0, 2, 4, 1, 3]
    assert sorted(seen) == [*range(500)]


@pytest.mark.parametrize("shuffle", [False, True])
def test_the_closed_form_reads_each_row_on_one_rank(shuffle):
    data, seen = on_ranks.Read(230), []
    for rank in range(3):
        stream = Stream(DataLoader(data, batch_size=50, shuffle=shuffle))
        data.read.clear()
        torch.manual_seed(rank)
        seen += [number for chunk in stream.own_chunks(Ranks(rank, 3)) for number in chunk.x.numbers[:, 0].tolist()]
        assert abs(len(data.read) - 230 / 3) < 5  # of each batch at most a row more
    assert sorted(seen) == sorted(data.x)


def test_a_loader_that_deals_rows_itself_is_refused():
    data = on_ranks.Read(20)
    sampler = DistributedSampler(data, 2, 0)
    with pytest.raises(ValueError, match="without it, the same on all ranks"):
        shares_of(DataLoader(data, batch_size=5, sampler=sampler), Ranks(0, 2))


@pytest.mark.parametrize("source", ["rows", "in order", "shuffled"])
def test_all_ranks_end_with_one_model_that_one_process_would_have_found(two, source):
    (first, second), one = (found["fitted"][source] for found in two), on_ranks.fitted(source)
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])
    if source != "shuffled":  # by numbers that the caller drew
        assert_allclose(first["sigma"], one["sigma"], atol=0.005)
        assert_allclose(first["score"], one["score"], atol=0.005)
    assert_allclose(first["sigma"], 0.5, atol=0.1)


def test_moments_of_all_ranks_are_those_of_all_rows(two, four):
    *parts, none = on_ranks.moments(ALONE)
    assert none is None
    for found in (*two, *four):
        assert found["moments"][-1] is None
        for whole, merged in zip(parts, found["moments"][:-1], strict=True):
            for a, b in (("x", "x"), ("x", "y"), ("y", "y")):
                assert merged.weight(a, b) == whole.weight(a, b)
                assert_allclose(merged.mean(a, b), whole.mean(a, b), rtol=1e-14)
                scale = whole.covariance(a).max() ** 0.5 * whole.covariance(b).max() ** 0.5
                assert_allclose(merged.covariance(a, b), whole.covariance(a, b), atol=1e-13 * scale + 1e-300)


def test_a_checkpoint_of_one_process_goes_on_with_two(alone, two):
    _, whole = alone
    for found in two:
        assert_allclose(found["went on"], whole.history, rtol=1e-6)


def test_a_killed_rank_ends_the_others_with_a_message(ended):
    first, second = ended
    assert second is None
    assert "RuntimeError: Ranks work together, and this one, 0 of 2, cannot go on: another has ended" in first
    assert "checkpoint" in first


def test_after_a_kill_ranks_go_on_from_the_last_whole_epoch(two):
    for found in two:
        assert found["resumed"] == found["never killed"]
        assert len(found["resumed"]) == 4


def test_one_device_trains_alone(alone, two):
    _, whole = alone
    assert two[0]["alone"] == whole.history
    assert two[1]["alone"] != whole.history  # it drew other parameters


def test_the_first_rank_speaks_for_all_and_for_those_that_train_alone_each_does(two):
    first, second = two
    assert (first["shown"], second["shown"]) == (True, False)
    assert first["warned"] == [True, True]  # together, alone
    assert second["warned"] == [False, True]


def test_ranks_that_bring_rows_of_their_own_are_told_so(two):
    for found in two:
        rows, order = found["differing"]
        assert "they differ in first batches: " in order
        assert "; inputs: " in rows
        for said in (rows, order):
            assert "Pass all rows on every rank" in said


def test_streams_show_all_ranks_the_same_first_rows(monkeypatch):
    """Whatever random numbers each has drawn: spaces are learned from these rows."""
    monkeypatch.setattr(learning_data, "launched", lambda: (0, 2))
    heads = []
    for seed in range(2):
        torch.manual_seed(seed)
        stream = Stream(DataLoader(on_ranks.Read(200), batch_size=20, shuffle=True), head_rows=50)
        heads.append(stream.head.x.numbers)
        assert not stream.starts_alike
    assert torch.equal(*heads)


def test_without_others_a_process_is_alone():
    assert launched() is None
    assert is_first()
    f, g = torch.randn(2, 30, 3, dtype=torch.float64)
    assert nested_h_score(f, g, Nesting.modes(3), over_ranks=True) == nested_h_score(f, g, Nesting.modes(3))
    assert h_score(f, g, over_ranks=True) == h_score(f, g)
