"""Run dedupe on the halves of one set, in dedupe's own environment; a line of JSON tells what it cost.

    dedupe_run.py SET fit TRAIN MODEL             (from labelled pairs of the training half)
    dedupe_run.py SET choose TRAIN MODEL          (the threshold that is best on labelled records)
    dedupe_run.py SET apply TEST MODEL THRESHOLD OUT TRUTH
    dedupe_run.py SET ask RECORDS TRUTH SEED      (its active learner; TRUTH answers)

``apply`` tells its cost as soon as the clusters are written, and goes on to the threshold that would have
been best, on the same scored pairs. Each phase has a limit of CPU time, one of memory, and one of the size
of its temporary files, because some sets would fill a disk.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dedupe
import numpy as np
from dedupe import variables as kinds
from halves import read_records
from measuring import THRESHOLDS, b_cubed_f1, best_threshold, cost_since, read_entities, write_entities

SEED = 0
LABELLED_PAIRS = 1_000
LARGEST_FILE = 10 * 2**30
LARGEST_MEMORY = 8 * 2**30
SWEEP_SECONDS = 120.0
MARKS = (25, 50, 100, 200)  # answers after which dedupe is trained

#: For each set its fields and their kinds in dedupe; labelled pairs that differ are drawn by the first.
FIELDS: dict[str, dict[str, str]] = {
    "restaurant": {"name": "String", "address": "String", "city": "ShortString", "cuisine": "ShortString"},
    "cora1295": {
        "title": "String",
        "author": "String",
        "venue": "String",
        "year": "ShortString",
        "pages": "ShortString",
        "volume": "ShortString",
        "publisher": "String",
    },
    "febrl3": {
        "surname": "ShortString",
        "given_name": "ShortString",
        "date_of_birth": "ShortString",
        "soc_sec_id": "ShortString",
        "street_number": "Exact",
        "address_1": "String",
        "address_2": "String",
        "suburb": "String",
        "postcode": "ShortString",
        "state": "Exact",
    },
    "abt_buy": {"name": "String", "description": "Text", "price": "Price", "source": "Exact"},
    "dblp_acm": {"title": "String", "authors": "String", "year": "Exact", "source": "Exact"},
    "chicago_early_childhood": {
        "site_name": "String",
        "address": "String",
        "zip": "Exact",
        "phone": "String",
    },
    "aminer110": {
        "block_name": "Exact",
        "name": "String",
        "coauthors": "Set",
        "organization": "String",
        "venue": "String",
        "title": "Text",
        "year": "ShortString",
    },
    "patentsview_inventors": {
        "last": "ShortString",
        "first": "ShortString",
        "city": "ShortString",
        "state": "Exact",
        "country": "Exact",
        "assignee": "String",
        "attorney": "String",
        "coinventors": "Set",
        "cpc": "Set",
        "title": "Text",
    },
    "inspire_wang": {
        "name": "String",
        "affiliation": "String",
        "coauthors": "Set",
        "collaborations": "Set",
        "journal": "ShortString",
        "year": "ShortString",
        "keywords": "Set",
        "topics": "Set",
    },
    "historical_50k": {
        "full_name": "String",
        "first_name": "ShortString",
        "surname": "ShortString",
        "dob": "ShortString",
        "birth_place": "String",
        "postcode_fake": "ShortString",
        "occupation": "Exact",
        "gender": "Exact",
    },
}

Records = dict[int, dict[str, Any]]


def value_of(kind: str, text: str) -> Any:
    """Return a value as dedupe takes it; None where it is missing."""
    cleaned = re.sub(r"\s+", " ", text).strip().lower()
    if kind == "Set":
        return tuple(sorted({part.strip() for part in cleaned.split("|") if part.strip()})) or None
    if kind == "Price":
        digits = re.sub(r"[^0-9.]", "", cleaned)
        return float(digits) if digits and float(digits) > 0 else None
    return cleaned or None


def read(name: str, path: Path) -> Records:
    fields = FIELDS[name]
    return {
        int(record["id"]): {field: value_of(kind, record[field]) for field, kind in fields.items()}
        for record in read_records(path)
    }


def definition(name: str, records: Records) -> list[Any]:
    """Return dedupe's variables; texts and sets are weighted by how rare their words are in ``records``."""
    found = []
    for field, kind in FIELDS[name].items():
        values = [record[field] for record in records.values()]
        known = [value for value in values if value is not None]
        options = {"corpus": known} if kind in ("Text", "Set") else {}
        variable = getattr(kinds, kind)
        found.append(variable(field, has_missing=len(known) < len(values), **options))
    return found


def labelled_pairs(records: Records, truth: dict[int, str], key: str, rng: random.Random) -> dict[str, Any]:
    """Draw pairs with their answer: half match, a quarter differ, a quarter differ but share a word."""
    members, sharing = defaultdict(list), defaultdict(list)
    for number, record in records.items():
        members[truth[number]].append(number)
        for word in words(record[key]):
            sharing[word].append(number)
    repeated = [number for number in records if len(members[truth[number]]) > 1]
    everyone = list(records)
    matches: set[tuple[int, int]] = set()
    distinct: set[tuple[int, int]] = set()
    wanted = LABELLED_PAIRS // 2
    for _ in range(20 * wanted):
        one = rng.choice(repeated)
        other = rng.choice(members[truth[one]])
        if one != other and len(matches) < wanted:
            matches.add((min(one, other), max(one, other)))
    for turn in range(20 * wanted):
        one = rng.choice(everyone)
        told = words(records[one][key])
        other = rng.choice(sharing[rng.choice(told)] if told and turn % 2 else everyone)
        if truth[one] != truth[other] and len(distinct) < wanted:
            distinct.add((min(one, other), max(one, other)))
    return {
        "match": [(records[a], records[b]) for a, b in sorted(matches)],
        "distinct": [(records[a], records[b]) for a, b in sorted(distinct)],
    }


