"""Tests that are Python text: they run in a sandbox of their own, and ask the program in another through us."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any, Final

from synth.verifiers.code.gold import Assertion, BadGoldError, Gold
from synth.verifiers.code.processes import LimitError
from synth.verifiers.code.sessions import FailedError, Session, Trial

_REASONS: Final = frozenset({"failed_assertion", "raised", "not_plain"})
_FAULTS: Final = frozenset({"test_calls_nothing", "test_does_not_run", "test_passes_an_object"})


def run_assertions(trial: Trial, tests: Sequence[Assertion]) -> None:
    """In order, with one process of the program for all. Raises FailedError at the first that fails, BadGoldError for
    one that is itself at fault."""
    with Session(trial.settings) as session:
        with trial.clock.case() as deadline:
            session.load(trial.program, deadline, keeps=True)
        with Session(trial.settings, "harness") as harness:
            for test in tests:
                with trial.clock.case() as deadline:
                    _conclude(_outcome(test, trial.gold, harness, session, deadline))


def _outcome(test: Assertion, gold: Gold, harness: Session, session: Session, deadline: float) -> str:
    """What the harness says of one test. Its failures are the gold's; those of the program are its own."""
    number = secrets.token_hex(16)
    asked = {"setup": gold.setup, "code": test.code, "entry_point": gold.entry_point, "names": gold.names}
    harness.tell({**asked, "number": number})
    began, program_seconds = time.monotonic(), 0.0
    while True:
        try:
            told = _heard(harness, deadline)
        except LimitError as limit:
            if limit.reason == "timeout" and program_seconds > (time.monotonic() - began) / 2:
                raise
            raise BadGoldError(f"test_{limit.reason}") from None
        if told.get("number") == number:
            return str(told.get("outcome"))
        if not isinstance(told.get("ask"), dict):
            raise BadGoldError("test_does_not_run")
        sent = time.monotonic()
        harness.tell(session.ask(told["ask"], deadline))
        program_seconds += time.monotonic() - sent


def _heard(harness: Session, deadline: float) -> dict[str, Any]:
    try:
        return harness.hear(deadline)
    except FailedError:
        raise BadGoldError("test_does_not_run") from None


def _conclude(outcome: str) -> None:
    """Passed, or the exception that says why not."""
    if not outcome:
        return
    what, _, reason = outcome.partition(" ")
    if what == "failed" and reason in _REASONS:
        raise FailedError(reason)
    raise BadGoldError(reason if reason in _FAULTS else "test_does_not_run")
