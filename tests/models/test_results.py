"""One manner for all results: a small table, a page, a dictionary of plain values, a data frame."""

from __future__ import annotations

import json

import numpy as np
import pytest

import featgeo as fg


def _results() -> dict[str, object]:
    rng = np.random.default_rng(0)
    x, s = rng.standard_normal((2, 400))
    y = x + s + 0.5 * rng.standard_normal(400)
    label = np.where(y > 0, "up", "down")
    model = fg.ModalDecomposition(2, x_space="spline", y_space="spline", random_state=0).fit(np.column_stack([x, s]), y)
    beside = fg.ConditionalDecomposition(x_space="spline", random_state=0).fit(x, label, s > 0)
    sources = fg.MultimodalDecomposition(random_state=0).fit({"x": x > 0, "s": s > 0}, label)
    return {
        "report": model.report(),
        "component": model.components_["modes"],
        "importance": model.importance(),
        "information": model.mutual_information_,
        "components": beside.report(),
        "posterior": beside.posterior_,
        "energies": sources.energies(),
        "identified": next(iter(sources.identified_.values())),
        "test": fg.independence_test(x, y, random_state=0),
        "spectrum": fg.held_out_spectrum(x, y, random_state=0),
        "leakage": fg.leakage(x[:, None], y),
    }


@pytest.fixture(scope="module")
def results() -> dict[str, object]:
    return _results()


NAMES = ["report", "component", "importance", "information", "components", "posterior", "energies", "identified"]


@pytest.mark.parametrize("name", [*NAMES, "test", "spectrum", "leakage"])
def test_every_result_has_one_manner(results, name):
    result = results[name]
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))
    for backend in ("pandas", "polars"):
        frame = result.to_frame(backend)
        assert len(frame) >= 1
        assert len(frame.columns) >= 2
    assert "object at 0x" not in repr(result)
    assert result._repr_html_().startswith('<div class="featgeo">')


def test_frames_have_a_row_for_each_part(results):
    report = results["report"]
    frame = report.to_frame()
    assert frame["mode"].tolist() == [1, 2]
    np.testing.assert_allclose(frame["sigma"], report.sigma)
    assert results["components"].to_frame()["component"].tolist() == ["markov", "conditional"]
    energies = results["energies"]
    assert energies.to_frame()["name"].tolist() == [row.name for row in energies]
    np.testing.assert_allclose(energies.to_frame()["low"], [row.interval[0] for row in energies])
    assert results["test"].to_frame()["pvalue"].tolist() == [results["test"].pvalue]


def test_logarithms_of_probabilities_are_those_of_the_classifier():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((300, 2))
    model = fg.FeatureClassifier(random_state=0).fit(x, x[:, 0] > 0)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(x)), model.predict_proba(x))
