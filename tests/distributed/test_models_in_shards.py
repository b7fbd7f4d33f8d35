"""Searches in shards under any model: coreference across documents, and templates of a user's own."""

import numpy as np
import pytest

from coreference_cases import discourse
from factorwise.apps.coreference.resolution import discourse_model
from factorwise.apps.coreference.sharded import link_mentions, search_in_shards, walk_mentions
from factorwise.distributed import (
    LinkWeights,
    LocalExecutor,
    Sharding,
    ShardKeeping,
    ShardModel,
    search_shards,
    shard_model,
    shard_walk,
    step_shard,
)
from factorwise.distributed.search import entities_of
from factorwise.distributed.shard_rows import walk_of
from factorwise.errors import InvalidArgumentError, TemplateError
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.inference.mcmc.shards.sharded_walk import walk_along
from factorwise.io.shard_files import ShardStore
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed
from factorwise.model.model import Model
from factorwise.model.template import Template
from factorwise.model.templates import ClusterSize
from factorwise.world.partition import Partition
from link_cases import allowed_worlds
from model_shard_cases import PROBLEMS, own_templates, topic
from restriction_cases import graph_of, templates_of
from shard_cases import digest

LONG = LinkSearch(rounds=16, sweeps=2, extra=0)


def run(given, executor, shards, **more):
    found = given.search(executor, shards, **more)
    return digest(executor, given.walk.n_items), found


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("exchange", ["guided", "random"])
def test_any_number_of_threads_gives_the_same_bits(name, exchange):
    given = PROBLEMS[name]()
    one, two = (run(given, LocalExecutor(threads), 3, exchange=exchange) for threads in (1, 2))
    assert one == two


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("shards", [1, 4])
def test_shards_reach_the_score_of_a_search_in_memory(name, shards):
    given = PROBLEMS[name]()
    executor, walk = LocalExecutor(1), given.walk.copy()
    found = given.search(executor, shards, search=LONG)
    whole = LONG.run(walk, seed=1, team=Team(1))
    labels = entities_of(executor, walk.n_items)
    assert found.score > 0.98 * whole.score
    assert found.score == pytest.approx(walk.model.score(Partition.from_keys(labels)), rel=1e-6)
    assert b_cubed(given.truth.tolist(), labels.tolist()).f1 > 0.8


@pytest.mark.parametrize("shards", [1, 2])
def test_the_best_clustering_of_a_few_items_is_found(shards):
    known = templates_of(6, 3)
    names = ["pairs", "clusters", "tally", "tables", "counted", "edges", "cannot"]
    templates = [known[name] for name in names]
    size = sum(template.size for template in templates)
    model = Model(templates, np.random.default_rng(2).integers(-3, 4, size) / 4.0)
    best = max(allowed_worlds(model, 6)[1])
    walk, scores = walk_along(graph_of(6, 3, 1.0), model), []
    for seed in range(4):
        executor = LocalExecutor(1)
        rows = shard_walk(walk, shards, seed)
        sharding = Sharding(shards, "random")  # all are linked with all: guided ones would always meet
        found = search_shards(executor, rows, LinkSearch(), sharding, model=shard_model(walk), seed=seed)
        world = Partition.from_keys(entities_of(executor, 6))
        assert found.score == pytest.approx(model.score(world), abs=1e-6)
        scores.append(found.score)
    assert max(scores) == pytest.approx(best)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_that_died_in_a_round_goes_on_to_the_same_bits(name, threads, tmp_path):
    given = PROBLEMS[name]()
    wanted, undisturbed = run(given, LocalExecutor(1), 3)
    keeping = ShardKeeping(ShardStore(str(tmp_path)), "this run", 2)

    def dying(parts, step, model):
        if (step.round, step.shard) == (3, 1):
            raise SystemExit(137)
        return step_shard(parts, step, model)

    with pytest.raises(SystemExit):
        given.search(LocalExecutor(threads), 3, keeping=keeping, function=dying)
    executor, told = LocalExecutor(threads), []
    found = given.search(executor, None, count=3, keeping=keeping, watch=told.append)
    assert told[0].round == 3
    assert digest(executor, given.walk.n_items) == wanted
    assert (found.rounds, found.reason) == (undisturbed.rounds, undisturbed.reason)
    assert found.score == pytest.approx(undisturbed.score)


