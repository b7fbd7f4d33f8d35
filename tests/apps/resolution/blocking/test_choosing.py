"""Choosing rules, on records of known entities."""

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution.blocking import default_rules, find_candidates, learned_rules, recall_of
from factorwise.apps.resolution.blocking.choosing import Thrift, choose
from factorwise.apps.resolution.blocking.keys import KeyMaker, share_key
from factorwise.apps.resolution.blocking.objectives import (
    Imagined,
    Labelled,
    connected,
    labelled_items,
    true_pairs,
)
from factorwise.apps.resolution.blocking.pool import RecordSample, rule_pool
from factorwise.apps.resolution.blocking.rule_text import parse_rule
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.fields import FieldSpec

SYLLABLES = ["ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va"]


def words(draws, count, syllables):
    return ["".join(draws.choice(SYLLABLES, syllables)) for _ in range(count)]


def spoiled(draws, text, share):
    """Text with two letters swapped in a share of cases."""
    if draws.random() >= share or len(text) < 3:
        return text
    place = int(draws.integers(1, len(text) - 1))
    return text[: place - 1] + text[place] + text[place - 1] + text[place + 1 :]


def people(n_entities=300, seed=0):
    """Persons with first and last name, town and code, each recorded twice or three times with mistakes."""
    draws = np.random.default_rng(seed)
    firsts, lasts, towns = words(draws, 40, 2), words(draws, 150, 3), words(draws, 20, 3)
    rows, entity = [], []
    for number in range(n_entities):
        person = {
            "first": draws.choice(firsts),
            "last": draws.choice(lasts),
            "town": draws.choice(towns),
            "code": f"{draws.integers(10**6):06d}",
            "sex": draws.choice(["f", "m"]),
        }
        for _ in range(int(draws.integers(2, 4))):
            rows.append({name: spoiled(draws, value, 0.25) for name, value in person.items()})
            entity.append(number)
    specs = [
        FieldSpec("first", "name", {"part": "first"}),
        FieldSpec("last", "name", {"part": "last"}),
        FieldSpec("town", "location"),
        FieldSpec("code", "identifier"),
        FieldSpec("sex", "category"),
    ]
    return specs, normalize(pa.Table.from_pylist(rows), specs), np.array(entity)


SPECS, NORMAL, ENTITY = people()


def test_rules_chosen_without_labels_connect_nearly_all_entities_with_few_pairs():
    rules = default_rules(SPECS, NORMAL)
    found = find_candidates(NORMAL, rules)
    assert recall_of(found, ENTITY).connected >= 0.97
    assert len(found) <= 40 * len(ENTITY)
    assert len({rule.name for rule in rules}) == len(rules) >= 3


def test_rules_learned_on_half_of_the_entities_connect_the_other_half():
    train, test = np.where(ENTITY % 2 == 0, ENTITY, -1), np.where(ENTITY % 2 == 1, ENTITY, -1)
    found = find_candidates(NORMAL, learned_rules(SPECS, NORMAL, train))
    assert recall_of(found, test).connected >= 0.97
    assert len(found) <= 60 * len(ENTITY)


def test_choosing_is_deterministic():
    assert default_rules(SPECS, NORMAL) == default_rules(SPECS, NORMAL)
    assert learned_rules(SPECS, NORMAL, ENTITY) == learned_rules(SPECS, NORMAL, ENTITY)


def test_rules_for_many_more_records_are_narrower():
    def pairs(rules):
        return len(find_candidates(NORMAL, rules))

    assert pairs(default_rules(SPECS, NORMAL, n_items=10**7)) < pairs(default_rules(SPECS, NORMAL)) / 2


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_tables_of_few_or_no_records_have_rules_or_none_but_no_errors(n_rows):
    table = pa.table({"last": pa.array(["lee"] * n_rows, pa.string())})
    specs = [FieldSpec("last", "name", {"part": "last"})]
    normal = normalize(table, specs)
    found = find_candidates(normal, default_rules(specs, normal))
    assert len(found) == n_rows * (n_rows - 1) // 2
    assert isinstance(learned_rules(specs, normal, np.full(n_rows, -1)), list)


def test_fields_in_which_all_is_missing_make_no_rules():
    specs = [FieldSpec("town", "text"), FieldSpec("born", "date")]
    normal = normalize(pa.table({"town": ["", None], "born": pa.array([None, None], pa.string())}), specs)
    assert default_rules(specs, normal) == []


def test_without_labels_where_all_else_is_equal_a_rule_of_half_the_data_is_not_chosen():
    rules = default_rules(SPECS, NORMAL)
    assert all({part.field for part in rule.parts} != {"sex"} for rule in rules)


