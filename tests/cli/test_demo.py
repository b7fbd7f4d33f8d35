"""``factorwise demo``: data of its own, learned, applied, scored, shown."""

import json

import pytest

from factorwise.cli import demo
from factorwise.datasets.bibliography import make_bibliography


def test_the_demo_learns_both_jobs_and_writes_a_page(run, tmp_path):
    done = run("demo", "-o", tmp_path / "shown", "--json", "--quiet")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    for before, after in document["scores"].values():
        assert before < 0.8 < after
    assert document["report"]["bytes"] == (tmp_path / "shown" / "report.html").stat().st_size
    page = (tmp_path / "shown" / "report.html").read_text()
    assert "Proc. of Text <Mining>" not in page  # a venue of the data is no markup
    assert "Before and after" in page


def test_the_demo_fails_where_learning_is_of_no_use(run, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "ENOUGH", 0.9)
    done = run("demo", "-o", tmp_path)
    assert done.code == 2
    assert "is not clearly above" in done.err


def test_a_bibliography_is_the_same_for_the_same_seed():
    first, second = (make_bibliography(seed=3) for _ in range(2))
    assert first == second
    assert first.mentions() == second.mentions() != make_bibliography(seed=4).mentions()


@pytest.mark.parametrize("place", range(0, 240, 40))
def test_citations_have_a_label_for_each_word_and_all_fields(place):
    made = make_bibliography()
    words, labels = made.citations()[place]
    assert len(words) == len(labels)
    starts = [label for label in labels if label.startswith("B-")]
    assert starts.count("B-AUTHOR") == len(made.papers[place].authors)
    for field in ("TITLE", "VENUE", "YEAR", "PAGES"):
        assert starts.count(f"B-{field}") == 1
