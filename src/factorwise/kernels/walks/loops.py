"""The two loops of all walks: one over moves, one over choices.

    draw  ->  gain  ->  [ judge -> learn ]  ->  accept  ->  apply  ->  [ record ]

Neither depends on a particular part, model or kind of world. Parts are (entry, context) pairs in an array of
int64 (see `factorwise.kernels.compile.pointers`), 0 for missing ones; in interpreted walks they are lists of
functions and their arguments.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.kernels.compile.compiler import lean_kernel, shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import Choice, Gradient
from factorwise.kernels.walks.library import listed

#: Columns of a plan: the entry of each role; its context is in the next column.
DRAW, SUPPORT, CHOOSE, ACCEPT, JUDGE, UPDATE, KEPT, EPISODE = range(0, 16, 2)
PLAN = 16
#: Columns of a template, for each world of a joint world in turn; its context is in the last column.
GAIN, GAINS, GRADIENT, APPLIED = range(4)
COLUMNS = 4
#: Columns of the tally.
STEPS, ACCEPTED, STAYED, JOURNAL = range(4)
#: Columns of the clock, of which the first counts steps as well.
UPDATES, MISRANKED = range(1, 3)
CLOCK = 3

TIE = 1e-12  # gains of several changes that cancel to within this share of their size are a tie


class WalkFrame(NamedTuple):
    """A walk as its loop sees it.

    plan : int64[PLAN]
        Entry and context of the proposer, the acceptance and, if there are any, the preference and the rule.
        Preferences with a state are also listed among the templates, which are notified of changes.
    apply : int64[1, worlds + 1]
        Entries of the functions that change each world, and their context.
    templates : int64[templates, COLUMNS * worlds + 1]
        Entries of each template for changes of each world, and its context.
    step, changes, choice, gradient
        The current move, see `factorwise.kernels.walks.layouts`.
    weights : float64[weights]
        Empty if gains are computed without a gradient.
    score : float64[1]
        Score of the world: its initial score plus all gains.
    tally : int64[4]
        Steps made, steps that changed the world, steps that proposed nothing, changes in the journal.
    clock : int64[CLOCK]
        Counts over all walks that learn with the same rule: steps, changes of the weights, and moves whose
        better world did not score higher.
    journal : CHANGE[.]
        Accepted changes, to be undone at the end of an episode; empty without episodes.
    kinds : int32[targets]
        The kind of each target, such as the type of a cluster; empty if targets have no kinds. Proposers may
        overwrite those of unused targets.
    """

    plan: NDArray[np.int64]
    apply: NDArray[np.int64]
    templates: NDArray[np.int64]
    step: NDArray[np.void]
    changes: NDArray[np.void]
    choice: Choice
    gradient: Gradient
    weights: NDArray[np.float64]
    score: NDArray[np.float64]
    tally: NDArray[np.int64]
    clock: NDArray[np.int64]
    journal: NDArray[np.void]
    kinds: NDArray[np.int32]


class Weighing(NamedTuple):
    """The fields of a `WalkFrame` that proposers need to weigh a move themselves."""

    plan: NDArray[np.int64]
    apply: NDArray[np.int64]
    templates: NDArray[np.int64]
    changes: NDArray[np.void]
    gradient: Gradient
    weights: NDArray[np.float64]


@shared
def take_gain(walk: Any, move: Any, learning: bool) -> float:
    """Return the gain of the current change, from every template that reads the changed world.

    While learning, templates with weights add to the gradient instead, and the gain is that of the others.
    """
    gain = 0.0
    at, last = COLUMNS * move.world, walk.templates.shape[1] - 1
    for k in range(walk.templates.shape[0]):
        template = walk.templates[k]
        if learning and template[at + GRADIENT] != 0:
            call(template[at + GRADIENT], template[last])
        elif template[at + GAIN] != 0:
            gain += call(template[at + GAIN], template[last])
    return gain


@shared
def make_change(walk: Any, move: Any) -> None:
    """Make the current change, and notify every template that reads the changed world."""
    call(walk.apply[0, move.world], walk.apply[0, walk.apply.shape[1] - 1])
    at, last = COLUMNS * move.world, walk.templates.shape[1] - 1
    for k in range(walk.templates.shape[0]):
        template = walk.templates[k]
        if template[at + APPLIED] != 0:
            call(template[at + APPLIED], template[last])


@shared
def take_change(move: Any, changes: Any, at: int, back: bool) -> None:
    """Make one of a list of changes, or its reverse, the current change."""
    change = changes[at]
    move.world, move.item = change.world, change.item
    if back:
        move.source, move.target = change.target, change.source
    else:
        move.source, move.target = change.source, change.target


@shared
def make_changes(walk: Any, move: Any, made: int) -> None:
    """Make all changes of the move except the first ``made``, which are already made."""
    if move.changes == 1:
        make_change(walk, move)
        return
    for at in range(made, move.changes):
        take_change(move, walk.changes, at, False)
        make_change(walk, move)


@shared
def take_back(walk: Any, move: Any, changes: Any, count: int) -> None:
    """Undo the first ``count`` of a list of changes, the last one first."""
    for at in range(count - 1, -1, -1):
        take_change(move, changes, at, True)
        make_change(walk, move)


@shared
def begin_gradient(walk: Any, move: Any) -> None:
    """Empty the list, but for its head, which is set to zero."""
    move.entries = move.dense
    for k in range(move.dense):
        walk.gradient.value[k] = 0.0


@shared
def weigh_move(walk: Any, move: Any, learning: bool) -> int:
    """Set the gain of the move, and by how much it is better; return how many changes had to be made.

    If there are several, each except the last is made before the next is weighed. If improvements and
    deteriorations cancel up to rounding, neither world is better.
    """
    plan, several, made = walk.plan, move.changes > 1, 0
    gain, better, parts = 0.0, 0.0, 0.0
    move.broken = 0
    if learning:
        begin_gradient(walk, move)
    for at in range(move.changes):
        if several:
            take_change(move, walk.changes, at, False)
        gain += take_gain(walk, move, learning)
        if plan[JUDGE] != 0:
            judged = call(plan[JUDGE], plan[JUDGE + 1])
            better += judged
            parts += abs(judged)
        if at + 1 < move.changes:
            make_change(walk, move)
            made += 1
    if several and abs(better) <= TIE * parts:
        better = 0.0
    if move.broken != 0:
        gain = -math.inf if move.broken > 0 else math.inf
    move.gain, move.fixed, move.better = gain, gain, better
    if learning:
        move.gain += listed(walk.weights, walk.gradient, move)
    return made


@shared
def begin_move(move: Any) -> None:
    """Reset the move: one change of the first world, with equal probabilities of both directions.

    The proposer may set other values.
    """
    move.changes, move.world, move.known, move.graph = 1, 0, 0, 0
    move.ratio, move.log_ratio, move.better = 1.0, 0.0, 0.0


@lean_kernel
def walk_moves(walk: WalkFrame, steps: int, learning: bool, episode: int) -> None:
    """Make ``steps`` steps: propose, weigh, [judge, learn,] decide, change.

    learning
        Compute gradients, whose product with ``weights`` is the gain, and pass those of moves that make the
        world better or worse to the rule.
    episode
        After this many steps the rule learns from all of them, and the changes in the journal are undone; 0
        for one continuous walk.

    Implements: wick2009samplerank, Alg. 1; rohanimanesh2009inference, Alg. 1.
    """
    plan, tally, move = walk.plan, walk.tally, walk.step[0]
    asked = plan[JUDGE] != 0 or plan[UPDATE] != 0 or plan[KEPT] != 0 or plan[EPISODE] != 0
    for number in range(1, steps + 1):
        begin_move(move)
        if math.isnan(call(plan[DRAW], plan[DRAW + 1])):
            tally[STAYED] += 1
        else:
            made = 0
            if move.known == 0 or asked:
                made = weigh_move(walk, move, learning)
            if learning and plan[UPDATE] != 0 and move.better != 0.0 and math.isfinite(move.fixed):
                walk.clock[MISRANKED] += (move.gain if move.better > 0.0 else -move.gain) <= 0.0
                if call(plan[UPDATE], plan[UPDATE + 1]) != 0.0:
                    walk.clock[UPDATES] += 1
                    move.gain = move.fixed + listed(walk.weights, walk.gradient, move)
            if call(plan[ACCEPT], plan[ACCEPT + 1]) != 0.0:
                tally[ACCEPTED] += 1
                walk.score[0] += move.gain
                if plan[KEPT] != 0:
                    call(plan[KEPT], plan[KEPT + 1])
                make_changes(walk, move, made)
                if len(walk.journal) > 0:
                    keep_changes(walk, move)
            else:
                take_back(walk, move, walk.changes, made)
        tally[STEPS] += 1
        walk.clock[STEPS] += 1
        if episode > 0 and number % episode == 0:
            call(plan[EPISODE], plan[EPISODE + 1])
            take_back_episode(walk, move)


@shared
def keep_changes(walk: Any, move: Any) -> None:
    """Enter the changes of an accepted move in the journal."""
    for at in range(move.changes):
        if move.changes > 1:
            take_change(move, walk.changes, at, False)
        entry = walk.journal[walk.tally[JOURNAL]]
        entry.world, entry.item, entry.source, entry.target = move.world, move.item, move.source, move.target
        if len(walk.kinds) > 0 and move.world == 0:
            entry.kind = walk.kinds[move.source]
        walk.tally[JOURNAL] += 1


@shared
def take_back_episode(walk: Any, move: Any) -> None:
    """Undo all changes in the journal, the last one first.

    A source that was given up is again what it was.
    """
    for at in range(walk.tally[JOURNAL] - 1, -1, -1):
        take_change(move, walk.journal, at, True)
        if len(walk.kinds) > 0 and move.world == 0:
            walk.kinds[move.target] = walk.journal[at].kind
        make_change(walk, move)
    walk.tally[JOURNAL] = 0


@lean_kernel
def walk_choices(walk: WalkFrame, steps: int, visits: int) -> None:
    """Make ``steps`` Gibbs steps: an item chooses among targets, given everything else.

    visits
        How many items choose in one step, one after the other: 1, or all of them in a sweep.
    """
    plan, tally, choice, move = walk.plan, walk.tally, walk.choice, walk.step[0]
    for _ in range(steps):
        tally[STEPS] += 1
        changed = False
        for _ in range(visits):
            changed |= make_choice(walk, plan, tally, choice, move)
        tally[ACCEPTED] += changed


@shared
def make_choice(walk: Any, plan: Any, tally: Any, choice: Any, move: Any) -> bool:
    """Let one item choose; return whether it went elsewhere."""
    move.changes, move.world, move.graph = 1, 0, 0
    if math.isnan(call(plan[SUPPORT], plan[SUPPORT + 1])):
        tally[STAYED] += 1
        return False
    for k in range(move.choices):
        choice.out[k] = 0.0
    at, last = COLUMNS * move.world, walk.templates.shape[1] - 1
    for k in range(walk.templates.shape[0]):
        template = walk.templates[k]
        if template[at + GAINS] != 0:
            call(template[at + GAINS], template[last])
    chosen = int(call(plan[CHOOSE], plan[CHOOSE + 1]))
    home = choice.place[move.source] - 1
    move.gain = choice.out[chosen] - choice.out[home]
    move.target = choice.targets[chosen]
    for k in range(move.choices):
        choice.place[choice.targets[k]] = 0
    if move.target == move.source:
        return False
    walk.score[0] += move.gain
    make_change(walk, move)
    return True
