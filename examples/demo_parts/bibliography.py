"""A small bibliography that the demo makes itself: author mentions of known people, with noise."""

from __future__ import annotations

import random
from dataclasses import dataclass

# fmt: off
LAST_NAMES = [
    "Smith", "Okafor", "Lindgren", "O'Neill", "Tanaka", "Moreau", "Petrov", "Haddad", "Costa", "Novak",
    "Keller", "Banerjee", "Silva", "Fischer", "Andersen", "Kowalski", "Romero", "Nguyen", "Mbeki",
    "Larsson",
]
FIRST_NAMES = [
    "Anna", "Alan", "Amara", "Bruno", "Beate", "Carla", "Chen", "David", "Dalia", "Elena", "Emil",
    "Farid", "Grace", "Hugo", "Ines", "Jonas", "Jane", "Karim", "Laura", "Lars", "Maria", "Milan",
    "Nora", "Oscar", "Paula", "Ravi", "Sara", "Tomas", "Vera", "Yuki",
]
# fmt: on
VENUES = (
    "Data & Knowledge",
    "Learning Theory",
    "Graph Algorithms",
    "Proc. of Text <Mining>",
    "Machine Vision",
    "Logic & Proof",
    "Statistics Letters",
    "Robotics Today",
)
GROUP = 6  # people who publish with each other
AUTHORS = 3  # co-authors noted with a mention, at most


@dataclass(frozen=True)
class Mention:
    """One author as one paper prints the name; an empty first name was not printed."""

    last: str
    first: str
    coauthors: tuple[str, ...]
    venue: str
    person: int


def bibliography(people: int, mentions: int, seed: int) -> list[Mention]:
    """Draw mentions of people whose names collide; a few people are mentioned much, most of them rarely."""
    rng = random.Random(seed)
    every = [(last, first) for last in LAST_NAMES for first in FIRST_NAMES]
    names = rng.sample(every, people)
    venues = {group: rng.sample(VENUES, 3) for group in range(people // GROUP + 1)}
    chances = [1 / (rank + 4) for rank in range(people)]
    rng.shuffle(chances)
    drawn = [*range(people), *rng.choices(range(people), chances, k=mentions - people)]
    return [_mention(rng, names, venues, person) for person in sorted(drawn)]


def _mention(
    rng: random.Random, names: list[tuple[str, str]], venues: dict[int, list[str]], person: int
) -> Mention:
    last, first = names[person]
    group = person // GROUP
    colleagues = [p for p in range(group * GROUP, min((group + 1) * GROUP, len(names))) if p != person]
    with_whom = rng.sample(colleagues, min(rng.randint(1, AUTHORS), len(colleagues)))
    if rng.random() < 0.15:
        with_whom[-1] = rng.choice([p for p in range(len(names)) if p not in with_whom and p != person])
    style = rng.random()
    return Mention(
        last=_misprinted(rng, last) if rng.random() < 0.08 else last,
        first=first if style < 0.45 else f"{first[0]}." if style < 0.9 else "",
        coauthors=tuple(sorted(f"{names[p][1][0]}. {names[p][0]}" for p in with_whom)),
        venue=rng.choice(venues[group]) if rng.random() < 0.8 else rng.choice(VENUES),
        person=person,
    )


def _misprinted(rng: random.Random, name: str) -> str:
    at = rng.randrange(1, len(name) - 1)
    if rng.random() < 0.5:
        return name[:at] + name[at] + name[at:]  # a letter twice
    return name[:at] + name[at + 1] + name[at] + name[at + 2 :]  # two letters exchanged


def sound(name: str) -> str:
    """Return a key that the misprints leave alone: the first letter and the set of the others."""
    letters = [letter for letter in name.lower() if letter.isalpha()]
    return letters[0] + "".join(sorted(set(letters[1:])))
