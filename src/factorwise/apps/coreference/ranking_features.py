"""Features of the antecedent ranker: the pair features, and hashed features of words and positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.coreference.documents import Discourse
from factorwise.apps.coreference.mentions import (
    NAME,
    NOMINAL,
    PRONOUN,
    Described,
    MentionTable,
    mention_table,
)
from factorwise.kernels.text.antecedents import GROUPS
from factorwise.types import Int32s, Int64s, Ints
from factorwise.variables.pair_table import PairTable

HASHED = 1 << 18  # number of weights that hashed features share
_SENTENCES = (1, 2, 3, 4, 6, 9, 13, 20, 30)  # bin edges of the number of sentences between two mentions
_MENTIONS = (2, 3, 4, 5, 7, 10, 15, 22, 32, 50, 80, 150)  # bin edges of the number of mentions between them
_OFTEN = 3  # counts of earlier occurrences are capped at this number


class RankedDiscourse(NamedTuple):
    """The feature arrays of a discourse; see `factorwise.kernels.text.antecedents`."""

    start: Int64s
    columns: Int32s
    group: Int64s
    crossed: Int32s
    opening: Int32s


def rank_discourse(discourse: Discourse, table: PairTable, words: Collection[str]) -> RankedDiscourse:
    """Return the features of a discourse for the ranker; heads outside ``words`` become their kind."""
    mentions = mention_table(discourse)
    pairs, columns = np.nonzero(table.values)
    start = np.searchsorted(pairs, np.arange(len(table.values) + 1))
    group = np.where(
        mentions.kind == PRONOUN,
        mentions.family,
        np.where(mentions.kind == NOMINAL, GROUPS - 2, GROUPS - 1),
    )
    return RankedDiscourse(
        start.astype(np.int64),
        columns.astype(np.int32),
        group.astype(np.int64),
        _crossed(discourse, mentions, group, words),
        _opening(discourse, mentions),
    )


def _crossed(discourse: Discourse, m: MentionTable, group: Ints, words: Collection[str]) -> Int32s:
    """Return hashed features of all pairs: both heads; distances, roles, types and determiners by group."""
    later, earlier = np.tril_indices(len(m), -1)
    heads = np.array([_code(one.head if one.head in words else _outline(one)) for one in m.described])
    types = np.array([_code(mention.type) for mention in discourse.mentions])
    role = m.is_subject + 2 * m.after_preposition + 4 * (m.quotation >= 0)
    gap = np.where(
        m.document[later] == m.document[earlier], m.sentence[later] - m.sentence[earlier], _SENTENCES[-1]
    )
    groups = (group[later], group[earlier])
    same_head = heads[later] == heads[earlier]
    features = (
        _hashed(0, heads[later], heads[earlier]),
        _hashed(1, *groups, np.searchsorted(_SENTENCES, gap, side="right")),
        _hashed(2, *groups, np.searchsorted(_MENTIONS, later - earlier, side="right")),
        _hashed(3, *groups, role[later], role[earlier]),
        _hashed(4, *groups, types[later], types[earlier]),
        _hashed(5, *groups, m.determiner[later], m.determiner[earlier], same_head),
    )
    return np.stack(features, axis=1)


def _opening(discourse: Discourse, m: MentionTable) -> Int32s:
    """Return hashed features of each mention that indicate whether it begins a new entity."""
    seen: Counter[str] = Counter()
    rows = []
    for place, (d, number) in enumerate(discourse.places):
        one, mention = m.described[place], discourse.documents[d].mentions[number]
        tokens = discourse.documents[d].tokens
        kind = "pnN"[one.kind]
        rows.append(
            [
                "any",
                f"kind {kind}",
                f"family {one.family} {m.quotation[place] >= 0}",
                f"determiner {one.determiner} {kind}",
                f"type {mention.type}" if one.kind == NAME else f"head {one.head}",
                f"text seen {min(seen[one.text], _OFTEN)} {kind}",
                f"head seen {min(seen[one.head], _OFTEN)} {kind}",
                f"first word {one.words[0]} {kind}",
                f"length {min(len(one.words), 5)} {kind}",
                f"type {mention.type} {kind}",
                f"number {one.number} {kind}",
                f"place {min(place // 5, 6)} {kind}",
                f"before {tokens[mention.start - 1].lower() if mention.start else ''}",
                f"after {tokens[mention.end].lower() if mention.end < len(tokens) else ''}",
                f"subject {one.is_subject} {one.determiner} {kind}",
            ]
        )
        seen.update({one.text, one.head})
    codes = np.array([[_code(feature) for feature in row] for row in rows], dtype=np.int64)
    return _hashed(6, codes)


def _outline(one: Described) -> str:
    return f"<{one.kind} {one.number} {one.gender}>"


def _code(text: str) -> int:
    return crc32(text.encode("utf-8", "replace"))


def _hashed(kind: int, *columns: NDArray[Any]) -> Int32s:
    """Hash the rows of integer columns to numbers below `HASHED`."""
    value = np.full(columns[0].shape, kind + 1, dtype=np.uint64)
    for column in columns:
        value = (value + column.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        value ^= value >> np.uint64(29)
    return (value % np.uint64(HASHED)).astype(np.int32)
