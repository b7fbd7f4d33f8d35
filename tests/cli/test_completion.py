"""``factorwise completion``: scripts, and what they complete."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_script(run, shell):
    done = run("completion", shell)
    assert done.code == 0
    assert "_FACTORWISE_COMPLETE" in done.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("factorwise res", "resolve"),
        ("factorwise resolve ap", "apply"),
        ("factorwise tag fit --glo", "--global"),
    ],
)
def test_verbs_and_options_are_completed(words, expected):
    environment = {
        **os.environ,
        "_FACTORWISE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    command = [sys.executable, "-c", "from factorwise.cli.main import main; main()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert f"plain,{expected}" in done.stdout.splitlines()


def test_an_unknown_shell_is_refused(run):
    done = run("completion", "tcsh")
    assert done.code == 2
    assert "bash" in done.err


def test_a_shell_that_was_not_named_is_asked_for_on_one_line(run):
    error = run("completion").err
    assert "Choose from: bash, zsh, fish. Try 'factorwise completion --help'." in error
    assert "\\n" not in error
