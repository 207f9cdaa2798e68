"""The ledger: what was really trained on, a line a step, appended by each rank while it trains."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from typing import IO, Any, Protocol

import xxhash

from shards.store import filesystem, is_local, join, names, write_bytes
from train.feed.batch import Batch

FORMAT = "gristmill-ledger-1"
REMOTE_LINES = 64  # an object store cannot append: there each so many lines are a file
NAME = re.compile(r"attempt-(\d{5,})-rank-(\d{5,})(?:-part-(\d{5,}))?\.jsonl")


class LedgerError(ValueError):
    """A ledger that cannot be written or read; the text says which file and why."""


class Recorded(Protocol):
    """What a ledger needs of a plan: the small record that it can be made from again."""

    def state(self) -> Mapping[str, Any]: ...


def plan_digest(state: Mapping[str, Any]) -> str:
    """xxh3-64 of a plan's state."""
    return str(xxhash.xxh3_64_hexdigest(json.dumps(state, sort_keys=True).encode()))


class Ledger:
    """One rank's record of one attempt: a file of JSON lines, flushed line by line, so that a kill loses no step.

    A new attempt (a restart, with any number of ranks) begins at `start_step`; what earlier attempts did from that step
    on is void. `rolled_back` voids in the same way without a restart.
    """

    def __init__(self, folder: str, name: str, header: dict[str, Any]) -> None:
        self._url = join(folder, name)
        self._next_step = header["start_step"]
        self._lines: list[str] = []
        self._part = 0
        self._file: IO[str] | None = None
        self._closed = False
        if any(found.startswith((f"{name}.", f"{name}-part")) for found in names(folder, ".jsonl")):
            raise LedgerError(f"{self._url}: recorded already; give each rank and attempt a number of its own")
        if is_local(folder):
            path = filesystem(self._url)[1] + ".jsonl"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._file = open(path, "x", encoding="ascii")  # noqa: SIM115 (close does)
        self._write(header)

    @classmethod
    def open(
        cls,
        folder: str,
        *,
        rank: int,
        world_size: int,
        plan: Recorded,
        start_step: int,
        attempt: int | None = None,
        isolate: bool = True,
    ) -> Ledger:
        """Begin a rank's record of an attempt that trains from `start_step` on.

        folder: OUT/ledger, any fsspec URL. attempt: one number for all ranks, rising from attempt to attempt; None
        takes the next one, which ranks agree on through torch.distributed. isolate: as given to `fill`.
        Raises LedgerError if the file exists, or where several ranks cannot agree.
        """
        number = _agreed_attempt(folder, world_size) if attempt is None else attempt
        state = dict(plan.state())
        header = {
            "format": FORMAT,
            "attempt": number,
            "rank": rank,
            "world_size": world_size,
            "start_step": start_step,
            "isolate": isolate,
            "plan_digest": plan_digest(state),
        }
        if rank == 0:
            header["plan"] = state
        return cls(folder, f"attempt-{number:05d}-rank-{rank:05d}", header)

    def applied(self, batch: Batch, domains: Mapping[str, Any] | None = None) -> None:
        """A step of the optimiser was made with this rank's batch (all rows of it, in however many pieces).

        domains: anything to note by domain, such as losses.
        """
        self._write(self._step(batch) | ({} if domains is None else {"domains": dict(domains)}))
        self._next_step = batch.step + 1

    def skipped(self, batch: Batch | int, reason: str) -> None:
        """A step's data was passed over: nothing was learned from it. Takes the batch, or the step's number alone."""
        told = {"step": batch} if isinstance(batch, int) else self._step(batch)
        self._write(told | {"skipped": reason})
        self._next_step = told["step"] + 1

    def rolled_back(self, step: int, reason: str = "") -> None:
        """The model is again what it was before `step`: what was applied from there on is void."""
        self._write({"resume": step, "reason": reason})
        self._next_step = step

    def checkpoint(self, step: int, path: str) -> None:
        """A checkpoint holds what was learned from all steps before `step`. Call it on each rank just before the
        checkpoint is made visible: lines are then on disk before it is."""
        self._write({"checkpoint": path, "step": step})
        self._flush()
        if self._file is not None:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """The attempt ended in order."""
        if not self._closed:
            self._write({"closed": self._next_step})
            self.abandon()

    def abandon(self) -> None:
        """The attempt ended out of order: what is recorded stays, and no closing line."""
        if not self._closed:
            self._closed = True
            self._flush()
            if self._file is not None:
                self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    @staticmethod
    def _step(batch: Batch) -> dict[str, Any]:
        return {
            "step": batch.step,
            "first": batch.first_sequence,
            "rows": batch.rows,
            "targets": batch.target_count,
            "digest": batch.digest(),
        }

    def _write(self, told: Mapping[str, Any]) -> None:
        if self._closed:
            raise LedgerError(f"{self._url}: closed; open a new attempt")
        line = json.dumps(told, separators=(",", ":")) + "\n"
        if self._file is not None:
            self._file.write(line)
            self._file.flush()
            return
        self._lines.append(line)
        if len(self._lines) >= REMOTE_LINES:
            self._flush()

    def _flush(self) -> None:
        if self._lines:
            write_bytes(f"{self._url}-part-{self._part:05d}.jsonl", "".join(self._lines).encode())
            self._part, self._lines = self._part + 1, []


def attempts(folder: str) -> list[int]:
    """The numbers of the attempts that a ledger holds."""
    found = (NAME.fullmatch(name) for name in names(folder, ".jsonl"))
    return sorted({int(match[1]) for match in found if match})


def _agreed_attempt(folder: str, world_size: int) -> int:
    """One more than the ledger's last, as rank 0 sees it."""
    following = 1 + max(attempts(folder), default=0)
    if world_size == 1:
        return following
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        raise LedgerError(
            f"{folder}: {world_size} ranks must record the same attempt; give `attempt`, or start torch.distributed"
        )
    told = [following]
    distributed.broadcast_object_list(told, src=0)
    return int(told[0])
