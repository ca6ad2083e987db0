"""Networks as spaces: trained, then solved in closed form on all rows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
import torch
from support import cosine_samples, random_counts, rows

from featgeo import FeatureClassifier, FiniteJoint, ModalDecomposition, Training
from featgeo.features.variables import Variable
from featgeo.learning import neural
from featgeo.learning.data import Pairs
from featgeo.learning.learn import learn
from featgeo.learning.setting import Plan, Setting


def _kernel_error(model: ModalDecomposition, x: np.ndarray, y: np.ndarray) -> float:
    f, g = model.transform(x, y)
    apart = np.random.default_rng(0).permutation(len(y))
    truth = np.cos(np.pi * (x - y[apart]))
    kernel = ((f * model.singular_values_) * g[apart]).sum(axis=1)
    return float(np.sqrt(np.mean((kernel - truth) ** 2) / np.mean(truth**2)))


def test_default_networks_learn_the_cosine_modes():
    x, y = cosine_samples(8000, seed=0)
    model = ModalDecomposition(2, solver="neural", random_state=0).fit(x, y)
    assert model.solver_ == "neural"
    assert _kernel_error(model, x, y) < 0.15
    np.testing.assert_allclose(model.held_out_singular_values_, 0.5, atol=0.06)
    assert model.report().orthogonality < 1e-6


def test_a_network_of_indicators_reaches_the_exact_modes():
    counts = 20 * random_counts(0, (5, 4))
    x, y = (part.numpy() for part in rows(counts))

    def network(symbols: int) -> torch.nn.Module:
        table = torch.nn.Embedding(symbols, 8)
        return torch.nn.Sequential(Index(), table)

    class Index(torch.nn.Module):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return values[:, 0].long()

    model = ModalDecomposition(3, x_space=network(5), y_space=network(4), random_state=0).fit(x, y)
    np.testing.assert_allclose(model.singular_values_, FiniteJoint(counts).modes().sigma, atol=2e-3)


def test_one_side_may_be_fixed():
    x, y = cosine_samples(4000, seed=1)
    labels = np.digitize(y, np.linspace(-1, 1, 9)[1:-1])
    model = ModalDecomposition(2, solver="neural", random_state=0).fit(x, labels)
    assert model.spaces_ == ("network", "table")
    assert model.held_out_singular_values_.min() > 0.38  # 0.49 with infinitely many rows


def test_images_and_sequences_have_networks_of_their_own():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 600)
    images = rng.integers(0, 50, (600, 8, 8)).astype(np.uint8)
    images[labels == 1, :4] += 100
    short = {"training": Training(max_epochs=10), "random_state": 0}
    model = FeatureClassifier(x_space="image", **short).fit(images, labels)
    assert model.score(images, labels) > 0.97
    with_channels = ModalDecomposition(1, **short).fit(images[:, None], labels)
    assert with_channels.spaces_ == ("image", "table")
    waves = np.sin(np.arange(30) * np.where(labels == 1, 1.0, 0.3)[:, None] + rng.uniform(0, 6, (600, 1)))
    model = ModalDecomposition(1, x_space="sequence", **short).fit(waves, labels)
    assert model.held_out_singular_values_[0] > 0.9
    with pytest.raises(ValueError, match=r"image.*sequence"):
        ModalDecomposition(1).fit(images, labels)
    with pytest.raises(ValueError, match="shape"):
        with_channels.transform(images[:, None, :4])


def test_the_same_seed_gives_the_same_model_and_leaves_torch_alone():
    x, y = cosine_samples(1000, seed=0)
    before = torch.random.get_rng_state()
    first, second = (
        ModalDecomposition(1, solver="neural", random_state=3, training=Training(max_epochs=3)).fit(x, y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.transform(x), second.transform(x))
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_killed_fit_goes_on_from_its_checkpoint(tmp_path):
    x, y = cosine_samples(1000, seed=0)

    def fit(folder, network):
        # A GPU replays steps, in which no module is called.
        training = Training(max_epochs=6, checkpoint=tmp_path / folder, accelerator="cpu")
        return ModalDecomposition(1, x_space=network, y_space="spline", random_state=0, training=training).fit(x, y)

    class Fragile(torch.nn.Module):
        """Breaks after so many calls, once."""

        def __init__(self, calls: int) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.body = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh())
            self.left = calls

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            self.left -= 1
            if self.left == 0:
                raise RuntimeError("killed")
            return self.body(inputs)

    expected = fit("whole", Fragile(10**9)).transform(x)
    for calls in (30, 75):
        with pytest.raises(RuntimeError, match="killed"):
            fit(f"killed-{calls}", Fragile(calls))
        np.testing.assert_array_equal(fit(f"killed-{calls}", Fragile(10**9)).transform(x), expected)


def test_a_data_loader_is_enough():
    x, y = cosine_samples(4000, seed=0)
    tensors = (torch.from_numpy(z).float()[:, None] for z in (x, y))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*tensors), batch_size=500, shuffle=True)
    training = Training(max_epochs=15)
    model = ModalDecomposition(2, solver="neural", random_state=0, training=training).fit(loader)
    assert _kernel_error(model, x[:, None][:, 0], y) < 0.3
    assert np.isnan(model.held_out_singular_values_).all()  # its rows were all trained on


def test_restarts_agree_on_the_span():
    x, y = cosine_samples(4000, seed=0)
    training = Training(restarts=2)
    report = ModalDecomposition(2, solver="neural", random_state=0, training=training).fit(x, y).report()
    assert report.blocks == ((1, 2),)
    assert report.agreement[0] > 0.97


def test_without_rows_kept_apart_nothing_is_called_held_out():
    x, y = cosine_samples(500, seed=0)
    training = Training(max_epochs=2, validation=0)
    model = ModalDecomposition(1, solver="neural", random_state=0, training=training).fit(x, y)
    assert np.isnan(model.held_out_singular_values_).all()


def test_a_classifier_learns_as_many_modes_as_there_are_classes():
    y = np.repeat(np.arange(14), 30)
    X = np.eye(14)[y] + 0.05 * np.random.default_rng(0).standard_normal((420, 14))
    model = FeatureClassifier(solver="neural", random_state=0).fit(X, y)
    assert model.n_modes_ == 13
    assert model.score(X, y) > 0.95


class Remembers(torch.nn.Module):
    """Notes every row that it is trained on."""

    trained_on: ClassVar[list[torch.Tensor]] = []

    def __init__(self, columns: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Sequential(torch.nn.Linear(columns, 8), torch.nn.Tanh())

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.trained_on.append(inputs.detach().clone())
        return self.body(inputs)


def test_rows_that_judge_are_withheld_from_the_networks():
    """Every row is either trained on or judges, none does both, and all that is called unseen is unseen."""
    rng = np.random.default_rng(0)
    x = np.arange(300.0)
    y = (rng.standard_normal(300) + x / 100 > 1).astype(int)
    Remembers.trained_on.clear()
    training = Training(max_epochs=2, validation=0.2)
    model = FeatureClassifier(1, x_space=Remembers(1), random_state=0, training=training).fit(x[:, None], y)
    seen = set(np.unique(torch.cat(Remembers.trained_on).round().long().numpy()).tolist())
    unseen = set(model.learned_.unseen.rows.tolist())
    assert len(unseen) == 60
    assert seen.isdisjoint(unseen)
    assert seen | unseen == set(range(300))
    assert len(model.learned_.components[0].held_out_sigma) == 5


def test_rows_that_are_named_judge_and_no_others():
    rng = np.random.default_rng(0)
    x = np.arange(200.0)
    y = (rng.standard_normal(200) + x / 60 > 1).astype(int)
    values = x[:, None]
    data = Pairs(Variable.seen(values, "X").rows(values), Variable.seen(y, "Y").rows(y))
    apart = np.arange(3, 200, 5)
    Remembers.trained_on.clear()
    setting, training = Setting.bivariate(1, Remembers(1), "table"), Training(max_epochs=1, validation=0.1)
    learned = learn(data, setting, Plan(training=training, apart=apart))
    seen = np.unique(torch.cat(Remembers.trained_on).round().long().numpy())
    np.testing.assert_array_equal(seen, np.setdiff1d(np.arange(200), apart))
    np.testing.assert_array_equal(learned.unseen.rows, apart)


def test_what_judging_rows_are_told_is_the_closed_form_without_their_part():
    """With a network that is not trained at all, they are told what the closed form in its span says without them."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(400)
    y = (x + rng.standard_normal(400) > 0).astype(int)
    training = Training(max_epochs=1, validation=0.25)
    network = torch.nn.Sequential(torch.nn.Linear(1, 1)).requires_grad_(False)
    model = FeatureClassifier(1, x_space=network, random_state=0, training=training).fit(x[:, None], y)
    learned = model.learned_
    (component,) = learned.components
    assert len(learned.unseen.rows) == 100
    # One function of x and one of y: sigma is their correlation, whatever the network's weights are.
    assert component.sigma[0] == pytest.approx(abs(np.corrcoef(x, y)[0, 1]), abs=1e-5)
    held_out = component.held_out_sigma[:, 0]
    told, rows = learned.unseen.f[:, 0], learned.unseen.rows
    np.testing.assert_allclose(np.corrcoef(told, x[rows])[0, 1] ** 2, 1, atol=0.01)  # all folds nearly agree on f
    assert np.sign(np.corrcoef(told, x[rows])[0, 1]) == np.sign(np.corrcoef(model.transform(x[:, None])[:, 0], x)[0, 1])
    whole = np.corrcoef(x[rows], y[rows])[0, 1]
    assert held_out.mean() == pytest.approx(abs(whole), abs=0.05)


