"""Alignment without known matches, whole ontologies, and why two concepts match."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import log_expit

from factorwise.apps.alignment.concepts import ConceptTable
from factorwise.apps.alignment.estimator import OntologyAligner
from factorwise.apps.alignment.features import pair_features
from factorwise.apps.alignment.general import fit_logistic, general_weights
from factorwise.io.ontologies.ontology import Concept, Ontology
from factorwise.io.ontologies.rdf import parse_rdf
from factorwise.metrics.alignment import score_matches

PREFIXES = """@prefix : <http://x#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""


def vocabulary(classes: str, objects: str, data: str) -> Ontology:
    """Make an ontology of ``Class<Parent`` and ``property:Domain>Range``, all separated by spaces."""
    lines = []
    for entry in classes.split():
        name, _, parent = entry.partition("<")
        lines.append(f":{name} a owl:Class" + (f" ; rdfs:subClassOf :{parent} ." if parent else " ."))
    for kind, entries in (("ObjectProperty", objects), ("DatatypeProperty", data)):
        for entry in entries.split():
            name, _, ends = entry.partition(":")
            domain, _, target = ends.partition(">")
            ending = f" ; rdfs:range :{target} ." if target else " ."
            lines.append(f":{name} a owl:{kind} ; rdfs:domain :{domain}{ending}")
    return parse_rdf((PREFIXES + "\n".join(lines)).encode(), name="v.ttl")


#: Parts of public vocabularies by the names of their terms: FOAF and schema.org, BIBO and SPAR.
PEOPLE = (
    vocabulary(
        "Agent Person<Agent Organization<Agent Group<Agent Document Image<Document Project",
        "knows:Person>Person maker:Document>Agent member:Group>Agent depiction:Agent>Image"
        " currentProject:Person>Project",
        "familyName:Person givenName:Person birthday:Agent title:Document",
    ),
    vocabulary(
        "Thing Person<Thing Organization<Thing CreativeWork<Thing ImageObject<CreativeWork Place<Thing"
        " ResearchProject<Organization",
        "knows:Person>Person creator:CreativeWork>Person member:Organization>Person image:Thing>ImageObject"
        " birthPlace:Person>Place",
        "familyName:Person givenName:Person birthDate:Person",
    ),
    "Person-Person Organization-Organization Image-ImageObject knows-knows member-member"
    " familyName-familyName givenName-givenName Project-ResearchProject birthday-birthDate",
)
WRITINGS = (
    vocabulary(
        "Document Book<Document Article<Document Journal<Document Issue<Document Thesis<Document Conference"
        " Event",
        "editor:Document>Agent presentedAt:Document>Event reproducedIn:Document>Document",
        "volume:Document pageStart:Document pageEnd:Document issn:Journal isbn:Book numPages:Document",
    ),
    vocabulary(
        "Expression Book<Expression JournalArticle<Expression Journal<Expression JournalIssue<Expression"
        " DoctoralThesis<Expression Conference",
        "hasEditor:Expression>Agent isPresentedAt:Expression>Conference",
        "hasVolume:Expression hasStartPage:Expression hasEndPage:Expression hasISSN:Journal hasISBN:Book",
    ),
    "Book-Book Article-JournalArticle Journal-Journal Issue-JournalIssue Thesis-DoctoralThesis"
    " Conference-Conference editor-hasEditor presentedAt-isPresentedAt volume-hasVolume"
    " pageStart-hasStartPage pageEnd-hasEndPage issn-hasISSN isbn-hasISBN",
)


def named(pairs: str) -> set[tuple[str, str]]:
    return {tuple(f"http://x#{one}" for one in pair.split("-")) for pair in pairs.split()}


@pytest.mark.parametrize(("left", "right", "reference", "least"), [(*PEOPLE, 0.8), (*WRITINGS, 0.9)])
def test_whole_vocabularies_are_aligned_without_known_matches(left, right, reference, least):
    matches = OntologyAligner().fit_unlabelled(left, right).predict(left, right)
    for match in matches:
        assert left.by_id[match.left].is_property == right.by_id[match.right].is_property
        assert 0.5 < match.confidence <= 1.0
    assert score_matches(named(reference), [match[:2] for match in matches]).f1 >= least