def test_links_go_into_the_rows_and_all_other_templates_are_shared():
    given = own_templates()
    model = shard_model(given.walk)
    assert model.links == LinkWeights(-0.25, 0.125)
    assert [template.name for template in model.further.templates] == ["names", "years", "not linked"]
    assert model.further.weights.tolist() == [-1.5, -2.0, -3.0]
    rows = shard_walk(given.walk, 3, 1)
    assert sum(int(np.isneginf(part.score).sum()) for part in rows) == 10  # five pairs, from both ends
    assert any(part.sources.any() for part in rows)
    assert sum(walk_of(part, model).score for part in rows) == pytest.approx(given.walk.score)


def test_without_scores_of_links_the_whole_model_is_shared():
    given = topic()
    assert shard_model(given.walk) == ShardModel(None, given.walk.model)
    rows = shard_walk(given.walk, 3, 1)
    assert all((part.score == 1.0).all() for part in rows)
    model = shard_model(given.walk)
    assert sum(walk_of(part, model).score for part in rows) == pytest.approx(given.walk.score)


def test_what_links_are_worth_guides_entities():
    links, model = graph_of(30, 1, 0.1), Model([ClusterSize()], [-1.0, 0.0])
    worth = np.arange(len(links.first)) - 3.0
    (rows,) = shard_walk(walk_along(links, model, worth=worth), 1, 0)
    assert sorted(rows.score.tolist()) == sorted([*worth.tolist(), *worth.tolist()])


def test_shards_that_nothing_scores_are_refused():
    rows = shard_walk(own_templates().walk, 2, 0)
    with pytest.raises(InvalidArgumentError, match=r"nothing scores the shards: give ShardModel\(links="):
        search_shards(LocalExecutor(1), rows, LONG, Sharding(2), model=ShardModel(None), seed=0)


class Silent(ClusterSize):
    """A template that does not say what it is for some items."""

    restrict_to = Template.restrict_to


def test_a_template_that_cannot_be_restricted_is_refused_with_what_to_write():
    walk = walk_along(graph_of(10), Model([Silent()], [0.5, 0.5]))
    with pytest.raises(TemplateError, match=r"give it a method restrict_to\(items\)"):
        search_shards(
            LocalExecutor(1), shard_walk(walk, 2, 0), LONG, Sharding(2), model=shard_model(walk), seed=0
        )


def test_mentions_are_linked_with_those_that_are_like_them_or_near():
    text = "< Ann Lee >PER/NAM/0 met < Bob >PER/NAM/1 . < She >PER/PRO/0 saw < Lee >PER/NAM/0 ."
    model = discourse_model(discourse(text, "< Ann Lee >PER/NAM/0 left .", scope="topic"))
    links = link_mentions(model.templates[0].table)
    pairs = set(zip(links.first.tolist(), links.second.tolist(), strict=True))
    assert {(0, 3), (0, 4), (3, 4)} <= pairs
    assert (1, 4) not in pairs


def test_a_topic_is_resolved_in_shards_as_by_one_call():
    model = topic().walk.model
    found = [search_in_shards(model, LocalExecutor(threads), Sharding(3), seed=2) for threads in (1, 2)]
    assert found[0].tolist() == found[1].tolist()
    assert b_cubed(topic().truth.tolist(), found[0].tolist()).f1 > 0.8
    with pytest.raises(InvalidArgumentError, match="no table of pairs: give what discourse_model returns"):
        walk_mentions(Model([ClusterSize()]))
