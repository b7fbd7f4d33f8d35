"""Files that are damaged, cut short or no such files at all: every reader answers or says what is wrong.

Anything but an answer or one of our errors is a failure, and so is a case that takes long. By default a few
hundred cases for each reader; ``FACTORWISE_FUZZ_CASES=20000`` makes it as many for each.
"""

import json
import os
import random
import re
import time

import numpy as np
import pytest

from factorwise.apps.coreference.documents import parse_documents
from factorwise.apps.resolution.schema.fields import read_fields
from factorwise.apps.tagging.features.templates import TemplateSet
from factorwise.apps.tagging.global_constraints import ConstraintSet
from factorwise.apps.tagging.model_file import read_tagger
from factorwise.errors import FactorwiseError
from factorwise.io.conll import read_columns
from factorwise.io.models.files import ModelFile, read_model, write_model
from factorwise.io.networks import parse_network
from factorwise.io.networks.uai import parse_evidence
from factorwise.io.ontologies.alignments import parse_alignment
from factorwise.io.ontologies.ontology import parse_jsonl, read_ontology
from factorwise.io.shard_files import ShardStore
from factorwise.io.tables.reading import read_table

CASES = int(os.environ.get("FACTORWISE_FUZZ_CASES", "300"))
LONGEST = 5.0  # seconds of processor time for one small file
MARKS = [bytes([code]) for code in b"\x00\"',\t\n{}[]<>&#=\xc3"]
WORDS = [b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"-1", b"1e999", b"NaN", b"null", b"\\u0000", b"__proto__"]
SCRAPS = [*MARKS, *WORDS, b"9" * 40, b"[" * 200, b"<!DOCTYPE x [<!ENTITY a 'b'>]>"]


NUMBERS = [
    b"-1",
    b"-0.5",
    b"0",
    b"2.5",
    b"nan",
    b"inf",
    b"1e999",
    b"1e-400",
    b"99999999999",
    b"4294967296",
    b"x",
]


def misstated(rng, content):
    """Return content with a few words or numbers dropped, doubled, exchanged or replaced by wrong ones."""
    words = re.split(rb"(\s+|[(){}\[\],;|<>])", content)
    places = [at for at, word in enumerate(words) if word.strip()]
    for _ in range(rng.randrange(1, 4)):
        at, other = rng.choice(places), rng.choice(places)
        match rng.randrange(4):
            case 0:
                words[at] = rng.choice(NUMBERS)
            case 1:
                words[at] = b""
            case 2:
                words[at] += b" " + words[at]
            case 3:
                words[at], words[other] = words[other], words[at]
    return b"".join(words)


def damaged(rng, content):
    """Return content with a few bytes changed, moved, doubled or cut away, or something else altogether."""
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(200))
    data = bytearray(content)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                data[at:at] = rng.choice(SCRAPS)
            case 1:
                del data[at : at + rng.randrange(1, 40)]
            case 2 if data:
                data[min(at, len(data) - 1)] = rng.randrange(256)
            case 3:
                data[at:at] = data[at : at + rng.randrange(1, 60)]
            case 4:
                del data[rng.randrange(len(data) + 1) :]
    return bytes(data)


TABLE = b'id,name,born,town\n1,Ann,1980-01-02,Rome\n2,"B, ob",,Oslo\n3,C\xc3\xa9,x,\n'
LINES = b'{"id": 1, "name": "Ann"}\n{"id": 2, "tags": ["x", 3]}\n'
CONLL = b"Ann NNP B-PER\nsings VBZ O\n\nBob NNP B-PER\n"
CONCEPTS = b'{"id": "a", "label": "Animal"}\n{"id": "b", "label": "Dog", "parents": ["a"]}\n'
RDF = b"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="http://www.w3.org/2002/07/owl#"
 xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"><owl:Class rdf:about="http://x#Dog"><rdfs:label>Dog</rdfs:label>
