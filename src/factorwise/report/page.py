"""The HTML page of a report: one file that contains its style, its code, its charts and its data.

Nothing that users gave becomes markup: text in the frame is escaped, and everything else is JSON data that
the page's code inserts as text. A content security policy in the page forbids all connections.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from factorwise.io.atomic import atomic_binary
from factorwise.report.sections import Section

_FRAME = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'; script-src {hashes}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1><p>{subtitle}</p></header>
<nav id="contents" aria-label="Contents"></nav>
<main id="sections"><noscript>This page carries JavaScript that shows its data: allow it.</noscript></main>
<footer>Made by factorwise {version}. This file loads nothing from anywhere.</footer>
<script type="application/json" id="data">{data}</script>
<script>{chart}</script>
<script>{code}</script>
</body>
</html>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A page with a heading, a line below it, and sections."""

    title: str
    subtitle: str = ""
    sections: Sequence[Section]
    version: str

    def to_html(self) -> str:
        """Return the page."""
        chart, code = _asset("chart.min.js"), _asset("report.js")
        return _FRAME.format(
            title=html.escape(self.title),
            subtitle=html.escape(self.subtitle),
            version=html.escape(self.version),
            style=_asset("report.css"),
            hashes=" ".join(_hash(script) for script in (chart, code)),
            data=as_script_data([section.document() for section in self.sections]),
            chart=chart,
            code=code,
        )


def write_report(path: str | os.PathLike[str], report: Report) -> int:
    """Write the page, completely or not at all, and return its size in bytes."""
    text = report.to_html().encode()
    with atomic_binary(path) as stream:
        stream.write(text)
    return len(text)


def as_script_data(value: Any) -> str:
    """Return JSON that cannot close its script element and can only be read as data."""
    text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode("utf-8", "backslashreplace").decode()


def _finite(value: Any) -> Any:
    """Replace numbers that JSON lacks; NumPy's numbers become plain ones."""
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if hasattr(value, "tolist"):
        return _finite(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("-" if value < 0 else "") + "infinite"
    return value


def _asset(name: str) -> str:
    return resources.files("factorwise.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"
