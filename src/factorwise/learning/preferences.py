"""Preferences: which of two neighbouring worlds is better, without a word about weights.

A `Preference` starts a `Judge` for one walk; the judge says for each diff how much better the world after it
would be. `TruthPreference` and `AccuracyPreference` follow a metric against the truth, from the diff alone;
`WorldPreference` and `DiffPreference` ask a function of yours, which may know no labels at all;
`constraint_preferences` has one kind of such prior knowledge ready made. A gain of exactly 0.0 is a tie:
neither world is preferred, and nothing is to be learned from the pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DiffError, InvalidArgumentError, ShapeError, require
from factorwise.kernels.clusterings.truth_gains import (
    B_CUBED_F1,
    PAIRWISE_F1,
    RAND,
    TruthArrays,
    begin_truth,
    transfer_truth_gain,
    truth_arrays,
    truth_value,
)
from factorwise.world.assignment import Assignment, Relabel
from factorwise.world.diff import NEW, PartitionDiff, Retype, Transfer
from factorwise.world.partition import Partition

UNKNOWN = -1
METRICS = {"pairwise": PAIRWISE_F1, "b-cubed": B_CUBED_F1, "rand": RAND}
MetricName = Literal["pairwise", "b-cubed", "rand"]


class Judge(Protocol):
    """What a preference says along one walk."""

    @property
    def value(self) -> float:
        """How good the world is now; nan where the preference only compares."""
        ...

    def gain(self, world: Any, diff: Any) -> float:
        """How much better the world after ``diff`` is: below zero worse, 0.0 a tie. Changes nothing."""
        ...

    def applied(self, world: Any, diff: Any) -> None:
        """Follow the walk: called with the world as it is right before ``diff`` is applied to it."""
        ...


class Preference(Protocol):
    """Which of two neighbouring worlds is better.

    Implements: wick2009samplerank, Eq. 2, with the size of the difference and ties told apart.
    """

    def watch(self, world: Any) -> Judge:
        """Start judging a walk from ``world``."""
        ...


class TruthPreference:
    """Clusterings by a metric against the true one.

    truth
        A `Partition`, or the true entity of each item: any whole numbers or strings, with None or -1 where
        it is unknown. Items of unknown entity are left out of the metric, wherever they are.
    metric
        ``"pairwise"`` F1, ``"b-cubed"`` F1, or ``"rand"`` (the share of pairs of items decided rightly).

    A gain costs the sizes of the two clusters that the diff touches. Types of clusters do not count.

    Pairwise F1 is 0 as long as no right pair is together. From singletons, then, a right merge is a gain
    but a wrong one only a tie, from which nothing is learned, until the first right pair is there. From
    one cluster splits are gains and losses at once. Where the truth has no pairs at all (every known item
    an entity of its own), pairwise F1 is 0 in every world and everything is a tie. B-cubed and Rand
    punish a wrong merge in all of these worlds.

    >>> from factorwise.world.moves import merge
    >>> world = Partition.singletons(3)
    >>> judge = TruthPreference(["ann", "ann", None], "b-cubed").watch(world)
    >>> judge.gain(world, merge(world, 0, 1)) > 0.0
    True
    >>> judge.gain(world, merge(world, 0, 2))
    0.0
    """

    def __init__(
        self,
        truth: Partition | Sequence[object] | NDArray[Any],
        metric: MetricName = "pairwise",
    ) -> None:
        require(metric in METRICS, "metric", metric, f"one of {', '.join(map(repr, METRICS))}")
        self.metric = metric
        self.entity = _numbered(truth)

    def arrays(self, world: Partition) -> TruthArrays:
        """Return the arrays that compiled walks judge by, begun at ``world``."""
        if len(self.entity) != world.n_items:
            raise ShapeError(
                f"the truth tells of {len(self.entity)} items, but the world has {world.n_items}:"
                " give one entity per item, None where it is unknown."
            )
        arrays = truth_arrays(self.entity, METRICS[self.metric])
        begin_truth(arrays, world.arrays)
        return arrays

    def watch(self, world: Partition) -> TruthJudge:
        """Start judging a walk from ``world``."""
        return TruthJudge(self.arrays(world))


class TruthJudge:
    """The gains of one metric along one walk over clusterings."""

    def __init__(self, arrays: TruthArrays) -> None:
        self.arrays = arrays
        self._last: PartitionDiff | None = None

    @property
    def value(self) -> float:
        """The metric now; nan where too few entities are known to define it."""
        return float(truth_value(self.arrays))

    def gain(self, world: Partition, diff: PartitionDiff) -> float:
        """Change of the metric under ``diff``; exactly 0.0 for a tie."""
        self._last = diff
        if isinstance(diff, Retype):
            self.arrays.after[:] = self.arrays.sums
            return 0.0
        items = checked_items(world, diff, len(self.arrays.entity))
        return float(transfer_truth_gain(self.arrays, world.arrays, items, diff.source, diff.target))

    def applied(self, world: Partition, diff: PartitionDiff) -> None:
        """Bring the metric up to date with ``diff``, about to be applied."""
        if diff is not self._last:
            self.gain(world, diff)
        self.arrays.sums[:] = self.arrays.after
        self._last = None  # the same diff means another change in the world to come


class AccuracyPreference:
    """Assignments by the share of variables with the right label.

    truth
        An `Assignment`, or a code per variable with -1 where it is unknown. Variables whose label is unknown,
        and those that the world observes, are left out.
    """

    def __init__(self, truth: Assignment | Sequence[int] | NDArray[np.integer[Any]]) -> None:
        given = np.asarray(truth.values if isinstance(truth, Assignment) else truth)
        if given.ndim != 1:
            raise ShapeError(f"truth must be one code per variable, but has shape {given.shape}.")
        if given.dtype.kind not in "iu":
            raise InvalidArgumentError(
                f"truth must be integer codes, but {given.dtype} was given: encode labels with"
                " Assignment.from_labels(variables, labels)."
            )
        self.codes = given.astype(np.int64)

    def watch(self, world: Assignment) -> AccuracyJudge:
        """Start judging a walk from ``world``."""
        if len(self.codes) != len(world.values):
            raise ShapeError(
                f"the truth tells of {len(self.codes)} variables, but the world has {len(world.values)}:"
                " give one code per variable, -1 where it is unknown."
            )
        return AccuracyJudge(np.where(world.variables.observed, UNKNOWN, self.codes), world)


class AccuracyJudge:
    """The accuracy along one walk over assignments."""

    def __init__(self, codes: NDArray[np.int64], world: Assignment) -> None:
        self.codes = codes
        self.known = int(np.count_nonzero(codes >= 0))
        self.right = int(np.count_nonzero((codes >= 0) & (codes == world.values)))

    @property
    def value(self) -> float:
        """Share of known variables with the right label; nan where none is known."""
        return self.right / self.known if self.known else math.nan

    def gain(self, world: Assignment, diff: Relabel) -> float:
        """Change of accuracy under ``diff``."""
        return self._more_right(diff) / self.known if self.known else 0.0

    def applied(self, world: Assignment, diff: Relabel) -> None:
        """Bring the accuracy up to date with ``diff``, about to be applied."""
        self.right += self._more_right(diff)

    def _more_right(self, diff: Relabel) -> int:
        truth = [int(self.codes[variable]) for variable in diff.variables]
        right = sum(code == new for code, new in zip(truth, diff.new, strict=True) if code >= 0)
        return right - sum(code == old for code, old in zip(truth, diff.old, strict=True) if code >= 0)


class _Asking:
    """A preference that asks a function at every diff, and is its own judge: it keeps nothing."""

    def __init__(self, function: Callable[[Any, Any], float], *, tolerance: float = 0.0) -> None:
        require(0.0 <= tolerance < math.inf, "tolerance", tolerance, "a finite number, zero or more")
        self.function = function
        self.tolerance = tolerance

    def watch(self, world: Any) -> Self:
        """Return itself."""
        return self

    @property
    def value(self) -> float:
        """Return nan: this preference only compares."""
        return math.nan

    def applied(self, world: Any, diff: Any) -> None:
        """Do nothing."""

    def _answer(self, first: Any, second: Any) -> float:
        answer = float(self.function(first, second))
        if not math.isfinite(answer):
            raise InvalidArgumentError(
                f"the preference's function returned {answer}: return a finite number, above zero for better,"
                " below zero for worse and 0.0 for a tie."
            )
        return 0.0 if abs(answer) <= self.tolerance else answer


class WorldPreference(_Asking):
    """Worlds of any kind by a function of two of them.

    function
        Called as ``function(before, after)``; above zero where ``after`` is better, below where it is worse.
        It must leave both as they are.
    tolerance
        Answers no further than this from zero are ties.

    Each gain copies the world: where the change is enough to judge by, `DiffPreference` is faster.
    """

    def gain(self, world: Any, diff: Any) -> float:
        """What the function says of the world before and after ``diff``; 0.0 for a tie."""
        return self._answer(world, world.after(diff))


class DiffPreference(_Asking):
    """Worlds of any kind by a function of the change: a rule, a person's answer, other prior knowledge.

    function
        Called as ``function(world, diff)``, with ``diff`` not yet applied; above zero where the change is for
        the better, below where it is for the worse. It must leave the world as it is.
    tolerance
        Answers no further than this from zero are ties.

    Without labels, a rule of thumb can teach:

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
        """What the function says of ``diff``; 0.0 for a tie."""
        return self._answer(world, diff)


def checked_items(world: Partition, diff: Transfer, n_items: int) -> NDArray[np.int32]:
    """Items that ``diff`` moves; an error where it does not fit ``world``, or the world has other items."""
    if world.n_items != n_items:
        raise ShapeError(
            f"this judge watches a world of {n_items} items, but was given one of {world.n_items}: start"
            " another judge with preference.watch(world)."
        )
    items = np.array(diff.items, np.int32)
    inside = len(items) > 0 and items.min() >= 0 and items.max() < n_items
    if not inside or (world.labels[items] != diff.source).any() or diff.source == diff.target:
        raise DiffError(
            f"{diff} does not fit this world: build transfers with world.moves from the world they are for."
        )
    if diff.target != NEW:
        world.size_of(diff.target)  # an error where it does not exist
    return items


def _numbered(truth: Partition | Sequence[object] | NDArray[Any]) -> NDArray[np.int32]:
    """Dense entity numbers, -1 for unknown."""
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
                f"the entity of item {item} is {key!r}: give whole numbers or strings, None where unknown."
            )
        found[item] = numbers.setdefault(key, len(numbers))
    return found
