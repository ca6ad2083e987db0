"""A real browser for tests of pages."""

import os
import shutil
from contextlib import contextmanager

import pytest
from playwright.sync_api import Error, sync_playwright

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@contextmanager
def running_browser():
    """A headless browser; where there is none the test is skipped, or fails if one is required."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        absent(f"none of {', '.join(BROWSERS)} is on the path. Install one, e.g. apt-get install chromium.")
    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        try:
            running = playwright.chromium.launch(executable_path=program, args=quiet)
        except Error as error:
            absent(f"{program} does not start: {error}")
        yield running
        running.close()


def absent(reason):
    """Tests of pages need a browser; where one is required, to have none is a failure."""
    (pytest.fail if os.environ.get("FEATGEO_BROWSER") == "required" else pytest.skip)(f"No browser: {reason}")
