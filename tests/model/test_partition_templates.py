"""Templates over clusterings: what a diff touches, what the statistics mean, what is refused."""

from itertools import combinations

import numpy as np
import pytest

from factorwise.errors import InvalidArgumentError, ShapeError, TemplateCheckError, TemplateError
from factorwise.model.model import Model
from factorwise.model.templates import (
    ClusterSize,
    ClusterTemplate,
    EdgeTemplate,
    PairTemplate,
    VectorPairTemplate,
)
from factorwise.model.weights import SparseVector
from factorwise.rng import Stream
from factorwise.testing import check_template
from factorwise.testing.templates import random_diff
from factorwise.variables.fields import Fields
from factorwise.world.diff import Retype
from factorwise.world.partition import Partition
from partition_cases import PAIR_SETS, TEMPLATES, fields_for, same_name, squared, start_for, year_distance

N = 8
FIELDS = fields_for(N)


@pytest.mark.parametrize("n_types", [1, 3])
@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_of_the_library_says_rightly_what_a_diff_touches(name, n_types):
    check_template(TEMPLATES[name](FIELDS), start_for(N, n_types), steps=60)


class Forgetful(PairTemplate):
    """Forgets the pairs that a merge or a split separates: right as long as whole clusters move."""

    def difference(self, world, diff):
        if isinstance(diff, Retype):
            return SparseVector.empty()
        moving = np.array(diff.items)
        target = world.members(diff.target) if diff.target >= 0 else moving[:0]
        return SparseVector.from_dense(self.between(moving, target))


def first_wrong_step(template, world, seed):
    """The step at which a pair of bias 1 is left out, found without the template's own sums."""
    stream = Stream(seed)
    for step in range(200):
        diff = random_diff(stream, world)
        if not isinstance(diff, Retype) and len(diff.items) < world.size_of(diff.source):
            return step, diff
        world = world.after(diff)
    return None


@pytest.mark.parametrize("seed", range(5))
def test_a_template_that_forgets_factors_is_caught_at_the_first_wrong_diff(seed):
    template = Forgetful("mine", FIELDS, same_name, ["same name", "flags", "bias"])
    world = Partition.singletons(N)
    step, diff = first_wrong_step(template, world.copy(), seed)
    with pytest.raises(TemplateCheckError) as caught:
        check_template(template, world, seed=seed)
    message = str(caught.value)
    assert "template 'mine' (Forgetful) is wrong" in message
    assert f"at step {step} about {diff} in Partition({N} items" in message
    assert "mine: bias: says " in message
    assert "brute force finds -" in message
    assert "left out or counted twice" in message


class Careless(ClusterSize):
    """Wrong about types only."""

    def difference(self, world, diff):
        if isinstance(diff, Retype):
            return SparseVector.of([1], [1.0])
        return super().difference(world, diff)


class Constrained(ClusterSize):
    """No cluster of more than three; ``slip`` is added to what it says."""

    def __init__(self, slip=0.0):
        super().__init__("constrained")
        self.slip = slip

    def constant(self, world):
        return -np.inf if max(len(members) for members in world.clusters()) > 3 else 0.25 * world.n_clusters

    def constant_gain(self, world, diff):
        after = self.constant(world.after(diff))
        return after if after == -np.inf else after - self.constant(world) + self.slip


class Meddling(ClusterSize):
    """Right, but it changes the world it looks at."""

    def difference(self, world, diff):
        said = super().difference(world, diff)
        world.apply(diff)
        return said


def test_what_is_wrong_only_for_types_is_caught_in_typed_worlds_only():
    check_template(Careless(), Partition.singletons(N))
    with pytest.raises(TemplateCheckError, match=r"Retype.*singletons: says 1, brute force finds 0"):
        check_template(Careless(), Partition.singletons(N, n_types=2))


def test_constants_are_compared_and_forbidden_worlds_not_entered():
    check_template(Constrained(), Partition.singletons(N))
    with pytest.raises(TemplateCheckError, match=r"constant: says -?[0-9.]+, brute force finds"):
        check_template(Constrained(0.5), Partition.singletons(N))


def test_a_template_that_changes_the_world_is_caught():
    with pytest.raises(TemplateCheckError, match="changed the world it was given"):
        check_template(Meddling(), Partition.singletons(N))


def test_the_check_is_an_assertion_of_the_library():
    assert issubclass(TemplateCheckError, AssertionError)


