"""Bad input of every command: the message, exit code 2, and no file that was not there or is another now."""

import json
import random
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from command_lines import (
    KINDS,
    LINES,
    MADE,
    MODELS,
    UNTRIED,
    command_of,
    is_read,
    is_written,
    leaves,
    whole_folder,
)
from factorwise.cli import files
from factorwise.cli.output import printable

PICTURE = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89"
JUNK = random.Random(0).randbytes(400)
LONG = "l" * 300
NOT_A_MODEL = "not a factorwise model file, but something else. Give the path of a model file, NAME.fw."
DAMAGED = "The file is damaged: restore it from a copy, or make the model again."
ZIP = "is a zip archive, as model files and workbooks of spreadsheets are, where"

#: What is said of a file of each kind that is not what it should be.
SAID = {
    "table": {
        "missing": "there is no file 'bad.csv'. Check the path.",
        "empty": "bad.csv: the file is empty. A table with at least one record is needed.",
        "picture": "bad.csv: is a picture, where a table in text, Parquet or DuckDB is needed.",
        "model": f"bad.csv: {ZIP} a table",
        "junk": "bad.csv, line 1: the bytes cd are not text in utf-8.",
        "latin": "the bytes e4 are not text in utf-8.",
        "folder": "bad.csv is a folder. Give the file in it",
    },
    "columns": {
        "missing": "bad.txt: there is no such file. Check the path and the current folder.",
        "empty": "bad.txt: 0 lines, but no tokens. Check that this is the right file",
        "picture": "bad.txt: is a picture, where a text with a token and its columns on each line is needed.",
        "model": f"bad.txt: {ZIP} a text with a token",
        "junk": "bad.txt, line 1: byte 0xcd is not utf-8.",
        "latin": "bad.txt, line 1: byte 0xe4 is not utf-8. If the file has another encoding, name it,",
        "folder": "bad.txt: cannot be read: Is a directory.",
    },
    "text": {
        "missing": "bad.txt: cannot be read: No such file or directory. Check the path",
        "empty": "bad.txt: there are no templates: give one a line, such as 'w[0]'",
        "picture": "bad.txt: not text in UTF-8",
        "latin": "bad.txt: not text in UTF-8 (invalid continuation byte). Save it in UTF-8.",
    },
    "words": {
        "missing": "bad.txt: cannot be read: No such file or directory. Check the path",
        "empty": "only 0 words occur 1 times or more in 0 words: give more text, or a smaller min_count.",
        "picture": "bad.txt: not text in UTF-8",
    },
    "references": {
        "missing": "bad.txt: cannot be read: No such file or directory. Check the path",
        "empty": "bad.txt: has no references. Give a text with one reference per line.",
        "picture": "bad.txt: not text in utf-8",
        "latin": "bad.txt: not text in utf-8",
        "folder": "bad.txt: cannot be read: Is a directory.",
    },
    "fields": {
        "missing": "there is no file 'bad.toml' with kinds of fields. Check the path.",
        "picture": "bad.toml is not TOML",
        "latin": "bad.toml is not TOML: 'utf-8' codec can't decode byte 0xe4",
        "folder": "bad.toml: cannot be read: Is a directory.",
    },
    "documents": {
        "missing": "bad.jsonl: there is no such file. Check the path and the current folder.",
        "empty": "bad.jsonl: holds no document. Give one JSON object a line with 'tokens' and 'mentions'.",
        "picture": "bad.jsonl: is a picture, where a text with a JSON object on each line is needed.",
        "model": f"bad.jsonl: {ZIP} a text with a JSON object",
        "junk": "bad.jsonl, line 1: byte 1 is not UTF-8 text. Save the file as UTF-8.",
        "latin": "bad.jsonl, line 1: byte",
        "folder": "bad.jsonl: cannot be read: Is a directory.",
    },
    "concepts": {
        "missing": "bad.jsonl: there is no such file. Check the path and the current folder.",
        "empty": "bad.jsonl: no concepts. Check that this is the right file: an ontology has at least one.",
        "picture": "bad.jsonl: is a picture, where a text with a JSON object on each line is needed.",
        "model": f"bad.jsonl: {ZIP} a text with a JSON object",
        "junk": "bad.jsonl:1: byte 0xcd is not UTF-8 text. Convert the file to UTF-8.",
        "latin": "bad.jsonl:1: byte 0xe4 is not UTF-8 text. Convert the file to UTF-8.",
        "folder": "bad.jsonl: cannot be read: Is a directory.",
    },
    "matches": {
        "missing": "bad.tsv: there is no such file. Check the path and the current folder.",
        "picture": "bad.tsv: is a picture, where a text with a match on each line is needed.",
        "model": f"bad.tsv: {ZIP} a text with a match",
        "junk": "bad.tsv:1: byte 0xcd is not UTF-8 text. Convert the file to UTF-8.",
        "latin": "bad.tsv:1: byte 0xe4 is not UTF-8 text. Convert the file to UTF-8.",
        "folder": "bad.tsv: cannot be read: Is a directory.",
    },
    "model": {
        "missing": "bad.fw: no such file. Check the path.",
        "empty": f"bad.fw: not a readable model file (File is not a zip file). {DAMAGED}",
        "picture": f"bad.fw: {NOT_A_MODEL}",
        "junk": f"bad.fw: {NOT_A_MODEL}",
        "cut": DAMAGED,
        "changed": f"Bad CRC-32 for file 'manifest.json'). {DAMAGED}",
        "folder": "bad.fw: not a file. Give the path of a model file, NAME.fw.",
    },
}  # fmt: skip

