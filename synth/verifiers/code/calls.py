"""Calls with expected values: the program says what it returned, and it is compared here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synth.verifiers.code.checking import Checker
from synth.verifiers.code.comparing import same_value
from synth.verifiers.code.gold import Call
from synth.verifiers.code.inside.values import NotPlainError, decode, encode
from synth.verifiers.code.sessions import FailedError, Session, Trial, ran_out_of_memory
from synth.verifiers.code.settings import Settings


def run_calls(trial: Trial, calls: Sequence[Call], checker: Checker) -> None:
    """All calls in one process, in order. Raises FailedError at the first that fails."""
    with Session(trial.settings) as session:
        with trial.clock.case() as deadline:
            session.load(trial.program, deadline)
        for call in calls:
            request = {
                "do": "call",
                "target": call.name or trial.gold.entry_point,
                "args": [encode(one) for one in call.args],
                "kwargs": {name: encode(one) for name, one in call.kwargs.items()},
            }
            with trial.clock.case() as deadline:
                reply = session.ask(request, deadline)
            _judge(call, reply, trial.settings, checker)


def _judge(call: Call, reply: dict[str, Any], settings: Settings, checker: Checker) -> None:
    if call.raises:
        names = reply.get("raised")
        if not isinstance(names, list) or call.raises not in names:
            raise FailedError("did_not_raise")
        return
    found = value_of(reply)
    if checker:
        given = [*call.args, call.kwargs] if call.kwargs else list(call.args)
        if not checker.accepts(given, call.expected, found):
            raise FailedError("checker_refused")
    elif not same_value(found, call.expected, tolerance=settings.tolerance, strict=settings.strict_types):
        raise FailedError("wrong_value")


def value_of(reply: dict[str, Any]) -> Any:
    """The value that a reply claims. Raises FailedError where there is none."""
    if "raised" in reply:
        raise FailedError("memory_limit" if ran_out_of_memory(reply) else "raised")
    if "value" not in reply:
        raise FailedError("not_plain" if "not_plain" in reply else "protocol")
    try:
        return decode(reply["value"])
    except (NotPlainError, RecursionError):
        raise FailedError("not_plain") from None
