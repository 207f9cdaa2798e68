"""From the values of a table's row to the columns of a document: the same for JSON lines, Parquet and CSV.

`message_text` renders a chat: each message as "role: content", a blank line between messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingest.dates import DATE, as_date, instants
from ingest.source import TYPES, Source
from shards.schema import MESSAGE

MESSAGES = pa.list_(MESSAGE)


class BadRow(ValueError):
    """A row that cannot become a document: `error` is its class, the message names the field, never its value."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


def wanted(source: Source) -> dict[str, str]:
    """{document column: field of the row}, with text or messages first."""
    body = {"messages": source.messages_field} if source.format == "messages" else {"text": source.text_field}
    named = {"source_id": source.id_field, "url": source.url_field, "date": source.date_field}
    return {**body, **named, **{column: column for column in source.columns}}


def row_of(source: Source, values: Mapping[str, Any]) -> dict[str, Any]:
    """One row's document columns from its plain Python values. Raises BadRow, whatever it is that is wrong."""
    try:
        return _row_of(source, values)
    except BadRow:
        raise
    except Exception as error:
        raise BadRow("bad_type", f"cannot be made a document ({type(error).__name__})") from error


def _row_of(source: Source, values: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if source.format == "messages":
        row["messages"] = messages_of(values.get(source.messages_field), source.messages_field)
        row["text"] = message_text(row["messages"])
    else:
        text = values.get(source.text_field)
        if text is None:
            raise BadRow("missing_text", f"field {source.text_field!r} is missing or null")
        if not isinstance(text, str):
            raise BadRow("bad_type", f"field {source.text_field!r} is {_kind(text)}, not a string")
        row["text"] = utf8(text, source.text_field)
    row["source_id"] = as_string(values.get(source.id_field), source.id_field)
    row["url"] = as_string(values.get(source.url_field), source.url_field)
    row["date"] = as_date(values.get(source.date_field))
    for column, kind in source.columns.items():
        row[column] = cast_value(values.get(column), kind, column)
    return row


def utf8(text: str, field: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRow("encoding", f"field {field!r} holds a lone surrogate or a byte that is not UTF-8") from error
    return text


def as_string(value: Any, field: str) -> str | None:
    """Names and addresses: strings as they are, numbers as they are written in JSON; anything else is a bad row."""
    if value is None or isinstance(value, str):
        return None if value is None else utf8(value, field)
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise BadRow("bad_type", f"field {field!r} is {_kind(value)}, not a string")


def cast_value(value: Any, kind: str, field: str) -> Any:
    """A carried value as its declared type, or BadRow: numbers become strings, never the reverse; 1.0 is no int."""
    if value is None:
        return None
    if kind == "string":
        return as_string(value, field)
    if kind == "timestamp":
        if (date := as_date(value)) is None:
            raise BadRow("bad_type", f"field {field!r} is not a date")
        return date
    if kind.startswith("list<"):
        if not isinstance(value, list):
            raise BadRow("bad_type", f"field {field!r} is {_kind(value)}, not a list")
        return [cast_value(item, kind[5:-1], field) for item in value]
    if isinstance(value, bool) != (kind == "bool") or not isinstance(value, (int, float) if kind == "float64" else int):
        raise BadRow("bad_type", f"field {field!r} is {_kind(value)}, not {kind}")
    try:
        number = float(value) if kind == "float64" else value
        pa.scalar(number, TYPES[kind])
    except (pa.ArrowInvalid, OverflowError) as error:
        raise BadRow("bad_type", f"field {field!r} does not fit {kind}") from error
    return number


def messages_of(value: Any, field: str) -> list[dict[str, str | None]]:
    """A chat's messages as [{role, content}]. A null content (a bare tool call) is kept as null. Raises BadRow."""
    if value is None:
        raise BadRow("missing_text", f"field {field!r} is missing or null")
    if not isinstance(value, list):
        raise BadRow("bad_type", f"field {field!r} is {_kind(value)}, not a list of messages")
    if not value:
        raise BadRow("missing_text", f"field {field!r} is a list without messages")
    messages: list[dict[str, str | None]] = []
    for message in value:
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(role, str) or not (content is None or isinstance(content, str)):
            raise BadRow("bad_type", f"field {field!r} holds a message that is not {{role, content}} of strings")
        messages.append({"role": utf8(role, field), "content": None if content is None else utf8(content, field)})
    return messages


def message_text(messages: list[dict[str, str | None]]) -> str:
    return "\n\n".join(f"{message['role']}: {message['content'] or ''}" for message in messages)


def dates(column: pa.Array) -> pa.Array:
    """A string column of dates as timestamps, at once where all are ISO 8601 with a zone."""
    try:
        return instants(pc.cast(column, DATE))  # Arrow knows a year 0
    except pa.ArrowInvalid:
        return pa.array([as_date(value) for value in column.to_pylist()], DATE)


def _kind(value: Any) -> str:
    names = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)
