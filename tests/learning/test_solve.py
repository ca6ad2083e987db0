"""The closed form with held-out choice: what the algebra on fold moments says is what the rows say."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support import SEEDS, best_modes, random_counts, rows

from featgeo import FiniteJoint, Moments, decompose, h_score
from featgeo.geometry.incomplete import span_problem
from featgeo.geometry.spans import LevelChoice
from featgeo.learning.solve import Folds, Search, solve

LEVEL = [("x", "y")]


def _features(seed: int, n: int = 600) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, noise = rng.standard_normal((n, 5)), rng.standard_normal((n, 4))
    return {"x": x, "y": x[:, :4] * [0.9, 0.6, 0.3, 0] + noise}


@pytest.mark.parametrize("seed", SEEDS)
def test_held_out_figures_are_those_of_the_rows_left_out(seed):
    features = _features(seed)
    fold_of_row = np.random.default_rng(seed).permutation(600) % 3
    solution = solve(Folds.from_chunks([features], 3, seed, fold_of_row), LEVEL, [Search((2,), [0.1])])
    scores = []
    for fold in range(3):
        out = fold_of_row == fold
        train = Moments.from_features({name: z[~out] for name, z in features.items()})
        (modes,) = best_modes(span_problem(train, [("x", "y")]), [LevelChoice(2, 0.1)])
        f, g = (torch.from_numpy(z) for z in (modes.f(features["x"][out]), modes.g(features["y"][out])))
        scale = torch.from_numpy(np.sqrt(modes.sigma))
        scores.append(float(h_score(f * scale, g * scale)))
        correlations = [np.corrcoef(f[:, i], g[:, i])[0, 1] for i in range(2)]
        np.testing.assert_allclose(solution.judged(0)[fold, 2], correlations, atol=1e-10)
    assert solution.held_out_score == pytest.approx(np.mean(scores), abs=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0])
def test_features_have_unit_variance_and_sigma_is_their_correlation_whatever_the_ridge(ridge):
    features = _features(0)
    (modes,) = best_modes(span_problem(Moments.from_features(features), [("x", "y")]), [LevelChoice(3, ridge)])
    f, g = modes.f(features["x"]), modes.g(features["y"])
    np.testing.assert_allclose(f.T @ f / len(f), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(g.T @ g / len(g), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(f.T @ g / len(f), np.diag(modes.sigma), atol=1e-10)


def test_steady_modes_are_those_under_the_ridge_made_orthonormal():
    features = _features(0)
    problem = span_problem(Moments.from_features(features), [("x", "y")])
    (under_ridge,) = problem.modes(0.5)
    (steady,) = best_modes(problem, [LevelChoice(3, 0.5, steady=True)])
    f, g = steady.f(features["x"]), steady.g(features["y"])
    np.testing.assert_allclose(f.T @ f / len(f), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(g.T @ g / len(g), np.eye(3), atol=1e-10)
    np.testing.assert_allclose(np.diag(f.T @ g) / len(f), steady.sigma, atol=1e-10)
    for ours, theirs in ((f, under_ridge.f(features["x"])), (g, under_ridge.g(features["y"]))):
        strongest = np.corrcoef(ours[:, 0], theirs[:, 0])[0, 1]
        assert abs(strongest) == pytest.approx(1, abs=1e-10)  # the others only lose what they share with stronger ones
        together = np.linalg.lstsq(theirs[:, :3], ours, rcond=None)[0]
        np.testing.assert_allclose(theirs[:, :3] @ together, ours, atol=1e-9)


def test_without_ridge_it_is_the_decomposition_itself():
    moments = Moments.from_features(_features(1))
    (plain,) = decompose(moments, [("x", "y")])
    (best,) = best_modes(span_problem(moments, [("x", "y")]), [LevelChoice(3)])
    np.testing.assert_allclose(best.sigma, plain.sigma[:3], atol=1e-12)
    np.testing.assert_allclose(best.f.weight, plain.f.weight[:, :3], atol=1e-9)


def test_levels_stay_exactly_orthogonal_under_the_ridge():
    features = _features(2)
    blocks = {"a": features["x"][:, :2], "b": features["x"], "y": features["y"]}
    problem = span_problem(Moments.from_features(blocks), [("a", "y"), (("a", "b"), "y")])
    first, second = best_modes(problem, [LevelChoice(2, 0.5)] * 2)
    x = np.hstack([blocks["a"], blocks["b"]])
    np.testing.assert_allclose(first.f(x).T @ second.f(x), 0, atol=1e-9)


def test_indicators_give_the_exact_modes_of_a_table():
    counts = random_counts(0, (6, 5))
    x, y = rows(counts)
    features = {"x": np.eye(6)[x], "y": np.eye(5)[y]}
    solution = solve(Folds.from_chunks([features], 4, 0), LEVEL, [Search((4,), [0.0])])
    np.testing.assert_allclose(solution.levels[0].sigma, FiniteJoint(counts).modes().sigma, atol=1e-12)


def test_the_ridge_that_is_chosen_is_the_best_on_held_out_rows():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 60))
    features = {"x": x, "y": (x[:, 0] + rng.standard_normal(200))[:, None]}
    folds = Folds.from_chunks([features], 5, 0)
    each = {ridge: solve(folds, LEVEL, [Search((1,), [ridge])]).held_out_score for ridge in (1e-6, 1.0, 100.0)}
    chosen = solve(folds, LEVEL, [Search((1,), list(each))])
    assert chosen.ridge == max(each, key=each.__getitem__) != 1e-6
    assert chosen.held_out_score == max(each.values())


@pytest.mark.parametrize("levels", [LEVEL, [("x", "y"), (("x", "more"), "y")]])
def test_scores_of_all_choices_at_once_are_those_of_each(levels):
    features = _features(3)
    features["more"] = np.random.default_rng(4).standard_normal((600, 3)) + features["y"][:, :3]
    solution = solve(Folds.from_chunks([features], 3, 0), levels, [Search((2,), [0.1])] * len(levels))
    choices = Search((1, 2, 4), [1e-6, 1.0], (False, True)).choices(4)
    settled = solution.choices[:-1]
    for problem, view in zip(solution.problems, solution.views, strict=True):
        each = [view.score(problem.dependence([*settled, choice])) for choice in choices]
        np.testing.assert_allclose(view.scores(problem, settled, choices), each, atol=1e-12)


def test_the_number_of_modes_that_is_chosen_leaves_noise_out():
    features = _features(3, n=5000)
    solution = solve(Folds.from_chunks([features], 5, 0), LEVEL, [Search((1, 2, 3, 4))])
    assert len(solution.levels[0]) == 3  # the fourth has no dependence


def test_folds_of_a_stream_add_up_to_all_rows():
    features = _features(4)
    chunks = [{name: z[start : start + 70] for name, z in features.items()} for start in range(0, 600, 70)]
    whole = Moments.from_features(features)
    for folds in (Folds.from_chunks(chunks, 3, 0), Folds.from_chunks(iter(chunks), 5, 1)):
        np.testing.assert_allclose(folds.whole.all.covariance("x", "y"), whole.covariance("x", "y"), atol=1e-12)


def test_moments_seen_through_affine_maps_are_those_of_the_images():
    features = _features(5)
    (modes,) = decompose(Moments.from_features(features), [("x", "y")])
    other = _features(6)
    own = Moments.from_features(other)
    images = Moments.from_features({"f": modes.f(other["x"]), "g": modes.g(other["y"])})
    mean = modes.f.offset + (own.mean("x") - modes.f.centre) @ modes.f.weight
    np.testing.assert_allclose(mean, images.mean("f"), atol=1e-12)
    mapped = modes.f.weight.T @ own.covariance("x", "y") @ modes.g.weight
    np.testing.assert_allclose(mapped, images.covariance("f", "g"), atol=1e-12)
