"""From reference strings to works and their authors.

References are parsed and then compared. With several readings (parses) of each, both are inferred jointly:
each reference has one of its most probable readings, and is in the cluster of a work. The score of a pair of
references depends on their readings, so a reading that agrees with the others of a work may be chosen over
the one that is most probable by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from factorwise.apps.resolution.estimator import EntityResolver
from factorwise.apps.resolution.linking import link
from factorwise.apps.tagging.citations.formats import to_csl
from factorwise.apps.tagging.citations.reader import Citation, CitationReader
from factorwise.errors import InvalidArgumentError
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.proposals.assignment_proposals import UniformRelabel
from factorwise.inference.mcmc.proposals.joint_moves import Within as Moves
from factorwise.inference.mcmc.proposals.mixtures import Mixture, PartitionMixture
from factorwise.inference.mcmc.proposals.partition_moves import RelocateToCandidate, RelocateToNew
from factorwise.inference.mcmc.run import anneal
from factorwise.inference.mcmc.schedules import Geometric
from factorwise.kernels.compile.threads import Team, thread_count
from factorwise.model.clusterings.cluster_templates import ClusterSize
from factorwise.model.joint_templates import LabelledPairs, Within
from factorwise.model.labels.library import Tables
from factorwise.model.model import Model
from factorwise.validation import check_count
from factorwise.variables.domain import Domain
from factorwise.variables.variable import Column, Variables
from factorwise.world.assignment import Assignment
from factorwise.world.joint import Joint
from factorwise.world.partition import Partition

READINGS = 1  # per reference; more are no better on open data (``experiments/joint_citations.py``)
READING_WEIGHT = 1.0  # weight of the log probability of a reading, relative to the scores of pairs
STEPS = 400  # annealing steps per reference
COLUMNS = ("author", "title", "venue", "year", "volume", "pages", "publisher")


class Reading(NamedTuple):
    """A reading (parse) of a reference: its fields, its CSL-JSON item and its probability."""

    citation: Citation
    item: Mapping[str, Any]
    probability: float


@dataclass(frozen=True, slots=True, eq=False)
class Works:
    """Parsed references, their works and their authors.

    readings
        The chosen reading of each reference.
    work : int32[references]
        Cluster id of the work of each reference, from 1 on in the order of the references.
    people
        For each reference the entity ids of its authors; equal ids are the same person.
    """

    readings: tuple[Reading, ...]
    work: NDArray[np.int32]
    people: tuple[tuple[int, ...], ...]

    def table(self) -> pa.Table:
        """Return a table with a row for each reference, in order."""
        items = [reading.item for reading in self.readings]
        return pa.table(
            {
                "reference": pa.array(np.arange(1, len(items) + 1)),
                "work": pa.array(self.work),
                "authors": pa.array([_names(item) for item in items], pa.list_(pa.string())),
                "people": pa.array(self.people, pa.list_(pa.int32())),
                **{
                    name: pa.array([item.get(name) for item in items], pa.string())
                    for name in ("type", "title", "container-title")
                },
                "year": pa.array([_year(item) for item in items], pa.int32()),
                **{
                    name: pa.array([item.get(name) for item in items], pa.string())
                    for name in ("volume", "issue", "page", "publisher", "DOI", "URL")
                },
                "probability": pa.array([reading.probability for reading in self.readings], pa.float64()),
                "text": pa.array([reading.citation.text for reading in self.readings], pa.string()),
            }
        )


def find_works(
    references: Iterable[str],
    *,
    reader: CitationReader | None = None,
    readings: int = READINGS,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Works:
    """Parse references, and resolve which are of one work and which authors are one person.

    reader
        The reader of references; None for the one that is included in the package.
    readings
        Number of readings considered per reference; with 1, references are parsed first and then compared.
    random_state
        Random seed; the same seed gives the same result.
    n_jobs
        Number of threads; None or -1 for all processors.
    """
    check_count("readings", readings)
    texts = list(references)
    if not texts:
        raise InvalidArgumentError("there are no references: give at least one string.")
    given = [
        different_readings(best)
        for best in (reader or CitationReader.bundled(n_jobs=n_jobs)).read_nbest(texts, readings)
    ]
    chosen, work = joint_works(given, random_state=random_state, n_jobs=n_jobs)
    best = tuple(some[number] for some, number in zip(given, chosen.tolist(), strict=True))
    people = find_people([reading.item for reading in best], work, random_state=random_state, n_jobs=n_jobs)
    return Works(best, work, people)


def different_readings(best: Sequence[tuple[Citation, float]]) -> list[Reading]:
    """Return the readings with distinct fields, most probable first; equal ones are merged."""
    items = to_csl([citation for citation, _ in best])
    found: dict[tuple[str | None, ...], Reading] = {}
    for (citation, probability), item in zip(best, items, strict=True):
        key = tuple(_record(item).values())
        first = found.get(key)
        found[key] = (
            Reading(citation, item, probability)
            if first is None
            else first._replace(probability=first.probability + probability)
        )
    empty = Reading(Citation("", ()), {}, 1.0)
    return sorted(found.values(), key=lambda reading: -reading.probability) or [empty]


def joint_works(
    given: Sequence[Sequence[Reading]],
    *,
    weight: float = READING_WEIGHT,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the index of the chosen reading of each reference, and the id of its work.

    Annealing starts with the most probable readings and the works that result from them alone. The match
    weights are fitted on these readings without labels.

    weight
        Weight of the log probability of a reading, relative to the scores of pairs.
    """
    records = [[_record(reading.item) for reading in some] for some in given]
    first = pa.Table.from_pylist([some[0] for some in records], _schema())
    n, most = len(given), max(map(len, given))
    empty = [name for name in COLUMNS if first[name].null_count == n]
    if n < 2 or "title" in empty:
        return np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32)
    resolver = EntityResolver(about="title", random_state=random_state, n_jobs=n_jobs)
    begin = resolver.fit(first, leave_out=empty).resolve(first).labels
    if most == 1:
        return np.zeros(n, np.int32), _number_clusters(begin)
    knowledge = resolver.knowledge_
    flat = pa.Table.from_pylist([record for some in records for record in some], _schema())
    with Team(thread_count(n_jobs)) as team:
        linked = link(flat, knowledge, team=team)
    owner = np.repeat(np.arange(n), [len(some) for some in given])
    label = np.concatenate([np.arange(len(some)) for some in given])
    one, two = linked.candidates.first, linked.candidates.second
    apart = owner[one] != owner[two]
    pairs = np.column_stack([owner[one], owner[two], label[one], label[two]])[apart]
    weights = knowledge.weights
    log_probability = np.full((n, most), -np.inf)
    log_probability[owner, label] = np.log(
        [max(reading.probability, 1e-300) for some in given for reading in some]
    )
    column = Column("reading", Domain("reading", range(most)), np.full(n, -1, np.int32))
    variables = Variables([column])
    model = Model(
        [
            Within(
                "readings",
                Tables(variables, np.arange(n)[:, None], weight * log_probability, which=np.arange(n)),
            ),
            LabelledPairs("works", "readings", pairs, linked.scores[apart] - weights.unlinked, n, most),
            Within("works", ClusterSize()),
        ],
        [1.0, weights.unlinked, weights.cluster, 0.0],
    )
    to_others = RelocateToCandidate.from_pairs(n, np.unique(pairs[:, :2], axis=0))
    moves = [
        Moves("works", PartitionMixture([to_others, RelocateToNew()], [0.8, 0.2])),
        Moves("readings", UniformRelabel()),
    ]
    world = Joint(works=Partition.from_keys(begin), readings=Assignment(variables, np.zeros(n, np.int32)))
    kernel = Metropolis(model, Mixture(moves, [0.6, 0.4]))
    schedule = Geometric(start=1.0, end=0.02)
    found = anneal(
        kernel, world, steps=STEPS * n, schedule=schedule, threads=1, seed=random_state, progress=False
    ).best
    return found.part("readings").values.astype(np.int32), _number_clusters(found.part("works").labels)


