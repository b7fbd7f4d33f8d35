"""Small chain CRFs of every kind, and the sums over all paths that their tests share."""

from dataclasses import dataclass, replace

import numpy as np

from factorwise.learning.chains.layout import StateFeatures
from factorwise.learning.chains.likelihood import ChainLikelihood
from factorwise.learning.chains.structure import FirstOrder, Supervision
from factorwise.variables.sparse_rows import SparseRows
from reference import chain_rows as reference

NO_INTS = np.zeros(0, dtype=np.int32)
NO_REALS = np.zeros(0, dtype=np.float32)
WORDS = 3  # words of `templates`: few, so that even a short text repeats them often enough to bundle


def sparse(rows, width, valued=True):
    """Lists of (column, value) as a sparse matrix."""
    entries = [entry for row in rows for entry in row]
    return SparseRows(
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
        np.array([column for column, _ in entries], dtype=np.int32),
        np.array([value for _, value in entries], dtype=np.float32) if valued else None,
        width,
    )


@dataclass(frozen=True)
class Problem:
    """All that a likelihood is made of."""

    rows: SparseRows
    start: np.ndarray
    supervision: Supervision
    features: StateFeatures
    structure: FirstOrder
    slot: np.ndarray | None = None

    def likelihood(self, dtype=np.float64, team=None):
        return ChainLikelihood(
            self.rows,
            self.start,
            self.supervision,
            self.features,
            self.structure,
            slot=self.slot,
            team=team,
            dtype=dtype,
        )

    def weights(self, seed, scale=1.0):
        size = len(self.features) + self.structure.size
        return np.random.default_rng(seed).normal(scale=scale, size=size)

    def sentences(self, weights):
        """Begin, end and node scores (``-inf`` where forbidden) of each sentence."""
        attribute = np.repeat(np.arange(self.rows.width), self.features.per_attribute)
        state = np.zeros((self.rows.width, self.structure.labels))
        state[attribute, self.features.label] = weights[: len(self.features)]
        scores = self.rows.to_dense() @ state
        for begin, end in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True):
            node = scores[begin:end].copy()
            node[0, self.structure.not_first] = -np.inf
            node[-1, self.structure.not_last] = -np.inf
            yield begin, end, node

    def transition(self, weights):
        """Score of each pair of labels."""
        table = np.zeros((self.structure.labels, self.structure.labels))
        for (left, right), weight in zip(self.structure.pairs, weights[len(self.features) :], strict=True):
            table[left, right] = weight
        table[self.structure.forbidden] = -np.inf
        return table

    def by_enumeration(self, weights):
        """Loss and gradient from the sum over all paths of every sentence."""
        known, table = self.supervision, self.transition(weights)
        residual = np.zeros((len(self.rows), self.structure.labels))
        pairs, loss = np.zeros_like(table), 0.0
        for sentence, (begin, end, node) in enumerate(self.sentences(weights)):
            found = reference.expectations(
                node.tolist(),
                table.tolist(),
                known.truth[begin:end].tolist(),
                [self.may_be(token) for token in range(begin, end)],
                float(known.emphasis[sentence]) if len(known.emphasis) else 1.0,
                known.cost.tolist(),
            )
            loss += found.loss
            residual[begin:end] = found.residual
            pairs += np.array(found.pairs) - found.pairs_known
        attribute = np.repeat(np.arange(self.rows.width), self.features.per_attribute)
        state = (self.rows.to_dense().T @ residual)[attribute, self.features.label]
        return loss, np.concatenate([state, pairs[tuple(self.structure.pairs.T)]])

    def may_be(self, token):
        """Which labels agree with what is known of a token."""
        label, labels = self.supervision.truth[token], self.structure.labels
        if label >= 0:
            return [other == label for other in range(labels)]
        return self.supervision.allowed[self.supervision.allowed_row[token]].tolist()


def by_differences(likelihood, weights, step=1e-5):
    """Gradient of the loss by central differences."""
    gradient = np.empty(len(weights))
    for place in range(len(weights)):
        ahead, behind = weights.copy(), weights.copy()
        ahead[place] += step
        behind[place] -= step
        gradient[place] = (likelihood(ahead)[0] - likelihood(behind)[0]) / (2 * step)
    return gradient


def any_rows(rng, tokens, valued=False):
    """Random attributes, often 0 and rarely 7, with empty tokens and attributes named twice.

    Attribute 8 is one token's own, attribute 9 no one's.
    """
    rows = [
        [(min(int(column), 8) - 1, float(rng.choice([0.5, 2.0, -1.0, 1.5]))) for column in columns]
        for columns in (rng.geometric(0.3, size) for size in rng.integers(0, 5, tokens))
    ]
    rows[0] += [(8, 2.0), (8, -0.5)]
    return sparse(rows, 10, valued)


