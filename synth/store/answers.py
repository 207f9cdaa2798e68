"""Requests, what teachers replied or how they failed, and verdicts: each under the key of what was asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any, Final

import xxhash

from synth.replies import Failure, Reply
from synth.requests import Identity, Request
from synth.store.packing import pack, pack_ids, pack_json, short, unpack, unpack_ids, unpack_json
from synth.verdicts import Outcome, Verdict

REMEMBERED: Final = 1024
"""Contents whose row is known without looking it up: of the rollouts of the items that are open."""

REPLY: Final = (
    "finish_reason, prompt_tokens, completion_tokens, cached_tokens, replies.temperature, seed, seconds, attempts, "
    "forced, prompt_ids, text, reasoning, tool_calls, ids, logprobs"
)


class Answers:
    """Part of a store. `written` is told of each row, and commits when it is time."""

    def __init__(self, connection: sqlite3.Connection, written: Callable[[], None]) -> None:
        self._connection, self._written = connection, written
        self._blobs: dict[bytes, int] = {}
        self._teachers: dict[tuple[str, Identity], int] = {}

    def find(self, key: str, run: int | None = 0) -> Reply | Failure | None:
        """What is known of a request: its reply; or a failure that is final, or was met by this run (None: by any); or
        nothing."""
        row = self._connection.execute(
            f"SELECT requests.id, {REPLY} FROM requests LEFT JOIN replies ON request = requests.id WHERE key = ?",
            (bytes.fromhex(key),),
        ).fetchone()
        if row is None:
            return None
        if row[1] is not None:
            return self._reply(key, row[1:])
        failed = self._connection.execute(
            "SELECT stage, error, attempts, final, run FROM failures WHERE request = ? ORDER BY id DESC LIMIT 1",
            row[:1],
        ).fetchone()
        if failed is None or not (failed[3] or run is None or failed[4] == run):
            return None
        return Failure(key=key, stage=failed[0], error=failed[1], attempts=failed[2], final=bool(failed[3]))

    def ask(self, key: str, request: Request, identity: Identity, *, task: int, item: str, run: int) -> int:
        """A request that is about to be sent: its row, made where it is new."""
        blob = bytes.fromhex(key)
        row = self._connection.execute("SELECT id FROM requests WHERE key = ?", (blob,)).fetchone()
        if row is not None:
            return int(row[0])
        content = self._blob(pack_json(request.content()))
        made = self._connection.execute(
            "INSERT INTO requests VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
            (blob, task, item, content, request.rollout, self._teacher(request.teacher, identity), request.temperature,
             run),
        )  # fmt: skip
        self._written()
        return int(made.lastrowid or 0)

    def reply(self, row: int, reply: Reply, run: int) -> None:
        """The reply to the request of a row; a second one, which only a fault of ours could give, is not kept."""
        self._connection.execute(
            f"INSERT OR IGNORE INTO replies VALUES ({', '.join('?' * 17)})",
            (
                row, run, short(reply.finish_reason), reply.prompt_tokens, reply.completion_tokens,
                reply.cached_tokens, reply.temperature, reply.seed, reply.seconds, reply.attempts, reply.forced,
                None if reply.prompt_ids is None else self._blob(pack_ids(reply.prompt_ids)), pack(reply.text),
                None if reply.reasoning is None else pack(reply.reasoning),
                pack(reply.tool_calls) if reply.tool_calls else None,
                None if reply.ids is None else pack_ids(reply.ids), pack(reply.logprobs) if reply.logprobs else None,
            ),
        )  # fmt: skip
        self._written()

    def fail(self, row: int, failure: Failure, run: int) -> None:
        """A failure of the request of a row, behind those that it had."""
        told = (row, run, short(failure.stage), short(failure.error), failure.attempts, failure.final)
        self._connection.execute("INSERT INTO failures VALUES (NULL, ?, ?, ?, ?, ?, ?)", told)
        self._written()

    def verdict(self, key: str, not_before: int = 0) -> Verdict | None:
        """What was said of a check, by the run `not_before` or a later one."""
        row = self._connection.execute(
            "SELECT outcome, reason, score, seconds FROM verdicts WHERE key = ? AND run >= ?",
            (bytes.fromhex(key), not_before),
        ).fetchone()
        return row and Verdict(outcome=Outcome(row[0]), reason=row[1], score=row[2], seconds=row[3])

    def judge(self, key: str, verdict: Verdict, run: int) -> None:
        """A verdict, in place of an earlier one."""
        told = (bytes.fromhex(key), run, verdict.outcome, short(verdict.reason), verdict.score, verdict.seconds)
        self._connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?, ?)", told)
        self._written()

    def content(self, row: int) -> dict[str, Any]:
        """What was asked, of a row's content."""
        [data] = self._connection.execute("SELECT data FROM blobs WHERE id = ?", (row,)).fetchone()
        told: dict[str, Any] = unpack_json(data)
        return told

    def replies(self) -> Iterator[Reply]:
        """All of them, in the order of their requests' first asking."""
        for key, *row in self._connection.execute(
            f"SELECT key, {REPLY} FROM replies JOIN requests ON requests.id = request ORDER BY request"
        ):
            yield self._reply(key.hex(), row)

    def _reply(self, key: str, row: Any) -> Reply:
        finish_reason, prompt, completion, cached, temperature, seed, seconds, attempts, forced, *texts = row
        prompt_ids, text, reasoning, tool_calls, ids, logprobs = texts
        return Reply(
            key=key, text=unpack(text), reasoning=None if reasoning is None else unpack(reasoning),
            finish_reason=finish_reason, tool_calls=unpack(tool_calls) if tool_calls else "",
            prompt_ids=None if prompt_ids is None else self._ids(prompt_ids),
            ids=None if ids is None else unpack_ids(ids), logprobs=unpack(logprobs) if logprobs else "",
            prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached, temperature=temperature,
            seed=seed, seconds=seconds, attempts=attempts, forced=bool(forced),
        )  # fmt: skip

    def _ids(self, row: int) -> tuple[int, ...]:
        [data] = self._connection.execute("SELECT data FROM blobs WHERE id = ?", (row,)).fetchone()
        return unpack_ids(data)

    def _blob(self, data: bytes) -> int:
        """The row of bytes that many rows share: the prompts of an item's rollouts, as text and as ids."""
        digest = xxhash.xxh3_128_digest(data)
        if (known := self._blobs.get(digest)) is not None:
            return known
        row = self._connection.execute("SELECT id FROM blobs WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            made = self._connection.execute("INSERT INTO blobs VALUES (NULL, ?, ?)", (digest, data))
            row = (made.lastrowid,)
        if len(self._blobs) >= REMEMBERED:
            del self._blobs[next(iter(self._blobs))]
        self._blobs[digest] = int(row[0])
        return self._blobs[digest]

    def _teacher(self, name: str, identity: Identity) -> int:
        if (known := self._teachers.get((name, identity))) is not None:
            return known
        told = (name, identity.model, identity.revision, identity.template)
        self._connection.execute("INSERT OR IGNORE INTO teachers VALUES (NULL, ?, ?, ?, ?)", told)
        where = "name = ? AND model = ? AND revision = ? AND template = ?"
        [row] = self._connection.execute(f"SELECT id FROM teachers WHERE {where}", told).fetchone()
        self._teachers[name, identity] = int(row)
        return int(row)

    def forget(self) -> None:
        """Rows that were remembered: after a rollback they may not be there."""
        self._blobs.clear()
        self._teachers.clear()
