"""Reading concepts from JSON lines and RDF."""

import builtins
import json

import pytest

from factorwise.errors import DataFileError, MissingExtraError
from factorwise.io.ontologies.ontology import (
    Concept,
    Ontology,
    is_generated,
    parse_jsonl,
    read_ontology,
    write_jsonl,
)
from factorwise.io.ontologies.rdf import parse_rdf


def jsonl(*records):
    return "\n".join(json.dumps(record) for record in records).encode()


def test_a_line_holds_a_concept_with_all_that_is_known_of_it():
    record = {
        "id": "c1",
        "kind": "class",
        "label": "Latin",
        "synonyms": ["Latina"],
        "parents": ["c0"],
        "part_of": ["classics"],
        "comment": "the language",
        "instances": [["Ovid", "poems"], ["Cato"], "Livy"],
        "path": ["ignored"],
    }
    (concept,) = parse_jsonl(jsonl(record)).concepts
    assert concept == Concept(
        "c1",
        "Latin",
        ("Latina",),
        ("c0",),
        ("classics",),
        "the language",
        (("Ovid", "poems"), ("Cato", ""), ("Livy", "")),
    )


def test_an_id_is_enough_and_serves_as_label():
    assert parse_jsonl(b'{"id": "Greek"}').concepts == (Concept("Greek", "Greek"),)


def test_individuals_are_passed_over_and_blank_lines_and_a_byte_order_mark_do_no_harm():
    content = b"\xef\xbb\xbf" + jsonl({"id": "p", "kind": "individual"}, {"id": "a"}) + b"\r\n\n  \n"
    assert [concept.id for concept in parse_jsonl(content).concepts] == ["a"]


def test_an_empty_label_gives_way_to_the_id():
    assert parse_jsonl(b'{"id": "a", "label": null}').concepts[0].label == "a"


@pytest.mark.parametrize("name", ["genid6381", "_:genid7", "node1a2", "http://example.org/x#y", "bnode_12"])
def test_synonyms_that_are_ids_of_nodes_are_dropped(name):
    assert is_generated(name)
    assert parse_jsonl(jsonl({"id": "a", "synonyms": [name, "heart"]})).concepts[0].synonyms == ("heart",)


@pytest.mark.parametrize("name", ["node", "lymph node 2", "autosome", "nodule", "T12"])
def test_names_that_only_begin_like_ids_are_kept(name):
    assert not is_generated(name)


def test_parents_outside_the_file_are_kept_and_listed():
    ontology = parse_jsonl(
        jsonl({"id": "a", "parents": ["top"], "part_of": ["whole"]}, {"id": "b", "parents": ["a"]})
    )
    assert ontology.concepts[0].parents == ("top",)
    assert ontology.outside == ("top", "whole")


@pytest.mark.parametrize(
    ("content", "place", "remedy"),
    [
        (b'{"label": "x"}', "f.jsonl:1", 'Write {"id"'),
        (b'{"id": ""}', "f.jsonl:1", "at least one letter"),
        (b'{"id": 7}', "its id is 7", 'Write {"id"'),
        (b'{"id": "a"}\n{"id": "b"}\n{"id": "a"}', "f.jsonl:3", "already used on line 1"),
        (b'{"id": "a"}\nnot json', "f.jsonl:2", "one object on each line"),
        (b'{"id": "a"}\n["a"]', "f.jsonl:2", "one object on each line"),
        (b'{"id": "a"}\n{"id": "\xe4"}', "f.jsonl:2: byte 0xe4", "Convert the file to UTF-8"),
        (b"", "f.jsonl: no concepts", "right file"),
        (b"\n \n", "f.jsonl: no concepts", "right file"),
        (b'{"id": "a", "parents": "b"}', "'parents' must be a list of strings", '"parents": ["'),
        (b'{"id": "a", "label": ["b"]}', "f.jsonl:1: 'label'", "must be a string"),
        (b'{"id": "a", "instances": [["x", "y", "z"]]}', "f.jsonl:1", "[name, description]"),
        (b'{"id": "a", "instances": "x"}', "f.jsonl:1", "[name, description]"),
        (b'{"id": "a", "kind": "thing"}', "no concepts", "lines of the kind 'thing' are not read: 1"),
        (b"[" * 100_000, "f.jsonl:1", "one object on each line"),
    ],
)
def test_bad_lines_are_refused_with_place_and_remedy(content, place, remedy):
    with pytest.raises(DataFileError) as caught:
        parse_jsonl(content, name="f.jsonl")
    assert place in str(caught.value)
    assert remedy in str(caught.value)


