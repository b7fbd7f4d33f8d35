"""Check the types of arguments against the annotations of the function that was called.

`guard` checks every public class and function; `factorwise.lazy` calls it when a public name is first used.
Arguments of functions, constructors and estimators are checked before the call: an argument of the wrong type
raises an error that names it, instead of an `AttributeError` from somewhere inside. Other methods run inside
loops, so their arguments are only checked when a call has failed with an error that is not ours, and then
more strictly: an array must hold numbers of the annotated kind. Only the first elements of long lists are
checked. Annotations are read at the first call, which keeps imports fast.
"""

from __future__ import annotations

import collections.abc
import inspect
import sys
import types
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache, wraps
from itertools import islice
from os import PathLike
from typing import Any, Literal, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from factorwise.errors import FactorwiseError, InvalidArgumentError
from factorwise.validation import shown

Checked = TypeVar("Checked", bound=Callable[..., Any])
Fits = Callable[[Any], bool]
RAW = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, NotImplementedError)
LOOKED_AT = 1_000  # elements of a list that are checked
LISTS = (Sequence, Collection, Iterable, tuple, list)
DUNDERS = (
    "__array__",
    "__buffer__",
    "__getitem__",
    "__len__",
    "__call__",
    "__add__",
)  # that protocols ask for
WORDS = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bytes: "bytes",
    bool: "True or False",
    type(None): "None",
    PathLike: "a path",
    Hashable: "a key",
    Callable: "a function",
    np.ndarray: "an array",
}
PLURALS = {str: "texts", int: "whole numbers", float: "numbers", Callable: "functions", np.ndarray: "arrays"}


# --- checks of calls ---------------------------------------------------------------------------------------


def guard(value: Any) -> Any:
    """Check all calls of a class, which is changed in place, or of a function; return what replaces it."""
    if isinstance(value, types.FunctionType):
        if value.__module__.startswith("factorwise.kernels."):
            return value  # compiled code calls it by identity, and a wrapper has no compiled form
        guarded, name = check_types(value), value.__qualname__
        home = sys.modules[value.__module__]
        if vars(home).get(name) is value:  # where pickle looks for it
            setattr(home, name, guarded)
        return guarded
    if isinstance(value, type) and not issubclass(value, BaseException):
        for owner in value.__mro__:
            if owner.__module__.startswith("factorwise.") and not is_protocol(owner):
                _guard_methods(owner)
    return value


def _guard_methods(owner: type) -> None:
    estimates = hasattr(owner, "get_params")  # scikit-learn's manner: parameters are checked when it fits
    for name, member in list(vars(owner).items()):
        function = getattr(member, "__func__", member)
        if not isinstance(function, types.FunctionType) or hasattr(function, "checks_types"):
            continue
        if (name.startswith("_") and (name != "__init__" or estimates)) or _says_nothing(function):
            continue
        before = name == "__init__" or estimates or member is not function
        guarded = check_types(function) if before else explain_failures(function)
        setattr(owner, name, guarded if member is function else type(member)(guarded))


def _says_nothing(function: types.FunctionType) -> bool:
    """Whether no parameter has an annotation to check: functions that are compiled must stay as they are."""
    annotated = {name: text for name, text in function.__annotations__.items() if name != "return"}
    return all(text in ("Any", "object") for text in annotated.values())


