"""Tables of histories: the rule that leans on shorter ones, its choice on left-out stretches, the split by length."""

from __future__ import annotations

import numpy as np
import pytest

from featgeo import FiniteJoint, SequentialDecomposition
from featgeo.learning.exact import DISCOUNTS, STRENGTHS, UNIFORM_SHARES, BackOff, Histories

M = 3


def _sequence(n: int, seed: int) -> np.ndarray:
    """Three letters; the next depends on the last two."""
    rng = np.random.default_rng(seed)
    table = np.random.default_rng(7).dirichlet(np.ones(M), size=(M, M))
    codes = [0, 1]
    for draw in rng.random(n - 2):
        codes.append(int(np.searchsorted(np.cumsum(table[codes[-2], codes[-1]])[:-1], draw)))
    return np.array(codes)


def _histories(sequence: np.ndarray, order: int = 2) -> Histories:
    steps = [sequence[order - 1 - back : len(sequence) - 1 - back] for back in range(order)]
    return Histories.of(steps, sequence[order:], M)


def _by_hand(history: tuple[int, ...], y: int, steps, following, trust: list[BackOff]) -> float:
    """The formula of the module's docstring, read aloud; `history` has the latest symbol first."""
    t = len(history)
    shorter = _by_hand(history[:-1], y, steps, following, trust) if t else 1 / M
    rows = np.ones(len(following), dtype=bool)
    for step, symbol in zip(steps, history, strict=False):
        rows &= step == symbol
    after = following[rows]
    a, d, u = trust[t].strength, trust[t].discount, trust[t].uniform_share
    below = (1 - u) * shorter + u / M
    if len(after) + a == 0:
        return below
    kept = max(np.sum(after == y) - d, 0) + (a + d * len(set(after.tolist()))) * below
    return kept / (len(after) + a)


def test_back_off_is_the_rule_of_the_docstring():
    sequence = _sequence(40, 0)
    data = _histories(sequence)
    steps = [sequence[1:-1], sequence[:-2]]
    trust = [BackOff(0.5, 0.25, 1.0), BackOff(2.0, 0.5, 0.3), BackOff(0.3, 0.75, 0.1)]
    rows = np.arange(len(data.next)) % 3 > 0
    joint = data.joint(trust, rows)
    steps, following = [step[rows] for step in steps], sequence[2:][rows]
    for h in np.unique(data.of_row[2]):
        at = np.flatnonzero(data.of_row[2] == h)[0]
        history = (int(sequence[at + 1]), int(sequence[at]))
        share = np.mean((steps[0] == history[0]) & (steps[1] == history[1]))
        for y in range(M):
            assert joint[h, y] == pytest.approx(share * _by_hand(history, y, steps, following, trust), abs=1e-14)
    assert joint.sum() == pytest.approx(1)


def test_without_help_the_joint_is_the_empirical_one_and_adding_a_constant_is_a_special_case():
    sequence = _sequence(60, 1)
    data = _histories(sequence)
    counts = data.counts()
    np.testing.assert_allclose(data.joint([BackOff()] * 3), counts[2] / 58, atol=1e-15)
    constant = data.joint([BackOff(), BackOff(), BackOff(strength=1.5, uniform_share=1.0)])
    conditional = (counts[2] + 1.5 / M) / (counts[2].sum(axis=1, keepdims=True) + 1.5)
    np.testing.assert_allclose(constant / constant.sum(axis=1, keepdims=True), conditional, atol=1e-14)
    assert [table.sum() for table in counts] == [58, 58, 58]
    np.testing.assert_array_equal(counts[0][0], np.bincount(sequence[2:], minlength=M))
    joint = FiniteJoint.from_samples(last=sequence[1:-1], next=sequence[2:]).probability()
    np.testing.assert_allclose(counts[1] / 58, joint, atol=1e-15)


def test_a_history_without_rows_answers_as_the_shorter_one():
    shorter = np.array([[0.2, 0.3, 0.5]])
    nothing = np.zeros((1, M))
    np.testing.assert_array_equal(BackOff()(nothing, nothing, nothing, shorter, M), shorter)
    np.testing.assert_allclose(BackOff(2.0, 0.5)(nothing, nothing, nothing, shorter, M), shorter, atol=1e-15)