def test_concepts_of_a_circle_are_equivalent_and_share_their_parents():
    content = jsonl(
        {"id": "r"},
        {"id": "a", "parents": ["r", "c"]},
        {"id": "b", "parents": ["a"]},
        {"id": "c", "parents": ["b", "s"]},
        {"id": "d", "parents": ["c"]},
        {"id": "s", "parents": ["s"]},
    )
    ontology = parse_jsonl(content, name="f")
    assert [concept.parents for concept in ontology.concepts[:5]] == [(), *[("r", "s")] * 3, ("c",)]
    (note,) = ontology.notes
    assert "runs in 1 circle, which says that 'a', 'c', 'b' are equivalent" in note


def test_properties_are_read_and_written_with_domain_and_range(tmp_path):
    lines = jsonl(
        {"id": "A"},
        {"id": "p", "kind": "data_property", "domain": ["A"], "range": ["text"]},
        {"id": "q", "kind": "object_property"},
        {"id": "x", "kind": "widget"},
    )
    ontology = parse_jsonl(lines)
    assert [concept.kind for concept in ontology.concepts] == [
        "class",
        "datatype_property",
        "object_property",
    ]
    assert ontology.concepts[1].domain == ("A",)
    assert ontology.outside == ("text",)
    assert "of the kind 'widget' are not read: 1. Kinds that are read" in ontology.notes[0]
    write_jsonl(tmp_path / "o.jsonl", ontology)
    assert read_ontology(tmp_path / "o.jsonl").concepts == ontology.concepts


def test_individuals_are_read_on_request(tmp_path):
    lines = jsonl({"id": "City"}, {"id": "Rome", "kind": "individual", "parents": ["City"]})
    assert len(parse_jsonl(lines)) == 1
    ontology = parse_jsonl(lines, individuals=True)
    assert ontology.by_id["Rome"].kind == "individual"
    write_jsonl(tmp_path / "o.jsonl", ontology)
    assert read_ontology(tmp_path / "o.jsonl", individuals=True).concepts == ontology.concepts
    (tmp_path / "o.obo").write_text("[Term]\nid: X:1\n\n[Instance]\nid: X:2\ninstance_of: X:1\n")
    assert len(read_ontology(tmp_path / "o.obo")) == 1
    assert read_ontology(tmp_path / "o.obo", individuals=True).by_id["X:2"].parents == ("X:1",)


def test_obo_is_read(tmp_path):
    text = """format-version: 1.2
import: http://x.org/other.obo

[Term]
id: A:1
name: heart
synonym: "cor \\"the pump\\"" EXACT []
def: "It beats." [someone]
is_a: A:2 ! organ
relationship: part_of A:3 ! body

[Term]
id: A:2
name: organ
disjoint_from: A:3 ! body

[Term]
id: A:9
is_obsolete: true

[Typedef]
id: beats_in
name: beats in
domain: A:1
range: A:3
"""
    (tmp_path / "o.obo").write_text(text)
    ontology = read_ontology(tmp_path / "o.obo")
    heart = Concept("A:1", "heart", ('cor "the pump"',), ("A:2",), ("A:3",), "It beats.")
    beats_in = Concept("beats_in", "beats in", kind="object_property", domain=("A:1",), range=("A:3",))
    assert ontology.concepts == (heart, Concept("A:2", "organ", disjoint=("A:3",)), beats_in)
    assert "imports are not fetched (http://x.org/other.obo)" in ontology.notes[0]
    (tmp_path / "o.obo").write_text("[Term]\nid A1\n")
    with pytest.raises(DataFileError, match=r"o.obo:2: 'id A1' is neither 'tag: value'"):
        read_ontology(tmp_path / "o.obo")


