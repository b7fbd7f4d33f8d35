"""Small generated tables of known entities, for resolution without labels."""

import numpy as np
import pyarrow as pa

SYLLABLES = "ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo zu".split()  # noqa: SIM905


def word(rng, parts=3):
    """A made-up word."""
    return "".join(rng.choice(SYLLABLES, parts))


def slip(rng, text):
    """A text with two neighboring letters swapped."""
    place = int(rng.integers(1, len(text) - 2))
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]


def persons(count, seed=0, misspelled=0.3):
    """Two records of each person, with a birthday and a town; and the truth."""
    rng = np.random.default_rng(seed)
    firsts, lasts = [word(rng, 2) for _ in range(60)], [word(rng) for _ in range(200)]
    towns = [word(rng) for _ in range(15)]
    rows, truth = [], []
    for person in range(count):
        first, last = str(rng.choice(firsts)), str(rng.choice(lasts))
        born = f"{rng.integers(1930, 2000)}-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}"
        town = str(rng.choice(towns))
        for copy in range(2):
            spelled = slip(rng, last) if copy and rng.random() < misspelled else last
            rows.append({"first_name": first, "surname": spelled, "born": born, "town": town})
            truth.append(person)
    return pa.Table.from_pylist(rows), np.array(truth)


def mentions(authors, papers, seed=0):
    """Authors of papers: every record is a name on a paper; few share a name; and the truth."""
    rng = np.random.default_rng(seed)
    names = [f"{word(rng, 2).title()} {word(rng).title()}" for _ in range(authors)]
    group = np.arange(authors) // 6  # who writes together
    rows, truth = [], []
    for _ in range(papers):
        team = rng.choice(np.flatnonzero(group == rng.integers(group.max() + 1)), 3, replace=False)
        title = " ".join(word(rng) for _ in range(5))
        for author in team.tolist():
            others = "|".join(names[k] for k in team.tolist() if k != author)
            rows.append({"name": names[author], "paper": title, "coauthors": others})
            truth.append(author)
    return pa.Table.from_pylist(rows), np.array(truth)


def products(count, seed=0, ending=""):
    """Two shops with the same things, one of which adds an ending to titles; and the truth."""
    rng = np.random.default_rng(seed)
    words = [word(rng) for _ in range(400)]
    rows, truth = [], []
    for thing in range(count):
        title, price = " ".join(rng.choice(words, 4)), round(float(rng.uniform(5, 500)), 2)
        in_both = rng.random() < 0.6
        for shop in ("a", "b") if in_both else ("ab"[int(rng.integers(2))],):
            shown = title + (ending.format(year=rng.integers(1950, 2020)) if shop == "b" else "")
            rows.append({"source": shop, "title": shown, "price": str(price)})
            truth.append(thing)
    return pa.Table.from_pylist(rows), np.array(truth)
