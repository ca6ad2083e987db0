"""The mean of a number Y is told by all spaces of x that were tried, beside the modes."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from featgeo import FeatureRegressor, FitWarning, ModalDecomposition, load
from featgeo.features.spaces import SharedSpaces, SplineSpace


def rows(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A product and a sum in the mean; what most of the energy is in is the size of the noise."""
    rng = np.random.default_rng(seed)
    x = pd.DataFrame(rng.uniform(-1, 1, (n, 5)), columns=list("abcde"))
    mean = 2 * x["a"] * x["b"] + np.sin(3 * x["c"]) + x["d"]
    return x, (mean + np.exp(2 * x["e"]) / 2 * rng.standard_normal(n)).to_numpy()


@pytest.fixture(scope="module")
def model() -> FeatureRegressor:
    return FeatureRegressor(random_state=0).fit(*rows(1000, 1))


def test_it_is_told_as_well_as_by_the_best_space_alone(model) -> None:
    x, y = rows(5000, 2)
    alone = [FeatureRegressor(x_space=space, random_state=0).fit(*rows(1000, 1)) for space in ("kernel", "trees")]
    assert model.score(x, y) > max(one.score(x, y) for one in alone) - 0.005


def test_it_is_told_better_than_by_the_modes(model) -> None:
    x, y = rows(5000, 2)
    features = np.column_stack([np.ones(1000), model.transform(rows(1000, 1)[0])])
    line = np.linalg.lstsq(features, rows(1000, 1)[1], rcond=None)[0]
    by_modes = np.column_stack([np.ones(5000), model.transform(x)]) @ line
    assert model.score(x, y) > 1 - np.mean((y - by_modes) ** 2) / y.var() + 0.005


def test_held_out_rows_are_told_by_what_has_not_seen_them(model) -> None:
    x, y = rows(5000, 2)
    t = model.learned_.mean.t(model.y_variable_.rows(rows(1000, 1)[1][model.learned_.unseen.rows]))
    lost = np.mean((t - model.learned_.mean.unseen) ** 2)
    new = model.learned_.mean.t(model.y_variable_.rows(y))
    assert lost == pytest.approx(np.mean((new - model.learned_.mean.f(model.x_variable_.rows(x))) ** 2), rel=0.1)


def test_of_functions_of_y_it_comes_first_and_others_are_uncorrelated_with_it(model) -> None:
    support = model._read_support
    assert np.corrcoef(support.g[:, 0], support.values)[0, 1] > 0.999
    np.testing.assert_allclose(support.mass @ (support.g[:, :1] * support.g[:, 1:]), 0, atol=1e-12)
    np.testing.assert_allclose(support.mass @ support.g, 0, atol=1e-12)


def test_modes_are_what_they_are_without() -> None:
    modes = ModalDecomposition("auto", x_space="spline", random_state=0).fit(*rows(300, 3))
    regressor = FeatureRegressor("auto", x_space="spline", random_state=0).fit(*rows(300, 3))
    assert modes.learned_.mean is None
    np.testing.assert_allclose(regressor.singular_values_, modes.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(regressor.transform(rows(9, 4)[0]), modes.transform(rows(9, 4)[0]), atol=1e-9)


def test_the_plain_formula_is_that_of_the_modes(model) -> None:
    x = rows(50, 4)[0]
    plain = model.given(x, calibrated=False)
    f = model.transform(x) * model.singular_values_
    below = (-(1 + f @ model.support_.g.T)).clip(min=0) @ model.support_.mass
    assert plain.negative_mass == pytest.approx(below.mean())
    assert FeatureRegressor(calibrate=False, random_state=0).fit(*rows(200, 3)).learned_.mean is None


def test_files_hold_it(model, tmp_path) -> None:
    model.save(tmp_path / "model")
    np.testing.assert_allclose(
        load(tmp_path / "model").predict(rows(20, 5)[0]), model.predict(rows(20, 5)[0]), rtol=1e-12
    )


def test_spaces_that_functions_share_are_evaluated_once() -> None:
    model = FeatureRegressor(x_space="spline", random_state=0).fit(*rows(300, 3))
    mean, main = model.learned_.mean, model.learned_.components[-1]
    new = model.x_variable_.rows(rows(100, 4)[0])
    both = mean.beside(main.f)
    assert isinstance(both, SharedSpaces)
    evaluated, forward = [], SplineSpace.forward

    def counting(self, some):
        evaluated.append(self)
        return forward(self, some)

    with patch.object(SplineSpace, "forward", counting):
        values = both(new)
    assert len(evaluated) == 1
    np.testing.assert_allclose(values, np.hstack([mean.f(new), main.f(new)]), atol=1e-10)


def test_where_held_out_rows_confirm_no_mode_the_warning_says_that_means_are_told_all_the_same() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 2))
    mean = x @ [1.0, 0.7]
    with pytest.warns(FitWarning, match=r"confirm no mode: `given` is told by E\[Y\|x\] alone"):
        model = FeatureRegressor(random_state=0).fit(x, mean + 0.8 * rng.normal(size=24))
    assert model.n_modes_ == 0
    assert np.corrcoef(model.given(x).mean(), mean)[0, 1] > 0.9
