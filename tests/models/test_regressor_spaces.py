"""Spaces that regressors learn, of either side, against exact truths."""

import numpy as np
import pytest

from featgeo import FeatureClassifier, ModalDecomposition, load
from featgeo.learning.closed import CLEAR, PATIENT_ROWS, clearness


def _mixture(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two Gaussians of the same covariance; the mode of x is tanh(mu' S^-1 x)."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((6, 6)) / np.sqrt(6) + np.eye(6)
    mu = root @ np.full(6, 1 / np.sqrt(6))
    y = rng.choice([-1, 1], n)
    X = y[:, None] * mu + rng.standard_normal((n, 6)) @ root.T
    return X, y, np.tanh(X @ np.linalg.solve(root @ root.T, mu))


def _chains(n: int, seed: int) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """The paper's sequences (Prop. seq), and the true modes: tanh of the number of flips, shifted and scaled."""
    rng = np.random.default_rng(seed)
    causes = np.divmod(rng.choice(4, n, p=[0.1, 0.4, 0.2, 0.3]), 2)
    sequences, modes = [], []
    for cause, length, share in zip(causes, (40, 30), (0.5, 0.7), strict=True):
        flips = rng.random((n, length - 1)) < np.array([0.1, 0.9])[cause][:, None]
        start = rng.integers(0, 2, (n, 1))
        sequences.append(np.hstack([start, (start + np.cumsum(flips, axis=1)) % 2]))
        evidence = flips.sum(axis=1) - (length - 1) / 2
        modes.append(np.tanh(np.log(9) * evidence + np.log(share / (1 - share)) / 2))
    return tuple(sequences), tuple(modes)


def _agreement(found: np.ndarray, truth: np.ndarray) -> float:
    return float(abs(np.corrcoef(found[:, 0], truth)[0, 1]))


def test_auto_finds_the_mode_of_a_gaussian_mixture_without_slow_spaces():
    X, y, truth = _mixture(PATIENT_ROWS)
    model = ModalDecomposition(1, random_state=0).fit(X, y)
    assert model.spaces_ == ("index", "table")
    assert _agreement(model.transform(X), truth) > 0.9995
    sigma = np.sqrt(np.mean(truth**2))
    assert abs(model.held_out_singular_values_[0] - sigma) < 0.02


@pytest.mark.parametrize("n", [2000, PATIENT_ROWS])
def test_auto_goes_on_where_an_index_leaves_something(n):
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (n, 3)) + 0.3 * rng.standard_normal((n, 3))
    y = np.sign(X[:, 0] * X[:, 1]) * rng.choice([1, -1], n, p=[0.8, 0.2]) + np.sign(X[:, 2])
    model = ModalDecomposition(2, random_state=0).fit(X, y)
    assert model.spaces_[0] != "index"
    index = ModalDecomposition(2, x_space="index", random_state=0).fit(X, y)
    assert np.square(model.held_out_singular_values_).sum() > np.square(index.held_out_singular_values_).sum() + 0.1


def test_noise_is_nothing_to_explain_and_an_interaction_is():
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((20_000, 4)), rng.standard_normal((20_000, 1))
    rows = ModalDecomposition(1).fit(X[:50], noise[:50, 0]).x_variable_.rows(X)
    found = [clearness(rows, np.roll(noise, i), seed=i) > CLEAR for i in range(10)]
    assert sum(found) <= 2
    assert clearness(rows, noise + 0.15 * X[:, :1] * X[:, 1:2], seed=0) > CLEAR


def test_windows_find_the_modes_of_the_papers_sequences():
    (X, Y), _ = _chains(50_000, seed=0)
    model = ModalDecomposition(1, x_space="windows", y_space="windows", random_state=0).fit(X, Y)
    (fresh_x, fresh_y), (f_truth, g_truth) = _chains(10_000, seed=10)
    f, g = model.transform(fresh_x, fresh_y)
    assert _agreement(f, f_truth) > 0.999
    assert _agreement(g, g_truth) > 0.999
    assert abs(model.held_out_singular_values_[0] - 0.05 / np.sqrt(0.5 * 0.5 * 0.7 * 0.3)) < 0.02


@pytest.mark.parametrize("space", ["windows", "index", "trees"])
def test_what_is_x_and_what_is_y_makes_little_difference(space):
    (X, Y), _ = _chains(1000, seed=1)
    X, Y = X[:, :10], Y[:, :10]
    one = ModalDecomposition(1, x_space=space, y_space=space, random_state=0).fit(X, Y)
    other = ModalDecomposition(1, x_space=space, y_space=space, random_state=0).fit(Y, X)
    (f, g), (g_other, f_other) = one.transform(X, Y), other.transform(Y, X)
    assert one.spaces_ == (space, space)
    least = 0.9 if space == "trees" else 0.99  # pilots of trees have kernels with centres of their own
    assert _agreement(f, f_other[:, 0]) > least
    assert _agreement(g, g_other[:, 0]) > least


def test_a_regressor_may_learn_functions_of_y_alone():
    X, y, truth = _mixture(3000)
    model = ModalDecomposition(1, x_space="table", y_space="index", random_state=0).fit(y, X)
    assert _agreement(model.transform(y, X)[1], truth) > 0.99


def test_windows_tell_words_of_a_genome_apart():
    rng = np.random.default_rng(0)
    letters = rng.choice(list("ACGT"), (3000, 60))
    y = rng.random(3000) < 0.5
    for row, place in zip(np.flatnonzero(y), rng.integers(0, 50, (y.sum(), 3)), strict=True):
        for start in place:
            letters[row, start : start + 4] = list("GATC")
    model = FeatureClassifier(x_space="windows", random_state=0).fit(letters[:2000], y[:2000])
    assert model.score(letters[2000:], y[2000:]) > 0.9


def test_sequences_and_mixtures_are_saved(tmp_path):
    (X, Y), _ = _chains(1500, seed=2)
    model = ModalDecomposition(1, x_space="windows", y_space="windows", random_state=0).fit(X, Y)
    model.save(tmp_path / "model.fg")
    loaded = load(tmp_path / "model.fg")
    for first, second in zip(loaded.transform(X, Y), model.transform(X, Y), strict=True):
        np.testing.assert_array_equal(first, second)


def test_errors_say_the_way_out():
    X, y, _ = _mixture(600)
    with pytest.raises(ValueError, match="all rows in memory, and `x_space` is 'index'"):
        ModalDecomposition(1, x_space="index").fit([(X[:300], y[:300]), (X[300:], y[300:])])
    with pytest.raises(ValueError, match="not trained by gradients, got the space 'windows'"):
        ModalDecomposition(1, solver="neural", x_space="windows").fit(y[:, None] + np.zeros(4), y)
    with pytest.raises(ValueError, match=r"`y_space` is 'trees'\. Use another `y_space`"):
        ModalDecomposition(1, y_space="trees").fit(X, X[:, 0], Z=X[:, 1])
    with pytest.raises(ValueError, match="at most 16 symbols, and Y holds more"):
        ModalDecomposition(1, y_space="windows").fit(y, X)
