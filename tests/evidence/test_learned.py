"""Independence by learned features: the level holds, and what must be learned is found."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from featgeo import ModalDecomposition, Training
from featgeo.evidence import independence_test
from featgeo.evidence.blocks import LIMIT_ROWS
from featgeo.evidence.halves import score_evidence
from featgeo.evidence.shuffling import Shuffling

LINEAR = ModalDecomposition(1, solver="closed", x_space="linear", y_space="linear", random_state=0)


def learned(X, Y, model=LINEAR, **options):
    return independence_test(X, Y, method="learned", model=model, **options)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: (rng.standard_normal(40), rng.standard_t(2, 40)),
        lambda rng: (rng.standard_normal((40, 10)), rng.exponential(size=40)),
        lambda rng: (rng.choice(list("abc"), 40), rng.standard_normal(40)),
    ],
    ids=["numbers", "columns", "labels"],
)
def test_level_holds(draw):
    pvalues = np.array([
        learned(*draw(np.random.default_rng(seed)), n_permutations=39, random_state=seed).pvalue for seed in range(30)
    ])  # fmt: skip
    for level in (0.05, 0.2):
        assert np.mean(pvalues <= level) < level + 3 * np.sqrt(level * (1 - level) / len(pvalues))


def test_score_is_standard_normal_over_arrangements_and_in_the_limit():
    """Given functions of many rows: both null distributions agree."""
    rng = np.random.default_rng(0)
    n, weights = LIMIT_ROWS + 200, np.array([0.6, 0.2])
    few, many = [], []
    for _ in range(200):
        f, g = rng.standard_normal((2, n, 2))
        many.append(score_evidence(f, g, weights, Shuffling(99, rng)))
        few.append(score_evidence(f[:200], g[:200], weights, Shuffling(99, rng)).statistic)
    assert "limit" in many[0].method
    for statistics in (few, [evidence.statistic for evidence in many]):
        assert np.mean(statistics) == pytest.approx(0, abs=0.25)
        assert np.var(statistics) == pytest.approx(1, abs=0.4)


def test_strong_modes_count_more_than_weak_ones():
    rng = np.random.default_rng(1)
    f = rng.standard_normal((400, 6))
    g = rng.standard_normal((400, 6))
    g[:, 0] += 0.2 * f[:, 0]
    knowing = score_evidence(f, g, np.array([1.0, 0, 0, 0, 0, 0]), Shuffling(99, rng)).statistic
    assert knowing > score_evidence(f, g, np.ones(6), Shuffling(99, rng)).statistic


def test_functions_on_few_rows_are_compared_with_arrangements():
    n = LIMIT_ROWS + 500
    rare = (np.arange(n) < 5)[:, None].astype(float)
    rng = np.random.default_rng(0)
    assert "arrangements" in score_evidence(rare, rng.permutation(rare), np.ones(1), Shuffling(19, rng)).method
    assert score_evidence(rare, np.ones((n, 1)), np.ones(1), Shuffling(19, rng)).pvalue == 1


def test_a_product_of_two_columns_among_many_is_found():
    squares = make_pipeline(PolynomialFeatures(2, interaction_only=True), Ridge(10.0))
    model = ModalDecomposition(1, x_space=squares, y_space="linear", random_state=0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 12))
    y = X[:, 3] * X[:, 7] + 0.7 * rng.standard_normal(400)
    assert learned(X, y, model, n_permutations=499).pvalue <= 0.01
    assert learned(X, rng.permutation(y), model, n_permutations=499).pvalue > 0.01


def test_images_are_learned_without_asking():
    digits = load_digits()
    rows = np.random.default_rng(0).choice(len(digits.target), 240, replace=False)
    images, labels = torch.from_numpy(digits.images[rows] / 16).float(), digits.target[rows]
    quick = ModalDecomposition(2, x_space="image", training=Training(max_epochs=3), random_state=0)
    evidence = learned(images, labels, quick, n_permutations=99)
    assert evidence.pvalue == 2 / 100
    assert "learned on halves" in evidence.method


def test_many_rows_give_tiny_pvalues():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(2 * LIMIT_ROWS + 200)
    evidence = learned(x, x + rng.standard_normal(len(x)))
    assert evidence.pvalue < 1e-20
    assert evidence.statistic > 10


def test_a_half_that_never_varies_teaches_nothing():
    rare = (np.arange(100) == 0).astype(int)
    assert learned(rare, np.arange(100) % 2).pvalue > 0.05


def test_model_is_left_alone_and_seeds_repeat():
    x, y = np.random.default_rng(0).standard_normal((2, 60))
    assert learned(x, y, random_state=1) == learned(x, y, random_state=1)
    assert learned(x, y, random_state=1) != learned(x, y, random_state=2)
    assert not hasattr(LINEAR, "singular_values_")


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.arange(10.0), {"method": "learned"}, "at least 20 rows, got 10.*smooth"),
        (np.arange(10.0), {"model": LINEAR}, "model.*method='learned'.*'auto'"),
        (np.zeros((10, 4, 4)), {}, "X never varies"),
        (np.zeros((10, 4, 4)), {"method": "smooth"}, "Flatten.*method='learned'"),
    ],
)
def test_messages(X, options, message):
    with pytest.raises(ValueError, match=message):
        independence_test(X, np.arange(10), **options)
