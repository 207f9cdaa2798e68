"""What the reading verbs print on: tables of aligned columns, a pager on a terminal, plain text elsewhere.

Documents are hostile: every cell and text passes `visible`, so that no terminal escape of a document reaches a
terminal.
"""

from __future__ import annotations

import datetime
import json as json_format
import os
import shlex
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from jobs.report.numbers import plain
from jobs.report.visible import line, visible

MOST = 60
"""Characters of a cell, where nothing says how wide the paper is."""


def dump(value: Any) -> None:
    """JSON on stdout. Escapes are ASCII, so that nothing in it acts on a terminal."""
    print(json_format.dumps(value, indent=1, default=_plain))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def table(
    rows: Iterable[Sequence[Any]], head: Sequence[str] = (), *, indent: int = 0, most: int | None = None
) -> list[str]:
    """Lines of aligned columns, numbers to the right; cells are one line each and cut at `most` characters."""
    cells = [[cell(value, most or MOST) for value in row] for row in rows]
    right = [
        bool(column) and all(isinstance(value, int | float) or value is None for value in column)
        for column in _columns(rows)
    ]
    every = [list(head), *cells] if head else cells
    widths = [max(map(width, column)) for column in zip(*every, strict=True)] if every else []
    lines = []
    for number, row in enumerate(every):
        told = [
            _padded(text, wide, to_right)
            for text, wide, to_right in zip(row, widths, right or [False] * len(widths), strict=True)
        ]
        lines.append(" " * indent + "  ".join(told).rstrip())
        if head and number == 0:
            lines.append(" " * indent + "  ".join("-" * wide for wide in widths))
    return lines


def _columns(rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))


def cell(value: Any, most: int) -> str:
    """A value on one visible line; documents' numbers as people write them."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return plain(value)
    return line(value if isinstance(value, str) else str(value), most)


def width(text: str) -> int:
    """Columns that a terminal needs for a text: two for a wide character, none for a mark on another."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _padded(text: str, wide: int, to_right: bool) -> str:
    space = " " * (wide - width(text))
    return space + text if to_right else text + space


def terminal_width() -> int:
    """Columns of the terminal; unbounded paper counts as 200."""
    return shutil.get_terminal_size((200, 50)).columns if sys.stdout.isatty() else 200


def show(text: str) -> None:
    """Print, through a pager where stdout is a terminal and the text is longer than it."""
    if sys.stdout.isatty() and text.count("\n") >= shutil.get_terminal_size().lines - 1:
        try:
            command = shlex.split(os.environ.get("PAGER") or "less -FX")
            subprocess.run(command, input=text.encode(), check=False)
        except (OSError, ValueError):
            pass  # no such pager: print
        else:
            return
    print(text)


def block(text: str | None, most: int, indent: str = "    ") -> list[str]:
    """The beginning of a document's text, indented, each of its lines visible; says how much more there is."""
    if text is None:
        return [indent + "(its text was not kept)"]
    lines = [indent + part for part in visible(text[:most]).split("\n")]
    more = len(text) - most
    return [*lines, indent + f"\u2026 {more:,} more characters"] if more > 0 else lines
