"""Rows of files as items, streamed. What is wrong with a row is told with its file and line, never with its text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from shards.store import exists, filesystem, join, names, read_batches, read_json
from synth.errors import SynthError
from synth.items import Item
from synth.requests import digest
from synth.running.settings import Rows

TEXTS: Final = (".jsonl", ".ndjson", ".json")
PACKED: Final = {".gz": "gzip", ".zst": "zstd"}
FIELDS: Final = tuple(one.name for one in fields(Item))
STRINGS: Final = frozenset(FIELDS) - {"id", "messages", "gold", "options"}
MAX_ID_CHARACTERS: Final = 512
GIVE: Final = "give JSON lines (also .gz, .zst), CSV, Parquet, or the output of a run"

csv.field_size_limit(1 << 30)


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """A row that is no item: where it stands and what would be right."""

    place: str
    wrong: str


def read_items(rows: Rows) -> Iterator[tuple[str, Item | Unreadable]]:
    """Place (`file:line`, or `file:row`) and item of each row. Raises SynthError for files that cannot be read at all,
    and, where the settings say so, at the first row that is no item."""
    for place, values in islice(_rows(rows), rows.limit):
        item = _item(place, values, rows)
        if isinstance(item, Unreadable) and rows.unreadable == "refuse":
            raise SynthError(f"{item.place}: {item.wrong}; mend the row, or set `unreadable: reject`")
        yield place, item


def _item(place: str, values: dict[str, Any] | str, rows: Rows) -> Item | Unreadable:
    if isinstance(values, str):
        return Unreadable(place=place, wrong=values)
    told: dict[str, Any] = dict(rows.values)
    for field in FIELDS:
        column = rows.columns.get(field, field)
        if field in told or (value := values.get(column)) is None:
            if field in rows.columns and column not in values:
                return Unreadable(place=place, wrong=f"no column {column!r}, which `columns` names")
            continue
        told[field] = value
    try:
        _settle(told)
        made = Item(**told)
    except (TypeError, ValueError, RecursionError) as error:
        wrong = str(error) if isinstance(error, _WrongRowError) else "nested too deeply, or of values that JSON has not"
        return Unreadable(place=place, wrong=wrong)
    if not (made.prompt or made.text or made.messages):
        return Unreadable(place=place, wrong="neither prompt, text nor messages in it")
    return made


class _WrongRowError(ValueError):
    pass


def _settle(told: dict[str, Any]) -> None:
    """Each field of its type, and an id."""
    for field in STRINGS & told.keys():
        if not isinstance(told[field], str):
            raise _WrongRowError(f"{field} is no text")
    if isinstance(told.get("options"), str):
        told["options"] = _parsed(told["options"], "options")
    if isinstance(told.get("messages"), str):
        told["messages"] = _parsed(told["messages"], "messages")
    if not isinstance(told.get("options", {}), Mapping):
        raise _WrongRowError("options is no object")
    messages = told.get("messages", ())
    if not isinstance(messages, list | tuple) or not all(
        isinstance(one, dict) and isinstance(one.get("role"), str) for one in messages
    ):
        raise _WrongRowError("messages is no list of messages with a role each")
    told["messages"] = tuple(messages)
    own = told.pop("id", None)
    if isinstance(own, int) and not isinstance(own, bool):
        own = str(own)
    if own is not None and not (isinstance(own, str) and 0 < len(own) <= MAX_ID_CHARACTERS and _writable(own)):
        raise _WrongRowError(f"id is no text of 1 to {MAX_ID_CHARACTERS} printable characters")
    content = digest({**told, "options": dict(told.get("options", {}))})
    told["id"] = content if own is None else own


def _writable(text: str) -> bool:
    return not any(ord(one) < 32 or 0x7F <= ord(one) < 0xA0 or 0xD800 <= ord(one) < 0xE000 for one in text)


def _parsed(text: str, field: str) -> Any:
    if not text:
        return {} if field == "options" else []
    try:
        return json.loads(text)
    except ValueError:
        raise _WrongRowError(f"{field} is no JSON") from None


def _rows(rows: Rows) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """Place and values of each row; a string says what is wrong with one."""
    for path in [path for source in rows.files for path in files_of(source)]:
        try:
            bare = _bare(path)
            yield from (
                _parquet(path) if bare.endswith(".parquet") else _csv(path) if bare.endswith(".csv") else _json(path)
            )
        except (OSError, EOFError, pa.ArrowException) as error:
            raise SynthError(
                f"{path}: cannot be read ({type(error).__name__}): torn, or of another kind than its name says; "
                "write it again"
            ) from None


def files_of(source: str) -> list[str]:
    """The files of a file, a folder, or a run's output, in order. Raises SynthError where there are none."""
    if _readable(source):
        if not exists(source):
            raise SynthError(f"{source}: no such file; {GIVE}")
        return [source]
    files, path = filesystem(source)
    if not files.isdir(path):
        raise SynthError(f"{source}: no rows here; {GIVE}")
    folder = source
    run = read_json(join(source, "run.json"))
    if run is not None:
        kept = [
            step["folder"] for step in run.get("steps", ()) if names(join(source, step["folder"], "data"), ".parquet")
        ]
        if not kept:
            raise SynthError(f"{source}: no step of this run has kept its rows; run it with `keep: last`")
        folder = join(source, kept[-1])
    folder = join(folder, "data") if names(join(folder, "data")) else folder
    found = [join(folder, name) for name in names(folder) if _readable(name)]
    if not found:
        raise SynthError(f"{source}: no rows here; {GIVE}")
    return found


def _bare(path: str) -> str:
    for suffix in PACKED:
        path = path.removesuffix(suffix)
    return path


def _readable(path: str) -> bool:
    return _bare(path).endswith((*TEXTS, ".csv", ".parquet"))


def _opened(path: str) -> tuple[Any, str, str | None]:
    files, name = filesystem(path)
    return files, name, next((kind for suffix, kind in PACKED.items() if path.endswith(suffix)), None)


def _json(path: str) -> Iterator[tuple[str, dict[str, Any] | str]]:
    files, name, packed = _opened(path)
    with files.open(name, "rb") as raw, pa.input_stream(raw, compression=packed) as stream:
        for number, line in enumerate(_lines(stream), 1):
            if line.strip():
                yield f"{path}:{number}", _object(line)


def _lines(stream: Any) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _object(line: bytes) -> dict[str, Any] | str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return "no JSON"
    return found if isinstance(found, dict) else "no JSON object"


def _csv(path: str) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """With a header. An empty cell is no value; bytes that are no UTF-8 make their row unreadable."""
    files, name, packed = _opened(path)
    with files.open(name, "rb") as raw, pa.input_stream(raw, compression=packed) as stream:
        text = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", errors="surrogateescape", newline="")
        reader = csv.DictReader(text)
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error:
                yield f"{path}:{reader.line_num}", "no CSV"
                continue
            place = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                yield place, "another number of cells than the header"
            elif any("\ud800" <= one <= "\udfff" for value in row.values() for one in value):
                yield place, "no UTF-8"
            else:
                yield place, {column: value for column, value in row.items() if value != ""}


def _parquet(path: str) -> Iterator[tuple[str, dict[str, Any] | str]]:
    number = 0
    for batch in read_batches(path):
        for values in batch.to_pylist():
            number += 1
            yield f"{path}:{number}", _without_nulls(values)


def _without_nulls(value: Any) -> Any:
    """A Parquet struct gives each row every field of any: those that are null were not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(own) for key, own in value.items() if own is not None}
    return [_without_nulls(own) for own in value] if isinstance(value, list) else value
