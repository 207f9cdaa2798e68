"""A folder that `datasets.load_dataset(FOLDER)` reads: Parquet under data/, and a README.md that counts it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from shards.store import ParquetWriter
from train.exports.account import Account
from train.exports.folder import ExportError, Folder, safe_name
from train.exports.rows import Rows
from train.exports.streams import Run, Source, longest

BATCH_TOKENS = 1 << 22  # of documents put into Arrow at a time
MAX_DOCUMENT_TOKENS = (1 << 31) - 1  # Arrow's lists have 32-bit offsets
TOKENS = pa.schema(
    [
        ("id", pa.string()),
        ("source", pa.string()),
        ("domain", pa.string()),
        ("input_ids", pa.list_(pa.field("element", pa.int32()))),
    ]
)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class HuggingFace:
    """A split `train` of the rows of a run with all their columns, or of its tokens, a document a row.

    content: documents (text, or messages, with metadata) or tokens (id, source, domain, input_ids; each domain is a
        configuration of its own, too).
    file_tokens: tokens a file, about; of documents, each part of the run is a file.
    """

    content: Literal["documents", "tokens"] = "documents"
    file_tokens: int = Field(default=250_000_000, ge=1)

    @property
    def reads(self) -> Literal["rows", "tokens"]:
        return "tokens" if self.content == "tokens" else "rows"

    def write_rows(self, rows: Rows, folder: Folder, account: Account) -> None:
        sizes: Counter[str] = Counter()
        for number, part in enumerate(rows.parts):
            name = f"data/train-{number:05d}-of-{len(rows.parts):05d}.parquet"
            with ParquetWriter(folder.path(name), rows.schema, with_digest=False) as writer:
                for batch in rows.batches(part, account):
                    writer.write(batch)
                    account.wrote("train", documents=batch.num_rows, tokens=0)
                    sizes["rows"] += batch.num_rows
                    sizes["bytes"] += batch.nbytes
            folder.add(name)
            sizes["download"] += folder.size_of(name)
        folder.write("README.md", _readme({"default": ("data/*.parquet", sizes)}))

    def write(self, source: Source, folder: Folder, account: Account) -> None:
        """Raises ExportError for a document of 2^31 tokens or more."""
        configs: dict[str, tuple[str, Counter[str]]] = {}
        for stream in source.streams:
            path = f"data/{safe_name(stream.name)}"
            sizes: Counter[str] = Counter()
            files = list(stream.files(self.file_tokens))
            for number, runs in enumerate(files):
                name = f"{path}/train-{number:05d}-of-{len(files):05d}.parquet"
                if longest(runs) > MAX_DOCUMENT_TOKENS:
                    raise ExportError(
                        f"{stream.name}: a document of {longest(runs)} tokens; Parquet holds fewer than 2^31"
                    )
                with ParquetWriter(folder.path(name), TOKENS, with_digest=False) as writer:
                    for batch in (batch for run in runs for batch in batches(run)):
                        writer.write(batch)
                        tokens = len(batch.column("input_ids").values)
                        account.wrote(stream.name, documents=batch.num_rows, tokens=tokens)
                        sizes.update(rows=batch.num_rows, bytes=batch.nbytes)
                folder.add(name)
                sizes["download"] += folder.size_of(name)
            configs[safe_name(stream.name)] = (f"{path}/*.parquet", sizes)  # datasets refuses / and others in it
        whole = Counter[str]()
        for _, sizes in configs.values():
            whole.update(sizes)
        # A domain of the name "default" is reached through the whole and its column `domain`.
        told = {name: found for name, found in configs.items() if name != "default"}
        folder.write("README.md", _readme({"default": ("data/*/*.parquet", whole), **told}))


def batches(run: Run) -> Iterator[pa.RecordBatch]:
    """The documents of a run as rows of TOKENS."""
    ends, tokens = run.ends, run.tokens
    table = run.shards.documents(run.shard, ["id", "source", "domain"]).take(pa.array(run.rows))
    first = 0
    while first < len(ends):
        start = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, start + BATCH_TOKENS, side="right")))
        here = ends[first:last]
        offsets = pa.array(np.concatenate([[start], here]) - start, pa.int32())
        values = pa.array(tokens[start : int(here[-1])].astype(np.int32))
        lists = pa.ListArray.from_arrays(offsets, values, type=TOKENS.field("input_ids").type)
        named = [table.column(name).slice(first, last - first).combine_chunks() for name in table.column_names]
        columns = [column.cast(field.type) for column, field in zip(named, TOKENS, strict=False)]
        yield pa.record_batch([*columns, lists], schema=TOKENS)
        first = last


def _readme(configs: dict[str, tuple[str, Counter[str]]]) -> bytes:
    """A card that only says where the files are and how much they hold. JSON is YAML, and needs no library."""
    told = {
        "configs": [
            {
                "config_name": name,
                "data_files": [{"split": "train", "path": path}],
                **({"default": True} if first else {}),
            }
            for first, (name, (path, _)) in zip([True] + [False] * len(configs), configs.items(), strict=False)
        ],
        "dataset_info": [
            {
                "config_name": name,
                "splits": [{"name": "train", "num_bytes": sizes["bytes"], "num_examples": sizes["rows"]}],
                "download_size": sizes["download"],
                "dataset_size": sizes["bytes"],
            }
            for name, (_, sizes) in configs.items()
        ],
    }
    lines = "\n".join(f"{key}: {json.dumps(value)}" for key, value in told.items())
    return f"---\n{lines}\n---\n".encode()
