"""Stored model files of every kind: how each is made, and what is asked of it after it was read.

``python tests/io/earlier/make.py`` writes those that are not there yet in the newest format version: a model
file, and beside it a JSON file with what the model was given and what it answered. What is there is never
written again: it stands for the files that people have.
"""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from factorwise import ChainCRF, CollectiveModel, CoreferenceResolver, EntityResolver, OntologyAligner
from factorwise.apps.tagging import NestedTagger
from factorwise.io.checkpoints import FILE, KIND, Checkpoint, read_checkpoint, write_checkpoint
from factorwise.io.models.files import FORMAT_VERSION, read_model
from factorwise.io.models.weights import load_weights, save_weights
from factorwise.io.ontologies.ontology import Concept, Ontology
from factorwise.model.model import Model
from factorwise.model.template import Template

HERE = Path(__file__).parent


class Case(NamedTuple):
    """What a model is asked, how it is made and written, and how a file answers.

    given
        What `answers` is called with, as JSON.
    write
        Makes the model and writes it to a path.
    answers
        Reads the file and returns, by name, what must stay exactly as it is or, for those that end in ``~``,
        nearly so.
    """

    given: Any
    write: Callable[[Path], None]
    answers: Callable[[Path, Any], dict[str, Any]]


class Named(Template):
    """A template that only has a name and a size."""

    def __init__(self, name, size):
        self.name, self.size = name, size


def nonzero(weights):
    return {name: value for name, value in weights.items() if value}


def write_weights(path):
    model = Model([Named("bias", 2), Named("pair", 3)])
    model.weights = [0.5, -1.25, 0.0, 1e-300, 1 / 3]
    save_weights(path, model)


def weights_answers(path, sizes):
    model = Model([Named(name, size) for name, size in sizes.items()])
    load_weights(path, model)
    return {"weights": {name: model.block(name).tolist() for name in sizes}}


def write_search(path):
    arrays = {"label": np.array([2, 0, 2], np.int32), "best": np.array([[0.5, 1 / 3]])}
    write_checkpoint(path.parent, "the run", Checkpoint({"round": 3, "score": -0.1}, arrays))
    (path.parent / FILE).rename(path)


def search_answers(path, fingerprint):
    with TemporaryDirectory() as folder:
        shutil.copy(path, Path(folder) / FILE)
        state = read_checkpoint(folder, fingerprint)
    return {
        "numbers": dict(state.numbers),
        "arrays": {name: [str(array.dtype), array.tolist()] for name, array in state.arrays.items()},
    }


WORDS = ["the red fox saw a dog", "a dog saw the grey fox run", "the fox ran", "grey dog saw red dog"]
LABELS = ["O B-X I-X O O B-X", "O B-X O O B-X I-X O", "O B-X O", "B-X I-X O B-X I-X"]
TRUTH = [line.split() for line in LABELS]
DICTIONARIES = [[{"bias": 1.0, "w": word} for word in line.split()] for line in WORDS]
TUPLES = [[(word, word[0]) for word in line.split()] for line in WORDS]
ROWS = [[[float(word == one) for one in ("fox", "dog", "red")] for word in line.split()] for line in WORDS]
SETTINGS = {"scheme": "BIO", "max_iterations": 20, "n_jobs": 1}
ONE_STRETCH = '[[constraint]]\nkind = "one-stretch"\nlabel = "X"\nweight = 1.5\n'


def write_chain(path):
    ChainCRF(**SETTINGS).fit(DICTIONARIES, TRUTH).save(path)


def write_chain_of_second_order(path):
    templates = "w[0]\np[0]|w[-1]\nlower(w[1])\nis_title(p[0])\nfirst"
    ChainCRF(order=2, templates=templates, **SETTINGS).fit(TUPLES, TRUTH).save(path)


def write_chain_of_matrices(path):
    ChainCRF(**SETTINGS).fit(list(map(sparse.csr_matrix, map(np.array, ROWS))), TRUTH).save(path)


def write_chain_with_global_constraints(path):
    ChainCRF(global_constraints=ONE_STRETCH, **SETTINGS).fit(DICTIONARIES, TRUTH).save(path)


