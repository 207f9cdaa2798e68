"""One normal form for all text: NFC, line feeds, no NUL, mojibake repaired.

Mojibake (UTF-8 read as a one-byte charset) is repaired by ftfy, line by line, and only on lines that ftfy's own
badness heuristic calls bad; a linear pattern first finds the few texts worth asking about.
"""

from __future__ import annotations

import re
import unicodedata

# What UTF-8's first byte followed by a continuation byte turns into in Latin-1, windows-125x and Mac Roman: a letter
# of U+00C2..U+00F4 (or Cyrillic/Greek/Central European at the same code), then a symbol of the upper half.
_LEADS = "\u00c2-\u00f4\u0102\u0103\u010e\u010f\u0110\u0111\u0413\u0420\u0421\u0432\u0393\u039e\u039f\u03b2\u221a\u00ac"
_FOLLOWS = (
    "\u0080-\u00bf\u0152\u0153\u0160\u0161\u017d\u017e\u0178\u0192\u02c6\u02dc\u2013-\u2022\u2026\u2030"
    "\u2039\u203a\u20ac\u2122\u0402-\u040f\u0451-\u045f\u0490\u0491\u2116"
)
SUSPECT = f"[{_LEADS}][{_FOLLOWS}]"
SUSPECT_PATTERN = re.compile(SUSPECT)


def normalise_text(text: str) -> str:
    """The normal form of one text. Linear time; any string gets an answer."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
    if text.isascii():
        return text
    if SUSPECT_PATTERN.search(text):
        text = repair(text)
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def repair(text: str) -> str:
    """The text with its mojibake lines repaired."""
    from ftfy import fix_encoding
    from ftfy.badness import is_bad

    if not is_bad(text):
        return text
    lines = text.split("\n")
    repaired = [fix_encoding(line) if SUSPECT_PATTERN.search(line) and is_bad(line) else line for line in lines]
    return "\n".join(repaired).replace("\0", "").replace("\r", "\n")
