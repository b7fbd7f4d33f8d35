"""``factorwise infer``: the three queries in both layouts, evidence by file and by name, and mistakes."""

import json

import pytest

GARDEN = """network garden {}
variable rain { type discrete [ 2 ] { yes, no }; }
variable wet { type discrete [ 2 ] { yes, no }; }
probability ( rain ) { table 0.2, 0.8; }
probability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.1, 0.9; }
"""
PAIR = "MARKOV\n2\n2 3\n1\n2 0 1\n6\n1 2 3 4 5 0\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "garden.bif").write_text(GARDEN)
    (tmp_path / "pair.uai").write_text(PAIR)
    (tmp_path / "pair.uai.evid").write_text("1\n1 0 1\n")
    (tmp_path / "bad.evid").write_text("1 0 7\n")
    return tmp_path


def test_marginals_come_as_a_table_with_names_and_how_they_were_found(files, run):
    result = run("infer", "garden.bif", "--observe", "wet=yes")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "variable\tlabel\tprobability"
    assert lines[1].split("\t")[:2] == ["rain", "yes"]
    assert float(lines[1].split("\t")[2]) == pytest.approx(0.18 / 0.26)
    assert "1 of 2 variables observed" in result.err
    assert "exact" in result.err


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("mar", "MAR\n2 2 0 1 3 0.4444444444 0.5555555556 0\n"),
        ("map", "MAP\n2 1 1\n"),
        ("pr", "PR\n0.9542425094\n"),
    ],
)
def test_answers_come_in_the_format_of_the_competition(files, run, query, answer):
    words = ["infer", "pair.uai", "--evidence", "pair.uai.evid", "--query", query, "--format", "uai"]
    assert run(*words, "--quiet") == (0, answer, "")
    result = run(*words, "-o", "out")
    assert result.code == 0
    assert (files / "out").read_text() == answer
    assert "exact" in result.out or "optimal" in result.out


def test_tables_of_the_other_queries(files, run):
    assert (
        run("infer", "garden.bif", "--query", "map", "--quiet").out == "variable\tlabel\nrain\tno\nwet\tno\n"
    )
    result = run("infer", "garden.bif", "--query", "pr", "--observe", "wet=0", "--quiet")
    assert float(result.out.splitlines()[1].split("\t")[1]) == pytest.approx(-0.585026652)


def test_json_holds_the_answer(files, run):
    document = json.loads(run("infer", "garden.bif", "--observe", "wet=yes", "--json").out)
    assert document["exact"] is True
    assert document["marginals"]["rain"]["yes"] == pytest.approx(0.18 / 0.26)
    document = json.loads(run("infer", "garden.bif", "--query", "map", "--json").out)
    assert document["best"] == {"rain": "no", "wet": "no"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.uai"], "none.uai"),
        (["garden.bif", "--observe", "wet"], "NAME=LABEL"),
        (["garden.bif", "--observe", "wot=yes"], "did you mean 'wet'?"),
        (["garden.bif", "--observe", "wet=7"], "has no label"),
        (["pair.uai", "--evidence", "bad.evid"], "bad.evid: the evidence sets variable 0 to label 7"),
        (["pair.uai", "--syntax", "bif"], "pair.uai: 'MARKOV' is in the place of a block"),
        (["pair.uai", "-o", "pair.uai"], "also an input"),
        (["-"], "standard input"),
    ],
)
def test_mistakes_are_told_in_one_line(files, run, words, message):
    result = run("infer", *words)
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1
