"""Drawing adaptive jumps: splits, merges and moves of parts, by odds that the proposer keeps.

The clustering of the proposer (`jump_features`) moves to the proposed world, where the odds give the
probability of the way back. If the walk rejects the move, the next draw takes it back.

In addition, ``mine`` has ``kind`` int64[1], the kind of the current jump; ``sides`` int64[4], the arguments
of `allocate_members`; and, if parts are guided, ``guide``, that function.
"""

from __future__ import annotations

import math
from typing import Any

from factorwise.kernels.clusterings.adaptive.jump_features import (
    ASIDE,
    BALANCED,
    GUIDED,
    UPDATE_ODDS,
    WEIGH_ASIDE,
    follow,
    keep_odds,
    note_change,
    shift,
    side_odds,
    spare,
)
from factorwise.kernels.clusterings.adaptive.jump_odds import (
    EXPLORE,
    MERGE,
    MOVE,
    ONE_MEMBER,
    SPLIT,
    choose_by,
    choose_mixed,
    choose_pair,
    draw_kind,
    log_any_part,
    log_kind,
    log_mixed,
    log_moved_part,
    log_pair,
    log_share,
)
from factorwise.kernels.clusterings.arrays import LIVE, spare_id
from factorwise.kernels.clusterings.jumps import draw_part, move_all
from factorwise.kernels.clusterings.restricted import sort_ascending
from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.compile.pointers import call
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import add_change, below, end_changes, two_below, uniform

COUNT, FIRST, SECOND, FORCED = range(4)


def draw_jump(world: Any, mine: Any, random: Any, move: Any, changes: Any) -> float:
    """Draw a jump; its ratio is set only if it is needed."""
    follow(world, mine)
    kind = draw_kind(mine, random)
    if kind < 0:
        return STAY
    mine.kind[0] = kind
    there, back = log_kind(mine, kind), 0.0
    if kind == MERGE:
        there, back = draw_merge(world, mine, random, move, changes, there)
    else:
        source = choose_mixed(world, mine, random)
        there += log_mixed(mine, source)
        move.changes = 0
        if kind == MOVE:
            there, back = draw_move(world, mine, random, move, changes, source, there)
        elif mine.state[GUIDED] != 0:
            there += draw_guided(world, mine, random, move, changes, source)
        else:
            there += log_any_part(int(world.size[source]))
            draw_part(world, random, move, changes, source, spare_id(world, 0), False)
    end_changes(move, changes)
    source, target = int(changes[0].source), int(changes[0].target)
    ahead = mine.state[BALANCED] != 0
    if ahead:
        keep_odds(world, mine, source, target)
        note_change(mine, source)
        note_change(mine, target)
    for at in range(move.changes):
        place = target if ahead else source
        if mine.label[changes[at].item] != place:
            shift(mine, changes[at].item, place)
    if ahead:
        call(mine.odds[UPDATE_ODDS, 0], mine.odds[UPDATE_ODDS, 1])
        back += log_way_back(mine, kind, source, target, move.changes)
        move.log_ratio = back - there
    return 1.0


@shared
def log_way_back(mine: Any, kind: int, source: int, target: int, count: int) -> float:
    """Return the log-probability of drawing the way back, without terms already added on the way there."""
    s, t = int(mine.size[source]), int(mine.size[target])
    if kind == SPLIT:
        return log_kind(mine, MERGE) + log_pair(mine, source, target) + log_ends(mine, s, t)
    if kind == MOVE:
        return log_kind(mine, MOVE) + log_mixed(mine, target) + log_moved_part(t, count)
    part = log_any_part(t) if mine.state[GUIDED] == 0 else -math.log(t) - math.log(t - 1.0)
    return log_kind(mine, SPLIT) + log_mixed(mine, target) + part


@shared
def log_ends(mine: Any, first: int, second: int) -> float:
    """Return the log-probability of drawing a member each of two clusters, in one order, for guided parts."""
    if mine.state[GUIDED] == 0:
        return 0.0
    return -math.log(2.0) - math.log(first) - math.log(second)


@shared
def member_of(world: Any, random: Any, cluster: int) -> int:
    """Draw a member of a cluster."""
    return int(world.members[world.start[cluster] + below(random, int(world.size[cluster]))])


@shared
def draw_merge(
    world: Any, mine: Any, random: Any, move: Any, changes: Any, there: float
) -> tuple[float, float]:
    """Draw two clusters; if parts are guided, also the two members that the way back would draw."""
    first, second = choose_pair(world, mine, random)
    there += log_pair(mine, first, second) + log_ends(mine, int(world.size[first]), int(world.size[second]))
    back = 0.0
    if mine.state[GUIDED] != 0:
        if uniform(random) >= 0.5:
            first, second = second, first
        stays, moves = member_of(world, random, first), member_of(world, random, second)
        if mine.state[BALANCED] != 0:
            count = list_members(world, mine, first, 0, stays)
            count = list_members(world, mine, second, count, moves)
            back = allocate(mine, count, first, second, 1)
    move_all(world, move, changes, first, second)
    return there, back


