"""Feature templates as data, one per line, such as ``suffix3(w[0])`` or ``w[-1]|w[0]``.

A template is a conjunction of parts joined by ``|``. A part is one of these:

- a column of the token at an offset: ``w[0]`` is the word itself, ``p[-1]`` the tag of the previous token;
- a function of a column: ``lower(w[0])``, ``shape(w[1])``, ``suffix3(w[0])``;
- a flag: ``is_title(w[0])``, or ``first`` and ``last`` token of the sentence. A flag has no value: the
  attribute is present if the flag is true;
- ``value(c2[0])``, the number in a column: an attribute that has this number as its value instead of 1. It
  must be alone on its line, and is 0 beyond the ends of a sentence;
- ``bias``, which is always present.

Beyond the ends of a sentence, a column has a special value for each distance, and flags are false. The
columns are named ``w`` and ``p`` (the first two), ``c0``, ``c1``, ``c2``..., or as the user chooses.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from factorwise.errors import InvalidArgumentError

REACH = 1_000  # maximum offset, in tokens

#: The usual templates for chunking, from a word and its part of speech: 26 templates and five flags.
WORD_AND_TAG = """\
bias
w[0]
lower(w[0])
suffix2(w[0])
suffix3(w[0])
prefix2(w[0])
shape(w[0])
short_shape(w[0])
w[-2]
w[-1]
w[1]
w[2]
w[-1]|w[0]
w[0]|w[1]
p[-2]
p[-1]
p[0]
p[1]
p[2]
p[-2]|p[-1]
p[-1]|p[0]
p[0]|p[1]
p[1]|p[2]
p[-2]|p[-1]|p[0]
p[-1]|p[0]|p[1]
p[0]|p[1]|p[2]
is_digit(w[0])
is_title(w[0])
is_upper(w[0])
first
last
"""

#: Templates for words alone, as in named entity recognition and part-of-speech tagging.
WORD_ONLY = """\
bias
w[0]
lower(w[0])
prefix1(w[0])
prefix2(w[0])
prefix3(w[0])
prefix4(w[0])
suffix1(w[0])
suffix2(w[0])
suffix3(w[0])
suffix4(w[0])
shape(w[0])
short_shape(w[0])
lower(w[-2])
lower(w[-1])
lower(w[1])
lower(w[2])
suffix3(w[-1])
suffix3(w[1])
short_shape(w[-1])
short_shape(w[1])
lower(w[-1])|lower(w[0])
lower(w[0])|lower(w[1])
short_shape(w[-1])|short_shape(w[0])
short_shape(w[0])|short_shape(w[1])
short_shape(w[-1])|short_shape(w[0])|short_shape(w[1])
is_digit(w[0])
is_title(w[0])
is_upper(w[0])
is_alnum(w[0])
has_digit(w[0])
has_hyphen(w[0])
has_punctuation(w[0])
first
last
"""

#: The set for two columns, which is the most common case.
DEFAULT = WORD_AND_TAG


class FeatureTemplateError(InvalidArgumentError):
    """Raised if a feature template cannot be parsed, or uses a column that does not exist."""


class _Shapes(dict[int, str]):
    """Table for `str.translate`: upper case to X, lower case to x, digits to d, the rest unchanged."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = "X" if character.isupper() else "x" if character.islower() else character
        self[code] = "d" if character.isdigit() else kind
        return self[code]


class _Zeros(dict[int, str]):
    """Table for `str.translate`: digits to 0, other characters unchanged."""

    def __missing__(self, code: int) -> str:
        self[code] = "0" if chr(code).isdigit() else chr(code)
        return self[code]


_SHAPES, _ZEROS = _Shapes(), _Zeros()
_RUN = re.compile(r"(.)\1+", re.DOTALL)


def shape(word: str) -> str:
    """Return the shape of a word, with X for upper case, x for lower case, d for digits: ``Xxxx-dd``."""
    return word.translate(_SHAPES)


@lru_cache(maxsize=1 << 16)
def _without_runs(text: str) -> str:
    return _RUN.sub(r"\1", text)


