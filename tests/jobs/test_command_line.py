"""The command: its verbs, exit codes and one-line errors; a traceback only with --debug."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest.source import InputError
from jobs.command_line import invoke
from jobs.errors import MistakesError, UserError

ROOT = Path(__file__).parents[2]
VERBS = ["run", "plan", "check", "try", "why", "look", "sql", "whatif", "report", "explain", "doctor"]
VERBS += ["export", "budget", "mix", "train", "synth"]
COMMAND = [sys.executable, "-c", "from jobs.command_line import main; main()"]

Verb = Callable[..., Any]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Verb], None]:
    """Put a function in the place of a verb's run."""

    def put(name: str, does: Verb) -> None:
        module = types.ModuleType(f"jobs.verbs.{name}")
        module.run = does  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, f"jobs.verbs.{name}", module)

    return put


def raises(error: BaseException) -> Verb:
    def run(*arguments: Any, **options: Any) -> int:
        raise error

    return run


CALLS = [
    (
        "run",
        ["run", "r.yaml"],
        ("r.yaml",),
        {"engine": "local", "workers": None, "limit": None, "sets": [], "json": False},
    ),
    (
        "run",
        [
            "run",
            "r.yaml",
            "--engine",
            "spark",
            "--workers",
            "2",
            "--limit",
            "9",
            "--set",
            "a.b=1",
            "--set",
            "c=2",
            "--json",
        ],
        ("r.yaml",),
        {"engine": "spark", "workers": 2, "limit": 9, "sets": ["a.b=1", "c=2"], "json": True},
    ),
    ("plan", ["plan", "r.yaml", "--limit", "3"], ("r.yaml",), {"sets": [], "limit": 3, "json": False}),
    ("check", ["check", "r.yaml", "--json"], ("r.yaml",), {"sets": [], "json": True}),
    ("trial", ["try", "r.yaml", "-n", "7"], ("r.yaml",), {"n": 7, "sets": [], "json": False}),
    ("why", ["why", "out", "ab12"], ("out", "ab12"), {"json": False}),
    (
        "look",
        ["look", "out", "--dropped", "url.host", "-n", "3"],
        ("out",),
        {"dropped": "url.host", "n": 3, "json": False},
    ),
    ("look", ["look", "out"], ("out",), {"dropped": None, "n": 20, "json": False}),
    ("sql", ["sql", "out", "SELECT 1"], ("out", "SELECT 1"), {"json": False}),
    ("sql", ["sql", "out"], ("out", None), {"json": False}),
    ("whatif", ["whatif", "out", "--set", "a.b=1"], ("out",), {"sets": ["a.b=1"], "json": False}),
    ("report", ["report", "out"], ("out",), {}),
    ("explain", ["explain", "minhash"], ("minhash",), {"json": False}),
    ("explain", ["explain"], (None,), {"json": False}),
    ("doctor", ["doctor", "--json"], (), {"json": True}),
    (
        "export",
        ["export", "out", "--to", "mds", "--domain", "web", "--set", "sequence_tokens=9"],
        ("out",),
        {
            "to": "mds",
            "destination": None,
            "domains": ["web"],
            "together": False,
            "mixture": None,
            "sets": ["sequence_tokens=9"],
            "json": False,
        },
    ),
    (
        "train.audit",
        ["train", "audit", "run", "--steps", "1:2", "--verify", "none"],
        ("run",),
        {"shards": None, "steps": "1:2", "document": None, "verify": "none", "json": False},
    ),
    (
        "train.pretrain",
        ["train", "pretrain", "p.yaml", "--processes", "2", "--set", "steps=9"],
        ("p.yaml",),
        {"processes": 2, "sets": ["steps=9"], "json": False},
    ),
]


