"""Report on blocking as text and as plain values: rules, blocks, pairs, and recall."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from factorwise.apps.resolution.blocking.candidates import Candidates, LargeBlock
from factorwise.apps.resolution.blocking.keys import KeyMaker, share_key
from factorwise.apps.resolution.blocking.objectives import connected, true_pairs
from factorwise.apps.resolution.blocking.rules import Part, Rule
from factorwise.apps.resolution.comparisons.derived import form_of
from factorwise.apps.resolution.normalize.forms import Lists, NormalTable, Strings
from factorwise.errors import require
from factorwise.types import Ints

_SHOWN = 3  # largest blocks, and items of a list, that are shown


class Recall(NamedTuple):
    """The recall of blocking.

    pairs
        Share of the matching pairs that are candidates.
    connected
        Share of the links needed to connect each entity that candidates provide; 1 if all are connected.
    rules
        For each rule the share of matching pairs that it finds alone, on a sample if there are many.
    """

    pairs: float
    connected: float
    rules: tuple[float, ...] = ()


def recall_of(candidates: Candidates, entity: Ints, normal: NormalTable | None = None) -> Recall:
    """Compute the recall of candidates against true entities; with ``normal`` also that of each rule.

    entity : int[items]
        The entity of each item; -1 where it is unknown.
    """
    known = np.asarray(entity, np.int64)
    require(len(known) == candidates.n_items, "entity", len(known), f"{candidates.n_items} numbers")
    items = np.flatnonzero(known >= 0)
    sizes = np.unique(known[items], return_counts=True)[1]
    same = candidates.of_one_entity(known)
    links = np.stack([candidates.first[same], candidates.second[same]], axis=1).astype(np.int64)
    made = candidates.n_items - 1 - int(connected(np.arange(candidates.n_items), links).max(initial=-1))
    by_rule: tuple[float, ...] = ()
    if normal is not None and len(items):
        maker = KeyMaker(normal, items)
        pairs = true_pairs(known[items])
        found = [share_key(maker.keys(one.rule), pairs, len(items)) for one in candidates.rules]
        by_rule = tuple(float(holds.mean()) if len(pairs) else 1.0 for holds in found)
    return Recall(
        _share(int(same.sum()), int(np.sum(sizes * (sizes - 1) // 2))),
        _share(made, len(items) - len(sizes)),
        by_rule,
    )


def report_rows(candidates: Candidates, recall: Recall | None = None) -> list[list[str]]:
    """Return a table of the rules: a row of headings and a row for each rule, whose name comes last."""
    by_rule = recall.rules if recall else ()
    rows = [["blocks", "largest", "pairs", "new pairs", *(["recall"] if by_rule else []), "rule"]]
    for number, one in enumerate(candidates.rules):
        rows.append(
            [
                f"{one.blocks:,}",
                f"{one.largest:,}" + ("*" if one.windowed else ""),
                f"{one.pairs:,}",
                f"{one.new:,}",
                *([f"{by_rule[number]:.3f}"] if by_rule else []),
                one.rule.name,
            ]
        )
    return rows


def report_notes(
    candidates: Candidates, normal: NormalTable | None = None, recall: Recall | None = None
) -> list[str]:
    """Return notes that complete the table: totals, recall, and blocks too large to be joined whole."""
    n_items = max(candidates.n_items, 1)
    notes = [f"{len(candidates):,} candidate pairs, {2 * len(candidates) / n_items:.1f} for each record"]
    if recall:
        notes.append(
            f"recall: {recall.pairs:.4f} of true pairs, {recall.connected:.4f} of the links in entities"
        )
    for one in candidates.rules:
        if one.windowed:
            named = "; ".join(_block_text(normal, one.rule, block) for block in one.large_blocks[:_SHOWN])
            more = ", ..." if one.windowed > _SHOWN else ""
            limits = candidates.limits
            notes.append(
                f"* {one.windowed:,} blocks of {one.rule.name} have more than {limits.largest:,} records, of"
                f" which each meets about {limits.per_item:,} neighbors only: {named}{more}"
            )
    if candidates.cut:
        notes.append(f"{candidates.cut:,} pairs that share least were left out to keep to the budget")
    return notes


def report_dict(
    candidates: Candidates, normal: NormalTable | None = None, recall: Recall | None = None
) -> dict[str, Any]:
    """Return the report as plain values."""
    by_rule = recall.rules if recall else ()
    rules = []
    for number, one in enumerate(candidates.rules):
        entry = {
            "rule": one.rule.name,
            "blocks": one.blocks,
            "items": one.items,
            "largest": one.largest,
            "pairs": one.pairs,
            "new": one.new,
            "windowed": one.windowed,
            "large_blocks": [
                {"size": block.size, "key": block_key(normal, one.rule, block) if normal else None}
                for block in one.large_blocks
            ],
        }
        rules.append(entry | ({"recall": by_rule[number]} if by_rule else {}))
    found: dict[str, Any] = {"records": candidates.n_items, "pairs": len(candidates), "cut": candidates.cut}
    if recall:
        found["recall"] = {"pairs": recall.pairs, "connected": recall.connected}
    return {**found, "rules": rules}


def block_key(normal: NormalTable, rule: Rule, block: LargeBlock) -> str:
    """Return text for what the members of a block share, as far as two of them show it."""
    return ", ".join(_shared(normal, part, block.members) for part in dict.fromkeys(rule.parts))


def _block_text(normal: NormalTable | None, rule: Rule, block: LargeBlock) -> str:
    return f"{block.size:,} records" + (f" ({block_key(normal, rule, block)})" if normal else "")


def _shared(normal: NormalTable, part: Part, members: tuple[int, int]) -> str:
    if part.cut in {"nearest", "scored"}:
        return "equal vectors" if part.cut == "nearest" else "a score"
    form = form_of(normal, part.field, part.form).rows(np.array(members))
    if isinstance(form, Lists):
        first, second = (set(row or ()) for row in form.to_list())
        common = sorted(first & second)
        return " or ".join(common[:_SHOWN]) + (" or ..." if len(common) > _SHOWN else "")
    if isinstance(form, Strings) and part.cut == "prefix":
        return f"{(form.to_list()[0] or '')[: int(part.size)]}..."
    value = form.to_list()[0]
    about = "like " if part.cut in {"sound", "bands", "rounded"} else ""
    return about + (f"{value:g}" if isinstance(value, float) else str(value))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
