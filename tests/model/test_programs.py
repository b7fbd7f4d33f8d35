"""The compiled programs of templates over clusterings against the definitions of the templates."""

import numpy as np
import pytest

from factorwise.errors import ShapeError, TemplateError
from factorwise.kernels.clusterings.tables import MANY
from factorwise.kernels.compile.binding import Bound
from factorwise.kernels.walks.frames import make_frame, run
from factorwise.model.clusterings.program import PartitionProgram
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.model.template import Template
from factorwise.model.templates import EdgeTemplate, PairTableTemplate, PairTemplate
from factorwise.variables.fields import Fields
from factorwise.variables.pair_table import PairTable
from factorwise.world.partition import Partition
from partition_cases import MODELS, PAIR_SETS, TEMPLATES, fields_for, model_of
from walk_cases import EVERY, mixed_model, table_for

N = 45  # clusters of more than one vector register, and of more than one stride
CLOSE = {"rtol": 1e-5, "atol": 1e-4}  # fields are in single precision


class Compiled:
    """The programs of a model in a world, one change at a time."""

    def __init__(self, model, world):
        self.model, self.world = model, world.copy()
        programs = model_programs(model, self.world)
        self.world.arrays = programs.arrays
        ids = len(self.world.arrays.size)
        size = model.blocks.size
        self.frame = make_frame(
            programs.arrays, np.zeros(2, np.uint64), weights=size, choices=ids, targets=ids
        )
        self.templates = [Bound(program, self.frame) for program in programs.templates]
        self.changer = Bound(self.world.program(), self.frame)
        for bound in self.templates:
            run(bound, "begin")

    def take(self, item, target):
        step = self.frame.step
        step["item"], step["source"], step["target"] = item, self.world.labels[item], target
        return self.world.diff_to(item, int(self.world.labels[item]), target)

    def gain(self):
        return sum(run(bound, "gain") for bound in self.templates)

    def gradient(self):
        self.frame.gradient.value[:] = 0.0
        for bound in self.templates:
            run(bound, "gradient")
        return self.frame.gradient.value.copy()

    def gains(self, targets):
        choice = self.frame.choice
        self.frame.step["choices"] = len(targets)
        choice.targets[: len(targets)], choice.out[: len(targets)] = targets, 0.0
        choice.place[targets] = np.arange(1, len(targets) + 1)
        for bound in self.templates:
            run(bound, "gains")
        choice.place[:] = 0
        return choice.out[: len(targets)].copy()

    def apply(self):
        run(self.changer, "apply")
        for bound in self.templates:
            run(bound, "applied")

    def totals(self):
        self.frame.gradient.value[:] = 0.0
        for bound in self.templates:
            run(bound, "totals")
        return self.frame.gradient.value.copy()


def worlds():
    """A large cluster with small ones, all apart, and all together; some typed."""
    rng = np.random.default_rng(5)
    labels = np.minimum(rng.integers(0, 60, N), 9)
    labels = np.unique(labels, return_inverse=True)[1]
    yield Partition.from_labels(labels, types=np.arange(labels.max() + 1) % 3, n_types=3)
    yield Partition.singletons(N)
    yield Partition.from_labels(np.zeros(N, int), types=[1], n_types=2)


def assert_changes_are_right(compiled, rng, changes, gains=True):
    """Gains, gradients and choices of random changes, of which some are made and some taken back."""
    world, model = compiled.world, compiled.model
    for number in range(changes):
        item = int(rng.integers(world.n_items))
        source = int(world.labels[item])
        spare = int(world.arrays.live[world.n_clusters])
        world.arrays.type[spare] = rng.integers(world.n_types)
        others = [c for c in world.cluster_ids().tolist() if c != source]
        targets = others + [spare] * (world.size_of(source) > 1)
        target = int(rng.choice(targets))
        diff = compiled.take(item, target)
        expected = model.difference(world, diff).to_dense(model.blocks.size)
        np.testing.assert_allclose(compiled.gradient(), expected, **CLOSE)
        if gains:
            np.testing.assert_allclose(compiled.gain(), model.gain(world, diff), **CLOSE)
            out = compiled.gains([source, *targets])
            plain = [model.gain(world, world.diff_to(item, source, t)) for t in targets]
            np.testing.assert_allclose(out[1:] - out[0], plain, rtol=1e-4, atol=1e-3)
            compiled.take(item, target)
        if number % 3:
            compiled.apply()
        if number % 3 == 2:
            compiled.take(item, source)
            compiled.apply()


ALONE = [*((name,) for name in TEMPLATES), MODELS["everything"]]


