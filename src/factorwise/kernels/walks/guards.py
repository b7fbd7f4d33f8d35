"""Checks of what a user's own functions set in a walk, before anything indexes with it.

Shipped parts are not checked: they are tested. Where the library did not write the ``draw``, ``support``,
``choose``, ``gradient``, ``judge`` or ``gain`` of a program, `guarded_program` puts a function in its place
that calls it and looks at what it set. What is wrong goes into ``move.overflow``; then nothing more is
proposed, and `check_faults` says after the walk what was wrong.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from factorwise.errors import ProgramError
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.compile.programs import Pointers, Program, Written
from factorwise.kernels.walks.layouts import STAY

FAULTS = 16  # what ``move.overflow`` holds beyond: the number of a function, times this, plus what is wrong
ITEM, SOURCE, TARGET, CHANGES, WORLD, OFFER, WEIGHT, NUMBER, CHOSEN = range(1, 10)
MESSAGES = {
    ITEM: "set a move.item that is not an item of the world: set it to a number from 0 to the number of"
    " items - 1, or return STAY",
    SOURCE: "did not set move.source to where the item is: set it in every draw, for clusterings to"
    " world.label[item], for labels to world.value[item], else to world.target[item]",
    TARGET: "set a move.target that is not a target of the item, or is where it already is: set another one,"
    " or return STAY",
    CHANGES: "listed more changes than a move of it may have: declare how many by the attribute changes of"
    " the proposer, and count them with add_change",
    WORLD: "set move.world to a number that does not exist: leave it as it is",
    OFFER: "did not offer each target once, with its place, among them where the item is: set"
    " choice.targets[k] and choice.place[choice.targets[k]] = k + 1 for k below move.choices",
    WEIGHT: "named a weight that does not exist: give put(gradient, move, weight, value) weights from 0 to"
    " their number - 1",
    NUMBER: "returned nan: return a number",
    CHOSEN: "did not return the place of an offered target: a number from 0 to move.choices - 1",
}

# The number of each of the users' functions that were bound so far, by role; forgotten with the function.
_numbers: WeakKeyDictionary[Callable[..., Any], dict[str, int]] = WeakKeyDictionary()
_next_number = count(1)


def guarded_program(program: Program, world: Any, targets: int) -> Program:
    """Return a program that checks what the user's functions of ``program`` set; itself if there are none.

    world
        The arrays that its functions see.
    targets
        How many targets an item may have.
    """
    foreign = [role for role in GUARDS if role in program.functions and is_foreign(program.functions[role])]
    places = _places(world, targets)
    if isinstance(program, Unguarded) or any(program.worlds) or places is None or not foreign:
        return program
    arrays = dict(program.arrays)
    for role in foreign:
        number = _numbers.setdefault(program.functions[role], {}).setdefault(role, next(_next_number))
        arrays |= {
            f"own_{role}": Pointers([Unguarded(program)], (role,)),
            f"number_{role}": np.array([number]),
        }
    kept = {name: getattr(program, name) for name in ("name", "for_gains", "entries", "part")}
    functions = {**program.functions, **{role: GUARDS[role] for role in foreign}}
    return Program(arrays=arrays | places, **kept, **functions)


def _places(world: Any, targets: int) -> dict[str, Any] | None:
    """Return where the items of a world are, and where they may be; None for worlds side by side.

    place : int32[items]
        Where each item is. Of hierarchies, whose sources are places among the children, -1.
    room : int32[items] or int64[1]
        How many targets each item has, or all.
    kind, kinds : int32[targets], int64[1]
        The type of each cluster, which the second kind of change changes, and how many types there are.
    """
    fields = getattr(world, "_fields", ())
    name = next((name for name in ("label", "value", "target") if name in fields), None)
    if name is None:
        return None
    place = getattr(world, name)
    typed = name == "label"
    return {
        "place": np.full(len(place), -1, np.int32) if "following" in fields else place,
        "room": world.cardinality if name == "value" else np.array([len(world.size) if typed else targets]),
        "kind": world.type if typed else np.zeros(0, np.int32),
        "kinds": np.array([len(world.size) - len(place) if typed else 0]),
    }


class Unguarded(Program):
    """A program whose functions are called by those that check what they set."""

    def __init__(self, program: Program) -> None:
        vars(self).update(vars(program))


def is_foreign(function: Any) -> bool:
    """Whether a function is a user's own."""
    return not isinstance(function, Written) and not str(getattr(function, "__module__", "")).startswith(
        "factorwise."
    )


def check_faults(overflow: int) -> None:
    """Say which function of a user's own did what wrong, if ``move.overflow`` holds such a fault."""
    number, fault = divmod(overflow, FAULTS)
    for function, numbers in _numbers.items() if fault else ():
        for role in (role for role, known in numbers.items() if known == number):
            code = inspect.unwrap(function).__code__
            where = f"{Path(code.co_filename).name}, line {code.co_firstlineno}"
            raise ProgramError(
                f"{role} {function.__name__!r} ({where}) {MESSAGES[fault]}."
                " factorwise.testing.check_walk tries it on small worlds."
            )


# --- what is called in place of a user's function ---------------------------------------------------------


@shared
def is_one_of(number: Any, count: Any) -> bool:
    """Whether a number is one from 0 to ``count - 1``."""
    return bool(0 <= number < count)


