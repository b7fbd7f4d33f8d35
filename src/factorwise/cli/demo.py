"""``factorwise demo``: the main tasks end to end, on generated data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from factorwise.cli.files import check_target
from factorwise.cli.options import Options, verb
from factorwise.cli.output import aligned, emit, notice, size_text
from factorwise.cli.progress import Clock, cost_rows
from factorwise.errors import FactorwiseError

SEED = 7
REPORT = "report.html"
TEMPLATES = "\n".join(
    f"{name}(w[{place}])" for name in ("lower", "shape", "suffix2", "is_digit") for place in (-1, 0, 1)
)
ENOUGH = 0.05  # by how much each score must exceed that of the simple rule


class DemoError(FactorwiseError, RuntimeError):
    """The demo's result is no better than its starting point."""


@verb(example="factorwise demo -o demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo"),
    metavar="FOLDER",
    help="Where to write report.html.",
)
def command(options: Options, output: Path) -> None:
    """Resolve the authors of a bibliography, and read its citations.

    Generates a small bibliography, learns from a part of it to resolve its authors and to label the fields of
    its citations, and does both for the rest. Prints scores before and after and writes a page. Needs no
    other data. The first run compiles for about a minute.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.UsageError(
            f"--output {str(output)!r} cannot be made: {error.strerror or error}. Give another folder."
        ) from error
    check_target("--output", output / REPORT)
    document = run(options, output / REPORT)
    emit(document, _lines(document), as_json=options.json)
    for name, (before, after) in document["scores"].items():
        if after < before + ENOUGH:
            raise DemoError(
                f"{name}: {after:.3f} is not clearly above {before:.3f}: please report this as a bug."
            )


def run(options: Options, report: Path) -> dict[str, Any]:
    """Generate the data, learn, apply, score, and write the page."""
    from factorwise.datasets.bibliography import make_bibliography

    bibliography = make_bibliography(seed=SEED + options.seed)
    clock = Clock()
    notice(options, "compiling on the first run, for about a minute; later runs take seconds.")
    with clock.part("authors"):
        authors = _Authors(bibliography.mentions(), options)
    with clock.part("citations"):
        citations = _Citations(bibliography.citations(), options)
    document: dict[str, Any] = {
        "papers": len(bibliography.papers),
        "people": len(bibliography.people),
        "mentions": len(authors.test),
        "scores": {
            "authors (B-cubed F1)": [authors.before, authors.after],
            "citation fields (F1)": [citations.before, citations.after],
        },
        "examples": {"authors": authors.example(), "citation": citations.example()},
        **clock.cost(),
    }
    from factorwise.cli.demo_report import write_demo_report
    from factorwise.cli.report_sections import Page

    document["report"] = write_demo_report(Page(report, options), document, authors, citations)
    document["report"]["path"] = str(report)
    return document


class _Authors:
    """The authors of the papers of some groups, resolved with a model learned from other groups."""

    def __init__(self, records: Sequence[dict[str, Any]], options: Options) -> None:
        import pyarrow as pa

        from factorwise.apps.resolution.estimator import EntityResolver
        from factorwise.metrics.clustering import b_cubed

        people = sorted({record["person"] for record in records})
        known = set(people[: len(people) // 2])
        train = [record for record in records if record["person"] in known]
        self.test = [record for record in records if record["person"] not in known]
        truth = [record["person"] for record in self.test]
        self.resolver = EntityResolver(random_state=options.seed, n_jobs=options.threads)
        self.resolver.fit(pa.Table.from_pylist(train), "person", id="id")
        self.table = pa.Table.from_pylist(
            [{name: value for name, value in record.items() if name != "person"} for record in self.test]
        )
        self.rounds: list[Any] = []
        self.found = self.resolver.resolve(self.table, id="id", posterior=True, watch=self.rounds.append)
        self.before = b_cubed(truth, [record["name"] for record in self.test]).f1
        self.after = b_cubed(truth, self.found.labels.tolist()).f1

    def example(self) -> list[str]:
        """Return the printed names of the entity that has most of them."""
        names: dict[int, list[str]] = {}
        for record, label in zip(self.test, self.found.labels.tolist(), strict=True):
            names.setdefault(label, []).append(record["name"])
        most = max(names.values(), key=lambda listed: (len(set(listed)), len(listed)))
        return sorted(set(most))


class _Citations:
    """The fields of the later half of the citations, labeled by a model learned from the earlier half."""

    def __init__(self, cited: Sequence[tuple[list[str], list[str]]], options: Options) -> None:
        from factorwise.apps.tagging import ChainCRF
        from factorwise.metrics.sequence import SpanCounter

        half = len(cited) // 2
        train, self.test = cited[:half], cited[half:]
        words, self.truth = [words for words, _ in self.test], [labels for _, labels in self.test]
        self.crf = ChainCRF(templates=TEMPLATES, c1=0.01, c2=0.01, max_iterations=60, n_jobs=options.threads)
        self.crf.fit([words for words, _ in train], [labels for _, labels in train])
        self.predicted = self.crf.predict(words)
        marginals = self.crf.predict_marginals(words)
        self.probability = [
            [chances[label] for chances, label in zip(sentence, labels, strict=True)]
            for sentence, labels in zip(marginals, self.predicted, strict=True)
        ]
        usual = _usual_labels(train)
        guessed = [[usual.get(word, "O") for word in sentence] for sentence in words]
        every = (*self.truth, *self.predicted, *guessed)
        names = sorted({label for labels in every for label in labels})
        code = {name: number for number, name in enumerate(names)}

        def flat(sentences: Sequence[Sequence[str]]) -> Any:
            return np.array([code[label] for sentence in sentences for label in sentence], np.int32)

        start = np.append(0, np.cumsum([len(sentence) for sentence in words]))
        counter, true = SpanCounter(names), flat(self.truth)
        self.before, self.after = (
            counter.scores(true, flat(labels), start).micro.f1 for labels in (guessed, self.predicted)
        )

    def example(self) -> dict[str, str]:
        """Return the fields of one citation."""
        words, labels = self.test[0][0], self.predicted[0]
        fields: dict[str, list[str]] = {"citation": words}
        for word, label in zip(words, labels, strict=True):
            if label != "O":
                fields.setdefault(label[2:].lower(), []).append(word)
        return {name: " ".join(parts) for name, parts in fields.items()}


def _usual_labels(train: Sequence[tuple[list[str], list[str]]]) -> dict[str, str]:
    """Return the most frequent label of each word."""
    counts: dict[str, Counter[str]] = {}
    for words, labels in train:
        for word, label in zip(words, labels, strict=True):
            counts.setdefault(word, Counter())[label] += 1
    return {word: seen.most_common(1)[0][0] for word, seen in counts.items()}


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{document['papers']} papers by {document['people']} people;"
        f" {document['mentions']} mentions to resolve"
    )
    rows = [("", "simple rule", "learned")]
    rows += [(name, f"{before:.3f}", f"{after:.3f}") for name, (before, after) in document["scores"].items()]
    yield from (line.rstrip() for line in aligned(rows))
    yield f"one person, printed as: {' | '.join(document['examples']['authors'])}"
    citation = document["examples"]["citation"]
    yield f"a citation: {citation['citation']}"
    yield from aligned([(name, text) for name, text in citation.items() if name != "citation"])
    report = document["report"]
    yield f"report: {report['path']}  ({size_text(report['bytes'])}); open it in a browser"
    yield from aligned(cost_rows(document))
