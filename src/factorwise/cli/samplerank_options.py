"""Options of the verbs that learn by SampleRank, and the report of their passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from factorwise.cli.learned_weights import pass_text
from factorwise.cli.numbers import Real, Whole
from factorwise.cli.options import Options

if TYPE_CHECKING:  # these modules load the compiler, which help does not need
    from factorwise.learning.samplerank.learner import Callback, PassRecord
    from factorwise.learning.samplerank.preferences import MetricName

#: Names that the learner knows, repeated here because its own modules load the compiler.
UPDATES = ("unit", "mira", "pa", "pa-i", "pa-ii", "cw", "cw-deviation", "arow", "adagrad")
ACCEPTANCES = ("metropolis", "unbalanced", "barker", "greedy", "always", "truth")
METRICS = ("pairwise", "b-cubed", "rand")

F = TypeVar("F", bound=Callable[..., Any])


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names separated by commas."""

    name = "names"
    toml_type: ClassVar[Any] = (str, "names with commas, in quotes")

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Parse the names."""
        if isinstance(value, tuple):
            return value
        names = tuple(word.strip() for word in str(value).split(","))
        if not all(names):
            self.fail(f"{value!r} is not a list of names: separate them by commas, as in PER,LOC.", param)
        return names


def learning_options(
    *, temperature: float, metric: MetricName, steps: int, per: str, cap: float = 0.01
) -> Callable[[F], F]:
    """Add the options of SampleRank.

    temperature, metric, steps, cap
        Defaults.
    per
        What ``--steps`` are counted for.
    """
    decorators = (
        click.option(
            "--update",
            type=click.Choice(UPDATES),
            default="mira",
            help="How a wrong ranking corrects the weights.",
        ),
        click.option(
            "--cap",
            type=Real(min=0, min_open=True),
            default=cap,
            help="Largest multiple of a gradient that one update adds, for mira, pa-i and pa-ii.",
        ),
        click.option(
            "--accept",
            type=click.Choice(ACCEPTANCES),
            default="metropolis",
            help="How the walk decides about a step.",
        ),
        click.option(
            "--temperature",
            type=Real(min=0, min_open=True),
            default=temperature,
            help="Temperature of metropolis and unbalanced: lower is greedier.",
        ),
        click.option(
            "--metric",
            type=click.Choice(METRICS),
            default=metric,
            help="Metric whose gains say which of two neighboring worlds is better.",
        ),
        click.option(
            "--passes", type=Whole(min=1), default=10, help="Number of passes over the training data."
        ),
        click.option(
            "--steps", type=Whole(min=1), default=steps, help=f"Steps of a walk for each {per}, in each pass."
        ),
    )

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def watch(options: Options, metric: str) -> Callback | None:
    """Return a callback that reports each pass on standard error with ``--verbose``."""
    if not options.verbose:
        return None

    def tell(record: PassRecord, _weights: object) -> None:
        click.echo(pass_text(record, metric), err=True)

    return tell


def check_complete(history: Sequence[PassRecord], passes: int) -> None:
    """Raise KeyboardInterrupt if Ctrl-C ended the learning early, so that no model is saved."""
    if len(history) < passes:
        raise KeyboardInterrupt
