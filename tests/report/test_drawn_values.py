"""What is drawn: the lines, bars, points and pictures inside the axes hold the numbers that they were given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.datasets import load_diabetes

from featgeo import FiniteJoint, ModalDecomposition, datasets, demo
from featgeo.report import drawing, figures
from featgeo.report.panels import Bars, Cells, Curves, Map, Plot, Points


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are turned into text, in their order."""
    kept = []
    for room in (figures, drawing):
        monkeypatch.setattr(room, "svg", lambda figure: kept.append(figure) or "<svg/>")
    return kept


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def shown(*panels, columns=None, **options):
    figure, places = drawing.laid_out(Plot("slug", "", "", panels, columns or len(panels), **options))
    for place in places:
        drawing.draw_panel(place.panel, place.axes)
    return figure, places


def test_curves_lie_where_their_numbers_say():
    panel = Curves("t", [0, 1, 2], [3, 1, 2], {"one": [0, 5, 1], "two": [1, 1, 4]}, "$z$", level=0.5)
    _, (place,) = shown(panel)
    level, theory, one, two = place.axes.lines
    assert level.get_ydata()[0] == 0.5
    assert "0.5" in texts(place.axes)
    for line, values in ((theory, panel.theory), (one, [0, 5, 1]), (two, [1, 1, 4])):
        np.testing.assert_array_equal(line.get_xdata(), panel.at)
        np.testing.assert_array_equal(line.get_ydata(), values)
    assert [to_hex(line.get_color()) for line in (theory, one, two)] == [figures.THEORY, *figures.SERIES[:2]]
    assert theory.get_linewidth() > one.get_linewidth()
    assert theory.get_zorder() < one.get_zorder()
    assert place.axes.get_xlabel() == "$z$"
    assert len(shown(Curves("t", [0, 1], [0, 1], {}))[1][0].axes.lines) == 1  # no level, none drawn


@pytest.mark.parametrize("n_learners", [1, 2])
def test_bars_stand_for_theory_and_marks_beside_each_other_for_learners(n_learners):
    learned = {f"learner {i}": [1.0 + i, 2.0, 3.0] for i in range(n_learners)}
    _, (place,) = shown(Bars("t", ["a", "b", "c"], [0.5, -1.0, 2.0], learned, "$x$"))
    bars = place.axes.patches
    assert [bar.get_height() for bar in bars] == [0.5, -1.0, 2.0]
    np.testing.assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in bars], range(3))
    marks = place.axes.lines[:n_learners]
    for mark, values in zip(marks, learned.values(), strict=True):
        np.testing.assert_array_equal(mark.get_ydata(), values)
    np.testing.assert_allclose(np.mean([mark.get_xdata() for mark in marks], axis=0), range(3), atol=1e-12)
    if n_learners == 2:
        np.testing.assert_allclose(marks[1].get_xdata() - marks[0].get_xdata(), 0.24)
    assert [label.get_text() for label in place.axes.get_xticklabels()] == ["a", "b", "c"]
    assert place.axes.lines[-1].get_ydata()[0] == 0


def test_long_names_of_symbols_are_turned():
    for names, turned in ((["a", "b"], False), (["a long name of a symbol", "another long name"], True)):
        _, (place,) = shown(Bars("t", names, [1, 2], {}))
        assert (place.axes.get_xticklabels()[0].get_rotation() > 0) is turned


def test_maps_are_pictures_of_their_values():
    values = np.arange(9.0).reshape(3, 3)
    _, (one, two) = shown(
        Map("t", values.tolist(), (-1, 2), (0, 8)), Map("t", values.tolist(), (-1, 2), (0, 8), False, ("$u$", "$v$"))
    )
    (image,) = one.axes.images
    np.testing.assert_array_equal(image.get_array(), values.T)
    assert image.origin == "lower"
    assert tuple(image.get_extent()) == (-1, 2, -1, 2)
    assert image.get_clim() == (0, 8)
    assert (image.get_cmap().name, two.axes.images[0].get_cmap().name) == ("RdBu_r", "viridis")
    assert (two.axes.get_xlabel(), two.axes.get_ylabel()) == ("$u$", "$v$")


