"""Docstrings as Markdown: their equations, cross-references and lists of names, for the reference pages."""

import re
import textwrap

import griffe

MATH_BLOCK = re.compile(r"^\.\. math::[ \t]*(.*(?:\n(?:[ \t]+\S.*|[ \t]*(?=\n[ \t]+\S)))*)", re.MULTILINE)
MATH_INLINE = re.compile(r":math:`([^`]+)`")
LITERAL = re.compile(r"::\n\n((?:    .*\n?|\n)+)")
UNDERLINED = re.compile(r"^(\S.*)\n-{3,}$", re.MULTILINE)
NAMED = re.compile(r"^(\S[^\n]*)\n((?: {4}\S[^\n]*\n?)+)", re.MULTILINE)
EXAMPLE = re.compile(r"^>>> .*(?:\n\S.*|\n +\S.*)*", re.MULTILINE)


class PlainDocstrings(griffe.Extension):
    """Translates each docstring once, as it is read."""

    def on_instance(self, *, obj, **_context):
        """Replace the text of one docstring."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)


def markdown(text):
    """Return a docstring in Markdown.

    Blocks of a name and an indented text become a list of definitions; examples and literal blocks keep
    their form.
    """
    kept = []

    def keep(code, language):
        kept.append(f"```{language}\n{textwrap.dedent(code).strip()}\n```")
        return f"\n\n@@{len(kept) - 1}@@\n\n"

    text = EXAMPLE.sub(lambda found: keep(found[0], "pycon"), text)
    text = LITERAL.sub(lambda found: ":" + keep(found[1], "text"), text)
    text = MATH_BLOCK.sub(lambda found: f"$${' '.join(found[1].split())}$$", text)
    text = MATH_INLINE.sub(r"$\1$", text)
    text = text.replace("``", "`")
    text = UNDERLINED.sub(r"**\1**\n", text)
    text = NAMED.sub(_definition, text)
    for number, block in enumerate(kept):
        text = text.replace(f"@@{number}@@", block)
    return text


def _definition(found):
    if found[1].startswith(("-", "$$", "@@", "*", "|")):
        return found[0]
    described = " ".join(line.strip() for line in found[2].splitlines())
    return f"\n`{found[1].strip()}`\n:   {described}\n\n"
