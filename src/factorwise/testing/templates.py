"""A check that any template must pass: what it says a diff touches is what the whole world says.

A template that forgets a factor, or counts one twice, gives wrong gains without any error; the sampler then
walks towards another distribution. The check walks along random diffs, so that many different worlds are
seen, and compares every difference with brute force.

>>> from factorwise.model.templates import ClusterSize
>>> from factorwise.world.partition import Partition
>>> check_template(ClusterSize(), Partition.singletons(6))
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, TemplateCheckError
from factorwise.model.template import AnyTemplate, finite_difference
from factorwise.rng import Stream
from factorwise.world import moves
from factorwise.world.assignment import Assignment, Relabel
from factorwise.world.diff import NEW, PartitionDiff
from factorwise.world.partition import Partition

_MOST_AT_ONCE = 4  # variables that one random relabel changes


def check_template(
    template: AnyTemplate,
    world: Partition | Assignment,
    *,
    steps: int = 200,
    seed: int = 0,
    tolerance: float = 1e-5,
) -> None:
    """Raise `TemplateCheckError` at the first random diff about which ``template`` is wrong.

    steps
        Diffs to try; the walk enters every world that the template does not forbid.
    tolerance
        Largest error, relative to the size of the statistics: fields are kept in single precision.
    """
    here, stream = world.copy(), Stream(seed)
    for step in range(steps):
        diff = random_diff(stream, here)
        before = here.canonical()
        said = template.difference(here, diff).to_dense(template.size)
        said_constant = template.constant_gain(here, diff)
        if here.canonical() != before:
            raise TemplateCheckError(_at(template, step, diff, here, "it changed the world it was given"))
        there = here.copy()
        there.apply(diff)
        _compare_statistics(template, step, diff, here, there, said, tolerance)
        _compare_constant(template, step, diff, here, there, said_constant, tolerance)
        if template.constant(there) > -math.inf:
            here = there


def _compare_statistics(
    template: AnyTemplate,
    step: int,
    diff: object,
    here: Any,
    there: Any,
    said: NDArray[np.float64],
    tolerance: float,
) -> None:
    now, then = (template.statistics(world).to_dense(template.size) for world in (here, there))
    wrong = np.flatnonzero(~(np.abs(said - (then - now)) <= tolerance * (1.0 + np.abs(now) + np.abs(then))))
    if len(wrong):
        listed = "; ".join(
            f"{template.weight_name(int(k))}: says {said[k]:g}, brute force finds {then[k] - now[k]:g}"
            for k in wrong[:5]
        )
        raise TemplateCheckError(_at(template, step, diff, here, listed))


def _compare_constant(
    template: AnyTemplate, step: int, diff: object, here: Any, there: Any, said: float, tolerance: float
) -> None:
    now, then = template.constant(here), template.constant(there)
    if now == -math.inf:
        return  # out of a forbidden world the touched factors alone cannot say whether all is well
    true = finite_difference(then, now)
    if said != true and not abs(said - true) <= tolerance * (1.0 + abs(now) + abs(then)):
        message = f"constant: says {said:g}, brute force finds {true:g}"
        raise TemplateCheckError(_at(template, step, diff, here, message))


def _at(template: AnyTemplate, step: int, diff: object, world: object, fault: str) -> str:
    return (
        f"template {template.name!r} ({type(template).__name__}) is wrong at step {step} about {diff}"
        f" in {world}: {fault}. Mend its difference or its statistics: a factor that the diff touches was"
        " left out or counted twice."
    )


def random_diff(stream: Stream, world: Partition | Assignment) -> Any:
    """Draw a diff of any kind that ``world`` allows: no kind is rare, nothing else is promised."""
    if isinstance(world, Partition):
        return _random_partition_diff(stream, world)
    if isinstance(world, Assignment):
        return _random_relabel(stream, world)
    raise InvalidArgumentError(
        f"random diffs are known for Partition and Assignment, but a {type(world).__name__} was given."
    )


def _random_partition_diff(stream: Stream, world: Partition) -> PartitionDiff:
    kinds = ["relocate"] * (world.n_items > 1) + ["merge"] * (world.n_clusters > 1)
    kinds += ["split"] * (world.n_splittable > 0) + ["retype"] * (world.n_types > 1)
    if not kinds:
        raise InvalidArgumentError("a world of one item and one type never changes: give a larger one.")
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
