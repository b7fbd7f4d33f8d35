"""Made-up people, each with a few records, for tests of stores and reviews."""

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.curation import Curator
from factorwise.apps.resolution.curation.candidates import WHOLE
from factorwise.store import Store

FIRST = ("anna", "bruno", "carla", "david", "elena", "felix", "greta", "henri", "irene", "jonas")
LAST = ("abel", "brandt", "castle", "dunn", "egger", "fuchs", "gruber", "huber", "iseli", "jost")


def people(n=60, seed=0, each=3, start=0):
    """Return a table with a column ``person``, the truth."""
    random = np.random.default_rng(seed)
    rows = []
    for person in range(start, start + n):
        own = np.random.default_rng([seed, person])
        first, last = FIRST[own.integers(10)], LAST[own.integers(10)]
        born = f"{own.integers(1930, 2000)}-{own.integers(1, 13):02d}-{own.integers(1, 29):02d}"
        mail = f"{first[0]}{last}{own.integers(100)}@example.org"
        for copy in range(int(random.integers(1, each + 1))):
            name = first if random.random() < 0.8 else first[:-1]
            family = last if random.random() < 0.9 else last[:-1] + "e"
            rows.append(
                {
                    "id": f"r{person}.{copy}",
                    "first": name,
                    "last": family,
                    "born": born if random.random() < 0.8 else None,
                    "mail": mail if random.random() < 0.6 else None,
                    "person": person,
                }
            )
    return pa.Table.from_pylist(rows)


def make_store(path, table):
    """Resolve a table of people into a new store, which is returned open."""
    store = Store.create(path)
    Curator(store).resolve(
        table.drop_columns(["person"]), table.column("id").combine_chunks(), source="a.csv", leave_out=("id",)
    )
    return store


def answer_by_truth(review, question, truth, who="Ann"):
    """Answer a question by the entities of all records."""
    choice = question.choice
    if choice.kind != WHOLE:
        same = truth[choice.left] == truth[choice.right]
        return review.answer(question, "same" if same else "different", who=who)
    entities = truth[list(choice.records)]
    kept = entities == np.bincount(entities).argmax()
    out = [record["id"] for record, belongs in zip(question.shown, kept, strict=True) if not belongs]
    return review.answer(question, "all but" if out else "same", taken_out=out, who=who)
