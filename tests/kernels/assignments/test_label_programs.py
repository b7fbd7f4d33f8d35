"""Programs of templates over labels against the templates' own definitions, compiled and interpreted."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignment_cases import BIT, CASES, TAG, all_worlds, with_random_weights
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.proposals.assignment_proposals import joint_scores
from factorwise.kernels.compile.binding import Bound, Interpreted
from factorwise.kernels.compile.compiler import lean_kernel
from factorwise.kernels.walks.frames import run
from factorwise.kernels.walks.layouts import Record
from factorwise.kernels.walks.library import merge, pick_share, room_for, take_shares
from factorwise.learning.samplerank.preferences import AccuracyPreference
from factorwise.model.labels.base import ScopedTemplate, TableGroup
from factorwise.model.labels.cardinality import Cardinality
from factorwise.model.labels.custom import DynamicTemplate, TupleTemplate
from factorwise.model.labels.library import Bias, Transitions, UnaryFeatures, WeightedTables
from factorwise.model.programs import model_programs
from factorwise.rng import Stream
from factorwise.variables.features import Features
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment, Relabel


class Backwards(Transitions):
    """A user's subclass that counts pairs of labels the other way round."""

    def entries(self, variables, factors, labels):
        return super().entries(variables, factors, labels[:, ::-1])

    def tables(self, variables, weights):
        for group in super().tables(variables, weights):
            turned = group.tables.reshape(-1, 3, 3).transpose(0, 2, 1).reshape(-1, 9)
            yield TableGroup(group.scopes, group.which, turned)


class Both(ScopedTemplate):
    """A user's template with a weight and a fixed score; equal labels at the ends are forbidden."""

    name, size = "both", 1

    def __init__(self, scopes):
        self.scopes = np.array(scopes)

    def entries(self, variables, factors, labels):
        return np.zeros(len(labels), np.int64), labels[:, 0] * 2.0 - labels[:, -1]

    def constants(self, factors, labels):
        return np.where(labels[:, 0] == labels[:, -1], -np.inf, 0.5 * labels[:, 1])

    def tables(self, variables, weights):
        settings = np.indices((3, 3, 3)).reshape(3, -1).T
        table = (settings[:, 0] * 2.0 - settings[:, 2]) * weights[0] + self.constants(None, settings)
        yield TableGroup(self.scopes, np.zeros(len(self.scopes), np.int64), table[None])


def users():
    """Subclasses of users, and templates over triples."""
    tag = Column.of("tag", TAG, ["N", "V", "O", "N"], observed=[False, False, False, True])
    variables = Variables([tag])
    triples = WeightedTables(variables, [[0, 1, 2], [2, 1, 3]])
    return variables, with_random_weights([Backwards(tag), Both([[0, 1, 2]]), triples, Bias(tag)], 11)


def same(first, second):
    return (float(first == second), 0.0 if first == "N" else 1.5)


def groups():
    """Counts with statistics of any kind and fixed scores, and a function over two pairs of domains."""
    tag, bit = Column.hidden("tag", TAG, 3), Column.hidden("bit", BIT, 2)
    variables = Variables([tag, bit])
    templates = [
        Cardinality(tag, "V", statistics_of=lambda n: (n, n * n), fixed=[0.1, -0.4, 0.3, -math.inf]),
        Cardinality(bit, "on", name="bits"),
        TupleTemplate("same", [[0, 1], [2, 3], [4, 3]], same, ["same", "not N"]),
        UnaryFeatures(tag, Features.from_rows([["a", "b"], ["b"], ["c", "a"]])),
    ]
    return variables, with_random_weights(templates, 12)


def touched_pairs(values, variable, out):
    """Write the neighbors that have the variable's label."""
    count = 0
    for other in (variable - 1, variable + 1):
        if 0 <= other < len(values) and values[other] == values[variable]:
            out[count, 0], out[count, 1] = min(variable, other), max(variable, other)
            count += 1
    return count


def pair_label(values, key):
    return (1.0, values[key[0]])


def touched_itself(values, variable, out):
    """Write the variable, twice: it counts once."""
    out[0, 0] = out[1, 0] = variable
    return 2


def whether_on(values, key):
    return (values[key[0]] == 1,)


def twice_dynamic():
    """Two templates whose factors come and go, with keys of different widths."""
    bit = Column.hidden("bit", BIT, 4)
    templates = [
        DynamicTemplate("pairs", touched_pairs, pair_label, ["pair", "label"], max_touched=2),
        DynamicTemplate("self", touched_itself, whether_on, ["on"], key_width=1, max_touched=2),
    ]
    return Variables([bit]), with_random_weights(templates, 13)


