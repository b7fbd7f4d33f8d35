"""Read ontologies in OWL, RDF Schema and SKOS through rdflib, which is imported only when it is used.

A concept is a named node that is declared ``owl:Class``, ``rdfs:Class`` or ``skos:Concept`` and is not
deprecated; its id is the whole IRI.

- Parents come from ``rdfs:subClassOf``, ``rdfs:subPropertyOf``, ``skos:broader`` and the inverse of
  ``skos:narrower``; from ``owl:equivalentClass`` and ``owl:equivalentProperty``, which form a cycle; and
  from the named classes of an ``owl:intersectionOf``.
- Wholes come from a property called "part of", given directly or in a restriction ``someValuesFrom``.
- If a synonym is a node, its text is looked up, as many exports require.
- Properties are the nodes that are declared ``owl:ObjectProperty`` or one of its special kinds,
  ``owl:DatatypeProperty`` or ``rdf:Property``. Unions in ``rdfs:domain`` and ``rdfs:range`` are split;
  a property without domain or range gets the range or domain of its ``owl:inverseOf``.
- Individuals, which are read on request, are the named instances of classes.
- Disjoint classes come from ``owl:disjointWith``, ``owl:complementOf``, ``owl:AllDisjointClasses`` and
  ``owl:disjointUnionOf``.

The ontologies in ``owl:imports`` are not fetched, and the terms of OWL, RDF, RDF Schema, SKOS and oboInOwl
themselves are not concepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from factorwise.errors import DataFileError, MissingExtraError
from factorwise.io.file_kinds import refuse_other_kind
from factorwise.io.ontologies.ontology import (
    CLASS,
    DATATYPE_PROPERTY,
    INDIVIDUAL,
    OBJECT_PROPERTY,
    PROPERTY,
    Concept,
    Ontology,
    is_generated,
)

FORMATS = {
    ".owl": "xml",
    ".rdf": "xml",
    ".xml": "xml",
    ".ttl": "turtle",
    ".nt": "nt",
    ".n3": "n3",
    ".jsonld": "json-ld",
}
_OBO = "http://www.geneontology.org/formats/oboInOwl#"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_DEFINITION = "http://purl.obolibrary.org/obo/IAO_0000115"
_PART_OF = re.compile(r"(is)?partof|bfo0000050")


def parse_rdf(
    content: bytes,
    *,
    name: str = "input",
    syntax: str | None = None,
    language: str | None = None,
    individuals: bool = False,
) -> Ontology:
    """Parse an ontology from the bytes of an RDF file.

    name
        Used in error messages; its suffix is the default of the format.
    syntax
        Name of a format of rdflib, such as ``"turtle"`` or ``"xml"``.
    language
        Preferred language: its texts come first, and other languages are used only if nothing else exists.
    individuals
        Whether individuals are read as concepts too.
    """
    rdflib = _rdflib()
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    form = syntax or FORMATS.get(suffix, "xml")
    graph = rdflib.Graph()
    try:
        graph.parse(data=content, format=form)
    except rdflib.plugin.PluginException as fault:
        raise DataFileError(
            f"{name}: rdflib has no reader for the format {form!r}. Give syntax='turtle', or xml,"
            " nt, n3, json-ld."
        ) from fault
    except Exception as fault:  # the parsers of rdflib raise many types of errors
        refuse_other_kind(content, name, "RDF")
        first, *others = (other for other in dict.fromkeys(FORMATS.values()) if other != form)
        raise DataFileError(
            f"{name}{_line(fault)}: this is not RDF in the format {form!r} ({_first_line(fault)}). Repair the"
            f" file, or give the syntax that it has: syntax={first!r}, or {', '.join(others)}."
        ) from fault
    reader = _Reader(graph, rdflib, language)
    concepts = reader.concepts(individuals=individuals)
    if not concepts:
        raise DataFileError(
            f"{name}: {len(graph)} statements, and no concept in them. Declare concepts as owl:Class,"
            " rdfs:Class or skos:Concept."
        )
    return Ontology(concepts, name, notes=reader.notes())


class _Reader:
    """Reads concepts from a graph."""

    def __init__(self, graph: Any, rdflib: Any, language: str | None) -> None:
        self.graph = graph
        self.iri = rdflib.URIRef
        self.literal = rdflib.Literal
        self.language = language
        rdf, rdfs, owl, skos = rdflib.RDF, rdflib.RDFS, rdflib.OWL, rdflib.SKOS
        obo = rdflib.Namespace(_OBO)
        self.type = rdf.type
        self.kinds = (owl.Class, rdfs.Class, skos.Concept)
        self.properties = {
            owl.ObjectProperty: OBJECT_PROPERTY,
            owl.DatatypeProperty: DATATYPE_PROPERTY,
            owl.TransitiveProperty: OBJECT_PROPERTY,
            owl.SymmetricProperty: OBJECT_PROPERTY,
            owl.InverseFunctionalProperty: OBJECT_PROPERTY,
            owl.FunctionalProperty: PROPERTY,
            rdf.Property: PROPERTY,
        }
        self.individual = owl.NamedIndividual
        self.equivalent = (owl.equivalentClass, owl.equivalentProperty)
        self.intersection, self.inverse = owl.intersectionOf, owl.inverseOf
        self.not_concepts = {owl.Thing, owl.Nothing, rdfs.Resource}
        self.vocabularies = (str(owl), str(rdf), str(rdfs), str(skos), _OBO)
        self.imports = owl.imports
        self.union = owl.unionOf
        self.domain, self.range = rdfs.domain, rdfs.range
        self.deprecated = owl.deprecated
        self.disjoint = (owl.disjointWith, owl.complementOf)
        self.all_disjoint, self.members = owl.AllDisjointClasses, owl.members
        self.disjoint_union = owl.disjointUnionOf
        self.labels = (rdfs.label, skos.prefLabel)
        self.synonyms = (skos.altLabel, skos.hiddenLabel, obo.hasExactSynonym, obo.hasRelatedSynonym)
        self.node_labels = (
            *self.labels,
            self.iri("http://www.w3.org/2008/05/skos-xl#literalForm"),
            rdf.value,
        )
        self.comments = (rdfs.comment, skos.definition, self.iri(_DEFINITION))
        self.above = (rdfs.subClassOf, skos.broader, rdfs.subPropertyOf)
        self.below = skos.narrower
        self.restricted = owl.onProperty
        self.some = owl.someValuesFrom
        self.sub = rdfs.subClassOf
        self.apart = self._apart()
        self.part_of = sorted(p for p in self._properties() if self._means_part_of(p))

    def concepts(self, *, individuals: bool = False) -> tuple[Concept, ...]:
        """Return all concepts, sorted by id, so that the order does not depend on the graph's storage."""
        kinds: dict[Any, str] = {}
        for kind, name in [*dict.fromkeys(self.kinds, CLASS).items(), *self.properties.items()]:
            for node in self.graph.subjects(self.type, kind):
                kinds.setdefault(node, name)
        if individuals:
            classes = [node for node, kind in kinds.items() if kind == CLASS]
            for kind in (self.individual, *classes):
                for node in self.graph.subjects(self.type, kind):
                    kinds.setdefault(node, INDIVIDUAL)
        named = (node for node in kinds if isinstance(node, self.iri) and node not in self.not_concepts)
        own = (node for node in named if not str(node).startswith(self.vocabularies))
        return tuple(
            self._concept(node, kinds[node]) for node in sorted(own) if not self._is_deprecated(node)
        )

    def notes(self) -> tuple[str, ...]:
        """Return a note on imports, if there are any."""
        imported = sorted(map(str, self.graph.objects(None, self.imports)))
        if not imported:
            return ()
        return (
            f"imports are not fetched ({', '.join(imported[:3])}): merge them into the file first if needed",
        )

    def _concept(self, node: Any, kind: str) -> Concept:
        labels = self._texts(node, self.labels)
        synonyms = dict.fromkeys((*labels[1:], *self._texts(node, self.synonyms)))
        label = labels[0] if labels else _local(node)
        parents = {above for p in self.above for above in self.graph.objects(node, p)}
        parents |= set(self.graph.subjects(self.below, node))
        parents |= self._equivalents(node)
        if kind == INDIVIDUAL:
            parents |= set(self.graph.objects(node, self.type)) - {self.individual}
        return Concept(
            id=str(node),
            label=label,
            synonyms=tuple(name for name in synonyms if name != label and not is_generated(name)),
            parents=self._ids(node, parents - self.not_concepts),
            part_of=self._ids(node, self._wholes(node)),
            comment=" ".join(self._texts(node, self.comments)),
            instances=tuple(sorted(self._instances(node))),
            kind=kind,
            domain=self._ids(node, self._ends(node, self.domain, self.range)),
            range=self._ids(node, self._ends(node, self.range, self.domain)),
            disjoint=self._ids(node, self.apart.get(node, ())),
        )

    def _apart(self) -> dict[Any, set[Any]]:
        """Return for each class the classes that are declared disjoint from it."""
        apart: dict[Any, set[Any]] = {}
        for predicate in self.disjoint:
            for one, other in self.graph.subject_objects(predicate):
                apart.setdefault(one, set()).add(other)
        groups = [
            self.graph.value(node, self.members) for node in self.graph.subjects(self.type, self.all_disjoint)
        ]
        groups += self.graph.objects(None, self.disjoint_union)
        for members in (list(self.graph.items(group)) for group in groups):
            for one in members:
                apart.setdefault(one, set()).update(members)
        return apart

    def _equivalents(self, node: Any) -> set[Any]:
        """Return the declared equivalents of a concept, and the classes of intersections that define it."""
        same = {other for p in self.equivalent for other in self.graph.objects(node, p)}
        same |= {other for p in self.equivalent for other in self.graph.subjects(p, node)}
        definitions = (node, *(same | set(self.graph.objects(node, self.sub))))
        within = (group for one in definitions for group in self.graph.objects(one, self.intersection))
        return same.union(*(self.graph.items(group) for group in within))

    def _ends(self, node: Any, own: Any, other: Any) -> list[Any]:
        """Return the domain or range of a property, or the range or domain of its inverse."""
        inverse = {*self.graph.objects(node, self.inverse), *self.graph.subjects(self.inverse, node)}
        stated = list(self._classes(node, own))
        return stated or [found for one in inverse for found in self._classes(one, other)]

    def _classes(self, node: Any, predicate: Any) -> Iterator[Any]:
        """Yield the classes in the domain or range of a property; unions are split."""
        for target in self.graph.objects(node, predicate):
            named = isinstance(target, self.iri) and target not in self.not_concepts
            if named and not str(target).startswith(_XSD):
                yield target
            for union in self.graph.objects(target, self.union):
                yield from self.graph.items(union)

    def _wholes(self, node: Any) -> Iterator[Any]:
        for part_of in self.part_of:
            yield from self.graph.objects(node, part_of)
            for restriction in self.graph.objects(node, self.sub):
                if (restriction, self.restricted, part_of) in self.graph:
                    yield from self.graph.objects(restriction, self.some)

    def _instances(self, node: Any) -> Iterator[tuple[str, str]]:
        for thing in set(self.graph.subjects(self.type, node)):
            names = self._texts(thing, self.labels)
            name = names[0] if names else _local(thing)
            yield name, " ".join((*names[1:], *self._texts(thing, self.comments)))

    def _ids(self, node: Any, nodes: Iterable[Any]) -> tuple[str, ...]:
        """Return the sorted ids of named nodes without the node itself, as a class may be its own parent."""
        return tuple(sorted({str(n) for n in nodes if isinstance(n, self.iri) and n != node}))

    def _texts(self, node: Any, predicates: Iterable[Any]) -> list[str]:
        """Return the texts of a node by any of the predicates; the preferred language comes first."""
        found = []
        for rank, predicate in enumerate(predicates):
            for value in self.graph.objects(node, predicate):
                if isinstance(value, self.literal):
                    found.append((self._strangeness(value), rank, str(value).strip()))
                else:
                    behind = (text for p in self.node_labels for text in self.graph.objects(value, p))
                    found += [
                        (self._strangeness(text), rank, str(text).strip())
                        for text in behind
                        if isinstance(text, self.literal)
                    ]
        if self.language and any(strange < 2 for strange, *_ in found):
            found = [entry for entry in found if entry[0] < 2]
        return list(dict.fromkeys(text for *_, text in sorted(found) if text))

    def _strangeness(self, text: Any) -> int:
        """Return the rank of a text's language: 0 if preferred (by default none), 1 if neutral, else 2."""
        given = (text.language or "").lower()
        if not given:
            return 1 if self.language else 0
        if self.language is None:
            return 1
        wanted = self.language.lower()
        return 0 if given == wanted or given.startswith(f"{wanted}-") else 2

    def _is_deprecated(self, node: Any) -> bool:
        return any(str(value).lower() in {"true", "1"} for value in self.graph.objects(node, self.deprecated))

    def _properties(self) -> set[Any]:
        used = set(self.graph.predicates()) | set(self.graph.objects(None, self.restricted))
        return {node for node in used if isinstance(node, self.iri)}

    def _means_part_of(self, node: Any) -> bool:
        names = (_local(node), *(str(label) for label in self.graph.objects(node, self.labels[0])))
        plain = (re.sub(r"undefined|[\W_]", "", name.lower()) for name in names)
        return any(_PART_OF.fullmatch(name) for name in plain)


def _local(node: Any) -> str:
    """Return the last part of an IRI."""
    return re.split(r"[#/:]", str(node).rstrip("#/:"))[-1]


def _line(fault: Exception) -> str:
    """Return ``:line`` if a parser's error has a line number, or the empty string."""
    place = getattr(fault, "getLineNumber", None)
    number = place() if callable(place) else getattr(fault, "lines", None)
    if isinstance(number, int):
        return f":{number + (place is None)}"
    return ""


def _first_line(fault: Exception) -> str:
    return next((line.strip() for line in str(fault).splitlines() if line.strip()), type(fault).__name__)


def _rdflib() -> Any:
    try:
        rdflib = import_module("rdflib")
    except ImportError as fault:
        raise MissingExtraError(
            "reading OWL and RDF needs rdflib, which is not installed: pip install 'factorwise[ontologies]'."
        ) from fault
    return rdflib
