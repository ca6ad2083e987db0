"""The report as a browser shows it: quiet, complete, sortable, readable on any screen, in the dark and on paper."""

import io
from pathlib import Path

import pytest
from browsing import running_browser
from PIL import Image
from report_samples import FIRST, SECOND, sample_report, write_report

from featgeo.paper.experiments import EXPERIMENTS
from featgeo.report.contents import Chapter
from featgeo.reproduce import INTRODUCTION

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
TABLE = "table.sortable"


@pytest.fixture(scope="module")
def browser():
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def report(tmp_path_factory, browser):
    return sample_report(tmp_path_factory.mktemp("browser") / "report.html").as_uri()


@pytest.fixture
def visit(browser, report):
    """Open the report; at the end, nothing was said on the console and nothing else was asked for."""
    contexts, complaints, requests = [], [], []

    def visited(width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(report)
        return page

    yield visited
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url for url in requests if not url.startswith("data:")} == {report}


def test_figures_are_loaded_and_formulas_laid_out(visit):
    page = visit()
    assert page.title() == "The paper, reproduced"
    assert page.eval_on_selector_all("img", "all => all.map(one => one.complete && one.naturalWidth > 0)") == [True] * 3
    heights = page.eval_on_selector_all("math", "all => all.map(one => one.getBoundingClientRect().height)")
    assert len(heights) == 3
    assert min(heights) > 30, "a fraction is taller than a line"
    page.screenshot(path=_folder() / "desktop.png", full_page=True)


def column(page, heading):
    """Raw values of a column from top to bottom, and how it is sorted."""
    return page.evaluate(
        """([table, heading]) => {
            const headings = [...document.querySelectorAll(table + " thead th")];
            const at = headings.findIndex(one => one.textContent === heading);
            const cells = [...document.querySelectorAll(table + " tbody tr")].map(row => row.cells[at]);
            return [cells.map(one => one.dataset.value ?? one.textContent), headings[at].getAttribute("aria-sort")];
        }""",
        [TABLE, heading],
    )


def numbers(values):
    return [float(value) for value in values if value]


def test_the_table_sorts_by_click_as_numbers_with_empty_cells_last(visit):
    page = visit()
    rows = [*FIRST, *SECOND, *FIRST[:2]]
    button = page.get_by_role("button", name="theory")
    expected = sorted(row.theory for row in rows if row.theory is not None)
    assert column(page, "theory")[1] is None
    for direction, order in (("ascending", expected), ("descending", expected[::-1]), ("ascending", expected)):
        button.click()
        values, sorting = column(page, "theory")
        assert sorting == direction
        assert numbers(values) == order
        assert values[len(order) :] == [""] * (len(rows) - len(order))
    page.get_by_role("button", name="error").click()
    assert numbers(column(page, "error")[0]) == sorted(row.error for row in rows)
    assert page.locator(f"{TABLE} th[aria-sort]").count() == 1
    page.get_by_role("button", name="experiment").click()
    assert numbers(column(page, "error")[0])[:3] == sorted(row.error for row in FIRST), "equal rows keep their order"


def test_the_table_sorts_by_keyboard_and_the_first_stop_skips_to_the_content(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "allowed":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for key, direction, step in (("Enter", "ascending", 1), ("Space", "descending", -1)):
        page.keyboard.press(key)
        values, sorting = column(page, "allowed")
        assert sorting == direction
        assert numbers(values) == sorted(numbers(values), reverse=step < 0)


def test_without_scripts_the_page_is_complete(visit):
    page = visit(java_script_enabled=False)
    assert page.locator(f"{TABLE} tbody tr").count() == len(FIRST) + len(SECOND) + 2
    assert page.locator("button").count() == 0


def test_no_screen_is_too_narrow(visit):
    page = visit()
    for width in (1280, 390, 320):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.tabIndex)"
        assert set(page.eval_on_selector_all(".scroll, pre", wide)) <= {0}, "what scrolls can be reached by keyboard"
        shrunk = "all => Math.min(...all.map(one => one.width / one.naturalWidth))"
        assert page.eval_on_selector_all("img", shrunk) > 0.75, "figures scroll before their text becomes too small"
    page.screenshot(path=_folder() / "phone.png", full_page=True)


def test_the_texts_of_the_experiments_fit_a_phone(browser, tmp_path):
    chapters = [Chapter(experiment.about, FIRST, ()) for experiment in EXPERIMENTS.values()]
    write_report(tmp_path / "report.html", *chapters, introduction=INTRODUCTION)
    page = browser.new_page(viewport={"width": 320, "height": 900})
    page.goto((tmp_path / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    heights = page.eval_on_selector_all("math", "all => all.map(one => one.getBoundingClientRect().height)")
    assert len(heights) == len(EXPERIMENTS)
    assert min(heights) > 10
    assert page.locator("aside.erratum").count() == 2
    page.close()


CONTRASTS = """() => {
    const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3)
            .map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const paper = (one) => {
        const colour = getComputedStyle(one).backgroundColor;
        return /, 0\\)$/.test(colour) ? paper(one.parentElement) : colour;
    };
    return [...document.body.querySelectorAll("*:not(script)")]
        .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
        .map(one => {
            const [low, high] = [light(getComputedStyle(one).color), light(paper(one))].sort((a, b) => a - b);
            return [(high + 0.05) / (low + 0.05), one.tagName + ": " + one.textContent.slice(0, 30)];
        });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_readable_with_their_figures(visit, scheme):
    page = visit(color_scheme=scheme)
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 100
    assert min(contrasts)[0] >= 4.5, min(contrasts)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}[scheme]
    figure = Image.open(io.BytesIO(page.locator("figure img").first.screenshot())).convert("L")
    assert (figure.getpixel((2, 2)) < 60) == (scheme == "dark"), "the paper of figures follows the page"
    darkest, brightest = figure.getextrema()
    assert brightest - darkest > 150, "their ink too"
    if scheme == "dark":
        page.screenshot(path=_folder() / "dark.png", full_page=True)


def test_paper_has_a_page_for_each_chapter_and_no_scroll_boxes(visit):
    page = visit(color_scheme="dark")
    document = page.pdf(format="A4")
    assert document.startswith(b"%PDF")
    assert document.count(b"/Type /Page\n") >= 1 + 3 + 1, "the opening, the chapters, the errata"
    (_folder() / "report.pdf").write_bytes(document)
    page.set_viewport_size({"width": 690, "height": 1000})
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    overflows = page.eval_on_selector_all(".scroll, pre", "all => all.map(one => getComputedStyle(one).overflow)")
    assert set(overflows) == {"visible"}
    assert page.evaluate("document.documentElement.scrollWidth") <= 690


def _folder():
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return SCREENSHOTS
