"""What workers do to one shard of documents: measure it, sample its texts, train on a sample, encode it.

Documents are ordered by xxh3_64(id, seed). Tasks hold paths and numbers only, so that they travel to any worker; the
tokenizer is opened once a process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from shards.store import read_batches, tables
from train.tokenise.bpe import train_tokenizer
from train.tokenise.tokenizer import Tokenizer, read_bytes

SLOT_BITS = 31  # a document's slot is the top 31 bits of its order: what SQL engines without unsigned types divide
SAMPLE_TEXT_CHARS = 1 << 20  # a longer text gives the training sample its start only, so that no one book is the sample
BATCH_ROWS = 1024
BATCH_BYTES = 4 << 20  # of text encoded at a time
BATCH_PARTS = 4096  # 128 MiB of ids at most
PART_TOKENS = 8192  # tokens a row of the sort, so that its batches are bounded by rows however long documents are

KEYS = pa.schema([("slot", pa.int32()), ("text_bytes", pa.int64())])
SAMPLE = pa.schema([("text", pa.large_string())])
TRAINED = pa.schema([("tokenizer", pa.large_string())])
ENCODED = pa.schema(
    [
        ("slot", pa.int32()),
        ("order_key", pa.int64()),
        ("id", pa.string()),
        ("source", pa.string()),
        ("domain", pa.string()),
        ("language", pa.string()),
        ("input_shard", pa.int32()),
        ("input_row", pa.int64()),
        ("part", pa.int32()),
        ("text_bytes", pa.int64()),
        ("token_count", pa.int32()),
        ("tokens", pa.binary()),
    ]
)


def order_keys(ids: pa.Array, seed: int) -> npt.NDArray[np.uint64]:
    """uint64[n]: xxh3_64 of each id under the seed: the order of documents, whatever shard they came in."""
    seed %= 1 << 64
    hashes = [xxhash.xxh3_64_intdigest(told, seed=seed) for told in ids.cast(pa.binary()).fill_null(b"").to_pylist()]
    return np.array(hashes, np.uint64)


def slots(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int32]:
    return (keys >> np.uint64(64 - SLOT_BITS)).astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class KeyTask:
    """A row a document: its slot and what its text can give to the training sample, in bytes."""

    seed: int
    schema = KEYS

    def __call__(self, shard: int, path: str) -> Iterator[pa.RecordBatch]:
        for batch in documents(path, ["id", "text"]):
            sizes = pc.binary_length(_sampled(batch.column("text"))).cast(pa.int64())
            yield pa.record_batch([pa.array(slots(order_keys(batch.column("id"), self.seed))), sizes], schema=KEYS)


@dataclass(frozen=True, kw_only=True)
class SampleTask:
    """The texts of the documents whose slot is at most `last_slot`."""

    seed: int
    last_slot: int
    schema = SAMPLE

    def __call__(self, shard: int, path: str) -> Iterator[pa.RecordBatch]:
        for batch in documents(path, ["id", "text"]):
            chosen = slots(order_keys(batch.column("id"), self.seed)) <= self.last_slot
            yield pa.record_batch([_sampled(batch.column("text")).filter(pa.array(chosen))], schema=SAMPLE)


@dataclass(frozen=True, kw_only=True)
class TrainTask:
    """Train a tokenizer on a folder of sampled texts; one row, its JSON."""

    vocab_size: int
    special_tokens: tuple[str, ...]
    schema = TRAINED

    def __call__(self, shard: int, path: str) -> Iterator[pa.RecordBatch]:
        batches = (batch for name in tables(path) for batch in read_batches(name, batch_rows=BATCH_ROWS))
        texts = (batch.column("text").to_pylist() for batch in batches)
        made = train_tokenizer(texts, vocab_size=self.vocab_size, special_tokens=self.special_tokens)
        yield pa.record_batch([pa.array([made.json], pa.large_string())], schema=TRAINED)


@dataclass(frozen=True, kw_only=True)
class EncodeTask:
    """Rows of tokens as the shards will hold them: little-endian ids with BOS and EOS, a row for PART_TOKENS of them.

    Each document has at least one row (part 0), an empty one too. token_count is the whole document's, with its BOS and
    EOS, and text_bytes its text's. language is null where the documents tell none. digest: xxh3-128 of the tokenizer
    file's bytes.
    """

    tokenizer: str
    digest: str
    controls: tuple[str, ...]
    dtype: str
    bos: int | None
    eos: int | None
    seed: int
    schema = ENCODED

    def __call__(self, shard: int, path: str) -> Iterator[pa.RecordBatch]:
        tokenizer = _opened(self.tokenizer, self.digest, self.controls)
        first = 0
        columns = ["id", "source", "domain", "language", "text"]  # a column that is not there is left out
        for batch in documents(path, columns):
            for piece in bounded(batch, BATCH_BYTES):
                yield from self._encoded(piece, tokenizer, shard, first)
                first += piece.num_rows

    def _encoded(self, batch: pa.RecordBatch, tokenizer: Tokenizer, shard: int, first: int) -> Iterator[pa.RecordBatch]:
        texts = batch.column("text").fill_null("")
        ids, offsets = with_ends(*tokenizer.encode(texts), self.bos, self.eos)
        counts = np.diff(offsets)
        parts = np.maximum(-(-counts // PART_TOKENS), 1)
        rows = np.repeat(np.arange(batch.num_rows), parts)
        part = np.arange(len(rows)) - np.repeat(np.cumsum(parts) - parts, parts)
        starts = np.append(offsets[:-1][rows] + part * PART_TOKENS, offsets[-1])
        stored = np.dtype(self.dtype).newbyteorder("<")
        spans, data = pa.py_buffer(starts * stored.itemsize), pa.py_buffer(ids.astype(stored))
        tokens = pa.Array.from_buffers(pa.large_binary(), len(rows), [None, spans, data])
        taken = batch.select(["id", "source", "domain"]).take(pa.array(rows))
        keys = order_keys(batch.column("id"), self.seed)[rows]
        source = taken.column("source").fill_null("")
        language = _language(batch).take(pa.array(rows))
        columns = [
            pa.array(slots(keys)),
            pa.array((keys ^ np.uint64(1 << 63)).view(np.int64)),  # signed, in the same order
            taken.column("id"),
            source,
            pc.coalesce(taken.column("domain"), source),
            language,
            pa.array(np.full(len(rows), shard, np.int32)),
            pa.array(rows + first),
            pa.array(part.astype(np.int32)),
            pa.array(np.asarray(pc.binary_length(texts), np.int64)[rows]),
            pa.array(counts[rows].astype(np.int32)),
        ]
        for start in range(0, len(rows), BATCH_PARTS):
            some = [column.slice(start, BATCH_PARTS) for column in (*columns, tokens)]
            yield pa.record_batch([*some[:-1], some[-1].cast(pa.binary())], schema=ENCODED)


def with_ends(
    ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64], bos: int | None, eos: int | None
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """The same texts, each with the BOS before it and the EOS behind it, where there is one."""
    if bos is None and eos is None:
        return ids, offsets
    added = (bos is not None) + (eos is not None)
    wider = offsets + np.arange(len(offsets)) * added
    out = np.empty(int(wider[-1]), np.uint32)
    text = np.ones(len(out), np.bool_)
    if bos is not None:
        out[wider[:-1]] = bos
        text[wider[:-1]] = False
    if eos is not None:
        out[wider[1:] - 1] = eos
        text[wider[1:] - 1] = False
    out[text] = ids
    return out, wider


def documents(path: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a shard of documents. Raises ValueError for a text that is no UTF-8, which Parquet may hold."""
    first = 0
    for batch in read_batches(path, columns, batch_rows=BATCH_ROWS):
        texts = batch.column("text")
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid as error:
            at = next(row for row in range(len(texts)) if not _is_valid(texts.slice(row, 1)))
            said = "is no UTF-8; write shards with texts that are"
            raise ValueError(f"{path}: the text of row {first + at} {said}") from error
        yield batch
        first += batch.num_rows


