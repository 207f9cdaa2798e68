"""A gold's own checker, where several results are right: in a sandbox of its own, with the result as plain data."""

from __future__ import annotations

import time
from typing import Any, Self

from synth.verifiers.code.gold import BadGoldError
from synth.verifiers.code.inside.values import NotPlainError, encode
from synth.verifiers.code.processes import LimitError
from synth.verifiers.code.sessions import FailedError, Session
from synth.verifiers.code.settings import Settings


class Checker:
    """False where the gold has none; its process is started when it is first needed. A context manager."""

    def __init__(self, source: str, settings: Settings) -> None:
        self._source = source
        self._settings = settings
        self._session: Session | None = None

    def __bool__(self) -> bool:
        return bool(self._source)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._session is not None:
            self._session.__exit__()

    def accepts(self, given: Any, expected: Any, found: Any) -> bool:
        """What check(given, expected, found) returned. Raises BadGoldError where it returned no bool, raised, or ran
        into a limit: that is no verdict on the program."""
        deadline = time.monotonic() + self._settings.limits.wall_seconds
        try:
            if self._session is None:
                self._session = Session(self._settings)
                self._session.load(self._source, deadline)
            args = [encode(one) for one in (given, expected, found)]
            reply = self._session.ask({"do": "call", "target": "check", "args": args, "kwargs": {}}, deadline)
        except (FailedError, LimitError, NotPlainError):
            raise BadGoldError("checker_failed") from None
        if reply.get("value") not in (True, False) or not isinstance(reply["value"], bool):
            raise BadGoldError("checker_failed")
        return bool(reply["value"])
