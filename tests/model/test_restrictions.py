"""Templates of some of the items: a clustering is worth what its parts are worth together."""

import pickle

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, TemplateCheckError, TemplateError
from factorwise.model.model import Model
from factorwise.model.template import Template
from factorwise.model.templates import CountedTemplate, EdgeTemplate, Key, PairTemplate
from factorwise.testing import check_restriction, check_template
from factorwise.variables.fields import Fields
from factorwise.world.partition import Partition
from restriction_cases import agree, fields_of, graph_of, pairs_of, templates_of

NAMES = list(templates_of(6))
N = 13


@pytest.mark.parametrize("name", NAMES)
def test_parts_add_up_to_the_whole(name, seed):
    check_restriction(templates_of(N, seed % 1000)[name], N, seed=seed)


@pytest.mark.parametrize("name", NAMES)
def test_a_restricted_template_is_a_template(name):
    items = np.array([0, 2, 3, 5, 8, 9, 12])
    template = templates_of(N)[name].restrict_to(items)
    check_template(template, Partition.singletons(len(items)), steps=60)


@pytest.mark.parametrize("name", NAMES)
def test_all_items_are_the_template_itself(name):
    template = templates_of(N)[name]
    again = template.restrict_to(np.arange(N))
    world = Partition.from_keys(np.arange(N) % 4)
    assert again.statistics(world).to_dense(template.size) == pytest.approx(
        template.statistics(world).to_dense(template.size)
    )
    assert again.constant(world) == template.constant(world)


@pytest.mark.parametrize("name", NAMES)
def test_one_item_is_enough(name):
    template = templates_of(N)[name].restrict_to(np.array([7]))
    assert template.statistics(Partition.singletons(1)).to_dense(template.size).shape == (template.size,)


def test_a_model_has_the_same_weights_and_templates_that_share_their_fields():
    templates = list(templates_of(N).values())
    size = sum(template.size for template in templates)
    model = Model(templates, np.random.default_rng(0).normal(size=size))
    home = np.arange(N) % 3
    parts = [model.restrict_to(np.flatnonzero(home == part)) for part in range(3)]
    world = Partition.singletons(N)
    whole = sum(
        part.score(Partition.singletons(len(np.flatnonzero(home == k)))) for k, part in enumerate(parts)
    )
    assert whole == pytest.approx(model.score(world))
    pairs, clusters = (parts[0].templates[NAMES.index(name)] for name in ("pairs", "clusters"))
    assert pairs.fields is clusters.fields
    parts[0].weights[:] = 0.0
    assert model.weights.any()


def test_fields_of_other_items_are_not_mistaken_for_those_asked_for():
    fields = fields_of(20)
    for step in range(50):
        items = np.arange(step % 7, 20, 1 + step % 3)
        assert fields.restrict_to(items)["year"].values.tolist() == fields["year"].values[items].tolist()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_links_between_items_keep_their_pairs(share, seed):
    graph = graph_of(15, seed, share)
    items = np.flatnonzero(np.random.default_rng(seed).random(15) < 0.6)
    part, pairs = graph.restrict_to(items)
    assert part.n_items == len(items)
    found = {
        tuple(sorted(p)) for p in zip(items[part.first].tolist(), items[part.second].tolist(), strict=True)
    }
    chosen = set(items.tolist())
    every = list(zip(graph.first.tolist(), graph.second.tolist(), strict=True))
    assert found == {tuple(sorted(pair)) for pair in every if chosen >= set(pair)}
    for number, one, two in zip(pairs.tolist(), part.first.tolist(), part.second.tolist(), strict=True):
        assert set(every[number]) == {int(items[one]), int(items[two])}


@pytest.mark.parametrize("items", [[], [3, 1], [1, 1], [-1, 2], [[0, 1]]])
def test_items_are_given_in_ascending_order(items):
    model = Model([templates_of(N)["pairs"]])
    with pytest.raises(InvalidArgumentError, match=r"ascending order, each once: give np\.unique\(items\)"):
        model.restrict_to(items)


def test_a_template_that_does_not_say_is_told_what_to_write():
    class Silent(Template):
        name, size = "silent", 1

    with pytest.raises(TemplateError, match=r"'silent' \(Silent\) .* give it a method restrict_to\(items\)"):
        Model([Silent()]).restrict_to([0, 1])


def test_factors_between_clusters_are_refused():
    fields, pairs = Fields(**{n: f.values for n, f in fields_of(N).columns.items()}), pairs_of(N)
    repelling = [
        PairTemplate("r", fields, agree, ["a", "b"], repels=True),
        CountedTemplate("r", fields, [Key("name")], repels=True),
        EdgeTemplate("r", N, pairs, np.ones((len(pairs), 1)), ["x"], repels=True),
    ]
    for template in repelling:
        with pytest.raises(TemplateError, match=r"different clusters.*repels=False.*opposite sign"):
            template.restrict_to(np.arange(3))


def test_a_wrong_restriction_is_found_out():
    template = templates_of(N)["pairs"]
    template.restrict_to = lambda items: templates_of(N, 1)["pairs"].restrict_to(np.asarray(items))
    with pytest.raises(TemplateCheckError, match="does not sum to that of the whole"):
        check_restriction(template, N)


def test_fields_come_back_from_bytes_without_what_follows_from_them():
    fields = fields_of(N)
    part = fields.restrict_to(np.arange(4))
    again = pickle.loads(pickle.dumps(part))
    assert again.record(2) == tuple(fields.record(2))
    assert list(again.columns) == list(fields.columns)
