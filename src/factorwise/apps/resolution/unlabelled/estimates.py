"""Estimate the quality of a clustering without labels, by clustering again with lower and higher log odds.

The precision is computed as if a stricter clustering were true, the recall as if a laxer one were. Neither
accounts for what the table does not contain, such as what distinguishes two works with the same title.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking import Rule
from factorwise.apps.resolution.blocking.keys import KeyMaker
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.unlabelled.about import About
from factorwise.apps.resolution.unlabelled.model import NOT_LINKED, UNLINKED, score_of
from factorwise.apps.resolution.unlabelled.probes import probe_blocking
from factorwise.inference.mcmc.shards.link_walk import LinkWalk
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed
from factorwise.types import Floats, Ints
from factorwise.world.links import LinkGraph

STRICTER, LAXER = -1.0, 2.0  # added to the log odds of each pair
_SEARCH = LinkSearch(rounds=6, sweeps=1, extra=4)
_SAMPLE = 1_000  # most likely pairs on which the recall of the candidates is estimated
_FEWEST = 30  # least number of likely pairs for that estimate


class QualityEstimate(NamedTuple):
    """Estimated B-cubed precision and recall, and the number of clusters.

    recall
        Recall that accounts for the pairs that blocking loses.
    recall_of_candidates
        Recall as if blocking lost no pairs.
    candidates
        Estimated share of the matching pairs that are candidates; None if it cannot be estimated.
    """

    precision: float
    recall: float
    entities: int
    candidates: float | None
    recall_of_candidates: float


class JudgedPairs(NamedTuple):
    """Candidate pairs of rows with their log odds.

    log_odds
        Log odds by the model whose quality is estimated.
    all_evidence
        Log odds by all evidence, if the model is the safe rule, which does not use it.
    """

    first: Ints
    second: Ints
    log_odds: Floats
    all_evidence: Floats | None = None


def estimate_quality(
    normal: NormalTable,
    about: About,
    rules: list[Rule],
    judged: JudgedPairs,
    log_odds_of: Callable[[Ints, Ints], Floats],
    limits: Constraints,
    *,
    counts: Ints | None = None,
    seed: int,
    team: Team,
) -> QualityEstimate:
    """Estimate the quality of the clustering by the log odds of candidate pairs.

    log_odds_of
        Computes the log odds of any pairs by the same model.
    counts
        How often each record occurs in the table.
    """
    pairs, log_odds, all_evidence = (judged.first, judged.second), judged.log_odds, judged.all_evidence
    n, times = normal.n_rows, np.ones(normal.n_rows, np.int64) if counts is None else counts
    laxest = log_odds if all_evidence is None else np.maximum(all_evidence, log_odds)
    found, stricter, laxer = (
        _clustered(n, pairs, odds, shift, limits, seed, team)
        for odds, shift in ((log_odds, 0.0), (log_odds, STRICTER), (laxest, LAXER))
    )
    rows = np.repeat(np.arange(n), times)
    recall, shares = b_cubed(laxer[rows], found[rows]).recall, []
    by_rules = candidate_recall(normal, about, rules, pairs, log_odds, seed)
    if by_rules is not None:
        shares.append(by_rules)
    sources = limits.sources if limits.one_per_source else None
    lost = probe_blocking(normal, pairs, log_odds, log_odds_of, found, sources, seed=seed)
    if lost is not None:
        shares.append(1.0 - lost.pairs)
    return QualityEstimate(
        b_cubed(stricter[rows], found[rows]).precision,
        recall if lost is None else recall * lost.recall,
        len(np.unique(found)),
        min(shares) if shares else None,
        recall,
    )


def _clustered(
    n: int,
    pairs: tuple[Ints, Ints],
    log_odds: Floats,
    shift: float,
    limits: Constraints,
    seed: int,
    team: Team,
) -> NDArray[np.int32]:
    shifted = np.where(log_odds < NOT_LINKED - LAXER, log_odds, log_odds + shift)
    scores = score_of(shifted)
    kept = np.flatnonzero(scores != np.float32(UNLINKED))
    graph = LinkGraph.from_pairs(n, pairs[0][kept], pairs[1][kept])
    sources = limits.source_bits(np.arange(n), n)
    walk = LinkWalk(graph, scores[kept], unlinked=UNLINKED, cluster=0.0, sources=sources)
    _SEARCH.run(walk, seed=seed, team=team)
    return np.array(walk.labels, np.int32)


def candidate_recall(
    normal: NormalTable,
    about: About,
    rules: list[Rule],
    pairs: tuple[Ints, Ints],
    log_odds: Floats,
    seed: int,
) -> float | None:
    """Estimate the share of the matching pairs that are candidates, by capture and recapture.

    Blocking rules on the identity alone and all other rules are assumed to find pairs independently: the
    share of the other group's pairs that a group finds estimates the share that it finds of all matching
    pairs.
    """
    groups = [
        [rule for rule in rules if (rule.fields <= set(about.columns)) == of_identity]
        for of_identity in (True, False)
    ]
    likely = np.flatnonzero(log_odds > 0.0)
    if not all(groups) or len(likely) < _FEWEST:
        return None
    some = np.random.default_rng([seed, 22]).permutation(likely)[:_SAMPLE]
    first, second = pairs[0][some], pairs[1][some]
    rows, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    maker = KeyMaker(normal, rows)
    met = [np.zeros(len(some), bool), np.zeros(len(some), bool)]
    for group, found in zip(groups, met, strict=True):
        for rule in group:
            found |= _share_keys(maker, rule, place[: len(some)], place[len(some) :])
    both = float((met[0] & met[1]).sum())
    if both == 0.0:
        return None
    by_identity, by_others = both / float(met[1].sum()), both / float(met[0].sum())
    return 1.0 - (1.0 - by_identity) * (1.0 - by_others)


def _share_keys(maker: KeyMaker, rule: Rule, first: Ints, second: Ints) -> NDArray[np.bool_]:
    keys = maker.keys(rule)
    start = np.searchsorted(keys.item, np.arange(maker.n_rows + 1))
    return np.array(
        [
            bool(np.isin(keys.key[start[a] : start[a + 1]], keys.key[start[b] : start[b + 1]]).any())
            for a, b in zip(first.tolist(), second.tolist(), strict=True)
        ]
    )