def test_points_are_where_they_are_and_many_of_them_become_an_image():
    groups = {"a": [[0, 1], [2, 3]], "b": [[4, 5]]}
    _, (place,) = shown(Points("t", groups, ("$f$", "$g$")))
    first, _, second, _ = place.axes.collections  # each with an empty one for the legend
    np.testing.assert_array_equal(first.get_offsets(), groups["a"])
    np.testing.assert_array_equal(second.get_offsets(), groups["b"])
    assert not first.get_rasterized()
    assert (place.axes.get_xlabel(), place.axes.get_ylabel()) == ("$f$", "$g$")
    _, (place,) = shown(Points("t", {"a": np.zeros((drawing.MOST_VECTOR_POINTS + 1, 2)).tolist()}, ("", "")))
    assert place.axes.collections[0].get_rasterized()


def test_cells_are_squares_in_the_colour_of_their_symbol():
    _, (place,) = shown(Cells("t", {"first": [0, 1, 1], "second": [1, 0, 1]}))
    by_colour = {to_hex(patch.get_facecolor()): patch.get_path() for patch in place.axes.patches}
    for colour, expected in (
        (figures.THEORY, {(1, 0), (2, 1)}),
        (figures.SERIES[1], {(2, 0), (3, 0), (1, 1), (3, 1)}),
    ):
        corners = by_colour[colour].vertices.reshape(-1, 5, 2)[:, :4]
        assert {tuple(centre) for centre in corners.mean(axis=1).round(6)} == expected
    assert [label.get_text() for label in place.axes.get_yticklabels()] == ["first", "second"]
    assert place.axes.get_ylim()[0] > place.axes.get_ylim()[1]  # the first row on top


def test_panels_run_from_left_to_right_then_down():
    panels = [Curves(str(i), [0, 1], [0, i], {}) for i in range(5)]
    _, places = shown(*panels, columns=2)
    assert [(place.row, place.column) for place in places] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert [place.panel.title for place in places] == list("01234")
    figure, (left, right) = shown(*panels[:2], widths=[3, 1])
    figure.draw_without_rendering()
    assert left.axes.get_position().width > 2 * right.axes.get_position().width


def test_neighbours_share_heights_only_where_none_is_flattened():
    def limits(*tops):
        _, places = shown(*(Curves(str(top), [0, 1], [0, top], {}) for top in tops))
        drawing.share_heights(places)
        return [place.axes.get_ylim() for place in places]

    alike, different = limits(1.0, 0.8), limits(1.0, 0.3)
    assert alike[0] == alike[1]
    assert alike[0][1] > 1.0
    assert different[0] != different[1]
    assert different[1][1] < 0.4


def test_scales_are_shared_along_rows_from_the_lowest_end_to_the_highest():
    panels = [Curves(str(low), [0, 1], [low, high], {}) for low, high in ((-1.0, 1.0), (0.0, 1.4), (-0.5, 1.0))]
    _, places = shown(*panels)
    before = np.array([place.axes.get_ylim() for place in places])
    drawing.share_heights(places)
    for i, place in enumerate(places):
        assert place.axes.get_ylim() == (before[:, 0].min(), before[:, 1].max())
        assert place.axes.yaxis.get_tick_params()["labelleft"] is (i == 0)  # the scale stands at the left alone
    for other in (
        shown(*panels, columns=1)[1],  # below each other
        shown(panels[0], Curves("x", [0, 1], [0.0, 1.4], {}, "$other$"))[1],
        shown(panels[0], Curves("x", [0, 2], [0.0, 1.4], {}))[1],
        shown(panels[0], Bars("x", ["a", "b"], [0.0, 1.4], {}))[1],
        shown(Bars("x", ["a", "c"], [0.0, 1.0], {}), Bars("x", ["a", "b"], [0.0, 1.4], {}))[1],
    ):
        before = [place.axes.get_ylim() for place in other]
        drawing.share_heights(other)
        assert [place.axes.get_ylim() for place in other] == before


