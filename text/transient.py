"""Tokens that travel between fused steps as transient columns of the batch, so that a text is tokenised once.

`_words` holds, a row, a list of (start, end, hash, characters, flags) with bytes counted from the row's text, `_lines`
a list of (start, end), `_characters` a number. A step that rewrites the text drops them (shards.with_column does).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from text.buffers import buffers_of
from text.words import INT32_BYTES, Tokens, tokenize

WORDS, LINES, CHARACTERS = "_words", "_lines", "_characters"


def tokens_of(batch: pa.RecordBatch) -> Tokens:
    """The tokens of the column `text`, from the columns that an earlier step left or else made now."""
    names = batch.schema.names
    if not (WORDS in names and LINES in names and CHARACTERS in names):
        return tokenize(batch.column("text"))
    data, offsets = buffers_of(batch.column("text"))
    word_offsets, words = _unpacked(batch.column(WORDS))
    line_offsets, lines = _unpacked(batch.column(LINES))
    word_shift, line_shift = _shift(offsets, word_offsets), _shift(offsets, line_offsets)
    return Tokens(
        data=data,
        text_offsets=offsets,
        characters=batch.column(CHARACTERS).to_numpy(zero_copy_only=False),
        word_offsets=word_offsets,
        word_starts=words[0] + word_shift,
        word_ends=words[1] + word_shift,
        word_hashes=words[2],
        word_characters=words[3],
        word_flags=words[4],
        line_offsets=line_offsets,
        line_starts=lines[0] + line_shift,
        line_ends=lines[1] + line_shift,
    )


def attach(batch: pa.RecordBatch, tokens: Tokens) -> pa.RecordBatch:
    """The batch with the tokens of its `text` as transient columns, in place of any that it had."""
    word_shift = _shift(tokens.text_offsets, tokens.word_offsets)
    line_shift = _shift(tokens.text_offsets, tokens.line_offsets)
    words = {
        "start": tokens.word_starts - word_shift,
        "end": tokens.word_ends - word_shift,
        "hash": tokens.word_hashes,
        "characters": tokens.word_characters,
        "flags": tokens.word_flags,
    }
    lines = {"start": tokens.line_starts - line_shift, "end": tokens.line_ends - line_shift}
    columns = {
        WORDS: _packed(tokens.word_offsets, words),
        LINES: _packed(tokens.line_offsets, lines),
        CHARACTERS: pa.array(tokens.characters),
    }
    stay = [name for name in batch.schema.names if name not in columns]
    arrays = [*(batch.column(name) for name in stay), *columns.values()]
    fields = [*(batch.schema.field(name) for name in stay), *(pa.field(n, a.type) for n, a in columns.items())]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, metadata=batch.schema.metadata))


def _shift(text_offsets: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """For each word or line, where its text begins."""
    width = np.int32 if text_offsets[-1] < INT32_BYTES else np.int64
    return np.repeat(text_offsets[:-1].astype(width), np.diff(offsets))


def _packed(offsets: npt.NDArray[np.int64], children: dict[str, npt.NDArray[Any]]) -> pa.Array:
    values = pa.StructArray.from_arrays([pa.array(child) for child in children.values()], names=list(children))
    return pa.LargeListArray.from_arrays(pa.array(offsets), values)


def _unpacked(column: pa.Array) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[Any]]]:
    offsets = column.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    values = column.values.slice(first, last - first)
    # StructArray.field() of a slice keeps the parent's whole child, so flatten() is what honours the slice.
    return offsets - first, [child.to_numpy(zero_copy_only=False) for child in values.flatten()]
