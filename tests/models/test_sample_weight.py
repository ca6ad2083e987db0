"""Weights count rows: a weight of 2 is the row twice, in every closed-form path, wherever its copies stand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import featgeo as fg

RNG = np.random.default_rng(0)
N = 200
COUNTS = RNG.integers(0, 4, N)
# Each row as often as it counts: once in order, and all further copies behind, in an order of their own.
AGAIN = np.concatenate([np.flatnonzero(COUNTS), RNG.permutation(np.repeat(np.arange(N), (COUNTS - 1).clip(min=0)))])
IN_ORDER = np.repeat(np.arange(N), COUNTS)
NUMBERS = RNG.normal(size=(N, 3))
Y = NUMBERS[:, 0] + np.sin(2 * NUMBERS[:, 1]) + 0.5 * RNG.normal(size=N)
LABELS = np.array(list("abcd"))[RNG.integers(0, 4, N)]
CLASSES = np.where(NUMBERS[:, 0] + RNG.normal(size=N) > 0, "yes", "no")
FRAME = pd.DataFrame({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1], "c": LABELS})
NEW = NUMBERS[:7]


def close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"x_space": "linear", "y_space": "linear", "ridge": 0},
        {"x_space": "linear", "y_space": "spline"},
        {"x_space": "spline", "y_space": "kernel"},
        {"x_space": "kernel", "y_space": "kernel", "n_modes": "auto"},
        {"solver": "closed"},
        {"orthogonal_to": [0]},
    ],
    ids=str,
)
def test_modes(options):
    weighted = fg.ModalDecomposition(random_state=0, **options).fit(NUMBERS, Y, sample_weight=COUNTS)
    repeated = fg.ModalDecomposition(random_state=0, **options).fit(NUMBERS[AGAIN], Y[AGAIN])
    close(weighted.singular_values_, repeated.singular_values_)
    close(weighted.held_out_singular_values_, repeated.held_out_singular_values_)
    close(weighted.transform(NEW), repeated.transform(NEW))
    close(weighted.given(NEW).mean(), repeated.given(NEW).mean())
    close(weighted.score(NUMBERS, Y, sample_weight=COUNTS), weighted.score(NUMBERS[AGAIN], Y[AGAIN]))


@pytest.mark.parametrize("y", [Y, CLASSES], ids=["number", "labels"])
def test_mixed_frames(y):
    weighted = fg.ModalDecomposition(2, random_state=0).fit(FRAME, y, sample_weight=COUNTS)
    repeated = fg.ModalDecomposition(2, random_state=0).fit(FRAME.iloc[AGAIN], y[AGAIN])
    assert weighted.spaces_ == repeated.spaces_
    close(weighted.singular_values_, repeated.singular_values_)
    close(weighted.transform(FRAME[:9]), repeated.transform(FRAME[:9]))


def test_tables_of_counts():
    weighted = fg.ModalDecomposition("auto", random_state=0).fit(LABELS, CLASSES, sample_weight=COUNTS)
    assert weighted.solver_ == "exact"
    due = fg.FiniteJoint.from_samples(x=LABELS[AGAIN], y=CLASSES[AGAIN]).modes()
    close(weighted.singular_values_, due.sigma[: weighted.n_modes_])


@pytest.mark.parametrize(("estimator", "y"), [(fg.FeatureClassifier, CLASSES), (fg.FeatureRegressor, Y)])
def test_predictors(estimator, y):
    weighted = estimator(random_state=0).fit(FRAME, y, sample_weight=COUNTS)
    repeated = estimator(random_state=0).fit(FRAME.iloc[AGAIN], y[AGAIN])
    close(weighted.given(FRAME[:9]).proba(), repeated.given(FRAME[:9]).proba())


@pytest.mark.parametrize("s", [NUMBERS[:, 2], LABELS], ids=["number", "labels"])
def test_side_information(s):
    options = {"x_space": "spline", "s_space": "auto", "y_space": "spline", "random_state": 0}
    weighted = fg.ConditionalDecomposition(1, **options).fit(NUMBERS[:, 0], Y, s, sample_weight=COUNTS)
    repeated = fg.ConditionalDecomposition(1, **options).fit(NUMBERS[AGAIN, 0], Y[AGAIN], s[AGAIN])
    for ours, theirs in ((weighted.markov_, repeated.markov_), (weighted.conditional_, repeated.conditional_)):
        close(ours.singular_values_, theirs.singular_values_)
    close(weighted.given(NEW[:, 0], s[:7]).mean(), repeated.given(NEW[:, 0], s[:7]).mean())
    score = weighted.score(NUMBERS[:, 0], Y, s, sample_weight=COUNTS)
    close(score, weighted.score(NUMBERS[IN_ORDER, 0], Y[IN_ORDER], s[IN_ORDER]))


def test_sources_of_which_some_miss():
    a = np.where(RNG.random(N) < 0.2, np.nan, NUMBERS[:, 0])
    sources = {"a": a, "b": NUMBERS[:, 1], "c": LABELS}
    weighted = fg.MultimodalDecomposition(random_state=0).fit(sources, Y, sample_weight=COUNTS)
    again = {name: values[AGAIN] for name, values in sources.items()}
    repeated = fg.MultimodalDecomposition(random_state=0).fit(again, Y[AGAIN])
    close(weighted.bivariate_.singular_values_, repeated.bivariate_.singular_values_)
    close(weighted.given(b=NEW[:, 1]).mean(), repeated.given(b=NEW[:, 1]).mean())
    again = {name: values[IN_ORDER] for name, values in sources.items()}
    close(weighted.score(sources, Y, sample_weight=COUNTS), weighted.score(again, Y[IN_ORDER]))


def test_sequences():
    sequences, counts = RNG.integers(0, 3, (6, 80)), [2, 1, 0, 1, 3, 1]
    weighted = fg.SequentialDecomposition(order=2, random_state=0).fit(sequences, sample_weight=counts)
    repeated = fg.SequentialDecomposition(order=2, random_state=0).fit(np.repeat(sequences, counts, axis=0))
    close(weighted.energies_, repeated.energies_)
    close(weighted.score(sequences, sample_weight=counts), repeated.score(np.repeat(sequences, counts, axis=0)))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(N, 0.5), "must count rows: whole numbers"),
        (np.zeros(N), "not all zero"),
        (-COUNTS, "finite and non-negative"),
        (COUNTS[1:], "one entry a row"),
    ],
)
def test_weights_that_count_nothing_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        fg.ModalDecomposition(1).fit(NUMBERS, Y, sample_weight=weights)


def test_streams_take_no_weights():
    with pytest.raises(ValueError, match="Weights need all rows in memory"):
        fg.ModalDecomposition(1).fit([(NUMBERS, Y)], sample_weight=COUNTS)
