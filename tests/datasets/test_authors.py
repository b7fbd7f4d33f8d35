"""Whole draws of author mentions."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from factorwise.datasets.authors import AuthorsConfig, OffTargetError, generate_authors
from factorwise.datasets.inventory import load_inventory
from factorwise.datasets.targets import Statistic
from factorwise.datasets.topics import _venue_names
from factorwise.errors import InvalidArgumentError


@pytest.fixture(scope="module")
def records(small):
    return small.table().to_pylist()


def value(made, name):
    return next(one.value for one in made.statistics if one.name == name)


def test_the_table_has_one_row_per_mention_by_paper(small):
    table = small.table()
    assert table.schema == pa.schema(
        {
            "id": pa.int64(),
            "entity": pa.int64(),
            "name": pa.string(),
            "coauthors": pa.list_(pa.string()),
            "venue": pa.string(),
            "year": pa.int16(),
            "title": pa.string(),
            "paper": pa.int64(),
            "position": pa.int16(),
        }
    )
    assert table["id"].to_pylist() == list(range(3_000))
    assert table["paper"].to_pylist() == sorted(table["paper"].to_pylist())
    assert table["entity"].to_pylist() != sorted(table["entity"].to_pylist())
    assert sum(column.null_count for column in table.columns) == 0


def test_coauthors_are_the_other_names_on_the_paper_as_written(records):
    papers = defaultdict(list)
    for row in records:
        papers[row["paper"]].append(row)
    for rows in papers.values():
        assert [row["position"] for row in rows] == list(range(len(rows)))
        assert len({(row["venue"], row["year"], row["title"]) for row in rows}) == 1
        assert len({row["entity"] for row in rows}) == len(rows)
        for place, row in enumerate(rows):
            assert row["coauthors"] == [other["name"] for other in rows[:place] + rows[place + 1 :]]


def test_titles_are_a_few_words(records):
    counts = {len(row["title"].split()) for row in records}
    assert min(counts) == 3
    assert max(counts) == 9


def test_statistics_are_what_counting_in_the_table_gives(small, records):
    rows = defaultdict(list)
    for row in records:
        rows[row["entity"]].append(row)
    sizes = sorted(len(own) for own in rows.values())
    assert value(small, "mentions per author") == pytest.approx(np.mean(sizes))
    assert value(small, "authors with one mention") == pytest.approx(sizes.count(1) / len(sizes))
    persons = defaultdict(set)
    for row in records:
        persons[row["name"]].add(row["entity"])
    shared = np.mean([len(persons[row["name"]]) > 1 for row in records])
    assert value(small, "mentions that share the full name") == pytest.approx(shared)
    spelt = [len({row["name"] for row in own}) > 1 for own in rows.values() if len(own) >= 5]
    assert value(small, "authors of five or more with several spellings") == pytest.approx(np.mean(spelt))


def test_sharing_of_coauthors_and_venues_is_what_counting_in_the_table_gives(small, records):
    on_paper = defaultdict(set)
    rows = defaultdict(list)
    for row in records:
        on_paper[row["paper"]].add(row["entity"])
        rows[row["entity"]].append(row)
    shares, venues = [], []
    for entity, own in rows.items():
        met = Counter(other for row in own for other in on_paper[row["paper"]] - {entity})
        if len(own) >= 3:
            shares += [any(met[other] > 1 for other in on_paper[row["paper"]] - {entity}) for row in own]
        if len(own) >= 2:
            same = np.mean([one["venue"] == other["venue"] for one, other in combinations(own, 2)])
            venues.append((len(own), same))
    assert value(small, "mentions that share a co-author") == pytest.approx(np.mean(shares))
    lengths, same = np.array(venues).T
    assert value(small, "two mentions share the venue") == pytest.approx(np.average(same, weights=lengths))


def test_the_seed_decides_everything(few, small):
    again = generate_authors(AuthorsConfig(mentions=3_000, seed=4), few)
    assert again.table().equals(small.table())
    assert again.statistics == small.statistics
    other = generate_authors(AuthorsConfig(mentions=3_000, seed=5), few)
    assert not other.table().equals(small.table())


@pytest.mark.parametrize("mentions", [1, 2, 7, 60])
def test_very_few_mentions_are_made_and_never_refused(few, mentions):
    made = generate_authors(AuthorsConfig(mentions=mentions), few)
    assert made.table().num_rows == mentions
    assert not any(one.binding for one in made.statistics)
    made.check()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_hundred_thousand_mentions_meet_all_targets(lists, seed):
    made = generate_authors(AuthorsConfig(mentions=100_000, seed=seed), lists)
    assert all(one.binding for one in made.statistics)
    assert [one for one in made.statistics if not one.met] == []
    made.check()


def test_with_another_cut_off_the_law_of_careers_is_the_target(lists):
    made = generate_authors(AuthorsConfig(mentions=100_000, largest_scale=2_000), lists)
    binding = [one for one in made.statistics if one.binding]
    assert [one.name for one in binding] == [
        "mentions per author",
        "authors with one mention",
        "mentions of the top 1 %",
    ]
    assert binding[2].low > 0.35
    made.check()


def test_data_off_their_targets_are_refused_with_what_is_off(small):
    off = Statistic("authors per paper", 1.5, 2.7, 3.3)
    with pytest.raises(
        OffTargetError,
        match=r"authors per paper is 1\.5, but must be between 2\.7 and 3\.3\. Use another seed",
    ):
        replace(small, statistics=(off,)).check()
    replace(small, statistics=(off._replace(binding=False),)).check()


def test_what_was_not_counted_is_off_its_target():
    assert not Statistic("a share", float("nan"), 0.0, 1.0).met


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"mentions": 0}, "mentions must be from 1 to 50,000,000, but 0 was given"),
        ({"mentions": 10, "seed": -1}, "seed must be zero or more"),
        ({"mentions": 10, "largest_scale": 0.5}, "largest_scale must be from 1 to 100,000"),
        ({"mentions": 10, "largest_scale": float("nan")}, "largest_scale must be"),
    ],
)
def test_impossible_settings_are_refused(settings, fault):
    with pytest.raises(InvalidArgumentError, match=fault):
        AuthorsConfig(**settings)


def test_venues_have_names_of_their_own():
    names = _venue_names(30_000).to_pylist()
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_real_names_meet_all_targets():
    pytest.importorskip("names_dataset")
    lists = load_inventory()
    assert "Wei" in lists[0].given[:40]
    assert "Wang" in lists[0].family[:5]
    assert sum(len(one.family) for one in lists) > 300_000
    for mentions in (100_000, 1_000_000):
        made = generate_authors(AuthorsConfig(mentions=mentions), lists)
        assert [one for one in made.statistics if not one.met] == []
