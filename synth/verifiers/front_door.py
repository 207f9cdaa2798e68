"""A verdict in this process, and which verifier a kind is."""

from __future__ import annotations

import contextlib
import importlib
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from synth.errors import SynthError
from synth.verdicts import Check, Outcome, Verdict
from synth.verifiers import VERIFIERS
from synth.verifiers.verifier import Verifier


@cache
def load(kind: str) -> Verifier:
    """The verifier of a kind. Raises SynthError, with the kinds there are, for another."""
    if kind not in VERIFIERS:
        raise SynthError(f"verifier {kind!r}: no such kind; there are {', '.join(sorted(VERIFIERS))}")
    module, name = VERIFIERS[kind].split(":")
    verifier: Verifier = getattr(importlib.import_module(module), name)()
    return verifier


def version(kind: str) -> str:
    """Of a kind's verifier, for Check.key: verdicts of another version are not used again."""
    return load(kind).version


class _Late(BaseException):
    """Of no class that a verifier or sympy catches."""


def verify(kind: str, gold: Any, answer: str, *, limit_seconds: float = 10.0, **options: Any) -> Verdict:
    """The verdict of one check, in this process; error with reason hang past the limit. For a few checks, and texts
    that nobody made to do harm: the limit is a signal, which waits for one long integer operation to end, and on
    another thread than the main one, where there are no signals, the check goes to a process of its own (some 0.5 s).
    Workers has neither fault.

    Raises SynthError for an unknown kind or option, as both are a recipe's mistake and no answer's.
    """
    verifier = load(kind)
    if threading.current_thread() is not threading.main_thread():
        from synth.verifiers.workers import Workers

        with Workers(limit_seconds=limit_seconds, kinds=(kind,)) as workers:
            return workers.check_all([Check(kind=kind, gold=gold, answer=answer, options=options)])[0]
    began = time.perf_counter()
    try:
        with _alarm(limit_seconds):
            verdict = verifier.verify(gold, answer, options)
    except _Late:
        verdict = Verdict(outcome=Outcome.ERROR, reason="hang")
    return replace(verdict, seconds=time.perf_counter() - began)


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """_Late in the block after so many seconds; an alarm that was set before goes on behind it."""

    def late(*_: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGALRM, late)
    began = time.monotonic()
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 1e-3), interval)
