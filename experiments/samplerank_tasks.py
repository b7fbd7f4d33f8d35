"""The tasks that the SampleRank experiments share: worlds to learn from, and how weights do on others.

Coreference with gold mentions stands in for ACE 2004: LitBank by document, the entities of ECB+ by topic,
MEANTIME by document. Alignment stands in for the course and company catalogs: mouse and human anatomy, 20 %
of the reference to learn from, 10 % to choose settings by, the rest to test on; two German web directories,
leisure to learn from and groceries to test on. All are read from the data directory (FACTORWISE_DATA).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorwise.apps.alignment.estimator import entities_of, to_learn_from
from factorwise.apps.alignment.matching import (
    CROWDING,
    ConceptPairs,
    best_matching,
    starting_weights,
)
from factorwise.apps.alignment.matching import training_world as alignment_world
from factorwise.apps.coreference.documents import discourses, read_documents
from factorwise.apps.coreference.resolution import search
from factorwise.apps.coreference.resolution import training_world as coreference_world
from factorwise.datasets.local import find_data
from factorwise.io.ontologies.alignments import read_alignment
from factorwise.io.ontologies.ontology import read_ontology
from factorwise.learning.samplerank.walkers import TrainingWorld
from factorwise.metrics.alignment import score_matches
from factorwise.metrics.coreference import score_documents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUT = Path(__file__).parent / "out"
SEEDS = (0, 1, 2)
PASSES, STEPS = 5, 4_000  # over all worlds, and of each walk where there are several worlds
STEPS_PER_ITEM = 50  # where there is one
SEARCH_STEPS = 500  # per mention


@dataclass(frozen=True)
class Task:
    """What is learned from, and the scores of weights on the part to choose by and on the part to test on.

    start
        Weights to begin with.
    fixed
        Blocks of weights that are not learned.
    judge
        From weights and the name of a part to scores by name.
    """

    name: str
    worlds: list[TrainingWorld]
    start: NDArray[np.float64]
    fixed: tuple[str, ...]
    judge: Callable[[NDArray[np.float64], str], dict[str, float]]

    @property
    def steps(self) -> int:
        """Steps of one walk."""
        return STEPS if len(self.worlds) > 1 else STEPS_PER_ITEM * self.worlds[0].start.n_items


def coreference(folder: str, threads: int) -> Task:
    """Load one coreference set."""
    options: dict[str, object] = {}
    if folder == "coref_ecbplus":
        options = {"scope": "topic", "without_types": ("ACT",)}
    parts = {
        part: [
            coreference_world(discourse)
            for discourse in discourses(read_documents(find_data(f"{folder}/{part}.jsonl")), **options)
        ]
        for part in ("train", "dev", "test")
    }

    def resolve(weights: NDArray[np.float64], world: TrainingWorld) -> NDArray[np.int64]:
        world.model.weights = weights
        n = world.start.n_items
        return search(world.model, n, steps=SEARCH_STEPS * n, seed=0)

    def judge(weights: NDArray[np.float64], part: str) -> dict[str, float]:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(partial(resolve, weights), parts[part]))
        scores = score_documents([world.truth.dense_labels() for world in parts[part]], found)
        return {"B-cubed": scores.b_cubed.f1, "pairwise": scores.pairwise.f1}

    worlds = [world for world in parts["train"] if world.start.n_items > 1]
    size = worlds[0].model.blocks.size
    return Task(folder.removeprefix("coref_"), worlds, np.zeros(size), (), judge)


def anatomy() -> Task:
    """Load mouse and human anatomy; concepts of the training part are left out of what is judged."""
    left, right = (read_ontology(find_data(f"onto_anatomy/{side}.jsonl")) for side in ("mouse", "human"))
    reference = sorted(
        (match.source, match.target) for match in read_alignment(find_data("onto_anatomy/reference.tsv"))
    )
    random.Random(0).shuffle(reference)
    fifth, third = len(reference) // 5, len(reference) * 3 // 10
    train, others = reference[:fifth], {"dev": reference[fifth:third], "test": reference[third:]}
    everything = ConceptPairs.of(left, right)
    candidates, entity = to_learn_from(everything, entities_of(left, right, train), complete=False)
    ours, theirs = list(left.by_id), list(right.by_id)

    def judge(weights: NDArray[np.float64], part: str) -> dict[str, float]:
        seen = {concept for pair in train for concept in pair}
        hidden = others["test" if part == "dev" else "dev"]
        # concepts of the other part are left out as well, so that choosing never looks at the test
        seen |= {concept for pair in hidden for concept in pair}
        scores = everything.features @ weights[: len(everything.names)]
        found = [
            (ours[a], theirs[b - everything.n_left])
            for a, b in everything.edges[best_matching(everything, scores)].tolist()
        ]
        wanted = [pair for pair in others[part] if not seen & set(pair)]
        return {"match": score_matches(wanted, [pair for pair in found if not seen & set(pair)]).f1}

    return _alignment("anatomy", candidates, entity, judge)


def web_directories() -> Task:
    """Load leisure to learn from and groceries to test on; leisure itself is all there is to choose by."""
    folder = "onto_webdirs"

    def sides(left: str, right: str) -> tuple[object, object]:
        return tuple(read_ontology(find_data(f"{folder}/{side}.jsonl")) for side in (left, right))

    def matches(name: str) -> list[tuple[str, str]]:
        return [(one.source, one.target) for one in read_alignment(find_data(f"{folder}/{name}.tsv"))]

    dmoz, google = sides("dmoz.Freizeit.v2", "Google.Freizeit.v2")
    leisure = matches("dmoz_Freizeit-Google_Freizeit")
    shops, web = sides("Google.Lebensmittel.v2", "web.Lebensmittel.v2")
    pairs = {
        "dev": (dmoz, google, ConceptPairs.of(dmoz, google), leisure),
        "test": (shops, web, ConceptPairs.of(shops, web), matches("Google_Lebensmittel-web_Lebensmittel")),
    }
    candidates, entity = to_learn_from(pairs["dev"][2], entities_of(dmoz, google, leisure), complete=True)

    def judge(weights: NDArray[np.float64], part: str) -> dict[str, float]:
        left, right, everything, wanted = pairs[part]
        ours, theirs = list(left.by_id), list(right.by_id)
        scores = everything.features @ weights[: len(everything.names)]
        found = everything.edges[best_matching(everything, scores)].tolist()
        return {
            "match": score_matches(wanted, [(ours[a], theirs[b - everything.n_left]) for a, b in found]).f1
        }

    return _alignment("webdirs", candidates, entity, judge)


def _alignment(
    name: str,
    candidates: ConceptPairs,
    entity: NDArray[np.int64],
    judge: Callable[[NDArray[np.float64], str], dict[str, float]],
) -> Task:
    world = alignment_world(candidates, entity)
    start = world.model.blocks.flat(starting_weights(np.zeros(len(candidates.names)), one_to_one=True))
    return Task(name, [world], start, (CROWDING,), judge)


TASKS: dict[str, Callable[[int], Task]] = {
    "litbank": partial(coreference, "coref_litbank"),
    "ecbplus": partial(coreference, "coref_ecbplus"),
    "meantime": partial(coreference, "coref_meantime"),
    "anatomy": lambda threads: anatomy(),
    "webdirs": lambda threads: web_directories(),
}


def run_tasks(
    script: str,
    description: str | None,
    *,
    tune: Callable[[Task], None],
    compare: Callable[[Task, range], Any],
    draw: Callable[[dict[str, Any]], Figure],
) -> None:
    """Do what the command line asks for: try settings, or compare and draw.

    script
        Its file, which the figure is named after.
    tune
        Prints what each setting gives on dev.
    compare
        Prints a table over the seeds and returns what ``draw`` needs.
    draw
        Makes a figure of the results by task.
    """
    options = arguments(description)
    results = {}
    for name in options.tasks:
        task = TASKS[name](options.threads)
        if options.tune:
            tune(task)
        else:
            results[name] = compare(task, range(options.seeds))
    if results:
        save(draw(results), Path(script).stem)


def save(figure: Figure, name: str) -> None:
    """Write a figure to the folder of results."""
    figure.tight_layout()
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / f"{name}.png", dpi=150)
    print(f"drawn: {OUT.name}/{name}.png")


def arguments(description: str | None) -> argparse.Namespace:
    """Read the command line that the experiments share."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("tasks", nargs="*", help=f"which: {', '.join(TASKS)}; all by default")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many seeds")
    parser.add_argument("--threads", type=int, default=2, help="for the search; results do not depend on it")
    parser.add_argument("--tune", action="store_true", help="try the settings listed in the file, on dev")
    options = parser.parse_args()
    unknown = sorted(set(options.tasks) - set(TASKS))
    if unknown:
        parser.error(f"no task is called {unknown[0]!r}: there are {', '.join(TASKS)}.")
    options.tasks = options.tasks or list(TASKS)
    return options


def spread(values: Sequence[float]) -> str:
    """Mean and range over the seeds, in percent."""
    mean = 100 * float(np.mean(values))
    return f"{mean:.1f} ({100 * min(values):.1f}-{100 * max(values):.1f})"
