"""How texts, token ids and JSON stand in the store: as bytes, compressed where that pays."""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from synth.items import Item, Outcome, Sample, SampleKind

RAW, DEFLATED = b"\0", b"\1"
SMALL_BYTES: Final = 160
"""What is shorter is stored as it is: zlib's header and tables take what they save."""


def pack(text: str) -> bytes:
    """Any text, lone surrogates included: a teacher may say them."""
    return pack_bytes(text.encode("utf-8", "surrogatepass"))


def unpack(data: bytes) -> str:
    return unpack_bytes(data).decode("utf-8", "surrogatepass")


def pack_bytes(data: bytes) -> bytes:
    # Level 1: a quarter of the time of the default 6 for a tenth more bytes.
    return RAW + data if len(data) < SMALL_BYTES else DEFLATED + zlib.compress(data, 1)


def unpack_bytes(data: bytes) -> bytes:
    return data[1:] if data[:1] == RAW else zlib.decompress(data[1:])


def pack_ids(ids: Sequence[int]) -> bytes:
    """Token ids as 32-bit little-endian integers."""
    numbers = array("I", ids)
    if sys.byteorder == "big":
        numbers.byteswap()
    return pack_bytes(numbers.tobytes())


def unpack_ids(data: bytes) -> tuple[int, ...]:
    numbers = array("I", unpack_bytes(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


def pack_json(value: Any) -> bytes:
    return pack(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain))


def unpack_json(data: bytes) -> Any:
    return json.loads(unpack(data))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is nothing that JSON holds")


def short(text: str, most: int = 300) -> str:
    """A word of a server's or a rule's name, for a column of its own: valid UTF-8 of a bounded length."""
    return text[:most].encode("utf-8", "replace").decode("utf-8")


_ITEM: Final = tuple((one.name, one.default) for one in fields(Item) if one.name != "options")


def item_plain(item: Item) -> dict[str, Any]:
    """An item as JSON, without what is at its default."""
    told = {name: value for name, default in _ITEM if (value := getattr(item, name)) != default}
    if item.options:
        told["options"] = dict(item.options)
    return told


def item_of(told: Mapping[str, Any]) -> Item:
    return Item(**{**told, "messages": tuple(told.get("messages", ()))})


def sample_plain(sample: Sample) -> dict[str, Any]:
    """Of a sample what has no column of its own."""
    names = ("messages", "chosen", "rejected", "text", "verdict", "figures", "facts")
    return {name: value for name in names if (value := getattr(sample, name))}


def sample_of(row: Sequence[Any]) -> Sample:
    """From the columns item, number, kind, outcome, reason, tokens, keys, data."""
    item, number, kind, outcome, reason, tokens, keys, data = row
    told = unpack_json(data)
    return Sample(
        item=item, number=number, kind=SampleKind(kind), keys=unpack_keys(keys), outcome=Outcome(outcome),
        reason=reason, tokens=tokens, messages=tuple(told.pop("messages", ())), **told,
    )  # fmt: skip


def pack_keys(keys: Sequence[str]) -> bytes:
    return b"".join(map(bytes.fromhex, keys))


def unpack_keys(data: bytes) -> tuple[str, ...]:
    return tuple(data[at : at + 16].hex() for at in range(0, len(data), 16))
