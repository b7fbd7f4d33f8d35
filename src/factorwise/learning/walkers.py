"""Walks that teach: one training world, walked compiled or in plain Python, the same steps from one stream.

A walker stands in a world and moves on. Learners tell it how to walk and hand it the arrays in which an
update rule keeps the weights; it fills them while it walks.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, TemplateError, require
from factorwise.inference.mcmc.adaptive.engine import JumpEngine
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.adaptive.tuning import Tuning, tune
from factorwise.inference.mcmc.engine import EngineName, PlainEngineWarning
from factorwise.inference.mcmc.evaluators.base import FactorSampler
from factorwise.inference.mcmc.evaluators.exact import EXACT, Exact
from factorwise.inference.mcmc.gradient_engine import GradientEngine, Manner
from factorwise.inference.mcmc.kernel import Proposal, Proposer
from factorwise.inference.mcmc.metropolis import Metropolis, log_acceptance
from factorwise.kernels.clusterings.truth_gains import TruthArrays, begin_truth, truth_value
from factorwise.kernels.clusterings.updates import STEPS, UPDATES, UpdateArrays
from factorwise.learning.preferences import Preference, TruthPreference
from factorwise.learning.updates import count_step, learn_sparse
from factorwise.model.model import Model
from factorwise.model.weights import SparseVector
from factorwise.rng import Stream
from factorwise.world.partition import Partition


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWorld:
    """One world to learn from: a document, a topic, a pair of ontologies.

    model
        Scores it. All training worlds have models with the same blocks of weights, each over its own items.
    proposer
        Draws the steps.
    start
        Where walks begin.
    preference
        Which of two neighbours is better: what SampleRank learns from.
    truth
        The right world, for learners that compare whole worlds with it.
    tuning
        How an `AdaptiveSplitMerge` proposer is tuned while SampleRank walks, by the preference: such a walk
        is no valid chain. None leaves its weights as they are. Every world tunes a copy of its own.
    name
        What to call it in messages.
    evaluator
        Which of the touched factors a step examines: the gain that is weighed and the gradient that is
        learned from are both estimated from these. One that samples walks in plain Python.
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
                f"nothing can be learned from {self.evaluator!r}, which decides without a gradient:"
                " give Exact(), UniformSample(share) or ConfidenceSample(interval)."
            )


class Walker(Protocol):
    """A training world and where in it the walk stands."""

    training: TrainingWorld

    def reset(self, world: Any) -> None:
        """Stand in a copy of ``world``."""
        ...

    @property
    def world(self) -> Any:
        """The current world (a copy)."""
        ...

    @property
    def value(self) -> float:
        """The metric behind the preference, of the current world; nan where there is none."""
        ...

    def walk(
        self,
        stream: Stream,
        manner: Manner,
        update: UpdateArrays,
        steps: int,
        *,
        free: NDArray[np.float64],
        learning: bool = True,
    ) -> int:
        """Walk ``steps`` steps with the weights of ``update``, learning; return how many were accepted."""
        ...

    def contrast(
        self,
        stream: Stream,
        manner: Manner,
        update: UpdateArrays,
        *,
        rate: float,
        length: int,
        rounds: int,
        persistent: bool,
        free: NDArray[np.float64],
    ) -> int:
        """Walk ``rounds`` times ``length`` steps, learning after each from the distance to the truth.

        A walk that does not persist must stand at the truth, and is back there after every round.
        """
        ...


def make_walker(training: TrainingWorld, engine: EngineName = "auto") -> Walker:
    """Build the walker that ``engine`` asks for; "auto" walks compiled where there is a compiled form."""
    require(engine in ("auto", "compiled", "plain"), "engine", engine, "'auto', 'compiled' or 'plain'")
    if training.tuning is not None:
        if not isinstance(training.proposer, AdaptiveSplitMerge) or engine == "plain":
            raise InvalidArgumentError(
                f"tuning is for an AdaptiveSplitMerge that walks compiled, but the proposer is"
                f" {type(training.proposer).__name__} and engine={engine!r}."
            )
        return CompiledWalker(training)
    if engine != "plain":
        try:
            return CompiledWalker(training)
        except (NoCompiledFormError, TemplateError) as fault:
            if engine == "compiled":
                raise
            warnings.warn(f"learning in plain Python: {fault}", PlainEngineWarning, stacklevel=4)
    return PlainWalker(training)


