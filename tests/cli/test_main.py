"""The command line: verbs, shared options, and what becomes of errors."""

import contextlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

import factorwise
from factorwise.cli.main import VERBS, main
from factorwise.cli.options import Options, usable_processors, verb
from factorwise.cli.output import tell_on_the_way, with_options
from factorwise.errors import InvalidArgumentError

COMMAND = Path(sys.executable).with_name("factorwise")
SHARED = ["--seed", "--threads", "--config", "--json", "--quiet", "--verbose", "--version"]


def failing(error):
    @verb(example="factorwise fail")
    def command(options):
        """Fail."""
        raise error

    return command


@pytest.fixture
def show(add_verb):
    """A verb that keeps the options it got."""
    kept = []

    @verb(example="factorwise show")
    @click.option("--steps", type=int, default=10)
    def command(options, steps):
        """Show."""
        kept.append((options, steps))

    add_verb("show", command)
    return kept


def test_every_verb_has_the_shared_options_and_ends_its_help_with_an_example(run):
    for name in VERBS:
        result = run(name, "--help")
        assert result.code == 0
        for option in SHARED:
            assert option in result.out
        title, example = result.out.rstrip().splitlines()[-2:]
        assert title.strip() == "Example:"
        assert example.strip().startswith(f"factorwise {name}")


def test_a_verb_gets_its_options_wherever_they_stand(run, show):
    assert run("show", "--seed", 7, "--steps", 3, "--threads", 1, "--json", "--verbose").code == 0
    expected = Options(seed=7, threads=1, json=True, quiet=False, verbose=True, config=None)
    assert show == [(expected, 3)]


def test_without_options_the_seed_is_fixed_and_all_processors_work(run, show):
    assert run("show").code == 0
    expected = Options(
        seed=0, threads=usable_processors(), json=False, quiet=False, verbose=False, config=None
    )
    assert show == [(expected, 10)]


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["show", "--seed", "-1"], "'--seed'"),
        (["show", "--threads", "0"], "'--threads'"),
        (["show", "--threads", "two"], "'--threads'"),
        (["show", "--quiet", "--verbose"], "--quiet and --verbose exclude each other"),
        (["show", "extra"], "extra"),
        (["show", "--stepps", "3"], "--steps"),
        (["shwo"], "Did you mean 'show'?"),
        (
            ["xyzzy"],
            "The verbs are: align, cite, cluster, completion, coref, demo, doctor, flows, generate, infer,",
        ),
        (["--seed", "3", "show"], "Options go after the verb: factorwise VERB --seed."),
    ],
)
@pytest.mark.usefixtures("show")
def test_wrong_usage_is_told_on_one_line_with_the_help_to_try(run, words, fault):
    result = run(*words)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("error: ")
    assert fault in result.err
    assert "--help'." in result.err
    assert len(result.err.splitlines()) <= 2


def test_what_the_user_can_mend_exits_with_2(run, add_verb):
    add_verb("fail", failing(InvalidArgumentError("steps must be at least 1, but 0 was given.")))
    assert run("fail") == (2, "", "error: steps must be at least 1, but 0 was given.\n")


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    """As SIGHUP is under nohup."""
    script = (
        "import os, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from factorwise.cli.signals import interrupted_by_signals\n"
        "with interrupted_by_signals() as arrived:\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "print(arrived, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"


def test_remedies_name_options_and_not_arguments_of_python(run, add_verb):
    remedy = "Give encoding='cp1252' or encoding='latin-1', or prefix_ids=True; x='y' stays."
    add_verb("fail", failing(InvalidArgumentError(remedy)))
    expected = "Give --encoding cp1252 or --encoding latin-1, or --prefix-ids; x='y' stays."
    assert run("fail").err == f"error: {expected}\n"
    assert json.loads(run("fail", "--json").err)["error"]["message"] == expected


def test_an_internal_error_exits_with_1_and_hides_its_traceback(run, add_verb):
    add_verb("fail", failing(KeyError("x")))
    result = run("fail")
    assert result.code == 1
    assert result.err == "error: internal error: KeyError: 'x'. Run it again with --verbose to see where.\n"


def test_an_internal_error_shows_its_traceback_when_asked(run, add_verb):
    add_verb("fail", failing(KeyError("x")))
    result = run("fail", "--verbose")
    assert result.code == 1
    assert "Traceback (most recent call last)" in result.err
    assert result.err.splitlines()[-1] == "error: internal error: KeyError: 'x'."


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_exits_with_130(run, add_verb, error):
    add_verb("fail", failing(error))
    result = run("fail")
    assert result.code == 130
    assert result.err.strip() == "error: interrupted"


def test_an_unexpected_end_of_input_is_an_internal_error(run, add_verb):
    add_verb("fail", failing(EOFError("cut off")))
    result = run("fail")
    assert result.code == 1
    assert "internal error: EOFError: cut off" in result.err


@pytest.mark.parametrize(
    ("error", "code"),
    [(InvalidArgumentError("wrong"), 2), (KeyError("x"), 1), (click.UsageError("misused"), 2)],
)
def test_with_json_errors_are_json_on_standard_error(run, add_verb, error, code):
    add_verb("fail", failing(error))
    result = run("fail", "--json")
    assert result.code == code
    assert result.out == ""
    document = json.loads(result.err)["error"]
    assert document["type"] == type(error).__name__
    assert document["exit_code"] == code
    assert "traceback" not in document


def test_with_json_and_verbose_the_traceback_is_in_the_document(run, add_verb):
    add_verb("fail", failing(KeyError("x")))
    document = json.loads(run("fail", "--json", "--verbose").err)["error"]
    assert "Traceback" in document["traceback"]


def test_misuse_is_json_too_although_parsing_failed(run):
    result = run("inspect", "--json", "--nonsense")
    assert result.code == 2
    assert "--nonsense" in json.loads(result.err)["error"]["message"]


def test_control_characters_do_not_reach_the_terminal(run, tmp_path):
    result = run("inspect", tmp_path / "\x1b[31mred.fw")
    assert result.code == 2
    assert "\x1b" not in result.err
    assert "\\x1b[31mred.fw" in result.err


def test_a_verb_may_choose_another_exit_code(run, add_verb):
    @verb(example="factorwise leave")
    def command(options):
        """Leave."""
        click.get_current_context().exit(3)

    add_verb("leave", command)
    assert run("leave").code == 3


def test_what_a_verb_returns_is_not_an_exit_code(run, add_verb):
    @verb(example="factorwise seven")
    def command(options):
        """Return a number."""
        return 7

    add_verb("seven", command)
    assert run("seven").code == 0


def test_without_a_verb_the_help_lists_the_verbs(run):
    for words in ([], ["--help"], ["-h"]):
        result = run(*words)
        assert result.code == 0
        for name, (_, line) in VERBS.items():
            assert name in result.out
            assert line in result.out


def test_the_version_is_told_with_and_without_a_verb(run):
    for words in (["--version"], ["inspect", "--version"]):
        assert run(*words) == (0, f"factorwise {factorwise.__version__}\n", "")


@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "factorwise"]])
def test_the_installed_command_runs(command):
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"factorwise {factorwise.__version__}\n")


