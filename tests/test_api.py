"""The public interface, name by name: a change shows up here, and is made on purpose.

After one, write the list anew: ``python tests/test_api.py``.
"""

import inspect
from importlib import import_module
from pathlib import Path

SNAPSHOT = Path(__file__).parent / "api.txt"
MODULES = (
    "factorwise",
    "factorwise.cross_entropy",
    "factorwise.distributed",
    "factorwise.inference.message_passing.projection",
    "factorwise.learning",
    "factorwise.mcmc",
    "factorwise.networks",
    "factorwise.report",
    "factorwise.resolution",
    "factorwise.tagging",
    "factorwise.templates",
    "factorwise.testing",
    "factorwise.walks",
)


def described(name, value):
    """Return a line for a public name, and for a class lines for its public methods."""
    if inspect.isclass(value):
        yield f"class {name}{signature(value)}"
        for own in sorted(vars(value)):
            member = inspect.getattr_static(value, own)
            if own.startswith("_") or (
                not isinstance(member, property | classmethod | staticmethod) and not callable(member)
            ):
                continue
            kind = "property " if isinstance(member, property) else ""
            plain = getattr(member, "__func__", member)
            yield f"    {kind}{own}{'' if kind else signature(plain)}"
    elif callable(value):
        yield f"def {name}{signature(value)}"
    else:
        yield f"{name}"


def signature(value):
    """Return names and kinds of parameters; annotations and defaults differ between versions of Python."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    texts, keyword = [], False
    for one in parameters:
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not keyword:
            texts.append("*")
            keyword = True
        keyword |= one.kind is inspect.Parameter.VAR_POSITIONAL
        optional = "" if one.default is inspect.Parameter.empty else "=..."
        texts.append(f"{marks.get(one.kind, '')}{one.name}{optional}")
    return f"({', '.join(texts)})"


def snapshot():
    """Return the whole interface as text."""
    lines = []
    for place in MODULES:
        try:
            module = import_module(place)
        except ModuleNotFoundError:
            first, _, rest = place.partition(".")
            module = getattr(import_module(first), rest)
        lines.append(f"# {place}")
        for name in sorted(module.__all__):
            lines.extend(described(name, getattr(module, name)))
    return "\n".join(lines) + "\n"


def test_the_public_interface_is_as_it_was():
    assert snapshot() == SNAPSHOT.read_text(encoding="utf-8"), (
        "run python tests/test_api.py if that was intended"
    )


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot(), encoding="utf-8")
