"""Every number of `report()` by its definition, and what a fit says where held-out rows do not confirm it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from featgeo import ConditionalDecomposition, FiniteJoint, FitWarning, ModalDecomposition
from featgeo.learning.data import Pairs
from featgeo.models.base import DependenceComponent, _blocks


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray, ModalDecomposition]:
    """Rows of two finite variables of a clear dependence, and their modes."""
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(20)).reshape(5, 4)
    x, y = np.divmod(rng.choice(20, 1500, p=joint.ravel()), 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pairs, "in_order", lambda self, *_: self)  # rows stay where they are, for the test to find them
        return x, y, ModalDecomposition(3, random_state=0).fit(x, y)


def _scores(f: np.ndarray, g: np.ndarray, sigma: np.ndarray) -> tuple[np.ndarray, float]:
    """Correlations of f_i and g_i, and the H-score of all with sigma: tr cov(f, g) - tr E[f f^T] E[g g^T] / 2."""
    own = np.sum((f.T @ f / len(f)) * (g.T @ g / len(g)) * np.outer(sigma, sigma))
    f, g = f - f.mean(axis=0), g - g.mean(axis=0)
    correlations = np.mean(f * g, axis=0) / np.sqrt(np.mean(f**2, axis=0) * np.mean(g**2, axis=0))
    return correlations, float(sigma @ np.mean(f * g, axis=0) - own / 2)


def test_held_out_values_are_those_of_modes_learned_without_each_fold(table):
    x, y, model = table
    fold = Pairs(model.x_variable_.rows(x), model.y_variable_.rows(y)).folds(5, 0)
    found = []
    for left_out in range(5):
        kept, out = fold != left_out, fold == left_out
        counts = np.zeros((5, 4))
        np.add.at(counts, (x[kept], y[kept]), 1)
        modes = FiniteJoint(counts).modes()
        found.append(_scores(modes.f[x[out]], modes.g[y[out]], modes.sigma))
    sigma, report = np.array([part[0] for part in found]), model.report()
    np.testing.assert_allclose(report.held_out_sigma, sigma.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(report.held_out_error, sigma.std(axis=0, ddof=1) / np.sqrt(5), atol=1e-10)
    scores = np.array([part[1] for part in found])
    assert report.held_out_score == pytest.approx(scores.mean(), abs=1e-10)
    component = model.components_["modes"]
    assert component.held_out_energy_ == pytest.approx(2 * scores.mean(), abs=1e-10)
    assert component.held_out_energy_error_ == pytest.approx(2 * scores.std(ddof=1) / np.sqrt(5), abs=1e-10)


def test_numbers_of_the_rows_by_their_definitions(table):
    x, y, model = table
    (f, g), report, sigma = model.transform(x, y), model.report(), model.singular_values_
    counts = np.zeros((5, 4))
    np.add.at(counts, (x, y), 1)
    np.testing.assert_allclose(report.sigma, FiniteJoint(counts).modes().sigma, atol=1e-10)
    behind = [np.sum(z**2, axis=0) ** 2 / np.sum(z**4, axis=0) for z in (f, g)]
    np.testing.assert_allclose(report.effective_rows, np.minimum(*behind), rtol=1e-10)
    grams = [np.abs(z.T @ z / len(z) - np.eye(3)).max() for z in (f, g)]
    assert report.orthogonality == pytest.approx(max(grams), abs=1e-12)
    ratio = 1 + (f[:500] * sigma) @ model.support_.g.T
    assert report.negative_mass == pytest.approx(np.mean((-ratio).clip(min=0) @ model.support_.mass), abs=1e-12)
    assert (report.n_rows, report.solver, report.spaces, report.ridge) == (1500, "exact", ("table", "table"), 0.0)


def test_blocks_and_agreement_by_their_definitions(table):
    _, _, model = table
    report, component = model.report(), model.learned_.components[-1]
    folds, rotations = component.held_out_sigma, component.rotations
    gaps = report.sigma[:-1] - report.sigma[1:]
    error = (folds[:, :-1] - folds[:, 1:]).std(axis=0, ddof=1) / np.sqrt(5)
    starts = [1, *(i + 2 for i in np.flatnonzero(gaps > 2 * error + 1e-8))]
    assert [block[0] for block in report.blocks] == starts
    assert [block[1] for block in report.blocks] == [*(start - 1 for start in starts[1:]), 3]
    for (first, last), agreement in zip(report.blocks, report.agreement, strict=True):
        inside = rotations[:, first - 1 : last, first - 1 : last]
        assert agreement == pytest.approx(min(np.linalg.svd(part)[1].min() for part in inside), abs=1e-10)
    text = str(report)
    assert text.startswith("3 modes, solver exact, spaces table | table, ridge 0\n")
    assert f"held-out H-score {report.held_out_score:.4f}" in text
    for sigma, held_out in zip(report.sigma, report.held_out_sigma, strict=True):
        assert f"{sigma:6.4f}    {held_out:6.4f}" in text


def test_rows_behind_a_mode_are_counted_on_a_sample_and_told_for_all(monkeypatch):
    monkeypatch.setattr("featgeo.models.base.SAMPLE_ROWS", 60)
    x = np.tile([0, 1], 300)  # f and g are 1 or -1: every row counts alike
    report = ModalDecomposition(1, random_state=0).fit(x, np.where(np.arange(600) % 6 < 2, 1 - x, x)).report()
    assert report.n_rows == 60
    np.testing.assert_allclose(report.effective_rows, 600)


@pytest.mark.parametrize("gap", [1.5, 2.5])
def test_modes_closer_than_two_standard_errors_are_one_block(gap):
    folds = 0.5 + np.array([[0.1, 0.0], [-0.1, 0.0], [0.1, 0.0], [-0.1, 0.0]])
    error = np.std([0.1, -0.1, 0.1, -0.1], ddof=1) / 2
    sigma = np.array([0.5 + gap * error, 0.5])
    assert [list(block) for block in _blocks(sigma, folds)] == ([[0, 1]] if gap < 2 else [[0], [1]])
    assert [list(block) for block in _blocks(sigma, folds[:1])] == [[0], [1]]  # no error is known
    assert [list(block) for block in _blocks(np.full(2, 0.5), folds[:0])] == [[0, 1]]
    assert _blocks(sigma[:0], folds[:, :0]) == []


@pytest.mark.parametrize(
    ("energy", "held_out", "error", "word"),
    [
        (0.35, 0.33, 0.02, None),
        (0.35, 0.10, 0.05, None),  # two errors reach above half
        (0.35, 0.10, 0.03, "less than half"),
        (0.35, -0.05, 0.03, "less than half"),  # not clearly below zero
        (0.35, -0.07, 0.03, "less than without"),
        (0.35, -45134.0, 32382.0, "more than 2 modes can hold"),
        (0.35, float("nan"), float("nan"), None),  # nothing was held out
    ],
)
def test_what_held_out_rows_have_against_a_component(energy, held_out, error, word):
    nothing = np.zeros(2)
    component = DependenceComponent("modes", np.array([0.5, 0.3]), nothing, nothing, energy, held_out, error)
    assert component.doubt is None if word is None else word in component.doubt


def test_a_fit_without_modes_says_so_and_gives_the_prior():
    x, y = np.divmod(np.arange(400) % 8, 4)  # independent, exactly
    with pytest.warns(FitWarning, match="no mode"):
        model = ModalDecomposition(2, random_state=0).fit(x, y)
    assert model.n_modes_ == 0
    assert "! modes: no mode" in str(model.report())
    np.testing.assert_allclose(model.given([0, 1]).proba(), 0.25)


def test_modes_of_noise_are_warned_of_and_shown():
    rng = np.random.default_rng(0)
    with pytest.warns(FitWarning, match="held-out rows") as caught:
        model = ModalDecomposition(1, x_space="linear", y_space="linear", random_state=0).fit(
            rng.standard_normal((80, 30)), rng.standard_normal(80)
        )
    assert len(caught) == 1
    assert model.report().doubts
    assert str(model.report()).endswith(f"! {model.report().doubts[0]}")


def _drawn(law: np.ndarray, n: int, seed: int) -> tuple[np.ndarray, ...]:
    return np.unravel_index(np.random.default_rng(seed).choice(law.size, n, p=law.ravel()), law.shape)


@pytest.mark.parametrize("strength", [0.0, 0.8])
def test_gains_given_s_are_no_more_than_the_information_there_is(strength):
    """With s, held-out gains in nats estimate I(X; Y|S) from below, also where that is zero."""
    rng = np.random.default_rng(5)
    p_s, p_x_s, p_y_s = rng.dirichlet(np.ones(6)), rng.dirichlet([2, 2], 6), rng.dirichlet([2, 2], 6)
    turn = strength * np.array([[1, -1], [-1, 1]]) * rng.uniform(0.1, 0.25, (6, 1, 1))
    law = p_s[:, None, None] * (p_x_s[:, :, None] * p_y_s[:, None, :]) * (1 + turn)
    law /= law.sum()
    p_sx, p_sy = law.sum(axis=2), law.sum(axis=1)
    ratio = law * law.sum(axis=(1, 2))[:, None, None] / (p_sx[:, :, None] * p_sy[:, None, :])
    information = float(np.sum(law * np.log(ratio)))
    gains = []
    for seed in range(6):
        s, x, y = _drawn(law, 1500, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            posterior = ConditionalDecomposition(random_state=0).fit(x, y, s).posterior_
        assert posterior.n_rows == 1500
        gains.append(posterior.gain)
    error = np.std(gains, ddof=1) / np.sqrt(len(gains))
    assert np.mean(gains) <= information + error
    assert np.mean(gains) >= information - 12 / (2 * 1200) - 3 * error  # what learning twelve numbers costs
    if strength == 0:
        assert np.mean(gains) <= 0


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("space", ["spline", "kernel", "trees"])
def test_nothing_is_left_of_modes_that_held_out_rows_call_worse_than_none(space, seed):
    """Where nothing is, they may find something by chance, but nothing that is worse than nothing stays."""
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((600, 3)), rng.standard_normal(600)
    model = ModalDecomposition("auto", x_space=space, random_state=0).fit(x, y)
    report = model.report()
    assert report.held_out_score >= 0
    assert (model.n_modes_ == 0) == ("none of them kept" in str(report)) == any("none" in d for d in report.doubts)
    if space != "trees":
        assert model.n_modes_ == 0
        assert np.ptp(model.given(x).mean()) < 1e-9  # whatever x is, the distribution of y over all rows
        with pytest.warns(FitWarning, match="confirm no mode"):
            ModalDecomposition("auto", x_space=space, random_state=0).fit(x, y)
