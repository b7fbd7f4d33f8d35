"""The compiled scores of a model over clusterings against the plain sums of its templates."""

from functools import cache

import numpy as np
import pytest

from factorwise.errors import ShapeError, TemplateError
from factorwise.inference.mcmc.partition_engine import PartitionEngine
from factorwise.inference.mcmc.partition_gibbs import PartitionGibbs
from factorwise.kernels.clusterings.partition_gains import pair_score, score_slots
from factorwise.kernels.compile.compiler import exposed
from factorwise.model.model import Model
from factorwise.model.partition_program import PartitionProgram
from factorwise.model.template import Template
from factorwise.model.templates import ClusterTemplate, EdgeTemplate, PairTemplate
from factorwise.variables.fields import Fields
from factorwise.world.diff import Transfer
from factorwise.world.partition import Partition
from partition_cases import CLUSTER_SETS, MODELS, PAIR_SETS, TEMPLATES, fields_for, model_of

N = 45  # clusters of more than one vector register, and of more than one stride
FUNCTIONS = [name for name in TEMPLATES if "edges" not in name]
CLOSE = {"rtol": 1e-5, "atol": 1e-4}
score_of_pairs = exposed(pair_score)
score_of_slots = exposed(score_slots)


@cache
def program_of(names):
    return PartitionProgram(model_of(names, N), N)


def worlds():
    """A large cluster with small ones, all apart, and all together; some typed."""
    rng = np.random.default_rng(5)
    labels = np.minimum(rng.integers(0, 60, N), 9)
    labels = np.unique(labels, return_inverse=True)[1]
    yield Partition.from_labels(labels, types=np.arange(labels.max() + 1) % 3, n_types=3)
    yield Partition.singletons(N)
    yield Partition.from_labels(np.zeros(N, int), types=[1], n_types=2)


