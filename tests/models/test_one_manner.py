"""Every estimator is asked in one manner: report, plot, score, given, predict."""

from __future__ import annotations

import numpy as np
import pytest

import featgeo as fg

_rng = np.random.default_rng(0)
X, S = _rng.standard_normal((2, 300))
Y = X + S + 0.5 * _rng.standard_normal(300)
LABEL = np.where(Y > 0, "up", "down")
BOTH = np.column_stack([X, S])
LINEAR = {"x_space": "linear", "random_state": 0}
FIT = {
    "modal": lambda: fg.ModalDecomposition(1, y_space="linear", **LINEAR).fit(BOTH, Y),
    "modal of labels": lambda: fg.ModalDecomposition(1, **LINEAR).fit(BOTH, LABEL),
    "modal of truth values": lambda: fg.ModalDecomposition(1, **LINEAR).fit(BOTH, Y > 0),
    "modal of vectors": lambda: fg.ModalDecomposition(1, y_space="linear", **LINEAR).fit(
        BOTH, np.column_stack([Y, -Y])
    ),
    "classifier": lambda: fg.FeatureClassifier(**LINEAR).fit(BOTH, LABEL),
    "regressor": lambda: fg.FeatureRegressor(1, y_space="linear", **LINEAR).fit(BOTH, Y),
    "beside S": lambda: fg.ConditionalDecomposition(random_state=0).fit(X > 0, LABEL, S > 0),
    "sources": lambda: fg.MultimodalDecomposition(spaces="linear", random_state=0, sources={"a": 0, "b": 1}).fit(
        BOTH, Y
    ),
    "sequence": lambda: fg.SequentialDecomposition(2, random_state=0).fit("abacabadabacabaabacabad" * 4),
}
ROWS = {"beside S": (X > 0, S > 0), "sequence": (["ba", "ab"],)}
JUDGED = {
    "beside S": (X > 0, LABEL, S > 0),
    "sequence": ("abacabad" * 4,),
    "modal of vectors": (BOTH, np.column_stack([Y, -Y])),
}
MEAN = ("modal", "modal of vectors", "regressor", "sources")


@pytest.fixture(scope="module", params=FIT)
def fitted(request):
    return request.param, FIT[request.param]()


def test_every_estimator_is_asked_alike(fitted):
    name, model = fitted
    rows = ROWS.get(name, (BOTH,))
    of_labels = "labels" in name or name == "classifier"
    y = LABEL if of_labels else Y > 0 if "truth" in name else Y
    given = model.given(*rows)
    assert np.isfinite(model.score(*JUDGED.get(name, (BOTH, y))))
    assert model.report().to_frame().shape[0] >= 1
    assert model.plot()._repr_png_().startswith(b"\x89PNG")  # what a notebook shows
    np.testing.assert_array_equal(model.predict(*rows), given.mean() if name in MEAN else given.map())


def test_predictions_follow_what_is_predicted():
    np.testing.assert_array_less(0.8, np.corrcoef(FIT["sources"]().predict(BOTH), Y)[0, 1])
    assert (FIT["modal of labels"]().predict(BOTH) == LABEL).mean() > 0.8
    assert FIT["modal of vectors"]().predict(BOTH).shape == (300, 2)
    assert FIT["sequence"]().predict(["ab", "ac"]).tolist() == ["a", "a"]
    other = {"up": 0.01, "down": 0.99}
    assert (FIT["classifier"]().predict(BOTH, prior=other) == "down").mean() > (LABEL == "down").mean()


def test_warnings_of_a_fit_point_at_the_line_that_asked_for_it():
    noise = _rng.standard_normal((300, 2))
    with pytest.warns(fg.FitWarning) as told:
        fg.ModalDecomposition(1, x_space="linear", y_space="linear", random_state=0).fit(noise, Y)
    assert {warning.filename for warning in told} == {__file__}
