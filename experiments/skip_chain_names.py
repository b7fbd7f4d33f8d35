"""Named entities of WNUT-17 by a chain and a skip chain with the same features, both learned by SampleRank.

    .venv/bin/python experiments/skip_chain_names.py [--part dev] [--seeds 5] [--preference accuracy]

A skip edge links two occurrences of a word that is always capitalised, if it is rare in its part of the
corpus: what is clear of one occurrence helps with the other. Learned from the training part; the span F1 of
``--part`` is reported.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import factorwise as fw
from factorwise.apps.tagging.features.extraction import TemplateExtractor
from factorwise.apps.tagging.features.templates import default_templates
from factorwise.datasets.local import find_data
from factorwise.metrics.sequence import score_spans

RARE = 10  # occurrences of a word up to which its occurrences are linked
SWEEPS = 60

Sentences = list[list[tuple[str, str]]]


def read(part: str) -> Sentences:
    """Read words and labels, sentence by sentence."""
    text = (find_data("seq_wnut17") / f"{part}.conll").read_text(encoding="utf-8")
    blocks = (block.splitlines() for block in text.split("\n\n") if block.strip())
    return [
        [(line.split("\t")[0], line.split("\t")[-1]) for line in lines if line.strip()] for lines in blocks
    ]


def skip_pairs(words: list[str]) -> list[tuple[int, int]]:
    """Pair the occurrences of rare words that are always capitalised."""
    common = {word for word in words if word.islower()}
    where: dict[str, list[int]] = defaultdict(list)
    for at, word in enumerate(words):
        if len(word) > 2 and word[0].isupper() and word[1:].islower() and word.lower() not in common:
            where[word].append(at)
    return [pair for rows in where.values() if len(rows) <= RARE for pair in combinations(rows, 2)]


def make(
    sentences: Sentences, domain: fw.Domain, extractor: TemplateExtractor, skip: bool
) -> tuple[fw.Model, fw.Variables, NDArray[np.int64]]:
    """Return the model of one part, its variables and where its sentences start."""
    words = [word for sentence in sentences for word, _ in sentence]
    start = np.append(0, np.cumsum([len(sentence) for sentence in sentences]))
    rows = (extractor.encode if extractor.width else extractor.fit_encode)([words], start).rows
    features = fw.Features(
        fw.Domain("attribute", extractor.names()), rows.indptr, rows.indices, np.ones(len(rows.indices))
    )
    column = fw.Column.hidden("label", domain, len(words))
    templates: list[Any] = [
        fw.templates.UnaryFeatures(column, features),
        fw.templates.Transitions(column, chains=start),
    ]
    if skip:
        templates.append(fw.templates.SkipEdges(column, skip_pairs(words)))
    return fw.Model(templates), fw.Variables([column]), start


def run(
    train: Sentences, other: Sentences, skip: bool, options: argparse.Namespace, seed: int
) -> tuple[float, float]:
    """Learn from one part, label another; return F1 and CPU seconds of learning."""
    outside = {"O", *(label for sentence in train for _, label in sentence)}
    domain = fw.Domain("label", sorted(outside, key=lambda label: (label != "O", label)))
    extractor = TemplateExtractor(default_templates(1), min_frequency=2)
    model, variables, start = make(train, domain, extractor, skip)
    truth = fw.Assignment.from_labels(variables, {"label": [label for line in train for _, label in line]})
    by_spans = options.preference == "spans"
    world = fw.learning.TrainingWorld(
        model=model,
        proposer=fw.mcmc.UniformRelabel(),
        start=fw.Assignment.initial(variables),
        truth=truth,
        preference=fw.learning.SpanPreference(truth, start)
        if by_spans
        else fw.learning.AccuracyPreference(truth),
    )
    begun = time.process_time()
    learned = fw.learning.SampleRank().fit(
        [world],
        passes=options.passes,
        steps=options.steps,
        truth_starts=options.truth_starts,
        restart=options.truth_starts > 0,
        seed=seed,
        progress=False,
    )
    seconds = time.process_time() - begun
    model, variables, _ = make(other, domain, extractor, skip)
    model.weights = learned.weights
    found = fw.anneal(
        fw.mcmc.Gibbs(model, scan="systematic"),
        fw.Assignment.initial(variables),
        steps=SWEEPS,
        seed=seed,
        progress=False,
    ).best.labels("label")
    lengths = np.cumsum([len(line) for line in other])[:-1]
    predicted = [line.tolist() for line in np.split(found, lengths)]
    true = [[label for _, label in line] for line in other]
    return score_spans(true, predicted).micro.f1, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--part", default="dev", choices=["dev", "test"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--passes", type=int, default=16)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--preference", default="accuracy", choices=["spans", "accuracy"])
    parser.add_argument("--truth-starts", type=float, default=0.0)
    options = parser.parse_args()
    train, other = read("train"), read(options.part)
    rows = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        pair = [run(train, other, skip, options, seed) for skip in (False, True)]
        rows.append([f1 for f1, _ in pair])
        print(
            f"seed {seed}: chain {pair[0][0]:.4f} ({pair[0][1]:.1f} CPU s), skip chain {pair[1][0]:.4f}"
            f" ({pair[1][1]:.1f} CPU s)",
            flush=True,
        )
    lead = np.diff(rows, axis=1)[:, 0]
    print(
        f"means {np.mean(rows, axis=0).round(4).tolist()}, skip chain better by {lead.mean():.4f}"
        f" (spread {lead.std():.4f}), {(lead > 0).sum()} of {len(lead)}"
    )


if __name__ == "__main__":
    main()
