"""Harder copies of ontologies."""

import numpy as np
import pytest

from factorwise.apps.alignment.copies import CopyConfig, harder_copy
from factorwise.errors import InvalidArgumentError
from factorwise.io.ontologies import Concept, Ontology

SIZE = 60


def pair():
    """Two ontologies of one chain each, with the same things on both sides."""
    sides = []
    for side in "ab":
        concepts = [
            Concept(
                f"{side}{i}",
                f"label {i}",
                ("other",),
                (f"{side}{i - 1}",) if i else (),
                instances=((f"thing {i}", side), (f"{side} own {i}", "")),
            )
            for i in range(SIZE)
        ]
        sides.append(Ontology(tuple(concepts)))
    return sides[0], sides[1], [(f"a{i}", f"b{i}") for i in range(SIZE)]


def copy(seed=0, **kwargs):
    config = CopyConfig(**({"partners": 0, "names": 0, "things": 0} | kwargs))
    return harder_copy(*pair(), np.random.default_rng(seed), config)


def test_a_copy_that_loses_nothing_is_the_same():
    left, right, matches = pair()
    found = copy()
    assert (found[0].concepts, found[1].concepts, found[2]) == (left.concepts, right.concepts, matches)


def test_partners_go_from_one_side_and_their_matches_with_them():
    left, right, matches = copy(partners=0.5)
    assert 0 < len(matches) < SIZE
    assert len(left) + len(right) == SIZE + len(matches)
    assert min(len(left), len(right)) < SIZE
    assert all(a in left.by_id and b in right.by_id for a, b in matches)


def test_children_of_what_is_taken_out_go_to_its_parents():
    left, right, _ = copy(partners=0.5)
    for ontology in (left, right):
        assert ontology.outside == ()
        for above, below in zip(ontology.concepts, ontology.concepts[1:], strict=False):
            assert below.parents == (above.id,)


def test_names_go_from_one_side():
    left, right, matches = copy(names=1)
    nameless = [(not left.by_id[a].label, not right.by_id[b].label) for a, b in matches]
    assert set(nameless) == {(True, False), (False, True)}
    assert all(bool(c.label) == bool(c.synonyms) for c in (*left.concepts, *right.concepts))


def test_shared_things_stay_on_one_side_and_others_on_theirs():
    left, right, matches = copy(things=1)
    for a, b in matches:
        ours, theirs = ({name for name, _ in o.by_id[i].instances} for o, i in ((left, a), (right, b)))
        assert not ours & theirs
        assert {f"thing {a[1:]}", f"a own {a[1:]}", f"b own {a[1:]}"} == ours | theirs


def test_the_same_generator_gives_the_same_copy():
    first, second, other = (copy(seed, partners=0.3, names=0.3, things=0.5) for seed in (3, 3, 4))
    assert first[0].concepts == second[0].concepts
    assert first[2] == second[2] != other[2]


def test_an_ontology_is_never_emptied():
    left, right, _ = copy(partners=1)
    assert min(len(left), len(right)) > 0


@pytest.mark.parametrize("name", ["partners", "names", "things"])
def test_probabilities_are_checked(name):
    with pytest.raises(InvalidArgumentError, match=f"{name} must be a probability"):
        CopyConfig(**{name: 1.5})
