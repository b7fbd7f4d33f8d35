"""The model without labels: log odds of pairs, and their scores in the clustering.

    L(i, j) = prior(identity level, namesakes) + C(sum over other columns of log m/u)

A pair in one cluster scores exp(L) - 1, or -1 if it is not a candidate pair: a cluster raises the score as
long as the *mean odds* of its pairs are above one. One certain pair outweighs many pairs without evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.resolution.comparisons.plan import CHUNK
from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.unlabelled.about import About
from factorwise.apps.resolution.unlabelled.anchors import share_context
from factorwise.apps.resolution.unlabelled.evidence import Evidence, add_up, weigh
from factorwise.apps.resolution.unlabelled.identity import CONFLICT, TOP
from factorwise.apps.resolution.unlabelled.prior import NEVER, LevelPrior
from factorwise.apps.resolution.unlabelled.views import Views, views_of
from factorwise.errors import InvalidArgumentError
from factorwise.kernels.compile.threads import Team
from factorwise.types import Bools, Floats, Ints

SUREST = 6.0  # upper bound of the log odds of a pair
UNLINKED = -1.0  # score of two members of a cluster that are not a candidate pair
NOT_LINKED = -3.0  # log odds below which a candidate pair scores as if it were none
FORBIDDEN = -100.0  # log odds and score of a pair that cannot match
RARE_ENOUGH = 0.5  # most namesakes of an identity that the safe rule links
SAFE_SHARE = 0.5  # assumed share of records with a match, in the safe rule


@dataclass(frozen=True, slots=True, eq=False)
class UnlabelledModel:
    """A model that was fitted without labels.

    about
        The identity columns.
    prior, evidence
        Log odds by the identities, and the evidence of the other columns.
    contexts
        Columns that are the context of mentions, such as a paper.
    is_safe
        Whether the model is the safe rule, which links only equal rare identities and equal rare codes,
        because the evidence is too weak for more.
    one_per_source
        Whether each source lists an entity at most once.
    source
        The column with the sources, if it is a column of the table.
    report
        Statistics and reasons for the user.
    """

    about: About
    prior: LevelPrior
    evidence: Evidence
    contexts: tuple[str, ...] = ()
    is_safe: bool = False
    one_per_source: bool = False
    source: str | None = None
    report: Mapping[str, Any] = field(default_factory=dict)

    def scores(
        self, normal: NormalTable, first: Ints, second: Ints, team: Team, sources: Ints | None = None
    ) -> NDArray[np.float32]:
        """Return the scores of pairs of rows of a table, computed in chunks."""
        prepared, found = self.prepare(normal, sources), np.zeros(len(first), np.float32)

        def part(low: int, high: int) -> None:
            for a in range(low, high, CHUNK):
                b = min(a + CHUNK, high)
                found[a:b] = score_of(prepared.log_odds(first[a:b], second[a:b]))

        team.share(len(first), part)
        return found

    def weights_by_name(self) -> dict[str, float]:
        """Return the match weights of the other columns' levels, by name."""
        return {
            f"{one.name}, {_level_text(level, len(one.weights) - 1)}": float(one.weights[level])
            for one in self.evidence.columns
            for level in range(1, len(one.weights))
        }

    def prepare(self, normal: NormalTable, sources: Ints | None = None) -> PreparedPairs:
        """Prepare the records of a table for comparison."""
        names = [one.name for one in self.evidence.columns]
        edges = {one.name: one.edges for one in self.evidence.columns if one.edges}
        return PreparedPairs(self, views_of(normal, self.about, names, sources, edges=edges))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for the model file."""
        return {
            "about": self.about.as_dict(),
            "prior": self.prior.as_dict(),
            "evidence": self.evidence.as_dict(),
            "contexts": list(self.contexts),
            "is_safe": self.is_safe,
            "one_per_source": self.one_per_source,
            "source": self.source,
            "report": dict(self.report),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> UnlabelledModel:
        """Rebuild the object from the values that `as_dict` returned."""
        evidence = Evidence.from_dict(content["evidence"])
        contexts = tuple(map(str, content["contexts"]))
        if not {one.name for one in evidence.columns} >= set(contexts):
            raise InvalidArgumentError(f"its contexts {contexts} are not among its columns")
        return cls(
            About.from_dict(content["about"]),
            LevelPrior.from_dict(content["prior"]),
            evidence,
            contexts,
            bool(content["is_safe"]),
            bool(content["one_per_source"]),
            None if content["source"] is None else str(content["source"]),
            dict(content["report"]),
        )


class PreparedPairs:
    """The records of one table, prepared for comparison by a model."""

    def __init__(self, model: UnlabelledModel, views: Views) -> None:
        self.model, self.views = model, views
        self.identity, self.witnesses, self.frequencies = views[:3]
        for column, witness in zip(model.evidence.columns, self.witnesses, strict=True):
            if len(column.weights) != witness.top + 1:
                raise InvalidArgumentError(
                    f"column {column.name!r} has {witness.top} levels here, but {len(column.weights) - 1}"
                    " in the model. Train again."
                )
        self.contexts = [k for k, one in enumerate(self.witnesses) if one.name in model.contexts]

    def log_odds(self, first: Ints, second: Ints) -> NDArray[np.float64]:
        """Return the log odds L of pairs of rows; `FORBIDDEN` for those that cannot match."""
        levels = self.identity.levels(first, second)
        sums = add_up(self.model.evidence.columns, self.witnesses, self.frequencies, first, second)
        return self.combine(first, second, levels, self.model.evidence.worth(sums, levels))

    def combine(
        self, first: Ints, second: Ints, levels: NDArray[np.uint8], evidence: Floats
    ) -> NDArray[np.float64]:
        """Return the log odds L from the levels of identities and the evidence C of other columns."""
        namesakes = self.identity.expected(first, second)
        if self.model.is_safe:
            sure = (levels == TOP) & (namesakes <= RARE_ENOUGH)
            odds = np.where(sure, np.log(SAFE_SHARE) - np.log(namesakes) + 1e-3, NEVER)
            for witness in self.witnesses:
                if witness.is_code:
                    odds[witness.share_rare_value(first, second) & (levels > CONFLICT)] = SUREST
            return odds
        found = self.model.prior(levels, namesakes, len(self.identity.code)) + evidence
        found[self.forbidden(first, second, levels)] = FORBIDDEN
        return found

    def forbidden(self, first: Ints, second: Ints, levels: NDArray[np.uint8]) -> Bools:
        """Return which mentions cannot match: their names conflict, or are unequal within one context."""
        if not self.contexts:
            return np.zeros(len(first), bool)
        known = levels > 0
        shared = share_context(self.views, self.contexts, first, second)
        return known & ((levels <= CONFLICT) | (shared & (levels < TOP)))

    def steps(self, first: int, second: int) -> list[EvidenceStep]:
        """Return the terms that add up to the score of one pair, to explain it to the user."""
        one, two = np.array([first]), np.array([second])
        levels, said = self.identity.levels(one, two), []
        for column, witness, frequency in zip(
            self.model.evidence.columns, self.witnesses, self.frequencies, strict=True
        ):
            level = witness.levels(one, two)
            weight = float(weigh(column, witness, frequency, level, one)[0])
            meaning = _level_text(int(level[0]), witness.top)
            said.append(EvidenceStep(column.name, "evidence", int(level[0]), meaning, weight))
        total = sum(step.weight for step in said)
        worth = float(self.model.evidence.worth(np.array([total]), levels)[0])
        odds = float(self.combine(one, two, levels, np.array([worth]))[0])
        score = float(score_of(np.array([odds]))[0])
        same = int(levels[0])
        who = EvidenceStep(self.model.about.phrase, "identity", same, _level_text(same, TOP), odds - worth)
        if odds <= FORBIDDEN or self.model.is_safe:
            return [who._replace(weight=score)]
        return [
            who,
            *said,
            EvidenceStep("all columns", "evidence", 0, "of what they say, not paid twice", worth - total),
            EvidenceStep("all", "odds", 0, "odds less one instead of log odds", score - odds),
        ]


class EvidenceStep(NamedTuple):
    """One term of a pair's score by a model without labels.

    field, form
        The column or columns, and the type of the term: ``identity``, ``evidence`` or ``odds``.
    level, meaning
        The comparison level, and its description.
    weight
        What the term adds to the score.
    """

    field: str
    form: str
    level: int
    meaning: str
    weight: float

    @property
    def name(self) -> str:
        """The name of the term in a list."""
        return f"{self.field}, {self.meaning}"


def score_of(log_odds: Floats) -> NDArray[np.float32]:
    """Return the scores of pairs in a clustering: the odds minus one."""
    scores = np.expm1(np.minimum(log_odds, SUREST))
    scores = np.where(log_odds < NOT_LINKED, UNLINKED, scores)
    return np.where(log_odds <= FORBIDDEN, FORBIDDEN, scores).astype(np.float32)


def _level_text(level: int, top: int) -> str:
    if level in (0, 1, top):
        return {0: "missing", 1: "different", top: "equal"}[level]
    return f"alike to degree {level - 1} of {top - 1}"
