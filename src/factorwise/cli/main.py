"""The top-level group of verbs, and the handling of errors.

Exit codes: 0 success, 1 an internal error of factorwise, 2 a problem with the input or the options, 130
interrupted by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

from __future__ import annotations

import gc
import json
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from signal import Signals
from typing import NoReturn

import click

from factorwise.cli.group import verb_group
from factorwise.cli.options import Session
from factorwise.cli.output import printable, with_options
from factorwise.cli.signals import interrupted_by_signals
from factorwise.errors import FactorwiseError

#: Every verb: the module that defines its ``command`` (empty for a group), and its line of help.
VERBS: dict[str, tuple[str, str]] = {
    "align": ("", "Match the concepts of two ontologies: learn, match, score."),
    "cite": ("factorwise.cli.cite", "Find works and people in a list of references."),
    "cluster": ("factorwise.cli.cluster", "Find entities from pairs that any tool has scored."),
    "completion": ("factorwise.cli.completion", "Print code that lets a shell complete verbs and options."),
    "coref": ("", "Cluster mentions into entities: learn, find, score."),
    "demo": ("factorwise.cli.demo", "Resolve and read a generated bibliography; write a page."),
    "doctor": ("factorwise.cli.doctor", "Report versions, processors, compile cache and data directory."),
    "flows": ("", "Find how a population moves from counts: learn, find, score."),
    "generate": ("", "Generate data whose truth is known."),
    "infer": ("factorwise.cli.infer", "Compute marginals or a best setting of a network in a file."),
    "inspect": ("factorwise.cli.inspect", "Show the content of a model file."),
    "resolve": ("", "Find records of the same entity: learn, find, score, explain."),
    "review": ("factorwise.cli.review", "Answer questions about uncertain records, and learn from them."),
    "tag": ("", "Label the tokens of sentences: train, tag, score, look inside."),
}


factorwise = verb_group(
    "factorwise",
    "Large factor graphs whose structure changes while inference runs.",
    VERBS,
    example="factorwise doctor --json",
)


#: Number of objects after which the cycle collector runs. While numba compiles it creates millions of objects
#: that stay, and checking them again and again takes a fifth of the time.
SELDOM = (100_000, 50, 100)


class WithoutPandas(MetaPathFinder):
    """Hides pandas, because the command line has no data frames and Arrow would load it."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Refuse pandas, and leave all other modules to other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError("pandas is hidden from the command line", name=fullname)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its exit code."""
    gc.set_threshold(*SELDOM)
    if arguments is None:  # a process of its own
        sys.meta_path.insert(0, WithoutPandas())
    words = list(sys.argv[1:] if arguments is None else arguments)
    # scikit-learn loads joblib, which warns of a full disk before the error does
    warnings.filterwarnings("ignore", ".*joblib will operate in serial mode", UserWarning)
    session = Session(json="--json" in words, verbose="--verbose" in words)
    with interrupted_by_signals() as signals:
        code = _run(words, session, signals)
    sys.exit(code)


def _run(words: list[str], session: Session, signals: Sequence[Signals]) -> int:
    try:
        code = factorwise.main(words, prog_name="factorwise", standalone_mode=False, obj=session)
    except click.ClickException as error:
        hint = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f"Try '{error.ctx.command_path} --help'."
        return _report(session, error, _one_line(error), 2, hint)
    except FactorwiseError as error:
        return _report(session, error, with_options(str(error)), 2)
    except click.Abort as error:  # click's name for Ctrl-C, but also for an end of input
        if isinstance(error.__cause__, EOFError):
            return _report_internal(session, error.__cause__)
        return _report_interruption(session, signals)
    except KeyboardInterrupt:
        return _report_interruption(session, signals)
    except Exception as error:
        return _report_internal(session, error)
    if signals and code in (None, 0, 130):  # what had been found until then is written
        return _report_interruption(session, signals)
    return code if isinstance(code, int) else 0


def _one_line(error: click.ClickException) -> str:
    """Return click's message; for a missing argument, it lists the choices on lines of their own."""
    text = error.format_message()
    if not isinstance(error, click.MissingParameter) or "\n" not in text:
        return text
    return f"{' '.join(text.split())}."


def _report_interruption(session: Session, signals: Sequence[Signals]) -> int:
    """Report how a run was interrupted: by Ctrl-C, or by the first signal that arrived."""
    if not signals:
        return _report(session, KeyboardInterrupt(), "interrupted", 130)
    return _report(session, KeyboardInterrupt(), f"ended by {signals[0].name}", 128 + signals[0])


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
