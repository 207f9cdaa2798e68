"""Where chat templates run: Jinja's sandbox, and bounds on what a template that means ill can take of the machine.

A template comes with a model, and is a program of whoever made it. The sandbox keeps it from files and objects; here
a rendering is kept from running for ever, and from numbers and texts without end. What a filter may yet ask for in
one go (a text centred in 10^10 blanks) is not bounded.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_REPEATED = 1 << 24  # entries of a repeated text or list
MAX_EXPONENT = 1 << 10


class TooLongError(BaseException):
    """A rendering ran out of time. No Exception, so that nothing in a template swallows it."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's immutable sandbox, in which `*` and `**` do not make what no memory holds."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" and isinstance(right, int | float) and abs(right) > MAX_EXPONENT:
            raise SecurityError("a power too large for a template")
        if operator == "*":
            for many, times in ((left, right), (right, left)):
                if isinstance(many, Sized) and isinstance(times, int) and len(many) * times > MAX_REPEATED:
                    raise SecurityError("a repetition too long for a template")
        return super().call_binop(context, operator, left, right)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TooLongError after so many seconds of computing.

    Python can be stopped by the clock in its main thread alone, so elsewhere there is no bound, nor where somebody else
    has set that clock.
    """
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getitimer(signal.ITIMER_VIRTUAL)[0] > 0:
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
