"""The account of an export: every candidate row is written, left out, blocked or refused, and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from shards.digest import to_hex
from synth.errors import SynthError
from synth.exports.settings import Export

SHOWN: Final = 5


@dataclass(kw_only=True)
class Account:
    """In = written + left out (by reason) + blocked (by reason) + refused (by reason)."""

    rows_in: int = 0
    written: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    blocked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    licences: Counter[str] = field(default_factory=Counter)
    teachers: Counter[str] = field(default_factory=Counter)
    attributions: set[str] = field(default_factory=set)
    tokens: int = 0
    trained_tokens: int = 0
    first: dict[str, list[str]] = field(default_factory=dict)
    digest: int = 0
    last_item: str = ""

    def check(self) -> None:
        """Raise SynthError unless every row is somewhere."""
        told = self.written + self.left_out.total() + self.blocked.total() + self.refused.total()
        if told != self.rows_in:
            raise SynthError(f"export: {self.rows_in} rows came in, {told} are accounted for; this is a bug")

    def to_json(self) -> dict[str, Any]:
        return {
            "rows": {
                "in": self.rows_in, "written": self.written, "left_out": self.left_out.total(),
                "blocked": self.blocked.total(), "refused": self.refused.total(),
            },
            "left_out": dict(sorted(self.left_out.items())),
            "blocked": dict(sorted(self.blocked.items())),
            "refused": dict(sorted(self.refused.items())),
            "licences": dict(sorted(self.licences.items())),
            "teachers": dict(sorted(self.teachers.items())),
            "attributions": sorted(self.attributions),
            "tokens": self.tokens,
            "trained_tokens": self.trained_tokens,
            "digest": to_hex(self.digest),
        }  # fmt: skip


def fail_closed(account: Account, made: Export) -> None:
    """Raise SynthError where rows are in conflict with their terms, too many failed their proof, or none is left."""
    if account.blocked and made.licences.conflicting == "refuse":
        raise SynthError(
            f"export: {account.blocked.total()} rows may not be used as licences.use {made.licences.use} says: "
            f"{_told(account, account.blocked)}; state their licence or the teacher's terms, or set "
            "licences.conflicting: leave_out"
        )
    if account.refused.total() > made.max_refused * (account.written + account.refused.total()):
        raise SynthError(
            f"export: {account.refused.total()} of {account.written + account.refused.total()} rows failed their "
            f"proof, where max_refused {made.max_refused:g} allows fewer: {_told(account, account.refused)}; "
            "mend or reject them, or raise max_refused"
        )
    if not account.written:
        raise SynthError(
            f"export: none of {account.rows_in} rows can be written as {made.to}: {_told(account, account.left_out)}"
        )


def _told(account: Account, counts: Counter[str]) -> str:
    return ", ".join(
        f"{why} {count}" + (f" ({', '.join(account.first[why])})" if why in account.first else "")
        for why, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ) or "there are none"  # fmt: skip