def test_one_legend_of_a_plot(drawn):
    panels = [Bars(title, ["a"], [1], {"learned": [2]}) for title in ("one", "two")]
    drawing.draw(Plot("slug", "", "", panels, 2))
    (figure,) = drawn
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["theory", "learned"]
    assert [axes.get_title() for axes in figure.axes] == ["one", "two"]


@pytest.mark.parametrize(
    ("n_labels", "width", "columns"), [(2, 8.6, 2), (6, 2.0, 2), (3, 0.9, 1), (6, 6.0, 6), (6, 5.6, 3)]
)
def test_a_legend_takes_as_many_rows_as_it_needs(n_labels, width, columns):
    assert drawing._legend_columns(["abcd"] * n_labels, width) == columns  # 0.95 inches each


def test_the_spectrum_shows_two_standard_errors():
    sigma, held_out, error = np.array([0.9, 0.5]), np.array([0.8, 0.3]), np.array([0.05, np.nan])
    (axes,) = figures.spectrum(sigma, held_out, error).axes
    assert [bar.get_height() for bar in axes.patches] == [0.9, 0.5]
    np.testing.assert_array_equal([bar.get_x() + bar.get_width() / 2 for bar in axes.patches], [1, 2])
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[1, 0.8], [2, 0.3]])
    ends = [segment[:, 1] for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(ends, [[0.7, 0.9], [0.3, 0.3]])
    assert axes.get_ylim()[1] == 1.02


def test_energies_show_their_intervals_from_top_to_bottom():
    held_out, interval = np.array([0.4, 0.1]), np.array([[0.3, 0.6], [0.0, 0.15]])
    (axes,) = figures.energies(["a", "b"], np.array([0.5, 0.2]), held_out, interval).axes
    assert [bar.get_width() for bar in axes.patches] == [0.5, 0.2]
    assert [bar.get_y() + bar.get_height() / 2 for bar in axes.patches] == [1, 0]
    ends = [segment[:, 0] for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(ends, interval)
    assert {tick: label.get_text() for tick, label in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)} == {
        1: "a",
        0: "b",
    }


def test_modes_are_drawn_as_curves_bars_or_counts():
    at, values = np.linspace(0, 1, 5), np.arange(10.0).reshape(5, 2)
    labels = np.array([f"l{i}" for i in range(40)])
    heights = np.random.default_rng(0).standard_normal((40, 2))
    figure = figures.modes([("f", "X", "curve", at, values), ("g", "Y", "bars", labels, heights)], np.array([0.9, 0.4]))
    f_1, f_2, g_1, g_2 = figure.axes
    np.testing.assert_array_equal(f_2.lines[0].get_xydata(), np.column_stack([at, values[:, 1]]))
    assert "0.400" in f_2.get_title()
    assert (f_1.get_xlabel(), g_1.get_xlabel()) == ("X", "Y")
    strongest = np.sort(np.argsort(-np.abs(heights[:, 1]))[: figures.MOST_BARS])
    np.testing.assert_array_equal([bar.get_height() for bar in g_2.patches], heights[strongest, 1])
    assert [label.get_text() for label in g_2.get_xticklabels()] == labels[strongest].tolist()
    many = figures.modes([("f", "X", "rows", at, np.tile(values, 4))], np.linspace(1, 0.1, 8))
    assert len(many.axes) == figures.MOST_MODES
    assert sum(bar.get_height() for bar in many.axes[1].patches) == 5  # a histogram of all rows


def test_the_demo_maps_hair_and_eyes_at_sigma_f_and_sigma_g(drawn):
    section = demo.hair_and_eyes()
    joint = FiniteJoint(*datasets.hair_eye_color())
    modes = joint.modes(x="hair", y="eye")
    (axes,) = drawn[0].axes
    for points, values in zip(axes.collections, (modes.f, modes.g), strict=True):
        np.testing.assert_allclose(points.get_offsets(), (values * modes.sigma)[:, :2])
    labels = [label for names in joint.categories[:2] for label in names]
    assert texts(axes) == labels
    for text, at in zip(axes.texts, np.vstack([modes.f, modes.g]) * modes.sigma, strict=True):
        np.testing.assert_allclose(text.xy, at[:2])
    shares = modes.sigma**2 / np.sum(modes.sigma**2)
    assert f"({shares[0]:.0%} of the dependence)" in axes.get_xlabel()
    assert f"({shares[1]:.0%})" in axes.get_ylabel()
    assert section.columns == ["", "mode 1", "mode 2", "mode 3"]
    table = {row[0]: row[1:] for row in section.rows}
    assert table["sigma"] == [f"{sigma:.4f}" for sigma in modes.sigma]
    assert table["share of the dependence"] == [f"{share:.1%}" for share in shares]
    for letter, what, names, values in (
        ("f", "hair", joint.categories[0], modes.f),
        ("g", "eyes", joint.categories[1], modes.g),
    ):
        for label, row in zip(names, values, strict=True):
            assert table[f"{letter}({label} {what})"] == [f"{value:+.2f}".replace("-", "−") for value in row]
    assert f"{joint.conditional('hair', 'eye', 'sex').conditional.energy:.3f}" in section.lead[1]
    assert f"{modes.energy:.3f}" in section.lead[1]


def test_the_demo_draws_the_energies_of_the_titanic(drawn):
    section = demo.titanic()
    joint = FiniteJoint(*datasets.titanic())
    sources = ("class", "sex", "age")
    total = joint.mean_square_contingency(sources, "survived")
    alone = [joint.mean_square_contingency(name, "survived") for name in sources]
    orders = [order.energy for order in joint.multimodal(sources, "survived").orders]
    assert sum(orders) == pytest.approx(total)
    (axes,) = drawn[0].axes
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches], alone + orders)
    assert texts(axes) == [f"{value:.3f}  ({value / total:.0%})" for value in alone + orders]
    centres = [bar.get_y() + bar.get_height() / 2 for bar in axes.patches]
    np.testing.assert_allclose(np.diff(centres), [1, 1, 1.6, 1, 1])  # a gap between the groups
    colours = [to_hex(bar.get_facecolor()) for bar in axes.patches]
    assert colours == [figures.GREY] * 3 + [figures.BLUE] * 3
    assert axes.get_xlim() == (0, pytest.approx(1.25 * max(alone + orders)))
    assert [row[1:] for row in section.rows] == [
        [f"{value:.4f}", f"{value / total:.1%}"] for value in [*alone, *orders, total]
    ]


def test_the_demo_answers_from_the_model_that_it_draws(drawn):
    section = demo.diabetes()
    X, y = load_diabetes(return_X_y=True, scaled=False)
    model = ModalDecomposition(2, random_state=0).fit(X[:, 2], y)
    (figure,) = drawn
    f_1, _, _, g_2 = figure.axes
    at = f_1.lines[0].get_xdata()
    np.testing.assert_allclose(f_1.lines[0].get_ydata(), model.transform(at)[:, 0], atol=1e-9)
    at = g_2.lines[0].get_xdata()
    np.testing.assert_allclose(g_2.lines[0].get_ydata(), model.transform(X[: len(at), 2], at)[1][:, 1], atol=1e-9)
    for row, bmi in zip(section.rows, (20.0, 25.0, 30.0, 35.0), strict=True):
        given = model.given([bmi])
        low, high = given.interval(0.8)[0]
        above = given.mean(lambda value: value > 200)[0]
        assert row == [f"{bmi:.0f}", f"{given.mean()[0]:.0f}", f"{low:.0f} to {high:.0f}", f"{above:.0%}"]
    report = model.report()
    for number in (*report.sigma, *report.held_out_sigma):
        assert f"{number:.2f}" in section.lead[0]
