"""Small tagging tasks, and a chain CRF computed from its published weights by going through all paths."""

import random
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

BIO = ("O", "B-X", "I-X")


def task(seed=3, sentences=25, *, valued=False):
    """Sentences of dictionaries with noisy hints at their labels, which are valid BIO."""
    draw = random.Random(seed)
    X, y = [], []
    for _ in range(sentences):
        tokens, labels, label = [], [], "O"
        for _ in range(draw.randint(1, 6)):
            label = draw.choice(["O", "B-X"] if label == "O" else ["O", "B-X", "I-X", "I-X"])
            word = draw.choice("abcd")
            hint = label[0] + draw.choice("pq") if draw.random() < 0.6 else draw.choice(["Op", "Bq"])
            token = {"bias": 1.0, "w": word, "s": hint}
            if valued:
                token["length"] = round(draw.gauss(2.0 * (label == "O"), 1.0), 3)
            tokens.append(token)
            labels.append(label)
        X.append(tokens)
        y.append(labels)
    return X, y


def separable(labels=("A", "B", "C")):
    """Sentences in which each token names its label."""
    y = [[labels[(place + shift) % len(labels)] for place in range(1 + shift % 5)] for shift in range(12)]
    return [[[f"is={label}", "bias"] for label in sentence] for sentence in y], y


def attributes(token):
    """Names and values of a token's attributes, for tokens of the forms that the tests use."""
    if not isinstance(token, dict):
        return [(name, 1.0) for name in token]
    return [
        (f"{name}:{value}", 1.0) if isinstance(value, str) else (name, float(value))
        for name, value in token.items()
    ]


def with_weights(model, seed, scale=1.0):
    """Give a trained model random weights."""
    size = len(model.tagger_.weights)
    weights = np.random.default_rng(seed).normal(scale=scale, size=size)
    model.tagger_ = replace(model.tagger_, weights=weights)
    return model


@dataclass(frozen=True)
class AllPaths:
    """Every label sequence of a sentence that is possible, and its score."""

    classes: list
    paths: list
    scores: np.ndarray

    @classmethod
    def of(cls, model, tokens, possible=lambda path: True):
        """Go by the published weights; ``possible`` says what the constraints allow."""
        state, transition = model.state_features_, model.transition_features_
        paths = [path for path in product(model.classes_, repeat=len(tokens)) if possible(path)]
        scores = []
        for path in paths:
            score = sum(
                value * state.get((name, label), 0.0)
                for token, label in zip(tokens, path, strict=True)
                for name, value in attributes(token)
            )
            for size in (2, 3):
                windows = zip(*(path[shift:] for shift in range(size)), strict=False)
                score += sum(transition.get(window, 0.0) for window in windows)
            scores.append(score)
        return cls(model.classes_, paths, np.array(scores))

    @property
    def log_partition(self):
        return float(np.logaddexp.reduce(self.scores))

    @property
    def probability(self):
        return np.exp(self.scores - self.log_partition)

    def within(self, agrees):
        """Probability of the paths for which ``agrees``."""
        return sum(share for path, share in zip(self.paths, self.probability, strict=True) if agrees(path))

    def marginals(self):
        """Probability of each label at each token."""
        table = np.zeros((len(self.paths[0]), len(self.classes)))
        for path, share in zip(self.paths, self.probability, strict=True):
            for place, label in enumerate(path):
                table[place, self.classes.index(label)] += share
        return table

    def ranked(self):
        """Paths and probabilities, most probable first."""
        order = np.argsort(-self.scores, kind="stable")
        return [(list(self.paths[k]), float(self.probability[k])) for k in order]


def agrees_with(known):
    """Return the test whether a path agrees with labels that may be None or sets."""

    def agrees(path):
        return all(
            wanted is None or label == wanted or (isinstance(wanted, set) and label in wanted)
            for label, wanted in zip(path, known, strict=True)
        )

    return agrees
