"""Processes that hang, die and overeat: killed, replaced, told apart from wrong answers, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from synth.errors import SynthError
from synth.verdicts import Check, Outcome
from synth.verifiers import VERIFIERS, Workers

FAULTS = """
import os, time
from synth.verdicts import Outcome, Verdict

class Faults:
    kind, version = "faults", "1"

    def verify(self, gold, answer, options):
        if answer == "hang":
            time.sleep(1000)
        if answer == "spin":
            9 ** (9 ** 9)  # one operation of an integer, which no signal handler interrupts
        if answer == "child":
            os.system("sleep 1000")
        if answer == "die":
            os._exit(3)
        if answer == "eat":
            bytearray(8 << 30)
        if answer == "raise":
            raise KeyError("secret")
        if answer == "print":
            print("{}")
        return Verdict(outcome=Outcome.RIGHT, reason=str(os.getpid()))
"""


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A verifier with every fault, among the kinds of this process and, by a module of its own, of the workers."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "faulty.py").write_text(FAULTS)
    (folder / "sitecustomize.py").write_text(
        "import synth.verifiers\nsynth.verifiers.VERIFIERS['faults'] = 'faulty:Faults'\n"
    )
    sys.path.insert(0, str(folder))
    VERIFIERS["faults"] = "faulty:Faults"
    yield
    del VERIFIERS["faults"]
    sys.path.remove(str(folder))


def check(answer: str, kind: str = "faults", **options: Any) -> Check:
    return Check(kind=kind, gold="", answer=answer, options=options)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def gone(pids: list[int], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(alive(pid) for pid in pids)


@pytest.mark.usefixtures("faults")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [("hang", "hang"), ("spin", "hang"), ("child", "hang"), ("die", "died"), ("eat", "memory"),
     ("raise", "raised KeyError")],
)  # fmt: skip
def test_a_fault_is_an_error_within_the_limit_and_the_next_check_is_verified(answer: str, reason: str) -> None:
    with Workers(processes=1, limit_seconds=1.0, kinds=("faults",)) as workers:
        first = int(workers.check_all([check("")])[0].reason)
        began = time.monotonic()
        verdict = workers.check_all([check(answer)])[0]
        assert time.monotonic() - began < 2
        assert (verdict.outcome, verdict.reason) == (Outcome.ERROR, reason)
        second = workers.check_all([check("")])[0]
        assert second.outcome is Outcome.RIGHT
        assert (int(second.reason) == first) == (answer == "raise")
        pids = [first, int(second.reason)]
    assert gone(pids)


@pytest.mark.usefixtures("faults")
def test_a_process_stays_warm_and_what_a_verifier_prints_is_no_reply() -> None:
    with Workers(processes=1, kinds=("faults",)) as workers:
        verdicts = workers.check_all([check("print"), check(""), check("print")])
    assert len({verdict.reason for verdict in verdicts}) == 1
    assert all(verdict.outcome is Outcome.RIGHT for verdict in verdicts)


@pytest.mark.usefixtures("faults")
def test_many_tasks_take_turns_and_each_gets_its_own_verdict() -> None:
    async def run() -> list[str]:
        async with Workers(processes=2, limit_seconds=20) as workers:
            checks = [Check(kind="math", gold=str(at), answer=str(at % 3)) for at in range(60)]
            return [str(verdict.outcome) for verdict in await asyncio.gather(*map(workers.check, checks))]

    assert asyncio.run(run()) == ["right"] * 3 + ["wrong"] * 57


@pytest.mark.usefixtures("faults")
def test_closing_does_not_wait_for_a_check_that_hangs() -> None:
    async def run() -> float:
        async with Workers(processes=1, limit_seconds=60, kinds=("faults",)) as workers:
            task = asyncio.create_task(workers.check(check("hang")))
            while not workers._running:
                await asyncio.sleep(0.02)
            began = time.monotonic()
        verdict = await task
        assert (verdict.outcome, verdict.reason) == (Outcome.ERROR, "died")
        return time.monotonic() - began

    assert asyncio.run(run()) < 3


def test_an_unknown_kind_and_an_unknown_option_are_refused() -> None:
    with pytest.raises(SynthError, match="no such kind"):
        Workers(kinds=("maths",))
    with pytest.raises(SynthError, match="above 0"):
        Workers(processes=0)
    with Workers() as workers:
        with pytest.raises(SynthError, match="no such kind"):
            workers.check_all([check("1", kind="maths")])
        with pytest.raises(SynthError, match="verifier math: unit: unknown option"):
            workers.check_all([check("1", kind="math", unit=1)])
        assert workers.check_all([Check(kind="math", gold="1", answer="1")])[0].outcome is Outcome.RIGHT


PARENT = """
import sys, threading, time
from synth.verdicts import Check
from synth.verifiers import Workers
workers = Workers(processes=2, limit_seconds=60)
threading.Thread(target=lambda: workers.check_all([
    Check(kind="math", gold="21.3", answer=r"\\\\sum_{k=1}^{10^9} 1/k")] * 2), daemon=True).start()
while len(workers._running) < 2:
    time.sleep(0.02)
print(*workers._running, flush=True)
time.sleep(60)
"""


def test_no_process_outlives_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    try:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        assert all(alive(pid) for pid in pids)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    assert gone(pids)


HANG_SET = [
    (r"\sum_{k=1}^{10^9} 1/k", "21.3"),
    ("21.3", r"\sum_{k=1}^{10^9} 1/k"),
    ("3.67", r"\prod_{k=1}^{100000}(1+1/k^2)"),
    ("0.5", r"\int_0^1 e^{-x^x}dx"),
    (r"9^{9^9}", r"9^{9^9}+1"),
    ("100000!", "100001!"),
]


def test_what_hangs_a_computer_algebra_ends_within_the_limit_and_is_never_right() -> None:
    checks = [Check(kind="math", gold=gold, answer=answer) for gold, answer in HANG_SET]
    with Workers(processes=2, limit_seconds=2.0, kinds=("math",)) as workers:
        for verdict in workers.check_all(checks):
            assert verdict.outcome in (Outcome.WRONG, Outcome.ERROR)
            assert verdict.seconds < 3


def test_a_stopped_process_is_killed_too() -> None:
    with Workers(processes=1, limit_seconds=1.0, kinds=("math",)) as workers:
        workers.check_all([Check(kind="math", gold="1", answer="1")])
        worker = workers._idle.get_nowait()
        os.kill(worker.process.pid, signal.SIGSTOP)
        workers._idle.put(worker)
        verdict = workers.check_all([Check(kind="math", gold="1", answer="1" * 10**6)])[0]
        assert (verdict.outcome, verdict.reason) == (Outcome.ERROR, "hang")
