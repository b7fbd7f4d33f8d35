"""Configuration files: defaults for options, never more than that, and typed."""

import json

import click
import pytest

from factorwise.cli import main
from factorwise.cli.config import NOT_IN_FILES
from factorwise.cli.options import Options, verb

KEPT: list = []


@pytest.fixture
def config(tmp_path, add_verb):
    """Write a configuration file for a verb with options of all types."""
    KEPT.clear()

    @verb(example="factorwise work")
    @click.option("--step-size", type=float, default=0.5)
    @click.option("--mode", type=click.Choice(["fast", "exact"]), default="fast")
    @click.option("--label", multiple=True)
    @click.option("--name", required=True)
    @click.option("--column", "table_column")
    @click.option("--exact/--rough", default=True)
    def command(options, **own):
        """Work."""
        KEPT.append((options, own))

    add_verb("work", command)

    def write(text):
        path = tmp_path / "run.toml"
        path.write_text(text)
        return path

    return write


def kept() -> tuple[Options, dict]:
    (single,) = KEPT
    return single


def test_values_become_defaults(run, config):
    path = config(
        "seed = 7\nthreads = 1\n"
        '[work]\nstep-size = 2\nmode = "exact"\nlabel = ["a", "b"]\nname = "n"\njson = true\n'
    )
    assert run("work", "--config", path).code == 0
    options, own = kept()
    assert options == Options(seed=7, threads=1, json=True, quiet=False, verbose=False, config=path)
    assert own == {
        "step_size": 2.0,
        "mode": "exact",
        "label": ("a", "b"),
        "name": "n",
        "table_column": None,
        "exact": True,
    }


@pytest.mark.parametrize(
    ("line", "exact"),
    [("exact = true", True), ("exact = false", False), ("rough = true", False), ("rough = false", True)],
)
def test_either_flag_of_a_pair_can_be_named(run, config, line, exact):
    assert run("work", "--config", config(f"[work]\nname = 'n'\n{line}\n")).code == 0
    assert kept()[1]["exact"] is exact


def test_the_other_flag_of_a_pair_on_the_command_line_wins(run, config):
    assert run("work", "--exact", "--config", config("[work]\nname = 'n'\nrough = true\n")).code == 0
    assert kept()[1]["exact"] is True


def test_a_key_is_called_as_the_option_is(run, config):
    assert run("work", "--config", config("[work]\nname = 'n'\ncolumn = 'id'\n")).code == 0
    assert kept()[1]["table_column"] == "id"


@pytest.mark.parametrize("before", [True, False])
def test_the_command_line_wins_on_either_side(run, config, before):
    path = config('seed = 7\n[work]\nname = "file"\nstep_size = 2.0\n')
    words = ["--seed", "1", "--name", "line"]
    assert run("work", *(words if before else []), "--config", path, *([] if before else words)).code == 0
    options, own = kept()
    assert (options.seed, own["name"], own["step_size"]) == (1, "line", 2.0)


def test_the_table_of_the_verb_wins_over_the_top(run, config):
    assert run("work", "--config", config('seed = 7\n[work]\nseed = 8\nname = "n"\n')).code == 0
    assert kept()[0].seed == 8


def test_tables_of_other_verbs_are_left_to_them(run, config):
    path = config('[inspect]\njson = true\n[work]\nname = "n"\n')
    assert run("work", "--config", path).code == 0
    assert not kept()[0].json


def test_the_louder_word_on_the_command_line_wins_over_the_quieter_in_the_file(run, config):
    path = config('quiet = true\n[work]\nname = "n"\n')
    assert run("work", "--verbose", "--config", path).code == 0
    assert (kept()[0].quiet, kept()[0].verbose) == (False, True)


def test_a_file_that_is_quiet_and_verbose_is_refused(run, config):
    result = run("work", "--config", config('quiet = true\nverbose = true\n[work]\nname = "n"\n'))
    assert result.code == 2
    assert "exclude each other" in result.err


