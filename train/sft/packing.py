"""Whole conversations into rows by best-fit decreasing, none attending to another, dealt anew each epoch.

The rows are packed once; epoch e deals them by a permutation keyed by (seed, e). So the batch of any step is a closed
form of the seed and the step, whatever came before and however many processes share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from text import kernel
from train.feed.batch import PADDING, Batch
from train.feed.best_fit import best_fit
from train.feed.packing import Packed
from train.feed.permutation import key_of, numbered_key, permute
from train.feed.stream import Pieces
from train.sft.examples import Examples

Int64s = npt.NDArray[np.int64]
EMPTY = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Packed rows of sequence_tokens + 1 slots.

    example, slot: of each piece, row after row; the pieces of row r are starts[r] .. starts[r + 1] - 1. padding_id: the
    token in slots of no piece; it is masked by position, so it may be any.
    """

    examples: Examples
    example: Int64s
    slot: Int64s
    starts: Int64s
    sequence_tokens: int
    padding_id: int

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    def batch(self, numbers: Int64s, *, step: int = 0, first_sequence: int = 0) -> Batch:
        """The batch of these rows; EMPTY is a row of padding."""
        shape = (len(numbers), self.sequence_tokens + 1)
        batch = Batch(
            tokens=np.full(shape, self.padding_id, np.int64),
            documents=np.full(shape, PADDING, np.int32),
            positions=np.zeros(shape, np.int32),
            loss=np.zeros((shape[0], shape[1] - 1), np.bool_),
            step=step,
            first_sequence=first_sequence,
        )
        index = (numbers, self.starts, self.example, self.slot, self.examples.starts)
        data = (self.examples.tokens, self.examples.trained)
        _fill(*index, *data, batch.tokens, batch.documents, batch.positions, batch.loss)
        return batch

    def account(self) -> dict[str, Any]:
        """Slots of all rows, each once: trained + context + padded."""
        starts = self.examples.starts
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.examples.trained, dtype=np.int64)])[starts]
        trained = int((sums[self.example + 1] - sums[self.example]).sum())
        tokens = int((starts[self.example + 1] - starts[self.example]).sum())
        slots = self.count * (self.sequence_tokens + 1)
        return {
            "rows": self.count,
            "examples": len(self.example),
            "slots": slots,
            "trained": trained,
            "context": tokens - trained,
            "padded": slots - tokens,
            "padded_share": round((slots - tokens) / slots, 6) if slots else 0.0,
        }


def pack(examples: Examples, which: Int64s, *, sequence_tokens: int, padding_id: int, seed: int) -> Rows:
    """Put examples (their numbers; each of at most sequence_tokens + 1 tokens) in as few rows as best-fit needs."""
    lengths = examples.lengths[which]
    pieces = Pieces(
        shard=np.zeros(len(which), np.int32),
        document=which,
        start=np.zeros(len(which), np.int64),
        tokens=lengths,
        continues=np.zeros(len(which), np.bool_),
    )
    key = key_of(seed, "sft", "rows")

    def packed(rows: int) -> Packed:
        return best_fit(pieces, rows=rows, sequence_tokens=sequence_tokens, overflow="drop", key=key)

    found = packed(_fewest_rows(lengths, sequence_tokens + 1, lambda rows: packed(rows).dropped == 0))
    return Rows(
        examples=examples,
        example=found.placed.document.astype(np.int64),
        slot=found.placed.slot.astype(np.int64),
        starts=found.starts.astype(np.int64),
        sequence_tokens=sequence_tokens,
        padding_id=padding_id,
    )


def _fewest_rows(lengths: Int64s, slots: int, enough: Any) -> int:
    """The fewest rows that best-fit puts all pieces in: galloping up from the sum of their lengths, then halving."""
    low, step = -(-int(lengths.sum()) // slots), 1
    high = low
    while not enough(high):
        low, high, step = high + 1, min(high + step, len(lengths)), 2 * step
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return high


@dataclass(frozen=True, kw_only=True)
class Deal:
    """Which rows each step takes: epoch after epoch, the last step filled up with empty rows.

    rows: of an epoch. batch_sequences: rows a step. sequences: rows in all, over the epochs; None is endless.
    """

    rows: int
    batch_sequences: int
    seed: int
    sequences: int | None = None

    def numbers(self, step: int, rank: int = 0, world_size: int = 1) -> Int64s:
        """Row numbers of a process's part of a step's batch."""
        size = self.batch_sequences
        first, last = (step * size + part * size // world_size for part in (rank, rank + 1))
        key = key_of(self.seed, "sft", "epoch")
        found = np.full(last - first, EMPTY, np.int64)
        stop = last if self.sequences is None else min(last, self.sequences)
        for place in range(first, stop):
            epoch, inside = divmod(place, self.rows)
            found[place - first] = permute(inside, self.rows, numbered_key(key, epoch))
        return found

    def epoch(self, step: int) -> float:
        """Epochs that lie before a step."""
        return step * self.batch_sequences / self.rows


@kernel
def _fill(  # type: ignore[no-untyped-def] # noqa: PLR0917
    numbers, row_starts, example, slot, starts, source, trained, tokens, documents, positions, loss
):
    for at in range(len(numbers)):
        if numbers[at] < 0:
            continue
        first_piece = row_starts[numbers[at]]
        for piece in range(first_piece, row_starts[numbers[at] + 1]):
            begin, place = starts[example[piece]], slot[piece]
            for j in range(starts[example[piece] + 1] - begin):
                tokens[at, place + j] = source[begin + j]
                documents[at, place + j] = piece - first_piece
                positions[at, place + j] = j
                if j > 0:
                    loss[at, place + j - 1] = trained[begin + j] != 0
