"""Equations as MathML when the site is built, so that pages need no script and no network to show them."""

import html
import re

from latex2mathml.converter import convert

# a prime is high up in its glyph already: beside its letter, not as a superscript
PRIMED = re.compile(r"<msup>(<mi>[^<]+</mi>)<mi>&#x02032;</mi></msup>")
PRIMED_BELOW = re.compile(r"<msubsup>(<mi>[^<]+</mi>)(<mi>[^<]+</mi>)<mi>&#x02032;</mi></msubsup>")
FOUND = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(text, **_context):
    """Put MathML in place of LaTeX; called by MkDocs with the HTML of each page."""
    return FOUND.sub(_mathml, text)


def _mathml(found):
    latex = html.unescape(found[2]).strip()
    made = convert(latex, display="block" if found[1] == "div" else "inline")
    made = PRIMED_BELOW.sub(r"<msub><mrow>\1<mo>&#x02032;</mo></mrow>\2</msub>", made)
    return PRIMED.sub(r"<mrow>\1<mo>&#x02032;</mo></mrow>", made)