def test_what_one_of_a_circle_is_disjoint_from_all_are():
    lines = [
        {"id": "a", "parents": ["b"], "disjoint": ["c"]},
        {"id": "b", "parents": ["a"]},
        {"id": "c", "disjoint": ["elsewhere"]},
    ]
    ontology = parse_jsonl(jsonl(*lines))
    assert [concept.disjoint for concept in ontology.concepts] == [("c",), ("c",), ("elsewhere",)]
    assert ontology.outside == ("elsewhere",)


def test_a_diamond_is_no_circle():
    parse_jsonl(
        jsonl(
            {"id": "d", "parents": ["b", "c"]},
            {"id": "b", "parents": ["a"]},
            {"id": "c", "parents": ["a"]},
            {"id": "a"},
        )
    )


def test_a_very_deep_hierarchy_is_read():
    deep = jsonl(*({"id": str(i), "parents": [str(i + 1)]} for i in range(20_000)))
    assert len(parse_jsonl(deep)) == 20_000


def test_concepts_built_by_hand_are_checked_too():
    with pytest.raises(DataFileError, match="'a' is there twice"):
        Ontology((Concept("a", "x"), Concept("b", "y"), Concept("a", "z")))
    with pytest.raises(DataFileError, match="no concepts"):
        Ontology(())


def test_what_is_written_is_read_back(tmp_path):
    first = Ontology(
        (Concept("a", "Äpfel", ("x",), ("b",), ("c",), "text", (("n", "d"), ("m", ""))), Concept("b", "b"))
    )
    write_jsonl(tmp_path / "o.jsonl", first)
    assert read_ontology(tmp_path / "o.jsonl").concepts == first.concepts


def test_a_missing_file_and_an_unknown_suffix_say_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="Check the path"):
        read_ontology(tmp_path / "none.jsonl")
    (tmp_path / "o.txt").write_text('{"id": "a"}')
    with pytest.raises(DataFileError, match="Give syntax='jsonl'"):
        read_ontology(tmp_path / "o.txt")
    assert len(read_ontology(tmp_path / "o.txt", syntax="jsonl")) == 1


def test_without_rdflib_reading_rdf_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("factorwise.io.ontologies.rdf.import_module", builtins.__import__)
    monkeypatch.setitem(__import__("sys").modules, "rdflib", None)
    (tmp_path / "o.ttl").write_text("")
    with pytest.raises(MissingExtraError, match=r"pip install 'factorwise\[ontologies\]'"):
        read_ontology(tmp_path / "o.ttl")


PREFIXES = """
@prefix : <http://x.org/o#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix obo: <http://www.geneontology.org/formats/oboInOwl#> .
"""
TURTLE = (
    PREFIXES
    + """
:partOf a owl:ObjectProperty .
:organ a owl:Class ; rdfs:label "organ" ; rdfs:subClassOf owl:Thing .
:heart a owl:Class ; rdfs:label "heart"@en, "Herz"@de ; rdfs:subClassOf :organ, :heart ;
  rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :partOf ; owl:someValuesFrom :body ] ;
  obo:hasRelatedSynonym :genid7 ; obo:hasExactSynonym "cor" ; rdfs:comment "it beats" .
:genid7 rdfs:label "ticker" .
:lung a owl:Class ; rdfs:subClassOf :organ ; :partOf :body .
:old a owl:Class ; owl:deprecated true .
[] a owl:Class ; rdfs:label "nameless" .
:mine a :heart ; rdfs:label "my heart" ; rdfs:comment "an instance" .
:yours a :heart .
"""
)
XML = b"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="http://www.w3.org/2002/07/owl#"
  xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#" xml:base="http://x.org/o">
  <owl:ObjectProperty rdf:about="#UNDEFINED_part_of"><rdfs:label>Part of</rdfs:label></owl:ObjectProperty>
  <owl:Class rdf:about="#body"><rdfs:label>body</rdfs:label></owl:Class>
  <owl:Class rdf:about="#lip"><rdfs:label>Upper_Lip</rdfs:label><rdfs:subClassOf rdf:resource="#part"/>
    <rdfs:subClassOf><owl:Restriction><owl:onProperty rdf:resource="#UNDEFINED_part_of"/>
      <owl:someValuesFrom rdf:resource="#body"/></owl:Restriction></rdfs:subClassOf></owl:Class>
