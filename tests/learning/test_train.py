import builtins
import io
import os
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from support import DEVICES, random_counts, rows
from torch import nn

from featgeo.features import networks
from featgeo.geometry import FiniteJoint
from featgeo.learning.batches import Batches
from featgeo.learning.setting import Training
from featgeo.learning.train import Run, contributions, one_cycle, train
from featgeo.nesting import Level, Nesting, nested_h_score

QUICK = Training(max_epochs=4, batch_size=50, progress=False)


def one_hot(counts):
    return {name: torch.eye(size)[axis] for name, axis, size in zip("xyz", rows(counts), counts.shape, strict=False)}


def dependent(n=400, seed=0):
    """Two numbers that depend on each other, and a third that adds to the dependence."""
    generator = torch.Generator().manual_seed(seed)
    x, z, noise = torch.randn(3, n, 1, generator=generator)
    return {"x": x, "z": z, "y": x.square() + 0.5 * z + 0.3 * noise}


def small_trunks(dropout=0.0):
    torch.manual_seed(1)
    x = nn.Sequential(networks.mlp(1, width=8), nn.Dropout(dropout))
    return {"x": x, "y": networks.mlp(1, width=8)}


def pair(batches_of=dependent, **options):
    data = batches_of()
    return Batches.in_memory({"x": data["x"], "y": data["y"]}, Training(batch_size=50, **options))


class Failing:
    """Batches that raise an error where the j-th batch would come, counted over the whole run."""

    def __init__(self, batches, j, error):
        self.batches, self.left, self.error = batches, j, error
        self.n_batches, self.description = batches.n_batches, batches.description

    def _until_failure(self, batches):
        for batch in batches:
            if self.left == 0:
                raise self.error
            self.left -= 1
            yield batch

    def epoch(self, i):
        return self._until_failure(self.batches.epoch(i))

    @property
    def held_out(self):
        return self._until_failure(self.batches.held_out)


def assert_identical(a: Run, b: Run):
    assert a.history == b.history
    assert a.best_epoch == b.best_epoch
    left, right = a.model.state_dict(), b.model.state_dict()
    assert left.keys() == right.keys()
    assert all(torch.equal(left[name], right[name]) for name in left)


@pytest.mark.parametrize("seed", [0, 1])
def test_training_reaches_the_exact_maximum_and_never_passes_it(seed):
    counts = 20 * random_counts(seed, (5, 4))
    inputs = one_hot(counts)
    nesting = Nesting.modes(2)
    options = Training(
        max_epochs=300, batch_size=10_000, learning_rate=0.05, weight_decay=0, surplus=1, validation=0, progress=False
    )
    trained = train(
        {"x": nn.Identity(), "y": nn.Identity()}, Batches.in_memory(inputs, options, seed), nesting, options, seed
    )
    with torch.no_grad():
        f, g = trained.model(inputs)
        reached = float(
            nested_h_score(f.double(), g.double(), Nesting([1, 2]))
        )  # the surplus dimension belongs to the last level
    sigma = FiniteJoint(counts).modes().sigma
    maximum = sum(np.sum(sigma[:k] ** 2) / 2 for k in (1, 3))
    assert reached <= maximum * (1 + 1e-6)
    assert reached >= 0.999 * maximum


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", ["32-true", "64-true"])
def test_training_takes_the_same_steps_wherever_it_runs(precision, device):
    """Steps that a GPU replays from a graph too, with batches of two sizes."""
    options = replace(QUICK, precision=precision)
    runs = [
        train(small_trunks(), pair(validation=0.33), Nesting.modes(2), replace(options, accelerator=kind), 0)
        for kind in ("cpu", device)
    ]
    assert runs[1].history == pytest.approx(runs[0].history, abs=1e-4)


def test_fixed_features_of_any_scale_start_well():
    inputs = one_hot(20 * random_counts(0, (5, 4)))
    options = replace(QUICK, max_epochs=10, learning_rate=0.05, weight_decay=0)
    scores = []
    for scale in (1.0, 1e4):
        scaled = {"x": 7 + scale * inputs["x"], "y": inputs["y"]}
        trunks = {"x": nn.Identity(), "y": nn.Identity()}
        scores.append(train(trunks, Batches.in_memory(scaled, options, 0), Nesting([2]), options, 0).score)
    assert scores[1] == pytest.approx(scores[0], rel=0.02)


def test_contributions_average_to_the_nested_score():
    f, g = torch.randn(2, 40, 5, dtype=torch.float64)
    nesting = Nesting([2, 3], [1.0, 0.5])
    torch.testing.assert_close(contributions(f, g, nesting).mean(), nested_h_score(f, g, nesting))


