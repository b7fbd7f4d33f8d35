"""Citations: a chain against the same chain with energies of whole sequences, learned on the development set.

    FACTORWISE_DATA=... python experiments/bethe_citations.py [--json] [--whole]

The data are those of Anzaroot and McCallum (umass_citation, official split): the chain is trained on the
training part, the weights of constraints on the development part, F1 of segments is measured on the test
part. Prints the figures of the paper (vilnis2015bethe, Table 1) beside ours, F1 by the number of inference
iterations (Figure 1), how soon projections converge (Figure 2), the penalised MAP of Eq. 18 and 19 by
subgradients of its dual (Soft-DD) with the same constraints, speed and learning time. With --whole, chains
are also trained on both parts, once the weights are learned.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from factorwise.apps.tagging import ChainCRF
from factorwise.apps.tagging.encoders import as_sentences
from factorwise.apps.tagging.global_constraints import ConstraintSet
from factorwise.apps.tagging.global_tagger import (
    GlobalTagger,
    learn_constraints,
    node_scores,
    transition_table,
)
from factorwise.apps.tagging.tagger import ChainTagger
from factorwise.inference.exact.chain import chain_k_best
from factorwise.inference.message_passing.projection import RDA, SequenceEnergy, project_sequences
from factorwise.io.data import find_data
from factorwise.kernels.threads import Team
from factorwise.metrics.sequence import SpanCounter
from factorwise.types import Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUT = Path(__file__).parent / "out"
PAPER = {"chain": 94.47, "energies": 95.47, "Soft-DD": 95.39}
LIMITS = (0, 1, 2, 3, 5, 7, 10, 15, 20, 40)
THREADS = 2
WORD = ["w", "lower", "prefix1", "prefix2", "prefix3", "prefix4", "suffix1", "suffix2", "suffix3", "suffix4"]
FLAGS = ["shape", "short_shape", "is_digit", "is_title", "is_upper"]
TEMPLATES = "\n".join(
    [
        "bias",
        "first",
        "last",
        "w[0]",
        *(f"{name}(w[0])" for name in WORD[1:] + FLAGS),
        *(f"{name}(w[{k}])" for k in (-3, -2, -1, 1, 2, 3) for name in ("lower", "short_shape")),
        "lower(w[-1])|lower(w[0])",
        "lower(w[0])|lower(w[1])",
        "lower(w[-2])|lower(w[-1])",
        "short_shape(w[-1])|short_shape(w[0])",
        "short_shape(w[0])|short_shape(w[1])",
        "short_shape(w[-1])|short_shape(w[0])|short_shape(w[1])",
        "shape(w[-1])|shape(w[0])|shape(w[1])",
    ]
)


class Part:
    """Citations of one part, encoded for a tagger."""

    def __init__(self, crf: ChainCRF, tokens: Sequence[Any], labels: Sequence[Sequence[str]]) -> None:
        self.rows, self.start = crf.encoder_.encode(as_sentences(tokens))
        known = list(crf.classes_)
        self.names = known + sorted({label for each in labels for label in each}.difference(known))
        number = {name: code for code, name in enumerate(self.names)}
        self.truth = np.array([number[label] for each in labels for label in each], dtype=np.int32)
        self.counter = SpanCounter(self.names)

    def f1(self, path: Ints) -> float:
        """Return the micro-averaged F1 of segments, in percent."""
        return 100.0 * self.counter.scores(self.truth, path.astype(np.int32), self.start).micro.f1


def read(part: str) -> tuple[list[list[str]], list[list[str]]]:
    lines = (find_data("umass_citation") / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [record["tokens"] for record in records], [record["labels"] for record in records]


def chain(tokens: list[list[str]], labels: list[list[str]]) -> ChainCRF:
    crf = ChainCRF(templates=TEMPLATES, c1=0.05, c2=0.05, max_iterations=150, n_jobs=THREADS)
    return crf.fit(tokens, labels)


def with_constraints(tagger: ChainTagger, constraints: ConstraintSet) -> GlobalTagger:
    return GlobalTagger(tagger.labels, tagger.features, tagger.structure, tagger.weights, constraints)


def by_iterations(tagger: GlobalTagger, part: Part, team: Team) -> tuple[dict[int, float], Ints]:
    """F1 when inference is cut off (Figure 1), and iterations of Bethe-RDA until they stop (Figure 2)."""
    nodes, edge = node_scores(tagger, part.rows, part.start, None), transition_table(tagger)
    energy = tagger.constraints.energy([str(label) for label in tagger.labels])
    scores = {}
    for limit in LIMITS:
        found = project_sequences(nodes, edge, energy, tolerance=1e-4, max_iterations=limit, team=team)
        scores[limit] = part.f1(found.best(team))
    settled = project_sequences(
        nodes, edge, energy, solver=RDA(), tolerance=1e-5, max_iterations=200, team=team
    )
    return scores, settled.iterations


def soft_dd(tagger: GlobalTagger, part: Part, rounds: int = 30) -> Ints:
    """Penalised MAP by subgradients of the dual: a best path, its measurements, a step of the prices."""
    nodes, edge = node_scores(tagger, part.rows, part.start, None), transition_table(tagger)
    energy: SequenceEnergy = tagger.constraints.energy([str(label) for label in tagger.labels])
    weights, target = energy.weights, energy.losses.target
    paths = []
    for scores in nodes:
        length, labels = scores.shape
        measurement = energy.measurement.of_length(length).widened(length * labels + (length - 1) * labels**2)
        shift, best, least = np.zeros(len(weights)), None, np.inf
        for step in range(rounds):
            moved = measurement.adjoint(shift)
            node = scores - moved[: scores.size].reshape(scores.shape)
            edges = edge - moved[scores.size :].reshape(-1, labels, labels)
            path = np.array(chain_k_best(node, edges if length > 1 else edge, 1)[0].values)
            measured = energy.measurement.of_paths(path, np.array([0, length]))[0]
            own = scores[np.arange(length), path].sum() + edge[path[:-1], path[1:]].sum()
            cost = float(weights @ np.maximum(target - measured, 0.0) - own)
            if cost < least:
                best, least = path, cost
            slope = measured - target  # the dual moves prices of hinges between minus the weight and zero
            after = np.clip(shift + 1.0 / (1.0 + step) * slope, -weights, 0.0)
            if np.abs(after - shift).max(initial=0.0) < 1e-9:
                break
            shift = after
        paths.append(best)
    return np.concatenate([path for path in paths if path is not None])


def measured_speed(tagger: GlobalTagger, part: Part, team: Team, times: int = 3) -> dict[str, float]:
    """Citations a second of inference and prediction, on so many threads, best of some runs."""
    nodes, edge = node_scores(tagger, part.rows, part.start, None), transition_table(tagger)
    energy = tagger.constraints.energy([str(label) for label in tagger.labels])
    wall, processor = np.inf, np.inf
    for _ in range(times):
        began, spent = time.perf_counter(), time.process_time()
        project_sequences(nodes, edge, energy, tolerance=1e-4, max_iterations=40, team=team).best(team)
        wall = min(wall, time.perf_counter() - began)
        processor = min(processor, time.process_time() - spent)
    count = len(nodes)
    return {"per second": count / wall, "per processor second": count / processor}


def experiment(whole: bool) -> dict[str, Any]:
    parts = {name: read(name) for name in ("train", "dev", "test")}
    crf = chain(*parts["train"])
    dev, test = Part(crf, *parts["dev"]), Part(crf, *parts["test"])
    with Team(THREADS) as team:
        began, spent = time.perf_counter(), time.process_time()
        candidates = ConstraintSet.generated([str(label) for label in crf.classes_])
        learned = learn_constraints(crf.tagger_, candidates, dev.rows, dev.start, dev.truth, team=team)
        seconds = time.perf_counter() - began, time.process_time() - spent
        tagger = with_constraints(crf.tagger_, learned.constraints)
        limits, settled = by_iterations(tagger, test, team)
        ours = {
            "chain": test.f1(crf.tagger_.decode(test.rows, test.start, team)),
            "energies": test.f1(tagger.decode(test.rows, test.start, team)),
            "Soft-DD": test.f1(soft_dd(tagger, test)),
        }
        on_dev = [dev.f1(each.decode(dev.rows, dev.start, team)) for each in (crf.tagger_, tagger)]
        document: dict[str, Any] = {
            "paper": PAPER,
            "ours": ours,
            "gain": ours["energies"] - ours["chain"],
            "development": {"chain": on_dev[0], "energies": on_dev[1]},
            "constraints": {
                "candidates": learned.candidates,
                "tried": learned.tried,
                "kept": learned.constraints.to_json(),
            },
            "learning": {"seconds": seconds[0], "processor seconds": seconds[1]},
            "speed": measured_speed(tagger, test, team),
            "by iterations": limits,
            "iterations": {
                "mean": float(settled.mean()),
                "within 40": float((settled <= 40).mean()),
                "all": settled.tolist(),
            },
        }
        if whole:
            both = chain(*(a + b for a, b in zip(parts["train"], parts["dev"], strict=True)))
            again = Part(both, *parts["test"])
            constrained = with_constraints(both.tagger_, learned.constraints)
            document["whole"] = {
                "chain": again.f1(both.tagger_.decode(again.rows, again.start, team)),
                "energies": again.f1(constrained.decode(again.rows, again.start, team)),
            }
    return document


def figure(document: dict[str, Any]) -> Figure:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = drawn.subplots(1, 2)
    limits: dict[int, float] = document["by iterations"]
    left.plot(list(limits), list(limits.values()), marker="o")
    left.axhline(document["ours"]["chain"], linestyle="--", color="gray")
    left.set(xlabel="inference iterations at most", ylabel="segment F1 (dashed: chain)")
    right.hist(document["iterations"]["all"], bins=np.arange(0, 101, 2))
    right.set(xlabel="iterations of Bethe-RDA to a gap of 1e-5", ylabel="citations")
    return drawn


def lines(document: dict[str, Any]) -> list[str]:
    ours, learning, speed = document["ours"], document["learning"], document["speed"]
    constraints, iterations = document["constraints"], document["iterations"]
    text = ["segment F1 on the test part      paper    ours"]
    text += [f"  {name:<28} {PAPER[name]:8.2f} {ours[name]:7.2f}" for name in PAPER]
    text += [
        f"gain {document['gain']:+.2f}; development part, learned on:"
        f" {document['development']['chain']:.2f} -> {document['development']['energies']:.2f}",
        f"constraints: {constraints['candidates']} generated, {constraints['tried']} tried,"
        f" {len(constraints['kept'])} kept",
        f"learning: {learning['seconds']:.1f} s ({learning['processor seconds']:.1f} processor s)",
        f"inference on {THREADS} threads, 40 iterations at most: {speed['per second']:.0f} citations/s;"
        f" {speed['per processor second']:.0f} a processor second",
        "F1 by iterations: "
        + ", ".join(f"{limit}: {score:.2f}" for limit, score in document["by iterations"].items()),
        f"Bethe-RDA to a relative gap of 1e-5: {100 * iterations['within 40']:.1f} % within 40, mean"
        f" {iterations['mean']:.1f} (paper, by another rule: 93.7 %, 9.8)",
    ]
    if "whole" in document:
        text.append(
            "chain trained on both parts:"
            f" {document['whole']['chain']:.2f} -> {document['whole']['energies']:.2f}"
        )
    text += [
        f"  {entry['weight']:.3f}  {entry['kind']}  {', '.join(entry['labels'])}"
        for entry in constraints["kept"][:15]
    ]
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--whole", action="store_true", help="also train chains on both parts")
    options = parser.parse_args()
    document = experiment(options.whole)
    OUT.mkdir(exist_ok=True)
    figure(document).savefig(OUT / "bethe_citations.png", dpi=150)
    print(json.dumps(document) if options.json else "\n".join(lines(document)))


if __name__ == "__main__":
    main()
