"""A store as Parquet shards that anything reads: the same rows in the same order, whatever order they were made in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from shards.schema import SAMPLES
from shards.store import ParquetWriter, join, names, remove
from synth.items import Item, Outcome, Sample
from synth.store.packing import item_plain, unpack, unpack_ids, unpack_json
from synth.store.store import Store

SHARD_ROWS: Final = 50_000
BATCH_ROWS: Final = 512
BATCH_CHARACTERS: Final = 8_000_000
SURROGATES: Final = re.compile("[\ud800-\udfff]")

ITEMS: Final = pa.schema(
    [
        ("task", pa.string()),
        ("item", pa.string()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
        ("content", pa.large_string()),
    ]
)
"""content: the Item as JSON, without what is at its default."""

REQUESTS: Final = pa.schema(
    [
        ("key", pa.string()),
        ("task", pa.string()),
        ("item", pa.string()),
        ("rollout", pa.int32()),
        ("teacher", pa.string()),
        ("model", pa.string()),
        ("revision", pa.string()),
        ("template", pa.string()),
        ("content", pa.int64()),
        ("state", pa.string()),
        ("error", pa.string()),
        ("text", pa.large_string()),
        ("reasoning", pa.large_string()),
        ("finish_reason", pa.string()),
        ("tool_calls", pa.large_string()),
        ("ids", pa.list_(pa.uint32())),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cached_tokens", pa.int64()),
        ("temperature", pa.float64()),
        ("seed", pa.int64()),
        ("seconds", pa.float64()),
        ("attempts", pa.int32()),
        ("forced", pa.bool_()),
    ]
)
"""content: the row of `contents` with what was asked. state: replied, failed (error says how) or pending."""

CONTENTS: Final = pa.schema([("content", pa.int64()), ("asked", pa.large_string())])


def to_parquet(store: Store, folder: str) -> dict[str, int]:
    """Write samples/, items/, requests/ and contents/ below a folder, and return the rows of each.

    samples and items are the same bytes for the same conclusions, however often and where runs were interrupted.
    requests tell seconds and attempts, which are a run's own. Shards of an earlier writing are removed.
    """
    parts: dict[str, tuple[pa.Schema, Iterable[dict[str, Any]]]] = {
        "samples": (SAMPLES, (_sample(*row) for row in store.rows())),
        "items": (ITEMS, (_item(*row) for row in store.items.items())),
        "requests": (REQUESTS, _requests(store)),
        "contents": (CONTENTS, _contents(store)),
    }
    return {name: _write(join(folder, name), schema, rows) for name, (schema, rows) in parts.items()}


def _write(folder: str, schema: pa.Schema, rows: Iterable[dict[str, Any]]) -> int:
    """Shards of a fixed number of rows, at least one, with the schema also where there are none."""
    rows, total = iter(rows), 0
    written: list[str] = []
    while True:
        name = f"{len(written):05d}.parquet"
        with ParquetWriter(join(folder, name), schema, with_digest=False) as shard:
            for batch in _batches(islice(rows, SHARD_ROWS)):
                shard.write(pa.RecordBatch.from_pylist([_clean(row) for row in batch], schema))
        written.append(name)
        total += shard.rows
        if shard.rows < SHARD_ROWS:
            break
    for name in set(names(folder, ".parquet")) - set(written):
        remove(join(folder, name))
    return total


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Some rows, or fewer where their texts are long, so that memory is bounded."""
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row.values() if isinstance(value, str | list | tuple))
        if len(batch) >= BATCH_ROWS or size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    """Lone surrogates, which UTF-8 cannot hold, as U+FFFD; the store keeps them."""
    return {name: SURROGATES.sub("\ufffd", value) if isinstance(value, str) else value for name, value in row.items()}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _sample(task: str, item: Item, sample: Sample, teachers: tuple[str, ...]) -> dict[str, Any]:
    return {
        "task": task, "item": sample.item, "number": sample.number, "kind": sample.kind.value,
        "outcome": sample.outcome.value, "reason": sample.reason, "verdict": sample.verdict, "tokens": sample.tokens,
        "messages": _json(sample.messages), "chosen": _json(sample.chosen) if sample.chosen else None,
        "rejected": _json(sample.rejected) if sample.rejected else None, "text": sample.text,
        "figures": sorted((name, float(value)) for name, value in sample.figures.items()),
        "facts": sorted((name, SURROGATES.sub("\ufffd", str(value))) for name, value in sample.facts.items()),
        "keys": sample.keys, "teachers": teachers, "domain": item.domain, "skill": item.skill,
        "language": item.language, "licence": item.licence, "source": item.source,
    }  # fmt: skip


def _item(task: str, item: Item, outcome: Outcome, reason: str) -> dict[str, Any]:
    return {
        "task": task, "item": item.id, "outcome": outcome.value, "reason": reason, "content": _json(item_plain(item)),
    }  # fmt: skip


_ASKED: Final = """
SELECT requests.key, tasks.name, requests.item, requests.rollout, teachers.name, teachers.model, teachers.revision,
    teachers.template, requests.content, replies.request,
    (SELECT stage || ': ' || error FROM failures WHERE request = requests.id ORDER BY id DESC LIMIT 1),
    replies.text, replies.reasoning, finish_reason, tool_calls, ids, prompt_tokens, completion_tokens, cached_tokens,
    coalesce(replies.temperature, requests.temperature), seed, seconds, attempts, forced
FROM requests JOIN tasks ON tasks.id = requests.task JOIN teachers ON teachers.id = requests.teacher
    LEFT JOIN replies ON replies.request = requests.id
WHERE requests.id = ?
"""


def _requests(store: Store) -> Iterator[dict[str, Any]]:
    columns = REQUESTS.names
    # Keys alone are sorted, not the texts.
    for row in store.connection.execute("SELECT id FROM requests ORDER BY task, item, key"):
        told = dict(zip(columns, store.connection.execute(_ASKED, row).fetchone(), strict=True))
        replied, failed = told["state"] is not None, told["error"] is not None
        told["key"] = told["key"].hex()
        told["state"] = "replied" if replied else "failed" if failed else "pending"
        told["error"] = None if replied else told["error"]
        for name in ("text", "reasoning", "tool_calls"):
            told[name] = None if told[name] is None else unpack(told[name])
        told["ids"] = None if told["ids"] is None else unpack_ids(told["ids"])
        told["forced"] = bool(told["forced"]) if replied else None
        yield told


def _contents(store: Store) -> Iterator[dict[str, Any]]:
    """What was asked, each content once however many rollouts it had."""
    for row, data in store.connection.execute(
        "SELECT id, data FROM blobs WHERE id IN (SELECT content FROM requests) ORDER BY id"
    ):
        yield {"content": row, "asked": _json(unpack_json(data))}
