"""The sandbox itself: where it is missing it is refused, where it fails that is an error, and its processes end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from synth.errors import SynthError
from synth.verdicts import Check, Outcome
from synth.verifiers import Workers, load
from synth.verifiers.code import require_sandbox
from synth.verifiers.code.bubblewrap import SandboxError, interpreter
from synth.verifiers.code.processes import LimitError, Sandbox
from synth.verifiers.code.settings import Limits, Settings
from synth.verifiers.code.system_calls import program

SQUARES = {"entry_point": "f", "hidden": [{"args": [2], "expected": 4}, {"args": [-3], "expected": 9}]}
RIGHT = "def f(x): return x * x"
REFUSED = """
import sys
from synth.errors import SynthError
from synth.verifiers import load
from synth.verifiers.code import require_sandbox
verdict = load("code").verify({"entry_point": "f", "hidden": [{"args": [2], "expected": 4}]},
                              "print('it ran', flush=True)\\ndef f(x): return 4", {})
print(verdict.outcome, verdict.reason)
try:
    require_sandbox()
except SynthError as error:
    print(error)
"""


def within(*flags: str) -> list[str]:
    """What REFUSED prints on a machine that bwrap's flags make."""
    root = Path(__file__).resolve().parents[3]
    told = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", *flags, "--chdir", str(root), sys.executable, "-c", REFUSED],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return told.stdout.splitlines()


def test_where_user_namespaces_are_forbidden_nothing_runs_and_a_recipe_is_told() -> None:
    first, second = within("--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000")
    assert first == "error sandbox_failed"
    assert second.startswith("verifier code: no sandbox (sandbox_failed: ")
    assert "user.max_user_namespaces" in second


def test_an_ordinary_user_has_the_same_sandbox() -> None:
    assert within("--unshare-user", "--uid", "1000", "--gid", "1000") == ["right passed"]


def test_a_slow_program_is_wrong_and_one_that_got_no_core_is_not_known(one_crowded_core: None) -> None:
    options = {"limits": {"wall_seconds": 1.5, "total_seconds": 1.5}}
    busy, asleep = "while True: pass", "import time; time.sleep(60)"
    assert load("code").verify(SQUARES, busy, options).reason == "busy"
    assert load("code").verify(SQUARES, asleep, options).reason == "timeout"


BUSY = ["/bin/sh", "-c", "while :; do :; done"]


@pytest.fixture
def one_crowded_core() -> Iterator[None]:
    """This process, and all that it starts, on one core with five others that never rest.

    Each in a session of its own, as the sandbox is: kernels that share a core by sessions gave it half of one else.
    """
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    others = [subprocess.Popen(BUSY, start_new_session=True) for _ in range(5)]
    yield
    for one in others:
        one.kill()
        one.wait()
    os.sched_setaffinity(0, cores)


def test_root_that_cannot_become_another_user_runs_nothing() -> None:
    if os.geteuid() != 0:  # then there is nobody to become
        return
    first, second = within("--unshare-user")
    assert first == "error no_sandbox"
    assert "root cannot become user 65534 here" in second


def test_where_bubblewrap_is_missing_nothing_runs_and_a_recipe_is_told() -> None:
    hidden = [flag for path in ("/usr/bin/bwrap", "/bin/bwrap") for flag in ("--ro-bind", "/dev/null", path)]
    first, second = within(*hidden)
    assert first == "error no_sandbox"
    assert second.startswith("verifier code: no sandbox (no_sandbox: bubblewrap's bwrap is not installed); install")


def test_a_machine_with_a_sandbox_is_told_nothing() -> None:
    require_sandbox()


def test_an_interpreter_that_is_none_is_an_error() -> None:
    options = {"interpreter": "/usr/bin/true"}
    assert load("code").verify(SQUARES, RIGHT, options).reason == "no_interpreter"
    with pytest.raises(SynthError, match=r"no_interpreter: /usr/bin/true is no Python of 3\.10 or newer"):
        require_sandbox("/usr/bin/true")


def test_a_limit_that_cannot_be_set_is_an_error_and_not_the_programs_fault() -> None:
    code = (
        "import resource, sys; from synth.verifiers import load; from synth.verifiers.code import require_sandbox\n"
        "require_sandbox(); resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))\n"
        "gold = {'hidden': [{'stdin': '', 'stdout': '1'}]}\n"
        "for most in (100, 300):\n"
        "    print(load('code').verify(gold, 'print(1)', {'limits': {'open_files': most}}).reason)\n"
    )
    root = Path(__file__).resolve().parents[3]
    told = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["passed", "limit_above_ours"]


