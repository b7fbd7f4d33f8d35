"""Rules as data."""

import json

import pytest

from factorwise.apps.resolution.blocking import Part, Rule
from factorwise.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ((Part("author", "last"), Part("author", "first_initial")), "last name + first initial of author"),
        ((Part("city", "text"),), "city"),
        ((Part("city", "text"), Part("born", "year")), "city + year of born"),
        ((Part("zip", "code", "prefix", 3),), "first 3 letters of zip"),
        ((Part("last", "last", "sound"),), "sound of last name of last"),
        ((Part("title", "tokens", "items", 4, most=100),), "rare word of title"),
        ((Part("street", "number"), Part("street", "street")), "number + street of street"),
        (
            (Part("title", "text", "bands", 3, bands=8, rows=2),),
            "3-shingle minhash, band of 2 of title",
        ),
        ((Part("price", "number", "rounded", 0.5),), "number to 0.5 of price"),
    ],
)
def test_a_rule_says_what_records_must_share(parts, name):
    assert Rule(parts).name == name


def test_a_rule_survives_a_model_file():
    rule = Rule((Part("title", "text", "bands", 3, bands=8, rows=2), Part("year", "number")))
    content = json.loads(json.dumps(rule.as_dict()))
    assert Rule.from_dict(content) == rule
    assert content["parts"][1] == {"field": "year", "form": "number", "cut": "whole"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: Part("a", "text", "suffix"), "cut must be one of whole, prefix"),
        (lambda: Part("a", "text", "prefix"), "at least 1 for a prefix"),
        (lambda: Part("a", "number", "rounded"), "above 0 for rounding"),
        (lambda: Part("a", "text", "bands", 3), "bands, rows must be at least 1"),
        (lambda: Rule(()), "parts must be at least one"),
        (lambda: Rule.from_dict({"parts": [{"field": "a"}]}), "must have field and form"),
        (lambda: Rule.from_dict({"parts": [{"field": "a", "form": "b", "x": 1}]}), "may have bands, cut"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_what_it_may_be(given, message):
    with pytest.raises(InvalidArgumentError, match=message):
        given()
