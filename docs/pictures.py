"""The pictures of the pages: run the tutorials, and photograph what they write in a browser.

``make pictures`` runs this. It needs Chromium, and the development tools (Playwright drives the browser).
"""

from __future__ import annotations

import contextlib
import runpy
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "assets" / "pictures"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
COLORS = 128  # of a picture: text and lines need no more


class Picture(NamedTuple):
    """What to photograph of a tutorial's report: from a heading on, with the row below opened or not."""

    name: str
    tutorial: str
    heading: str
    opened: bool = False


SIZE = (1000, 560)
REPORTS = [
    Picture("resolve-report", "resolve", "Entities", opened=True),
    Picture("resolve-pairs", "resolve", "Uncertain pairs", opened=True),
    Picture("tag-report", "tag", "Constraints on whole sentences"),
    Picture("flows-report", "flows", "Counts, sequence 1"),
    Picture("coref-report", "coref", "Learning curve"),
]
BANNER = 70  # height of the links at the top, which stay when a page is scrolled
PLOTS = {"trace": "plots", "reliability": "plots", "graph": "plots"}


def run_tutorial(name: str, folder: Path) -> None:
    """Run all that a tutorial shows, in its order."""
    sys.path.insert(0, str(ROOT / "tests"))
    script = runpy.run_path(str(ROOT / "tests" / "test_documentation.py"))["script"]
    path = folder / "page.py"
    path.write_text(script(f"tutorials/{name}.md"), encoding="utf-8")
    with contextlib.chdir(folder):
        runpy.run_path(str(path), run_name="__main__")


def keep(path: Path) -> None:
    """Store a picture in few colors: a tenth of the bytes, and nothing to be seen of it."""
    image = Image.open(path).convert("RGB")
    image.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)


def photograph(
    browser: Browser,
    address: str,
    name: str,
    size: tuple[int, int],
    heading: str = "",
    *,
    opened: bool = False,
) -> None:
    """Open a page, scroll to a heading, open the first row below it, and store what is to be seen."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})
    page.goto(address)
    page.wait_for_timeout(1_000)  # charts are drawn
    if heading:
        title = page.get_by_role("heading", name=heading, exact=True).first
        if opened:
            title.locator("xpath=following::summary[1]").click()
        title.evaluate(
            "(e, up) => window.scrollTo(0, e.getBoundingClientRect().top + window.scrollY - up)", BANNER
        )
        page.wait_for_timeout(500)
    path = PICTURES / f"{name}.png"
    page.screenshot(path=path)
    page.close()
    keep(path)


@contextlib.contextmanager
def served(store: Path) -> Iterator[Any]:
    """Serve the review of a store."""
    from factorwise import Review
    from factorwise.review import Server

    review = Review(str(store))
    server = Server(review)
    thread = server.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()
        review.close()


def main() -> None:
    """Make all pictures."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is needed to photograph pages, and there is none here.")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folders = {
            name: Path(scratch) / name for name in ("resolve", "tag", "flows", "coref", "plots", "review")
        }
        for name, folder in folders.items():
            folder.mkdir()
            run_tutorial(name, folder)
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for picture in REPORTS:
            address = (folders[picture.tutorial] / "report.html").as_uri()
            photograph(browser, address, picture.name, SIZE, picture.heading, opened=picture.opened)
        with served(folders["review"] / "mentions.duckdb") as server:
            photograph(browser, server.address, "review-page", (1000, 760))
            photograph(browser, server.address, "review-phone", (390, 760))
        browser.close()
        for name, tutorial in PLOTS.items():
            shutil.copy(folders[tutorial] / f"{name}.png", PICTURES / f"{name}.png")
            keep(PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
