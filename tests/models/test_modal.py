"""The modal decomposition as users meet it: against exact truths, on every kind of input."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from numpy.polynomial.hermite_e import hermeval
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer
from support import cosine_samples, random_counts, rows

from featgeo import FiniteJoint, ModalDecomposition


def _gaussian(n: int, seed: int = 0, rho: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    return x, rho * x + np.sqrt(1 - rho**2) * rng.standard_normal(n)


def _kernel_error(model: ModalDecomposition, x: np.ndarray, y: np.ndarray) -> float:
    f, g = model.transform(x, y)
    apart = np.random.default_rng(0).permutation(len(y))  # rows of the product distribution
    kernel = ((f * model.singular_values_) * g[apart]).sum(axis=1)
    truth = np.cos(np.pi * (x - y[apart]))
    return float(np.sqrt(np.mean((kernel - truth) ** 2) / np.mean(truth**2)))


def test_finite_variables_are_solved_exactly():
    counts = random_counts(0, (6, 5))
    x, y = (part.numpy() for part in rows(counts))
    exact = FiniteJoint(counts).modes()
    model = ModalDecomposition(4).fit(x, y)
    assert model.solver_ == "exact"
    np.testing.assert_allclose(model.singular_values_, exact.sigma, atol=1e-10)
    f = model.transform(np.arange(6))
    np.testing.assert_allclose(f * np.sign(f[0] * exact.f[0]), exact.f, atol=1e-9)
    posterior = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.given(np.arange(6)).proba(), posterior, atol=1e-10)


def test_closed_form_with_tables_agrees_with_the_exact_solver():
    counts = random_counts(1, (6, 5))
    x, y = (part.numpy() for part in rows(counts))
    closed = ModalDecomposition(4, solver="closed", x_space="table", y_space="table").fit(x, y)
    exact = FiniteJoint(counts).modes()
    np.testing.assert_allclose(closed.singular_values_, exact.sigma, atol=1e-3)


def test_the_cosine_experiment_on_few_rows():
    x, y = cosine_samples(10_000, seed=1)
    model = ModalDecomposition(2, random_state=0).fit(x, y)
    assert model.solver_ == "closed"
    np.testing.assert_allclose(model.singular_values_, 0.5, atol=0.02)
    assert _kernel_error(model, x, y) < 0.08
    at = np.linspace(-0.9, 0.9, 50)
    fine = np.linspace(-1, 1, 4001)
    density = 1 + np.cos(np.pi * (at[:, None] - fine))
    truth = density @ fine / density.sum(axis=1)
    assert np.sqrt(np.mean((model.given(at).mean() - truth) ** 2)) < 0.03


def test_gaussian_modes_are_hermite_polynomials():
    x, y = _gaussian(20_000)
    model = ModalDecomposition(3, random_state=0).fit(x, y)
    f = model.transform(x)
    for degree, least in ((1, 0.998), (2, 0.98)):
        assert abs(np.corrcoef(f[:, degree - 1], hermeval(x, np.eye(4)[degree]))[0, 1]) > least
    assert model.singular_values_[0] == pytest.approx(0.8, abs=0.015)
    assert model.held_out_singular_values_[:2] == pytest.approx([0.8, 0.64], abs=0.03)


def test_monotone_maps_change_nothing():
    x, y = _gaussian(2000)
    plain = ModalDecomposition(2, random_state=0).fit(x, y)
    mapped = ModalDecomposition(2, random_state=0).fit(np.exp(x), y**3)
    np.testing.assert_allclose(mapped.singular_values_, plain.singular_values_, atol=5e-3)


def test_pure_noise_has_a_held_out_spectrum_of_zero():
    rng = np.random.default_rng(0)
    model = ModalDecomposition(3, random_state=0).fit(rng.standard_normal(4000), rng.standard_normal(4000))
    report = model.report()
    assert (np.abs(report.held_out_sigma) < 4 * report.held_out_error + 0.02).all()
    assert report.held_out_score < 0.005


def test_runs_agree_on_blocks_of_equal_strength():
    x, y = cosine_samples(10_000, seed=0)
    first, second = (ModalDecomposition(2, random_state=seed).fit(x, y) for seed in (0, 1))
    overlap = np.linalg.svd(first.transform(x).T @ second.transform(x) / len(x), compute_uv=False)
    assert overlap.min() > 0.995
    report = first.report()
    assert report.blocks == ((1, 2),)
    assert report.agreement[0] > 0.98


@pytest.mark.parametrize(
    "space",
    [
        "kernel",
        "spline",
        "linear",
        "index",
        "trees",
        RBFSampler(random_state=0),
        SplineTransformer(),
        PolynomialFeatures(3),
    ],
    ids=str,
)
def test_every_space_finds_a_linear_dependence(space):
    x, y = _gaussian(1500, rho=0.9)
    model = ModalDecomposition(1, x_space=space, random_state=0).fit(x[:, None], y)
    assert model.held_out_singular_values_[0] > 0.8
    assert model.report().orthogonality < 1e-8 or space in ("index", "trees")


def test_trees_as_unsupervised_features_too():
    x, y = _gaussian(1500, rho=0.9)
    space = RandomTreesEmbedding(n_estimators=10, max_depth=3, random_state=0)
    assert ModalDecomposition(1, x_space=space).fit(x[:, None], y).held_out_singular_values_[0] > 0.75


def test_trees_find_an_interaction_that_sums_cannot():
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (2000, 2)) + 0.3 * rng.standard_normal((2000, 2))
    y = np.sign(X[:, 0] * X[:, 1])
    additive = ModalDecomposition(1, x_space="spline").fit(X, y)
    trees = ModalDecomposition(1, x_space="trees").fit(X, y)
    assert additive.held_out_singular_values_[0] < 0.2
    assert trees.held_out_singular_values_[0] > 0.95


def test_the_number_of_modes_can_be_chosen():
    x, y = cosine_samples(10_000, seed=2)
    assert ModalDecomposition("auto", random_state=0).fit(x, y).n_modes_ == 2
    counts = np.outer([3, 4, 5], [2, 3, 4]) + np.diag([20, 0, 0])  # one strong mode
    x, y = (part.numpy() for part in rows(counts))
    assert ModalDecomposition("auto").fit(np.tile(x, 20), np.tile(y, 20)).n_modes_ == 1


def _frame(n: int = 400) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    size = rng.standard_normal(n)
    colour = rng.choice(["red", "green", "blue"], n)
    y = size + (colour == "red") + 0.3 * rng.standard_normal(n)
    frame = pd.DataFrame({
        "size": np.where(rng.random(n) < 0.1, np.nan, size),
        "colour": pd.Categorical(np.where(rng.random(n) < 0.1, None, colour)),
        "flag": rng.random(n) < 0.5,
        "day": pd.date_range("2024-01-01", periods=n, freq="D"),
    })  # fmt: skip
    return frame, y


def test_frames_of_every_kind_of_column():
    frame, y = _frame()
    model = ModalDecomposition(1, random_state=0).fit(frame, y)
    assert model.held_out_singular_values_[0] > 0.6
    assert model.feature_names_in_.tolist() == ["size", "colour", "flag", "day"]
    shuffled = frame[["day", "flag", "colour", "size"]]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(shuffled)
    plain, same = (
        ModalDecomposition(1, x_space="spline", random_state=0).fit(rows, y) for rows in (frame, pl.from_pandas(frame))
    )
    np.testing.assert_allclose(same.singular_values_, plain.singular_values_, atol=1e-12)


def test_labels_never_seen_say_nothing():
    x = np.array(["a", "b", "a", "b"] * 50)
    y = np.array(["u", "v", "u", "u"] * 50)
    model = ModalDecomposition().fit(x, y)
    np.testing.assert_allclose(model.transform(["never"]), 0)
    np.testing.assert_allclose(model.given(["never"]).proba()[0], [0.75, 0.25])
    frame, target = _frame()
    closed = ModalDecomposition(1, x_space="spline", random_state=0).fit(frame, target)
    strange = frame.assign(colour="purple").iloc[:5]
    assert np.isfinite(closed.transform(strange)).all()


def test_tensors_lists_series_and_vectors_go_in_directly():
    x, y = _gaussian(200)
    model = ModalDecomposition(1, x_space="spline", y_space="spline", random_state=0)
    expected = model.fit(x, y).singular_values_
    for given in (
        (torch.from_numpy(x), torch.from_numpy(y)),
        (x.tolist(), y.tolist()),
        (pd.Series(x), pl.Series(y)),
        (x[:, None], y[:, None]),
    ):
        np.testing.assert_allclose(model.fit(*given).singular_values_, expected, atol=1e-12)


def test_vector_valued_y():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 3))
    Y = X[:, :2] + 0.5 * rng.standard_normal((800, 2))
    model = ModalDecomposition(2, x_space="linear", y_space="linear").fit(X, Y)
    assert model.singular_values_[0] == pytest.approx(1 / np.sqrt(1.25), abs=0.03)
    mean = model.given(X).mean()
    assert mean.shape == (800, 2)
    assert np.corrcoef(mean[:, 0], X[:, 0])[0, 1] > 0.9


def test_a_stream_of_batches_gives_what_the_rows_in_memory_give():
    x, y = _gaussian(3000)
    X, Y = x[:, None], y[:, None]
    batches = [(X[i : i + 500], Y[i : i + 500]) for i in range(0, 3000, 500)]
    options = {"n_modes": 2, "x_space": "linear", "y_space": "spline", "random_state": 0}
    memory = ModalDecomposition(**options).fit(X, Y)
    for stream in (batches, iter(batches), (batch for batch in batches)):
        np.testing.assert_allclose(ModalDecomposition(**options).fit(stream).singular_values_, memory.singular_values_,
                                   atol=0.02)  # fmt: skip
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y)), 300)
    found = ModalDecomposition(**options).fit(loader).singular_values_
    np.testing.assert_allclose(found, memory.singular_values_, atol=0.02)


def test_dates_hold_a_season():
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(days=i) for i in range(1000)]
    heat = np.array([np.cos(2 * np.pi * (day.month - 7) / 12) for day in days])
    frame = pd.DataFrame({"day": days})
    model = ModalDecomposition(1, x_space="spline", y_space="linear", random_state=0).fit(frame, heat)
    assert model.held_out_singular_values_[0] > 0.95


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([1.0, 2.0, np.inf, 3.0], [1, 2, 1, 2], "infinite"),
        ([1.0, 2.0, 3.0, 4.0], [1.0, np.nan, 2.0, 3.0], "missing"),
        ([1.0, 1.0, 1.0, 1.0], [1, 2, 1, 2], "never varies"),
        ([1.0, 2.0, 3.0], [1, 2], "same rows"),
        ([[1 + 2j], [2.0]], [1, 2], "Complex"),
        (np.zeros((4, 3, 3)), [1, 2, 1, 2], "image"),
    ],
)
def test_bad_rows_are_refused_with_the_way_out(X, y, message):
    with pytest.raises(ValueError, match=message):
        ModalDecomposition().fit(X, y)


def test_text_where_the_fit_had_numbers_is_refused():
    x, y = _gaussian(100)
    model = ModalDecomposition(1).fit(x[:, None], y)
    with pytest.raises(ValueError, match="held numbers"):
        model.transform(np.array([["a"]], dtype=object))
    with pytest.raises(ValueError, match="features"):
        model.transform(np.ones((2, 3)))
    with pytest.warns(UserWarning, match="missing values"):
        assert np.isfinite(model.transform([[np.nan]])).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_modes": 0}, "n_modes"),
        ({"n_modes": 2.5}, "n_modes"),
        ({"solver": "magic"}, "solver"),
        ({"x_space": "magic"}, "space"),
        ({"x_space": 3}, "space"),
        ({"solver": "closed", "x_space": "network"}, "closed form"),
        ({"solver": "exact"}, "value of its own"),
    ],
)
def test_impossible_options_are_refused(options, message):
    x, y = _gaussian(100)
    with pytest.raises(ValueError, match=message):
        ModalDecomposition(**options).fit(x, y)


def test_more_modes_than_there_are_give_those_there_are():
    y = np.array([0, 1] * 50)
    assert ModalDecomposition(10).fit(y + 0, y).n_modes_ == 1


def test_label_shift_needs_no_second_fit():
    rng = np.random.default_rng(0)
    y = rng.choice([0, 1], 4000, p=[0.5, 0.5])
    x = rng.standard_normal(4000) + 1.5 * y
    model = ModalDecomposition(1, random_state=0).fit(x, y)
    at = np.linspace(-1, 2.5, 8)
    prior = np.array([0.9, 0.1])
    likelihood = np.exp(-((at[:, None] - [0, 1.5]) ** 2) / 2)
    truth = likelihood * prior / (likelihood @ prior)[:, None]
    np.testing.assert_allclose(model.given(at, prior=prior).proba(), truth, atol=0.06)


def test_few_rows_still_give_an_answer():
    x, y = _gaussian(12)
    model = ModalDecomposition(3).fit(x, y)
    assert np.isfinite(model.singular_values_).all()
    assert np.isfinite(model.given(x).mean()).all()


def test_the_report_says_what_it_knows():
    x, y = cosine_samples(3000, seed=0)
    model = ModalDecomposition(3, random_state=0).fit(x, y)
    report = model.report()
    assert report.orthogonality < 1e-8
    assert 0 <= report.negative_mass < 0.05
    assert (report.effective_rows <= 3000).all()
    text = str(report)
    assert "held-out" in text
    assert f"{report.sigma[0]:.4f}" in text


def test_a_mode_made_by_one_row_shows_in_the_rows_behind_it():
    x, y = np.zeros(500), np.zeros(500)
    rng = np.random.default_rng(0)
    x += 1e-3 * rng.standard_normal(500)
    y += 1e-3 * rng.standard_normal(500)
    x[0] = y[0] = 10.0
    model = ModalDecomposition(1, x_space="linear", y_space="linear").fit(x, y)
    assert model.singular_values_[0] > 0.99
    assert model.report().effective_rows[0] < 3
    robust = ModalDecomposition(1, random_state=0).fit(x, y)
    assert robust.held_out_singular_values_[0] < 0.3


@pytest.mark.parametrize("what", ["modes", "spectrum"])
def test_plots_are_figures(what):
    x, y = cosine_samples(1000, seed=0)
    model = ModalDecomposition(2, x_space="spline", y_space="spline").fit(x, y)
    assert len(model.plot(what).axes) == (4 if what == "modes" else 1)
    with pytest.raises(ValueError, match="modes"):
        model.plot("pie")


def test_all_modes_of_a_copy_are_kept():
    x = np.repeat(np.arange(10), 50)
    model = ModalDecomposition("auto").fit(x, x)
    assert model.n_modes_ == 9
    np.testing.assert_allclose(model.singular_values_, 1)


def test_exactly_independent_variables():
    x, y = np.tile([0, 0, 1, 1], 25), np.tile([0, 1, 0, 1], 25)
    model = ModalDecomposition("auto").fit(x, y)
    assert model.n_modes_ == 0
    np.testing.assert_allclose(model.given(x).proba(), 0.5)
    assert model.transform(x).shape == (100, 0)
    assert str(model.report()).startswith("0 modes")


def test_folds_may_have_more_modes_than_all_rows():
    counts = np.full((3, 3), 20)
    counts[:2, :2] += [[6, -6], [-6, 6]]
    x, y = (part.numpy() for part in rows(counts))
    model = ModalDecomposition(2, solver="closed", x_space="table", y_space="table").fit(x, y)
    assert model.singular_values_[0] == pytest.approx(FiniteJoint(counts).modes().sigma[0], abs=1e-6)


def test_a_prior_of_zeros_where_the_features_allow_nothing_else():
    x = np.repeat([0, 1, 2], 20)
    proba = ModalDecomposition().fit(x, x).given([0, 1], prior={0: 1, 1: 0, 2: 0}).proba()
    np.testing.assert_allclose(proba, [[1, 0, 0], [1, 0, 0]])


def test_streams_of_single_rows_and_labels_that_come_late():
    x, y = _gaussian(60)
    batches = [([[a]], [[b]]) for a, b in zip(x, y, strict=True)]
    model = ModalDecomposition(1, x_space="linear", y_space="linear").fit(batches)
    assert np.isfinite(model.held_out_singular_values_).all()
    early = np.tile([0.0, 1.0], 500)[:, None], np.tile(["a", "b"], 500)[:, None]
    late = [early] * 70 + [(np.ones((1, 1)), np.array([["c"]]))]
    with pytest.raises(ValueError, match="Shuffle"):
        ModalDecomposition(1, x_space="linear").fit(late)


def test_a_second_fit_forgets_the_first():
    rng = np.random.default_rng(0)
    model = ModalDecomposition(1, x_space="linear").fit(rng.standard_normal((50, 2)), rng.standard_normal(50))
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    model.fit([(X[:30], y[:30]), (X[30:], y[30:])])
    assert model.transform(X).shape == (60, 1)


def test_regressors_read_labels_as_indicators():
    frame, y = _frame()
    model = ModalDecomposition(1, x_space=LinearRegression(), random_state=0).fit(frame[["colour", "flag"]], y)
    unseen = frame[["colour", "flag"]].assign(colour="purple")[:3]
    assert np.isfinite(model.transform(unseen)).all()


def test_a_variable_of_too_many_labels_for_a_table_is_refused():
    labels = np.array([f"label {i // 2}" for i in range(6000)])
    with pytest.raises(ValueError, match="Group the rare ones"):
        ModalDecomposition(1, x_space="table").fit(labels, np.random.default_rng(0).standard_normal(6000))