#: What is wrong with lines in ways of their own: words put in place of others or behind, and what is said.
OWN = [
    ("resolve fit", "--entity=persn", "labelled.csv has no column 'persn'. Did you mean 'person'?"),
    ("resolve apply", "--id=ids", "records.csv has no column 'ids'. Did you mean 'id'? Its columns are"),
    ("resolve apply", "--id=town", "column 'town' has no id in"),
    ("resolve apply", "--id=surname", "ids that occur more than once: 'Lee' (records 1 and 2)"),
    ("resolve apply", "--fields fields.toml", "--model has fields of its own"),
    ("resolve apply", f"--checkpoint {LONG}", "--checkpoint cannot be used: File name too long."),
    ("resolve apply", "--checkpoint-seconds 5", "says how often: give --checkpoint FOLDER, too."),
    ("resolve apply", "--checkpoint /proc/kept", "--checkpoint '/proc/kept': '/proc' cannot be written to."),
    ("resolve apply", "-o=/proc/o.csv", "--output '/proc/o.csv': the folder '/proc' cannot be written to."),
    ("resolve apply", "--must-link=parted.csv", "parted.csv: records 100 and 103 must be"),
    ("resolve apply", "records.csv=-", "tables are not read from standard input. Give a file."),
    ("resolve score", "resolve-found.csv=labelled.csv::t", "labelled.csv: is not a DuckDB or SQLite file"),
    ("resolve apply", "--seconds 0", "'--seconds': 0.0 is not in the range x>0"),
    ("resolve apply", "--onto resolve-found.csv", "and --old FILE (their records) go together"),
    ("resolve score", "--id=persn", "labelled.csv has no column 'persn'. Did you mean 'person'?"),
    ("resolve score", "--encoding utf-77", "--encoding utf-77 is not known. Give one of Python's encodings"),
    ("resolve blocks", "--id=ids", "records.csv has no column 'ids'. Did you mean 'id'?"),
    ("resolve blocks", "--rule village", "'village' names no column. Write parts such as"),
    ("resolve explain", "--id=ids", "records.csv has no column 'ids'. Did you mean 'id'?"),
    ("resolve explain", "--fields fields.toml", "--model has fields of its own"),
    ("cluster", "--id=ids", "records.csv has no column 'ids'. Did you mean 'id'?"),
    ("tag fit", "--global nope", "Give a file of constraints, or 'auto' for all that can be said"),
    ("tag fit", "--global known.tsv --model known.tsv", "--model 'known.tsv' is also an input"),
    ("tag fit", "--held-out tags.txt --held-out-share 0.1", "exclude each other: give one of them"),
    ("tag fit", "--held-out none.txt", "none.txt: there is no such file"),
    ("align explain", "a1=a7", "a.jsonl has no concept 'a7'. "),
    ("align fit", "--pair a.jsonl b.jsonl none.tsv", "none.tsv: there is no such file"),
    ("tag fit", "--gazetteer none.txt", "none.txt: cannot be read: No such file or directory."),
    ("tag fit", "--word-classes templates.txt", "word classes 'templates', line 1: 1 columns"),
    ("tag cite", "--model tag.fw", "is a tagger, but none of references: train one with CitationReader.fit"),
    ("tag cite", "--format ris", "'ris' is not one of 'csl', 'bibtex', 'fields'"),
    ("tag cite", "--encoding utf-77", "not text in utf-77"),
    ("cite", "--readings 0", "is not in the range x>=1"),
    ("cite", "--model tag.fw", "is a tagger, but none of references: train one with CitationReader.fit"),
    ("cite", "--encoding utf-77", "not text in utf-77"),
    ("tag classes", "--vectors", "'the cat sat' is not a word and its numbers"),
    ("tag apply", "--marginals --nbest 2", "--marginals, --nbest and --spans exclude each other"),
    ("tag apply", "--nbest 0", "'--nbest': 0 is not in the range x>=1"),
    ("tag apply", "--columns 0,7", "asks for column 7 (counted from 0), but the file has 3"),
    ("tag apply", "--encoding utf-77", "but 'utf-77' was given. Common ones are 'utf-8', 'latin-1'"),
    ("tag score", "--truth-column 9", "--truth-column is 9, but the file has 4 columns, 0 to 3. Name one"),
    ("tag score", "--scheme BIOX", "'BIOX' is not one of"),
    ("tag inspect", "--label B-PRE", "the tagger has no label 'B-PRE'. Did you mean 'B-PER'?"),
    ("coref apply", "--text", "--text needs --mentions: learn to find mentions with `coref mentions` first"),
    ("coref apply", "--mentions coref.fw", "its kind is 'coreference', but 'nested-tagger' is needed"),
    ("coref score", "--own-mentions --scope topic", "--own-mentions needs --truth, and goes without --scope"),
    ("coref mentions", "--levels 0", "'--levels': 0 is not in the range x>=1"),
    ("coref fit", "--types PRE", "'PRE', which no mention of docs.jsonl has. Did you mean 'PER'?"),
    ("coref fit", "--held-out none.jsonl", "none.jsonl: there is no such file"),
    ("coref apply", "--search-steps 0", "'--search-steps': 0 is not in the range x>=1"),
    ("coref score", "--scope corpus", "'corpus' is not one of 'document', 'topic'"),
    ("align fit", "--metric f1", "'f1' is not one of"),
    ("align apply", "--threshold 2", "'--threshold': 2.0 is not in the range 0<=x<=1"),
    ("align apply", "--syntax turtle", "this is not RDF in the format 'turtle'"),
    ("align apply", "--syntax xml", "leave --syntax out, or give two files of one syntax"),
    ("align apply", "--syntax nt", "the syntax that it has: --syntax xml, or turtle, n3, json-ld."),
    ("align score", "--threshold -1", "'--threshold': -1.0 is not in the range 0<=x<=1"),
    ("flows fit", "--rate 0", "'--rate': 0.0 is not in the range x>0"),
    ("flows fit", "--noise loud", "'loud' is not one of 'poisson', 'gaussian', 'multinomial', 'exact'"),
    ("flows apply", "--least -1", "'--least': -1.0 is not in the range x>=0"),
    ("flows score", "--truth=counts.csv", "counts.csv has no column 'from'. Its columns are 'time'"),
    ("generate authors", "-n=0", "mentions must be from 1 to 50,000,000, but 0 was given"),
    ("generate authors", "-n=ten", "'ten' is not a whole number, such as 5000000 or 5e6"),
    ("generate authors", "--largest-scale -1", "'--largest-scale': -1.0 is not in the range 1<=x<=100000"),
    ("coref fit", f"--steps {10**30}", f"'--steps': {10**30} is too many: give at most 1000000000000."),
    ("coref fit", "--temperature inf", "--temperature': inf is outside the usable range: give at most 1e+12"),
    ("align apply", "--threshold nan", "'--threshold': nan is outside the usable range"),
    ("flows apply", "--least nan", "'--least': nan is outside the usable range"),
    ("flows fit", "--population 1e300", "'--population': 1e+300 is outside the usable range"),
    ("tag apply", "--nbest 100000000", "'--nbest': 100000000 is too many: give at most 1000."),
    ("resolve apply", "--seconds nan", "'--seconds': nan is outside the usable range"),
    ("resolve apply", "--threads 100000", "'--threads': 100000 is too many: give at most 1024."),
    ("tag fit", "--global-folds 3", "--global-folds says how --global is learned: give --global, too."),
    ("tag fit", "--c2 -1", "'--c2': '-1' is not a number, nor numbers with commas between them, from 0 on."),
    ("tag fit", "--c2 1e15", "'--c2': 1e+15 is outside the usable range: give 1e+12 at most."),
    ("inspect", "records.csv", "unexpected extra argument (records.csv)"),
    ("inspect", "resolve.fw=records.csv", f"records.csv: {NOT_A_MODEL}"),
    ("doctor", "records.csv", "unexpected extra argument (records.csv)"),
    ("completion", "bash=tcsh", "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    ("demo", "out=records.csv", "Directory 'records.csv' is a file"),
    ("demo", "out=records.csv/x", "--output 'records.csv/x' cannot be made: Not a directory. Give another"),
]  # fmt: skip


class Case(NamedTuple):
    """A line with something wrong.

    bad
        The name of the file that is wrong, if there is one, the file that it would be, and in which way it is
        wrong; or, in place of the two, its text.
    """

    words: list[str]
    told: str
    bad: tuple[str, ...] | None = None


def spoil(whole, folder, bad, *how):
    """Write a file that is wrong."""
    path = folder / bad
    if len(how) == 1:
        path.write_text(how[0])
    elif how[1] == "folder":
        path.mkdir()
    elif how[1] != "missing":
        path.write_bytes(spoiled(whole, *how))


def spoiled(whole, name, way):
    content = (whole / name).read_bytes()
    if way == "changed":
        place = content.rindex(b"manifest.json", 0, content.index(b"PK\x01\x02")) + 100
        return content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]
    return {
        "empty": b"",
        "picture": PICTURE,
        "junk": JUNK,
        "model": (whole / "tag.fw").read_bytes(),
        "latin": content[:1] + "ä".encode("latin-1") + content[1:],
        "cut": content[:-40],
    }[way]


