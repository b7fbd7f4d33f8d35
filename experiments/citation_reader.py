"""The reader of references in the package: trained on AnyStyle's core set, scored on its gold set.

It learns each reference as it is and in small letters. References of the gold set that stand in the core
set, too, are left out. Prints the span F1 by field and in all, how far the confidence of fields is from the
share of right ones, and the references read a second.
``--write PATH`` saves the reader, which is how ``citations.fw`` of the package was made.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from factorwise.apps.tagging.citations.formats import to_csl
from factorwise.apps.tagging.citations.reader import Citation, CitationReader, divided_labels
from factorwise.datasets.local import find_data
from factorwise.metrics.calibration import reliability
from factorwise.metrics.sequence import score_spans, spans


def read_set(name: str) -> list[dict[str, Any]]:
    """Return the references of a set: ``tokens``, ``labels`` and, in the gold set, ``in_core``."""
    lines = (find_data("anystyle") / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def main() -> None:
    """Train, score once, and save if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="where to save the reader")
    options = parser.parse_args()
    core = read_set("core")
    began = time.process_time()
    pieces, labels = [r["tokens"] for r in core], [r["labels"] for r in core]
    pieces += [[token.lower() for token in tokens] for tokens in pieces]  # as some lists have them
    reader = CitationReader.fit(pieces, 2 * labels, n_jobs=1)
    print(f"trained on {len(core)} references in {time.process_time() - began:.1f} CPU s")
    round_weights(reader)
    if options.write is not None:
        reader.save(options.write)
    gold = [reference for reference in read_set("gold") if not reference.get("in_core")]
    texts = [" ".join(reference["tokens"]) for reference in gold]
    reader.read(texts[:10])
    began = time.process_time()
    citations = reader.read(texts)
    to_csl(citations)
    print(f"read {len(texts) / (time.process_time() - began):,.0f} references a CPU second, to CSL-JSON")
    score(gold, citations)


def round_weights(reader: CitationReader) -> None:
    """Keep three digits of each weight: the file is compressed to half the size, and reads the same."""
    tagger = reader.tagger.tagger_
    assert tagger is not None
    weights = tagger.weights.astype(np.float16).astype(np.float64)
    reader.tagger.tagger_ = replace(tagger, weights=weights)


def piece_begins(text: str, pieces: Sequence[str]) -> list[int]:
    """Return where each piece begins in the text, and the end of it."""
    begins, at = [], 0
    for piece in pieces:
        begins.append(text.index(piece, at))
        at = begins[-1] + len(piece)
    return [*begins, len(text)]


def score(gold: list[dict[str, Any]], citations: list[Citation]) -> None:
    """Print how many fields are right, and what their confidence says."""
    truth, predicted, confidence, right = [], [], [], []
    for reference, citation in zip(gold, citations, strict=True):
        pieces, true = divided_labels(reference["tokens"], reference["labels"])
        begins = piece_begins(citation.text, pieces)
        labels = ["O"] * len(pieces)
        correct = set(spans(true))
        for field in citation.fields:
            first, last = np.searchsorted(begins, [field.start, field.end]).tolist()
            labels[first:last] = [f"B-{field.name}", *[f"I-{field.name}"] * (last - first - 1)]
            confidence.append(field.confidence)
            right.append((field.name, first, last) in correct)
        truth.append(true)
        predicted.append(labels)
    scores = score_spans(truth, predicted)
    for name, value in sorted(scores.types.items()):
        print(f"  {name:18} F1 {value.f1:.4f}  true {value.support}")
    micro = scores.micro
    print(f"fields: precision {micro.precision:.4f}, recall {micro.recall:.4f}, F1 {micro.f1:.4f}")
    print(f"calibration error {reliability(confidence, right).error:.4f}")


if __name__ == "__main__":
    main()
