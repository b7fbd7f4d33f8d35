"""Proposals for matchings, permutations and trees, and the targets among which an item chooses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from factorwise.kernels.compile.compiler import shared
from factorwise.kernels.structures.arrays import is_below, is_candidate
from factorwise.kernels.walks.layouts import STAY
from factorwise.kernels.walks.library import below


@shared
def set_change(changes: Any, move: Any, item: Any, source: Any, target: Any) -> None:
    """Add a change to the move."""
    change = changes[move.changes]
    change.world, change.item, change.source, change.target = 0, item, source, target
    move.changes += 1


@shared
def offer_target(move: Any, choice: Any, target: Any) -> None:
    """Add a target to the offer."""
    choice.targets[move.choices] = target
    move.choices += 1
    choice.place[target] = move.choices


def draw_match(world: Any, random: Any, move: Any, changes: Any) -> float:
    """Match a random item with one of its candidates, or with none; taken partners are exchanged.

    If the partner is matched with j, then j gets the item's former partner, if that is a candidate of j. If
    the item had no partner, j has none afterwards, and the ratio counts the candidates of both.
    """
    item = below(random, len(world.target))
    options = world.start[item + 1] - world.start[item]
    drawn = below(random, options + 1)
    alone = len(world.holder)
    source = np.int64(world.target[item])
    target = np.int64(alone) if drawn == options else np.int64(world.candidate[world.start[item] + drawn])
    if target == source:
        return STAY
    move.item, move.source, move.target = item, source, target
    if target == alone or world.holder[target] == len(world.target):
        return 1.0
    other = np.int64(world.holder[target])
    if source == alone:
        move.ratio = (options + 1.0) / (world.start[other + 1] - world.start[other] + 1.0)
    elif not is_candidate(world, other, source):
        return STAY
    move.changes = 0
    set_change(changes, move, other, target, alone)
    set_change(changes, move, item, source, target)
    if source != alone:
        set_change(changes, move, other, alone, source)
    return 1.0


def offer_free(world: Any, random: Any, move: Any, choice: Any) -> float:
    """Offer a random item its partner, every candidate that is free, and no partner."""
    item = below(random, len(world.target))
    move.item, move.source, move.choices = item, np.int64(world.target[item]), 0
    for k in range(world.start[item], world.start[item + 1]):
        partner = world.candidate[k]
        if partner == move.source or world.holder[partner] == len(world.target):
            offer_target(move, choice, partner)
    offer_target(move, choice, len(world.holder))
    return 1.0


def draw_exchange(world: Any, random: Any, move: Any) -> float:
    """Exchange the positions of two random items."""
    items = len(world.target)
    if items < 2:
        return STAY
    item, other = below(random, items), below(random, items - 1)
    other += other >= item
    move.item, move.source, move.target = item, world.target[item], world.target[other]
    return 1.0


def draw_insertion(world: Any, mine: Any, random: Any, move: Any, changes: Any) -> float:
    """Remove a random item and insert it elsewhere: it swaps with each item in between.

    ``mine`` has ``reach`` int64[1], the maximum distance in positions.
    """
    items, reach = len(world.target), mine.reach[0]
    item, way = below(random, items), below(random, 2 * reach)
    way = way - reach if way < reach else way - reach + 1
    source = np.int64(world.target[item])
    end = source + way
    if end < 0 or end >= items:
        return STAY
    step = 1 if way > 0 else -1
    move.item, move.source, move.target = item, source, source + step
    if abs(way) > 1:
        move.changes = 0
        while source != end:
            set_change(changes, move, item, source, source + step)
            source += step
    return 1.0


def offer_exchange(world: Any, random: Any, move: Any, choice: Any) -> float:
    """Offer a random item its own position and that of another item."""
    if math.isnan(draw_exchange(world, random, move)):
        return STAY
    move.choices = 0
    offer_target(move, choice, move.source)
    offer_target(move, choice, move.target)
    return 1.0


def draw_parent(world: Any, random: Any, move: Any) -> float:
    """Give a random item another parent, together with its subtree."""
    item, target = below(random, len(world.target)), below(random, len(world.target) + 1)
    source = np.int64(world.target[item])
    if target == source or is_below(world, target, item):
        return STAY
    move.item, move.source, move.target = item, source, target
    return 1.0


def offer_parents(world: Any, random: Any, move: Any, choice: Any) -> float:
    """Offer a random item every parent that is not in its subtree."""
    item = below(random, len(world.target))
    move.item, move.source, move.choices = item, np.int64(world.target[item]), 0
    for node in range(len(world.target) + 1):
        if not is_below(world, node, item):
            offer_target(move, choice, node)
    return 1.0