def replaced(line, old, new):
    return [new if word == old else word for word in line.split()]


def cases_of_inputs(line):
    for name in filter(is_read, dict.fromkeys(line.split())):
        kind = "model" if name in MODELS else (KINDS | MADE)[name]
        bad = f"bad{Path(name).suffix}"
        long = replaced(line, name, LONG + Path(name).suffix)
        yield f"{name} with a name too long", Case(long, "d: File name too long. Check the path")
        for way, told in SAID[kind].items():
            yield f"{name} {way}", Case(replaced(line, name, bad), told, (bad, name, way))
        if name in MODELS and not line.startswith("inspect"):
            verb, wanted = name.removesuffix(".fw"), MODELS[name]
            for other, found in MODELS.items():
                told = (
                    f"{other}: its kind is {found!r}, but {wanted!r} is needed. Use it with"
                    f" `factorwise {other.removesuffix('.fw')}`, or train one with `factorwise {verb} fit`."
                )
                if other != name:
                    yield f"{other} for {name}", Case(replaced(line, name, other), told)
            yield f"data for {name}", Case(replaced(line, name, "places.csv"), f"places.csv: {NOT_A_MODEL}")


def cases_of_outputs(line):
    words = line.split()
    for name in filter(is_written, words):
        page, table = name == "out.html", line.startswith(("resolve apply", "flows apply"))
        yield (
            f"{name} in no folder",
            Case(replaced(line, name, f"none/{name}"), "does not exist. Create it first."),
        )
        long = replaced(line, name, LONG + Path(name).suffix)
        yield f"{name} with a name too long", Case(long, " cannot be used: File name too long.")
        bad = f"bad{Path(name).suffix}"
        told = f"'{bad}' is a folder: give the path of a file in it."
        yield f"{name} a folder", Case(replaced(line, name, bad), told, (bad, "tag.fw", "folder"))
        if page:
            told = "--report 'x.txt': a report is HTML, so its name must end in .html."
            yield "a report that is no page", Case(replaced(line, name, "x.txt"), told)
        elif table:
            told = (
                ": 'z.xyz' cannot be written: tables are written as CSV, Parquet or JSON lines. Give a name"
            )
            yield f"{name} without a known ending", Case(replaced(line, name, "z.xyz"), told)
        for other in filter(is_read, dict.fromkeys(words)):
            told = "is also an input: give another file."
            if page:  # which cannot have the name of any of these files
                both = replaced(" ".join(replaced(line, name, bad)), other, bad)
                yield f"{name} over {other}", Case(both, told, (bad, "some text"))
            else:
                yield f"{name} over {other}", Case(replaced(line, name, other), told)
        if page:
            for other in filter(is_written, words):
                if other != name:
                    told = "are both 'out.html': give two files."
                    # the ending of a page says no format of matches, so it is given
                    named = ["--format", "tsv"] if line.startswith("align apply") else []
                    yield f"{other} over the report", Case([*replaced(line, other, name), *named], told)


