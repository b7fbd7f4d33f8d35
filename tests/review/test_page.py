"""The page in a real Chromium: answers by keyboard and mouse, hands, two people, a phone, no errors."""

import numpy as np
import pytest

api = pytest.importorskip("playwright.sync_api")


@pytest.fixture
def page(server, browser, tmp_path):
    """The page, opened; ``page.complaints`` has all errors and requests that went elsewhere."""
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    opened = context.new_page()
    opened.complaints = []
    note = opened.complaints.append
    opened.on("console", lambda message: note(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: note(str(error)))
    opened.on("request", lambda one: None if one.url.startswith((server.address, "data:")) else note(one.url))
    opened.goto(server.address)
    opened.wait_for_selector(".answers")
    yield opened
    assert opened.complaints == []
    context.close()


def answered(page, count):
    api.expect(page.locator("#message")).to_contain_text(f"decision {count}")


def test_questions_are_answered_by_keyboard_and_mouse_and_taken_back(page, server):
    page.wait_for_selector(".waterfall .step")
    page.keyboard.press("y")
    answered(page, 0)
    page.locator("button.no").click()
    answered(page, 1)
    page.keyboard.press("u")
    answered(page, 2)
    decisions = server.review.store.decisions()
    assert [one["answer"] for one in decisions] == ["same", "different", "unsure"]
    page.keyboard.press("b")
    api.expect(page.locator("#message")).to_contain_text("taken back")
    assert len(server.review.store.decisions()) == 2
    api.expect(page.locator("#quality")).to_contain_text("precision")
    page.locator("#tab-decisions").click()
    api.expect(page.locator("h1")).to_have_text("Decisions")
    api.expect(page.locator("main tr")).to_have_count(3)


def test_entities_are_searched_split_merged_and_undone(page, server):
    store = server.review.store
    before = store.membership().tolist()
    page.locator("#tab-entities").click()
    page.wait_for_selector("main details")
    first = page.locator("main details").first
    first.locator("summary").first.click()
    first.locator("input[type=checkbox]").first.check()
    first.locator("button.split").click()
    answered(page, 0)
    assert len(set(store.membership().tolist())) == len(set(before)) + 1
    page.wait_for_selector("main details")
    boxes = page.locator("main > div > details[data-entity]")
    for place in (0, 1):
        boxes.nth(place).locator("summary").first.click()
        boxes.nth(place).locator("input[type=checkbox]").first.check()
    page.locator("#merge").click()
    answered(page, 1)
    assert len(set(store.membership().tolist())) == len(set(before))
    for _ in range(2):
        page.wait_for_selector("main details")
        box = page.locator("main > div > details[data-entity]").first
        box.locator("summary").first.click()
        page.locator("#message").evaluate("node => node.textContent = ''")
        box.get_by_text("Undo my last decision").click()
        api.expect(page.locator("#message")).to_contain_text("taken back")
    assert store.membership().tolist() == before
    page.locator("input[type=search]").fill("window.harmed")
    page.keyboard.press("Enter")
    api.expect(page.locator("main details[data-entity]").nth(2)).to_have_count(0)


def test_nothing_that_records_say_is_carried_out(page):
    page.locator("#tab-entities").click()
    third = page.locator("main details[data-entity]").nth(2)
    third.wait_for()  # the whole list is there
    page.locator("input[type=search]").fill("window.harmed")
    page.keyboard.press("Enter")
    api.expect(third).to_have_count(0)
    api.expect(page.locator("main summary").first).to_contain_text("<script>")
    page.locator("main summary").first.click()
    page.wait_for_selector("main td")
    assert page.evaluate("window.harmed") is None
    assert page.locator("main img, main script").count() == 0


def test_records_are_taken_out_of_a_whole_entity(page, server):
    review = server.review
    entity = review.entities()[0]["entity"]
    rows = np.flatnonzero(review.engine.labels == entity)
    choice = review.engine.describe(int(rows[0]), int(rows[1]), "expected change")
    question = review._question(choice._replace(kind="whole", records=tuple(rows.tolist())))
    review._taken[question.number] = review._open["me"] = question
    page.reload()
    page.wait_for_selector("table.whole")
    page.keyboard.press("Enter")
    api.expect(page.locator("#message")).to_contain_text("Choose the records")
    page.locator("table.whole tr").nth(1).drag_to(page.locator(".outside"))
    api.expect(page.locator("table.whole input").first).to_be_checked()
    page.keyboard.press("y")  # marked, and yet all one: not clear
    api.expect(page.locator("#message")).to_contain_text("Records are chosen")
    page.keyboard.press("Enter")
    answered(page, 0)
    api.expect(page.locator("#message")).to_contain_text(f"entity {entity} has {len(rows) - 1}")
    labels = review.store.membership()
    assert labels[rows[0]] not in labels[rows[1:]]
    assert len(set(labels[rows[1:]].tolist())) == 1
    assert [one["answer"] for one in review.store.decisions()] == ["all but"]


def test_two_people_answer_different_questions(page, server, browser):
    context = browser.new_context()
    other = context.new_page()
    other.goto(server.address)
    other.locator("#who").fill("Bo")
    other.keyboard.press("Enter")
    other.locator("h1").click()
    other.wait_for_timeout(300)
    texts = [one.locator("table.pair").inner_text() for one in (page, other)]
    assert texts[0] != texts[1]
    for one in (page, other):
        one.keyboard.press("u")
        api.expect(one.locator("#message")).to_contain_text("Saved")
    assert [one["who"] for one in server.review.store.decisions()] == ["me", "Bo"]
    context.close()


def test_it_fits_a_phone(server, browser):
    context = browser.new_context(viewport={"width": 390, "height": 800}, has_touch=True)
    opened = context.new_page()
    opened.goto(server.address)
    opened.wait_for_selector(".answers")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    opened.locator("button.yes").tap()
    api.expect(opened.locator("#message")).to_contain_text("Saved")
    for tab in ("entities", "decisions"):
        opened.locator(f"#tab-{tab}").click()
        opened.wait_for_timeout(200)
        assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_a_page_elsewhere_cannot_answer(server, browser):
    """A page of another origin that knows the address sends a form and a request: nothing is saved."""
    context = browser.new_context()
    opened = context.new_page()
    opened.goto("data:text/html,<p>elsewhere</p>")
    refused = opened.evaluate(
        "address => fetch(address + 'api/answer', {method: 'POST', body: '{}', mode: 'no-cors'})"
        ".then(() => fetch(address + 'api/question')).then(() => 'read').catch(() => 'refused')",
        server.address,
    )
    assert refused == "refused"
    assert server.review.store.decisions() == []
    context.close()