MODELS = {name: case() for name, case in CASES.items()}
MODELS |= {case.__name__: case() for case in (users, groups, twice_dynamic)}
FORMS = ("compiled", "interpreted")


class Programs:
    """The programs of a model in one frame."""

    def __init__(self, model, world, form, *, learning=False):
        self.model, self.world = model, world.copy()
        programs = model_programs(model, self.world, learning=learning).templates
        entries = sum(program.entries for program in programs)
        self.frame = self.world.frame(np.zeros(2, np.uint64), weights=model.blocks.size, entries=entries)
        bind = Bound if form == "compiled" else lambda p, frame: Interpreted(p, frame, Stream(0))
        self.bound = [bind(program, self.frame) for program in programs]
        self.tell("begin")

    def tell(self, role):
        return [run(bound, role) for bound in self.bound]

    def set(self, variable, target):
        step = self.frame.step
        step["item"], step["source"], step["target"] = variable, self.world.values[variable], target
        step["entries"], step["broken"] = 0, 0

    def broken(self):
        return int(self.frame.step["broken"][0])

    def gains(self, variable, labels):
        self.set(variable, 0)
        self.frame.step["choices"] = len(labels)
        self.frame.choice.targets[: len(labels)] = labels
        self.frame.choice.out[:] = 0.0
        self.tell("gains")
        return self.frame.choice.out[: len(labels)].copy()

    def gradient(self, variable, target):
        """Return the gradient with all its weights, dense; merging must not change it."""
        self.set(variable, target)
        self.tell("gradient")
        assert self.frame.step["overflow"][0] == 0
        before = self.listed()
        merge(self.frame.gradient, Record(self.frame.step))
        count = int(self.frame.step["entries"][0])
        assert len(set(self.frame.gradient.index[:count].tolist())) == count
        np.testing.assert_array_equal(self.frame.gradient.mark, 0)
        np.testing.assert_allclose(self.listed(), before, atol=1e-12)
        return before

    def listed(self):
        count = int(self.frame.step["entries"][0])
        dense = np.zeros(self.model.blocks.size)
        np.add.at(dense, self.frame.gradient.index[:count], self.frame.gradient.value[:count])
        return dense

    def change(self, variable, target):
        """Make a change, and let the programs know."""
        self.set(variable, target)
        self.world.values[variable] = target
        self.tell("applied")


def every_change(variables, world):
    for variable in variables.movable.tolist():
        for target in range(int(variables.cardinality[variable])):
            if target != world.values[variable]:
                yield variable, target


