"""Fixed gates before extraction: what a page costs to parse, told by one linear scan of its bytes.

They decide the same on any machine under any load; the limits of the child process stand behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _packed(name: str) -> int:
    """A tag name of up to 8 letters as one integer, as the scan sees it."""
    return int.from_bytes(name.encode()[:8].ljust(8, b"\0"), "little")


# Elements that never hold others, or that HTML closes by itself where the next begins: they add no depth by count.
_SHALLOW_NAMES = (
    "area base br col embed hr img input link meta param source track wbr frame keygen basefont isindex "
    "p li dt dd tr td th tbody thead tfoot option optgroup colgroup rt rp"
)
_SHALLOW = tuple(np.uint64(_packed(name)) for name in _SHALLOW_NAMES.split())
_RAW = tuple(np.uint64(_packed(name)) for name in ("script", "style", "textarea", "title", "xmp", "noscript"))
_RAW_LENGTHS = tuple(np.int64(len(name)) for name in ("script", "style", "textarea", "title", "xmp", "noscript"))
_RAW_COUNT = 5  # noscript is parsed as markup, so it is not raw here
_TD, _TH = np.uint64(_packed("td")), np.uint64(_packed("th"))


@dataclass(frozen=True, kw_only=True)
class PageCost:
    """nodes: start tags. depth: open elements at once, at most. cells: table cells."""

    nodes: int
    depth: int
    cells: int


def _compiled(function: _Function) -> _Function:
    """Compiled on first use, kept beside the package."""
    return cast(_Function, numba.njit(function, cache=True, nogil=True))


class GateError(ValueError):
    """A page above a gate. `error` is its class: too_large, too_many_nodes, too_deep, too_many_cells."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


@dataclass(frozen=True, kw_only=True)
class Gates:
    """Upper limits of a page: bytes as they came, start tags, open elements, table cells."""

    max_html_bytes: int
    max_nodes: int
    max_depth: int
    max_cells: int

    def check_size(self, size: int) -> None:
        if size > self.max_html_bytes:
            raise GateError("too_large", f"{size} bytes are above max_html_bytes {self.max_html_bytes}")

    def check(self, data: bytes) -> None:
        """Raises GateError when the page (UTF-8) is above a gate."""
        self.check_size(len(data))
        cost = page_cost(data)
        if cost.depth > self.max_depth:
            raise GateError("too_deep", f"{cost.depth} open elements are above max_depth {self.max_depth}")
        if cost.nodes > self.max_nodes:
            raise GateError("too_many_nodes", f"{cost.nodes} elements are above max_nodes {self.max_nodes}")
        if cost.cells > self.max_cells:
            raise GateError("too_many_cells", f"{cost.cells} table cells are above max_cells {self.max_cells}")


def page_cost(data: bytes) -> PageCost:
    """Count elements, depth and cells of HTML in an ASCII-compatible encoding."""
    nodes, depth, cells = _scan(np.frombuffer(data, dtype=np.uint8))
    return PageCost(nodes=int(nodes), depth=int(depth), cells=int(cells))


@_compiled
def _after(data: npt.NDArray[np.uint8], at: int, byte: int) -> int:
    """The position after the next `byte` from `at`."""
    while at < len(data) and data[at] != byte:
        at += 1
    return at + 1


@_compiled
def _after_comment(data: npt.NDArray[np.uint8], at: int) -> int:
    while at + 2 < len(data):
        if data[at] == 45 and data[at + 1] == 45 and data[at + 2] == 62:  # -->
            return at + 3
        at += 1
    return len(data)


@_compiled
def _name(data: npt.NDArray[np.uint8], at: int) -> tuple[Any, int]:
    """The tag name at `at`, lower-cased and packed, and the position after it. Longer names pack their first 8."""
    packed = np.uint64(0)
    shift = np.uint64(0)
    while at < len(data):
        letter = data[at]
        if 65 <= letter <= 90:
            letter += 32
        if letter <= 32 or letter in (47, 62):  # space / >
            break
        if shift < 64:
            packed |= np.uint64(letter) << shift
            shift += np.uint64(8)
        at += 1
    return packed, at


@_compiled
def _tag_end(data: npt.NDArray[np.uint8], at: int) -> int:
    """The position after a tag's `>`, quoted attribute values passed over."""
    while at < len(data):
        letter = data[at]
        if letter == 62:
            return at + 1
        if letter == 61 and at + 1 < len(data) and (data[at + 1] == 34 or data[at + 1] == 39):  # ="
            at = _after(data, at + 2, data[at + 1])
        else:
            at += 1
    return len(data)


@_compiled
def _raw_end(data: npt.NDArray[np.uint8], at: int, name: int, length: int) -> int:
    """The position of the end tag of a raw-text element."""
    while at + 2 + length <= len(data):
        if data[at] == 60 and data[at + 1] == 47:
            found, end = _name(data, at + 2)
            if found == name and end == at + 2 + length:
                return at
        at += 1
    return len(data)


@_compiled
def _scan(data: npt.NDArray[np.uint8]) -> tuple[int, int, int]:
    at = 0
    nodes = 0
    cells = 0
    depth = 0
    deepest = 0
    while at + 1 < len(data):
        if data[at] != 60:
            at += 1
            continue
        following = data[at + 1]
        if following == 33:  # <!
            if at + 3 < len(data) and data[at + 2] == 45 and data[at + 3] == 45:
                at = _after_comment(data, at + 4)
            else:
                at = _after(data, at + 2, 62)
            continue
        closing = following == 47
        first = data[at + 2] if closing and at + 2 < len(data) else following
        if not (65 <= first <= 90 or 97 <= first <= 122):
            at += 1
            continue
        name, end = _name(data, at + 2 if closing else at + 1)
        at = _tag_end(data, end)
        shallow = False
        for known in _SHALLOW:
            if name == known:
                shallow = True
        if closing:
            if not shallow and depth > 0:
                depth -= 1
            continue
        nodes += 1
        if name in (_TD, _TH):
            cells += 1
        if shallow or data[at - 2] == 47:  # />
            continue
        depth += 1
        deepest = max(deepest, depth)
        for i in range(_RAW_COUNT):
            if name == _RAW[i]:
                at = _raw_end(data, at, name, int(_RAW_LENGTHS[i]))
    return nodes, deepest, cells
