"""Figures of a table: what is found is drawn, what may be chance is not drawn like it."""

import numpy as np
import pandas as pd
import pytest

from featgeo.explore import explore
from featgeo.explore.pictures import clustered, placed


@pytest.fixture(scope="module")
def explored():
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 1000))
    frame = {"x": x, "noise": rng.normal(size=1000), "z$1$": z, "y": x + 0.5 * rng.normal(size=1000),
             "w\n日": z**2 + 0.5 * rng.normal(size=1000)}  # fmt: skip
    return explore(pd.DataFrame(frame))


def labels(axes):
    return [text.get_text() for text in axes.get_xticklabels()]


def test_map_shows_what_is_found(explored):
    axes = explored.heatmap().axes[0]
    values = axes.images[0].get_array()
    names = labels(axes)
    assert sorted(names) == ["noise", r"w?日", "x", "y", r"z\$1\$"]
    assert abs(names.index("x") - names.index("y")) == 1  # columns that go together
    assert values[names.index("x"), names.index("y")] == pytest.approx(explored.pair("x", "y").summary["strength"])
    assert values.mask[names.index("x"), names.index("noise")]  # no colour for what may be chance
    assert len(axes.collections[0].get_offsets()) == values.mask.sum() - len(names)


def test_graph_has_a_line_for_each_pair_that_is_found(explored):
    figure = explored.graph()
    found = [pair for pair in explored.pairs if pair["qvalue"] <= explored.rate]
    lines = figure.axes[0].collections[0]
    assert len(lines.get_segments()) == len(found) == 2
    widths = dict(zip(sorted(pair["strength"] for pair in found), lines.get_linewidths(), strict=True))
    assert list(widths.values()) == sorted(widths.values())
    assert "1 columns are in none" in figure.axes[0].get_title(loc="left")


def test_few_are_shown_when_asked(explored):
    assert len(labels(explored.heatmap(most=2).axes[0])) == 2
    assert len(explored.graph(most=2).axes[0].collections[0].get_segments()) == 2
    with pytest.raises(ValueError, match="`most` must be"):
        explored.heatmap(most=1)


def test_tables_where_nothing_is_found():
    rng = np.random.default_rng(1)
    nothing = explore(pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"]))
    assert nothing.heatmap().axes[0].images[0].get_array().mask.all()
    assert not nothing.graph().axes[0].collections[0].get_segments()


def test_order_keeps_groups_together():
    strength = np.zeros((6, 6))
    for group in ([0, 3], [1, 4], [2, 5]):
        strength[np.ix_(group, group)] = 0.9
    order = clustered(strength).tolist()
    assert all(abs(order.index(i) - order.index(i + 3)) == 1 for i in range(3))


def test_points_are_as_far_apart_as_their_lines_say():
    lines = np.array([[0, 1], [1, 2], [2, 3]])  # a path can be drawn without any stress
    at = placed(4, lines, np.array([0.9, 0.5, 0.7]))
    distance = np.linalg.norm(at[1:] - at[:-1], axis=1)
    np.testing.assert_allclose(distance, [0.6, 1.0, 0.8], atol=0.01)