</rdf:RDF>"""


@pytest.fixture
def rdflib():
    return pytest.importorskip("rdflib")


@pytest.mark.usefixtures("rdflib")
class TestRdf:
    def test_classes_are_read_from_turtle_with_synonyms_behind_nodes_and_wholes_in_restrictions(
        self, tmp_path
    ):
        (tmp_path / "o.ttl").write_text(TURTLE)
        ontology = read_ontology(tmp_path / "o.ttl")
        name = "http://x.org/o#"
        classes = [concept.id for concept in ontology.concepts if not concept.is_property]
        assert classes == [name + "heart", name + "lung", name + "organ"]
        heart = ontology.by_id[name + "heart"]
        assert heart.parents == (name + "organ",)
        assert heart.part_of == (name + "body",)
        assert set(heart.synonyms) | {heart.label} == {"heart", "Herz", "cor", "ticker"}
        assert heart.comment == "it beats"
        assert heart.instances == (("my heart", "an instance"), ("yours", ""))
        assert ontology.by_id[name + "lung"].label == "lung"
        assert ontology.by_id[name + "lung"].part_of == (name + "body",)
        assert ontology.outside == (name + "body",)

    @pytest.mark.parametrize(
        ("language", "label", "other"), [("de", "Herz", "heart"), ("en", "heart", "Herz")]
    )
    def test_a_language_chooses_the_label_and_leaves_out_the_others(self, language, label, other):
        heart = parse_rdf(TURTLE.encode(), name="o.ttl", language=language).concepts[0]
        assert heart.label == label
        assert other not in heart.synonyms
        assert "cor" in heart.synonyms

    def test_a_language_that_a_concept_lacks_falls_back_to_what_there_is(self):
        assert parse_rdf(TURTLE.encode(), name="o.ttl", language="fr").concepts[0].label in {"heart", "Herz"}

    def test_owl_in_xml_is_read_with_a_part_of_that_only_its_label_names(self):
        lip = parse_rdf(XML, name="o.owl").by_id["http://x.org/o#lip"]
        assert lip == Concept(
            "http://x.org/o#lip",
            "Upper_Lip",
            parents=("http://x.org/o#part",),
            part_of=("http://x.org/o#body",),
        )

    def test_disjoint_classes_are_read_however_they_are_stated(self):
        text = (
            PREFIXES
            + """
