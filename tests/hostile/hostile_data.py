"""Small data and fitted models that hostile cases share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import featgeo as fg

rng = np.random.default_rng(0)
N = 80
X = rng.standard_normal((N, 3))
WHOLE = rng.integers(0, 50, N)
Y = X[:, 0] + 0.5 * rng.standard_normal(N)
LABELS = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.4, 0.4])]
FLAGS = Y > 0
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": LABELS})
HOLES = np.where(np.arange(N) % 7 == 0, np.nan, X[:, 0])
LINEAR: dict[str, Any] = {"x_space": "linear", "y_space": "linear"}


def modal(n_modes: Any = 1, **options: Any) -> fg.ModalDecomposition:
    return fg.ModalDecomposition(n_modes, **{**LINEAR, "random_state": 0, **options})


def sigma(x: Any, y: Any = Y, **options: Any) -> Any:
    """The strongest singular value: what most legal inputs must agree on."""
    return modal(**options).fit(x, y).singular_values_


@cache
def fitted() -> fg.ModalDecomposition:
    return modal().fit(X, Y)


@cache
def fitted_frame() -> fg.ModalDecomposition:
    return modal().fit(FRAME, Y)


@cache
def fitted_labels() -> fg.ModalDecomposition:
    return modal(2, y_space="table").fit(X, LABELS)


@cache
def regressor() -> fg.FeatureRegressor:
    return fg.FeatureRegressor(1, **LINEAR, random_state=0).fit(X, Y)


@cache
def classifier() -> fg.FeatureClassifier:
    return fg.FeatureClassifier(x_space="linear", random_state=0).fit(X, LABELS)


@cache
def conditional() -> fg.ConditionalDecomposition:
    return fg.ConditionalDecomposition(random_state=0).fit(LABELS, FLAGS, WHOLE % 3)


@cache
def multimodal() -> fg.MultimodalDecomposition:
    sources = {"one": LABELS, "two": WHOLE % 3}
    return fg.MultimodalDecomposition(max_order=1, random_state=0).fit(sources, FLAGS)


@cache
def sequential() -> fg.SequentialDecomposition:
    return fg.SequentialDecomposition(1, random_state=0).fit("abacabadabacabaabacabad" * 4)


def numbers() -> fg.Conditional:
    """Three distributions of a number."""
    return fitted().given(X[:3])


def labels() -> fg.Conditional:
    """Three distributions of a label."""
    return fitted_labels().given(X[:3])


def vectors() -> fg.Conditional:
    """Three distributions of two numbers."""
    return modal().fit(X, X[:, :2] + Y[:, None]).given(X[:3])


JOINT = fg.FiniteJoint([[2, 1, 0], [1, 3, 2]], categories=[["u", "v"], ["a", "b", "c"]])
THREE = fg.FiniteJoint(np.arange(1, 13).reshape(2, 3, 2))
