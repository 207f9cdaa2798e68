"""What a ledger says happened: attempts in order, what later ones made void, and what remains."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shards.store import filesystem, join, names
from train.feed.ledger import FORMAT, NAME, LedgerError


class Recorded(NamedTuple):
    """A rank's rows of a step: applied, or passed over for a reason. digest is None where only the step was told."""

    attempt: int
    rank: int
    first: int
    rows: int
    digest: str | None
    skipped: str | None
    isolate: bool


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One start of a run on world_size ranks, as those said that wrote anything.

    closed: the step after the last, where all ranks ended in order; None where any did not. plan: the plan's state, as
    rank 0 told it.
    """

    attempt: int
    world_size: int
    start_step: int
    ranks: tuple[int, ...]
    closed: int | None
    plan_digest: str
    plan: dict[str, Any] | None = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint that was written, and which of the watched steps it has learned from.

    abandoned: a later attempt or rollback went back behind it, so that it is no ancestor of the newest model.
    """

    path: str
    step: int
    attempt: int
    learned: frozenset[int]
    abandoned: bool


@dataclass(frozen=True, kw_only=True)
class History:
    """attempts in order. steps: what remains of each step by all ranks, nothing void. checkpoints in order.

    last_step: the last that anything remains of, among all steps; -1 where nothing does.
    """

    attempts: tuple[Attempt, ...]
    steps: dict[int, list[Recorded]]
    checkpoints: tuple[Checkpoint, ...]
    last_step: int

    @property
    def closed(self) -> int | None:
        """The step after the last, where the newest attempt ended in order on all ranks."""
        return self.attempts[-1].closed


def read_history(folder: str, *, steps: range | None = None, watch: Iterable[int] = ()) -> History:
    """The history of a ledger's folder. Torn last lines of files are passed over: their writer was killed.

    steps: those to keep (all: None). watch: steps to tell of each checkpoint whether it has learned from them.
    Raises LedgerError for a folder without a ledger, and for a file that is damaged elsewhere than at its end.
    """
    files: dict[int, dict[int, list[str]]] = {}
    for name in names(folder, ".jsonl"):
        match = NAME.fullmatch(name)
        if match is not None:
            files.setdefault(int(match[1]), {}).setdefault(int(match[2]), []).append(name)
    if not files:
        raise LedgerError(f"{folder}: no ledger; it would hold files like attempt-00001-rank-00000.jsonl")
    replay = _Replay(steps, frozenset(watch))
    for attempt in sorted(files):
        ranks = {}
        for rank, parts in sorted(files[attempt].items()):
            lines = _lines(folder, sorted(parts))
            header = next(lines, None)
            if header is not None:  # else killed before it said anything
                _check_header(join(folder, parts[0]), header, attempt, rank)
                ranks[rank] = (header, lines)
        if ranks:
            replay.attempt(folder, attempt, ranks)
    if not replay.attempts:
        raise LedgerError(f"{folder}: the ledger has no line; nothing was trained")
    return replay.history()


