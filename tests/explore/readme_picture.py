"""README's first picture, made anew: the page that the demo writes of a table, as the tests' browser shows it."""

from pathlib import Path

from browsing import running_browser

ROOT = Path(__file__).parents[2]


def main() -> None:
    with running_browser() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 780}, color_scheme="light")
        page.goto((ROOT / "build/demo/explore.html").as_uri())
        page.wait_for_selector(".columns-table")
        page.screenshot(path=ROOT / "docs/figures/explore.png")


if __name__ == "__main__":
    main()