def some_worlds(variables, count=6):
    worlds = all_worlds(variables)
    return worlds[:: max(1, len(worlds) // count)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", MODELS)
def test_gains_are_those_of_the_model(case, form):
    variables, model = MODELS[case]
    for world in some_worlds(variables):
        programs = Programs(model, world, form)
        for variable, target in every_change(variables, world):
            programs.set(variable, target)
            gain, broken = sum(programs.tell("gain")), programs.broken()
            wanted = model.gain(world, world.relabel([variable], [target]))
            if broken == 0 and math.isfinite(wanted):
                assert gain == pytest.approx(wanted, abs=1e-12)
            elif model.score(world) > -math.inf:
                assert broken > 0
                assert wanted == -math.inf


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", MODELS)
def test_scores_of_labels_are_those_of_the_model(case, form, learning):
    variables, model = MODELS[case]
    for world in some_worlds(variables):
        programs = Programs(model, world, form, learning=learning)
        for variable in variables.movable.tolist():
            scores = joint_scores(model, world, (variable,)).scores
            labels = list(range(len(scores)))
            for offered in (labels, labels[::-1], labels[1:]):
                found, wanted = programs.gains(variable, offered), scores[offered]
                if np.isfinite(found).any() and np.isfinite(wanted).any():
                    np.testing.assert_allclose(found - found.max(), wanted - wanted.max(), atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", MODELS)
def test_gradients_are_the_differences_of_the_model(case, form):
    variables, model = MODELS[case]
    for world in some_worlds(variables):
        programs = Programs(model, world, form, learning=True)
        for variable, target in every_change(variables, world):
            diff = world.relabel([variable], [target])
            wanted = model.difference(world, diff)
            found = programs.gradient(variable, target)
            np.testing.assert_allclose(found, wanted.to_dense(model.blocks.size), atol=1e-12)
            unweighted = [bound for bound in programs.bound if "gradient" not in bound.program.functions]
            constant = sum(run(bound, "gain") for bound in unweighted)
            fixed = sum(template.constant_gain(world, diff) for template in model.templates)
            if programs.broken() == 0 and math.isfinite(fixed):
                assert constant == pytest.approx(fixed, abs=1e-12)
            elif model.score(world) > -math.inf:
                assert programs.broken() > 0
                assert fixed == -math.inf


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", MODELS)
def test_what_programs_keep_follows_the_walk(case, form, learning):
    variables, model = MODELS[case]
    rng = np.random.default_rng(5)
    programs = Programs(model, all_worlds(variables)[0], form, learning=learning)
    for _ in range(12):
        changes = list(every_change(variables, programs.world))
        programs.change(*changes[rng.integers(len(changes))])
    fresh = Programs(model, programs.world, form, learning=learning)
    for variable in variables.movable.tolist():
        labels = list(range(int(variables.cardinality[variable])))
        kept, wanted = programs.gains(variable, labels), fresh.gains(variable, labels)
        np.testing.assert_allclose(kept, wanted, atol=1e-12)


@pytest.mark.parametrize("case", MODELS)
def test_several_changes_add_up_to_the_gradient_of_the_whole_diff(case):
    variables, model = MODELS[case]
    world = all_worlds(variables)[-1]
    programs = Programs(model, world, "compiled", learning=True)
    changes = dict(every_change(variables, world))
    total = np.zeros(model.blocks.size)
    for variable, target in changes.items():
        total += programs.gradient(variable, target)
        programs.change(variable, target)
    chosen = list(changes)
    diff = Relabel(tuple(chosen), tuple(world.values[chosen].tolist()), tuple(changes.values()))
    np.testing.assert_allclose(total, model.difference(world, diff).to_dense(len(total)), atol=1e-11)


def test_all_factors_of_a_model_are_one_program():
    variables, model = MODELS["mixed"]
    world = all_worlds(variables)[0]
    assert [p.name for p in model_programs(model, world).templates] == ["factors over labels"]
    programs = model_programs(model, world, learning=True).templates
    assert [p.name for p in programs] == ["factors over labels", "weighted factors over labels"]


def test_a_gradient_declares_as_many_entries_as_a_variable_may_touch():
    tag = Column.hidden("tag", TAG, 40)
    features = Features.from_rows([[f"w{k}", "all"] for k in range(40)])
    model = with_random_weights([UnaryFeatures(tag, features), Transitions(tag)], 1)
    (program,) = model_programs(model, Assignment.initial(Variables([tag])), learning=True).templates
    assert program.entries == 2 * (2 + 2)


@lean_kernel
def shares_compiled(share, scores, count, scale, without):
    return take_shares(share, scores, count, scale, without)


@given(
    scores=st.lists(st.one_of(st.floats(-5, 5), st.just(-np.inf)), min_size=1, max_size=20),
    scale=st.sampled_from([0.5, 1.0, 3.0]),
    without=st.integers(-1, 19),
)
def test_shares_taken_eight_at_a_time_are_those_taken_one_by_one(scores, scale, without):
    count = len(scores)
    left_out = without if without < count else -1
    padded = np.full(room_for(count), 99.0)
    padded[:count] = scores
    fast, slow = np.zeros((2, room_for(count)))
    total = take_shares(slow, padded, count, scale, left_out)
    assert shares_compiled(fast, padded, count, scale, left_out) == pytest.approx(total, rel=1e-14)
    np.testing.assert_array_equal(padded[:count], scores)
    if total > 0.0:
        np.testing.assert_allclose(fast[:count], slow[:count], rtol=1e-14, atol=0.0)


@pytest.mark.parametrize(("threshold", "chosen"), [(0.0, 1), (0.29, 1), (0.31, 3), (0.999, 3), (1.0, 3)])
def test_a_share_of_zero_is_never_picked(threshold, chosen):
    assert pick_share(np.array([0.0, 0.3, 0.0, 0.7, 0.0]), 5, threshold) == chosen


def test_right_labels_are_gained_and_lost():
    tag = Column.of("tag", TAG, ["N", "V", "O"], observed=[False, True, False])
    world = all_worlds(Variables([tag]))[0]
    program = AccuracyPreference([2, 1, -1]).program(Surroundings(world))
    frame = world.frame(np.zeros(2, np.uint64))
    for variable, source, target, wanted in [(0, 0, 2, 1.0), (0, 2, 1, -1.0), (0, 0, 1, 0.0), (2, 0, 1, 0.0)]:
        frame.step["item"], frame.step["source"], frame.step["target"] = variable, source, target
        assert run(Bound(program, frame), "judge") == wanted
        assert run(Interpreted(program, frame, None), "judge") == wanted
