"""A check that any template must pass: its account of a diff must agree with the whole world.

A template that forgets a factor, or counts one twice, gives wrong gains without any error, and the sampler
then samples another distribution. The check walks along random diffs, so that many different worlds occur,
and compares every difference with brute force.
"""

from __future__ import annotations

import math
from collections import Counter
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, TemplateCheckError, TemplateError
from factorwise.model.clusterings.cluster_templates import ClusterTemplate
from factorwise.model.clusterings.partition_templates import PairTemplate, VectorPairTemplate
from factorwise.model.clusterings.tally_templates import TallyTemplate
from factorwise.model.labels.custom import DynamicTemplate, TupleTemplate
from factorwise.model.model import Model, placed
from factorwise.model.template import AnyTemplate, Template, finite_difference
from factorwise.model.weights import SparseVector
from factorwise.rng import Stream
from factorwise.validation import check_count
from factorwise.world import moves
from factorwise.world.assignment import Assignment, Relabel
from factorwise.world.diff import NEW, PartitionDiff
from factorwise.world.joint import Joint, JointDiff
from factorwise.world.partition import Partition
from factorwise.world.targets import Changes, TargetWorld

_MOST_AT_ONCE = 4  # variables that one random relabel changes

_MEND_METHODS = (
    "Fix its difference or its statistics: a factor that the diff touches was left out or counted twice."
)
_MEND_FUNCTION = (
    "Fix its function: it depends on the order of the items, on randomness or on earlier calls, or it"
    " changes its arguments. Its answer must depend only on its arguments and be the same in any order"
    " of the items, as with min, max, sum or len."
)
_MEND_FUNCTION_OF_LABELS = (
    "Fix its function: it depends on randomness or on earlier calls, or it changes its arguments. Its"
    " answer must depend only on its arguments."
)
_MEND_TOUCHED = (
    "Fix its touched: it must write the keys of all factors that depend on the variable, including"
    " those that its label creates. Both functions must depend only on their arguments, and may change"
    " only out."
)
# for templates made of functions; all others derive from Template
_REMEDIES: dict[type[AnyTemplate], str] = {
    PairTemplate: _MEND_FUNCTION,
    VectorPairTemplate: _MEND_FUNCTION,
    ClusterTemplate: _MEND_FUNCTION,
    TallyTemplate: _MEND_FUNCTION,
    TupleTemplate: _MEND_FUNCTION_OF_LABELS,
    DynamicTemplate: _MEND_TOUCHED,
}


def check_template(
    template: Any,
    world: Any,
    *,
    steps: int = 200,
    seed: int = 0,
    tolerance: float = 1e-5,
) -> None:
    """Raise `TemplateCheckError` at the first random diff about which ``template`` is wrong.

    It is also raised if none of the diffs changed anything, if a declared ``bound`` is exceeded, and if two
    weights have the same name.

    steps
        Number of diffs to try; the walk enters every world that the template does not forbid.
    tolerance
        Largest error, relative to the size of the statistics: fields are kept in single precision.
    """
    _check_given(template, world, steps)
    _check_names(template)
    world_before, stream = world.copy(), Stream(seed)
    now, now_constant = _statistics(template, world_before), _constant(template, world_before)
    changed = False
    for step in range(steps):
        diff = random_diff(stream, world_before)
        where = f"at step {step} about {diff} in {world_before}"
        before = world_before.canonical()
        declared = _dense(template, "difference", template.difference(world_before, diff))
        said_constant = _number(template, "constant_gain", template.constant_gain(world_before, diff))
        if world_before.canonical() != before:
            raise TemplateCheckError(
                f"template {_named(template)} changed the world it was given {where}. Let difference and"
                " constant_gain only read it, or work on world.copy()."
            )
        world_after = world_before.copy()
        world_after.apply(diff)
        then, then_constant = _statistics(template, world_after), _constant(template, world_after)
        _compare_statistics(template, where, declared, now, then, tolerance)
        _compare_constants(template, where, said_constant, now_constant, then_constant, tolerance)
        _compare_bound(template, where, world_before, diff, tolerance)
        changed = changed or bool((then != now).any()) or then_constant != now_constant
        if then_constant > -math.inf:
            world_before, now, now_constant = world_after, then, then_constant
    if not changed:
        raise TemplateCheckError(
            f"none of {steps} random diffs changed the statistics of template {_named(template)} in"
            f" {world}, so no difference was tested. Use a smaller world in which more of the diffs"
            " touch its factors, or more steps."
        )


def _check_given(template: object, world: object, steps: int) -> None:
    if isinstance(template, Model):
        raise InvalidArgumentError(
            "check_template checks one template, but a model was given: check each of model.templates."
        )
    if not isinstance(template, Template):
        raise InvalidArgumentError(
            f"check_template checks a template, but {template!r} was given: use PairTemplate,"
            " ClusterTemplate or TupleTemplate to make one of a function, or derive from Template."
        )
    random_diff(Stream(0), world)  # raises an error for unknown kinds of worlds
    check_count("steps", steps)


def _check_names(template: AnyTemplate) -> None:
    for name, count in Counter(map(template.weight_name, range(template.size))).most_common(1):
        if count > 1:
            raise TemplateCheckError(
                f"{count} weights of template {_named(template)} are called {name!r}, so they cannot be"
                " distinguished. Give each statistic its own name."
            )


def _statistics(template: AnyTemplate, world: Any) -> NDArray[np.float64]:
    return _dense(template, "statistics", template.statistics(world))


def _constant(template: AnyTemplate, world: Any) -> float:
    return _number(template, "constant", template.constant(world))


def _dense(template: AnyTemplate, method: str, vector: SparseVector) -> NDArray[np.float64]:
    return placed(template, vector, 0, method).to_dense(template.size)