def test_json_set_in_the_file_holds_for_errors_too(run, config, tmp_path):
    path = config("json = true\n")
    result = run("inspect", tmp_path / "none.fw", "--config", path)
    assert result.code == 2
    assert json.loads(result.err)["error"]["type"] == "ModelFileError"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("sed = 7\n", "'sed' is not an option. Did you mean 'seed'?"),
        ("[wrok]\nname = 'n'\n", "'wrok' is not an option. Did you mean 'work'?"),
        ("work = 3\n", "'work' is not an option"),
        ("name = 'n'\n", "'name' is not an option"),
        ("config = 'other.toml'\n", "'config' is not an option"),
        ("xyzzy = 1\n", "Known keys: "),
        ("[work]\nstepsize = 1\n", "[work] 'stepsize' is not an option. Did you mean 'step-size'?"),
        ("seed = 1.5\n", "seed must be an integer, but 1.5 was given"),
        ("seed = true\n", "seed must be an integer, but True was given"),
        ("seed = -1\n", "seed: -1 is not in the range"),
        ("seed = '7'\n", "seed must be an integer, but '7' was given"),
        ("json = 1\n", "json must be true or false, but 1 was given"),
        ("[work]\nstep-size = '2'\n", "[work] step-size must be a number"),
        (
            "[work]\nstep-size = 1\nstep_size = 2\n",
            "[work] 'step-size' and 'step_size' set the same option: keep one",
        ),
        ("[work]\nexact = true\nrough = true\n", "[work] 'exact' and 'rough' set the same"),
        ("[work]\nrough = 'yes'\n", "[work] rough must be true or false"),
        ("[work]\ntable_column = 'a'\n", "[work] 'table_column' is not an option"),
        ("[work]\nmode = 'slow'\n", "[work] mode: 'slow' is not one of"),
        ("[work]\nname = 3\n", "[work] name must be a text in quotes"),
        ("[work]\nname = ['n']\n", "[work] name must be a text in quotes"),
        ("[work]\nlabel = 'a'\n", "[work] label must be a list, each entry a text in quotes"),
        ("[work]\nlabel = ['a', 1]\n", "[work] label must be a list"),
        ("seed = \n", "not a TOML file"),
        ("x = " + "[" * 5000, "not a TOML file"),
    ],
)
def test_what_is_wrong_in_the_file_is_told_with_its_place(run, config, text, fault):
    path = config(text)
    result = run("work", "--config", path, "--name", "n")
    assert result.code == 2
    assert f"{path}: " in result.err
    assert fault in result.err
    assert KEPT == []


def test_a_file_that_is_not_text_is_refused(run, config):
    path = config("")
    path.write_bytes(b"\xff\xfe")
    result = run("work", "--config", path)
    assert result.code == 2
    assert "not a TOML file" in result.err


def test_a_file_that_cannot_be_read_is_refused(run, tmp_path):
    for path in (tmp_path / "none.toml", tmp_path):
        result = run("doctor", "--config", path)
        assert result.code == 2
        assert "Give --config the path of a readable TOML file" in result.err


# Words for values whose type does not tell what they look like.
WORDS = {"numbers": "0.25,3", "columns": "0,2", "names": "PER,LOC", "separator": "tab", "count": "5e6"}


def verbs():
    """Return the words that lead to each verb, its command, and the context that it is parsed in."""
    found, groups = [], [((), click.Context(main.factorwise, info_name="factorwise"))]
    while groups:
        path, context = groups.pop()
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            if isinstance(command, click.Group):
                groups.append(((*path, name), click.Context(command, info_name=name, parent=context)))
            else:
                found.append(pytest.param((*path, name), command, context, id=".".join((*path, name))))
    return found


def long_options(command):
    """Return the options that a file may set, with each of their long names."""
    return [
        (option, name)
        for option in command.params
        if isinstance(option, click.Option) and option.name not in NOT_IN_FILES
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("--")
    ]


def sample(option):
    """Return a value for an option, unlike its default: as a file has it, and as the command line has it."""
    kind = option.type
    if option.is_flag:
        return True, None
    if isinstance(kind, click.Choice):
        value = next(one for one in kind.choices if one != option.default)
    elif isinstance(kind, click.types.IntParamType | click.types.FloatParamType):
        low, high = getattr(kind, "min", None) or 0, getattr(kind, "max", None)
        value = low + 7 if high is None else (low + high) / 4
        if isinstance(kind, click.types.IntParamType):
            value = low if high is not None and option.default != low else high or value
    else:
        value = WORDS.get(kind.name, "some.text")
    return ([value, value] if option.multiple else value), str(value)


def parsed(verb_name, command, context, words, leave_out=None):
    """Parse the words after a verb and run nothing; all that is required is there but for one option."""
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            number = isinstance(parameter.type, click.types.IntParamType)
            choices = getattr(parameter.type, "choices", ["1" if number else "in.file"])
            words = [*words, choices[0]]
        elif parameter.required and parameter is not leave_out:
            word = "1" if parameter.type.name in WORDS else "needed"
            words = [f"{parameter.opts[-1]}={word}", *words]
    return command.make_context(verb_name, words, parent=context).params


@pytest.mark.parametrize(("path", "command", "context"), verbs())
def test_a_file_can_say_whatever_an_option_can(path, command, context, tmp_path):
    """By each of its names: what is parsed is the same as from the command line, and not the default."""
    file, seen = tmp_path / "run.toml", set()
    before = parsed(path[-1], command, context, [])
    for option, name in long_options(command):
        value, word = sample(option)
        typed = [name] if word is None else [f"{name}={word}"] * (2 if option.multiple else 1)
        wanted = parsed(path[-1], command, context, typed, option)[option.name]
        for key in {name[2:], name[2:].replace("-", "_")}:
            file.write_text(f"[{'.'.join(path)}]\n{key} = {json.dumps(value)}\n", encoding="utf-8")
            found = parsed(path[-1], command, context, ["--config", str(file)], option)[option.name]
            assert found == wanted, f"{key} in a file gives {found!r}, but {name} gives {wanted!r}"
        assert wanted != before[option.name] or option.secondary_opts  # of a pair, one flag is the default
        seen.add(name)
    assert seen >= {"--seed", "--threads", "--json", "--quiet", "--verbose"}
