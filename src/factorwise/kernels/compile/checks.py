"""Check the functions of a program before they are compiled, and report errors at the user's own line.

The function's source shows which fields of ``world``, ``mine`` and ``move`` it uses, and whether every path
through it returns. Errors that only the compiler finds are reported at the line of the user's file whose
statement could not be compiled.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from factorwise.errors import NoCompiledFormError, ProgramError
from factorwise.kernels.compile.dependencies import parsed

_HASHED = re.compile(r"_[0-9a-f]{8}\b")
_AT_LINE = re.compile(r'File ".*factorwise_composed_[0-9a-f]+\.py", line (\d+)')
_REMEDY = "It still runs with engine='plain'."


def check_function(
    role: str, function: Callable[..., Any], fields: Mapping[str, Sequence[str]], *, returns: bool
) -> None:
    """Refuse a function that uses missing fields, or that may end without a number where one is needed.

    Missing fields are those that the arguments do not have.

    fields
        Names of the fields of each argument that has some.
    """
    definition, first = _definition(function)
    if definition is None:
        return
    for node in ast.walk(definition):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        argument = node.value.id
        if argument in fields and node.attr not in fields[argument]:
            known = ", ".join(fields[argument]) or "nothing"
            verb = "sets" if isinstance(node.ctx, ast.Store) else "reads"
            raise ProgramError(
                f"{_where(role, function, first + node.lineno - 1)} {verb} {argument}.{node.attr}, but"
                f" {argument}"
                f" has only {known}."
            )
    if returns and not _always_returns(definition.body):
        raise ProgramError(
            f"{_where(role, function, first)} may end without a return: return a number on every path"
            + (", STAY if nothing is proposed." if role in ("draw", "support") else ".")
        )


def explain_failure(
    role: str, function: Callable[..., Any], text: str, fault: Exception
) -> NoCompiledFormError:
    """Return the error that says which line of the user's own file could not be compiled, and why."""
    message = str(fault.__cause__ or fault)
    definition, first = _definition(function)
    line, statement = first, ""
    for number in reversed(_AT_LINE.findall(message)):
        found = _own_line(text, int(number), definition)
        if found is not None:
            line, statement = first + found[0] - 1, f", {found[1]}"
            break
    return NoCompiledFormError(
        f"{_where(role, function, line)} cannot be compiled{statement}: {_reason(message)} {_REMEDY}"
    )


def _where(role: str, function: Callable[..., Any], line: int) -> str:
    code = getattr(function, "__code__", None)
    file = Path(code.co_filename).name if code is not None else "?"
    return f"{role} {function.__name__!r} ({file}, line {line})"


def _definition(function: Callable[..., Any]) -> tuple[ast.FunctionDef | None, int]:
    """Return the definition of a function as it was written, and its first line; None for a lambda."""
    try:
        lines, first = inspect.getsourcelines(function)
        body = parsed(textwrap.dedent("".join(lines))).body
    except (OSError, TypeError, SyntaxError):
        return None, 0
    definition = body[0] if body and isinstance(body[0], ast.FunctionDef) else None
    return definition, first


def _always_returns(body: Sequence[ast.stmt]) -> bool:
    """Whether every path through some statements ends in a return or an error."""
    for statement in body:
        if isinstance(statement, ast.Return):
            return statement.value is not None
        if isinstance(statement, ast.Raise):
            return True
        if isinstance(statement, ast.If) and statement.orelse:
            if _always_returns(statement.body) and _always_returns(statement.orelse):
                return True
        endless = isinstance(statement, ast.While) and isinstance(statement.test, ast.Constant)
        if endless and not any(isinstance(node, ast.Break) for node in ast.walk(statement)):
            return True
    return False


def _own_line(text: str, number: int, definition: ast.FunctionDef | None) -> tuple[int, str] | None:
    """Return the line, within its definition, of the user's statement at a line of generated text.

    The generated text has other line numbers than the user's file.
    """
    lines = text.splitlines()
    if definition is None or not 0 < number <= len(lines):
        return None
    wanted = _HASHED.sub("", lines[number - 1]).strip()
    for node, shown in _statements(definition):
        if shown == wanted:
            return node.lineno, shown
    return None


def _statements(definition: ast.FunctionDef) -> Iterator[tuple[ast.stmt, str]]:
    for node in ast.walk(definition):
        if isinstance(node, ast.stmt) and node is not definition:
            yield node, _HASHED.sub("", ast.unparse(node).splitlines()[0]).strip()


def _reason(message: str) -> str:
    """Return the compiler's reason in words."""
    if "NRT required" in message or "nrt" in message.lower().split("file")[0]:
        return (
            "it creates an array or a string, which compiled parts cannot do: give the part an array and"
            " fill it."
        )
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    skipped = (
        "Failed in",
        "During:",
        "There are",
        "- Of",
        "File",
        ">>>",
        "Overload",
        "With argument",
        "Rejected",
    )
    telling = [line for line in lines if not line.startswith(skipped)]
    cause = _HASHED.sub("", " ".join(telling[:2]))[:300].rstrip(".")
    return f"{cause}."
