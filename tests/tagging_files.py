"""Small column files for the tests of ``factorwise tag``."""

import random

PHRASES = (
    (("the", "DT", "B-NP"), ("cat", "NN", "I-NP")),
    (("a", "DT", "B-NP"), ("small", "JJ", "I-NP"), ("dog", "NN", "I-NP")),
    (("Ann", "NNP", "B-NP"),),
    (("sees", "VBZ", "B-VP"),),
    (("has", "VBZ", "B-VP"), ("seen", "VBN", "I-VP")),
    (("in", "IN", "B-PP"),),
    ((",", ",", "O"),),
)


def sentences(count, seed=0):
    """Sentences of tokens (word, tag, label), made of phrases in any order."""
    draw = random.Random(seed)
    return [
        [token for _ in range(draw.randint(1, 5)) for token in draw.choice(PHRASES)] for _ in range(count)
    ]


def column_text(given, columns=(0, 1, 2), separator=" "):
    """The chosen columns of sentences as the text of a column file."""
    lines = [
        [separator.join(token[column] for column in columns) for token in sentence] for sentence in given
    ]
    return "\n\n".join("\n".join(sentence) for sentence in lines) + "\n"


def rows_of(text):
    """The tokens of a column file, each as a list of columns, comments left out."""
    return [line.split() for line in text.splitlines() if line.strip() and not line.startswith("# ")]
