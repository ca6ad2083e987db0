"""The report: all numbers, escaped, whole, and without a reference to anything outside."""

import itertools
import math
import re

import pytest
from page_reader import Reader
from report_samples import FIRST, SECOND, chapter, sample_report, write_report

from featgeo.report.contents import Number
from featgeo.report.html import at_most, numeral
from featgeo.report.panels import Bars, Plot


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return sample_report(tmp_path_factory.mktemp("report") / "new" / "report.html").read_text(encoding="utf-8")


def written(tmp_path, *chapters, **changes):
    path = tmp_path / "report.html"
    write_report(path, *chapters, **changes)
    return path.read_text(encoding="utf-8")


def test_the_verdict_counts_experiments_and_each_says_its_own(page):
    assert "2 of 3 experiments agree with their theory" in Reader(page).text
    assert Reader(page).text.count("✗") == 1 + 1 + 1 + 2  # the page, the contents, the chapter, the row in both tables
    assert not chapter(numbers=SECOND).passed
    assert chapter(numbers=FIRST).passed
    assert not chapter(numbers=()).passed, "an experiment without numbers shows nothing"


def test_every_number_stands_in_both_tables_with_its_raw_value(page):
    values = [attributes["data-value"] for attributes in Reader(page).all("td") if "data-value" in attributes]
    for row in (*FIRST, *SECOND):
        assert values.count(str(row.error)) >= 2
        assert page.count(f'<th scope="row">{row.name}</th>') >= 2


def test_nothing_is_asked_of_anybody(page):
    reader = Reader(page)
    assert [image["src"][:26] for image in reader.all("img")] == ["data:image/svg+xml;base64,"] * 3
    assert all(link["href"].startswith("#") for link in reader.all("a"))
    assert not [tag for tag, _ in reader.tags if tag in {"link", "iframe", "object", "form", "base"}]
    assert not [attributes for attributes in reader.all("script") if "src" in attributes]
    assert not re.findall(r"url\(|@import", page)
    (policy,) = [meta["content"] for meta in reader.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "script-src 'sha256-" in policy


def test_links_reach_their_targets_and_names_are_unique(page):
    reader = Reader(page)
    names = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(set(names)) == len(names)
    assert {link["href"][1:] for link in reader.all("a")} <= set(names)
    named = {name for _, attributes in reader.tags for name in attributes.get("aria-labelledby", "").split()}
    assert named <= set(names)


def test_headings_are_in_order_and_pictures_described(page):
    reader = Reader(page)
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(len(image["alt"]) > 10 for image in reader.all("img"))
    assert len(reader.all("figcaption")) == 3


def test_formulas_are_mathml(page):
    maths = Reader(page).all("math")
    assert len(maths) == 3
    assert all(math["display"] == "block" for math in maths)
    assert "<mfrac>" in page
    assert "\\frac" not in page


def test_errata_stand_in_their_chapter_and_together(page, tmp_path):
    assert page.count("Equation 7 has the wrong sign.") == 2
    assert len(Reader(page).all("aside")) == 1
    assert 'id="errata-of-the-paper"' in page
    assert "errata-of-the-paper" not in written(tmp_path, chapter(numbers=FIRST))


def test_text_is_escaped(tmp_path):
    mean = '<b title="x">&</b>'
    bad = chapter(
        numbers=[Number(mean, 0.1, bound=0.2)], plots=[Plot("slug", mean, mean, [Bars("t", ["a"], [1], {})], 1)],
        title=mean, source=mean, law=mean, statement=mean, code=mean, formula=r"a < \text{<b>}", erratum=mean,
    )  # fmt: skip
    page = written(tmp_path, bad, title=mean, introduction=mean, facts={mean: mean})
    assert mean not in page
    assert not Reader(page).all("b")
    assert "<mtext>&lt;b&gt;</mtext>" in page


def test_a_failed_write_leaves_the_old_report_and_nothing_else(tmp_path):
    old = written(tmp_path, chapter(numbers=FIRST))
    with pytest.raises(UnicodeEncodeError):
        written(tmp_path, chapter(numbers=FIRST, law="\ud800"))  # cannot be encoded
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == old
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_same_report_gives_the_same_file(tmp_path):
    assert written(tmp_path, chapter(numbers=FIRST)) == written(tmp_path, chapter(numbers=FIRST))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), (0.0, "0"), (-0.0, "0"), (0.4, "0.4000"), (-0.53701, "−0.5370"), (12.3456, "12.35"),
        (99999, "99999"), (0.99999, "1.000"), (0.0099999, "0.01000"), (0.00099999, "0.001000"),
        (4.554e-4, "4.554×10⁻⁴"),
        (-1.5e-12, "−1.500×10⁻¹²"), (2.5e7, "2.500×10⁷"), (math.nan, "not a number"), (-math.inf, "−∞"),
    ],
)  # fmt: skip
def test_numbers_have_four_digits_that_count(value, text):
    assert numeral(value) == text


def test_chosen_bounds_have_no_zeros_at_their_end():
    assert [at_most(value) for value in (0.02, 1e-10, 0.03505, 100, 0)] == ["0.02", "1×10⁻¹⁰", "0.03505", "100", "0"]
