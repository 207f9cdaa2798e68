"""Batches: what every trainer takes, made from spans and token shards by compiled loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from numpy.typing import DTypeLike, NDArray

from text.jit import kernel
from train.feed.spans import Spans
from train.feed.token_shards import TokenShards

if TYPE_CHECKING:
    import torch

PADDING = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """b rows of L + 1 slots: inputs are tokens[:, :-1], targets tokens[:, 1:].

    tokens: int64[b, L + 1]. documents: int32[b, L + 1], the number of the piece of a document in its row, -1 in
    padding; all 0 where documents are not isolated. positions: int32[b, L + 1], from 0 in each piece (in each row where
    documents are not isolated). loss: bool[b, L], whether a target counts. domains: int32[b, L + 1], index in
    plan.domains, -1 in padding; None where there are none. step: of the plan. first_sequence: number of row 0 in the
    whole plan.

    Padding holds the id of EOS, and is told from an EOS by documents and loss, never by its id.
    """

    tokens: NDArray[np.int64]
    documents: NDArray[np.int32]
    positions: NDArray[np.int32]
    loss: NDArray[np.bool_]
    domains: NDArray[np.int32] | None = None
    step: int = 0
    first_sequence: int = 0

    @property
    def inputs(self) -> NDArray[np.int64]:
        return self.tokens[:, :-1]

    @property
    def targets(self) -> NDArray[np.int64]:
        return self.tokens[:, 1:]

    @property
    def rows(self) -> int:
        return len(self.tokens)

    @property
    def target_count(self) -> int:
        """Targets that count: what losses are divided by."""
        return int(np.count_nonzero(self.loss))

    def take(self, first: int, rows: int) -> Batch:
        """Some of its rows, as views."""
        rows_of = slice(first, first + rows)
        return Batch(
            tokens=self.tokens[rows_of],
            documents=self.documents[rows_of],
            positions=self.positions[rows_of],
            loss=self.loss[rows_of],
            domains=None if self.domains is None else self.domains[rows_of],
            step=self.step,
            first_sequence=self.first_sequence + first,
        )

    def digest(self) -> str:
        """xxh3-64 of token ids, pieces and loss mask: what a model is shown, whatever made it."""
        digest = xxhash.xxh3_64()
        for array in (self.tokens, self.documents, self.loss):
            digest.update(np.ascontiguousarray(array).data)
        return str(digest.hexdigest())

    def torch(self, device: torch.device | str = "cpu") -> TensorBatch:
        """The same as tensors on a device; the copy to a GPU does not block."""
        import torch

        on = torch.device(device)

        def tensor(array: NDArray[Any]) -> torch.Tensor:
            made = torch.from_numpy(np.ascontiguousarray(array))
            return made.pin_memory().to(on, non_blocking=True) if on.type == "cuda" else made.to(on)

        return TensorBatch(
            tokens=tensor(self.tokens),
            documents=tensor(self.documents),
            positions=tensor(self.positions),
            loss=tensor(self.loss),
            domains=None if self.domains is None else tensor(self.domains),
            step=self.step,
            first_sequence=self.first_sequence,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorBatch:
    """A Batch of tensors of the same shapes and types."""

    tokens: torch.Tensor
    documents: torch.Tensor
    positions: torch.Tensor
    loss: torch.Tensor
    domains: torch.Tensor | None
    step: int
    first_sequence: int

    @property
    def inputs(self) -> torch.Tensor:
        return self.tokens[:, :-1]

    @property
    def targets(self) -> torch.Tensor:
        return self.tokens[:, 1:]


def fill(spans: Spans, shards: TokenShards, *, isolate: bool = True, step: int = 0) -> Batch:
    """The batch of spans: their tokens copied from the shards, and what a model needs to know about each slot.

    isolate: a target counts if it and the slot before it lie in one piece of a document. Otherwise a row is one
    sequence, in which only padding and slots that repeat a token as context do not count.
    Raises ValueError for spans that reach beyond a shard or a row, and TokenShardsError.
    """
    return lay_out(spans, read(spans, shards, np.int64), isolate=isolate, step=step)


def read(spans: Spans, shards: TokenShards, dtype: DTypeLike) -> NDArray[Any]:
    """The tokens of spans as [rows, sequence_tokens + 1] of a dtype that holds the ids; EOS where there is padding."""
    _check(spans, shards)
    tokens = np.full((spans.rows, spans.sequence_tokens + 1), shards.eos_id or 0, dtype)
    order = np.argsort(spans.shard, kind="stable")
    by_shard = spans.shard[order]
    edges = np.flatnonzero(np.diff(by_shard, prepend=-1, append=-1)).tolist()
    for first, last in zip(edges[:-1], edges[1:], strict=True):
        source = shards.tokens(int(by_shard[first]))
        _copy(source, order[first:last], spans.row, spans.slot, spans.start, spans.count, tokens)
    return tokens


def lay_out(spans: Spans, tokens: NDArray[Any], *, isolate: bool = True, step: int = 0) -> Batch:
    """The batch of spans whose tokens were read: pieces, positions, targets that count. See `fill`."""
    documents = np.full(tokens.shape, PADDING, np.int32)
    positions = np.zeros(tokens.shape, np.int32)
    domains = np.full(tokens.shape, PADDING, np.int32)
    loss = np.zeros((spans.rows, spans.sequence_tokens), np.bool_)
    where = (spans.row, spans.slot, spans.count, spans.domain, spans.repeats)
    _fill_slots(*where, isolate, documents, positions, loss, domains)
    return Batch(
        tokens=tokens.astype(np.int64, copy=False),
        documents=documents,
        positions=positions,
        loss=loss,
        domains=domains,
        step=step,
        first_sequence=spans.first_sequence,
    )


def compile_kernels() -> None:
    """Build the loops now, for each width of ids, or load them from numba's cache."""
    one = np.zeros(1, np.int32)
    for width in (np.uint16, np.uint32):
        source = np.frombuffer(bytes(4), width)  # read-only, as maps are
        for wide in (np.int64, width):
            _copy(source, np.zeros(1, np.int64), one, one, np.zeros(1, np.int64), one + 1, np.zeros((1, 1), wide))
    slots = [np.zeros((1, 2), np.int32) for _ in range(3)]
    flags = np.zeros((1, 1), np.bool_)
    _fill_slots(one, one, one + 1, one, np.zeros(1, np.bool_), True, slots[0], slots[1], flags, slots[2])


