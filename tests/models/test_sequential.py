"""Dependence on the past by Markov order: exact on finite alphabets, found by causal networks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import GridSearchCV

from featgeo import FiniteJoint, SequentialDecomposition, Training, load
from featgeo.paper.sequential import chain, exact_energies


@pytest.mark.parametrize("order", [1, 2, 3])
def test_energies_are_those_of_the_windows_and_live_at_the_order_of_the_chain(order):
    sequence = chain(order, 6000, seed=order)
    model = SequentialDecomposition(order=3).fit(sequence)
    np.testing.assert_allclose(model.energies_, exact_energies(sequence), atol=1e-10)
    theory = np.zeros(3)
    theory[order - 1] = 0.25
    np.testing.assert_allclose(model.energies_, theory, atol=0.03)
    np.testing.assert_allclose(model.held_out_energies_, theory, atol=0.03)


def letters(n: int, seed: int) -> np.ndarray:
    """Three letters; the next depends on the last two together."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(3), size=(3, 3))
    codes = [0, 1]
    for draw in rng.random(n - 2):
        codes.append(int(np.searchsorted(np.cumsum(table[codes[-2], codes[-1]])[:-1], draw)))
    return np.array(list("abc"))[codes]


def test_the_next_symbol_after_each_history_is_the_empirical_conditional():
    sequence = letters(4000, 0)
    model = SequentialDecomposition(order=2).fit(sequence)
    assert model.alphabet_.tolist() == ["a", "b", "c"]
    joint = FiniteJoint.from_samples(old=sequence[:-2], last=sequence[1:-1], next=sequence[2:])
    table = joint.probability()
    histories = [[a, b] for a in "abc" for b in "abc"]
    truth = (table / table.sum(axis=2, keepdims=True)).reshape(9, 3)
    np.testing.assert_allclose(model.given(histories).proba(), truth, atol=1e-8)
    longer = [["c", *history] for history in histories]
    np.testing.assert_array_equal(model.given(longer).map(), model.given(histories).map())
    assert sum(model.energies_) == pytest.approx(joint.mean_square_contingency(("old", "last"), "next"), abs=1e-8)


def test_several_sequences_never_run_into_each_other():
    parts = [letters(500, seed) for seed in range(3)]
    together = SequentialDecomposition(order=1).fit(parts)
    counts = np.zeros((3, 3))
    for part in parts:
        codes = np.searchsorted(["a", "b", "c"], part)
        np.add.at(counts, (codes[:-1], codes[1:]), 1)
    assert together.energies_[0] == pytest.approx(FiniteJoint(counts).mean_square_contingency(), abs=1e-10)
    same = SequentialDecomposition(order=1).fit(np.array([list(part) for part in parts]))
    assert same.energies_[0] == pytest.approx(together.energies_[0], abs=1e-12)


def test_chosen_lengths_of_history():
    sequence = chain(2, 4000, seed=0)
    model = SequentialDecomposition(order=[2, 4]).fit(sequence)
    assert list(model.components_) == [2, 4]
    by_order = exact_energies(sequence, 4)
    np.testing.assert_allclose(model.energies_, [by_order[:2].sum(), by_order[2:].sum()], atol=1e-8)


@pytest.mark.parametrize("order", [1, 2])
def test_causal_networks_find_the_order(order):
    sequence = chain(order, 5000, seed=0)
    model = SequentialDecomposition(
        order=[1, 2, 6], solver="neural", random_state=0, training=Training(max_epochs=6)
    ).fit(sequence)
    assert model.solver_ == "neural"
    theory = np.zeros(3)
    theory[order - 1] = 0.25
    np.testing.assert_allclose(model.held_out_energies_, theory, atol=0.06)


def test_numbers_are_histories_too():
    rng = np.random.default_rng(0)
    series = np.zeros(3000)
    for i in range(1, 3000):
        series[i] = 0.7 * series[i - 1] + 0.5 * rng.standard_normal()
    model = SequentialDecomposition(order=2, n_modes=1, random_state=0, training=Training(max_epochs=8)).fit(series)
    assert model.solver_ == "neural"
    assert model.components_[1].held_out_singular_values_[0] == pytest.approx(0.7, abs=0.07)
    assert model.held_out_energies_[1] < 0.05
    mean = model.given([[0.0, 1.0]]).mean()[0]
    assert 0.3 < mean < 1.0


def test_a_history_that_never_came_says_nothing_beyond_shorter_ones():
    sequence = [0, 1, 2] * 40 + [0, 2, 1] * 40
    model = SequentialDecomposition(order=2, solver="exact").fit(sequence)
    seen = {tuple(sequence[i : i + 2]) for i in range(len(sequence) - 2)}
    never = next((a, b) for a in range(3) for b in range(3) if (a, b) not in seen)
    shorter = SequentialDecomposition(order=1, solver="exact").fit(sequence[1:])
    np.testing.assert_allclose(model.given([never]).proba(), shorter.given([never]).proba(), atol=1e-8)


