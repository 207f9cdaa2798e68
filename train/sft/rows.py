"""Rows of chat data: JSON lines or Parquet with `messages`, or `prompt` and `completion`, checked one by one.

    {"id": "a1", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
    {"prompt": "Hi", "completion": "Hello"}                     # strings, or lists of messages
    {"messages": [...], "tools": [{"type": "function", "function": {...}}]}

A message may carry `tool_calls`, `reasoning_content` (or reasoning, or thinking), and `train: false`, which keeps an
assistant message as context. A row without `id` is named by its file and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from shards.store import exists, filesystem, join, names, read_batches, read_json
from train.sft.refusals import Refused, SftError

ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
REASONING = ("reasoning_content", "reasoning", "thinking")
# U+FDD0-U+FDEF never occur in text that is interchanged: train.sft.templates marks what it renders with them.
FORBIDDEN = re.compile("[\x00\ud800-\udfff\ufdd0-\ufdef]")
UNUSABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")  # in an id, which messages and tables tell
MAX_ID = 512
TEXTS = (".jsonl", ".json", ".ndjson")
PACKED = {".gz": "gzip", ".zst": "zstd"}

Message = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Raw:
    """A row as it was read: location is `file:line`; values is None where the line is no JSON object."""

    location: str
    values: dict[str, Any] | None

    @property
    def id(self) -> str:
        """The row's own `id` when it has a usable one (some words on one line), else where it stands."""
        own = (self.values or {}).get("id")
        told = str(own) if isinstance(own, str | int) and not isinstance(own, bool) else ""
        return told if 0 < len(told) <= MAX_ID and not UNUSABLE.search(told) else self.location


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A checked row. messages: content always a string; trained: which of them are; text: prompt and completion."""

    messages: tuple[Message, ...] = ()
    trained: tuple[bool, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    text: tuple[str, str] | None = None


def read_rows(sources: Sequence[str]) -> Iterator[Raw]:
    """All rows of files, folders of files, and outputs of runs, in order. Raises SftError for what holds none."""
    for path in files_of(sources):
        try:
            yield from _parquet(path) if path.endswith(".parquet") else _lines(path)
        except (OSError, pa.ArrowException) as error:
            raise SftError(
                f"{path}: cannot be read ({type(error).__name__}): torn, or of another kind than its name says; "
                "write it again"
            ) from None


def files_of(sources: Sequence[str]) -> list[str]:
    """The files that rows are read from, in order. Raises SftError for a source that holds none."""
    return [path for source in sources for path in _files(source)]


def _files(source: str) -> list[str]:
    if _readable(source):
        if not exists(source):
            raise SftError(f"{source}: no such file; give JSON lines (also .gz, .zst), Parquet, or the output of a run")
        return [source]
    folder = source
    run = read_json(join(source, "run.json"))
    if run is not None:
        steps = [
            step["folder"] for step in run.get("steps", ()) if names(join(source, step["folder"], "data"), ".parquet")
        ]
        if not steps:
            raise SftError(f"{source}: no step of this run has kept its rows; run it with `keep: last`")
        folder = join(source, steps[-1])
    folder = join(folder, "data") if names(join(folder, "data")) else folder
    found = [join(folder, name) for name in names(folder) if _readable(name)]
    if not found:
        raise SftError(f"{source}: no rows here; give JSON lines (also .gz, .zst), Parquet, or the output of a run")
    return found


def _readable(path: str) -> bool:
    for suffix in PACKED:
        path = path.removesuffix(suffix)
    return path.endswith((*TEXTS, ".parquet"))


def _lines(path: str) -> Iterator[Raw]:
    files, name = filesystem(path)
    short = path.rsplit("/", 1)[-1]
    packed = next((kind for suffix, kind in PACKED.items() if path.endswith(suffix)), None)
    with files.open(name, "rb") as raw, pa.input_stream(raw, compression=packed) as stream:
        for number, line in enumerate(_split_lines(stream), 1):
            if line.strip():
                yield Raw(location=f"{short}:{number}", values=_object(line))


def _split_lines(stream: Any) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _parquet(path: str) -> Iterator[Raw]:
    short = path.rsplit("/", 1)[-1]
    number = 0
    for batch in read_batches(path):
        for values in batch.to_pylist():
            number += 1
            yield Raw(location=f"{short}:{number}", values=_without_nulls(values))


def _without_nulls(value: Any) -> Any:
    """A Parquet struct gives each row every field of any: those that are null were not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(own) for key, own in value.items() if own is not None}
    return [_without_nulls(own) for own in value] if isinstance(value, list) else value


