"""How alike two strings are, by the definitions."""

from __future__ import annotations


def jaro_winkler(one: str, two: str) -> float:
    """Return the similarity of Jaro, with Winkler's bonus for up to four characters at the beginning."""
    if not one or not two:
        return float(one == two)
    reach = max(max(len(one), len(two)) // 2 - 1, 0)
    free = set(range(len(one)))
    pairs = []
    for j, letter in enumerate(two):
        near = [i for i in sorted(free) if one[i] == letter and abs(i - j) <= reach]
        if near:
            free.discard(near[0])
            pairs.append((near[0], j))
    if not pairs:
        return 0.0
    in_one = [one[i] for i, _ in sorted(pairs)]
    in_two = [two[j] for _, j in pairs]
    crossed = sum(a != b for a, b in zip(in_one, in_two, strict=True)) // 2
    m = len(pairs)
    alike = (m / len(one) + m / len(two) + (m - crossed) / m) / 3.0
    if alike <= 0.7:
        return alike
    prefix = 0
    while prefix < min(4, len(one), len(two)) and one[prefix] == two[prefix]:
        prefix += 1
    return alike + prefix * 0.1 * (1.0 - alike)


def common_subsequences(one: str, two: str) -> float:
    """Return twice the length of the longest common subsequence as a share of both lengths."""
    row = [0] * (len(two) + 1)
    for letter in one:
        before = row
        row = [0]
        for j, other in enumerate(two):
            row.append(before[j] + 1 if letter == other else max(row[j], before[j + 1]))
    both = len(one) + len(two)
    return 2 * row[-1] / both if both else 1.0


def edit_likeness(one: str, two: str) -> float:
    """Return one less the edits as a share of the longer string; an exchange of neighbours is one edit."""
    far = len(one) + len(two)
    edits = {(i, -1): far for i in range(-1, len(one) + 1)} | {(-1, j): far for j in range(-1, len(two) + 1)}
    edits |= {(i, 0): i for i in range(len(one) + 1)} | {(0, j): j for j in range(len(two) + 1)}
    last_row: dict[str, int] = {}
    for i in range(1, len(one) + 1):
        last_column = 0
        for j in range(1, len(two) + 1):
            k, m = last_row.get(two[j - 1], 0), last_column
            same = one[i - 1] == two[j - 1]
            if same:
                last_column = j
            edits[i, j] = min(
                edits[i - 1, j - 1] + (not same),
                edits[i, j - 1] + 1,
                edits[i - 1, j] + 1,
                edits[k - 1, m - 1] + (i - k - 1) + 1 + (j - m - 1),
            )
        last_row[one[i - 1]] = i
    longest = max(len(one), len(two))
    return 1.0 - edits[len(one), len(two)] / longest if longest else 1.0
