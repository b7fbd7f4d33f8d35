"""The context of pairs: features of clusters from the definition, and their use in links and explanations."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from factorwise.apps.resolution import linking
from factorwise.apps.resolution.comparisons import Cuts
from factorwise.apps.resolution.context import ContextFeature, ContextModel, PairContext, grouping
from factorwise.apps.resolution.context.features import LINK_MEASURES, context_features
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.linking import link
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.results.explaining import Explainer, contributions
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.apps.resolution.updating import place
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.io.columns import Columns
from factorwise.kernels.compile.threads import Team
from factorwise.model.clusterings.level_weights import LevelWeights
from resolution_cases import known_of, people_table

ALONE = Team(1)
TABLE = pa.table({"town": ["x", "x", "y", "x", None, "y"], "year": ["1", "4", "9", "5", "7", None]})
FIELDS = [FieldSpec("town", "category"), FieldSpec("year", "number")]
LABELS = np.array([0, 0, 1, 1, 1, 2])
FIRST, SECOND = np.array([0, 0, 1, 2, 2, 3]), np.array([1, 2, 3, 3, 5, 4])
SCORES = np.array([1.0, -2.0, 0.5, 3.0, 0.0, -1.0])


def sides(pair):
    """The two sides of a pair, or of either record and the rest if they share a cluster."""
    one, two = int(FIRST[pair]), int(SECOND[pair])
    clusters = [set(np.flatnonzero(LABELS[record] == LABELS).tolist()) for record in (one, two)]
    if clusters[0] != clusters[1]:
        return [tuple(clusters)]
    return [({record}, clusters[0] - {record}) for record in (one, two)]


def mean_over_sides(function, pair):
    return np.mean([function(*two) for two in sides(pair)])


def values_of(name, form, measure):
    context = PairContext(normalize(TABLE, FIELDS), FIRST, SECOND, SCORES, LABELS)
    return context.values(ContextFeature(name, form, measure))


def links_between(a, b):
    inside = [(i in a and j in b) or (i in b and j in a) for i, j in zip(FIRST, SECOND, strict=True)]
    return SCORES[np.array(inside)]


def best_probability(a, b):
    def best(record, others):
        return max((1 / (1 + np.exp(-s)) for s in links_between({record}, others)), default=0.0)

    each = [best(record, b) for record in a] + [best(record, a) for record in b]
    return sum(each) / len(each)


@pytest.mark.parametrize(
    ("measure", "expected"),
    list(
        zip(
            LINK_MEASURES,
            [
                lambda a, b: len(links_between(a, b)) / (len(a) * len(b)),
                lambda a, b: links_between(a, b).mean(),
                lambda a, b: links_between(a, b).max(),
                lambda a, b: links_between(a, b).min(),
                lambda a, b: (1 / (1 + np.exp(-links_between(a, b)))).sum() / (len(a) * len(b)),
                best_probability,
                lambda a, b: (links_between(a, b) > 0).sum() / (len(a) * len(b)),
                lambda a, b: math.log(min(len(a), len(b))),
                lambda a, b: math.log(max(len(a), len(b))),
            ],
            strict=True,
        )
    ),
)
def test_link_features_are_those_of_the_definition(measure, expected):
    found = values_of("links", "links", measure)
    np.testing.assert_allclose(found, [mean_over_sides(expected, pair) for pair in range(6)], rtol=1e-5)


def towns(records):
    return [TABLE["town"][record].as_py() for record in sorted(records) if TABLE["town"][record].as_py()]


def agreement(a, b):
    a, b = towns(a), towns(b)
    return sum(x == y for x in a for y in b) / (len(a) * len(b)) if a and b else np.nan


def urn_gain(a, b):
    """By the chain rule of draws from one urn with the frequencies of the column as base."""

    def draws(values):
        chance = {"x": 3 / 5, "y": 2 / 5}
        return sum(
            math.log((chance[value] + values[:k].count(value)) / (1.0 + k)) for k, value in enumerate(values)
        )

    a, b = towns(a), towns(b)
    return (draws(a + b) - draws(a) - draws(b)) / min(len(a), len(b)) if a and b else np.nan


@pytest.mark.parametrize(("measure", "expected"), [("agreement", agreement), ("urn gain", urn_gain)])
def test_value_features_are_those_of_the_definition(measure, expected):
    found = values_of("town", "text", measure)
    np.testing.assert_allclose(found, [mean_over_sides(expected, pair) for pair in range(6)], rtol=1e-5)


def ranges_of(a, b):
    years = [[float(TABLE["year"][r].as_py()) for r in side if TABLE["year"][r].as_py()] for side in (a, b)]
    return (min(years[0]), max(years[0]), min(years[1]), max(years[1])) if all(years) else [np.nan] * 4


def test_gap_and_span_are_those_of_the_two_ranges():
    gap, span = (values_of("year", "number", measure) for measure in ("gap", "span"))
    for pair in range(6):
        each = [ranges_of(*two) for two in sides(pair)]
        gaps = [max(low - other_high, other_low - high, 0.0) for low, high, other_low, other_high in each]
        spans = [max(high, other_high) - min(low, other_low) for low, high, other_low, other_high in each]
        np.testing.assert_allclose([gap[pair], span[pair]], [np.mean(gaps), np.mean(spans)])


# a model with a context

PEOPLE = people_table(40)


@pytest.fixture(scope="module")
def known():
    """A fitted model with weights made up, for pairs and for their context."""
    plain = known_of(PEOPLE)
    features = [one for one in context_features(normalize(PEOPLE, plain.fields)) if one.form != "last"]
    cuts = tuple(Cuts((-1.0, 0.0, 1.0), 4) for _ in features)
    values = np.random.default_rng(2).normal(size=3 + 4 * len(features))
    context = ContextModel(tuple(features), cuts, LevelWeights((4,) * len(features), values), slope=0.7)
    return replace(plain, context=context)


def test_the_context_is_part_of_the_model_file(known, tmp_path):
    known.save(tmp_path / "m.fw")
    found = Knowledge.load(tmp_path / "m.fw")
    assert (found.context.features, found.context.cuts) == (known.context.features, known.context.cuts)
    assert found.context.slope == 0.7
    assert found.weights_by_name() == known.weights_by_name()
    assert any(name.startswith("entities, links: mean score") for name in known.weights_by_name())


def test_links_have_the_scores_of_their_context_and_explanations_add_up_to_them(known):
    linked = link(PEOPLE, known, team=ALONE)
    plain = link(PEOPLE, replace(known, context=None), team=ALONE)
    assert linked.first_pass.scores.tolist() == plain.scores.tolist()
    assert linked.scores.tolist() != plain.scores.tolist()
    explainer = Explainer(PEOPLE, known, team=ALONE)
    first, second = linked.candidates.first[:20].astype(int), linked.candidates.second[:20].astype(int)
    steps = contributions(linked.normal, known, first, second, linked.candidates, linked.first_pass)
    for k, (one, two) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        pair = explainer.pair(one, two)
        assert pair.score == pytest.approx(linked.scores[k], abs=1e-4)
        assert sum(value for _, value in steps[k]) == pytest.approx(pair.gain, abs=1e-4)
    assert explainer.placing(int(first[0]), second[:1]).linked[0][1] == pytest.approx(
        linked.scores[0], abs=1e-4
    )


@pytest.mark.parametrize("in_files", [False, True])
def test_scores_in_context_do_not_depend_on_how_many_pairs_are_scored_at_a_time(known, monkeypatch, in_files):
    linked = link(PEOPLE, known, team=ALONE)
    pairs = linked.candidates
    everything = PairContext(
        linked.normal, pairs.first, pairs.second, linked.first_pass.scores, linked.first_pass.labels
    )
    np.testing.assert_allclose(linked.scores, known.context.scores(everything), rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(linking, "PAIRS_AT_ONCE", 40)
    monkeypatch.setattr(grouping, "STRETCH", 33)
    parts = list(
        grouping.cluster_parts(pairs, np.unique(linked.first_pass.labels, return_inverse=True)[1], 40)
    )
    assert len(parts) > 3
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(pairs)))
    again = link(PEOPLE, known, team=ALONE, columns=Columns.in_scratch() if in_files else Columns())
    np.testing.assert_allclose(again.scores, linked.scores, rtol=1e-5, atol=1e-6)


def test_pairs_that_are_no_candidates_have_no_context(known):
    explainer = Explainer(PEOPLE, known, team=ALONE)
    candidates = set(
        zip(
            *(side.tolist() for side in (explainer.candidates.first, explainer.candidates.second)),
            strict=True,
        )
    )
    other = next(row for row in range(1, 40) if (0, row) not in candidates)
    pair = explainer.pair(0, other)
    assert (pair.context, pair.score) == ((), pair.unlinked)


def test_new_records_meet_the_known_entities_as_clusters(known):
    entity = np.where(np.arange(PEOPLE.num_rows) < PEOPLE.num_rows - 3, np.arange(PEOPLE.num_rows) // 2, -1)
    placed = place(PEOPLE, entity.astype(np.int32), known, LinkSearch(rounds=2), seed=0, team=ALONE)
    assert len(placed.labels) == PEOPLE.num_rows
    assert (
        placed.linked.scores.tolist()
        != place(
            PEOPLE,
            entity.astype(np.int32),
            replace(known, context=None),
            LinkSearch(rounds=2),
            seed=0,
            team=ALONE,
        ).linked.scores.tolist()
    )
