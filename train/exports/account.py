"""What went into an export and what came out, in numbers that must add up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

NO_TOKENS = "documents without tokens"


@dataclass(kw_only=True)
class Account:
    """in = out + left out, for documents and for tokens.

    documents_in, tokens_in: by the manifests. streams: what was written by stream (a domain, mostly): `documents`,
    `tokens`. left_out: the same by reason. notes: what a reader of the files should know, in sentences.
    """

    documents_in: int
    tokens_in: int
    streams: dict[str, Counter[str]] = field(default_factory=dict)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def wrote(self, stream: str, *, documents: int, tokens: int) -> None:
        self.streams.setdefault(stream, Counter()).update(documents=documents, tokens=tokens)

    def leave_out(self, reason: str, *, documents: int = 0, tokens: int = 0) -> None:
        if documents or tokens:
            self.left_out.setdefault(reason, Counter()).update(documents=documents, tokens=tokens)

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    @property
    def documents(self) -> int:
        return sum(counts["documents"] for counts in self.streams.values())

    @property
    def tokens(self) -> int:
        return sum(counts["tokens"] for counts in self.streams.values())

    def check(self) -> None:
        """Raises RuntimeError unless it adds up: then the export is wrong, and is not finished."""
        for what, given, out in (
            ("documents", self.documents_in, self.documents),
            ("tokens", self.tokens_in, self.tokens),
        ):
            left = sum(counts[what] for counts in self.left_out.values())
            if given != out + left:
                raise RuntimeError(f"export: {given} {what} went in, but {out} came out and {left} were left out")

    def to_json(self) -> dict[str, Any]:
        return {
            "documents": {"in": self.documents_in, "out": self.documents},
            "tokens": {"in": self.tokens_in, "out": self.tokens},
            "streams": {name: dict(counts) for name, counts in sorted(self.streams.items())},
            "left_out": {reason: dict(counts) for reason, counts in sorted(self.left_out.items())},
            "notes": self.notes,
        }
