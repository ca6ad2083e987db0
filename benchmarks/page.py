"""First paint of a page of `explore`, and the time to open the matrix and a pair, in a browser on a slow CPU.

    python benchmarks/page.py --columns 50 --slower 4

Medians of a few visits, in milliseconds; the size in megabytes. Other work on the machine counts too, but for the last
row: what the page's main thread computes, by its own clock, for a pair and all of it.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pandas as pd
from playwright.sync_api import CDPSession, sync_playwright

import featgeo as fg

# From a page at rest, as readers have it: what an earlier view still draws below is not the time of the next.
OPENED = """address => new Promise(done => setTimeout(() => requestIdleCallback(() => {
    const start = performance.now();
    const painted = () => setTimeout(() => done(performance.now() - start));
    addEventListener("hashchange", () => requestAnimationFrame(painted), {once: true});
    location.hash = address;
}), 300))"""

# The same until all sections are there and painted: what stands below the first screen is drawn after it.
COMPLETE = OPENED.replace("requestAnimationFrame(painted)", "requestAnimationFrame(whole)").replace(
    "location.hash",
    """const parts = [".mode", ".regions", "#python"];
    const whole = () => parts.every(part => document.querySelector(part)) && !document.querySelector(".drawing:empty")
        ? painted() : requestAnimationFrame(whole);
    location.hash""",
)


def computed(session: CDPSession) -> float:
    """Milliseconds that the main thread has computed so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(1000 * one["value"] for one in metrics if one["name"] == "TaskDuration")


def table(p: int, n: int = 5000) -> pd.DataFrame:
    """Numbers and labels in groups of eight that share a cause, some of them pure noise."""
    rng = np.random.default_rng(0)
    causes = max(p // 8, 1)
    shared = rng.standard_normal((n, causes))
    columns = {}
    for i in range(p):
        z, noise = shared[:, i % causes], rng.standard_normal(n)
        kinds = (z + noise, z**2 + noise / 2, np.exp(z + noise / 3), np.where(z + noise > 0, "yes", "no"), noise)
        columns[f"measure {i:03d}"] = kinds[i // causes % len(kinds)]
    return pd.DataFrame(columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--slower", type=float, default=4)
    parser.add_argument("--visits", type=int, default=5)
    options = parser.parse_args()
    found = fg.explore(table(options.columns), verbose=0)
    start = perf_counter()
    page = found.to_html("Benchmark")
    written = perf_counter() - start
    times: dict[str, list[float]] = {
        "first paint": [],
        "matrix": [],
        "pair": [],
        "pair, all of it": [],
        "of which computed": [],
    }
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        path.write_text(page, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(options.visits):
            context = browser.new_context(viewport={"width": 1400, "height": 900})
            tab = context.new_page()
            session = context.new_cdp_session(tab)
            session.send("Emulation.setCPUThrottlingRate", {"rate": options.slower})
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            tab.goto(path.as_uri())
            tab.wait_for_selector(".findings")
            links = "all => all.slice(0, 5).map(one => one.getAttribute('href'))"
            pairs = tab.eval_on_selector_all(".findings .head a", links)
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            tab.wait_for_function(f"{paint} > 0")
            tab.wait_for_load_state()
            times["first paint"].append(tab.evaluate(paint))
            times["matrix"].append(tab.evaluate(OPENED, "matrix"))
            times["pair"] += [tab.evaluate(OPENED, pair) for pair in pairs]
            tab.evaluate(OPENED, "matrix")
            for pair in pairs:
                before = computed(session)
                times["pair, all of it"].append(tab.evaluate(COMPLETE, pair))
                times["of which computed"].append(computed(session) - before)
            context.close()
        browser.close()
    size = f"{len(page.encode()) / 1e6:.2f} MB, written in {written:.1f} s"
    print(f"{options.columns} columns, {size}; CPU {options.slower:g} times slower")
    for name, values in times.items():
        print(f"{name}: {median(values):.0f} ms")


if __name__ == "__main__":
    main()