def conversation(raw: Raw, text_rows: str = "chat") -> Conversation:
    """A row checked and brought to one form. Raises Refused with the reason."""
    values = raw.values
    if values is None:
        raise Refused("invalid_json")
    tools = _tools(values.get("tools"))
    if isinstance(values.get("messages"), list):
        return _checked(values["messages"], tools)
    prompt, completion = values.get("prompt"), values.get("completion")
    if isinstance(prompt, str) and isinstance(completion, str):
        if text_rows == "text":
            _check_text(prompt, completion)
            return Conversation(text=(prompt, completion))
        prompt = [{"role": "user", "content": prompt}]
        completion = [{"role": "assistant", "content": completion}]
    if isinstance(prompt, list) and isinstance(completion, list):
        context = [{**message, "train": False} if isinstance(message, dict) else message for message in prompt]
        return _checked([*context, *completion], tools)
    raise Refused("not_a_conversation")


def _checked(messages: list[Any], tools: tuple[dict[str, Any], ...]) -> Conversation:
    if not messages:
        raise Refused("empty_conversation")
    told = tuple(_message(message, number) for number, message in enumerate(messages))
    trained = tuple(
        m["role"] == "assistant" and raw.get("train") is not False for m, raw in zip(told, messages, strict=True)
    )
    if not any(trained):
        raise Refused("no_answer")
    return Conversation(messages=told, trained=trained, tools=tools)


def _message(message: Any, number: int) -> Message:
    if not isinstance(message, dict):
        raise Refused("not_a_conversation", f"message {number} is no object")
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise Refused("unknown_role", f"message {number}: its role is none of {', '.join(sorted(ROLES))}")
    if not isinstance(message.get("train", True), bool):
        raise Refused("not_a_conversation", f"message {number}: `train` is neither true nor false")
    told = {key: value for key, value in message.items() if value is not None and key not in ("train", *REASONING)}
    told["content"] = _content(message.get("content"), number)
    reasoning = next((message[key] for key in REASONING if message.get(key) is not None), None)
    if reasoning is not None:
        told["reasoning_content"] = _content(reasoning, number)
    if "tool_calls" in told:
        told["tool_calls"] = [_tool_call(call, number) for call in _list(told["tool_calls"], number)]
        if not told["tool_calls"]:
            del told["tool_calls"]
    _check_text(told)
    return told


def _content(content: Any, number: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type", "text") == "text" and isinstance(part.get("text"), str)
        for part in content
    ):
        return "".join(part["text"] for part in content)
    raise Refused("not_text", f"message {number}: its content is neither a string nor a list of text parts")


def _list(value: Any, number: int) -> list[Any]:
    if not isinstance(value, list):
        raise Refused("invalid_tools", f"message {number}: `tool_calls` is no list")
    return value


def _tool_call(call: Any, number: int) -> dict[str, Any]:
    """One call in the nested form that templates read; arguments that came as a JSON string become the object."""
    wrong = Refused("invalid_tools", f"message {number}: a tool call is not {{function: {{name, arguments: object}}}}")
    if not isinstance(call, dict):
        raise wrong
    function = call.get("function", call)
    if not isinstance(function, dict) or not _is_named(function):
        raise wrong
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        arguments = _object(arguments.encode("utf-8", "replace"))
    if not isinstance(arguments, dict):
        raise wrong
    return {
        **({"id": call["id"]} if isinstance(call.get("id"), str) else {}),
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def _tools(tools: Any) -> tuple[dict[str, Any], ...]:
    if tools is None:
        return ()
    if isinstance(tools, str):  # a table cannot hold schemas of many shapes: they travel as JSON text
        tools = (_object(b'{"tools": %s}' % tools.encode("utf-8", "replace")) or {}).get("tools")
    if not isinstance(tools, list) or not all(isinstance(tool, dict) and _tool_name(tool) for tool in tools):
        raise Refused("invalid_tools", "`tools` is no list of {type: function, function: {name, ...}}")
    _check_text(tools)
    return tuple(tools)


def _tool_name(tool: dict[str, Any]) -> bool:
    function = tool.get("function", tool)
    return isinstance(function, dict) and _is_named(function)


def _is_named(function: dict[str, Any]) -> bool:
    return isinstance(function.get("name"), str) and bool(function["name"].strip())


def _check_text(*values: Any) -> None:
    for text in strings(values):
        if FORBIDDEN.search(text):
            raise Refused("invalid_text")


def strings(value: Any) -> Iterator[str]:
    """Every string of a nested value, keys among them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, own in value.items():
            yield from strings(key)
            yield from strings(own)
    elif isinstance(value, list | tuple):
        for own in value:
            yield from strings(own)