@pytest.mark.parametrize(
    ("name", "words", "arguments", "options"), CALLS, ids=[" ".join(words) for _, words, _, _ in CALLS]
)
def test_a_verb_is_called_with_what_the_command_says(
    verb: Callable[[str, Verb], None], name: str, words: list[str], arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    told: list[Any] = []

    def run(*said: Any, **more: Any) -> int:
        told.append((said, more))
        return 3

    verb(name, run)
    assert invoke(words) == 3
    assert told == [(arguments, options)]


def test_help_lists_every_verb_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:\n")[2]
    assert [line.split()[0] for line in listed.splitlines()] == VERBS
    assert "..." not in listed


def test_help_answers_within_three_tenths_of_a_second() -> None:
    def seconds() -> float:
        # CPU time: what the clock says when nothing else runs, and the same when the machine is busy with other tests.
        before = os.times()
        subprocess.run([*COMMAND, "--help"], cwd=ROOT, check=True, capture_output=True)
        after = os.times()
        return after.children_user - before.children_user + after.children_system - before.children_system

    assert min(seconds() for _ in range(5)) < 0.3


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'pyarrow', 'numpy', 'numba', 'duckdb', 'datatrove', 'pydantic', 'rich', 'yaml', 'fsspec'}"
    code = f"import sys, jobs.command_line; print(sorted(set(sys.modules) & {heavy}))"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert told.stdout == "[]\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["pln"], "gristmill: No such command 'pln'. Did you mean 'plan', 'explain'? See: gristmill --help\n"),
        (["plan"], "gristmill plan: Missing argument 'RECIPE'. See: gristmill plan --help\n"),
        (["plan", "a", "b"], "gristmill plan: Got unexpected extra argument(s) (b). See: gristmill plan --help\n"),
        (
            ["doctor", "--jsn"],
            "gristmill doctor: No such option: --jsn (Possible options: --json). See: gristmill doctor --help\n",
        ),
        (
            ["run", "r", "--workers", "0"],
            "gristmill run: Invalid value for '--workers': should be greater than or equal to 1. "
            "See: gristmill run --help\n",
        ),
        (
            ["run", "r", "--engine", "ray"],
            "gristmill run: Invalid value for '--engine': 'ray' is not one of 'local', 'spark'. "
            "See: gristmill run --help\n",
        ),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(words) == 2
    assert capsys.readouterr() == ("", said)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            UserError("r.yaml: there is no such recipe; check the path"),
            2,
            "r.yaml: there is no such recipe; check the path",
        ),
        (UserError("3 shards failed", exit_code=1), 1, "3 shards failed"),
        (MistakesError(["r.yaml:1: a: b", "r.yaml:2: c: d"]), 2, "r.yaml:1: a: b\nr.yaml:2: c: d"),
        (
            InputError("source 'a': x: no file matches; correct the path"),
            2,
            "source 'a': x: no file matches; correct the path",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "out/x"),
            1,
            "out/x: no space left on device; free some space or set another output:, then repeat the command: "
            "it goes on from here",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "out"),
            1,
            "out: permission denied; give yourself the right to it, or choose another place",
        ),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "o"),
            1,
            "o: no such file or directory; check the path",
        ),
        (
            ModuleNotFoundError("No module named 'pyspark'", name="pyspark"),
            1,
            "the package pyspark is not installed; see: gristmill doctor",
        ),
    ],
)
def test_what_a_user_can_mend_is_told_without_a_traceback(
    error: Exception, code: int, said: str, verb: Callable[[str, Verb], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb("doctor", raises(error))
    assert invoke(["doctor"]) == code
    assert capsys.readouterr() == ("", said + "\n")


def test_a_bug_tells_class_and_place_but_not_its_words(
    verb: Callable[[str, Verb], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb("doctor", raises(KeyError("the text of a document")))
    assert invoke(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bug: KeyError at tests/jobs/test_command_line.py:")
    assert err.endswith("; the whole story: the same command with --debug\n")
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [["--debug", "doctor"], ["doctor", "--debug"]])
def test_debug_shows_the_traceback(
    words: list[str], verb: Callable[[str, Verb], None], capsys: pytest.CaptureFixture[str]
) -> None:
    verb("doctor", raises(UserError("no")))
    assert invoke(words) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_an_interrupt_is_exit_130(verb: Callable[[str, Verb], None], capsys: pytest.CaptureFixture[str]) -> None:
    verb("doctor", raises(KeyboardInterrupt()))
    assert invoke(["doctor"]) == 130
    assert capsys.readouterr() == ("", "interrupted; the same command goes on from here\n")


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    code = (
        "import sys, types, jobs.command_line as c\n"
        "module = types.ModuleType('x')\n"
        "module.run = lambda **o: [print('a line of words') for _ in range(100000)] and 0\n"
        "sys.modules['jobs.verbs.doctor'] = module\n"
        "sys.argv = ['gristmill', 'doctor']\n"
        "c.main()\n"
    )
    command = f'{sys.executable} -c "$CODE" | head -n 1; echo ${{PIPESTATUS[0]}}'
    told = subprocess.run(["bash", "-c", command], cwd=ROOT, env={"CODE": code, "PATH": "/usr/bin:/bin"},
                          check=True, capture_output=True, text=True)  # fmt: skip
    assert (told.stdout, told.stderr) == ("a line of words\n0\n", "")


def test_no_argument_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([]) == 2
    out, err = capsys.readouterr()
    assert "Usage: gristmill [OPTIONS] COMMAND [ARGS]..." in out + err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--version"]) == 0
    assert capsys.readouterr().out.startswith("gristmill")
