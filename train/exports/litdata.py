"""litdata's optimised tokens, to be read with TokensLoader: index.json and chunk-0-N.bin.

A chunk (little-endian): u32 items, u32 offset of each item and of the end, then the items' ids. The reader takes all
that follows the header as one stream of `dim` tokens and reads `dim // block_size` blocks of it.
SOURCE: litdata, streaming/writer.py, streaming/item_loader.py (TokensLoader) and constants.py (codes of dtypes).
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from train.exports.account import Account
from train.exports.folder import ExportError, Folder, safe_name
from train.exports.streams import Source, Stream, lengths

DTYPE_CODES = {"uint16": 5, "uint32": 6}
MAX_CHUNK_BYTES = (1 << 32) - 1  # offsets have 32 bits
SPEC = json.dumps([1, {"type": None, "context": None, "children_spec": []}])  # torch's tree of one leaf


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Litdata:
    """A folder a domain; an item is a document, or the piece of it that lies in the chunk.

    block_tokens: the reader's block_size (sequence length + 1). Each chunk but a domain's last holds a multiple of it,
        so that the reader, which drops what is left of each chunk, drops less than one block a domain.
    chunk_bytes: bytes of ids a chunk, about.
    """

    block_tokens: int = Field(default=2049, ge=1, le=1 << 24)
    chunk_bytes: int = Field(default=1 << 26, ge=1 << 10, le=1 << 31)

    def write(self, source: Source, folder: Folder, account: Account) -> None:
        width = source.shards.dtype.itemsize
        tokens = max(1, self.chunk_bytes // (self.block_tokens * width)) * self.block_tokens
        for stream in source.streams:
            chunks = self._chunks(stream, tokens, folder)
            config = {
                "chunk_bytes": self.chunk_bytes,
                "chunk_size": None,
                "compression": None,
                "data_format": [f"no_header_numpy:{DTYPE_CODES[source.shards.dtype.name]}"],
                "data_spec": SPEC,
                "encryption": None,
                "item_loader": "TokensLoader",
            }
            index = json.dumps({"chunks": chunks, "config": config}, sort_keys=True)
            folder.write(f"{safe_name(stream.name)}/index.json", index.encode())
            account.wrote(stream.name, documents=stream.documents(), tokens=sum(chunk["dim"] for chunk in chunks))
            account.note(
                f"{stream.name}: with block_size {self.block_tokens} the reader drops the last "
                f"{stream.tokens % self.block_tokens} tokens; with another one, fewer than a block of each chunk."
            )

    def _chunks(self, stream: Stream, tokens: int, folder: Folder) -> list[dict[str, Any]]:
        chunks = []
        width = stream.shards.dtype.itemsize
        for number, runs in enumerate(stream.cuts(tokens)):
            sizes = lengths(runs) * width
            offsets = 4 + 4 * (len(sizes) + 1) + np.cumsum([0, *sizes.tolist()])
            if offsets[-1] > MAX_CHUNK_BYTES:
                raise ExportError(f"{stream.name}: a chunk of {offsets[-1]} bytes; lower chunk_bytes or block_tokens")
            name = f"chunk-0-{number}.bin"
            with folder.file(f"{safe_name(stream.name)}/{name}") as out:
                out.write_array(np.array([len(sizes)]), "uint32")
                out.write_array(offsets, "uint32")
                for run in runs:
                    out.write_array(run.tokens, stream.shards.dtype.name)
            dim = sum(run.count for run in runs)
            chunks.append({"chunk_bytes": out.bytes, "chunk_size": len(sizes), "dim": dim, "filename": name})
        return chunks
