"""Records of people, some of whom stand twice or three times, spelled a little differently."""

import csv

FIRST = ["Ann", "Robert", "Maria", "James", "Susan", "Peter", "Laura", "David", "Emma", "Oscar"]
LAST = ["Lee", "Fox", "Miller", "Stone", "Rivera", "Novak", "Hansen", "Keller", "Moreau", "Quinn", "Abbott"]
TOWNS = ["Leeds", "Bristol", "Oxford", "York", "Derby", "Exeter", "Bath"]
COLUMNS = ["id", "person", "first_name", "surname", "born", "town", "email"]


def people(count):
    """Two records of each person; of every third one a third, without e-mail and with a slip in the name."""
    records = []
    for number in range(count):
        first, last = FIRST[number % len(FIRST)], LAST[number * 7 % len(LAST)]
        town = TOWNS[number * 3 % len(TOWNS)]
        born = f"{1940 + number * 13 % 60}-{1 + number * 5 % 12:02}-{1 + number * 11 % 28:02}"
        email = f"{first.lower()}.{last.lower()}{number}@mail{number % 9}.org"
        person = [
            {"first_name": first, "surname": last, "born": born, "town": town, "email": email},
            {"first_name": first[0] + ".", "surname": last, "born": born, "town": "", "email": email},
        ]
        if number % 3 == 0:
            slip = last[:-1] + last[-1] * 2
            person.append({"first_name": first, "surname": slip, "born": born, "town": town, "email": ""})
        records += [{"person": f"p{number}", **record} for record in person]
    return [{"id": str(100 + place), **record} for place, record in enumerate(records)]


def write_csv(path, records, columns=None, encoding="utf-8"):
    """Write records with a line of column names, and return the path."""
    with path.open("w", newline="", encoding=encoding) as stream:
        writer = csv.DictWriter(stream, columns or list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    return path


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def without(records, *columns):
    return [{name: value for name, value in one.items() if name not in columns} for one in records]
