"""Features orthogonal to given ones: exactly so on the rows of the fit, with the energy of both components."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from support import cosine_samples, random_counts, rows

from featgeo import (
    FeatureClassifier,
    FeatureRegressor,
    FiniteJoint,
    ModalDecomposition,
    Training,
    leakage,
    load,
    single_sided_h_score,
)
from featgeo.features.variables import deal


def square(x):
    return np.asarray(x) ** 2


def frame(n: int = 1000, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    hours = 40 + 5 * (sex == "m") + 8 * rng.standard_normal(n)
    age = rng.uniform(20, 65, n)
    score = (hours - 40) / 8 + np.sin(age / 8) + 0.8 * (sex == "m") + rng.standard_normal(n)
    return pd.DataFrame({"sex": sex, "hours": hours, "age": age}), np.where(score > 0.7, "high", "low")


def largest_correlation(f: np.ndarray, phi: np.ndarray) -> float:
    phi = np.asarray(phi, dtype=float).reshape(len(f), -1)
    return float(np.abs(np.corrcoef(f.T, phi.T)[: f.shape[1], f.shape[1] :]).max())


MODULE = torch.nn.Sequential(torch.nn.Unflatten(1, (1, 1)), torch.nn.Flatten(), torch.nn.Linear(1, 2), torch.nn.Tanh())


@pytest.mark.parametrize(
    ("given", "phi"),
    [
        (lambda x: x, lambda x: x),
        (square, square),
        (FunctionTransformer(square), square),
        (PolynomialFeatures(3), lambda x: np.stack([x, x**2, x**3], axis=1)),
        (MODULE, lambda x: MODULE(torch.tensor(x[:, None]).float()).detach().numpy()),
    ],
    ids=["function", "square", "transformer", "polynomials", "module"],
)
@pytest.mark.parametrize("space", ["auto", "spline"])
def test_features_are_uncorrelated_with_the_given_ones_on_the_rows_of_the_fit(given, phi, space):
    x, y = cosine_samples(2000, seed=0)
    model = ModalDecomposition(2, x_space=space, y_space=space, orthogonal_to=given, random_state=0).fit(x, y)
    assert largest_correlation(model.transform(x), phi(x)) < 1e-6
    assert model.report().orthogonality < 1e-6
    # Aligned features lie in the span of the given ones.
    inside = np.column_stack([np.ones(len(x)), phi(x)])
    aligned = model.transform_aligned(x)
    fitted = inside @ np.linalg.lstsq(inside, aligned, rcond=None)[0]
    np.testing.assert_allclose(aligned, fitted, atol=1e-4)


def test_the_cosine_data_give_the_sinusoid_that_is_left():
    x, y = cosine_samples(8000, seed=1)
    grid = np.linspace(-1, 1, 501)
    for given, truth in ((lambda x: x, np.cos), (square, np.sin)):
        f = ModalDecomposition(1, orthogonal_to=given, random_state=0).fit(x, y).transform(grid)[:, 0]
        assert abs(np.corrcoef(f, truth(np.pi * grid))[0, 1]) > 0.997


@pytest.mark.parametrize("seed", range(3))
def test_finite_alphabets_give_the_exact_components_and_energies(seed):
    counts = random_counts(seed, (6, 4))
    x, y = (part.numpy() for part in rows(counts))
    table = np.random.default_rng(seed).standard_normal((6, 2))
    model = ModalDecomposition(5, orthogonal_to=lambda x: table[x], random_state=0).fit(x, y)
    exact = FiniteJoint(counts).projected(np.hstack([np.ones((6, 1)), table]))
    k = len(exact.orthogonal.sigma)
    assert model.solver_ == "exact"
    np.testing.assert_allclose(model.orthogonal_.singular_values_[:k], exact.orthogonal.sigma, atol=1e-8)
    phi = torch.from_numpy(table[x])
    single_sided = single_sided_h_score(phi, torch.eye(4, dtype=torch.float64)[torch.from_numpy(y)])
    assert model.aligned_.energy_ == pytest.approx(2 * float(single_sided), abs=1e-8)
    assert model.aligned_.energy_ == pytest.approx(exact.aligned.energy, abs=1e-8)
    everything = model.given(np.arange(6), aligned=True).proba()
    np.testing.assert_allclose(everything, counts / counts.sum(axis=1, keepdims=True), atol=1e-6)


def test_the_aligned_energy_is_that_of_all_functions_of_y_whatever_the_ridge():
    x, y = cosine_samples(800, seed=0)
    model = ModalDecomposition(1, x_space="kernel", y_space="spline", orthogonal_to=square).fit(x, y)
    g = model._main.g.space(model.y_variable_.rows(y))
    single_sided = single_sided_h_score(torch.from_numpy(square(x))[:, None], torch.from_numpy(g))
    assert model.aligned_.energy_ == pytest.approx(2 * float(single_sided), abs=1e-6)
    assert model.report().held_out_score == pytest.approx(model.orthogonal_.held_out_energy_ / 2, abs=1e-12)


def table(x):  # a name that means a space elsewhere
    return np.asarray(x) % 2


def test_the_name_of_a_function_means_nothing():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, 500)
    y = (x + rng.integers(0, 2, 500)) % 5
    named, unnamed = (ModalDecomposition(2, orthogonal_to=given).fit(x, y) for given in (table, lambda x: x % 2))
    assert named.orthogonal_.energy_ == pytest.approx(unnamed.orthogonal_.energy_)
    assert named.orthogonal_.energy_ > 0.3


def test_what_the_user_brought_may_be_changed_afterwards():
    x, y = cosine_samples(500, seed=0)
    pair = np.stack([x, x**2], axis=1)
    pca = PCA(1).fit(pair)
    model = ModalDecomposition(1, x_space="spline", orthogonal_to=pca).fit(pair, y)
    before = model.transform(pair)
    pca.fit(pair[:, ::-1] * [3, 1])
    np.testing.assert_array_equal(model.transform(pair), before)
    by_position = ModalDecomposition(1, x_space="spline", orthogonal_to=np.int64(0)).fit(x, y)
    assert largest_correlation(by_position.transform(x), x) < 1e-6


@cache
def new_rows_and_what_leaks_from_them():
    new, _ = frame(1000, seed=1)
    return new, leakage(np.column_stack([new["hours"], new["age"]]), new["sex"])


@pytest.mark.parametrize("space", ["auto", "index", "trees"])
def test_columns_by_name_and_trees_stay_exactly_orthogonal(space):
    X, y = frame()
    model = ModalDecomposition(1, x_space=space, orthogonal_to="sex", random_state=0).fit(X, y)
    male = X["sex"] == "m"
    assert largest_correlation(model.transform(X), male) < 1e-6
    new, raw = new_rows_and_what_leaks_from_them()
    left = model.leakage(new, new["sex"])
    assert left.linear < raw.linear / 4
    assert "nonlinear" in str(left)
    assert model.leakage(new).linear == pytest.approx(left.linear, abs=0.02)


def test_given_features_may_come_apart_from_x():
    X, y = frame()
    without, sex = X[["hours", "age"]], X["sex"]
    model = ModalDecomposition(1, x_space="spline", random_state=0).fit(without, y, Z=sex)
    f = model.transform(without, Z=sex)
    assert largest_correlation(f, sex == "m") < 1e-6
    assert model.given(without, Z=sex).proba().shape == (len(X), 2)
    assert model.score(without, y, Z=sex) == pytest.approx(model.orthogonal_.energy_ / 2, abs=1e-3)
    assert model.leakage(without, sex).linear < 0.02
    hours = model.leakage(without, sex, about=without["hours"])  # Z goes in, something else is measured
    assert hours.linear == pytest.approx(leakage(f, without["hours"]).linear, abs=1e-12)
    np.testing.assert_array_equal(clone(model).fit_transform(without, y, Z=sex), f)
    both = ModalDecomposition(1, x_space="spline", orthogonal_to=PCA(1), random_state=0)
    both.fit(without, y, Z=X[["hours"]])
    assert largest_correlation(both.transform(without, Z=X[["hours"]]), X["hours"]) < 1e-6
    with pytest.raises(ValueError, match="Z is due"):
        model.transform(without)
    with pytest.raises(ValueError, match="same rows"):
        model.transform(without, Z=sex[:-1])


def test_nonlinear_leakage_sees_what_correlation_does_not():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(1000)
    left = leakage(z[:, None] ** 2 + 0.1 * rng.standard_normal((1000, 1)), z)
    assert left.linear < 0.02
    assert left.maximal_correlation > 0.9
    nothing = leakage(rng.standard_normal((1000, 2)), z)
    assert max(nothing.linear, nothing.nonlinear) < 0.01


def test_leakage_has_limits_and_a_p_value():
    rng = np.random.default_rng(0)
    z = rng.standard_normal(300)
    nothing = leakage(rng.standard_normal((300, 1)), z)
    assert nothing.pvalue > 0.05
    assert abs(nothing.maximal_correlation) < 3 * nothing.maximal_correlation_error + 0.05
    assert 0 < nothing.linear_upper < 0.05
    f = 0.5 * z[:, None] + rng.standard_normal((300, 1))
    some = leakage(f, z)
    assert some.pvalue < 1e-3
    assert some.linear < some.linear_upper
    assert some.linear_upper > 0.2 > some.linear - 3 * some.linear_error  # in truth 0.25 / 1.25
    assert some.maximal_correlation_upper > np.sqrt(0.2) > some.maximal_correlation - 3 * some.maximal_correlation_error
    assert some.nonlinear < some.nonlinear_upper


def test_linear_leakage_is_the_variance_that_least_squares_explains_on_folds_left_out():
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(0)
    z = rng.standard_normal(100)
    f = (z + rng.standard_normal(100))[:, None]
    found, shares = leakage(f, z), []
    fold = deal(100, 5, 0)
    for train, test in ((fold != i, fold == i) for i in range(5)):
        rest = z[test] - LinearRegression().fit(f[train], z[train]).predict(f[test])
        shares.append(1 - np.sum(rest**2) / np.sum((z[test] - z[train].mean()) ** 2))
    assert found.linear == pytest.approx(np.mean(shares), rel=1e-4)
    assert found.linear_error == pytest.approx(np.std(shares, ddof=1) / np.sqrt(5), rel=1e-4)
    assert found == leakage(f[:, 0], z, random_state=0)
    none = leakage(f[:, :0], z)
    assert (none.linear, none.nonlinear, none.maximal_correlation) == (0, 0, 0)


def test_leakage_sees_two_bits_that_tell_only_together():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (1000, 2))
    left = leakage((bits[:, 0] ^ bits[:, 1])[:, None] + 0.1 * rng.standard_normal((1000, 1)), bits.astype(float))
    assert left.linear < 0.02
    assert left.maximal_correlation > 0.95


def test_predictors_rest_on_features_that_are_orthogonal():
    X, y = frame(1500)
    new, truth = frame(1500, seed=1)
    plain, fair = (
        FeatureClassifier(x_space="spline", orthogonal_to=given, random_state=0).fit(X, y) for given in (None, "sex")
    )
    male = new["sex"] == "m"
    gaps = [abs(np.diff([m.predict_proba(new)[male == g, 0].mean() for g in (True, False)])[0]) for m in (plain, fair)]
    assert gaps[1] < gaps[0] / 3
    assert fair.score(new, truth) > 0.6
    assert largest_correlation(fair.transform(X), X["sex"] == "m") < 1e-6
    # Calibrated: of the rows said to be so with probability p, a share p is.
    said = fair.predict_proba(new)[:, 0]
    assert np.mean(truth[said > 0.5] == "high") == pytest.approx(said[said > 0.5].mean(), abs=0.08)
    apart = FeatureClassifier(x_space="spline", random_state=0).fit(X[["hours", "age"]], y, Z=X["sex"])
    assert apart.score(new[["hours", "age"]], truth, Z=new["sex"]) > 0.6
    with pytest.raises(ValueError, match="Z is due"):
        apart.predict(new[["hours", "age"]])
    hours = new["hours"].to_numpy()
    regressor = FeatureRegressor(x_space="spline", orthogonal_to="sex", random_state=0).fit(X, X["hours"])
    assert largest_correlation(regressor.transform(X), X["sex"] == "m") < 1e-6
    interval = regressor.predict_interval(new, 0.8)
    assert np.mean((interval[:, 0] <= hours) & (hours <= interval[:, 1])) > 0.7
    assert clone(fair).get_params()["orthogonal_to"] == "sex"


def test_many_given_functions_on_few_rows_are_warned_of():
    x, y = cosine_samples(300, seed=0)

    def waves(n_waves):
        return lambda x: np.cos(np.arange(1, n_waves + 1) * np.asarray(x).reshape(-1, 1))

    with pytest.warns(UserWarning, match="60 given functions on 300 rows"):
        model = ModalDecomposition(1, x_space="spline", orthogonal_to=waves(60)).fit(x, y)
    assert model.report().orthogonality < 1e-6
    with pytest.raises(ValueError, match="fewer than the rows"):
        ModalDecomposition(1, x_space="spline", orthogonal_to=waves(400)).fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        ModalDecomposition(1, x_space="spline", orthogonal_to=waves(5)).fit(x, y)


def test_names_and_positions_may_be_arrays():
    X, y = frame(300)
    numbers = X[["hours", "age"]]
    by_name = ModalDecomposition(1, x_space="spline", orthogonal_to=np.array(["age"])).fit(numbers, y)
    by_position = ModalDecomposition(1, x_space="spline", orthogonal_to=np.array([1])).fit(numbers, y)
    np.testing.assert_allclose(by_name.transform(numbers), by_position.transform(numbers))


def test_it_works_inside_a_pipeline_and_a_search():
    X, y = frame(600)
    steps = make_pipeline(ModalDecomposition(1, x_space="spline", orthogonal_to="sex"), LogisticRegression())
    search = GridSearchCV(steps, {"modaldecomposition__n_modes": [1, 2]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.6
    with sklearn.config_context(enable_metadata_routing=True):
        routed = ModalDecomposition(1, x_space="spline").set_fit_request(Z=True).set_transform_request(Z=True)
        routed = make_pipeline(routed, LogisticRegression()).fit(X[["hours", "age"]], y, Z=X["sex"])
        assert routed.predict(X[["hours", "age"]], Z=X["sex"]).shape == (600,)


def test_networks_learn_orthogonal_features_too():
    x, y = cosine_samples(4000, seed=0)
    model = ModalDecomposition(
        1, solver="neural", orthogonal_to=square, random_state=0, training=Training(max_epochs=10)
    ).fit(x, y)
    assert model.solver_ == "neural"
    assert largest_correlation(model.transform(x), square(x)) < 1e-5
    grid = np.linspace(-1, 1, 201)
    assert abs(np.corrcoef(model.transform(grid)[:, 0], np.sin(np.pi * grid))[0, 1]) > 0.98


def test_streams_know_columns_and_functions():
    x, y = cosine_samples(3000, seed=0)
    batches = [(x[i : i + 500], y[i : i + 500]) for i in range(0, 3000, 500)]
    model = ModalDecomposition(1, orthogonal_to=square, random_state=0).fit(batches)
    assert largest_correlation(model.transform(x), square(x)) < 1e-6
    with pytest.raises(ValueError, match="in memory"):
        ModalDecomposition(1).fit(batches, Z=x)


def test_it_can_be_saved(tmp_path):
    X, y = frame(600)
    for given in ("sex", ["sex", "age"]):
        model = ModalDecomposition(1, x_space="spline", orthogonal_to=given).fit(X, y)
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
        assert again.aligned_.energy_ == model.aligned_.energy_
    model = ModalDecomposition(1, x_space="spline", orthogonal_to=lambda X: X["age"].to_numpy()).fit(X, y)
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="orthogonal_to"):
        load(tmp_path / "model")
    again = load(tmp_path / "model", modules={"orthogonal_to": lambda X: X["age"].to_numpy()})
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_errors_say_what_is_wrong():
    X, y = frame(100)
    with pytest.raises(ValueError, match="no columns"):
        ModalDecomposition(1, orthogonal_to="gender").fit(X, y)
    with pytest.raises(ValueError, match="passed to `fit` as Z"):
        ModalDecomposition(1, orthogonal_to=np.zeros(100)).fit(X, y)
    with pytest.raises(ValueError, match="for each of"):
        ModalDecomposition(1, orthogonal_to=lambda X: 1.0).fit(X, y)
    with pytest.raises(ValueError, match="not finite"):
        ModalDecomposition(1, orthogonal_to=lambda X: np.full(len(X), np.nan)).fit(X, y)
    numbers = X[["hours", "age"]].to_numpy()
    classifier = LogisticRegression().fit(numbers, y)
    for given, hint in (
        (X[["age"]], "as Z"),
        (PCA, "instance"),
        (classifier, "orthogonal_to=model.decision_function"),
        (torch.nn.Linear(5, 2), "shape \\(2,\\)"),
        (lambda x: np.where(x[:, 0] > 40, "a", "b"), "must give numbers"),
        (77, "positions from 0 on"),
        (np.arange(100) % 3, "as Z"),
    ):
        with pytest.raises(ValueError, match=hint):
            ModalDecomposition(1, x_space="spline", orthogonal_to=given).fit(numbers, y)
    for features, Z, hint in (
        (X, X["age"], "must hold real numbers"),
        (np.full((100, 1), np.nan), X["age"], "leave these rows out"),
        (numbers, X["age"][:50], "features and Z must have the same rows"),
    ):
        with pytest.raises(ValueError, match=hint):
            leakage(features, Z)
    plain = ModalDecomposition(1, x_space="spline").fit(X, y)
    with pytest.raises(AttributeError, match="orthogonal_to"):
        plain.aligned_  # noqa: B018
    with pytest.raises(ValueError, match="fit had none"):
        plain.transform(X, Z=X["sex"])
    with pytest.raises(ValueError, match="at least"):
        leakage(np.zeros((3, 1)), [1, 2, 3])