def _number(template: AnyTemplate, method: str, number: Any) -> float:
    if not isinstance(number, Real) or math.isnan(number):
        raise TemplateError(
            f"template {template.name!r} returned {number!r} as {method}: return a number, -inf to forbid."
        )
    return float(number)


def _compare_statistics(
    template: AnyTemplate,
    where: str,
    declared: NDArray[np.float64],
    now: NDArray[np.float64],
    then: NDArray[np.float64],
    tolerance: float,
) -> None:
    wrong = np.flatnonzero(
        ~(np.abs(declared - (then - now)) <= tolerance * (1.0 + np.abs(now) + np.abs(then)))
    )
    if len(wrong):
        listed = "; ".join(
            f"{template.weight_name(int(k))}: says {declared[k]:g}, brute force finds {then[k] - now[k]:g}"
            for k in wrong[:5]
        )
        remedy = _REMEDIES.get(type(template), _MEND_METHODS)
        raise TemplateCheckError(f"template {_named(template)} is wrong {where}: {listed}. {remedy}")


def _compare_constants(
    template: AnyTemplate, where: str, declared: float, now: float, then: float, tolerance: float
) -> None:
    if now == -math.inf:
        return  # the touched factors alone cannot say whether the world after a forbidden one is allowed
    true = finite_difference(then, now)
    if declared != true and not abs(declared - true) <= tolerance * (1.0 + abs(now) + abs(then)):
        raise TemplateCheckError(
            f"template {_named(template)} is wrong {where}: constant: says {declared:g}, brute force"
            f" finds {true:g}. Fix its constant_gain or its constant: a factor that the diff touches"
            " was left out or counted twice."
        )


def _compare_bound(template: AnyTemplate, where: str, world: Any, diff: Any, tolerance: float) -> None:
    if not isinstance(template, PairTemplate) or template.bound is None:
        return
    listed = template.contributions(world, diff, np.zeros(template.size))
    beyond = np.abs(listed.value) - template.bound[listed.index] * (1.0 + tolerance)
    if beyond.max(initial=0.0) > tolerance:
        worst = int(beyond.argmax())
        index = int(listed.index[worst])
        raise TemplateCheckError(
            f"template {_named(template)} is wrong {where}: {template.weight_name(index)} of a pair is"
            f" {abs(listed.value[worst]):g}, but its bound is {template.bound[index]:g}. Raise the bound, or"
            " leave it out."
        )


def _named(template: AnyTemplate) -> str:
    return f"{template.name!r} ({type(template).__name__})"


def random_diff(stream: Stream, world: Any) -> Any:
    """Draw a diff of any kind that ``world`` allows; no kind is rare, but the distribution is unspecified."""
    if isinstance(world, Partition):
        return _random_partition_diff(stream, world)
    if isinstance(world, Assignment):
        return _random_relabel(stream, world)
    if isinstance(world, TargetWorld):
        return _random_change(stream, world)
    if isinstance(world, Joint):
        names = [list(world.parts)[stream.below(len(world.parts))] for _ in range(1 + stream.below(2))]
        chosen = list(dict.fromkeys(names))
        return JointDiff(tuple((name, random_diff(stream, world.part(name))) for name in chosen))
    raise _unknown_world(world)


def _unknown_world(world: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"random diffs are known for Partition, Assignment, TargetWorld and Joint, but a"
        f" {type(world).__name__}"
        " was given."
    )


def _random_partition_diff(stream: Stream, world: Partition) -> PartitionDiff:
    kinds = ["relocate"] * (world.n_items > 1) + ["merge"] * (world.n_clusters > 1)
    kinds += ["split"] * (world.n_splittable > 0) + ["retype"] * (world.n_types > 1)
    if not kinds:
        raise InvalidArgumentError("a world of one item and one type never changes: use a larger one.")
    kind = kinds[stream.below(len(kinds))]
    ids = world.cluster_ids().tolist()
    new_type = stream.below(world.n_types)
    if kind == "retype":
        return moves.retype(world, ids[stream.below(len(ids))], new_type)
    if kind == "merge":
        first = ids.pop(stream.below(len(ids)))
        return moves.merge(world, first, ids[stream.below(len(ids))])
    if kind == "split":
        able = [cluster for cluster in ids if world.size_of(cluster) > 1]
        cluster = able[stream.below(len(able))]
        members = world.members(cluster).tolist()
        count = 1 + stream.below(len(members) - 1)
        part = [members.pop(stream.below(len(members))) for _ in range(count)]
        return moves.split(world, cluster, part, new_type=new_type)
    item = stream.below(world.n_items)
    own = world.cluster_of(item)
    targets = [cluster for cluster in ids if cluster != own] + [NEW] * (world.size_of(own) > 1)
    return moves.relocate(world, item, targets[stream.below(len(targets))], new_type=new_type)


def _random_relabel(stream: Stream, world: Assignment) -> Relabel:
    hidden = world.variables.hidden.tolist()
    if not hidden:
        raise InvalidArgumentError("a world whose variables are all observed never changes: hide some.")
    count = 1 if stream.below(2) else 1 + stream.below(min(len(hidden), _MOST_AT_ONCE))
    chosen = [hidden.pop(stream.below(len(hidden))) for _ in range(count)]
    cardinality = world.variables.cardinality
    return world.relabel(chosen, [stream.below(int(cardinality[variable])) for variable in chosen])


def _random_change(stream: Stream, world: TargetWorld) -> Changes:
    moves = world.single_changes()
    if not moves:
        raise InvalidArgumentError(f"{world!r} never changes: use one that allows other targets.")
    return moves[stream.below(len(moves))]