def short_shape(word: str) -> str:
    """Return the shape of a word with repeated characters merged: ``Xx-d``."""
    return _without_runs(shape(word))


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


VALUES: dict[str, tuple[Callable[[str], str], str]] = {
    "lower": (str.lower, "{} in small letters"),
    "shape": (shape, "the shape (Xxxx-dd) of {}"),
    "short_shape": (short_shape, "the shape without repetitions (Xx-d) of {}"),
    "number": (lambda word: word.translate(_ZEROS), "{} with every digit made 0"),
    "length": (lambda word: str(len(word)), "the number of characters of {}"),
}
FLAGS: dict[str, tuple[Callable[[str], bool], str]] = {
    "is_digit": (str.isdigit, "{} is all digits"),
    "is_title": (str.istitle, "{} begins with a capital, small letters follow"),
    "is_upper": (str.isupper, "{} is in capitals"),
    "is_lower": (str.islower, "{} is in small letters"),
    "is_alpha": (str.isalpha, "{} is all letters"),
    "is_alnum": (str.isalnum, "{} is all letters and digits"),
    "is_punctuation": (
        lambda word: bool(word) and all(map(_is_punctuation, word)),
        "{} is all punctuation and symbols",
    ),
    "has_digit": (lambda word: any(map(str.isdigit, word)), "{} has a digit"),
    "has_upper": (lambda word: any(map(str.isupper, word)), "{} has a capital"),
    "has_hyphen": (lambda word: "-" in word, "{} has a hyphen"),
    "has_period": (lambda word: "." in word, "{} has a period"),
    "has_punctuation": (lambda word: any(map(_is_punctuation, word)), "{} has punctuation or a symbol"),
}
SENTENCE_FLAGS = {"first": "the first token", "last": "the last token"}
NUMBER = "value"  # the function of columns that hold numbers

_AFFIX = re.compile(r"(prefix|suffix)([1-9]\d?)", re.ASCII)
_PART = re.compile(
    r"""(?:(?P<function>\w+)\s*\(\s*)?            # lower(
    (?P<column>[^\W\d]\w*)                       # w
    \s*\[\s*(?P<offset>[+-]?\d+)\s*\]           # [0]
    \s*(?P<close>\)?)                            # )
    """,
    re.VERBOSE,
)
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBERED = re.compile(r"c(\d{1,6})", re.ASCII)


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """A function of a column of the token at ``offset``.

    function
        Name of the function; empty for the column itself, ``first`` or ``last`` for the sentence flags.
    column
        Number of the column; -1 for the sentence flags.
    """

    function: str
    column: int
    offset: int

    @property
    def is_flag(self) -> bool:
        """Whether the part is a flag, which has no value."""
        return self.function in FLAGS or self.function in SENTENCE_FLAGS


@dataclass(frozen=True, slots=True)
class Template:
    """A conjunction of parts; ``bias`` has none."""

    text: str
    parts: tuple[TemplatePart, ...]

    @property
    def is_number(self) -> bool:
        """Whether the attribute's value is the number in a column."""
        return bool(self.parts) and self.parts[0].function == NUMBER