@shared
def room_of(mine: Any, item: Any) -> int:
    """How many targets an item has."""
    return np.int64(mine.room[item if len(mine.room) == len(mine.place) else 0])


@shared
def fault_of_change(mine: Any, change: Any, changes: Any, number: Any) -> int:
    """Return what is wrong with a change of an item, once those before it in the list are made.

    They may have moved the item, or sent it to their source in exchange.
    """
    if change.world == 1 and len(mine.kind) > 0:  # of the type of a cluster
        if not is_one_of(change.item, len(mine.kind)):
            return ITEM
        if mine.kind[change.item] != change.source:
            return SOURCE
        return 0 if is_one_of(change.target, mine.kinds[0]) else TARGET
    if change.world != 0:
        return WORLD
    if not is_one_of(change.item, len(mine.place)):
        return ITEM
    if not is_one_of(change.source, room_of(mine, change.item)):
        return SOURCE
    if not is_one_of(change.target, room_of(mine, change.item)) or change.target == change.source:
        return TARGET
    at = mine.place[change.item]
    if at == change.source or at == -1:
        return 0
    for k in range(number):
        before = changes[k]
        if before.source == change.source or (before.item == change.item and before.target == change.source):
            return 0
    return SOURCE


def draw_guarded(mine: Any, move: Any, changes: Any) -> float:
    """Let a user's function draw, and check its changes; ``mine`` has what `_places` returns.

    Beside it ``own_draw`` int64[1, 2], the function, and ``number_draw`` int64[1]. After a fault nothing more
    is drawn.
    """
    if move.overflow != 0:
        return STAY
    move.item, move.source, move.target = -1, -1, -1  # what is not set is noticed
    drawn = call(mine.own_draw[0, 0], mine.own_draw[0, 1])
    if math.isnan(drawn):
        return STAY
    fault = 0
    if move.changes == 1:
        fault = fault_of_change(mine, move, changes, 0)
    elif is_one_of(move.changes - 1, len(changes)):
        for k in range(move.changes):
            found = fault_of_change(mine, changes[k], changes, k)
            fault = found if fault == 0 else fault
    else:
        fault = CHANGES
    if fault == 0:
        return drawn
    move.overflow = FAULTS * mine.number_draw[0] + fault
    return STAY


def support_guarded(mine: Any, move: Any, choice: Any) -> float:
    """Let a user's function offer targets, and check them; see `draw_guarded`."""
    if move.overflow != 0:
        return STAY
    move.item, move.source, move.choices = -1, -1, 0
    offered = call(mine.own_support[0, 0], mine.own_support[0, 1])
    if math.isnan(offered):
        return STAY
    fault = 0
    if move.world != 0:
        fault = WORLD
    elif not is_one_of(move.item, len(mine.place)):
        fault = ITEM
    elif not is_one_of(move.source, room_of(mine, move.item)):
        fault = SOURCE
    elif mine.place[move.item] != move.source and mine.place[move.item] != -1:
        fault = SOURCE
    elif not is_one_of(move.choices - 1, len(choice.targets)):
        fault = OFFER
    else:
        for k in range(move.choices):
            target = choice.targets[k]
            if not is_one_of(target, room_of(mine, move.item)) or choice.place[target] != k + 1:
                fault = OFFER
        if choice.place[move.source] == 0:
            fault = OFFER
    if fault == 0:
        return offered
    move.overflow = FAULTS * mine.number_support[0] + fault
    return STAY


def gradient_guarded(mine: Any, move: Any, gradient: Any) -> None:
    """Let a user's function list statistics, and check which weights it names; see `draw_guarded`."""
    first = move.entries
    call(mine.own_gradient[0, 0], mine.own_gradient[0, 1])
    for k in range(first, min(move.entries, len(gradient.index))):
        if not is_one_of(gradient.index[k], len(gradient.mark)):
            move.overflow = FAULTS * mine.number_gradient[0] + WEIGHT
    if move.overflow != 0:
        move.entries = first


def choose_guarded(mine: Any, move: Any, choice: Any) -> float:
    """Let a user's function choose a target, and check that it was offered; see `draw_guarded`."""
    chosen = call(mine.own_choose[0, 0], mine.own_choose[0, 1])
    if 0.0 <= chosen < move.choices:
        return chosen
    move.overflow = FAULTS * mine.number_choose[0] + CHOSEN
    return float(choice.place[move.source] - 1)


def judge_guarded(mine: Any, move: Any) -> float:
    """Let a user's function judge, and check that it returns a number; see `draw_guarded`."""
    judged = call(mine.own_judge[0, 0], mine.own_judge[0, 1])
    if not math.isnan(judged):
        return judged
    move.overflow = FAULTS * mine.number_judge[0] + NUMBER
    return 0.0


def gain_guarded(mine: Any, move: Any) -> float:
    """Let a user's function say the gain, and check that it is a number; see `draw_guarded`."""
    gain = call(mine.own_gain[0, 0], mine.own_gain[0, 1])
    if not math.isnan(gain):
        return gain
    move.overflow = FAULTS * mine.number_gain[0] + NUMBER
    return 0.0


GUARDS: dict[str, Callable[..., Any]] = {
    "draw": draw_guarded,
    "support": support_guarded,
    "choose": choose_guarded,
    "gradient": gradient_guarded,
    "judge": judge_guarded,
    "gain": gain_guarded,
}
