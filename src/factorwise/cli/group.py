"""Groups of verbs: ``factorwise`` itself, and verbs that are groups, such as ``factorwise tag``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

import click

from factorwise import __version__
from factorwise.cli.verbs import GROUPS

#: A verb's name, the module that defines its ``command`` (empty for one of `GROUPS`), and its line of help.
Registry = Mapping[str, tuple[str, str]]


class VerbGroup(click.Group):
    """A group that imports the module of a verb only when that verb is called."""

    def __init__(self, *arguments: Any, verbs: Registry, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs."""
        return sorted(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module and return its command."""
        if cmd_name not in self.verbs:
            return None
        module = self.verbs[cmd_name][0]
        if not module:
            group = GROUPS[cmd_name]
            return verb_group(cmd_name, group.text, group.verbs, example=group.example)
        return cast("click.Command", import_module(module).command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; if there is none, name the nearest one."""
        if args[0] not in self.verbs:
            close = difflib.get_close_matches(args[0], self.verbs, n=1)
            known = ", ".join(sorted(self.verbs))
            remedy = f"Did you mean {close[0]!r}?" if close else f"The verbs are: {known}."
            whose = f" of {ctx.command_path!r}" if ctx.parent else ""
            ctx.fail(f"no verb{whose} is called {args[0]!r}. {remedy}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what comes before the verb."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(
                f"{error.option_name} is not an option of {ctx.command_path} itself. Options go after"
                f" the verb: {ctx.command_path} VERB {error.option_name}.",
                ctx,
            ) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, self.verbs[name][1]) for name in sorted(self.verbs)])


def verb_group(name: str, text: str, verbs: Registry, *, example: str) -> VerbGroup:
    """Return a group of verbs, which shows its help when no verb is given.

    text
        The purpose of the group.
    example
        A full command line, shown at the end of the help.
    """
    group = VerbGroup(
        name,
        verbs=verbs,
        callback=_help_without_verb,
        invoke_without_command=True,
        subcommand_metavar="VERB [OPTIONS]",
        help=text,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog="\b\nOptions of every verb: --seed, --threads, --config, --json, --quiet, --verbose."
        f"\nExample:\n  {example}",
    )
    version = click.version_option(__version__, prog_name="factorwise", message="%(prog)s %(version)s")
    return version(group)


@click.pass_context
def _help_without_verb(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
