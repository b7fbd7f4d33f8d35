"""A resolver and what it finds in documents, with a progress bar."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tqdm import tqdm

from factorwise.apps.coreference.documents import Discourse

if TYPE_CHECKING:
    from factorwise.apps.coreference.estimator import CoreferenceResolver

Labels = list[int]


def resolved(
    resolver: CoreferenceResolver, together: Sequence[Discourse], *, threads: int, shown: bool
) -> list[Labels]:
    """Return the number of each item's entity, for each of the discourses; numbers are used once.

    Several discourses are worked on at a time; the answers do not depend on how many.
    """

    def resolve(discourse: Discourse) -> Labels:
        found = resolver.predict(discourse.documents)
        return [label for d, m in discourse.places if (label := found[d][m]) is not None]

    resolver.set_params(n_jobs=1)
    answers: list[Labels] = []
    first = 0
    total = sum(len(discourse.places) for discourse in together)
    pool = ThreadPoolExecutor(threads)
    try:
        with tqdm(total=total, desc="resolving", unit="mention", disable=not shown) as bar:
            for labels in pool.map(resolve, together):
                answers.append([first + label for label in labels])
                first += max(labels) + 1
                bar.update(len(labels))
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C does not wait for what has not begun
    return answers
