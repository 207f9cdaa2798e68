"""A reply's calls of functions, read and written down the same way whoever made them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from synth.replies import Parsed, Reply
from synth.requests import Message
from synth.tasks.tagged import every
from synth.verifiers.json_schema import NotJson, strict_json

TAG: Final = "tool_call"
"""What models write a call between where their server does not split it off."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """arguments: of a JSON object. id: ours, so that the same calls make the same requests whatever a server numbers;
    nine letters and digits, which is all that Mistral's templates take."""

    id: str
    name: str
    arguments: Mapping[str, Any]

    def message(self) -> dict[str, Any]:
        written = json.dumps(self.arguments, ensure_ascii=False)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": written}}

    def result(self, value: Any) -> Message:
        """The tool's message."""
        return {
            "role": "tool", "tool_call_id": self.id, "name": self.name,
            "content": json.dumps(value, ensure_ascii=False),
        }  # fmt: skip


def calls_of(reply: Reply, parsed: Parsed, first: int) -> tuple[Call, ...] | None:
    """A reply's calls, numbered from `first`; () for none, None where one cannot be read."""
    try:
        if reply.tool_calls:
            told = strict_json(reply.tool_calls)
            functions = [_function(one) for one in told] if isinstance(told, list) else [None]
        else:
            functions = [_object(strict_json(one)) for one in every(parsed.answer, TAG)]
            if parsed.answer.count(f"<{TAG}>") != len(functions):
                return None
        read = [_call(one, first + at) for at, one in enumerate(functions)]
    except NotJson:
        return None
    return None if None in read else tuple(one for one in read if one is not None)


def spoken(reply: Reply, parsed: Parsed) -> str:
    """What is said beside the calls."""
    return parsed.answer if reply.tool_calls else parsed.answer.partition(f"<{TAG}>")[0].strip()


def _function(call: Any) -> dict[str, Any] | None:
    return _object(call.get("function")) if isinstance(call, dict) else None


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _call(function: dict[str, Any] | None, number: int) -> Call | None:
    if function is None or not isinstance(name := function.get("name"), str) or not name:
        return None
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        arguments = strict_json(arguments)
    return Call(id=f"call{number:05d}", name=name, arguments=arguments) if isinstance(arguments, dict) else None
