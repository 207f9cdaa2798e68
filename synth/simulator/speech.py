"""What a simulated teacher says: reasoning of a length, tags or their absence, tokens that are a few bytes each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

from synth.simulator.settings import Speech
from synth.simulator.skill import drawn

SENTENCE: Final = (
    "first we note that the sum of both parts gives a number which then must be taken from what was left over so next "
    "step is to check each term again because total count may differ and now multiply by two divide into equal groups "
    "add three more keep track of units"
)
WORDS: Final = tuple(SENTENCE.split())
OPENING, CLOSING = "<think>", "</think>"
LONGEST_WORDS: Final = 20_000


@dataclass(frozen=True, kw_only=True)
class Said:
    """A reply before it is cut to its tokens. reasoning: in a field of its own, None where it stands in the text.
    logprobs: alternatives of the first token. tool: name of the function that the text is the arguments of."""

    text: str
    reasoning: str | None = None
    finish_reason: str = "stop"
    tool: str = ""
    alternatives: Mapping[str, float] | None = None


def reasoning_of(speech: Speech, skill: float, *draw: Any) -> str:
    """Words of no meaning: their number log-normal, larger for hard questions."""
    number = min(max(drawn("length", *draw), 1e-9), 1 - 1e-9)
    factor = 1 + speech.hardness * (1 - skill)
    count = round(speech.words * factor * math.exp(speech.sigma * NormalDist().inv_cdf(number)))
    start = int(drawn("start", *draw) * len(WORDS))
    words = [WORDS[(start + at * 7) % len(WORDS)] for at in range(min(count, LONGEST_WORDS))]
    return " ".join(words)


def say(speech: Speech, answer: str, skill: float, *draw: Any) -> Said:
    """The answer, reasoned in the way that settings and draw decide."""
    said = speech.answer.replace("{answer}", answer)
    if speech.reasoning == "none" or drawn("untagged", *draw) < speech.untagged:
        return Said(text=said)
    reasoning = reasoning_of(speech, skill, *draw)
    if speech.reasoning == "split":
        return Said(text=said, reasoning=reasoning)
    opening = f"{OPENING}\n" if speech.reasoning == "tags" else ""
    if drawn("unclosed", *draw) < speech.unclosed:
        return Said(text=f"{opening}{reasoning}\n{said}")
    return Said(text=f"{opening}{reasoning}\n{CLOSING}\n\n{said}")


def encode(text: str, bytes_per_token: int = 3) -> list[int]:
    """Token ids: each is so many bytes of UTF-8, the last may be fewer. One byte is its own value."""
    data = text.encode("utf-8", "surrogatepass")
    return [_id(data[at : at + bytes_per_token]) for at in range(0, len(data), bytes_per_token)]


def decode(ids: list[int]) -> str:
    """The text of ids from `encode`."""
    return b"".join(_bytes(number) for number in ids).decode("utf-8", "surrogatepass")


STARTS: Final = (0, 0, 256, 256 + 65536, 256 + 65536 + 16777216)
"""First id of the tokens of 1, 2 and 3 bytes, and one behind the last."""


def _id(data: bytes) -> int:
    return STARTS[len(data)] + int.from_bytes(data)


def _bytes(number: int) -> bytes:
    size = next(size for size in (1, 2, 3) if number < STARTS[size + 1])
    return (number - STARTS[size]).to_bytes(size)


def cut(text: str, tokens: int, bytes_per_token: int) -> tuple[str, bool]:
    """The first so many tokens, whole characters only, and whether that is less than all."""
    data = text.encode("utf-8", "surrogatepass")
    kept = data[: tokens * bytes_per_token]
    return kept.decode("utf-8", "ignore"), len(kept) < len(data)


def instance(schema: Any, depth: int = 0) -> Any:
    """Some JSON value of a schema: its constants and first choices, one entry a list, all properties of an object."""
    if not isinstance(schema, Mapping) or depth > 32:
        return None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for choices in ("anyOf", "oneOf"):
        if schema.get(choices):
            return instance(schema[choices][0], depth + 1)
    kind = schema.get("type")
    if kind == "object":
        return {name: instance(of, depth + 1) for name, of in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items"), depth + 1) for _ in range(max(1, schema.get("minItems", 1)))]
    if kind in ("integer", "number"):
        return schema.get("minimum", schema.get("maximum", 1))
    return {"string": "text", "boolean": True}.get(str(kind))


def as_json(schema: Any) -> str:
    return json.dumps(instance(schema), ensure_ascii=False)
