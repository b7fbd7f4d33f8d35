"""Create the arrays of a walk, and run it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.binding import Bound, Frame, Interpreted
from factorwise.kernels.compile.compiler import lean_kernel
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.compile.programs import Pointers, Program
from factorwise.kernels.walks import loops
from factorwise.kernels.walks.adapters import choices_by_gain, gain_by_choices
from factorwise.kernels.walks.layouts import CHANGE, STEP, Choice, Gradient, WalkRecords
from factorwise.kernels.walks.library import room_for
from factorwise.kernels.walks.loops import WalkFrame, walk_choices, walk_moves


def make_frame(
    world: Any,
    random: NDArray[np.uint64],
    *,
    weights: int,
    changes: int = 1,
    choices: int = 2,
    targets: int = 0,
    dense: int | None = None,
    entries: int = 0,
) -> Frame:
    """Make the arrays that the parts of one walk share.

    weights, changes, choices, targets
        The number of weights, the largest number of changes of a move and of targets of a Gibbs step, and the
        number of all targets.
    dense, entries
        Length of the gradient's head, by default all weights, and the largest number of entries after it.
    """
    step = np.zeros(1, STEP)
    head = weights if dense is None else dense
    step["temperature"], step["dense"] = 1.0, head
    room = room_for(choices)
    codes = [np.zeros(many, np.int32) for many in (room, targets, room)]
    choice = Choice(codes[0], np.zeros(room), codes[1], codes[2], np.zeros(room))
    index = np.zeros(head + entries, np.int32)
    index[:head] = np.arange(head)
    gradient = Gradient(index, np.zeros(head + entries), np.zeros(weights, np.int32))
    return Frame(world, step, np.zeros(changes, CHANGE), random, choice, gradient)


@lean_kernel
def _run(entry: int, context: int) -> float:
    return call(entry, context)


def run(bound: Bound | Interpreted, role: str) -> float:
    """Call one function of a program, if it has one."""
    entry: Any = bound.entry(role)
    if isinstance(bound, Interpreted):
        return float(entry(0)) if entry != 0 else 0.0
    return float(_run(entry, bound.context)) if entry != 0 else 0.0


def make_adapters(templates: Sequence[Program], *, choices: bool) -> list[Program]:
    """For each template that lacks one of ``gain`` and ``gains``, derive the one that the walk needs.

    It is computed from the other.
    """
    wanted, other, function = (
        ("gains", "gain", choices_by_gain) if choices else ("gain", "gains", gain_by_choices)
    )
    adapters = []
    for program in templates:
        for world in range(1 + len(program.worlds)):
            if wanted not in program.of(world) and other in program.of(world):
                inner = {"inner": Pointers([program], (other,), first=world)}
                adapters.append(
                    Program(arrays=inner, name=program.name, **{wanted: function}).within("", world)
                )
    return adapters


def kinds_of(world: Any) -> NDArray[np.int32]:
    """Return the kind of each target of the first world of a joint world, if targets have kinds."""
    while world and isinstance(world[0], tuple):
        world = world[0]
    kinds = getattr(world, "type", None)
    return kinds if isinstance(kinds, np.ndarray) else np.zeros(0, np.int32)


class Parts:
    """The parts of one walk, compiled or interpreted, as its loops see them."""

    def __init__(
        self,
        frame: Frame,
        world: Program,
        templates: Sequence[Program],
        *,
        stream: Any = None,
        weights: NDArray[np.float64],
        learning: bool = False,
        clock: NDArray[np.int64] | None = None,
        journal: int = 0,
        visits: int = 1,
        **roles: Program,
    ) -> None:
        """Bind programs to the arrays of a walk.

        stream
            The stream of an interpreted walk; None compiles.
        learning
            Compute gains as the product of gradients with ``weights``, which may change.
        visits
            Number of items that choose in one Gibbs step.
        roles
            Programs of the proposer (``draw`` or ``support``), the acceptance (``accept`` or ``choose``), the
            preference (``judge``) and the rule (``update``, ``kept``, ``episode``), by role.
        """
        self.frame = frame
        self.stream = stream
        self.bound: list[Bound | Interpreted] = []
        kind: Any = np.int64 if stream is None else object
        worlds = 1 + len(world.worlds)
        plan, apply = np.zeros(loops.PLAN, kind), np.zeros((1, worlds + 1), kind)
        for name, program in roles.items():
            column = getattr(loops, name.upper())
            bound = self._bind(program)
            plan[column], plan[column + 1] = bound.entry(name), _context(bound)
        changer = self._bind(world)
        told = [p for p in roles.values() if "applied" in p.roles]
        gained = [p for p in templates if not (learning and "gradient" in p.roles)]
        adapters = make_adapters(gained, choices="support" in roles)
        programs = [*templates, *adapters, *{id(p): p for p in told}.values()]
        table = np.zeros((len(programs), loops.COLUMNS * worlds + 1), kind)
        self.templates = [self._bind(program) for program in programs]
        apply[0, -1] = _context(changer)
        for at in range(worlds):
            apply[0, at] = changer.entry("apply", at)
            for k, bound in enumerate(self.templates):
                for column, role in self._needed(bound.program, at, learning, "support" in roles):
                    table[k, loops.COLUMNS * at + column] = bound.entry(role, at)
                table[k, -1] = _context(bound)
        records = (frame.step, frame.changes, np.zeros(journal, CHANGE))
        step, changes, kept = records if stream is None else (WalkRecords(record) for record in records)
        self.walk = WalkFrame(
            plan,
            apply,
            table,
            step,
            changes,
            frame.choice,
            frame.gradient,
            weights,
            np.zeros(1),
            np.zeros(4, np.int64),
            np.zeros(loops.CLOCK, np.int64) if clock is None else clock,
            kept,
            kinds_of(frame.world),
        )
        self.choices = "support" in roles
        self.learning = learning
        self.visits = visits

    @staticmethod
    def _needed(program: Program, world: int, learning: bool, choices: bool) -> list[tuple[int, str]]:
        """Return the functions of a template that the walk calls; nothing else is compiled."""
        gained = (loops.GAINS, "gains") if choices else (loops.GAIN, "gain")
        if learning and "gradient" in program.of(world):
            gained = (loops.GRADIENT, "gradient")
        return [gained, (loops.APPLIED, "applied")]

    def _bind(self, program: Program) -> Bound | Interpreted:
        if self.stream is None:
            bound: Bound | Interpreted = Bound(program, self.frame)
        else:
            bound = Interpreted(program, self.frame, self.stream)
        self.bound.append(bound)
        return bound

    def begin(self) -> None:
        """Let every template initialise its state for the current world."""
        for bound in self.templates:
            run(bound, "begin")

    def advance(self, steps: int, temperature: float, *, episode: int = 0) -> None:
        """Make ``steps`` steps."""
        self.frame.step["temperature"] = temperature
        if self.choices:
            loop = walk_choices if self.stream is None else walk_choices.py_func  # type: ignore[attr-defined]
            loop(self.walk, steps, self.visits)
        else:
            loop = walk_moves if self.stream is None else walk_moves.py_func  # type: ignore[attr-defined]
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # as in compiled code
                loop(self.walk, steps, self.learning, episode)


def _context(bound: Bound | Interpreted) -> int:
    return bound.context if isinstance(bound, Bound) else 0