def find_people(
    items: Sequence[Mapping[str, Any]],
    work: NDArray[np.int32],
    *,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> tuple[tuple[int, ...], ...]:
    """Return the entity ids of the authors of each reference; equal ids are the same person.

    Authors of one work are one person if they have the same family name and first initial, but two authors of
    one reference never are. Across works, persons are resolved by their names and their coauthors.
    """
    places: dict[tuple[int, str, str, int], int] = {}
    rows: list[dict[str, str]] = []
    numbers = []
    for item, number in zip(items, work.tolist(), strict=True):
        people = _people(item)
        names = [(person["family"].casefold(), person.get("given", "")[:1].casefold()) for person in people]
        keys = [(number, *name, names[:k].count(name)) for k, name in enumerate(names)]
        for key, person in zip(keys, people, strict=True):
            name = f"{person.get('given', '')} {person['family']}".strip()
            beside = sorted({other["family"] for other in people} - {person["family"]})
            if key not in places:
                places[key] = len(rows)
                rows.append({"name": name, "coauthors": "; ".join(beside)})
            elif len(name) > len(rows[places[key]]["name"]):
                rows[places[key]]["name"] = name
        numbers.append([places[key] for key in keys])
    if not rows:
        return tuple(() for _ in items)
    found = np.arange(1, len(rows) + 1, dtype=np.int32)
    if len(rows) > 1:
        table = pa.Table.from_pylist(rows)
        empty = [] if any(row["coauthors"] for row in rows) else ["coauthors"]
        resolver = EntityResolver(about="name", random_state=random_state, n_jobs=n_jobs)
        found = _number_clusters(resolver.fit(table, leave_out=empty).resolve(table).labels)
    return tuple(tuple(int(found[row]) for row in some) for some in numbers)


def _number_clusters(labels: NDArray[Any]) -> NDArray[np.int32]:
    """Return cluster ids from 1 on, in the order of the first members."""
    return Partition.from_keys(labels).dense_labels().astype(np.int32) + np.int32(1)


def _schema() -> pa.Schema:
    return pa.schema([(name, pa.string()) for name in COLUMNS])


def _record(item: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the fields of a reading that are compared."""
    year = _year(item)
    values = (
        "; ".join(_names(item)),
        item.get("title"),
        item.get("container-title"),
        None if year is None else str(year),
        item.get("volume"),
        item.get("page"),
        item.get("publisher"),
    )
    return {name: value or None for name, value in zip(COLUMNS, values, strict=True)}


def _people(item: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the authors without "et al."; an institution's whole name is its family name."""
    people = [
        person if "family" in person else {"family": person["literal"]} for person in item.get("author", [])
    ]
    return [person for person in people if person["family"] != "others"]


def _names(item: Mapping[str, Any]) -> list[str]:
    return [
        f"{person['family']}, {person['given']}" if person.get("given") else person["family"]
        for person in _people(item)
    ]


def _year(item: Mapping[str, Any]) -> int | None:
    parts = item.get("issued", {}).get("date-parts", [[]])[0]
    return int(parts[0]) if parts else None