def test_networks_train_no_more_surplus_dimensions_than_a_fixed_span_has_room_for():
    """Four symbols have three functions of mean 0: with two modes wanted, one more is all there is."""
    setting = Setting.bivariate(2, "network", "table")
    widths = {"y": 3}  # x is a network
    assert neural._dims(setting, widths, 9) == ((2,), 1)
    assert neural._dims(Setting.bivariate(9, "network", "table"), widths, 9) == ((3,), 0)
    assert neural._dims(Setting.bivariate("auto", "network", "table"), widths, 9) == ((3,), 0)
    assert neural._dims(Setting.bivariate("auto", "network", "network"), {}, 7)[0] == (7,)


@pytest.mark.parametrize("space", ["spline", "kernel"])
def test_solutions_without_the_first_fold_are_those_that_its_rows_are_judged_by(space):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 2))
    model = ModalDecomposition(2, "closed", space, "spline", random_state=0, verbose=0)
    unseen = model.fit(x, x[:, 0] + rng.standard_normal(200)).learned_.unseen
    first = unseen.left_out[0]
    np.testing.assert_allclose(unseen.without_first[first.index], first.f, atol=1e-10)
    f = model.transform(x[unseen.rows]) * model.singular_values_
    np.testing.assert_allclose(unseen.final, f, atol=1e-8)
