"""Messages and texts as an export's columns hold them, and what these cannot hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from synth.replies import UNWRITABLE

CALL = pa.struct(
    [
        ("id", pa.string()),
        ("type", pa.string()),
        ("function", pa.struct([("name", pa.string()), ("arguments", pa.large_string())])),
    ]
)
MESSAGE = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.large_string()),
        ("reasoning_content", pa.large_string()),
        ("tool_calls", pa.list_(CALL)),
        ("tool_call_id", pa.string()),
        ("name", pa.string()),
    ]
)
MESSAGES = pa.list_(MESSAGE)


class RefusedRowError(Exception):
    """A row that would not be what it claims. reason: export.<rule>, stable; never a text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def message(told: Mapping[str, Any]) -> dict[str, Any]:
    """A message in the columns of MESSAGE. Raises RefusedRowError for what these cannot hold."""
    unknown = {key for key, value in told.items() if value is not None} - {field.name for field in MESSAGE}
    if unknown or not isinstance(told.get("role"), str):
        raise RefusedRowError("export.message_fields")
    made = {key: value for key, value in told.items() if value is not None}
    if not isinstance(made.get("content", ""), str) or not isinstance(made.get("reasoning_content", ""), str):
        raise RefusedRowError("export.message_fields")
    check_text(*(made[key] for key in ("content", "reasoning_content") if key in made))
    made.setdefault("content", "")
    return made


def messages(told: tuple[Mapping[str, Any], ...]) -> list[dict[str, Any]]:
    return [message(one) for one in told]


def check_text(*texts: str) -> None:
    """Raise RefusedRowError for text that cannot be written and read again as it is."""
    if any(UNWRITABLE.search(text) for text in texts):
        raise RefusedRowError("export.invalid_text")
