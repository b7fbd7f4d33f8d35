"""A check of templates for shards: the score of a clustering must be the sum of the scores of its parts."""

from __future__ import annotations

import numpy as np

from factorwise.errors import InvalidArgumentError, TemplateCheckError
from factorwise.model.template import AnyTemplate, Template
from factorwise.rng import Stream
from factorwise.validation import check_count
from factorwise.world.partition import Partition


def check_restriction(
    template: AnyTemplate,
    n_items: int,
    *,
    most: int = 3,
    trials: int = 50,
    seed: int = 0,
    tolerance: float = 1e-9,
) -> None:
    """Raise `TemplateCheckError` at the first clustering whose score is not the sum of its parts' scores.

    Random clusterings are split, cluster by cluster, into up to ``most`` parts; the statistics and the
    constant of the whole must be the sums of those of ``template.restrict_to(items)`` for each part.

    tolerance
        Largest error, relative to the size of the statistics.
    """
    if not isinstance(template, Template):
        raise InvalidArgumentError(f"check_restriction needs a template, but {template!r} was given.")
    check_count("n_items", n_items, 2)
    stream = Stream(seed)
    for _ in range(trials):
        count = 1 + stream.below(n_items)
        world = Partition.from_keys([stream.below(count) for _ in range(n_items)])
        home = np.array([stream.below(most) for _ in range(len(world.arrays.size))])[world.labels]
        statistics, constant = np.zeros(template.size), 0.0
        for part in np.unique(home):
            items = np.flatnonzero(home == part)
            own, within = template.restrict_to(items), Partition.from_keys(world.labels[items])
            statistics += own.statistics(within).to_dense(template.size)
            constant += own.constant(within)
        whole = template.statistics(world).to_dense(template.size)
        wrong = np.flatnonzero(np.abs(statistics - whole) > tolerance * (1.0 + np.abs(whole)))
        if len(wrong) or constant != template.constant(world):
            named = template.weight_name(int(wrong[0])) if len(wrong) else "the constant"
            raise TemplateCheckError(
                f"template {template.name!r} ({type(template).__name__}) is wrong about the parts"
                f" {home.tolist()} of {world}: {named} of the parts does not sum to that of the whole."
                " Its restrict_to must keep every factor among the items, and no factor may involve"
                " items of two clusters."
            )
