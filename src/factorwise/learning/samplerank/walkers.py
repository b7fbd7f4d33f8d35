"""Walks from which learners learn: one training world each, in compiled code or plain Python.

A walker has a current world and moves on. Learners give it programs: a rule that keeps the weights in its own
arrays, which all walkers share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, TemplateError, require, warn_caller
from factorwise.inference.mcmc.acceptances import (
    ACCEPTANCES,
    BARKER,
    METROPOLIS,
    Acceptance,
    as_acceptance,
)
from factorwise.inference.mcmc.adaptive.tuning import Tuning, tune
from factorwise.inference.mcmc.engine import EngineName, PlainEngineWarning
from factorwise.inference.mcmc.evaluators.base import FactorSampler
from factorwise.inference.mcmc.evaluators.exact import EXACT, Exact
from factorwise.inference.mcmc.kernel import Proposer
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.proposals.best_of import BestOf
from factorwise.inference.mcmc.walk import Walk
from factorwise.kernels.compile.binding import Bound, Interpreted
from factorwise.kernels.compile.programs import Program
from factorwise.kernels.walks.frames import run
from factorwise.learning.samplerank.plain_walks import PlainWalk
from factorwise.learning.samplerank.preferences import Preference
from factorwise.model.model import Model
from factorwise.rng import Stream
from factorwise.types import Float64s, Int64s
from factorwise.validation import check_count, check_number
from factorwise.world.kinds import check_kind

Accept = str | Acceptance | Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWorld:
    """One world to learn from: a document, a topic, a pair of ontologies.

    model
        The model of the world. All training worlds have models with the same blocks of weights, each over its
        own items.
    proposer
        Proposes the steps.
    start
        The world from which walks start.
    preference
        Which of two neighboring worlds is better, from which SampleRank learns.
    truth
        The true world, for learners that compare whole worlds with it.
    tuning
        How an `AdaptiveSplitMerge` proposer is tuned by the preference while SampleRank walks; such a walk is
        not a valid chain. None keeps its weights. Every world tunes its own copy.
    name
        Its name in messages.
    evaluator
        The touched factors that a step examines, from which both the gain and the gradient are estimated.
        Walks with a sampling evaluator run in plain Python.
    """

    model: Model
    proposer: Proposer
    start: Any
    preference: Preference | None = None
    truth: Any = None
    tuning: Tuning | None = None
    name: str = ""
    evaluator: FactorSampler = EXACT

    def __post_init__(self) -> None:
        if not hasattr(self.evaluator, "multipliers"):
            raise InvalidArgumentError(
                f"nothing can be learned from {self.evaluator!r}, which decides without a gradient: use"
                " Exact(), UniformSample(share) or ConfidenceSample(interval)."
            )


class Walker:
    """A training world and its walk."""

    def __init__(
        self, training: TrainingWorld, walk: Walk | PlainWalk, preference: Bound | Interpreted | None = None
    ) -> None:
        self.training = training
        self.walk = walk
        self._preference = preference
        self._made = 0

    @property
    def is_compiled(self) -> bool:
        """Whether the walk runs in compiled code."""
        return isinstance(self.walk, Walk) and self.walk.parts.stream is None

    def reset(self, world: Any) -> None:
        """Set the current world to a copy of ``world``."""
        self.walk.reset(world)

    @property
    def world(self) -> Any:
        """The current world (a copy)."""
        return self.walk.view.copy()

    @property
    def value(self) -> float:
        """The metric behind the preference for the current world; NaN without one."""
        if isinstance(self.walk, PlainWalk):
            return self.walk.value
        if self._preference is None or "value" not in self._preference.program.functions:
            return math.nan
        run(self._preference, "begin")  # what the walk keeps may be rounded, or missing
        return run(self._preference, "value")

    def advance(self, stream: Stream, temperature: float, steps: int, *, episode: int = 0) -> int:
        """Make ``steps`` steps, learning; return how many changed the world.

        With tuning, a tuning round runs before every ``tuning.every`` steps.
        """
        tuning, changed = self.training.tuning, 0
        if tuning is None or not isinstance(self.walk, Walk):
            return self.walk.advance(stream, temperature, steps, episode=episode)
        while steps > 0:
            due = tuning.every - self._made % tuning.every
            if due == tuning.every:
                tune(self.walk, tuning, stream, by="truth")
            changed += self.walk.advance(stream, temperature, min(due, steps))
            self._made += min(due, steps)
            steps -= due
        return changed


def make_walkers(
    worlds: Sequence[TrainingWorld],
    engine: EngineName,
    *,
    acceptance: Acceptance,
    best_of: int = 1,
    weights: Float64s,
    clock: Int64s,
    roles: Callable[[TrainingWorld], dict[str, Program]] | None = None,
    judged: bool = False,
    journal: int = 0,
) -> list[Walker]:
    """Build the walkers for the requested engine; "auto" uses compiled code if all parts have programs.

    In plain Python the programs are interpreted, with the same results from the same stream; if a part has
    none, every part is called by its own methods (`PlainWalk`).

    best_of
        How many proposals are drawn for each that is considered.
    weights, clock
        The arrays that the learner's rule changes: see `factorwise.learning.updates.UpdateArrays`.
    roles
        The programs that the learner adds to the walk in a training world: its rule, by role.
    judged
        Whether the preference is called at every step.
    journal
        How many moves an episode has that are undone after it.
    """
    require(engine in ("auto", "compiled", "plain"), "engine", engine, "'auto', 'compiled' or 'plain'")
    walkers: list[Walker] = []
    for training in worlds:
        check_tuning(training, engine, acceptance)
        own = roles(training) if roles is not None else {}
        make = partial(
            _walker,
            training,
            acceptance,
            best_of,
            judged,
            {"weights": weights, "clock": clock, "journal": journal},
            own,
        )
        if engine != "plain":
            try:
                walkers.append(make())
                continue
            except (NoCompiledFormError, TemplateError) as fault:
                if engine == "compiled" or training.tuning is not None:
                    raise
                warn_caller(
                    f"learning in plain Python, which is slow: {fault}",
                    PlainEngineWarning,
                )
                engine = "plain"  # one warning is enough
        try:
            walkers.append(make(interpreted=True))
        except (NoCompiledFormError, TemplateError):
            walk = PlainWalk(
                training,
                acceptance,
                best_of=best_of,
                judged=judged,
                weights=weights,
                clock=clock,
                journal=journal,
                **own,
            )
            walkers.append(Walker(training, walk))
    return walkers


def _walker(
    training: TrainingWorld,
    acceptance: Acceptance,
    best_of: int,
    judged: bool,
    settings: dict[str, Any],
    roles: dict[str, Program],
    *,
    interpreted: bool = False,
) -> Walker:
    """Build the walker if all parts have programs; otherwise the error says which has none."""
    start, preference = training.start, training.preference
    if not hasattr(start, "program"):
        raise NoCompiledFormError(
            f"worlds of kind {type(start).__name__} have no program: give the class methods program()"
            " and frame(), or use engine='plain'."
        )
    if not isinstance(training.evaluator, Exact):
        raise NoCompiledFormError(
            f"learning from {type(training.evaluator).__name__} has no compiled form: use engine='plain'."
        )
    judge = None
    if preference is not None:
        if not hasattr(preference, "program"):
            raise NoCompiledFormError(
                f"{type(preference).__name__} has no program: give it a method program(parts) that"
                " returns Program(judge=...), see ProgramPreference, or use engine='plain'."
            )
        check_kind(preference, start)
        judge = preference.program(
            Surroundings(start, training.model, weights=settings["weights"], learning=True)
        )
    proposer: Any = training.proposer if best_of == 1 else BestOf(training.proposer, best_of)
    kernel = Metropolis(training.model, proposer, acceptance=acceptance)
    own = {**roles, "judge": judge} if judged and judge is not None else roles
    walk = Walk(kernel, start, learning=True, interpreted=interpreted, **settings, **own)
    bound: Bound | Interpreted | None = None
    if judge is not None:
        bound = Interpreted(judge, walk.frame, None) if interpreted else Bound(judge, walk.frame)
    return Walker(training, walk, bound)


def check_walk(accept: Accept, temperature: float, best_of: int) -> Acceptance:
    """Return how a walk accepts; refuse combinations that do not work."""
    known = f"one of {list(ACCEPTANCES)}, or a function of (random, move)"
    require(not isinstance(accept, str) or accept in ACCEPTANCES, "accept", accept, known)
    acceptance = as_acceptance(accept)
    check_number("temperature", temperature, above=0)
    check_count("best_of", best_of)
    require(
        best_of == 1 or acceptance not in (METROPOLIS, BARKER),
        "accept",
        accept,
        "another than 'metropolis' and 'barker' with best_of > 1, whose Hastings ratio is unknown: use"
        " 'unbalanced'",
    )
    return acceptance


def check_tuning(training: TrainingWorld, engine: EngineName, acceptance: Acceptance) -> None:
    """Refuse tuning if there is nothing to tune, or if it would invalidate the chain."""
    if training.tuning is None:
        return
    if not hasattr(training.proposer, "with_weights") or engine == "plain":
        raise InvalidArgumentError(
            "tuning needs an AdaptiveSplitMerge in compiled code, but the proposer is"
            f" {type(training.proposer).__name__} and engine={engine!r}."
        )
    if acceptance in (METROPOLIS, BARKER):
        raise InvalidArgumentError(
            "a walk whose proposer is tuned on the way is not a valid Metropolis-Hastings chain: use"
            " another acceptance, such as 'greedy' or 'unbalanced', or fix the proposer with"
            " tuning=None."
        )


def distance_from_truth(training: TrainingWorld, world: Any) -> Float64s:
    """Return the statistics of ``world`` minus those of the truth."""
    size = training.model.blocks.size
    truth = training.model.statistics(training.truth).to_dense(size)
    return training.model.statistics(world).to_dense(size) - truth


def check_worlds(worlds: Sequence[TrainingWorld], needs: str) -> None:
    """Refuse worlds that do not share their weights, or lack what the learner needs."""
    if isinstance(worlds, TrainingWorld) or not worlds:
        raise InvalidArgumentError("give a list of one or more training worlds: [TrainingWorld(...), ...].")
    first = worlds[0].model.blocks
    for number, training in enumerate(worlds):
        called, blocks = training.name or f"world {number}", training.model.blocks
        if blocks != first:
            raise InvalidArgumentError(
                f"{called} has blocks {list(blocks.names)} of sizes {list(blocks.sizes)}, but the first world"
                f" has {list(first.names)} of sizes {list(first.sizes)}: weights are shared, so build all"
                " models from templates of the same names and sizes."
            )
        if getattr(training, needs) is None:
            raise InvalidArgumentError(f"{called} has no {needs}: give TrainingWorld({needs}=...).")
