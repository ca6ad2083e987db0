"""Which spaces an argument such as `x_space` stands for: the simplest first."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.preprocessing import PolynomialFeatures

from featgeo.features.recipes import is_finite, recipes
from featgeo.features.variables import Variable
from featgeo.tuning import Options

FEW_LABELS = Options().finite_values

RNG = np.random.default_rng(0)
N = 900
NUMBER = RNG.standard_normal(N)
LABELS = RNG.choice(list("abc"), N)
MANY = np.array([f"label {i // 2}" for i in range(N)])
WORDS = np.array([f"w{i:02d}" for i in range(FEW_LABELS)])[np.arange(N) % FEW_LABELS]
COLUMNS = ["linear", "kernel, gamma 0.3", "index", "metric", "forest", "trees"]
ONE = ["kernel, gamma 0.3", "spline", "kernel, gamma 0.1", "kernel, gamma 3", "kernel, gamma 1", "metric", "forest"]


def rows(values):
    return Variable.seen(values, "X").rows(values)


def names(space, values):
    return [recipe.name for recipe in recipes(space, rows(values))]


@pytest.mark.parametrize(
    ("values", "expected", "finite"),
    [
        (NUMBER, ONE, False),
        (NUMBER[:, None], ONE, False),
        (np.column_stack([NUMBER, NUMBER**2]), COLUMNS, False),
        (LABELS, ["table"], True),
        (WORDS, ["table"], True),  # one column of labels is an alphabet, however many there are,
        (MANY, ["labels", "means"], True),  # but counts of rare ones say little
        (pd.DataFrame({"a": WORDS, "b": LABELS}), COLUMNS, False),
        (pd.DataFrame({"a": MANY, "b": NUMBER}), COLUMNS, False),
        (pd.DataFrame({"a": LABELS, "b": LABELS == "a"}), ["table"], True),
        (np.arange(N) % 30 * 1.0, ["table"], True),  # the root of 900 rows
        (np.arange(N) % 31 * 1.0, ONE, False),
        (np.arange(2000) % 32 * 1.0, ["table"], True),  # at most 32
        (np.arange(2000) % 33 * 1.0, ONE, False),
        (np.arange(3) % 2 * 1.0, ["table"], True),  # but two always are
        (np.zeros((5, 4, 4)), ["network"], False),
    ],
)
def test_what_auto_tries_of_each_kind_of_column(values, expected, finite):
    assert names("auto", values) == expected
    assert is_finite(rows(values)) is finite


def test_spaces_by_name_object_and_list():
    assert names("kernel", NUMBER) == ["kernel, gamma 0.1", "kernel, gamma 0.3", "kernel, gamma 1", "kernel, gamma 3"]
    for name in ("table", "spline", "linear", "index", "metric", "forest", "trees", "network"):
        assert names(name, NUMBER) == [name]
    assert names(torch.nn.Linear(1, 1), NUMBER) == ["module"]
    assert names(Ridge(), NUMBER) == ["Ridge"]
    assert names(PolynomialFeatures(2), NUMBER) == ["PolynomialFeatures"]
    several = recipes("auto", rows(NUMBER))
    assert recipes(several, rows(NUMBER)) == several
    assert recipes(several[1], rows(NUMBER)) == several[1:2]
    assert several[0].kind == "kernel"


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ("wavelet", "A space must be one of .*'wavelet'"),
        (Ridge, "must be an object, got the class Ridge. Write Ridge()"),
        ([], "A space must be one of"),
        (["linear"], "A space must be one of"),
        (3, "A space must be one of"),
    ],
)
def test_what_is_no_space_is_said(space, message):
    with pytest.raises(ValueError, match=message):
        recipes(space, rows(NUMBER))
