"""Runs of a whole program: each in a sandbox of its own, its output compared here."""

from __future__ import annotations

from collections.abc import Sequence

from synth.verifiers.code.checking import Checker
from synth.verifiers.code.comparing import same_output
from synth.verifiers.code.gold import Run
from synth.verifiers.code.languages import Executable, executable
from synth.verifiers.code.processes import Sandbox
from synth.verifiers.code.sessions import FailedError, Trial


def run_runs(trial: Trial, runs: Sequence[Run], checker: Checker) -> None:
    """In order. Raises FailedError at the first that fails."""
    settings = trial.settings
    ready = executable(trial.program, settings)
    for run in runs:
        found = _output(ready, run.stdin, trial)
        if checker:
            if not checker.accepts(run.stdin, run.stdout, found):
                raise FailedError("checker_refused")
        elif not same_output(found, run.stdout, how=settings.output, tolerance=settings.tolerance):
            raise FailedError("wrong_output")


def _output(ready: Executable, stdin: str, trial: Trial) -> str:
    with Sandbox(ready.command, limits=trial.settings.limits, place=ready.place, files=ready.files) as sandbox:
        sandbox.send(stdin.encode("utf-8", "surrogatepass"), last=True)
        with trial.clock.case() as deadline:
            found, code = sandbox.finish(deadline)
    if code != 0:
        raise FailedError("exit_code")
    return found.decode("utf-8", "replace")
