"""The pages under docs: what they show runs, what they name is there."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from factorwise.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS)): path for path in sorted(DOCS.rglob("*.md"))}
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")

# Pages that go on with the files of a tutorial.
AFTER = {
    "cluster.md": "tutorials/resolve.md",
    "flows.md": "tutorials/flows.md",
    "resolution.md": "tutorials/resolve.md",
}

FENCE = re.compile(r"^( *)```(\S*)([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
INDENTED = re.compile(r"^ {4,}(factorwise [^\n]+)", re.MULTILINE)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH = re.compile(r"(?:[\w-]+/)+[\w*-]*(?:\.(?:py|md|toml|bib|lock))?")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
KEY = re.compile(r"\b[a-z]+\d{2,4}[a-z]{2,}\b")

# What a command of a tutorial becomes in the script of its page.
RUN = """
def run_command(words):
    from factorwise.cli import main

    try:
        main.main(words)
    except SystemExit as left:
        if left.code:
            raise RuntimeError(f"factorwise {' '.join(words)} left with {left.code}") from left
"""


class Block(NamedTuple):
    language: str
    title: str | None
    text: str


def text_of(page):
    return PAGES[page].read_text(encoding="utf-8")


def blocks(page):
    """Return fenced blocks in the order of the page; commands in indented ones count as shell."""
    text = text_of(page)
    found = []
    for match in FENCE.finditer(text):
        indent, language, rest, body = match.groups()
        title = TITLE.search(rest)
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        found.append((match.start(), Block(language, title[1] if title else None, body)))
    plain = FENCE.sub(lambda match: " " * len(match[0]), text)
    found += [(match.start(), Block("sh", None, match[1])) for match in INDENTED.finditer(plain)]
    return [block for _, block in sorted(found)]


def commands(block):
    """Return the words of each ``factorwise`` command of a block of shell lines."""
    lines = block.text.replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines if line.startswith("factorwise ")]
    return [line[1:] for line in words]


def script(page):
    """Return the page as one script: its files, its Python and, of a tutorial, its commands, in order."""
    parts = [RUN]
    for block in blocks(page):
        if block.title:
            parts.append(
                f"__import__('pathlib').Path({block.title!r}).write_text({block.text!r}, encoding='utf-8')\n"
            )
        elif block.language == "python":
            parts.append(block.text)
        elif page.startswith("tutorials/"):
            parts += [f"run_command({words!r})\n" for words in commands(block)]
    return "\n".join(parts)


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """Run a page in a folder of its own, once, and return the folder; it begins with what it goes on from."""

    @cache
    def run(page):
        folder = tmp_path_factory.mktemp(Path(page).stem)
        if page in AFTER:
            shutil.copytree(run(AFTER[page]), folder, dirs_exist_ok=True)
        path = folder / "page.py"  # a file: compiling needs the source of functions
        path.write_text(script(page), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-W", "error", str(path)],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=os.environ,
            timeout=300,
        )
        assert done.returncode == 0, f"{page}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        (folder / "printed.txt").write_text(done.stdout, encoding="utf-8")
        return folder

    return run


def runnable(page):
    shown = blocks(page)
    return any(block.language == "python" for block in shown) or page.startswith("tutorials/")


@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)])
def test_what_a_page_shows_runs(page, folder_of):
    folder_of(page)


@pytest.mark.parametrize("page", PAGES)
def test_code_is_marked_by_what_it_is(page):
    """A block without a language would neither be run nor be known for output."""
    known = {"python", "sh", "text", "toml", "csv", "json", "turtle"}
    assert {block.language for block in blocks(page)} <= known


@cache
def verb_of(words):
    """Return the click command that the words name, and how many of them do so."""
    command, context = main.factorwise, click.Context(main.factorwise, info_name="factorwise")
    used = 0
    while isinstance(command, click.Group) and used < len(words) and not words[used].startswith("-"):
        found = command.get_command(context, words[used])
        assert found is not None, f"there is no verb {' '.join(words[: used + 1])!r}"
        context = click.Context(found, info_name=words[used], parent=context)
        command, used = found, used + 1
    return command, used


def shown_commands():
    """Yield the words of all commands in blocks and in running text, there without the program's name too."""
    for page in PAGES:
        for block in blocks(page):
            if block.language == "sh":
                yield from ((page, words) for words in commands(block))
        for code in INLINE.findall(FENCE.sub("", text_of(page))):
            words = code.replace("'", "").split()
            if words[0] == "factorwise":
                yield page, words[1:]
            elif words[0] in main.VERBS and len(words) > 1:
                yield page, words