def test_standard_error_from_contributions_is_that_of_the_score():
    generator = torch.Generator().manual_seed(0)
    f, g = torch.randn(2, 400, 1000, 2, dtype=torch.float64, generator=generator)
    g = g + f
    nesting = Nesting([2])
    scores = torch.stack([contributions(*sample, nesting).mean() for sample in zip(f, g, strict=True)])
    errors = torch.stack([contributions(*sample, nesting).std() / 1000**0.5 for sample in zip(f, g, strict=True)])
    assert errors.mean() == pytest.approx(float(scores.std()), rel=0.1)


def test_one_cycle_rises_then_falls_to_nearly_nothing():
    rates = [one_cycle(step / 1000) for step in range(1001)]
    assert max(rates) == pytest.approx(1)
    assert np.argmax(rates) == 300
    assert rates[0] == pytest.approx(1 / 25)
    assert rates[-1] < 1e-4
    assert min(rates) > 0


def test_held_out_score_grows_and_trunks_are_ready_to_use():
    batches = pair()
    options = replace(QUICK, max_epochs=20)
    trained = train(small_trunks(), batches, Nesting([1]), options, 0)
    assert trained.history[-1] > trained.history[0]
    assert trained.score == trained.history[trained.best_epoch]
    assert len(trained.history) == 20
    for name, trunk in trained.trunks.items():
        assert not trunk.training
        assert trunk(dependent()[name]).shape == (400, 8)


def test_the_caller_keeps_its_trunks_and_its_random_numbers():
    trunks = small_trunks(dropout=0.5)
    before = {name: {k: v.clone() for k, v in trunk.state_dict().items()} for name, trunk in trunks.items()}
    torch.manual_seed(7)
    state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    train(trunks, pair(), Nesting([1]), QUICK, 0)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    for name, trunk in trunks.items():
        assert trunk.training
        assert all(torch.equal(value, before[name][key]) for key, value in trunk.state_dict().items())


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    runs = [train(small_trunks(0.5), pair(), Nesting([1]), QUICK, seed) for seed in (0, 0, 1)]
    assert_identical(runs[0], runs[1])
    assert runs[0].history != runs[2].history


# 7 batches are read for the scales, then 7 of each epoch and 1 of validation: 39 in all.
@pytest.mark.parametrize("killed_at", [[3], [7], [12], [14], [15], [25], [38], [10, 9, 30]])
def test_a_run_killed_anywhere_ends_like_one_never_killed(tmp_path, killed_at):
    nesting = Nesting([1])
    uninterrupted = train(small_trunks(0.2), pair(), nesting, QUICK, 0)
    options = replace(QUICK, checkpoint=tmp_path)
    for j in killed_at:
        with pytest.raises(OSError, match="killed"):
            train(small_trunks(0.2), Failing(pair(), j, OSError("killed")), nesting, options, 0)
    assert_identical(train(small_trunks(0.2), pair(), nesting, options, 0), uninterrupted)


