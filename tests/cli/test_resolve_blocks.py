"""`resolve blocks`: counts of pairs before anything is compared, and rules on the command line."""

import json

import pytest

from factorwise.apps.resolution.blocking.counting import count_blocks
from factorwise.apps.resolution.blocking.rule_text import parse_rule
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.cli import main
from factorwise.io.tables.reading import read_table

PEOPLE = """id,town,year
a,Ulm,1900
b,Ulm,1900
c,Ulm,1901
d,Bonn,1901
e,Bonn,1902
"""


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def run(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main.main([str(word) for word in words])
    return end.value.code, capsys.readouterr()


def test_blocks_and_pairs_are_those_of_the_rules(capsys, people):
    rules = ["--rule", "town", "--rule", "town + year"]
    code, told = run(capsys, "resolve", "blocks", people, "--id", "id", *rules, "--json")
    assert code == 0
    document = json.loads(told.out)
    assert [one["pairs"] for one in document["rules"]] == [4, 1]
    assert [one["largest"] for one in document["rules"]] == [3, 2]
    assert document["pairs"] == 4


def test_they_are_listed_for_people(capsys, people):
    code, told = run(capsys, "resolve", "blocks", people, "--id", "id", "--rule", "town")
    assert code == 0
    assert "about 4 different pairs, 1.6 for each record" in told.out


def test_a_rule_that_names_no_column_is_a_mistake_of_the_user(capsys, people):
    code, told = run(capsys, "resolve", "blocks", people, "--id", "id", "--rule", "village")
    assert code == 2
    assert "'village' names no column" in told.err


def test_a_budget_limits_the_blocks_that_are_joined_whole(people):
    fields = [FieldSpec("town", "text")]
    normal = normalize(read_table(people), fields)
    found = count_blocks(normal, [parse_rule("town", fields)], budget=3)
    assert found.limits.largest < 3
    assert found.pairs <= 3