<rdfs:subClassOf rdf:resource="http://x#Animal"/></owl:Class></rdf:RDF>"""
MATCHES = b"a\tx\t=\nb\ty\t=\n"
DOCUMENT = (
    b'{"id": "d", "tokens": ["Ann", "sings", ".", "She", "rests"], "mentions":'
    b' [{"start": 0, "end": 1, "entity": "e"}, {"start": 3, "end": 4, "entity": "e"}]}\n'
)
FIELDS = b'[fields.name]\nkind = "name"\n\n[fields.born]\nkind = "date"\n'
RULES = b'[[constraint]]\nkind = "needs"\nlabels = ["A", "B"]\nweight = 0.5\n'
TEMPLATES = b"w[0]\nlower(w[-1])|w[0]\nprefix3(w[1])\n"
UAI = b"MARKOV\n3\n2 2 3\n2\n2 0 1\n3 0 1 2\n\n4\n1 0.5 0.5 2\n\n12\n1 2 3 4 5 6 7 8 9 1 2 3\n"
BIF = b"""network "rain" {}
variable rain { type discrete [ 2 ] { yes, no }; }
variable wet { type discrete [ 2 ] { yes, no }; }
probability ( rain ) { table 0.2, 0.8; }
probability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.05, 0.95; }
"""
XMLBIF = b"""<?xml version="1.0"?><BIF VERSION="0.3"><NETWORK><NAME>rain</NAME>
<VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>wet</NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
<DEFINITION><FOR>rain</FOR><TABLE>0.2 0.8</TABLE></DEFINITION>
<DEFINITION><FOR>wet</FOR><GIVEN>rain</GIVEN><TABLE>0.9 0.1 0.05 0.95</TABLE></DEFINITION></NETWORK></BIF>"""
LIBDAI = b"# two factors\n2\n\n1\n4\n2\n2\n0 0.5\n1 2\n\n2\n4 7\n2 3\n5\n0 1\n1 2\n2 3\n4 4\n5 0.5\n"


def model_file(folder):
    path = folder / "m.fw"
    arrays = {"weights": np.arange(6.0), "codes": np.arange(3, dtype=np.int32)}
    write_model(
        path, ModelFile(kind="tagger", metadata={"labels": ["A"], "n": [1, {"x": None}]}, arrays=arrays)
    )
    return path.read_bytes()


def manifest(folder):
    text = {
        "format": 1,
        "fingerprint": "f",
        "state": {"round": 1},
        "files": [["shard-00000-0123456789abcdef.parquet", 3, 9]],
    }
    return json.dumps(text).encode()


def from_file(reader, name):
    """Return a reader of content that puts it into a file first."""

    def read(folder, content):
        path = folder / name
        path.write_bytes(content)
        return reader(path)

    return read


def text_of(content):
    return content.decode("utf-8", "replace")


def stored(folder, content):
    (folder / "manifest-000001.json").write_bytes(content)
    return ShardStore(str(folder)).latest("f")


def network_of(syntax):
    return lambda folder, content: parse_network(content, syntax=syntax)


READERS = {
    "CSV": (TABLE, from_file(read_table, "t.csv")),
    "JSON lines": (LINES, from_file(read_table, "t.jsonl")),
    "columns": (CONLL, from_file(read_columns, "t.txt")),
    "concepts": (CONCEPTS, lambda folder, content: parse_jsonl(content)),
    "RDF": (RDF, from_file(read_ontology, "o.rdf")),
    "alignment": (MATCHES, lambda folder, content: parse_alignment(content)),
    "documents": (DOCUMENT, lambda folder, content: parse_documents(content)),
    "fields": (FIELDS, from_file(read_fields, "f.toml")),
    "constraints": (RULES, lambda folder, content: ConstraintSet.parse(text_of(content), ["A", "B"])),
    "templates": (TEMPLATES, lambda folder, content: TemplateSet.parse(text_of(content))),
    "UAI": (UAI, network_of("uai")),
    "UAI evidence": (
        b"1\n2 0 1 1 2\n",
        lambda folder, content: parse_evidence(text_of(content), np.full(3, 3)),
    ),
    "BIF": (BIF, network_of("bif")),
    "XMLBIF": (XMLBIF, network_of("xmlbif")),
    "libDAI": (LIBDAI, network_of("fg")),
    "model": (model_file, from_file(read_model, "m.fw")),
    "tagger": (model_file, from_file(read_tagger, "m.fw")),
    "manifest": (manifest, stored),
}

NETWORKS = ("UAI", "UAI evidence", "BIF", "XMLBIF", "libDAI")  # whose errors are one line each


@pytest.mark.parametrize("kind", READERS)
def test_readers_answer_or_say_what_is_wrong(kind, tmp_path):
    whole, read = READERS[kind]
    content = whole(tmp_path) if callable(whole) else whole
    rng = random.Random(kind)
    outcomes, lines = {"read": 0, "refused": 0, "refused without a word": 0}, 0
    for number in range(CASES):
        case = (misstated if kind in NETWORKS and rng.random() < 0.5 else damaged)(rng, content)
        begun = time.process_time()
        try:
            read(tmp_path, case)
            outcomes["read"] += 1
        except FactorwiseError as error:
            outcomes["refused" if str(error).strip() else "refused without a word"] += 1
            lines = max(lines, len(str(error).splitlines()))
        except Exception as error:
            raise AssertionError(f"case {number} of {kind} raised {error!r}: {case!r}") from error
        assert time.process_time() - begun < LONGEST, f"case {number} of {kind} took long: {case!r}"
    assert outcomes["refused without a word"] == 0
    assert lines == 1 or kind not in NETWORKS
    assert outcomes["refused"] > 0


@pytest.mark.parametrize("kind", [kind for kind in READERS if kind not in ("tagger",)])
def test_what_they_are_damaged_from_is_read(kind, tmp_path):
    whole, read = READERS[kind]
    read(tmp_path, whole(tmp_path) if callable(whole) else whole)