@pytest.mark.parametrize("names", ALONE, ids=" ".join)
def test_gains_and_gradients_are_those_of_the_definitions(names):
    for world in worlds():
        if world.n_types < 2 and "typed" in names:
            continue
        assert_changes_are_right(Compiled(model_of(names, N), world), np.random.default_rng(1), 12)


@pytest.mark.parametrize("names", [(name,) for name in TEMPLATES if "edges" not in name], ids=" ".join)
def test_totals_are_the_statistics_of_the_world(names):
    model = model_of(names, N)
    (template,) = model.templates
    for world in worlds():
        expected = template.statistics(world).to_dense(template.size)
        if names[0].startswith("repelling"):  # within clusters, with a minus
            expected -= template.statistics(Partition.singletons(N)).to_dense(template.size)
        np.testing.assert_allclose(Compiled(model, world).totals(), expected, **CLOSE)


@pytest.mark.parametrize("features", [(1,), (31, 33), (70,)])
def test_tables_of_pairs_change_as_they_are_defined(features):
    tables = [table_for(12, width) for width in features]
    model = mixed_model(12, (), tables, EVERY)
    for labels in (range(12), [0] * 12, [0, 1, 0, 2, 1, 0, 3, 3, 0, 1, 1, 2]):
        compiled = Compiled(model, Partition.from_keys(labels))
        assert_changes_are_right(compiled, np.random.default_rng(2), 30, gains=False)


@pytest.mark.parametrize("members", [MANY - 1, MANY, MANY + 1, 2 * MANY + 1])
def test_sums_over_large_clusters_do_not_overflow(members):
    """In a star every member has a link with the center alone, so that it gives and takes all of them."""
    n = members + 3
    squares = {"always": np.ones((n, n), bool), "star": np.zeros((n, n), bool)}
    squares["star"][n - 1], squares["star"][:, n - 1] = True, True
    template = PairTableTemplate("table", PairTable.from_squares(squares), EVERY)
    model = Model([template], np.ones(template.size))
    compiled = Compiled(model, Partition.from_labels([0] * members + [1, 1, 1]))
    for item, target in ((n - 1, 0), (5, 1), (n - 2, 0), (n - 1, 1), (n - 1, 0)):
        diff = compiled.take(item, target)
        expected = model.difference(compiled.world, diff).to_dense(template.size)
        np.testing.assert_allclose(compiled.gradient(), expected, rtol=1e-12, atol=1e-12)
        compiled.apply()


def weighed(a, b):
    return (a.weight + b.weight,)


def bias(a, b):
    return (1,)


def test_fields_of_the_same_name_from_two_tables_are_kept_apart():
    first, second = (Fields(weight=np.arange(5) + shift) for shift in (0, 10))
    templates = [PairTemplate("one", first, weighed, ["w"]), PairTemplate("two", second, weighed, ["w"])]
    model = Model([*templates, PairTemplate("bias", first, bias, ["b"])])
    world = Partition.from_labels([0, 0, 0, 1, 1])
    compiled = Compiled(model, world)
    np.testing.assert_allclose(compiled.totals(), model.statistics(world).to_dense(3))
    assert compiled.world.arrays.item_ints.shape == (5, 2)


def test_only_the_fields_that_are_read_are_laid_out_and_each_once():
    fields = fields_for(5)
    model = Model([TEMPLATES[name](fields) for name in ("numbers", "typed", "rows")])
    arrays = model_programs(model, Partition.singletons(5)).arrays
    assert arrays.item_ints.shape[1] == 2 + 3  # name and flag, three co-authors
    assert arrays.item_reals.shape[1] == 0


class OwnTemplate(Template):
    """A user's template without a program."""

    name = "own"
    size = 1


def test_a_template_without_a_program_is_named():
    with pytest.raises(TemplateError, match=r"'own' \(OwnTemplate\) has no program.*engine='plain'"):
        model_programs(Model([OwnTemplate()]), Partition.singletons(3))


@pytest.mark.parametrize("name", ["numbers", "edges", "clusters", "majority of pairs", "vectors"])
def test_templates_for_other_items_are_refused(name):
    with pytest.raises(ShapeError, match="5 items, but the world has 4: build both from the same records"):
        model_programs(Model([TEMPLATES[name](fields_for(5))]), Partition.singletons(4))


def test_given_pairs_are_scored_with_the_weights_that_are_given():
    edges = EdgeTemplate("links", 3, [(0, 1), (1, 2)], [[1.0], [2.0]], ["strength"])
    (program,) = model_programs(Model([edges], [1.0]), Partition.singletons(3), np.array([3.0])).templates
    assert sorted(program.arrays["score"].make().tolist()) == [3.0, 3.0, 6.0, 6.0]


def test_the_layout_of_pairs_is_that_of_their_templates():
    assert all(make(fields_for(4)).layout is PartitionProgram for make in PAIR_SETS.values())
