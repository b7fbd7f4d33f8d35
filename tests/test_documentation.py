"""The pages under docs: what they show runs, what they name is there."""

import ast
import inspect
import re
import shlex
import shutil
import sys
import tomllib
from collections import defaultdict
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from runpy import run_path
from typing import NamedTuple

import click
import pytest

from factorwise.cli import main
from factorwise.cli.config import keys_of
from running import run_script

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
NUMBER = re.compile(r"(?<![\w.-])[-+]?\d[\d,]*(?:\.\d+)?(?![\w-])")  # not a part of a name
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
        (folder / "printed.txt").write_text(run_script(path, folder), encoding="utf-8")
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


def settings_files():
    """Yield the tables of each file that a page shows and gives to ``--config``."""
    for page in PAGES:
        given = {words[words.index("--config") + 1] for _, words in shown_commands() if "--config" in words}
        for block in blocks(page):
            if block.language == "toml" and block.title in given:
                yield page, tomllib.loads(block.text)


def settings_of(path, table):
    """Yield the words that lead to a verb, and the keys of its table; deeper tables are of inner verbs."""
    yield path, [key for key, value in table.items() if not isinstance(value, dict)]
    for name, value in table.items():
        if isinstance(value, dict):
            yield from settings_of((*path, name), value)


def test_every_setting_that_a_page_shows_is_an_option_of_its_verb():
    seen = 0
    for page, table in settings_files():
        for path, keys in settings_of((), table):
            command, used = verb_of(path)
            assert used == len(path), f"{page}: [{'.'.join(path)}]"
            shared = isinstance(command, click.Group)
            known = keys_of(verb_of(("doctor",))[0] if shared else command)  # doctor has those that all have
            assert set(keys) <= set(known), f"{page}: [{'.'.join(path)}]"
            seen += len(keys)
    assert seen > 10


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


def test_sources_have_no_formulas():
    """The list of sources knows accents, and shows all else as it is written."""
    assert "$" not in (DOCS / "refs.bib").read_text(encoding="utf-8")


def test_the_page_that_says_that_there_is_none_asks_for_what_lies_beside_it():
    hooks = run_path(str(DOCS / "hooks" / "offline.py"))
    assert hooks["on_template_context"]({"base_url": "/"}, template_name="404.html") == {"base_url": "."}
    assert hooks["on_template_context"]({"base_url": ".."}, template_name="a.html") == {"base_url": ".."}


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


def at(dotted):
    """Return what a dotted name of the reference stands for; modules of the package load on first use."""
    words = dotted.split(".")
    value = import_module(words[0])
    for place, word in enumerate(words[1:], 2):
        value = getattr(value, word, None) or import_module(".".join(words[:place]))
    return value


def shown_names():
    """Yield the names in the reference with their values: those it asks for, and all that a module offers."""
    for page in PAGES:
        if page.startswith("reference/"):
            for dotted in re.findall(r"^::: (\S+)$", text_of(page), re.MULTILINE):
                value = at(dotted)
                yield dotted, value
                if inspect.ismodule(value):
                    own = [name for name, one in vars(value).items() if inspect.getmodule(one) is value]
                    names = getattr(value, "__all__", own)
                    yield from (
                        (f"{dotted}.{name}", getattr(value, name)) for name in names if name[0] != "_"
                    )


@cache
def documented_assignments():
    """Return names and values of assignments at the top of a module with a text right after them."""
    found = []
    for module in [one for name, one in sys.modules.items() if name.startswith("factorwise.")]:
        body = ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body
        for node, after in pairwise(body):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                if isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
                    found.append((target.id, getattr(module, target.id)))
    return found


def is_documented(dotted, value):
    """Whether the reference has something to say of a name: alone, an assignment to it would say nothing."""
    name = dotted.rpartition(".")[2]
    if inspect.ismodule(value):
        return bool(value.__doc__)
    if (inspect.isclass(value) or inspect.isfunction(value)) and value.__name__ == name:
        made = f"{name}("  # what a class of named fields says that nobody described
        return bool(value.__doc__) and not value.__doc__.startswith(made)
    return any(name == known and value is one for known, one in documented_assignments())


def public_members(value):
    """Yield the methods and properties of a class that the reference shows."""
    for name, member in vars(value).items():
        plain = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if name[0] != "_" and inspect.isfunction(plain):
            yield name


def test_every_name_in_the_reference_is_described():
    """Methods too; one that a base class describes may leave it to that."""
    shown, silent = list(shown_names()), []  # all of them loaded before assignments are looked for
    for dotted, value in shown:
        if not is_documented(dotted, value):
            silent.append(dotted)
        if inspect.isclass(value):
            members = [name for name in public_members(value) if not inspect.getdoc(getattr(value, name))]
            silent += [f"{dotted}.{name}" for name in members]
    assert len(shown) > 200
    assert silent == []


def test_every_public_name_is_in_the_reference_or_in_what_it_shows():
    """What is listed as the public interface is what the reference describes."""
    listed = (ROOT / "tests" / "api.txt").read_text(encoding="utf-8")
    public = set(re.findall(r"^(?:class |def |)(\w+)", listed, re.MULTILINE)) - {"__version__"}
    assert public - {dotted.rpartition(".")[2] for dotted, _ in shown_names()} == set()


def read_as(line):
    """Split a line into its words, with a mark for each number, and the numbers as they are written."""
    numbers = [number.replace(",", "") for number in NUMBER.findall(line)]
    return tuple(NUMBER.sub("#", line).split()), numbers


def is_about(shown, found):
    """Whether two numbers are about the same; whole ones of two digits are the same."""
    one, other = float(shown), float(found)
    if "." not in shown and "." not in found:
        return one == other or (abs(one) >= 100 and abs(one - other) <= 0.02 * abs(one))
    last = 10.0 ** -len(shown.partition(".")[2])
    return abs(one - other) <= max(2 * last, 0.03 * abs(one))


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("tutorials/")])
def test_what_a_tutorial_says_is_printed_or_written_is(page, folder_of):
    """Lines of text blocks are lines of what came out, or of a file; three dots stand for others.

    Numbers are about the same: learning goes on from every rounding, and processors round differently.
    """
    folder = folder_of(page)
    files = [path for path in folder.iterdir() if path.suffix in (".txt", ".csv", ".tsv")]
    found = defaultdict(list)
    for words, numbers in (read_as(line) for path in files for line in path.read_text("utf-8").splitlines()):
        found[words].append(numbers)
    shown = [line for block in blocks(page) if block.language == "text" for line in block.text.splitlines()]

    def is_there(line):
        words, numbers = read_as(line)
        return any(all(map(is_about, numbers, other)) for other in found[words])

    assert [line for line in shown if line.strip() != "..." and not is_there(line)] == []
