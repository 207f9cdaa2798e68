"""Results of several comparisons as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from synth.verifiers.math.nodes import Node

Result = tuple[bool | None, str]
"""Whether they are the same, None where it cannot be said; and by which rule."""

MAX_ITEMS: Final = 200


def all_of(results: list[Result]) -> Result:
    """True where all are; the first that is not decides."""
    for wanted in (False, None):
        for result in results:
            if result[0] is wanted:
                return result
    return True, "items"


def any_of(*results: Result) -> Result:
    """True where one is."""
    for wanted in (True, None):
        for result in results:
            if result[0] is wanted:
                return result
    return results[0]


def unordered(gold: Sequence[Node], answer: Sequence[Node], compare: Callable[[Node, Node], Result]) -> Result:
    """Each item of the gold with one of the answer that no other took. Sameness is transitive, so the first will do."""
    if len(gold) != len(answer):
        return False, "count"
    if len(gold) > MAX_ITEMS:
        return None, "too_many_items"
    left = list(answer)
    undecided = False
    for item in gold:
        if item in left:
            left.remove(item)
            continue
        results = [compare(item, other) for other in left]
        at = next((at for at, result in enumerate(results) if result[0]), None)
        if at is None:
            if all(result[0] is False for result in results):
                return False, "items"
            undecided = True
        else:
            del left[at]
    return (None, "undecided") if undecided else (True, "items")