def rare_letters(n: int, seed: int, m: int = 40) -> np.ndarray:
    """Many letters, most of them rare, after histories of two."""
    rng = np.random.default_rng(7)
    first, second = rng.dirichlet(np.full(m, 0.1), size=m), rng.dirichlet(np.full(m, 0.1), size=m)
    rng, codes = np.random.default_rng(seed), [0, 1]
    for _ in range(n):
        table = first[codes[-1]] if rng.random() < 0.6 else second[codes[-2]]
        codes.append(int(rng.choice(m, p=table)))
    return np.array(codes)


def add_constant_loss(train: np.ndarray, test: np.ndarray, order: int) -> float:
    """Log loss of a table with the constant added that suits the test best."""
    m, sizes = int(max(train.max(), test.max())) + 1, range(order + 1)
    counts = np.zeros((m,) * (order + 1))
    np.add.at(counts, tuple(train[i : len(train) - order + i] for i in sizes), 1)
    at = tuple(test[i : len(test) - order + i] for i in sizes)
    losses = []
    for constant in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0):
        table = (counts + constant) / (counts + constant).sum(axis=-1, keepdims=True)
        losses.append(-np.log(table[at]).mean())
    return min(losses)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_rare_histories_lean_on_shorter_ones(order):
    sequence = rare_letters(8000, seed=0)
    train, test = sequence[:4000], sequence[4000:]
    model = SequentialDecomposition(order=order).fit(train)
    assert model.solver_ == "exact"
    assert np.isin(test, model.alphabet_).all()
    assert -model.score(test) < add_constant_loss(train, test, order) + 0.005
    probability = model.given(np.lib.stride_tricks.sliding_window_view(test, order)[:500]).proba()
    assert probability.shape[1] == len(model.alphabet_)
    assert probability.min() > 0
    np.testing.assert_allclose(probability.sum(axis=1), 1)


def test_where_nothing_depends_no_energy_is_found():
    sequence = np.random.default_rng(0).integers(0, 300, 6000)
    model = SequentialDecomposition(order=1).fit(sequence)
    assert model.energies_[0] < 0.01
    assert abs(model.held_out_energies_[0]) < 0.01
    raw = SequentialDecomposition(order=1, solver="exact").fit(sequence)
    assert raw.energies_[0] > 10  # what counts alone would say


def test_held_out_energies_of_rare_symbols_stay_between_nothing_and_what_the_fit_says():
    model = SequentialDecomposition(order=2).fit(rare_letters(5000, seed=0))
    assert (model.held_out_energies_ > 0).all()
    assert (model.held_out_energies_ < 1.2 * model.energies_).all()


def test_probabilities_are_those_of_the_modes():
    model = SequentialDecomposition(order=2).fit(rare_letters(3000, seed=0))
    histories = rare_letters(300, seed=1)[:300].reshape(150, 2)
    sigma = np.concatenate([part.singular_values_ for part in model.components_.values()])
    ratio = 1 + (model.transform(histories) * sigma) @ model.support_.g.T
    np.testing.assert_allclose(model.given(histories).proba(), ratio * model.support_.mass, atol=1e-7)
    few = SequentialDecomposition(order=2, n_modes=2).fit(rare_letters(3000, seed=0))
    assert few.given(histories).proba().min() > 0


def test_ample_counts_are_taken_as_they_are():
    for order in (1, 2):
        sequence = chain(order, 12_000, seed=order)
        auto, exact = (SequentialDecomposition(order=2, solver=solver).fit(sequence) for solver in ("auto", "exact"))
        np.testing.assert_array_equal(auto.energies_, exact.energies_)


def test_a_search_chooses_the_order():
    sequences = chain(2, 6000, seed=0).reshape(10, 600)
    search = GridSearchCV(SequentialDecomposition(), {"order": [1, 2]}, cv=3).fit(sequences)
    assert search.best_params_ == {"order": 2}
    best = search.best_estimator_
    assert best.score(sequences) == pytest.approx(-(0.75 * np.log(4 / 3) + 0.25 * np.log(4)), abs=0.02)
    names = best.get_feature_names_out().tolist()
    assert names == ["order1_f1", "order2_f1"]
    assert best.transform(sequences[:, :2]).shape == (10, len(names))
    with pytest.warns(UserWarning, match="never seen"):
        best.score([0, 1, 1, 2, 0, 1])


