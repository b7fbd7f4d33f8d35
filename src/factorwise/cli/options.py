"""The options that every verb has, defined once."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from factorwise import __version__
from factorwise.cli.config import apply_config
from factorwise.cli.numbers import Whole

#: An option whose value is the path of a file.
path_option = partial(click.option, type=click.Path(path_type=Path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that all verbs share.

    seed
        Seed of every random stream.
    threads
        Threads that may work at once; results do not depend on it.
    json
        Print one JSON document instead of text.
    quiet, verbose
        Say less or more on standard error; at most one of them.
    config
        The TOML file with the defaults.
    """

    seed: int
    threads: int
    json: bool
    quiet: bool
    verbose: bool
    config: Path | None


@dataclass(slots=True)
class Session:
    """How to report errors: guessed from the words of the command line until the options are parsed."""

    json: bool
    verbose: bool


class SharedOption(click.Option):
    """An option of every verb, which a configuration file may set at the top."""

    shared = True


MOST_THREADS = 1_024


def usable_processors() -> int:
    """Count the processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_shared = partial(click.option, cls=SharedOption)
SHARED = (
    _shared("--seed", type=click.IntRange(min=0), default=0, help="Seed of every random stream."),
    _shared(
        "--threads",
        type=Whole(min=1, most=MOST_THREADS),
        default=usable_processors,
        show_default="all processors",
        help="Threads that may work at once; results do not depend on it.",
    ),
    _shared(
        "--config",
        type=click.Path(path_type=Path),
        is_eager=True,
        callback=apply_config,
        metavar="FILE.toml",
        help="Take defaults from a TOML file.",
    ),
    _shared("--json", is_flag=True, help="Print one JSON document; errors too, on stderr."),
    _shared("--quiet", is_flag=True, help="No progress bar and no notices."),
    _shared("--verbose", is_flag=True, help="More detail, with tracebacks of internal errors."),
    click.version_option(__version__, prog_name="factorwise", message="%(prog)s %(version)s"),
)


def verb(*, example: str) -> Callable[[Callable[..., None]], click.Command]:
    """Turn a function into a verb: it gets `Options` first and its own parameters by name.

    example
        A full command line, shown at the end of the verb's help.
    """

    def decorate(function: Callable[..., None]) -> click.Command:
        @wraps(function)
        @click.pass_context
        def run(context: click.Context, /, **parameters: Any) -> None:
            own = {
                name: value for name, value in parameters.items() if name not in Options.__dataclass_fields__
            }
            options = _options(context, {name: parameters[name] for name in Options.__dataclass_fields__})
            if isinstance(context.obj, Session):
                context.obj.json, context.obj.verbose = options.json, options.verbose
            function(options, **own)

        for decorator in reversed(SHARED):
            run = decorator(run)
        command = click.command(
            epilog=f"\b\nExample:\n  {example}",
            context_settings={
                "help_option_names": ["-h", "--help"],
                "max_content_width": 100,
                "show_default": True,
            },
        )(run)
        # the verb's own options come first
        command.params = [*command.params[len(SHARED) :], *command.params[: len(SHARED)]]
        return command

    return decorate


def _options(context: click.Context, parameters: dict[str, Any]) -> Options:
    """Build the options; ``--quiet`` or ``--verbose`` on the command line overrides the file."""
    if parameters["quiet"] and parameters["verbose"]:
        typed = [
            name
            for name in ("quiet", "verbose")
            if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        ]
        if len(typed) != 1:
            raise click.UsageError("--quiet and --verbose exclude each other: give one of them.", context)
        parameters |= {"quiet": typed == ["quiet"], "verbose": typed == ["verbose"]}
    return Options(**parameters)