@dataclass(frozen=True, slots=True)
class TemplateSet:
    r"""Feature templates in order, and the names of the first columns.

    >>> TemplateSet.parse("w[0]\nw[-1]|suffix2(w[0])").lines()
    ('w[0]', 'w[-1]|suffix2(w[0])')
    """

    templates: tuple[Template, ...]
    columns: tuple[str, ...]

    @classmethod
    def parse(
        cls, text: str | Iterable[str], columns: Sequence[str] | Mapping[str, int] = ("w", "p")
    ) -> TemplateSet:
        """Parse templates, one per line; blank lines and comments after ``#`` are ignored.

        columns
            Names of the first columns, or a mapping from names to column numbers; other columns are called by
            their number, such as ``c2``.
        """
        names = _column_names(columns)
        lines = text.splitlines() if isinstance(text, str) else list(text)
        templates: dict[tuple[TemplatePart, ...], tuple[int, Template]] = {}
        for number, line in enumerate(lines, 1):
            content = line.split("#", 1)[0].strip()
            if not content:
                continue
            template = _template(content, names, f"template line {number}")
            before = templates.setdefault(template.parts, (number, template))[0]
            if before != number:
                raise FeatureTemplateError(
                    f"template line {number}: {content!r} says the same as line {before}: leave one out."
                )
        if not templates:
            raise FeatureTemplateError("there are no templates: give one a line, such as 'w[0]'.")
        return cls(tuple(template for _, template in templates.values()), names)

    def __len__(self) -> int:
        return len(self.templates)

    def lines(self) -> tuple[str, ...]:
        """Return the templates as lines that `parse` reads."""
        return tuple(template.text for template in self.templates)

    @property
    def n_columns(self) -> int:
        """The number of columns that the input must have."""
        return 1 + max((part.column for template in self.templates for part in template.parts), default=-1)

    def within(self, n_columns: int) -> TemplateSet:
        """Return only the templates that use no more than the first ``n_columns`` columns."""
        kept = (t for t in self.templates if all(part.column < n_columns for part in t.parts))
        return TemplateSet(tuple(kept), self.columns[:n_columns])

    def check(self, n_columns: int) -> None:
        """Raise an error that names the template if the input has fewer columns than it uses."""
        for template in self.templates:
            for part in template.parts:
                if part.column >= n_columns:
                    there = ", ".join(_column_name(column, self.columns) for column in range(n_columns))
                    raise FeatureTemplateError(
                        f"template {template.text!r} asks for column {part.column} (counted from 0), but the"
                        f" input has {n_columns} ({there}): give input with that column, or leave out the"
                        " template."
                    )

    def describe(self) -> str:
        """Return a description of each template in words, one per line."""
        width = max(len(template.text) for template in self.templates)
        return "\n".join(
            f"{template.text:<{width}}  {_in_words(template, self.columns)}" for template in self.templates
        )


def default_templates(n_columns: int, numbers: Sequence[int] = ()) -> TemplateSet:
    """Return the default templates for ``n_columns`` columns: words, then tags, then any others.

    numbers
        Columns that hold numbers.
    """
    if n_columns < 1:
        raise InvalidArgumentError(f"n_columns must be at least 1, but {n_columns!r} was given.")
    texts = [column for column in range(n_columns) if column not in numbers]
    if not texts or texts[0] != 0:
        raise FeatureTemplateError(
            "the first column holds numbers, where the bundled templates want words: give templates of your"
            " own."
        )
    tags = texts[1:2] == [1]
    more = [f"c{column}[{offset}]" for column in texts[1 + tags :] for offset in (-1, 0, 1)]
    more += [f"{NUMBER}(c{column}[{offset}])" for column in sorted(numbers) for offset in (-1, 0, 1)]
    return TemplateSet.parse([*(WORD_AND_TAG if tags else WORD_ONLY).splitlines(), *more])


def function_named(name: str) -> Callable[[str], str | bool]:
    """Return the function with the name that a template part uses."""
    if not name:
        return str
    affix = _AFFIX.fullmatch(name)
    if affix:
        length = int(affix[2])
        cut = slice(length) if affix[1] == "prefix" else slice(-length, None)
        return lambda word: word[cut]
    return VALUES[name][0] if name in VALUES else FLAGS[name][0]


def _template(text: str, columns: tuple[str, ...], where: str) -> Template:
    pieces = [piece.strip() for piece in text.split("|")]
    if pieces == ["bias"]:
        return Template("bias", ())
    parts = tuple(_part(piece, columns, where) for piece in pieces)
    if len(parts) > 1 and any(part.function == NUMBER for part in parts):
        raise FeatureTemplateError(f"{where}: {text!r}: {NUMBER}(...) stands alone on its line.")
    if len(set(parts)) < len(parts):
        raise FeatureTemplateError(f"{where}: {text!r} has a part twice: name each once.")
    return Template("|".join(_notation(part, columns) for part in parts), parts)


