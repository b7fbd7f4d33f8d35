"""Average linkage by its definition, and probabilities of cuts of a tree by listing all cuts."""

from itertools import combinations


def join_groups(items, score):
    """Join the two sets of a group with the highest mean score until one is left; return all that were made.

    items
        Numbers.
    score
        Function of two items.
    """
    sets = [frozenset([item]) for item in items]
    made = set()
    while len(sets) > 1:

        def mean(pair):
            return sum(score(a, b) for a in pair[0] for b in pair[1]) / (len(pair[0]) * len(pair[1]))

        one, two = max(combinations(sets, 2), key=mean)
        sets = [one | two, *(some for some in sets if some not in (one, two))]
        made.add(one | two)
    return made


def items_below(node, left, right):
    """Return the items below a node."""
    if left[node] < 0:
        return {node}
    return items_below(left[node], left, right) | items_below(right[node], left, right)


def add_parts(node, left, right, number):
    """Return the sum of the numbers of the items below a node."""
    return sum(number[item] for item in items_below(node, left, right))


def mark_forbidden(node, left, right, forbidden_pairs, sources):
    """Return whether a node has a pair that must not be together, or two items of one source."""
    items = items_below(node, left, right)
    return any({a, b} in forbidden_pairs or sources[a] & sources[b] for a, b in combinations(items, 2))


def best_links(node, left, right, counts, links, unlinked):
    """Return the mean, over the records of the smaller part of a node, of the best link into the other part.

    links
        Scores by pairs of items.
    """
    one, two = items_below(left[node], left, right), items_below(right[node], left, right)
    if sum(counts[item] for item in two) < sum(counts[item] for item in one):
        one, two = two, one
    total = 0.0
    for item in one:
        scores = [score for pair, score in links.items() if item in pair and set(pair) - {item} <= two]
        total += counts[item] * max(scores, default=unlinked)
    return total / sum(counts[item] for item in one)


def cuts(node, left, right, whole):
    """Yield every cut of the tree below a node: its clusters, as nodes, and its probability."""
    if left[node] < 0:
        yield (node,), 1.0
        return
    yield (node,), whole[node]
    for one, chance in cuts(left[node], left, right, whole):
        for two, other in cuts(right[node], left, right, whole):
            yield one + two, (1.0 - whole[node]) * chance * other


def cut_trees(node, parent, is_whole):
    """Return the highest node at or above a node that is whole; -1 if there is none."""
    above = -1 if parent[node] < 0 else cut_trees(parent[node], parent, is_whole)
    return above if above >= 0 or not is_whole[node] else node


def pair_chances(items, root, left, right, whole):
    """Return the probability that some items are in one cluster."""
    return sum(
        chance
        for clusters, chance in cuts(root, left, right, whole)
        if any(set(items) <= items_below(cluster, left, right) for cluster in clusters)
    )


def split_chances(node, root, left, right, whole):
    """Return the probability that no cluster has all items of a node."""
    return 1.0 - pair_chances(items_below(node, left, right), root, left, right, whole)