def check_types(function: Checked) -> Checked:
    """Return a function or a dataclass that refuses arguments that do not fit its annotations."""
    if isinstance(function, type):
        function.__init__ = check_types(function.__init__)  # type: ignore[misc]
        return function
    if hasattr(function, "checks_types"):
        return function

    def check(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        by_place, by_name = checks_of(function)
        for (name, fits), value in zip(by_place, args, strict=False):
            if not fits(value):
                refuse(function, name, value)
        for name, value in kwargs.items():
            if name in by_name and not by_name[name](value):
                refuse(function, name, value)

    return explain_failures(function, check)


def explain_failures(
    function: Checked, check: Callable[[Sequence[Any], Mapping[str, Any]], None] | None = None
) -> Checked:
    """Return a function that names the argument of the wrong type when a call fails with a foreign error.

    check
        Called with the arguments before each call.
    """

    @wraps(function)
    def call_and_explain(*args: Any, **kwargs: Any) -> Any:
        if check is not None:
            check(args, kwargs)
        try:
            return function(*args, **kwargs)
        except FactorwiseError:
            raise
        except RAW as error:
            explain(function, args, kwargs, error)
            raise

    call_and_explain.checks_types = True  # type: ignore[attr-defined]
    return call_and_explain  # type: ignore[return-value]


def explain(function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any], error: Exception) -> None:
    """Refuse the first argument that can have caused an error."""
    by_place, by_name = checks_of(function, closely=True)
    given = [(name, fits, value) for (name, fits), value in zip(by_place, args, strict=False)]
    given += [(name, by_name[name], value) for name, value in kwargs.items() if name in by_name]
    for name, fits, value in given:
        if not fits(value):
            refuse(function, name, value, error)
    for name, _, value in given:
        if name != "self" and any(_conversion_error(value, kind) == str(error) for kind in (float, np.int64)):
            owner = _name_of(function)
            message = f"{name} of {owner} must be numbers, but {shown(value)} was given: {error}."
            raise InvalidArgumentError(message) from error


def _conversion_error(value: Any, kind: type) -> str | None:
    """Return NumPy's message if a value cannot be converted to an array of numbers."""
    try:
        np.asarray(value, dtype=kind)
    except RAW as error:
        return str(error)
    return None


def refuse(function: Callable[..., Any], name: str, value: Any, cause: Exception | None = None) -> None:
    """Raise the error that says what an argument must be."""
    message = f"{name} of {_name_of(function)} must be {in_words(hints_of(function)[name])}"
    raise InvalidArgumentError(f"{message}, but {shown(value)} was given.") from cause


def _name_of(function: Callable[..., Any]) -> str:
    return function.__qualname__.removesuffix(".__init__")


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Refuse arguments, given by name, whose types do not fit the annotations of a function."""
    for name, fits in checks_of(function)[1].items():
        if name in arguments and not fits(arguments[name]):
            refuse(function, name, arguments[name])


@cache
def checks_of(
    function: Callable[..., Any], closely: bool = False
) -> tuple[list[tuple[str, Fits]], dict[str, Fits]]:
    """Return the checks of a function's parameters, in their order and by name."""
    hints = hints_of(function)
    by_place, by_name = [], {}
    for one in inspect.signature(function).parameters.values():
        fits = fits_of(hints.get(one.name, Any), closely)
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD):
            by_place.append((one.name, fits))
        if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD):
            by_name[one.name] = fits
    return by_place, by_name


