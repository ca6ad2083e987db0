"""What experiments report and draw: the truth lies on the theory, and the sample's own optimum on its floor."""

from __future__ import annotations

import numpy as np
import pytest

from featgeo.geometry import FiniteJoint, Modes
from featgeo.paper import (
    cosine,
    discrete,
    gaussian,
    mixture,
    multimodal,
    orthogonality,
    sequences,
    sequential,
    side_information,
    two_sources,
)
from featgeo.paper.experiments import EXPERIMENTS
from featgeo.report.panels import Bars, Cells, Curves, Map, Points

ROWS, SEED = 500, 200


def rotated_sinusoids(angle: float) -> np.ndarray:
    return cosine.sinusoids(cosine.GRID) @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def true_of_two_sources(law: str) -> multimodal.Learned:
    exact = multimodal.truth(law)
    both = multimodal.GRID_1, multimodal.GRID_2
    single = exact.single(multimodal.GRID)
    features = [factor * feature for factor, feature in zip((-2, -1), exact.features(*both), strict=False)]
    return multimodal.Learned(features, exact.posterior(*both), (single, single), exact.sigma)


def turned(modes: Modes, scale: float = 1.0) -> Modes:
    return Modes(modes.sigma, -scale * modes.f, -scale * modes.g)


# The truth of each law, in the other sign or phase where that is arbitrary.
TRUTHS = {
    "discrete": lambda data: turned(discrete.LAW.modes(3)),
    "cosine": lambda data: cosine.Learned(
        Modes(np.full(2, 0.5), rotated_sinusoids(0.7), rotated_sinusoids(0.7)),
        {name: expectation(cosine.GRID) for name, expectation in cosine.EXPECTATIONS.items()},
    ),
    "gaussian": lambda data: turned(Modes(gaussian.SIGMA, *[gaussian.hermite(gaussian.GRID)] * 2)),
    "orthogonality": lambda data: {
        name: orthogonality.Feature(-3 * f(cosine.GRID), 0.0, 0.5, orthogonality.ALIGNED_ENERGY[name])
        for name, f in orthogonality.TRUTH.items()
    },
    "mixture": lambda data: turned(
        Modes(np.array([mixture.sigma()]), mixture.truth(data.fresh)[:, None], mixture.LABELS[:, None]), 2
    ),
    "sequences": lambda data: turned(sequences.truth(data)),
    "sequential": lambda data: {order: sequential.theory(order) for order in data},
}
# Numbers that compare with the sample, or with fewer modes than the law has.
OF_THE_SAMPLE = ("from the sample's own",)


@pytest.fixture(scope="module", params=TRUTHS)
def told_the_truth(request):
    experiment = EXPERIMENTS[request.param]
    data = experiment.draw(SEED, ROWS)
    return data, experiment.measure(data, TRUTHS[request.param](data))


def test_the_truth_has_no_error(told_the_truth):
    _, outcome = told_the_truth
    judged = [number for number in outcome.numbers if not number.name.endswith(OF_THE_SAMPLE)]
    assert len(judged) >= 2
    for number in judged:
        assert number.error == pytest.approx(0, abs=1e-6), number
        assert number.theory == number.learned or number.theory == pytest.approx(number.learned)


def test_the_truth_is_drawn_on_the_theory(told_the_truth):
    _, outcome = told_the_truth
    for plot in outcome.plots:
        # Learned functions are scaled to variance 1 on the grid or the rows shown, not under the law itself.
        close = {"gaussian": 0.07, "mixture": 0.02}.get(plot.slug, 1e-9)
        for panel in plot.panels:
            if isinstance(panel, Curves | Bars):
                along = panel.at if isinstance(panel, Curves) else panel.symbols
                assert np.ptp(panel.theory) > 0.1
                for values in panel.learned.values():
                    assert len(values) == len(panel.theory) == len(along)
                    np.testing.assert_allclose(values, panel.theory, rtol=close, atol=close)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_optimum_of_the_sample_errs_by_its_floor(name):
    experiment = EXPERIMENTS[name]
    data = experiment.draw(SEED, ROWS)
    outcome = experiment.measure(data, experiment.optimum(data))
    assert any(number.floor for number in outcome.numbers)
    for number in outcome.numbers:
        if number.name.endswith(OF_THE_SAMPLE):
            assert number.error == pytest.approx(0, abs=1e-10), number
        elif number.floor is not None:
            assert number.error == pytest.approx(number.floor, abs=1e-9), number
            assert number.optimum == number.learned