def _part(text: str, columns: tuple[str, ...], where: str) -> TemplatePart:
    if text in SENTENCE_FLAGS:
        return TemplatePart(text, -1, 0)
    if text == "bias":
        raise FeatureTemplateError(f"{where}: 'bias' is always there: it stands alone on its line.")
    match = _PART.fullmatch(text)
    if match is None or (match["function"] is None) != (match["close"] == ""):
        raise _unreadable(text, columns, where)
    function = match["function"] or ""
    known = [*VALUES, *FLAGS, NUMBER, "prefix3", "suffix3"]
    if function and function not in known and not _AFFIX.fullmatch(function):
        raise FeatureTemplateError(
            f"{where}: there is no function {function!r}.{_guess(function, known)} Functions are"
            f" {', '.join([*VALUES, *FLAGS, NUMBER])}, prefixN and suffixN with N from 1 to 99."
        )
    offset = int(match["offset"]) if len(match["offset"]) < 9 else REACH + 1
    if abs(offset) > REACH:
        raise FeatureTemplateError(
            f"{where}: {text!r} looks further than {REACH} tokens away: use a shorter distance."
        )
    return TemplatePart(function, _column(match["column"], columns, where), offset)


def _column(name: str, columns: tuple[str, ...], where: str) -> int:
    if name in columns:
        return columns.index(name)
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None:
        raise FeatureTemplateError(
            f"{where}: there is no column {name!r}.{_guess(name, columns)} Columns are"
            f" {', '.join(columns)}{', and' if columns else ''} c0, c1, c2... by number."
        )
    return int(numbered[1])


def _unreadable(text: str, columns: tuple[str, ...], where: str) -> FeatureTemplateError:
    known = ["bias", *SENTENCE_FLAGS]
    name = columns[0] if columns else "c0"
    return FeatureTemplateError(
        f"{where}: {text!r} is not a part of a template.{_guess(text, known)} Parts are {name}[0] (a column"
        f" and a distance), lower({name}[0]) (a function of it), first, last and bias; join them with '|'."
    )


def _guess(given: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(given, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _column_names(columns: Sequence[str] | Mapping[str, int]) -> tuple[str, ...]:
    """Return the column names in order; raise an error if they are invalid."""
    if isinstance(columns, Mapping):
        named = {number: name for name, number in columns.items()}
        if len(named) < len(columns) or min(named, default=0) < 0:
            raise FeatureTemplateError(
                f"the columns {dict(columns)!r} do not each have a number of their own, 0 or more: give one"
                " name for a column."
            )
        columns = [named.get(number, f"c{number}") for number in range(max(named, default=-1) + 1)]
    names = tuple(columns)
    for number, name in enumerate(names):
        numbered = _NUMBERED.fullmatch(name)
        if not _NAME.fullmatch(name) or (numbered and int(numbered[1]) != number):
            raise FeatureTemplateError(
                f"{name!r} cannot name column {number}: use letters, digits and '_', beginning with a letter,"
                " and c0, c1, c2... for the columns of these numbers only."
            )
        if name in names[:number]:
            raise FeatureTemplateError(f"two columns are named {name!r}: give each a name of its own.")
    return names


def _column_name(column: int, columns: tuple[str, ...]) -> str:
    return columns[column] if column < len(columns) else f"c{column}"


def _notation(part: TemplatePart, columns: tuple[str, ...]) -> str:
    if part.function in SENTENCE_FLAGS:
        return part.function
    place = f"{_column_name(part.column, columns)}[{part.offset}]"
    return f"{part.function}({place})" if part.function else place


def _in_words(template: Template, columns: tuple[str, ...]) -> str:
    return " and ".join(_part_in_words(part, columns) for part in template.parts) or "always there"


def _part_in_words(part: TemplatePart, columns: tuple[str, ...]) -> str:
    if part.function in SENTENCE_FLAGS:
        return SENTENCE_FLAGS[part.function]
    place = f"{_column_name(part.column, columns)} of the token"
    if part.offset:
        place += f" {abs(part.offset)} {'before' if part.offset < 0 else 'after'}"
    affix = _AFFIX.fullmatch(part.function)
    if affix:
        return f"the {'first' if affix[1] == 'prefix' else 'last'} {affix[2]} characters of {place}"
    if not part.function:
        return place
    if part.function == NUMBER:
        return f"the number in {place}"
    return (VALUES.get(part.function) or FLAGS[part.function])[1].format(place)
