"""Values as they cross the sandbox's wall: plain ones, written by their type and read into new plain ones.

What comes out of a sandbox is what a program claims; what is compared are the values that were made of it here, so no
class of the program's own takes part in a comparison. Standard library only: this runs on both sides.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False  # not typing's: each program would wait some 3 ms for its import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

MAX_DEPTH = 100
"""Of nesting. Each level takes some frames of Python's 1,000 here and in json."""

_SAFE_INTEGER = 1 << 63


class NotPlainError(ValueError):
    """A value, or a text that should be one, that has no plain form."""


def _refuse(value: Any) -> Any:
    raise NotPlainError(type(value).__name__)


def encode(value: Any, other: Callable[[Any], Any] = _refuse, depth: int = MAX_DEPTH) -> Any:
    """As JSON. `other` encodes what is not plain. Raises NotPlainError."""
    if depth == 0:
        raise NotPlainError("nested too deeply")
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        whole = int.__index__(value)
        # Hexadecimal: decimal digits take quadratic time, and Python refuses more than 4,300 of them.
        return whole if -_SAFE_INTEGER < whole < _SAFE_INTEGER else {"int": format(whole, "x")}
    if isinstance(value, float):
        number = float.__float__(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, complex):
        return {"complex": [repr(float(value.real)), repr(float(value.imag))]}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, list):
        return [encode(one, other, depth - 1) for one in list.__iter__(value)]
    if isinstance(value, tuple):
        return {"tuple": [encode(one, other, depth - 1) for one in tuple.__iter__(value)]}
    if isinstance(value, (set, frozenset)):
        return {"set": [encode(one, other, depth - 1) for one in _elements(value)]}
    if isinstance(value, dict):
        pairs = list(dict.items(value))
        return {"dict": [[encode(key, other, depth - 1), encode(one, other, depth - 1)] for key, one in pairs]}
    if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        return encode(value.tolist(), other, depth - 1)
    return other(value)


def _elements(value: set[Any] | frozenset[Any]) -> Iterator[Any]:
    return set.__iter__(value) if isinstance(value, set) else frozenset.__iter__(value)


def decode(told: Any, other: Callable[[Any], Any] = _refuse, depth: int = MAX_DEPTH) -> Any:
    """A plain value of what `encode` wrote, or something else pretends to have written. `other` reads {"object": n}.
    Raises NotPlainError."""
    if depth == 0:
        raise NotPlainError("nested too deeply")
    if told is None or isinstance(told, (bool, int, float, str)):
        return told
    if isinstance(told, list):
        return [decode(one, other, depth - 1) for one in told]
    if not isinstance(told, dict) or len(told) != 1:
        raise NotPlainError("no value")
    kind, content = next(iter(told.items()))
    try:
        return _DECODERS[kind](content, other, depth - 1)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise NotPlainError(f"no {kind[:10]}") from None


def _pairs(content: Any, other: Callable[[Any], Any], depth: int) -> dict[Any, Any]:
    return {decode(key, other, depth): decode(one, other, depth) for key, one in content}


_DECODERS: dict[str, Callable[[Any, Callable[[Any], Any], int], Any]] = {
    "int": lambda content, *_: int(content, 16),
    "float": lambda content, *_: float(content),
    "complex": lambda content, *_: complex(*(float(part) for part in content)),
    "bytes": lambda content, *_: bytes.fromhex(content),
    "tuple": lambda content, other, depth: tuple(decode(one, other, depth) for one in content),
    "set": lambda content, other, depth: {decode(one, other, depth) for one in content},
    "dict": _pairs,
    "object": lambda content, other, _: other(content),
}
