"""Columns of many labels: shared indicators, shrunken cross-fitted means, and columns that identify rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression

import featgeo as fg
from featgeo.features.labels import LabelMeans, label_means, shrunken, told_apart
from featgeo.features.spaces import Encoding
from featgeo.features.trees import RegressorSpace, as_matrix, trees
from featgeo.features.variables import Variable
from featgeo.models.export import as_module, encode_inputs

FEW_LABELS, ROWS_A_LABEL = fg.Options().finite_values, fg.Options().rows_a_function


def _rows(labels, **others):
    frame = pd.DataFrame({**others, "label": np.asarray(labels)})
    return Variable.seen(frame, "X").rows(frame)


def _totals(codes, targets, n_labels):
    counts = np.bincount(codes, minlength=n_labels).astype(float)
    sums = np.stack([np.bincount(codes, t, minlength=n_labels) for t in targets.T], axis=1)
    return counts, sums, (targets**2).sum(axis=0)


def test_means_are_the_posterior_means_of_the_analysis_of_variance():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(40), 6)
    targets = rng.normal(size=(40, 2))[codes] * [1.0, 0.5] + rng.normal(size=(240, 2))
    averages = targets.reshape(40, 6, 2).mean(axis=1)
    within = targets.reshape(40, 6, 2).var(axis=1, ddof=1).mean(axis=0)
    between = averages.var(axis=0, ddof=1) - within / 6  # for labels of equal size
    overall, kappa = targets.mean(axis=0), within / between
    expected = (6 * averages + kappa * overall) / (6 + kappa)
    means = shrunken(*_totals(codes, targets, 40))
    np.testing.assert_allclose(means[:-1], expected, rtol=1e-12)
    np.testing.assert_allclose(means[-1], overall)  # of a label that was not seen


@pytest.mark.parametrize("sizes", [[5, 9], [1, 4, 20, 3]])
def test_labels_of_unequal_sizes_are_those_of_the_analysis_of_variance_too(sizes):
    rng = np.random.default_rng(0)
    codes, sizes = np.repeat(np.arange(len(sizes)), sizes), np.array(sizes)
    y = 2.0 * codes + rng.normal(size=len(codes))
    averages = np.array([y[codes == label].mean() for label in range(len(sizes))])
    n, k = len(y), len(sizes)
    within = np.sum((y - averages[codes]) ** 2) / (n - k)
    across = np.sum(sizes * (averages - y.mean()) ** 2) / (k - 1)
    kappa = within / ((across - within) / ((n - np.sum(sizes**2) / n) / (k - 1)))
    expected = (sizes * averages + kappa * y.mean()) / (sizes + kappa)
    np.testing.assert_allclose(shrunken(*_totals(codes, y[:, None], k))[:-1, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("labels", [np.arange(50), np.zeros(50, dtype=int)], ids=["one row a label", "one label"])
def test_where_nothing_tells_noise_from_labels_the_mean_of_all_is_all(labels):
    targets = np.random.default_rng(1).normal(size=(50, 1))
    np.testing.assert_allclose(shrunken(*_totals(labels, targets, 50)), targets.mean())


def test_each_row_gets_the_means_of_the_folds_without_it():
    rng = np.random.default_rng(2)
    codes, fold_of_row = rng.integers(-1, 30, size=300), rng.integers(4, size=300)  # -1 is unknown
    targets = rng.normal(size=(30, 3))[codes] + rng.normal(size=(300, 3))
    whole, values = label_means(codes, targets, 30, fold_of_row)
    known = codes >= 0
    np.testing.assert_allclose(whole[:, 1:], shrunken(*_totals(codes[known], targets[known], 30)))
    np.testing.assert_allclose(np.expm1(whole[:-1, 0]), np.bincount(codes[known], minlength=30))
    for fold in range(4):
        other, own = known & (fold_of_row != fold), fold_of_row == fold
        np.testing.assert_allclose(values[own, 1:], shrunken(*_totals(codes[other], targets[other], 30))[codes[own]])
    # How frequent a label is, is not learned from targets: rows of the fit read what new rows with their label will.
    np.testing.assert_array_equal(values[:, 0], whole[codes, 0])


def test_functions_that_labels_tell_apart_are_those_of_the_table_of_group_means():
    # Y has the values of 3 groups of labels, exactly: functions of the group are told apart, with sigma = 1.
    group = np.tile(np.arange(3), 40)
    labels = np.char.add("l", np.arange(120).astype(str)).repeat(5)
    y = group.repeat(5)
    rng = np.random.default_rng(3)
    features = np.hstack([np.eye(3)[y], rng.normal(size=(600, 4))])  # and four that have nothing to do with it
    functions = told_apart(_rows(labels, number=rng.normal(size=600)), features, np.empty((600, 0)), 2)
    np.testing.assert_allclose(functions.T @ functions / 600, np.eye(2), atol=1e-9)
    centred = np.eye(3)[y] - np.eye(3)[y].mean(axis=0)
    left = functions - centred @ np.linalg.lstsq(centred, functions, rcond=None)[0]
    assert np.square(left).mean() < 0.02


def test_functions_that_are_told_apart_come_in_the_order_of_what_labels_say():
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(60), 40)
    effects = rng.standard_normal((60, 3))
    noise = rng.standard_normal((2400, 3))
    features = effects[labels] * [0.3, 3.0, 1.0] + noise  # shares of 0.08, 0.9 and 0.5
    rows = _rows(np.char.add("l", labels.astype(str)), number=noise[:, 0])
    for most in (1, 2, 3):
        functions = told_apart(rows, features, np.empty((2400, 0)), most)
        assert functions.shape == (2400, most)
        closeness = [abs(np.corrcoef(functions[:, i], features[:, j])[0, 1]) for i, j in enumerate((1, 2, 0)[:most])]
        assert min(closeness) > 0.95
    found = 5 * features[:, :1]  # what was already found counts by its own strength
    first = told_apart(rows, features, found, 1)[:, 0]
    assert abs(np.corrcoef(first, features[:, 0])[0, 1]) > 0.95


def test_rare_labels_share_an_indicator():
    frequent = np.repeat([f"f{i}" for i in range(FEW_LABELS + 8)], np.arange(FEW_LABELS + 8) + ROWS_A_LABEL)
    rare = np.repeat([f"r{i}" for i in range(2000)], ROWS_A_LABEL - 1)
    labels = np.concatenate([frequent, rare])
    rows = _rows(labels, number=np.arange(len(labels)))
    encoding = Encoding.fit(rows, "standard")
    values = encoding.labels(rows)
    assert values.shape == (len(labels), FEW_LABELS)  # whatever the number of labels
    kept = {f"f{i}" for i in range(9, FEW_LABELS + 8)}  # the most frequent ones
    pooled = np.array([label if label in kept else "other" for label in labels])
    expected = (pooled[:, None] == np.array([*sorted(kept), "other"])).astype(float)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_allclose(encoding.shares[0], expected.mean(axis=0))
    new = rows.variable.rows(pd.DataFrame({"number": [0.0], "label": ["never seen"]}))
    np.testing.assert_array_equal(encoding.labels(new), np.eye(FEW_LABELS)[-1:])  # an unknown label is a rare one


def test_few_labels_have_an_indicator_each_however_rare():
    labels = np.array([f"l{i}" for i in range(FEW_LABELS)] + ["l0"] * 100)
    rows = _rows(labels, number=np.arange(len(labels)))
    np.testing.assert_array_equal(
        Encoding.fit(rows, "standard").labels(rows), np.eye(FEW_LABELS)[rows.table.codes[:, 0]]
    )


def test_with_frequent_labels_only_modes_are_those_of_the_pooled_table():
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.integers(20, size=3000), 20 + np.arange(100) // 2])  # 20 frequent labels, 50 of two rows
    y = np.where(rng.random(3100) < 0.4, x.clip(max=20) % 4, rng.integers(4, size=3100))
    labels = np.array([f"l{i:02d}" for i in x])
    model = fg.ModalDecomposition(n_modes=3, solver="closed", x_space="linear", y_space="table", random_state=0)
    pooled = np.zeros((21, 4))
    np.add.at(pooled, (x.clip(max=20), y), 1)
    sigma = model.fit(labels, np.array(list("abcd"))[y]).singular_values_
    np.testing.assert_allclose(sigma, fg.FiniteJoint(pooled).modes(3).sigma, rtol=1e-3)


def test_regressors_read_the_means_of_their_own_target_and_no_more():
    rng = np.random.default_rng(5)
    codes = rng.integers(300, size=1500)
    rows = _rows([f"l{i}" for i in codes], number=rng.normal(size=1500))
    targets = rng.normal(size=(300, 2))[codes] + rng.normal(size=(1500, 2))
    assert as_matrix(rows).shape == (1500, 1)  # too many labels to be split as sets
    assert trees(rows, 0).categorical_features is None
    fold_of_row = np.arange(1500) % 3
    _, unseen = RegressorSpace.fit(rows, targets, fold_of_row, LinearRegression(), seed=0)
    inputs = Encoding.fit(rows, "standard")(rows)
    out = fold_of_row == 1
    means, own = LabelMeans.fit(rows.variable, rows.table.codes[~out], targets[~out], 0)
    read = np.hstack([inputs[~out], own[:, 0, [0, 2]]])  # the rows of a label, and the means of the second target
    model = LinearRegression().fit(read, targets[~out, 1])
    told = means.forward(torch.from_numpy(rows.table.codes[out])).numpy()
    read = np.hstack([inputs[out], told[:, 0, [0, 2]]])
    np.testing.assert_allclose(unseen[out, 1], model.predict(read))
    assert np.corrcoef(unseen[:, 1], targets[:, 1])[0, 1] > 0.5


def _with_identifier(n=600):
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"a": rng.normal(size=n), "kind": rng.choice(list("abc"), n), "b": rng.normal(size=n)})
    y = frame["a"] + (frame["kind"] == "a") + rng.normal(size=n)
    return frame, frame.assign(name=[f"person {i}" for i in rng.permutation(n)])[["a", "name", "kind", "b"]], y


def test_a_column_that_identifies_rows_changes_nothing_but_a_warning(tmp_path):
    without, frame, y = _with_identifier()
    with pytest.warns(UserWarning, match="'name'.*set aside.*categorical"):
        model = fg.FeatureRegressor(n_modes=2, x_space="kernel", random_state=0).fit(frame, y)
    same = fg.FeatureRegressor(n_modes=2, x_space="kernel", random_state=0).fit(without, y)
    expected = same.predict(without)
    np.testing.assert_array_equal(model.predict(frame), expected)
    np.testing.assert_array_equal(model.predict(frame.assign(name="someone else")), expected)
    np.testing.assert_array_equal(model.predict(frame[["b", "name", "kind", "a"]][model.feature_names_in_]), expected)
    model.save(tmp_path / "model.fg")
    np.testing.assert_array_equal(fg.load(tmp_path / "model.fg").predict(frame), expected)
    inputs = encode_inputs(model, frame)
    assert inputs.shape == (600, 3)  # exported modules do not read it either
    np.testing.assert_allclose(as_module(model, "f")(inputs).numpy(), same.transform(without), atol=1e-6)
    assert str(model.report()) == str(same.report())


def test_without_names_it_is_known_by_its_position():
    without, frame, _ = _with_identifier(60)
    with pytest.warns(UserWarning, match="'1'"):
        variable = Variable.seen(frame.to_numpy(dtype=object), "X")
    table = variable.rows(frame.to_numpy(dtype=object)).table
    np.testing.assert_array_equal(table.numbers, without[["a", "b"]])
    with pytest.raises(ValueError, match="has 3 features, but the fit had 4"):
        variable.rows(without.to_numpy(dtype=object)).table  # noqa: B018


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical([f"p{i}" for i in range(60)]),  # declared
        np.arange(60),
        pd.date_range("2024-01-01", periods=60),
        [f"p{i // 2}" for i in range(60)],
        [f"p{max(i, 4)}" for i in range(60)],  # five of sixty rows share a label
    ],
    ids=["declared", "numbers", "dates", "pairs", "some repeat"],
)
def test_what_does_not_identify_rows_is_read(column):
    frame = pd.DataFrame({"a": np.random.default_rng(7).normal(size=60), "column": column})
    assert [c.name for c in Variable.seen(frame, "X").columns] == ["a", "column"]


def test_where_it_is_all_there_is_the_column_stays_and_the_fit_says_why_not():
    names = np.array([f"p{i}" for i in range(100)])
    with pytest.raises(ValueError, match="a value of its own"):
        fg.ModalDecomposition().fit(names, np.arange(100) % 2)


def test_missing_labels_say_nothing_about_whether_others_repeat():
    names = [f"p{i}" if i % 2 else None for i in range(100)]
    with pytest.warns(UserWarning, match="'name'"):
        Variable.seen(pd.DataFrame({"a": np.arange(100.0), "name": names}), "X")


@pytest.fixture(scope="module")
def many():
    """1,500 labels of four rows each, of two kinds that tell numbers and few labels apart."""
    rng = np.random.default_rng(8)
    codes = np.arange(6000) % 1500
    number = rng.normal(size=1500)[codes] + rng.normal(size=6000)
    return np.array([f"l{i}" for i in codes]), number


def test_many_labels_and_a_number_either_way(many, tmp_path):
    labels, number = many
    model = fg.ModalDecomposition(n_modes=1, random_state=0).fit(labels, number)
    assert model.spaces_[0] == "means"
    # Labels explain half of the variance, kappa is 1, and of the three other rows of a label each is known in 4 of 5
    # folds: the squared correlation of the number and the mean is E[n / (n + 1)] / 2 with n ~ Binomial(3, 4/5).
    expected = np.sqrt(sum(p * n / (n + 1) for n, p in enumerate([0.008, 0.096, 0.384, 0.512])) / 2)
    assert model.held_out_singular_values_[0] == pytest.approx(expected, abs=0.03)
    other = fg.ModalDecomposition(n_modes=1, random_state=0).fit(number, labels)
    np.testing.assert_allclose(other.singular_values_, model.singular_values_, rtol=1e-4)
    np.testing.assert_allclose(np.abs(other.transform(number, labels)[1]), np.abs(model.transform(labels)), atol=1e-2)
    unknown = model.transform(np.array(["never seen"]))
    assert abs(unknown[0, 0]) < 0.1  # about the mean of all, 0
    model.save(tmp_path / "model.fg")
    np.testing.assert_array_equal(fg.load(tmp_path / "model.fg").transform(labels), model.transform(labels))
    exported = as_module(model, "f")(encode_inputs(model, labels))
    np.testing.assert_allclose(exported.numpy(), model.transform(labels), atol=1e-12)


def test_labels_of_few_rows_do_not_make_up_a_dependence(many):
    labels, _ = many
    kind = np.random.default_rng(9).choice(list("abc"), size=len(labels))
    model = fg.FeatureClassifier(random_state=0).fit(labels[:, None], kind)
    share = np.array([(kind == label).mean() for label in "abc"])
    np.testing.assert_allclose(model.predict_proba(labels[:, None]), np.tile(share, (6000, 1)), atol=0.03)


def test_two_columns_of_many_labels_show_what_held_out_rows_bear_out():
    rng = np.random.default_rng(10)
    x = rng.integers(300, size=2400)
    together = np.where(rng.random(2400) < 0.7, x % 3, rng.integers(3, size=2400))  # y shares the group of x
    y = 3 * rng.integers(100, size=2400) + together
    first, second = np.char.add("a", x.astype(str)), np.char.add("b", y.astype(str))
    model = fg.ModalDecomposition(n_modes=2, random_state=0).fit(first, second)
    assert model.spaces_ == ("labels", "labels")
    sigma = model.singular_values_
    assert (sigma < 0.7 + 0.03).all()  # the truth; counts as they are say 0.9
    assert (sigma > 0.3).all()
    np.testing.assert_allclose(sigma, model.held_out_singular_values_)
    with pytest.warns(UserWarning, match="on held-out rows"):
        exact = fg.ModalDecomposition(n_modes=2, solver="exact", random_state=0).fit(first, second)
    counts = np.zeros((300, 300))
    np.add.at(counts, (x, y), 1)
    np.testing.assert_allclose(exact.singular_values_, fg.FiniteJoint(counts).modes(2).sigma)  # asked for, as they are