def test_the_discrete_figure_shows_each_mode_of_the_law_and_the_spectrum():
    data = discrete.draw(SEED, ROWS)
    modes = discrete.LAW.modes(3)
    learned = Modes(modes.sigma + 0.1, 3 * modes.f + 1, -modes.g)
    (plot,) = discrete.EXPERIMENT.measure(data, learned).plots
    assert plot.columns == 4
    titles = [panel.title for panel in plot.panels]
    assert titles == [*(f"$f_{i}^*(x)$" for i in (1, 2, 3)), "$\\sigma_i$", *(f"$g_{i}^*(y)$" for i in (1, 2, 3))]
    for i in range(3):
        f, g = plot.panels[i], plot.panels[4 + i]
        np.testing.assert_allclose(f.theory, modes.f[:, i])
        np.testing.assert_allclose(g.theory, modes.g[:, i])
        np.testing.assert_allclose(f.learned["learned"], modes.f[:, i], atol=1e-10)  # shift and scale are taken out
        np.testing.assert_allclose(g.learned["learned"], -modes.g[:, i], atol=1e-10)  # a wrong sign is not
    np.testing.assert_allclose(plot.panels[3].learned["learned"], np.array(plot.panels[3].theory) + 0.1)
    assert [panel.symbols[0] for panel in plot.panels] == ["1"] * 7
    assert f"{ROWS:,} samples" in plot.caption


def test_errors_of_modes_that_are_off_by_a_known_step():
    data = discrete.draw(SEED, ROWS)
    modes = discrete.LAW.modes(3)
    turn = np.array([[np.cos(0.3), -np.sin(0.3), 0], [np.sin(0.3), np.cos(0.3), 0], [0, 0, 1]])
    numbers = {
        n.name: n for n in discrete.EXPERIMENT.measure(data, Modes(modes.sigma - 0.2, modes.f @ turn, modes.g)).numbers
    }
    chord = 2 * np.sin(0.15)
    for i, expected in enumerate((chord, chord, 0)):
        assert numbers[f"f{'₁₂₃'[i]}, relative error"].error == pytest.approx(expected, abs=1e-9)
        assert numbers[f"g{'₁₂₃'[i]}, relative error"].error == pytest.approx(0, abs=1e-9)
        assert numbers[f"σ{'₁₂₃'[i]}"].error == pytest.approx(0.2)
    own = discrete.optimum(data).sigma
    assert numbers["σ, from the sample's own"].error == pytest.approx(np.abs(modes.sigma - 0.2 - own).max())


