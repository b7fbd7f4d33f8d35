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


def coded_products(count, seed=0):
    """Two shops that write the codes of things in two ways, AB-1234 and AB1234; and the truth."""
    rng = np.random.default_rng(seed)
    brands = [word(rng) for _ in range(20)]
    kinds = [word(rng) for _ in range(20)]
    rows, truth = [], []
    for thing in range(count):
        letters = "".join(rng.choice(list("ABCDEFGH"), 2))
        brand, kind, number = rng.choice(brands), rng.choice(kinds), rng.integers(1000, 9999)
        shops = ("a", "b") if rng.random() < 0.6 else ("ab"[int(rng.integers(2))],)
        for shop in shops:
            code = f"{letters}-{number}" if shop == "a" else f"{letters}{number}"
            title = f"{brand} {code} {kind}" if shop == "a" else f"{kind} {code} by {brand}"
            rows.append({"source": shop, "title": title})
            truth.append(thing)
    return pa.Table.from_pylist(rows), np.array(truth)


def firms(count, seed=0):
    """Two records of each firm; every other firm has a namesake in another town; and the truth."""
    rng = np.random.default_rng(seed)
    towns, streets = [word(rng) for _ in range(40)], [word(rng) for _ in range(60)]
    rows, truth = [], []
    for firm in range(count):
        if firm % 3 < 2:
            name = f"{word(rng)} {word(rng)}"
        town, street = str(rng.choice(towns)), f"{rng.integers(1, 900)} {rng.choice(streets)} street"
        rows += [{"company": name, "street": street, "town": town}] * 2
        truth += [firm, firm]
    return pa.Table.from_pylist(rows), np.array(truth)


def households(count, seed=0):
    """Two records of each of two or three people at an address, all of one last name; and the truth."""
    rng = np.random.default_rng(seed)
    firsts = [word(rng, 2) for _ in range(80)]
    rows, truth = [], []
    for _ in range(count):
        last, address = word(rng), f"{rng.integers(1, 900)} {word(rng)} street"
        for first in rng.choice(firsts, int(rng.integers(2, 4)), replace=False):
            born = f"{rng.integers(1930, 2000)}-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}"
            rows += [{"first_name": first, "last_name": last, "address": address, "born": born}] * 2
            truth += [len(truth) // 2] * 2
    return pa.Table.from_pylist(rows), np.array(truth)


def editions(count, seed=0):
    """Two records of each of one to three editions of books, some titles misspelled; and the truth."""
    rng = np.random.default_rng(seed)
    rows, truth = [], []
    for _ in range(count):
        title, author, year = (
            " ".join(word(rng) for _ in range(3)),
            word(rng, 4),
            int(rng.integers(1970, 2000)),
        )
        for edition in range(int(rng.integers(1, 4))):
            shown = title + (f" edition {edition + 1}" if edition else "")
            book = len(truth) // 2
            for copy in range(2):
                spelled = slip(rng, shown) if copy and rng.random() < 0.2 else shown
                rows.append({"title": spelled, "author": author, "year": str(year + 4 * edition)})
                truth.append(book)
    return pa.Table.from_pylist(rows), np.array(truth)


def coded_variants(count, seed=0):
    """Two shops with things that only their codes tell apart; and the truth."""
    rng = np.random.default_rng(seed)
    brands, kinds = [word(rng) for _ in range(6)], [word(rng) for _ in range(6)]
    rows, truth = [], []
    for thing in range(count):
        letters = "".join(rng.choice(list("ABCDEFGH"), 2))
        brand, kind, number = rng.choice(brands), rng.choice(kinds), rng.integers(1000, 9999)
        size, colour = rng.integers(10, 60), rng.choice(["black", "white", "silver"])
        shops = ("a", "b") if rng.random() < 0.6 else ("ab"[int(rng.integers(2))],)
        for shop in shops:
            hyphen = "-" if shop == "a" else ""
            code = f"{letters}{hyphen}{number}"
            title = f"{brand} {size} {colour} {kind} - {code}"
            rows.append({"source": shop, "name": title if shop == "a" else f"{brand} {code} {kind}"})
            truth.append(thing)
    return pa.Table.from_pylist(rows), np.array(truth)


def universities(count, seed=0):
    """Names of organizations that are made of the same frequent words, in one column; and the truth."""
    rng = np.random.default_rng(seed)
    rows, truth = [], []
    for number in range(count):
        place = word(rng, 3)
        forms = [f"University of {place}", f"University of {place}, Department of Physics"]
        if number % 2:
            forms = [f"{place} Institute of Technology", f"{place} Inst. of Technology"]
        for _ in range(int(rng.integers(1, 5))):
            rows.append({"organization": forms[int(rng.integers(2))]})
            truth.append(number)
    return pa.Table.from_pylist(rows), np.array(truth)


def misspelled_items(count, seed=0):
    """Titles in one column, most of those that stand twice misspelled once; and the truth."""
    rng = np.random.default_rng(seed)
    rows, truth = [], []
    for number in range(count):
        title = " ".join(word(rng) for _ in range(3))
        for copy in range(int(rng.integers(1, 4))):
            rows.append({"item": slip(rng, title) if copy and rng.random() < 0.7 else title})
            truth.append(number)
    return pa.Table.from_pylist(rows), np.array(truth)


def inventors(count, seed=0):
    """Names in one column, of which half have only initials; and the truth."""
    rng = np.random.default_rng(seed)
    firsts, lasts = [word(rng, 2) for _ in range(60)], [word(rng) for _ in range(count)]
    rows, truth = [], []
    for number in range(count):
        first, last = str(rng.choice(firsts)).title(), lasts[number].title()
        for _ in range(int(rng.integers(1, 5))):
            given = first if rng.random() < 0.5 else f"{first[0]}."
            rows.append({"inventor": f"{last}, {given}"})
            truth.append(number)
    return pa.Table.from_pylist(rows), np.array(truth)


def discs(count, seed=0):
    """Discs, every tenth of them twice; a third of them have one of four titles; and the truth."""
    rng = np.random.default_rng(seed)
    usual = ["live", "greatest hits", "the best of", "unplugged"]
    rows, truth = [], []
    for number in range(count):
        title = str(rng.choice(usual)) if number % 3 == 0 else " ".join(word(rng) for _ in range(2))
        tracks = "|".join(word(rng) for _ in range(5))
        row = {"title": title, "artist": f"{word(rng)} {word(rng)}", "tracks": tracks}
        rows += [row, {**row, "artist": slip(rng, row["artist"])}][: 1 + (number % 10 == 0)]
        truth += [number] * (1 + (number % 10 == 0))
    return pa.Table.from_pylist(rows), np.array(truth)