class CompiledWalker:
    """A walk over clusterings in compiled code, with the truth, if any, as the preference."""

    def __init__(self, training: TrainingWorld) -> None:
        preference = training.preference
        if not isinstance(training.start, Partition):
            raise NoCompiledFormError(
                f"worlds of kind {type(training.start).__name__} are walked in plain Python: engine='plain'."
            )
        if preference is not None and not isinstance(preference, TruthPreference):
            raise NoCompiledFormError(
                f"{type(preference).__name__} has no compiled form: give a TruthPreference or engine='plain'."
            )
        self.training = training
        if not isinstance(training.evaluator, Exact):
            raise NoCompiledFormError(
                f"learning from {type(training.evaluator).__name__} has no compiled form: use engine='plain'."
            )
        adaptive = isinstance(training.proposer, AdaptiveSplitMerge)
        engine = JumpEngine if adaptive else GradientEngine
        self._engine = engine(Metropolis(training.model, training.proposer), training.start)
        self._jumps = 0
        self._truth: TruthArrays | None = preference.arrays(training.start) if preference else None
        self._distance_known = False

    def reset(self, world: Partition) -> None:
        """Stand in a copy of ``world``."""
        self._engine.reset(world)
        self._distance_known = False
        if self._truth is not None:
            begin_truth(self._truth, self._engine.view.arrays)

    @property
    def world(self) -> Partition:
        """The current world (a copy)."""
        return self._engine.world

    @property
    def value(self) -> float:
        """The metric against the truth; nan without a truth."""
        return math.nan if self._truth is None else truth_value(self._truth)

    @property
    def factors_seen(self) -> int:
        """Pairs of items that the steps so far joined or separated."""
        return self._engine.factors_seen

    def walk(
        self,
        stream: Stream,
        manner: Manner,
        update: UpdateArrays,
        steps: int,
        *,
        free: NDArray[np.float64],
        learning: bool = True,
    ) -> int:
        """Walk and learn; with tuning, in stretches between its rounds."""
        tuning, changed = self.training.tuning, 0
        stretch = steps if tuning is None else tuning.every
        if tuning is not None and manner.accept == "metropolis":
            raise InvalidArgumentError(
                "a walk whose proposer is tuned on the way is no Metropolis-Hastings chain: walk in another"
                " manner, such as 'greedy' or 'unbalanced', or freeze the proposer with tuning=None."
            )
        while steps > 0:
            if tuning is not None and isinstance(self._engine, JumpEngine) and self._jumps % stretch == 0:
                tune(
                    self._engine,
                    tuning,
                    stream,
                    by="truth" if self._truth is not None else "score",
                    model_weights=update.weights,
                    truth=self._truth,
                )
            now = min(steps, stretch - self._jumps % stretch)
            changed += self._engine.learn(
                stream, manner, update, self._truth, now, free=free, learning=learning
            )
            self._jumps += now
            steps -= now
        return changed

    @property
    def proposer(self) -> Proposer:
        """The proposer, as tuned so far."""
        return self._engine.proposer if isinstance(self._engine, JumpEngine) else self.training.proposer

    def contrast(
        self,
        stream: Stream,
        manner: Manner,
        update: UpdateArrays,
        *,
        rate: float,
        length: int,
        rounds: int,
        persistent: bool,
        free: NDArray[np.float64],
    ) -> int:
        """Walk away from the truth and learn from the distance."""
        if not self._distance_known:  # from then on the engine adds up what its steps change
            self._engine.path[:] = (
                distance_from_truth(self.training, self._engine.view) if persistent else 0.0
            )
            self._distance_known = True
        changed = self._engine.contrast(
            stream, manner, update, rate, length, rounds, persistent=persistent, free=free
        )
        if self._truth is not None:
            begin_truth(self._truth, self._engine.view.arrays)
        return changed


def distance_from_truth(training: TrainingWorld, world: Any) -> NDArray[np.float64]:
    """Statistics of ``world`` minus those of the truth."""
    size = training.model.blocks.size
    there = training.model.statistics(training.truth).to_dense(size)
    return training.model.statistics(world).to_dense(size) - there


