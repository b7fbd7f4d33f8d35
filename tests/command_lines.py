"""Every command with small files: lines that work, from which tests make ones that do not."""

import json
import os
from functools import cache
from pathlib import Path

import click
import pytest

from coreference_cases import record
from factorwise.cli import main
from record_cases import people, without, write_csv

PEOPLE = people(12)
RECORDS = without(PEOPLE, "person")
TEXTS = (
    "< Ann Lee >PER/NAM/A met < Bob Ray >PER/NAM/B . < Ann Lee >PER/NAM/A slept .",
    "< Eve Fox >PER/NAM/E saw < Max Orr >PER/NAM/M . < Max Orr >PER/NAM/M left .",
)
DOCUMENTS = [record(text, id=f"d{number}", topic=number) for number, text in enumerate(TEXTS)]

#: Files that are not made by a command, and what they are.
KINDS = {
    "labelled.csv": "table",
    "records.csv": "table",
    "judged.csv": "table",
    "scored.csv": "table",
    "tied.csv": "table",
    "parted.csv": "table",
    "fields.toml": "fields",
    "tags.txt": "columns",
    "templates.txt": "text",
    "references.txt": "references",
    "words.txt": "words",
    "docs.jsonl": "documents",
    "a.jsonl": "concepts",
    "b.jsonl": "concepts",
    "known.tsv": "matches",
    "counts.csv": "table",
    "true.csv": "table",
    "pairs.csv": "table",
    "places.csv": "table",
    "tree.csv": "table",
}
#: Files that commands make here; the model of a group of verbs is called after it.
MADE = {
    "resolve-found.csv": "table",
    "tag-found.txt": "columns",
    "coref-found.jsonl": "documents",
    "align-found.tsv": "matches",
    "flows-found.csv": "table",
}
MODELS = {
    "resolve.fw": "resolution",
    "tag.fw": "chain-crf",
    "coref.fw": "coreference",
    "align.fw": "alignment",
    "flows.fw": "collective",
}
#: Lines that work, in this order: what begins with "out" is written, every other file is read.
LINES = (
    "resolve fit labelled.csv --id id --entity person --pairs judged.csv --fields fields.toml"
    " --model out.fw --write-fields out.toml --report out.html",
    "resolve apply records.csv --id id --model resolve.fw --must-link tied.csv --cannot-link parted.csv"
    " -o out.csv --entities out-entities.csv --canonical out-canonical.csv --pairs out-pairs.csv"
    " --second-best out-second.csv --for-spreadsheets --report out.html",
    "resolve blocks records.csv --id id --model resolve.fw",
    "resolve score resolve-found.csv --truth labelled.csv --id id --entity person",
    "resolve explain records.csv 100 101 --id id --model resolve.fw --entities resolve-found.csv",
    "cluster scored.csv --records records.csv --id id --labels judged.csv --must-link tied.csv"
    " --cannot-link parted.csv -o out.csv --entities out-entities.csv --pairs out-pairs.csv"
    " --second-best out-second.csv --report out.html",
    "tag fit tags.txt --max-iterations 2 --model out.fw",
    "tag fit tags.txt --max-iterations 2 --templates templates.txt --warm-start tag.fw --model out.fw"
    " --report out.html",
    "tag apply tags.txt --model tag.fw -o out.txt --report out.html",
    "cite references.txt -o out.csv",
    "tag cite references.txt -o out.bib",
    "tag classes words.txt -o out.tsv --sizes 2 --min-count 1",
    "tag score tag-found.txt --report out.html",
    "tag inspect tag.fw",
    "coref fit docs.jsonl --passes 1 --steps 20 --search-steps 5 --model out.fw --report out.html",
    "coref apply docs.jsonl --model coref.fw -o out.jsonl --report out.html",
    "coref score coref-found.jsonl --truth docs.jsonl",
    "coref mentions docs.jsonl --model out-mentions.fw --max-iterations 5",
    "align fit a.jsonl b.jsonl --reference known.tsv --passes 1 --steps 10 --search-steps 5 --model out.fw"
    " --report out.html",
    "align apply a.jsonl b.jsonl --model align.fw -o out.tsv --report out.html",
    "align apply a.jsonl b.jsonl -o out.sssom.tsv",
    "align explain a.jsonl b.jsonl a1 b1 --model align.fw",
    "align score align-found.tsv --truth known.tsv",
    "flows fit counts.csv --flows true.csv --model out.fw",
    "flows fit counts.csv --features pairs.csv --places places.csv --parents tree.csv --passes 2"
    " --model out.fw --report out.html",
    "flows fit counts.csv --noise exact --passes 2 --model out.fw",
    "flows apply counts.csv --model flows.fw -o out.csv --report out.html",
    "flows score flows-found.csv --truth true.csv",
    "inspect resolve.fw",
    "doctor",
    "completion bash",
)
#: Lines that work too, but take long, or need what is not installed everywhere.
UNTRIED = ("demo -o out", "generate authors -n 50 -o out.parquet")