def ends(inner: list[str], **limits: Any) -> tuple[bytes, int]:
    with Sandbox(inner, limits=Limits(**limits), place=interpreter("").place) as sandbox:
        sandbox.send(b"", last=True)
        return sandbox.finish(time.monotonic() + 30)


def test_what_cannot_be_executed_is_the_sandboxs_failure_and_what_fails_is_not() -> None:
    assert ends(["/bin/sh", "-c", "exit 3"]) == (b"", 3)
    assert ends(["/bin/sh", "-c", "echo x; kill -9 $$"]) == (b"x\n", 137)
    # prlimit is executed, and says 127 where what it should run is not there.
    assert ends(["/no/such/program"])[1] == 127


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exec yes", "output_limit"),
        ("exec yes >&2", "output_limit"),
        ("while :; do :; done", "cpu_limit"),
        ("trap '' XCPU; while :; do :; done", "cpu_limit"),
    ],
)
def test_limits_end_a_program_with_their_name(script: str, reason: str) -> None:
    with pytest.raises(LimitError) as caught:
        ends(["/bin/sh", "-c", script], cpu_seconds=1)
    assert caught.value.reason == reason


def test_memory_of_all_processes_together_is_limited() -> None:
    script = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        kept = bytearray(b'x') * (50 << 20)
        time.sleep(20)
"""
    with pytest.raises(LimitError) as caught:
        ends([interpreter("").path, "-S", "-c", f"{script}time.sleep(20)"], memory_mebibytes=128)
    assert caught.value.reason == "memory_limit"


def test_shared_pages_count_once() -> None:
    script = "import os, time\nkept = bytearray(b'x') * (60 << 20)\n[os.fork() and time.sleep(.3) for _ in range(2)]\n"
    assert ends([interpreter("").path, "-S", "-c", script], memory_mebibytes=128) == (b"", 0)


def test_input_larger_than_a_pipe_and_output_beside_it_do_not_stop_each_other() -> None:
    data = b"x" * (1 << 20)
    with Sandbox(["/bin/cat"], limits=Limits(output_kibibytes=2048), place=interpreter("").place) as sandbox:
        sandbox.send(data, last=True)
        assert sandbox.finish(time.monotonic() + 30) == (data, 0)


def test_input_that_nobody_reads_is_no_fault() -> None:
    with Sandbox(["/bin/true"], limits=Limits(), place=interpreter("").place) as sandbox:
        sandbox.send(b"x" * (1 << 20), last=True)
        assert sandbox.finish(time.monotonic() + 30) == (b"", 0)


def test_right_wrong_and_hostile_programs_at_once_each_get_their_own_verdict() -> None:
    programs = {
        RIGHT: "passed",
        "def f(x): return x": "wrong_value",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass": "cpu_limit",
        "kept = bytearray(10 << 30)": "memory_limit",
        "import os; os._exit(0)": "exited",
    }
    options = {"limits": {"cpu_seconds": 1, "wall_seconds": 3.0}}
    checks = [Check(kind="code", gold=SQUARES, answer=one, options=options) for one in [*programs] * 3]
    with Workers(processes=2, limit_seconds=30, kinds=("code",)) as workers:
        verdicts = workers.check_all(checks)
    for check, verdict in zip(checks, verdicts, strict=True):
        if "os.fork" in check.answer:  # its time is out by one limit or another
            assert verdict.outcome != Outcome.RIGHT
        else:
            assert verdict.reason == programs[check.answer]


def test_filters_are_whole_instructions_for_the_machines_they_are_for_and_none_for_others() -> None:
    for machine in ("x86_64", "aarch64"):
        made = program(machine)
        assert made is not None
        assert len(made) % 8 == 0
        # No jump leads past the end, and the last instruction allows.
        instructions = [made[at : at + 8] for at in range(0, len(made), 8)]
        for at, one in enumerate(instructions):
            if one[0] & 7 == 5:
                assert at + 1 + max(one[2], one[3]) < len(instructions)
        assert instructions[-1] == bytes((6, 0, 0, 0)) + (0x7FFF0000).to_bytes(4, "little")
    assert program("riscv64") is None


def test_settings_and_interpreters_are_read_once() -> None:
    assert interpreter("") is interpreter("")
    with pytest.raises(SandboxError):
        interpreter("/no/such/python")
    assert Settings().limits.cpu_seconds < Settings().limits.wall_seconds < Settings().limits.total_seconds
