"""The page in a real browser, where there is one: no errors, search and order work, nothing is run."""

import shutil

import pytest

from factorwise.report import Matrix, Report, Sentence, Sentences, write_report
from report_cases import EVIL, report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    """The report, opened; ``page.complaints`` has all errors and requests for anything."""
    path = tmp_path_factory.mktemp("report") / "r.html"
    write_report(path, report())
    opened = browser.new_page(viewport={"width": 390, "height": 800})  # a phone
    complaints = []
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "request", lambda request: complaints.append(request.url) if "r.html" not in request.url else None
    )
    opened.goto(path.as_uri())
    opened.wait_for_selector("section")
    opened.complaints = complaints
    return opened


def test_it_opens_without_errors_and_asks_for_nothing(page):
    page.wait_for_timeout(200)
    assert page.complaints == []
    assert page.locator("section").count() == 9
    assert page.locator("h1").inner_text().startswith("Title <script>")


def test_nothing_that_users_wrote_is_carried_out(page):
    for entry in page.locator("details summary").all()[:3]:
        entry.click()
    assert page.evaluate("window.harmed") is None
    assert page.locator("main img").count() == 0
    assert EVIL.split("\u2028")[0] in page.locator("section[data-kind=facts]").inner_text()


def test_it_fits_a_phone(page):
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_entities_are_searched_and_ordered(page):
    part = page.locator("section[data-kind=entities]")
    assert "20 of 120 entities" in part.inner_text()
    first = part.locator("details .name").first
    assert first.inner_text().startswith("entity 0 ")  # the most doubtful
    part.locator("select").select_option("by name")
    assert first.inner_text().startswith("entity 0 ")
    part.locator("input[type=search]").fill("117a")
    assert "1 of 1 found, among 120 entities" in part.inner_text()
    part.locator("details summary").first.click()
    part.locator("mark").first.wait_for()
    assert part.locator("td:nth-child(3)").all_inner_texts() == ["Rome", "Rome"]
    assert part.locator("td:nth-child(3) mark").count() == 0
    assert part.locator("tr:last-child td:nth-child(2) mark").all_inner_texts() == ["x"]  # the names differ
    assert part.locator("td:nth-child(4)").all_inner_texts() == [
        "0.2500",
        "0.7500",
    ]  # numbers are not compared
    assert part.locator("td:nth-child(4) mark").count() == 0
    part.locator("input[type=search]").fill("")
    part.locator("select").select_option("largest first")
    assert first.inner_text().startswith("entity 7 ")
    assert "1,002 records" in part.locator("summary").first.inner_text()
    part.locator("details summary").first.click()
    part.get_by_text("1,000 further records are not shown.").wait_for()
    part.locator("select").select_option("most doubtful first")
    part.get_by_role("button", name="Show more").click()
    assert "40 of 120 entities" in part.inner_text()


def test_tables_are_ordered_by_a_click(page):
    part = page.locator("section[data-kind=table]")
    part.locator("th button").nth(1).click()
    assert part.locator("tbody tr").first.inner_text().startswith("row 59")
    part.locator("th button").nth(1).click()
    assert part.locator("tbody tr").first.inner_text().startswith("row 0")


def test_pairs_show_what_they_are_made_of(page):
    part = page.locator("section[data-kind=pairs]")
    part.locator("details summary").first.click()
    part.locator(".steps").first.wait_for()
    assert "+0.75" in part.locator(".steps").first.inner_text()  # -1 + 2.5 - 0.75


def test_entities_and_pairs_say_who_they_are(page):
    part = page.locator("section[data-kind=entities]")
    part.locator("select").select_option("most doubtful first")
    assert part.locator("details .gist").first.inner_text().endswith("Rome")
    part = page.locator("section[data-kind=pairs]")
    part.locator("select").select_option("likeliest first")
    assert part.locator("details .gist").first.inner_text() == "1 \u2248 2"


def test_sentences_say_how_much_of_them_is_left_out(page):
    part = page.locator("section[data-kind=sentences]")
    assert part.locator(".sentence").first.inner_text().endswith("and 1,234 further words")


def test_charts_are_drawn(page):
    count = "canvas => Chart.getChart(canvas).data.datasets.length"
    drawn = page.evaluate(f"[...document.querySelectorAll('.chart canvas')].map({count})")
    assert drawn == [1, 1, 2]


def test_the_tokens_of_a_span_have_one_color_and_mistakes_are_listed(browser, tmp_path):
    labels = [f"L{k}" for k in range(40)]
    counts = [[9 if r == c else int(r == 3 and c == 5) for c in range(40)] for r in range(40)]
    confused = Matrix(title="c", rows=labels, columns=labels, steps={"tokens": counts}, mistakes=True)
    spans = Sentences(title="s", sentences=[Sentence(["a", "b"], ["B-PER", "I-PER"], [0.5, 0.5])])
    write_report(tmp_path / "r.html", Report(title="t", sections=[confused, spans], version="1"))
    opened = browser.new_page()
    opened.goto((tmp_path / "r.html").as_uri())
    colors = opened.locator(".token").evaluate_all("all => all.map(one => one.style.background)")
    assert len(set(colors)) == 1
    assert opened.locator("section[data-kind=matrix] tbody td").all_inner_texts() == ["L3", "L5", "1"]
    opened.close()


def test_flows_follow_the_slider(page):
    part = page.locator("section[data-kind=matrix]")
    assert part.locator("td").all_inner_texts() == ["", "1", "2", "3"]
    part.locator("input[type=range]").fill("1")
    assert part.locator("td").all_inner_texts() == ["1", "", "", ""]
