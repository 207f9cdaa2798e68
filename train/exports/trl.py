"""JSON lines that TRL's trainers take: {"messages"}, {"prompt", "completion"}, {"text"} or {"input_ids"}."""

from __future__ import annotations

import json
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from train.exports.account import Account
from train.exports.folder import ExportError, Folder, safe_name
from train.exports.huggingface import batches
from train.exports.rows import Rows
from train.exports.streams import Source, longest

KINDS = (
    ("messages",),
    ("prompt", "chosen", "rejected"),
    ("prompt", "completion"),
    ("text",),
)  # the first that is there

TOOLS = "tools"  # beside any of them, where a row has some
MAX_DOCUMENT_TOKENS = 1 << 27  # a line is put together by Arrow, with 32-bit offsets


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Trl:
    """A line a row of the run, of the first kind whose columns it has: messages; prompt, chosen and rejected; prompt
    and completion; text. Or a line a document of its tokens.

    content: rows or tokens (`input_ids`, which TRL does not tokenise again).
    file_tokens: tokens a file, about; of rows, each part of the run is a file.
    """

    content: Literal["rows", "tokens"] = "rows"
    file_tokens: int = Field(default=100_000_000, ge=1)

    @property
    def reads(self) -> Literal["rows", "tokens"]:
        return self.content

    def write_rows(self, rows: Rows, folder: Folder, account: Account) -> None:
        """Rows that lack a value are left out and counted. Raises ExportError where all rows are of no kind."""
        kind = next((kind for kind in KINDS if set(kind) <= set(rows.schema.names)), None)
        if kind is None:
            raise ExportError(
                f"{rows.folder}: rows without messages, prompt and completion, or text; trl takes one of them"
            )
        tools = [name for name in rows.schema.names if name == TOOLS]
        for number, part in enumerate(rows.parts):
            with folder.file(f"train-{number:05d}-of-{len(rows.parts):05d}.jsonl") as out:
                for batch in rows.batches(part, account):
                    told = batch.select([*kind, *tools]).to_pylist()
                    lines = [line for row in told if (line := _line(row)) is not None]
                    out.write("".join(lines).encode())
                    account.wrote("train", documents=len(lines), tokens=0)
                    account.leave_out(f"rows without {' and '.join(kind)}", documents=batch.num_rows - len(lines))

    def write(self, source: Source, folder: Folder, account: Account) -> None:
        for stream in source.streams:
            files = list(stream.files(self.file_tokens))
            for number, runs in enumerate(files):
                if longest(runs) > MAX_DOCUMENT_TOKENS:
                    raise ExportError(f"{stream.name}: a document of {longest(runs)} tokens; a line holds at most 2^27")
                with folder.file(f"{safe_name(stream.name)}/train-{number:05d}-of-{len(files):05d}.jsonl") as out:
                    for batch in (batch for run in runs for batch in batches(run)):
                        ids = batch.column("input_ids")
                        out.write(_token_lines(ids))
                        account.wrote(stream.name, documents=len(ids), tokens=len(ids.values))


def _line(row: dict[str, Any]) -> str | None:
    """A row as JSON; None where it lacks a value."""
    tools = row.pop(TOOLS, None)
    if any(value is None or value == [] for value in row.values()):
        return None
    told = {
        key: [_message(entry) for entry in value] if isinstance(value, list) else value for key, value in row.items()
    }
    return json.dumps({**told, TOOLS: tools} if tools else told, ensure_ascii=False) + "\n"


def _message(message: Any) -> Any:
    """A message without what is null in it, but for its role and content: a struct has fields that others use."""
    if not isinstance(message, dict):
        return message
    return {key: value for key, value in message.items() if value is not None or key in ("role", "content")}


def _token_lines(lists: pa.ListArray) -> memoryview:
    """{"input_ids": [...]} a document, without a Python object a token."""
    numbers = pa.ListArray.from_arrays(lists.offsets, lists.values.cast(pa.string()))
    joined = pc.binary_join(numbers, ", ").cast(pa.large_string())
    before, after, between = (pa.scalar(told, pa.large_string()) for told in ('{"input_ids": [', "]}\n", ""))
    lines = pc.binary_join_element_wise(before, joined, after, between)
    offsets = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset : lines.offset + len(lines) + 1]
    return memoryview(lines.buffers()[2])[offsets[0] : offsets[-1]]
