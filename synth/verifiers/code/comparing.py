"""Plain values and texts against the gold, outside the sandbox."""

from __future__ import annotations

import json
import re
from typing import Any

_FLOAT = re.compile(r"[+-]?(?:\d{1,400}\.\d{0,400}|\.\d{1,400}|\d{1,400}(?=[eE]))(?:[eE][+-]?\d{1,4})?")
_NUMBER = re.compile(r"[+-]?(?:\d{1,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,4})?")


def close(found: float, gold: float, tolerance: float) -> bool:
    """|found - gold| <= tolerance * max(1, |gold|); NaN and infinity are close to nothing but themselves."""
    if found == gold:
        return True
    try:
        return abs(found - gold) <= tolerance * max(1.0, abs(gold)) and abs(found) != float("inf")
    except OverflowError:  # an integer beyond any float
        return False


def same_value(found: Any, gold: Any, *, tolerance: float, strict: bool) -> bool:
    """A plain value against one that JSON can write. strict: their types must be the same."""
    if strict and type(found) is not type(gold):
        return False
    if isinstance(gold, dict):
        return isinstance(found, dict) and _same_mapping(found, gold, tolerance, strict)
    if isinstance(gold, list):
        if isinstance(found, set):
            return _same_elements(found, gold, tolerance)
        if not isinstance(found, list | tuple) or len(found) != len(gold):
            return False
        pairs = zip(found, gold, strict=True)
        return all(same_value(one, other, tolerance=tolerance, strict=strict) for one, other in pairs)
    if isinstance(gold, float) and isinstance(found, int | float):
        return close(found, gold, tolerance)
    if isinstance(gold, str) or gold is None:
        return type(found) is type(gold) and bool(found == gold)
    return isinstance(found, int | float | complex) and bool(found == gold)


def _same_mapping(found: dict[Any, Any], gold: dict[str, Any], tolerance: float, strict: bool) -> bool:
    """JSON writes every key as a text: 1 is "1" and None is "null"."""
    by_text = {key if isinstance(key, str) else _key_text(key): value for key, value in found.items()}
    if len(found) != len(gold) or by_text.keys() != gold.keys():
        return False
    return all(same_value(by_text[key], gold[key], tolerance=tolerance, strict=strict) for key in gold)


def _key_text(key: Any) -> str:
    if key is None or isinstance(key, bool | float):
        return json.dumps(key)
    # More digits than Python writes are no key of a gold.
    return str(key) if not isinstance(key, int) or key.bit_length() < 10_000 else "..."


def _same_elements(found: set[Any], gold: list[Any], tolerance: float) -> bool:
    """Each element of the gold has one of its own among those found. Greedy: elements closer to each other than the
    tolerance are the gold's own fault."""
    left = list(found)
    if len(left) != len(gold):
        return False
    if all(isinstance(one, str | int) for one in gold):
        return found == set(gold)
    for one in gold:
        like = (at for at, other in enumerate(left) if same_value(other, one, tolerance=tolerance, strict=False))
        at = next(like, -1)
        if at < 0:
            return False
        left.pop(at)
    return True


def same_output(found: str, gold: str, *, how: str, tolerance: float) -> bool:
    """Two outputs. how: tokens, lines or exact."""
    if how == "exact":
        return found == gold
    if how == "lines":
        return _lines(found) == _lines(gold)
    tokens, golds = found.split(), gold.split()
    return len(tokens) == len(golds) and all(map(_same_token, tokens, golds, [tolerance] * len(golds)))


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _same_token(found: str, gold: str, tolerance: float) -> bool:
    """Floats within the tolerance where the gold is written as one; all else as text."""
    if found == gold:
        return True
    if not (_FLOAT.fullmatch(gold) and _NUMBER.fullmatch(found)):
        return False
    return close(float(found), float(gold), tolerance)