def test_what_rules_add_never_grows_as_others_are_taken():
    sample = RecordSample(NORMAL)
    pool = rule_pool(SPECS, sample)
    objective = Labelled(pool, sample, ENTITY, Imagined(pool, sample, SPECS))
    before = [objective.gain(k) for k in range(len(pool))]
    total = 0.0
    for taken in np.random.default_rng(1).permutation(len(pool))[:6]:
        total += objective.gain(int(taken))
        objective.add(int(taken))
        after = [objective.gain(k) for k in range(len(pool))]
        assert all(new <= old + 1e-12 for new, old in zip(after, before, strict=True))
        assert min(after) >= 0.0
        before = after
    assert total <= 1.0 + 1e-12


def test_no_rule_is_taken_that_adds_less_than_asked():
    sample = RecordSample(NORMAL)
    pool = rule_pool(SPECS, sample)
    chosen = choose(pool, Imagined(pool, sample, SPECS), sample, Thrift(0.1, 0.0, 0.0))
    assert chosen
    assert min(one.gain for one in chosen) >= 0.1


def test_estimates_from_a_sample_are_close_to_the_numbers_of_pairs():
    specs, normal, _ = people(2_000, seed=3)
    whole, part = RecordSample(normal), RecordSample(normal, size=2_000)
    for one in rule_pool(specs, whole):
        if one.pairs > 20_000:
            assert part.pairs(one.rule) == pytest.approx(one.pairs, rel=0.3)


def test_true_pairs_are_all_pairs_or_a_random_part_of_them():
    entity = np.array([3, 1, 3, 1, 3, 2])
    assert {tuple(sorted(pair)) for pair in true_pairs(entity).tolist()} == {(0, 2), (0, 4), (2, 4), (1, 3)}
    few = true_pairs(np.repeat([0, 1], 200), most=50)
    assert few.shape == (50, 2)
    assert (few[:, 0] != few[:, 1]).all()
    assert (few[:, 0] // 200 == few[:, 1] // 200).all()


def test_labelled_items_are_those_of_known_entities_with_company():
    assert labelled_items(np.array([-1, 4, 4, 5, -1, 6, 6, 6])).tolist() == [1, 2, 5, 6, 7]
    assert len(labelled_items(np.repeat(np.arange(100), 3), most=30)) == 30


def test_parts_are_joined_by_links():
    parts = connected(np.arange(5), np.array([[0, 3], [3, 4]]))
    assert len(set(parts.tolist())) == 3
    assert parts[0] == parts[3] == parts[4]


def test_pairs_share_a_key_where_the_candidates_have_them():
    for rule in [one.rule for one in rule_pool(SPECS, RecordSample(NORMAL))][::9]:
        found = find_candidates(NORMAL, [rule])
        made = set(zip(found.first.tolist(), found.second.tolist(), strict=True))
        pairs = np.sort(np.random.default_rng(0).integers(0, len(ENTITY), (500, 2)), axis=1)
        pairs = np.concatenate([pairs[pairs[:, 0] < pairs[:, 1]], np.array(sorted(made)[:50]).reshape(-1, 2)])
        holds = share_key(KeyMaker(NORMAL).keys(rule), pairs, len(ENTITY))
        assert holds.tolist() == [tuple(pair) in made for pair in pairs.tolist()]


def test_a_rule_that_makes_hardly_a_new_pair_is_not_taken_without_labels():
    sample = RecordSample(NORMAL)
    rules = default_rules(SPECS, NORMAL)
    for place, rule in enumerate(rules):
        assert sample.new_share(rule, rules[:place]) >= 0.1
        assert sample.new_share(rule, [rule]) == 0.0


@pytest.mark.parametrize("labelled", [True, False])
def test_a_column_of_yes_and_no_is_no_rule(labelled):
    draws = np.random.default_rng(0)
    specs, _, entity = people(100)
    rows = [{"last": "same", "vip": draws.random() < 0.1} for _ in entity]
    specs = [FieldSpec("last", "name", {"part": "last"}), FieldSpec("vip", "category")]
    normal = normalize(pa.Table.from_pylist(rows), specs)
    found = learned_rules(specs, normal, entity) if labelled else default_rules(specs, normal)
    assert all("vip" not in rule.fields or "last" in rule.fields for rule in found)
    assert not labelled or found  # a name that all share may be all that there is


def test_codes_meet_however_they_are_written():
    """Without a hyphen, with one, in two words; with a brand and without."""
    draws = np.random.default_rng(0)
    words = ["".join(draws.choice(list("abcdefghijklm"), 7)) for _ in range(500)]
    titles = []
    for k in range(300):
        code = f"{'abcdefghij'[k % 10]}{'kqrstuvwxy'[k // 10 % 10]}", f"{1000 + 7 * k}pc"
        titles += [f"{words[k]} {'-'.join(code)}", f"{''.join(code)} {words[k + 100]}", " ".join(code)]
    specs = [FieldSpec("title", "text")]
    normal = normalize(pa.table({"title": titles}), specs)
    rules = default_rules(specs, normal)
    assert "rare code of title" in [rule.name for rule in rules]
    assert parse_rule("rare code of title", specs) in rules
    found = find_candidates(normal, rules).of_one_entity(np.arange(900) // 3)
    assert found.sum() == 900  # all three pairs of each code