def cases_of_options(line):
    table = command_of(line).replace(" ", ".")
    config = {
        "sed = 1\n": "c.toml: 'sed' is not an option. Did you mean 'seed'?",
        f"[{table}]\nseed = 'x'\n": f"c.toml: [{table}] seed must be an integer, but 'x' was given.",
    }
    for text, told in config.items():
        case = Case([*line.split(), "--config", "c.toml"], told, ("c.toml", text))
        yield f"configuration {text.split()[-3]}", case
    yield "no threads", Case([*line.split(), "--threads", "0"], "'--threads': 0 is not in the range x>=1.")
    yield (
        "no such option",
        Case([*line.split(), "--sede", "1"], "No such option '--sede'."),
    )


def own_case(line, words, told):
    """A word ``old=new`` takes the place of the one behind ``old``, or of ``old`` itself."""
    given = line.split()
    old, equals, new = words.partition("=")
    if not equals:
        return Case([*given, *words.split()], told)
    given[given.index(old) + old.startswith("-")] = new
    return Case(given, told)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return whole_folder(tmp_path_factory.getbasetemp())


def all_cases():
    for command, which, line in numbered():
        for cases in (cases_of_inputs, cases_of_outputs, cases_of_options):
            for name, case in cases(line):
                yield f"{command}: {name}{which}", case
    last = {command_of(line): line for line in (*UNTRIED, *LINES)}
    for command, words, told in OWN:
        yield f"{command}: {words[:40]}", own_case(last[command], words, told)