@shared
def list_members(world: Any, mine: Any, cluster: int, count: int, but: int) -> int:
    """Append the members of a cluster except one to ``mine.items``; return their number."""
    for slot in range(world.start[cluster], world.start[cluster] + world.size[cluster]):
        if world.members[slot] != but:
            mine.items[count] = world.members[slot]
            count += 1
    return count


@shared
def draw_guided(world: Any, mine: Any, random: Any, move: Any, changes: Any, source: int) -> float:
    """Draw two members to separate; the others join one or the other. Return the log-probability."""
    start, size = world.start[source], int(world.size[source])
    stays, moves = two_below(random, size)
    stays, moves = int(world.members[start + stays]), int(world.members[start + moves])
    target = spare_id(world, 0)
    count = list_members(world, mine, source, 0, stays)
    for k in range(count):
        if mine.items[k] == moves:
            count -= 1
            mine.items[k] = mine.items[count]
            break
    shift(mine, moves, target)
    log_part = allocate(mine, count, source, target, 0)
    for slot in range(start, start + size):
        if mine.label[world.members[slot]] == target:
            add_change(move, changes, world.members[slot], source, target)
    return log_part - math.log(size) - math.log(size - 1.0)


@shared
def allocate(mine: Any, count: int, first: int, second: int, forced: int) -> float:
    """Call `allocate_members`, which is compiled separately, and only if parts are guided."""
    mine.sides[COUNT], mine.sides[FIRST], mine.sides[SECOND], mine.sides[FORCED] = (
        count,
        first,
        second,
        forced,
    )
    return call(mine.guide[0, 0], mine.guide[0, 1])


def allocate_members(world: Any, mine: Any, random: Any) -> float:
    """Let ``mine.items``, in ascending order, join one of two clusters; return the log-probability.

    If ``forced``, each joins the cluster in which the walk has it.
    """
    count, first, second = mine.sides[COUNT], mine.sides[FIRST], mine.sides[SECOND]
    explore, total = mine.settings[EXPLORE], 0.0
    sort_ascending(mine.items, count)
    for k in range(count):
        shift(mine, mine.items[k], spare(mine))
    for k in range(count):
        item = int(mine.items[k])
        stay, go = side_odds(mine, item, first), side_odds(mine, item, second)
        chance = (1.0 - explore) * (go / (stay + go)) + explore / 2.0
        goes = world.label[item] == second
        if mine.sides[FORCED] == 0:
            goes = uniform(random) < chance
        if not goes:
            chance = (1.0 - explore) * (stay / (stay + go)) + explore / 2.0
        total += math.log(chance)
        shift(mine, item, second if goes else first)
    return total


@shared
def draw_move(
    world: Any, mine: Any, random: Any, move: Any, changes: Any, source: int, there: float
) -> tuple[float, float]:
    """Draw a part of a cluster, and another cluster for it to join."""
    aside = spare(mine)
    if uniform(random) < ONE_MEMBER:
        add_change(move, changes, member_of(world, random, source), source, aside)
    else:
        draw_part(world, random, move, changes, source, aside, False)
    for at in range(move.changes):
        shift(mine, changes[at].item, aside)
    mine.state[ASIDE] = aside
    call(mine.odds[WEIGH_ASIDE, 0], mine.odds[WEIGH_ASIDE, 1])
    others, total = world.counters[LIVE] - 1, 0.0
    home, mine.near[source] = mine.near[source], 0.0
    for position in range(others + 1):
        total += mine.near[world.live[position]]
    if uniform(random) < mine.settings[EXPLORE]:
        position = below(random, others)
        position += position >= world.live_at[source]
        target = int(world.live[position])
    else:
        target = choose_by(world, mine.near, uniform(random) * total)
    for at in range(move.changes):
        changes[at].target = target
    there += log_moved_part(int(world.size[source]), move.changes)
    there += log_share(mine, mine.near[target], total, others)
    total = home
    for position in range(others + 1):
        if world.live[position] != target:
            total += mine.near[world.live[position]]
    return there, log_share(mine, home, total, others)


def record_jump(mine: Any, move: Any) -> bool:
    """Record the current jump and reject it: an acceptance.

    ``mine`` has the list of ``changes`` and the ``kind`` of the jump; ``count`` int64[1], the number of
    recorded jumps; ``jumps`` int64[., 4], the kind, source, target and end of the items of each; ``items``
    int32[.], the items of all jumps, concatenated; ``judged`` float64[., 2], gain and better.
    """
    at = mine.count[0]
    end = mine.jumps[at - 1, 3] if at > 0 else 0
    for k in range(move.changes):
        mine.items[end + k] = mine.changes[k].item
    mine.jumps[at, 0], mine.jumps[at, 3] = mine.kind[0], end + move.changes
    mine.jumps[at, 1], mine.jumps[at, 2] = mine.changes[0].source, mine.changes[0].target
    mine.judged[at, 0], mine.judged[at, 1] = move.gain, move.better
    mine.count[0] = at + 1
    return False


def draw_given(mine: Any, move: Any, changes: Any) -> float:
    """Propose the ``count`` changes that are already in the list."""
    move.changes = mine.count[0]
    end_changes(move, changes)
    return 1.0
