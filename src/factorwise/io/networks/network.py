"""A factor graph with names, which every reader of networks returns."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorwise.errors import DataFileError, InvalidArgumentError
from factorwise.io.listing import some
from factorwise.model.grounding import FactorGraph
from factorwise.views import MOST_ROWS, html_table, listed

#: How far the sum of a row of probabilities may be from one, because published files round them.
ROW_TOLERANCE = 0.01
#: Largest number of labels of a variable, because a few words of a file could otherwise require any amount of
#: memory.
MOST_LABELS = 1 << 20


@dataclass(frozen=True, slots=True)
class Network:
    """A factor graph whose variables and labels have names.

    graph
        The factors, in the order of the file.
    names
        Name of each variable; its number as text if the format has no names.
    labels
        Names of the labels of each variable; their numbers if the format has no names.
    kind
        "BAYES" if the factors are conditional probabilities, so that log Z is the log-probability of the
        evidence, else "MARKOV".
    """

    graph: FactorGraph
    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    kind: Literal["MARKOV", "BAYES"] = "MARKOV"

    def _repr_html_(self) -> str:
        shown = list(zip(self.names, self.labels, strict=True))[:MOST_ROWS]
        rows = [(name, len(labels), listed(labels)) for name, labels in shown]
        title = f"{self.kind} network: {len(self.names)} variables, {self.graph.n_factors} factors"
        return html_table(title, ("variable", "labels", "names"), rows, total=len(self.names))

    def codes(self, evidence: Mapping[str, object]) -> dict[int, int]:
        """Return variable and label numbers of evidence given by names.

        evidence
            Observed label of each observed variable. A label is given by name or as a number.
        """
        number_of = {name: number for number, name in enumerate(self.names)}
        codes = {}
        for name, label in evidence.items():
            if name not in number_of:
                raise InvalidArgumentError(f"there is no variable {name!r}: {_known(name, self.names)}")
            known = self.labels[number_of[name]]
            if str(label) in known:
                codes[number_of[name]] = known.index(str(label))
            elif isinstance(label, int | np.integer) and 0 <= label < len(known):
                codes[number_of[name]] = int(label)
            else:
                raise InvalidArgumentError(
                    f"variable {name!r} has no label {label!r}: {_known(label, known)}"
                )
        return codes

    def given(self, evidence: Mapping[int, int]) -> Network:
        """Return the same network with factors that forbid all labels except the observed ones.

        evidence
            Label number of each observed variable, as `codes` and ``read_evidence`` return it.
        """
        check_evidence(evidence, self.graph.cardinality)
        factors = []
        for variable, label in evidence.items():
            table = np.full(self.graph.cardinality[variable], -np.inf)
            table[label] = 0.0
            factors.append(((variable,), table))
        graph = FactorGraph.build(self.graph.cardinality, [*self.graph.factors(), *factors])
        return Network(graph, self.names, self.labels, self.kind)


def check_evidence(evidence: Mapping[int, int], cardinality: NDArray[np.int64]) -> None:
    """Refuse evidence about variables or labels that do not exist."""
    for variable, label in evidence.items():
        if not 0 <= variable < len(cardinality):
            raise InvalidArgumentError(
                f"the evidence observes variable {variable}, but there are only {len(cardinality)}: use"
                f" numbers from 0 to {len(cardinality) - 1}."
            )
        if not 0 <= label < cardinality[variable]:
            raise InvalidArgumentError(
                f"the evidence sets variable {variable} to label {label}, but it has {cardinality[variable]}"
                f" labels: use numbers from 0 to {cardinality[variable] - 1}."
            )


def number_labels(sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """Return the numbers of the labels of each variable as their names; variables of one size share them."""
    if max(sizes, default=0) > MOST_LABELS:
        raise DataFileError(f"a variable has {max(sizes)} labels, but the limit is {MOST_LABELS}.")
    names = {size: tuple(map(str, range(size))) for size in set(sizes)}
    return [names[size] for size in sizes]


def build_network(
    labels: Mapping[str, Sequence[str]],
    tables: Iterable[tuple[Sequence[str], NDArray[np.float64]]],
    kind: Literal["MARKOV", "BAYES"],
) -> Network:
    """Build a network from probabilities or potentials over named variables.

    labels
        The labels of each variable, in the order of the variables' numbers.
    tables
        The names of a factor's variables and its table over them, not in logarithms.
    """
    if not labels:
        raise DataFileError("the network has no variables: give one that has at least one.")
    number_of = {name: number for number, name in enumerate(labels)}
    sizes = [len(known) for known in labels.values()]
    factors = [([number_of[name] for name in scope], log_table(table, scope)) for scope, table in tables]
    graph = FactorGraph.build(sizes, factors)
    return Network(graph, tuple(labels), tuple(map(tuple, labels.values())), kind)


def log_table(table: NDArray[np.float64], scope: Sequence[object]) -> NDArray[np.float64]:
    """Return the logarithms of a table of potentials, which must be finite and not negative."""
    if not bool(((table >= 0) & (table < np.inf)).all()):
        wrong = table[~((table >= 0) & (table < np.inf))].flat[0]
        raise DataFileError(
            f"the table over {some(scope)} has an entry of {wrong:g}: potentials must be finite"
            " numbers, zero or more."
        )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table))


def check_distribution(name: str, rows: NDArray[np.float64]) -> None:
    """Refuse conditional probabilities that do not sum to one.

    rows
        Probabilities of the labels of variable ``name``, its labels on the last axis.
    """
    totals = rows.sum(axis=-1)
    far = ~(np.abs(totals - 1.0) <= ROW_TOLERANCE)
    if bool(far.any()):
        raise DataFileError(
            f"a row of probabilities of {name!r} sums to {totals[far].flat[0]:.6g}: correct it so that"
            " it sums to 1."
        )


def _known(name: object, known: Sequence[str]) -> str:
    """Return a hint for an unknown name: the closest known name, or the known names."""
    close = difflib.get_close_matches(str(name), known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"choose from {some(known)}."


def check_size(count: int, sizes: Sequence[int], owner: str) -> None:
    """Refuse a table whose number of entries does not fit the variables of its scope."""
    wanted = math.prod(sizes)
    if count != wanted:
        raise DataFileError(
            f"the table of {owner} has {count} entries, but its variables require {wanted}: complete"
            " the file or correct the scope."
        )