:a a owl:Class ; owl:disjointWith :b . :b a owl:Class . :c a owl:Class ; owl:complementOf :a .
:d a owl:Class ; owl:disjointUnionOf ( :e :f ) . :e a owl:Class . :f a owl:Class .
:g a owl:Class ; owl:disjointWith [ a owl:Class ] .
[] a owl:AllDisjointClasses ; owl:members ( :a :e :g ) .
"""
        )
        ontology = parse_rdf(text.encode(), name="o.ttl")
        apart = {c.id[-1]: "".join(other[-1] for other in c.disjoint) for c in ontology.concepts}
        assert apart == {"a": "beg", "b": "", "c": "a", "d": "", "e": "afg", "f": "e", "g": "ae"}

    def test_skos_is_read_in_both_directions(self):
        text = (
            PREFIXES
            + """
            :a a skos:Concept ; skos:prefLabel "A" ; skos:altLabel "first" ; skos:narrower :b .
            :b a skos:Concept ; skos:prefLabel "B" .
            :c a skos:Concept ; skos:broader :b ; skos:definition "third" ."""
        )
        a, b, c = parse_rdf(text.encode(), syntax="turtle").concepts
        assert (a.label, a.synonyms, b.parents, c.parents) == ("A", ("first",), (a.id,), (b.id,))
        assert (c.label, c.comment) == ("c", "third")

    def test_a_circle_of_classes_is_no_error_and_imports_are_not_fetched(self):
        text = PREFIXES + ":a a owl:Class ; rdfs:subClassOf :b . :b a owl:Class ; rdfs:subClassOf :a ."
        ontology = parse_rdf(f"{text} <http://o> owl:imports <http://p> .".encode(), name="o.ttl")
        assert [concept.parents for concept in ontology.concepts] == [(), ()]
        assert "imports are not fetched (http://p)" in ontology.notes[0]
        assert "runs in 1 circle" in ontology.notes[1]

    def test_definitions_by_equivalence_and_intersection_give_parents_and_circles(self):
        text = PREFIXES + (
            ":a a owl:Class . :b a owl:Class ; owl:equivalentClass :c . :c a owl:Class ; rdfs:subClassOf :a ."
            " :d a owl:Class ; owl:equivalentClass [ a owl:Class ; owl:intersectionOf (:a [ a owl:Restriction"
            " ; owl:onProperty :p ; owl:someValuesFrom :b ]) ] . :p a owl:ObjectProperty ; rdfs:domain :a ;"
            " rdfs:range :b . :q a owl:SymmetricProperty ; owl:inverseOf :p ."
        )
        ontology = parse_rdf(text.encode(), name="o.ttl")
        parents = {one.id[-1]: [above[-1] for above in one.parents] for one in ontology.concepts}
        assert parents == {"a": [], "b": ["a"], "c": ["a"], "d": ["a"], "p": [], "q": []}
        assert "runs in 1 circle" in ontology.notes[0]
        q = ontology.concepts[-1]
        assert (q.kind, q.domain[0][-1], q.range[0][-1]) == ("object_property", "b", "a")

    def test_individuals_are_read_on_request(self):
        text = PREFIXES + (
            ":City a owl:Class . :Rome a :City ; rdfs:label 'Roma' . [] a :City ."
            " :Nile a owl:NamedIndividual ."
        )
        assert len(parse_rdf(text.encode(), name="o.ttl")) == 1
        city, nile, rome = parse_rdf(text.encode(), name="o.ttl", individuals=True).concepts
        assert (city.kind, nile.kind, rome.kind) == ("class", "individual", "individual")
        assert (rome.label, rome.parents, nile.parents) == ("Roma", (city.id,), ())
        assert not rome.is_property

    def test_properties_have_kinds_domains_of_unions_and_ranges(self):
        text = PREFIXES + (
            ":a a owl:Class . :b a owl:Class . :p a owl:ObjectProperty ; rdfs:range :b ;"
            " rdfs:domain [ a owl:Class ; owl:unionOf (:a :b) ] . :q a owl:DatatypeProperty ;"
            " rdfs:subPropertyOf :p ; rdfs:range <http://www.w3.org/2001/XMLSchema#string> ."
        )
        p, q = parse_rdf(text.encode(), name="o.ttl").concepts[2:]
        assert (p.kind, q.kind) == ("object_property", "datatype_property")
        assert [one.rpartition("#")[2] for one in (*p.domain, *p.range, *q.parents)] == ["a", "b", "b", "p"]
        assert q.range == ()

    @pytest.mark.parametrize(
        ("content", "name", "place"),
        [
            (b"<rdf:RDF>\n<oops", "f.owl", "f.owl:"),
            (PREFIXES.encode() + b":a a owl:Class ;;; oops", "f.ttl", "f.ttl:"),
            (b"\xff\xfe\x00nonsense", "f.ttl", "f.ttl"),
            (b"<a> <b>", "f.nt", "f.nt"),
        ],
    )
    def test_what_is_not_rdf_is_refused_with_file_and_remedy(self, content, name, place):
        with pytest.raises(DataFileError) as caught:
            parse_rdf(content, name=name)
        assert str(caught.value).startswith(place)
        assert "Repair the file, or give the syntax that it has" in str(caught.value)

    def test_an_unknown_syntax_is_refused(self):
        with pytest.raises(DataFileError, match="no reader for the format 'word'"):
            parse_rdf(b"", syntax="word")

    @pytest.mark.parametrize("content", ["", ":a rdfs:label 'a' ."])
    def test_a_graph_without_concepts_is_refused(self, content):
        with pytest.raises(DataFileError, match="Declare concepts as owl:Class"):
            parse_rdf((PREFIXES + content).encode(), name="o.ttl")