def test_the_cosine_figure_counts_the_samples_as_a_density():
    data = cosine.draw(SEED, ROWS)
    histogram, *_ = cosine.EXPERIMENT.measure(data, TRUTHS["cosine"](data)).plots[0].panels
    density = np.array(histogram.values)
    cell = (2 / cosine.BINS) ** 2
    assert density.sum() * cell == pytest.approx(1)
    i, j = (int((value + 1) // (2 / cosine.BINS)) for value in (data.x[0], data.y[0]))
    inside = (np.abs(data.x - (2 * i + 1) / cosine.BINS + 1) < 1 / cosine.BINS) & (
        np.abs(data.y - (2 * j + 1) / cosine.BINS + 1) < 1 / cosine.BINS
    )
    assert density[i, j] == pytest.approx(inside.mean() / cell)
    assert histogram.labels == ("$x$", "$y$")


def test_the_sequences_figure_marks_pairs_by_their_hidden_factors():
    data = sequences.draw(SEED, 10)
    true = sequences.truth(data)
    cells, points = (plot.panels[0] for plot in sequences.EXPERIMENT.measure(data, turned(true)).plots)
    assert isinstance(cells, Cells)
    assert isinstance(points, Points)
    assert cells.rows["x, pair 2"] == data.fresh_x[1].astype(int).tolist()
    assert cells.rows["y, pair 3"] == data.fresh_y[2].astype(int).tolist()
    assert sum(map(len, points.groups.values())) == sequences.SHOWN
    for u in range(2):
        for v in range(2):
            chosen = np.flatnonzero((data.factors[: sequences.SHOWN] == (u, v)).all(axis=1))
            shown = np.array(points.groups[f"U = {u}, V = {v}"])
            for side, values in enumerate((true.f[:, 0], true.g[:, 0])):
                expected = (values - values.mean()) / values.std()
                np.testing.assert_allclose(shown[:, side], expected[chosen], atol=6e-4)


def test_the_sequential_figure_shows_the_chains_themselves():
    data = sequential.draw(SEED, ROWS)
    (plot,) = sequential.EXPERIMENT.measure(data, TRUTHS["sequential"](data)).plots
    cells, *bars = plot.panels
    for order, bar in zip(sequential.CHAINS, bars, strict=True):
        assert cells.rows[f"order {order}"] == data[order][: sequential.SHOWN].tolist()
        assert np.flatnonzero(bar.theory).tolist() == [order - 1]
        assert max(bar.theory) == 0.25  # (2 * 3/4 - 1)^2


def test_the_side_information_figure_shows_the_law_and_turns_learners_its_way():
    data = side_information.draw(SEED, ROWS)
    truth = side_information.LAW.conditional("x", "y", "s").conditional.top(1)
    posterior = np.full(side_information.SHAPE, 1 / 3)
    flat = Modes(truth.sigma, -truth.f, -truth.g.reshape(-1, 1))
    learned = side_information.Learned(flat, posterior, (2 * truth.f[:, 0], 2 * truth.g[..., 0]))
    outcome = side_information.EXPERIMENT.measure(data, learned)
    f, g = outcome.plots[0].panels
    for panel in (f, g):
        for who in ("side information", "multihead network"):
            np.testing.assert_allclose(panel.learned[who], panel.theory, atol=1e-9)
    np.testing.assert_allclose([np.mean(f.theory), np.std(f.theory)], [0, 1], atol=1e-12)
    by_s = np.reshape(g.theory, (3, 3))
    np.testing.assert_allclose([by_s.mean(axis=1), by_s.std(axis=1)], [[0] * 3, [1] * 3], atol=1e-12)
    assert np.corrcoef(f.theory, truth.f[:, 0])[0, 1] == pytest.approx(1)
    numbers = {number.name: number for number in outcome.numbers}
    for name in ("σ", "f, relative error", "g, relative error", "kernel of one mode, relative error"):
        assert numbers[name].error == pytest.approx(0, abs=1e-9)
    for name in ("1 − corr(f, multihead f)", "1 − corr(g, multihead g)"):
        assert numbers[name].error == pytest.approx(0, abs=1e-9)
    law = side_information.LAW.probability()
    given = law / law.sum(axis=2, keepdims=True)
    expected = np.sqrt((law.sum(axis=2) * ((given - 1 / 3) ** 2).mean(axis=2)).sum())
    assert numbers["P(y|x, s) of one mode, RMSE"].error == pytest.approx(expected)


@pytest.mark.parametrize("law", multimodal.LAWS)
def test_two_sources_are_drawn_and_judged_beside_their_law(law):
    data = multimodal.draw(law, SEED, ROWS)
    learned, exact = true_of_two_sources(law), multimodal.truth(law)
    outcome = two_sources.COMPLETE.measure({law: data}, {law: learned})
    for number in outcome.numbers:
        assert number.error == pytest.approx(0, abs=1e-5), number
    features, singles = outcome.plots
    above, below = features.panels[: features.columns], features.panels[features.columns :]
    if exact.interacting:
        histogram, density, above, below = above[0], below[0], above[1:], below[1:]
        assert np.sum(histogram.values) / 16**2 == pytest.approx(1, abs=0.01)
        np.testing.assert_allclose(np.sum(density.values) / 16**2, 1, atol=0.01)
    assert len(above) == len(below) == 2 + exact.interacting
    for one, other in zip(above, below, strict=True):
        assert isinstance(one, Map)
        np.testing.assert_allclose(one.values, other.values, atol=2e-3)
        assert one.range == other.range
    centres = (np.arange(32) + 0.5) / 16 - 1
    posterior = exact.posterior(centres[:, None], centres[None, :])
    np.testing.assert_allclose(below[-1].values, posterior, atol=0.01)
    for panel in singles.panels:
        np.testing.assert_array_equal(panel.theory, exact.single(multimodal.GRID))
        np.testing.assert_array_equal(panel.learned["learned"], panel.theory)
        assert panel.level == 0.5


def test_the_posterior_of_all_modes_is_the_conditional_of_the_counts():
    counts = np.random.default_rng(0).integers(1, 9, side_information.SHAPE).astype(float)
    parts = FiniteJoint(counts, names=("x", "s", "y")).conditional("x", "y", "s")
    posterior = side_information._posterior(counts, parts.markov, parts.conditional)
    np.testing.assert_allclose(posterior, counts / counts.sum(axis=2, keepdims=True), atol=1e-10)
