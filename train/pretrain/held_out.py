"""The held-out rows that a run is measured on: whole documents in order, windows that slide through the long ones.

They depend on the tokens, the held-out share and the row length only, never on weights or seeds: every mixture is
measured on the same. A document of up to L + 1 tokens is one piece, and shares a row with others (in order; none
attends to another). A longer one is cut into windows of L + 1 tokens that begin L / 2 tokens apart, the last one at
the document's end; each token is scored once, in the first window that reaches it, so that behind the first window each
token is predicted from at least L / 2 others.

A document's first token has nothing before it, and is not predicted: neither its nats nor its bytes count (with a BOS
before it, it is an ordinary token, and the BOS is what is not predicted). EOS is predicted: its nats count, and it has
0 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from text import kernel
from train.feed.batch import Batch, fill
from train.feed.spans import Spans
from train.feed.stream import Pieces, Stream
from train.feed.token_shards import TokenShards

UNKNOWN = "und"  # ISO 639-3's code for a language that nobody told


class Group(NamedTuple):
    domain: str
    language: str


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut:
    """Rows to measure on. batch: its `domains` number the groups, its `loss` tells what is scored."""

    batch: Batch
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, shards: TokenShards, *, share: float, sequence_tokens: int, max_rows: int | None = None) -> HeldOut:
        """The last documents of each domain, `share` of its tokens (as a plan with that held_out leaves them out).

        max_rows: rows of a domain at most, the first ones; None takes all.
        """
        groups: dict[Group, int] = {}
        parts = [
            _rows_of(shards, number, groups, share=share, width=sequence_tokens, max_rows=max_rows)
            for number in range(len(shards.domains))
        ]
        batch = _joined([part for part in parts if part.rows], sequence_tokens)
        return cls(batch=batch, groups=tuple(groups))


def _rows_of(
    shards: TokenShards, number: int, groups: dict[Group, int], *, share: float, width: int, max_rows: int | None
) -> Batch:
    """The held-out rows of one domain; its groups are added to `groups`."""
    pieces = held_out_documents(shards, number, share)
    window, row, slot, first, count, scored = _windows(
        pieces.tokens, width, max(1, width // 2), -1 if max_rows is None else max_rows
    )
    spans = Spans(
        row=row,
        slot=slot,
        domain=_groups(shards, pieces, shards.domains[number].name, groups, int(window.max(initial=-1)) + 1)[window],
        shard=pieces.shard[window],
        document=pieces.document[window],
        start=pieces.start[window] + first,
        count=count,
        repeats=first > 0,
        rows=int(row.max(initial=-1)) + 1,
        sequence_tokens=width,
        first_sequence=0,
    )
    batch = fill(spans, shards)
    # Of a window that slid, only what no window before it has scored; such a window has its row to itself.
    slid = scored > 1
    context = np.zeros(batch.rows, np.int64)
    context[row[slid]] = scored[slid] - 1
    return replace(batch, loss=batch.loss & (np.arange(width)[None] >= context[:, None]))


def held_out_documents(shards: TokenShards, number: int, share: float) -> Pieces:
    """The documents of a domain that a plan with held_out = share never gives, in the order of the shards."""
    stream = Stream.of(shards, number, seed=0, held_out=share, block_tokens=1 << 16)
    return stream.pieces(np.array([stream.tokens]), np.array([stream.whole - stream.tokens]))


def _groups(
    shards: TokenShards, pieces: Pieces, domain: str, groups: dict[Group, int], documents: int
) -> NDArray[np.int32]:
    """The group number of each of the first `documents` pieces."""
    found = np.zeros(documents, np.int32)
    for shard in np.unique(pieces.shard[:documents]).tolist():
        here = np.flatnonzero(pieces.shard[:documents] == shard)
        table = shards.documents(shard)
        told = (
            table.column("language").take(pieces.document[here]).to_pylist() if "language" in table.schema.names else []
        )
        languages = told or [None] * len(here)
        found[here] = [groups.setdefault(Group(domain, language or UNKNOWN), len(groups)) for language in languages]
    return found


def _joined(parts: list[Batch], width: int) -> Batch:
    """One batch of the rows of several."""

    def join(name: str, dtype: Any, columns: int) -> Any:
        return np.concatenate([np.zeros((0, columns), dtype), *(getattr(part, name) for part in parts)])

    return Batch(
        tokens=join("tokens", np.int64, width + 1),
        documents=join("documents", np.int32, width + 1),
        positions=join("positions", np.int32, width + 1),
        loss=join("loss", np.bool_, width),
        domains=join("domains", np.int32, width + 1),
    )


def _windows(tokens: NDArray[np.int64], width: int, stride: int, max_rows: int) -> tuple[NDArray[Any], ...]:
    """Windows of documents of these lengths: document, row, slot, first token, tokens, first token that is scored.

    The last two are counted in tokens of the document and of the window. max_rows: -1 for no bound.
    """
    longer = np.maximum(tokens - (width + 1), 0)
    columns = np.empty((6, int((1 + -(-longer // stride)).sum())), np.int64)
    found = columns[:, : _slide(tokens, width, stride, max_rows, columns)]
    document, row, slot, first, count, scored = found
    return document, row.astype(np.int32), slot.astype(np.int32), first, count.astype(np.int32), scored


@kernel
def _slide(tokens: Any, width: int, stride: int, max_rows: int, columns: Any) -> int:
    found, row, used = 0, 0, 0
    for document in range(len(tokens)):
        whole = tokens[document]
        if whole < 2:  # nothing to predict
            continue
        first, done = 0, 1
        while done < whole:
            count = min(whole - first, width + 1)
            if used > 0 and used + count > width + 1:
                row, used = row + 1, 0
            if row == max_rows:
                return found
            columns[0, found], columns[1, found], columns[2, found] = document, row, used
            columns[3, found], columns[4, found], columns[5, found] = first, count, done - first
            found += 1
            # A window of a document that slides has its row to itself.
            used = width + 1 if whole > width + 1 else used + count
            done = first + count
            first = min(first + stride, whole - width - 1)
    return found