def numbered():
    """Yield all lines, each with its command and what tells it from other lines of that command."""
    seen = Counter()
    for line in (*LINES, *UNTRIED):
        command = command_of(line)
        seen[command] += 1
        yield command, f", line {seen[command]}" if seen[command] > 1 else "", line


NAMED = list(all_cases())
CASES = dict(NAMED)


def files_in(folder):
    """All that is in a folder: what is in files, None for folders."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_bad_input_is_told_and_no_file_is_left_or_changed(run, whole, tmp_path, monkeypatch, case):
    for name in filter(is_read, {word.partition("/")[0] for word in case.words}):
        shutil.copy(whole / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    if case.bad is not None:
        spoil(whole, tmp_path, *case.bad)
    before = files_in(tmp_path)
    plain = run(*case.words)
    assert (plain.code, plain.out) == (2, "")
    assert case.told in plain.err
    assert plain.err.startswith("error: ")
    assert files_in(tmp_path) == before
    for name in filter(is_written, case.words):
        # a model may take the place of an empty file, but not of a text
        (tmp_path / name).write_text("" if ("--model", name) in pairwise(case.words) else "old")
    before = files_in(tmp_path)
    as_json = run(*case.words, "--json")
    assert (as_json.code, as_json.out) == (2, "")
    document = json.loads(as_json.err)["error"]
    assert document["exit_code"] == 2
    assert printable(document["message"]) in plain.err
    assert files_in(tmp_path) == before


OUTPUTS = {
    f"{command}: {name}{which}": (line, name)
    for command, which, line in numbered()
    for name in filter(is_written, line.split())
}


@pytest.mark.parametrize(("line", "name"), OUTPUTS.values(), ids=OUTPUTS)
def test_a_folder_that_cannot_be_written_to_is_told_before_the_work(run, whole, monkeypatch, line, name):
    monkeypatch.chdir(whole)
    monkeypatch.setattr(files, "can_write", lambda folder: folder.name != "shut")
    before = files_in(whole)
    (whole / "shut").mkdir()
    try:
        result = run(*replaced(line, name, f"shut/{name}"))
    finally:
        (whole / "shut").rmdir()
    assert (result.code, result.out) == (2, "")
    assert f"'shut/{name}': the folder 'shut' cannot be written to. Change its permissions" in result.err
    assert files_in(whole) == before


#: Commands whose bad input is tried in test_resolve_store, test_review and test_infer.
ELSEWHERE = {f"resolve {verb}" for verb in ("init", "add", "undo", "history", "export", "lookup")}
ELSEWHERE |= {"review", "infer"}


def test_every_command_has_cases():
    assert len(CASES) == len(NAMED)  # no two have one name
    assert {name.partition(":")[0] for name in CASES} == leaves() - ELSEWHERE
    assert {command for command, *_ in OWN} == leaves() - ELSEWHERE
