"""The group of verbs, and what becomes of errors.

Exit codes: 0 done, 1 an error of factorwise itself, 2 something the user can mend, 130 interrupted.
"""

from __future__ import annotations

import difflib
import json
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn, cast

import click

from factorwise import __version__
from factorwise.cli.options import Session
from factorwise.cli.output import printable
from factorwise.errors import FactorwiseError

#: Every verb: the module that defines its ``command``, and its line in ``factorwise --help``.
VERBS: dict[str, tuple[str, str]] = {
    "doctor": ("factorwise.cli.doctor", "Report versions, processors, compile cache and data directory."),
    "inspect": ("factorwise.cli.inspect", "Show what a model file holds."),
}


class Verbs(click.Group):
    """A group that imports the module of a verb only when that verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module and return its command."""
        if cmd_name not in VERBS:
            return None
        return cast("click.Command", import_module(VERBS[cmd_name][0]).command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; name the nearest one if there is none."""
        if args[0] not in VERBS:
            close = difflib.get_close_matches(args[0], VERBS, n=1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"There are: {', '.join(sorted(VERBS))}."
            ctx.fail(f"no verb is called {args[0]!r}. {remedy}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what stands before the verb."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(
                f"{error.option_name} is no option of factorwise itself."
                f" Options go after the verb: factorwise VERB {error.option_name}.",
                ctx,
            ) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, VERBS[name][1]) for name in sorted(VERBS)])


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    subcommand_metavar="VERB [OPTIONS]",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nOptions of every verb: --seed, --threads, --config, --json, --quiet, --verbose."
    "\nExample:\n  factorwise doctor --json",
)
@click.version_option(__version__, prog_name="factorwise", message="%(prog)s %(version)s")
@click.pass_context
def factorwise(context: click.Context) -> None:
    """Large factor graphs whose structure changes while inference runs."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    session = Session(json="--json" in words, verbose="--verbose" in words)
    sys.exit(_run(words, session))


def _run(words: list[str], session: Session) -> int:
    try:
        code = factorwise.main(words, prog_name="factorwise", standalone_mode=False, obj=session)
    except click.ClickException as error:
        hint = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f"Try '{error.ctx.command_path} --help'."
        return _report(session, error, error.format_message(), 2, hint)
    except FactorwiseError as error:
        return _report(session, error, str(error), 2)
    except click.Abort as error:  # click's name for Ctrl-C, but also for an end of input
        if isinstance(error.__cause__, EOFError):
            return _report_internal(session, error.__cause__)
        return _report(session, KeyboardInterrupt(), "interrupted", 130)
    except KeyboardInterrupt as error:
        return _report(session, error, "interrupted", 130)
    except Exception as error:
        return _report_internal(session, error)
    return code if isinstance(code, int) else 0


def _report_internal(session: Session, error: BaseException) -> int:
    trace = "".join(traceback.format_exception(error)) if session.verbose else ""
    hint = "" if trace else "Run it again with --verbose to see where."
    message = f"internal error: {type(error).__name__}: {error}."
    return _report(session, error, message, 1, hint, trace)


def _report(
    session: Session, error: BaseException, message: str, code: int, hint: str = "", trace: str = ""
) -> int:
    if session.json:
        document = {"error": {"type": type(error).__name__, "message": message, "exit_code": code}}
        if trace:
            document["error"]["traceback"] = trace
        click.echo(json.dumps(document), err=True)
    else:
        if trace:
            click.echo(trace, err=True, nl=False)
        click.echo(f"error: {printable(message)}{' ' if hint else ''}{hint}", err=True)
    return code