#: Two ontologies in the style of OAEI's conference track: definitions, a circle, inverses, dangling ids.
CONFERENCES = (
    """:Person a owl:Class . :Author a owl:Class ; owl:equivalentClass [ a owl:Class ; owl:intersectionOf
    (:Person [ a owl:Restriction ; owl:onProperty :writes ; owl:someValuesFrom :Paper ]) ] .
    :Paper a owl:Class ; rdfs:subClassOf :Contribution ; owl:disjointWith :Person .
    :Contribution a owl:Class ; owl:equivalentClass :Written_contribution .
    :Written_contribution a owl:Class . :Committee a owl:Class ; rdfs:subClassOf <http://other#Group> .
    :writes a owl:ObjectProperty ; rdfs:domain :Author ; rdfs:range :Paper .
    :writtenBy a owl:ObjectProperty ; owl:inverseOf :writes .
    :title a owl:DatatypeProperty ; rdfs:domain :Paper .
    :chair a :Committee ; rdfs:label "Programme Chairs" .
    <http://o> owl:imports <http://not.there/o.owl> .""",
    """:Human a owl:Class ; rdfs:label "person" . :Author a owl:Class ; rdfs:subClassOf :Human .
    :Paper a owl:Class ; rdfs:subClassOf :Document . :Document a owl:Class ; owl:disjointWith :Human .
    :ProgramCommittee a owl:Class ; rdfs:label "committee" .
    :hasTitle a owl:DatatypeProperty, owl:FunctionalProperty ; rdfs:domain :Paper .
    :isWrittenBy a owl:ObjectProperty ; rdfs:domain :Paper ; rdfs:range :Author .
    :write_paper a owl:ObjectProperty ; rdfs:domain :Author ; rdfs:range :Paper .
    :pc a :ProgramCommittee ; rdfs:label "program chairs" .""",
)


def test_conference_ontologies_are_aligned_whole_and_individuals_on_request():
    sides = [parse_rdf((PREFIXES + text).encode(), name="v.ttl", individuals=True) for text in CONFERENCES]
    left = sides[0]
    assert any("imports are not fetched" in note for note in left.notes)
    assert any("circle" in note for note in left.notes)
    assert left.outside == ("http://other#Group",)
    assert left.by_id["http://x#Author"].parents == ("http://x#Person",)
    found = {match[:2] for match in OntologyAligner().fit_unlabelled(*sides).predict(*sides)}
    assert found >= named("Person-Human Author-Author Paper-Paper Committee-ProgramCommittee")
    assert found >= named("title-hasTitle writtenBy-isWrittenBy writes-write_paper chair-pc")
    for a, b in found:
        kinds = [side.by_id[one].kind for side, one in zip(sides, (a, b), strict=True)]
        assert kinds[0] == kinds[1]


def test_one_model_is_learned_from_several_pairs(tmp_path):
    aligner = OntologyAligner(passes=2, steps=20)
    aligner.fit_pairs([(*PEOPLE[:2], named(PEOPLE[2])), (*WRITINGS[:2], named(WRITINGS[2]))])
    assert aligner.score(*WRITINGS[:2], named(WRITINGS[2])) >= 0.9
    aligner.save(tmp_path / "m.fw")
    assert OntologyAligner.load(tmp_path / "m.fw").predict(*PEOPLE[:2]) == aligner.predict(*PEOPLE[:2])


def test_domains_speak_for_properties_and_properties_for_classes():
    table = ConceptTable.of(PEOPLE[0])
    knows, person = table.number["http://x#knows"], table.number["http://x#Person"]
    assert table.wholes[knows] == (person,)
    assert knows in table.parts[person]


def test_the_weights_that_come_with_the_package_are_those_of_todays_features():
    table = ConceptTable.of(Ontology((Concept("a", "cat"),)))
    names = pair_features(table, table, np.array([[0, 0]])).names
    assert list(general_weights()) == [*names, "any match"]


def test_reasons_add_up_to_the_score():
    aligner = OntologyAligner().fit_unlabelled(*WRITINGS[:2])
    explained = aligner.explain(*WRITINGS[:2], "http://x#editor", "http://x#hasEditor")
    score = sum(weight for _, weight in explained.reasons)
    assert explained.is_match
    assert explained.probability == pytest.approx(1 / (1 + np.exp(-score)))
    assert all(match.confidence < explained.probability for match in explained.rivals)
    strange = aligner.explain(*WRITINGS[:2], "http://x#Book", "http://x#hasEditor")
    assert (strange.probability, strange.is_match) == (0.0, False)


def test_the_regression_is_at_its_optimum_and_stays_at_its_center_without_data():
    rng = np.random.default_rng(3)
    features, center = rng.integers(0, 2, (60, 4)).astype(float), rng.normal(size=4)
    true = rng.random(60) < 0.3
    weights = fit_logistic(features, true, center, 2.0)

    def loss(w):
        return -log_expit(np.where(true, 1, -1) * (features @ w)).sum() + ((w - center) ** 2).sum()

    assert check_grad(loss, lambda w: np.zeros(4), weights) < 1e-3
    np.testing.assert_allclose(fit_logistic(features[:0], true[:0], center, 2.0), center)
