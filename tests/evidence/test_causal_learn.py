"""The tests inside causal-learn's searches."""

from itertools import product

import numpy as np
import pytest

from featgeo.evidence import causal_learn, conditional_independence_test
from featgeo.evidence.causal_learn import register

pc = pytest.importorskip("causallearn.search.ConstraintBased.PC").pc


def graph_of(data, **options):
    """Arrows, and edges without direction, that the search finds."""
    graph = pc(data, 0.01, indep_test=register(**options), show_progress=False).G.graph
    pairs = list(product(range(len(graph)), repeat=2))
    arrows = {(i, j) for i, j in pairs if graph[i, j] == -1 and graph[j, i] == 1}
    return arrows, {(i, j) for i, j in pairs if i < j and graph[i, j] == graph[j, i] == -1}


def mixed_data(n=800):
    """A number and a label cause a number, which causes a label: 0 -> 2 <- 1, 2 -> 3. The last column never varies."""
    rng = np.random.default_rng(0)
    number, kind = rng.standard_normal(n), rng.integers(0, 3, n)
    effect = number + 2.0 * (kind == 1) + 0.5 * rng.standard_normal(n)
    size = np.digitize(effect + 0.3 * rng.standard_normal(n), [-0.5, 0.7, 2.0])
    return np.column_stack([number, kind, effect, size, np.full(n, 7.0)])


def test_mixed_columns_and_one_that_never_varies():
    arrows, undirected = graph_of(mixed_data())
    assert arrows == {(0, 2), (1, 2), (2, 3)}
    assert not undirected


def test_options_reach_the_test():
    data = mixed_data()[:, :4]
    assert graph_of(data, method="products", random_state=3)[0] == {(0, 2), (1, 2), (2, 3)}
    with pytest.raises(ValueError, match=r"method.*'fast'"):
        graph_of(data, method="fast")
    with pytest.raises(ValueError, match=r"register\(\.\.\.\).*random_state"):
        pc(data, indep_test=register(), show_progress=False, random_state=3)


def test_names_keep_options_apart():
    data = mixed_data(100)[:, :4]
    assert register("by products", method="products") == "by products"
    assert register() == "featgeo"
    pc(data, indep_test="by products", show_progress=False)
    pc(data, indep_test="featgeo", show_progress=False)


@pytest.mark.parametrize("room", [2**26, 0])
def test_what_is_kept_between_questions_changes_no_digit(monkeypatch, room):
    monkeypatch.setattr(causal_learn, "MOST_KEPT", room)
    rng = np.random.default_rng(0)
    data = np.column_stack([mixed_data(320)[:, :4], rng.standard_normal((320, 2))])
    columns = causal_learn.Columns(data, random_state=3)
    questions = [(0, 3, (2,)), (0, 5, (2, 4)), (3, 5, (2, 4)), (0, 3, (2, 4)), (0, 5, (2, 4)), (0, 4, (1,)), (4, 5, ())]
    for x, y, given in questions:
        S = data[:, list(given)] if given else None
        alone = conditional_independence_test(data[:, [x]], data[:, [y]], S, random_state=3)
        assert columns.pvalue([x], [y], given) == alone.pvalue
    assert columns._condition.cache_info().currsize <= room // (320 * 200)


def test_conditions_are_kept_as_long_as_there_is_room(monkeypatch):
    monkeypatch.setattr(causal_learn, "MOST_KEPT", 2 * 60 * 200)
    columns = causal_learn.Columns(np.random.default_rng(0).standard_normal((60, 4)))
    for given in ([2], [3], [2]):
        columns.pvalue([0], [1], given)
    assert columns._condition.cache_info()[:2] == (1, 2)  # one was there already
    kept = columns._condition((2,))
    columns.pvalue([0], [1], [2, 3])  # the other one has to go
    assert columns._condition((2,)) is kept
    assert columns._condition.cache_info().currsize == 2
