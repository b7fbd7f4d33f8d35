"""Fit a model to a table without labels, and estimate its quality."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.blocking import Candidates, Rule, default_rules, find_candidates
from factorwise.apps.resolution.constraints import Constraints
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.merge_odds import UNLABELLED_ODDS
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.apps.resolution.unlabelled.about import SAYS_MOST, choose_about, identity_rules
from factorwise.apps.resolution.unlabelled.estimates import JudgedPairs, estimate_quality
from factorwise.apps.resolution.unlabelled.fitting import FEWEST_ANCHORS, fit_unlabelled
from factorwise.apps.resolution.unlabelled.model import UNLINKED, PreparedPairs, UnlabelledModel
from factorwise.apps.resolution.unlabelled.repeating import telling_columns
from factorwise.apps.resolution.unlabelled.views import views_of
from factorwise.kernels.clusterings.links import FIXED_WEIGHTS, UNLINKED_WEIGHT
from factorwise.kernels.compile.threads import Team
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.types import Ints

UNCONFIRMED = 0.5  # share of anchors that look like null pairs, above which a warning is given
TRUSTED = 0.6  # estimated precision or recall below which the safe rule replaces the model
SURE = 0.9  # estimated precision from which on the model is kept in spite of low recall


@dataclass(frozen=True, slots=True, eq=False)
class Hints:
    """What the user specifies about a table without labels.

    about
        The identity columns; empty to infer them.
    sources
        The source of each record; None if it is unknown.
    source
        The column with the sources, if it is a column of the table.
    one_per_source
        Whether each source lists an entity at most once.
    counts
        How often each record occurs in the table; None if equal records were not merged.
    """

    about: tuple[str, ...] = ()
    sources: NDArray[np.int32] | None = None
    source: str | None = None
    one_per_source: bool = False
    counts: Ints | None = None

    def rows(self, rows: Ints, counts: Ints) -> Hints:
        """Return the hints for the distinct records at ``rows``, each of which occurs ``counts`` times."""
        sources = None if self.sources is None else np.asarray(self.sources)[rows]
        return replace(self, sources=sources, counts=counts)


def learn_from_anchors(
    table: pa.Table,
    fields: Sequence[FieldSpec],
    hints: Hints,
    *,
    rules: Sequence[Rule] | None = None,
    seed: int,
    team: Team,
    on_message: Callable[[str], None],
    on_candidates: Callable[[Candidates, NormalTable, Ints | None], None],
) -> Knowledge:
    """Choose the identity columns, fit a model on anchors, and estimate the quality of its clustering."""
    about, fields = choose_about(table, fields, hints.about)
    on_message(f"records are about {about.phrase}: {about.reason}")
    normal = normalize(table, fields)
    chosen = list(rules) if rules is not None else identity_rules(about, default_rules(fields, normal))
    candidates = find_candidates(normal, chosen, threads=team.threads)
    on_message(f"{len(candidates.first):,} candidate pairs by {len(chosen)} rules")
    on_candidates(candidates, normal, None)
    columns = telling_columns(table, normal, about)
    views = views_of(normal, about, columns, hints.sources, hints.counts)
    factors = {field.name: field.weight for field in fields}
    views = views._replace(
        witnesses=[one._replace(factor=factors.get(one.name, 1.0)) for one in views.witnesses]
    )
    fitted = fit_unlabelled(
        views, about, candidates, source=hints.source, one_per_source=hints.one_per_source, seed=seed
    )
    limits = Constraints(sources=hints.sources, one_per_source=fitted.model.one_per_source)

    def judged(model: UnlabelledModel) -> tuple[UnlabelledModel, dict[str, Any]]:
        odds = fitted.log_odds(model)
        all_evidence = fitted.log_odds(replace(model, is_safe=False)) if model.is_safe else None
        log_odds_of = PreparedPairs(model, fitted.views).log_odds
        found = estimate_quality(
            normal,
            about,
            chosen,
            JudgedPairs(*fitted.pairs, odds, all_evidence),
            log_odds_of,
            limits,
            counts=hints.counts,
            seed=seed,
            team=team,
        )
        figures = {name: _rounded(value) for name, value in found._asdict().items()}
        return replace(model, report={**model.report, **figures}), figures

    model, figures = judged(fitted.model)
    doubted = figures
    precision, recall = figures["precision"], figures["recall_of_candidates"]
    if not model.is_safe and (precision < TRUSTED or (recall < TRUSTED and precision < SURE)):
        model, figures = judged(replace(model, is_safe=True))
    model = replace(model, report={**model.report, "warnings": warnings_of(model, doubted)})
    values = np.zeros(FIXED_WEIGHTS)
    values[UNLINKED_WEIGHT] = UNLINKED
    training = {
        "labelled": 0,
        "labelled_pairs": 0,
        "records": normal.n_rows,
        "method": "safe rule" if model.is_safe else "anchors",
        "estimate": figures,
    }
    return Knowledge(
        tuple(fields),
        tuple(chosen),
        (),
        LevelWeights((), values),
        training=training,
        unlabelled=model,
        merges=UNLABELLED_ODDS,
    )


def _rounded(value: float | int | None) -> float | int | None:
    return round(value, 3) if isinstance(value, float) else value


def warnings_of(model: UnlabelledModel, doubted: Mapping[str, Any]) -> list[str]:
    """Return warnings for the user about weak evidence, as whole sentences.

    doubted
        The quality estimate of the model with all evidence, which the safe rule may have replaced.
    """
    report, found = model.report, []
    name = model.about.phrase
    if model.is_safe and report["anchors"] < FEWEST_ANCHORS:
        found.append(
            f"only {report['anchors']:.0f} pairs of records are equal in a rare {name}, too few to measure"
            " how other columns behave within an entity. Records are joined if they are equal in it, or"
            " in a code, and hardly anybody else can be: label some entities, or say with --about what"
            " records are about."
        )
    elif model.is_safe:
        found.append(
            f"the evidence contradicts itself (estimated precision {doubted['precision']:.2f}, recall"
            f" {doubted['recall']:.2f}). Records are joined only if they are equal in a rare {name}, or in a"
            " code: label some entities, or say with --about what records are about."
        )
    elif not report["columns"]:
        found.append(
            f"nothing but {name} tells records apart: namesakes cannot be seen. Give further columns, or"
            " check the largest entities by hand."
        )
    if not model.is_safe and report["unconfirmed"] > UNCONFIRMED:
        found.append(
            f"records that are equal in {name} agree in other columns hardly more often than any two records:"
            f" either these columns say nothing, or {name} does not name the entity, and the estimate of the"
            " precision means nothing. Say with --about what records are about, or check some entities by"
            " hand."
        )
    elif not model.is_safe and report["chance"] > 0.1:
        found.append(
            f"many records are equal in {name} by chance ({report['chance']:.0%} of the joins): which of them"
            " are one entity is a guess from the other columns."
        )
    if model.about.reason == SAYS_MOST and report["columns"]:
        found.append(
            f"no header says what records are about: {name} was taken, because its words say most. If it does"
            " not name the entity, the answer is wrong: say with --about which column does."
        )
    if report.get("candidates") is not None and report["candidates"] < 0.9:
        found.append(
            f"blocking rules find an estimated {report['candidates']:.0%} of the pairs of one entity: what"
            " they lose is the first thing to improve. Give columns that records share, or rules of your own."
        )
    return found
