"""What answers to questions are worth: B-cubed after so many answers, by how the questions are chosen.

    python experiments/review_questions.py --salts a b c
    python experiments/review_questions.py cora1295 --strategies "expected change; dedupe"
    python experiments/review_questions.py --salts a b --records 300 --answers 50 --estimate

A simulated person answers by the truth, or by the truth with some errors (--errors). Questions start from
what a store starts from: weights learned without labels. For comparison: the answer without labels, what is
found with half of all entities as labels, and dedupe's active learner with as many labels. A salt draws the
halves (see resolution_entities.py), and one seed goes with each. As on the page, the next question is chosen
before the last answer has taught the weights. Settings were chosen on salts that begin with dev. --estimate
tells how often the intervals for precision and recall hold the true values among the candidates.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray
from resolution_entities import split_set
from resolution_tasks import SETS, entities_with  # which lets the modules of benchmarks/ be found

from factorwise import EntityResolver
from factorwise.apps.resolution.curation.candidates import WHOLE
from factorwise.apps.resolution.curation.choices import EXPECTED, RANDOM, UNCERTAIN, Choice
from factorwise.apps.resolution.curation.engine import QuestionEngine
from factorwise.apps.resolution.curation.estimates import RandomAnswers
from factorwise.apps.resolution.curation.indexing import link_table
from factorwise.apps.resolution.curation.starting import learn_pair_weights
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.apps.resolution.resolving import default_budget
from factorwise.apps.resolution.training import entity_numbers
from factorwise.apps.resolution.unlabelled.sources import number_sources
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed
from factorwise.store.store import ALL_BUT, DIFFERENT, SAME

from peers import Peer  # isort: skip

DEFAULT = ("cora1295", "historical_50k", "chicago_early_childhood", "abt_buy", "aminer110")
MARKS = (25, 50, 100, 200)
DEDUPE = Peer("dedupe", ("dedupe==3.0.3", "BTrees<=6.4"))
SCRIPTS = Path(__file__).parents[1] / "benchmarks" / "resolution_peers"
PAIRS = ", pairs only"  # after the name of a strategy
STRATEGIES = (UNCERTAIN, UNCERTAIN + PAIRS, EXPECTED, RANDOM)
COVERED: dict[tuple[int, str], list[bool]] = {}  # by answers and measure, whether intervals held the truth


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(DEFAULT), help=f"which: {', '.join(SETS)}")
    parser.add_argument("--salts", nargs="+", default=["a", "b"], help="one split for each")
    parser.add_argument("--records", type=int, default=10_000, help="at most so many, about")
    parser.add_argument("--answers", type=int, default=MARKS[-1], help="how many answers")
    parser.add_argument("--errors", type=float, default=0.0, help="share of wrong answers")
    parser.add_argument("--strategies", default="; ".join(STRATEGIES), help="separated by semicolons")
    parser.add_argument("--no-teaching", action="store_true", help="answers hold, but teach no weights")
    parser.add_argument("--no-labelled", action="store_true", help="leave out the run with half the entities")
    parser.add_argument(
        "--estimate", action="store_true", help="are the intervals for precision and recall right?"
    )
    options = parser.parse_args()
    for name in options.sets:
        curves: dict[str, list[list[float]]] = {}
        for number, salt in enumerate(options.salts):
            for strategy, curve in measure(name, salt, number, options).items():
                curves.setdefault(strategy, []).append(curve)
        print(f"{name}, means over {len(options.salts)} splits")
        for strategy, found in curves.items():
            told(strategy, np.mean(found, axis=0), f"last {np.ptp([curve[-1] for curve in found]):.4f} apart")


def told(strategy: str, curve: Sequence[float], more: str) -> None:
    """Print B-cubed at each mark."""
    marks = "  ".join(f"{mark} {value:.4f}" for mark, value in zip(MARKS, curve, strict=False))
    print(f"  {strategy:>27}: {marks}  ({more})", flush=True)


def measure(name: str, salt: str, seed: int, options: argparse.Namespace) -> dict[str, list[float]]:
    """Print and return the curves of one split."""
    labelled, task = split_set(name, salt)
    task = task.filter(pa.array(entities_with(entity_numbers(task, "entity"), records=options.records)))
    table, truth = task.drop_columns(["entity"]), entity_numbers(task, "entity")
    print(f"{name} {salt}: {table.num_rows:,} records, {len(np.unique(truth)):,} entities", flush=True)
    resolver = EntityResolver(n_jobs=1).fit(table, id="id")
    print(f"  without labels {b_cubed(truth, resolver.resolve(table, id='id').labels).f1:.4f}", flush=True)
    with Team(1) as team:
        model, sources = resolver.knowledge_.unlabelled, None
        if model is not None and model.one_per_source and model.source is not None:
            sources = number_sources(table, model.source)
        knowledge = learn_pair_weights(table, resolver, seed=0, team=team)
        records = link_table(table, knowledge, sources=sources, team=team).records
        rounds, sweeps = default_budget(table.num_rows)
        rows = np.arange(table.num_rows)
        search = LinkSearch(rounds=rounds, sweeps=sweeps)
        labels = records.settle(rows, rows, Verdicts(), search=search, seed=0, team=team)
        print(f"  a store begins with {b_cubed(truth, labels).f1:.4f}", flush=True)
        if not options.no_labelled:
            kept = entities_with(entity_numbers(labelled, "entity"), records=options.records)
            fitted = EntityResolver(n_jobs=1).fit(labelled.filter(pa.array(kept)), "entity", id="id")
            found = fitted.resolve(table, id="id").labels
            print(f"  half of all entities {b_cubed(truth, found).f1:.4f}", flush=True)
        curves: dict[str, list[float]] = {}
        for strategy in [UNCERTAIN] if options.estimate else options.strategies.split("; "):
            begun = time.process_time()
            if strategy == DEDUPE.name:
                curves[strategy] = ask_by_dedupe(name, table, truth, seed)
                told(strategy, curves[strategy], "")
                continue
            engine = QuestionEngine(
                records,
                labels,
                strategy=strategy.removesuffix(PAIRS),
                whole=not strategy.endswith(PAIRS),
                teach=not options.no_teaching,
                seed=seed,
                team=team,
            )
            curves[strategy], seconds, whole = answer(engine, truth, options, seed)
            cost = f"{time.process_time() - begun:.0f} CPU s; an answer {np.median(seconds):.3f} s"
            told(strategy, curves[strategy], f"{whole} whole; {cost}")
    return curves


def ask_by_dedupe(name: str, table: pa.Table, truth: NDArray[Any], seed: int) -> list[float]:
    """Return B-cubed after labels that dedupe's active learner has asked for; as far as it came."""
    with tempfile.TemporaryDirectory() as folder:
        records, answers = Path(folder) / "records.csv", Path(folder) / "truth.csv"
        pyarrow.csv.write_csv(table, records)
        pyarrow.csv.write_csv(pa.table({"id": table.column("id"), "entity": truth}), answers)
        command = [str(DEDUPE.python()), str(SCRIPTS / "dedupe_run.py"), name, "ask"]
        command += [str(records), str(answers), str(seed), "--began", "0", "--limit", "600"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines or "failed" in lines[-1]:
        print(f"    dedupe: {lines[-1] if lines else done.stderr[-300:]}")
    return [line["f1"] for line in lines if "f1" in line]


def answer(
    engine: QuestionEngine, truth: NDArray[Any], options: argparse.Namespace, seed: int
) -> tuple[list[float], list[float], int]:
    """Answer questions; return B-cubed at each mark, seconds of each answer, and questions about entities."""
    random = np.random.default_rng([seed, 11])
    curve, seconds, wholes, drawn = [], [], 0, []
    choice = engine.next()
    for count in range(1, options.answers + 1):
        if choice is not None:
            wholes += choice.kind == WHOLE
            wrong = bool(random.random() < options.errors)
            decision = decide(engine, choice, truth, wrong=wrong, random=random)
            if choice.reason == RANDOM:
                said = decision["answer"] == SAME
                drawn.append((choice.left, choice.right, choice.together, choice.probability, said))
            begun = time.process_time()
            engine.decide(decision, choice)
            choice = engine.next()
            seconds.append(time.process_time() - begun)
            engine.adopt(engine.prepare())
            choice = engine.next() if choice is None else choice
        if count in MARKS:
            curve.append(float(b_cubed(truth, engine.labels).f1))
            if options.estimate:
                tell_estimate(engine, truth, drawn, count)
    return curve, seconds, wholes


def tell_estimate(
    engine: QuestionEngine, truth: NDArray[Any], drawn: list[tuple[Any, ...]], count: int
) -> None:
    """Print estimates of precision and recall beside what they are among the candidates."""
    columns = zip(*drawn, strict=True) if drawn else [()] * 5
    found = engine.quality(RandomAnswers.of(*columns))
    first, second = engine.records.graph.first, engine.records.graph.second
    same, inside = truth[first] == truth[second], engine.labels[first] == engine.labels[second]
    both = float((same & inside).sum())
    for name, true, said in (
        ("precision", both / inside.sum(), found.precision),
        ("recall", both / same.sum(), found.recall),
    ):
        COVERED.setdefault((count, name), []).append(said.low <= true <= said.high)
        covered = COVERED[count, name]
        print(
            f"    {count} answers, {len(drawn)} random: {name} {true:.4f}, estimate {said.estimate:.4f}"
            f" ({said.low:.4f} to {said.high:.4f}); {sum(covered)} of {len(covered)} so far",
            flush=True,
        )


def decide(
    engine: QuestionEngine, choice: Choice, truth: NDArray[Any], *, wrong: bool, random: np.random.Generator
) -> dict[str, Any]:
    """Return what a person says; one who is wrong about whole entities takes one record for another's."""
    if choice.kind != WHOLE:
        same = bool(truth[choice.left] == truth[choice.right]) ^ wrong
        context = [engine.context(choice.left, choice.right), engine.context(choice.right, choice.left)]
        parts = [[choice.left], [choice.right]]
        sides = [side.tolist() for side in context]
        return {"parts": parts, "context": sides, "answer": SAME if same else DIFFERENT}
    rows = np.array(choice.records)
    _, number, count = np.unique(truth[rows], return_inverse=True, return_counts=True)
    kept = number == count.argmax()
    if wrong:
        place = int(random.integers(len(rows)))
        kept[place] ^= count.max() > 1 or not kept[place]  # somebody stays
    if kept.all():
        return {"parts": [rows.tolist()], "context": [], "answer": SAME}
    parts = [rows[kept].tolist(), *([row] for row in rows[~kept].tolist())]
    return {"parts": parts, "context": [], "answer": ALL_BUT}


if __name__ == "__main__":
    main()
