"""Compile the code of the common verbs by running each of them once on a few generated lines."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import click

from factorwise.cli.options import Options
from factorwise.cli.output import notice

#: Each group of verbs, and its commands in the folder that `_write_data` fills.
COMMANDS = {
    "resolve": (
        "resolve fit known.csv --id id --entity person --model people.fw",
        "resolve apply records.csv --id id --model people.fw -o entities.csv --pairs pairs.csv",
        "resolve apply records.csv --id id -o entities.csv",
        "resolve init people.duckdb records.csv --id id",
        "resolve add people.duckdb known.csv --id id",
        "cluster pairs.csv -o clusters.csv",
    ),
    "tag": (
        "tag fit citations.txt --model citations.fw --max-iterations 20",
        "tag apply citations.txt --model citations.fw -o tagged.txt",
        "cite references.txt -o works.csv --readings 2",
    ),
    "coref": (
        "coref fit stories.jsonl --model stories.fw --passes 1 --steps 200",
        "coref apply stories.jsonl --model stories.fw -o found.jsonl",
        "coref mentions stories.jsonl --model mentions.fw --max-iterations 5",
    ),
    "align": ("align apply left.jsonl right.jsonl -o matches.tsv",),
    "flows": (
        "flows fit counts.csv --population 30 --model flows.fw",
        "flows apply counts.csv --model flows.fw -o flows.csv",
    ),
}


def compile_all(options: Options) -> dict[str, float]:
    """Run the verbs on a few lines, and return the seconds that each group took, mostly for compiling."""
    seconds = {}
    with TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        _write_data(Path())
        for number, (group, commands) in enumerate(COMMANDS.items(), 1):
            notice(options, f"compiling the code of {group} ({number} of {len(COMMANDS)})")
            start = monotonic()
            for command in commands:
                _run(command.split())
            seconds[group] = monotonic() - start
    return seconds


def _run(words: Sequence[str]) -> None:
    """Run a command without its output."""
    from factorwise.cli.main import factorwise

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = factorwise.main([*words, "--quiet"], standalone_mode=False)
    if code:
        raise click.exceptions.Exit(code)


def _write_data(folder: Path) -> None:
    from factorwise.datasets.bibliography import make_bibliography

    bibliography = make_bibliography(people=40, papers=90)
    records = bibliography.mentions()
    people = sorted({record["person"] for record in records})
    known = set(people[: len(people) // 2])
    for name, wanted in (("known.csv", True), ("records.csv", False)):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            columns = [column for column in records[0] if wanted or column != "person"]
            writer.writerow(columns)
            writer.writerows(
                [record[column] for column in columns]
                for record in records
                if (record["person"] in known) == wanted
            )
    sentences = bibliography.citations()[:60]
    _write(folder / "citations.txt", ("".join(_rows(*sentence)) for sentence in sentences))
    _write(folder / "references.txt", (" ".join(words) for words, _ in sentences[:5]))
    _write(folder / "stories.jsonl", (json.dumps(_story(number)) for number in range(6)))
    for name, texts in (("left", ("eye", "lung", "left lung")), ("right", ("eye", "lung", "lung, left"))):
        lines = ({"id": f"{name}:{number}", "label": text} for number, text in enumerate(texts))
        _write(folder / f"{name}.jsonl", (json.dumps(line) for line in lines))
    _write(
        folder / "counts.csv",
        [
            "time,place,count",
            *(f"{time},{site},{10 + (time * site) % 3}" for time in range(4) for site in range(3)),
        ],
    )


def _write(path: Path, lines: Iterator[str] | Sequence[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _rows(words: Sequence[str], labels: Sequence[str]) -> Iterator[str]:
    return (f"{word} {label}\n" for word, label in zip(words, labels, strict=True))


def _story(number: int) -> dict[str, Any]:
    """Return a text about two people, one of whom is mentioned again by a pronoun."""
    tokens = ["Ann", "Ray", "met", "Bob", "Fox", ".", "She" if number % 2 else "He", "sang", "."]
    mentions = [
        {"start": 0, "end": 2, "type": "PER", "head": 1, "mtype": "NAM", "entity": "a"},
        {"start": 3, "end": 5, "type": "PER", "head": 4, "mtype": "NAM", "entity": "b"},
        {
            "start": 6,
            "end": 7,
            "type": "PER",
            "head": 6,
            "mtype": "PRO",
            "entity": "a" if number % 2 else "b",
        },
    ]
    return {"id": f"d{number}", "tokens": tokens, "sentences": [[0, 6], [6, 9]], "mentions": mentions}
