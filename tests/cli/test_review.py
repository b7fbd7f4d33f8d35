"""Questions at the console."""

import pytest

from curation_cases import make_store, people
from factorwise.cli import review as verb
from factorwise.store import Store


@pytest.fixture
def path(tmp_path):
    make_store(tmp_path / "s.duckdb", people(30)).close()
    return tmp_path / "s.duckdb"


def test_questions_are_answered_and_taken_back_at_the_console(path, run, monkeypatch):
    said = iter(["y", "b", "n", "u", "u", "b", "b", "u", "u", "q"])
    monkeypatch.setattr(verb.click, "prompt", lambda *words, **settings: next(said))
    asked = []
    show = verb.question_lines

    def note(question):
        asked.append(sorted(record["id"] for record in question.shown) or list(question.ids))
        return show(question)

    monkeypatch.setattr(verb, "question_lines", note)
    result = run("review", path, "--console", "--who", "Ann")
    assert result.code == 0, result.err
    assert asked[0] == asked[2] != asked[1]  # what was taken back is asked again
    assert asked[1] == asked[3]  # and then the question that was open
    assert asked[6:9] == [asked[4], asked[3], asked[4]]  # back twice, and on again
    assert asked[9] == asked[5]
    assert "saved as decision 0" in result.out
    assert "decision 0 is undone" in result.out
    with Store.open(path) as store:
        assert [(one["who"], one["answer"]) for one in store.decisions()] == [
            ("Ann", "different"),
            ("Ann", "unsure"),
            ("Ann", "unsure"),
        ]


def test_records_need_the_column_of_their_ids(tmp_path, run):
    (tmp_path / "people.csv").write_text("id,name\n1,Ann\n")
    result = run("review", tmp_path / "people.csv", "--console")
    assert (result.code, "--id" in result.err) == (2, True)
