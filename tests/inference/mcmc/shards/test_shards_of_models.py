"""Walks in shards under every template over clusterings: gains, threads, and shards by themselves."""

import numpy as np
import pytest

from factorwise.errors import NoCompiledFormError, ShapeError
from factorwise.inference.mcmc.shards import search as linkage_search
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.inference.mcmc.shards.sharded_walk import walk_along
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.compile.threads import Team
from factorwise.model.model import Model
from factorwise.model.template import Template
from factorwise.model.weights import SparseVector
from factorwise.world.partition import Partition
from restriction_cases import graph_of, templates_of

N = 40
NAMES = [name for name in templates_of(6) if name not in ("sources", "cannot")]


def model_of(names, n=N, seed=0):
    """Weights in quarters, so that sums are exact in single precision."""
    known = templates_of(n, seed)
    templates = [known[name] for name in names]
    size = sum(template.size for template in templates)
    return Model(templates, np.random.default_rng(seed).integers(-3, 4, size) / 4.0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("strict", [True, False])
def test_gains_are_those_of_the_model_and_threads_do_not_matter(name, strict):
    model, found = model_of([name, "sources"]), []
    for threads in (1, 2):
        walk = walk_along(graph_of(N, 3, 0.2), model, strict=strict)
        with Team(threads) as team:
            for number in range(3):
                walk.lay_out(walk.labels.astype(np.int64) * 4 // N)
                before = walk.score
                gain = walk.sweep(5, number, 0.7, team=team, jumps=1.0)
                assert walk.score == pytest.approx(before + gain, abs=1e-4)
        found.append((walk.labels.tolist(), walk.proposals, walk.changes))
    assert found[0] == found[1]
    assert found[0][2] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_shard_does_what_the_model_of_its_items_would_do_by_itself(name):
    """Without jumps: a link into another shard costs one."""
    model, links = model_of([name, "cannot"]), graph_of(N, 3, 0.2)
    home = np.arange(N) % 3
    together, clusters = walk_along(links, model), np.zeros(N, np.int64)
    together.lay_out(home)
    for number in range(3):
        together.sweep(2, number, 0.5, team=Team(1), jumps=0.0)
    for shard in range(3):
        items = np.flatnonzero(home == shard)
        alone = walk_along(links.restrict_to(items)[0], model.restrict_to(items))
        alone.lay_out(np.full(len(items), shard))  # empty shards stand before: its number tells its stream
        for number in range(3):
            alone.sweep(2, number, 0.5, team=Team(1), jumps=0.0)
        clusters[items] = items[alone.labels]
    assert clusters.tolist() == together.labels.tolist()
    assert together.n_clusters < N


def test_a_search_under_any_model_is_the_same_in_any_number_of_threads_and_taken_up_again(monkeypatch):
    monkeypatch.setattr(linkage_search, "ITEMS_PER_SHARD", 10)
    model, links = model_of(["pairs", "clusters", "tally", "sources"]), graph_of(N, 3, 0.1)
    search, ends, kept = LinkSearch(rounds=5, extra=1), [], []
    for threads in (1, 2):
        walk = walk_along(links, model)
        with Team(threads) as team:
            found = search.run(walk, seed=4, team=team, keep=kept.append)
        ends.append((found, walk.labels.tolist()))
        assert found.score == pytest.approx(walk.score, abs=1e-4)
    assert ends[0] == ends[1]
    again = walk_along(links, model)
    assert search.run(again, seed=4, team=Team(1), resume=kept[2]) == found
    assert again.labels.tolist() == walk.labels.tolist()


def test_further_templates_stand_beside_scores_of_links():
    links, further = graph_of(N, 3, 0.2), model_of(["clusters", "distinct"])
    scores = np.random.default_rng(1).integers(-8, 9, len(links.first)) / 4.0
    walk = LinkWalk(links, scores, unlinked=-0.25, cluster=0.5, further=further)
    plain = LinkWalk(links, scores, unlinked=-0.25, cluster=0.5)
    walk.sweep(1, 0, 0.5, team=Team(1))
    plain.place_items(walk.labels)
    assert walk.score == pytest.approx(plain.score + further.score(Partition.from_keys(walk.labels)))
    assert walk.copy().score == walk.score


def test_worth_is_of_every_link():
    links, model = graph_of(N), model_of(["pairs"])
    with pytest.raises(ShapeError, match="links need a worth each"):
        walk_along(links, model, worth=[1.0])
    assert walk_along(links, model).link_worth.tolist() == [1.0] * len(links.first)


def test_templates_that_only_have_gradients_are_refused():
    class Steep(Template):
        name, size = "steep", 1

        def statistics(self, world):
            return SparseVector.empty()

        def program(self, world, offset, weights):
            def steep_gradient(world, mine, move, gradient):
                gradient.value[0] += 1.0

            return Program(gradient=steep_gradient, name="steep")

    walk = walk_along(graph_of(N), Model([Steep()]))
    with pytest.raises(
        NoCompiledFormError, match=r"steep compute changes .* function gains\(world, mine, move"
    ):
        walk.sweep(0, 0, 1.0, team=Team(1))
