"""Modes of a table of counts: what is said of unseen rows is what the rows themselves say, digit for digit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from support import random_counts, rows

from featgeo import FiniteJoint, FitWarning, ModalDecomposition, Options, h_score
from featgeo.features.spaces import TableSpace
from featgeo.geometry.spans import Modes, correlations
from featgeo.learning import exact
from featgeo.learning.data import Pairs
from featgeo.learning.exact import TableRows
from featgeo.learning.learned import deviation
from featgeo.nesting.scores import h_score_of_modes

SHAPE, N_FOLDS = (5, 4), 4


@pytest.fixture(scope="module")
def sample():
    """Rows of a table in no order, and a fold for each."""
    counts = 3 * random_counts(0, SHAPE)
    order = np.random.default_rng(0).permutation(counts.sum())
    x, y = (part.numpy()[order] for part in rows(counts))
    return x, y, np.arange(len(x)) % N_FOLDS


@pytest.fixture(scope="module")
def learned(sample):
    """All modes, with the rows in the order and the folds above."""
    x, y, fold_of_row = sample
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "deal", lambda *_, **__: fold_of_row)
        patch.setattr(Pairs, "in_order", lambda self, *_: self)
        return ModalDecomposition(3, solver="exact", random_state=0).fit(x, y).learned_


def _without(sample, fold: int) -> Modes:
    """The modes of the rows outside a fold."""
    x, y, fold_of_row = sample
    counts = np.zeros(SHAPE)
    np.add.at(counts, (x[fold_of_row != fold], y[fold_of_row != fold]), 1)
    return FiniteJoint(counts).modes()


def _upwards(y, modes: Modes) -> Modes:
    """The same modes, with the signs in which they grow with the ranks of a number y."""
    signs = np.sign((rankdata(y) - (len(y) + 1) / 2) @ modes.g[y])
    return replace(modes, f=modes.f * signs, g=modes.g * signs)


def test_held_out_figures_are_those_of_the_rows_left_out(sample, learned):
    x, y, fold_of_row = sample
    (component,) = learned.components
    scores = []
    for fold in range(N_FOLDS):
        modes, out = _without(sample, fold), fold_of_row == fold
        f, g = modes.f[x[out]], modes.g[y[out]]
        expected = [np.corrcoef(f[:, i], g[:, i])[0, 1] for i in range(3)]
        np.testing.assert_allclose(component.held_out_sigma[fold], expected, atol=1e-10)
        scores.append(float(h_score(torch.from_numpy(f * modes.sigma), torch.from_numpy(g))))
    np.testing.assert_allclose(component.held_out_energies, 2 * np.array(scores), atol=1e-10)
    assert learned.held_out_score == pytest.approx(np.mean(scores), abs=1e-12)


def test_what_unseen_rows_are_told_is_the_kernel_of_the_other_rows_seen_through_the_final_g(sample, learned):
    x, y, fold_of_row = sample
    shares = np.bincount(y) / len(y)
    g = _upwards(y, FiniteJoint(np.histogram2d(x, y, bins=[range(6), range(5)])[0]).modes()).g
    expected = np.zeros((len(x), 3))
    for fold in range(N_FOLDS):
        out = fold_of_row == fold
        expected[out] = (_without(sample, fold).kernel() @ (shares[:, None] * g))[x[out]]
    np.testing.assert_array_equal(learned.unseen.rows, np.arange(len(x)))
    np.testing.assert_allclose(learned.unseen.f, expected, atol=1e-10)


def test_rotations_are_inner_products_under_the_shares_of_x(sample, learned):
    x, y, _ = sample
    shares = np.bincount(x) / len(x)
    f = _upwards(y, FiniteJoint(np.histogram2d(x, y, bins=[range(6), range(5)])[0]).modes()).f
    for fold in range(N_FOLDS):
        expected = _without(sample, fold).f.T @ (shares[:, None] * f)
        np.testing.assert_allclose(learned.components[0].rotations[fold], expected, atol=1e-10)
    assert learned.residual < 1e-12


def test_correlations_know_nothing_of_shift_and_scale_and_constants_have_none():
    rng = np.random.default_rng(0)
    f, g = rng.standard_normal((2, 50, 3))
    g += 0.5 * f
    expected = [np.corrcoef(f[:, i], g[:, i])[0, 1] for i in range(3)]
    np.testing.assert_allclose(correlations(f, g), expected, atol=1e-14)
    np.testing.assert_allclose(correlations(f + 7, [1, -2, 3] * g - 5), expected * np.array([1, -1, 1]), atol=1e-12)
    assert correlations(f, -f) == pytest.approx(-1)
    g[:, 1] = 4.0
    np.testing.assert_allclose(correlations(f, g), [expected[0], 0, expected[2]], atol=1e-14)
    assert correlations(f[:, :0], g[:, :0]).shape == (0,)


def test_the_residual_is_the_largest_deviation_from_orthonormality():
    joint = FiniteJoint(random_counts(1, SHAPE))
    modes, shares = joint.modes(), joint.probability("x")

    def residual(values):
        return deviation([(values * shares[:, None]).T @ values])

    assert residual(modes.f) < 1e-12
    assert residual(2 * modes.f) == pytest.approx(3)  # E[(2f)^2] = 4
    assert residual(0 * modes.f) == 1
    assert residual(modes.f[:, [0, 0]]) == pytest.approx(1)  # off the diagonal
    assert residual(modes.f[:, :0]) == 0


def test_the_score_of_modes_on_their_own_rows_is_half_their_energy():
    counts = random_counts(2, SHAPE)
    modes, (x, y) = FiniteJoint(counts).modes(), (part.numpy() for part in rows(counts))
    for k in range(4):
        found = h_score_of_modes(modes.f[x, :k], modes.g[y, :k], modes.sigma[:k])
        assert found == pytest.approx(np.sum(modes.sigma[:k] ** 2) / 2, abs=1e-12)


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_as_many_modes_are_kept_as_the_law_has(rank):
    """A table of 8 x 8 with `rank` equal modes, every part the truth itself, and rows that are the whole table."""
    m, sigma = 8, 0.12
    basis = np.linalg.qr(np.column_stack([np.ones(m), np.random.default_rng(3).standard_normal((m, m - 1))]))[0][:, 1:]
    f = basis * np.sqrt(m)
    law = (1 + sigma * f[:, :rank] @ f[:, :rank].T) / m**2
    assert law.min() > 0
    counts = np.round(law * 40_000).astype(int)
    x, y = (part.numpy() for part in rows(counts))
    noise = np.concatenate([np.full(rank, sigma), np.full(m - 1 - rank, 0.05)])  # the last are not in the rows
    modes = Modes(noise, f, f)
    fold_of_row = np.random.default_rng(0).permutation(len(x)) % 5
    symbols = TableSpace(np.arange(m)[:, None].astype(float), np.full(m, 1 / m))
    component, unseen, error = TableRows(x, y, fold_of_row, symbols, symbols).judged(modes, [modes] * 5, "auto")
    assert len(component) == component.g.affine.weight.shape[1] == unseen.shape[1] == rank
    np.testing.assert_array_equal(component.f.affine.weight, f[:, :rank])
    assert component.held_out_sigma.shape == (5, rank)
    assert component.rotations.shape == (5, rank, rank)
    assert error < 1e-12


def test_auto_keeps_no_more_than_the_largest_number_tried():
    rng = np.random.default_rng(0)
    x = np.repeat(np.arange(max(Options().mode_counts) + 8), 30)
    model = ModalDecomposition("auto", solver="exact", random_state=0).fit(x, x)
    assert model.n_modes_ == max(Options().mode_counts)
    assert model.singular_values_ == pytest.approx(1)
    with pytest.warns(FitWarning, match="less than without any mode"):
        independent = ModalDecomposition("auto", solver="exact", random_state=0).fit(x, rng.permutation(x))
    assert independent.n_modes_ <= 1


@pytest.mark.parametrize("side", ["X", "Y"])
def test_a_variable_whose_rows_are_all_different_is_refused(side):
    own, shared = np.arange(12), np.arange(12) % 3
    with pytest.raises(ValueError, match=f"Every row of {side} has a value of its own"):
        ModalDecomposition(1, solver="exact").fit(*((own, shared) if side == "X" else (shared, own)))
    with pytest.warns(FitWarning, match="held-out"):  # two rows say all, and nothing about each other
        model = ModalDecomposition(1, solver="exact").fit([0, 1], [0, 1])
    assert model.singular_values_ == pytest.approx(1)