def test_a_kill_while_the_checkpoint_is_written_leaves_the_one_before(tmp_path, monkeypatch):
    nesting, options = Nesting([1]), replace(QUICK, checkpoint=tmp_path)
    uninterrupted = train(small_trunks(0.2), pair(), nesting, QUICK, 0)
    written, replace_file = [], os.replace

    def killed(name, target):
        if len(written) == 2:
            raise OSError("killed")
        written.append(target)
        replace_file(name, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(OSError, match="killed"):
            train(small_trunks(0.2), pair(), nesting, options, 0)
    assert_identical(train(small_trunks(0.2), pair(), nesting, options, 0), uninterrupted)


def test_a_finished_run_is_read_from_its_checkpoint(tmp_path):
    options = replace(QUICK, checkpoint=tmp_path)
    first = train(small_trunks(), pair(), Nesting([1]), options, 0)
    only_scales = Failing(pair(), 7, AssertionError("a batch was trained on"))
    assert_identical(train(small_trunks(), only_scales, Nesting([1]), options, 0), first)


@pytest.mark.parametrize("change", ["options", "seed", "data", "levels", "network"])
def test_a_checkpoint_of_another_run_is_refused(tmp_path, change):
    options = replace(QUICK, max_epochs=1, checkpoint=tmp_path)
    train(small_trunks(), pair(), Nesting([1]), options, 0)
    batches = pair(lambda: dependent(seed=1)) if change == "data" else pair()
    trunks = small_trunks()
    if change == "network":
        trunks["y"] = networks.mlp(1, width=9)
    changed = replace(options, learning_rate=0.02) if change == "options" else options
    nesting = Nesting([2]) if change == "levels" else Nesting([1])
    named = {"options": "learning_rate", "seed": "seed", "data": "inputs", "levels": "levels", "network": "parameters"}
    differs = rf"{named[change]}: .* there, .* here.*Use another folder"
    with pytest.raises(ValueError, match=differs):
        train(trunks, batches, nesting, changed, int(change == "seed"))


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "foreign"])
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    options = replace(QUICK, max_epochs=1, checkpoint=tmp_path)
    train(small_trunks(), pair(), Nesting([1]), options, 0)
    file = tmp_path / "run-0.pt"
    content = file.read_bytes()
    file.write_bytes(
        {
            "truncated": content[: len(content) // 2],
            "empty": b"",
            "flipped": content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
            "foreign": b"not a checkpoint",
        }[damage]
    )
    with pytest.raises(ValueError, match=r"damaged.*Delete it"):
        train(small_trunks(), pair(), Nesting([1]), options, 0)


class _Touches:
    """A crafted object: whoever unpickles it without care makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("inside", ["noise", "other", "code"])
def test_a_crafted_checkpoint_with_the_right_checksum_is_refused_and_runs_nothing(tmp_path, inside):
    options, mark = replace(QUICK, max_epochs=1, checkpoint=tmp_path), tmp_path / "ran"
    content = io.BytesIO()
    if inside == "noise":
        content.write(b"no file of torch")
    else:
        torch.save({"fingerprint": _Touches(mark)} if inside == "code" else [1, 2], content)
    (tmp_path / "run-0.pt").write_bytes(sha256(content.getvalue()).digest() + content.getvalue())
    with pytest.raises(ValueError, match=r"damaged or something else.*Delete it"):
        train(small_trunks(), pair(), Nesting([1]), options, 0)
    assert not mark.exists()


@pytest.mark.parametrize(("j", "epochs"), [(10, 0), (30, 2)])
def test_ctrl_c_leaves_what_was_learned(j, epochs):
    whole = train(small_trunks(), pair(), Nesting([1]), QUICK, 0)
    with pytest.warns(UserWarning, match=f"interrupted after epoch {epochs} of 4"):
        trained = train(small_trunks(), Failing(pair(), j, KeyboardInterrupt()), Nesting([1]), QUICK, 0)
    assert trained.interrupted
    assert trained.history == whole.history[:epochs]
    assert (trained.best_epoch is None) == (epochs == 0)
    assert all(torch.isfinite(trunk(torch.randn(5, 1))).all() for trunk in trained.trunks.values())


def test_a_run_goes_on_after_ctrl_c(tmp_path):
    whole = train(small_trunks(), pair(), Nesting([1]), QUICK, 0)
    options = replace(QUICK, checkpoint=tmp_path)
    with pytest.warns(UserWarning, match="interrupted"):
        train(small_trunks(), Failing(pair(), 30, KeyboardInterrupt()), Nesting([1]), options, 0)
    assert_identical(train(small_trunks(), pair(), Nesting([1]), options, 0), whole)


def test_the_first_level_uses_its_own_block_only():
    inputs = dependent()
    nesting = Nesting([Level(1, ("x",)), Level(1, ("x", "z"))])
    trunks = {**small_trunks(), "z": networks.mlp(1, width=8)}
    trained = train(trunks, Batches.in_memory(inputs, QUICK, 0), nesting, QUICK, 0)
    moved = {**inputs, "z": inputs["z"] + 1}
    with torch.no_grad():
        (f, g), (f_moved, g_moved) = trained.model(inputs), trained.model(moved)
    assert f.shape == (400, 4)
    assert torch.equal(f[:, 0], f_moved[:, 0])
    assert (f[:, 1:] != f_moved[:, 1:]).any(dim=0).all()
    assert torch.equal(g, g_moved)


def test_both_sides_may_share_a_block():
    inputs = dependent()
    nesting = Nesting([Level(1, ("x",), ("y", "z"))])
    trunks = {**small_trunks(), "z": nn.Identity()}
    trained = train(trunks, Batches.in_memory(inputs, QUICK, 0), nesting, QUICK, 0)
    assert len(trained.history) == 4


def test_batches_smaller_than_the_dimension_give_numbers():
    inputs = one_hot(random_counts(0, (12, 11)))
    options = replace(QUICK, batch_size=4, max_epochs=2)
    trained = train(
        {"x": nn.Identity(), "y": nn.Identity()}, Batches.in_memory(inputs, options, 0), Nesting([8]), options, 0
    )
    assert np.isfinite(trained.history).all()
    assert all(torch.isfinite(value).all() for value in trained.model.state_dict().values())


def test_early_stopping_ends_when_patience_does():
    noise = {"x": torch.randn(200, 1), "y": torch.randn(200, 1)}
    options = replace(QUICK, max_epochs=100, patience=3, learning_rate=0.05)
    trained = train(small_trunks(), Batches.in_memory(noise, options, 0), Nesting([1]), options, 0)
    assert len(trained.history) == int(np.argmax(trained.history)) + 4 < 100


def test_without_rows_kept_apart_the_last_epoch_counts():
    trained = train(small_trunks(), pair(validation=0), Nesting([1]), QUICK, 0)
    assert np.isnan(trained.history).all()
    assert trained.best_epoch == 3
    with pytest.raises(ValueError, match="Restarts are compared"):
        train(small_trunks(), pair(validation=0), Nesting([1]), replace(QUICK, restarts=2), 0)


def test_restarts_keep_the_best_of_different_runs():
    trained = train(small_trunks(), pair(), Nesting([1]), replace(QUICK, restarts=3), 0)
    scores = [run.score for run in trained.runs]
    assert len(set(scores)) == 3
    assert trained.score == max(scores)
    assert_identical(trained.runs[0], train(small_trunks(), pair(), Nesting([1]), QUICK, 0))


def test_a_stream_trains_and_goes_on_like_tensors(tmp_path):
    inputs = dependent()
    chunks = [{name: inputs[name][start : start + 50] for name in "xy"} for start in range(0, 400, 50)]
    stream = Batches.streamed(chunks, dict, validation_batches=1)
    options = replace(QUICK, checkpoint=tmp_path)
    uninterrupted = train(small_trunks(0.2), stream, Nesting([1]), QUICK, 0)
    with pytest.raises(OSError, match="killed"):
        train(small_trunks(0.2), Failing(stream, 20, OSError("killed")), Nesting([1]), options, 0)
    assert_identical(train(small_trunks(0.2), stream, Nesting([1]), options, 0), uninterrupted)


@pytest.mark.parametrize("precision", ["bf16-mixed", "64-true"])
def test_other_precisions_return_the_precision_that_came(precision, capfd):
    trained = train(small_trunks(), pair(), Nesting([1]), replace(QUICK, precision=precision), 0)
    assert np.isfinite(trained.history).all()
    assert all(p.dtype == torch.float32 for trunk in trained.trunks.values() for p in trunk.parameters())
    assert capfd.readouterr() == ("", "")


def test_nothing_is_printed_where_there_is_no_terminal(capfd):
    train(small_trunks(), pair(), Nesting([1]), replace(QUICK, progress=None), 0)
    assert capfd.readouterr() == ("", "")


def test_progress_shows_the_score_and_goes_without_rich(capfd, monkeypatch):
    options = replace(QUICK, progress=True)
    train(small_trunks(), pair(), Nesting([1]), options, 0)
    assert "training" in capfd.readouterr().err
    for name in [name for name in sys.modules if name == "rich" or name.startswith("rich.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without("rich"))
    train(small_trunks(), pair(), Nesting([1]), options, 0)
    assert capfd.readouterr() == ("", "")


def test_a_missing_dependency_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("lightning_fabric")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without("lightning_fabric"))
    with pytest.raises(ImportError, match=r"pip install 'featgeo\[neural\]'"):
        train(small_trunks(), pair(), Nesting([1]), QUICK, 0)


def without(package, original=builtins.__import__):
    def importing(name, *args, **kwargs):
        if name.split(".")[0] == package:
            raise ImportError(f"No module named {name!r}")
        return original(name, *args, **kwargs)

    return importing


@pytest.mark.parametrize(
    ("trunks", "message"),
    [
        ({"x": nn.Identity()}, "a trunk for each block"),
        ({"x": nn.Identity(), "y": nn.Identity(), "z": nn.Identity()}, "a trunk for each block"),
        ({"x": nn.Identity(), "y": torch.sin}, "must be torch modules"),
        ({"x": nn.Identity(), "y": nn.Flatten(0)}, r"shape \(n, d\)"),
        ({"x": nn.Identity(), "y": nn.Threshold(9.0, torch.inf)}, "not finite before training"),
    ],
)
def test_trunks_that_do_not_fit_are_refused(trunks, message):
    with pytest.raises(ValueError, match=message):
        train(trunks, pair(), Nesting([1]), QUICK, 0)


def test_batches_without_a_block_are_refused():
    with pytest.raises(ValueError, match=r"inputs for \['x'\]. Add what is missing"):
        train(small_trunks(), Batches.in_memory({"x": torch.zeros(9, 1)}, QUICK), Nesting([1]), QUICK, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_epochs", 0),
        ("batch_size", 1),
        ("learning_rate", 0),
        ("weight_decay", -1),
        ("surplus", -1),
        ("surplus", None),
        ("patience", 0),
        ("validation", 1),
        ("restarts", 0),
    ],
)
def test_options_that_make_no_sense_are_refused(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be .*got {value}"):
        Training(**{name: value})


def test_the_number_of_epochs_follows_the_number_of_batches():
    assert [Training().epochs(n) for n in (1, 10, 40, 1000)] == [200, 35, 9, 8]
    assert Training(max_epochs=3).epochs(1) == 3