def test_every_command_that_a_page_shows_has_the_options_it_is_given():
    seen = 0
    for page, words in shown_commands():
        command, used = verb_of(tuple(words))
        options = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        given = {word.split("=")[0] for word in words[used:] if re.match(r"--?[a-z]", word)}
        assert given <= options | {"--help", "-h"}, f"{page}: factorwise {' '.join(words)}: no such option"
        seen += 1
    assert seen > 30


def exists(name):
    bases = (ROOT, ROOT / "src" / "factorwise")
    return any(any(base.glob(name.rstrip("/"))) for base in bases)


@pytest.mark.parametrize("page", [page for page in PAGES if not page.startswith(("decisions/", "results"))])
def test_every_file_that_a_page_names_is_there(page):
    """A path in code has a slash and begins with a folder of the checkout or of the package."""
    tops = {
        path.name for base in (ROOT, ROOT / "src" / "factorwise") for path in base.iterdir() if path.is_dir()
    }
    named = [code for code in INLINE.findall(FENCE.sub("", text_of(page))) if PATH.fullmatch(code)]
    missing = [code for code in named if code.split("/")[0] in tops and not exists(code)]
    assert missing == []


@pytest.mark.parametrize("page", [page for page in PAGES if re.match("theory/(?!index)", page)])
def test_a_page_of_theory_names_the_files_that_implement_it_and_its_sources(page):
    text = text_of(page)
    assert len(re.findall(r"`[\w/]+\.py`", text)) >= 3
    assert "$$" in text
    known = set(
        re.findall(r"^@\w+\{([^,\s]+),", (DOCS / "refs.bib").read_text(encoding="utf-8"), re.MULTILINE)
    )
    cited = set(KEY.findall(FENCE.sub("", text)))
    assert cited
    assert cited <= known


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for link, anchor in LINK.findall(FENCE.sub("", text_of(page))):
        target = (PAGES[page].parent / link).resolve() if link else PAGES[page]
        assert target.exists(), f"{page} links to {link}, which is not there"
        assert target.is_relative_to(DOCS), f"{page} links to {link}, which the site does not have"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", one.lower()).strip()) for one in headings}
            assert anchor in anchors, f"{page} links to {link}#{anchor}, which is not there"


def test_every_page_has_its_place_in_the_site():
    listed = re.findall(r"([\w/-]+\.md)\s*$", CONFIG, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == set(PAGES)


def listed_in(path, name):
    """Return a literal that a module assigns to a name, without importing it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            return ast.literal_eval(node.value)
    return []


def test_the_reference_has_every_public_name_of_the_package():
    """By itself, or within the family that it belongs to."""
    source = ROOT / "src" / "factorwise"
    public = set(listed_in(source / "__init__.py", "__all__")) - {"__version__"}
    shown = {
        name
        for page in PAGES
        if page.startswith("reference/")
        for name in re.findall(r"^::: factorwise\.(\w+)$", text_of(page), re.MULTILINE)
    }
    rooms = dict(listed_in(source / "__init__.py", "_ROOMS"))
    homes = [source / rooms[name].replace(".", "/") / "__init__.py" for name in shown & set(rooms)]
    within = {name for home in homes if home.is_file() for name in listed_in(home, "__all__")}
    assert len(public) > 30
    assert public - shown - within == set()


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("tutorials/")])
def test_what_a_tutorial_says_is_printed_or_written_is(page, folder_of):
    """Lines of text blocks are lines of what came out, or of a file; three dots stand for others."""
    folder = folder_of(page)
    files = [path for path in folder.iterdir() if path.suffix in (".txt", ".csv", ".tsv")]
    found = {line.strip() for path in files for line in path.read_text(encoding="utf-8").splitlines()}
    shown = [
        line.strip() for block in blocks(page) if block.language == "text" for line in block.text.splitlines()
    ]
    assert [line for line in shown if line not in found and line != "..."] == []
