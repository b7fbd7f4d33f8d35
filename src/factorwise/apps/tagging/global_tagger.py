"""A chain whose answers heed constraints on whole sequences, and how the weights of these are learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.tagging.cross_fitting import JudgedSentences
from factorwise.apps.tagging.global_constraints import ConstraintSet
from factorwise.apps.tagging.tagger import ChainTagger, normalized
from factorwise.errors import ImpossibleError, InvalidArgumentError
from factorwise.inference.message_passing.projection import (
    SequenceEnergy,
    SequenceProjections,
    project_sequences,
)
from factorwise.io.given_texts import text_or_file
from factorwise.kernels.compile.threads import Team
from factorwise.learning.chains.structure import FirstOrder
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.projections.learning import EnergyFit, EnergyLearning, learn_energies, promising
from factorwise.learning.projections.likelihood import Accuracy, SequenceLikelihood
from factorwise.learning.projections.scores import GivenScores
from factorwise.types import Bools, Floats
from factorwise.variables.sparse_rows import SparseRows

AUTO = "auto"  # all constraints that can be said of the labels
#: How far each sentence is projected when it is tagged.
TAGGING = Accuracy(tolerance=1e-3, max_iterations=40)
#: How weights are learned. The prior is the price of a constraint that mends less than it breaks.
LEARNING = EnergyLearning(rounds=8, prior=Prior(l1=3.0), accuracy=Accuracy(tolerance=1e-3, max_iterations=20))


@dataclass(frozen=True, eq=False)
class GlobalTagger(ChainTagger):
    """A chain with constraints on whole sequences.

    Labels are a best path at scores that the constraints have shifted, probabilities those of the shifted
    chain. The k best sequences, the confidence of spans and log Z stay those of the chain alone.
    """

    constraints: ConstraintSet = field(default_factory=lambda: ConstraintSet(()))
    _energy: SequenceEnergy = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_energy", self.constraints.energy(texts_of(self)))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "constraints": self.constraints, "_energy": self._energy}

    def decode(
        self, rows: SparseRows, start: NDArray[np.int64], team: Team, allowed: Bools | None = None
    ) -> NDArray[np.int32]:
        """Return the labels of a best path of each sentence at the shifted scores, among those allowed."""
        try:
            return self.project(rows, start, team, allowed).best(team).astype(np.int32)
        except ImpossibleError:
            return super().decode(rows, start, team, allowed)  # it names the sentence

    def marginals(
        self, rows: SparseRows, start: NDArray[np.int64], team: Team, allowed: Bools | None = None
    ) -> tuple[Floats, Floats]:
        """Return the probability of each label at the shifted scores, and log Z of the chain alone."""
        _, log_partition = super().marginals(rows, start, team, allowed)
        return normalized(self.project(rows, start, team, allowed).node), log_partition

    def project(
        self,
        rows: SparseRows,
        start: NDArray[np.int64],
        team: Team,
        allowed: Bools | None = None,
        accuracy: Accuracy = TAGGING,
    ) -> SequenceProjections:
        """Project each sentence."""
        return project_sequences(
            node_scores(self, rows, start, allowed),
            transition_table(self),
            self._energy,
            tolerance=accuracy.tolerance,
            max_iterations=accuracy.max_iterations,
            team=team,
        )


class LearnedConstraints(NamedTuple):
    """A tagger with constraints, and how their weights were learned.

    candidates
        How many constraints there were.
    tried
        How many of them promised anything.
    """

    tagger: ChainTagger
    constraints: ConstraintSet
    candidates: int
    tried: int
    fit: EnergyFit | None


def learn_constraints(
    tagger: ChainTagger,
    candidates: ConstraintSet,
    judged: Sequence[JudgedSentences],
    *,
    config: EnergyLearning = LEARNING,
    team: Team | None = None,
) -> LearnedConstraints:
    """Learn what constraints cost, and drop those that cost nothing.

    tagger
        What is given the constraints.
    candidates
        Those with a weight keep it.
    judged
        Sentences to learn from, with chains that have not learned from them.
    """
    candidates.check(texts_of(tagger))
    whole = likelihood_of(candidates, judged)
    given = np.array([each.weight is not None for each in candidates.constraints])
    weights, fit = candidates.weights, None
    tried = np.union1d(np.flatnonzero(given), promising(whole, config.prior, team=team))
    if not given.all() and len(tried):
        fit = learn_energies(
            whole.taken(tried), config=config, weights=weights[tried], held=given[tried], team=team
        )
        weights[tried] = fit.weights
    return _with(tagger, candidates, weights, len(tried), fit)


def likelihood_of(constraints: ConstraintSet, judged: Sequence[JudgedSentences]) -> SequenceLikelihood:
    """Return the likelihood of sentences as a function of what constraints cost."""
    labels = texts_of(judged[0].tagger)
    nodes = [node_scores(each.tagger, each.rows, each.start, None) for each in judged]
    base = GivenScores(
        [scores for group in nodes for scores in group],
        np.stack([transition_table(each.tagger) for each in judged]),
        np.repeat(np.arange(len(judged)), [len(group) for group in nodes]),
    )
    truth = np.concatenate([each.truth for each in judged])
    return SequenceLikelihood(base, truth, constraints.measurement(labels), constraints.losses)


def candidates_of(given: Any, names: Sequence[Any], order: int) -> ConstraintSet | None:
    """Return the constraints asked for: a set, TOML, a file of it, or ``"auto"`` for all that can be said."""
    if given is None:
        return None
    if order != 1:
        raise _wrong_order()
    labels = [str(name) for name in names]
    if isinstance(given, ConstraintSet):
        given.check(labels)
        return given
    if not isinstance(given, str | PathLike):
        raise InvalidArgumentError(
            "global_constraints must be a ConstraintSet, text in TOML, a Path of a file, or 'auto', but"
            f" {given!r} was given."
        )
    if given == AUTO:
        return ConstraintSet.generated(labels)
    return ConstraintSet.parse(text_or_file("global_constraints", given), labels)


def constrained(
    tagger: ChainTagger, candidates: ConstraintSet, judged: Sequence[JudgedSentences], threads: int
) -> LearnedConstraints:
    """Give a tagger constraints; those without a weight learn it from sentences that chains have not seen."""
    if candidates.learned:
        return _with(tagger, candidates, candidates.weights, 0, None)
    with Team(threads) as team:
        return learn_constraints(tagger, candidates, judged, team=team)


def constraints_of(tagger: ChainTagger) -> ConstraintSet:
    """Return the constraints of a tagger; none if it is a chain alone."""
    return tagger.constraints if isinstance(tagger, GlobalTagger) else ConstraintSet(())


def _with(
    tagger: ChainTagger, candidates: ConstraintSet, weights: Floats, tried: int, fit: EnergyFit | None
) -> LearnedConstraints:
    kept, count = candidates.with_weights(weights), len(candidates.constraints)
    if kept.constraints:
        tagger = GlobalTagger(tagger.classes, tagger.features, tagger.structure, tagger.weights, kept)
    return LearnedConstraints(tagger, kept, count, tried, fit)


def node_scores(
    tagger: ChainTagger, rows: SparseRows, start: NDArray[np.int64], allowed: Bools | None
) -> list[Floats]:
    """Return the scores of the labels of each sentence; ``-inf`` where they are not allowed."""
    found = list(tagger.node_scores(rows, start))
    if allowed is not None:
        for scores, within in zip(found, np.split(allowed, start[1:-1]), strict=True):
            scores[~within] = -np.inf
    return found


def transition_table(tagger: ChainTagger) -> Floats:
    """Return the scores of transitions, float64[labels, labels]; refuse a chain of order 2."""
    structure = tagger.structure
    if not isinstance(structure, FirstOrder):
        raise _wrong_order()
    return structure.table(tagger.transition_weights)


def _wrong_order() -> InvalidArgumentError:
    return InvalidArgumentError(
        "constraints on whole sequences need a chain of order 1, but this one has order 2: train with order"
        " 1, or without the constraints."
    )


def texts_of(tagger: ChainTagger) -> list[str]:
    """Return the names of the labels as text."""
    return [str(label) for label in tagger.classes]