def _is_valid(texts: pa.Array) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def bounded(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """Slices of a batch with at most `limit` bytes of text each; a longer text is a slice of its own."""
    ends = np.cumsum(np.asarray(pc.binary_length(batch.column("text").fill_null("")), np.int64))
    start = 0
    while start < batch.num_rows:
        before = ends[start - 1] if start else 0
        stop = max(int(np.searchsorted(ends, before + limit, side="right")), start + 1)
        yield batch.slice(start, stop - start)
        start = stop


def _sampled(texts: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(texts.cast(pa.large_string()).fill_null(""), 0, SAMPLE_TEXT_CHARS)


def _language(batch: pa.RecordBatch) -> pa.Array:
    """The documents' language; nulls where there is no such column, or one that holds no names."""
    at = batch.schema.get_field_index("language")
    if at >= 0:
        kind = batch.schema.field(at).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
            return batch.column(at).cast(pa.string())
    return pa.nulls(batch.num_rows, pa.string())


@lru_cache(maxsize=1)
def _opened(path: str, digest: str, controls: tuple[str, ...]) -> Tokenizer:
    told = read_bytes(path)
    if xxhash.xxh3_128_hexdigest(told) != digest:
        raise RuntimeError(f"{path}: the tokenizer changed while it was in use")
    return Tokenizer(told.decode(), controls)
