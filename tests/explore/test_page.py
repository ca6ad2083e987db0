"""The page of an exploration as a browser shows it: every view, by clicks and keys, whatever the data holds."""

import json
import re
import shutil
import subprocess
from itertools import combinations, pairwise, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browsing import running_browser
from page_samples import HOSTILE, LONG, hostile_page, plain_page

import featgeo
from featgeo.explore import explore
from featgeo.explore import page as page_module

SOURCES = Path(featgeo.__file__).parent / "report" / "explore"
PARTS = SOURCES / "node_modules"
VIEWS = ("overview", "matrix", "pair", "column", "target", "given", "graph")
ADDRESSES = (
    "overview", "matrix", "pair/age/rating", "pair/age/noise", "pair/city/price", "column", "column/when", "column/key",
    "target", "given", "graph",
)  # fmt: skip
LONG_TEXTS = ("pair/when/tiny", f"pair/age/{LONG}", "column/payment")
NUMBERS = """rows => rows.map(row => [
    row.querySelector("th .name").innerText,
    ...["strength", "classic", "pvalue", "rows"]
        .map(name => Number(row.querySelector(`[data-name=${name}]`).dataset.value)),
])"""
VIOLATIONS = """rules => axe.run({resultTypes: ["violations"], ...(rules.length && {runOnly: rules})})
    .then(result => result.violations.map(
        one => [one.id, one.nodes.length, one.nodes[0].html.slice(0, 300), one.nodes[0].failureSummary],
    ))"""
# From a timer: what the debugger calls directly may evaluate texts.
EVALUATED = """new Promise(done => setTimeout(() => {
    try { done(eval("1")); } catch (error) { done(error.name); }
}))"""
CROWDED = (Path(__file__).parent / "crowding.js").read_text(encoding="utf-8")
MEASURES = ("strength", "Pearson", "difference", "p-value", "given")
SCREENS = [(width, scheme) for width in (1400, 360) for scheme in ("light", "dark")]
GROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}


@pytest.fixture(scope="module")
def explored():
    return plain_page()


