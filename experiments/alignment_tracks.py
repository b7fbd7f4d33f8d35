"""Ontology alignment without a reference, and with a fifth of one, on the open tracks.

    .venv/bin/python experiments/alignment_tracks.py            # judge anatomy and the web directories
    .venv/bin/python experiments/alignment_tracks.py --labels 10 50 303 --seeds 3    # with few known matches
    .venv/bin/python experiments/alignment_tracks.py --write    # learn the weights that come with the package

Weights that a track is judged by are learned on the other tracks. Without labels, all matches are
judged; with a fifth of anatomy's reference, the matches of the test part of `samplerank_tasks.anatomy`; of
the web directories one domain is learned from and the other judged.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import NamedTuple

import numpy as np

import factorwise.apps.alignment
from factorwise.apps.alignment.estimator import OntologyAligner
from factorwise.apps.alignment.general import learn_general_weights
from factorwise.apps.alignment.matching import ConceptPairs
from factorwise.datasets.local import find_data
from factorwise.io.ontologies.alignments import read_alignment
from factorwise.io.ontologies.ontology import Ontology, read_ontology
from factorwise.metrics.alignment import score_matches

FILES = {
    "anatomy": ("onto_anatomy", "mouse.jsonl", "human.jsonl", "reference.tsv"),
    "leisure": (
        "onto_webdirs",
        "dmoz.Freizeit.v2.jsonl",
        "Google.Freizeit.v2.jsonl",
        "dmoz_Freizeit-Google_Freizeit.tsv",
    ),
    "groceries": (
        "onto_webdirs",
        "Google.Lebensmittel.v2.jsonl",
        "web.Lebensmittel.v2.jsonl",
        "Google_Lebensmittel-web_Lebensmittel.tsv",
    ),
}


class Track(NamedTuple):
    """Two ontologies and their matches."""

    left: Ontology
    right: Ontology
    reference: list[tuple[str, str]]


def read_track(name: str) -> Track:
    """Read a track from the data directory."""
    folder, *names = FILES[name]
    left, right, reference = (find_data(f"{folder}/{file}") for file in names)
    rows = [(row.source, row.target) for row in read_alignment(reference)]
    return Track(read_ontology(left), read_ontology(right), rows)


def weights_from(tracks: list[Track]) -> dict[str, float]:
    """Learn general weights from the matches of tracks."""
    parts = []
    for track in tracks:
        candidates = ConceptPairs.of(track.left, track.right)
        ids = [*track.left.by_id, *track.right.by_id]
        known = set(track.reference)
        true = np.array([(ids[a], ids[b]) in known for a, b in candidates.edges.tolist()])
        parts.append((candidates, true))
    return learn_general_weights(parts)


def judge(aligner: OntologyAligner, track: Track, left_out: set[str], wanted: list[tuple[str, str]]) -> str:
    """Score the matches whose concepts are not left out."""
    pairs = [(match.left, match.right) for match in aligner.predict(track.left, track.right)]
    score = score_matches(
        [pair for pair in wanted if not left_out & set(pair)],
        [pair for pair in pairs if not left_out & set(pair)],
    )
    return f"F1 {score.f1:.4f}, precision {score.precision:.4f}, recall {score.recall:.4f}"


def with_a_fifth(track: Track, general: dict[str, float], seed: int) -> str:
    """Learn from a fifth of the reference; judge all but that and the tenth that settings are chosen by."""
    reference = sorted(track.reference)
    random.Random(0).shuffle(reference)
    fifth, third = len(reference) // 5, len(reference) * 3 // 10
    aligner = OntologyAligner(complete=False, general=general, random_state=seed)
    aligner.fit(track.left, track.right, reference[:fifth])
    return judge(aligner, track, {one for pair in reference[:third] for one in pair}, reference[third:])


def with_labels(track: Track, general: dict[str, float], count: int, seed: int) -> str:
    """Learn from some known matches, drawn at random; judge the others, without labels and with them."""
    reference = sorted(track.reference)
    random.Random(seed).shuffle(reference)
    left_out = {one for pair in reference[:count] for one in pair}
    without = OntologyAligner(general=general).fit_unlabelled(track.left, track.right)
    learned = OntologyAligner(complete=False, general=general)
    learned.fit(track.left, track.right, reference[:count])
    judged = (judge(aligner, track, left_out, reference[count:]) for aligner in (without, learned))
    return "\n  without: {}\n  with:    {}".format(*judged)


def main() -> None:
    """Judge the tracks, or write the weights that come with the package."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--labels", type=int, nargs="*", default=[])
    options = parser.parse_args()
    tracks = {name: read_track(name) for name in FILES}
    if options.write:
        path = Path(factorwise.apps.alignment.__file__).with_name("general.json")
        path.write_text(json.dumps(weights_from(list(tracks.values())), indent=1) + "\n", encoding="utf-8")
        return
    directories = [tracks["leisure"], tracks["groceries"]]
    from_directories = weights_from(directories)
    anatomy = tracks["anatomy"]
    for count in options.labels:
        for seed in range(1, options.seeds + 1):
            result = with_labels(anatomy, from_directories, count, seed)
            print(f"anatomy, {count} labels, draw {seed}:{result}", flush=True)
    if options.labels:
        return
    aligner = OntologyAligner(general=from_directories).fit_unlabelled(anatomy.left, anatomy.right)
    print("anatomy, no labels:", judge(aligner, anatomy, set(), anatomy.reference), flush=True)
    for seed in range(options.seeds):
        print(f"anatomy, a fifth, seed {seed}:", with_a_fifth(anatomy, from_directories, seed), flush=True)
    for name, other in (("groceries", "leisure"), ("leisure", "groceries")):
        track = tracks[name]
        general = weights_from([anatomy, tracks[other]])
        aligner = OntologyAligner(general=general).fit_unlabelled(track.left, track.right)
        print(f"{name}, no labels:", judge(aligner, track, set(), track.reference), flush=True)
        aligner = OntologyAligner(general=weights_from([anatomy])).fit(*tracks[other])
        print(f"{name}, learned on {other}:", judge(aligner, track, set(), track.reference), flush=True)


if __name__ == "__main__":
    main()
