"""The demo page: whole, self-contained, with the numbers of the library."""

import pytest
from page_reader import Reader
from typer.testing import CliRunner

from featgeo import FiniteJoint, datasets
from featgeo.cli import main
from featgeo.report.contents import Section
from featgeo.report.html import write_page


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    result = CliRunner().invoke(main, ["demo", "--output", str(folder)])
    assert result.exit_code == 0, result.output
    assert "index.html" in result.output.replace("\n", "")
    assert "progression" in (folder / "explore.html").read_text()
    return folder, Reader((folder / "index.html").read_text())


def test_page_needs_no_other_file_and_every_figure_has_a_description(page):
    folder, reader = page
    images = reader.all("img")
    assert len(images) == 4
    for image in images:
        assert image["src"].startswith("data:image/svg+xml;base64,")
        assert len(image["alt"]) > 20
    assert not [tag for tag, _ in reader.tags if tag in {"link", "script", "iframe"}]
    links = {link["href"].removeprefix("#") for link in reader.all("a")}
    assert links == {"main", *(path.stem for path in folder.glob("*.svg"))}


def test_page_shows_the_numbers_that_the_library_gives(page):
    _, reader = page
    for sigma in FiniteJoint(*datasets.hair_eye_color()).modes(x="hair", y="eye").sigma:
        assert f"{sigma:.4f}" in reader.text
    parts = FiniteJoint(*datasets.titanic()).multimodal(["class", "sex", "age"], "survived")
    for order in parts.orders:
        assert f"{order.energy:.4f}" in reader.text


def test_the_same_run_gives_the_same_files(page, tmp_path):
    folder, _ = page
    CliRunner().invoke(main, ["demo", "--output", str(tmp_path)])
    for path in folder.iterdir():
        assert path.read_text() == (tmp_path / path.name).read_text()


def test_text_is_escaped_and_a_failed_write_leaves_the_old_page(tmp_path):
    section = Section("a", "<b>", ["x < y"], "<svg/>", "none", ["c"], [["<i>"]], "1 < 2")
    page = tmp_path / "index.html"

    def write(section):
        write_page(page, "page.html.j2", {"a.svg": section.figure}, title="t", introduction="i", sections=[section])

    write(section)
    old = page.read_text()
    assert "<b>" not in old
    assert "x &lt; y" in old
    broken = Section("a", "new", ["text"], "\ud800", "none", ["c"], [["d"]], "code")  # cannot be encoded
    with pytest.raises(UnicodeEncodeError):
        write(broken)
    assert page.read_text() == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "index.html"]


def test_version_is_printed():
    import featgeo

    assert featgeo.__version__ in CliRunner().invoke(main, ["--version"]).output
