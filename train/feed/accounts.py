"""What became of tokens, by domain: those that went in are those that came out, exactly."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from train.feed.sources import Source
from train.feed.spans import Placed

ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True, kw_only=True)
class Account:
    """Tokens and slots of some sequences of one domain, for isolated documents.

    tokens = trained + unpredicted + cropped + dropped, where
    trained: are a target. unpredicted: stand in a row, but nothing before them in their document does: the first token
        of each document, and under "concat" the first of a block that goes on with a document in mid-row.
    cropped, dropped: are in no row, by the overflow policy; counted where their window begins.

    slots = sequences * (sequence_tokens + 1) = trained + unpredicted + context + padding, where
    context: repeat the token before a piece. padding: hold nothing.
    """

    sequences: int = 0
    tokens: int = 0
    trained: int = 0
    unpredicted: int = 0
    cropped: int = 0
    dropped: int = 0
    slots: int = 0
    context: int = 0
    padding: int = 0

    def __add__(self, other: Account) -> Account:
        return Account(**{field.name: getattr(self, field.name) + getattr(other, field.name) for field in fields(self)})

    def record(self) -> dict[str, Any]:
        return asdict(self)

    def told(self) -> str:
        """The two sums in one line."""
        share = self.padding / self.slots if self.slots else 0.0
        return (
            f"{self.tokens:,} tokens = {self.trained:,} targets + {self.unpredicted:,} with nothing before them + "
            f"{self.cropped:,} cropped + {self.dropped:,} dropped; {self.slots:,} slots hold them, {self.context:,} as "
            f"context and {self.padding:,} as padding ({share:.2%})"
        )


def account_of(source: Source, first: int, stop: int) -> Account:
    """The account of a source's sequences first .. stop."""
    found, at = Account(), first
    while at < stop:
        count = min(ROWS_AT_ONCE, stop - at)
        found += _counted(source, at, count, source.rows(at, count))
        at += count
    return found


def _counted(source: Source, first: int, count: int, placed: Placed) -> Account:
    held, context, spans = int(placed.slots.sum()), int(placed.repeats.sum()), len(placed.row)
    cropped, dropped = source.lost(first, count)
    slots = count * (source.sequence_tokens + 1)
    return Account(
        sequences=count,
        tokens=held - context + cropped + dropped,
        trained=held - spans,  # the first slot of a span is no target
        unpredicted=spans - context,
        cropped=cropped,
        dropped=dropped,
        slots=slots,
        context=context,
        padding=slots - held,
    )
