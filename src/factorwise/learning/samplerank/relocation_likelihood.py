r"""Pseudo-likelihood of clusterings: the place of each item given where all others are.

.. math:: \mathrm{PL}(\theta) = \sum_w \sum_i \log p_\theta(w_i \mid w_{-i}), \qquad
   p_\theta(w_i \mid w_{-i}) = \Bigl(1 + \sum_{w'} e^{\mathrm{score}(w') - \mathrm{score}(w)}\Bigr)^{-1}

where :math:`w'` runs over the other worlds in which all items but i are grouped as in w: i in each of the
other clusters, or in one of its own. Each of them is one relocation away, so its gain comes from the touched
factors, and no sum over all clusterings is left. An item that is alone stays where it is when it moves to a
cluster of its own: that world counts once.

Where clusters have types, an item may be alone in a cluster of any type, and the type of each cluster given
all else adds a conditional of its own: by relocations alone no cluster of two or more would change its type.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from factorwise.errors import InvalidArgumentError, NoCompiledFormError, TemplateError, require
from factorwise.inference.mcmc.engine import EngineName, PlainEngineWarning
from factorwise.inference.mcmc.partition_gibbs import PartitionGibbs
from factorwise.kernels.clusterings.relocation_gradients import Conditionals, relocation_likelihood
from factorwise.kernels.compile.programs import Bound
from factorwise.kernels.compile.threads import Team
from factorwise.kernels.walks.frames import run
from factorwise.learning.likelihood.marginal_likelihood import possible_constant
from factorwise.learning.likelihood.priors import Prior
from factorwise.learning.optimizers import Optimum, Progress, minimize
from factorwise.learning.optimizers.base import Watch
from factorwise.learning.samplerank.walkers import TrainingWorld, check_worlds
from factorwise.model.model import Model
from factorwise.model.programs import model_programs
from factorwise.model.template import Template
from factorwise.rng import Stream
from factorwise.world.diff import PartitionDiff, Retype
from factorwise.world.partition import Partition

Vector = NDArray[np.float64]

TYPICAL = 1_000  # relocations looked at to find the scale of each statistic


class RelocationLikelihood:
    """The pseudo-likelihood of true clusterings as a function of the flat weight vector; it is concave.

    Of two items without types it is twice the log-likelihood, for each conditional is over all worlds. Of
    more items it has its maximum near the true weights if there are many worlds. From few worlds that some
    weights tell from all their neighbors it has no maximum: give a prior.

    worlds
        Models over clusterings with their truths; proposers and starts are not read, nor are the models' own
        weights. A truth that one model has several times is looked at once.
    prior
        What `fit` prefers of the weights; the value and the gradient are without it.
    engine
        "compiled" takes the gradients of all relocations anew at every evaluation; "plain" takes them once,
        in Python, and keeps them, for templates of any kind; "auto" is "compiled" where that can be done.
    threads
        Worlds are shared out among so many; the result does not depend on it.
    """

    def __init__(
        self,
        worlds: Sequence[TrainingWorld],
        *,
        prior: Prior | None = None,
        engine: EngineName = "auto",
        threads: int = 1,
    ) -> None:
        check_worlds(worlds, "truth")
        require(engine in ("auto", "compiled", "plain"), "engine", engine, "'auto', 'compiled' or 'plain'")
        require(threads >= 1, "threads", threads, "at least 1")
        self.blocks = worlds[0].model.blocks
        self.prior = prior or Prior.none()
        self.threads = threads
        times: dict[object, int] = {}
        different: dict[object, TrainingWorld] = {}
        for number, training in enumerate(worlds):
            _check_truth(number, training)
            possible_constant(training.model, training.truth, number)
            key = id(training.model), training.truth.canonical()
            times[key] = times.get(key, 0) + 1
            different.setdefault(key, training)
        self._times = np.array(list(times.values()), dtype=np.float64)
        self._different = list(different.values())
        self._terms = [_term(training, engine) for training in self._different]

    def value_and_gradient(self, weights: ArrayLike) -> tuple[float, Vector]:
        """Return the log pseudo-likelihood and its gradient, to be made large."""
        flat = self.blocks.flat(weights)
        values = np.zeros(len(self._terms))
        slopes = np.zeros((len(self._terms), len(flat)))

        def work(first: int, last: int) -> None:
            for number in range(first, last):
                values[number] = self._terms[number].evaluate(flat, slopes[number])

        with Team(self.threads) as team:
            team.share(len(self._terms), work)
        return float(self._times @ values), self._times @ slopes

    def loss(self, weights: ArrayLike) -> tuple[float, Vector]:
        """Return minus the log pseudo-likelihood and minus its gradient, to be made small by an optimizer."""
        value, gradient = self.value_and_gradient(weights)
        return -value, -gradient

    def fit(
        self, start: ArrayLike | None = None, *, memory: int = 40, watch: Watch | None = None, **settings: Any
    ) -> Optimum:
        """Return the weights that are best under the prior, found from ``start`` (zero by default).

        Without an l1 penalty the optimizer sees each weight in units in which typical relocations change its
        statistic by one, which takes a fraction of the evaluations; norms of the gradient are in these units.

        memory
            Steps that the optimizer remembers: many, since they cost far less than an evaluation.
        watch
            Called after each iteration; returning True stops.
        settings
            As for `minimize`: ``method``, ``config`` and the fields of an `OptimizerConfig`.
        """
        first, prior = self.blocks.flat(start), self.prior
        if prior.l1 > 0.0:
            return minimize(self.loss, first, prior=prior, memory=memory, watch=watch, **settings)
        unit = 1.0 / _typical_changes(self._different)

        def objective(given: Vector) -> tuple[float, Vector]:
            weights = given * unit
            value, slope = self.loss(weights)
            return value + prior.penalty(weights), (slope + prior.smooth_gradient(weights)) * unit

        def seen(progress: Progress) -> bool | None:
            return watch(replace(progress, weights=progress.weights * unit)) if watch is not None else None

        found = minimize(objective, first / unit, prior=Prior.none(), memory=memory, watch=seen, **settings)
        return replace(found, weights=found.weights * unit)


class _Term(Protocol):
    """The conditionals of one world."""

    def evaluate(self, weights: Vector, gradient: Vector) -> float:
        """Return the sum of the logs of the conditionals, and set its gradient."""
        ...


class _CompiledTerm:
    """Conditionals whose gradients are taken anew each time, by the programs of the templates."""

    def __init__(self, model: Model, world: Partition) -> None:
        for template in model.templates:
            if type(template).constant_gain is not Template.constant_gain:
                raise NoCompiledFormError(
                    f"template {template.name!r} has scores that no weight multiplies: use engine='plain'."
                )
        self._world = world.copy()
        programs = model_programs(model, self._world)
        lacking = [program.name for program in programs.templates if "gradient" not in program.functions]
        if lacking:
            raise NoCompiledFormError(
                f"{lacking[0]} does not say how statistics change: give its program a function gradient,"
                " or use"
                " engine='plain'."
            )
        self._world.arrays = programs.arrays
        size = model.blocks.size
        frame = self._world.frame(np.zeros(2, np.uint64), weights=size)
        self._bound = [Bound(program.for_learning(), frame) for program in programs.templates]
        entries = [[(bound.entry("gradient", at), bound.context) for bound in self._bound] for at in (0, 1)]
        self._conditionals = Conditionals(
            world=programs.arrays,
            templates=np.array(entries, np.int64).reshape(2, len(self._bound), 2),
            step=frame.step,
            gradient=frame.gradient,
            mean=np.zeros(size),
            sums=np.zeros(2),
            slope=np.zeros(size),
        )
        for bound in self._bound:
            run(bound, "begin")

    def evaluate(self, weights: Vector, gradient: Vector) -> float:
        slope = self._conditionals.slope
        slope[:] = 0.0
        value = relocation_likelihood(self._conditionals, weights, self._world.n_types)
        gradient[:] = slope
        return value


class _PlainTerm:
    """Conditionals whose gradients are kept, one row for each change; what may be exchanged stands together.

    design : float64[changes, weights], sparse
        Gradients of the changes; of no change, zero.
    constant : float64[changes]
        Their gains that no weight multiplies.
    starts : int64[conditionals]
        First row of each conditional, which is the world as it is.
    """

    def __init__(self, model: Model, world: Partition) -> None:
        starts: list[int] = []
        constants: list[float] = []
        rows, columns, values = [], [], []
        for changes in _conditionals(model, world):
            starts.append(len(constants))
            constants.append(0.0)
            for diff in changes:
                constant = sum(template.constant_gain(world, diff) for template in model.templates)
                if constant == -np.inf:
                    continue
                found = model.difference(world, diff)
                rows.append(np.full(len(found.index), len(constants)))
                columns.append(found.index)
                values.append(found.value)
                constants.append(constant)
        nothing = np.zeros(0, np.int64)
        places = np.concatenate([nothing, *rows]), np.concatenate([nothing, *columns])
        entries = np.concatenate([np.zeros(0), *values])
        self.design = csr_array((entries, places), shape=(len(constants), model.blocks.size))
        self.constant = np.array(constants)
        self.starts = np.array(starts, dtype=np.int64)

    def evaluate(self, weights: Vector, gradient: Vector) -> float:
        gains = self.design @ weights + self.constant
        sizes = np.diff(self.starts, append=len(gains))
        top = np.maximum.reduceat(gains, self.starts)
        share = np.exp(gains - np.repeat(top, sizes))
        total = np.add.reduceat(share, self.starts)
        gradient[:] = self.design.T @ (share / np.repeat(-total, sizes))
        return float(-(top + np.log(total)).sum())


def _conditionals(model: Model, world: Partition) -> Iterator[list[PartitionDiff]]:
    """Yield, for each thing that may be otherwise while all else stays, the changes of it."""
    gibbs = PartitionGibbs(model)
    for item in range(world.n_items):
        yield [diff for diff in gibbs.choices(world, item) if diff is not None]
    if world.n_types > 1:
        for cluster in world.cluster_ids().tolist():
            old = world.type_of(cluster)
            yield [Retype(cluster, old, kind) for kind in range(world.n_types) if kind != old]


def _typical_changes(worlds: Sequence[TrainingWorld]) -> Vector:
    """Root mean square of what relocations change of each statistic, over a sample of them."""
    squares = np.zeros(worlds[0].model.blocks.size)
    stream = Stream(0)
    for _ in range(TYPICAL):
        training = worlds[stream.below(len(worlds))]
        item = stream.below(training.truth.n_items)
        places = PartitionGibbs(training.model).choices(training.truth, item)
        diff = places[stream.below(len(places))]
        if diff is not None:
            found = training.model.difference(training.truth, diff)
            squares[found.index] += found.value**2
    rare = squares[squares > 0.0].min(initial=TYPICAL)
    typical: Vector = np.sqrt(np.maximum(squares, rare) / TYPICAL)
    return typical


def _term(training: TrainingWorld, engine: EngineName) -> _Term:
    if engine != "plain":
        try:
            return _CompiledTerm(training.model, training.truth)
        except (NoCompiledFormError, TemplateError) as fault:
            if engine == "compiled":
                raise
            warnings.warn(f"taking gradients in plain Python: {fault}", PlainEngineWarning, stacklevel=4)
    return _PlainTerm(training.model, training.truth)


def _check_truth(number: int, training: TrainingWorld) -> None:
    """Refuse what is no clustering."""
    if not isinstance(training.truth, Partition):
        raise InvalidArgumentError(
            f"the truth of {training.name or f'world {number}'} is a {type(training.truth).__name__}:"
            " relocations are of clusterings, so give a Partition. For assignments use PseudoLikelihood."
        )
