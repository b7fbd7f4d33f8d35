"""A report with every kind of section, and what must not become markup in every place for text."""

import json
import re

from factorwise.report import (
    Chart,
    Entities,
    Entity,
    Facts,
    Matrix,
    PairCase,
    Pairs,
    Report,
    Sentence,
    Sentences,
    Series,
    Table,
)

EVIL = "<script>window.harmed = 1</script><img src=x onerror='window.harmed = 1'>\u2028&amp;</script>"


def report(text=EVIL, entities=120):
    """Return a report in which ``text`` stands wherever a user's text can stand."""
    steps = [("linked", -1.0), (f"same name {text}", 2.5), ("year", -0.75)]
    return Report(
        title=f"Title {text}",
        subtitle=f"Subtitle {text}",
        version="1.2.3",
        sections=[
            Facts(title=f"Facts {text}", note=text, rows=[("command", text), ("score", float("nan"))]),
            Table(
                title="Table", columns=["name", f"number {text}"], rows=[[f"row {k}", k] for k in range(60)]
            ),
            Chart(title="Curve", series=[Series(text, [1, 2, 3], [0.5, 0.6, float("inf")])], x_label=text),
            Chart(title="Bars", style="bar", series=[Series("n", [text, "b"], [3, 5])], log_y=True),
            Chart(title="Reliability", style="diagonal", series=[Series("p", [0.1, 0.9], [0.2, 0.8])]),
            Entities(
                title="Entities",
                columns=["id", f"field {text}", "town", "confidence"],
                entities=[
                    Entity(f"entity {k} {text}", k / entities, members(k, text), left_out=1000 * (k == 7))
                    for k in range(entities)
                ],
            ),
            Pairs(
                title="Pairs",
                columns=["id", "name"],
                pairs=[
                    PairCase(["a", text], ["b", "y"], 0.4, True, steps),
                    PairCase(["c", 1], ["d", 2], 0.9, False, []),
                ],
            ),
            Sentences(
                title="Sentences",
                sentences=[
                    Sentence(
                        [text, "in", "Rome"], ["B-PER", "O", text], [0.5, 1.0, 0.8], ["O", "O", text], 1234
                    )
                ],
            ),
            Matrix(
                title="Flows",
                rows=[text, "b"],
                columns=["a", "b"],
                steps={text: [[0, 1], [2, 3]], "t2": [[1, 0], [0, 0]]},
            ),
        ],
    )


def members(number, text):
    return [[f"{number}a", text, "Rome", 0.25], [f"{number}b", "x", "Rome", 0.75]]


def sections_of(path):
    """Return the sections of a page by their titles, as the data that they are made of."""
    page = path.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return {section["title"]: section for section in json.loads(data)}
