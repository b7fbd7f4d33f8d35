"""What answers to questions are worth: B-cubed after so many answers, by how the questions are chosen.

    python experiments/review_questions.py
    python experiments/review_questions.py cora1295 --seeds 2 --half train

A simulated person answers by the truth, or by the truth with some errors (--errors). Questions start from
weights without labels. For comparison: what is found without labels, and with half of all entities as labels.
Settings were chosen on the training halves (--half train); the test halves are for the figures in the docs.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from resolution_tasks import SETS, load

from factorwise import EntityResolver
from factorwise.apps.resolution.curation.engine import EXPECTED, RANDOM, UNCERTAIN, QuestionEngine
from factorwise.apps.resolution.curation.indexing import link_table
from factorwise.apps.resolution.curation.verdicts import Verdicts
from factorwise.apps.resolution.labelled import LabelledPairs
from factorwise.apps.resolution.resolving import default_budget
from factorwise.apps.resolution.training import entity_numbers
from factorwise.inference.mcmc.shards.search import LinkSearch
from factorwise.kernels.compile.threads import Team
from factorwise.metrics.clustering import b_cubed
from factorwise.store.store import DIFFERENT, SAME

DEFAULT = ("cora1295", "historical_50k", "chicago_early_childhood", "abt_buy", "aminer110")
MARKS = (25, 50, 100, 200)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(DEFAULT), help=f"which: {', '.join(SETS)}")
    parser.add_argument("--half", choices=("train", "test"), default="test", help="which half is resolved")
    parser.add_argument("--records", type=int, default=10_000, help="at most so many, about")
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds")
    parser.add_argument("--errors", type=float, default=0.0, help="share of wrong answers")
    parser.add_argument("--strategies", default=f"{EXPECTED},{UNCERTAIN},{RANDOM}")
    parser.add_argument("--no-teaching", action="store_true", help="answers hold, but teach no weights")
    parser.add_argument("--no-labelled", action="store_true", help="leave out the run with half the entities")
    options = parser.parse_args()
    for name in options.sets:
        measure(name, options)


def measure(name: str, options: argparse.Namespace) -> None:
    """Print the curves of one set."""
    task = load(name, options.records)
    if options.half == "test":
        table, truth = task.test, task.truth
    else:
        table, truth = task.train.drop_columns(["entity"]), entity_numbers(task.train, "entity")
    print(f"{name}: {table.num_rows:,} records, {len(np.unique(truth)):,} entities", flush=True)
    resolver = EntityResolver(n_jobs=1).fit(table, pairs=LabelledPairs.none(), id="id")
    with Team(1) as team:
        records = link_table(table, resolver.knowledge_, team=team).records
        rounds, sweeps = default_budget(table.num_rows)
        rows = np.arange(table.num_rows)
        search = LinkSearch(rounds=rounds, sweeps=sweeps)
        labels = records.settle(rows, rows, Verdicts(), search=search, seed=0, team=team)
        print(f"  without labels {b_cubed(truth, labels).f1:.4f}", flush=True)
        if not options.no_labelled and options.half == "test":
            fitted = EntityResolver(n_jobs=1).fit(task.train, "entity", id="id")
            found = fitted.resolve(table, id="id").labels
            print(f"  half of all entities {b_cubed(truth, found).f1:.4f}", flush=True)
        for strategy in options.strategies.split(","):
            begun, curves, slow = time.process_time(), [], []
            for seed in range(options.seeds):
                engine = QuestionEngine(
                    records,
                    labels,
                    strategy=strategy,
                    teach=not options.no_teaching,
                    seed=seed,
                    team=team,
                )
                curve, seconds = answer(engine, truth, options.errors, seed)
                curves.append(curve)
                slow += seconds
            mean = np.mean(curves, axis=0)
            low, high = np.min(curves, axis=0)[-1], np.max(curves, axis=0)[-1]
            print(
                f"  {strategy:>22}: "
                + "  ".join(f"{mark} {value:.4f}" for mark, value in zip(MARKS, mean, strict=True))
                + f"  (last {low:.4f}-{high:.4f}; {time.process_time() - begun:.0f} CPU s;"
                + f" an answer {np.median(slow):.3f} s, 95 % {np.quantile(slow, 0.95):.3f} s)",
                flush=True,
            )


def answer(
    engine: QuestionEngine, truth: np.ndarray, errors: float, seed: int
) -> tuple[list[float], list[float]]:
    """Answer questions by the truth; return B-cubed at each mark, and the seconds that each answer took."""
    random = np.random.default_rng([seed, 11])
    curve, seconds = [], []
    for count in range(1, MARKS[-1] + 1):
        begun = time.process_time()
        choice = engine.next()
        if choice is not None:
            same = bool(truth[choice.left] == truth[choice.right]) ^ bool(random.random() < errors)
            engine.answer(choice, SAME if same else DIFFERENT)
        seconds.append(time.process_time() - begun)
        if count in MARKS:
            curve.append(float(b_cubed(truth, engine.labels).f1))
    return curve, seconds


if __name__ == "__main__":
    main()
