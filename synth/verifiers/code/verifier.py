"""The kind `code`: a program in an answer, run against tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synth.verdicts import Outcome, Verdict
from synth.verifiers.code.assertions import run_assertions
from synth.verifiers.code.bubblewrap import SandboxError
from synth.verifiers.code.calls import run_calls
from synth.verifiers.code.checking import Checker
from synth.verifiers.code.extraction import program_of
from synth.verifiers.code.gold import Assertion, BadGoldError, Call, Gold, Run, read_gold
from synth.verifiers.code.health import healthy, once
from synth.verifiers.code.processes import LimitError
from synth.verifiers.code.runs import run_runs
from synth.verifiers.code.sessions import Clock, FailedError, Trial
from synth.verifiers.code.settings import Settings
from synth.verifiers.verifier import read_options


class Code:
    """Right if the program passes every test, visible and hidden.

    gold: see Gold. The program runs in a sandbox alone: it is never shown an expected value, nor a test before it is
    run, and what it returned or wrote is compared outside. Wrong with the reason: no_program, does_not_load,
    does_not_compile, wrong_value, wrong_output, failed_assertion, checker_refused, raised, did_not_raise, not_plain
    (an object of a class of its own), exited, exit_code, protocol (it wrote what only our driver writes), timeout,
    cpu_limit, memory_limit, output_limit, process_limit.
    Error where the sandbox is not there or failed (no_sandbox, no_interpreter, sandbox_failed, sandbox_unhealthy,
    limit_above_ours, not_ended), where the machine was too busy to tell a slow program (busy), and where the gold is no
    good.
    """

    kind = "code"
    version = "1"

    def prepare(self) -> None:
        """Start a sandbox once, so that no check's time goes into it."""
        once("")

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        settings = read_options(Settings, options, kind=self.kind)
        try:
            tests = read_gold(gold, settings.language)
            broken = once(settings.interpreter)
            if broken is not None:
                return Verdict(outcome=Outcome.ERROR, reason=broken.reason)
            program = program_of(answer, settings.language, settings.part)
            if program is None:
                return Verdict(outcome=Outcome.WRONG, reason="no_program")
            _run(program, tests, settings)
        except FailedError as failed:
            return Verdict(outcome=Outcome.WRONG, reason=failed.reason)
        except LimitError as limit:
            return _beyond(limit, settings)
        except (SandboxError, BadGoldError) as error:
            return Verdict(outcome=Outcome.ERROR, reason=error.reason)
        return Verdict(outcome=Outcome.RIGHT, reason="passed")


def _run(program: str, tests: Gold, settings: Settings) -> None:
    clock = Clock(settings.limits.wall_seconds, settings.limits.total_seconds)
    trial = Trial(program=program, gold=tests, settings=settings, clock=clock)
    calls = [case for case in tests.cases if isinstance(case, Call)]
    runs = [case for case in tests.cases if isinstance(case, Run)]
    assertions = [case for case in tests.cases if isinstance(case, Assertion)]
    with Checker(tests.checker, settings) as checker:
        if calls:
            run_calls(trial, calls, checker)
        if runs:
            run_runs(trial, runs, checker)
    if assertions:
        run_assertions(trial, assertions)


def _beyond(limit: LimitError, settings: Settings) -> Verdict:
    """A program that was too slow is wrong, unless the machine gave it no time: then nobody knows."""
    if limit.reason == "timeout" and (limit.deprived or not healthy(settings)):
        return Verdict(outcome=Outcome.ERROR, reason="busy")
    return Verdict(outcome=Outcome.WRONG, reason=limit.reason)