def _check(spans: Spans, shards: TokenShards) -> None:
    """The compiled loops check no bounds."""
    if not len(spans):
        return
    wrong = (spans.row < 0) | (spans.row >= spans.rows) | (spans.slot < 0) | (spans.count < 1)
    wrong |= (spans.slot + spans.count > spans.sequence_tokens + 1) | (spans.start < 0)
    wrong |= (spans.shard < 0) | (spans.shard >= shards.shards)
    if not wrong.any():
        wrong |= spans.start + spans.count > shards.shard_tokens[spans.shard]
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"span {at} of sequence {spans.first_sequence + int(spans.row[at])}: tokens {spans.start[at]} to "
            f"{spans.start[at] + spans.count[at]} of shard {spans.shard[at]} for slot {spans.slot[at]}: beyond the "
            "shard or the row; take the plan and the shards that belong together"
        )


@kernel
def _fill_slots(row, slot, count, domain, repeats, isolate, documents, positions, loss, domains):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    piece, before = 0, -1
    for i in range(len(row)):
        at, first, end = row[i], slot[i], slot[i] + count[i]
        piece = piece + 1 if at == before else 0
        before = at
        # The first slot of a piece is a target only where the row is one sequence that leads up to it.
        if not isolate and first > 0 and not repeats[i] and documents[at, first - 1] >= 0:
            loss[at, first - 1] = True
        for j in range(first, end):
            documents[at, j] = piece if isolate else 0
            positions[at, j] = j - first if isolate else j
            domains[at, j] = domain[i]
        for j in range(first, end - 1):
            loss[at, j] = True


@kernel
def _copy(source, which, row, slot, start, count, tokens):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    for i in which:
        at, first, begin = row[i], slot[i], start[i]
        for j in range(count[i]):
            tokens[at, first + j] = source[begin + j]
