"""Drawn plots: every kind of panel, text that stays text, the same bytes for the same plot, small files."""

import base64
import io
import re
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from report_samples import plots

from featgeo.report.drawing import draw
from featgeo.report.figures import DARK
from featgeo.report.panels import Bars, Map, Plot, as_plain, from_plain

PLOTS = plots()


@cache
def drawn(slug):
    return draw(PLOTS[slug])


def words(svg):
    return " ".join("".join(element.itertext()) for element in ElementTree.fromstring(svg).iter() if element.text)  # noqa: S314


@pytest.mark.parametrize("slug", PLOTS)
def test_titles_are_text_and_files_are_small(slug):
    for panel in PLOTS[slug].panels:
        assert panel.title in words(drawn(slug))
    assert len(drawn(slug)) < (80_000 if slug == "maps" else 60_000)
    assert "<image" not in drawn(slug) or slug in {"maps", "histogram"}


@pytest.mark.parametrize("slug", ["estimators", "maps", "points"])
def test_the_same_plot_gives_the_same_bytes_also_after_a_trip_through_json(slug):
    assert draw(from_plain(as_plain(PLOTS[slug]))) == drawn(slug)


def test_one_legend_names_theory_and_each_learner_once():
    for label in ("theory", "SideInfo", "multihead"):
        assert words(drawn("learners")).count(label) >= 1
        assert drawn("learners").count(f">{label}<") == 1
    assert drawn("bars").count(">learned<") == 1
    assert drawn("maps").count(">theory<") == 0
    for group in PLOTS["points"].panels[0].groups:
        assert drawn("points").count(f">{group}<") == 1


def test_a_marked_level_is_named_in_each_panel():
    assert len(re.findall(r">0\.5<", drawn("levels"))) >= 2


def test_maps_run_to_the_right_and_upwards_in_the_colours_of_their_range():
    values = np.zeros((5, 5))
    values[4, 0] = 1  # far right, bottom
    values[0, 4] = -1  # far left, top
    svg = draw(Plot("map", "", "", [Map("corner", values.tolist(), (0, 1), (-1, 1))], 1))
    (image,) = (i for i in _images(svg) if i.size == (5, 5))
    picture = np.asarray(image.convert("RGB")).astype(int)
    if re.search(r'transform="[^"]*matrix\([\d.]+ 0 0 -', svg):  # drawn upside down
        picture = picture[::-1]
    red, blue = picture[4, 4], picture[0, 0]
    assert red[0] > red[2] + 50, "the greatest value is red, at the lower right"
    assert blue[2] > blue[0] + 50, "the least is blue, at the upper left"


def test_maps_of_the_same_colours_share_one_bar():
    bars = [image for image in _images(drawn("maps")) if image.size != (60, 60)]
    assert len(bars) == 3, "one below each column, for learned and theory"


def test_neighbours_share_a_scale_unless_it_would_flatten_one():
    def shown(heights):
        symbols = ["1", "2"]
        panels = [Bars(str(i), symbols, [0, height], {"learned": [0, height]}) for i, height in enumerate(heights)]
        return draw(Plot("bars", "", "", panels, len(panels)))

    assert shown([1, 0.9]).count(">0.2<") == 1
    assert shown([1, 0.1]).count(">0.02<") == 1


@pytest.mark.parametrize("slug", PLOTS)
def test_ink_and_paper_turn_where_readers_prefer_dark(slug):
    svg = drawn(slug)
    rules = svg[svg.index("prefers-color-scheme:dark") : svg.index("</style>")]
    used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg))
    assert used <= set(DARK), "every colour of a figure has a dark one"
    assert all(DARK[colour] in rules for colour in used)


def test_a_panel_of_no_known_kind_is_refused():
    class Pie:
        title = "pie"

    with pytest.raises(TypeError, match=r"one of Curves, Bars, Map, Points and Cells. Got Pie"):
        draw(Plot("pie", "", "", [Pie()], 1))


def _images(svg):
    for encoded in re.findall(r'data:image/png;base64,([^"]*)"', svg):
        yield Image.open(io.BytesIO(base64.b64decode(encoded)))
