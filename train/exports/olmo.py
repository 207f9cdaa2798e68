"""OLMo-core's (and dolma's) token files: part-NNNNN.npy of raw ids without numpy's header, and part-NNNNN.csv.gz.

The table has no header and a line a document: start, end (in tokens of the file), id, source, row. OLMo-core takes the
smallest unsigned dtype that holds the vocabulary, and finds documents in a local file by their EOS.
SOURCE: olmo_core/data/utils.py and numpy_dataset.py; dolma's tokenizer for the table.
"""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from train.exports.account import Account
from train.exports.folder import ExportError, Folder, Written, safe_name
from train.exports.streams import Run, Source

DTYPES = ("uint8", "uint16", "uint32")


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Olmo:
    """A folder a domain, of files that hold whole documents, each ending with EOS.

    file_tokens: tokens a file, about; a longer document has a file to itself.
    """

    file_tokens: int = Field(default=1_000_000_000, ge=1)

    def write(self, source: Source, folder: Folder, account: Account) -> None:
        """Raises ExportError for documents without an EOS, at which OLMo-core could not tell them apart."""
        if not source.shards.policy.get("append_eos"):
            raise ExportError(
                "olmo: the documents have no EOS, at which OLMo-core parts them; set tokens.append_eos: true"
            )
        dtype = next(name for name in DTYPES if source.shards.vocab_size - 1 <= np.iinfo(name).max)
        account.note(f"The .npy files are raw {dtype} without a header: np.load refuses them, np.memmap reads them.")
        for stream in source.streams:
            for number, runs in enumerate(stream.files(self.file_tokens)):
                name = f"{safe_name(stream.name)}/part-{number:05d}"
                with folder.file(f"{name}.npy") as out:
                    for run in runs:
                        out.write_array(run.tokens, dtype)
                with folder.file(f"{name}.csv.gz") as out:
                    documents = _write_table(out, runs)
                tokens = folder.size_of(f"{name}.npy") // np.dtype(dtype).itemsize
                account.wrote(stream.name, documents=documents, tokens=tokens)


def _write_table(out: Written, runs: tuple[Run, ...]) -> int:
    """Where documents lie in the file; how many there are."""
    documents, first = 0, 0
    with gzip.GzipFile(filename="", mode="wb", fileobj=_Sink(out), mtime=0) as packed:
        for run in runs:
            ends = first + run.ends
            table = run.shards.documents(run.shard, ["id", "source"]).take(pa.array(run.rows))
            columns = [ends - run.lengths, ends, table.column("id"), table.column("source"), run.rows]
            lines = pa.table(columns, names=["start", "end", "id", "source", "row"])
            csv.write_csv(lines, packed, csv.WriteOptions(include_header=False, quoting_style="needed"))
            documents += len(ends)
            first += run.count
    return documents


class _Sink:
    """What gzip writes to: it wants a file, and a Written is less than one."""

    def __init__(self, out: Written) -> None:
        self._out = out

    def write(self, data: Any) -> int:
        return self._out.write(data)

    def flush(self) -> None:
        pass
