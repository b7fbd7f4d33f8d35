"""Models that are no links models, to be searched in shards; workers of a cluster import them by name."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from coreference_cases import discourse
from factorwise.apps.coreference.resolution import discourse_model, training_world
from factorwise.apps.coreference.sharded import walk_mentions
from factorwise.distributed import Sharding, search_shards, shard_model, shard_walk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.inference.mcmc.shards.sharded_walk import ShardedWalk, walk_along
from factorwise.learning.samplerank.learner import SampleRank
from factorwise.model.clusterings.link_templates import CannotLinkTemplate, LinkTemplate, OnePerSourceTemplate
from factorwise.model.model import Model
from factorwise.model.templates import ClusterTemplate, TallyTemplate
from factorwise.variables.bags import Bags
from factorwise.variables.fields import Fields
from shard_cases import planted

SHORT = LinkSearch(rounds=6, sweeps=1, extra=2)
SURNAMES = ("Lee", "Ray", "Fox", "Orr", "Hay", "Kim", "Dix", "Poe")
TOWNS = ("Rome", "Oslo", "Bonn", "Lima")


def beyond_first(count):
    return count > 0


def further_names(total, size):
    return max(0.0, total - 1.0)


def long_span(cluster):
    return (cluster.year.max() - cluster.year.min() > 4, cluster.size > 6)


class Problem(NamedTuple):
    """A walk to be cut into shards."""

    walk: ShardedWalk
    truth: np.ndarray

    def search(self, executor, shards, *, search=SHORT, exchange="guided", seed=1, **more):
        """Search from every item by itself; ``shards`` may be None to resume a run of ``more``'s keeping."""
        count = more.pop("count", shards)
        return search_shards(
            executor,
            None if shards is None else shard_walk(self.walk, shards, seed),
            search,
            Sharding(count, exchange),
            model=shard_model(self.walk),
            seed=seed,
            **more,
        )


@cache
def own_templates(n=240):
    """Linked items of which templates of a user's own know names and years, beside scores of links."""
    given, rng = planted(n), np.random.default_rng(5)
    name = np.where(rng.random(n) < 0.8, given.truth % 40, rng.integers(0, 40, n))
    year = 1990 + given.truth % 17 + rng.integers(0, 3, n)
    pairs = given.graph.first, given.graph.second
    other = np.flatnonzero(given.truth[pairs[0]] != given.truth[pairs[1]])[:5]
    links = LinkTemplate("links", n, given.graph, features=np.round(4.0 * given.scores)[:, None] / 4.0)
    templates = [
        links,
        TallyTemplate(
            "names",
            Bags.from_lists([[number] for number in name.tolist()]),
            beyond_first,
            further_names,
            ["names beyond one"],
        ),
        ClusterTemplate("years", Fields(year=year), long_span, ["long span", "many"]),
        OnePerSourceTemplate("sources", np.where(rng.random(n) < 0.2, 1 << rng.integers(0, 9, n), 0)),
        CannotLinkTemplate("linked", n, np.column_stack(pairs)[other]),
        CannotLinkTemplate("not linked", n, [(0, n - 1), (3, 5)]),
    ]
    weights = {"links": [-0.25, 0.125, 0.0, 1.0], "names": [-1.5], "years": [-2.0, -3.0]}
    return Problem(walk_along(given.graph, Model(templates, weights)), given.truth)


def topic_text(number):
    """A document of a topic: two people and a town, by names, nominals and pronouns."""
    one, two = SURNAMES[number % 8], SURNAMES[(number * 3 + 1) % 8]
    town = TOWNS[number % 4]
    return (
        f"< Ann {one} >PER/NAM/{one} met < Bob {two} >PER/NAM/{two} in < {town} >LOC/NAM/{town} ."
        f" < {two} >PER/NAM/{two} likes < {one} >PER/NAM/{one} . < She >PER/PRO/{one} left"
        f" < {town} >LOC/NAM/{town} ."
    )


@cache
def topic(documents=12):
    """The mentions of a topic under the model of the coreference resolver, with learned weights."""
    lesson = discourse(*(topic_text(number) for number in range(5)), scope="topic")
    world = training_world(lesson)
    learned = SampleRank().fit([world], passes=2, steps=400, seed=3, progress=False)
    given = discourse(*(topic_text(number + 1) for number in range(documents)), scope="topic")
    model = discourse_model(given)
    model.weights = np.round(learned.weights, 6)
    return Problem(walk_mentions(model), given.truth())


PROBLEMS = {"own templates": own_templates, "topic": topic}
