"""What the experiments with adaptive proposals share: documents, and the climbs that they are judged by.

Thirty documents of 20 to 115 mentions stand in for those of ACE 2004: ten of ECB+ (entities only), ten of
MEANTIME, and the first mentions of ten of LitBank, whose documents are longer. All are read from the data
directory (FACTORWISE_DATA).
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # CPU seconds are compared
import numpy as np
from numpy.typing import NDArray

from factorwise.apps.coreference.documents import Discourse, discourses, read_documents
from factorwise.apps.coreference.resolution import discourse_model, training_world
from factorwise.datasets.local import find_data
from factorwise.inference.mcmc.adaptive.features import JumpFeatures
from factorwise.inference.mcmc.adaptive.jumps import Jumps
from factorwise.inference.mcmc.adaptive.proposer import AdaptiveSplitMerge
from factorwise.inference.mcmc.metropolis import Metropolis
from factorwise.inference.mcmc.parts import Surroundings
from factorwise.inference.mcmc.walk import Walk
from factorwise.learning.samplerank.learner import SampleRank
from factorwise.learning.samplerank.preferences import TruthPreference
from factorwise.learning.updates import PassiveAggressive
from factorwise.model.model import Model
from factorwise.world.partition import Partition

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUT = Path(__file__).parent / "out"
FOLDERS = ("coref_ecbplus", "coref_meantime", "coref_litbank")
FEWEST, MOST = 20, 115  # mentions of a document
CHOICE = 2009  # seed of which documents are taken; the seeds of the command line are those of the walks


class Case(NamedTuple):
    """One document: what the proposer sees of it, with the model behind, and the entity of each mention."""

    name: str
    features: JumpFeatures
    entities: NDArray[np.int32]

    @property
    def model(self) -> Model:
        """Whose statistics the features are."""
        return self.features.model

    @property
    def n_mentions(self) -> int:
        """How many there are."""
        return len(self.entities)

    def truth(self) -> TruthPreference:
        """B-cubed F1 against the truth."""
        return TruthPreference(self.entities, "b-cubed")

    def value(self, world: Partition) -> float:
        """B-cubed F1 of a world."""
        counts = np.zeros((len(world.arrays.size), self.entities.max() + 1))
        np.add.at(counts, (world.labels, self.entities), 1.0)
        with np.errstate(invalid="ignore"):
            shares = [np.nansum(counts**2 / counts.sum(axis=axis, keepdims=True)) for axis in (0, 1)]
        return float(2.0 * shares[0] * shares[1] / (sum(shares) * self.n_mentions))

    def start(self) -> Partition:
        """Every mention by itself."""
        return Partition.singletons(self.n_mentions)

    def jumps(self, proposer: AdaptiveSplitMerge, start: Partition | None = None) -> Jumps:
        """Set up a walk that the truth judges."""
        judge = self.truth().program(Surroundings(self.start()))
        kernel = Metropolis(self.model, proposer, acceptance="greedy")
        return Jumps(Walk(kernel, start or self.start(), judge=judge))


def chosen_features(name: str) -> bool:
    """Whether a statistic is one of those the proposers see: how many pairs have a feature."""
    return name.startswith("pairs: count of")


def case_of(discourse: Discourse, weights: NDArray[np.float64] | None = None) -> Case:
    """Prepare one document, its model with weights if they are given."""
    model = discourse_model(discourse)
    if weights is not None:
        model.weights = weights
    entities = np.unique(discourse.truth(), return_inverse=True)[1].astype(np.int32)
    return Case(discourse.name, JumpFeatures(model, chosen_features), entities)


def documents(part: str, each: int = 10) -> list[Discourse]:
    """Choose documents of a part, up to ``each`` of a set; fewer are the first of more."""
    return [one for folder in FOLDERS for one in _fitting(folder, part)[:each]]


def _fitting(folder: str, part: str) -> list[Discourse]:
    """Documents of the right size in random order; where all are too long, their first mentions."""
    chooser, found = random.Random(f"{CHOICE} {folder} {part}"), []
    for one in discourses(read_documents(find_data(f"{folder}/{part}.jsonl")), without_types=("ACT",)):
        if folder == "coref_litbank":
            found.append(replace(one, places=one.places[: chooser.randint(FEWEST, MOST)]))
        elif FEWEST <= len(one.places) <= MOST:
            found.append(one)
    chooser.shuffle(found)
    return found


def learn_weights(
    *, without: Sequence[Discourse], model: Callable[[Discourse], Model] = discourse_model, each: int = 20
) -> NDArray[np.float64]:
    """Learn the weights of a model by SampleRank from training documents, but not from ``without``."""
    left_out = {one.name for one in without}
    worlds = [
        replace(training_world(one), model=model(one))
        for one in documents("train", 10 + each)
        if one.name not in left_out
    ]
    learner = SampleRank(update=PassiveAggressive(variant="PA-I", cap=0.01), temperature=0.1)
    return learner.fit(worlds, passes=5, steps=4_000, truth_starts=0.5, seed=0, progress=False).mean


def parser_of(description: str | None, seeds: int = 5) -> argparse.ArgumentParser:
    """Set up the command line that the experiments share."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=seeds, help="how many seeds")
    parser.add_argument("--quick", action="store_true", help="six documents, to see that it runs")
    return parser


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Mean and range over the seeds."""
    low, high = min(values), max(values)
    return f"{np.mean(values):,.{digits}f} ({low:,.{digits}f}-{high:,.{digits}f})"


def save(figure: Figure, name: str) -> None:
    """Write a figure to the folder of results."""
    figure.tight_layout()
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / f"{name}.png", dpi=150)
    print(f"drawn: {OUT.name}/{name}.png")
