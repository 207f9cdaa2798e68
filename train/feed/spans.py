"""Spans: which tokens of which documents fill which slots of which rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Placed(NamedTuple):
    """Spans of one domain, in order of (row, slot): arrays of equal length."""

    row: Int32s
    slot: Int32s
    shard: Int32s
    document: Int64s
    start: Int64s
    slots: Int32s
    repeats: Bools


@dataclass(frozen=True, eq=False)
class Spans:
    """Contiguous pieces of documents, one an entry, in order of (row, slot).

    A row has sequence_tokens + 1 slots; inputs are its slots but the last, targets its slots but the first. Slots that
    no span covers are padding. When documents are isolated, the first slot of a span is a target of nothing.

    row: int32, 0 .. rows - 1. slot: int32, where in the row the span begins. domain: int32, index in plan.domains.
    shard: int32, global number. document: int64, row of the shard's documents table. start: int64, first token, counted
    in tokens of the shard. count: int32, slots and so tokens.
    repeats: bool, the first slot repeats a token that is counted in another span and stands here as context only. Over
        a whole plan the tokens start + repeats .. start + count of all spans are each token once an epoch.
    rows: rows of this part of the plan. sequence_tokens: targets a row. first_sequence: number, in the whole plan, of
        the sequence in row 0.
    """

    row: Int32s
    slot: Int32s
    domain: Int32s
    shard: Int32s
    document: Int64s
    start: Int64s
    count: Int32s
    repeats: Bools
    rows: int
    sequence_tokens: int
    first_sequence: int

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(
        cls, placed: Sequence[tuple[int, Int32s, Placed]], *, rows: int, sequence_tokens: int, first_sequence: int
    ) -> Spans:
        """Merge (domain, the row that each of its rows gets, its spans) into the order of rows."""
        parts = [part for _, _, part in placed] or [NOTHING]
        row = np.concatenate([given[part.row] for _, given, part in placed] or [NOTHING.row])
        order = np.argsort(row, kind="stable")
        domains = np.repeat(
            np.array([domain for domain, _, _ in placed], np.int32), [len(part.row) for _, _, part in placed]
        )
        slot, shard, document, start, count, repeats = (
            np.concatenate(columns)[order] for columns in list(zip(*parts, strict=True))[1:]
        )
        return cls(
            row=row[order],
            slot=slot,
            domain=domains[order],
            shard=shard,
            document=document,
            start=start,
            count=count,
            repeats=repeats,
            rows=rows,
            sequence_tokens=sequence_tokens,
            first_sequence=first_sequence,
        )


NOTHING = Placed(
    row=np.zeros(0, np.int32),
    slot=np.zeros(0, np.int32),
    shard=np.zeros(0, np.int32),
    document=np.zeros(0, np.int64),
    start=np.zeros(0, np.int64),
    slots=np.zeros(0, np.int32),
    repeats=np.zeros(0, np.bool_),
)


def chained(parts: Sequence[Placed]) -> Placed:
    """Spans one after another; the rows are numbered already."""
    if len(parts) == 1:
        return parts[0]
    return Placed._make(map(np.concatenate, zip(*parts, strict=True))) if parts else NOTHING
