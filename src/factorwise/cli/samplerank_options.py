"""What the verbs share that learn by SampleRank: their options, and watching the passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click

from factorwise.cli.learned_weights import pass_text
from factorwise.cli.numbers import Real, Whole
from factorwise.cli.options import Options

if TYPE_CHECKING:  # these modules load the compiler, which help does not wait for
    from factorwise.learning.samplerank.learner import Callback, PassRecord
    from factorwise.learning.samplerank.preferences import MetricName

#: Names that the learner knows, listed here too: its own modules load the compiler.
UPDATES = ("unit", "mira", "pa", "pa-i", "pa-ii", "cw", "cw-deviation", "arow", "adagrad")
ACCEPTANCES = ("metropolis", "unbalanced", "barker", "greedy", "always", "truth")
METRICS = ("pairwise", "b-cubed", "rand")

F = TypeVar("F", bound=Callable[..., Any])


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names with commas between them."""

    name = "names"
    toml_type: ClassVar[Any] = (str, "names with commas, in quotes")

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Read the names."""
        if isinstance(value, tuple):
            return value
        names = tuple(word.strip() for word in str(value).split(","))
        if not all(names):
            self.fail(f"{value!r} is no list of names: give them with commas between, as in PER,LOC.", param)
        return names


def learning_options(
    *, temperature: float, metric: MetricName, steps: int, per: str, cap: float = 0.01
) -> Callable[[F], F]:
    """Add the options that say how SampleRank learns.

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
            help="Largest multiple of a gradient that one update adds, of mira, pa-i and pa-ii.",
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
            help="At which metropolis and unbalanced decide: the lower, the greedier.",
        ),
        click.option(
            "--metric",
            type=click.Choice(METRICS),
            default=metric,
            help="Whose gains say which of two neighboring worlds is better.",
        ),
        click.option("--passes", type=Whole(min=1), default=10, help="Times to walk over the training data."),
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
    """Return what tells of each pass on standard error if the user wants to know more."""
    if not options.verbose:
        return None

    def tell(record: PassRecord, _weights: object) -> None:
        click.echo(pass_text(record, metric), err=True)

    return tell


def check_complete(history: Sequence[PassRecord], passes: int) -> None:
    """Go on as Ctrl-C wanted, which a learner takes for the end of learning: no model is kept."""
    if len(history) < passes:
        raise KeyboardInterrupt
