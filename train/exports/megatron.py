"""Megatron-LM's indexed dataset: NAME.bin of raw ids and NAME.idx, which tells where each document lies.

The index (little-endian): 9 bytes `MMIDIDX\\0\\0`, u64 version 1, u8 code of the dtype, u64 sequences, u64 entries of
the document index; then i32 tokens of each sequence, i64 byte offset of each sequence, i64 document index, which starts
with 0: n documents of one sequence each have the entries 0 to n. SOURCE: megatron/core/datasets/indexed_dataset.py.
"""

from __future__ import annotations

import struct

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from train.exports.account import Account
from train.exports.folder import ExportError, Folder, safe_name
from train.exports.streams import Source, Stream

MAGIC = b"MMIDIDX\x00\x00"
CODES = {"uint16": 8, "int32": 4}
WIDTHS = {"uint16": 2, "int32": 4}
UINT16_VOCAB = 65_500  # below it Megatron-LM takes uint16, from it on int32 (DType.optimal_dtype)
MAX_DOCUMENT_TOKENS = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Megatron:
    """A pair of files a domain: the prefix that `--data-path` weighs. A document is one sequence.

    Ids are uint16 where the vocabulary has fewer than 65,500 entries, else int32, as Megatron-LM itself decides.
    """

    def write(self, source: Source, folder: Folder, account: Account) -> None:
        """Raises ExportError for documents of 2^31 tokens or more: the index has 32 bits for them."""
        dtype = "uint16" if source.shards.vocab_size < UINT16_VOCAB else "int32"
        if not source.shards.policy.get("append_eos"):
            account.note("Documents have no EOD at their end: --eod-mask-loss and --reset-position-ids find none.")
        for stream in source.streams:
            documents = _check(stream)
            prefix = safe_name(stream.name)
            with folder.file(f"{prefix}.bin") as out:
                for run in stream.runs():
                    out.write_array(run.tokens, dtype)
            self._index(stream, documents, dtype, f"{prefix}.idx", folder)
            account.wrote(stream.name, documents=documents, tokens=folder.size_of(f"{prefix}.bin") // WIDTHS[dtype])

    def _index(self, stream: Stream, documents: int, dtype: str, name: str, folder: Folder) -> None:
        """Three passes over where documents end, so that memory does not grow with their number."""
        with folder.file(name) as out:
            out.write(MAGIC + struct.pack("<QBQQ", 1, CODES[dtype], documents, documents + 1))
            for run in stream.runs():
                out.write_array(run.lengths, "int32")
            first = 0
            for run in stream.runs():
                out.write_array((first + run.ends - run.lengths) * WIDTHS[dtype], "int64")
                first += run.count
            number = 0
            for run in stream.runs():
                rows = len(run.rows)
                out.write_array(np.arange(number, number + rows), "int64")
                number += rows
            out.write_array(np.array([number]), "int64")


def _check(stream: Stream) -> int:
    """How many documents there are; each must fit the index."""
    documents = 0
    for run in stream.runs():
        found = run.lengths
        if found.max() > MAX_DOCUMENT_TOKENS:
            raise ExportError(
                f"{stream.name}: a document of {found.max()} tokens; megatron holds fewer than 2^31, so split it"
            )
        documents += len(found)
    return documents