def test_strings_mean_the_same_in_every_container():
    words = ["the", "cat", "sat", "a", "cat", "ran"] * 20
    for container in (list, tuple, np.array, pd.Series):
        with pytest.raises(ValueError, match="texts=False"):
            SequentialDecomposition(order=1).fit(container(words))
        model = SequentialDecomposition(order=1, texts=False).fit(container(words))
        assert model.alphabet_.tolist() == ["a", "cat", "ran", "sat", "the"]
        assert model.given([["the"]]).map().tolist() == ["cat"]
        letters_of = SequentialDecomposition(order=1, texts=True).fit(container(["the cat", "a cat sat"] * 20))
        assert set(letters_of.alphabet_) == set("the cat sat")
    nested = SequentialDecomposition(order=1).fit([words[:60], words[60:]])
    assert nested.alphabet_.tolist() == ["a", "cat", "ran", "sat", "the"]


def test_texts_and_series_are_sequences():
    text = "".join(letters(600, 0))
    one = SequentialDecomposition(order=1).fit(text)
    np.testing.assert_allclose(SequentialDecomposition(order=1).fit([text]).energies_, one.energies_)
    np.testing.assert_allclose(SequentialDecomposition(order=1).fit(pd.Series(list(text))).energies_, one.energies_)
    assert one.given(["ab", "cb"]).proba().shape == (2, 3)
    flags = SequentialDecomposition(order=1).fit(np.array([True, False, False] * 50))
    assert flags.given([[True]]).map().tolist() == [False]


def test_it_can_be_saved(tmp_path):
    model = SequentialDecomposition(order=2).fit(letters(600, 0))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.given([["a", "b"]]).proba(), model.given([["a", "b"]]).proba())


def test_errors_say_what_is_wrong():
    with pytest.raises(ValueError, match="at least order \\+ 1"):
        SequentialDecomposition(order=3).fit([[0, 1, 0, 1, 1], [0, 1]])
    with pytest.raises(ValueError, match="must rise"):
        SequentialDecomposition(order=[2, 1]).fit([0, 1] * 20)
    with pytest.raises(ValueError, match="whole number"):
        SequentialDecomposition(order=0).fit([0, 1] * 20)
    with pytest.raises(ValueError, match="one symbol a step"):
        SequentialDecomposition().fit(np.zeros((3, 4, 2)))
    model = SequentialDecomposition(order=2).fit([0, 1, 1] * 20)
    with pytest.raises(ValueError, match="at least 2 steps"):
        model.given([[1]])
    for wrong in ({"order": 2.5}, {"n_modes": 0}, {"n_modes": "many"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            SequentialDecomposition(**wrong).fit([0, 1] * 20)
    with pytest.raises(ValueError, match="got texts"):
        model.given([["0", "1"]])
    with pytest.raises(ValueError, match="value of its own"):
        SequentialDecomposition(order=1, solver="exact").fit(np.random.default_rng(0).standard_normal(50))
    with pytest.raises(ValueError, match="Fill the gaps"):
        SequentialDecomposition(order=1).fit([0.1, np.nan, 0.3] * 20)
    with pytest.raises(ValueError, match="Leave out the short ones"):
        model.given([[1, 0], [1]])
    assert len(model.given([[1, 0, 1], [1, 1]])) == 2  # what is further back says nothing
    for nothing in ([], None, np.empty(0)):
        with pytest.raises(ValueError, match="Pass some"):
            SequentialDecomposition(order=1).fit(nothing)
    with pytest.raises(ValueError, match="never varies"):
        SequentialDecomposition(order=1).fit([1] * 20)


def test_histories_without_end_are_refused_with_their_size():
    symbols = np.random.default_rng(0).integers(0, 3, 300)
    with pytest.raises(
        ValueError, match=r"network each, of \d+ steps in all, .* such as order=\[1, 2, 4, .*, 128, 200\]"
    ):
        SequentialDecomposition(order=200).fit(symbols)


def test_histories_come_in_any_form_and_what_is_further_back_says_nothing():
    text = "".join(letters(400, 1))
    model = SequentialDecomposition(order=2, random_state=0).fit(text)
    wanted = [list(text[i : i + 2]) for i in (3, 17, 40)]
    probability = model.given(np.array(wanted)).proba()
    longer = [list(text[i - 2 : i + 2]) for i in (3, 17, 40)]
    ragged = [longer[0], tuple(longer[1][1:]), np.array(longer[2][2:])]
    for histories in (wanted, longer, np.array(longer), ragged, ["".join(part) for part in longer], tuple(longer)):
        np.testing.assert_array_equal(model.given(histories).proba(), probability)
    codes = SequentialDecomposition(order=2, random_state=0).fit([ord(letter) for letter in text])
    numbers = torch.tensor([[ord(letter) for letter in part] for part in longer])
    np.testing.assert_allclose(codes.given(numbers).proba(), probability, atol=1e-12)
    for short in ([*ragged[:2], ["a"]], [["a"]], list("ab"), [[["a", "b"]]], "ab"):
        with pytest.raises(ValueError, match="at least 2 steps each"):
            model.given(short)
