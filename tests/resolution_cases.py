"""Small tables with what is known of them, for the parts of entity resolution."""

import numpy as np
import pyarrow as pa

from factorwise.apps.resolution.blocking import Part, Rule, find_candidates
from factorwise.apps.resolution.comparisons import Comparer, planned
from factorwise.apps.resolution.knowledge import Knowledge
from factorwise.apps.resolution.normalize.normal_forms import normalize
from factorwise.apps.resolution.schema.fields import FieldSpec
from factorwise.apps.resolution.training.examples import TrainingData
from factorwise.model.clusterings.level_weights import LevelWeights
from factorwise.model.clusterings.link_templates import LinkTemplate
from factorwise.model.model import Model
from factorwise.world.links import LinkGraph
from factorwise.world.partition import Partition
from record_cases import people

FIELDS = (
    FieldSpec("first_name", "name", {"part": "first"}),
    FieldSpec("surname", "name", {"part": "last"}),
    FieldSpec("born", "date"),
    FieldSpec("town", "category"),
    FieldSpec("email", "email"),
)
RULES = (Rule((Part("surname", "last", "prefix", 3),)), Rule((Part("email", "email"),)))


def table_of(records):
    """Records as an Arrow table; the empty text is missing."""
    return pa.table({name: [record[name] or None for record in records] for name in records[0]})


def people_table(count):
    return table_of(people(count))


def known_of(table, *, weights=None, temperature=0.7, seed=5):
    """What could have been learned of a table, with the weights given, or drawn."""
    normal = normalize(table, FIELDS)
    candidates = find_candidates(normal, RULES, threads=1)
    comparisons = tuple(planned(normal, candidates.first, candidates.second))
    sizes = tuple(one.cuts.size for one in comparisons)
    if weights is None:
        weights = np.random.default_rng(seed).normal(size=len(LevelWeights.zeros(sizes).values))
    return Knowledge(FIELDS, RULES, comparisons, LevelWeights(sizes, weights), temperature)


def compared(table, knowledge):
    """The candidate pairs of a table, and their levels."""
    normal = normalize(table, knowledge.fields)
    found = find_candidates(normal, knowledge.rules, threads=1)
    return found, Comparer(normal, knowledge.comparisons, found).levels(found.first, found.second)


def link_score(weights, labels, first, second, levels):
    """The score of a clustering of records by the model of their links."""
    pairs = np.column_stack([first, second])
    template = LinkTemplate("links", len(labels), pairs, levels=levels, sizes=weights.sizes)
    return Model([template], weights.values).score(Partition.from_keys(np.asarray(labels)))


def clusters(labels):
    """A clustering as a set of sets of rows."""
    groups = {}
    for row, label in enumerate(np.asarray(labels).tolist()):
        groups.setdefault(label, set()).add(row)
    return {frozenset(group) for group in groups.values()}


def training_data(entities=60, unknown=0):
    """Blocks of two entities of two records each; level 2 is for pairs of one entity, level 1 for others."""
    entity = np.repeat(np.arange(entities), 2)
    pairs = [(i, j) for j in range(len(entity)) for i in range(j // 4 * 4, j)]
    first, second = np.array(pairs, np.int32).T.copy()
    levels = np.where(entity[first] == entity[second], 2, 1).astype(np.uint8)[:, None]
    known = np.where(np.arange(len(entity)) < unknown, -1, entity).astype(np.int32)
    return TrainingData(LinkGraph.from_pairs(len(entity), first, second), levels, known)