def words(value: str | None) -> list[str]:
    return re.findall(r"\w{3,}", value or "")


def fit(name: str, train: Path, model: Path) -> None:
    records = read(name, train)
    truth = {int(number): entity for number, entity in read_entities(train).items()}
    random.seed(SEED)
    learner = dedupe.Dedupe(definition(name, records), num_cores=1)
    pairs = labelled_pairs(records, truth, next(iter(FIELDS[name])), random.Random(SEED))
    learner.prepare_training(records)
    learner.mark_pairs(pairs)
    learner.train()
    with model.open("wb") as stream:
        learner.write_settings(stream)


def ask(name: str, path: Path, answers: Path, seed: int) -> None:
    """Let dedupe choose which pairs are labelled; tell B-cubed after so many, at its usual threshold."""
    records, truth = read(name, path), {int(k): entity for k, entity in read_entities(answers).items()}
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - dedupe draws from it
    learner = dedupe.Dedupe(definition(name, records), num_cores=1)
    learner.prepare_training(records)
    number = {id(record): key for key, record in records.items()}
    for count in range(1, MARKS[-1] + 1):
        (pair,) = learner.uncertain_pairs()
        one, other = (number.get(id(record)) for record in pair)
        if one is None or other is None:  # a copy: found by what it says
            one, other = (next(k for k, record in records.items() if record == side) for side in pair)
        same = truth[one] == truth[other]
        learner.mark_pairs({"match": [pair], "distinct": []} if same else {"match": [], "distinct": [pair]})
        if count in MARKS:
            learner.train()
            found = {str(key): f"alone {key}" for key in records}
            for members, _ in learner.partition(records, 0.5):
                found |= dict.fromkeys(map(str, members), str(members[0]))
            told = {str(key): entity for key, entity in truth.items()}
            print(json.dumps({"answers": count, "f1": b_cubed_f1(told, found)}), flush=True)


class Scored:
    """The records of one file and the scores of all their blocked pairs."""

    def __init__(self, name: str, path: Path, model: Path) -> None:
        self.records = read(name, path)
        with model.open("rb") as stream:
            self.matcher = dedupe.StaticDedupe(stream, num_cores=1)
        self.scores = self.matcher.score(self.matcher.pairs(self.records))

    def entities(self, threshold: float) -> dict[str, str]:
        """Return an entity for each record, as ``partition`` does."""
        found = {str(number): f"alone {number}" for number in self.records}
        if len(self.scores):
            for numbers, _ in self.matcher.cluster(self.scores, threshold):
                found |= dict.fromkeys(map(str, numbers), str(numbers[0]))
        return found

    def sweep(self, truth: dict[str, str]) -> dict[str, Any]:
        """Score the thresholds from the highest on, as far as the time allows."""
        scores = dict(self._sweep(truth, time.process_time() + SWEEP_SECONDS))
        return {"threshold": best_threshold(scores), "f1": max(scores.values()), "scores": scores}

    def _sweep(self, truth: dict[str, str], until: float) -> Iterator[tuple[float, float]]:
        for threshold in reversed(THRESHOLDS):
            yield threshold, b_cubed_f1(truth, self.entities(threshold))
            if time.process_time() > until:
                return


class OutOfTimeError(RuntimeError):
    """The phase has used its CPU time."""


def restrict(seconds: float) -> None:
    """Limit this process."""

    def stop(number: int, frame: object) -> None:
        raise OutOfTimeError

    signal.signal(signal.SIGXCPU, stop)
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds + 600)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST_MEMORY, LARGEST_MEMORY))


def run(options: argparse.Namespace) -> None:
    records, model = Path(options.paths[0]), Path(options.paths[1])
    if options.phase == "fit":
        fit(options.set, records, model)
        print(json.dumps(cost_since(options.began)), flush=True)
        return
    if options.phase == "ask":
        ask(options.set, records, model, int(options.paths[2]))
        return
    scored = Scored(options.set, records, model)
    if options.phase == "choose":
        print(json.dumps(scored.sweep(read_entities(records)) | cost_since(options.began)), flush=True)
        return
    threshold, out, truth = options.paths[2:]
    write_entities(Path(out), scored.entities(float(threshold)))
    print(json.dumps(cost_since(options.began)), flush=True)
    resource.setrlimit(resource.RLIMIT_CPU, (int(options.limit + 500), int(options.limit + 600)))
    print(json.dumps(scored.sweep(read_entities(Path(truth)))), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("set", choices=FIELDS)
    parser.add_argument("phase", choices=("fit", "choose", "apply", "ask"))
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--began", type=float, required=True, help="when this process was started")
    parser.add_argument("--limit", type=float, required=True, help="CPU seconds for this phase")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    restrict(options.limit)
    try:
        run(options)
    except OutOfTimeError:
        print(json.dumps({"failed": "out of time"}), flush=True)
    except MemoryError:
        print(json.dumps({"failed": f"out of memory ({LARGEST_MEMORY // 2**30} GB)"}), flush=True)
    except OSError as failure:
        print(json.dumps({"failed": str(failure)}), flush=True)
    os._exit(0)  # dedupe's threads may still wait for pairs that never come


if __name__ == "__main__":
    main()
