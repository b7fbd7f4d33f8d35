"""A small bibliography with known truth: papers, authors as printed, and citations with their fields."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# fmt: off
LAST_NAMES = (
    "Smith", "Okafor", "Lindgren", "O'Neill", "Tanaka", "Moreau", "Petrov", "Haddad", "Costa", "Novak",
    "Keller", "Banerjee", "Silva", "Fischer", "Andersen", "Kowalski", "Romero", "Nguyen", "Mbeki",
    "Larsson",
)
FIRST_NAMES = (
    "Anna", "Alan", "Amara", "Bruno", "Beate", "Carla", "Chen", "David", "Dalia", "Elena", "Emil",
    "Farid", "Grace", "Hugo", "Ines", "Jonas", "Jane", "Karim", "Laura", "Lars", "Maria", "Milan",
    "Nora", "Oscar", "Paula", "Ravi", "Sara", "Tomas", "Vera", "Yuki",
)
VENUES = (
    "Data & Knowledge", "Learning Theory", "Graph Algorithms", "Proc. of Text <Mining>", "Machine Vision",
    "Logic & Proof", "Statistics Letters", "Robotics Today",
)
SUBJECTS = (
    "graphs", "proteins", "markets", "languages", "networks", "images", "climates", "galaxies", "proofs",
    "populations", "circuits", "melodies",
)
QUALITIES = ("Fast", "Robust", "Sparse", "Hidden", "Deep", "Simple", "Local", "Global", "Exact", "Random")
TASKS = (
    "inference", "matching", "sampling", "segmentation", "alignment", "estimation", "planning", "parsing",
)
# fmt: on
GROUP = 6  # people who publish together


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: its authors, as numbers of people, its title, venue and year."""

    authors: tuple[int, ...]
    title: str
    venue: str
    year: int
    pages: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Bibliography:
    """Papers by people of known names: ``people`` has the last and the first name of each."""

    people: tuple[tuple[str, str], ...]
    papers: tuple[Paper, ...]
    seed: int

    def mentions(self) -> list[dict[str, Any]]:
        """Return one record per author of a paper, as a library might have it, and the true person."""
        rng = random.Random(self.seed + 1)
        records = []
        for number, paper in enumerate(self.papers):
            printed = [_printed(rng, *self.people[author]) for author in paper.authors]
            for position, author in enumerate(paper.authors):
                coauthors = [name for k, name in enumerate(printed) if k != position]
                records.append(
                    {
                        "id": f"P{number:03d}-{position + 1}",
                        "name": printed[position],
                        "coauthors": "; ".join(coauthors),
                        "title": paper.title,
                        "venue": paper.venue if rng.random() < 0.9 else rng.choice(VENUES),
                        "year": paper.year,
                        "person": f"{self.people[author][1]} {self.people[author][0]}",
                    }
                )
        return records

    def citations(self) -> list[tuple[list[str], list[str]]]:
        """Return each paper as a citation in one of three styles: words and their labels."""
        rng = random.Random(self.seed + 2)
        return [_cited(rng, paper, self.people) for paper in self.papers]


def make_bibliography(people: int = 72, papers: int = 240, seed: int = 7) -> Bibliography:
    """Draw people whose names collide and the papers that each group writes; some people write much more."""
    rng = random.Random(seed)
    every = [(last, first) for last in LAST_NAMES for first in FIRST_NAMES]
    names = tuple(rng.sample(every, people))
    groups = [range(start, min(start + GROUP, people)) for start in range(0, people, GROUP)]
    subjects = [rng.sample(SUBJECTS, 3) for _ in groups]
    venues = [rng.sample(VENUES, 3) for _ in groups]
    written = []
    for _ in range(papers):
        group = rng.randrange(len(groups))
        size = min(rng.randint(1, 4), len(groups[group]))
        first = rng.randint(1, 480)
        written.append(
            Paper(
                authors=tuple(rng.sample(list(groups[group]), size)),
                title=_title(rng, subjects[group]),
                venue=rng.choice(venues[group]),
                year=rng.randint(1985, 2024),
                pages=(first, first + rng.randint(3, 30)),
            )
        )
    return Bibliography(names, tuple(written), seed)


def _title(rng: random.Random, subjects: Sequence[str]) -> str:
    quality, task, subject = rng.choice(QUALITIES), rng.choice(TASKS), rng.choice(subjects)
    forms = (
        f"{quality} {task} of {subject}",
        f"On {task} in {quality.lower()} {subject}",
        f"{subject.capitalize()} and their {quality.lower()} {task}",
        f"{quality} {subject}: {task} from few examples",
    )
    return rng.choice(forms)


def _printed(rng: random.Random, last: str, first: str) -> str:
    """Print a name in full, with an initial, or sometimes with a misprint."""
    if rng.random() < 0.06:
        at = rng.randrange(1, len(last) - 1)
        last = last[:at] + last[at + 1] + last[at] + last[at + 2 :]
    style = rng.random()
    if style < 0.45:
        return f"{first} {last}"
    return f"{first[0]}. {last}" if style < 0.8 else f"{last}, {first[0]}."


def _cited(
    rng: random.Random, paper: Paper, people: Sequence[tuple[str, str]]
) -> tuple[list[str], list[str]]:
    tokens: list[str] = []
    labels: list[str] = []

    def put(kind: str, text: str) -> None:
        words = text.split()
        tokens.extend(words)
        labels.extend("O" if kind == "O" else f"{'I' if k else 'B'}-{kind}" for k in range(len(words)))

    style = rng.randrange(3)
    for position, author in enumerate(paper.authors):
        last, first = people[author]
        if position:
            put("O", "and" if style == 1 and position == len(paper.authors) - 1 else ",")
        names = (f"{first[0]}. {last}", f"{last} , {first[0]}.", f"{first} {last}")
        put("AUTHOR", names[style])
    pages = f"{paper.pages[0]}-{paper.pages[1]}"
    if style == 0:
        parts = [("O", "."), ("TITLE", paper.title), ("O", "."), ("VENUE", paper.venue), ("O", ","),
                 ("O", f"{rng.randint(1, 40)} :"), ("PAGES", pages), ("O", ","), ("YEAR", str(paper.year)),
                 ("O", ".")]  # fmt: skip
    elif style == 1:
        parts = [("O", "("), ("YEAR", str(paper.year)), ("O", ") ."), ("TITLE", paper.title), ("O", ". In"),
                 ("VENUE", paper.venue), ("O", ", pp."), ("PAGES", pages), ("O", ".")]  # fmt: skip
    else:
        parts = [("O", ":"), ("TITLE", paper.title), ("O", "."), ("VENUE", paper.venue),
                 ("YEAR", str(paper.year)), ("O", ":"), ("PAGES", pages)]  # fmt: skip
    for kind, text in parts:
        put(kind, text)
    return tokens, labels
