"""Named entities of WNUT-17 by a chain and a skip chain with the same features, both learned by SampleRank.

    .venv/bin/python experiments/skip_chain_names.py [--part dev] [--seed 0] [--passes 8] [--steps 1000000]

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

import factorwise as fw
from factorwise.io.data import find_data
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


def shape(word: str) -> str:
    """Write letters as X and x, digits as 0, without repeats."""
    coded = ["X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in word]
    return "".join(c for at, c in enumerate(coded) if at == 0 or coded[at - 1] != c)


def features(words: list[str], at: int) -> list[str]:
    """Name what is said of one token."""
    word = words[at]
    left, right = words[at - 1] if at else "<", words[at + 1] if at + 1 < len(words) else ">"
    lower = word.lower()
    return [
        "bias", f"w {lower}", f"s {shape(word)}", f"3 {lower[-3:]}", f"2 {lower[-2:]}", f"p {lower[:3]}",
        f"l {left.lower()}", f"r {right.lower()}", f"ls {shape(left)}", f"rs {shape(right)}",
    ]  # fmt: skip


def skip_pairs(words: list[str]) -> list[tuple[int, int]]:
    """Pair the occurrences of rare words that are always capitalised."""
    common = {word for word in words if word.islower()}
    where: dict[str, list[int]] = defaultdict(list)
    for at, word in enumerate(words):
        if len(word) > 2 and word[0].isupper() and word[1:].islower() and word.lower() not in common:
            where[word].append(at)
    return [pair for rows in where.values() if len(rows) <= RARE for pair in combinations(rows, 2)]


def make(
    sentences: Sentences, domain: fw.Domain, vocabulary: Any, skip: bool
) -> tuple[fw.Model, fw.Variables, Any]:
    """Return the model of one part, its variables and the vocabulary of its features."""
    words = [[word for word, _ in sentence] for sentence in sentences]
    rows = fw.Features.from_rows(
        (features(line, at) for line in words for at in range(len(line))), vocabulary=vocabulary
    )
    column = fw.Column.hidden("label", domain, len(rows))
    chains = np.append(0, np.cumsum([len(line) for line in words]))
    templates: list[Any] = [
        fw.templates.UnaryFeatures(column, rows),
        fw.templates.Transitions(column, chains=chains),
    ]
    if skip:
        templates.append(fw.templates.SkipEdges(column, skip_pairs([w for line in words for w in line])))
    return fw.Model(templates), fw.Variables([column]), rows.vocabulary


def run(
    train: Sentences, other: Sentences, skip: bool, passes: int, steps: int, seed: int
) -> tuple[float, float]:
    """Learn from one part, label another; return F1 and CPU seconds of learning."""
    outside = {"O", *(label for sentence in train for _, label in sentence)}
    domain = fw.Domain("label", sorted(outside, key=lambda label: (label != "O", label)))
    model, variables, vocabulary = make(train, domain, None, skip)
    truth = fw.Assignment.from_labels(variables, {"label": [label for line in train for _, label in line]})
    world = fw.learning.TrainingWorld(
        model=model,
        proposer=fw.mcmc.UniformRelabel(),
        start=fw.Assignment.initial(variables),
        preference=fw.learning.AccuracyPreference(truth),
    )
    begun = time.process_time()
    learned = fw.learning.SampleRank().fit(
        [world], passes=passes, steps=steps, restart=False, seed=seed, progress=False
    )
    seconds = time.process_time() - begun
    model, variables, _ = make(other, domain, vocabulary, skip)
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
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--passes", type=int, default=8)
    parser.add_argument("--steps", type=int, default=1_000_000)
    options = parser.parse_args()
    train, other = read("train"), read(options.part)
    for skip in (False, True):
        f1, seconds = run(train, other, skip, options.passes, options.steps, options.seed)
        print(
            f"{'skip chain' if skip else 'chain':12}F1 {f1:.4f}, learned in {seconds:.1f} CPU s", flush=True
        )


if __name__ == "__main__":
    main()
