"""What a user of synthesis can mend."""

from __future__ import annotations


class SynthError(ValueError):
    """One line: where, what is wrong, what would be right. Never a prompt's or an answer's text."""