@pytest.mark.parametrize("kind", ["pairs", "vectors", "edges"])
def test_repulsion_counts_all_pairs_but_those_within(kind):
    world = start_for(N)
    everything = Partition.from_labels(np.zeros(N, int))
    fields, edges = FIELDS, [*combinations(range(N), 2)][::2]
    features = np.random.default_rng(3).normal(size=(len(edges), 2))
    together, apart = (
        {
            "pairs": lambda r: PairTemplate("t", fields, year_distance, ["d", "s"], repels=r),
            "vectors": lambda r: VectorPairTemplate("t", fields, "vector", squared, repels=r),
            "edges": lambda r: EdgeTemplate("t", N, edges, features, ["a", "b"], repels=r),
        }[kind](repels)
        for repels in (False, True)
    )
    size = together.size
    expected = together.statistics(everything).to_dense(size) - together.statistics(world).to_dense(size)
    np.testing.assert_allclose(apart.statistics(world).to_dense(size), expected, rtol=1e-9, atol=1e-9)
    assert apart.statistics(everything).to_dense(size) == pytest.approx(np.zeros(size))


@pytest.mark.parametrize("name", ["numbers", "reals", "vectors", "repelling pairs", "repelling vectors"])
def test_statistics_of_large_clusters_are_those_of_the_plain_sum(name, monkeypatch):
    """Beyond a number of pairs the sum over a world is compiled."""
    template, world = PAIR_SETS[name](fields_for(40)), start_for(40)
    plain = template.statistics(world).to_dense(template.size)
    monkeypatch.setattr("factorwise.model.clusterings.partition_templates.MANY_PAIRS", 0)
    fast = template.statistics(world).to_dense(template.size)
    np.testing.assert_allclose(fast, plain, rtol=1e-5, atol=1e-4)


def test_cluster_sizes_count_clusters_and_singletons():
    template = ClusterSize()
    assert template.statistics(Partition.from_labels([0, 0, 1, 2])).to_dense(2).tolist() == [3.0, 2.0]
    assert [template.weight_name(k) for k in range(2)] == [
        "cluster size: clusters",
        "cluster size: singletons",
    ]


def test_pairs_sum_over_the_pairs_within_clusters():
    world = Partition.from_labels([0, 0, 0, 1, 1, 2, 2, 2])
    expected = np.sum(
        [
            same_name(FIELDS.record(i), FIELDS.record(j))
            for i, j in combinations(range(N), 2)
            if world.labels[i] == world.labels[j]
        ],
        axis=0,
    )
    template = PairTemplate("p", FIELDS, same_name, ["same", "flags", "bias"])
    np.testing.assert_allclose(template.statistics(world).to_dense(3), expected)
    assert template.weight_name(2) == "p: bias"


def test_a_model_adds_its_templates_up():
    world = start_for(N)
    templates = [TEMPLATES[name](FIELDS) for name in ("numbers", "edges", "sizes")]
    model = Model(templates, np.arange(7.0))
    parts = [t.statistics(world).to_dense(t.size) for t in templates]
    assert model.score(world) == pytest.approx(np.concatenate(parts) @ np.arange(7.0))


def pair(function, names=("a", "b"), fields=FIELDS):
    return PairTemplate("mine", fields, function, list(names))


def cluster(function, names=("a", "b")):
    return ClusterTemplate("mine", FIELDS, function, list(names))


BAD_FUNCTIONS = {
    "a pair too short": (lambda: pair(lambda a, b: (1.0,)), "declares 2 statistics.*return a tuple of 2"),
    "a pair too long": (lambda: pair(lambda a, b: (1.0, 2.0, 3.0)), "return a tuple of 2 numbers"),
    "a bare number": (lambda: pair(lambda a, b: 1.0, ["a"]), "return a tuple of 1 numbers"),
    "a list": (lambda: pair(lambda a, b: [1.0, 2.0]), "return a tuple of 2"),
    "nothing": (lambda: pair(lambda a, b: None), "returned None"),
    "not a number": (lambda: pair(lambda a, b: (1.0, float("nan"))), "statistics must be finite numbers"),
    "infinity": (lambda: pair(lambda a, b: (1.0, float("inf"))), "statistics must be finite numbers"),
    "a string": (lambda: pair(lambda a, b: (1.0, "x")), "statistics must be finite numbers"),
    "an order": (lambda: pair(lambda a, b: (a.year - b.year, 1)), "its function must be symmetric"),
    "a cluster too short": (lambda: cluster(lambda c: (1.0,)), "return a tuple of 2"),
    "a cluster of nan": (lambda: cluster(lambda c: (1.0, np.nan)), "statistics must be finite numbers"),
}


