"""Small ontologies for the tests of the aligner."""

from factorwise.apps.alignment.candidates import candidate_pairs
from factorwise.apps.alignment.concepts import ConceptTable
from factorwise.apps.alignment.features import pair_features
from factorwise.io.ontologies.ontology import Concept, Ontology


def table(*concepts):
    """Concepts from labels alone or from keyword records; ids are the numbers of the concepts."""
    built = []
    for number, given in enumerate(concepts):
        record = {"label": given} if isinstance(given, str) else dict(given)
        for key in ("parents", "part_of"):
            record[key] = tuple(str(other) for other in record.get(key, ()))
        built.append(Concept(str(number), **record))
    return ConceptTable.of(Ontology(tuple(built)))


def features_of(left, right, pair, pairs=None):
    """Features of one pair by name, among all pairs of the two tables unless others are given."""
    every = [[a, b] for a in range(len(left)) for b in range(len(right))] if pairs is None else pairs
    found = pair_features(left, right, every)
    row = [list(p) for p in every].index(list(pair))
    return dict(zip(found.names, found.values[row].tolist(), strict=True))


def candidates(left, right, config=None):
    return {tuple(pair) for pair in candidate_pairs(left, right, config).tolist()}
