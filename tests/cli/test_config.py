"""Configuration files: defaults for options, never more than that, and typed."""

import json

import click
import pytest

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
    assert own == {"step_size": 2.0, "mode": "exact", "label": ("a", "b"), "name": "n"}


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
        ("xyzzy = 1\n", "Known here: "),
        ("[work]\nstepsize = 1\n", "[work] 'stepsize' is not an option. Did you mean 'step_size'?"),
        ("seed = 1.5\n", "seed must be an integer, but 1.5 was given"),
        ("seed = true\n", "seed must be an integer, but True was given"),
        ("seed = -1\n", "seed: -1 is not in the range"),
        ("seed = '7'\n", "seed must be an integer, but '7' was given"),
        ("json = 1\n", "json must be true or false, but 1 was given"),
        ("[work]\nstep-size = '2'\n", "[work] step-size must be a number"),
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
        assert "Give --config the path of a TOML file" in result.err
