"""The audit: what was trained on, held against the plan: nothing lost, nothing twice, nothing other than planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shards.store import join
from train.feed.accounts import Account
from train.feed.batch import Batch, fill
from train.feed.findings import Audit, Problem
from train.feed.history import History, Recorded, read_history
from train.feed.ledger import plan_digest
from train.feed.plan import Plan
from train.feed.run_record import read_run_record
from train.feed.seen import Seen, find_document
from train.feed.spans import Spans
from train.feed.token_shards import TokenShards, TokenShardsError

SAMPLED_STEPS = 64
Verify = Literal["all", "sample", "none"]


def audit(
    ledger: str,
    plan: Plan,
    shards: TokenShards,
    *,
    steps: range | None = None,
    document: str | None = None,
    verify: Verify = "sample",
) -> Audit:
    """Hold a ledger's folder against the plan and the shards that it was trained by.

    steps: None is from 0 to the last step that anything was recorded of. document: an id to look for, or how it alone
    begins. verify: make the batches of all steps again and compare their digests with what was fed, of 64 steps spread
    over the range, or none. shards: opened for this, so that files are verified anew. Coverage of steps and how often
    each token was seen are exact in any case. Costs a `plan.batch` a step, another for the accounts, and a `fill` for
    what is verified.
    Raises LedgerError where there is no ledger.
    """
    history = read_history(ledger, steps=steps)
    if steps is None:
        last = max(history.closed or 0, history.last_step + 1)
        steps = range(last if plan.steps is None else min(last, plan.steps))
    elif steps.step != 1 or steps.start < 0:
        raise ValueError(f"steps: {steps}; it would be an unbroken range from 0 or later")
    auditor = _Auditor(history, plan, shards, steps, verify)
    told, places = ("", []) if document is None else find_document(shards, document)
    seen = Seen(shards, places)
    for step in steps:
        auditor.step(step, seen)
    found = None
    if document is not None:
        again = read_history(ledger, steps=range(0), watch=seen.document_steps)
        found = seen.document(told, again.checkpoints)
    return Audit(
        first_step=steps.start,
        stop_step=steps.stop,
        applied_steps=auditor.applied,
        skipped=auditor.skipped,
        unfinished_step=auditor.unfinished,
        verified_steps=auditor.verified,
        same_plan=history.attempts[-1].plan_digest == plan_digest(plan.state()),
        attempts=history.attempts,
        domains=seen.domains(plan, steps),
        accounts=auditor.accounts(),
        document=found,
        problems=(*auditor.problems, *(Problem(kind="plan", told=told) for told in auditor.broken(seen))),
    )


def audit_run(
    run: str,
    *,
    steps: range | None = None,
    document: str | None = None,
    verify: Verify = "sample",
    tokens: str | Sequence[str] | None = None,
    cache: str | None = None,
) -> Audit:
    """Audit a run's folder, which holds ledger/ and plan.json: the plan's state, and the folders of its tokens.

    tokens: folders where the tokens lie now, if they were moved and the run was not. Raises LedgerError,
    TokenShardsError, PlanError.
    """
    record = read_run_record(run)
    shards = TokenShards.open(record.folders(run) if tokens is None else tokens, cache=cache)
    plan = Plan.of(shards, record.plan)
    return audit(join(run, "ledger"), plan, shards, steps=steps, document=document, verify=verify)


class _Auditor:
    """Goes through steps and notes problems."""

    def __init__(self, history: History, plan: Plan, shards: TokenShards, steps: range, verify: Verify) -> None:
        self.history, self.plan, self.shards = history, plan, shards
        self.problems: list[Problem] = []
        self.applied, self.verified = 0, 0
        self.skipped: dict[int, str] = {}
        self.unfinished: int | None = None
        self.steps = steps
        for step in history.steps:
            if plan.steps is not None and step >= plan.steps:
                self.note("strange", step, f"the plan has {plan.steps} steps", history.steps[step][0], None)
        self.world_sizes = {attempt.attempt: attempt.world_size for attempt in history.attempts}
        recorded = [step for step in steps if step in history.steps]
        if verify == "sample" and len(recorded) > SAMPLED_STEPS:
            picked = np.linspace(0, len(recorded) - 1, SAMPLED_STEPS).round().astype(int)
            recorded = [recorded[number] for number in picked]
        self.to_verify = frozenset(() if verify == "none" else recorded)

    def step(self, step: int, seen: Seen) -> None:
        try:
            spans = self.plan.batch(step)
        except TokenShardsError as error:
            self.shard(error)
            return
        records = [self.whole(recorded, spans) for recorded in self.history.steps.get(step, [])]
        times, kinds = self.cover(step, spans, records)
        if (times == 0).any() and step == self.history.last_step and self.history.closed is None and (times <= 1).all():
            self.unfinished = step
        else:
            self.lost(step, spans, records, times)
        if kinds == {True, False}:
            told = f"step {step}: some ranks applied it and others passed it over"
            self.problems.append(Problem(kind="divided", told=told, steps=(step, step + 1)))
        applied = np.zeros(spans.rows, np.int64)
        if True in kinds:
            self.applied += 1
            for recorded in records:
                if recorded.skipped is None:
                    applied[_rows(recorded, spans)] += 1
        elif kinds:
            self.skipped[step] = next(recorded.skipped or "" for recorded in records)
        seen.add(step, spans, applied)
        if step in self.to_verify:
            self.verify(step, spans, records)

    def whole(self, recorded: Recorded, spans: Spans) -> Recorded:
        """Where a rank told only that it passed over the step: all its rows."""
        if recorded.first >= 0:
            return recorded
        begin, end = _share(spans.rows, recorded.rank, self.world_sizes[recorded.attempt])
        return recorded._replace(first=spans.first_sequence + begin, rows=end - begin)

    def cover(self, step: int, spans: Spans, records: Sequence[Recorded]) -> tuple[NDArray[np.int64], set[bool]]:
        """How often each row was recorded, and whether as applied. Notes what is strange or there twice."""
        times = np.zeros(spans.rows, np.int64)
        begin, end = spans.first_sequence, spans.first_sequence + spans.rows
        for recorded in records:
            first, stop = recorded.first, recorded.first + recorded.rows
            if recorded.rows and (first < begin or stop > end):
                told = f"sequences {first} to {stop} are not of this step, whose are {begin} to {end}"
                self.note("strange", step, told, recorded, (first, stop))
            rows = _rows(recorded, spans)
            again = np.flatnonzero(times[rows])
            if len(again):
                twice = (begin + rows.start + int(again[0]), begin + rows.start + int(again[-1]) + 1)
                self.note("repeat", step, f"sequences {twice[0]} to {twice[1]} are recorded once more", recorded, twice)
            times[rows] += 1
        return times, {recorded.skipped is None for recorded in records}

    def lost(self, step: int, spans: Spans, records: Sequence[Recorded], times: NDArray[np.int64]) -> None:
        """Note the runs of rows that are recorded by no rank, and whose they would have been."""
        missing = np.flatnonzero(np.diff(times == 0, prepend=False, append=False))
        for begin, end in missing.reshape(-1, 2).tolist():
            rank, attempt = None, max((recorded.attempt for recorded in records), default=None)
            if attempt is not None:
                size = self.world_sizes[attempt]
                ranks = [r for r in range(size) if _overlap(_share(spans.rows, r, size), (begin, end))]
                rank = ranks[0] if len(ranks) == 1 else None
            found = (spans.first_sequence + begin, spans.first_sequence + end)
            self.lose((step, step + 1), found, attempt, rank)

    def lose(self, steps: tuple[int, int], sequences: tuple[int, int], attempt: int | None, rank: int | None) -> None:
        last = self.problems[-1] if self.problems else None
        whole = attempt is None and last is not None and last.kind == "loss" and last.attempt is None
        if whole and last is not None and last.steps and last.sequences and last.steps[1] == steps[0]:
            # Steps that nobody recorded, one after another, are one loss.
            self.problems.pop()
            steps, sequences = (last.steps[0], steps[1]), (last.sequences[0], sequences[1])
        where = f"step {steps[0]}" if steps[1] == steps[0] + 1 else f"steps {steps[0]} to {steps[1]}"
        who = "any rank" if rank is None else f"rank {rank} of attempt {attempt}, or any other"
        told = f"{where}: sequences {sequences[0]} to {sequences[1]} were not recorded by {who}"
        self.problems.append(
            Problem(kind="loss", told=told, steps=steps, attempt=attempt, rank=rank, sequences=sequences)
        )

    def verify(self, step: int, spans: Spans, records: Sequence[Recorded]) -> None:
        """Make the step's rows again and compare with what each rank was fed."""
        made: dict[bool, Batch] = {}
        try:
            for recorded in records:
                rows = _rows(recorded, spans)
                if recorded.digest is None or rows.stop - rows.start != recorded.rows:
                    continue
                if recorded.isolate not in made:
                    made[recorded.isolate] = fill(spans, self.shards, isolate=recorded.isolate, step=step)
                found = made[recorded.isolate].take(rows.start, recorded.rows).digest()
                if found != recorded.digest:
                    told = f"fed was {recorded.digest}, plan and shards give {found}"
                    sequences = (recorded.first, recorded.first + recorded.rows)
                    self.note("digest", step, told, recorded, sequences)
        except TokenShardsError as error:
            self.shard(error)
            return
        self.verified += 1

    def note(self, kind: str, step: int, told: str, recorded: Recorded, sequences: tuple[int, int] | None) -> None:
        self.problems.append(
            Problem(
                kind=kind,
                told=f"step {step}, rank {recorded.rank} of attempt {recorded.attempt}: {told}",
                steps=(step, step + 1),
                attempt=recorded.attempt,
                rank=recorded.rank,
                sequences=sequences,
            )
        )

    def broken(self, seen: Seen) -> Iterable[str]:
        """What the plan gives otherwise than its streams do; nothing can be said where a step could not be planned."""
        if all(problem.kind != "shard" for problem in self.problems):
            yield from seen.broken(self.plan, self.steps)

    def accounts(self) -> dict[str, Account]:
        if any(problem.kind == "shard" for problem in self.problems):
            return {}
        return self.plan.account(self.steps.start, self.steps.stop)

    def shard(self, error: TokenShardsError) -> None:
        if all(problem.told != str(error) for problem in self.problems):
            self.problems.append(Problem(kind="shard", told=str(error)))


def _share(rows: int, rank: int, world_size: int) -> tuple[int, int]:
    """The rows of a global batch that are a rank's."""
    return rank * rows // world_size, (rank + 1) * rows // world_size


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return max(one[0], other[0]) < min(one[1], other[1])


def _rows(recorded: Recorded, spans: Spans) -> slice:
    """The rows of the step that a rank recorded, as far as they are of the step."""
    begin = min(max(recorded.first - spans.first_sequence, 0), spans.rows)
    end = min(max(recorded.first + recorded.rows - spans.first_sequence, begin), spans.rows)
    return slice(begin, end)