def write_nested_tagger(path):
    spans = [
        [("X", 1, 3), ("Y", 0, 3)],
        [("X", 0, 1)],
        [("Y", 1, 2)],
        [("X", 0, 2), ("X", 3, 5), ("Y", 0, 5)],
    ]
    NestedTagger(levels=2, c1=0.5, max_iterations=20, n_jobs=1).fit(
        [line.split() for line in WORDS], spans
    ).save(path)


def nested_answers(path, sentences):
    found = NestedTagger.load(path, n_jobs=1).predict_spans(sentences)
    return {
        "spans": [[[span.kind, span.start, span.end] for span in spans] for spans in found],
        "confidence~": [[span.confidence for span in spans] for spans in found],
    }


def chain_answers(path, sentences):
    model = ChainCRF.load(path, n_jobs=1)
    return {
        "classes": list(model.classes_),
        "weights": model.tagger_.weights.tolist(),
        "constraints": [str(one) for one in model.constraints_.constraints] if model.constraints_ else [],
        "labels": model.predict(sentences),
        "marginals~": [
            [[row[label] for label in model.classes_] for row in one]
            for one in model.predict_marginals(sentences)
        ],
    }


def chain_answers_for_matrices(path, sentences):
    return chain_answers(path, list(map(sparse.csr_matrix, map(np.array, sentences))))


def chain_answers_for_tuples(path, sentences):
    return chain_answers(path, [[tuple(columns) for columns in one] for one in sentences])


PEOPLE = [
    ["Ann", "Lee", "1950-03-01", "Leeds", "ann.lee@mail.org"],
    ["A.", "Lee", "1950-03-01", "", "ann.lee@mail.org"],
    ["Robert", "Fox", "1962-11-21", "Bath", "fox@mail.org"],
    ["Robert", "Foxx", "1962-11-21", "Bath", ""],
    ["Maria", "Stone", "1971-06-14", "York", "maria@mail.org"],
    ["M.", "Stone", "1971-06-14", "York", "maria@mail.org"],
    ["Susan", "Novak", "1944-01-30", "Derby", "susan@mail.org"],
    ["Peter", "Novak", "1986-09-09", "Derby", "peter@mail.org"],
]
COLUMNS = ["first_name", "surname", "born", "town", "email"]


def records(rows):
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def write_resolver(path):
    copies = [
        [first, f"{surname}{letter}", born, town, email and letter + email]
        for letter in "abcdef"
        for first, surname, born, town, email in PEOPLE
    ]
    entities = [8 * k + place for k in range(6) for place in (0, 0, 2, 2, 4, 4, 6, 7)]
    model = EntityResolver(n_jobs=1).fit(records(copies), entities)
    model.knowledge_ = replace(model.knowledge_, temperature=0.75)
    model.save(path)


def resolver_answers(path, rows):
    model = EntityResolver.load(path, n_jobs=1)
    known = model.knowledge_
    return {
        "fields": [[one.name, one.kind, dict(one.options)] for one in known.fields],
        "rules": [[[part.field, part.form] for part in rule.parts] for rule in known.rules],
        "weights": dict(zip(known.weight_names(), known.weights.values.tolist(), strict=True)),
        "temperature": known.temperature,
        "thrifty": known.thrifty,
        "entities": model.predict(records(rows)).tolist(),
    }


def story(number, one, two):
    """A document in which two people are named twice."""
    words = f"{one} met {two} . {two} likes {one} .".split()
    mentions = [
        {"start": place, "end": place + 1, "type": "PER", "mtype": "NAM", "entity": words[place]}
        for place in (0, 2, 4, 6)
    ]
    return {
        "id": f"d{number}",
        "topic": number // 2,
        "tokens": words,
        "sentences": [[0, 4], [4, 8]],
        "mentions": mentions,
    }


STORIES = [story(0, "Ann", "Bob"), story(1, "Bob", "Eve"), story(2, "Max", "Ann"), story(3, "Eve", "Max")]


def write_coreference(path):
    settings = {"aggregates": ("count", "mean"), "passes": 2, "steps": 100, "search_steps": 100}
    CoreferenceResolver(**settings).fit(STORIES).save(path)


