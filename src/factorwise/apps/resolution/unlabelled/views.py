"""The records of a table as the model without labels compares them: their identities and other columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from factorwise.apps.resolution.normalize.forms import NormalTable
from factorwise.apps.resolution.unlabelled.about import About
from factorwise.apps.resolution.unlabelled.evidence import WitnessFrequencies
from factorwise.apps.resolution.unlabelled.identity import Identity, identity_of
from factorwise.apps.resolution.unlabelled.witnesses import ValueWitness, witnesses_of
from factorwise.types import Ints

NO_EDGES: Mapping[str, tuple[float, ...]] = MappingProxyType({})


class Views(NamedTuple):
    """The identities and other columns of the records of a table.

    identity
        The identity of each record.
    witnesses, frequencies
        The evidence columns, and the frequencies of their values among identities.
    sources
        The source of each record; None if it is unknown.
    counts
        How often each record occurs in the table; None if equal records were not merged.
    """

    identity: Identity
    witnesses: list[ValueWitness]
    frequencies: list[WitnessFrequencies]
    sources: Ints | None
    counts: Ints | None = None

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self.identity.code)

    def random_pairs(self, count: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return random pairs of different rows."""
        n = self.n_records
        first = rng.integers(0, n, count)
        return first, (first + rng.integers(1, max(n, 2), count)) % n


def views_of(
    normal: NormalTable,
    about: About,
    columns: Sequence[str],
    sources: Ints | None,
    counts: Ints | None = None,
    edges: Mapping[str, tuple[float, ...]] = NO_EDGES,
) -> Views:
    """Prepare the records of a table for comparison.

    edges
        Thresholds of levels from a fitted model, for the columns where they depend on its training table.
    """
    identity, witnesses = identity_of(normal, about, sources), witnesses_of(normal, columns, edges)
    frequencies = [WitnessFrequencies(one, identity.code) for one in witnesses]
    return Views(identity, witnesses, frequencies, sources, counts)
