"""Keys of `refs.bib` in pages become names and years that lead to the list of sources."""

import html
import re
from pathlib import Path

from mkdocs.utils import get_relative_url

SOURCES = "references.html"
ENTRY = re.compile(r"^@\w+\{(\w+),\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^ *(\w+) *= *\{(.*?)\},?$", re.MULTILINE | re.DOTALL)
ACCENT = re.compile(r'\{?\\(["\'`^~])\{?(\w)\}?\}?')
COMBINING = {'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303"}
PLACES = ("journal", "booktitle", "publisher", "institution", "howpublished")
OUTSIDE = re.compile(r"(<(?:code|pre|a|script)\b.*?</(?:code|pre|a|script)>|<[^>]*>)", re.DOTALL)


def on_config(config):
    """Read the sources once a build."""
    text = (Path(config.docs_dir) / "refs.bib").read_text(encoding="utf-8")
    config.extra["sources"] = {key: dict(FIELD.findall(body)) for key, body in ENTRY.findall(text)}
    return config


def on_page_content(text, page, config, **_context):
    """Name sources in the HTML of a page; the page of sources gets its list."""
    sources = config.extra["sources"]
    if page.url == SOURCES:
        return text + _listed(sources)
    key = re.compile(rf"\b({'|'.join(sources)})\b")
    target = get_relative_url(SOURCES, page.url)

    def linked(found):
        fields = sources[found[1]]
        title = html.escape(_plain(fields["title"]))
        return f'<a href="{target}#{found[1]}" title="{title}">{html.escape(_short(fields))}</a>'

    parts = OUTSIDE.split(text)  # every second one is markup, or what must stay as it is
    parts[::2] = [key.sub(linked, part) for part in parts[::2]]
    return "".join(parts)


def _listed(sources):
    rows = []
    for key, fields in sorted(sources.items(), key=lambda item: (_short(item[1]), item[0])):
        names = " and ".join(_plain(name) for name in fields["author"].split(" and "))
        place = next((f" {_plain(fields[name])}." for name in PLACES if name in fields), "")
        said = html.escape(f"{names} ({fields.get('year', 'undated')}). ")
        title = f"<em>{html.escape(_plain(fields['title']))}.</em>"
        rows.append(f'<li id="{key}">{said}{title}{html.escape(place)} <code>{key}</code></li>')
    return f"<ul>{''.join(rows)}</ul>"


def _short(fields):
    """Return names and year: Jain and Neal 2004, Wick et al. 2009."""
    names = [_plain(name.partition(",")[0]) for name in fields["author"].split(" and ")]
    who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return f"{who} {fields.get('year', '')}".strip()


def _plain(text):
    """Return text without the marks of BibTeX."""
    text = ACCENT.sub(lambda found: found[2] + COMBINING[found[1]], " ".join(text.split()))
    return text.replace("{", "").replace("}", "").replace("--", "\u2013").replace("\\&", "&")
