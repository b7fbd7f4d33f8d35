"""Documents written as text with marks: ``< Mr. Darcy >PER/NAM bowed .``"""

from itertools import pairwise

from factorwise.apps.coreference.documents import discourses, document_from


def record(text, **more):
    """Read a marked text: ``<`` opens a mention, ``>TYPE/KIND/ENTITY`` closes it; any part may be missing."""
    tokens, mentions, begun, sentences = [], [], [], [0]
    for word in text.split():
        if word == "<":
            begun.append(len(mentions))
            mentions.append({"start": len(tokens)})
        elif word.startswith(">"):
            parts = [*word[1:].split("/"), "", ""][:3]
            mention = mentions[begun.pop()]
            mention["end"] = len(tokens)
            given = zip(("type", "mtype", "entity"), parts, strict=True)
            mention.update({key: value for key, value in given if value})
        else:
            tokens.append(word)
            if word in {".", "!", "?"}:
                sentences.append(len(tokens))
    if sentences[-1] != len(tokens):
        sentences.append(len(tokens))
    spans = [list(pair) for pair in pairwise(sentences)]
    return {"tokens": tokens, "sentences": spans, "mentions": mentions, **more}


def discourse(*texts, scope="document", **more):
    """Gather marked texts, as one document or as the documents of one topic."""
    documents = [
        document_from(record(text, id=f"d{number}", topic="t", **more)) for number, text in enumerate(texts)
    ]
    (found,) = discourses(documents, scope=scope)
    return found