def test_a_reader_that_has_gone_brings_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([COMMAND, "doctor"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_standard_output_that_is_closed_is_told():
    words = ["sh", "-c", 'exec "$0" doctor >&-', COMMAND]
    done = subprocess.run(words, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (
        2, b"error: standard output is closed: leave it open, or redirect it to a file.\n"
    )  # fmt: skip


@pytest.mark.parametrize("gone", ["reader", "room", "file"])
def test_what_is_told_on_the_way_does_not_end_the_work(monkeypatch, gone):
    reader, writer = os.pipe()
    os.close(reader)
    if gone == "room":
        os.close(writer)
        writer = os.open("/dev/full", os.O_WRONLY)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", None if gone == "file" else stream)
        tell_on_the_way(["candidates"])
    monkeypatch.undo()


def test_what_is_told_on_the_way_is_printed_in_its_place(capfd):
    sys.stdout.write("before\n")
    tell_on_the_way(["first \x1b[31m", "second"])
    sys.stdout.write("after\n")
    assert capfd.readouterr().out == "before\nfirst \\x1b[31m\nsecond\nafter\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["doctor"], ["doctor", "--json"], ["completion", "bash"]], ids=" ".join)
def test_output_that_a_full_disk_cuts_short_is_told(tmp_path, unbuffered, words):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    with (tmp_path / "out.txt").open("wb") as out:
        done = subprocess.run(
            [COMMAND, *words],
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"},
            preexec_fn=small_files,
        )
    assert done.returncode == 2, done.stderr
    assert b"standard output: could not be written: File too large." in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_results_are_printed_where_there_is_no_file_behind_standard_output():
    printed = io.StringIO()  # as in a notebook
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as left:
        main(["doctor", "--json"])
    assert left.value.code == 0
    assert json.loads(printed.getvalue())["versions"]["factorwise"] == factorwise.__version__


@pytest.mark.parametrize(
    ("number", "code", "told"),
    [
        (signal.SIGINT, 130, b"error: interrupted"),
        (signal.SIGTERM, 143, b"error: ended by SIGTERM"),
        (signal.SIGHUP, 129, b"error: ended by SIGHUP"),
    ],
)
@pytest.mark.parametrize("inside", ["time.sleep(60)", "Lost(); [time.sleep(0.1) for _ in range(600)]"])
def test_signals_end_the_process_with_their_code(tmp_path, number, code, told, inside):
    """Also where the exception is raised in a destructor, from which Python lets none escape."""
    script = tmp_path / "wait.py"
    script.write_text(
        "import sys, time\n"
        "from types import ModuleType\n"
        "from factorwise.cli import main\n"
        "class Lost:\n"
        "    def __del__(self): time.sleep(1.0)\n"
        "from factorwise.cli.options import verb\n"
        "@verb(example='factorwise wait')\n"
        "def command(options):\n"
        "    'Wait.'\n"
        "    print('waiting', flush=True)\n"
        f"    {inside}\n"
        "module = ModuleType('verb_wait')\n"
        "module.command = command\n"
        "sys.modules['verb_wait'] = module\n"
        "main.VERBS['wait'] = ('verb_wait', 'Wait.')\n"
        "main.main(['wait'])\n"
    )
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"waiting\n"
        time.sleep(0.1)
        os.kill(process.pid, number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert told in err
    assert b"Traceback" not in err


def test_remedies_name_options_in_place_of_arguments():
    for told, shown in (
        ("give comment='# '.", "give --comment '# '."),
        ("or comment=None if", "or no --comment if"),
        ("encoding='cp1252' or prefix_ids=True", "--encoding cp1252 or --prefix-ids"),
        ("use 'lbfgs', or order=1.", "use 'lbfgs', or --order 1."),
        ("constraint_folds=9 asks", "--global-folds 9 asks"),
    ):
        assert with_options(told) == shown