def engine_on(program, world):
    """An engine holds the fields laid out by slot as the kernels want them."""
    return PartitionEngine(PartitionGibbs(program.model), world, program=program, score=0.0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_statistics_are_the_plain_ones(name):
    program = program_of((name,))
    template = program.model.templates[0]
    for world in worlds():
        expected = template.statistics(world).to_dense(template.size)
        if name.startswith("repelling"):  # within clusters, with a minus
            together = Partition.from_labels(np.zeros(N, int))
            expected -= template.statistics(Partition.singletons(N)).to_dense(template.size)
            assert (template.statistics(together).to_dense(template.size) == 0).all()
        np.testing.assert_allclose(program.world_statistics(world), expected, **CLOSE)


@pytest.mark.parametrize(
    "case", [*((name,) for name in PAIR_SETS if "edges" not in name), MODELS["everything"]], ids=" ".join
)
def test_compiled_pair_gains_are_the_plain_ones(case):
    program = program_of(case)
    pairs = Model([t for t in program.model.templates if isinstance(t, PairTemplate)])
    weights = [program.model.block(t.name) for t in pairs.templates]
    pairs.weights = np.concatenate(weights)
    world = next(worlds())
    engine = engine_on(program, world)
    p, h = engine._world.arrays, engine._storage
    largest = max(world.cluster_ids().tolist(), key=world.size_of)
    rng = np.random.default_rng(0)
    for _ in range(12):
        item = int(rng.integers(N))
        source = world.cluster_of(item)
        target = (
            largest
            if source != largest
            else int(rng.choice([c for c in world.cluster_ids() if c != largest]))
        )
        spans = [
            (int(p.clusters["start"][c]), int(p.clusters["start"][c] + p.clusters["size"][c]))
            for c in (target, source)
        ]
        slot = int(p.items["slot"][item])
        fast = score_of_pairs(h, program.gains.pair_gain, *spans[0], *spans[1], slot, 1)
        plain = pairs.gain(world, Transfer((item,), source, target))
        assert fast == pytest.approx(plain, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("case", [*((name,) for name in CLUSTER_SETS), MODELS["everything"]], ids=" ".join)
def test_compiled_cluster_scores_are_the_plain_ones(case):
    program = program_of(case)
    for world in worlds():
        engine = engine_on(program, world)
        p, h = engine._world.arrays, engine._storage
        for cluster in world.cluster_ids().tolist():
            lo = int(p.clusters["start"][cluster])
            fast = score_of_slots(
                h, program.gains.cluster_score, lo, lo + world.size_of(cluster), world.type_of(cluster)
            )
            plain = sum(
                template.of(world.members(cluster), world.type_of(cluster))
                @ program.model.block(template.name)
                for template in program.model.templates
                if isinstance(template, ClusterTemplate)
            )
            assert fast == pytest.approx(plain, rel=1e-5, abs=1e-4)
            assert p.clusters["value"][cluster] == pytest.approx(plain, rel=1e-5, abs=1e-4)


def test_edges_carry_their_score_from_both_ends():
    model = model_of(("edges", "repelling edges"), 6)
    program = PartitionProgram(model, 6)
    edges, repelling = model.templates
    expected = np.zeros((6, 6))
    for template, sign in ((edges, 1.0), (repelling, -1.0)):
        for (i, j), score in zip(template.edges, template.features @ model.block(template.name), strict=True):
            expected[i, j] += sign * score
            expected[j, i] += sign * score
    found = np.zeros((6, 6))
    for item in range(6):
        for k in range(program.edge_start[item], program.edge_start[item + 1]):
            found[item, program.edge_neighbor[k]] += program.edge_score[k]
    np.testing.assert_allclose(found, expected)
    assert program.gains.pair_gain is None
    assert program.gains.cluster_score is None


def bias(a, b):
    return (1.0,)


def weighed(a, b):
    return (a.weight * b.weight,)


def test_fields_of_the_same_name_from_two_tables_are_kept_apart():
    first, second = (Fields(weight=np.arange(5) + shift) for shift in (0, 10))
    templates = [PairTemplate("one", first, weighed, ["w"]), PairTemplate("two", second, weighed, ["w"])]
    program = PartitionProgram(Model([*templates, PairTemplate("bias", first, bias, ["b"])]), 5)
    world = Partition.from_labels([0, 0, 0, 1, 1])
    expected = np.concatenate([t.statistics(world).to_dense(1) for t in program.model.templates])
    np.testing.assert_allclose(program.world_statistics(world), expected)
    assert program.ints.shape == (5, 2)


def test_only_the_fields_that_are_read_are_laid_out_and_each_once():
    fields = fields_for(5)
    program = PartitionProgram(Model([TEMPLATES[name](fields) for name in ("numbers", "typed", "rows")]), 5)
    assert program.ints.shape[1] == 2 + 3  # name and flag, three co-authors
    assert program.reals.shape[1] == 0


class OwnTemplate(Template):
    """A user's template without a compiled form."""

    name = "own"
    size = 1


def test_a_template_without_a_compiled_form_is_named():
    with pytest.raises(TemplateError, match=r"'own' \(OwnTemplate\) has no compiled form.*engine='plain'"):
        PartitionProgram(Model([OwnTemplate()]), 3)


@pytest.mark.parametrize("name", ["numbers", "edges", "clusters", "mean of pairs", "vectors"])
def test_templates_for_other_items_are_refused(name):
    with pytest.raises(ShapeError, match="5 items, but the world has 4: build both from the same records"):
        PartitionProgram(Model([TEMPLATES[name](fields_for(5))]), 4)


def test_edge_scores_follow_the_weights_of_the_model():
    edges = EdgeTemplate("links", 3, [(0, 1), (1, 2)], [[1.0], [2.0]], ["strength"])
    model = Model([edges], [1.0])
    program = PartitionProgram(model, 3)
    assert sorted(program.edge_score.tolist()) == [1.0, 1.0, 2.0, 2.0]
    model.weights = [3.0]
    assert sorted(program.edge_score.tolist()) == [3.0, 3.0, 6.0, 6.0]