@pytest.mark.parametrize("name", BAD_FUNCTIONS)
def test_functions_that_return_what_they_must_not_are_told_so(name):
    build, message = BAD_FUNCTIONS[name]
    with pytest.raises(TemplateError, match=message):
        build()


def test_functions_that_go_wrong_later_are_told_so_too():
    late = Fields(year=[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    template = PairTemplate("late", late, lambda a, b: (a.year * b.year if a.year != 1.0 else np.nan,), ["x"])
    with pytest.raises(TemplateError, match=r"'late' returned .* for Record"):
        template.statistics(Partition.from_labels([0] * 6))


EDGES = [(0, 1), (1, 2)]
BAD_TEMPLATES = {
    "no statistics": (
        lambda: pair(lambda a, b: (), []),
        InvalidArgumentError,
        "needs names for its statistics",
    ),
    "a plain field as a vector": (
        lambda: VectorPairTemplate("v", FIELDS, "year", squared),
        ShapeError,
        "use PairTemplate",
    ),
    "a vector that is not there": (
        lambda: VectorPairTemplate("v", FIELDS, "nowhere", squared),
        InvalidArgumentError,
        "no field is called 'nowhere'",
    ),
    "features of another shape": (
        lambda: EdgeTemplate("e", 3, EDGES, [[1.0]], ["a"]),
        ShapeError,
        r"need features of shape \(2, 1\)",
    ),
    "a feature that is not finite": (
        lambda: EdgeTemplate("e", 3, EDGES, [[1.0], [np.nan]], ["a"]),
        InvalidArgumentError,
        "feature 'a' of edge 1 is nan",
    ),
    "an edge to nowhere": (
        lambda: EdgeTemplate("e", 2, EDGES, [[1.0], [1.0]], ["a"]),
        ShapeError,
        "edges must be numbers from 0 to 1, but entry 3 is 2",
    ),
    "an edge to itself": (
        lambda: EdgeTemplate("e", 3, [(1, 1)], [[1.0]], ["a"]),
        InvalidArgumentError,
        "two different items",
    ),
    "an edge twice": (
        lambda: EdgeTemplate("e", 3, [(0, 1), (1, 0)], [[1.0], [1.0]], ["a"]),
        InvalidArgumentError,
        "each pair must be listed once",
    ),
}


@pytest.mark.parametrize("name", BAD_TEMPLATES)
def test_bad_templates_are_refused_with_a_remedy(name):
    build, error, message = BAD_TEMPLATES[name]
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize("name", ["numbers", "edges", "clusters", "counts"])
def test_a_world_of_other_items_is_refused(name):
    with pytest.raises(ShapeError, match="8 items, but the world has 3: build both from the same records"):
        TEMPLATES[name](FIELDS).statistics(Partition.singletons(3))


def test_an_edge_template_without_edges_scores_nothing():
    template = EdgeTemplate("e", N, [], np.zeros((0, 1)), ["a"])
    world = start_for(N)
    assert len(template.statistics(world).index) == 0
    assert len(template.difference(world, random_diff(Stream(0), world)).index) == 0


def test_a_pair_function_must_be_finite_for_an_item_with_itself():
    fields = Fields(x=[1.0, 2.0, 3.0])
    with pytest.raises(TemplateError, match="statistics must be finite numbers"):
        PairTemplate(
            "nearness", fields, lambda a, b: (1.0 / abs(a.x - b.x) if a.x != b.x else float("inf"),), ["near"]
        )


@pytest.mark.parametrize(
    "function",
    [lambda a, b: (1.0 / abs(a.x - b.x),), lambda a, b: (a.y == b.y,), lambda a: (1.0,)],
    ids=["undefined for an item with itself", "no such field", "one argument"],
)
def test_what_goes_wrong_in_a_users_function_is_told_with_its_template(function):
    with pytest.raises(
        TemplateError, match=r"the function of template 'mine' failed for .*fields are attributes"
    ):
        PairTemplate("mine", Fields(x=[1.0, 2.0, 3.0]), function, ["it"])