def test_trust_minimises_the_log_loss_of_stretches_left_out():
    """Over all choices on the grid, for the single symbols and for histories of one, where counts are few."""
    sequence = _sequence(24, 2)
    data = _histories(sequence, order=1)
    folds = [np.arange(23) // 6 == fold for fold in range(4)]
    trust = data.back_off(folds)

    def loss(length: int, choice: BackOff) -> float:
        """Of histories of a length, with all shorter ones as they were chosen."""
        chosen, total = [*trust[:length], choice], 0.0
        for out in folds:
            steps, following = [sequence[:-1][~out]], sequence[1:][~out]
            for last, y in zip(sequence[:-1][out], sequence[1:][out], strict=True):
                total -= np.log(_by_hand((last,)[:length], y, steps, following, chosen))
        return total

    for length in (0, 1):
        best = loss(length, trust[length])
        others = [BackOff(a, d, u) for a in STRENGTHS for d in DISCOUNTS for u in UNIFORM_SHARES]
        assert best <= min(loss(length, other) for other in others) + 1e-9


def test_ample_counts_need_no_help_and_scarce_ones_do():
    rich = _histories(_sequence(6000, 3), order=1)
    folds = [np.arange(5999) % 5 == fold for fold in range(5)]
    assert rich.back_off(folds)[1] == BackOff()
    poor = _histories(_sequence(30, 3), order=2)
    folds = [np.arange(28) % 5 == fold for fold in range(5)]
    assert poor.back_off(folds)[2] != BackOff()


@pytest.mark.parametrize("lengths", [(3,), (1, 3), (2, 3), (1, 2, 3)])
def test_levels_are_the_components_of_growing_histories(lengths):
    """Their kernels add up to the dependence on the whole history, and each is what its length adds."""
    sequence = _sequence(500, 4)
    data = _histories(sequence, order=3)
    joint = data.joint([BackOff()] * 4)
    levels = data.decomposed(joint, lengths)
    total = np.zeros((len(joint), M))
    q = joint.sum(axis=0)
    before = 0.0
    for modes, length in zip(levels, lengths, strict=True):
        steps = {f"s{back}": sequence[2 - back : len(sequence) - 1 - back] for back in range(length)}
        whole = FiniteJoint.from_samples(**steps, y=sequence[3:]).mean_square_contingency(tuple(steps), "y")
        assert modes.energy == pytest.approx(whole - before, abs=1e-10)
        before = whole
        of_longest = np.zeros(len(joint), dtype=int)
        of_longest[data.of_row[3]] = data.of_row[length]
        p = np.bincount(data.of_row[length]) / len(data.next)
        np.testing.assert_allclose(modes.f.T @ (p[:, None] * modes.f), np.eye(len(modes)), atol=1e-10)
        np.testing.assert_allclose(modes.g.T @ (q[:, None] * modes.g), np.eye(len(modes)), atol=1e-10)
        assert (np.diff(modes.sigma) <= 0).all()
        total += modes.kernel()[of_longest]
    np.testing.assert_allclose(total, joint / np.outer(joint.sum(axis=1), q) - 1, atol=1e-10)


def test_held_out_energies_compare_stretches_with_modes_learned_without_them():
    """2 E[k] - |k|^2 on each stretch of a fifth, for the kernel k of the other rows: exact for empirical counts."""
    sequence = _sequence(401, 5)
    model = SequentialDecomposition(order=1, solver="exact").fit(sequence)
    x, y = sequence[:-1], sequence[1:]
    (component,) = model.learned_.components
    fold_of_row = np.arange(400) // 80
    for fold in range(5):
        out = fold_of_row == fold
        modes = FiniteJoint.from_samples(x=x[~out], y=y[~out]).modes()
        f, g = modes.f[x[out]], modes.g[y[out]]
        captured = modes.sigma @ np.array([np.cov(f[:, i], g[:, i], bias=True)[0, 1] for i in range(2)])
        assert component.held_out_energies[fold] == pytest.approx(2 * captured - modes.energy, abs=1e-10)
        correlations = [np.corrcoef(f[:, i], g[:, i])[0, 1] for i in range(2)]
        np.testing.assert_allclose(component.held_out_sigma[fold], correlations, atol=1e-10)
        whole = FiniteJoint.from_samples(x=x, y=y).modes()
        p_x, p_y = np.bincount(x) / 400, np.bincount(y) / 400
        np.testing.assert_allclose(component.rotations[fold], modes.f.T @ (p_x[:, None] * whole.f), atol=1e-10)
        told = (modes.kernel() @ (p_y[:, None] * whole.g))[x[out]]
        np.testing.assert_allclose(model.learned_.unseen.f[out], told, atol=1e-10)
    assert model.learned_.held_out_score == pytest.approx(np.mean(component.held_out_energies) / 2, abs=1e-12)
    assert model.learned_.residual < 1e-12


@pytest.mark.parametrize("symbols", ["cab", ["b", None, "a"]])
def test_functions_of_histories_are_those_of_the_symbols_whatever_their_order(symbols):
    """What a symbol is called, and where it stands among others, changes nothing; one that misses is one too."""
    codes = _sequence(400, 8)
    plain = SequentialDecomposition(order=2, solver="exact").fit(codes)
    model = SequentialDecomposition(order=2, solver="exact").fit(np.array(list(symbols), dtype=object)[codes])
    histories = np.stack([codes[:50], codes[1:51]], axis=1)
    order = [model.alphabet_.tolist().index(symbol) for symbol in symbols]
    told = model.given(np.array(list(symbols), dtype=object)[histories]).proba()
    np.testing.assert_allclose(told[:, order], plain.given(histories).proba(), atol=1e-10)


@pytest.mark.parametrize(("n_modes", "expected"), [(1, 1), (2, 2), ("auto", 2), ("all", 2)])
def test_as_many_modes_as_are_asked_for(n_modes, expected):
    """Both modes of this chain are far from noise."""
    model = SequentialDecomposition(order=1, n_modes=n_modes, solver="exact").fit(_sequence(3000, 6))
    assert len(model.components_[1].singular_values_) == expected
