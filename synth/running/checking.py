"""Checks to verdicts: from the store where they are there, from the verifiers where not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from synth.store import Store
from synth.verdicts import Check, Verdict

Verify = Callable[[Check], Awaitable[Verdict]]


class Checker:
    """Answers effects of checks. anew: verdicts of earlier runs are given again.

    check: the verifiers. version: of a kind, part of the key under which its verdicts are stored.
    """

    def __init__(
        self, store: Store, run: int, check: Verify, version: Callable[[str], str], *, anew: bool = False
    ) -> None:
        self._store, self._run, self._check, self._version = store, run, check, version
        self._not_before = run if anew else 0
        self._open: dict[str, asyncio.Task[Verdict]] = {}

    def version(self, kind: str) -> str:
        """Raises SynthError for a kind that there is not."""
        return self._version(kind)

    async def verdicts(self, checks: Sequence[Check]) -> list[Verdict]:
        """Of each check, in order. Raises what the verifier raises: SynthError for an unknown kind or option."""
        waiting = [self._verdict(check) for check in checks]
        given = await asyncio.gather(
            *(asyncio.shield(one) for one in waiting if isinstance(one, asyncio.Task)), return_exceptions=True
        )
        if (wrong := next((one for one in given if isinstance(one, BaseException)), None)) is not None:
            raise wrong
        told = iter(given)
        return [one if isinstance(one, Verdict) else next(told) for one in waiting]  # type: ignore[misc]

    def _verdict(self, check: Check) -> Verdict | asyncio.Task[Verdict]:
        key = check.key(self._version(check.kind))
        if (found := self._store.answers.verdict(key, self._not_before)) is not None:
            return found
        if key not in self._open:
            self._open[key] = asyncio.create_task(self._given(key, check))
        return self._open[key]

    async def _given(self, key: str, check: Check) -> Verdict:
        try:
            verdict = await self._check(check)
            self._store.answers.judge(key, verdict, self._run)
            return verdict
        finally:
            del self._open[key]

    async def close(self) -> None:
        for task in list(self._open.values()):
            task.cancel()
        await asyncio.gather(*self._open.values(), return_exceptions=True)
