"""What an audit found, as a record and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from train.feed.accounts import Account
from train.feed.history import Attempt
from train.feed.seen import DocumentSeen, DomainSeen


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something that should not be. steps, sequences: first and end; sequences as numbered in the whole plan.

    kind: loss (rows that no rank recorded), repeat (rows recorded twice), strange (rows that are not of the step),
    divided (a step that some rows were applied of and others not), digest (other tokens than planned were fed), shard
    (files that changed or are gone), plan (the plan itself gives tokens more or less often than its streams do, or such
    that were to be held out: a fault of Gristmill).
    """

    kind: str
    told: str
    steps: tuple[int, int] | None = None
    attempt: int | None = None
    rank: int | None = None
    sequences: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an audit found for steps first_step to stop_step (without it).

    applied_steps, skipped_steps: of the range; skipped: {step: reason}. unfinished_step: the last step, if only some
    ranks have recorded it and the attempt has not ended in order. verified_steps: whose rows were made again from plan
    and shards, and compared. same_plan: whether the newest attempt began with this very plan (a plan that was changed
    for later steps since is another, and the digests tell whether it matters). accounts: by domain, what the plan makes
    of the tokens of the range, whatever was passed over; empty where a shard is missing.
    """

    first_step: int
    stop_step: int
    applied_steps: int
    skipped: dict[int, str]
    unfinished_step: int | None
    verified_steps: int
    same_plan: bool
    attempts: tuple[Attempt, ...]
    domains: tuple[DomainSeen, ...]
    accounts: dict[str, Account]
    document: DocumentSeen | None
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        told = asdict(self)
        for attempt in told["attempts"]:
            del attempt["plan"]
        return told | {"ok": self.ok}

    def lines(self) -> Iterator[str]:
        """The audit in words, a line each."""
        size = self.stop_step - self.first_step
        yield (
            f"steps {self.first_step} to {self.stop_step}: {self.applied_steps} of {size} applied, "
            f"{len(self.skipped)} passed over, {self.verified_steps} made again and compared; "
            f"{len(self.attempts)} attempts"
        )
        if self.unfinished_step is not None:
            yield f"step {self.unfinished_step} is not recorded by all ranks yet: it runs, or was cut off"
        for domain in self.domains:
            yield domain.told()
            if domain.name in self.accounts:
                yield f"{domain.name}, as planned: {self.accounts[domain.name].told()}"
        if self.document is not None:
            yield from self.document.told()
        for problem in self.problems:
            yield f"{problem.kind}: {problem.told}"
        yield "nothing is lost, nothing is repeated" if self.ok else f"{len(self.problems)} problems"
