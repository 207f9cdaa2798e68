"""Kinds by name, in this process."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from synth.errors import SynthError
from synth.verdicts import Outcome, Verdict
from synth.verifiers import VERIFIERS, load, verify, version

HANGS = ("21.3", r"\sum_{k=1}^{10^9} 1/k")


def test_every_kind_is_there_with_its_name_and_version() -> None:
    for kind in VERIFIERS:
        assert load(kind).kind == kind
        assert version(kind) == load(kind).version


def test_an_unknown_kind_is_refused_with_the_kinds_there_are() -> None:
    with pytest.raises(SynthError, match=r"verifier 'maths': no such kind; there are .*math"):
        verify("maths", "1", "1")


def test_naming_a_kind_imports_neither_sympy_nor_a_sandbox() -> None:
    told = "import sys, synth.verifiers; synth.verifiers.VERIFIERS; sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0


def test_a_plain_answer_is_verified_before_mpmath_and_sympy_are_loaded() -> None:
    told = (
        "import sys; from synth.verifiers import verify; said = verify('math', '1/2', 'The answer is $0.5$.').outcome;"
        "sys.exit(said != 'right' or 'sympy' in sys.modules or 'mpmath' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", told], check=False).returncode == 0


def test_a_check_that_hangs_ends_within_its_limit_as_an_error() -> None:
    load("math").verify("1", "x", {"second_opinion": "always"})  # sympy's import is none of the check
    began = time.monotonic()
    verdict = verify("math", *HANGS, limit_seconds=1.0)
    assert (verdict.outcome, verdict.reason) == (Outcome.ERROR, "hang")
    assert time.monotonic() - began < 2


def test_an_alarm_that_was_set_before_still_goes_off() -> None:
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        verify("math", "1", "1")
        time.sleep(0.4)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung == [1]


def test_another_thread_gets_the_same_verdict() -> None:
    verdicts: list[Verdict] = []
    thread = threading.Thread(target=lambda: verdicts.append(verify("math", r"\sqrt{8}", r"2\sqrt{2}")))
    thread.start()
    thread.join(60)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.RIGHT]
