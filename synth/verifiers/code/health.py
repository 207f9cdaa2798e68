"""Whether this machine can run untrusted programs, and whether it just now gives them time."""

from __future__ import annotations

import time
from functools import cache
from typing import Final

from synth.errors import SynthError
from synth.verifiers.code.bubblewrap import SandboxError, interpreter
from synth.verifiers.code.launching import START_SECONDS
from synth.verifiers.code.processes import LimitError, Sandbox
from synth.verifiers.code.sessions import python_command
from synth.verifiers.code.settings import Limits, Settings

_CALIBRATION: Final = """
total = 0
for one in range(200_000):
    total += one * one % 7
print(total)
"""
_TOTAL: Final = b"399999"


def calibrate(settings: Settings, seconds: float = START_SECONDS) -> None:
    """Run a program of some 20 ms. Raises SandboxError where it does not run, not right, or not in time."""
    place = interpreter(settings.interpreter).place
    with Sandbox(python_command(settings, "-c", _CALIBRATION), limits=Limits(), place=place) as sandbox:
        sandbox.send(b"", last=True)
        try:
            found, code = sandbox.finish(time.monotonic() + seconds)
        except LimitError as limit:
            raise SandboxError("sandbox_unhealthy", limit.reason) from None
    if code != 0 or found.strip() != _TOTAL:
        raise SandboxError("sandbox_unhealthy", f"its calibration program ended with {code}")


def healthy(settings: Settings) -> bool:
    """Whether a program that got no further had the time for it."""
    try:
        calibrate(settings, settings.limits.wall_seconds)
    except SandboxError:
        return False
    return True


@cache
def once(interpreter_path: str) -> SandboxError | None:
    """What is wrong with the sandbox of an interpreter: looked for once a process."""
    try:
        calibrate(Settings(interpreter=interpreter_path))
    except SandboxError as error:
        return error
    return None


def require_sandbox(interpreter_path: str = "") -> None:
    """For a recipe with programs to verify, before it begins. Raises SynthError where they cannot be run safely: they
    are never run otherwise."""
    error = once(interpreter_path)
    if error is not None:
        raise SynthError(
            f"verifier code: no sandbox ({error}); install bubblewrap and util-linux (Debian: apt-get install "
            "bubblewrap) and allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, "
            "kernel.apparmor_restrict_unprivileged_userns); programs are never run without it"
        )