@pytest.fixture(scope="module")
def written(explored, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(explored.to_html("A table"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser():
    with running_browser() as running:
        yield running


@pytest.fixture
def visit(browser, written):
    """Open a page; at the end, nothing was said on the console and nothing was asked of anybody."""
    contexts, complaints, requests = [], [], []

    def visited(address="", width=1400, path=written, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url.partition("#")[0]))
        page.goto(f"{path.as_uri()}#{address}")
        page.wait_for_selector("main h1")
        return page

    yield visited
    for context in contexts:
        context.close()
    assert complaints == []
    assert all(url.startswith("file://") and url.endswith("report.html") for url in requests)


def open_view(page, address):
    page.evaluate("address => { location.hash = address; }", address)
    name = address.partition("/")[0]
    page.wait_for_selector(f"nav a[aria-current=page][href^='#{name}']", state="attached")
    page.wait_for_function("document.querySelectorAll('.drawing:empty').length === 0")


def on_screen(page, width, scheme="light"):
    """The same view on another screen; by how much it is too wide there."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function("scheme => document.documentElement.dataset.scheme === scheme", arg=scheme)
    page.wait_for_function("document.querySelectorAll('.drawing:empty').length === 0")
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def ground(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def table_of(page, caption):
    """Texts of a table behind a figure, by row."""
    page.evaluate("document.querySelectorAll('figure details').forEach(one => { one.open = true; })")
    page.wait_for_selector(f"table:has(caption:text-is('{caption}')) tbody tr")
    rows = "all => all.map(row => [...row.cells].map(one => one.innerText))"
    return page.eval_on_selector_all(f"table:has(caption:text-is('{caption}')) tbody tr", rows)


def as_number(text):
    """What a number on the page says: with a true minus, with powers of ten."""
    raised = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
    plain = text.replace("−", "-").replace(",", "").replace("%", "").replace("<", "")
    power = re.fullmatch(r"\s*(?:([-\d.]+)×)?10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)\s*", plain)
    return float(f"{power[1] or 1}e{power[2].translate(raised)}" if power else plain)


def test_the_same_exploration_gives_the_same_bytes(explored):
    assert plain_page().to_html("A table") == explored.to_html("A table")


def test_the_policy_allows_the_one_script_and_the_one_style_and_nothing_else(written):
    html = written.read_text(encoding="utf-8")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert not re.findall(r"<[a-z]+[^>]* on[a-z]+=", html.partition("<script")[0])
    kinds = re.findall("<script([^>]*)>", html)
    assert kinds.count("") == 1, "one program; all other parts are data"
    assert {re.sub(" id=.*", "", kind) for kind in kinds} == {"", ' type="application/json"', ' type="text/plain"'}


def test_the_policy_holds_in_a_browser(browser, written):
    page = browser.new_page()
    page.goto(written.as_uri())
    page.wait_for_selector("main h1")
    assert page.evaluate(EVALUATED) == "EvalError"
    page.evaluate("""() => {
        document.querySelector("main").innerHTML = "<button onclick='window.hacked = 1'>x</button>";
        const script = document.createElement("script");
        script.textContent = "window.hacked = 2";
        document.body.append(script);
    }""")
    page.locator("main button").click()
    assert page.evaluate("window.hacked") is None
    page.close()


def test_the_document_holds_all_pairs_in_short_numbers(explored):
    said = json.loads(explored.to_json("A table"))
    frame = explored.pairs.to_frame()
    for name in ("strength", "low", "high", "pvalue", "classic", "rows", "strength_given"):
        known = [None if value != value else value for value in frame[name].tolist()]
        assert said["pairs"][name] == [None if value is None else pytest.approx(value, rel=1e-4) for value in known]
    assert [said["columns"][i]["name"] for i in said["pairs"]["a"]] == frame["a"].tolist()


def test_pairs_are_kept_in_full_until_the_page_is_as_large_as_it_may_be(explored, monkeypatch):
    every = json.loads(explored.to_json())["details"]
    assert len(every) == len(explored.pairs)
    spent = len(explored.to_json()) - len(json.dumps(every, separators=(",", ":")))
    monkeypatch.setattr(page_module, "BYTES_A_COLUMN", 0)
    monkeypatch.setattr(page_module, "LEAST_DETAILS", 0)
    monkeypatch.setattr(page_module, "LEAST_BYTES", spent + 60_000)
    few = page_module.document_of(explored)["details"]
    assert 0 < len(few) < len(every)
    assert spent + 30_000 < len(page_module.json_of(page_module.document_of(explored), "")) <= spent + 60_000
    frame = explored.pairs.to_frame()
    about_target = frame[((frame.a == "price") | (frame.b == "price")) & (frame.qvalue <= explored.rate)]
    assert set(few) >= set(map(str, about_target.index)), "those with the target come first"


def test_curves_hold_what_is_too_narrow_for_their_usual_points():
    rng = np.random.default_rng(0)
    place = rng.permutation(8000) / 8000
    spike = (np.abs(place - 0.503) < 0.003).astype(int)  # two cells of 256
    (detail,) = json.loads(explore(pd.DataFrame({"place": place, "spike": spike}), verbose=0).to_json())[
        "details"
    ].values()
    assert len(detail["points"]["a"]) == len(detail["f"][0]) == len(detail["b_given_a"]["share"])
    assert len(detail["points"]["a"]) < 80, "no more than are needed"
    assert max(shares[1] for shares in detail["b_given_a"]["share"]) > 900, "of 1,000: the spike is there"
    assert "b" not in detail["points"]
    assert detail["b_given_a"]["labels"] == [0, 1], "of two values shares are told, and no quantiles"


@pytest.mark.parametrize(("columns", "most"), [(50, 1.5e6), (200, 6e6)])
def test_what_a_document_may_hold_leaves_room_for_the_program(columns, most):
    own = max(page_module.LEAST_BYTES, page_module.BYTES_A_COLUMN * columns)
    assert own + sum((SOURCES / name).stat().st_size for name in ("page.js", "page.css")) < most


def test_every_view_opens_from_every_other_and_back_and_forward_lead_there_again(visit):
    page = visit()
    walk = [*(view for pair in combinations(VIEWS, 2) for view in pair), VIEWS[0]]
    assert set(pairwise(walk)) >= set(permutations(VIEWS, 2))
    for view in walk:
        page.locator(f"nav a[href^='#{view}']").click()
        page.wait_for_selector(f"nav a[aria-current=page][href^='#{view}']")
    open_view(page, "pair/age/rating")
    page.locator(".pair-title a").first.click()
    page.wait_for_function("location.hash === '#column/age'")
    page.go_back()
    page.wait_for_selector(".pair-title")
    page.go_forward()
    page.wait_for_selector("#partners")
    page.wait_for_function("document.title.startsWith('Columns · age')")  # told after the page is drawn


def test_the_numbers_are_those_of_the_frame(visit, explored):
    page = visit("matrix")
    frame = explored.pairs.to_frame()
    shown = page.eval_on_selector_all(".list tbody tr[data-pair]", NUMBERS)
    assert len(shown) >= 20
    for (a, *values), row in zip(shown, frame.itertuples(), strict=False):
        assert a == row.a
        assert values == pytest.approx([row.strength, row.classic, row.pvalue, row.rows], rel=1e-4)
    open_view(page, "pair/age/rating")
    row = frame[(frame.a == "age") & (frame.b == "rating")].iloc[0]
    for name in (
        "strength",
        "pvalue",
        "classic",
        "n_modes",
        "mutual_information",
        "b_from_a",
        "rows",
        "strength_given",
    ):
        told = page.locator(f".facts [data-name={name}]").get_attribute("data-value")
        assert float(told) == pytest.approx(row[name], rel=1e-4)
    assert f"{row.strength:.2f}" in page.locator(".facts [data-name=strength]").inner_text()
    assert explored.pair("age", "rating").sentence in page.locator(".lead").inner_text()


def test_the_tables_behind_figures_say_what_the_records_say(visit, explored):
    page = visit("target")
    told = {row[0]: row[1:] for row in table_of(page, "What each column says")}
    frame = explored.target.to_frame().set_index("column")
    assert set(told) == set(frame.index)
    for name, texts in told.items():
        row = frame.loc[name]
        known = row[["alone", "alone_error", "added", "added_error", "pvalue", "qvalue"]]
        assert [as_number(text) for text in texts] == pytest.approx(known.tolist(), rel=0.06, abs=1e-290)
    open_view(page, "graph")
    direct = explored.direct.to_frame()
    direct = direct[(direct.qvalue <= explored.rate) & (direct.strength > 0)]
    told = [(a, b, as_number(strength)) for a, b, strength, *_ in table_of(page, "Direct dependences")]
    known = [(row.a, row.b, pytest.approx(row.strength, abs=0.0051)) for row in direct.itertuples()]
    assert told == known
    open_view(page, "given")
    frame = explored.pairs.to_frame()
    left = frame[(frame.qvalue <= explored.rate) & (frame.qvalue_given <= explored.rate)]
    told = table_of(page, "Depend before and after")
    assert len(told) == len(left)
    strengths = sorted(as_number(row[2]) for row in told)
    assert strengths == pytest.approx(sorted(left.strength_given), abs=0.0051)


def test_search_and_filter_shorten_the_list_and_the_matrix(visit, explored):
    page = visit("matrix")
    every = len(explored.pairs)
    status = page.locator("p[role=status]")
    assert status.inner_text() == f"{every} pairs"
    page.get_by_label("Search columns").fill("RATING")
    names = page.eval_on_selector_all(".list tbody th", "all => all.map(one => one.innerText)")
    assert len(names) == len(explored.compared) - 1
    assert all("rating" in name for name in names)
    assert page.locator(".sides span").all_inner_texts() == ["rating"]
    page.get_by_label("Search columns").fill("rating age")
    assert status.inner_text() == "1 pair"
    page.get_by_label("Search columns").fill("nothing such")
    assert status.inner_text() == "0 pairs"
    page.get_by_label("Search columns").fill("")
    page.get_by_label("Pairs in the list").select_option("found")
    found = int((explored.pairs.to_frame().qvalue <= explored.rate).sum())
    assert status.inner_text() == f"{found} pairs"


def test_the_list_sorts_by_every_head_both_ways(visit):
    page = visit("matrix")
    for head, name, size in (
        ("usual", "classic", "Math.abs"),
        ("strength", "strength", ""),
        ("p", "pvalue", ""),
        ("rows", "rows", ""),
    ):
        seen = []
        for _ in range(2):
            page.locator(".list thead").get_by_role("button", name=head, exact=True).click()
            values = page.eval_on_selector_all(
                f".list td[data-name={name}]", f"all => all.map(one => {size}(Number(one.dataset.value)))"
            )
            assert values in (sorted(values), sorted(values, reverse=True))
            seen.append(page.locator("th[aria-sort]").get_attribute("aria-sort"))
        assert set(seen) == {"ascending", "descending"}


def test_what_may_be_chance_is_never_drawn_like_a_finding(visit):
    page = visit("pair/age/noise")
    assert "May be chance" in page.locator("main").inner_text()
    assert page.locator("figure").count() >= 2
    assert page.locator("figure:not(.chance)").count() == 0
    open_view(page, "pair/age/rating")
    assert page.locator("figure.chance").count() == 0


def test_keys_walk_the_matrix_and_enter_opens_a_pair(visit, explored):
    page = visit("matrix")
    cell = page.locator("[role=gridcell]")
    cell.focus()
    for key, row, column in (
        ("ArrowDown", 2, 2),
        ("ArrowRight", 2, 3),
        ("End", 2, len(explored.compared)),
        ("Home", 2, 1),
        ("ArrowUp", 1, 1),
    ):
        page.keyboard.press(key)
        page.wait_for_selector(f"[role=row][aria-rowindex='{row}'] [aria-colindex='{column}']:focus")
    page.get_by_label("Search columns").fill("age")
    cell.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("[aria-colindex='2']:focus")
    assert "strength" in cell.get_attribute("aria-label")
    assert cell.count() == 1, "one stop for the Tab key"
    page.keyboard.press("Enter")
    page.wait_for_selector(".pair-title")
    assert page.evaluate("document.activeElement.tagName") == "H1"


def test_the_first_stop_of_the_keyboard_leads_to_the_content_and_links_open_by_enter(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href')").startswith("#pair/"):
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_selector(".pair-title")


def test_a_click_into_the_matrix_opens_the_pair_under_the_pointer(visit):
    page = visit("matrix")
    names = page.locator(".sides span").all_inner_texts()
    box = page.locator(".cells canvas").bounding_box()
    size = box["width"] / len(names)
    at = names.index("age"), names.index("rating")
    page.mouse.click(box["x"] + (at[1] + 0.5) * size, box["y"] + (at[0] + 0.5) * size)
    page.wait_for_selector(".pair-title")
    assert page.evaluate("location.hash") == "#pair/age/rating"


def test_each_measure_is_drawn(visit):
    page = visit("matrix")
    drawn = set()
    for name in MEASURES:
        page.get_by_role("button", name=name, exact=True).first.click()
        drawn.add(page.evaluate("document.querySelector('canvas').toDataURL()"))
    assert len(drawn) == 5


def test_pairs_with_a_given_column_are_not_called_chance_once_it_is_given(visit):
    page = visit("matrix")
    page.get_by_role("button", name="given", exact=True).click()
    page.get_by_label("Search columns").fill("city age")
    assert page.locator("[role=gridcell]").get_attribute("aria-label").endswith("given –")
    page.get_by_label("Search columns").fill("noise age")
    assert page.locator("[role=gridcell]").get_attribute("aria-label").endswith("may be chance")


def test_no_view_is_wider_than_its_screen_light_or_dark(visit):
    page = visit()
    for address in ADDRESSES:
        open_view(page, address)
        for width, scheme in SCREENS:
            assert on_screen(page, width, scheme) <= 0, (address, width)
            assert ground(page) == GROUNDS[scheme]
    for name, scheme in (("Light", "light"), ("Dark", "dark"), ("Auto", "dark")):
        page.get_by_role("button", name=name).click()
        assert ground(page) == GROUNDS[scheme]


def test_paper_is_light_and_holds_the_tables(visit):
    page = visit("matrix", color_scheme="dark")
    document = page.pdf(format="A4")
    assert document.startswith(b"%PDF")
    page.emulate_media(media="print", color_scheme="dark")
    assert ground(page) == GROUNDS["light"]
    page.set_viewport_size({"width": 690, "height": 1000})
    for address in ADDRESSES:
        open_view(page, address)
        overflows = page.eval_on_selector_all(".scroll, .list", "all => all.map(one => getComputedStyle(one).overflow)")
        assert set(overflows) <= {"visible"}, address
        assert page.evaluate("document.documentElement.scrollWidth") <= 690, address
        assert page.evaluate(CROWDED) == [], address


def test_axe_finds_nothing_on_any_screen(visit):
    program = PARTS / "axe-core" / "axe.min.js"
    if not program.is_file():
        pytest.skip(f"nobody looked for violations: {program} is missing; run `make page`")
    page = visit(reduced_motion="reduce")  # colours change at once
    page.evaluate(program.read_text(encoding="utf-8"))
    for address in ADDRESSES:
        open_view(page, address)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        page.wait_for_function("document.querySelectorAll('details[open] > summary:only-child').length === 0")
        # Rows of a table are alike: the first ones tell, in a tenth of the time.
        page.evaluate("document.querySelectorAll('details tbody tr:nth-child(n+4)').forEach(one => one.remove())")
        for width, scheme in SCREENS:
            on_screen(page, width, scheme)
            rules = [] if scheme == "light" else ["color-contrast"]  # the scheme changes nothing but colours
            assert page.evaluate(VIOLATIONS, rules) == [], (address, width, scheme)


def test_a_table_stands_behind_every_figure(visit):
    page = visit()
    for address in ("pair/age/rating", "column/age", "target", "given", "graph"):
        open_view(page, address)
        figures = page.locator("figure").count()
        assert figures
        assert page.locator("figure [role=img][aria-label]").count() == figures
        page.locator("figure summary").first.click()
        page.wait_for_selector("figure details table td")


def test_no_text_is_cut_or_broken_or_lies_on_another_on_any_screen(visit):
    page = visit()
    for address in (*ADDRESSES, *LONG_TEXTS):
        open_view(page, address)
        for measure in MEASURES if address == "matrix" else [""]:
            if measure:
                page.get_by_role("button", name=measure, exact=True).first.click()
            page.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true; })")
            for width in (1400, 360):
                on_screen(page, width)
                assert page.evaluate(CROWDED) == [], (address, measure, width)


def test_nothing_of_the_data_is_ever_executed_or_breaks_the_layout(visit, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(hostile_page().to_html(HOSTILE[0]), encoding="utf-8")
    page = visit(path=path)
    addresses = page.evaluate("[...document.querySelectorAll('main a')].map(one => one.getAttribute('href').slice(1))")
    assert len(addresses) > 10
    for address in [*VIEWS, *dict.fromkeys(addresses)][:24]:
        page.evaluate("address => { location.hash = address; }", address)
        page.wait_for_function(
            "view => document.querySelector(`nav a[aria-current=page][href^='#${view}']`)",
            arg=address.partition("/")[0],
        )
        for width in (360, 1400):
            assert on_screen(page, width) <= 0, (address, width)
            crowded = [fault for fault in page.evaluate(CROWDED) if not fault.startswith("broken")]  # words without end
            assert crowded == [], (address, width)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main script, main iframe").count() == 0
        assert page.locator("main h1").count() == 1


def test_a_notebook_shows_the_same_page_in_a_frame_that_reaches_nothing_around_it(browser, explored, tmp_path):
    notebook = tmp_path / "notebook.html"
    shown = explored._repr_html_()
    notebook.write_text(f"<!doctype html><title>Notebook</title><p>Before</p>{shown}<p>After</p>", encoding="utf-8")
    page, complaints = browser.new_page(), []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(notebook.as_uri())
    inside = page.frames[1]
    inside.wait_for_selector("#strongest")
    assert inside.locator(".findings.wide li").count() == 10
    before = page.evaluate("history.length")
    inside.locator("nav a[href='#matrix']").click()
    inside.wait_for_selector("[role=gridcell]")
    page.wait_for_function(f"history.length > {before}")  # which another process tells this one, late
    page.evaluate("history.back()")
    inside.wait_for_selector("#strongest")
    inside.locator(".findings .head a").first.click()
    inside.wait_for_selector(".pair-title")
    assert page.url == notebook.as_uri()
    assert page.locator("body > p").all_inner_texts() == ["Before", "After"]
    assert page.evaluate("document.querySelector('iframe').contentDocument") is None
    assert (
        inside.evaluate("() => { try { return parent.document.title; } catch (error) { return error.name; } }")
        == "SecurityError"
    )
    assert inside.evaluate(EVALUATED) == "EvalError"
    assert not [said for said in complaints if "unsafe-eval" not in said]
    page.locator("summary").click()
    assert f"{len(explored.pairs)} pairs" in page.locator("details").inner_text()
    page.close()


def test_an_address_that_names_no_view_or_no_pair_is_answered(visit):
    page = visit("pair/no/such")
    assert "Choose two columns" in page.locator("main").inner_text()
    page.get_by_label("Second column").focus()
    page.get_by_label("Second column").select_option(label="rating")
    page.wait_for_selector(".facts")
    page.evaluate("() => { location.hash = '%E0%A4%A'; }")
    page.wait_for_selector("#strongest")


def test_the_bundle_is_what_its_sources_give(tmp_path):
    lock = (SOURCES / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock, "lock files of this project name no places of download"
    node, npm = shutil.which("node"), shutil.which("npm")
    if not (node and npm and PARTS.is_dir()):
        pytest.skip(f"nobody checked that page.js is what its sources give: no Node, or no {PARTS}; run `make page`")
    folder = tmp_path / "sources"
    made = ("node_modules", "page.js", "page.css", "LICENSES.txt")
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns(*made))
    (folder / "node_modules").symlink_to(PARTS)
    subprocess.run([npm, "run", "--silent", "check"], cwd=folder, check=True)  # noqa: S603
    subprocess.run([node, "build.mjs"], cwd=folder, check=True)  # noqa: S603
    for name in ("page.js", "page.css", "LICENSES.txt"):
        assert (folder / name).read_bytes() == (SOURCES / name).read_bytes(), f"{name}: run `make page`"
