"""A review that is served, and a browser to look at it."""

import shutil

import pytest

from curation_cases import make_store, people
from factorwise.apps.resolution.curation import Review
from factorwise.review import Server
from factorwise.store import Store

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
EVIL = "<script>window.harmed=1</script><img src=x onerror=window.harmed=1>"


@pytest.fixture(scope="package")
def resolved(tmp_path_factory):
    """A store of people, one of whom has markup in every field."""
    path = tmp_path_factory.mktemp("resolved") / "people.duckdb"
    table = people(40)
    rows = table.to_pylist()
    for row in rows[:2]:
        row |= {"first": f"{row['first']} {EVIL}", "last": f"{row['last']} {EVIL}", "mail": EVIL}
    table = table.from_pylist(rows, table.schema)
    make_store(path, table).close()
    return path


@pytest.fixture
def server(resolved, tmp_path):
    path = tmp_path / "people.duckdb"
    path.write_bytes(resolved.read_bytes())
    review = Review(Store.open(path), random_share=0.0, whole=False, background=True)
    served = Server(review)
    served.review = review
    thread = served.start()
    yield served
    served.stop()
    thread.join()
    review.close()


@pytest.fixture(scope="package")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()
