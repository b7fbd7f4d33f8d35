"""The options of ``factorwise tag fit``, read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import click

from factorwise.apps.tagging.config import TrainingConfig, default_prior
from factorwise.apps.tagging.cross_fitting import FOLDS
from factorwise.apps.tagging.features.encoders import ColumnEncoder
from factorwise.apps.tagging.features.templates import FeatureTemplateError, TemplateSet
from factorwise.apps.tagging.features.word_lists import Gazetteer, WordClasses, WordList
from factorwise.apps.tagging.global_constraints import ConstraintSet
from factorwise.apps.tagging.global_tagger import AUTO, candidates_of
from factorwise.apps.tagging.model_file import KIND
from factorwise.cli.files import STANDARD, check_different, check_kind, check_target, read_text, speaking_of
from factorwise.cli.report_sections import check_report
from factorwise.cli.tag.data import ClassWeights
from factorwise.cli.tag.options import ColumnLayout
from factorwise.learning.likelihood.priors import Prior

#: Algorithms that have no penalty at all.
WITHOUT_PRIOR = ("ap", "pa", "arow")


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRequest:
    """What the user asked for; the fields are the options of the verb."""

    train: str
    model: Path
    label_column: int
    columns: tuple[int, ...] | None
    column_names: str | None
    templates: Path | None
    number_columns: tuple[int, ...] | None
    gazetteer: tuple[Path, ...]
    word_classes: tuple[Path, ...]
    label_unknown: str | None
    separator: str | None
    encoding: str | None
    comment: str | None
    algorithm: str
    c1: tuple[float, ...] | None
    c2: tuple[float, ...] | None
    variance: tuple[float, ...] | None
    scale: tuple[float, ...] | None
    cross_validate: int | None
    max_iterations: int | None
    epsilon: float | None
    period: int | None
    delta: float | None
    order: int
    scheme: str | None
    forbid: tuple[str, ...]
    global_constraints: str | None
    global_folds: int | None
    min_freq: float
    all_possible_states: bool
    all_possible_transitions: bool
    class_weight: tuple[str, ...]
    held_out: str | None
    held_out_share: float | None
    patience: int | None
    warm_start: Path | None
    precision: str
    report: Path | None
    no_values: bool

    @property
    def layout(self) -> ColumnLayout:
        """How the files are written."""
        return ColumnLayout(separator=self.separator, encoding=self.encoding, comment=self.comment)

    def priors(self) -> tuple[Prior, ...]:
        """Return the priors to choose from, in either of their two notations."""
        given = {name: getattr(self, name) for name in ("c1", "c2", "variance", "scale")}
        named = [name for name, values in given.items() if values is not None]
        if named and self.algorithm in WITHOUT_PRIOR:
            raise click.UsageError(
                f"--{named[0]} was given, but --algorithm {self.algorithm} has no penalty: leave it out."
            )
        for one, other in (("c1", "scale"), ("c2", "variance")):
            if one in named and other in named:
                raise click.UsageError(f"--{one} and --{other} say the same thing: give one of them.")
        default = default_prior(self.algorithm, named=bool(named))
        l1 = [Prior.laplace(value).l1 for value in self.scale or ()] or self.c1 or (default.l1,)
        l2 = [Prior.gaussian(value).l2 for value in self.variance or ()] or self.c2 or (default.l2,)
        found = tuple(dict.fromkeys(Prior(l1=a, l2=b) for a, b in product(l1, l2)))
        if len(found) > 1 and self.cross_validate is None:
            raise click.UsageError(
                f"{len(found)} different priors were given: choose one, or let --cross-validate N choose."
            )
        return found

    def training_config(self, prior: Prior, seed: int) -> TrainingConfig:
        """Return the settings of training, all of them checked."""
        named = ("max_iterations", "epsilon", "period", "delta")
        given = {name: getattr(self, name) for name in named if getattr(self, name) is not None}
        return TrainingConfig(
            algorithm=self.algorithm,
            prior=prior,
            order=self.order,
            min_freq=self.min_freq,
            all_possible_states=self.all_possible_states,
            all_possible_transitions=self.all_possible_transitions,
            precision="double" if self.precision == "double" else "single",
            seed=seed,
            **given,
        )

    def class_weights(self) -> ClassWeights:
        """Read ``LABEL=2.5``, any number of times, or ``balanced``."""
        if self.class_weight == ("balanced",):
            return "balanced"
        weights: dict[str, float] = {}
        for text in self.class_weight:
            label, equals, number = text.rpartition("=")
            try:
                weights[label] = float(number)
            except ValueError:
                equals = ""
            if not equals or not 0 < weights[label] < float("inf"):
                raise click.UsageError(
                    f"--class-weight {text!r} is neither LABEL=NUMBER, as in B-NP=2.5 with a number above"
                    " zero, nor 'balanced' alone."
                )
        return weights or None

    def forbidden_pairs(self) -> list[tuple[str | None, str | None]]:
        """Read ``A,B``; a side left empty is the edge of a sentence."""
        pairs: list[tuple[str | None, str | None]] = []
        for text in self.forbid:
            left, comma, right = text.partition(",")
            if not comma or "," in right or not (left or right):
                raise click.UsageError(
                    f"--forbid {text!r} is not a pair of labels, A,B: B must not follow A. Leave A or B empty"
                    " for the beginning or the end of a sentence."
                )
            pairs.append((left or None, right or None))
        return pairs

    @property
    def folds(self) -> int:
        """In how many parts constraints are learned."""
        return FOLDS if self.global_folds is None else self.global_folds

    @property
    def constraint_file(self) -> Path | None:
        """The file of constraints on whole sentences, if there is one."""
        given = self.global_constraints
        return None if given is None or given == AUTO else Path(given)

    @property
    def files(self) -> list[str | Path | None]:
        """Files that the model is made from."""
        used = (self.train, self.held_out, self.warm_start, self.constraint_file)
        return [*used, *self.gazetteer, *self.word_classes]

    def candidates(self, labels: Sequence[str]) -> ConstraintSet | None:
        """Read the constraints on whole sentences."""
        file = self.constraint_file
        if file is None:
            return candidates_of(self.global_constraints, labels, self.order)
        with speaking_of(str(file)):
            return ConstraintSet.parse(read_text(file), labels)

    def template_set(self) -> TemplateSet | None:
        """Read the templates; None for the set that suits the number of columns."""
        if self.templates is None:
            if self.column_names is not None:
                raise click.UsageError(
                    "--column-names gives names for use in your own templates: give --templates FILE too."
                )
            return None
        names = ("w", "p") if self.column_names is None else tuple(self.column_names.split(","))
        text = read_text(self.templates)
        try:
            return TemplateSet.parse(text, names)
        except FeatureTemplateError as error:
            raise FeatureTemplateError(f"{self.templates}: {error}") from None

    def encoder(self, features: Sequence[int]) -> ColumnEncoder:
        """Return the encoder of columns with these numbers in the file."""
        lists: list[WordList] = [Gazetteer.of(p.stem, read_text(p).splitlines()) for p in self.gazetteer]
        for path in self.word_classes:
            lists += WordClasses.parse(path.stem, read_text(path).splitlines())
        numbers = self.number_columns or ()
        if numbers and self.templates is not None:
            raise click.UsageError(
                "--number-columns is for the bundled templates: write value(c2[0]) in --templates FILE"
                " instead."
            )
        for number in numbers:
            if number not in features:
                raise click.UsageError(
                    f"--number-columns names column {number}, but columns {', '.join(map(str, features))}"
                    " make features: name one of them."
                )
        return ColumnEncoder(self.template_set(), lists, [features.index(number) for number in numbers])

    def check(self) -> None:
        """Refuse options that do not go together, and a model that could not be written."""
        if self.held_out is not None and self.held_out_share is not None:
            raise click.UsageError("--held-out and --held-out-share exclude each other: give one of them.")
        if self.patience is not None and self.held_out is None and self.held_out_share is None:
            raise click.UsageError(
                "--patience stops by the score of held-out sentences: give --held-out FILE or"
                " --held-out-share."
            )
        if self.global_constraints is None and self.global_folds is not None:
            raise click.UsageError("--global-folds says how --global is learned: give --global, too.")
        if self.global_folds == 1:
            raise click.UsageError("--global-folds must be at least 2, or 0 for none, but 1 was given.")
        if self.global_constraints is not None and self.order != 1:
            raise click.UsageError("--global needs a chain of --order 1: leave one of the two out.")
        if self.train == STANDARD == self.held_out:
            raise click.UsageError("only one of TRAIN and --held-out can be standard input.")
        if self.constraint_file is not None:
            if not self.constraint_file.exists():
                raise click.UsageError(
                    f"--global {str(self.constraint_file)!r}: there is no such file. Give a file of"
                    f" constraints, or {AUTO!r} for all that can be said of the labels."
                )
            read_text(self.constraint_file)
        inputs = (*self.files, self.templates)
        check_different({"--model": self.model, "--report": self.report})
        check_target("--model", self.model, *inputs)
        check_report(self.report, self.no_values, *inputs)
        self.template_set()
        if self.warm_start is not None:
            check_kind(self.warm_start, KIND)
