"""Preferences: which of two neighboring worlds is better, independently of weights.

A `Preference` starts a `Judge` for one walk; the judge says for each diff how much better the world after it
would be. `TruthPreference`, `AccuracyPreference` and `TargetPreference` follow a metric against the truth,
from the diff alone; `WorldPreference` and `DiffPreference` call your own function, which needs no labels. A
gain of exactly 0.0 is a tie: neither world is preferred, and nothing is learned from the pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DiffError, InvalidArgumentError, ShapeError, require
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.kernels.clusterings import preferences as kernels
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.structures import targets
from factorwise.kernels.walks import accuracy
from factorwise.kernels.walks.frames import Parts, run
from factorwise.kernels.walks.loops import make_changes, take_back, weigh_move
from factorwise.rng import Stream
from factorwise.types import Int32s, Int64s
from factorwise.validation import as_array, check_number
from factorwise.world.assignment import Assignment
from factorwise.world.diff import NEW, Transfer
from factorwise.world.hierarchy import Hierarchy
from factorwise.world.kinds import check_kind
from factorwise.world.partition import Partition
from factorwise.world.targets import TargetWorld, whole_numbers

UNKNOWN = -1
METRICS: dict[str, dict[str, Any]] = {
    "pairwise": {
        "judge": kernels.judge_pairwise,
        "applied": kernels.pairs_applied,
        "begin": kernels.begin_pairs,
        "value": kernels.pairwise_value,
    },
    "b-cubed": {
        "judge": kernels.judge_b_cubed,
        "applied": kernels.b_cubed_applied,
        "begin": kernels.begin_b_cubed,
        "value": kernels.b_cubed_value,
    },
    "rand": {
        "judge": kernels.judge_rand,
        "applied": kernels.pairs_applied,
        "begin": kernels.begin_pairs,
        "value": kernels.rand_value,
    },
}
"""The functions of the program of each metric."""
MetricName = Literal["pairwise", "b-cubed", "rand"]


class Judge(Protocol):
    """The judgments of a preference along one walk."""

    @property
    def value(self) -> float:
        """The quality of the current world; NaN if the preference only compares."""
        ...

    def gain(self, world: Any, diff: Any) -> float:
        """Return how much better the world after ``diff`` is: negative for worse, 0.0 for a tie.

        The world is not changed.
        """
        ...

    def applied(self, world: Any, diff: Any) -> None:
        """Follow the walk; called right before ``diff`` is applied to ``world``."""
        ...


class Preference(Protocol):
    """Which of two neighboring worlds is better.

    With a method ``program(parts)`` (see `ProgramPreference`), walks are judged in compiled code.

    Implements: wick2009samplerank, Eq. 2, extended by the size of the difference and by ties.
    """

    def watch(self, world: Any) -> Judge:
        """Start judging a walk from ``world``."""
        ...


class ProgramPreference:
    """A preference that is a program.

    Walks run it compiled, and `watch` runs its functions as plain Python.

    Its functions get one change at a time, in ``move.item``, ``move.source`` and ``move.target``:

    ``judge(world, mine, move)``
        Returns how much better the world after the change is; 0.0 for a tie. The gains of a move with several
        changes are added, each in the world after the changes before it.
    ``applied(world, mine, move)``
        Follows the walk: a change has been made, whether it was judged or not, or undone. For preferences
        that keep a state.
    ``begin(world, mine)``
        Starts from the current world.
    ``value(world, mine)``
        Returns the quality of the world, for reports.
    """

    #: The kinds of worlds that it supports; empty for any.
    worlds: ClassVar[tuple[type[Any], ...]] = ()

    def program(self, parts: Surroundings) -> Program:
        """Return the program, with a function ``judge``, for worlds like that of the surroundings."""
        raise NotImplementedError(f"{type(self).__name__} does not define its program")

    def watch(self, world: Any) -> ProgramJudge:
        """Start judging a walk from ``world``."""
        check_kind(self, world)
        return ProgramJudge(self.program(Surroundings(world)), world)


class ProgramJudge:
    """A judge that runs the functions of a preference's program in plain Python.

    It keeps its own copy of the world.
    """

    def __init__(self, program: Program, world: Any) -> None:
        self._world = world.copy()
        self._frame = self._world.frame(np.zeros(2, np.uint64), many=True)
        nothing = np.zeros(0)
        self._parts = Parts(
            self._frame, self._world.program(), (), stream=Stream(0), weights=nothing, judge=program
        )
        self._arrays = [array for array in program.arrays.values() if isinstance(array, np.ndarray)]
        self._program = self._parts.bound[0]
        self._parts.begin()

    @property
    def value(self) -> float:
        """The quality of the current world; NaN if the preference does not compute it."""
        return run(self._program, "value") if "value" in self._program.program.functions else math.nan

    def gain(self, world: Any, diff: Any) -> float:
        """Return how much better the world after ``diff`` is; exactly 0.0 for a tie."""
        self._enter(world, diff)
        walk, move = self._parts.walk, self._parts.walk.step[0]
        before = [array.copy() for array in self._arrays]
        take_back(walk, move, walk.changes, weigh_move(walk, move, False))
        for array, old in zip(self._arrays, before, strict=True):
            array[...] = old
        return float(move.better)

    def applied(self, world: Any, diff: Any) -> None:
        """Follow the walk to the world after ``diff``, which is about to be applied."""
        self._enter(world, diff)
        make_changes(self._parts.walk, self._parts.walk.step[0], 0)

    def _enter(self, world: Any, diff: Any) -> None:
        if world.layout_key() != self._world.layout_key():
            raise ShapeError(
                f"this judge watches {self._world!r}, but was given {world!r}: start another judge with"
                " preference.watch(world)."
            )
        if isinstance(diff, Transfer):
            checked_items(world, diff)
        self._world.take(world)
        self._world.enter(self._frame, diff)


class TruthPreference(ProgramPreference):
    """Prefer clusterings that are better by a metric against the true one.

    truth
        A `Partition`, or the true entity of each item: any whole numbers or strings, with None or -1 if it is
        unknown. Items with an unknown entity do not count in the metric.
    metric
        ``"pairwise"`` F1, ``"b-cubed"`` F1, or ``"rand"`` (the share of pairs of items that are decided
        correctly).

    Computing a gain takes time proportional to the size of the item's entity, or of the two clusters that the
    diff touches if that is smaller. Types of clusters do not count.

    Pairwise F1 is 0 as long as no correct pair is together. So, from singletons, a correct merge is a gain,
    but a wrong one is only a tie, from which nothing is learned, until the first correct pair is together. If
    the truth has no pairs at all (every known item is an entity of its own), pairwise F1 is 0 in every world
    and everything is a tie. B-cubed and Rand punish wrong merges in all of these worlds.

    >>> from factorwise.world.moves import merge
    >>> world = Partition.singletons(3)
    >>> judge = TruthPreference(["ann", "ann", None], "b-cubed").watch(world)
    >>> judge.gain(world, merge(world, 0, 1)) > 0.0
    True
    >>> judge.gain(world, merge(world, 0, 2))
    0.0
    """

    worlds = (Partition,)

    def __init__(
        self, truth: Partition | Sequence[object] | NDArray[Any], metric: MetricName = "pairwise"
    ) -> None:
        require(metric in METRICS, "metric", metric, f"one of {', '.join(map(repr, METRICS))}")
        self.metric = metric
        self.entity = _numbered(truth)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that judges a change by the items of the item's entity in the two clusters."""
        n_items, known = parts.world.n_items, self.entity[self.entity >= 0]
        if len(self.entity) != n_items:
            raise ShapeError(
                f"the truth has {len(self.entity)} items, but the world has {n_items}: give one entity"
                " per item, None if it is unknown."
            )
        size = np.bincount(known).astype(np.int64)
        by_entity = np.argsort(self.entity, kind="stable").astype(np.int32)
        arrays = {
            "entity": self.entity,
            "entity_start": np.append(0, np.cumsum(size)),
            "entity_item": by_entity[n_items - len(known) :],
            "truth": np.array([len(known), (size * (size - 1) // 2).sum()], np.int64),
            "held": np.zeros((len(parts.world.arrays.size), 2), np.int64),
            "sums": np.zeros(2),
            "after": np.zeros(2),
            "change": np.full(5, -1, np.int64),
            "counts": np.zeros(len(size), np.int64),
        }
        return Program(name=f"{self.metric} against the truth", arrays=arrays, **METRICS[self.metric])


class AccuracyPreference(ProgramPreference):
    """Prefer assignments with more correct labels.

    truth
        An `Assignment`, or a code per variable with -1 if it is unknown. Variables whose label is unknown or
        observed do not count.
    """

    worlds = (Assignment,)

    def __init__(self, truth: Assignment | Sequence[int] | NDArray[np.integer[Any]]) -> None:
        array = as_array("truth", truth.values if isinstance(truth, Assignment) else truth)
        if array.ndim != 1:
            raise ShapeError(f"truth must be one code per variable, but has shape {array.shape}.")
        if array.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"truth must be integer codes, but {array.dtype} was given: encode labels with"
                " Assignment.from_labels(variables, labels)."
            )
        self.codes = array.astype(np.int64)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that judges a change by the label of its variable."""
        codes = self._codes_for(parts.world)
        return Program(judge=accuracy.judge_value, **_accuracy(codes), name="accuracy")

    def _codes_for(self, world: Assignment) -> Int64s:
        """Return the correct code of each variable that counts in ``world``, -1 for all others."""
        if len(self.codes) != len(world.values):
            raise ShapeError(
                f"the truth has {len(self.codes)} variables, but the world has {len(world.values)}:"
                " give one code per variable, -1 if it is unknown."
            )
        return np.where(world.variables.observed, UNKNOWN, self.codes)


class TargetPreference(ProgramPreference):
    """Prefer worlds in which more items have the correct target.

    truth
        A world of the same kind, or a target for each item with -1 if it is unknown.
    """

    worlds = (TargetWorld,)
    except_for = (Hierarchy,)

    def __init__(self, truth: TargetWorld | Sequence[int] | NDArray[np.integer[Any]]) -> None:
        array = truth.values if isinstance(truth, TargetWorld) else truth
        self.targets = whole_numbers("truth", array)

    def program(self, parts: Surroundings) -> Program:
        """Return the program that judges a change by the items that it moves."""
        if len(self.targets) != parts.world.n_items:
            raise ShapeError(
                f"the truth has {len(self.targets)} items, but the world has {parts.world.n_items}."
            )
        judge = targets.judge_exchange if parts.world.exchanges else accuracy.judge_value
        return Program(judge=judge, **_accuracy(self.targets), name="right targets")


def _accuracy(truth: Int64s) -> dict[str, Any]:
    """Return the arrays of preferences for correct values, with -1 for unknown ones."""
    known = np.array([np.count_nonzero(truth >= 0)], np.int64)
    return {"value": accuracy.share_of_right, "arrays": {"truth": truth.astype(np.int32), "known": known}}


class _Asking:
    """A preference that calls a function at every diff, and is its own judge because it keeps no state."""

    def __init__(self, function: Callable[[Any, Any], float], *, tolerance: float = 0.0) -> None:
        check_number("tolerance", tolerance, least=0, finite=True)
        self.function = function
        self.tolerance = tolerance

    def watch(self, world: Any) -> Self:
        """Return itself."""
        return self

    @property
    def value(self) -> float:
        """NaN, because this preference only compares."""
        return math.nan

    def applied(self, world: Any, diff: Any) -> None:
        """Do nothing."""

    def _answer(self, first: Any, second: Any) -> float:
        answer = float(self.function(first, second))
        if not math.isfinite(answer):
            raise InvalidArgumentError(
                f"the preference's function returned {answer}: return a finite number, positive for"
                " better, negative for worse and 0.0 for a tie."
            )
        return 0.0 if abs(answer) <= self.tolerance else answer


class WorldPreference(_Asking):
    """Prefer worlds by your own function of two worlds of any kind.

    function
        Called as ``function(before, after)``; returns a positive number if ``after`` is better, a negative
        one if it is worse. It must not change either.
    tolerance
        Answers no further than this from zero are ties.

    Each gain copies the world: if the change is enough to judge by, `DiffPreference` is faster.
    """

    def gain(self, world: Any, diff: Any) -> float:
        """Return the function's answer for the world before and after ``diff``; 0.0 for a tie."""
        return self._answer(world, world.after(diff))


class DiffPreference(_Asking):
    """Prefer worlds by your own function of the change: a rule, a person's answer, other prior knowledge.

    function
        Called as ``function(world, diff)``, with ``diff`` not yet applied; returns a positive number if the
        change is an improvement, a negative one if it is not. It must not change the world.
    tolerance
        Answers no further than this from zero are ties.

    A rule of thumb can replace labels:

    >>> from factorwise.world.moves import merge
    >>> names = ["ann lee", "a lee", "bob ray"]
    >>> def same_last_name(world, diff):
    ...     last = {names[item].split()[-1] for item in diff.items}
    ...     joined = world.members(diff.target) if diff.target != NEW else ()
    ...     return sum(1 if names[item].split()[-1] in last else -1 for item in joined)
    >>> world = Partition.singletons(3)
    >>> judge = DiffPreference(same_last_name).watch(world)
    >>> judge.gain(world, merge(world, 0, 1)), judge.gain(world, merge(world, 0, 2))
    (1.0, -1.0)
    """

    def gain(self, world: Any, diff: Any) -> float:
        """Return the function's answer for ``diff``; 0.0 for a tie."""
        return self._answer(world, diff)


def checked_items(world: Partition, diff: Transfer) -> Int32s:
    """Return the items that ``diff`` moves; raise an error if it does not fit ``world``."""
    items = np.array(diff.items, np.int32)
    inside = len(items) > 0 and items.min() >= 0 and items.max() < world.n_items
    if not inside or (world.labels[items] != diff.source).any() or diff.source == diff.target:
        raise DiffError(
            f"{diff} does not fit this world: build transfers with world.moves from the world that they"
            " apply to."
        )
    if diff.target != NEW:
        world.size_of(diff.target)  # raises an error if it does not exist
    return items


def _numbered(truth: Partition | Sequence[object] | NDArray[Any]) -> Int32s:
    """Return dense entity numbers, -1 for unknown entities."""
    if isinstance(truth, Partition):
        return truth.dense_labels().astype(np.int32)
    if isinstance(truth, np.ndarray) and truth.ndim != 1:
        raise ShapeError(f"truth must be one entity per item, but has shape {truth.shape}.")
    if isinstance(truth, np.ndarray) and truth.dtype.kind in "iu":
        known = truth != UNKNOWN
        entity = np.full(len(truth), UNKNOWN, np.int32)
        entity[known] = np.unique(truth[known], return_inverse=True)[1]
        return entity
    numbers: dict[object, int] = {}
    found = np.full(len(truth), UNKNOWN, np.int32)
    for item, key in enumerate(truth):
        if key is None or (isinstance(key, Integral) and key == UNKNOWN):
            continue
        if not isinstance(key, Integral | str):
            raise InvalidArgumentError(
                f"the entity of item {item} is {key!r}: give whole numbers or strings, None if unknown."
            )
        found[item] = numbers.setdefault(key, len(numbers))
    return found
