"""The `pattern` kind: a regular expression that an answer must match, or must not, within a time of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from synth.verdicts import Outcome, Verdict
from synth.verifiers.verifier import read_options

MAX_PATTERN_CHARS: Final = 10_000


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Pattern:
    """How a pattern is applied.

    pattern: for all rows, where the gold is none. where: full, it is the whole answer (white space around it aside);
        search, somewhere in it. wanted: match; absence, it must not be there.
    ignore_case, multiline (^ and $ at each line), dot_all (. is a line feed, too): flags, off as in Python.
    timeout_seconds: for one answer; a pattern that takes longer is an error, never wrong.
    """

    pattern: str = ""
    where: Literal["full", "search"] = "full"
    wanted: Literal["match", "absence"] = "match"
    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False
    timeout_seconds: float = Field(default=1.0, gt=0, le=60)


class Patterns:
    """Right if the answer matches the gold, a pattern in the syntax of the `regex` package (version 0: Python's own,
    with Unicode properties and possessive quantifiers)."""

    kind = "pattern"
    version = "1"

    def verify(self, gold: Any, answer: str, options: Mapping[str, Any]) -> Verdict:
        import regex  # type: ignore[import-untyped]

        settings = read_options(Pattern, options, kind=self.kind)
        wanted = settings.pattern if gold is None else gold
        if not isinstance(wanted, str) or not wanted or len(wanted) > MAX_PATTERN_CHARS:
            return Verdict(outcome=Outcome.ERROR, reason="gold_is_no_pattern")
        try:
            compiled = _compiled(wanted, settings)
        except (regex.error, RecursionError, OverflowError, MemoryError):
            return Verdict(outcome=Outcome.ERROR, reason="pattern_does_not_compile")
        applied = compiled.fullmatch if settings.where == "full" else compiled.search
        text = answer.strip() if settings.where == "full" else answer
        try:
            found = applied(text, timeout=settings.timeout_seconds) is not None
        except TimeoutError:
            return Verdict(outcome=Outcome.ERROR, reason="pattern_timed_out")
        right = found == (settings.wanted == "match")
        return Verdict(outcome=Outcome.RIGHT if right else Outcome.WRONG, reason="matched" if found else "not_matched")


@lru_cache(maxsize=512)
def _compiled(pattern: str, settings: Pattern) -> Any:
    import regex

    flags = regex.V0
    flags |= regex.IGNORECASE if settings.ignore_case else 0
    flags |= regex.MULTILINE if settings.multiline else 0
    flags |= regex.DOTALL if settings.dot_all else 0
    return regex.compile(pattern, flags)