@cache
def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function; `Any` for those that name something that is not imported."""
    plain = inspect.unwrap(function)
    try:
        return get_type_hints(plain)
    except (NameError, TypeError, AttributeError):
        hints: dict[str, Any] = {}
        for name, text in plain.__annotations__.items():
            alone = types.FunctionType((lambda: None).__code__, plain.__globals__)
            alone.__annotations__ = {name: text}
            try:
                hints |= get_type_hints(alone)
            except (NameError, TypeError, AttributeError):
                hints[name] = Any
        return hints


# --- what annotations say -----------------------------------------------------------------------------------


def fits_of(hint: Any, closely: bool = False) -> Fits:
    """Return a function that tells whether a value fits an annotation, as far as a quick check can tell."""
    origin, inner = get_origin(hint), get_args(hint)
    kind = origin or hint
    if isinstance(kind, NewType):
        return fits_of(kind.__supertype__, closely)
    if origin in (Union, types.UnionType):
        options = [fits_of(option, closely) for option in inner]
        return lambda value: any(fits(value) for fits in options)
    if origin is Literal:  # which literal it may be is checked where the value is used
        return lambda value: isinstance(value, str | int | None)
    if kind in (int, float):
        numbers = (int, np.integer) if kind is int else (int, float, np.integer, np.floating)
        limit: float = 2.0**63 if kind is int and closely else np.inf
        return lambda value: (
            isinstance(value, numbers)
            and not isinstance(value, bool)
            and not (kind is int and abs(int(value)) >= limit)
        )
    if kind is complex:
        return lambda value: isinstance(value, int | float | complex | np.number | np.bool_)
    if kind is bool:
        return lambda value: isinstance(value, bool | np.bool_)
    if kind in LISTS:
        return _fits_list(kind, inner, closely)
    if kind in (Mapping, dict):
        keys, elements = (fits_of(each, closely) for each in inner or (Any, Any))
        return lambda value: (
            isinstance(value, Mapping)
            and all(keys(key) and elements(value[key]) for key in islice(value, LOOKED_AT))
        )
    if kind is np.ndarray:
        if closely:
            kinds = _kinds_held(inner)
            return lambda value: isinstance(value, np.ndarray) and value.dtype.kind in kinds
        return lambda value: isinstance(value, list | tuple) or hasattr(value, "__array__")
    if kind is collections.abc.Callable:
        return callable
    if isinstance(kind, type) and is_protocol(kind):
        return _fits_protocol(kind, closely)
    if kind in (Any, object) or not isinstance(kind, type):
        return lambda value: True
    return lambda value: isinstance(value, kind)


def _fits_list(kind: Any, inner: tuple[Any, ...], closely: bool) -> Fits:
    each = [fits_of(hint, closely) for hint in inner if hint is not ...]
    together = kind is tuple and inner and ... not in inner
    if not closely and not together and inner and _kind_of(inner[0]) in (*LISTS, Mapping, dict):
        each = []  # rows of lists: who reads them says which row is wrong

    def fits(value: Any) -> bool:
        if not hasattr(value, "__iter__") or isinstance(value, str | bytes | Mapping | type):
            return False
        if not hasattr(value, "__len__") or (isinstance(value, np.ndarray) and value.ndim == 0):
            return kind is Iterable and not isinstance(value, np.ndarray)
        if together:
            return len(value) == len(each) and all(fits(one) for fits, one in zip(each, value, strict=True))
        return not each or all(map(each[0], islice(value, LOOKED_AT)))

    return fits


def _kinds_held(inner: tuple[Any, ...]) -> str:
    """Return the kinds of elements that an annotated array may have."""
    scalar = _kind_of(get_args(inner[1])[0]) if len(inner) == 2 and get_args(inner[1]) else None
    kinds = ((np.bool_, "b"), (np.integer, "biu"), (np.floating, "biuf"))
    wanted = scalar if isinstance(scalar, type) else object
    return next((held for kind, held in kinds if issubclass(wanted, kind)), "biufcOSUVMm")


def is_protocol(kind: type) -> bool:
    """Whether a class is a protocol."""
    return bool(vars(kind).get("_is_protocol", False))


def _fits_protocol(kind: type, closely: bool) -> Fits:
    """Check that a value has the members of a protocol; a quick check leaves that to better messages."""
    names = {
        name
        for each in kind.__mro__
        if is_protocol(each) and each.__module__ != "typing"
        for name in (*vars(each), *vars(each).get("__annotations__", ()))
        if not name.startswith("_") or name in DUNDERS
    }
    asked = names if closely or names & set(DUNDERS) else set()
    return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in asked)


def in_words(hint: Any) -> str:
    """Return an annotation in words, for a message."""
    origin, inner = get_origin(hint), get_args(hint)
    kind = origin or hint
    if origin in (Union, types.UnionType):
        if any(getattr(option, "__name__", "") == "_NestedSequence" for option in map(_kind_of, inner)):
            numpy_like = [each for each in inner if each in (str, type(None)) or _kind_of(each) is Callable]
            inner = (np.ndarray, *(option for option in numpy_like if option is not str))
        options = list(dict.fromkeys(in_words(option) for option in inner))
        return f"{', '.join(options[:-1])} or {options[-1]}" if len(options) > 1 else options[0]
    if origin is Literal:
        return f"one of {', '.join(map(repr, inner))}"
    if kind in LISTS:
        elements = PLURALS.get(_kind_of(inner[0])) if inner else None
        return f"a list of {elements}" if elements else "a list"
    if kind in (Mapping, dict):
        return "a dictionary"
    return WORDS.get(kind, f"of type {getattr(kind, '__name__', kind)}")


def _kind_of(hint: Any) -> Any:
    return get_origin(hint) or hint