class PlainWalker:
    """A walk over worlds of any kind, with any proposer and preference: the compiled one's reference.

    observer
        Told the gradient of every step and by how much the world after it is better.
    """

    def __init__(
        self, training: TrainingWorld, observer: Callable[[SparseVector, float], None] | None = None
    ) -> None:
        self.training = training
        self.factors_seen = 0  # by evaluators that sample
        self._observer = observer
        self.reset(training.start)

    def reset(self, world: Any) -> None:
        """Stand in a copy of ``world``."""
        self._world = world.copy()
        preference = self.training.preference
        self._judge = preference.watch(self._world) if preference is not None else None

    @property
    def world(self) -> Any:
        """The current world (a copy)."""
        return self._world.copy()

    @property
    def value(self) -> float:
        """The metric behind the preference."""
        return math.nan if self._judge is None else self._judge.value

    def walk(
        self,
        stream: Stream,
        manner: Manner,
        update: UpdateArrays,
        steps: int,
        *,
        free: NDArray[np.float64],
        learning: bool = True,
    ) -> int:
        """Propose, take the gradient, learn, decide, apply.

        Implements: wick2009samplerank, Alg. 1; rohanimanesh2009inference, Alg. 1.
        """
        manner.check()
        changed = 0
        for _ in range(steps):
            proposal, gradient, fixed = self._propose(stream, manner.best_of, update.weights)
            chance = stream.uniform()
            gain, better = 0.0, 0.0
            if proposal.diff is not None:
                gain = gradient.dot(update.weights) + fixed
                if self._judge is not None:
                    better = self._judge.gain(self._world, proposal.diff)
                if self._observer is not None:
                    self._observer(gradient, better)
                if learning and better != 0.0 and math.isfinite(fixed):
                    direction = math.copysign(1.0, better)
                    lesson = SparseVector(gradient.index, gradient.value * free[gradient.index])
                    if learn_sparse(update, lesson, direction, direction * gain, abs(better)):
                        gain = gradient.dot(update.weights) + fixed
            if learning:
                count_step(update)
            if proposal.diff is not None and _accepts(manner, proposal, gain, better, chance):
                self._apply(proposal.diff)
                changed += 1
        return changed

    def contrast(
        self,
        stream: Stream,
        manner: Manner,
        update: UpdateArrays,
        *,
        rate: float,
        length: int,
        rounds: int,
        persistent: bool,
        free: NDArray[np.float64],
    ) -> int:
        """Walk away from the truth and learn from the distance."""
        manner.check()
        path = distance_from_truth(self.training, self._world)
        changed = 0
        for _ in range(rounds):
            taken = []
            for _ in range(length):
                proposal, gradient, fixed = self._propose(stream, manner.best_of, update.weights)
                chance = stream.uniform()
                count_step(update)
                gain = gradient.dot(update.weights) + fixed
                if proposal.diff is not None and _accepts(manner, proposal, gain, 0.0, chance):
                    taken.append(self._apply(proposal.diff))
                    path[gradient.index] += gradient.value
                    changed += 1
            lesson = free * path
            change = -rate * lesson
            update.weights[:] += change
            update.drift[:] += update.tally[STEPS] * change
            if lesson.any():
                update.tally[UPDATES] += 1
                update.largest[0] = max(update.largest[0], float(lesson @ lesson))
            if not persistent:
                for back in reversed(taken):
                    self._apply(back)
                path[:] = 0.0
        return changed

    def _propose(
        self, stream: Stream, tries: int, weights: NDArray[np.float64]
    ) -> tuple[Proposal, SparseVector, float]:
        """Draw a proposal with its gradient and the gain that no weight multiplies; of several, the best."""
        best: tuple[Proposal, SparseVector, float] = (Proposal(None, 0.0, 0.0), SparseVector.empty(), 0.0)
        best_gain = -math.inf
        for _ in range(tries):
            proposal = self.training.proposer.draw(stream, self._world)
            if proposal.diff is None:
                continue
            gradient, fixed = self._gradient(stream, proposal.diff, weights)
            gain = gradient.dot(weights) + fixed
            if best[0].diff is None or gain > best_gain:
                best, best_gain = (proposal, gradient, fixed), gain
        return best

    def _gradient(
        self, stream: Stream, diff: Any, weights: NDArray[np.float64]
    ) -> tuple[SparseVector, float]:
        """Change of the statistics and of the constants, from the factors that the evaluator examines."""
        model, evaluator = self.training.model, self.training.evaluator
        if isinstance(evaluator, Exact):
            fixed = sum(t.constant_gain(self._world, diff) for t in model.templates)
            return model.difference(self._world, diff), fixed
        listed = model.contributions(self._world, diff, weights)
        multiplier = evaluator.multipliers(stream, listed.gain[None], listed.stratum, listed.certain)
        self.factors_seen += int(np.count_nonzero(multiplier))
        constants = replace(listed, gain=listed.constant)
        return listed.gradient(multiplier), constants.total(multiplier)

    def _apply(self, diff: Any) -> Any:
        if self._judge is not None:
            self._judge.applied(self._world, diff)
        return self._world.apply(diff)


def _accepts(manner: Manner, proposal: Proposal, gain: float, better: float, chance: float) -> bool:
    """Whether the walk goes to the proposed world."""
    if manner.accept == "metropolis":
        return chance < math.exp(log_acceptance(gain, proposal, manner.temperature))
    if manner.accept == "unbalanced":
        return chance < math.exp(log_acceptance(gain, Proposal(proposal.diff, 0.0, 0.0), manner.temperature))
    if manner.accept == "greedy":
        return gain > 0.0
    if manner.accept == "always":
        return True
    return better > 0.0 or (better == 0.0 and gain > 0.0)


def check_worlds(worlds: Sequence[TrainingWorld], needs: str) -> None:
    """Refuse worlds that do not share their weights, or lack what the learner needs of them."""
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
