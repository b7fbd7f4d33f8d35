"""The jumps of a walk from its current world: draw some, judge them, make one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.adaptive.law import JumpWeights
from factorwise.inference.mcmc.adaptive.proposer import JumpProgram
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.clusterings.adaptive.jump_draws import draw_given, record_jump
from factorwise.kernels.clusterings.adaptive.jump_features import (
    BALANCED,
    SEEN,
    STALE,
    write_features,
    write_part_features,
)
from factorwise.kernels.clusterings.adaptive.jump_odds import EXPLORE, MERGE
from factorwise.kernels.compile.binding import Bound, Interpreted
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks.acceptances import accept_always
from factorwise.kernels.walks.frames import run
from factorwise.kernels.walks.layouts import CHANGE
from factorwise.kernels.walks.loops import ACCEPT, DRAW, EPISODE, KEPT, UPDATE
from factorwise.rng import Stream
from factorwise.types import Float32s, Float64s, Int64s
from factorwise.world.diff import NEW, Transfer


class Jump(NamedTuple):
    """A jump that was drawn and judged.

    kind
        SPLIT, MERGE or MOVE.
    items, source, target
        The items that leave cluster ``source`` for ``target``; the target of a split is NEW.
    row
        Position of the cluster to be split, or of the pair of clusters, among the features of its world.
    gain, better
        Change of the model's score, and of the preference.
    """

    kind: int
    items: tuple[int, ...]
    source: int
    target: int
    row: int
    gain: float
    better: float

    @property
    def diff(self) -> Transfer:
        """The jump as a diff of the world in which it was drawn."""
        return Transfer(self.items, self.source, self.target)


class _Part(NamedTuple):
    """A part of the loop: its arrays, entry and context, and objects that must stay alive."""

    arrays: Mapping[str, Any]
    pointer: tuple[Any, Any]
    bound: Bound | Interpreted


class Jumps:
    """The jumps that the adaptive proposer of a walk draws, without making them.

    They are drawn, weighed and judged in the loop of the walk itself, with an acceptance that records each of
    them and rejects it. The walk's counts and learned weights do not change.
    """

    def __init__(self, walk: Walk) -> None:
        found = [program for bound in walk.parts.bound for program in _all_programs(bound.program)]
        programs = [program for program in found if isinstance(program, JumpProgram)]
        if not programs:
            raise InvalidArgumentError(
                f"the walk's proposer is {type(walk.kernel.proposer).__name__}: give Walk(Metropolis(model,"
                " AdaptiveSplitMerge(...)), world)."
            )
        self.walk = walk
        self.program = programs[0]
        self.proposer = programs[0].proposer
        self._draw = self._part("draw", self.program)
        self._given = self._part("draw", Program(draw=draw_given, arrays={"count": np.zeros(1, np.int64)}))
        self._always = self._part("accept", Program(accept=accept_always))
        self._record = self._recorder(1)

    def _part(self, role: str, program: Program) -> _Part:
        bound = self._bind(program)
        return _Part(program.arrays, (bound.entry(role), getattr(bound, "context", 0)), bound)

    def _bind(self, program: Program) -> Bound | Interpreted:
        frame, stream = self.walk.frame, self.walk.parts.stream
        return Bound(program, frame) if stream is None else Interpreted(program, frame, stream)

    @property
    def arrays(self) -> Mapping[str, Any]:
        """The arrays of the proposer by name: see `factorwise.kernels.clusterings.adaptive.jump_features`."""
        return self.program.arrays

    @property
    def weights(self) -> JumpWeights:
        """The proposer's weights in this walk; new weights apply from the next draw on."""
        split, merge, move = self.arrays["settings"][:EXPLORE].tolist()
        names = self.proposer.features.names
        return JumpWeights(names, self.arrays["split"], self.arrays["merge"], (split, merge, move))

    @weights.setter
    def weights(self, replacement: JumpWeights) -> None:
        self.proposer.with_weights(replacement)  # refuses weights for other features
        self.arrays["settings"][:EXPLORE] = replacement.kinds
        self.arrays["split"][:], self.arrays["merge"][:] = replacement.split, replacement.merge
        self.arrays["state"][STALE] = 1

    @property
    def odds_seen(self) -> int:
        """Number of pairs of items whose statistics were examined so far for the odds of jumps."""
        return int(self.arrays["state"][SEEN])

    def draw(self, stream: Stream, count: int) -> list[Jump]:
        """Draw jumps and judge them; a world of one item has none."""
        if count > len(self._record.arrays["jumps"]):
            self._record = self._recorder(count)
        self._record.arrays["count"][0] = 0
        state = self.arrays["state"]
        balanced, state[BALANCED] = int(state[BALANCED]), 0
        self._run(stream, count, self._draw, self._record, np.zeros(1))
        state[BALANCED] = balanced
        return self._listed()

    def _recorder(self, count: int) -> _Part:
        arrays = {
            "changes": self.walk.frame.changes,
            "kind": self.arrays["kind"],
            "count": np.zeros(1, np.int64),
            "jumps": np.zeros((count, 4), np.int64),
            "items": np.zeros(count * self.walk.view.n_items, np.int32),
            "judged": np.zeros((count, 2)),
        }
        return self._part("accept", Program(accept=record_jump, arrays=arrays))

    def _listed(self) -> list[Jump]:
        recorded, sizes = self._record.arrays, self.walk.view.arrays.size
        clusters, large = self.clusters(1), self.clusters(2)
        jumps, begin = list[Jump](), 0
        count = int(recorded["count"][0])
        for row, judged in zip(recorded["jumps"][:count].tolist(), recorded["judged"].tolist(), strict=False):
            kind, source, target, end = row
            if kind == MERGE:
                b, a = np.searchsorted(clusters, sorted((source, target))).tolist()
                place = a * (a - 1) // 2 + b
            else:
                place = int(np.searchsorted(large, source))
            items = tuple(recorded["items"][begin:end].tolist())
            target = NEW if sizes[target] == 0 else target
            jumps.append(Jump(kind, items, source, target, place, *judged))
            begin = end
        return jumps

    def take(self, jump: Jump) -> None:
        """Make a jump that was drawn from the current world."""
        world, changes = self.walk.view, self.walk.frame.changes[: len(jump.items)]
        new = world.arrays.live[world.n_clusters]
        changes["world"], changes["item"], changes["source"] = 0, jump.items, jump.source
        changes["target"] = new if jump.target == NEW else jump.target
        self._given.arrays["count"][0] = len(jump.items)
        self._run(Stream(0), 1, self._given, self._always, self.walk.parts.walk.score)

    def _run(self, stream: Stream, steps: int, draw: _Part, accept: _Part, score: Float64s) -> None:
        """Run steps of the walk's loop with another proposer and acceptance, and without learning."""
        parts, walk = self.walk.parts, self.walk.parts.walk
        plan = walk.plan.copy()
        plan[[UPDATE, KEPT, EPISODE]] = 0
        plan[DRAW : DRAW + 2], plan[ACCEPT : ACCEPT + 2] = draw.pointer, accept.pointer
        parts.walk = walk._replace(
            plan=plan,
            score=score,
            tally=np.zeros_like(walk.tally),
            clock=np.zeros_like(walk.clock),
            journal=np.zeros(0, CHANGE),
        )
        try:
            self.walk.advance(stream, 1.0, steps)
        finally:
            parts.walk = walk

    def clusters(self, least: int) -> Int64s:
        """Return the ids of all clusters with at least this many members, ascending.

        Weighing a jump makes it and undoes it, which preserves ids but not their storage order.
        """
        return np.flatnonzero(self.walk.view.arrays.size >= least)

    def features(self) -> tuple[Float32s, Float32s]:
        """Return the features of all pairs of clusters and of all clusters of two or more.

        The pair at positions (a, b) of the ascending ids, with a > b, is row a (a - 1) / 2 + b; clusters of
        two or more are in ascending order, too.
        """
        clusters, large, width = self.clusters(1), self.clusters(2), self.proposer.features.size
        between = np.empty((len(clusters) * (len(clusters) - 1) // 2, width), np.float32)
        within = np.empty((len(large), width), np.float32)
        self._look(write_features, clusters=clusters, large=large, between=between, within=within)
        return between, within

    def part_features(self, jump: Jump) -> Float32s:
        """Return the features of a part of a cluster with each cluster, including the rest of its own."""
        clusters = self.clusters(1)
        out = np.empty((len(clusters), self.proposer.features.size), np.float32)
        self._look(write_part_features, clusters=clusters, between=out, part=np.array(jump.items, np.int32))
        return out

    def _look(self, function: Callable[..., None], **arrays: NDArray[Any]) -> None:
        run(self._bind(Program(begin=function, arrays={**self.arrays, **arrays})), "begin")


def _all_programs(program: Program) -> Iterator[Program]:
    """Yield a program and the programs that it calls."""
    yield program
    for value in program.arrays.values():
        if isinstance(value, Pointers):
            for inner in value.programs:
                yield from _all_programs(inner)