def coreference_answers(path, documents):
    model = CoreferenceResolver.load(path)
    return {
        "weights": nonzero(model.weights_by_name()),
        "settings": model.settings_,
        "passes": len(model.history_),
        "entities": [list(one) for one in model.predict(documents)],
    }


OURS = ["animal", "brown bear", "house cat", "sheep dog", "red fox", "sea eagle", "grey goose", "wild horse"]
THEIRS = ["beast", "bear, brown", "cat", "sheepdog", "fox", "eagle of the sea", "goose", "tree", "stone"]


def ontology(prefix, labels):
    """Concepts below the first one."""
    return Ontology(
        tuple(
            Concept(f"{prefix}{n}", label, parents=(f"{prefix}0",) if n else ())
            for n, label in enumerate(labels)
        )
    )


def write_aligner(path):
    reference = [(f"a{n}", f"b{n}") for n in range(1, 7)]
    model = OntologyAligner(passes=3, steps=50, search_steps=60)
    model.fit(ontology("a", OURS), ontology("b", THEIRS), reference).save(path)


def aligner_answers(path, labels):
    model = OntologyAligner.load(path)
    ours, theirs = labels
    matches = model.predict(ontology("a", ours), ontology("b", theirs))
    return {
        "weights": nonzero(model.weights_by_name()),
        "settings": model.settings_,
        "matches": sorted([one.left, one.right] for one in matches),
        "confidences~": {f"{one.left} {one.right}": one.confidence for one in matches},
    }


RING = [[60, 20, 20], [48, 32, 20], [40, 37, 23], [35, 38, 27]]


def counts(rows):
    return [
        {"time": time, "place": place, "count": n}
        for time, row in enumerate(rows)
        for place, n in zip("abc", row, strict=True)
    ]


def write_collective(path):
    features = [
        {"from": i, "to": j, "stay": float(i == j), "onward": float(i + j in ("ab", "bc", "ca"))}
        for i in "abc"
        for j in "abc"
    ]
    CollectiveModel(passes=5).fit(counts(RING), features=features).save(path)


def collective_answers(path, rows):
    model = CollectiveModel.load(path)
    return {
        "places": list(model.places_),
        "weights": model.weights_by_name(),
        "settings": [model.noise, model.rate, model.l2, model.passes, len(model.history_)],
        "flows~": [series.expected.tolist() for series in model.predict(counts(rows)).series],
    }


#: By name: the kind, and after a dot the variant of it.
CASES = {
    "alignment": Case([OURS, THEIRS], write_aligner, aligner_answers),
    "chain-crf": Case(DICTIONARIES, write_chain, chain_answers),
    "chain-crf.global": Case(DICTIONARIES, write_chain_with_global_constraints, chain_answers),
    "chain-crf.matrices": Case(ROWS, write_chain_of_matrices, chain_answers_for_matrices),
    "chain-crf.second-order": Case(TUPLES, write_chain_of_second_order, chain_answers_for_tuples),
    KIND: Case("the run", write_search, search_answers),
    "collective": Case(RING, write_collective, collective_answers),
    "coreference": Case(STORIES, write_coreference, coreference_answers),
    "nested-tagger": Case([line.split() for line in WORDS], write_nested_tagger, nested_answers),
    "resolution": Case(PEOPLE, write_resolver, resolver_answers),
    "weights": Case({"pair": 3, "bias": 2}, write_weights, weights_answers),
}


def make(name, folder=HERE):
    """Write a model of this case and its answers; refuse to replace one."""
    model = folder / f"{name}-v{FORMAT_VERSION}.fw"
    if model.exists():
        raise FileExistsError(
            f"{model.name} is there, and stands for files that people have: it is never written anew."
            " Where it is no longer read as it was, mend the reader."
        )
    case = CASES[name]
    case.write(model)
    assert read_model(model).kind == name.split(".")[0]
    stored = {"given": case.given, "answers": case.answers(model, case.given)}
    model.with_suffix(".json").write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main(names):
    missing = [name for name in CASES if not (HERE / f"{name}-v{FORMAT_VERSION}.fw").exists()]
    for name in names or missing:
        make(name)


if __name__ == "__main__":
    main(sys.argv[1:])
