"""Objects of scikit-learn that a user passed come back from a file as they were, and only if the user names them."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import QuantileTransformer, SplineTransformer

from featgeo import ModalDecomposition, load

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 2))
Y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * RNG.standard_normal(300)

OBJECTS = [
    QuantileTransformer(n_quantiles=20),
    SplineTransformer(n_knots=4),
    Nystroem(n_components=10, random_state=0),
    LinearRegression(),
    HistGradientBoostingRegressor(max_iter=7),
]


@pytest.mark.parametrize("space", OBJECTS, ids=lambda space: type(space).__name__)
def test_an_object_of_the_user_comes_back_once_all_of_its_types_are_named(tmp_path, space):
    model = ModalDecomposition(1, x_space=space, y_space="linear", random_state=0, verbose=0).fit(X, Y)
    model.save(tmp_path / "model.fg")
    with pytest.raises(ValueError, match=rf"wants to create .*{type(space).__name__}") as refused:
        load(tmp_path / "model.fg")
    named = ast.literal_eval(re.search(r"trusted=(\[.*\])", str(refused.value)).group(1))  # all of them at once
    again = load(tmp_path / "model.fg", trusted=named)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert type(again.x_space) is type(space)
    assert again.x_space.get_params() == space.get_params()
    with pytest.raises(ValueError, match="wants to create"):
        load(tmp_path / "model.fg", trusted=named[:-1])
