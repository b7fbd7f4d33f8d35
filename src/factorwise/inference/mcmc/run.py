"""Run chains: several at a time, thinned, with records of their draws; and anneal for a best world.

A chain is a pure function of its start, the seed and its number, so the result does not depend on how many
threads share the work. Every chain runs the same legs (stretches of burn-in, draws), and the threads take
turns with the chains, so that none is far ahead. Ctrl-C ends all of them after the same leg and returns the
draws so far.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from factorwise.errors import InvalidArgumentError, ShapeError, require
from factorwise.inference.mcmc.engine import Engine, EngineName, make_engine
from factorwise.inference.mcmc.kernel import TransitionKernel
from factorwise.inference.mcmc.schedules import Geometric, Schedule
from factorwise.rng import Stream, as_stream
from factorwise.validation import as_array, check_count, check_number
from factorwise.views import html_table

PROGRESS_AFTER = 2.0  # seconds: short runs show no bar
SLICE = 1_000  # steps of a leg of burn-in, after which the clock and Ctrl-C are checked
STINT = 0.1  # seconds that a thread stays with one chain while others wait
HEED = 0.2  # seconds within which Ctrl-C takes effect


@dataclass(frozen=True, slots=True, repr=False)
class Samples:
    """The draws of the chains.

    scores : float64[chains, draws]
    accepted : float64[chains]
        Share of the steps that changed the world, including burn-in.
    best, best_score
        The world with the highest score among all draws.
    last
        The current world of each chain.
    interrupted
        Whether Ctrl-C ended the run early; every chain then has the same, smaller, number of draws.
    pairs : int64[pairs, 2]
        For partition worlds: the pairs that were requested.
    together : bool[chains, draws, pairs]
        Whether each of them was in one cluster.
    n_clusters : int64[chains, draws]
        For partition worlds; empty otherwise.
    label_counts : int64[chains, variables, labels]
        How often each variable had each label, for assignment worlds, or each item each target; empty for
        partition worlds. For joint worlds, the rows of the worlds follow each other.
    """

    scores: NDArray[np.float64]
    accepted: NDArray[np.float64]
    best: Any
    best_score: float
    last: list[Any]
    interrupted: bool
    pairs: NDArray[np.int64]
    together: NDArray[np.bool_]
    n_clusters: NDArray[np.int64]
    label_counts: NDArray[np.int64]

    def __repr__(self) -> str:
        chains, draws = self.scores.shape
        seen = f"chains={chains}, draws={draws}, best_score={self.best_score:.6g}"
        return f"Samples({seen}, interrupted={self.interrupted})"

    def _repr_html_(self) -> str:
        rows = [
            (chain, float(scores.mean()), float(scores.max()), float(accepted))
            for chain, (scores, accepted) in enumerate(zip(self.scores, self.accepted, strict=True))
            if scores.size
        ]
        return html_table(repr(self), ("chain", "mean score", "best score", "accepted"), rows)

    @property
    def n_draws(self) -> int:
        """Number of draws of each chain."""
        return int(self.scores.shape[1])

    def co_clustering(self) -> NDArray[np.float64]:
        """Return the probability that the two items of each pair are in one cluster: float64[pairs]."""
        if self.together.shape[2] == 0:
            raise InvalidArgumentError("no pairs were recorded: use sample(..., pairs=[(0, 1), ...]).")
        return np.asarray(self.together.mean(axis=(0, 1)))

    def label_marginals(self) -> NDArray[np.float64]:
        """Return label (or target) probabilities of each variable (or item): float64[variables, labels]."""
        if self.label_counts.shape[1] == 0:
            raise InvalidArgumentError("partition worlds have no labels: use co_clustering().")
        total = self.label_counts.sum(axis=0)
        return np.asarray(total / total.sum(axis=1, keepdims=True))


@dataclass(slots=True)
class _Chain:
    """One running chain and its records."""

    engine: Engine
    stream: Stream
    recorder: _Recorder
    legs: int = 0
    scores: list[float] = field(default_factory=list)
    changed: int = 0
    steps: int = 0
    best: Any = None
    best_score: float = -np.inf

    def advance(self, temperature: float, steps: int) -> None:
        self.changed += self.engine.advance(self.stream, temperature, steps)
        self.steps += steps

    def keep_best(self) -> None:
        score = self.engine.score
        if score > self.best_score:
            self.best, self.best_score = self.engine.world, score

    def record(self) -> None:
        self.scores.append(self.engine.score)
        self.keep_best()
        self.recorder.record(self.engine)


class _Recorder:
    """Records of each draw besides the score, by kind of world."""

    def __init__(self, world: Any, pairs: NDArray[np.int64]) -> None:
        self.pairs = pairs
        self.together: list[NDArray[np.bool_]] = []
        self.n_clusters: list[int] = []
        worlds = getattr(world, "parts", {"": world})
        self.clustered = [name for name, part in worlds.items() if hasattr(part, "n_clusters")][:1]
        labeled = (name for name, part in worlds.items() if hasattr(part, "n_targets"))
        self.labeled = [name for name in labeled if not hasattr(worlds[name], "n_clusters")]
        rows = sum(len(worlds[name].values) for name in self.labeled)
        most = max((worlds[name].n_targets for name in self.labeled), default=0)
        self.label_counts = np.zeros((rows, most), np.int64)

    def record(self, engine: Engine) -> None:
        worlds = getattr(engine.view, "parts", {"": engine.view})
        for name in self.clustered:
            labels = worlds[name].labels
            self.together.append(labels[self.pairs[:, 0]] == labels[self.pairs[:, 1]])
            self.n_clusters.append(worlds[name].n_clusters)
        first = 0
        for name in self.labeled:
            values = worlds[name].values
            self.label_counts[first + np.arange(len(values)), values] += 1
            first += len(values)


def sample(
    kernel: TransitionKernel,
    world: Any,
    *,
    draws: int = 1_000,
    thin: int = 1,
    burn_in: int = 0,
    chains: int = 4,
    threads: int | None = None,
    seed: int | np.random.Generator | Stream = 0,
    temperature: float = 1.0,
    pairs: ArrayLike = (),
    engine: EngineName = "auto",
    progress: bool = True,
) -> Samples:
    """Draw from ``exp(score / temperature)`` with several independent chains.

    kernel
        The transition kernel, which has the model.
    world
        The world from which every chain starts.
    draws, thin, burn_in
        Each chain makes ``burn_in`` steps, then ``draws`` times ``thin`` steps, and records the world after
        each ``thin`` steps.
    chains, threads
        Number of chains and of threads. The result does not depend on the threads; by default there is one
        per processor.
    seed
        A whole number, or a NumPy ``Generator``.
    temperature
        The temperature, 1 for the model's own distribution.
    pairs
        Pairs of items of a partition world whose co-clustering is recorded.
    engine
        "auto" (the default), "compiled" or "plain".
    progress
        Whether to show a progress bar.
    """
    check_count("draws", draws)
    check_count("thin", thin)
    check_count("burn_in", burn_in, 0)
    check_number("temperature", temperature, above=0)
    watched = _checked_pairs(pairs, world)
    crew = _start(kernel, world, chains, threads, seed, engine, watched)
    burning = [min(SLICE, burn_in - done) for done in range(0, burn_in, SLICE)]

    def walk(chain: _Chain, leg: int) -> int:
        steps = burning[leg] if leg < len(burning) else thin
        chain.advance(temperature, steps)
        if leg >= len(burning):
            chain.record()
        return steps

    total = chains * (burn_in + draws * thin)
    interrupted = _work(walk, len(burning) + draws, crew, total, threads, progress)
    return _samples(crew, watched, interrupted)


@dataclass(frozen=True, slots=True, repr=False)
class Annealed:
    """The result of annealing.

    best, best_score
        The best world among those after each stretch between two temperatures.
    trace : float64[chains, looks]
        Score after each stretch.
    interrupted
        Whether Ctrl-C ended it early.
    """

    best: Any
    best_score: float
    trace: NDArray[np.float64]
    interrupted: bool

    def __repr__(self) -> str:
        chains, looks = self.trace.shape
        seen = f"chains={chains}, looks={looks}, best_score={self.best_score:.6g}"
        return f"Annealed({seen}, interrupted={self.interrupted})"


def anneal(
    kernel: TransitionKernel,
    world: Any,
    *,
    steps: int,
    schedule: Schedule | None = None,
    looks: int = 200,
    chains: int = 1,
    threads: int | None = None,
    seed: int | np.random.Generator | Stream = 0,
    engine: EngineName = "auto",
    progress: bool = True,
) -> Annealed:
    """Search for a world with the highest score by simulated annealing.

    steps
        Number of steps of each chain.
    schedule
        Temperatures; by default geometric from 2 to 0.02.
    looks
        How often the temperature changes and the world is compared with the best so far.

    The other arguments are those of `sample`. Implements: singh2012montecarlo, Sec. 2 (MAP by a cooling
    schedule).
    """
    check_count("steps", steps)
    check_count("looks", looks)
    cooling = Geometric() if schedule is None else schedule
    if not hasattr(cooling, "temperature"):
        raise InvalidArgumentError(
            f"{schedule!r} is not a schedule: give one such as Geometric(start=2.0, end=0.02), or an"
            " object with temperature(done)."
        )
    ends = np.linspace(0, steps, min(looks, steps) + 1).astype(int).tolist()
    crew = _start(kernel, world, chains, threads, seed, engine, np.zeros((0, 2), np.int64))
    for chain in crew:
        chain.keep_best()

    def walk(chain: _Chain, leg: int) -> int:
        middle = (ends[leg] + ends[leg + 1]) / 2
        chain.advance(cooling.temperature(middle / steps), ends[leg + 1] - ends[leg])
        chain.scores.append(chain.engine.score)
        chain.keep_best()
        return int(ends[leg + 1] - ends[leg])

    interrupted = _work(walk, len(ends) - 1, crew, chains * steps, threads, progress)
    best = max(crew, key=lambda chain: chain.best_score)
    trace = np.array([chain.scores for chain in crew])
    return Annealed(best.best, best.best_score, trace, interrupted)


def _checked_pairs(pairs: ArrayLike, world: Any) -> NDArray[np.int64]:
    array = as_array("pairs", pairs)
    if array.size == 0:
        return np.zeros((0, 2), np.int64)
    worlds = list(getattr(world, "parts", {"": world}).values())
    world = next((candidate for candidate in worlds if hasattr(candidate, "n_clusters")), None)
    if world is None:
        raise InvalidArgumentError("pairs can be recorded in partition worlds only: leave pairs out.")
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ShapeError(
            f"pairs must be whole numbers of shape (pairs, 2), but have shape {array.shape} and dtype"
            f" {array.dtype}: give [(0, 1), ...]."
        )
    outside = array[((array < 0) | (array >= world.n_items)).any(axis=1)]
    if len(outside):
        raise InvalidArgumentError(
            f"pairs must name items 0 to {world.n_items - 1}, but {tuple(outside[0].tolist())} is among them."
        )
    return array.astype(np.int64)


def _start(
    kernel: TransitionKernel,
    world: Any,
    chains: int,
    threads: int | None,
    seed: int | np.random.Generator | Stream,
    engine: EngineName,
    pairs: NDArray[np.int64],
) -> list[_Chain]:
    check_count("chains", chains)
    require(threads is None or threads >= 1, "threads", threads, "at least 1, or None for all processors")
    # one draw, so that a Generator or a Stream advances equally for any number of chains
    root = as_stream(seed).bits()
    crew: list[_Chain] = []
    for number in range(chains):
        first = crew[0].engine if crew else None
        chain = make_engine(kernel, world, engine, like=first)
        crew.append(_Chain(chain, Stream(root, number), _Recorder(world, pairs)))
    return crew


def _work(
    walk: Callable[[_Chain, int], int],
    legs: int,
    crew: list[_Chain],
    total: int,
    threads: int | None,
    progress: bool,
) -> bool:
    """Let every chain run its legs, in threads; return whether Ctrl-C was pressed.

    walk
        Runs one leg of a chain and returns its number of steps.
    """
    workers = min(threads or os.cpu_count() or 1, len(crew))
    lock = threading.Lock()
    waiting = deque(crew)
    begin = threading.Event()  # set when `turns` is complete: Ctrl-C could otherwise miss a thread
    last = legs
    interrupted = False
    hidden = None if progress else True
    with (
        tqdm(total=total, unit="step", unit_scale=True, delay=PROGRESS_AFTER, disable=hidden) as bar,
        ThreadPoolExecutor(workers) as pool,
    ):

        def next_leg(chain: _Chain) -> int | None:
            with lock:  # so that Ctrl-C sees how far the chains will go
                if chain.legs >= last:
                    return None
                chain.legs += 1
                return chain.legs - 1

        def report(chain: _Chain, steps: int) -> None:
            if not bar.disable:
                score, accepted = f"{chain.engine.score:.6g}", f"{chain.changed / chain.steps:.3f}"
                with lock:
                    bar.set_postfix(accepted=accepted, score=score, refresh=False)
                    bar.update(steps)

        def take_turns() -> None:
            begin.wait()
            while waiting:
                try:
                    chain = waiting.popleft()
                except IndexError:  # another thread was quicker and has the last chain
                    return
                end = perf_counter() + STINT
                while (leg := next_leg(chain)) is not None:
                    report(chain, walk(chain, leg))
                    if perf_counter() > end:
                        waiting.append(chain)
                        break

        turns: list[Future[None]] = []
        try:
            turns.extend(pool.submit(take_turns) for _ in range(workers))
            begin.set()
            _wait(turns)
        except KeyboardInterrupt:
            interrupted = True
            with lock:
                last = max(chain.legs for chain in crew)
            begin.set()
            _wait(turns)
        finally:
            last = 0
            begin.set()
        for turn in turns:
            turn.result()
    return interrupted


def _wait(turns: Sequence[Future[None]]) -> None:
    """Wait until all have ended or one has failed.

    It waits for short times only, because a Ctrl-C that arrives while the thread falls asleep takes effect
    when it wakes.
    """
    failed, running = False, True
    while running and not failed:
        done, pending = wait(turns, timeout=HEED, return_when=FIRST_EXCEPTION)
        failed, running = any(turn.exception() for turn in done), bool(pending)


def _samples(crew: list[_Chain], pairs: NDArray[np.int64], interrupted: bool) -> Samples:
    draws = len(crew[0].scores)
    if draws == 0:
        raise KeyboardInterrupt  # stopped before the first draw: there is nothing to return
    best = max(crew, key=lambda chain: chain.best_score)
    recorders = [chain.recorder for chain in crew]
    together = [
        np.reshape(recorder.together, (draws, len(pairs))) for recorder in recorders if recorder.clustered
    ]
    return Samples(
        scores=np.array([chain.scores for chain in crew]),
        accepted=np.array([chain.changed / max(chain.steps, 1) for chain in crew]),
        best=best.best,
        best_score=best.best_score,
        last=[chain.engine.world for chain in crew],
        interrupted=interrupted,
        pairs=pairs,
        together=np.array(together, dtype=bool) if together else np.zeros((len(crew), 0, 0), bool),
        n_clusters=np.array([recorder.n_clusters for recorder in recorders], dtype=np.int64),
        label_counts=np.array([recorder.label_counts for recorder in recorders]),
    )