def templates(rng, tokens):
    """A word, two functions of it, a slot with gaps and a slot of its own; and the slot of each attribute."""
    word = rng.integers(0, WORDS, tokens)
    first = [0, WORDS, WORDS + 2, WORDS + 3, WORDS + 5]
    rows = []
    for w in word.tolist():
        row = [(first[0] + w, 1.0), (first[1] + w % 2, 1.0)]
        if w > 0:
            row.append((first[2], 1.0))
        if rng.random() < 0.7:
            row.append((first[3] + int(rng.integers(2)), 1.0))
        row.append((first[4] + int(rng.integers(4)), 1.0))
        rng.shuffle(row)
        rows.append(row)
    slot = np.repeat(np.arange(5, dtype=np.int32), [WORDS, 2, 1, 2, 4])
    return sparse(rows, len(slot), valued=False), slot


def constrained(rng, structure):
    """The chain with some forbidden pairs, first and last labels; staying in label 0 is possible."""
    labels = structure.labels
    forbidden = rng.random((labels, labels)) < 0.3
    not_first, not_last = rng.random((2, labels)) < 0.3
    forbidden[0, -1] = not_first[-1] = not_last[labels // 2] = True
    forbidden[0, 0] = not_first[0] = not_last[0] = False
    return replace(structure, forbidden=forbidden, not_first=not_first, not_last=not_last)


def possible_labels(rng, start, structure):
    """Random labels that the chain does not forbid."""
    truth = []
    for length in np.diff(start).tolist():
        allowed = np.ones((length, structure.labels), dtype=bool)
        allowed[0, structure.not_first] = False
        allowed[-1, structure.not_last] = False
        for token in range(length - 2, -1, -1):  # labels from which the end can be reached
            allowed[token] &= (~structure.forbidden & allowed[token + 1]).any(axis=1)
        path = [int(rng.choice(np.flatnonzero(allowed[0])))]
        for token in range(1, length):
            path.append(int(rng.choice(np.flatnonzero(~structure.forbidden[path[-1]] & allowed[token]))))
        truth += path
    return np.array(truth, dtype=np.int32)


def partly_known(rng, truth, labels):
    """Forget some labels wholly, some but for a set; the label of the first token is known."""
    allowed = np.vstack([np.ones((1, labels), dtype=bool), rng.random((len(truth), labels)) < 0.4])
    allowed[np.arange(1, len(truth) + 1), truth] = True
    kind = rng.choice(3, size=len(truth), p=[0.6, 0.2, 0.2])
    kind[[0, -2, -1]] = 0, 1, 2
    allowed[-1] = np.arange(labels) == truth[-1]
    row = np.where(kind == 2, np.arange(1, len(truth) + 1), 0).astype(np.int32)
    return Supervision(np.where(kind == 0, truth, -1).astype(np.int32), row, allowed)


KINDS = (
    "plain",
    "valued",
    "frequent",
    "all_pairs",
    "bundled",
    "unbundled",
    "partial",
    "emphasis",
    "cost",
    "constrained",
    "few_pairs",
    "everything",
)


def problem(kind, seed=0, labels=3, lengths=(1, 4, 2, 5, 3, 1)):
    """A problem of one of KINDS; ``everything`` is all of them at once that go together."""
    rng = np.random.default_rng(seed)
    start = np.cumsum([0, *lengths], dtype=np.int64)
    tokens = int(start[-1])
    whole = kind == "everything"
    slot = None
    if kind in ("bundled", "unbundled", "everything"):
        rows, slot = templates(rng, tokens)
        slot = None if kind == "unbundled" else slot
    else:
        rows = any_rows(rng, tokens, valued=kind in ("valued", "frequent"))
    structure = FirstOrder.free(labels)
    if kind == "few_pairs" or whole:
        few = np.unique([0, *np.flatnonzero(rng.random(labels * labels - 1) < 0.5)])
        structure = FirstOrder.free(labels, structure.pairs[few])
    if kind == "constrained" or whole:
        structure = constrained(rng, structure)
    truth = possible_labels(rng, start, structure)
    supervision = partly_known(rng, truth, labels) if kind == "partial" or whole else Supervision(truth)
    if kind == "emphasis" or whole:
        supervision = replace(supervision, emphasis=rng.choice([0.0, 0.5, 1.0, 3.0], size=len(lengths)))
    if kind == "cost" or whole:
        supervision = replace(supervision, cost=rng.choice([0.0, 0.5, 2.0], size=labels))
    if kind == "all_pairs":
        features = StateFeatures.all_pairs(rows.width, labels)
    else:
        features = StateFeatures.observed(rows, truth, labels, 1.5 if kind == "frequent" else 0.0)
    return Problem(rows, start, supervision, features, structure, slot)
