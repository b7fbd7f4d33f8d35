"""``factorwise completion``: print the code that lets a shell complete verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from factorwise.cli.options import Options, verb
from factorwise.cli.output import emit

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_FACTORWISE_COMPLETE"


@verb(example="factorwise completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(SHELLS))
def command(options: Options, shell: str) -> None:
    """Print the code that SHELL must run so that the tab key completes verbs, options and files.

    Add it to the start-up file of the shell (~/.bashrc, ~/.zshrc; for fish a file in
    ~/.config/fish/completions), and open a new one.
    """
    kind = get_completion_class(shell)
    assert kind is not None, "the three shells that click supports"
    root = click.get_current_context().find_root().command
    # bash's version is not checked: the text is the same for all versions with completion
    text = kind.source_template % kind(root, {}, "factorwise", VARIABLE).source_vars()
    emit({"shell": shell, "script": text}, text.splitlines(), as_json=options.json)
