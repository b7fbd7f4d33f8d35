"""Harder copies of a pair of ontologies to learn from.

Ontologies whose matches are known tend to be easy: one was copied from the other, every concept has a
partner, names are equal, and the same things are filed under both. Whoever learns from them alone learns to
demand all of it. A copy takes some of it away: it is another world with a truth, made from the first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from numpy.random import Generator

from factorwise.apps.alignment.concepts import words
from factorwise.errors import require
from factorwise.io.ontologies import Concept, Ontology

Match = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyConfig:
    """What a copy loses, as probabilities.

    partners
        That a matched concept's partner is taken out, from either side alike.
    names
        That a matched concept loses its names, on one side or the other.
    things
        That a thing which both sides list stays on one side only.
    """

    partners: float = 0.3
    names: float = 0.3
    things: float = 1.0

    def __post_init__(self) -> None:
        for name in ("partners", "names", "things"):
            value = getattr(self, name)
            require(0 <= value <= 1, name, value, "a probability from 0 to 1")


def harder_copy(
    left: Ontology,
    right: Ontology,
    matches: Sequence[Match],
    rng: Generator,
    config: CopyConfig | None = None,
) -> tuple[Ontology, Ontology, list[Match]]:
    """Return both ontologies with less in them, and the matches that are left.

    What stood below a concept that is taken out goes to its parents.
    """
    config = config or CopyConfig()
    out: tuple[set[str], set[str]] = (set(), set())
    nameless: tuple[set[str], set[str]] = (set(), set())
    for match in matches:
        if rng.random() < config.partners:
            side = int(rng.integers(2))
            out[side].add(match[side])
        if rng.random() < config.names:
            side = int(rng.integers(2))
            nameless[side].add(match[side])
    things = _listed(left) & _listed(right)
    lost: tuple[set[tuple[str, ...]], set[tuple[str, ...]]] = (set(), set())
    for thing in sorted(things):
        if rng.random() < config.things:
            lost[int(rng.integers(2))].add(thing)
    sides = [
        _reduced(ontology, out[side], nameless[side], lost[side])
        for side, ontology in enumerate((left, right))
    ]
    kept = [match for match in matches if match[0] not in out[0] and match[1] not in out[1]]
    return sides[0], sides[1], kept


def _listed(ontology: Ontology) -> set[tuple[str, ...]]:
    return {words(name) for concept in ontology.concepts for name, _ in concept.instances}


def _reduced(
    ontology: Ontology, out: Collection[str], nameless: Collection[str], lost: Collection[tuple[str, ...]]
) -> Ontology:
    """Take out concepts, names and things; one concept stays in any case."""
    if len(out) >= len(ontology):
        out = ()
    concepts = []
    for concept in ontology.concepts:
        if concept.id not in out:
            kept = tuple(item for item in concept.instances if words(item[0]) not in lost)
            if concept.id in nameless:
                concept = replace(concept, label="", synonyms=())
            parents = _parents(ontology, concept, out)
            whole = tuple(i for i in concept.part_of if i not in out)
            concepts.append(replace(concept, parents=parents, part_of=whole, instances=kept))
    return Ontology(tuple(concepts), ontology.name)


def _parents(ontology: Ontology, concept: Concept, out: Collection[str]) -> tuple[str, ...]:
    """Parents of a concept, and for those taken out theirs."""
    found: dict[str, None] = {}
    for parent in concept.parents:
        if parent not in out:
            found[parent] = None
        elif parent in ontology.by_id:
            found |= dict.fromkeys(_parents(ontology, ontology.by_id[parent], out))
    return tuple(found)
