"""Check the types of arguments against the annotations of the function that was called.

Decorate a function, a constructor or a dataclass with ``@check_types``: an argument of the wrong type then
raises an error that names the argument, instead of an `AttributeError` from somewhere inside. Only the first
elements of long lists are checked, and arrays are checked by the functions that read them. Annotations are
read at the first call, which keeps imports fast.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, wraps
from itertools import islice
from os import PathLike
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from factorwise.errors import InvalidArgumentError
from factorwise.validation import shown

Checked = TypeVar("Checked", bound=Callable[..., Any])
NUMBERS = {int: (int, np.integer), float: (int, float, np.integer, np.floating)}
LOOKED_AT = 1_000  # elements of a list that are checked
WORDS = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "True or False",
    type(None): "None",
    PathLike: "a path",
}
PLURALS = {str: "texts", int: "whole numbers", float: "numbers", Callable: "functions"}


def check_types(checked: Checked) -> Checked:
    """Decorate a function or a dataclass so that it refuses arguments that do not fit its annotations."""
    if is_dataclass(checked):
        checked.__init__ = check_types(checked.__init__)  # type: ignore[method-assign]
        return checked
    signature = inspect.signature(checked)

    @wraps(checked)
    def check_and_call(*args: Any, **kwargs: Any) -> Any:
        check_arguments(checked, signature.bind(*args, **kwargs).arguments)
        return checked(*args, **kwargs)

    return check_and_call  # type: ignore[return-value]


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse arguments, given by name, whose types do not fit the annotations of a function."""
    hints, owner = _hints(function), function.__qualname__.removesuffix(".__init__")
    for name, value in arguments.items():
        hint = hints.get(name, Any)
        if not fits(value, hint):
            raise InvalidArgumentError(
                f"{name} of {owner} must be {in_words(hint)}, but {shown(value)} was given."
            )


@cache
def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of the parameters of a function, except ``*args`` and ``**kwargs``."""
    try:
        hints = get_type_hints(function)
    except NameError:  # a class that is imported for annotations only
        return {}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return {each.name: hints.get(each.name, Any) for each in parameters if each.kind not in several}


def fits(value: Any, hint: Any) -> bool:
    """Whether a value fits an annotation, as far as a quick check can tell."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in inner)
    if origin is Literal:  # which literal it may be is checked where the value is used
        return isinstance(value, str | int | None)
    kind = origin or hint
    if kind in NUMBERS:
        return isinstance(value, NUMBERS[kind]) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind in (Sequence, Collection, Iterable, tuple, list):
        listed = hasattr(value, "__iter__") and not isinstance(value, str | bytes | Mapping | type)
        single = isinstance(value, np.ndarray) and value.ndim == 0
        sized = hasattr(value, "__len__") and not single
        if not listed or not (sized or (kind is Iterable and not single)):
            return False
        elements = islice(value, LOOKED_AT) if sized and inner else ()
        return all(fits(element, inner[0]) for element in elements)
    if kind in (Mapping, dict) and isinstance(value, Mapping):
        return all(fits(each, inner[1]) for each in islice(value.values(), LOOKED_AT if inner else 0))
    if kind is np.ndarray:
        return isinstance(value, np.ndarray | list | tuple)
    if kind is Callable:
        return callable(value)
    if kind in (Any, object) or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, kind)


def in_words(hint: Any) -> str:
    """Return an annotation in words, for a message."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        options = [in_words(option) for option in inner]
        return f"{', '.join(options[:-1])} or {options[-1]}"
    if origin is Literal:
        return f"one of {', '.join(map(repr, inner))}"
    kind = origin or hint
    if kind in (Sequence, Collection, Iterable, tuple, list):
        elements = PLURALS.get(get_origin(inner[0]) or inner[0]) if inner else None
        return f"a list of {elements}" if elements else "a list"
    if kind is np.ndarray:
        return "an array"
    if kind in (Mapping, dict):
        return "a dictionary"
    if kind is Callable:
        return "a function"
    return WORDS.get(kind, f"of type {getattr(kind, '__name__', kind)}")
