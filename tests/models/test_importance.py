"""Which columns matter: energies of single columns as they are, copies add nothing, noise holds nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm
from sklearn.linear_model import LinearRegression

import featgeo as fg
from featgeo.features.variables import Rows
from featgeo.models.importance import importance_of


def _rows(seed: int, n: int = 3000) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((n, 3)), columns=["line", "gate", "noise"])
    X["copy"], X["town"] = X["line"] * 2 + 1, rng.choice(["Rome", "Oslo", "Bern"], n)
    sign = np.where(X["gate"] > 0, 1, -1)
    turned = rng.standard_normal(n)
    X["turned"] = turned  # with the sign of "gate", which tells nothing by itself
    y = -X["line"] + turned * sign + (X["town"] == "Rome") + 0.5 * rng.standard_normal(n)
    return X, y.to_numpy()


@pytest.fixture(scope="module")
def told() -> tuple[fg.FeatureRegressor, fg.models.importance.Importance]:
    with fg.options(forest_trees=75):  # more show the same
        model = fg.FeatureRegressor(x_space="trees", random_state=0).fit(*_rows(40_001, 2000))
        return model, model.importance()


def test_columns_hold_and_add_what_they_do(told):
    _, found = told
    alone, alone_error, added, added_error = (dict(zip(found.columns, part, strict=True)) for part in found.totals.T)
    assert {found.columns[i] for i in found.clear} >= {"line", "copy", "town", "gate", "turned"}
    assert found.columns[found.order[-1]] == "noise"
    assert abs(alone["noise"]) <= 2 * alone_error["noise"] + 1e-12
    assert abs(added["noise"]) <= 3 * added_error["noise"]
    assert alone["copy"] == pytest.approx(alone["line"], rel=1e-6)  # the same ranks
    for name in ("line", "copy"):  # each says what the other does
        assert alone[name] > 5 * alone_error[name]
        assert added[name] < 0.05 * alone[name]
    for name in ("gate", "turned"):  # only together
        assert alone[name] < 0.3 * added[name]
        assert added[name] > 5 * added_error[name]
    assert abs(alone["gate"]) <= 2 * alone_error["gate"] + 1e-12  # "turned" tells how far from its mean Y lies
    shared = {frozenset(pair): value for pair, value in zip(found.pairs, found.shared, strict=True)}
    assert shared[frozenset({"line", "copy"})] == pytest.approx(alone["line"], rel=0.05)
    assert shared[frozenset({"gate", "turned"})] < -0.1


def test_what_says_nothing_lies_about_zero_on_either_side():
    """Also where the functions of X follow noise of such columns: two errors hold it in 95 of 100 cases."""
    away = []
    for seed in range(12):
        rng = np.random.default_rng([40_006, seed])
        x = rng.standard_normal((1200, 5))
        x[:, 4] = rng.integers(0, 6, 1200)
        noise = np.cos(3 * x[:, 1] + rng.uniform(0, 6)) + x[:, 2] * x[:, 3] + (x[:, 4] == 2)
        a = 0.6 * x[:, :1] + 0.1 * noise[:, None]
        g = 0.6 * x[:, :1] + 0.8 * rng.standard_normal((1200, 1))
        found = importance_of(Rows.seen(x, "X"), a, g, seed)
        away.append((found.totals[1:, ::2] / found.totals[1:, 1::2]).ravel())
        assert found.totals[0, 0] == pytest.approx(0.36, abs=3 * found.totals[0, 1])
    z = np.concatenate(away)
    assert np.mean(np.abs(z) > 2) <= 0.08  # of 96
    assert abs(z.mean()) < 3 / np.sqrt(len(z))
    assert 0.7 < z.std() < 1.2


def test_a_column_adds_the_energy_of_what_others_do_not_know():
    """Y is a sum of correlated normals and noise: what a column adds is its own part that others do not determine."""
    rng = np.random.default_rng(40_008)
    x = rng.standard_normal((3000, 3))
    x[:, 1] = 0.8 * x[:, 0] + 0.6 * x[:, 1]
    wanted = np.array([1.0 * 0.36, 0.25 * 0.36, 0.0])  # squared coefficient times Var[column | others]
    a = (x[:, :1] + 0.5 * x[:, 1:2]) / np.sqrt(1 + 0.25 + 0.8 + 1)
    g = a + rng.standard_normal((3000, 1)) / np.sqrt(3.05)
    found = importance_of(Rows.seen(x, "X"), a, g, 0)
    added, error = found.totals[:, 2:].T
    assert np.all(np.abs(added - wanted / 3.05) <= 3 * error + 0.003)
    assert np.all(error < 0.01)


def test_what_a_column_holds_alone_is_the_energy_of_its_own_dependence():
    rng = np.random.default_rng(40_002)
    X = rng.standard_normal((4000, 2))
    y = np.sign(X @ [1.0, 0.5] + 0.5 * rng.standard_normal(4000))
    model = fg.FeatureClassifier(x_space="index", random_state=0).fit(X, y)
    found = model.importance()
    x = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    for i, (own, other) in enumerate([(1.0, 0.5), (0.5, 1.0)]):
        mean = 2 * norm.cdf(own * x / np.sqrt(other**2 + 0.25)) - 1  # E[y|x_i], and Y has variance 1
        assert found.totals[i, 0] == pytest.approx(np.mean(mean**2), abs=3 * found.totals[i, 1] + 0.01)


def test_rows_may_be_passed_and_modes_add_up(told, tmp_path):
    model, own = told
    np.testing.assert_allclose(own.alone.sum(axis=1), own.totals[:, 0])
    np.testing.assert_allclose(own.added.sum(axis=1), own.totals[:, 2])
    X, y = _rows(40_003)
    fresh = model.importance(X, y)
    ranks = [list(found.order) for found in (own, fresh)]
    assert set(ranks[0][:5]) == set(ranks[1][:5])
    model.save(tmp_path / "model")
    again = fg.load(tmp_path / "model")
    np.testing.assert_allclose(again.importance(X, y).totals, fresh.totals)
    with pytest.raises(ValueError, match=r"Pass rows: importance\(X, y\)"):
        again.importance()
    with pytest.raises(ValueError, match="what Y was"):
        again.importance(X)


def test_it_becomes_a_frame_a_dictionary_and_a_table(told):
    _, found = told
    frame = found.to_frame()
    assert list(frame.columns) == ["column", "mode", "alone", "alone_error", "added", "added_error"]
    assert len(frame) == 6 * (1 + len(found.energy))
    assert found.to_dict()["columns"] == list(found.columns)
    assert "gate and turned tell more together" in repr(found)
    assert "<table" in found._repr_html_()


def test_figures_show_columns_and_effects(told):
    model, found = told
    (axes,) = model.plot("columns").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [found.columns[i] for i in found.order]
    effects = model.plot("effects")
    assert effects._repr_png_().startswith(b"\x89PNG")
    titles = [axes.get_title() for axes in effects.axes if axes.get_title()]
    assert titles[-1] == "E[Y | x]"
    labels = fg.FeatureClassifier(x_space="spline", random_state=0).fit(*_labelled()).plot("effects")
    assert {"P(no | x)", "P(yes | x)"} <= {axes.get_title() for axes in labels.axes}


def test_effects_of_a_number_of_few_values_are_shown_at_each():
    rng = np.random.default_rng(40_009)
    flag = rng.integers(0, 2, 300)
    y = flag + 0.3 * rng.standard_normal(300)
    figure = fg.FeatureRegressor(x_space="linear", random_state=0).fit(pd.DataFrame({"flag": flag}), y).plot("effects")
    (mean,) = (axes for axes in figure.axes if axes.get_title() == "E[Y | x]")
    (line,) = mean.get_lines()
    np.testing.assert_allclose(line.get_xdata(), [0, 1])
    np.testing.assert_allclose(line.get_ydata(), [y[flag == i].mean() for i in range(2)], atol=0.05)


def _labelled() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = _rows(40_004, 800)
    return X[["line", "town"]], np.where(y > 0, "yes", "no")


@pytest.mark.parametrize("slope", [-1.0, 1.0])
def test_the_first_mode_grows_with_the_mean(slope):
    rng = np.random.default_rng(40_005)
    x = rng.standard_normal(1000)
    y = slope * x + rng.standard_normal(1000)
    model = fg.ModalDecomposition(2, random_state=0).fit(x, y)
    f, g = model.transform(x, y)
    assert np.corrcoef(f[:, 0], model.given(x).mean())[0, 1] > 0.9
    assert np.corrcoef(g[:, 0], y)[0, 1] > 0.9
    np.testing.assert_allclose(model.learned_.unseen.f[:, 0], f[:, 0] * model.singular_values_[0], atol=0.5)


def test_images_have_no_columns():
    rng = np.random.default_rng(0)
    images, label = rng.standard_normal((200, 1, 4, 4)), rng.integers(0, 2, 200)
    images[:, 0, 0, 0] += 3 * label
    once = fg.Training(max_epochs=1)
    model = fg.ModalDecomposition(1, x_space=torch.nn.Flatten(), training=once, random_state=0).fit(images, label)
    with pytest.raises(ValueError, match="no columns"):
        model.importance()


def _beside(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """X of three columns, Y and S: given S one column tells of Y, another only of S, the third of nothing."""
    rng = np.random.default_rng(seed)
    s = rng.standard_normal(n)
    X = pd.DataFrame(
        {"own": rng.standard_normal(n), "of_s": s + rng.standard_normal(n), "none": rng.standard_normal(n)}
    )
    return X, X["own"].to_numpy() + 2 * s + rng.standard_normal(n), s


def test_given_s_only_what_y_adds_counts():
    spaces = dict.fromkeys(("x_space", "y_space", "s_space"), "linear")
    model = fg.ConditionalDecomposition(1, **spaces, y_given_s=LinearRegression(), random_state=0)
    told = model.fit(*_beside(1500, 0)).importance(*_beside(1500, 1))
    assert told.columns == ("own", "of_s", "none")
    alone, error = told.totals[:, :2].T
    assert alone[0] > 10 * error[0]
    assert alone[1] < 0.2 * alone[0]
    assert abs(alone[2]) < 0.1 * alone[0]


def test_columns_of_sources_are_told_apart():
    columns = {"left": ["own", "none"], "right": "of_s"}
    model = fg.MultimodalDecomposition(max_order=1, spaces="linear", y_space="linear", sources=columns, random_state=0)
    X, y, _ = _beside(800, 0)
    fresh, y_fresh, _ = _beside(800, 1)
    y_fresh[::7] = np.nan  # rows without Y judge nothing
    told = model.fit(X, y).importance(fresh, y_fresh)
    assert told.columns == ("left own", "left none", "right of_s")
    own, none, of_s = told.totals[:, 2]
    assert min(own, of_s) > 0.1
    assert abs(none) < 0.05


def test_effects_are_means_of_all_rows_none_over_a_few_that_ties_leave():
    rng = np.random.default_rng(40_006)
    tied = np.where(rng.random(600) < 0.6, 4.0, rng.uniform(2, 8, 600)).round(2)
    x = pd.DataFrame({"tied": np.where(rng.random(600) < 0.1, np.nan, tied), "noise": rng.standard_normal(600)})
    y = np.where(np.isnan(x["tied"]), 0.0, x["tied"]) + rng.standard_normal(600)
    figure = (
        fg.ModalDecomposition(1, x_space="spline", y_space="spline", random_state=0).fit(x, y).plot("effects", x, y)
    )
    drawn = next(axes for axes in figure.axes if axes.get_xlabel() == "tied" and axes.lines)
    places = drawn.lines[0].get_xdata()
    steps = np.abs(x["tied"].dropna().to_numpy()[:, None] - places).argmin(axis=1)
    assert np.bincount(steps, minlength=len(places)).min() >= 600 / 60
    assert len(places) >= 5
    (band,) = drawn.collections
    assert band.get_paths()[0].contains_points(np.column_stack(drawn.lines[0].get_data())[1:-1]).all()