class _Replay:
    def __init__(self, steps: range | None, watch: frozenset[int]) -> None:
        self.wanted, self.watch = steps, watch
        self.attempts: list[Attempt] = []
        self.steps: dict[int, list[Recorded]] = {}
        self.learned: set[int] = set()
        self.last = -1
        self.checkpoints: list[Checkpoint] = []

    def attempt(
        self, folder: str, number: int, ranks: dict[int, tuple[dict[str, Any], Iterator[dict[str, Any]]]]
    ) -> None:
        headers = [header for header, _ in ranks.values()]
        first = headers[0]
        for key in ("world_size", "start_step", "plan_digest"):
            if any(header[key] != first[key] for header in headers):
                raise LedgerError(f"{folder}: attempt {number}: its ranks differ in {key}; two runs wrote one ledger")
        self.void(first["start_step"])
        mine: dict[int, list[Recorded]] = {}
        closed = []
        for rank, (header, lines) in ranks.items():
            found, end = self.rank(number, rank, header, lines, leads=rank == min(ranks))
            closed.append(end)
            for step, recorded in found.items():
                mine.setdefault(step, []).extend(recorded)
        for step, recorded in mine.items():
            self.steps.setdefault(step, []).extend(recorded)
        whole = len(ranks) == first["world_size"] and len(set(closed)) == 1
        self.attempts.append(
            Attempt(
                attempt=number,
                world_size=first["world_size"],
                start_step=first["start_step"],
                ranks=tuple(ranks),
                closed=closed[0] if whole else None,
                plan_digest=first["plan_digest"],
                plan=next((header["plan"] for header in headers if "plan" in header), None),
            )
        )

    def rank(
        self, number: int, rank: int, header: dict[str, Any], lines: Iterator[dict[str, Any]], *, leads: bool
    ) -> tuple[dict[int, list[Recorded]], int | None]:
        """One file: what remains of it, and where it ended in order. The first rank's tells of checkpoints."""
        mine: dict[int, list[Recorded]] = {}
        closed = None
        for line in lines:
            if "resume" in line:
                for step in [step for step in mine if step >= line["resume"]]:
                    del mine[step]
                self.void(line["resume"], learned=leads)
            elif "checkpoint" in line:
                if leads:
                    learned = frozenset(step for step in self.learned if step < line["step"])
                    self.checkpoints.append(
                        Checkpoint(
                            path=line["checkpoint"], step=line["step"], attempt=number, learned=learned, abandoned=False
                        )
                    )
            elif "closed" in line:
                closed = line["closed"]
            else:
                step = line["step"]
                self.last = max(self.last, step)
                if leads and step in self.watch and "skipped" not in line:
                    self.learned.add(step)
                if self.wanted is None or step in self.wanted:
                    told = (line.get("first", -1), line.get("rows", 0), line.get("digest"), line.get("skipped"))
                    mine.setdefault(step, []).append(Recorded(number, rank, *told, header.get("isolate", True)))
        return mine, closed

    def void(self, step: int, *, learned: bool = True) -> None:
        """What was applied from a step on is no part of the model any more."""
        for old in [old for old in self.steps if old >= step]:
            del self.steps[old]
        self.last = min(self.last, step - 1)
        if learned:
            self.learned = {old for old in self.learned if old < step}
            self.checkpoints = [
                found if found.step <= step or found.abandoned else _abandoned(found) for found in self.checkpoints
            ]

    def history(self) -> History:
        steps = dict(sorted(self.steps.items()))
        return History(
            attempts=tuple(self.attempts), steps=steps, checkpoints=tuple(self.checkpoints), last_step=self.last
        )


def _abandoned(found: Checkpoint) -> Checkpoint:
    return Checkpoint(path=found.path, step=found.step, attempt=found.attempt, learned=found.learned, abandoned=True)


def _check_header(url: str, header: dict[str, Any], attempt: int, rank: int) -> None:
    if header.get("format") != FORMAT:
        raise LedgerError(f"{url}: begins without a header of {FORMAT}; it is no ledger, or its first line is lost")
    if (header["attempt"], header["rank"]) != (attempt, rank):
        raise LedgerError(f"{url}: is of attempt {header['attempt']}, rank {header['rank']}; it was renamed")


def _lines(folder: str, parts: list[str]) -> Iterator[dict[str, Any]]:
    """The lines of one rank's files in order, without a torn last one."""
    for number, name in enumerate(parts):
        files, path = filesystem(join(folder, name))
        with files.open(path, "rb") as source:
            torn = None
            for count, line in enumerate(source, 1):
                if torn is not None:
                    raise LedgerError(f"{path}:{torn}: not a line of a ledger; the file was damaged")
                try:
                    found = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    found = None
                if isinstance(found, dict):
                    yield found
                else:
                    torn = count
            if torn is not None and number + 1 < len(parts):
                raise LedgerError(f"{path}:{torn}: not a line of a ledger; the file was damaged")
