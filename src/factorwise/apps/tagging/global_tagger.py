"""A chain with constraints on whole label sequences, and how the weights of constraints are learned."""

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

AUTO = "auto"  # all constraints that the labels allow
#: Accuracy of the projection of each sentence at prediction.
TAGGING = Accuracy(tolerance=1e-3, max_iterations=40)
#: How weights are learned. The L1 prior removes constraints that break more labels than they fix.
LEARNING = EnergyLearning(rounds=8, prior=Prior(l1=3.0), accuracy=Accuracy(tolerance=1e-3, max_iterations=20))


@dataclass(frozen=True, eq=False)
class GlobalTagger(ChainTagger):
    """A chain with constraints on whole label sequences.

    Labels are a best path at the scores shifted by the constraints, and probabilities are marginals at these
    scores. The k best sequences, the confidence of spans and log Z ignore the constraints.
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
        """Return the labels of a best path of each sentence at the shifted scores, within ``allowed``."""
        try:
            return self.project(rows, start, team, allowed).best(team).astype(np.int32)
        except ImpossibleError:
            return super().decode(rows, start, team, allowed)  # its error names the sentence

    def marginals(
        self, rows: SparseRows, start: NDArray[np.int64], team: Team, allowed: Bools | None = None
    ) -> tuple[Floats, Floats]:
        """Return label probabilities at the shifted scores, and log Z of the chain without constraints."""
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
        """Project the label distribution of each sentence."""
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
        Number of candidate constraints.
    tried
        Number of candidates that were promising enough to be learned.
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
    """Learn the weights of constraints, and drop those with weight zero.

    tagger
        The tagger to which the constraints are added.
    candidates
        The candidate constraints; those that have a weight keep it.
    judged
        Sentences to learn from, with chains that were not trained on them.
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
    """Return the likelihood of labelled sentences as a function of the weights of constraints."""
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
    """Return constraints from a set, TOML text, a TOML file, or ``"auto"`` for all that labels allow."""
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
    """Add constraints to a tagger; unknown weights are learned from sentences new to their chains."""
    if candidates.learned:
        return _with(tagger, candidates, candidates.weights, 0, None)
    with Team(threads) as team:
        return learn_constraints(tagger, candidates, judged, team=team)


def constraints_of(tagger: ChainTagger) -> ConstraintSet:
    """Return the constraints of a tagger; the set is empty for a chain without constraints."""
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
    """Return the label scores of each sentence, with ``-inf`` for labels that are not allowed."""
    found = list(tagger.node_scores(rows, start))
    if allowed is not None:
        for scores, within in zip(found, np.split(allowed, start[1:-1]), strict=True):
            scores[~within] = -np.inf
    return found


def transition_table(tagger: ChainTagger) -> Floats:
    """Return the transition scores, float64[labels, labels]; raise an error for a chain of order 2."""
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
    """Return the names of the labels as strings."""
    return [str(label) for label in tagger.classes]
