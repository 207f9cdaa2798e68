"""Web text for people's eyes: what would act, hide or reorder is made visible, and long text is cut.

Both the report and the terminal show hostile text. Control characters (terminal escapes among them), direction
overrides and invisible characters are replaced by a name in brackets; newline and tab stay.
"""

from __future__ import annotations

import re

CUT = 600
CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# Zero-width joiner and non-joiner stay: Persian, Hindi and emoji are not legible without them.
INVISIBLE = (
    "\u00ad\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\uffff\U000e0000-\U000e007f\ud800-\udfff"
)
_HIDDEN = re.compile(f"[{CONTROLS}{DIRECTIONS}{INVISIBLE}]")
# More marks than any script stacks on one letter; beyond it they paint over the lines around.
_STACKED = re.compile(
    "([\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4})[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)


def visible(text: str) -> str:
    """The text with every hidden character replaced by its name, as [ESC] or [U+202E]. CR LF reads as LF."""
    return _STACKED.sub(r"\1", _HIDDEN.sub(_named, text.replace("\r\n", "\n")))


def line(text: str, most: int = 120) -> str:
    """The text on one line, cut at `most` characters."""
    return cut(" ".join(text.split()), most)


def cut(text: str | None, most: int = CUT) -> str:
    """The visible beginning of a text: at most `most` code points of it, with an ellipsis where more follows."""
    if text is None:
        return ""
    return visible(text[:most]) + ("\u2026" if len(text) > most else "")


def _named(found: re.Match[str]) -> str:
    code = ord(found[0])
    return "[ESC]" if code == 0x1B else f"[U+{code:04X}]"