def command_of(line):
    """Return the names of the verbs that a line begins with, such as ``resolve fit``."""
    words = line.split()
    return next(name for name in (" ".join(words[:2]), words[0]) if name in leaves())


@cache
def leaves():
    """Return the names of all commands."""

    def below(command, name):
        if not isinstance(command, click.Group):
            return [name.strip()]
        context = click.Context(command)
        inner = [(one, command.get_command(context, one)) for one in command.list_commands(context)]
        return [leaf for one, found in inner for leaf in below(found, f"{name} {one}")]

    return frozenset(below(main.factorwise, ""))


def is_read(word):
    """Whether a word of a line is a file that the command reads."""
    return word in KINDS or word in MADE or word in MODELS


def is_written(word):
    """Whether a word of a line is a file that the command writes."""
    return word.startswith(("out.", "out-"))


def write_inputs(place):
    """Write all files that no command makes."""
    write_csv(place / "labelled.csv", PEOPLE)
    write_csv(place / "records.csv", RECORDS)
    tags = ["Ann N B-PER", "sings V O", "", "Bob N B-PER", "Smith N I-PER", "reads V O", ""] * 4
    texts = {
        "judged.csv": "id,other,same\n100,101,1\n100,103,0\n",
        "scored.csv": "id,other,probability\n100,101,0.9\n101,102,0.6\n100,103,0.2\n",
        "tied.csv": "id,other\n100,101\n",
        "parted.csv": "id,other\n100,103\n",
        "fields.toml": "[fields.town]\nkind = 'category'\n",
        "tags.txt": "\n".join(tags) + "\n",
        "templates.txt": "w[0]\np[0]\n",
        "references.txt": "Brand, R. (1990). Keeping bees. Journal of Hives, 12(3), 4-9.\n",
        "words.txt": "the cat sat\nthe dog sat\n",
        "docs.jsonl": "".join(json.dumps(one) + "\n" for one in DOCUMENTS),
        "a.jsonl": concepts("a", "animal", "brown bear", "house cat"),
        "b.jsonl": concepts("b", "beast", "bear, brown", "cat"),
        "known.tsv": "a1\tb1\t=\na2\tb2\t=\n",
        "counts.csv": "time,place,count\n0,a,90\n0,b,10\n1,a,50\n1,b,50\n2,a,20\n2,b,80\n",
        "true.csv": "time,from,to,count\n0,a,a,50\n0,a,b,40\n0,b,b,10\n1,a,a,20\n1,a,b,30\n1,b,b,50\n",
        "pairs.csv": "from,to,far\na,a,0\na,b,1\nb,a,1\nb,b,0\n",
        "places.csv": "place,x,y\na,0,0\nb,1,0\n",
        "tree.csv": "time,parent\n1,0\n2,0\n",
    }
    for name, text in texts.items():
        (place / name).write_text(text, encoding="utf-8")


def concepts(prefix, *labels):
    """Return an ontology of two levels as JSON lines."""
    return "".join(
        json.dumps({"id": f"{prefix}{n}", "label": label, "parents": [f"{prefix}0"] if n else []}) + "\n"
        for n, label in enumerate(labels)
    )


def keep_made(place, line):
    """Give what a line wrote the name that later lines know it by, and remove what none reads."""
    group = line.split()[0]
    for path in sorted(place.glob("out*")):
        kept = next((name for name in (f"{group}{path.suffix}", f"{group}-found{path.suffix}")
                     if path.stem == "out" and (name in MADE or name in MODELS)), None)  # fmt: skip
        if kept is None:
            path.unlink()
        else:
            path.replace(place / kept)


@cache
def whole_folder(parent):
    """Return a folder with all files, made once; every line that is tried works there."""
    place = parent / "whole"
    place.mkdir()
    write_inputs(place)
    before = Path.cwd()
    os.chdir(place)
    try:
        for line in LINES:
            with pytest.raises(SystemExit) as left:
                main.main([*line.split(), "--quiet"])
            assert left.value.code == 0, line
            keep_made(place, line)
    finally:
        os.chdir(before)
    return place
